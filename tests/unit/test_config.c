/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration file: defaults, what each key takes, every kind of mistake with its place, and the document held
 * against the program. REQ: C5
 */
#include "test.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sys/file.h"
#include "config/config_file.h"

#include <errno.h>
#include <string.h>

static struct config parse(const char *text)
{
    struct config c;
    struct err e = {0};
    if (config_parse(text, strlen(text), "t.yaml", &c, &e) < 0)
        fail_msg("%s: %s", text, e.text);
    return c;
}

static void refuse_bytes(const char *text, size_t len, const char *const *wants, size_t wants_len)
{
    struct config c = {0};
    struct err e = {0};
    int rc = config_parse(text, len, "t.yaml", &c, &e);
    if (rc >= 0)
        fail_msg("accepted: %.200s", text);
    for (size_t i = 0; i < wants_len; i++)
        if (wants[i] != NULL && strstr(e.text, wants[i]) == NULL)
            fail_msg("%.200s: said \"%s\", not \"%s\"", text, e.text, wants[i]);
    struct config untouched = {0};
    assert_memory_equal(&c, &untouched, sizeof c);
}

static void refuse(const char *text, const char *want, const char *also)
{
    refuse_bytes(text, strlen(text), (const char *const[]){want, also}, 2);
}

static void test_defaults(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "# nothing\n{}\n", "strategy: remuda\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct config c = parse(texts[i]);
        assert_string_equal(c.default_queue, "batch");
        assert_string_equal(c.default_tenant, "default");
        assert_string_equal(c.strategy, "remuda");
        assert_int_equal(c.grace_ms, 30000);
        assert_int_equal(c.sim_duration_ms, 60000);
        assert_int_equal(c.reservation_depth, 1);
        assert_int_equal(c.finished_jobs_kept, 10000);
        assert_int_equal(c.log_bytes_max, 64 << 20);
        assert_int_equal(c.log_files_kept, 3);
        assert_int_equal(c.queues_len, 1);
        assert_string_equal(c.queues[0].name, "batch");
        assert_true(c.queues[0].caps.gpus_milli == NO_CAP && c.queues[0].caps.jobs == NO_CAP);
        assert_int_equal(c.tenants_len + c.users_len + c.racks_len, 0);
        config_done(&c);
    }
}

static void test_every_key(void **state)
{
    (void)state;
    struct config c =
        parse("strategy: spread\ndefault_queue: q2\ndefault_tenant: t\ngrace: 5s\nsim_duration: 2m\n"
              "reservation_depth: 7\nfinished_jobs_kept: 5\nlog_max_size: 2MiB\nlog_files_kept: 0\n"
              "queues:\n  - {name: q1, priority: -5, max_gpus: 2.5, max_jobs: 3, default_time: 1h, "
              "max_time: 2h}\n  - name: q2\n"
              "tenants:\n  - {name: t, max_gpus: 8, max_jobs: 9, user_max_gpus: 0.5, user_max_jobs: 1}\n"
              "users:\n  - {name: eve, tenant: t, max_gpus: 4, max_jobs: 2}\n  - {name: adam, tenant: t}\n"
              "racks:\n  - {name: r, nodes: [a, b]}\n");
    assert_string_equal(c.strategy, "spread");
    assert_string_equal(c.default_queue, "q2");
    assert_string_equal(c.default_tenant, "t");
    assert_int_equal(c.grace_ms, 5000);
    assert_int_equal(c.sim_duration_ms, 120000);
    assert_int_equal(c.reservation_depth, 7);
    assert_int_equal(c.finished_jobs_kept, 5);
    assert_int_equal(c.log_bytes_max, 2 << 20);
    assert_int_equal(c.log_files_kept, 0);
    assert_int_equal(c.queues_len, 2);
    assert_int_equal(c.queues[0].priority, -5);
    assert_int_equal(c.queues[0].caps.gpus_milli, 2500);
    assert_int_equal(c.queues[0].caps.jobs, 3);
    assert_int_equal(c.queues[0].default_time_ms, 3600000);
    assert_int_equal(c.queues[0].max_time_ms, 7200000);
    assert_int_equal(c.tenants[0].caps.gpus_milli, 8000);
    assert_int_equal(c.tenants[0].caps.jobs, 9);
    assert_int_equal(c.tenants[0].user_caps.gpus_milli, 500);
    assert_int_equal(c.tenants[0].user_caps.jobs, 1);
    assert_string_equal(c.users[0].tenant, "t");
    assert_int_equal(c.users[0].caps.gpus_milli, 4000);
    assert_true(c.users[1].caps.gpus_milli == NO_CAP && c.users[1].caps.jobs == NO_CAP); /* the tenant's count */
    assert_int_equal(c.racks[0].nodes_len, 2);
    assert_string_equal(c.racks[0].nodes[1], "b");
    struct config copy;
    assert_int_equal(config_copy(&copy, &c), 0);
    config_done(&c);
    assert_string_equal(copy.racks[0].nodes[0], "a");
    config_done(&copy);
}

