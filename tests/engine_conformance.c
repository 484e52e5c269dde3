/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_conformance.h"

#include "base/mem.h"
#include "base/sys/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 30000

static void on_event(void *arg, const struct engine_event *ev)
{
    struct conform *c = arg;
    assert_false(c->inside); /* never from inside a call */
    if (ev->kind == ENGINE_TELEMETRY) {
        c->telemetry++;
        assert_non_null(ev->source);
        return;
    }
    if (ev->kind == ENGINE_NODE) {
        assert_non_null(ev->node);
        c->node = *ev->node;
    }
    assert_true(c->events_len < CONFORM_EVENTS_MAX);
    struct conform_event *copy = &c->events[c->events_len++];
    copy->ev = *ev;
    copy->detail[0] = '\0';
    if (ev->detail != NULL)
        (void)snprintf(copy->detail, sizeof copy->detail, "%s", ev->detail);
    copy->ev.detail = copy->detail;
}

static void open_engine(struct conform *c)
{
    struct err e = {0};
    if (c->fixture->open(&c->loop, on_event, c, &c->engine, &e) < 0)
        fail_msg("open: %s", e.text);
    c->closed = false;
}

void conform_open(struct conform *c, const struct conform_fixture *f)
{
    *c = (struct conform){.fixture = f};
    c->events = mem_alloc(CONFORM_EVENTS_MAX, sizeof *c->events);
    assert_non_null(c->events);
    assert_int_equal(uv_loop_init(&c->loop), 0);
    open_engine(c);
}

static void on_closed(void *arg)
{
    ((struct conform *)arg)->closed = true;
}

static bool is_closed(struct conform *c, void *arg)
{
    (void)arg;
    return c->closed;
}

void conform_close(struct conform *c)
{
    c->engine->ops->close(c->engine, on_closed, c);
    assert_true(conform_wait(c, is_closed, NULL, WAIT_MS));
    c->engine = NULL;
    while (uv_run(&c->loop, UV_RUN_NOWAIT) != 0)
        ;
}

void conform_reopen(struct conform *c)
{
    open_engine(c);
}

