/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement held against brute force on small random pools, the index against a full scan, and the
 * promises: all or nothing, the level kept, nothing over-committed.
 */
#include "test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "core/cards.h"
#include "core/place_index.h"
#include "core/strategy.h"

#include <errno.h>
#include <string.h>

static const char *const strategies[] = {"remuda", "binpack", "spread"};

struct pool {
    struct cluster c;
    struct ledger l;
    struct placer *p;
};

static void pool_init(struct pool *x)
{
    assert_int_equal(cluster_init(&x->c), 0);
    ledger_init(&x->l, &x->c);
    assert_int_equal(ledger_reserve(&x->l, (struct payer){0}), 0);
    x->p = placer_new(&x->c);
    assert_non_null(x->p);
}

static void pool_done(struct pool *x)
{
    placer_free(x->p);
    ledger_done(&x->l);
    cluster_done(&x->c);
}

static struct node_desc desc_of(uint32_t number, uint32_t gpus, uint32_t island_size)
{
    struct node_desc d = {.cpu_milli = 64000, .mem_mib = 262144, .gpus_len = gpus};
    snprintf(d.name, sizeof d.name, "node-%u", number);
    for (uint32_t i = 0; i < gpus; i++) {
        snprintf(d.gpus[i].uuid, sizeof d.gpus[i].uuid, "GPU-%u-%u", number, i);
        snprintf(d.gpus[i].model, sizeof d.gpus[i].model, "A100");
        d.gpus[i].mem_mib = 40960;
        d.gpus[i].island = (uint8_t)(i / island_size);
        d.gpus[i].healthy = true;
        for (uint32_t j = 0; j < gpus; j++)
            d.link[i][j] = i == j ? LINK_SELF : i / island_size == j / island_size ? LINK_NVLINK : LINK_SYS;
    }
    return d;
}

static void pool_add(struct pool *x, const struct node_desc *d)
{
    uint32_t id;
    struct err e = {0};
    if (cluster_set_node(&x->c, d, &id, &e) < 0)
        fail_msg("%s", e.text);
}

/* Up to 4 small nodes in 2 racks, some cards unhealthy, some of another model. */
static void random_nodes(struct pool *x, struct rng *r, uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++) {
        struct node_desc d = desc_of(i, (uint32_t)rng_below(r, 5), 1 + (uint32_t)rng_below(r, 4));
        d.cpu_milli = (uint32_t)rng_between(r, 1, 8) * 1000;
        d.mem_mib = (uint64_t)rng_between(r, 1, 8) * 1024;
        snprintf(d.rack, sizeof d.rack, "rack-%u", (unsigned)rng_below(r, 2));
        for (uint32_t g = 0; g < d.gpus_len; g++) {
            d.gpus[g].healthy = !rng_chance(r, 80000);
            if (rng_chance(r, 300000))
                snprintf(d.gpus[g].model, sizeof d.gpus[g].model, "T4");
        }
        pool_add(x, &d);
    }
}

static struct place_req random_req(const struct pool *x, struct rng *r)
{
    static const char *const models[] = {"", "", "A100", "T4", "A100|T4", "H100"};
    struct request q = {.cpu_milli = (uint32_t)rng_below(r, 4) * 1000, .mem_mib = rng_below(r, 3) * 1024};
    uint64_t kind = rng_below(r, 4);
    if (kind == 0) {
        q.gpus = (uint32_t)rng_between(r, 1, 3);
    } else if (kind < 3) {
        q.share_milli = (uint32_t)rng_between(r, 1, 10) * 100;
        q.share_mem_mib = (uint32_t)rng_below(r, 3) * 15000;
    }
    snprintf(q.gpu_model, sizeof q.gpu_model, "%s", models[rng_below(r, 6)]);
    return place_req_of(&x->c, &q);
}

static bool is_banned(const struct place_query *q, uint32_t id)
{
    return q->banned != NULL && (q->banned[id / 64] >> (id % 64) & 1) != 0;
}

/* --- brute force --- */

