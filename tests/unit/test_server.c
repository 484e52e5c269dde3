/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon from outside: a real one on the simulated engine, asked over its socket. Every JSON
 * answer is held against api/openapi.yaml on the way (tests/daemon.h).
 */
#include "tests/daemon.h"
#include "tests/openapi.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB(extra) "{\"command\":[\"true\"],\"gpus\":1" extra "}"

static struct daemon d;

static int set_up(void **state)
{
    (void)state;
    daemon_prepare(&d, 2);
    daemon_start(&d);
    return 0;
}

static int set_up_stopped(void **state)
{
    (void)state;
    daemon_prepare(&d, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    daemon_remove(&d);
    return 0;
}

static json_int_t number(const json_t *v, const char *key)
{
    return json_integer_value(json_object_get(v, key));
}

static const char *text(const json_t *v, const char *key)
{
    const char *s = json_string_value(json_object_get(v, key));
    return s == NULL ? "(none)" : s;
}

static json_int_t submit(const char *body)
{
    json_t *v = daemon_json(&d, "POST", "/v1/jobs", body, 201);
    json_int_t id = number(v, "id");
    assert_true(id > 0);
    json_decref(v);
    return id;
}

static void wait_for_end(json_int_t id, const char *state)
{
    char path[80];
    snprintf(path, sizeof(path), "/v1/jobs/%lld/wait?timeout_ms=20000", (long long)id);
    json_t *v = daemon_json(&d, "GET", path, NULL, 200);
    assert_true(json_is_true(json_object_get(v, "ended")));
    assert_string_equal(text(v, "state"), state);
    json_decref(v);
}

static json_t *get_job(json_int_t id)
{
    char path[64];
    snprintf(path, sizeof(path), "/v1/jobs/%lld", (long long)id);
    return daemon_json(&d, "GET", path, NULL, 200);
}

static void wait_for_state(json_int_t id, const char *state)
{
    for (int i = 0; i < 400; i++) {
        json_t *v = get_job(id);
        bool there = strcmp(text(v, "state"), state) == 0;
        json_decref(v);
        if (there)
            return;
        clock_sleep_ms(25);
    }
    fail_msg("job %lld did not get %s", (long long)id, state);
}

static void expect_problem(const char *method, const char *path, const char *body, int status, const char *code,
                           const char *field)
{
    struct reply r = daemon_call(&d, method, path, NULL, body);
    if (r.status != status || strcmp(text(r.json, "code"), code) != 0 ||
        (field != NULL && strcmp(text(r.json, "field"), field) != 0))
        fail_msg("%s %s %.80s: %d %s instead of %d %s %s", method, path, body == NULL ? "" : body, r.status,
                 r.body == NULL ? "" : r.body, status, code, field == NULL ? "" : field);
    assert_non_null(strstr(r.head, "application/problem+json"));
    reply_done(&r);
}

/* --- what works --- */

/* REQ: H1 */
static void job_from_submit_to_end(void **state)
{
    (void)state;
    json_int_t id = submit(JOB(",\"name\":\"first\",\"sim_duration\":\"50ms\""));
    wait_for_end(id, "succeeded");
    json_t *job = get_job(id);
    assert_string_equal(text(job, "name"), "first");
    assert_int_equal(number(job, "exit_status"), 0);
    assert_int_equal(json_array_size(json_object_get(job, "placement")), 1);
    assert_int_equal(json_array_size(json_object_get(job, "exits")), 1);
    assert_true(json_array_size(json_object_get(job, "timeline")) >= 4);
    json_decref(job);
    json_t *failing =
        daemon_json(&d, "POST", "/v1/jobs", JOB(",\"sim_duration\":\"20ms\",\"env\":{\"REMUDA_SIM_EXIT\":\"3\"}"), 201);
    id = number(failing, "id");
    json_decref(failing);
    wait_for_end(id, "failed");
}

static void every_read_answers(void **state)
{
    (void)state;
    static const char *const paths[] = {"/v1/status",
                                        "/v1/nodes",
                                        "/v1/queues",
                                        "/v1/tenants",
                                        "/v1/config",
                                        "/v1/jobs?all=1",
                                        "/v1/jobs?state=running,queued&limit=1",
                                        "/v1/topology",
                                        "/v1/topology?node=n2",
                                        "/v1/jobs?ended=1",
                                        "/v1/jobs/1/explain",
                                        "/v1/jobs/2/explain",
                                        "/v1/jobs/1/wait?timeout_ms=10"};
    json_decref(daemon_json(&d, "POST", "/v1/jobs", JOB(",\"sim_duration\":\"1h\",\"workers\":16"), 201));
    json_decref(daemon_json(&d, "POST", "/v1/jobs", JOB(",\"sim_duration\":\"1h\""), 201));
    wait_for_state(1, "running");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        json_decref(daemon_json(&d, "GET", paths[i], NULL, 200));
    json_t *second = get_job(2);
    assert_string_equal(text(second, "state"), "queued");
    json_decref(second);
    json_t *status = daemon_json(&d, "GET", "/v1/status", NULL, 200);
    assert_true(json_is_true(json_object_get(status, "simulated")));
    assert_string_equal(text(status, "engine"), "simulated");
    assert_int_equal(number(status, "gpus"), 16);
    assert_string_equal(text(status, "state_dir"), d.state_dir);
    json_decref(status);
}

static void cancel_and_update(void **state)
{
    (void)state;
    json_int_t id = submit(JOB(",\"sim_duration\":\"1h\",\"name\":\"a\""));
    wait_for_state(id, "running");
    json_t *changed =
        daemon_json(&d, "PATCH", "/v1/jobs/1", "{\"name\":\"b\",\"time_limit\":\"2h\",\"priority\":-3}", 200);
    assert_string_equal(text(changed, "name"), "b");
    assert_int_equal(number(changed, "time_limit_ms"), 7200000);
    assert_int_equal(number(changed, "priority"), -3);
    json_decref(changed);
    json_decref(daemon_json(&d, "POST", "/v1/jobs/1/cancel", NULL, 200));
    wait_for_end(id, "cancelled");
    expect_problem("POST", "/v1/jobs/1/cancel", NULL, 409, "conflict", NULL);
    for (int i = 0; i < 3; i++)
        submit(JOB(",\"sim_duration\":\"1h\",\"name\":\"many\""));
    submit(JOB(",\"sim_duration\":\"1h\",\"name\":\"other\""));
    json_t *many = daemon_json(&d, "POST", "/v1/jobs/cancel", "{\"name\":\"many\"}", 200);
    assert_int_equal(json_array_size(json_object_get(many, "cancelled")), 3);
    json_decref(many);
    wait_for_end(4, "cancelled");
    wait_for_state(5, "running");
    expect_problem("POST", "/v1/jobs/cancel", "{}", 400, "invalid", NULL);
}

static void drain_holds_new_work_off(void **state)
{
    (void)state;
    json_t *node = daemon_json(&d, "POST", "/v1/nodes/n1/drain", "{\"reason\":\"a fan\"}", 200);
    assert_true(json_is_true(json_object_get(node, "draining")));
    json_decref(node);
    json_decref(daemon_json(&d, "POST", "/v1/nodes/n1/drain", "{}", 200)); /* again: no change, still an answer */
    for (int i = 0; i < 8; i++)
        submit(JOB(",\"sim_duration\":\"1h\""));
    json_int_t ninth = submit(JOB(",\"sim_duration\":\"50ms\""));
    wait_for_state(8, "running");
    json_t *job = get_job(ninth);
    assert_string_equal(text(job, "state"), "queued");
    json_decref(job);
    json_decref(daemon_json(&d, "POST", "/v1/nodes/n1/undrain", NULL, 200));
    wait_for_end(ninth, "succeeded");
    expect_problem("POST", "/v1/nodes/nowhere/drain", "{}", 404, "not-found", NULL);
}

static void configuration_has_versions(void **state)
{
    (void)state;
    json_t *before = daemon_json(&d, "GET", "/v1/config", NULL, 200);
    json_t *put = daemon_json(&d, "PUT", "/v1/config", "queues:\n  - name: batch\n  - name: night\n", 200);
    assert_int_equal(number(put, "version"), number(before, "version") + 1);
    json_decref(put);
    json_decref(before);
    submit(JOB(",\"queue\":\"night\",\"sim_duration\":\"10ms\""));
    expect_problem("PUT", "/v1/config", "queues: 7\n", 400, "invalid-field", "queues");
    expect_problem("PUT", "/v1/config", "nonsense: 1\n", 400, "invalid", NULL);
    json_t *after = daemon_json(&d, "GET", "/v1/config", NULL, 200);
    assert_non_null(strstr(text(after, "text"), "night"));
    json_decref(after);
}

/* REQ: H4 */
static void idempotency_keys(void **state)
{
    (void)state;
    const char *key = "Idempotency-Key: abc-1\r\n";
    struct reply a = daemon_call(&d, "POST", "/v1/jobs", key, JOB(",\"sim_duration\":\"1h\""));
    struct reply b = daemon_call(&d, "POST", "/v1/jobs", key, JOB(",\"sim_duration\":\"1h\""));
    assert_int_equal(a.status, 201);
    assert_int_equal(b.status, 201);
    assert_int_equal(number(a.json, "id"), number(b.json, "id"));
    assert_non_null(strstr(b.head, "Idempotency-Replayed: true"));
    struct reply c = daemon_call(&d, "POST", "/v1/jobs", key, JOB(",\"sim_duration\":\"2h\""));
    assert_int_equal(c.status, 422);
    reply_done(&a);
    reply_done(&b);
    reply_done(&c);
    assert_int_equal(daemon_stop(&d), 0);
    daemon_start(&d); /* the key of a submission outlives the daemon */
    b = daemon_call(&d, "POST", "/v1/jobs", key, JOB(",\"sim_duration\":\"1h\""));
    assert_int_equal(number(b.json, "id"), 1);
    reply_done(&b);
    a = daemon_call(&d, "POST", "/v1/jobs/1/cancel", "Idempotency-Key: c\r\n", NULL);
    b = daemon_call(&d, "POST", "/v1/jobs/1/cancel", "Idempotency-Key: c\r\n", NULL);
    assert_int_equal(a.status, 200);
    assert_int_equal(b.status, 200);
    reply_done(&a);
    reply_done(&b);
    a = daemon_call(&d, "POST", "/v1/jobs", "Idempotency-Key: a b\r\n", JOB(""));
    assert_int_equal(a.status, 400);
    reply_done(&a);
}

static void jobs_outlive_the_daemon(void **state)
{
    (void)state;
    json_int_t lasting = submit(JOB(",\"sim_duration\":\"1h\""));
    json_int_t brief = submit(JOB(",\"sim_duration\":\"1500ms\""));
    wait_for_state(brief, "running");
    daemon_kill(&d);
    clock_sleep_ms(300);
    daemon_start(&d);
    wait_for_state(lasting, "running");
    wait_for_end(brief, "succeeded");
    json_t *job = get_job(lasting);
    assert_int_equal(number(job, "attempt"), 1);
    json_decref(job);
    json_t *stop = daemon_json(&d, "POST", "/v1/shutdown", NULL, 202);
    json_decref(stop);
    int status = 0;
    assert_int_equal(waitpid(d.pid, &status, 0), d.pid);
    d.pid = 0;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    daemon_start(&d);
    wait_for_state(lasting, "running");
}

static void pages_of_jobs(void **state)
{
    (void)state;
    for (int i = 0; i < 7; i++)
        submit(JOB(",\"sim_duration\":\"1h\""));
    json_int_t after = 0;
    int seen = 0;
    for (int page = 0; page < 3; page++) {
        char path[80];
        snprintf(path, sizeof(path), "/v1/jobs?limit=3&after=%lld", (long long)after);
        json_t *v = daemon_json(&d, "GET", path, NULL, 200);
        seen += (int)json_array_size(json_object_get(v, "jobs"));
        assert_true(page < 2 ? json_is_integer(json_object_get(v, "next")) : json_is_null(json_object_get(v, "next")));
        after = number(v, "next");
        json_decref(v);
    }
    assert_int_equal(seen, 7);
}

/* --- the event stream --- */

/* Ids of the events in a text, in order; checks that they grow. */
static size_t event_ids(const char *stream, uint64_t *ret, size_t max)
{
    size_t n = 0;
    for (const char *p = strstr(stream, "id: "); p != NULL && n < max; p = strstr(p + 1, "\nid: ")) {
        ret[n] = strtoull(p + (p[0] == '\n' ? 5 : 4), NULL, 10);
        assert_true(n == 0 || ret[n] > ret[n - 1]);
        n++;
    }
    return n;
}

static void events_resume(void **state)
{
    (void)state;
    static uint64_t all[4000];
    static uint64_t part[4000];
    for (int i = 0; i < 40; i++)
        submit(JOB(",\"sim_duration\":\"10ms\""));
    wait_for_end(40, "succeeded");
    struct reply r = daemon_call(&d, "GET", "/v1/events?follow=0", NULL, NULL);
    size_t n = event_ids(r.body, all, 4000);
    assert_true(n >= 40 * 5);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(all[i], i + 1); /* no event is missing */
    assert_non_null(strstr(r.body, "event: submitted\ndata: {"));
    assert_non_null(strstr(r.head, "text/event-stream"));
    reply_done(&r);
    r = daemon_call(&d, "GET", "/v1/events?follow=0", "Last-Event-ID: 100\r\n", NULL);
    size_t rest = event_ids(r.body, part, 4000);
    assert_true(rest >= n - 100);
    assert_int_equal(part[0], 101);
    reply_done(&r);
    r = daemon_call(&d, "GET", "/v1/events?follow=0&job=7", NULL, NULL);
    size_t of_job = event_ids(r.body, part, 4000);
    assert_true(of_job >= 4 && of_job < 10);
    reply_done(&r);
    assert_int_equal(daemon_stop(&d), 0); /* the same from the store alone */
    daemon_start(&d);
    r = daemon_call(&d, "GET", "/v1/events?follow=0", "Last-Event-ID: 100\r\n", NULL);
    assert_true(event_ids(r.body, part, 4000) >= rest);
    assert_int_equal(part[0], 101);
    reply_done(&r);
    r = daemon_call(&d, "GET", "/v1/events?follow=0&after=999999999", NULL, NULL);
    assert_non_null(strstr(r.body, "event: reset"));
    reply_done(&r);
}

static void events_follow(void **state)
{
    (void)state;
    const char *ask = "GET /v1/events?job=1 HTTP/1.0\r\n\r\n";
    char buf[4096] = "";
    size_t len = 0;
    int fd = daemon_connect(&d);
    assert_int_equal(send(fd, ask, strlen(ask), 0), (ssize_t)strlen(ask));
    submit(JOB(",\"sim_duration\":\"50ms\""));
    submit(JOB(",\"sim_duration\":\"50ms\""));
    while (strstr(buf, "event: ended") == NULL) {
        ssize_t n = recv(fd, buf + len, sizeof(buf) - 1 - len, 0);
        assert_true(n > 0);
        len += (size_t)n;
        buf[len] = '\0';
    }
    assert_null(strstr(buf, "\"job\":2"));
    assert_int_equal(daemon_stop(&d), 0); /* ends with a follower connected */
    close(fd);
}

/* A follower that reads nothing costs the daemon nothing and is cut off when it comes back late. */
static void slow_follower_is_cut_off(void **state)
{
    (void)state;
    const char *ask = "GET /v1/events?after=0 HTTP/1.0\r\n\r\n";
    struct strbuf in = {0};
    char buf[65536];
    int fd = daemon_connect(&d);
    int small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    assert_int_equal(send(fd, ask, strlen(ask), 0), (ssize_t)strlen(ask));
    ssize_t n = recv(fd, buf, sizeof(buf), 0); /* it is live now */
    assert_true(n > 0);
    clock_sleep_ms(100);
    for (int i = 0; i < 30; i++) { /* a thousand workers end: a thousand events */
        json_int_t id = submit("{\"command\":[\"true\"],\"workers\":1000,\"sim_duration\":\"1ms\"}");
        wait_for_end(id, "succeeded");
    }
    while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
        strbuf_add(&in, buf, (size_t)n);
    assert_int_equal(n, 0);
    assert_non_null(strstr(strbuf_str(&in), "event: reset"));
    strbuf_done(&in);
    close(fd);
}

/* --- bad input --- */

/* REQ: G4 */
static void bad_requests_are_refused(void **state)
{
    (void)state;
    expect_problem("GET", "/v1/nothing", NULL, 404, "not-found", NULL);
    expect_problem("GET", "/", NULL, 404, "not-found", NULL);
    expect_problem("DELETE", "/v1/jobs", NULL, 405, "method-not-allowed", NULL);
    expect_problem("GET", "/v1/jobs/cancel", NULL, 405, "method-not-allowed", NULL);
    expect_problem("GET", "/v1/jobs/abc", NULL, 400, "invalid-field", "id");
    expect_problem("GET", "/v1/jobs/0", NULL, 400, "invalid-field", "id");
    expect_problem("GET", "/v1/jobs/99999999999999999999999", NULL, 400, "invalid-field", "id");
    expect_problem("GET", "/v1/jobs/77", NULL, 404, "not-found", NULL);
    expect_problem("GET", "/v1/jobs/77/wait", NULL, 404, "not-found", NULL);
    expect_problem("GET", "/v1/jobs/77/logs", NULL, 404, "not-found", NULL);
    expect_problem("GET", "/v1/jobs?color=red", NULL, 400, "unknown-field", "query");
    expect_problem("GET", "/v1/jobs?limit=-1", NULL, 400, "invalid-field", "limit");
    expect_problem("GET", "/v1/jobs?limit=1e3", NULL, 400, "invalid-field", "limit");
    expect_problem("GET", "/v1/jobs?all=yes", NULL, 400, "invalid-field", "all");
    expect_problem("GET", "/v1/jobs?state=sleeping", NULL, 400, "invalid-field", NULL);
    expect_problem("GET", "/v1/events?after=x", NULL, 400, "invalid-field", "after");
    expect_problem("GET", "/v1/jobs?name=%ff%fe", NULL, 400, "invalid", NULL);
    expect_problem("GET", "/v1/topology?node=none", NULL, 404, "not-found", NULL);
}

static void bad_bodies_are_refused(void **state)
{
    (void)state;
    expect_problem("POST", "/v1/jobs", "", 400, "invalid-field", "command");
    expect_problem("POST", "/v1/jobs", "{", 400, "invalid-json", NULL);
    expect_problem("POST", "/v1/jobs", "[1]", 400, "invalid-json", NULL);
    expect_problem("POST", "/v1/jobs", "{\"gpus\":1,\"gpus\":2,\"command\":[\"a\"]}", 400, "invalid-json", NULL);
    expect_problem("POST", "/v1/jobs", "{\"command\":[\"\xff\xfe\"]}", 400, "invalid", NULL);
    expect_problem("POST", "/v1/jobs", "{\"command\":[\"a\"],\"gpu\":1}", 400, "invalid-field", "gpu");
    expect_problem("POST", "/v1/jobs", "{\"command\":[\"a\"],\"gpus\":-1}", 400, "invalid-field", "gpus");
    expect_problem("POST", "/v1/jobs", "{\"command\":[\"a\"],\"gpus\":1e400}", 400, "invalid-json", NULL);
    expect_problem("POST", "/v1/jobs", "{\"command\":[\"a\"],\"gpus\":NaN}", 400, "invalid-json", NULL);
    expect_problem("POST", "/v1/jobs", "{\"command\":[\"a\"],\"gpus\":[1]}", 400, "invalid-field", "gpus");
    expect_problem("POST", "/v1/jobs", "{\"command\":[\"a\"],\"mem\":\"8 elephants\"}", 400, "invalid-field", "mem");
    expect_problem("POST", "/v1/jobs", JOB(",\"queue\":\"none\""), 400, "invalid-field", "queue");
    expect_problem("POST", "/v1/jobs", JOB(",\"mig\":\"1g.10gb\""), 400, "unsupported", "mig");
    expect_problem("PATCH", "/v1/jobs/1", "{}", 400, "invalid", NULL);
    expect_problem("PATCH", "/v1/jobs/1", "{\"prio\":1}", 400, "unknown-field", "prio");
    expect_problem("PATCH", "/v1/jobs/1", "{\"priority\":5000}", 400, "invalid-field", "priority");
    expect_problem("PATCH", "/v1/jobs/1", "{\"time_limit\":\"soon\"}", 400, "invalid-field", "time_limit");
    expect_problem("POST", "/v1/nodes/n1/drain", "{\"reason\":7}", 400, "invalid-field", "reason");
    expect_problem("POST", "/v1/jobs/1/cancel", "{\"now\":true}", 400, "unknown-field", "now");
    json_t *jobs = daemon_json(&d, "GET", "/v1/jobs?all=1", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(jobs, "jobs")), 0); /* nothing of it left a trace */
    json_decref(jobs);
}

