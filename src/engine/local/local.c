/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local engine: real processes on this machine. It starts a remuda-runner for each attempt and listens to it; it
 * owns no process of a job itself. What a runner said is on disk before it is said, so that everything can be found
 * again after this process was killed: see abi/runner.h for the files, attempt.c for an attempt's phases, recover.c
 * for what happens after a restart.
 *
 * Everything that is told goes through a queue and a timer of 0 ms, so that no callback comes from inside a call.
 * File work is done in the loop: small files in one folder, without a sync (the runner does the syncs, in its own
 * process).
 */
#include "engine/local/local.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS      5
#define TELEMETRY_MS 1000

/* --- the table of attempts --- */

struct attempt *local_find(const struct local *l, uint64_t job, uint32_t attempt)
{
    struct attempt *a = job == 0 ? NULL : idmap_get(&l->jobs, job);
    while (a != NULL && a->attempt != attempt)
        a = a->same_job;
    return a;
}

static void free_attempt(struct attempt *a)
{
    runner_status_done(&a->status);
    mem_free(a->ranks);
    mem_free(a->exits);
    mem_free(a->ended);
    mem_free(a);
}

struct attempt *local_add(struct local *l, uint64_t job, uint32_t attempt, uint32_t workers)
{
    char dir[PATH_MAX];
    int len = snprintf(dir, sizeof dir, "%s/jobs/%" PRIu64 "/%" PRIu32, l->state_dir, job, attempt);
    struct attempt *a = mem_alloc(1, sizeof *a + (size_t)len + 1);
    if (a == NULL)
        return NULL;
    memcpy(a->dir, dir, (size_t)len + 1);
    a->job = job;
    a->attempt = attempt;
    a->workers = workers;
    a->phase = PHASE_ENDED;
    a->term_ms = -1;
    a->ranks = mem_alloc(workers, sizeof *a->ranks);
    a->exits = mem_alloc(workers, sizeof *a->exits);
    a->ended = mem_alloc(workers, sizeof *a->ended);
    a->same_job = idmap_get(&l->jobs, job);
    if (a->ranks == NULL || a->exits == NULL || a->ended == NULL || idmap_put(&l->jobs, job, a) < 0) {
        free_attempt(a);
        return NULL;
    }
    a->next = l->all;
    if (l->all != NULL)
        l->all->prev = a;
    l->all = a;
    return a;
}

void local_drop(struct local *l, struct attempt *a)
{
    attempt_unlink(a);
    local_set_busy(l, a, false);
    struct attempt *head = idmap_get(&l->jobs, a->job);
    if (head == a && a->same_job == NULL) {
        (void)idmap_remove(&l->jobs, a->job);
    } else if (head == a) {
        (void)idmap_put(&l->jobs, a->job, a->same_job); /* replaces: needs no memory */
    } else {
        while (head->same_job != a)
            head = head->same_job;
        head->same_job = a->same_job;
    }
    if (a->prev != NULL)
        a->prev->next = a->next;
    else
        l->all = a->next;
    if (a->next != NULL)
        a->next->prev = a->prev;
    free_attempt(a);
}

/* --- telling --- */

static void on_tell(uv_timer_t *timer)
{
    struct local *l = timer->data;
    while (l->first != NULL && !l->closing) {
        struct message *m = l->first;
        l->first = m->next;
        if (l->first == NULL)
            l->last = NULL;
        if (m->event.kind == ENGINE_NODE)
            m->event.node = l->node;
        if (m->event.kind == ENGINE_NODE || m->event.kind == ENGINE_TELEMETRY)
            m->event.node_name = l->node->name;
        m->event.detail = m->detail[0] != '\0' ? m->detail : NULL;
        l->cb(l->cb_arg, &m->event);
        mem_free(m);
    }
}

/* Without memory for a message nothing can be told; the daemon finds it on disk after a restart. */
static void tell(struct local *l, const struct engine_event *ev, const char *detail)
{
    struct message *m = mem_alloc(1, sizeof *m);
    if (m == NULL)
        return;
    m->event = *ev;
    (void)snprintf(m->detail, sizeof m->detail, "%s", detail != NULL ? detail : "");
    if (l->last != NULL)
        l->last->next = m;
    else
        l->first = m;
    l->last = m;
    (void)uv_timer_start(&l->tell_timer, on_tell, 0, 0);
}