static enum level level_between(const struct cluster *c, const struct grant *a, const struct grant *b)
{
    if (c->nodes[a->node]->rack != c->nodes[b->node]->rack)
        return LEVEL_COUNT;
    if (a->node != b->node)
        return LEVEL_RACK;
    const struct node *n = c->nodes[a->node];
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        for (uint32_t j = 0; j < n->gpus_len; j++) {
            if ((a->gpu_mask >> i & 1) != 0 && (b->gpu_mask >> j & 1) != 0 && n->gpus[i].island != n->gpus[j].island)
                return LEVEL_MACHINE;
        }
    }
    return LEVEL_NVLINK;
}

/* The widest level between any two grants; LEVEL_COUNT for different racks. */
static enum level widest(const struct cluster *c, const struct grant *g, uint32_t len)
{
    enum level w = LEVEL_NVLINK;
    for (uint32_t i = 0; i < len; i++) {
        for (uint32_t j = 0; j < len; j++) {
            enum level l = level_between(c, &g[i], &g[j]);
            w = l > w ? l : w;
        }
    }
    return w;
}

static bool mask_allowed(const struct node *n, const struct place_req *r, uint32_t mask)
{
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        if ((mask >> i & 1) != 0 && (!n->gpus[i].healthy || (r->model_mask >> n->gpus[i].model & 1) == 0))
            return false;
    }
    uint32_t want = r->gpus > 0 ? r->gpus : r->share_milli > 0 ? 1 : 0;
    return (uint32_t)__builtin_popcount(mask) == want;
}

static struct grant grant_for(const struct node *n, const struct place_req *r, uint32_t mask)
{
    return (struct grant){.node = n->id,
                          .gpu_mask = mask,
                          .milli = r->gpus > 0 ? GPU_MILLI : r->share_milli,
                          .gpu_mem_mib = r->gpus > 0 ? 0 : r->share_mem_mib,
                          .cpu_milli = r->cpu_milli,
                          .mem_mib = r->mem_mib};
}

/* Tries every set of cards on every node for every worker. `nodes` are copies that are changed and
 * restored. */
static bool exists(const struct cluster *c, struct node *nodes, const struct place_query *q, struct grant *g,
                   uint32_t placed)
{
    enum level limit = q->require == LEVEL_ANY ? LEVEL_COUNT : q->require;
    if (widest(c, g, placed) > limit)
        return false;
    if (placed == q->workers)
        return true;
    for (uint32_t id = 0; id < c->nodes_len; id++) {
        struct node *n = &nodes[id];
        if (!node_open(n) || is_banned(q, id))
            continue;
        for (uint32_t mask = 0; mask < 1u << n->gpus_len; mask++) {
            g[placed] = grant_for(n, &q->req, mask);
            if (!mask_allowed(n, &q->req, mask) || !node_fits(n, &g[placed]))
                continue;
            struct grant taken = g[placed];
            node_take(n, &taken);
            bool found = exists(c, nodes, q, g, placed + 1);
            node_give(n, &taken);
            if (found)
                return true;
        }
    }
    return false;
}

static bool brute_force(const struct pool *x, const struct place_query *q)
{
    struct node nodes[4];
    struct grant g[4];
    for (uint32_t i = 0; i < x->c.nodes_len; i++)
        nodes[i] = *x->c.nodes[i];
    return exists(&x->c, nodes, q, g, 0);
}

/* The promises that every placement keeps; takes it. */
static void check_and_take(struct pool *x, const struct place_query *q, const struct placement *f)
{
    assert_int_equal(f->len, q->workers);
    enum level w = widest(&x->c, f->grants, f->len);
    assert_int_equal(w == LEVEL_COUNT ? LEVEL_ANY : w, f->level);
    if (q->require != LEVEL_ANY)
        assert_true(w <= q->require);
    for (uint32_t i = 0; i < f->len; i++) {
        const struct grant *g = &f->grants[i];
        const struct node *n = x->c.nodes[g->node];
        assert_true(node_open(n) && !is_banned(q, g->node) && mask_allowed(n, &q->req, g->gpu_mask));
        struct grant want = grant_for(n, &q->req, g->gpu_mask);
        want.milli = g->gpu_mask == 0 ? 0 : want.milli;
        assert_int_equal(g->milli, want.milli);
        assert_int_equal(g->gpu_mem_mib, want.gpu_mem_mib);
        assert_int_equal(g->cpu_milli, want.cpu_milli);
        assert_int_equal(g->mem_mib, want.mem_mib);
        assert_true(ledger_fits(&x->l, g)); /* with those before it taken */
        ledger_take(&x->l, (struct payer){0}, g, 1);
    }
}