static void test_mistakes(void **state)
{
    static const char *const cases[][3] = {
        /* text, what the message names, and also */
        {"stratgy: remuda\n", "t.yaml:1", "strategy"},
        {"strategy: best\n", "best", "binpack"},
        {"queues:\n  - name: batch\n    max_gpus: many\n", "t.yaml:3", "max_gpus"},
        {"queues:\n  - name: batch\n    max_gpus: -1\n", "-1", "0 to 1000000"},
        {"queues:\n  - name: batch\n    max_gpus: 1000001\n", "1000001", "max_gpus"},
        {"queues:\n  - name: batch\n    max_gpus: .nan\n", "max_gpus", NULL},
        {"queues:\n  - name: batch\n    max_gpus: .inf\n", "max_gpus", NULL},
        {"queues:\n  - name: batch\n    max_gpus: 1.0005\n", "1.0005", NULL},
        {"queues:\n  - name: batch\n    max_jobs: 99999999999999999999\n", "max_jobs", "99999999999999999999"},
        {"queues:\n  - name: batch\n    max_jobs: 1.5\n", "max_jobs", "whole"},
        {"queues:\n  - name: batch\n    priority: 1001\n", "priority", "-1000 to 1000"},
        {"queues:\n  - name: batch\n    max_time: 5parsecs\n", "max_time", "5parsecs"},
        {"queues:\n  - name: batch\n    max_time: 1h\n    default_time: 2h\n", "default_time", "max_time"},
        {"queues:\n  - max_gpus: 1\n", "name", NULL},
        {"queues:\n  - name: batch\n  - name: batch\n", "batch", "twice"},
        {"queues: {}\n", "queues", "list"},
        {"queues: []\n", "queues", NULL},
        {"queues:\n  - batch\n", "queues", NULL},
        {"default_queue: nowhere\n", "nowhere", NULL},
        {"grace: -1s\n", "grace", "-1s"},
        {"grace: 25h\n", "grace", "25h"},
        {"grace: \"\"\n", "grace", NULL},
        {"grace: [1]\n", "grace", NULL},
        {"log_max_size: 0\n", "log_max_size", NULL},
        {"log_max_size: 2TiB\n", "2TiB", NULL},
        {"log_max_size: 8XB\n", "8XB", NULL},
        {"reservation_depth: 101\n", "101", "0 to 100"},
        {"tenants:\n  - name: a/b\n", "a/b", NULL},
        {"tenants:\n  - name: t\n  - name: t\n", "twice", NULL},
        {"users:\n  - name: eve\n    tenant: nobody\n", "nobody", NULL},
        {"users:\n  - name: eve\n  - name: eve\n", "eve", "twice"},
        {"racks:\n  - name: r\n    nodes: n1\n", "nodes", "list"},
        {"racks:\n  - name: r\n    nodes: [a]\n  - name: s\n    nodes: [a]\n", "\"a\"", NULL},
        {"strategy: remuda\nstrategy: spread\n", "strategy", "once"},
        {"- strategy\n", "mapping", NULL},
        {"just text\n", "mapping", NULL},
        {"", "mapping", NULL},
        {"a: &x [1]\nb: *x\n", "t.yaml", NULL},
        {"strategy: !!binary aGk=\n", "t.yaml", NULL},
        {"strategy: remuda\n---\nstrategy: spread\n", "t.yaml", NULL},
        {"strategy: [\n", "t.yaml", NULL},
        {"\tstrategy: remuda\n", "t.yaml:1", NULL},
        {"strategy: \xff\xfe\n", "t.yaml", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse(cases[i][0], cases[i][1], cases[i][2]);
    refuse_bytes("strategy: re\0muda\n", 18, (const char *const[]){"t.yaml"}, 1);
}

/* Files made to hurt: deep, wide, long. */
static void test_hostile(void **state)
{
    (void)state;
    struct strbuf deep = {0};
    struct strbuf wide = {0};
    for (int i = 0; i < 100000; i++)
        strbuf_putc(&deep, '[');
    refuse_bytes(deep.data, deep.len, NULL, 0);
    strbuf_puts(&wide, "queues:\n");
    for (int i = 0; i < 200000; i++)
        strbuf_printf(&wide, "  - name: q%d\n", i);
    refuse_bytes(wide.data, wide.len, (const char *const[]){"queues"}, 1);
    strbuf_clear(&wide);
    strbuf_puts(&wide, "a: &a [x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 9; i++)
        strbuf_printf(&wide, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", 'a' + i, 'a' + i, 'a' + i - 1, 'a' + i - 1,
                      'a' + i - 1, 'a' + i - 1, 'a' + i - 1, 'a' + i - 1, 'a' + i - 1, 'a' + i - 1);
    refuse_bytes(wide.data, wide.len, NULL, 0);
    strbuf_done(&deep);
    strbuf_done(&wide);
}

static void test_files(void **state)
{
    (void)state;
    struct config c;
    struct err e = {0};
    assert_int_equal(config_load_file("/no/such/file.yaml", &c, NULL, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/no/such/file.yaml"));
    assert_true(config_load_file("/", &c, NULL, &e) < 0);
    char *text = NULL;
    if (config_load_file(SOURCE "/examples/config/teams.yaml", &c, &text, &e) < 0)
        fail_msg("%s", e.text);
    assert_non_null(strstr(text, "tenants:"));
    mem_free(text);
    config_done(&c);
}

struct lines {
    struct strbuf text;
};

static void on_difference(void *arg, const char *key, const char *from, const char *to)
{
    strbuf_printf(&((struct lines *)arg)->text, "%s %s %s\n", key, from != NULL ? from : "-", to != NULL ? to : "-");
}

/* REQ: C5. What differs is told key by key, by names and not by places in a list; nothing differs from itself. */
static void test_differences(void **state)
{
    (void)state;
    struct config a = parse("grace: 90s\nqueues:\n  - {name: x, max_gpus: 2.5}\n  - {name: y, max_time: 2h}\n");
    struct config b = parse("grace: 2m\nqueues:\n  - {name: y, max_time: 2h, max_jobs: 3}\n  - {name: z, max_gpus: "
                            "0.125, priority: -4}\nracks:\n  - {name: r, nodes: [a, b]}\n");
    struct lines l = {{0}};
    assert_int_equal(config_diff(&a, &a, on_difference, &l), 0);
    assert_int_equal(l.text.len, 0);
    assert_int_equal(config_diff(&a, &b, on_difference, &l), 0);
    assert_string_equal(strbuf_str(&l.text), "default_queue x y\n"
                                             "grace 90s 2m\n"
                                             "queues[x].max_gpus 2.5 -\n"
                                             "queues[x].name x -\n"
                                             "queues[y].max_jobs - 3\n"
                                             "queues[z].max_gpus - 0.125\n"
                                             "queues[z].name - z\n"
                                             "queues[z].priority - -4\n"
                                             "racks[r].name - r\n"
                                             "racks[r].nodes - a,b\n");
    strbuf_done(&l.text);
    config_done(&a);
    config_done(&b);
}

/* The table of docs/configuration.md has each key once, with the default and the words of the program. */
static void test_document(void **state)
{
    (void)state;
    char *doc = NULL;
    struct strbuf schema = {0};
    size_t keys = 0;
    assert_int_equal(file_read(SOURCE "/docs/configuration.md", 1 << 20, &doc, NULL, NULL), 0);
    config_schema_write(&schema);
    char *rest = schema.data;
    for (char *line = strsep(&rest, "\n"); line != NULL && line[0] != '\0'; line = strsep(&rest, "\n"), keys++) {
        char *key = strsep(&line, "\t");
        char *usual = strsep(&line, "\t");
        char row[400];
        snprintf(row, sizeof row, "\n| `%s` | %s | %s | ", key, usual, line);
        if (strstr(doc, row) == NULL)
            fail_msg("docs/configuration.md has no row %s", row + 1);
    }
    size_t rows = 0;
    for (const char *at = doc; (at = strstr(at, "\n| `")) != NULL; at++)
        rows++;
    assert_int_equal(rows, keys);
    /* Its example is one. */
    char *from = strstr(doc, "```yaml\n") + 8;
    *strstr(from, "```") = '\0';
    struct config c = parse(from);
    assert_int_equal(c.users_len, 1);
    config_done(&c);
    strbuf_done(&schema);
    mem_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_every_key), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_hostile),  cmocka_unit_test(test_files),     cmocka_unit_test(test_differences),
        cmocka_unit_test(test_document),
    };
    return test_run("config", tests);
}
