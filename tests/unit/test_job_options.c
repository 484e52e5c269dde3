/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's description at its four doors: options of the command line, #REMUDA lines, job files, JSON. What one takes
 * the others take, with the same result and the same words when it is refused. REQ: G3
 */
#include "test.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sys/file.h"
#include "config/jobspec_json.h"
#include "config/script.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int set_one(void *arg, const struct job_option *o, const char *value, struct err *e)
{
    return job_option_set(arg, o->id, value, e);
}

/* Door 1: the command line. */
static int by_option(const char *name, const char *value, struct job_spec *s, struct err *e)
{
    const struct job_option *o = job_option_by_name(name, NULL);
    assert_non_null(o);
    return job_option_set(s, o->id, value, e);
}

/* Door 2: a script's head. */
static int by_script(const char *name, const char *value, struct job_spec *s, struct err *e)
{
    struct strbuf b = {0};
    strbuf_printf(&b, "#!/bin/sh\n#REMUDA --%s '%s'\ntrue\n", name, value);
    int rc = script_parse(b.data, b.len, set_one, s, NULL, e);
    strbuf_done(&b);
    return rc;
}

static int by_json_value(const char *key, const char *value, struct job_spec *s, struct err *e)
{
    json_t *v = json_pack("{s:[s]}", "command", "true");
    json_t *text = json_string(value);
    if (text == NULL) {
        json_decref(v);
        return -EINVAL; /* not UTF-8: can not be said in JSON */
    }
    (void)json_object_set_new(v, key, text);
    job_spec_done(s);
    int rc = job_spec_from_json(v, s, e);
    if (rc < 0)
        job_spec_init(s);
    json_decref(v);
    return rc;
}

/* Door 3: a job file; quoted, so that YAML makes nothing else of it. */
static int by_file(const char *key, const char *value, struct job_spec *s, struct err *e)
{
    char path[] = "/tmp/remuda-job-XXXXXX";
    struct strbuf b = {0};
    json_t *v = NULL;
    int fd = mkstemp(path);
    strbuf_printf(&b, "command: [\"true\"]\n%s: '%s'\n", key, value);
    assert_int_equal(file_write_fd(fd, b.data, b.len), 0);
    close(fd);
    int rc = job_file_load(path, &v, e);
    unlink(path);
    strbuf_done(&b);
    if (rc == 0) {
        job_spec_done(s);
        rc = job_spec_from_json(v, s, e);
    }
    json_decref(v);
    return rc;
}

typedef int door(const char *, const char *, struct job_spec *, struct err *);

static const struct {
    const char *name;
    const char *value;
} good[] = {
    {"name", "two cards"},
    {"gpus", "0"},
    {"gpus", "16"},
    {"workers", "4096"},
    {"cpus", "1.5"},
    {"mem", "16GiB"},
    {"mem", "512M"},
    {"time", "2h30m"},
    {"time", "1-12:00:00"},
    {"grace", "90s"},
    {"queue", "debug"},
    {"priority", "-1000"},
    {"tenant", "team-a"},
    {"require", "nvlink"},
    {"prefer", "rack"},
    {"strategy", "spread"},
    {"chdir", "/tmp"},
    {"sim-duration", "10m"},
    {"begin", "2h"},
    {"after", "7"},
    {"after", "ok:7,fail:8,any:9"},
    {"begin", "2026-12-01T20:00:00Z"},
    {"name", "\xe8\xae\xad\xe7\xbb\x83"},
};

static const struct {
    const char *name;
    const char *value;
    const char *allowed; /* what the message says is allowed */
} bad[] = {
    {"name", "", "NAME"},
    {"name",
     "a\x01"
     "b",
     "control"},
    {"gpus", "-1", "0..16"},
    {"gpus", "17", "0..16"},
    {"gpus", "1.5", "0..16"},
    {"gpus", "two", "0..16"},
    {"gpus", "nan", "0..16"},
    {"gpus", "99999999999999999999999", "0..16"},
    {"gpus", " 1", "0..16"},
    {"gpus", "0x1", "0..16"},
    {"gpu-mem", "8XB", "K, M, G or T"},
    {"gpu-mem", "-8GiB", "K, M, G or T"},
    {"gpu-mem", "0", "1 MiB"},
    {"gpu-mem", "17TiB", "16 TiB"},
    {"gpu-percent", "0", "0.1 to 100"},
    {"gpu-percent", "100.1", "0.1 to 100"},
    {"gpu-percent", "nan", "0.1 to 100"},
    {"gpu-percent", "inf", "0.1 to 100"},
    {"gpu-percent", "30.05", "0.1 to 100"},
    {"gpu-percent", "1e2", "0.1 to 100"},
    {"mig", "1g.10gb", "not built yet"},
    {"gpu-model", "A100||H100", "letters"},
    {"workers", "0", "1..4096"},
    {"workers", "2..4", "not built yet"},
    {"cpus", "-1", ""},
    {"cpus", "inf", ""},
    {"cpus", "1.0001", ""},
    {"mem", "lots", "K, M, G or T"},
    {"mem", "2000000TiB", ""},
    {"time", "5parsecs", ""},
    {"time", "-1h", ""},
    {"time", "99999999d", ""},
    {"grace", "25h", "1 day"},
    {"queue", "a/b", "letters"},
    {"priority", "1001", "-1000..1000"},
    {"tenant", "-x", "letters"},
    {"require", "moon", "rack"},
    {"prefer", "NVLINK", "nvlink"},
    {"strategy", "best", "binpack"},
    {"chdir", "here", "absolute"},
    {"begin", "2026-12-01T20:00", "YYYY"},
    {"begin", "tomorrow", ""},
    {"after", "0", "a job's number"},
    {"after", "ok:", "a job's number"},
    {"after", "never:7", "a job's number"},
    {"after", "7,,8", "a job's number"},
    {"begin", "-2h", ""},
    {"name", "\xff\xfe", "UTF-8"},
};

