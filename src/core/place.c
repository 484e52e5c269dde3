/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a placement.
 *
 * One worker, or a gang that has to stay on one machine, is a unit (place_unit.h): the best node of
 * its index is the answer. A gang over several machines is put together from nodes with room:
 *
 *  - a rack is chosen first where one is wanted: the one with the least room left over among those
 * that hold all;
 *  - `together` strategies fill machines one after the other, those with the largest room first, so
 * that the gang touches few; the last part goes to the machine with the least room that still holds
 * it. Example: ten workers, rooms 8, 8, 3, 2, 2: eight on the first machine, two on the first of
 * those with room for just two;
 *  - other strategies place worker after worker by score, each seeing the ones before it.
 *
 * Both are complete: workers of a job are equal, and placing one on a node lowers the room of that
 * node by one and of no other, so a gang fits if and only if the rooms sum to its size. Hence "does
 * not fit" is known from the sums alone.
 *
 * Nothing is changed while searching but the copies of nodes and the scores of the index, which are
 * put back.
 */
#include "core/place.h"

#include "base/mem.h"
#include "core/cards.h"
#include "core/mix.h"
#include "core/place_index.h"
#include "core/place_unit.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POSSIBLE_SLOTS 256
#define WIDEST         (LEVEL_COUNT) /* stands for LEVEL_ANY where levels are ordered by width */

struct undo {
    uint32_t pos;
    int64_t score;
};

struct candidate {
    uint32_t pos;
    uint32_t rank;
    uint32_t room;
    int64_t score;
};

/* A remembered answer of place_possible(). */
struct possible {
    struct place_req req;
    uint32_t workers;
    uint32_t width;
    uint64_t generation; /* cluster->topology_generation + 1; 0: empty */
    bool answer;
};

struct placer {
    struct cluster *cluster; /* borrowed */
    struct mix *mix;
    uint64_t mix_generation;
    bool mix_fixed;
    struct mix_counter counter;
    void *state;
    struct index_cache cache;
    struct possible possible[POSSIBLE_SLOTS];
    /* Room for one search. */
    struct grant *grants;
    size_t grants_cap;
    struct undo *undo;
    size_t undo_cap;
    size_t undo_len;
    struct candidate *candidates;
    size_t candidates_cap;
    uint64_t *rack_rooms;
    size_t rack_rooms_cap;
    struct node *copies; /* nodes as they would be with the workers placed so far */
    size_t copies_cap;
    uint32_t copies_len;
    uint32_t *copy_of; /* node id -> number in copies + 1; all 0 between searches */
    size_t copy_of_cap;
};

/* One search: what is the same from level to level. */
struct search {
    struct placer *p;
    const struct place_query *q;
    struct scorer scorer;
};

void placement_done(struct placement *p)
{
    mem_free(p->grants);
    *p = (struct placement){0};
}

struct placer *placer_new(struct cluster *c)
{
    struct placer *p = mem_alloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->cluster = c;
    index_cache_init(&p->cache, c);
    mix_counter_init(&p->counter);
    p->mix = mix_counter_snapshot(&p->counter, NULL);
    if (p->mix == NULL) {
        mem_free(p);
        return NULL;
    }
    return p;
}

void placer_free(struct placer *p)
{
    if (p == NULL)
        return;
    index_cache_done(&p->cache);
    mix_free(p->mix);
    mem_free(p->grants);
    mem_free(p->undo);
    mem_free(p->candidates);
    mem_free(p->rack_rooms);
    mem_free(p->copies);
    mem_free(p->copy_of);
    mem_free(p);
}

static void use_mix(struct placer *p, struct mix *m)
{
    mix_free(p->mix);
    p->mix = m;
    p->mix_generation++;
}

void placer_observe(struct placer *p, const struct place_req *r, uint32_t workers)
{
    if (p->mix_fixed || !mix_counter_add(&p->counter, r, workers))
        return;
    struct mix *m = mix_counter_snapshot(&p->counter, p->mix);
    if (m != NULL)
        use_mix(p, m);
}

int placer_set_mix(struct placer *p, const struct mix_item *items, size_t len)
{
    struct mix *m = mix_new(items, len);
    if (m == NULL)
        return -ENOMEM;
    use_mix(p, m);
    p->mix_fixed = true;
    return 0;
}

