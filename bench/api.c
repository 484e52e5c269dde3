/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast jobs go from submission to start through the API: a real daemon (its own process,
 * durable commits, the simulated engine with 500 nodes of 8 cards) and a client that submits
 * one-GPU jobs over keep-alive connections. Prints figures and asserts nothing.
 *
 *     bench_api [JOBS [CONNECTIONS [STATE_PARENT]]]     default: 4000 64 /tmp
 *
 * "submitted" is the time until every submission has been answered (that is: committed), "started"
 * until the daemon says that every job runs. The processor time is the daemon's alone.
 */
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/log.h"
#include "base/units.h"
#include "server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS_MAX 512
#define REPLY_MAX       8192

static const char job_body[] = "{\"command\":[\"train\"],\"gpus\":1,\"sim_duration\":\"10h\"}";

struct conn {
    int fd;
    size_t len;
    char in[REPLY_MAX];
};

static char state_dir[256];
static char cluster_file[300];

static void die(const char *what)
{
    fprintf(stderr, "bench_api: %s: %s\n", what, strerror(errno));
    exit(1);
}

static pid_t start_daemon(void)
{
    static const char nodes[] = "nodes: [{name: \"n%03d\", count: 500, preset: dgx-a100}]\n";
    int fds[2];
    char byte;
    if (file_write_atomic(cluster_file, nodes, strlen(nodes), 0644, FILE_SYNC_NO, NULL) != 0 ||
        pipe(fds) != 0)
        die("preparing");
    pid_t pid = fork();
    if (pid == 0) {
        struct server_options o = {
            .state_dir = state_dir,
            .version = "bench",
            .engine = "simulated",
            .engine_options = {.cluster_file = cluster_file, .time_scale_milli = 1000},
            .simulated = true,
            .cards = "simulated",
            .ready_fd = fds[1],
        };
        log_open("bench", LOG_LEVEL_WARN, NULL, NULL);
        exit(server_main(&o));
    }
    close(fds[1]);
    if (pid < 0 || read(fds[0], &byte, 1) != 1)
        die("starting the daemon");
    close(fds[0]);
    return pid;
}

static int connect_daemon(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(a.sun_path, sizeof(a.sun_path), "%.90s/daemon.sock", state_dir);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
        die("connecting");
    return fd;
}

static void send_job(int fd)
{
    char ask[256];
    int len = snprintf(ask, sizeof(ask),
                       "POST /v1/jobs HTTP/1.1\r\nHost: bench\r\nContent-Length: %zu\r\n\r\n%s",
                       sizeof(job_body) - 1, job_body);
    if (send(fd, ask, (size_t)len, MSG_NOSIGNAL) != len)
        die("sending");
}

/* Takes what has come; true when a whole answer is there, which is then removed. */
static bool take_answer(struct conn *c)
{
    ssize_t n = recv(c->fd, c->in + c->len, REPLY_MAX - 1 - c->len, 0);
    if (n <= 0)
        die("receiving");
    c->len += (size_t)n;
    c->in[c->len] = '\0';
    const char *body = strstr(c->in, "\r\n\r\n");
    const char *length = strcasestr(c->in, "content-length:");
    if (body == NULL || length == NULL ||
        c->len < (size_t)(body + 4 - c->in) + strtoul(length + 15, NULL, 10))
        return false;
    if (strncmp(c->in, "HTTP/1.1 201", 12) != 0) {
        fprintf(stderr, "bench_api: refused: %s\n", c->in);
        exit(1);
    }
    c->len = 0;
    return true;
}

static void submit_all(struct conn *conns, unsigned len, unsigned jobs)
{
    int ep = epoll_create1(EPOLL_CLOEXEC);
    unsigned sent = 0;
    unsigned answered = 0;
    for (unsigned i = 0; i < len; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.u32 = i};
        conns[i].fd = connect_daemon();
        epoll_ctl(ep, EPOLL_CTL_ADD, conns[i].fd, &ev);
    }
    for (unsigned i = 0; i < len && sent < jobs; i++, sent++)
        send_job(conns[i].fd);
    while (answered < jobs) {
        struct epoll_event events[CONNECTIONS_MAX];
        int n = epoll_wait(ep, events, CONNECTIONS_MAX, 30000);
        if (n <= 0)
            die("waiting");
        for (int i = 0; i < n; i++) {
            struct conn *c = &conns[events[i].data.u32];
            if (!take_answer(c))
                continue;
            answered++;
            if (sent < jobs) {
                send_job(c->fd);
                sent++;
            }
        }
    }
    close(ep);
}

/* Jobs that the daemon says are running. */
static unsigned running(void)
{
    static char in[65536];
    static const char ask[] = "GET /v1/status HTTP/1.0\r\n\r\n";
    size_t len = 0;
    ssize_t n;
    int fd = connect_daemon();
    if (send(fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL) < 0)
        die("asking");
    while (len < sizeof(in) - 1 && (n = recv(fd, in + len, sizeof(in) - 1 - len, 0)) > 0)
        len += (size_t)n;
    close(fd);
    in[len] = '\0';
    const char *at = strstr(in, "\"running\":");
    return at == NULL ? 0 : (unsigned)strtoul(at + 10, NULL, 10);
}

static unsigned argument(int argc, char **argv, int index, int64_t high, unsigned otherwise)
{
    int64_t n = otherwise;
    struct err e;
    if (argc > index && units_parse_int(argv[index], 1, high, &n, &e) != 0) {
        fprintf(stderr, "bench_api: %s\n", e.text);
        exit(2);
    }
    return (unsigned)n;
}

int main(int argc, char **argv)
{
    static struct conn conns[CONNECTIONS_MAX];
    unsigned jobs = argument(argc, argv, 1, 4000, 4000);
    unsigned len = argument(argc, argv, 2, CONNECTIONS_MAX, 64);
    snprintf(state_dir, sizeof(state_dir), "%s/remuda-bench-XXXXXX", argc > 3 ? argv[3] : "/tmp");
    if (mkdtemp(state_dir) == NULL)
        die(state_dir);
    snprintf(cluster_file, sizeof(cluster_file), "%s/cluster.yaml", state_dir);
    pid_t pid = start_daemon();
    int64_t begin = clock_mono_ns();
    submit_all(conns, len, jobs);
    int64_t submitted = clock_mono_ns() - begin;
    while (running() < jobs)
        clock_sleep_ms(2);
    int64_t started = clock_mono_ns() - begin;
    struct rusage use;
    int status;
    kill(pid, SIGTERM);
    if (wait4(pid, &status, 0, &use) != pid)
        die("waiting for the daemon");
    int64_t cpu_us = (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * INT64_C(1000000) +
                     use.ru_utime.tv_usec + use.ru_stime.tv_usec;
    printf("jobs %u connections %u\n", jobs, len);
    printf("submitted %.3f s, %.0f jobs/s\n", (double)submitted / 1e9,
           jobs * 1e9 / (double)submitted);
    printf("started   %.3f s, %.0f jobs/s\n", (double)started / 1e9, jobs * 1e9 / (double)started);
    printf("daemon    %.1f us of processor time a job, %ld MiB at most\n", (double)cpu_us / jobs,
           use.ru_maxrss / 1024);
    dir_remove_tree(state_dir, NULL);
    return 0;
}
