/* SPDX-License-Identifier: Apache-2.0 */
/* Starting runners: the spec file, the channel, the process. */
#include "engine/local/local.h"

#include "abi/runner.h"
#include "base/mem.h"
#include "base/sys/file.h"
#include "runner/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKER_UMASK 022

extern char **environ;

static char *join_uuids(const struct engine_worker *w)
{
    struct strbuf b = {0};
    strbuf_add(&b, "", 0);
    for (uint32_t i = 0; i < w->gpus_len; i++) {
        if (i > 0)
            strbuf_putc(&b, ',');
        strbuf_puts(&b, w->gpu_uuids[i]);
    }
    return strbuf_take(&b);
}

static int add_workers(struct runner_spec *s, const struct engine_launch *launch)
{
    if (mem_grow(&s->workers, &s->workers_cap, launch->workers_len, sizeof *s->workers) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < launch->workers_len; i++) {
        const struct engine_worker *w = &launch->workers[i];
        char *gpus = join_uuids(w);
        if (gpus == NULL)
            return -ENOMEM;
        s->workers[s->workers_len++] = (struct runner_worker){
            .rank = w->rank,
            .cpu_milli = w->cpu_milli,
            .mem_mib = w->mem_mib,
            .gpu_milli = w->gpus_len > 0 ? w->gpu_milli : 0,
            .gpu_mem_mib = w->gpu_mem_mib,
            .gpus = gpus,
        };
    }
    return 0;
}

static size_t count(char **list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    return n;
}

/* The spec as text. What `s` borrows is not released: only its workers are its own. */
static int write_spec(const struct local *l, const struct engine_launch *launch, struct strbuf *out)
{
    const struct job_spec *job = launch->spec;
    char **argv = job->argv;
    if (job->script != NULL && argv != NULL && argv[0] != NULL)
        argv++; /* the script's name; its arguments follow */
    char tag[64];
    (void)snprintf(tag, sizeof tag, "%s.%" PRIu64 ".%" PRIu32, l->key, launch->job, launch->attempt);
    const char *simgpu = cards_simulated(l->cards);
    struct runner_spec s = {
        .job = launch->job,
        .attempt = launch->attempt,
        .uid = job->uid,
        .gid = job->gid,
        .umask = WORKER_UMASK,
        .world = launch->workers_len,
        .nodes = 1,
        .log_files = launch->log_files_kept,
        .log_bytes = launch->log_bytes_max,
        .grace_ms = launch->grace_ms,
        .name = (char *)job->name,
        .user = (char *)job->user,
        .tenant = (char *)job->tenant,
        .queue = (char *)job->queue,
        .node = l->node->name,
        .state = l->state_dir,
        .cwd = job->cwd != NULL ? job->cwd : (char *)"/",
        .script = job->script,
        .master_addr = (char *)"127.0.0.1",
        .cgroup = l->plan_text,
        .tag = tag,
        .simgpu = (char *)simgpu,
        .simgpu_lib = simgpu != NULL ? l->simgpu_lib : NULL,
        .argv = argv,
        .argv_len = count(argv),
        .env = job->env,
        .env_len = count(job->env),
    };
    int r = add_workers(&s, launch);
    if (r == 0)
        runner_spec_write(&s, out);
    for (size_t i = 0; i < s.workers_len; i++)
        mem_free(s.workers[i].gpus);
    mem_free(s.workers);
    return r == 0 && out->failed ? -ENOMEM : r;
}

static int make_folder(const struct local *l, const struct attempt *a, struct err *e)
{
    char path[PATH_MAX];
    int r = dir_make(a->dir, 0711, e);
    if (r == 0) { /* whatever the umask says: a job's user passes through, and sees no names */
        (void)chmod(a->dir, 0711);
        (void)snprintf(path, sizeof path, "%s/jobs/%" PRIu64, l->state_dir, a->job);
        (void)chmod(path, 0711);
        (void)snprintf(path, sizeof path, "%s/run/%" PRIu64 ".%" PRIu32, l->state_dir, a->job, a->attempt);
        r = file_write_atomic(path, "", 0, 0600, FILE_SYNC_NO, e);
    }
    return r;
}

