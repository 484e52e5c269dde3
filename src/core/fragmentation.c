/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measure of fragmentation.h, made cheap: it is computed several times for each node that
 * changed, for each distinct request.
 *
 * Summed over the mix the measure is
 *
 *     F(n) = W * R  -  sum over kinds that can run of  weight * (sum of the r_g with r_g >= s)
 *
 * with W the sum of all weights: kinds that can not run and kinds without cards need no look at
 * all. Kinds that differ only in their CPU share one (cards, share) group, and how much of a
 * group's weight can run depends only on the interval between two CPU requests that the free CPU
 * falls into. So a table [CPU interval][group] of weights is made once; then one walk over the
 * groups in order of s beside the sorted cards gives F: about one multiplication for each group.
 * Which items a model may serve makes one such table for each distinct pattern.
 *
 * Nodes with cards of several models are rare; they are computed item by item.
 */
#include "core/fragmentation.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WASTE_RARE 40 /* a card waits well for what is at least one in so many requests */

struct group {
    uint32_t milli;
    uint32_t gpus;
};

struct mix {
    struct mix_item *items;
    size_t items_len;
    int64_t weight;
    struct group *groups; /* by share, then cards */
    size_t groups_len;
    uint32_t *cpus; /* distinct CPU requests, ascending */
    size_t cpus_len;
    uint8_t pattern_of[MODELS_MAX]; /* model -> pattern */
    size_t patterns_len;
    int64_t waste[GPU_MILLI + 1]; /* by free share, millionths of a card */
    int64_t *weights;             /* [pattern][CPU interval, cpus_len + 1][group] */
};

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *x = a;
    const struct group *y = b;
    if (x->milli != y->milli)
        return x->milli < y->milli ? -1 : 1;
    return (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

/* Sorts and drops repeats; returns the new length. */
static size_t sort_unique(void *array, size_t len, size_t size, int (*cmp)(const void *, const void *))
{
    if (len == 0)
        return 0;
    qsort(array, len, size, cmp);
    char *base = array;
    size_t kept = 1;
    for (size_t i = 1; i < len; i++) {
        if (cmp(base + (kept - 1) * size, base + i * size) != 0)
            memmove(base + kept++ * size, base + i * size, size);
    }
    return kept;
}

static void collect_axes(struct mix *m)
{
    for (size_t i = 0; i < m->items_len; i++) {
        const struct mix_item *it = &m->items[i];
        m->cpus[m->cpus_len++] = it->cpu_milli;
        if (it->gpus > 0)
            m->groups[m->groups_len++] = (struct group){.milli = it->milli, .gpus = it->gpus};
    }
    m->cpus_len = sort_unique(m->cpus, m->cpus_len, sizeof *m->cpus, compare_u32);
    m->groups_len = sort_unique(m->groups, m->groups_len, sizeof *m->groups, compare_groups);
}

/* True when both models are allowed by the same items. */
static bool same_pattern(const struct mix *m, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < m->items_len; i++) {
        if ((m->items[i].model_mask >> a & 1) != (m->items[i].model_mask >> b & 1))
            return false;
    }
    return true;
}

/* Numbers the patterns; first[p] is a model that has pattern p. */
static void collect_patterns(struct mix *m, uint32_t first[MODELS_MAX])
{
    for (uint32_t model = 0; model < MODELS_MAX; model++) {
        size_t p = 0;
        while (p < m->patterns_len && !same_pattern(m, first[p], model))
            p++;
        if (p == m->patterns_len)
            first[m->patterns_len++] = model;
        m->pattern_of[model] = (uint8_t)p;
    }
}

static size_t group_of(const struct mix *m, const struct mix_item *it)
{
    size_t g = 0;
    while (m->groups[g].milli != it->milli || m->groups[g].gpus != it->gpus)
        g++;
    return g;
}

static void fill_pattern(struct mix *m, size_t pattern, uint32_t model)
{
    int64_t *table = m->weights + pattern * (m->cpus_len + 1) * m->groups_len;
    for (size_t i = 0; i < m->items_len; i++) {
        const struct mix_item *it = &m->items[i];
        if (it->gpus == 0 || (it->model_mask >> model & 1) == 0)
            continue;
        size_t g = group_of(m, it);
        for (size_t c = 0; c < m->cpus_len; c++) {
            if (m->cpus[c] >= it->cpu_milli)
                table[(c + 1) * m->groups_len + g] += (int64_t)it->weight;
        }
    }
}

/* See mix_waste(): from the smallest free share up, each from those below it. */
static void fill_waste(struct mix *m)
{
    int64_t with_cards = 0;
    for (size_t i = 0; i < m->items_len; i++)
        with_cards += m->items[i].gpus > 0 ? (int64_t)m->items[i].weight : 0;
    for (uint32_t r = 1; r <= GPU_MILLI; r++) {
        int64_t fitting = 0;
        int64_t sum = 0;
        for (size_t i = 0; i < m->items_len; i++) {
            const struct mix_item *it = &m->items[i];
            if (it->gpus != 1 || it->milli > r)
                continue;
            fitting += (int64_t)it->weight;
            sum += (int64_t)it->weight * m->waste[r - it->milli];
        }
        int64_t full = (int64_t)r * 1000;
        if (fitting == 0) {
            m->waste[r] = full;
            continue;
        }
        int64_t chance = fitting * WASTE_RARE < with_cards ? fitting * WASTE_RARE : with_cards;
        m->waste[r] = (chance * (sum / fitting) + (with_cards - chance) * full) / with_cards;
    }
}