static struct place_query random_query(const struct pool *x, struct rng *r, uint64_t *banned)
{
    struct place_query q = {.req = random_req(x, r), .workers = 1};
    if (rng_chance(r, 600000))
        q.workers = (uint32_t)rng_between(r, 2, q.req.gpus > 1 ? 2 : 3);
    q.require = rng_chance(r, 500000) ? LEVEL_ANY : (enum level)rng_below(r, LEVEL_COUNT);
    q.prefer = rng_chance(r, 500000) ? LEVEL_ANY : (enum level)rng_below(r, LEVEL_COUNT);
    q.strategy = strategy_find(strategies[rng_below(r, 3)]);
    if (rng_chance(r, 200000)) {
        *banned = rng_next(r) & 0xf;
        q.banned = banned;
    }
    return q;
}

/* REQ: A1, A2, A4, C8, E2 */
static void test_found_if_and_only_if_one_exists(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, TEST_SEED);
    uint32_t yes = 0;
    uint32_t no = 0;
    for (uint64_t round = 0; round < test_count("REMUDA_TEST_ROUNDS", 1500); round++) {
        struct pool x;
        struct placement f = {0};
        pool_init(&x);
        random_nodes(&x, &r, (uint32_t)rng_between(&r, 1, 3));
        for (int step = 0; step < 12; step++) {
            uint64_t banned = 0;
            struct place_query q = random_query(&x, &r, &banned);
            bool expected = brute_force(&x, &q);
            int rc = place_find(x.p, &q, &f);
            if (rc != (expected ? 0 : -EAGAIN))
                fail_msg("round %llu step %d: place_find gives %d, brute force %d", (unsigned long long)round, step, rc,
                         expected);
            expected ? yes++ : no++;
            if (rc == 0)
                check_and_take(&x, &q, &f);
            uint32_t id = (uint32_t)rng_below(&r, x.c.nodes_len);
            if (rng_chance(&r, 50000))
                cluster_set_draining(&x.c, id, rng_chance(&r, 500000));
            if (rng_chance(&r, 50000))
                cluster_set_state(&x.c, id, (enum node_state)rng_below(&r, 3));
        }
        placement_done(&f);
        pool_done(&x);
    }
    assert_true(yes > 1000 && no > 1000); /* both really happen */
}

/* On an empty pool what is possible is found, and what is not is not. */
static void test_possible_is_what_an_empty_pool_holds(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, TEST_SEED + 1);
    for (int round = 0; round < 1500; round++) {
        struct pool x;
        struct placement f = {0};
        uint64_t banned = 0;
        pool_init(&x);
        random_nodes(&x, &r, (uint32_t)rng_between(&r, 1, 4));
        struct place_query q = random_query(&x, &r, &banned);
        q.banned = NULL;
        bool can = place_possible(x.p, &q);
        assert_int_equal(can, place_find(x.p, &q, &f) == 0);
        if (can) {
            check_and_take(&x, &q, &f);
            assert_true(place_possible(x.p, &q)); /* "not now" is not "never" */
        }
        placement_done(&f);
        pool_done(&x);
    }
}

/* --- index and scan --- */

/* The best node by looking at all. */
static uint32_t scan(const struct pool *x, const struct place_query *q, uint32_t *ret_mask)
{
    uint32_t best = UINT32_MAX;
    int64_t best_score = 0;
    for (uint32_t id = 0; id < x->c.nodes_len; id++) {
        const struct node *n = x->c.nodes[id];
        uint32_t mask = 0;
        if (place_room(n, &q->req) == 0)
            continue;
        struct score_in in = {.mix = placer_mix(x->p), .node = n, .req = &q->req, .cards = cards_usable(n, &q->req)};
        int64_t score = q->strategy->score(&in, &mask);
        if (best == UINT32_MAX || score > best_score || (score == best_score && n->rank < x->c.nodes[best]->rank)) {
            best = id;
            best_score = score;
            *ret_mask = mask;
        }
    }
    return best;
}

