/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a job does not run, as a code with numbers. Words are made elsewhere (i18n/). A reason always says which
 * resource, how much was asked, how much is free, and how much there is.
 */
#ifndef REMUDA_CORE_REASON_H
#define REMUDA_CORE_REASON_H

#include <stdint.h>

#include "config/types.h"

/* X(symbol, name in JSON) */
#define REASON_CODES(X)                  \
    X(REASON_NONE, "none")               \
    X(REASON_GPUS, "gpus")               \
    X(REASON_GPU_SHARE, "gpu-share")     \
    X(REASON_GPU_MEM, "gpu-mem")         \
    X(REASON_GPU_MODEL, "gpu-model")     \
    X(REASON_CPU, "cpu")                 \
    X(REASON_MEM, "mem")                 \
    X(REASON_LEVEL, "level")             \
    X(REASON_FRAGMENTED, "fragmented")   \
    X(REASON_WORKERS, "workers")         \
    X(REASON_TENANT_GPUS, "tenant-gpus") \
    X(REASON_TENANT_JOBS, "tenant-jobs") \
    X(REASON_USER_GPUS, "user-gpus")     \
    X(REASON_USER_JOBS, "user-jobs")     \
    X(REASON_QUEUE_GPUS, "queue-gpus")   \
    X(REASON_QUEUE_JOBS, "queue-jobs")   \
    X(REASON_RESERVED, "reserved")       \
    X(REASON_BACKOFF, "backoff")         \
    X(REASON_HELD, "held")               \
    X(REASON_BEGIN, "begin")             \
    X(REASON_AFTER, "after")             \
    X(REASON_BEHIND, "behind")           \
    X(REASON_NODES, "nodes")             \
    X(REASON_RECOVERING, "recovering")

enum reason_code {
#define X(symbol, name) symbol,
    REASON_CODES(X)
#undef X
        REASON_CODES_LEN,
};

/* "gpus" for REASON_GPUS. */
const char *reason_name(enum reason_code code);

#define REASON_HOLDERS_MAX 8

/* A job that holds some of what is short. */
struct reason_holder {
    uint64_t job;
    uint64_t amount;  /* in the unit of the reason */
    int64_t until_ms; /* when its time limit ends it; 0: unknown */
};

/*
 * Units: cards for REASON_GPUS and REASON_FRAGMENTED, thousandths of a card for shares and caps on cards,
 * thousandths of a CPU, MiB, jobs, nodes; workers for REASON_WORKERS (each alone would fit, not all of them: `name`
 * says by what, "gpus", "cpu" or "mem") and for REASON_LEVEL.
 */
struct reason {
    enum reason_code code;
    uint64_t asked;
    uint64_t free;
    uint64_t total;
    uint64_t used;        /* of caps: what is held now, which a new configuration may have left above the cap */
    enum level level;     /* REASON_LEVEL */
    char name[NAME_SIZE]; /* the tenant, user, queue or model that is meant */
    bool member;          /* REASON_USER_*: of the user's jobs in this tenant, not of all */
    int64_t until_ms;     /* REASON_BACKOFF, REASON_BEGIN, REASON_RESERVED */
    uint64_t job;         /* REASON_RESERVED, REASON_BEHIND: for whom; REASON_AFTER: which */
    uint32_t holders_len;
    struct reason_holder holders[REASON_HOLDERS_MAX];
};

#endif