void conform_done(struct conform *c)
{
    if (c->engine != NULL)
        conform_close(c);
    assert_int_equal(uv_loop_close(&c->loop), 0); /* no handle was left behind */
    mem_free(c->events);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

bool conform_wait(struct conform *c, bool (*until)(struct conform *c, void *arg), void *arg, int64_t ms)
{
    int64_t end = clock_mono_ms() + ms;
    uv_timer_t tick;
    (void)uv_timer_init(&c->loop, &tick);
    (void)uv_timer_start(&tick, on_tick, 2, 2);
    bool done;
    while (!(done = until(c, arg)) && clock_mono_ms() < end)
        (void)uv_run(&c->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&c->loop, UV_RUN_NOWAIT);
    return done;
}

const struct conform_event *conform_find(const struct conform *c, enum engine_event_kind kind, uint64_t job,
                                         uint32_t attempt, size_t n)
{
    for (size_t i = 0; i < c->events_len; i++) {
        const struct engine_event *ev = &c->events[i].ev;
        if (ev->kind == kind && (job == 0 || (ev->job == job && ev->attempt == attempt)) && n-- == 0)
            return &c->events[i];
    }
    return NULL;
}

struct wanted {
    enum engine_event_kind kind;
    uint64_t job;
    uint32_t attempt;
    size_t n;
};

static bool has_come(struct conform *c, void *arg)
{
    const struct wanted *w = arg;
    return conform_find(c, w->kind, w->job, w->attempt, w->n) != NULL;
}

const struct conform_event *conform_expect(struct conform *c, enum engine_event_kind kind, uint64_t job,
                                           uint32_t attempt, size_t n, int64_t ms)
{
    struct wanted w = {kind, job, attempt, n};
    if (!conform_wait(c, has_come, &w, ms))
        fail_msg("no event of kind %d number %zu for job %llu attempt %u within %lld ms", kind, n,
                 (unsigned long long)job, attempt, (long long)ms);
    return conform_find(c, kind, job, attempt, n);
}

void conform_forget_events(struct conform *c)
{
    c->events_len = 0;
}

void conform_prepare(struct conform *c, struct conform_launch *l, uint64_t job, uint32_t attempt, uint32_t workers,
                     enum conform_job what)
{
    *l = (struct conform_launch){0};
    assert_true(workers >= 1 && workers <= 16);
    memcpy(l->spec.name, "conform", sizeof "conform");
    memcpy(l->spec.user, "tester", sizeof "tester");
    l->spec.uid = geteuid();
    l->spec.gid = getegid();
    l->spec.workers = workers;
    l->spec.cwd = (char *)"/";
    c->fixture->describe(what, &l->spec);
    l->launch = (struct engine_launch){
        .job = job,
        .attempt = attempt,
        .spec = &l->spec,
        .workers = l->workers,
        .workers_len = workers,
        .grace_ms = 2000,
        .log_bytes_max = 1 << 20,
        .log_files_kept = 2,
    };
    for (uint32_t i = 0; i < workers; i++)
        l->workers[i] = (struct engine_worker){.rank = i, .node = c->node.name};
}

void conform_start(struct conform *c, const struct conform_launch *l)
{
    struct err e = {0};
    c->inside = true;
    int r = c->engine->ops->launch(c->engine, &l->launch, &e);
    c->inside = false;
    if (r < 0)
        fail_msg("launch: %s", e.text);
}

void conform_terminate(struct conform *c, uint64_t job, uint32_t attempt, int64_t grace_ms)
{
    struct err e = {0};
    c->inside = true;
    int r = c->engine->ops->terminate(c->engine, job, attempt, grace_ms, &e);
    c->inside = false;
    if (r < 0)
        fail_msg("terminate: %s", e.text);
}

void conform_reconcile(struct conform *c, const struct engine_expected *expected, uint32_t len)
{
    struct err e = {0};
    size_t had = 0;
    while (conform_find(c, ENGINE_RECONCILED, 0, 0, had) != NULL)
        had++;
    c->inside = true;
    int r = c->engine->ops->reconcile(c->engine, expected, len, &e);
    c->inside = false;
    if (r < 0)
        fail_msg("reconcile: %s", e.text);
    (void)conform_expect(c, ENGINE_RECONCILED, 0, 0, had, WAIT_MS);
}

static void check_node(const struct conform *c)
{
    assert_true(c->node.name[0] != '\0');
    assert_true(c->node.cpu_milli >= 1000);
    assert_true(c->node.mem_mib > 0);
    assert_true(c->node.gpus_len <= 16);
    for (uint32_t i = 0; i < c->node.gpus_len; i++) {
        assert_true(c->node.gpus[i].uuid[0] != '\0');
        assert_true(c->node.gpus[i].mem_mib > 0);
        for (uint32_t k = 0; k < c->node.gpus_len; k++) {
            assert_int_equal(c->node.link[i][k], c->node.link[k][i]);
            assert_int_equal(c->node.link[i][k] == 0, i == k);
        }
    }
}

static void ends_by_itself(struct conform *c, uint64_t job, enum conform_job what, int code)
{
    struct conform_launch l;
    conform_prepare(c, &l, job, 1, 2, what);
    conform_start(c, &l);
    conform_start(c, &l); /* asking twice is the same as asking once */
    (void)conform_expect(c, ENGINE_EXITED, job, 1, 1, WAIT_MS);
    const struct conform_event *started = conform_find(c, ENGINE_STARTED, job, 1, 0);
    assert_non_null(started);
    assert_null(conform_find(c, ENGINE_STARTED, job, 1, 1));
    bool seen[2] = {false, false};
    for (size_t i = 0; i < 2; i++) {
        const struct conform_event *x = conform_find(c, ENGINE_EXITED, job, 1, i);
        assert_true(x > started);
        assert_true(x->ev.rank < 2 && !seen[x->ev.rank]);
        seen[x->ev.rank] = true;
        assert_int_equal(x->ev.code, code);
        assert_int_equal(x->ev.signal, 0);
        assert_int_equal(x->ev.cause, ENGINE_EXIT_NORMAL);
        assert_true(x->ev.time_ms >= started->ev.time_ms);
    }
    conform_start(c, &l); /* nor does it run again after its end */
    (void)conform_wait(c, is_closed, NULL, 100);
    assert_null(conform_find(c, ENGINE_EXITED, job, 1, 2));
    assert_null(conform_find(c, ENGINE_STARTED, job, 1, 1));
}

static void is_terminated(struct conform *c, uint64_t job, enum conform_job what, int64_t grace_ms, int signal)
{
    struct conform_launch l;
    conform_prepare(c, &l, job, 1, 1, what);
    conform_start(c, &l);
    (void)conform_expect(c, ENGINE_STARTED, job, 1, 0, WAIT_MS);
    (void)conform_wait(c, is_closed, NULL, 300); /* it gets ready to ignore signals */
    int64_t before = clock_mono_ms();
    conform_terminate(c, job, 1, grace_ms);
    const struct conform_event *x = conform_expect(c, ENGINE_EXITED, job, 1, 0, WAIT_MS);
    assert_int_equal(x->ev.signal, signal);
    assert_int_equal(x->ev.code, -1);
    assert_int_equal(x->ev.cause, ENGINE_EXIT_NORMAL);
    if (signal == SIGKILL)
        assert_true(clock_mono_ms() - before >= grace_ms - 50);
    conform_terminate(c, job, 1, 0); /* of one that has ended: nothing */
    c->engine->ops->forget(c->engine, job, 1);
}

static void terminate_asked_early(struct conform *c, uint64_t job)
{
    struct conform_launch l;
    conform_prepare(c, &l, job, 1, 1, CONFORM_LONG);
    conform_start(c, &l);
    conform_terminate(c, job, 1, 0); /* before it runs */
    (void)conform_expect(c, ENGINE_EXITED, job, 1, 0, WAIT_MS);
}

static void unknown_is_said(struct conform *c)
{
    struct err e = {0};
    char path[4096];
    assert_int_equal(c->engine->ops->terminate(c->engine, 99, 7, 0, &e), -ENOENT);
    assert_true(e.text[0] != '\0');
    assert_int_equal(c->engine->ops->log_path(c->engine, 99, 7, 0, false, path, sizeof path), -ENOENT);
    c->engine->ops->forget(c->engine, 99, 7); /* nothing happens */
}

static void reconciled_after_restart(struct conform *c)
{
    struct conform_launch running, ended, never;
    conform_prepare(c, &running, 20, 2, 1, CONFORM_LONG);
    conform_start(c, &running);
    conform_prepare(c, &ended, 21, 1, 1, CONFORM_FAILS);
    conform_start(c, &ended);
    (void)conform_expect(c, ENGINE_EXITED, 21, 1, 0, WAIT_MS);
    const struct conform_event *started = conform_expect(c, ENGINE_STARTED, 20, 2, 0, WAIT_MS);
    int64_t started_ms = started->ev.time_ms, ended_started = conform_find(c, ENGINE_STARTED, 21, 1, 0)->ev.time_ms;
    conform_prepare(c, &never, 22, 1, 1, CONFORM_LONG);
    if (c->fixture->survives_close) {
        conform_close(c);
        conform_reopen(c);
    }
    conform_forget_events(c);
    struct engine_expected expected[] = {
        {.launch = running.launch, .started_ms = started_ms},
        {.launch = ended.launch, .started_ms = ended_started},
        {.launch = never.launch},
    };
    conform_reconcile(c, expected, c->fixture->survives_close ? 3 : 2);
    assert_non_null(conform_find(c, ENGINE_NODE, 0, 0, 0));
    const struct conform_event *last = conform_find(c, ENGINE_RECONCILED, 0, 0, 0);
    const struct conform_event *again = conform_find(c, ENGINE_STARTED, 20, 2, 0);
    const struct conform_event *exit = conform_find(c, ENGINE_EXITED, 21, 1, 0);
    assert_true(again != NULL && again < last);
    assert_int_equal(again->ev.time_ms, started_ms);
    assert_true(exit != NULL && exit < last);
    assert_int_equal(exit->ev.code, 3);
    assert_null(conform_find(c, ENGINE_EXITED, 20, 2, 0));
    assert_null(conform_find(c, ENGINE_STARTED, 22, 1, 0));
    conform_terminate(c, 20, 2, 0);
    (void)conform_expect(c, ENGINE_EXITED, 20, 2, 0, WAIT_MS);
}

void engine_conformance(const struct conform_fixture *f)
{
    struct conform c;
    conform_open(&c, f);
    conform_reconcile(&c, NULL, 0);
    check_node(&c);
    ends_by_itself(&c, 1, CONFORM_QUICK, 0);
    ends_by_itself(&c, 2, CONFORM_FAILS, 3);
    is_terminated(&c, 3, CONFORM_LONG, 10000, SIGTERM);
    is_terminated(&c, 4, CONFORM_IGNORES_TERM, 500, SIGKILL);
    is_terminated(&c, 5, CONFORM_LONG, 0, SIGKILL);
    terminate_asked_early(&c, 6);
    unknown_is_said(&c);
    reconciled_after_restart(&c);
    struct conform_launch l;
    conform_prepare(&c, &l, 7, 1, 1, CONFORM_QUICK);
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_EXITED, 7, 1, 0, WAIT_MS);
    char path[4096];
    int r = c.engine->ops->log_path(c.engine, 7, 1, 0, false, path, sizeof path);
    assert_int_equal(r, f->keeps_logs ? 0 : -ENOENT);
    c.engine->ops->forget(c.engine, 7, 1);
    c.engine->ops->forget(c.engine, 7, 1);
    r = c.engine->ops->log_path(c.engine, 7, 1, 0, false, path, sizeof path);
    assert_int_equal(r, f->keeps_logs ? 0 : -ENOENT); /* logs stay */
    conform_done(&c);
}
