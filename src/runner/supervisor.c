/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a worker:
 *
 *     NEW --forked--> LAUNCHING --execed--> RUNNING --ended--> SWEEPING --empty--> DONE
 *                                              \--ended while stopping--> LINGERING --kill--> SWEEPING
 *
 * The main process of a worker decides when the worker is over: what it leaves behind is killed. Only when the
 * attempt is being stopped the rest keeps its grace time: a shell ends at SIGTERM at once while the program under it
 * still writes its checkpoint.
 *
 * Started is said once, when every worker's exec worked; before that no exit is told. When one worker can't be
 * started the others are killed and all are reported as not started.
 *
 * An exit is told after its line is on disk; lines that become ready together are synced together.
 */
#include "runner/supervisor.h"

#include "abi/runner.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/log.h"
#include "base/sys/process.h"
#include "runner/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SWEEP_MS  5
#define LINGER_MS 20
#define OOM_MS    500 /* how long the kernel's counter is watched after it announced an event */

static bool tracked(const struct supervisor *s)
{
    return s->plan.role[CGROUP_TRACK].version != CGROUP_NONE;
}

int supervisor_write_status(struct supervisor *s, const char *state, bool durable, struct err *e)
{
    struct runner_status st = {.pid = getpid(), .started_ms = s->started_ms};
    (void)snprintf(s->state, sizeof s->state, "%s", state);
    (void)snprintf(st.state, sizeof st.state, "%s", state);
    (void)snprintf(st.note, sizeof st.note, "%s", s->note);
    (void)process_start_ticks(getpid(), &st.start_ticks);
    process_boot_id(st.boot);
    st.cgroup = mem_strdup(s->spec.cgroup);
    for (size_t i = 0; i < s->workers_len; i++) {
        if (s->workers[i].pid == 0 ||
            mem_grow(&st.workers, &st.workers_cap, st.workers_len + 1, sizeof *st.workers) < 0)
            continue;
        st.workers[st.workers_len++] = (struct runner_process){
            .rank = s->workers[i].spec->rank, .pid = s->workers[i].pid, .start_ticks = s->workers[i].start_ticks};
    }
    struct strbuf text = {0};
    runner_status_write(&st, &text);
    int r = text.failed ? err_set(e, -ENOMEM, "no memory for the status")
                        : file_write_atomic(RUNNER_FILE_STATUS, text.data, text.len, 0644, FILE_SYNC_NO, e);
    if (r == 0 && durable) /* that it is there says that this attempt had a life; the words are for the living */
        r = dir_sync(".", e);
    strbuf_done(&text);
    runner_status_done(&st);
    return r;
}

/* --- starting --- */

static void fail(struct worker *w, const char *why)
{
    w->exit.cause = RUNNER_LAUNCH_FAILED;
    w->exit.code = -1;
    (void)snprintf(w->exit.detail, sizeof w->exit.detail, "%s", why);
}

static int open_stream(struct supervisor *s, struct worker *w, int which, int *ret_write_fd, struct err *e)
{
    char name[32];
    (void)snprintf(name, sizeof name, "worker-%" PRIu32 ".%s", w->spec->rank, which == 0 ? "out" : "err");
    struct stream *stream = &w->streams[which];
    int r = output_open(&stream->out, name, s->identity.uid, s->identity.gid, s->spec.log_bytes, s->spec.log_files, e);
    if (r < 0) /* a full disk does not keep a job from running: its output is counted as lost */
        log_warn("output file can't be opened", "name=%s", name);
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        int code = -errno;
        return err_set(e, code, "pipe: %s", strerror(-code));
    }
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    stream->fd = fds[0];
    *ret_write_fd = fds[1];
    return loop_watch(s, fds[0], which == 0 ? SOURCE_OUTPUT : SOURCE_ERROR, (size_t)(w - s->workers), false);
}

