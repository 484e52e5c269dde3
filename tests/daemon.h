/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real daemon for tests: a child process that runs server_main() on a state folder of its own
 * with the simulated engine, and a plain HTTP client for its socket. Everything asserts; nothing is
 * shared between two daemons but the state folder.
 */
#ifndef REMUDA_TESTS_DAEMON_H
#define REMUDA_TESTS_DAEMON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct daemon {
    char state_dir[64];
    char cluster_file[96];
    pid_t pid;               /* 0: not running */
    const char *listen;      /* NULL: the Unix socket alone */
    const char *config_text; /* NULL: none */
    const char *runner;      /* path of remuda-runner: the local engine with real processes; NULL: the
                                simulated one */
    unsigned full_after;     /* limit on the size of files in KiB, 0: none (a disk that fills up) */
};

struct reply {
    int status; /* 0: the connection ended without an answer */
    char *head; /* status line and headers */
    char *body; /* terminated */
    size_t len;
    json_t *json; /* NULL when the body is no JSON */
};

/* Makes the folder and a cluster file of `nodes` nodes with 8 cards each. */
void daemon_prepare(struct daemon *d, unsigned nodes);
/* Starts it and waits until it is ready. */
void daemon_start(struct daemon *d);
/* Starts it and returns its exit code without waiting for readiness: for daemons that must not
 * start. */
int daemon_start_fails(struct daemon *d);
void daemon_kill(struct daemon *d);
/* SIGTERM, and the exit code. */
int daemon_stop(struct daemon *d);
/* Removes the folder; the daemon is killed when it still runs. */
void daemon_remove(struct daemon *d);

/* A connection to its socket. */
int daemon_connect(const struct daemon *d);
/* Sends bytes and reads the answer until the connection ends. `fd` is closed. */
struct reply daemon_raw(int fd, const void *bytes, size_t len);
/* One call in HTTP/1.0. `headers` is NULL or lines that end with \r\n. */
struct reply daemon_call(const struct daemon *d, const char *method, const char *path, const char *headers,
                         const char *body);
void reply_done(struct reply *r);
/* A call that must give this status; the JSON body, the caller's. */
json_t *daemon_json(const struct daemon *d, const char *method, const char *path, const char *body, int status);

#endif
