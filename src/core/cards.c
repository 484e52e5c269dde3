/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing whole cards by link. A job's speed follows its slowest pair, so outside an island the
 * set with the best worst link is wanted: for each link class from the best on, the cards form a
 * graph (an edge where the link is at least that good), and the first class whose graph has a
 * clique of the size wanted decides. Machines have at most 16 cards and nested classes, so the
 * search is a handful of steps; it is exact for any matrix.
 *
 * Example, two sockets with cards 0-3 and 4-7, PIX inside the pairs 01 23 45 67, NODE inside a
 * socket, SYS between: two of {1, 2, 4, 5} become {4, 5} (PIX); three of {0, 1, 3, 4} become {0, 1,
 * 3} (NODE).
 */
#include "core/cards.h"

#include <assert.h>

static uint32_t count_of(uint32_t set)
{
    return (uint32_t)__builtin_popcount(set);
}

static bool allowed(const struct gpu *g, const struct place_req *r)
{
    return g->healthy && (r->model_mask >> g->model & 1) != 0;
}

uint32_t cards_usable(const struct node *n, const struct place_req *r)
{
    uint32_t set = 0;
    if (r->gpus == 0 && r->share_milli == 0)
        return 0;
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        const struct gpu *g = &n->gpus[i];
        if (!allowed(g, r))
            continue;
        bool fits = r->gpus > 0 ? g->holders == 0
                                : !g->whole && g->free_milli >= r->share_milli && g->free_mem_mib >= r->share_mem_mib;
        set |= (uint32_t)fits << i;
    }
    return set;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Workers that CPU and host memory allow. */
static uint32_t host_room(uint32_t cpu_milli, uint64_t mem_mib, const struct place_req *r)
{
    uint32_t room = WORKERS_MAX;
    if (r->cpu_milli > 0)
        room = min_u32(room, cpu_milli / r->cpu_milli);
    if (r->mem_mib > 0 && mem_mib / r->mem_mib < room)
        room = (uint32_t)(mem_mib / r->mem_mib);
    return room;
}

/* Workers that one card can carry as shares. */
static uint32_t share_room(uint32_t milli, uint32_t mem_mib, const struct place_req *r)
{
    uint32_t room = milli / r->share_milli;
    return r->share_mem_mib > 0 ? min_u32(room, mem_mib / r->share_mem_mib) : room;
}

uint32_t cards_room(const struct node *n, const struct place_req *r, uint32_t within)
{
    uint32_t room = host_room(n->free_cpu_milli, n->free_mem_mib, r);
    if (room == 0 || (r->gpus == 0 && r->share_milli == 0))
        return room;
    uint32_t usable = cards_usable(n, r) & within;
    if (r->gpus > 0)
        return min_u32(room, count_of(usable) / r->gpus);
    uint32_t shares = 0;
    for (uint32_t rest = usable; rest != 0; rest &= rest - 1) {
        const struct gpu *g = &n->gpus[__builtin_ctz(rest)];
        shares += share_room(g->free_milli, g->free_mem_mib, r);
    }
    return min_u32(room, shares);
}

uint32_t cards_capacity(const struct node *n, const struct place_req *r, uint32_t within)
{
    uint32_t room = host_room(n->cpu_milli, n->mem_mib, r);
    if (r->gpus == 0 && r->share_milli == 0)
        return room;
    uint32_t whole = 0;
    uint32_t shares = 0;
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        if ((within >> i & 1) == 0 || !allowed(&n->gpus[i], r))
            continue;
        whole++;
        if (r->share_milli > 0)
            shares += share_room(GPU_MILLI, n->gpus[i].mem_mib, r);
    }
    return min_u32(room, r->gpus > 0 ? whole / r->gpus : shares);
}

uint32_t place_room(const struct node *n, const struct place_req *r)
{
    return node_open(n) ? cards_room(n, r, CARDS_ALL) : 0;
}

uint32_t cards_island(const struct node *n, uint32_t g)
{
    assert(g < NODE_GPUS_MAX && n->gpus_len <= NODE_GPUS_MAX);
    uint8_t island = n->gpus[g].island;
    uint32_t set = 0;
    for (uint32_t i = 0; i < n->gpus_len; i++)
        set |= (uint32_t)(n->gpus[i].island == island) << i;
    return set;
}

/* The `count` lowest-numbered cards of the set. */
static uint32_t lowest(uint32_t set, uint32_t count)
{
    uint32_t taken = 0;
    for (; count > 0; count--) {
        taken |= set & -set;
        set &= set - 1;
    }
    return taken;
}

/* A clique of `count` cards among `from`, lexicographically first; 0 when there is none. */
static uint32_t clique(const uint32_t near[NODE_GPUS_MAX], uint32_t from, uint32_t count)
{
    if (count == 0)
        return 0;
    while (count_of(from) >= count) {
        uint32_t first = from & -from;
        uint32_t rest = from & near[__builtin_ctz(first)] & ~first;
        if (count == 1)
            return first;
        uint32_t more = count_of(rest) >= count - 1 ? clique(near, rest, count - 1) : 0;
        if (more != 0)
            return first | more;
        from &= ~first;
    }
    return 0;
}

static uint32_t pick_by_link(const struct node *n, uint32_t from, uint32_t count)
{
    for (uint8_t class = LINK_NVLINK; class <= LINK_SYS; class ++) {
        uint32_t near[NODE_GPUS_MAX] = {0};
        for (uint32_t a = from; a != 0; a &= a - 1) {
            uint32_t i = (uint32_t)__builtin_ctz(a);
            for (uint32_t b = from; b != 0; b &= b - 1) {
                uint32_t j = (uint32_t)__builtin_ctz(b);
                near[i] |= (uint32_t)(i != j && n->link[i][j] <= class) << j;
            }
        }
        uint32_t found = clique(near, from, count);
        if (found != 0)
            return found;
    }
    return 0;
}

uint32_t cards_pick(const struct node *n, uint32_t from, uint32_t count)
{
    assert(count_of(from) >= count);
    if (count == 0)
        return 0;
    uint32_t best = 0;
    for (uint32_t rest = from; rest != 0;) {
        uint32_t island = from & cards_island(n, (uint32_t)__builtin_ctz(rest));
        rest &= ~island;
        if (count_of(island) >= count && (best == 0 || count_of(island) < count_of(best)))
            best = island;
    }
    if (best != 0)
        return lowest(best, count);
    uint32_t set = pick_by_link(n, from, count);
    return set != 0 ? set : lowest(from, count);
}

enum link_class cards_worst_link(const struct node *n, uint32_t set)
{
    uint8_t worst = LINK_SELF;
    for (uint32_t a = set; a != 0; a &= a - 1) {
        for (uint32_t b = set; b != 0; b &= b - 1) {
            uint8_t link = n->link[__builtin_ctz(a)][__builtin_ctz(b)];
            worst = link > worst ? link : worst;
        }
    }
    return (enum link_class)worst;
}
