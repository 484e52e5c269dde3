/* SPDX-License-Identifier: Apache-2.0 */
/* The control connections of a runner: abi/runner.h has the words. */
#include "runner/supervisor.h"

#include "abi/runner.h"
#include "base/sys/clock.h"
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define OUT_BYTES_MAX (1u << 20) /* a listener that is further behind is let go */
#define GRACE_MS_MAX  (INT64_C(1) << 40)

int channel_listen(struct supervisor *s, struct err *e)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = RUNNER_FILE_SOCKET};
    s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(RUNNER_FILE_SOCKET);
    mode_t old = umask(0177);
    int r = s->listen_fd < 0 || bind(s->listen_fd, (const struct sockaddr *)&addr, sizeof addr) < 0 ||
                    listen(s->listen_fd, CHANNELS_MAX) < 0
                ? -errno
                : 0;
    (void)umask(old);
    if (r == 0)
        r = loop_watch(s, s->listen_fd, SOURCE_LISTEN, 0, false);
    return r == 0 ? 0 : err_set(e, r, "control socket: %s", strerror(-r));
}

static void drop(struct channel *c)
{
    close(c->fd);
    c->fd = -1;
    c->in_len = 0;
    strbuf_clear(&c->out);
}

/* Sends what the socket takes now. */
static void push(struct supervisor *s, struct channel *c)
{
    size_t done = 0;
    while (done < c->out.len) {
        ssize_t n = send(c->fd, c->out.data + done, c->out.len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            drop(c);
            return;
        }
        if (n < 0)
            break;
        done += (size_t)n;
    }
    if (done > 0) {
        memmove(c->out.data, c->out.data + done, c->out.len - done);
        c->out.len -= done;
    }
    if (c->out.failed || c->out.len > OUT_BYTES_MAX) {
        drop(c);
        return;
    }
    loop_rewatch(s, c->fd, SOURCE_CHANNEL, (size_t)(c - s->channels), c->out.len > 0);
}

void channel_add(struct supervisor *s, int fd)
{
    size_t i = 0;
    while (i < CHANNELS_MAX && s->channels[i].fd >= 0)
        i++;
    if (i == CHANNELS_MAX || loop_watch(s, fd, SOURCE_CHANNEL, i, false) < 0) {
        close(fd);
        return;
    }
    struct channel *c = &s->channels[i];
    c->fd = fd;
    strbuf_printf(&c->out, "hello %d\n", RUNNER_VERSION);
    if (s->started_ms != 0)
        strbuf_printf(&c->out, "started %" PRId64 " %s\n", s->started_ms, s->note);
    strbuf_add(&c->out, strbuf_str(&s->exits_told), s->exits_told.len);
    push(s, c);
}

void channel_accept(struct supervisor *s)
{
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct ucred who;
    socklen_t len = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || (who.uid != geteuid() && who.uid != 0)) {
        close(fd);
        return;
    }
    channel_add(s, fd);
}

static void complain(struct supervisor *s, struct channel *c, const char *line)
{
    strbuf_printf(&c->out, "error '%.60s' is not understood: term GRACE_MS or signal NUMBER\n", line);
    push(s, c);
}

static void obey(struct supervisor *s, struct channel *c, const char *line)
{
    int64_t number;
    if (strncmp(line, "term ", 5) == 0 && units_parse_int(line + 5, 0, GRACE_MS_MAX, &number, NULL) == 0)
        supervisor_stop(s, number);
    else if (strncmp(line, "signal ", 7) == 0 && units_parse_int(line + 7, 1, NSIG - 1, &number, NULL) == 0)
        supervisor_signal(s, (int)number);
    else
        complain(s, c, line);
}

static void receive(struct supervisor *s, struct channel *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_len, sizeof c->in - 1 - c->in_len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(c);
        return;
    }
    c->in_len += (size_t)n;
    c->in[c->in_len] = '\0';
    char *newline;
    while (c->fd >= 0 && (newline = memchr(c->in, '\n', c->in_len)) != NULL) {
        *newline = '\0';
        obey(s, c, c->in);
        size_t used = (size_t)(newline + 1 - c->in);
        if (c->fd < 0)
            return;
        memmove(c->in, newline + 1, c->in_len - used + 1);
        c->in_len -= used;
    }
    if (c->in_len == sizeof c->in - 1)
        drop(c); /* no command is that long */
}

void channel_ready(struct supervisor *s, struct channel *c, bool readable, bool writable)
{
    if (c->fd >= 0 && readable)
        receive(s, c);
    if (c->fd >= 0 && writable)
        push(s, c);
}

void channel_tell(struct supervisor *s, const char *text, size_t len)
{
    for (int i = 0; i < CHANNELS_MAX; i++) {
        struct channel *c = &s->channels[i];
        if (c->fd < 0)
            continue;
        strbuf_add(&c->out, text, len);
        if (text[len - 1] == '\n')
            push(s, c);
    }
}

void channel_close_all(struct supervisor *s, int64_t ms)
{
    int64_t until = clock_mono_ms() + ms;
    for (int i = 0; i < CHANNELS_MAX; i++) {
        struct channel *c = &s->channels[i];
        while (c->fd >= 0 && c->out.len > 0 && clock_mono_ms() < until) {
            struct pollfd p = {.fd = c->fd, .events = POLLOUT};
            (void)poll(&p, 1, (int)(until - clock_mono_ms()));
            push(s, c);
        }
        if (c->fd >= 0)
            drop(c);
    }
    if (s->listen_fd >= 0) {
        (void)unlink(RUNNER_FILE_SOCKET);
        close(s->listen_fd);
        s->listen_fd = -1;
    }
}
