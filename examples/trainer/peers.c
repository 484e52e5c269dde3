/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data parallelism in its plainest form: every worker sends its sums to rank 0, which adds them in order of rank and
 * sends the total back. The traffic of a step is 2 * (world - 1) messages of a header and the gradient (18 KB with 64
 * hidden units), all through rank 0: fine for a handful of workers, and the result is the same in every run, which a
 * ring does not give for free.
 *
 * A worker that goes away is noticed as a closed connection by rank 0 and through it by all: each ends with an error,
 * as workers under NCCL would.
 */
#include "trainer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x524d5452u

struct hello {
    uint32_t magic;
    uint32_t rank;
    uint32_t world;
    uint32_t hidden; /* filled by peers_share_model */
    uint64_t seed;
    uint64_t step;
};

struct sums {
    uint64_t step;
    uint32_t flags;
    uint32_t pad;
    double loss;
    double correct;
    double count;
};

static int put(int fd, const void *bytes, size_t len)
{
    const char *p = bytes;
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return complain("a worker went away while sending: %s", strerror(errno));
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int get(int fd, void *bytes, size_t len)
{
    char *p = bytes;
    while (len > 0) {
        ssize_t n = recv(fd, p, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return complain("a worker went away: %s", n == 0 ? "it closed the connection" : strerror(errno));
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void set_options(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static int look_up(const char *address, uint16_t port, struct addrinfo **ret)
{
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int rc = getaddrinfo(address, service, &hints, ret);
    return rc == 0 ? 0 : complain("MASTER_ADDR=%s: %s", address, gai_strerror(rc));
}

/* Accepts one worker that introduces itself rightly; others are turned away. 1: taken, 0: not, -1: error. */
static int accept_one(struct peers *p, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED ? 0 : complain("accept: %s", strerror(errno));
    struct hello h;
    struct timeval limit = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (get(fd, &h, sizeof h) < 0 || h.magic != MAGIC || h.world != p->world || h.rank == 0 || h.rank >= p->world ||
        p->fd[h.rank] >= 0) {
        close(fd);
        return 0;
    }
    limit.tv_sec = 0;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    set_options(fd);
    p->fd[h.rank] = fd;
    return 1;
}

static int listen_at(const struct addrinfo *at)
{
    int one = 1;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return complain("socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, WORLD_MAX) < 0) {
        complain("listening at MASTER_ADDR:MASTER_PORT: %s", strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

static int gather(struct peers *p, const struct addrinfo *at, int64_t deadline_ms)
{
    int listener = listen_at(at);
    if (listener < 0)
        return -1;
    uint32_t missing = p->world - 1;
    int rc = 0;
    while (missing > 0 && rc >= 0) {
        int64_t left = deadline_ms - now_ms();
        struct pollfd poller = {.fd = listener, .events = POLLIN};
        if (left <= 0 || poll(&poller, 1, (int)left) == 0)
            rc = complain("%u of %u workers did not come in time", missing, p->world);
        else if (poller.revents != 0 && (rc = accept_one(p, listener)) == 1)
            missing--;
    }
    close(listener);
    return rc < 0 ? -1 : 0;
}

static int join(struct peers *p, const struct addrinfo *at, int64_t deadline_ms)
{
    for (;;) {
        int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return complain("socket: %s", strerror(errno));
        if (connect(fd, at->ai_addr, at->ai_addrlen) == 0) {
            struct hello h = {.magic = MAGIC, .rank = p->rank, .world = p->world};
            set_options(fd);
            p->fd[0] = fd;
            return put(fd, &h, sizeof h);
        }
        close(fd);
        if (now_ms() >= deadline_ms)
            return complain("rank 0 was not reached in time: %s", strerror(errno));
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
}

int peers_open(struct peers *p, uint32_t rank, uint32_t world, const char *address, uint16_t port, uint32_t wait_s)
{
    *p = (struct peers){.rank = rank, .world = world};
    if (world == 1)
        return 0;
    p->fd = calloc(world, sizeof *p->fd);
    if (p->fd == NULL)
        return complain("no memory for %u workers", world);
    for (uint32_t i = 0; i < world; i++)
        p->fd[i] = -1;
    struct addrinfo *at;
    if (look_up(address, port, &at) < 0)
        return -1;
    int64_t deadline_ms = now_ms() + (int64_t)wait_s * 1000;
    int rc = rank == 0 ? gather(p, at, deadline_ms) : join(p, at, deadline_ms);
    freeaddrinfo(at);
    return rc;
}

void peers_close(struct peers *p)
{
    for (uint32_t i = 0; p->fd != NULL && i < p->world; i++) {
        if (p->fd[i] >= 0)
            close(p->fd[i]);
    }
    free(p->fd);
    *p = (struct peers){0};
}

static int put_model(int fd, const struct hello *h, const struct model *m)
{
    size_t bytes = m->len * sizeof *m->params;
    if (put(fd, h, sizeof *h) < 0 || put(fd, m->params, bytes) < 0 || put(fd, m->mean, bytes) < 0)
        return -1;
    return put(fd, m->square, bytes);
}

int peers_share_model(struct peers *p, struct model *m)
{
    struct hello h = {.magic = MAGIC, .world = p->world, .hidden = m->hidden, .seed = m->seed, .step = m->step};
    if (p->world == 1)
        return 0;
    if (p->rank == 0) {
        for (uint32_t i = 1; i < p->world; i++) {
            if (put_model(p->fd[i], &h, m) < 0)
                return -1;
        }
        return 0;
    }
    if (get(p->fd[0], &h, sizeof h) < 0)
        return -1;
    if (h.magic != MAGIC || h.hidden != m->hidden || h.seed != m->seed)
        return complain("rank 0 trains %u hidden units with seed %llu, this worker %u with %llu", h.hidden,
                        (unsigned long long)h.seed, m->hidden, (unsigned long long)m->seed);
    size_t bytes = m->len * sizeof *m->params;
    m->step = h.step;
    if (get(p->fd[0], m->params, bytes) < 0 || get(p->fd[0], m->mean, bytes) < 0)
        return -1;
    return get(p->fd[0], m->square, bytes);
}

static int put_sums(int fd, const struct sums *s, const struct model *m, const struct gradient *g)
{
    return put(fd, s, sizeof *s) < 0 ? -1 : put(fd, g->sum, m->len * sizeof *g->sum);
}

static int add_from(int fd, const struct model *m, struct sums *total, struct gradient *g, float *room)
{
    struct sums s;
    if (get(fd, &s, sizeof s) < 0 || get(fd, room, m->len * sizeof *room) < 0)
        return -1;
    if (s.step != m->step)
        return complain("a worker is at step %llu, this one at %llu", (unsigned long long)s.step,
                        (unsigned long long)m->step);
    total->flags |= s.flags;
    total->loss += s.loss;
    total->correct += s.correct;
    total->count += s.count;
    for (size_t i = 0; i < m->len; i++)
        g->sum[i] += room[i];
    return 0;
}

static int sum_as_first(struct peers *p, const struct model *m, struct sums *s, struct gradient *g)
{
    float *room = calloc(m->len, sizeof *room);
    if (room == NULL)
        return complain("no memory for a gradient");
    int rc = 0;
    for (uint32_t i = 1; i < p->world && rc == 0; i++)
        rc = add_from(p->fd[i], m, s, g, room);
    for (uint32_t i = 1; i < p->world && rc == 0; i++)
        rc = put_sums(p->fd[i], s, m, g);
    free(room);
    return rc;
}

int peers_sum(struct peers *p, const struct model *m, struct gradient *g, uint32_t *flags)
{
    struct sums s = {.step = m->step, .flags = *flags, .loss = g->loss, .correct = g->correct, .count = g->count};
    int rc = 0;
    if (p->world > 1 && p->rank == 0)
        rc = sum_as_first(p, m, &s, g);
    else if (p->world > 1)
        rc = put_sums(p->fd[0], &s, m, g) < 0 || get(p->fd[0], &s, sizeof s) < 0 ||
                     get(p->fd[0], g->sum, m->len * sizeof *g->sum) < 0
                 ? -1
                 : 0;
    if (rc < 0)
        return -1;
    g->loss = s.loss;
    g->correct = s.correct;
    g->count = s.count;
    *flags = s.flags;
    return 0;
}
