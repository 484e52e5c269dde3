/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job as the core sees it: what it asks for, who pays, where it is in its life, what it holds.
 *
 *     queued -> starting -> running -> succeeded | failed | cancelled
 *        ^         |           |
 *        +---------+-----------+   requeued, with the next attempt
 *
 * Invariants (held by the audit):
 *   queued               holds nothing and is in the queue or (back-off, begin time, held, waiting for other jobs) in
 * the delayed tree starting, running    holds one grant for each worker; attempt >= 1 ended                holds
 * nothing; ended_ms and cause are set
 */
#ifndef REMUDA_CORE_JOB_H
#define REMUDA_CORE_JOB_H

#include "base/otree.h"
#include "core/place.h"
#include "core/record.h"
#include "core/reason.h"

/* X(symbol, name) */
#define JOB_STATES(X)             \
    X(JOB_QUEUED, "queued")       \
    X(JOB_STARTING, "starting")   \
    X(JOB_RUNNING, "running")     \
    X(JOB_SUCCEEDED, "succeeded") \
    X(JOB_FAILED, "failed")       \
    X(JOB_CANCELLED, "cancelled")

enum job_state {
#define X(symbol, name) symbol,
    JOB_STATES(X)
#undef X
        JOB_STATES_LEN,
};

const char *job_state_name(enum job_state s);

/* The exit status of a job that was cancelled. */
#define EXIT_STATUS_CANCELLED 125
/* A job whose start fails this often has failed. */
#define LAUNCH_TRIES_MAX 3

struct job_class;
struct job;

/* A wish to start after job `on` (core/depend.c): linked while it is not met. */
struct dependency_link {
    uint64_t on;
    enum after_kind kind;
    uint32_t number; /* among the wishes of the job */
    struct job *job;
    struct otree_node node;
};

struct job {
    uint64_t id;
    enum job_state state;
    struct payer payer;
    struct request req;
    uint32_t workers;
    int32_t priority; /* as given */
    int32_t order;    /* priority plus the queue's: what decides */
    enum level require;
    enum level prefer;
    const struct strategy *strategy;
    int64_t submitted_ms;
    int64_t started_ms; /* of the current or last attempt; 0: never */
    int64_t running_ms; /* when its workers were reported to run; 0: not yet */
    int64_t ended_ms;
    int64_t time_limit_ms;         /* 0: none */
    int64_t grace_ms;              /* 0: the configuration's */
    int64_t not_before_ms;         /* back-off, or the time it was asked to begin at; 0: none */
    struct dependency_link *links; /* owned */
    uint32_t links_len;
    uint32_t links_left; /* not met yet */
    bool links_failed;   /* one can not be met any more */
    bool held;           /* until somebody releases it */
    bool requeue_asked;  /* to be stopped and run again */
    uint32_t attempt;
    uint32_t launch_failures;
    struct grant *grants; /* one for each worker while starting or running */
    enum level level;     /* nearest level its cards share */
    uint32_t exits;       /* workers that ended in this attempt */
    uint8_t *exited;      /* by worker: 1 when ended */
    bool cancel_asked;
    enum cause stop_cause; /* CAUSE_NONE: nobody asked it to stop */
    bool failed;           /* a worker ended badly */
    enum cause fail_cause; /* of the first bad worker */
    int32_t exit_status;   /* of the first bad worker, else 0 */
    enum cause cause;      /* how it ended */
    struct reason reason;  /* why it waits, as of the last pass that looked at it */

    struct job_class *class;    /* while queued */
    struct otree_node in_class; /* queued, by order */
    struct otree_node by_time;  /* delayed: by not_before_ms; running: by deadline */
    struct otree_node in_todo;  /* something about it has to be decided in the next pass */
};

bool job_ended(const struct job *j);
bool job_holds(const struct job *j);
/* Cards in thousandths over all workers. */
uint64_t job_gpus_milli(const struct job *j);
/* When a queued job may be tried: INT64_MAX while it is held or waits for others to end. */
int64_t job_wake_ms(const struct job *j);
/* started + limit, or INT64_MAX without a limit. */
int64_t job_deadline_ms(const struct job *j);

#endif