static void huge_bodies_are_refused(void **state)
{
    (void)state;
    struct strbuf b = {0};
    char *filler = mem_alloc(1, SERVER_BODY_MAX + 2);
    memset(filler, ' ', SERVER_BODY_MAX + 1);
    strbuf_printf(&b, "POST /v1/jobs HTTP/1.0\r\nContent-Length: %zu\r\n\r\n", SERVER_BODY_MAX + 1);
    strbuf_add(&b, filler, SERVER_BODY_MAX + 1);
    struct reply r = daemon_raw(daemon_connect(&d), b.data, b.len);
    assert_int_equal(r.status, 413);
    assert_string_equal(text(r.json, "code"), "too-large");
    reply_done(&r);
    strbuf_done(&b);
    const char *announced = "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nConnection: "
                            "close\r\nContent-Length: 99999999999\r\n\r\n";
    r = daemon_raw(daemon_connect(&d), announced, strlen(announced));
    assert_int_equal(r.status, 413);
    reply_done(&r);
    strbuf_puts(&b, "GET /v1/jobs?name=");
    memset(filler, 'a', 100000);
    strbuf_add(&b, filler, 100000);
    strbuf_puts(&b, " HTTP/1.0\r\n\r\n");
    r = daemon_raw(daemon_connect(&d), b.data, b.len);
    assert_true(r.status == 0 || r.status >= 400);
    reply_done(&r);
    strbuf_done(&b);
    mem_free(filler);
    json_decref(daemon_json(&d, "GET", "/v1/status", NULL, 200));
}