/* The variables, so that the launch of one worker fits one function. */
static int fork_worker(struct supervisor *s, struct worker *w, const int cgroup_fds[], const int out_fds[],
                       struct err *e)
{
    struct environment env;
    int r = environment_build(&s->spec, (uint32_t)(w - s->workers), s->master_port, &env);
    if (r < 0)
        return err_set(e, r, "no memory for the environment");
    struct launch l = {
        .spec = &s->spec,
        .identity = &s->identity,
        .script = s->script,
        .env = env.list,
        .cgroup_fds = cgroup_fds,
        .stdout_fd = out_fds[0],
        .stderr_fd = out_fds[1],
        .open_files = &s->open_files,
    };
    pid_t pid = worker_fork(&l, &w->exec_pipe, e);
    environment_done(&env);
    if (pid < 0)
        return pid;
    w->pid = pid;
    (void)process_start_ticks(pid, &w->start_ticks);
    (void)fcntl(w->exec_pipe, F_SETFL, O_NONBLOCK);
    return loop_watch(s, w->exec_pipe, SOURCE_EXEC, (size_t)(w - s->workers), false);
}

static int start_worker(struct supervisor *s, struct worker *w, struct err *e)
{
    int cgroup_fds[CGROUP_ROLES] = {-1, -1, -1}, out_fds[2] = {-1, -1};
    struct cgroup_limits limits = {.cpu_milli = w->spec->cpu_milli, .mem_mib = w->spec->mem_mib};
    int r = cgroup_make_worker(&s->plan, s->name, w->spec->rank, &limits, cgroup_fds, e);
    for (int i = 0; i < 2 && r == 0; i++)
        r = open_stream(s, w, i, &out_fds[i], e);
    if (r == 0 && w->spec->mem_mib > 0) {
        w->oom_fd = cgroup_oom_fd(&s->plan, s->name, w->spec->rank);
        if (w->oom_fd >= 0)
            r = loop_watch(s, w->oom_fd, SOURCE_OOM, (size_t)(w - s->workers), false);
    }
    if (r == 0)
        r = fork_worker(s, w, cgroup_fds, out_fds, e);
    for (int i = 0; i < 2; i++)
        if (out_fds[i] >= 0)
            close(out_fds[i]);
    for (int i = 0; i < CGROUP_ROLES; i++)
        if (cgroup_fds[i] >= 0)
            close(cgroup_fds[i]);
    return r;
}

static void launch_failed(struct supervisor *s)
{
    if (s->launch_failed)
        return;
    s->launch_failed = true;
    supervisor_stop(s, 0);
}

void supervisor_launch(struct supervisor *s)
{
    struct err e = {0};
    int r = cgroup_make(&s->plan, s->name, &e);
    for (size_t i = 0; i < s->workers_len; i++) {
        struct worker *w = &s->workers[i];
        if (r == 0 && !s->launch_failed)
            r = start_worker(s, w, &e);
        if (w->pid != 0) {
            supervisor_event(s, w, EVENT_FORKED);
            continue;
        }
        fail(w, e.text);
        supervisor_event(s, w, EVENT_ENDED);
        launch_failed(s);
    }
    (void)supervisor_write_status(s, RUNNER_STATE_STARTING, false, NULL);
}

static void check_started(struct supervisor *s)
{
    if (s->started_ms != 0 || s->launch_failed)
        return;
    for (size_t i = 0; i < s->workers_len; i++)
        if (!s->workers[i].execed)
            return;
    s->started_ms = clock_wall_ms();
    if (!s->stopping)
        (void)supervisor_write_status(s, RUNNER_STATE_RUNNING, false, NULL);
    struct strbuf line = {0};
    strbuf_printf(&line, "started %" PRId64 " %s\n", s->started_ms, s->note);
    channel_tell(s, strbuf_str(&line), line.len);
    strbuf_done(&line);
}

void supervisor_exec_result(struct supervisor *s, struct worker *w)
{
    struct launch_failure f;
    ssize_t n = read(w->exec_pipe, &f, sizeof f);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close(w->exec_pipe);
    w->exec_pipe = -1;
    if (n == (ssize_t)sizeof f) {
        struct launch l = {.spec = &s->spec, .identity = &s->identity, .script = s->script};
        worker_explain(&l, &f, &w->exit);
        launch_failed(s);
        return;
    }
    supervisor_event(s, w, EVENT_EXECED);
}

/* --- the end --- */

/* One kill step; true when nothing of the worker is left. The last one to end sweeps whatever descends from us. */
static bool sweep(struct supervisor *s, const struct worker *w)
{
    bool last = s->done + 1 == s->workers_len;
    bool empty = tracked(s) ? cgroup_kill_step(&s->plan, s->name, w->spec->rank)
                            : w->pid == 0 || tree_kill_step(last ? CGROUP_ALL : w->spec->rank, w->pid);
    supervisor_reap(s);
    if (!empty || !last)
        return empty;
    if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) /* nobody, inside a cgroup or out of it */
        return true;
    return tree_kill_step(CGROUP_ALL, 0);
}

