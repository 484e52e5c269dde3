/* SPDX-License-Identifier: Apache-2.0 */
/* The pool, the ledger, the choice of cards by link, and the measure of fragmentation. */
#include "test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "core/cards.h"
#include "core/fragmentation.h"
#include "core/ledger.h"
#include "core/mix.h"
#include "core/strategy.h"

#include <errno.h>
#include <string.h>

static struct node_desc desc_of(const char *name, const char *uuids)
{
    struct node_desc d = {.cpu_milli = 32000, .mem_mib = 65536};
    snprintf(d.name, sizeof d.name, "%s", name);
    memset(d.link, LINK_UNKNOWN, sizeof d.link);
    for (; uuids[d.gpus_len] != '\0'; d.gpus_len++) {
        struct gpu_desc *g = &d.gpus[d.gpus_len];
        g->uuid[0] = uuids[d.gpus_len];
        snprintf(g->model, sizeof g->model, "A100");
        g->mem_mib = 40960;
        g->island = (uint8_t)d.gpus_len;
        g->healthy = true;
        d.link[d.gpus_len][d.gpus_len] = LINK_SELF;
    }
    return d;
}

static uint32_t add(struct cluster *c, const struct node_desc *d)
{
    uint32_t id = 99;
    struct err e = {0};
    if (cluster_set_node(c, d, &id, &e) < 0)
        fail_msg("%s", e.text);
    return id;
}

static void test_cards_keep_their_number(void **state)
{
    (void)state;
    struct cluster c;
    struct ledger l;
    assert_int_equal(cluster_init(&c), 0);
    ledger_init(&l, &c);
    assert_int_equal(ledger_reserve(&l, (struct payer){0}), 0);
    struct node_desc d = desc_of("n", "ABC");
    uint32_t id = add(&c, &d);
    struct grant g = {.node = id, .gpu_mask = 1u << 1, .milli = GPU_MILLI, .cpu_milli = 40, .mem_mib = 7};
    ledger_take(&l, (struct payer){0}, &g, 1);
    d = desc_of("n", "CD");
    add(&c, &d);
    const struct node *n = c.nodes[id];
    assert_int_equal(n->gpus_len, 3);
    assert_string_equal(n->gpus[0].uuid, "D");
    assert_string_equal(n->gpus[1].uuid, "B");
    assert_string_equal(n->gpus[2].uuid, "C");
    assert_false(n->gpus[1].healthy);
    assert_int_equal(n->gpus_milli_free, 2000);
    ledger_give(&l, (struct payer){0}, &g, 1);
    assert_int_equal(n->gpus_milli_free, 2000); /* B is still not healthy */
    assert_int_equal(n->free_cpu_milli, 32000);
    add(&c, &d); /* nothing is held now: the report's order is taken over */
    assert_int_equal(n->gpus_len, 2);
    assert_string_equal(n->gpus[0].uuid, "C");
    ledger_done(&l);
    cluster_done(&c);
}

static void test_capacity_never_below_what_is_held(void **state)
{
    (void)state;
    struct cluster c;
    struct ledger l;
    assert_int_equal(cluster_init(&c), 0);
    ledger_init(&l, &c);
    assert_int_equal(ledger_reserve(&l, (struct payer){0}), 0);
    struct node_desc d = desc_of("n", "A");
    uint32_t id = add(&c, &d);
    struct grant g = {
        .node = id, .gpu_mask = 1, .milli = 300, .gpu_mem_mib = 30000, .cpu_milli = 20000, .mem_mib = 50000};
    ledger_take(&l, (struct payer){0}, &g, 1);
    d.cpu_milli = 1000;
    d.mem_mib = 10;
    d.gpus[0].mem_mib = 100;
    add(&c, &d);
    const struct node *n = c.nodes[id];
    assert_int_equal(n->cpu_milli, 20000);
    assert_int_equal(n->free_cpu_milli, 0);
    assert_int_equal(n->mem_mib, 50000);
    assert_int_equal(n->gpus[0].mem_mib, 30000);
    assert_int_equal(n->gpus[0].free_mem_mib, 0);
    ledger_give(&l, (struct payer){0}, &g, 1);
    add(&c, &d);
    assert_int_equal(n->cpu_milli, 1000);
    assert_int_equal(n->free_cpu_milli, 1000);
    assert_int_equal(n->gpus[0].mem_mib, 100);
    ledger_done(&l);
    cluster_done(&c);
}