/* Clients that connect and say nothing, or half of something, keep nobody else from being served.
 */
static void idle_and_slow_clients(void **state)
{
    (void)state;
    int fds[200];
    for (int i = 0; i < 200; i++) {
        fds[i] = daemon_connect(&d);
        if (i % 2 == 0)
            assert_true(send(fds[i], "POST /v1/jobs HTTP/1.1\r\nContent-Length: 50\r\nHost: a\r\n\r\n{\"co", 60, 0) >
                        0);
    }
    json_int_t id = submit(JOB(",\"sim_duration\":\"10ms\""));
    wait_for_end(id, "succeeded");
    for (int i = 0; i < 200; i++)
        close(fds[i]);
    assert_int_equal(daemon_stop(&d), 0);
}

/* Connections that break off while their request is held or waits. */
static void clients_that_vanish(void **state)
{
    (void)state;
    const char *body = JOB(",\"sim_duration\":\"1h\"");
    json_int_t first = submit(body);
    for (int i = 0; i < 100; i++) {
        char ask[400];
        int fd = daemon_connect(&d);
        int len =
            i % 2 == 0
                ? snprintf(ask, sizeof(ask), "POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s",
                           strlen(body), body)
                : snprintf(ask, sizeof(ask), "GET /v1/jobs/%lld/wait HTTP/1.1\r\nHost: a\r\n\r\n", (long long)first);
        assert_int_equal(send(fd, ask, (size_t)len, 0), len);
        close(fd);
    }
    json_decref(daemon_json(&d, "POST", "/v1/jobs/1/cancel", NULL, 200));
    wait_for_end(first, "cancelled");
    json_decref(daemon_json(&d, "GET", "/v1/jobs?all=1", NULL, 200));
    assert_int_equal(daemon_stop(&d), 0);
}