static bool same(const struct job_spec *a, const struct job_spec *b)
{
    return memcmp(&a->req, &b->req, sizeof a->req) == 0 && a->workers == b->workers && a->priority == b->priority &&
           a->require == b->require && a->prefer == b->prefer && a->time_limit_ms == b->time_limit_ms &&
           a->grace_ms == b->grace_ms && a->begin_ms == b->begin_ms && a->after_len == b->after_len &&
           (a->after_len == 0 || memcmp(a->after, b->after, a->after_len * sizeof *a->after) == 0) &&
           a->begin_after_ms == b->begin_after_ms && a->sim_duration_ms == b->sim_duration_ms &&
           strcmp(a->queue, b->queue) == 0 && strcmp(a->tenant, b->tenant) == 0 &&
           strcmp(a->strategy, b->strategy) == 0;
}

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        door *const doors[] = {by_option, by_script, by_file, by_json_value};
        struct job_spec all[4];
        for (size_t d = 0; d < 4; d++) {
            struct err e = {0};
            const struct job_option *o = job_option_by_name(good[i].name, NULL);
            job_spec_init(&all[d]);
            if (doors[d](d < 2 ? o->name : o->key, good[i].value, &all[d], &e) < 0)
                fail_msg("--%s %s, door %zu: %s", good[i].name, good[i].value, d + 1, e.text);
            if (!same(&all[0], &all[d]))
                fail_msg("--%s %s gives something else at door %zu", good[i].name, good[i].value, d + 1);
            if (strcmp(good[i].name, "name") == 0)
                assert_string_equal(all[d].name, good[i].value);
            if (strcmp(good[i].name, "chdir") == 0)
                assert_string_equal(all[d].cwd, good[i].value);
        }
        for (size_t d = 0; d < 4; d++)
            job_spec_done(&all[d]);
    }
}

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        door *const doors[] = {by_option, by_script, by_file, by_json_value};
        const struct job_option *o = job_option_by_name(bad[i].name, NULL);
        for (size_t d = 0; d < 4; d++) {
            struct job_spec s;
            struct err e = {0};
            job_spec_init(&s);
            int rc = doors[d](d < 2 ? o->name : o->key, bad[i].value, &s, &e);
            bool says_nothing = d == 3 && e.code == 0; /* JSON could not even be made */
            if (rc >= 0)
                fail_msg("--%s \"%s\" was accepted at door %zu", bad[i].name, bad[i].value, d + 1);
            if (!says_nothing && strstr(e.text, bad[i].allowed) == NULL && strstr(e.text, "UTF-8") == NULL &&
                strstr(e.text, "control") == NULL)
                fail_msg("--%s \"%s\", door %zu: said \"%s\", not \"%s\"", bad[i].name, bad[i].value, d + 1, e.text,
                         bad[i].allowed);
            if (strstr(e.text, ": :") != NULL)
                fail_msg("--%s \"%s\", door %zu: two colons: %s", bad[i].name, bad[i].value, d + 1, e.text);
            if (d == 1 && strstr(e.text, "line 2") == NULL && strstr(e.text, "UTF-8") == NULL)
                fail_msg("--%s \"%s\" in a script: no line: %s", bad[i].name, bad[i].value, e.text);
            job_spec_done(&s);
        }
    }
}