void local_tell_started(struct local *l, struct attempt *a)
{
    if (a->stray)
        return;
    struct engine_event ev = {.kind = ENGINE_STARTED, .time_ms = a->started_ms, .job = a->job, .attempt = a->attempt};
    tell(l, &ev, a->note);
}

void local_tell_exit(struct local *l, struct attempt *a, const struct runner_exit *x)
{
    static const enum engine_exit_cause causes[] = {
        [RUNNER_NORMAL] = ENGINE_EXIT_NORMAL,
        [RUNNER_OOM] = ENGINE_EXIT_OOM,
        [RUNNER_LAUNCH_FAILED] = ENGINE_EXIT_LAUNCH_FAILED,
        [RUNNER_LOST] = ENGINE_EXIT_LOST,
    };
    if (a->stray)
        return;
    struct engine_event ev = {
        .kind = ENGINE_EXITED,
        .time_ms = x->time_ms,
        .job = a->job,
        .attempt = a->attempt,
        .rank = x->rank,
        .code = x->code,
        .signal = x->signal,
        .cause = causes[x->cause],
        .core_dumped = x->core,
        .peak_mem_mib = x->peak_mem_mib,
        .cpu_ms = x->cpu_ms,
    };
    tell(l, &ev, x->detail);
}

static void tell_node(struct local *l)
{
    cards_describe(l->cards, l->node);
    struct engine_event ev = {.kind = ENGINE_NODE, .time_ms = clock_wall_ms()};
    tell(l, &ev, l->plan.note);
}

/* RECONCILED, once nothing is open any more. */
static void check_reconciled(struct local *l)
{
    if (!l->reconcile_runs)
        return;
    for (const struct attempt *a = l->all; a != NULL; a = a->next)
        if (a->reconciling)
            return;
    l->reconcile_runs = false;
    l->reconciled = true;
    struct engine_event ev = {.kind = ENGINE_RECONCILED, .time_ms = clock_wall_ms()};
    tell(l, &ev, NULL);
}

void local_settled(struct local *l, struct attempt *a)
{
    if (!a->reconciling || (a->stray && a->phase != PHASE_ENDED))
        return;
    a->reconciling = false;
    check_reconciled(l);
}

/* --- timers and signals --- */

static void on_busy(uv_timer_t *timer)
{
    struct local *l = timer->data;
    for (struct attempt *a = l->busy, *next; a != NULL; a = next) {
        next = a->busy_next;
        attempt_step(l, a);
    }
    if (l->busy == NULL)
        (void)uv_timer_stop(&l->busy_timer);
}

void local_set_busy(struct local *l, struct attempt *a, bool busy)
{
    if (a->busy == busy)
        return;
    a->busy = busy;
    if (busy) {
        a->busy_prev = NULL;
        a->busy_next = l->busy;
        if (l->busy != NULL)
            l->busy->busy_prev = a;
        l->busy = a;
        if (!l->closing && !uv_is_active((uv_handle_t *)&l->busy_timer))
            (void)uv_timer_start(&l->busy_timer, on_busy, BUSY_MS, BUSY_MS);
        return;
    }
    if (a->busy_prev != NULL)
        a->busy_prev->busy_next = a->busy_next;
    else
        l->busy = a->busy_next;
    if (a->busy_next != NULL)
        a->busy_next->busy_prev = a->busy_prev;
}

static void on_telemetry(uv_timer_t *timer)
{
    struct local *l = timer->data;
    if (!l->reconciled)
        return;
    struct engine_event ev = {.kind = ENGINE_TELEMETRY, .time_ms = clock_wall_ms(), .node_name = l->node->name};
    bool changed = cards_sample(l->cards, &ev.samples, &ev.samples_len, &ev.source);
    if (changed)
        tell_node(l);
    if (ev.samples_len > 0)
        l->cb(l->cb_arg, &ev); /* from a timer of its own: not inside a call */
}

static void on_child(uv_signal_t *handle, int signum)
{
    (void)signum;
    launch_reap(handle->data);
}

/* --- operations --- */

