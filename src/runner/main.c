/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remuda-runner FOLDER: supervises the attempt whose spec lies in that folder (abi/runner.h). It is started by an
 * engine with the control channel as descriptor 3, and lives in a session of its own, reparented away from the
 * daemon, so that nothing that ends the daemon ends it.
 */
#include "runner/supervisor.h"

#include "abi/runner.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PORT_BASE   20000u /* below the range from which the system takes ports by itself */
#define PORT_STRIDE 8u
#define PORT_COUNT  1250u

/* Its own session and a parent that is not the daemon. */
static int detach(void)
{
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid > 0)
        _exit(0);
    (void)setsid();
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)syscall(SYS_close_range, (unsigned)RUNNER_CHANNEL_FD + 1, ~0u, 0);
    (void)fcntl(RUNNER_CHANNEL_FD, F_SETFD, FD_CLOEXEC);
    return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

/* Ports next to each other are for jobs that look for one at the same moment: each has its own few to choose from. */
static uint32_t find_port(const struct runner_spec *spec)
{
    uint32_t first = PORT_BASE + (uint32_t)((spec->job + spec->attempt) % PORT_COUNT) * PORT_STRIDE;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint32_t port = first;
    for (; fd >= 0 && port < first + PORT_COUNT * PORT_STRIDE; port++) {
        struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        if (bind(fd, (const struct sockaddr *)&addr, sizeof addr) == 0)
            break;
    }
    if (fd >= 0)
        close(fd);
    return port;
}

static int write_script(struct supervisor *s, struct err *e)
{
    if (s->spec.script == NULL)
        return 0;
    int r = file_write_atomic(RUNNER_FILE_SCRIPT, s->spec.script, strlen(s->spec.script), 0700, FILE_SYNC_NO, e);
    if (r == 0 && geteuid() == 0 && chown(RUNNER_FILE_SCRIPT, s->identity.uid, s->identity.gid) < 0)
        r = err_set(e, -errno, "script: its owner can't be set: %s", strerror(errno));
    char folder[PATH_MAX];
    if (r == 0 && getcwd(folder, sizeof folder) == NULL)
        r = err_set(e, -errno, "attempt's folder: %s", strerror(errno));
    if (r < 0)
        return r;
    struct strbuf path = {0};
    strbuf_printf(&path, "%s/%s", folder, RUNNER_FILE_SCRIPT);
    s->script = strbuf_take(&path);
    return s->script != NULL ? 0 : err_set(e, -ENOMEM, "no memory for the script's path");
}

/*
 * Says that every worker could not be started, for a reason that concerns all of them. The record is made as any
 * other, so that it is found after a restart of the daemon too.
 */
static void fail_all(struct supervisor *s, const char *why)
{
    s->launch_failed = true;
    for (size_t i = 0; i < s->workers_len; i++) {
        struct worker *w = &s->workers[i];
        w->exit.cause = RUNNER_LAUNCH_FAILED;
        w->exit.code = -1;
        (void)snprintf(w->exit.detail, sizeof w->exit.detail, "%s", why);
        supervisor_event(s, w, EVENT_ENDED);
    }
}

static int read_spec(struct supervisor *s, struct err *e)
{
    CLEANUP_FREE char *text = NULL;
    size_t len = 0;
    int r = file_read(RUNNER_FILE_SPEC, RUNNER_SPEC_BYTES, &text, &len, e);
    if (r == 0)
        r = runner_spec_parse(text, len, &s->spec, e);
    if (r == 0)
        r = cgroup_plan_parse(s->spec.cgroup, &s->plan, e);
    if (r < 0)
        return r;
    (void)snprintf(s->name, sizeof s->name, "%llu.%u", (unsigned long long)s->spec.job, s->spec.attempt);
    s->workers = mem_alloc(s->spec.workers_len, sizeof *s->workers);
    if (s->workers == NULL)
        return err_set(e, -ENOMEM, "no memory for the workers");
    s->workers_len = s->spec.workers_len;
    for (size_t i = 0; i < s->workers_len; i++) {
        struct worker *w = &s->workers[i];
        w->spec = &s->spec.workers[i];
        w->exec_pipe = w->oom_fd = w->streams[0].fd = w->streams[1].fd = -1;
        w->streams[0].out.fd = w->streams[1].out.fd = -1;
        w->exit.rank = UINT32_MAX; /* not told yet */
    }
    return 0;
}

