/* SPDX-License-Identifier: Apache-2.0 */
/* Output of real jobs through a real daemon: whole, tail, followed across rotations, and only for
 * its owner. */
#include "tests/daemon.h"

#include "base/strbuf.h"
#include "base/sys/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct daemon d;

static int set_up(void **state)
{
    (void)state;
    daemon_prepare(&d, 1);
    d.runner = RUNNER;
    d.config_text = "log_max_size: 1MiB\nlog_files_kept: 20\n";
    daemon_start(&d);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(daemon_json(&d, "POST", "/v1/jobs/cancel", "{\"all\":true}", 200));
    for (int i = 0; i < 200; i++) {
        json_t *jobs = daemon_json(&d, "GET", "/v1/jobs", NULL, 200);
        size_t left = json_array_size(json_object_get(jobs, "jobs"));
        json_decref(jobs);
        if (left == 0)
            break;
        clock_sleep_ms(50);
    }
    daemon_stop(&d);
    daemon_remove(&d);
    return 0;
}

static json_int_t submit(const char *shell)
{
    json_t *body = json_pack("{s:[sss],s:s}", "command", "sh", "-c", shell, "cwd", "/");
    char *text = json_dumps(body, 0);
    json_t *v = daemon_json(&d, "POST", "/v1/jobs", text, 201);
    json_int_t id = json_integer_value(json_object_get(v, "id"));
    json_decref(v);
    json_decref(body);
    free(text);
    return id;
}

static void wait_for_end(json_int_t id)
{
    char path[80];
    snprintf(path, sizeof(path), "/v1/jobs/%lld/wait?timeout_ms=30000", (long long)id);
    json_t *v = daemon_json(&d, "GET", path, NULL, 200);
    assert_true(json_is_true(json_object_get(v, "ended")));
    json_decref(v);
}

static void expect_logs(json_int_t id, const char *query, const char *want)
{
    char path[128];
    snprintf(path, sizeof(path), "/v1/jobs/%lld/logs%s", (long long)id, query);
    struct reply r = daemon_call(&d, "GET", path, NULL, NULL);
    assert_int_equal(r.status, 200);
    assert_string_equal(r.body, want);
    reply_done(&r);
}

static void whole_and_tail(void **state)
{
    (void)state;
    json_int_t id = submit("echo one; echo two; echo three; echo bad >&2");
    wait_for_end(id);
    expect_logs(id, "", "one\ntwo\nthree\n");
    expect_logs(id, "?stream=stderr", "bad\n");
    expect_logs(id, "?tail=2", "two\nthree\n");
    expect_logs(id, "?tail=3", "one\ntwo\nthree\n");
    expect_logs(id, "?tail=99", "one\ntwo\nthree\n");
    expect_logs(id, "?tail=0", "");
    expect_logs(id, "?follow=1", "one\ntwo\nthree\n");
    json_int_t open = submit("printf 'a\\nb\\nc'");
    wait_for_end(open);
    expect_logs(open, "?tail=1", "c");
    expect_logs(open, "?tail=2", "b\nc");
    char path[80];
    static const char *const wrong[] = {"worker=1", "attempt=2", "stream=both", "tail=-1", "follow=2"};
    for (size_t i = 0; i < 5; i++) {
        snprintf(path, sizeof(path), "/v1/jobs/%lld/logs?%s", (long long)id, wrong[i]);
        struct reply r = daemon_call(&d, "GET", path, NULL, NULL);
        assert_true(r.status == 404 || r.status == 400);
        reply_done(&r);
    }
}

/* A follower from the first line on sees each line once, in order, though the file is rotated
 * several times. */
static void follow_across_rotations(void **state)
{
    (void)state;
    json_int_t id = submit("i=0; while [ $i -lt 60 ]; do i=$((i+1)); seq -f \"%08.0f of the lines "
                           "that fill the file\" "
                           "$((i*2000)) $((i*2000+1999)); sleep 0.02; done");
    char path[80];
    snprintf(path, sizeof(path), "/v1/jobs/%lld/logs?follow=1", (long long)id);
    for (int i = 0; i < 200; i++) {
        char job[64];
        snprintf(job, sizeof(job), "/v1/jobs/%lld", (long long)id);
        json_t *v = daemon_json(&d, "GET", job, NULL, 200);
        bool queued = strcmp(json_string_value(json_object_get(v, "state")), "queued") == 0;
        json_decref(v);
        if (!queued)
            break;
        clock_sleep_ms(20);
    }
    struct reply r = daemon_call(&d, "GET", path, NULL, NULL);
    assert_int_equal(r.status, 200);
    unsigned long line = 2000;
    for (const char *p = r.body; *p != '\0'; p = strchr(p, '\n') + 1) {
        if (strtoul(p, NULL, 10) != line)
            fail_msg("line %lu is missing: %.40s", line, p);
        line++;
    }
    assert_int_equal(line, 122000);
    reply_done(&r);
    snprintf(path, sizeof(path), "/v1/jobs/%lld/logs?tail=50000", (long long)id);
    r = daemon_call(&d, "GET", path, NULL, NULL);
    assert_int_equal(strtoul(r.body, NULL, 10), 72000); /* across files backwards too */
    reply_done(&r);
}

static void empty_before_the_start(void **state)
{
    (void)state;
    json_t *nodes = daemon_json(&d, "GET", "/v1/nodes", NULL, 200);
    const json_t *node = json_array_get(json_object_get(nodes, "nodes"), 0);
    char path[128];
    char body[128];
    /* Two jobs that each ask for all CPUs: the second waits. */
    snprintf(body, sizeof(body), "{\"command\":[\"sleep\",\"60\"],\"cwd\":\"/\",\"cpus\":%lld}",
             (long long)json_integer_value(json_object_get(node, "cpu_milli")) / 1000);
    json_decref(nodes);
    json_decref(daemon_json(&d, "POST", "/v1/jobs", body, 201));
    json_t *waiting = daemon_json(&d, "POST", "/v1/jobs", body, 201);
    json_int_t id = json_integer_value(json_object_get(waiting, "id"));
    json_decref(waiting);
    snprintf(path, sizeof(path), "/v1/jobs/%lld/logs", (long long)id);
    struct reply r = daemon_call(&d, "GET", path, NULL, NULL);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.len, 0);
    assert_non_null(strstr(r.head, "Remuda-State: queued"));
    reply_done(&r);
}

/* REQ: B4 */
static void others_see_no_output(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    json_int_t id = submit("echo secret");
    wait_for_end(id);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char path[80];
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(9);
        snprintf(path, sizeof(path), "/v1/jobs/%lld/logs", (long long)id);
        struct reply logs = daemon_call(&d, "GET", path, NULL, NULL);
        snprintf(path, sizeof(path), "/v1/jobs/%lld/cancel", (long long)id);
        struct reply cancel = daemon_call(&d, "POST", path, NULL, NULL);
        struct reply stop = daemon_call(&d, "POST", "/v1/shutdown", NULL, NULL);
        struct reply uid = daemon_call(&d, "POST", "/v1/jobs", NULL, "{\"command\":[\"id\"],\"cwd\":\"/\",\"uid\":0}");
        struct reply read = daemon_call(&d, "GET", "/v1/jobs?all=1", NULL, NULL);
        _exit(logs.status == 403 && cancel.status == 403 && stop.status == 403 && uid.status == 403 &&
                      read.status == 200
                  ? 0
                  : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define WITH(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WITH(whole_and_tail),
        WITH(follow_across_rotations),
        WITH(empty_before_the_start),
        WITH(others_see_no_output),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
