/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of the runner: epoll over signals, control connections, exec pipes, output and memory events. */
#include "runner/supervisor.h"

#include "base/sys/clock.h"
#include "base/sys/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES      65536
#define DRAIN_BYTES_MAX (8u << 20) /* what a pipe may hold at most, and some */
#define FLUSH_RETRY_MS  1000
#define OOM_LOOK_MS     500
#define FOLDER_LOOK_MS  2000

int loop_open(struct supervisor *s, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->signal_fd < 0 || s->epoll_fd < 0) {
        int code = -errno;
        return err_set(e, code, "event loop: %s", strerror(-code));
    }
    int r = loop_watch(s, s->signal_fd, SOURCE_SIGNAL, 0, false);
    return r == 0 ? 0 : err_set(e, r, "event loop: %s", strerror(-r));
}

static struct epoll_event make_event(enum source source, size_t index, bool write_too)
{
    struct epoll_event ev = {.events = EPOLLIN | (write_too ? EPOLLOUT : 0)};
    ev.data.u64 = (uint64_t)source << 32 | (uint32_t)index;
    return ev;
}

int loop_watch(struct supervisor *s, int fd, enum source source, size_t index, bool write_too)
{
    struct epoll_event ev = make_event(source, index, write_too);
    return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

void loop_rewatch(struct supervisor *s, int fd, enum source source, size_t index, bool write_too)
{
    struct epoll_event ev = make_event(source, index, write_too);
    (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, fd, &ev);
}

void loop_drain(struct stream *stream, bool all)
{
    static char buffer[READ_BYTES];
    size_t total = 0;
    do {
        ssize_t n = read(stream->fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && !all)
            return;
        if (n <= 0)
            break;
        output_write(&stream->out, buffer, (size_t)n);
        total += (size_t)n;
        if (!all)
            return; /* others get their turn */
    } while (total < DRAIN_BYTES_MAX);
    close(stream->fd);
    stream->fd = -1;
}

static void read_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGTERM)
            supervisor_stop(s, s->spec.grace_ms);
    supervisor_reap(s);
}

static void dispatch(struct supervisor *s, const struct epoll_event *ev)
{
    size_t index = (uint32_t)ev->data.u64;
    uint64_t count;
    switch ((enum source)(ev->data.u64 >> 32)) {
    case SOURCE_SIGNAL:
        read_signals(s);
        break;
    case SOURCE_LISTEN:
        channel_accept(s);
        break;
    case SOURCE_CHANNEL:
        channel_ready(s, &s->channels[index], (ev->events & ~(uint32_t)EPOLLOUT) != 0, (ev->events & EPOLLOUT) != 0);
        break;
    case SOURCE_EXEC:
        if (s->workers[index].exec_pipe >= 0)
            supervisor_exec_result(s, &s->workers[index]);
        break;
    case SOURCE_OUTPUT:
        if (s->workers[index].streams[0].fd >= 0)
            loop_drain(&s->workers[index].streams[0], false);
        break;
    case SOURCE_ERROR:
        if (s->workers[index].streams[1].fd >= 0)
            loop_drain(&s->workers[index].streams[1], false);
        break;
    case SOURCE_OOM:
        if (s->workers[index].oom_fd >= 0 && read(s->workers[index].oom_fd, &count, sizeof count) > 0)
            s->oom_check_until_ms = clock_mono_ms() + OOM_LOOK_MS;
        break;
    }
}

/* True when somebody removed the folder of this attempt under us. */
static bool folder_gone(void)
{
    struct stat st;
    return stat(".", &st) < 0 || st.st_nlink == 0;
}

/*
 * Without its folder an attempt can neither be found again nor tell its end, and its cards would be given to others
 * while it runs: it is ended, with its grace time. Looked at now and then, since nothing announces it.
 */
static bool watch_folder(struct supervisor *s, int64_t *next_ms)
{
    int64_t now = clock_mono_ms();
    if (now < *next_ms)
        return false;
    *next_ms = now + FOLDER_LOOK_MS;
    bool gone = folder_gone();
    if (gone && !s->stopping) {
        log_error("the attempt's folder was removed; ending the attempt", NULL);
        supervisor_stop(s, s->spec.grace_ms);
    }
    return gone;
}

void loop_run(struct supervisor *s)
{
    bool complained = false;
    int64_t next_look_ms = 0;
    for (;;) {
        bool gone = watch_folder(s, &next_look_ms);
        int wait = supervisor_tick(s);
        int r = supervisor_flush(s);
        wait = wait < 0 || wait > FOLDER_LOOK_MS ? FOLDER_LOOK_MS : wait;
        if (s->done == s->workers_len && (gone || (r < 0 && folder_gone())))
            return;  /* nobody is there to be told */
        if (r < 0) { /* a full disk: an exit is never told before it is written, so try until there is room */
            if (!complained)
                log_error("exit record can't be written; trying again", "error=\"%s\"", strerror(-r));
            complained = true;
            wait = FLUSH_RETRY_MS;
        } else if (s->done == s->workers_len) {
            return;
        }
        struct epoll_event events[32];
        int n = epoll_wait(s->epoll_fd, events, 32, wait);
        for (int i = 0; i < n; i++)
            dispatch(s, &events[i]);
    }
}