static void test_same_report_changes_nothing(void **state)
{
    (void)state;
    struct cluster c;
    assert_int_equal(cluster_init(&c), 0);
    struct node_desc d = desc_of("n", "ABCD");
    add(&c, &d);
    uint64_t changes = c.changes_end;
    uint64_t topology = c.topology_generation;
    add(&c, &d);
    assert_int_equal(c.changes_end, changes);
    assert_int_equal(c.topology_generation, topology);
    d.gpus[2].healthy = false;
    add(&c, &d);
    assert_int_equal(c.changes_end, changes + 1);
    assert_int_equal(c.nodes[0]->gpus_milli_free, 3000);
    assert_ptr_equal(cluster_find(&c, "n"), c.nodes[0]);
    assert_null(cluster_find(&c, "m"));
    cluster_done(&c);
}

static void test_bad_reports_are_refused(void **state)
{
    (void)state;
    struct cluster c;
    struct err e = {0};
    uint32_t id = 99;
    assert_int_equal(cluster_init(&c), 0);
    struct node_desc d = desc_of("n", "AA");
    assert_int_equal(cluster_set_node(&c, &d, &id, &e), -EINVAL);
    assert_non_null(strstr(e.text, "uuid 'A'"));
    d = desc_of("", "A");
    assert_int_equal(cluster_set_node(&c, &d, &id, &e), -EINVAL);
    d = desc_of("n", "A");
    d.gpus_len = NODE_GPUS_MAX + 1;
    assert_int_equal(cluster_set_node(&c, &d, &id, &e), -EINVAL);
    d = desc_of("n", "AB");
    d.link[1][0] = LINK_UNKNOWN + 1;
    assert_int_equal(cluster_set_node(&c, &d, &id, &e), -EINVAL);
    d = desc_of("n", "A");
    d.gpus[0].uuid[0] = '\0';
    assert_int_equal(cluster_set_node(&c, &d, &id, &e), -EINVAL);
    assert_int_equal(c.nodes_len, 0);
    assert_int_equal(id, 99);
    for (uint32_t i = 0; i <= MODELS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        d = desc_of(name, "A");
        snprintf(d.gpus[0].model, sizeof d.gpus[0].model, "M%u", i);
        assert_int_equal(cluster_set_node(&c, &d, &id, &e), i == MODELS_MAX ? -ENOSPC : 0);
    }
    assert_int_equal(c.nodes_len, MODELS_MAX);
    assert_true(cluster_model_mask(&c, "") == UINT64_MAX);
    assert_true(cluster_model_mask(&c, "m1|M63|nothing") == (UINT64_C(2) | UINT64_C(1) << 63));
    assert_true(cluster_model_mask(&c, "M") == 0);
    cluster_done(&c);
}

static void test_change_log_is_trimmed(void **state)
{
    (void)state;
    struct cluster c;
    assert_int_equal(cluster_init(&c), 0);
    struct node_desc d = desc_of("n", "A");
    add(&c, &d);
    d = desc_of("m", "A");
    add(&c, &d);
    for (uint32_t i = 0; i < 100000; i++)
        cluster_touch(&c, i % 2);
    assert_true(c.changes_end - c.changes_base <= c.changes_cap);
    assert_true(c.changes_cap < 5000);
    assert_int_equal(c.changes_end, 100002);
    for (uint64_t i = c.changes_base; i < c.changes_end; i++)
        assert_int_equal(c.changes[i - c.changes_base], i % 2);
    cluster_done(&c);
}