static void give_some(struct pool *x, struct rng *r, struct grant *held, size_t *len)
{
    while (*len > 0 && rng_chance(r, 450000)) {
        size_t i = (size_t)rng_below(r, *len);
        ledger_give(&x->l, (struct payer){0}, &held[i], 1);
        held[i] = held[--*len];
    }
}

static void test_index_equals_a_full_scan(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, TEST_SEED + 2);
    for (int round = 0; round < 20; round++) {
        struct pool x;
        struct placement f = {0};
        struct place_req kinds[12];
        struct grant held[400];
        size_t len = 0;
        pool_init(&x);
        random_nodes(&x, &r, 60);
        for (uint32_t i = 0; i < 60; i++)
            cluster_set_rank(&x.c, i, (i * 37) % 60);
        for (int i = 0; i < 12; i++)
            kinds[i] = random_req(&x, &r);
        for (int step = 0; step < 400; step++) {
            struct place_query q = {.req = kinds[rng_below(&r, 12)], .workers = 1};
            q.strategy = strategy_find(strategies[rng_below(&r, 3)]);
            placer_observe(x.p, &q.req, 1); /* the mix is renewed at times */
            uint32_t mask = 0;
            uint32_t want = scan(&x, &q, &mask);
            int rc = place_find(x.p, &q, &f);
            assert_int_equal(rc, want == UINT32_MAX ? -EAGAIN : 0);
            if (rc == 0) {
                assert_int_equal(f.grants[0].node, want);
                assert_int_equal(f.grants[0].gpu_mask, mask);
                ledger_take(&x.l, (struct payer){0}, f.grants, 1);
                held[len++] = f.grants[0];
            }
            give_some(&x, &r, held, &len);
            if (rng_chance(&r, 20000))
                cluster_set_draining(&x.c, (uint32_t)rng_below(&r, 60), rng_chance(&r, 300000));
            if (rng_chance(&r, 5000)) {
                struct node_desc d = desc_of(60 + (uint32_t)step, 4, 4);
                pool_add(&x, &d); /* the layout changes */
            }
        }
        placement_done(&f);
        pool_done(&x);
    }
}

/* --- gangs --- */

static struct place_query gang(uint32_t workers, uint32_t gpus, const char *strategy)
{
    return (struct place_query){.req = {.gpus = gpus, .cpu_milli = 1000, .model_mask = UINT64_MAX},
                                .workers = workers,
                                .strategy = strategy_find(strategy)};
}

static void hold(struct pool *x, uint32_t node, uint32_t mask)
{
    struct grant g = {.node = node, .gpu_mask = mask, .milli = GPU_MILLI};
    ledger_take(&x->l, (struct payer){0}, &g, 1);
}

static void test_a_gang_touches_few_machines(void **state)
{
    (void)state;
    static const uint32_t rooms[] = {2, 8, 3, 8, 2};
    struct pool x;
    struct placement f = {0};
    pool_init(&x);
    for (uint32_t i = 0; i < 5; i++) {
        struct node_desc d = desc_of(i, 8, 8);
        pool_add(&x, &d);
        if (rooms[i] < 8)
            hold(&x, i, 0xffu << rooms[i] & 0xff);
    }
    struct place_query q = gang(10, 1, "remuda");
    assert_int_equal(place_find(x.p, &q, &f), 0);
    uint32_t on[5] = {0};
    for (uint32_t i = 0; i < 10; i++)
        on[f.grants[i].node]++;
    assert_int_equal(on[1] + on[3], 8);
    assert_true(on[1] == 8 || on[3] == 8);
    assert_int_equal(on[0] + on[4], 2);
    assert_true(on[0] == 2 || on[4] == 2);
    q.workers = 23;
    assert_int_equal(place_find(x.p, &q, &f), 0);
    q.workers = 24;
    assert_int_equal(place_find(x.p, &q, &f), -EAGAIN);
    assert_int_equal(f.len, 23); /* untouched */
    assert_true(place_possible(x.p, &q));
    q.workers = 41;
    assert_false(place_possible(x.p, &q));
    placement_done(&f);
    pool_done(&x);
}

