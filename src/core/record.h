/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: the log is a sequence of them, and the state is what the log says. An input (something that happened
 * or was asked for) and a decision (what the core made of it) are both records and are applied by the same
 * function, core_apply(), live and at recovery alike. A record carries everything its application needs: no
 * clock, no configuration outside the state, no second look at the world.
 *
 * Kinds have fixed numbers since they are stored. A stored kind is never reused for something else.
 */
#ifndef REMUDA_CORE_RECORD_H
#define REMUDA_CORE_RECORD_H

#include "config/types.h"
#include "core/cluster.h"
#include "core/ledger.h"

/* X(symbol, number, name as shown in events) */
#define RECORD_KINDS(X)                      \
    X(REC_CONFIG, 1, "config")               \
    X(REC_NODE, 2, "node")                   \
    X(REC_NODE_STATE, 3, "node-state")       \
    X(REC_JOB_SUBMIT, 4, "submitted")        \
    X(REC_JOB_UPDATE, 5, "updated")          \
    X(REC_JOB_CANCEL, 6, "cancel-requested") \
    X(REC_JOB_START, 7, "starting")          \
    X(REC_JOB_RUNNING, 8, "running")         \
    X(REC_WORKER_EXIT, 9, "worker-exited")   \
    X(REC_JOB_STOP, 10, "stopping")          \
    X(REC_JOB_RETRY, 11, "requeued")         \
    X(REC_JOB_END, 12, "ended")              \
    X(REC_JOB_RESTORE, 13, "restored")       \
    X(REC_JOB_REQUEUE, 14, "requeue-requested")

enum record_kind {
#define X(symbol, number, name) symbol = number,
    RECORD_KINDS(X)
#undef X
};

/* "submitted" for REC_JOB_SUBMIT; NULL for a number that is no kind. */
const char *record_kind_name(enum record_kind kind);

/* Why a running job is being stopped, and why it ended as it did. Stored: numbers are fixed. */
enum cause {
    CAUSE_NONE = 0,
    CAUSE_EXIT = 1,   /* its processes ended by themselves */
    CAUSE_CANCEL = 2, /* somebody asked for it */
    CAUSE_TIME_LIMIT = 3,
    CAUSE_WORKER_FAILED = 4, /* another worker of the gang failed */
    CAUSE_LAUNCH_FAILED = 5, /* the engine could not start it */
    CAUSE_LOST = 6,          /* the runner or the node vanished */
    CAUSE_OOM = 7,           /* out of host memory: a process was killed by the kernel */
    CAUSE_NODE_GONE = 8,
    CAUSE_REQUEUE = 9,     /* somebody asked for it to be run again from the start */
    CAUSE_DEPENDENCY = 10, /* what it was to start after ended otherwise */
};
#define CAUSE_LAST CAUSE_DEPENDENCY
/* "time-limit" and so on, as in JSON. */
const char *cause_name(enum cause cause);

/* How one worker ended. */
struct worker_exit {
    uint32_t worker;
    int32_t code;     /* exit code; -1 when killed by a signal or never started */
    int32_t signal;   /* 0: none */
    enum cause cause; /* CAUSE_EXIT, CAUSE_OOM, CAUSE_LAUNCH_FAILED or CAUSE_LOST */
    bool core_dumped;
    uint64_t peak_mem_mib;
    int64_t cpu_ms;   /* CPU time used */
    char detail[160]; /* for CAUSE_LAUNCH_FAILED and CAUSE_LOST: what went wrong */
};

/* What an update changes; a field counts when its `set_` is true. */
struct job_change {
    bool set_priority;
    bool set_time_limit;
    bool set_name;
    bool set_queue;
    bool set_hold;
    bool hold;
    int32_t priority;
    int64_t time_limit_ms;
    char name[NAME_SIZE];
    char queue[NAME_SIZE];
};

struct record {
    uint64_t seq;    /* position in the log, from 1; 0 until appended */
    int64_t time_ms; /* wall clock */
    enum record_kind kind;
    uint64_t job;     /* 0 where no job is meant */
    uint32_t attempt; /* from 1; 0 where no attempt is meant */
    /* What the kind needs; the others are NULL or 0. Owned by the record where they are pointers. */
    struct config *config;      /* REC_CONFIG */
    char *text;                 /* REC_CONFIG: the source as it was given; REC_NODE_STATE: why */
    struct node_desc *node;     /* REC_NODE */
    uint32_t node_id;           /* REC_NODE_STATE */
    enum node_state node_state; /* REC_NODE_STATE */
    bool draining;              /* REC_NODE_STATE */
    struct job_spec *spec;      /* REC_JOB_SUBMIT */
    struct job_change change;   /* REC_JOB_UPDATE */
    char by[NAME_SIZE];         /* who asked: REC_JOB_UPDATE, REC_JOB_CANCEL, REC_NODE_STATE, REC_CONFIG */
    struct grant *grants;       /* REC_JOB_START: one for each worker */
    uint32_t grants_len;
    enum level level;        /* REC_JOB_START */
    struct worker_exit exit; /* REC_WORKER_EXIT */
    enum cause cause;        /* REC_JOB_STOP, REC_JOB_END, REC_JOB_RETRY */
    int64_t not_before_ms;   /* REC_JOB_RETRY: back-off */
};

/* Releases what the record owns. */
void record_done(struct record *r);

#endif