/* REQ: F5 */
/* Random takes; giving them back in any order leads to the very start. */
static void test_take_and_give_return_to_the_start(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, TEST_SEED);
    struct cluster c;
    struct ledger l;
    assert_int_equal(cluster_init(&c), 0);
    ledger_init(&l, &c);
    assert_int_equal(ledger_reserve(&l, (struct payer){.tenant = 2, .user = 3, .queue = 1}), 0);
    struct node_desc d = desc_of("n", "ABCD");
    uint32_t id = add(&c, &d);
    struct node start = *c.nodes[id];
    for (int round = 0; round < 300; round++) {
        struct grant held[64];
        struct payer payer[64];
        size_t len = 0;
        uint64_t milli = 0;
        for (int i = 0; i < 64; i++) {
            struct grant g = {.node = id, .cpu_milli = (uint32_t)rng_below(&r, 4000), .mem_mib = rng_below(&r, 9000)};
            uint64_t kind = rng_below(&r, 3);
            if (kind == 1) {
                g.gpu_mask = 1u << rng_below(&r, 4);
                g.milli = 1 + (uint32_t)rng_below(&r, 999);
                g.gpu_mem_mib = (uint32_t)rng_below(&r, 30000);
            } else if (kind == 2) {
                g.gpu_mask = 1 + (uint32_t)rng_below(&r, 15);
                g.milli = GPU_MILLI;
            }
            if (!ledger_fits(&l, &g))
                continue;
            payer[len] = (struct payer){.tenant = (uint32_t)rng_below(&r, 3), .user = (uint32_t)rng_below(&r, 4)};
            ledger_take(&l, payer[len], &g, 1);
            milli += grant_gpus_milli(&g);
            held[len++] = g;
        }
        uint64_t charged = 0;
        for (int t = 0; t < 3; t++)
            charged += l.tenants.rows[t].gpus_milli;
        assert_int_equal(charged, milli);
        assert_int_equal(l.queues.rows[0].gpus_milli, milli);
        assert_int_equal(l.queues.rows[0].jobs, len);
        assert_int_equal(c.nodes[id]->gpus_milli_free, 4000 - milli);
        while (len > 0) {
            size_t i = (size_t)rng_below(&r, len);
            ledger_give(&l, payer[i], &held[i], 1);
            held[i] = held[len - 1];
            payer[i] = payer[--len];
        }
        assert_memory_equal(c.nodes[id], &start, sizeof start);
        assert_int_equal(l.queues.rows[0].jobs, 0);
        assert_int_equal(l.queues.rows[0].cpu_milli, 0);
        assert_int_equal(l.queues.rows[0].mem_mib, 0);
    }
    ledger_done(&l);
    cluster_done(&c);
}

/* Two sockets, PIX inside the pairs 01 23 45 67, NODE inside a socket, SYS between. */
static struct node two_sockets(void)
{
    struct node n = {.gpus_len = 8};
    for (uint8_t i = 0; i < 8; i++) {
        n.gpus[i].island = i;
        n.gpus[i].healthy = true;
        n.gpus[i].free_milli = GPU_MILLI;
        for (uint8_t j = 0; j < 8; j++)
            n.link[i][j] = i == j ? LINK_SELF : i / 2 == j / 2 ? LINK_PIX : i / 4 == j / 4 ? LINK_NODE : LINK_SYS;
    }
    return n;
}

#define SET4(a, b, c, d) (1u << (a) | 1u << (b) | 1u << (c) | 1u << (d))

/* REQ: E2 */
static void test_cards_are_chosen_by_link(void **state)
{
    (void)state;
    struct node n = two_sockets();
    assert_int_equal(cards_pick(&n, SET4(1, 2, 4, 5), 2), 1u << 4 | 1u << 5);
    assert_int_equal(cards_pick(&n, SET4(0, 1, 3, 4), 3), 1u << 0 | 1u << 1 | 1u << 3);
    assert_int_equal(cards_pick(&n, SET4(0, 2, 4, 6), 3), 1u << 0 | 1u << 2 | 1u << 4);
    assert_int_equal(cards_pick(&n, 0xff, 4), 0x0f);
    assert_int_equal(cards_pick(&n, 0xfe, 4), 0xf0);
    assert_int_equal(cards_worst_link(&n, 0xf0), LINK_NODE);
    memset(n.link, LINK_UNKNOWN, sizeof n.link);
    assert_int_equal(cards_pick(&n, 0xf6, 3), 1u << 1 | 1u << 2 | 1u << 4);
    /* Two islands: the one with fewer to spare. */
    for (uint8_t i = 0; i < 8; i++)
        n.gpus[i].island = i / 4;
    assert_int_equal(cards_pick(&n, 0x0f | 0x60, 2), 0x60);
    assert_int_equal(cards_pick(&n, 0x0f | 0x60, 3), 0x07);
    assert_int_equal(cards_pick(&n, 0xff, 1), 0x01);
}

/* The exact optimum by looking at all sets, on random symmetric matrices. */
static void test_pick_has_the_best_worst_link(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, TEST_SEED);
    for (int round = 0; round < 2000; round++) {
        struct node n = {.gpus_len = 7};
        for (uint8_t i = 0; i < 7; i++) {
            n.gpus[i].island = i;
            for (uint8_t j = 0; j < i; j++)
                n.link[i][j] = n.link[j][i] = (uint8_t)rng_between(&r, LINK_PIX, LINK_UNKNOWN);
        }
        uint32_t from = 1 + (uint32_t)rng_below(&r, 127);
        uint32_t count = 1 + (uint32_t)rng_below(&r, (uint64_t)__builtin_popcount(from));
        uint32_t set = cards_pick(&n, from, count);
        assert_int_equal(set & ~from, 0);
        assert_int_equal(__builtin_popcount(set), count);
        for (uint32_t other = 1; other < 128; other++) {
            if ((other & ~from) == 0 && (uint32_t)__builtin_popcount(other) == count)
                assert_true(cards_worst_link(&n, set) <= cards_worst_link(&n, other));
        }
    }
}

