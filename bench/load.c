/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submits many equal jobs through the daemon's API and measures how long it takes until all are accepted, and until
 * all have started or ended. It keeps a number of connections open, each with one request under way, as many clients
 * would: the daemon may commit their jobs together, and answers each only when it is on disk.
 *
 * Usage: load SOCKET JOBS CONNECTIONS started|ended JSON
 * Prints "accepted<TAB>RATE<TAB>jobs/s" and "started<TAB>..." or "ended<TAB>...", both from the first submission on.
 */
#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define ANSWER_MAX      16384

struct connection {
    int fd;
    bool busy;
    size_t len;
    char answer[ANSWER_MAX];
};

struct load {
    const char *socket;
    char *request;
    size_t request_len;
    unsigned long jobs;
    unsigned long sent;
    unsigned long accepted;
    unsigned connections;
    struct connection *c;
};

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("load: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int dial(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path)
        fail("%s: too long for a socket", path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        fail("%s: %s", path, strerror(errno));
    return fd;
}

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            fail("send: %s", strerror(errno));
        bytes += n;
        len -= (size_t)n;
    }
}

/* Length of the whole answer in the buffer, 0 while it is not there. */
static size_t whole_answer(const struct connection *c)
{
    const char *end = strstr(c->answer, "\r\n\r\n");
    if (end == NULL)
        return 0;
    const char *length = strcasestr(c->answer, "\r\ncontent-length:");
    if (length == NULL || length > end)
        fail("an answer without Content-Length: %.200s", c->answer);
    size_t total = (size_t)(end + 4 - c->answer) + strtoul(length + 17, NULL, 10);
    return c->len >= total ? total : 0;
}

static void read_some(struct connection *c)
{
    if (c->len + 1 >= ANSWER_MAX)
        fail("an answer of more than %d bytes", ANSWER_MAX);
    ssize_t n = recv(c->fd, c->answer + c->len, ANSWER_MAX - 1 - c->len, 0);
    if (n <= 0)
        fail("the daemon closed a connection: %s", n == 0 ? "end" : strerror(errno));
    c->len += (size_t)n;
    c->answer[c->len] = '\0';
}

static void submit_next(struct load *l, struct connection *c)
{
    c->busy = l->sent < l->jobs;
    c->len = 0;
    c->answer[0] = '\0';
    if (c->busy) {
        send_all(c->fd, l->request, l->request_len);
        l->sent++;
    }
}

static void submit_all(struct load *l)
{
    struct pollfd *poller = mem_alloc(l->connections, sizeof *poller);
    if (poller == NULL)
        fail("no memory");
    for (unsigned i = 0; i < l->connections; i++) {
        l->c[i].fd = dial(l->socket);
        poller[i] = (struct pollfd){.fd = l->c[i].fd, .events = POLLIN};
        submit_next(l, &l->c[i]);
    }
    while (l->accepted < l->jobs) {
        if (poll(poller, l->connections, 60000) <= 0)
            fail("no answer within 60 s");
        for (unsigned i = 0; i < l->connections; i++) {
            struct connection *c = &l->c[i];
            if (poller[i].revents == 0)
                continue;
            read_some(c);
            if (whole_answer(c) == 0)
                continue;
            if (strncmp(c->answer, "HTTP/1.1 201", 12) != 0)
                fail("a job was not accepted: %.400s", c->answer);
            l->accepted++;
            submit_next(l, c);
        }
    }
    mem_free(poller);
}

/* The number behind "name": in the answer; 0 when it is not there. */
static unsigned long number_of(const char *answer, const char *name)
{
    char key[32];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(answer, key);
    return at == NULL ? 0 : strtoul(at + strlen(key), NULL, 10);
}

/* Asks for the status until no job waits or starts (or, with `ended`, runs). */
static void wait_for_all(struct load *l, bool ended)
{
    static const char request[] = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct connection *c = &l->c[0];
    for (;;) {
        c->len = 0;
        c->answer[0] = '\0';
        send_all(c->fd, request, sizeof request - 1);
        do
            read_some(c);
        while (whole_answer(c) == 0);
        unsigned long left = number_of(c->answer, "queued") + number_of(c->answer, "starting") +
                             (ended ? number_of(c->answer, "running") : 0);
        if (left == 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc != 6)
        fail("usage: load SOCKET JOBS CONNECTIONS started|ended JSON");
    struct load l = {
        .socket = argv[1], .jobs = strtoul(argv[2], NULL, 10), .connections = (unsigned)strtoul(argv[3], NULL, 10)};
    if (l.jobs == 0 || l.connections == 0 || l.connections > CONNECTIONS_MAX)
        fail("jobs and connections (at most %d) must be above 0", CONNECTIONS_MAX);
    size_t size = strlen(argv[5]) + 256;
    l.request = mem_alloc(size, 1);
    l.c = mem_alloc(l.connections, sizeof *l.c);
    if (l.request == NULL || l.c == NULL)
        fail("no memory");
    l.request_len = (size_t)snprintf(l.request, size,
                                     "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                     "Content-Length: %zu\r\n\r\n%s",
                                     strlen(argv[5]), argv[5]);
    double began = now_s();
    submit_all(&l);
    double accepted = now_s();
    wait_for_all(&l, strcmp(argv[4], "ended") == 0);
    double all = now_s();
    printf("accepted\t%.0f\tjobs/s\t%lu jobs, %u connections\n", (double)l.jobs / (accepted - began), l.jobs,
           l.connections);
    printf("%s\t%.0f\tjobs/s\tfrom the first submission to the last of them\n", argv[4],
           (double)l.jobs / (all - began));
    for (unsigned i = 0; i < l.connections; i++)
        close(l.c[i].fd);
    mem_free(l.request);
    mem_free(l.c);
    return 0;
}