static int op_reconcile(struct engine *engine, const struct engine_expected *expected, uint32_t len, struct err *e)
{
    struct local *l = (struct local *)engine;
    (void)e;
    for (struct attempt *a = l->all; a != NULL; a = a->next) {
        a->expected = false;
        a->reconciling = a->stray && a->phase != PHASE_ENDED;
    }
    l->reconcile_runs = true;
    tell_node(l);
    for (uint32_t i = 0; i < len; i++) {
        const struct engine_launch *launch = &expected[i].launch;
        struct attempt *a = local_find(l, launch->job, launch->attempt);
        if (a == NULL) {
            a = recover_attempt(l, launch->job, launch->attempt); /* tells what it finds */
        } else {
            if (a->started_ms != 0)
                local_tell_started(l, a);
            for (uint32_t k = 0; k < a->workers; k++)
                if (a->ended[k])
                    local_tell_exit(l, a, &a->exits[k]);
        }
        if (a == NULL)
            continue;
        a->expected = true;
        a->reconciling = a->phase == PHASE_CONNECTING || a->phase == PHASE_CHECKING || a->phase == PHASE_KILLING;
        if (expected[i].stopping && a->phase != PHASE_ENDED)
            attempt_terminate(a, launch->grace_ms);
    }
    recover_strays(l);
    check_reconciled(l);
    return 0;
}

static int op_launch(struct engine *engine, const struct engine_launch *launch, struct err *e)
{
    return launch_attempt((struct local *)engine, launch, e);
}

static int unknown(struct err *e, uint64_t job, uint32_t attempt)
{
    return err_set(e, -ENOENT, "job %" PRIu64 " attempt %" PRIu32 ": not known", job, attempt);
}

static int op_terminate(struct engine *engine, uint64_t job, uint32_t attempt, int64_t grace_ms, struct err *e)
{
    struct attempt *a = local_find((struct local *)engine, job, attempt);
    if (a == NULL)
        return unknown(e, job, attempt);
    if (a->phase != PHASE_ENDED)
        attempt_terminate(a, grace_ms < 0 ? 0 : grace_ms);
    return 0;
}

static int op_signal(struct engine *engine, uint64_t job, uint32_t attempt, int signal, struct err *e)
{
    struct attempt *a = local_find((struct local *)engine, job, attempt);
    if (a == NULL)
        return unknown(e, job, attempt);
    if (signal < 1 || signal > 64)
        return err_set(e, -EINVAL, "signal %d: allowed are 1 to 64", signal);
    char text[32];
    (void)snprintf(text, sizeof text, "signal %d\n", signal);
    attempt_send(a, text);
    return 0;
}

static int op_log_path(struct engine *engine, uint64_t job, uint32_t attempt, uint32_t rank, bool stderr_file,
                       char *ret, size_t size)
{
    const struct local *l = (const struct local *)engine;
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/jobs/%" PRIu64 "/%" PRIu32 "/worker-%" PRIu32 ".%s", l->state_dir, job,
                     attempt, rank, stderr_file ? "err" : "out");
    if (n < 0 || (size_t)n >= size)
        return -ENAMETOOLONG;
    if (access(path, F_OK) < 0)
        return -ENOENT;
    memcpy(ret, path, (size_t)n + 1);
    return 0;
}

static void op_forget(struct engine *engine, uint64_t job, uint32_t attempt)
{
    struct local *l = (struct local *)engine;
    struct attempt *a = local_find(l, job, attempt);
    if (a == NULL)
        return;
    if (a->phase != PHASE_ENDED) { /* not asked for any more */
        a->stray = true;
        attempt_terminate(a, 0);
        return;
    }
    recover_tidy(l, a);
    local_drop(l, a);
}

/* --- opening and closing --- */

static void free_local(struct local *l)
{
    while (l->all != NULL)
        local_drop(l, l->all);
    while (l->first != NULL) {
        struct message *m = l->first;
        l->first = m->next;
        mem_free(m);
    }
    cards_free(l->cards);
    idmap_done(&l->jobs);
    mem_free(l->node);
    mem_free(l->spawned);
    mem_free(l->state_dir);
    mem_free(l->runner_path);
    mem_free(l->simgpu_lib);
    mem_free(l->plan_text);
    mem_free(l);
}

void local_handle_closed(struct local *l)
{
    l->handles--;
    if (!l->closing || l->handles > 0)
        return;
    void (*closed)(void *arg) = l->closed;
    void *arg = l->closed_arg;
    free_local(l);
    if (closed != NULL)
        closed(arg);
}

static void on_closed(uv_handle_t *handle)
{
    local_handle_closed(handle->data);
}