static int spawn(struct local *l, const struct attempt *a, int channel, struct err *e)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    char log[PATH_MAX];
    attempt_path(a, RUNNER_FILE_LOG, log);
    sigemptyset(&none);
    sigfillset(&all);
    if (mem_grow(&l->spawned, &l->spawned_cap, l->spawned_len + 1, sizeof *l->spawned) < 0)
        return err_set(e, -ENOMEM, "no memory for a runner");
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    (void)posix_spawn_file_actions_adddup2(&actions, channel, RUNNER_CHANNEL_FD);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0640);
    char *argv[] = {(char *)"remuda-runner", (char *)a->dir, NULL};
    pid_t pid = 0;
    int code = posix_spawn(&pid, l->runner_path, &actions, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    if (code != 0)
        return err_set(e, -code, "%.150s can't be started: %s", l->runner_path, strerror(code));
    l->spawned[l->spawned_len++] = pid;
    return 0;
}

void launch_reap(struct local *l)
{
    for (size_t i = 0; i < l->spawned_len;) {
        pid_t r = waitpid(l->spawned[i], NULL, WNOHANG);
        if (r == 0 || (r < 0 && errno == EINTR))
            i++;
        else
            l->spawned[i] = l->spawned[--l->spawned_len];
    }
}

int launch_again(struct local *l, struct attempt *a, struct err *e)
{
    char path[PATH_MAX];
    attempt_path(a, RUNNER_FILE_VOID, path);
    (void)unlink(path);
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
        int code = -errno;
        return err_set(e, code, "channel to the runner: %s", strerror(-code));
    }
    int channel = fds[1];
    if (channel == RUNNER_CHANNEL_FD) { /* a dup2 onto itself would keep close-on-exec */
        channel = fcntl(fds[1], F_DUPFD_CLOEXEC, RUNNER_CHANNEL_FD + 1);
        close(fds[1]);
    }
    int r = attempt_link(l, a, fds[0], e);
    if (r == 0) {
        r = spawn(l, a, channel, e);
        if (r < 0)
            attempt_unlink(a);
    }
    close(channel);
    return r;
}

/* Writes the spec and starts a runner with a channel to us. */
static int start(struct local *l, struct attempt *a, const struct strbuf *spec, struct err *e)
{
    char path[PATH_MAX];
    attempt_path(a, RUNNER_FILE_SPEC, path);
    int r = file_write_atomic(path, spec->data, spec->len, 0600, FILE_SYNC_NO, e);
    return r < 0 ? r : launch_again(l, a, e);
}

int launch_attempt(struct local *l, const struct engine_launch *launch, struct err *e)
{
    if (launch->workers_len == 0 || launch->attempt == 0 || launch->job == 0)
        return err_set(e, -EINVAL, "launch: job, attempt and workers must not be 0");
    if (local_find(l, launch->job, launch->attempt) != NULL)
        return 0;
    struct strbuf spec = {0};
    struct attempt *a = local_add(l, launch->job, launch->attempt, launch->workers_len);
    if (a == NULL || write_spec(l, launch, &spec) < 0) {
        if (a != NULL)
            local_drop(l, a);
        strbuf_done(&spec);
        return err_set(e, -ENOMEM, "no memory to launch job %" PRIu64, launch->job);
    }
    for (uint32_t i = 0; i < launch->workers_len; i++)
        a->ranks[i] = launch->workers[i].rank;
    struct err why = {0};
    bool fresh = access(a->dir, F_OK) < 0;
    int r = make_folder(l, a, &why);
    if (r == 0 && (fresh || !attempt_resume(l, a)))
        r = start(l, a, &spec, &why);
    strbuf_done(&spec);
    if (r < 0)
        attempt_fail(l, a, RUNNER_LAUNCH_FAILED, why.text);
    return 0;
}
