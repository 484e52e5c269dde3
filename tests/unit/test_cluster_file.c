/* SPDX-License-Identifier: Apache-2.0 */
/* Cluster files: what they give, and that every mistake is refused with its place. */
#include "config/cluster_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct cluster_file parse(const char *text)
{
    struct cluster_file c = {0};
    struct err e = {0};
    if (cluster_file_parse(text, strlen(text), "t.yaml", &c, &e) != 0)
        fail_msg("%s", e.text);
    return c;
}

static void refuse(const char *text, const char *want)
{
    struct cluster_file c = {0};
    struct err e = {0};
    int rc = cluster_file_parse(text, strlen(text), "t.yaml", &c, &e);
    if (rc >= 0 || strstr(e.text, want) == NULL)
        fail_msg("%s: gave %d \"%s\", not \"%s\"", text, rc, e.text, want);
    assert_null(c.nodes);
}

static void numbers_run_on(void **state)
{
    (void)state;
    struct cluster_file c = parse("racks:\n"
                                  "  - {name: r%d, count: 2, nodes: [{name: n%02d, count: 3, preset: dgx-a100}]}\n"
                                  "nodes:\n"
                                  "  - {name: login, cpus: 2.5, mem: 8GiB}\n");
    assert_int_equal(c.len, 7);
    assert_string_equal(c.nodes[0].name, "n01");
    assert_string_equal(c.nodes[0].rack, "r1");
    assert_string_equal(c.nodes[5].name, "n06");
    assert_string_equal(c.nodes[5].rack, "r2");
    assert_int_equal(c.nodes[5].gpus, 8);
    assert_string_equal(c.nodes[5].gpu_model, "A100-80GB");
    assert_string_equal(c.nodes[6].name, "login");
    assert_string_equal(c.nodes[6].rack, "");
    assert_int_equal(c.nodes[6].cpu_milli, 2500);
    assert_int_equal(c.nodes[6].mem_mib, 8192);
    assert_int_equal(c.nodes[6].gpus, 0);
    cluster_file_done(&c);
}

static void keys_change_a_preset(void **state)
{
    (void)state;
    struct cluster_file c = parse("nodes: [{name: a, preset: 2xt4, mem: 1TiB, gpus: 4, links: nvlink-pairs}]");
    assert_int_equal(c.nodes[0].mem_mib, 1048576);
    assert_int_equal(c.nodes[0].gpus, 4);
    assert_int_equal(c.nodes[0].cpu_milli, 64000);
    assert_int_equal(c.nodes[0].links, CLUSTER_LINKS_NVLINK_PAIRS);
    cluster_file_done(&c);
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    refuse("", "mapping");
    refuse("{}", "no node in it");
    refuse("nodes: []", "list of groups");
    refuse("nodes: [3]", "t.yaml:1:9");
    refuse("node: [{name: a}]", "did you mean \"nodes\"");
    refuse("nodes: [{name: a, preset: dgx-a1000}]", "dgx-h100");
    refuse("nodes: [{name: a, preset: 3}]", "text is wanted");
    refuse("nodes: [{name: a, cpus: 4}]", "needs cpus and mem");
    refuse("nodes: [{name: a, cpus: -4, mem: 1GiB}]", "cpus:");
    refuse("nodes: [{name: a, cpus: .nan, mem: 1GiB}]", "cpus:");
    refuse("nodes: [{name: a, cpus: 1e9, mem: 1GiB}]", "cpus:");
    refuse("nodes: [{name: a, cpus: 4, mem: 0}]", "mem:");
    refuse("nodes: [{name: a, cpus: 4, mem: 8 elephants}]", "mem:");
    refuse("nodes: [{name: a, cpus: 4, mem: 1GiB, gpus: 17}]", "from 0 to 16");
    refuse("nodes: [{name: a, cpus: 4, mem: 1GiB, gpus: 1}]", "gpu_model and gpu_mem");
    refuse("nodes: [{name: a, cpus: 4, mem: 1GiB, gpus: 1, gpu_model: \"a b\", gpu_mem: 1GiB}]", "gpu_model:");
    refuse("nodes: [{name: a, preset: 2xt4, links: wet string}]", "nvlink-pairs");
    refuse("nodes: [{name: a, preset: 2xt4, count: 2}]", "put %d");
    refuse("nodes: [{name: a, preset: 2xt4}, {name: a, preset: 2xt4}]", "two nodes \"a\"");
    refuse("nodes: [{name: \"a%s\", preset: 2xt4}]", "name:");
    refuse("nodes: [{name: \"%d%d\", preset: 2xt4}]", "name:");
    refuse("nodes: [{name: \"%n\", preset: 2xt4}]", "name:");
    refuse("nodes: [{name: \"a/b\", preset: 2xt4}]", "name:");
    refuse("nodes: [{preset: 2xt4}]", "name is missing");
    refuse("nodes: [{name: \"n%d\", count: 20001, preset: 2xt4}]", "from 1 to 20000");
    refuse("racks: [{name: \"r%d\", count: 2, nodes: [{name: \"n%d\", count: 20000, preset: 2xt4}]}]",
           "more than 20000");
    refuse("racks: {a: 1}", "a list is wanted");
    refuse("racks: [{name: r, nodes: [{name: n, preset: 2xt4}], color: red}]", "color");
}

static void missing_file_is_named(void **state)
{
    (void)state;
    struct cluster_file c = {0};
    struct err e = {0};
    assert_true(cluster_file_load("/nowhere/c.yaml", &c, &e) < 0);
    assert_non_null(strstr(e.text, "/nowhere/c.yaml"));
}

static void examples_load(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t nodes;
    } files[] = {{"4-nodes", 4}, {"64-nodes", 64}, {"500-nodes", 500}};
    for (size_t i = 0; i < 3; i++) {
        char path[512];
        struct cluster_file c = {0};
        struct err e = {0};
        snprintf(path, sizeof(path), "%s/examples/clusters/%s.yaml", SOURCE_ROOT, files[i].name);
        if (cluster_file_load(path, &c, &e) != 0)
            fail_msg("%s", e.text);
        assert_int_equal(c.len, files[i].nodes);
        cluster_file_done(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_run_on),       cmocka_unit_test(keys_change_a_preset),
        cmocka_unit_test(mistakes_are_refused), cmocka_unit_test(missing_file_is_named),
        cmocka_unit_test(examples_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