static void test_levels_are_tried_from_near_to_far(void **state)
{
    (void)state;
    struct pool x;
    struct placement f = {0};
    pool_init(&x);
    for (uint32_t i = 0; i < 4; i++) {
        struct node_desc d = desc_of(i, 8, 4);
        snprintf(d.rack, sizeof d.rack, "rack-%u", i / 2);
        pool_add(&x, &d);
    }
    struct place_query q = gang(4, 1, "binpack");
    q.prefer = LEVEL_NVLINK;
    static const struct {
        uint32_t workers;
        enum level level;
    } cases[] = {{4, LEVEL_NVLINK}, {5, LEVEL_MACHINE}, {8, LEVEL_MACHINE},
                 {9, LEVEL_RACK},   {16, LEVEL_RACK},   {17, LEVEL_ANY}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        q.workers = cases[i].workers;
        q.require = LEVEL_ANY;
        assert_int_equal(place_find(x.p, &q, &f), 0);
        assert_int_equal(f.level, cases[i].level);
        if (cases[i].level == LEVEL_ANY)
            continue;
        q.require = cases[i].level;
        assert_int_equal(place_find(x.p, &q, &f), 0);
        if (cases[i].level > LEVEL_NVLINK) {
            q.require = cases[i].level - 1;
            int rc = place_find(x.p, &q, &f);
            assert_int_equal(rc, cases[i].level == LEVEL_MACHINE && q.workers <= 4 ? 0 : -EAGAIN);
            assert_false(place_possible(x.p, &q));
        }
    }
    /* The tighter rack is taken. */
    hold(&x, 2, 0x0f);
    q = gang(10, 1, "remuda");
    q.require = LEVEL_RACK;
    assert_int_equal(place_find(x.p, &q, &f), 0);
    for (uint32_t i = 0; i < 10; i++)
        assert_true(f.grants[i].node >= 2);
    /* One worker's cards keep to an island where it is required. */
    hold(&x, 3, 0x11);
    q = gang(1, 4, "remuda");
    q.require = LEVEL_NVLINK;
    assert_int_equal(place_find(x.p, &q, &f), 0);
    assert_int_equal(f.level, LEVEL_NVLINK);
    q.req.gpus = 5;
    assert_int_equal(place_find(x.p, &q, &f), -EAGAIN);
    placement_done(&f);
    pool_done(&x);
}

static void test_spread_uses_every_machine(void **state)
{
    (void)state;
    struct pool x;
    struct placement f = {0};
    pool_init(&x);
    for (uint32_t i = 0; i < 4; i++) {
        struct node_desc d = desc_of(i, 8, 8);
        pool_add(&x, &d);
    }
    struct place_query q = gang(4, 1, "spread");
    assert_int_equal(place_find(x.p, &q, &f), 0);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < 4; i++)
        seen |= 1u << f.grants[i].node;
    assert_int_equal(seen, 0xf);
    placement_done(&f);
    pool_done(&x);
}

static void test_largest_gang(void **state)
{
    (void)state;
    struct pool x;
    struct placement f = {0};
    pool_init(&x);
    for (uint32_t i = 0; i < 512; i++) {
        struct node_desc d = desc_of(i, 8, 8);
        pool_add(&x, &d);
    }
    for (int i = 0; i < 3; i++) {
        struct place_query q = gang(WORKERS_MAX, 1, strategies[i]);
        assert_int_equal(place_find(x.p, &q, &f), 0);
        check_and_take(&x, &q, &f);
        assert_int_equal(place_find(x.p, &q, &f), -EAGAIN);
        for (uint32_t w = 0; w < WORKERS_MAX; w++)
            ledger_give(&x.l, (struct payer){0}, &f.grants[w], 1);
    }
    placement_done(&f);
    pool_done(&x);
}

/* --- bounds and failures --- */

