/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explanations: why a job waits, constraint by constraint (asked, free, short by, who holds it, until when), and which
 * smaller or different request would start now. Nothing is changed. Cost O(nodes + jobs that hold) plus one placement
 * for each counterfactual.
 */
#ifndef REMUDA_CORE_EXPLAIN_H
#define REMUDA_CORE_EXPLAIN_H

#include "core/core.h"

#define EXPLAIN_REASONS_MAX 16
#define EXPLAIN_CHANGES_MAX 6

enum verdict {
    VERDICT_RUNNING,
    VERDICT_ENDED,
    VERDICT_CAN_START, /* nothing stands against it: it starts in the next pass */
    VERDICT_WAITS,
    VERDICT_NEVER,
};
const char *verdict_name(enum verdict v);

/* One change of the request with which the job would start now. */
struct would_start {
    enum {
        CHANGE_GPUS,
        CHANGE_WORKERS,
        CHANGE_REQUIRE,
        CHANGE_MODEL,
        CHANGE_CPU,
        CHANGE_MEM,
        CHANGE_TIME_LIMIT
    } change;
    uint64_t value;        /* cards, workers, thousandths of a CPU, MiB, milliseconds */
    enum level level;      /* CHANGE_REQUIRE */
    char model[NAME_SIZE]; /* CHANGE_MODEL: "" any */
};
const char *change_name(int change);

struct explanation {
    enum verdict verdict;
    uint64_t position; /* from 1 in the order of its queue of waiting jobs; 0 when not waiting */
    uint32_t reasons_len;
    struct reason reasons[EXPLAIN_REASONS_MAX];
    uint32_t changes_len;
    struct would_start changes[EXPLAIN_CHANGES_MAX];
};

/* 0, -ENOENT or -ENOMEM. */
int core_explain(struct core *c, int64_t now_ms, uint64_t job, struct explanation *ret);

#endif