const struct mix *placer_mix(const struct placer *p)
{
    return p->mix;
}

void placer_set_state(struct placer *p, void *state)
{
    p->state = state;
}

struct place_stats placer_stats(const struct placer *p)
{
    return p->cache.stats;
}

struct place_req place_req_of(const struct cluster *c, const struct request *r)
{
    return (struct place_req){
        .gpus = r->gpus,
        .share_milli = r->share_milli,
        .share_mem_mib = r->share_mem_mib,
        .cpu_milli = r->cpu_milli,
        .mem_mib = r->mem_mib,
        .model_mask = cluster_model_mask(c, r->gpu_model),
    };
}

static bool uses_cards(const struct place_req *r)
{
    return r->gpus > 0 || r->share_milli > 0;
}

static bool is_banned(const struct place_query *q, uint32_t id)
{
    return q->banned != NULL && (q->banned[id / 64] >> (id % 64) & 1) != 0;
}

/* --- could it ever fit? --- */

/*
 * Workers that the node could hold empty, in one island if that is asked for. A node that is drained or not reached
 * comes back some day: it counts.
 */
static uint64_t capacity_of(const struct node *n, const struct place_req *r, bool island)
{
    if (n->state == NODE_GONE)
        return 0;
    if (!island || !uses_cards(r))
        return cards_capacity(n, r, CARDS_ALL);
    uint32_t best = 0;
    uint32_t seen = 0;
    for (uint32_t g = 0; g < n->gpus_len; g++) {
        if ((seen >> g & 1) != 0)
            continue;
        uint32_t members = cards_island(n, g);
        seen |= members;
        uint32_t room = cards_capacity(n, r, members);
        best = room > best ? room : best;
    }
    return best;
}

/* The width is a level, or WIDEST. */
static bool possible_within(struct placer *p, const struct place_req *r, uint32_t workers, uint32_t width)
{
    const struct cluster *c = p->cluster;
    uint64_t all = 0;
    if (width == LEVEL_RACK) {
        /* Without memory the answer is "not now" rather than "never". */
        if (mem_grow(&p->rack_rooms, &p->rack_rooms_cap, c->racks.count, sizeof *p->rack_rooms) < 0)
            return true;
        memset(p->rack_rooms, 0, c->racks.count * sizeof *p->rack_rooms);
    }
    for (uint32_t id = 0; id < c->nodes_len; id++) {
        uint64_t room = capacity_of(c->nodes[id], r, width == LEVEL_NVLINK);
        uint64_t sum = room;
        if (width == LEVEL_RACK)
            sum = p->rack_rooms[c->nodes[id]->rack] += room;
        else if (width == WIDEST)
            sum = all += room;
        if (sum >= workers)
            return true;
    }
    return false;
}

static bool same_req(const struct place_req *a, const struct place_req *b)
{
    return a->gpus == b->gpus && a->share_milli == b->share_milli && a->share_mem_mib == b->share_mem_mib &&
           a->cpu_milli == b->cpu_milli && a->mem_mib == b->mem_mib && a->model_mask == b->model_mask;
}