/* True when nothing of the worker is left; kills nothing. */
static bool look(struct supervisor *s, const struct worker *w)
{
    supervisor_reap(s);
    if (tracked(s))
        return cgroup_empty(&s->plan, s->name, w->spec->rank);
    struct tree t;
    if (tree_read(&t) < 0)
        return false;
    size_t living = tree_mark_descendants(&t, getpid());
    if (s->workers_len > 1)
        living = tree_keep_worker(&t, w->spec->rank, w->pid);
    tree_done(&t);
    return living == 0;
}

static void act_none(struct supervisor *s, struct worker *w)
{
    (void)s;
    (void)w;
}

static void act_execed(struct supervisor *s, struct worker *w)
{
    w->execed = true;
    check_started(s);
}

static void act_kill(struct supervisor *s, struct worker *w)
{
    if (tracked(s)) {
        (void)cgroup_kill_step(&s->plan, s->name, w->spec->rank);
        return;
    }
    if (w->state < WORKER_LINGERING && w->pid > 0)
        (void)kill(w->pid, SIGKILL); /* not reaped yet: the number is its own */
    (void)tree_kill_step(w->spec->rank, w->pid);
}

static void signal_all(struct supervisor *s, uint32_t rank, int signal)
{
    if (tracked(s)) {
        (void)cgroup_signal(&s->plan, s->name, rank, signal);
        return;
    }
    struct tree t;
    if (tree_read(&t) < 0)
        return;
    (void)tree_mark_descendants(&t, getpid());
    if (rank != CGROUP_ALL && s->workers_len > 1) {
        const struct worker *w = s->workers;
        while (w->spec->rank != rank)
            w++;
        (void)tree_keep_worker(&t, rank, w->pid);
    }
    (void)tree_signal(&t, signal);
    tree_done(&t);
}

static void act_stop(struct supervisor *s, struct worker *w)
{
    signal_all(s, w->spec->rank, SIGTERM);
    signal_all(s, w->spec->rank, SIGCONT); /* a stopped process can't answer */
}

static void judge_oom(struct worker *w, const struct cgroup_usage *u)
{
    struct runner_exit *x = &w->exit;
    if (u->oom_kills == 0)
        return;
    if (x->code != 0 || x->signal != 0) {
        x->cause = RUNNER_OOM;
        (void)snprintf(x->detail, sizeof x->detail, "out of memory: the limit of the worker is %" PRIu64 " MiB",
                       w->spec->mem_mib);
    } else {
        (void)snprintf(x->detail, sizeof x->detail, "%" PRIu64 " of its processes ran out of memory", u->oom_kills);
    }
}

/* Nothing of it is left: figures, output, record. */
static void act_record(struct supervisor *s, struct worker *w)
{
    struct cgroup_usage u;
    struct runner_exit *x = &w->exit;
    cgroup_usage_read(&s->plan, s->name, w->spec->rank, &u);
    if (u.peak_mem_mib > 0)
        x->peak_mem_mib = u.peak_mem_mib;
    if (u.cpu_ms > x->cpu_ms)
        x->cpu_ms = u.cpu_ms;
    if (x->cause == RUNNER_NORMAL)
        judge_oom(w, &u);
    for (int i = 0; i < 2; i++) {
        if (w->streams[i].fd >= 0)
            loop_drain(&w->streams[i], true);
        output_close(&w->streams[i].out);
        x->output_lost += w->streams[i].out.lost;
    }
    if (w->oom_fd >= 0)
        close(w->oom_fd);
    w->oom_fd = -1;
    if (x->time_ms == 0)
        x->time_ms = clock_wall_ms();
    s->done++;
}

