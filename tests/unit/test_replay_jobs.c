/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job traces: every published figure we have, job by job where the starts and ends are known, and
 * everything that may be wrong with a trace. DATA is tests/data/replay/jobs.
 */
#include "base/mem.h"
#include "replay/figures.h"
#include "replay/profile.h"
#include "replay/replay.h"
#include "replay/report.h"
#include "replay/svg.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define COLUMNS_MAX 24

/* ---- tables ---- */

struct table {
    char text[16384];
    char *cell[128][COLUMNS_MAX];
    size_t rows, columns; /* row 0: the names */
};

/* A whole file, compressed or not; the caller's. */
static char *read_text(const char *path)
{
    gzFile f = gzopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be opened", path);
    struct strbuf b = {0};
    char chunk[65536];
    for (int got; (got = gzread(f, chunk, sizeof chunk)) > 0;)
        strbuf_add(&b, chunk, (size_t)got);
    gzclose(f);
    assert_false(b.failed);
    assert_true(b.len > 0);
    return strbuf_take(&b);
}

static void read_table(struct table *t, const char *path)
{
    char *text = read_text(path);
    assert_true(strlen(text) < sizeof t->text);
    memcpy(t->text, text, strlen(text) + 1);
    mem_free(text);
    t->rows = 0;
    for (char *line_at = NULL, *line = strtok_r(t->text, "\r\n", &line_at); line;
         line = strtok_r(NULL, "\r\n", &line_at)) {
        t->columns = 0;
        for (char *at = NULL, *cell = strtok_r(line, ",", &at); cell; cell = strtok_r(NULL, ",", &at))
            t->cell[t->rows][t->columns++] = cell;
        t->rows++;
    }
}

static const char *cell(const struct table *t, size_t row, const char *column)
{
    for (size_t c = 0; c < t->columns; c++)
        if (strcmp(t->cell[0][c], column) == 0)
            return t->cell[row][c];
    return NULL;
}

/* ---- runs ---- */

static void run(struct sim *s, struct trace *t, const char *trace, uint32_t nodes, const char *policy,
                const char *placement)
{
    char path[512];
    struct err e = {0};
    snprintf(path, sizeof path, DATA "/inputs/%s.csv.gz", trace);
    if (trace_read(path, t, &e) < 0)
        fail_msg("%s", e.text);
    assert_non_null(policy_find(policy));
    if (sim_run(s, t, nodes, 8, policy_find(policy), placement_find(placement), false, &e) < 0)
        fail_msg("%s", e.text);
}

