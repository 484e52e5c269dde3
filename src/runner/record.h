/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of the exit file, the status file and the control socket (abi/runner.h) as structures. The parsers take
 * any bytes and fail rather than guess.
 */
#ifndef REMUDA_RUNNER_RECORD_H
#define REMUDA_RUNNER_RECORD_H

#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNNER_DETAIL_SIZE 256

enum runner_cause {
    RUNNER_NORMAL,
    RUNNER_OOM,
    RUNNER_LAUNCH_FAILED,
    RUNNER_LOST,
};

/* How a worker ended. */
struct runner_exit {
    uint32_t rank;
    int32_t code;   /* -1: ended by a signal, or never started */
    int32_t signal; /* 0: none */
    enum runner_cause cause;
    bool core;
    uint64_t peak_mem_mib;
    int64_t cpu_ms;
    int64_t time_ms;                 /* wall clock */
    uint64_t output_lost;            /* bytes of output that could not be written */
    char detail[RUNNER_DETAIL_SIZE]; /* one line, "" for none */
};

/* Appends one line with its newline, at most RUNNER_LINE_BYTES. */
void runner_exit_write(const struct runner_exit *x, struct strbuf *out);
/* `line` without its newline. 0 or -EINVAL; *ret is untouched on failure. */
int runner_exit_parse(const char *line, struct runner_exit *ret);

struct runner_process {
    uint32_t rank;
    int32_t pid;
    uint64_t start_ticks;
};

struct runner_status {
    char state[16];
    int32_t pid;
    uint64_t start_ticks;
    char boot[40];
    int64_t started_ms; /* 0: not all workers run yet */
    char note[RUNNER_DETAIL_SIZE];
    char *cgroup;                   /* owned; may be NULL when written */
    struct runner_process *workers; /* owned */
    size_t workers_len, workers_cap;
};

void runner_status_done(struct runner_status *s);
void runner_status_write(const struct runner_status *s, struct strbuf *out);
/* `text` is terminated. 0, -EINVAL or -ENOMEM; *ret is untouched on failure. */
int runner_status_parse(const char *text, struct runner_status *ret, struct err *e);

#endif