static void test_fragmentation_example(void **state)
{
    (void)state;
    const struct mix_item items[] = {
        {.gpus = 1, .milli = 1000, .model_mask = UINT64_MAX, .weight = 1},
        {.gpus = 1, .milli = 500, .model_mask = UINT64_MAX, .weight = 1},
    };
    struct mix *m = mix_new(items, 2);
    assert_non_null(m);
    struct frag_state s = {.cpu_milli = 8000, .len = 2, .total = 1300, .free = {300, 1000}};
    struct frag_state on_used = s;
    struct frag_state on_idle = s;
    frag_state_take(&on_used, 300, 0, 100);
    frag_state_take(&on_idle, 1000, 0, 800);
    assert_int_equal(mix_weight(m), 2);
    assert_int_equal(mix_fragmentation(m, &s), 600);
    assert_int_equal(mix_fragmentation(m, &on_used), 200);
    assert_int_equal(mix_fragmentation(m, &on_idle), 1400);
    mix_free(m);
}

static struct mix *mix_of(uint32_t a, uint32_t b)
{
    const struct mix_item items[] = {
        {.gpus = 1, .milli = a, .model_mask = UINT64_MAX, .weight = 1},
        {.gpus = 1, .milli = b, .model_mask = UINT64_MAX, .weight = b == 0 ? 0 : 1},
    };
    struct mix *m = mix_new(items, b == 0 ? 1 : 2);
    assert_non_null(m);
    return m;
}

static void test_waste_examples(void **state)
{
    (void)state;
    struct mix *both = mix_of(800, 200);
    struct mix *one = mix_of(800, 0);
    assert_int_equal(mix_waste(both, 0), 0);
    assert_int_equal(mix_waste(both, 100), 100000);
    assert_int_equal(mix_waste(both, 200), 0);
    assert_int_equal(mix_waste(both, 800), 0);
    assert_int_equal(mix_waste(both, 900), 100000);
    assert_int_equal(mix_waste(one, 1000), 200000);
    mix_free(both);
    mix_free(one);
    /* What fits is one in a hundred requests: three fifths of the way to "none fits". */
    const struct mix_item rare[] = {
        {.gpus = 1, .milli = 900, .model_mask = UINT64_MAX, .weight = 99},
        {.gpus = 1, .milli = 100, .model_mask = UINT64_MAX, .weight = 1},
    };
    struct mix *m = mix_new(rare, 2);
    assert_non_null(m);
    assert_int_equal(mix_waste(m, 100), 60000);
    mix_free(m);
}

/* The example of strategies/remuda.c. */
static void test_remuda_takes_the_used_card(void **state)
{
    (void)state;
    const struct strategy *remuda = strategy_find("remuda");
    struct mix *m = mix_of(1000, 300);
    struct node n = {.gpus_len = 2, .cpu_milli = 8000, .free_cpu_milli = 8000, .gpus_milli_free = 1400};
    for (int i = 0; i < 2; i++)
        n.gpus[i] = (struct gpu){.free_milli = i == 0 ? 1000 : 400, .healthy = true};
    struct frag_state now;
    frag_state_of(&now, &n);
    const struct place_req r = {.share_milli = 300, .model_mask = UINT64_MAX};
    assert_int_equal(mix_fragmentation(m, &now), 400); /* weight 2 */
    assert_int_equal(mix_fragmentation_after(m, &now, &n, &r, 2), 200);
    assert_int_equal(mix_fragmentation_after(m, &now, &n, &r, 1), 1100);
    struct score_in in = {.mix = m, .node = &n, .req = &r, .cards = 3};
    uint32_t mask = 0;
    remuda->score(&in, &mask);
    assert_int_equal(mask, 2);
    /* A card whose memory is gone is no place, however much compute it has left. */
    n.gpus[1].mem_mib = 1000;
    n.gpus[1].free_mem_mib = 10;
    assert_int_equal(frag_card_free(&n.gpus[1]), 10);
    mix_free(m);
}