/* The figures as the JSON object that the command prints. */
static json_t *figures_of(const struct sim *s, const char *schedule, struct strbuf *text)
{
    struct figures f;
    struct err e = {0};
    struct jsonw w;
    assert_int_equal(figures_take(&f, s, schedule, &e), 0);
    jsonw_init(&w, text);
    figures_json(&f, &w);
    figures_done(&f);
    json_t *object = json_loads(strbuf_str(text), JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(object);
    return object;
}

/* Compares the columns that both have: whole numbers and averages exactly, quantiles within 0.1. */
static void compare_row(const struct table *t, size_t row, const json_t *object, const char *what)
{
    for (size_t c = 0; c < t->columns; c++) {
        const char *name = t->cell[0][c], *want = t->cell[row][c];
        const json_t *got = json_object_get(object, name);
        if (!got || strcmp(name, "wall_s") == 0)
            continue;
        if (json_is_string(got)) {
            assert_string_equal(json_string_value(got), want);
            continue;
        }
        double slack = strncmp(name, "p50", 3) == 0 || strncmp(name, "p95", 3) == 0 || strncmp(name, "q_p", 3) == 0
                           ? 0.1 + 1e-6
                           : 1e-6;
        if (fabs(json_number_value(got) - strtod(want, NULL)) > slack)
            fail_msg("%s: %s is %.6f, expected %s", what, name, json_number_value(got), want);
    }
}

/* REQ: G7 every row of the published table, all policies and both placements. */
static void test_published_table(void **state)
{
    (void)state;
    static struct table t;
    read_table(&t, DATA "/tiresias_expected.csv");
    assert_true(t.rows > 30);
    for (size_t row = 1; row < t.rows; row++) {
        const char *trace = cell(&t, row, "trace"), *policy = cell(&t, row, "schedule");
        const char *placement = cell(&t, row, "placement");
        struct sim s = {0};
        struct trace jobs = {0};
        struct strbuf text = {0};
        char what[128];
        run(&s, &jobs, trace, (uint32_t)strtoul(cell(&t, row, "nodes"), NULL, 10), policy, placement);
        json_t *object = figures_of(&s, policy, &text);
        snprintf(what, sizeof what, "%s %s %s", trace, policy, placement);
        assert_int_equal(json_object_size(object), t.columns);
        const char *at = strbuf_str(&text);
        for (size_t c = 0; c < t.columns; c++) { /* all the columns, in the table's order */
            char key[64];
            snprintf(key, sizeof key, "\"%s\":", t.cell[0][c]);
            at = strstr(at, key);
            assert_non_null(at);
        }
        compare_row(&t, row, object, what);
        json_decref(object);
        strbuf_done(&text);
        sim_done(&s);
        trace_done(&jobs);
    }
}

static void test_reference_table(void **state)
{
    (void)state;
    static struct table t;
    read_table(&t, DATA "/reference_expected.csv");
    assert_true(t.rows > 25);
    for (size_t row = 1; row < t.rows; row++) {
        const char *trace = cell(&t, row, "trace"), *policy = cell(&t, row, "policy");
        struct sim s = {0};
        struct trace jobs = {0};
        struct strbuf text = {0};
        char what[128];
        run(&s, &jobs, trace, (uint32_t)strtoul(cell(&t, row, "gpus"), NULL, 10) / 8, policy, "count");
        json_t *object = figures_of(&s, policy, &text);
        snprintf(what, sizeof what, "%s %s", trace, policy);
        compare_row(&t, row, object, what);
        json_decref(object);
        strbuf_done(&text);
        sim_done(&s);
        trace_done(&jobs);
    }
}

/* All 82,247 jobs of Philly on 512 cards: what the independent simulator gave, to its rounding. */
static void test_whole_list(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        double completion, queue_p50, queue_p95;
    } rows[] = {{"fifo", 488906, 504187, 818204}, {"fjf", 131176, 54237, 318471}};
    for (size_t i = 0; i < 2; i++) {
        struct sim s = {0};
        struct trace jobs = {0};
        struct strbuf text = {0};
        run(&s, &jobs, "philly_full", 64, rows[i].policy, "count");
        json_t *o = figures_of(&s, rows[i].policy, &text);
        assert_int_equal(json_integer_value(json_object_get(o, "jobs")), 82247);
        assert_int_equal(json_integer_value(json_object_get(o, "makespan")), 9408754);
        assert_true(fabs(json_number_value(json_object_get(o, "avg_jct")) - rows[i].completion) <= 0.5);
        assert_true(fabs(json_number_value(json_object_get(o, "q_p50")) - rows[i].queue_p50) <= 0.5);
        assert_true(fabs(json_number_value(json_object_get(o, "q_p95")) - rows[i].queue_p95) <= 0.5);
        assert_true(fabs(json_number_value(json_object_get(o, "util_pct")) - 73.09) < 1e-6);
        json_decref(o);
        strbuf_done(&text);
        sim_done(&s);
        trace_done(&jobs);
    }
}

