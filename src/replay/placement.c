/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two placements of the published simulators.
 *
 * count: cards are one heap; a job fits when so many are free.
 *
 * yarn: a job of at most one node's cards goes whole to the lowest-numbered node with room. A
 * larger one takes as many fully idle nodes as it fills, lowest numbers first, and for the rest the
 * lowest-numbered other node with room. Else it does not fit, however many cards are free.
 *
 * Example, 3 nodes of 8, node 0 with 5 cards free, the others idle: a job of 4 goes to node 0; a
 * job of 12 takes node 1 whole and its other 4 from node 0; a job of 16 takes nodes 1 and 2. With 3
 * cards free on each node a job of 4 does not fit although 9 are free.
 *
 * The nodes stand in a tree of maxima over their free cards, so "the lowest-numbered node with at
 * least n free" is one walk from the root to a leaf.
 */
#include "replay/sim.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* ---- count ---- */

static bool count_take(struct sim *s, uint32_t job)
{
    return sim_gpus(s, job) <= s->free;
}

static void count_give(struct sim *s, uint32_t job)
{
    (void)s;
    (void)job;
}

static bool count_possible(const struct sim *s, uint32_t gpus)
{
    return gpus <= s->gpus;
}

const struct placement_ops placement_count = {
    .name = "count",
    .take = count_take,
    .give = count_give,
    .possible = count_possible,
};

/* ---- yarn ---- */

struct yarn {
    uint32_t leaves; /* a power of two */
    uint32_t *most;  /* [1]: the root; [leaves + n]: free cards of node n */
    uint32_t idle;   /* nodes with every card free */
    uint32_t *node;  /* by job: its node, or the one of its rest */
    uint32_t **full; /* by job: the nodes it fills; NULL for small jobs */
};

static void yarn_done(struct sim *s)
{
    struct yarn *y = s->placement_state;
    if (!y)
        return;
    for (uint32_t i = 0; y->full && i < s->trace->len; i++)
        mem_free(y->full[i]);
    mem_free(y->most);
    mem_free(y->node);
    mem_free(y->full);
    mem_free(y);
    s->placement_state = NULL;
}

static int yarn_init(struct sim *s, struct err *e)
{
    struct yarn *y = mem_alloc(1, sizeof *y);
    s->placement_state = y;
    if (!y)
        return err_set(e, -ENOMEM, "no memory for %u nodes", s->nodes);
    y->leaves = 1;
    while (y->leaves < s->nodes)
        y->leaves *= 2;
    y->most = mem_alloc((size_t)y->leaves * 2, sizeof y->most[0]);
    y->node = mem_alloc(s->trace->len, sizeof y->node[0]);
    y->full = mem_alloc(s->trace->len, sizeof y->full[0]);
    if (!y->most || !y->node || !y->full)
        return err_set(e, -ENOMEM, "no memory for %u nodes and %u jobs", s->nodes, s->trace->len);
    for (uint32_t n = 0; n < s->nodes; n++)
        y->most[y->leaves + n] = s->gpus_per_node;
    for (uint32_t at = y->leaves - 1; at > 0; at--)
        y->most[at] = y->most[at * 2] > y->most[at * 2 + 1] ? y->most[at * 2] : y->most[at * 2 + 1];
    y->idle = s->nodes;
    return 0;
}

static void set_free(struct sim *s, uint32_t node, uint32_t free)
{
    struct yarn *y = s->placement_state;
    uint32_t at = y->leaves + node;
    y->idle -= y->most[at] == s->gpus_per_node;
    y->idle += free == s->gpus_per_node;
    y->most[at] = free;
    while ((at /= 2) > 0) {
        uint32_t left = y->most[at * 2], right = y->most[at * 2 + 1];
        uint32_t most = left > right ? left : right;
        if (y->most[at] == most)
            break;
        y->most[at] = most;
    }
}

static uint32_t free_of(const struct yarn *y, uint32_t node)
{
    return y->most[y->leaves + node];
}

/* The lowest-numbered node with at least `gpus` free, SIM_NONE when there is none. */
static uint32_t first_with(const struct yarn *y, uint32_t gpus)
{
    if (y->most[1] < gpus)
        return SIM_NONE;
    uint32_t at = 1;
    while (at < y->leaves)
        at = y->most[at * 2] >= gpus ? at * 2 : at * 2 + 1;
    return at - y->leaves;
}

static bool yarn_take_large(struct sim *s, uint32_t job)
{
    struct yarn *y = s->placement_state;
    uint32_t whole = sim_gpus(s, job) / s->gpus_per_node, rest = sim_gpus(s, job) % s->gpus_per_node;
    if (y->idle < whole)
        return false;
    uint32_t *nodes = mem_alloc(whole, sizeof nodes[0]);
    if (!nodes) {
        s->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < whole; i++) {
        nodes[i] = first_with(y, s->gpus_per_node);
        set_free(s, nodes[i], 0);
    }
    uint32_t other = rest > 0 ? first_with(y, rest) : SIM_NONE;
    if (rest > 0 && other == SIM_NONE) {
        for (uint32_t i = 0; i < whole; i++)
            set_free(s, nodes[i], s->gpus_per_node);
        mem_free(nodes);
        return false;
    }
    if (rest > 0)
        set_free(s, other, free_of(y, other) - rest);
    y->node[job] = other;
    y->full[job] = nodes;
    return true;
}

static bool yarn_take(struct sim *s, uint32_t job)
{
    struct yarn *y = s->placement_state;
    uint32_t gpus = sim_gpus(s, job);
    if (gpus > s->gpus_per_node)
        return yarn_take_large(s, job);
    uint32_t node = first_with(y, gpus);
    if (node == SIM_NONE)
        return false;
    set_free(s, node, free_of(y, node) - gpus);
    y->node[job] = node;
    return true;
}

static void yarn_give(struct sim *s, uint32_t job)
{
    struct yarn *y = s->placement_state;
    uint32_t rest = sim_gpus(s, job);
    if (y->full[job]) {
        uint32_t whole = rest / s->gpus_per_node;
        for (uint32_t i = 0; i < whole; i++)
            set_free(s, y->full[job][i], s->gpus_per_node);
        mem_free(y->full[job]);
        y->full[job] = NULL;
        rest %= s->gpus_per_node;
    }
    if (rest > 0)
        set_free(s, y->node[job], free_of(y, y->node[job]) + rest);
    assert(y->idle <= s->nodes);
}

static bool yarn_possible(const struct sim *s, uint32_t gpus)
{
    uint32_t whole = gpus / s->gpus_per_node;
    return whole + (gpus % s->gpus_per_node > 0) <= s->nodes;
}

const struct placement_ops placement_yarn = {
    .name = "yarn",
    .init = yarn_init,
    .done = yarn_done,
    .take = yarn_take,
    .give = yarn_give,
    .possible = yarn_possible,
};

const struct placement_ops *placement_find(const char *name)
{
    if (strcmp(name, "count") == 0)
        return &placement_count;
    return strcmp(name, "yarn") == 0 ? &placement_yarn : NULL;
}
