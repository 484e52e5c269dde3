/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The openb experiment against the published end states and placements, and our own strategy's bar.
 * With the argument "all" every row of the reference; without it one seed of each policy.
 */
#include "test.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sys/file.h"
#include "replay/csv.h"
#include "replay/openb.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool all_rows;

/* A text like "95.29" in hundredths. */
static uint32_t hundredths(const char *text)
{
    unsigned whole = 0;
    unsigned part = 0;
    if (sscanf(text, "%u.%2u", &whole, &part) != 2)
        fail_msg("'%s' is no number with two decimals", text);
    return whole * 100 + part;
}

/* Data of one order, kept between rows: rows of one order stand together. */
struct loaded {
    struct openb_data data;
    char workload[64];
    uint32_t seed;
};

static const struct openb_data *load(struct loaded *l, const char *workload, uint32_t seed)
{
    struct err e = {0};
    if (strcmp(l->workload, workload) == 0 && l->seed == seed)
        return &l->data;
    openb_data_done(&l->data);
    if (openb_read(&l->data, DATA, workload, seed, &e) < 0)
        fail_msg("%s", e.text);
    snprintf(l->workload, sizeof l->workload, "%s", workload);
    l->seed = seed;
    return &l->data;
}

static struct openb_result run(const struct openb_data *d, const char *policy, struct openb_placed *placed)
{
    struct err e = {0};
    struct openb_result res = {0};
    if (openb_run(d, openb_strategy(policy), 42, &res, placed, &e) < 0)
        fail_msg("%s", e.text);
    return res;
}

static uint32_t number(const struct csv *c, const char *column)
{
    struct err e = {0};
    uint32_t value = 0;
    if (csv_u32(c, csv_column(c, column, NULL), UINT32_MAX, &value, &e) < 0)
        fail_msg("%s", e.text);
    return value;
}

static const char *field(const struct csv *c, const char *column)
{
    return c->fields[csv_column(c, column, NULL)];
}

static void test_reference_rows(void **state)
{
    (void)state;
    struct csv c;
    struct err e = {0};
    struct loaded l = {0};
    uint32_t rows = 0;
    assert_int_equal(csv_open(&c, DATA "/expected/reference_final.csv", &e), 0);
    while (csv_next(&c, &e) > 0) {
        uint32_t seed = number(&c, "seed");
        const char *workload = field(&c, "workload");
        if (!all_rows && (seed != 42 || strcmp(workload, "default") != 0))
            continue;
        struct openb_result res = run(load(&l, workload, seed), field(&c, "policy"), NULL);
        assert_int_equal(res.arrived_pods, number(&c, "arrived_pods"));
        assert_int_equal(res.unscheduled_pods, number(&c, "unscheduled_pods"));
        assert_int_equal(res.alloc_gpu_milli, number(&c, "alloc_gpu_milli"));
        assert_int_equal(res.alloc_pct, hundredths(field(&c, "alloc_pct")));
        assert_int_equal(res.frag_pct_of_capacity, hundredths(field(&c, "frag_pct_of_capacity")));
        assert_int_equal(res.frag_pct_of_idle, hundredths(field(&c, "frag_pct_of_idle")));
        rows++;
    }
    assert_int_equal(rows, all_rows ? 65 : 5);
    csv_done(&c);
    openb_data_done(&l.data);
}

static void test_placements(void **state)
{
    (void)state;
    static const char *const policies[] = {"fgd", "bestfit", "packing", "clustering", "dotprod"};
    struct loaded l = {0};
    const struct openb_data *d = load(&l, "default", 42);
    struct openb_placed *placed = mem_alloc(d->arrivals_len, sizeof *placed);
    assert_non_null(placed);
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        char path[512];
        struct csv c;
        struct err e = {0};
        uint32_t k = 0;
        run(d, policies[i], placed);
        snprintf(path, sizeof path, DATA "/expected/placements_default_seed42_%s.csv", policies[i]);
        assert_int_equal(csv_open(&c, path, &e), 0);
        for (; csv_next(&c, &e) > 0; k++) {
            assert_int_equal(number(&c, "k"), k);
            assert_int_equal(number(&c, "pod_row"), d->arrivals[k]);
            char want[32];
            char got[32];
            snprintf(want, sizeof want, "%.12s,%.12s", field(&c, "node_row"), field(&c, "shared_gpu"));
            snprintf(got, sizeof got, "%d,%d", placed[k].node, placed[k].shared_gpu);
            if (strcmp(want, got) != 0)
                fail_msg("%s, arrival %u: node and card %s, published %s", policies[i], k, got, want);
        }
        assert_int_equal(k, d->arrivals_len);
        csv_done(&c);
    }
    mem_free(placed);
    openb_data_done(&l.data);
}

