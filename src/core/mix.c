/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mix.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SNAPSHOT 64
#define STEP_MAX       4096

void mix_counter_init(struct mix_counter *c)
{
    static const uint32_t prior[][2] = {{1, 8}, {2, 3}, {4, 2}, {8, 3}}; /* cards, weight */
    *c = (struct mix_counter){.next = FIRST_SNAPSHOT};
    for (size_t i = 0; i < sizeof prior / sizeof prior[0]; i++) {
        c->kinds[c->len++] =
            (struct mix_item){.gpus = prior[i][0], .milli = GPU_MILLI, .model_mask = UINT64_MAX, .weight = prior[i][1]};
        c->total += prior[i][1];
    }
}

struct mix_item mix_item_of(const struct place_req *r)
{
    struct mix_item item = {.cpu_milli = r->cpu_milli, .model_mask = r->model_mask};
    if (r->gpus > 0) {
        item.gpus = r->gpus;
        item.milli = GPU_MILLI;
    } else if (r->share_milli > 0) {
        item.gpus = 1;
        item.milli = r->share_milli;
    } else {
        item.model_mask = UINT64_MAX;
    }
    return item;
}

static bool same_kind(const struct mix_item *a, const struct mix_item *b)
{
    return a->cpu_milli == b->cpu_milli && a->gpus == b->gpus && a->milli == b->milli && a->model_mask == b->model_mask;
}

/* Halves every weight and drops the kinds that are forgotten by it. */
static void fade(struct mix_counter *c)
{
    size_t kept = 0;
    c->total = 0;
    for (size_t i = 0; i < c->len; i++) {
        c->kinds[i].weight /= 2;
        if (c->kinds[i].weight == 0)
            continue;
        c->total += c->kinds[i].weight;
        c->kinds[kept++] = c->kinds[i];
    }
    c->len = kept;
}

/* The entry of the kind, made when new. The table never stays full: fading empties it in the end.
 */
static struct mix_item *kind_of(struct mix_counter *c, const struct mix_item *item)
{
    for (size_t i = 0; i < c->len; i++) {
        if (same_kind(&c->kinds[i], item))
            return &c->kinds[i];
    }
    while (c->len == MIX_KINDS_MAX)
        fade(c);
    c->kinds[c->len] = *item;
    return &c->kinds[c->len++];
}

bool mix_counter_add(struct mix_counter *c, const struct place_req *r, uint32_t workers)
{
    struct mix_item item = mix_item_of(r);
    uint32_t weight = workers < MIX_GANG_WEIGHT ? workers : MIX_GANG_WEIGHT;
    kind_of(c, &item)->weight += weight;
    c->total += weight;
    if (c->total >= MIX_TOTAL_MAX)
        fade(c);
    c->seen++;
    if (c->seen < c->next)
        return false;
    uint64_t step = c->seen / 4;
    if (step < FIRST_SNAPSHOT)
        step = FIRST_SNAPSHOT;
    c->next += step < STEP_MAX ? step : STEP_MAX;
    return true;
}

static int compare_field(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

/* Heaviest first, then by what they ask for, largest first: total, since no two kinds are the same.
 */
static int compare_kinds(const void *a, const void *b)
{
    const struct mix_item *x = a;
    const struct mix_item *y = b;
    int r = compare_field(x->weight, y->weight);
    r = r != 0 ? r : compare_field(x->cpu_milli, y->cpu_milli);
    r = r != 0 ? r : compare_field(x->gpus, y->gpus);
    r = r != 0 ? r : compare_field(x->milli, y->milli);
    return r != 0 ? r : compare_field(x->model_mask, y->model_mask);
}

static uint64_t weight_in(const struct mix_item *items, size_t len, const struct mix_item *kind)
{
    for (size_t i = 0; i < len; i++) {
        if (same_kind(&items[i], kind))
            return items[i].weight;
    }
    return 0;
}

/* Parts in a million of the weight that lie elsewhere in `b` than in `a`. */
static uint64_t difference_ppm(const struct mix_item *a, size_t a_len, const struct mix_item *b, size_t b_len)
{
    uint64_t a_total = 0;
    uint64_t b_total = 0;
    uint64_t common = 0;
    for (size_t i = 0; i < a_len; i++)
        a_total += a[i].weight;
    for (size_t i = 0; i < b_len; i++)
        b_total += b[i].weight;
    if (a_total == 0 || b_total == 0)
        return 1000000;
    for (size_t i = 0; i < a_len; i++) {
        uint64_t in_a = a[i].weight * 1000000 / a_total;
        uint64_t in_b = weight_in(b, b_len, &a[i]) * 1000000 / b_total;
        common += in_a < in_b ? in_a : in_b;
    }
    return common < 1000000 ? 1000000 - common : 0;
}

struct mix *mix_counter_snapshot(const struct mix_counter *c, const struct mix *old)
{
    size_t old_len = 0;
    const struct mix_item *old_items = old == NULL ? NULL : mix_items(old, &old_len);
    struct mix_item *kinds CLEANUP_FREE = mem_alloc(c->len, sizeof *kinds);
    if (kinds == NULL)
        return NULL;
    memcpy(kinds, c->kinds, c->len * sizeof *kinds);
    qsort(kinds, c->len, sizeof *kinds, compare_kinds);
    size_t kept = 0;
    uint64_t covered = 0;
    while (kept < c->len && covered * 1000000 < c->total * MIX_KEEP_PPM)
        covered += kinds[kept++].weight;
    if (old != NULL && difference_ppm(kinds, kept, old_items, old_len) < MIX_DIFFERENCE_PPM)
        return NULL;
    return mix_new(kinds, kept);
}