/* Thousands of damaged requests: whatever comes back, the daemon lives and its state holds. */
static void mutated_requests(void **state)
{
    (void)state;
    static const char *const seeds[] = {
        "POST /v1/jobs HTTP/1.0\r\nIdempotency-Key: k\r\nContent-Length: 71\r\n\r\n"
        "{\"command\":[\"a\",\"b\"],\"gpus\":2,\"mem\":\"8GiB\",\"env\":{\"A\":\"b\"},\"time\":60}",
        "PATCH /v1/jobs/1 HTTP/1.0\r\nContent-Length: "
        "40\r\n\r\n{\"priority\":-5,\"time_limit\":\"2h\",\"a\":1}",
        "GET /v1/jobs?state=running,queued&user=a&limit=10&after=3 HTTP/1.0\r\nHost: a\r\n\r\n",
        "GET /v1/events?follow=0&job=1 HTTP/1.0\r\nLast-Event-ID: 12\r\n\r\n",
        "POST /v1/jobs/cancel HTTP/1.0\r\nContent-Length: "
        "30\r\n\r\n{\"name\":\"nobody\",\"all\":false}",
        "PUT /v1/config HTTP/1.0\r\nContent-Length: 30\r\n\r\nqueues:\n  - name: batch\n    #..",
        "POST /v1/nodes/n1/drain HTTP/1.0\r\nTransfer-Encoding: "
        "chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "GET /v1/jobs/1/logs?tail=5&stream=stderr&worker=0 HTTP/1.0\r\n\r\n",
    };
    struct rng rng;
    rng_init(&rng, 20261201);
    for (int i = 0; i < 3000; i++) {
        char ask[512];
        size_t len = strlen(seeds[i % 8]);
        memcpy(ask, seeds[i % 8], len);
        for (uint64_t n = rng_below(&rng, 4) + 1; n > 0; n--)
            ask[rng_below(&rng, len)] = (char)rng_next(&rng);
        if (rng_chance(&rng, 100000))
            len = rng_below(&rng, len);
        int fd = daemon_connect(&d);
        if (send(fd, ask, len, MSG_NOSIGNAL) < 0 || shutdown(fd, SHUT_WR) != 0)
            assert_true(errno == EPIPE || errno == ENOTCONN);
        if (strncmp(ask, "GET /v1/events", 14) == 0 || strncmp(ask, "POST /v1/shutdown", 17) == 0 || i % 3 != 0) {
            close(fd); /* one may follow, the others are left before their answer */
            continue;
        }
        struct timeval patience = {.tv_usec = 20000};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        struct reply r = daemon_raw(fd, "", 0);
        assert_int_not_equal(r.status, 500);
        reply_done(&r);
    }
    json_decref(daemon_json(&d, "GET", "/v1/jobs?all=1", NULL, 200));
    json_decref(daemon_json(&d, "GET", "/v1/status", NULL, 200));
    assert_int_equal(daemon_stop(&d), 0);
    daemon_start(&d); /* what was accepted can be read back */
    json_decref(daemon_json(&d, "GET", "/v1/jobs?all=1", NULL, 200));
}