/* Start, end and preemptions of each single job. */
static void test_every_job(void **state)
{
    (void)state;
    static const struct {
        const char *trace;
        uint32_t nodes;
    } traces[] = {{"tiresias_60", 2}, {"philly_2869ce", 6}, {"itp_cluster06", 14}};
    static const char *const variants[][2] = {
        {"fifo", "count"},     {"fifo", "yarn"},      {"fjf", "count"},          {"fjf", "yarn"},
        {"sjf", "count"},      {"shortest", "count"}, {"shortest-gpu", "count"}, {"dlas", "count"},
        {"dlas-gpu", "count"}, {"easy", "count_ref"}, {"las", "count_ref"},      {"cons", "count_ref"},
    };
    size_t compared = 0;
    for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
        for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
            bool ref = strcmp(variants[v][1], "count_ref") == 0;
            char path[512];
            snprintf(path, sizeof path, DATA "/golden/%s_n%ug8_%s_%s.csv.gz", traces[i].trace, traces[i].nodes,
                     variants[v][0], variants[v][1]);
            if (ref)
                snprintf(path, sizeof path, DATA "/golden/%s_g%u_%s_%s.csv.gz", traces[i].trace, traces[i].nodes * 8,
                         variants[v][0], variants[v][1]);
            if (access(path, R_OK) != 0)
                continue;
            struct sim s = {0};
            struct trace jobs = {0};
            struct strbuf got = {0};
            run(&s, &jobs, traces[i].trace, traces[i].nodes, variants[v][0], ref ? "count" : variants[v][1]);
            figures_jobs_csv(&s, &got);
            char *want = read_text(path);
            char *to = want; /* the given files end their lines with CR LF */
            for (const char *from = want; *from; from++)
                if (*from != '\r')
                    *to++ = *from;
            *to = '\0';
            if (strcmp(strbuf_str(&got), want) != 0)
                fail_msg("jobs differ from %s", path);
            mem_free(want);
            strbuf_done(&got);
            sim_done(&s);
            trace_done(&jobs);
            compared++;
        }
    }
    assert_int_equal(compared, 35);
}

/* The lists as published give what the reduced ones give. */
static void test_native_formats(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"/native/cluster06.csv.gz", "/inputs/itp_cluster06.csv.gz"},
                                           {"/native/60_job.csv", "/inputs/tiresias_60.csv.gz"}};
    for (size_t i = 0; i < 2; i++) {
        struct trace a = {0}, b = {0};
        struct err e = {0};
        char path[512];
        snprintf(path, sizeof path, "%s%s", DATA, pairs[i][0]);
        assert_int_equal(trace_read(path, &a, &e), 0);
        snprintf(path, sizeof path, "%s%s", DATA, pairs[i][1]);
        assert_int_equal(trace_read(path, &b, &e), 0);
        assert_int_equal(a.len, b.len);
        for (uint32_t k = 0; k < a.len; k++) {
            assert_int_equal(a.jobs[k].submit_s, b.jobs[k].submit_s);
            assert_int_equal(a.jobs[k].duration_s, b.jobs[k].duration_s);
            assert_int_equal(a.jobs[k].gpus, b.jobs[k].gpus);
        }
        if (i == 0) {
            assert_string_equal(a.name, "cluster06");
            assert_string_equal(trace_id(&a, 0), "59a72878-e5c4-ab9d-e813-68c36b50edeb");
        }
        trace_done(&a);
        trace_done(&b);
    }
}

static int parse(const char *text, struct trace *t, struct err *e)
{
    return trace_parse("some/where/t.csv", text, strlen(text), t, e);
}

static void test_philly_format(void **state)
{
    (void)state;
    struct trace t = {0};
    struct err e = {0};
    assert_int_equal(parse("timestamp,duration,num_gpus,gpu_time,cluster\n"
                           "2016-03-01 00:00:10,66.5,1,66.0,11cb48\n"
                           "2016-02-28 23:59:59,2951.0,2,2951.0,6214e9\n"
                           "2016-03-01 00:00:10,7.49,4,1.0,6214e9\r\n\n",
                           &t, &e),
                     0);
    assert_int_equal(t.len, 3);
    assert_string_equal(t.name, "t");
    assert_int_equal(t.jobs[0].submit_s, 0);
    assert_int_equal(t.jobs[0].gpus, 2);
    assert_int_equal(t.jobs[1].submit_s, 86400 + 11); /* over a leap day */
    assert_int_equal(t.jobs[1].duration_s, 67);
    assert_int_equal(t.jobs[2].duration_s, 7); /* same second: the order of the file */
    assert_string_equal(trace_id(&t, 2), "2");
    trace_done(&t);
}