static const struct transition {
    enum worker_state next;
    void (*act)(struct supervisor *s, struct worker *w);
} table[WORKER_STATES][WORKER_EVENTS] = {
    [WORKER_NEW] =
        {
            [EVENT_FORKED] = {WORKER_LAUNCHING, act_none},
            [EVENT_ENDED] = {WORKER_SWEEPING, act_none},
        },
    [WORKER_LAUNCHING] =
        {
            [EVENT_EXECED] = {WORKER_RUNNING, act_execed},
            [EVENT_ENDED] = {WORKER_SWEEPING, act_none},
            [EVENT_STOP] = {WORKER_LAUNCHING, act_stop},
            [EVENT_KILL] = {WORKER_LAUNCHING, act_kill},
        },
    [WORKER_RUNNING] =
        {
            [EVENT_ENDED] = {WORKER_LINGERING, act_none},
            [EVENT_STOP] = {WORKER_RUNNING, act_stop},
            [EVENT_KILL] = {WORKER_RUNNING, act_kill},
        },
    [WORKER_LINGERING] =
        {
            [EVENT_STOP] = {WORKER_LINGERING, act_stop},
            [EVENT_KILL] = {WORKER_SWEEPING, act_kill},
            [EVENT_EMPTY] = {WORKER_DONE, act_record},
        },
    [WORKER_SWEEPING] =
        {
            [EVENT_EMPTY] = {WORKER_DONE, act_record},
        },
};

void supervisor_event(struct supervisor *s, struct worker *w, enum worker_event event)
{
    const struct transition *t = &table[w->state][event];
    if (t->act == NULL)
        return; /* means nothing in this state */
    w->state = t->next;
    t->act(s, w);
    /* Without a grace time that still runs the rest is killed at once. */
    if (w->state == WORKER_LINGERING && (!s->stopping || s->killing))
        w->state = WORKER_SWEEPING;
}