static void test_memory_of_indexes_is_bounded(void **state)
{
    (void)state;
    struct pool x;
    struct placement f = {0};
    pool_init(&x);
    for (uint32_t i = 0; i < 4000; i++) {
        struct node_desc d = desc_of(i, 1, 1);
        pool_add(&x, &d);
    }
    for (uint32_t i = 0; i < 1200; i++) {
        struct place_query q = gang(1, 1, "binpack");
        q.req.cpu_milli = 1000 + i;
        assert_int_equal(place_find(x.p, &q, &f), 0);
    }
    struct place_stats s = placer_stats(x.p);
    assert_true(s.bytes <= INDEX_BYTES_MAX);
    assert_true(s.evicted > 0);
    /* The ones used last are still there: nothing is computed for them. */
    struct place_query q = gang(1, 1, "binpack");
    q.req.cpu_milli = 1000 + 1199;
    assert_int_equal(place_find(x.p, &q, &f), 0);
    assert_int_equal(placer_stats(x.p).scored, s.scored);
    /* One change costs one score. */
    ledger_take(&x.l, (struct payer){0}, f.grants, 1);
    assert_int_equal(place_find(x.p, &q, &f), 0);
    assert_int_equal(placer_stats(x.p).scored, s.scored + 1);
    placement_done(&f);
    pool_done(&x);
}

/* Builds a pool and places several gangs; 0 or -ENOMEM. Whatever is made is released. */
static int whole_story(void)
{
    static const uint32_t workers[] = {1, 3, 20};
    struct cluster c = {0};
    struct placement f = {0};
    struct placer *p = NULL;
    int rc = cluster_init(&c);
    for (uint32_t i = 0; rc == 0 && i < 10; i++) {
        struct node_desc d = desc_of(i, 4, 2);
        uint32_t id;
        rc = cluster_set_node(&c, &d, &id, NULL);
    }
    if (rc == 0) {
        p = placer_new(&c);
        rc = p == NULL ? -ENOMEM : 0;
    }
    for (uint32_t i = 0; rc == 0 && i < 9; i++) {
        struct place_query q = gang(workers[i % 3], 1 + i % 2, strategies[i / 3]);
        uint64_t banned = 5;
        q.require = i % 2 == 0 ? LEVEL_RACK : LEVEL_ANY;
        q.banned = &banned;
        placer_observe(p, &q.req, q.workers);
        rc = place_find(p, &q, &f);
        rc = rc == -EAGAIN ? 0 : rc;
        place_possible(p, &q);
    }
    placer_free(p);
    placement_done(&f);
    cluster_done(&c);
    return rc;
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    uint64_t before = mem_allocations();
    assert_int_equal(whole_story(), 0);
    uint64_t count = mem_allocations() - before;
    assert_true(count > 50);
    for (uint64_t nth = 1; nth <= count; nth++) {
        mem_fail_from(nth);
        int rc = whole_story();
        mem_fail_from(0);
        assert_int_equal(rc, -ENOMEM);
    }
    assert_int_equal(whole_story(), 0);
}

/* A failure in the middle of a search leaves the indexes as they were. */
static void test_a_failed_search_leaves_no_trace(void **state)
{
    (void)state;
    struct pool x;
    struct placement f = {0};
    pool_init(&x);
    for (uint32_t i = 0; i < 30; i++) {
        struct node_desc d = desc_of(i, 4, 2);
        pool_add(&x, &d);
    }
    for (uint64_t nth = 1; nth < 30; nth++) {
        struct place_query q = gang(60, 1, "spread");
        mem_fail_from(nth);
        int rc = place_find(x.p, &q, &f);
        mem_fail_from(0);
        assert_true(rc == 0 || rc == -ENOMEM);
        struct place_query one = gang(1, 1, "spread");
        uint32_t mask = 0;
        uint32_t want = scan(&x, &one, &mask);
        assert_int_equal(place_find(x.p, &one, &f), 0);
        assert_int_equal(f.grants[0].node, want);
    }
    placement_done(&f);
    pool_done(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_if_and_only_if_one_exists),
        cmocka_unit_test(test_possible_is_what_an_empty_pool_holds),
        cmocka_unit_test(test_index_equals_a_full_scan),
        cmocka_unit_test(test_a_gang_touches_few_machines),
        cmocka_unit_test(test_levels_are_tried_from_near_to_far),
        cmocka_unit_test(test_spread_uses_every_machine),
        cmocka_unit_test(test_largest_gang),
        cmocka_unit_test(test_memory_of_indexes_is_bounded),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_a_failed_search_leaves_no_trace),
    };
    return test_run("place", tests);
}