static void say_degraded(struct supervisor *s)
{
    if (s->plan.role[CGROUP_TRACK].version == CGROUP_NONE)
        (void)snprintf(s->note, sizeof s->note,
                       "no cgroups: memory and CPU limits are not enforced, processes are found by their parents");
    else if (s->plan.role[CGROUP_MEMORY].version == CGROUP_NONE || s->plan.role[CGROUP_CPU].version == CGROUP_NONE)
        (void)snprintf(s->note, sizeof s->note, "%s limits are not enforced: no such cgroup controller",
                       s->plan.role[CGROUP_CPU].version != CGROUP_NONE      ? "memory"
                       : s->plan.role[CGROUP_MEMORY].version != CGROUP_NONE ? "CPU"
                                                                            : "memory and CPU");
}

/* Four descriptors for each worker: as many as the hard limit gives, but the workers keep what they would have had. */
static void raise_open_files(struct supervisor *s)
{
    (void)getrlimit(RLIMIT_NOFILE, &s->open_files);
    struct rlimit more = {.rlim_cur = s->open_files.rlim_max, .rlim_max = s->open_files.rlim_max};
    (void)setrlimit(RLIMIT_NOFILE, &more);
}

static int supervise(struct supervisor *s, struct err *e)
{
    int r = loop_open(s, e);
    if (r == 0)
        r = channel_listen(s, e);
    if (r < 0)
        return r;
    say_degraded(s);
    raise_open_files(s);
    (void)cgroup_enter_runners(&s->plan);
    s->master_port = s->spec.master_port != 0 ? s->spec.master_port : find_port(&s->spec);
    /* From here on this attempt has had its life: nobody starts it again. */
    r = supervisor_write_status(s, RUNNER_STATE_STARTING, true, e);
    if (r < 0)
        return r;
    channel_add(s, RUNNER_CHANNEL_FD);
    r = identity_find(s->spec.uid, s->spec.gid, &s->identity, e);
    if (r == 0)
        r = write_script(s, e);
    if (r < 0)
        fail_all(s, e->text);
    else
        supervisor_launch(s);
    loop_run(s);
    channel_close_all(s, 1000);
    (void)cgroup_remove(&s->plan, s->name);
    return 0;
}

/* Who only looks whether the lock is held holds it for a moment: such a one is not a rival. */
static int take_lock(int *ret_fd, struct err *e)
{
    int r = lock_file_take(RUNNER_FILE_LOCK, ret_fd, e);
    for (int i = 0; i < 5 && r == -EWOULDBLOCK; i++) {
        clock_sleep_ms(2);
        r = lock_file_take(RUNNER_FILE_LOCK, ret_fd, e);
    }
    return r;
}

static void say_busy(void)
{
    (void)send(RUNNER_CHANNEL_FD, "busy\n", 5, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int main(int argc, char **argv)
{
    static struct supervisor s = {.exit_fd = -1, .epoll_fd = -1, .signal_fd = -1, .listen_fd = -1};
    for (int i = 0; i < CHANNELS_MAX; i++)
        s.channels[i].fd = -1;
    struct err e = {0};
    int lock = -1;
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)printf("remuda-runner, protocol %d\n", RUNNER_VERSION);
        return 0;
    }
    if (argc != 2 || argv[1][0] == '-') {
        (void)fprintf(stderr, "usage: remuda-runner FOLDER (an attempt's folder with a spec; see abi/runner.h)\n");
        return RUNNER_EXIT_USAGE;
    }
    (void)log_open("remuda-runner", LOG_LEVEL_INFO, NULL, NULL);
    char quoted[512];
    if (chdir(argv[1]) < 0 || detach() < 0) {
        log_error("can't start", "folder=%s error=%s", log_quote(argv[1], quoted, 300), strerror(errno));
        return RUNNER_EXIT_SYSTEM;
    }
    int r = take_lock(&lock, &e);
    if (r == -EWOULDBLOCK || access(RUNNER_FILE_STATUS, F_OK) == 0 || access(RUNNER_FILE_VOID, F_OK) == 0) {
        say_busy();
        return RUNNER_EXIT_BUSY;
    }
    int code = RUNNER_EXIT_SYSTEM;
    if (r == 0) {
        code = RUNNER_EXIT_SPEC;
        r = read_spec(&s, &e);
    }
    if (r == 0) {
        code = RUNNER_EXIT_SYSTEM;
        r = supervise(&s, &e);
    }
    if (r < 0)
        log_error("the job was not started", "error=%s", log_quote(e.text, quoted, sizeof quoted));
    supervisor_done(&s);
    return r < 0 ? code : 0;
}
