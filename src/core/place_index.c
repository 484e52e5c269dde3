/* SPDX-License-Identifier: Apache-2.0 */
#include "core/place_index.h"

#include "base/mem.h"
#include "core/cards.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- layout --- */

struct sort_key {
    uint32_t rack;
    uint32_t rank;
    uint32_t id;
};

static int compare_keys(const void *a, const void *b)
{
    const struct sort_key *x = a;
    const struct sort_key *y = b;
    if (x->rack != y->rack)
        return x->rack < y->rack ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static void layout_done(struct layout *l)
{
    mem_free(l->node_at);
    mem_free(l->pos_of);
    mem_free(l->rank_at);
    mem_free(l->rack_start);
    *l = (struct layout){0};
}

static void layout_fill(struct layout *l, const struct sort_key *keys)
{
    uint32_t rack = 0;
    for (uint32_t pos = 0; pos < l->len; pos++) {
        while (rack <= keys[pos].rack)
            l->rack_start[rack++] = pos;
        l->node_at[pos] = keys[pos].id;
        l->rank_at[pos] = keys[pos].rank;
        l->pos_of[keys[pos].id] = pos;
    }
    while (rack <= l->racks_len)
        l->rack_start[rack++] = l->len;
}

/* Makes the layout fit the cluster; 0 or -ENOMEM, the old one stays then. */
static int layout_update(struct layout *l, const struct cluster *c)
{
    if (l->made && l->generation == c->layout_generation)
        return 0;
    struct layout next = {
        .generation = c->layout_generation, .made = true, .len = c->nodes_len, .racks_len = c->racks.count};
    struct sort_key *keys CLEANUP_FREE = mem_alloc(next.len, sizeof *keys);
    next.node_at = mem_alloc(next.len, sizeof *next.node_at);
    next.pos_of = mem_alloc(next.len, sizeof *next.pos_of);
    next.rank_at = mem_alloc(next.len, sizeof *next.rank_at);
    next.rack_start = mem_alloc((size_t)next.racks_len + 1, sizeof *next.rack_start);
    if (keys == NULL || next.node_at == NULL || next.pos_of == NULL || next.rank_at == NULL ||
        next.rack_start == NULL) {
        layout_done(&next);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < next.len; i++)
        keys[i] = (struct sort_key){.rack = c->nodes[i]->rack, .rank = c->nodes[i]->rank, .id = i};
    qsort(keys, next.len, sizeof *keys, compare_keys);
    layout_fill(&next, keys);
    layout_done(l);
    *l = next;
    return 0;
}

/* --- tournament tree --- */

/* The better of two positions: higher score, then lower rank. */
static uint32_t winner(const struct layout *l, const int64_t *scores, uint32_t a, uint32_t b)
{
    if (a == POS_NONE || b == POS_NONE)
        return a == POS_NONE ? b : a;
    if (scores[a] != scores[b])
        return scores[a] > scores[b] ? a : b;
    if (l->rank_at[a] != l->rank_at[b])
        return l->rank_at[a] < l->rank_at[b] ? a : b;
    return a < b ? a : b;
}

static void tree_update(const struct layout *l, struct place_index *ix, uint32_t pos)
{
    uint32_t i = ix->leaves + pos;
    ix->tree[i] = ix->scores[pos] == SCORE_NONE ? POS_NONE : pos;
    for (i /= 2; i > 0; i /= 2)
        ix->tree[i] = winner(l, ix->scores, ix->tree[2 * i], ix->tree[2 * i + 1]);
}

static void tree_build(const struct layout *l, struct place_index *ix)
{
    for (uint32_t pos = 0; pos < ix->leaves; pos++) {
        bool fits = pos < ix->len && ix->scores[pos] != SCORE_NONE;
        ix->tree[ix->leaves + pos] = fits ? pos : POS_NONE;
    }
    for (uint32_t i = ix->leaves - 1; i > 0; i--)
        ix->tree[i] = winner(l, ix->scores, ix->tree[2 * i], ix->tree[2 * i + 1]);
}

uint32_t index_best(const struct index_cache *c, const struct place_index *ix, uint32_t low, uint32_t high)
{
    const struct layout *l = &c->layout;
    if (low == 0 && high == ix->len)
        return ix->tree[1];
    uint32_t best = POS_NONE;
    uint32_t a = ix->leaves + low;
    uint32_t b = ix->leaves + high;
    for (; a < b; a /= 2, b /= 2) {
        if (a % 2 == 1)
            best = winner(l, ix->scores, best, ix->tree[a++]);
        if (b % 2 == 1)
            best = winner(l, ix->scores, best, ix->tree[--b]);
    }
    return best;
}

void index_poke(const struct index_cache *c, struct place_index *ix, uint32_t pos, int64_t score)
{
    ix->scores[pos] = score;
    tree_update(&c->layout, ix, pos);
}

/* --- one index --- */

static bool single(const struct unit *u)
{
    return u->workers == 1 && !u->island;
}

static void rescore(struct index_cache *c, struct place_index *ix, const struct scorer *s, uint32_t pos)
{
    const struct node *n = c->cluster->nodes[c->layout.node_at[pos]];
    bool open = node_open(n);
    ix->scores[pos] = open ? unit_score(s, &ix->unit, n) : SCORE_NONE;
    c->stats.scored++;
    if (!single(&ix->unit))
        return;
    uint16_t room = open ? (uint16_t)cards_room(n, &ix->unit.req, CARDS_ALL) : 0;
    ix->room += room;
    ix->room -= ix->rooms[pos];
    ix->rack_rooms[n->rack] += room;
    ix->rack_rooms[n->rack] -= ix->rooms[pos];
    ix->rooms[pos] = room;
}

static void release_arrays(struct index_cache *c, struct place_index *ix)
{
    mem_free(ix->scores);
    mem_free(ix->tree);
    mem_free(ix->rooms);
    mem_free(ix->rack_rooms);
    ix->scores = NULL;
    ix->tree = NULL;
    ix->rooms = NULL;
    ix->rack_rooms = NULL;
    c->stats.bytes -= ix->bytes;
    ix->bytes = 0;
    ix->len = 0;
}

/* Arrays for the present layout. 0 or -ENOMEM, the index is empty then. */
static int make_arrays(struct index_cache *c, struct place_index *ix)
{
    release_arrays(c, ix);
    uint32_t len = c->layout.len;
    ix->leaves = 1;
    while (ix->leaves < len)
        ix->leaves *= 2;
    ix->racks_len = c->layout.racks_len;
    ix->scores = mem_alloc(len, sizeof *ix->scores);
    ix->tree = mem_alloc((size_t)ix->leaves * 2, sizeof *ix->tree);
    ix->bytes = sizeof *ix + len * sizeof *ix->scores + (size_t)ix->leaves * 2 * sizeof *ix->tree;
    bool ok = ix->scores != NULL && ix->tree != NULL;
    if (single(&ix->unit)) {
        ix->rooms = mem_alloc(len, sizeof *ix->rooms);
        ix->rack_rooms = mem_alloc(ix->racks_len, sizeof *ix->rack_rooms);
        ix->bytes += len * sizeof *ix->rooms + ix->racks_len * sizeof *ix->rack_rooms;
        ok = ok && ix->rooms != NULL && ix->rack_rooms != NULL;
    }
    c->stats.bytes += ix->bytes;
    if (!ok) {
        release_arrays(c, ix);
        return -ENOMEM;
    }
    ix->len = len;
    ix->room = 0;
    return 0;
}

static int rebuild(struct index_cache *c, struct place_index *ix, const struct scorer *s)
{
    bool fits = ix->scores != NULL && ix->layout_generation == c->layout.generation;
    if (!fits && make_arrays(c, ix) < 0)
        return -ENOMEM;
    for (uint32_t pos = 0; pos < ix->len; pos++)
        rescore(c, ix, s, pos);
    tree_build(&c->layout, ix);
    ix->layout_generation = c->layout.generation;
    c->stats.rebuilt++;
    return 0;
}

static void catch_up(struct index_cache *c, struct place_index *ix, const struct scorer *s)
{
    const struct cluster *cl = c->cluster;
    uint64_t changes = cl->changes_end - ix->cursor;
    bool at_once = changes > ix->len / 8; /* cheaper to build the tree anew than leaf by leaf */
    c->stamp++;
    if (c->stamp == 0) {
        memset(c->stamps, 0, c->stamps_cap * sizeof *c->stamps);
        c->stamp = 1;
    }
    for (uint64_t i = ix->cursor; i < cl->changes_end; i++) {
        uint32_t id = cl->changes[i - cl->changes_base];
        if (c->stamps[id] == c->stamp)
            continue;
        c->stamps[id] = c->stamp;
        uint32_t pos = c->layout.pos_of[id];
        rescore(c, ix, s, pos);
        if (!at_once)
            tree_update(&c->layout, ix, pos);
    }
    if (at_once)
        tree_build(&c->layout, ix);
}

/* --- the cache --- */

void index_cache_init(struct index_cache *c, struct cluster *cluster)
{
    *c = (struct index_cache){.cluster = cluster, .bytes_max = INDEX_BYTES_MAX};
}

static void unlink_use(struct index_cache *c, struct place_index *ix)
{
    if (ix->newer != NULL)
        ix->newer->older = ix->older;
    else
        c->newest = ix->older;
    if (ix->older != NULL)
        ix->older->newer = ix->newer;
    else
        c->oldest = ix->newer;
    ix->newer = NULL;
    ix->older = NULL;
}

static void link_newest(struct index_cache *c, struct place_index *ix)
{
    ix->older = c->newest;
    if (c->newest != NULL)
        c->newest->newer = ix;
    else
        c->oldest = ix;
    c->newest = ix;
}

static void drop(struct index_cache *c, struct place_index *ix)
{
    struct place_index **at = &c->buckets[ix->hash % INDEX_BUCKETS];
    while (*at != ix)
        at = &(*at)->chain;
    *at = ix->chain;
    unlink_use(c, ix);
    release_arrays(c, ix);
    mem_free(ix);
}

void index_cache_done(struct index_cache *c)
{
    while (c->oldest != NULL)
        drop(c, c->oldest);
    layout_done(&c->layout);
    mem_free(c->stamps);
    *c = (struct index_cache){0};
}

static uint64_t mix_in(uint64_t h, uint64_t value)
{
    h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static uint64_t hash_of(const struct unit *u)
{
    uint64_t h = mix_in(0, u->req.gpus);
    h = mix_in(h, u->req.share_milli);
    h = mix_in(h, u->req.share_mem_mib);
    h = mix_in(h, u->req.cpu_milli);
    h = mix_in(h, u->req.mem_mib);
    h = mix_in(h, u->req.model_mask);
    return mix_in(h, u->workers * 2 + u->island);
}

static bool same_unit(const struct unit *a, const struct unit *b)
{
    return a->workers == b->workers && a->island == b->island && a->req.gpus == b->req.gpus &&
           a->req.share_milli == b->req.share_milli && a->req.share_mem_mib == b->req.share_mem_mib &&
           a->req.cpu_milli == b->req.cpu_milli && a->req.mem_mib == b->req.mem_mib &&
           a->req.model_mask == b->req.model_mask;
}

static struct place_index *find_or_add(struct index_cache *c, const struct scorer *s, const struct unit *u)
{
    uint64_t hash = hash_of(u);
    struct place_index **bucket = &c->buckets[hash % INDEX_BUCKETS];
    for (struct place_index *ix = *bucket; ix != NULL; ix = ix->chain) {
        if (ix->hash == hash && ix->strategy == s->strategy && same_unit(&ix->unit, u)) {
            unlink_use(c, ix);
            link_newest(c, ix);
            return ix;
        }
    }
    struct place_index *ix = mem_alloc(1, sizeof *ix);
    if (ix == NULL)
        return NULL;
    ix->strategy = s->strategy;
    ix->unit = *u;
    ix->hash = hash;
    ix->chain = *bucket;
    *bucket = ix;
    link_newest(c, ix);
    return ix;
}

int index_get(struct index_cache *c, const struct scorer *s, uint64_t mix_generation, const struct unit *u,
              struct place_index **ret)
{
    const struct cluster *cl = c->cluster;
    if (layout_update(&c->layout, cl) < 0 || mem_grow(&c->stamps, &c->stamps_cap, cl->nodes_len, sizeof *c->stamps) < 0)
        return -ENOMEM;
    struct place_index *ix = find_or_add(c, s, u);
    if (ix == NULL)
        return -ENOMEM;
    bool stale = ix->scores == NULL || ix->layout_generation != c->layout.generation || ix->cursor < cl->changes_base ||
                 (s->strategy->uses_mix && ix->mix_generation != mix_generation);
    if (stale && rebuild(c, ix, s) < 0) {
        drop(c, ix);
        return -ENOMEM;
    }
    if (!stale && ix->cursor != cl->changes_end)
        catch_up(c, ix, s);
    ix->cursor = cl->changes_end;
    ix->mix_generation = mix_generation;
    while (c->stats.bytes > c->bytes_max && c->oldest != ix) {
        drop(c, c->oldest);
        c->stats.evicted++;
    }
    *ret = ix;
    return 0;
}