/* --- trouble --- */

static void second_daemon_is_refused(void **state)
{
    (void)state;
    struct daemon other = d;
    CLEANUP_FREE char *log = NULL;
    char path[128];
    char want[64];
    assert_int_equal(daemon_start_fails(&other), 1);
    snprintf(path, sizeof(path), "%s/daemon.log", d.state_dir);
    assert_int_equal(file_read(path, 1 << 20, &log, NULL, NULL), 0);
    snprintf(want, sizeof(want), "a daemon with pid %d runs on", (int)d.pid);
    assert_non_null(strstr(log, want));
    json_decref(daemon_json(&d, "GET", "/v1/status", NULL, 200));
}

static void broken_state_is_refused(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof(path), "%s/store.db", d.state_dir);
    assert_int_equal(file_write_atomic(path, "garbage, and a good deal of it", 30, 0600, FILE_SYNC_NO, NULL), 0);
    assert_int_equal(daemon_start_fails(&d), 1);
}

/* A disk that fills up: 507 and nothing half done; reads go on; after the restart all that was
 * accepted is there. */
/* REQ: H4 */
static void full_disk(void **state)
{
    (void)state;
    d.full_after = 300;
    daemon_start(&d);
    int accepted = 0;
    int refused = 0;
    for (int i = 0; i < 2000 && refused < 3; i++) {
        struct reply r = daemon_call(&d, "POST", "/v1/jobs", NULL, JOB(",\"sim_duration\":\"1h\",\"cpus\":0"));
        accepted += r.status == 201;
        refused += r.status == 507 || r.status == 503;
        if (r.status != 201 && r.status != 507 && r.status != 503)
            fail_msg("%d %s", r.status, r.body);
        reply_done(&r);
    }
    assert_true(accepted > 0);
    assert_int_equal(refused, 3);
    json_t *jobs = daemon_json(&d, "GET", "/v1/jobs?all=1&limit=10000", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(jobs, "jobs")), accepted);
    json_decref(jobs);
    json_t *status = daemon_json(&d, "GET", "/v1/status", NULL, 200);
    assert_true(json_is_false(json_object_get(status, "store_ok")));
    json_decref(status);
    /* Room again: without a restart the daemon comes back, finds its jobs running and takes new
     * ones. */
    struct rlimit room = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    assert_int_equal(prlimit(d.pid, RLIMIT_FSIZE, &room, NULL), 0);
    bool back = false;
    for (int i = 0; i < 600 && !back; i++) {
        clock_sleep_ms(50);
        struct reply r = daemon_call(&d, "POST", "/v1/jobs", NULL, JOB(",\"sim_duration\":\"1h\",\"cpus\":0"));
        back = r.status == 201;
        reply_done(&r);
    }
    assert_true(back);
    accepted++;
    wait_for_state(1, "running");
    json_t *first = get_job(1);
    assert_int_equal(number(first, "attempt"), 1); /* not begun twice */
    json_decref(first);
    assert_int_equal(daemon_stop(&d), 0);
    d.full_after = 0;
    daemon_start(&d);
    jobs = daemon_json(&d, "GET", "/v1/jobs?all=1&limit=10000", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(jobs, "jobs")), accepted);
    json_decref(jobs);
    submit(JOB(""));
}