/* One setting: at least 95.43 % on default in the mean, and at least FGD's value on every other
 * workload. */
static void test_remuda_beats_fgd(void **state)
{
    (void)state;
    struct csv c;
    struct err e = {0};
    struct loaded l = {0};
    uint64_t sum = 0;
    uint32_t seeds = 0;
    uint32_t others = 0;
    assert_int_equal(csv_open(&c, DATA "/expected/reference_final.csv", &e), 0);
    while (csv_next(&c, &e) > 0) {
        if (strcmp(field(&c, "policy"), "fgd") != 0)
            continue;
        struct openb_result res = run(load(&l, field(&c, "workload"), number(&c, "seed")), "remuda", NULL);
        if (strcmp(field(&c, "workload"), "default") == 0) {
            sum += res.alloc_gpu_milli;
            seeds++;
        } else {
            others++;
            if (res.alloc_gpu_milli < number(&c, "alloc_gpu_milli"))
                fail_msg("%s: %llu, fgd has %s", field(&c, "workload"), (unsigned long long)res.alloc_gpu_milli,
                         field(&c, "alloc_gpu_milli"));
        }
    }
    assert_int_equal(seeds, 5);
    assert_int_equal(others, 8);
    assert_true(sum * 10000 / (5 * UINT64_C(6212000)) >= 9543);
    csv_done(&c);
    openb_data_done(&l.data);
}

/* The seed decides a random run, and nothing else does. */
static void test_random_is_repeatable(void **state)
{
    (void)state;
    struct loaded l = {0};
    const struct openb_data *d = load(&l, "default", 42);
    struct err e = {0};
    struct openb_result a;
    struct openb_result b;
    struct openb_result other;
    assert_int_equal(openb_run(d, openb_strategy("random"), 7, &a, NULL, &e), 0);
    assert_int_equal(openb_run(d, openb_strategy("random"), 7, &b, NULL, &e), 0);
    assert_int_equal(openb_run(d, openb_strategy("random"), 8, &other, NULL, &e), 0);
    assert_int_equal(a.alloc_gpu_milli, b.alloc_gpu_milli);
    assert_int_not_equal(a.alloc_gpu_milli, other.alloc_gpu_milli);
    assert_in_range(a.alloc_pct, 8600, 8900); /* published mean of ten seeds: 87.47 */
    openb_data_done(&l.data);
}

static void test_published_mix(void **state)
{
    (void)state;
    struct loaded l = {0};
    const struct openb_data *d = load(&l, "default", 42);
    struct cluster c;
    struct mix_item *items = NULL;
    size_t len = 0;
    assert_int_equal(cluster_init(&c), 0);
    assert_int_equal(openb_mix(d, &c, &items, &len), 0);
    assert_int_equal(len, 35); /* of 91 */
    mem_free(items);
    cluster_done(&c);
    openb_data_done(&l.data);
}

/* --- bad input --- */

static char dir[] = "/tmp/remuda-openb-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (file_write_atomic(path, text, strlen(text), 0600, FILE_SYNC_NO, &e) < 0)
        fail_msg("%s", e.text);
}

#define NODES "sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,2,T4\nb,64000,262144,1,T4\n"
#define PODS  "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,10,1,500\nq,1000,10,2,1000\n"
#define ORDER "pod_row\n1\n0\n0\n"
#define RANKS "rank\n1\n0\n"