static void op_close(struct engine *engine, void (*closed)(void *arg), void *arg)
{
    struct local *l = (struct local *)engine;
    if (l->closing)
        return;
    l->closing = true;
    l->closed = closed;
    l->closed_arg = arg;
    bool idle = true;
    for (struct attempt *a = l->all; a != NULL; a = a->next) {
        idle = idle && a->phase == PHASE_ENDED;
        attempt_unlink(a);
    }
    if (idle)
        cgroup_release(&l->plan); /* what is in use stays */
    uv_close((uv_handle_t *)&l->tell_timer, on_closed);
    uv_close((uv_handle_t *)&l->busy_timer, on_closed);
    uv_close((uv_handle_t *)&l->telemetry_timer, on_closed);
    uv_close((uv_handle_t *)&l->child_signal, on_closed);
}

static const struct engine_ops local_ops = {
    .name = "local",
    .reconcile = op_reconcile,
    .launch = op_launch,
    .terminate = op_terminate,
    .signal = op_signal,
    .log_path = op_log_path,
    .forget = op_forget,
    .close = op_close,
};

static char *real_path(const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = real != NULL ? mem_strdup(real) : NULL;
    free(real); /* libc's, not base/mem.h's */
    return copy;
}

static int take_paths(struct local *l, const struct engine_options *o, struct err *e)
{
    char path[PATH_MAX];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", o->state_dir, i == 0 ? "jobs" : "run");
        int r = dir_make(path, 0711, e);
        if (r < 0)
            return r;
        (void)chmod(path, i == 0 ? 0711 : 0700);
    }
    int r = 0;
    l->state_dir = real_path(o->state_dir);
    if (o->runner_path != NULL)
        l->runner_path = mem_strdup(o->runner_path);
    else
        r = process_sibling_path("remuda-runner", &l->runner_path, e);
    if (r < 0)
        return r;
    if (o->simgpu_dir != NULL)
        l->simgpu_lib = real_path(o->simgpu_dir);
    if (o->simgpu_dir != NULL && l->simgpu_lib == NULL)
        return err_set(e, -ENOENT, "folder of the simulated cards' libraries %s: not found", o->simgpu_dir);
    if (l->state_dir == NULL || l->runner_path == NULL)
        return err_set(e, -ENOMEM, "no memory for the local engine");
    if (strlen(l->state_dir) > PATH_MAX - 128)
        return err_set(e, -ENAMETOOLONG, "state folder %.100s...: the path is too long", l->state_dir);
    return access(l->runner_path, X_OK) == 0
               ? 0
               : err_set(e, -errno, "remuda-runner at %s: %s", l->runner_path, strerror(errno));
}

static int describe_host(struct local *l, const struct engine_options *o, struct err *e)
{
    struct strbuf text = {0};
    int r = cgroup_probe(o->cgroups, l->state_dir, &l->plan, e);
    if (r < 0)
        return r;
    cgroup_plan_write(&l->plan, &text);
    l->plan_text = strbuf_take(&text);
    l->node = mem_alloc(1, sizeof *l->node);
    if (l->plan_text == NULL || l->node == NULL)
        return err_set(e, -ENOMEM, "no memory for the local engine");
    runner_state_key(l->state_dir, l->key);
    host_name(l->node->name, sizeof l->node->name);
    l->node->cpu_milli = host_cpu_milli();
    l->node->mem_mib = host_mem_mib();
    return cards_open(o->preset, l->state_dir, l->simgpu_lib, &l->cards, e);
}

static void start_handles(struct local *l)
{
    (void)uv_timer_init(l->loop, &l->tell_timer);
    (void)uv_timer_init(l->loop, &l->busy_timer);
    (void)uv_timer_init(l->loop, &l->telemetry_timer);
    (void)uv_signal_init(l->loop, &l->child_signal);
    l->tell_timer.data = l->busy_timer.data = l->telemetry_timer.data = l->child_signal.data = l;
    l->handles = 4;
    (void)uv_timer_start(&l->telemetry_timer, on_telemetry, TELEMETRY_MS, TELEMETRY_MS);
    (void)uv_signal_start(&l->child_signal, on_child, SIGCHLD);
}

int local_engine_open(const struct engine_options *o, struct engine **ret, struct err *e)
{
    struct local *l = mem_alloc(1, sizeof *l);
    if (l == NULL)
        return err_set(e, -ENOMEM, "no memory for the local engine");
    l->engine.ops = &local_ops;
    l->loop = o->loop;
    l->cb = o->cb;
    l->cb_arg = o->cb_arg;
    idmap_init(&l->jobs);
    int r = take_paths(l, o, e);
    if (r == 0)
        r = describe_host(l, o, e);
    if (r < 0) {
        free_local(l);
        return r;
    }
    start_handles(l);
    *ret = &l->engine;
    return 0;
}