static void reaped(struct supervisor *s, struct worker *w, int status, const struct rusage *u)
{
    struct runner_exit *x = &w->exit;
    if (w->exec_pipe >= 0) /* what it said before it ended */
        supervisor_exec_result(s, w);
    x->time_ms = clock_wall_ms();
    x->cpu_ms =
        (int64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000 + (u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1000;
    x->peak_mem_mib = (uint64_t)(u->ru_maxrss + 1023) / 1024;
    if (x->cause != RUNNER_LAUNCH_FAILED) {
        x->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        x->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        x->core = WIFSIGNALED(status) && WCOREDUMP(status);
    }
    supervisor_event(s, w, EVENT_ENDED);
}

void supervisor_reap(struct supervisor *s)
{
    int status;
    struct rusage usage;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
        for (size_t i = 0; i < s->workers_len; i++)
            if (s->workers[i].pid == pid && s->workers[i].state < WORKER_LINGERING)
                reaped(s, &s->workers[i], status, &usage);
}

void supervisor_stop(struct supervisor *s, int64_t grace_ms)
{
    int64_t at = clock_mono_ms() + grace_ms;
    bool first = !s->stopping;
    if (first || at < s->kill_at_ms)
        s->kill_at_ms = at;
    s->stopping = true;
    if (!first || grace_ms <= 0)
        return; /* the next tick kills */
    for (size_t i = 0; i < s->workers_len; i++)
        supervisor_event(s, &s->workers[i], EVENT_STOP);
    (void)supervisor_write_status(s, RUNNER_STATE_STOPPING, false, NULL);
}

void supervisor_signal(struct supervisor *s, int signal)
{
    signal_all(s, CGROUP_ALL, signal);
}

/* A process was killed for its memory (v1 tells, but leaves the others alive): the worker is over. */
static void check_oom(struct supervisor *s, struct worker *w)
{
    struct cgroup_usage u;
    if (!w->oom && w->oom_fd >= 0) {
        cgroup_usage_read(&s->plan, s->name, w->spec->rank, &u);
        w->oom = u.oom_kills > 0;
    }
    if (w->oom && w->state == WORKER_RUNNING)
        supervisor_event(s, w, EVENT_KILL);
}

static int sooner(int a, int b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* One worker's part of a tick; returns when to look again. */
static int tick_worker(struct supervisor *s, struct worker *w)
{
    int next = -1;
    if (s->oom_check_until_ms != 0)
        check_oom(s, w);
    if (s->killing)
        supervisor_event(s, w, EVENT_KILL);
    if (w->state == WORKER_LINGERING && look(s, w))
        supervisor_event(s, w, EVENT_EMPTY);
    if (w->state == WORKER_SWEEPING && sweep(s, w))
        supervisor_event(s, w, EVENT_EMPTY);
    if (w->state == WORKER_LINGERING)
        next = LINGER_MS;
    else if (w->state == WORKER_SWEEPING || (s->killing && w->state != WORKER_DONE))
        next = SWEEP_MS;
    else if (w->oom && w->state == WORKER_RUNNING)
        next = SWEEP_MS;
    return next;
}

int supervisor_tick(struct supervisor *s)
{
    int64_t now = clock_mono_ms();
    int next = -1;
    if (s->stopping && !s->killing) {
        if (now >= s->kill_at_ms)
            s->killing = true;
        else
            next = (int)(s->kill_at_ms - now < 60000 ? s->kill_at_ms - now : 60000);
    }
    for (size_t i = 0; i < s->workers_len; i++)
        next = sooner(next, tick_worker(s, &s->workers[i]));
    if (s->oom_check_until_ms != 0) {
        if (now >= s->oom_check_until_ms)
            s->oom_check_until_ms = 0;
        else
            next = sooner(next, LINGER_MS);
    }
    return next;
}

/* --- telling --- */

/* All names that lead to the exit file are on disk: the attempt's folder and those above up to the state folder. */
static int sync_folders(void)
{
    static const char *const folders[] = {".", "..", "../.."};
    for (unsigned i = 0; i < 3; i++) {
        int r = dir_sync(folders[i], NULL);
        if (r < 0)
            return r;
    }
    return 0;
}

static int write_exits(struct supervisor *s)
{
    if (s->exit_fd < 0) {
        s->exit_fd = open(RUNNER_FILE_EXIT, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (s->exit_fd < 0)
            return -errno;
    }
    off_t before = lseek(s->exit_fd, 0, SEEK_END);
    int r = file_write_fd(s->exit_fd, s->exits_ready.data, s->exits_ready.len);
    if (r == 0 && fdatasync(s->exit_fd) < 0)
        r = -errno;
    if (r == 0 && !s->exit_named)
        r = sync_folders();
    s->exit_named = s->exit_named || r == 0;
    if (r < 0) {
        if (before >= 0 && ftruncate(s->exit_fd, before) < 0)
            log_error("a part of an exit record is left behind", NULL);
        return r;
    }
    return 0;
}

static void collect(struct supervisor *s)
{
    for (size_t i = 0; i < s->workers_len; i++) {
        struct worker *w = &s->workers[i];
        if (w->state != WORKER_DONE || w->spec == NULL || w->exit.rank != UINT32_MAX)
            continue;
        if (s->launch_failed && w->exit.cause != RUNNER_LAUNCH_FAILED) {
            w->exit = (struct runner_exit){.code = -1, .time_ms = w->exit.time_ms};
            fail(w, "another worker of the job could not be started");
        }
        if (w->exit.time_ms < s->started_ms) /* it ended before the last of the others had begun */
            w->exit.time_ms = s->started_ms;
        w->exit.rank = w->spec->rank;
        runner_exit_write(&w->exit, &s->exits_ready);
    }
}

int supervisor_flush(struct supervisor *s)
{
    if (s->started_ms == 0 && !s->launch_failed)
        return 0;
    if (s->launch_failed && s->done < s->workers_len)
        return 0;
    collect(s);
    if (s->exits_ready.len == 0)
        return 0;
    int r = write_exits(s);
    if (r < 0)
        return r;
    if (s->done == s->workers_len) /* before it is told: who hears the last exit may clear the folder */
        (void)supervisor_write_status(s, RUNNER_STATE_ENDED, false, NULL);
    for (const char *line = s->exits_ready.data; *line != '\0';) {
        const char *end = strchr(line, '\n') + 1;
        strbuf_puts(&s->exits_told, "exit ");
        strbuf_add(&s->exits_told, line, (size_t)(end - line));
        channel_tell(s, "exit ", 5);
        channel_tell(s, line, (size_t)(end - line));
        line = end;
    }
    strbuf_clear(&s->exits_ready);
    return 0;
}

void supervisor_done(struct supervisor *s)
{
    mem_free(s->workers);
    mem_free(s->script);
    strbuf_done(&s->exits_ready);
    strbuf_done(&s->exits_told);
    for (int i = 0; i < CHANNELS_MAX; i++)
        strbuf_done(&s->channels[i].out);
    identity_done(&s->identity);
    runner_spec_done(&s->spec);
}