/* --- TCP --- */

static struct reply over_tcp(int port, const char *headers)
{
    char ask[400];
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    int len = snprintf(ask, sizeof(ask), "GET /v1/status HTTP/1.0\r\n%s\r\n", headers);
    return daemon_raw(fd, ask, (size_t)len);
}

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    close(fd);
    return ntohs(a.sin_port);
}

static void tcp_needs_a_token(void **state)
{
    (void)state;
    char listen[32];
    char path[128];
    char headers[128];
    struct stat st;
    CLEANUP_FREE char *token = NULL;
    CLEANUP_FREE char *stored = NULL;
    int port = free_port();
    snprintf(listen, sizeof(listen), "127.0.0.1:%d", port);
    d.listen = listen;
    daemon_start(&d);
    snprintf(path, sizeof(path), "%s/token", d.state_dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(file_read(path, 200, &token, NULL, NULL), 0);
    token[strcspn(token, "\n")] = '\0';
    snprintf(path, sizeof(path), "%s/tokens", d.state_dir);
    assert_int_equal(file_read(path, 2000, &stored, NULL, NULL), 0);
    assert_null(strstr(stored, token)); /* only its hash is kept */
    static const char *const wrong[] = {"", "Authorization: Bearer rmd_wrong\r\n", "Authorization: Basic YTpi\r\n",
                                        "Authorization: Bearer \r\n"};
    for (size_t i = 0; i < 4; i++) {
        struct reply r = over_tcp(port, wrong[i]);
        assert_int_equal(r.status, 401);
        assert_non_null(strstr(r.head, "WWW-Authenticate: Bearer"));
        reply_done(&r);
    }
    snprintf(headers, sizeof(headers), "Authorization: Bearer %s\r\n", token);
    struct reply r = over_tcp(port, headers);
    assert_int_equal(r.status, 200);
    reply_done(&r);
    assert_int_equal(daemon_stop(&d), 0);
    daemon_start(&d); /* the token stays good */
    r = over_tcp(port, headers);
    assert_int_equal(r.status, 200);
    reply_done(&r);
    assert_int_equal(daemon_stop(&d), 0);
    static const char *const refused[] = {
        "0.0.0.0:8080", "8080", "127.0.0.1:", "127.0.0.1:99999999", "192.0.2.1:80", "x"};
    for (size_t i = 0; i < 6; i++) {
        d.listen = refused[i];
        assert_int_equal(daemon_start_fails(&d), 1);
    }
    d.listen = NULL;
}

/* --- the document --- */

static void document_has_every_call(void **state)
{
    (void)state;
    size_t len = 0;
    size_t described = 0;
    const struct server_call *calls = server_calls(&len);
    const json_t *paths = json_object_get(openapi_document(), "paths");
    for (size_t i = 0; i < len; i++) {
        char method[16];
        snprintf(method, sizeof(method), "%s", calls[i].method);
        for (char *c = method; *c != '\0'; c++)
            *c = (char)(*c | 0x20);
        const json_t *op = json_object_get(json_object_get(paths, calls[i].path), method);
        if (op == NULL)
            fail_msg("api/openapi.yaml lacks %s %s", calls[i].method, calls[i].path);
        const json_t *params = json_object_get(op, "parameters");
        struct strbuf names = {0};
        for (size_t p = 0; p < json_array_size(params); p++)
            if (strcmp(text(json_array_get(params, p), "in"), "query") == 0)
                strbuf_printf(&names, "%s ", text(json_array_get(params, p), "name"));
        assert_string_equal(strbuf_str(&names), calls[i].query);
        strbuf_done(&names);
    }
    const char *path;
    json_t *item;
    json_object_foreach((json_t *)paths, path, item) described += json_object_size(item);
    assert_int_equal(described, len); /* nothing is described that is not there */
}

#define WITH(name)    cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define WITHOUT(name) cmocka_unit_test_setup_teardown(name, set_up_stopped, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WITH(job_from_submit_to_end),
        WITH(every_read_answers),
        WITH(cancel_and_update),
        WITH(drain_holds_new_work_off),
        WITH(configuration_has_versions),
        WITH(idempotency_keys),
        WITH(jobs_outlive_the_daemon),
        WITH(pages_of_jobs),
        WITH(events_resume),
        WITH(events_follow),
        WITH(bad_requests_are_refused),
        WITH(bad_bodies_are_refused),
        WITH(huge_bodies_are_refused),
        WITH(idle_and_slow_clients),
        WITH(clients_that_vanish),
        WITH(mutated_requests),
        WITH(second_daemon_is_refused),
        WITHOUT(broken_state_is_refused),
        WITHOUT(full_disk),
        WITHOUT(tcp_needs_a_token),
        WITH(slow_follower_is_cut_off),
        cmocka_unit_test(document_has_every_call),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