/* The definition, item by item. */
static int64_t slow_fragmentation(const struct mix_item *items, size_t len, const struct frag_state *s)
{
    int64_t f = 0;
    uint64_t weight = 0;
    for (size_t i = 0; i < len; i++)
        weight += items[i].weight;
    if (weight == 0)
        return s->total; /* nothing arrives: everything is useless */
    for (size_t i = 0; i < len; i++) {
        int64_t useless = 0;
        uint32_t count = 0;
        for (uint32_t g = 0; g < s->len; g++) {
            bool ok = (items[i].model_mask >> s->model[g] & 1) != 0 && s->free[g] >= items[i].milli;
            count += ok;
            useless += ok ? 0 : s->free[g];
        }
        if (items[i].gpus == 0 || count < items[i].gpus || items[i].cpu_milli > s->cpu_milli)
            useless = s->total;
        f += useless * (int64_t)items[i].weight;
    }
    return f;
}

static void test_fragmentation_equals_its_definition(void **state)
{
    (void)state;
    struct rng r;
    rng_init(&r, TEST_SEED);
    for (int round = 0; round < 500; round++) {
        struct mix_item items[20];
        size_t len = (size_t)rng_below(&r, 21);
        for (size_t i = 0; i < len; i++) {
            uint32_t gpus = (uint32_t)rng_below(&r, 4);
            items[i] = (struct mix_item){
                .cpu_milli = (uint32_t)rng_below(&r, 5) * 1000,
                .gpus = gpus,
                .milli = gpus == 0  ? 0
                         : gpus > 1 ? 1000
                                    : (uint32_t)rng_between(&r, 1, 10) * 100,
                .model_mask = rng_chance(&r, 500000) ? UINT64_MAX : rng_below(&r, 8),
                .weight = rng_below(&r, 50),
            };
        }
        struct mix *m = mix_new(items, len);
        assert_non_null(m);
        for (int k = 0; k < 20; k++) {
            struct frag_state s = {.cpu_milli = (uint32_t)rng_below(&r, 6000), .len = (uint32_t)rng_below(&r, 9)};
            uint8_t model = (uint8_t)rng_below(&r, 3);
            uint32_t free = 0;
            s.mixed = rng_chance(&r, 300000);
            for (uint32_t g = 0; g < s.len; g++) {
                free += (uint32_t)rng_below(&r, 400);
                s.free[g] = (uint16_t)(free > 1000 ? 1000 : free);
                s.model[g] = s.mixed ? (uint8_t)rng_below(&r, 3) : model;
                s.total += s.free[g];
            }
            assert_int_equal(mix_fragmentation(m, &s), slow_fragmentation(items, len, &s));
        }
        mix_free(m);
    }
}

static void test_observed_mix_follows_slowly(void **state)
{
    (void)state;
    struct mix_counter *c = mem_alloc(1, sizeof *c);
    mix_counter_init(c);
    struct mix *m = mix_counter_snapshot(c, NULL);
    assert_non_null(m);
    const struct place_req half = {.share_milli = 500, .cpu_milli = 1000, .model_mask = UINT64_MAX};
    int due = 0;
    int renewed = 0;
    for (int i = 0; i < 100000; i++) {
        if (!mix_counter_add(c, &half, 1))
            continue;
        due++;
        struct mix *next = mix_counter_snapshot(c, m);
        if (next != NULL) {
            mix_free(m);
            m = next;
            renewed++;
        }
    }
    size_t len = 0;
    const struct mix_item *items = mix_items(m, &len);
    assert_true(due < 60 && renewed < 10 && renewed > 0);
    assert_int_equal(items[0].milli, 500);
    assert_true(c->total < MIX_TOTAL_MAX);
    /* Many kinds do not overflow the table. */
    for (uint32_t i = 0; i < 5000; i++) {
        struct place_req r = {.gpus = 1, .cpu_milli = i, .model_mask = UINT64_MAX};
        mix_counter_add(c, &r, 1 + i % 100);
        assert_true(c->len <= MIX_KINDS_MAX);
    }
    mix_free(m);
    mem_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cards_keep_their_number),     cmocka_unit_test(test_capacity_never_below_what_is_held),
        cmocka_unit_test(test_same_report_changes_nothing), cmocka_unit_test(test_bad_reports_are_refused),
        cmocka_unit_test(test_change_log_is_trimmed),       cmocka_unit_test(test_take_and_give_return_to_the_start),
        cmocka_unit_test(test_cards_are_chosen_by_link),    cmocka_unit_test(test_pick_has_the_best_worst_link),
        cmocka_unit_test(test_fragmentation_example),       cmocka_unit_test(test_waste_examples),
        cmocka_unit_test(test_remuda_takes_the_used_card),  cmocka_unit_test(test_fragmentation_equals_its_definition),
        cmocka_unit_test(test_observed_mix_follows_slowly),
    };
    return test_run("cluster", tests);
}