static void test_order(void **state)
{
    (void)state;
    struct trace t = {0};
    struct err e = {0};
    assert_int_equal(parse("\xef\xbb\xbf"
                           "duration, num_gpu ,job_id,user,submit_time\n"
                           "1,1,10,x,5\n1,1,9,x,5\n1,1,11,x,2\n",
                           &t, &e),
                     0);
    assert_string_equal(trace_id(&t, 0), "11");
    assert_string_equal(trace_id(&t, 1), "9"); /* numbers, not text */
    assert_string_equal(trace_id(&t, 2), "10");
    trace_done(&t);
    assert_int_equal(parse("job_id,num_gpu,submit_time,duration\nb,1,5,1\na,1,5,1\n", &t, &e), 0);
    assert_string_equal(trace_id(&t, 0), "b"); /* names: the order of the file */
    trace_done(&t);
}

/* Each fault is named with file, line, column, value and what is allowed. */
static void test_bad_traces(void **state)
{
    (void)state;
#define HEAD "job_id,num_gpu,submit_time,duration\n"
    static const char *const cases[][2] = {
        {"", "the file is empty"},
        {"job_id,num_gpu,submit_time\n1,1,1\n", "t.csv:1: the header has no column duration"},
        {"job_id,submit_time,duration\n1,1,1\n", "no column num_gpu"},
        {"job_id,num_gpu,duration\n1,1,1\n", "no column submit_time"},
        {"num_gpu,num_gpus,submit_time,duration\n", "names column num_gpu again as num_gpus (column 2)"},
        {"num_gpu,timestamp,submit_time,duration\n", "has both submit_time and timestamp"},
        {HEAD, "a header and no jobs"},
        {HEAD "1,1,1\n", "t.csv:2: the line has 3 columns, the header 4"},
        {HEAD "0,1,0,1\n1,0,0,1\n", "t.csv:3: column num_gpu is \"0\"; allowed: a whole number, 1 to 1000000"},
        {HEAD "1,1000001,0,1\n", "num_gpu is \"1000001\""},
        {HEAD "1,-1,0,1\n", "num_gpu is \"-1\""},
        {HEAD "1,1.0,0,1\n", "num_gpu is \"1.0\""},
        {HEAD "1,99999999999999999999,0,1\n", "num_gpu is \"99999999999999999999\""},
        {HEAD "1,1,-5,1\n", "t.csv:2: column submit_time is \"-5\"; allowed: seconds, 0 to 1000000000000"},
        {HEAD "1,1,1000000000001,1\n", "submit_time is \"1000000000001\""},
        {HEAD "1,1,0,nan\n", "column duration is \"nan\"; allowed: seconds, 0 to 3155760000 (100 years)"},
        {HEAD "1,1,0,\n", "duration is \"\""},
        {HEAD "1,1,0,1e3\n", "duration is \"1e3\""},
        {HEAD "1,1,0,1.\n", "duration is \"1.\""},
        {HEAD "1,1,0,3155760001\n", "duration is \"3155760001\""},
        {HEAD "1,1,0,\x1b[31m\n", "duration is \"?[31m\""},
        {HEAD "1,1,0,1\n2,1,0,1\n1,1,3,1\n", "t.csv:4: column job_id is \"1\"; allowed: an id that no line above has"},
        {HEAD ",1,0,1\n", "column job_id is \"\"; allowed: 1 to 255 bytes"},
        {"timestamp,duration,num_gpus\n2017-02-29 00:00:00,1,1\n", "column timestamp is \"2017-02-29 00:00:00\""},
        {"timestamp,duration,num_gpus\n2017-13-01 00:00:00,1,1\n", "2017-13-01"},
        {"timestamp,duration,num_gpus\nNone,1,1\n", "timestamp is \"None\"; allowed: a date and time such as"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct trace t = {0};
        struct err e = {0};
        assert_int_equal(parse(cases[i][0], &t, &e), -EINVAL);
        if (!strstr(e.text, cases[i][1]))
            fail_msg("\"%s\" does not say \"%s\"", e.text, cases[i][1]);
        assert_null(t.jobs);
        assert_true(utf8_valid(e.text, strlen(e.text)));
    }
    struct trace t = {0};
    struct err e = {0};
    assert_int_equal(trace_parse("t", HEAD "1,1\0,0,1\n", sizeof HEAD + 9, &t, &e), -EINVAL);
    assert_non_null(strstr(e.text, "t:2: a zero byte"));
    char *line = mem_alloc(TRACE_LINE_MAX + 8, 1);
    memset(line, '7', TRACE_LINE_MAX + 7);
    assert_int_equal(parse(line, &t, &e), -EINVAL);
    assert_non_null(strstr(e.text, "longer than 65535 bytes"));
    mem_free(line);
    assert_int_equal(trace_read(DATA "/no-such-file", &t, &e), -ENOENT);
    assert_int_equal(trace_read(DATA, &t, &e), -EISDIR);
}

/* A compressed file that was cut, and one whose middle was damaged. */
static void test_damaged_file(void **state)
{
    (void)state;
    char path[] = "/tmp/remuda-trace-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *in = fopen(DATA "/inputs/tiresias_60.csv.gz", "rb");
    unsigned char bytes[512];
    size_t len = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    assert_true(len > 400);
    for (int damage = 0; damage < 2; damage++) {
        if (damage == 1)
            bytes[200] ^= 0x55;
        assert_int_equal(pwrite(fd, bytes, 400, 0), 400);
        struct trace t = {0};
        struct err e = {0};
        assert_int_equal(trace_read(path, &t, &e), -EINVAL);
        assert_non_null(strstr(e.text, damage == 0 ? "cannot be read after line" : path));
    }
    close(fd);
    unlink(path);
}

static void test_oversize(void **state)
{
    (void)state;
    struct trace t = {0};
    struct err e = {0};
    struct sim s = {0};
    assert_int_equal(parse(HEAD "a,9,0,5\nb,8,3,5\nc,24,4,5\n", &t, &e), 0);
    assert_int_equal(sim_run(&s, &t, 2, 8, &policy_fifo, &placement_count, false, &e), -EINVAL);
    assert_non_null(strstr(e.text, "job c (line 4) asks for num_gpu 24"));
    sim_done(&s);
    assert_int_equal(sim_run(&s, &t, 1, 16, &policy_easy, &placement_yarn, false, &e), -EINVAL);
    assert_non_null(strstr(e.text, "allowed with policy easy: count"));
    sim_done(&s);
    trace_limit(&t, 8);
    assert_int_equal(t.len, 1);
    assert_int_equal(t.skipped, 2);
    assert_int_equal(t.jobs[0].submit_s, 0);
    trace_limit(&t, 1);
    assert_int_equal(sim_run(&s, &t, 1, 1, &policy_fifo, &placement_count, false, &e), -EINVAL);
    sim_done(&s);
    trace_done(&t);
}

/* Every allocation fails once: -ENOMEM each time, nothing lost. */
static void test_no_memory(void **state)
{
    (void)state;
    struct trace t = {0};
    struct err e = {0};
    const char *text = HEAD "0,1,0,9\n1,12,1,7\n2,3,1,4\n3,8,2,6\n4,2,2,5000\n5,1,2,1\n";
    for (uint64_t nth = 1;; nth++) {
        mem_fail_from(nth);
        int rc = parse(text, &t, &e);
        mem_fail_from(0);
        if (rc == 0)
            break;
        assert_int_equal(rc, -ENOMEM);
    }
    for (size_t p = 0; policy_at(p); p++) {
        const struct placement_ops *placement = policy_at(p)->needs_count ? &placement_count : &placement_yarn;
        for (uint64_t nth = 1;; nth++) {
            struct sim s = {0};
            struct figures f = {0};
            struct report r = {0};
            struct strbuf page = {0};
            mem_fail_from(nth);
            int rc = sim_run(&s, &t, 2, 8, policy_at(p), placement, true, &e);
            if (rc == 0)
                rc = figures_take(&f, &s, "x", &e);
            if (rc == 0) {
                assert_int_equal(report_add(&r, &s, &f, &e), 0);
                report_html(&r, &page);
                rc = page.failed ? -ENOMEM : 0;
            }
            mem_fail_from(0);
            report_done(&r);
            figures_done(&f);
            sim_done(&s);
            strbuf_done(&page);
            if (rc == 0)
                break;
            assert_int_equal(rc, -ENOMEM);
        }
    }
    trace_done(&t);
}

/* The step function on its own, by the example in its essay. */
static void test_profile(void **state)
{
    (void)state;
    struct profile p;
    struct err e = {0};
    assert_int_equal(profile_init(&p, 0, 4, &e), 0);
    assert_int_equal(profile_take(&p, 0, 10, 3), 0);
    assert_int_equal(profile_take(&p, 10, 5, 4), 0);
    assert_int_equal(profile_earliest(&p, 0, 6, 1), 0); /* 0 to 6 beside the first */
    assert_int_equal(profile_earliest(&p, 5, 6, 1), 15);
    assert_int_equal(profile_earliest(&p, 0, 11, 1), 15);
    assert_int_equal(profile_earliest(&p, 0, 1, 2), 15);
    profile_done(&p);
}

static void test_escape(void **state)
{
    (void)state;
    struct strbuf b = {0};
    svg_escape(&b, "<a href='x'>&\"\x01\xc3\xa9");
    assert_string_equal(strbuf_str(&b), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;?\xc3\xa9");
    strbuf_clear(&b);
    svg_escape(&b, "\xff<");
    assert_string_equal(strbuf_str(&b), "?&lt;");
    strbuf_clear(&b);
    figures_number(&b, 2240, 2);
    strbuf_putc(&b, ' ');
    figures_number(&b, 5, 2);
    strbuf_putc(&b, ' ');
    figures_number(&b, 0, 1);
    assert_string_equal(strbuf_str(&b), "22.4 0.05 0.0");
    strbuf_done(&b);
}

/* The command itself: what it prints goes to a file that stands in for standard output. */
static int command(const char *arguments, char *out, size_t size)
{
    char words[1024], *argv[32] = {(char[]){"replay"}}, path[] = "/tmp/remuda-replay-XXXXXX";
    int argc = 1;
    snprintf(words, sizeof words, "%s", arguments);
    for (char *at = NULL, *word = strtok_r(words, " ", &at); word; word = strtok_r(NULL, " ", &at))
        argv[argc++] = word;
    int fd = mkstemp(path), saved[2] = {dup(1), dup(2)};
    fflush(NULL);
    dup2(fd, 1);
    dup2(fd, 2);
    int code = replay_main(argc, argv);
    fflush(NULL);
    dup2(saved[0], 1);
    dup2(saved[1], 2);
    close(saved[0]);
    close(saved[1]);
    ssize_t got = pread(fd, out, size - 1, 0);
    out[got > 0 ? got : 0] = '\0';
    close(fd);
    unlink(path);
    return code;
}

/* REQ: G7 a report needs nothing from outside and escapes what the trace says. */
static void test_command(void **state)
{
    (void)state;
    static char out[65536];
    char folder[] = "/tmp/remuda-replay-test-XXXXXX", line[700];
    assert_non_null(mkdtemp(folder));
    snprintf(line, sizeof line,
             "--trace %s/inputs/tiresias_60.csv.gz --nodes 2 --gpus-per-node 8 --policy shortest "
             "--json --jobs-out "
             "%s/jobs.csv --html %s/page.html",
             DATA, folder, folder);
    assert_int_equal(command(line, out, sizeof out), 0);
    json_t *object = json_loads(out, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(object, "schedule")), "shortest");
    assert_string_equal(json_string_value(json_object_get(object, "trace")), "tiresias_60");
    json_decref(object);
    snprintf(line, sizeof line, "%s/jobs.csv", folder);
    char *jobs = read_text(line);
    assert_int_equal(strncmp(jobs, "job_id,start_time,end_time,preempt\n0,0,164,0\n", 45), 0);
    mem_free(jobs);
    unlink(line);
    snprintf(line, sizeof line, "%s/page.html", folder);
    char *page = read_text(line);
    assert_non_null(strstr(page, "</html>"));
    assert_null(strstr(page, "http"));
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "nan"));
    mem_free(page);
    unlink(line);

    char odd[128];
    snprintf(odd, sizeof odd, "%s/<b>&.csv", folder);
    FILE *f = fopen(odd, "w");
    fputs(HEAD "0,1,0,5\n", f);
    fclose(f);
    snprintf(line, sizeof line,
             "--trace %s --nodes 1 --gpus-per-node 1 --compare fifo,cons,las --json --html %s/page.html", odd, folder);
    assert_int_equal(command(line, out, sizeof out), 0);
    json_t *array = json_loads(out, 0, NULL);
    assert_int_equal(json_array_size(array), 3);
    json_decref(array);
    unlink(odd);
    snprintf(line, sizeof line, "%s/page.html", folder);
    page = read_text(line);
    assert_null(strstr(page, "<b>"));
    assert_non_null(strstr(page, "&lt;b&gt;&amp;"));
    mem_free(page);
    unlink(line);
    rmdir(folder);
}