struct mix *mix_new(const struct mix_item *items, size_t len)
{
    uint32_t first[MODELS_MAX] = {0};
    struct mix *m = mem_alloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->items = mem_alloc(len, sizeof *m->items);
    m->cpus = mem_alloc(len, sizeof *m->cpus);
    m->groups = mem_alloc(len, sizeof *m->groups);
    if (m->items == NULL || m->cpus == NULL || m->groups == NULL)
        goto fail;
    for (size_t i = 0; i < len; i++) {
        assert(items[i].milli <= GPU_MILLI && (items[i].gpus == 0 || items[i].milli > 0) &&
               items[i].weight < (UINT64_C(1) << 40));
        if (items[i].weight == 0)
            continue;
        m->items[m->items_len++] = items[i];
        m->weight += (int64_t)items[i].weight;
    }
    if (m->weight == 0)
        m->weight = 1; /* a mix of nothing: F is R everywhere */
    collect_axes(m);
    fill_waste(m);
    collect_patterns(m, first);
    m->weights = mem_alloc(m->patterns_len * (m->cpus_len + 1) * m->groups_len, sizeof *m->weights);
    if (m->weights == NULL)
        goto fail;
    for (size_t p = 0; p < m->patterns_len; p++)
        fill_pattern(m, p, first[p]);
    return m;
fail:
    mix_free(m);
    return NULL;
}

void mix_free(struct mix *m)
{
    if (m == NULL)
        return;
    mem_free(m->items);
    mem_free(m->groups);
    mem_free(m->cpus);
    mem_free(m->weights);
    mem_free(m);
}

int64_t mix_waste(const struct mix *m, uint32_t free)
{
    assert(free <= GPU_MILLI);
    return m->waste[free];
}

int64_t mix_weight(const struct mix *m)
{
    return m->weight;
}

const struct mix_item *mix_items(const struct mix *m, size_t *ret_len)
{
    *ret_len = m->items_len;
    return m->items;
}

static int64_t fragmentation_mixed(const struct mix *m, const struct frag_state *s)
{
    int64_t f = m->weight * s->total;
    for (size_t i = 0; i < m->items_len; i++) {
        const struct mix_item *it = &m->items[i];
        if (it->gpus == 0 || it->cpu_milli > s->cpu_milli)
            continue;
        uint32_t count = 0;
        uint32_t sum = 0;
        for (uint32_t g = 0; g < s->len; g++) {
            if (s->free[g] >= it->milli && (it->model_mask >> s->model[g] & 1) != 0) {
                count++;
                sum += s->free[g];
            }
        }
        if (count >= it->gpus)
            f -= (int64_t)it->weight * sum;
    }
    return f;
}

int64_t mix_fragmentation(const struct mix *m, const struct frag_state *s)
{
    if (s->len == 0)
        return 0;
    if (s->mixed)
        return fragmentation_mixed(m, s);
    size_t interval = 0;
    while (interval < m->cpus_len && m->cpus[interval] <= s->cpu_milli)
        interval++;
    size_t row = m->pattern_of[s->model[0]] * (m->cpus_len + 1) + interval;
    const int64_t *weights = m->weights + row * m->groups_len;
    int64_t f = m->weight * s->total;
    uint32_t sum = s->total; /* of the cards from `at` on */
    uint32_t at = 0;
    for (size_t g = 0; g < m->groups_len; g++) {
        while (at < s->len && s->free[at] < m->groups[g].milli)
            sum -= s->free[at++];
        if (s->len - at >= m->groups[g].gpus)
            f -= weights[g] * sum;
    }
    return f;
}

uint32_t frag_card_free(const struct gpu *g)
{
    if (g->free_mem_mib == g->mem_mib)
        return g->free_milli;
    uint32_t mem = (uint32_t)((uint64_t)g->free_mem_mib * GPU_MILLI / g->mem_mib);
    return mem < g->free_milli ? mem : g->free_milli;
}

static void insert(struct frag_state *s, uint32_t free, uint8_t model)
{
    uint32_t at = s->len++;
    for (; at > 0 && s->free[at - 1] > free; at--) {
        s->free[at] = s->free[at - 1];
        s->model[at] = s->model[at - 1];
    }
    s->free[at] = (uint16_t)free;
    s->model[at] = model;
    s->total += free;
}

void frag_state_of(struct frag_state *s, const struct node *n)
{
    s->cpu_milli = n->free_cpu_milli;
    s->len = 0;
    s->total = 0;
    s->mixed = false;
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        const struct gpu *g = &n->gpus[i];
        if (!g->healthy)
            continue;
        insert(s, frag_card_free(g), g->model);
        s->mixed = s->mixed || g->model != s->model[0];
    }
}

void frag_state_take(struct frag_state *s, uint32_t free, uint8_t model, uint32_t left)
{
    assert(left <= free);
    uint32_t at = 0;
    while (at < s->len && (s->free[at] != free || s->model[at] != model))
        at++;
    assert(at < s->len);
    for (; at > 0 && s->free[at - 1] > left; at--) {
        s->free[at] = s->free[at - 1];
        s->model[at] = s->model[at - 1];
    }
    s->free[at] = (uint16_t)left;
    s->model[at] = model;
    s->total -= free - left;
}

int64_t mix_fragmentation_after(const struct mix *m, const struct frag_state *now, const struct node *n,
                                const struct place_req *r, uint32_t mask)
{
    struct frag_state after = *now;
    after.cpu_milli -= r->cpu_milli;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        struct gpu g = n->gpus[__builtin_ctz(rest)];
        uint32_t free = frag_card_free(&g);
        if (r->gpus > 0) {
            g.free_milli = 0;
        } else {
            g.free_milli = (uint16_t)(g.free_milli - r->share_milli);
            g.free_mem_mib -= r->share_mem_mib;
        }
        frag_state_take(&after, free, g.model, frag_card_free(&g));
    }
    return mix_fragmentation(m, &after);
}