static bool possible(struct placer *p, const struct place_req *r, uint32_t workers, uint32_t width)
{
    uint64_t h = r->gpus + UINT64_C(31) * r->share_milli + UINT64_C(37) * r->cpu_milli + 41 * r->mem_mib +
                 43 * r->share_mem_mib + r->model_mask + UINT64_C(47) * workers + width;
    struct possible *slot = &p->possible[(h * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
    uint64_t generation = p->cluster->topology_generation + 1;
    if (slot->generation == generation && slot->workers == workers && slot->width == width && same_req(&slot->req, r))
        return slot->answer;
    bool answer = possible_within(p, r, workers, width);
    *slot =
        (struct possible){.req = *r, .workers = workers, .width = width, .generation = generation, .answer = answer};
    return answer;
}

static uint32_t width_of(enum level level)
{
    return level == LEVEL_ANY ? WIDEST : (uint32_t)level;
}

bool place_possible(struct placer *p, const struct place_query *q)
{
    assert(q->workers >= 1 && q->workers <= WORKERS_MAX);
    return possible(p, &q->req, q->workers, width_of(q->require));
}

/* --- the search --- */

static int reserve(struct placer *p, uint32_t workers)
{
    if (mem_grow(&p->grants, &p->grants_cap, workers, sizeof *p->grants) < 0)
        return -ENOMEM;
    if (p->copy_of_cap >= p->cluster->nodes_len)
        return 0;
    return mem_grow(&p->copy_of, &p->copy_of_cap, p->cluster->nodes_len, sizeof *p->copy_of);
}

/* Overwrites a score and remembers the old one. */
static int poke(struct placer *p, struct place_index *ix, uint32_t pos, int64_t score)
{
    if (mem_grow(&p->undo, &p->undo_cap, p->undo_len + 1, sizeof *p->undo) < 0)
        return -ENOMEM;
    p->undo[p->undo_len++] = (struct undo){.pos = pos, .score = ix->scores[pos]};
    index_poke(&p->cache, ix, pos, score);
    return 0;
}

static void restore(struct placer *p, struct place_index *ix)
{
    while (p->undo_len > 0) {
        const struct undo *u = &p->undo[--p->undo_len];
        index_poke(&p->cache, ix, u->pos, u->score);
    }
    for (uint32_t i = 0; i < p->copies_len; i++)
        p->copy_of[p->copies[i].id] = 0;
    p->copies_len = 0;
}

/* The best position that is not banned: 0 and *ret (POS_NONE when there is none), or -ENOMEM. */
static int best_allowed(const struct search *s, struct place_index *ix, uint32_t low, uint32_t high, uint32_t *ret)
{
    struct placer *p = s->p;
    for (;;) {
        *ret = index_best(&p->cache, ix, low, high);
        if (*ret == POS_NONE || !is_banned(s->q, p->cache.layout.node_at[*ret]))
            return 0;
        if (poke(p, ix, *ret, SCORE_NONE) < 0)
            return -ENOMEM;
    }
}

static int compare_rank(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* For a strategy that chooses by itself: every allowed position with a score, in order of rank. */
static int choose_allowed(const struct search *s, const struct place_index *ix, uint32_t low, uint32_t high,
                          uint32_t *ret)
{
    struct placer *p = s->p;
    uint32_t len = 0;
    if (mem_grow(&p->candidates, &p->candidates_cap, high - low, sizeof *p->candidates) < 0)
        return -ENOMEM;
    for (uint32_t pos = low; pos < high; pos++) {
        if (ix->scores[pos] == SCORE_NONE || is_banned(s->q, p->cache.layout.node_at[pos]))
            continue;
        p->candidates[len++] = (struct candidate){.pos = pos, .rank = p->cache.layout.rank_at[pos]};
    }
    *ret = POS_NONE;
    if (len == 0)
        return 0;
    qsort(p->candidates, len, sizeof *p->candidates, compare_rank);
    uint32_t chosen = s->scorer.strategy->choose(p->state, len);
    assert(chosen < len);
    *ret = p->candidates[chosen].pos;
    return 0;
}

static int next_pos(const struct search *s, struct place_index *ix, uint32_t low, uint32_t high, uint32_t *ret)
{
    if (s->scorer.strategy->choose != NULL)
        return choose_allowed(s, ix, low, high, ret);
    return best_allowed(s, ix, low, high, ret);
}

/* The whole gang as one unit on one node. */
static int place_unit(const struct search *s, const struct unit *u)
{
    struct placer *p = s->p;
    struct place_index *ix;
    uint32_t pos = POS_NONE;
    int r = index_get(&p->cache, &s->scorer, p->mix_generation, u, &ix);
    if (r < 0)
        return r;
    r = next_pos(s, ix, 0, ix->len, &pos);
    restore(p, ix);
    if (r < 0)
        return r;
    if (pos == POS_NONE)
        return -EAGAIN;
    struct node copy = *p->cluster->nodes[p->cache.layout.node_at[pos]];
    unit_fill(&s->scorer, u, &copy, p->grants);
    return 0;
}

/* The node as the workers placed so far leave it; NULL when there is no memory. */
static struct node *copy_of(struct placer *p, uint32_t id)
{
    if (p->copy_of[id] == 0) {
        if (mem_grow(&p->copies, &p->copies_cap, (size_t)p->copies_len + 1, sizeof *p->copies) < 0)
            return NULL;
        p->copies[p->copies_len] = *p->cluster->nodes[id];
        p->copy_of[id] = ++p->copies_len;
    }
    return &p->copies[p->copy_of[id] - 1];
}

/* Worker after worker by score. The caller has seen that there is room for all. */
static int place_each(const struct search *s, struct place_index *ix, uint32_t low, uint32_t high)
{
    struct placer *p = s->p;
    int r = 0;
    for (uint32_t w = 0; w < s->q->workers && r == 0; w++) {
        uint32_t pos = POS_NONE;
        r = next_pos(s, ix, low, high, &pos);
        if (r < 0)
            break;
        assert(pos != POS_NONE);
        struct node *n = copy_of(p, p->cache.layout.node_at[pos]);
        if (n == NULL) {
            r = -ENOMEM;
            break;
        }
        unit_fill(&s->scorer, &ix->unit, n, &p->grants[w]);
        r = poke(p, ix, pos, unit_score(&s->scorer, &ix->unit, n));
    }
    restore(p, ix);
    return r;
}

/* Largest room first, then score, then rank. */
static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    if (x->room != y->room)
        return x->room > y->room ? -1 : 1;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return compare_rank(a, b);
}

/* The candidate for the last `left` workers: least room that holds them. They are sorted by room,
 * so the last. */
static uint32_t tightest(const struct candidate *c, uint32_t from, uint32_t len, uint32_t left)
{
    uint32_t last = from;
    while (last + 1 < len && c[last + 1].room >= left)
        last++;
    uint32_t best = last;
    while (best > from && c[best - 1].room == c[last].room)
        best--;
    return best;
}

/* Machine after machine. The caller has seen that there is room for all. */
static int place_together(const struct search *s, const struct place_index *ix, uint32_t low, uint32_t high)
{
    struct placer *p = s->p;
    const struct layout *l = &p->cache.layout;
    uint32_t len = 0;
    if (mem_grow(&p->candidates, &p->candidates_cap, high - low, sizeof *p->candidates) < 0)
        return -ENOMEM;
    for (uint32_t pos = low; pos < high; pos++) {
        if (ix->rooms[pos] == 0 || is_banned(s->q, l->node_at[pos]))
            continue;
        p->candidates[len++] =
            (struct candidate){.pos = pos, .rank = l->rank_at[pos], .room = ix->rooms[pos], .score = ix->scores[pos]};
    }
    qsort(p->candidates, len, sizeof *p->candidates, compare_candidates);
    uint32_t placed = 0;
    for (uint32_t i = 0; placed < s->q->workers; i++) {
        assert(i < len);
        uint32_t left = s->q->workers - placed;
        bool last = p->candidates[i].room >= left;
        const struct candidate *c = &p->candidates[last ? tightest(p->candidates, i, len, left) : i];
        struct unit part = {.req = s->q->req, .workers = last ? left : c->room};
        struct node copy = *p->cluster->nodes[l->node_at[c->pos]];
        unit_fill(&s->scorer, &part, &copy, p->grants + placed);
        placed += part.workers;
    }
    return 0;
}

/* Takes the rooms of banned nodes out of the sums by rack; returns how much that is in all. */
static uint64_t subtract_banned(const struct search *s, const struct place_index *ix, uint64_t *rack_rooms)
{
    const struct placer *p = s->p;
    uint64_t sum = 0;
    for (uint32_t word = 0; s->q->banned != NULL && word < (ix->len + 63) / 64; word++) {
        for (uint64_t rest = s->q->banned[word]; rest != 0; rest &= rest - 1) {
            uint32_t id = word * 64 + (uint32_t)__builtin_ctzll(rest);
            if (id >= ix->len)
                break;
            uint32_t room = ix->rooms[p->cache.layout.pos_of[id]];
            rack_rooms[p->cluster->nodes[id]->rack] -= room;
            sum += room;
        }
    }
    return sum;
}

/* A gang of several workers over the nodes of one rack, or of all. */
static int place_gang(const struct search *s, bool one_rack)
{
    struct placer *p = s->p;
    struct place_index *ix;
    struct unit u = {.req = s->q->req, .workers = 1};
    int r = index_get(&p->cache, &s->scorer, p->mix_generation, &u, &ix);
    if (r < 0)
        return r;
    if (mem_grow(&p->rack_rooms, &p->rack_rooms_cap, ix->racks_len, sizeof *p->rack_rooms) < 0)
        return -ENOMEM;
    if (ix->room < s->q->workers)
        return -EAGAIN;
    memcpy(p->rack_rooms, ix->rack_rooms, ix->racks_len * sizeof *p->rack_rooms);
    uint64_t room = ix->room - subtract_banned(s, ix, p->rack_rooms);
    uint32_t low = 0;
    uint32_t high = ix->len;
    if (one_rack) {
        uint32_t best = UINT32_MAX;
        for (uint32_t rack = 0; rack < ix->racks_len; rack++) {
            if (p->rack_rooms[rack] >= s->q->workers && (best == UINT32_MAX || p->rack_rooms[rack] < room)) {
                best = rack;
                room = p->rack_rooms[rack];
            }
        }
        if (best == UINT32_MAX)
            return -EAGAIN;
        low = p->cache.layout.rack_start[best];
        high = p->cache.layout.rack_start[best + 1];
    }
    if (room < s->q->workers)
        return -EAGAIN;
    return s->scorer.strategy->together ? place_together(s, ix, low, high) : place_each(s, ix, low, high);
}

static int place_within(const struct search *s, uint32_t width)
{
    const struct place_query *q = s->q;
    if (q->workers > 1 && width >= LEVEL_RACK)
        return place_gang(s, width == LEVEL_RACK);
    bool several = q->workers > 1 || q->req.gpus > 1;
    struct unit u = {.req = q->req, .workers = q->workers, .island = width == LEVEL_NVLINK && several};
    /* No index for what no machine can ever hold, say 512 workers on one. */
    if (several && width < LEVEL_RACK && !possible(s->p, &q->req, q->workers, width))
        return -EAGAIN;
    return place_unit(s, &u);
}

/* The nearest level that all grants share. */
static enum level level_of(const struct cluster *c, const struct grant *grants, uint32_t len)
{
    bool one_node = true;
    bool one_rack = true;
    uint32_t set = 0;
    for (uint32_t i = 0; i < len; i++) {
        one_node = one_node && grants[i].node == grants[0].node;
        one_rack = one_rack && c->nodes[grants[i].node]->rack == c->nodes[grants[0].node]->rack;
        set |= grants[i].gpu_mask;
    }
    if (!one_node)
        return one_rack ? LEVEL_RACK : LEVEL_ANY;
    const struct node *n = c->nodes[grants[0].node];
    bool one_island = set == 0 || (set & ~cards_island(n, (uint32_t)__builtin_ctz(set))) == 0;
    return one_island ? LEVEL_NVLINK : LEVEL_MACHINE;
}

int place_find(struct placer *p, const struct place_query *q, struct placement *ret)
{
    assert(q->workers >= 1 && q->workers <= WORKERS_MAX);
    const struct strategy *strategy = q->strategy != NULL ? q->strategy : strategy_find("remuda");
    struct search s = {.p = p, .q = q, .scorer = {.strategy = strategy, .mix = p->mix, .state = p->state}};
    if (reserve(p, q->workers) < 0)
        return -ENOMEM;
    uint32_t widest = width_of(q->require);
    uint32_t width = width_of(q->prefer);
    if (q->prefer == LEVEL_ANY && q->workers > 1)
        width = width_of(strategy->gang_prefer);
    width = width < widest ? width : widest;
    int r = -EAGAIN;
    for (; r == -EAGAIN && width <= widest; width++) {
        /* One worker is on one machine anyhow, one card in one island. */
        if (q->workers == 1 && (width >= LEVEL_MACHINE || q->req.gpus <= 1))
            width = widest;
        r = place_within(&s, width);
    }
    if (r < 0)
        return r;
    if (mem_grow(&ret->grants, &ret->cap, q->workers, sizeof *ret->grants) < 0)
        return -ENOMEM;
    memcpy(ret->grants, p->grants, q->workers * sizeof *ret->grants);
    ret->len = q->workers;
    ret->level = level_of(p->cluster, ret->grants, ret->len);
    return 0;
}