static void test_command_line(void **state)
{
    (void)state;
    static char out[65536];
    static const struct {
        const char *line;
        int code;
        const char *says;
    } cases[] = {
        {"--help", 0, "Usage: remuda replay --trace FILE"},
        {"", 2, "--trace is missing"},
        {"--trace x", 2, "--nodes is missing"},
        {"--trace x --nodes 1", 2, "--gpus-per-node is missing"},
        {"--trace x --nodes 0", 2, "--nodes is \"0\"; allowed: a whole number, 1 to 1000000"},
        {"--trace x --gpus-per-node 8x", 2, "--gpus-per-node is \"8x\"; allowed: a whole number, 1 to 1024"},
        {"--policy best", 2, "policy is \"best\"; allowed: fifo, fjf, sjf, srtf, shortest"},
        {"--compare fifo,,fjf", 2, "policy is \"\""},
        {"--placement near", 2, "--placement is \"near\"; allowed: count, yarn"},
        {"--nope", 2, "\"--nope\" is not an option"},
        {"--trace x --nodes 1 --gpus-per-node 8 y", 2, "\"y\" is one word too many"},
        {"--trace x --nodes 1 --gpus-per-node 8 --policy easy --placement yarn", 2, "allowed with policy easy: count"},
        {"--trace x --nodes 1 --gpus-per-node 8 --compare fifo,fjf --jobs-out y", 2, "--jobs-out with 2 policies"},
        {"--trace /no/file --nodes 1 --gpus-per-node 8", 1, "/no/file: cannot be opened: No such file"},
        {"--trace " DATA "/inputs/tiresias_60.csv.gz --nodes 2 --gpus-per-node 8 --jobs-out /no/folder/x", 1,
         "/no/folder/x: cannot be written"},
        {"--trace " DATA "/inputs/tiresias_60.csv.gz --nodes 1 --gpus-per-node 4", 1, "--skip-oversize"},
        {"--trace " DATA "/inputs/tiresias_60.csv.gz --nodes 1 --gpus-per-node 4 --skip-oversize", 0,
         "larger than the cluster left out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code = command(cases[i].line, out, sizeof out);
        if (code != cases[i].code || !strstr(out, cases[i].says))
            fail_msg("\"%s\" gives %d and \"%s\"", cases[i].line, code, out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_table), cmocka_unit_test(test_reference_table),
        cmocka_unit_test(test_whole_list),      cmocka_unit_test(test_every_job),
        cmocka_unit_test(test_native_formats),  cmocka_unit_test(test_philly_format),
        cmocka_unit_test(test_order),           cmocka_unit_test(test_bad_traces),
        cmocka_unit_test(test_damaged_file),    cmocka_unit_test(test_oversize),
        cmocka_unit_test(test_no_memory),       cmocka_unit_test(test_profile),
        cmocka_unit_test(test_escape),          cmocka_unit_test(test_command),
        cmocka_unit_test(test_command_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