/* Whole descriptions: what excludes what, what is missing, what is unknown. */
static void test_whole(void **state)
{
    static const char *const cases[][2] = {
        {"{}", "command"},
        {"{\"command\": []}", "command"},
        {"{\"command\": \"\"}", "command"},
        {"{\"command\": 5}", "command"},
        {"{\"command\": [\"a\"], \"script\": \"#!/bin/sh\\ntrue\\n\"}", "exclude"},
        {"{\"command\": [\"a\"], \"gpus\": 1, \"gpu_percent\": 10}", "gpu"},
        {"{\"command\": [\"a\"], \"gpu_mem\": \"1GiB\"}", "gpu_percent"},
        {"{\"command\": [\"a\"], \"gppus\": 1}", "gpus"},
        {"{\"command\": [\"a\"], \"gpus\": true}", "gpus"},
        {"{\"command\": [\"a\"], \"gpus\": null}", "gpus"},
        {"{\"command\": [\"a\"], \"gpus\": [1]}", "gpus"},
        {"{\"command\": [\"a\"], \"gpus\": 1e400}", ""},
        {"{\"command\": [\"a\"], \"env\": {\"A=B\": \"c\"}}", "env"},
        {"{\"command\": [\"a\"], \"env\": {\"\": \"c\"}}", "env"},
        {"{\"command\": [\"a\"], \"env\": [\"A=b\"]}", "env"},
        {"{\"command\": [\"a\"], \"uid\": -1}", "uid"},
        {"{\"command\": [\"a\"], \"hold\": 1}", "hold"},
        {"{\"script\": \"\"}", "empty"},
        {"[]", "mapping"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_error_t unused;
        json_t *v = json_loads(cases[i][0], 0, &unused);
        struct job_spec s;
        struct err e = {0};
        if (v == NULL)
            continue; /* 1e400 is refused by the JSON reader already */
        if (job_spec_from_json(v, &s, &e) >= 0)
            fail_msg("accepted: %s", cases[i][0]);
        if (strstr(e.text, cases[i][1]) == NULL)
            fail_msg("%s: said \"%s\", not \"%s\"", cases[i][0], e.text, cases[i][1]);
        json_decref(v);
    }
}

static int count_option(void *arg, const struct job_option *o, const char *value, struct err *e)
{
    (void)o;
    (void)value;
    (void)e;
    ++*(int *)arg;
    return 0;
}

static void test_script_heads(void **state)
{
    static const struct {
        const char *text;
        int options;
        size_t late;
    } cases[] = {
        {"#!/bin/sh\n#REMUDA --gpus 2 --name \"a b\"\n\n# more\n#REMUDA --time=1h # a comment\ntrue\n#REMUDA --gpus "
         "1\n",
         3, 7},
        {"true\n#REMUDA --gpus 1\n", 0, 2},
        {"#REMUDA\t--gpus\t1\r\ntrue\n", 1, 0},
        {"#REMUDAX --gpus 1\ntrue\n", 0, 0},
        {"#!/usr/bin/python3\n#REMUDA --gpus 1\nprint('#REMUDA')\n", 1, 0},
        {"#REMUDA --name 'it''s' --name \"a\\\"b\"\ntrue", 2, 0},
    };
    static const char *const refused[][2] = {
        {"#REMUDA --gpus\ntrue\n", "line 1"},
        {"#REMUDA --name 'open\ntrue\n", "line 1"},
        {"#REMUDA gpus 2\ntrue\n", "gpus"},
        {"#REMUDA -g 2\ntrue\n", "-g"},
        {"#!/bin/sh\r\ntrue\n", "line 1"},
        {"#!/bin/sh\n\n#REMUDA --colour red\n", "line 3"},
        {"", "empty"},
        {"true\xff\n", "UTF-8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int options = 0;
        size_t late = 0;
        struct err e = {0};
        if (script_parse(cases[i].text, strlen(cases[i].text), count_option, &options, &late, &e) < 0)
            fail_msg("%s: %s", cases[i].text, e.text);
        assert_int_equal(options, cases[i].options);
        assert_int_equal(late, cases[i].late);
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        int options = 0;
        struct err e = {0};
        if (script_parse(refused[i][0], strlen(refused[i][0]), count_option, &options, NULL, &e) >= 0)
            fail_msg("accepted: %s", refused[i][0]);
        if (strstr(e.text, refused[i][1]) == NULL)
            fail_msg("%s: said \"%s\", not \"%s\"", refused[i][0], e.text, refused[i][1]);
    }
}

/* docs/jobs.md has a row for each option, with its key, and none for others. */
static void test_document(void **state)
{
    (void)state;
    char *doc = NULL;
    assert_int_equal(file_read(SOURCE "/docs/jobs.md", 1 << 20, &doc, NULL, NULL), 0);
    for (int i = 0; i < JOB_OPT_COUNT; i++) {
        char row[100];
        snprintf(row, sizeof row, "\n| `--%s` | `%s` | ", job_options()[i].name, job_options()[i].key);
        if (strstr(doc, row) == NULL)
            fail_msg("docs/jobs.md has no row %s", row + 1);
    }
    int rows = 0;
    for (const char *at = doc; (at = strstr(at, "\n| `--")) != NULL; at++)
        rows++;
    assert_int_equal(rows, JOB_OPT_COUNT);
    mem_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),         cmocka_unit_test(test_bad),      cmocka_unit_test(test_whole),
        cmocka_unit_test(test_script_heads), cmocka_unit_test(test_document),
    };
    return test_run("job_options", tests);
}