static void test_bad_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *says;
    } cases[] = {
        {"openb_node_list_gpu_node.csv", "", "columns"},
        {"openb_node_list_gpu_node.csv", "sn,cpu_milli\n", "no column 'memory_mib'"},
        {"openb_node_list_gpu_node.csv", "sn,cpu_milli,memory_mib,gpu,model\n", "no nodes"},
        {"openb_node_list_gpu_node.csv", "sn,cpu_milli,memory_mib,gpu,model\na,1,1,17,T4\n", ":2: column gpu is '17'"},
        {"openb_node_list_gpu_node.csv", "sn,cpu_milli,memory_mib,gpu,model\na,1,1,1\n", "4 fields"},
        {"openb_node_list_gpu_node.csv", "sn,cpu_milli,memory_mib,gpu,model\na,-1,1,1,T4\n", "cpu_milli is '-1'"},
        {"openb_node_list_gpu_node.csv", "sn,cpu_milli,memory_mib,gpu,model\na,99999999999999999999,1,1,T4\n",
         "allowed"},
        {"openb_node_list_gpu_node.csv", "sn,cpu_milli,memory_mib,gpu,model\n,1,1,1,T4\n", "column sn"},
        {"openb_pod_list_default.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n", "no tasks"},
        {"openb_pod_list_default.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,2,500\n", "a part of a card"},
        {"openb_pod_list_default.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,1001\n", "gpu_milli is '1001'"},
        {"openb_pod_list_default.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,nan,1\n", "num_gpu is 'nan'"},
        {"orders/default_seed1_pods.csv", "pod_row\n2\n", "pod_row is '2'"},
        {"orders/default_seed1_noderank.csv", "rank\n0\n0\n", "a second time"},
        {"orders/default_seed1_noderank.csv", "rank\n0\n", "1 ranks for 2 nodes"},
    };
    struct openb_data d;
    struct err e = {0};
    char orders[64];
    assert_non_null(mkdtemp(dir));
    snprintf(orders, sizeof orders, "%s/orders", dir);
    assert_int_equal(dir_make(orders, 0700, &e), 0);
    assert_int_equal(openb_read(&d, dir, "default", 1, &e), -ENOENT);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("openb_node_list_gpu_node.csv", NODES);
        put("openb_pod_list_default.csv", PODS);
        put("orders/default_seed1_pods.csv", ORDER);
        put("orders/default_seed1_noderank.csv", RANKS);
        put(cases[i].file, cases[i].text);
        e = (struct err){0};
        assert_int_equal(openb_read(&d, dir, "default", 1, &e), -EINVAL);
        if (strstr(e.text, cases[i].says) == NULL)
            fail_msg("case %zu says '%s'", i, e.text);
    }
    put("orders/default_seed1_noderank.csv", RANKS);
    assert_int_equal(openb_read(&d, dir, "default", 1, &e), 0);
    struct openb_placed placed[3];
    struct openb_result res;
    assert_int_equal(openb_run(&d, openb_strategy("bestfit"), 1, &res, placed, &e), 0);
    assert_int_equal(placed[0].node, 0); /* two cards */
    assert_int_equal(placed[1].node, 1); /* two halves on the other node's one card */
    assert_int_equal(placed[2].shared_gpu, 0);
    assert_int_equal(res.alloc_gpu_milli, 3000);
    /* Every allocation may fail. */
    for (uint64_t nth = 1; nth < 40; nth++) {
        mem_fail_from(nth);
        int rc = openb_run(&d, openb_strategy("remuda"), 1, &res, NULL, NULL);
        mem_fail_from(0);
        assert_true(rc == -ENOMEM || rc == 0);
        assert_true(nth > 1 || rc == -ENOMEM);
    }
    openb_data_done(&d);
    assert_int_equal(dir_remove_tree(dir, &e), 0);
}

int main(int argc, char **argv)
{
    all_rows = argc > 1 && strcmp(argv[1], "all") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_rows),   cmocka_unit_test(test_placements),
        cmocka_unit_test(test_remuda_beats_fgd), cmocka_unit_test(test_random_is_repeatable),
        cmocka_unit_test(test_published_mix),    cmocka_unit_test(test_bad_files_are_refused),
    };
    return test_run("openb", tests);
}
