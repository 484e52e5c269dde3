/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual clock that job traces are replayed on, and what a policy sees of it.
 *
 * Time is in whole seconds and jumps from event to event. At each moment first all completions are
 * taken in, then all arrivals in queue order, then the policy is asked once. A job is the number of
 * its place in the trace, which is also its place in queue order; nothing is random, so a replay
 * gives the same result everywhere.
 *
 * The policies here are the published ones that Remuda is compared with; they see a cluster as so
 * many cards (placement `count`) or as nodes that are filled by a simple rule (`yarn`). One policy
 * is one file under policies/.
 */
#ifndef REMUDA_REPLAY_SIM_H
#define REMUDA_REPLAY_SIM_H

#include "base/err.h"
#include "replay/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_NEVER INT64_MAX
#define SIM_NONE  UINT32_MAX

struct sim;

/* A job's life so far. */
struct sim_job {
    int64_t left_s;  /* still to run, as of the last start or preemption */
    int64_t start_s; /* first start; -1 before it */
    int64_t since_s; /* start of the present run; -1 while it does not run */
    int64_t end_s;   /* -1 before it */
    uint32_t preemptions;
    uint32_t heap_at; /* place among the running */
};

/*
 * Where cards come from. fits() and take() agree: take() succeeds exactly when fits() says so. Both
 * see the number of free cards as already checked.
 */
struct placement_ops {
    const char *name;
    int (*init)(struct sim *s, struct err *e);
    void (*done)(struct sim *s);
    /* Takes the cards of `job`; false when they are not there in the shape that is needed. */
    bool (*take)(struct sim *s, uint32_t job);
    void (*give)(struct sim *s, uint32_t job);
    /* True when a job of so many cards could run if the cluster were empty. */
    bool (*possible)(const struct sim *s, uint32_t gpus);
};

struct policy {
    const char *name;
    const char *alias; /* as in the published files; NULL: none */
    const char *about; /* one line for the help */
    bool needs_count;  /* it reckons with the number of free cards alone */
    int (*init)(struct sim *s, struct err *e);
    void (*done)(struct sim *s);
    /* A job has come (it is below s->next); it waits until the policy starts it. May be NULL. */
    void (*arrive)(struct sim *s, uint32_t job);
    /* A running job is over; its cards are free already. May be NULL. */
    void (*finish)(struct sim *s, uint32_t job);
    /* Everything of this moment is known: start and preempt. */
    void (*schedule)(struct sim *s);
    /* A moment later than now at which it wants to be asked though nothing comes or ends; may be
     * NULL. */
    int64_t (*wake)(const struct sim *s);
};

/* How busy the cluster was from `at_s` to the next sample. */
struct sim_sample {
    int64_t at_s;
    uint32_t gpus_used;
    uint32_t waiting; /* jobs */
};

struct sim {
    const struct trace *trace; /* borrowed */
    const struct policy *policy;
    const struct placement_ops *placement;
    uint32_t nodes;
    uint32_t gpus_per_node;
    uint32_t gpus; /* of all nodes */
    uint32_t free;
    int64_t now_s;
    struct sim_job *jobs; /* by job */
    uint32_t next;        /* the next job to come */
    uint32_t *heap;       /* the running, the earliest end first, then the lower number */
    uint32_t running;
    uint32_t started;
    uint32_t waiting; /* come and not running */
    uint32_t finished;
    uint64_t events; /* moments at which the policy was asked */
    bool failed;     /* memory ran out inside a policy; the run ends with -ENOMEM */
    void *policy_state;
    void *placement_state;
    struct sim_sample *samples; /* NULL unless asked for */
    size_t samples_cap, samples_len;
    bool want_samples;
};

/*
 * Replays `trace` from first submission to last end. `s` is filled and the caller's (sim_done) also
 * after an error. -EINVAL when some job can never run there, with its line; -ENOMEM.
 */
int sim_run(struct sim *s, const struct trace *trace, uint32_t nodes, uint32_t gpus_per_node,
            const struct policy *policy, const struct placement_ops *placement, bool want_samples, struct err *e);
void sim_done(struct sim *s);

/* ---- for policies ---- */

/* Starts (or resumes) a waiting job if its cards are there. False: it does not fit, nothing has
 * changed. */
bool sim_start(struct sim *s, uint32_t job);
/* Takes a running job from its cards; what it has done is kept, at no cost. */
void sim_preempt(struct sim *s, uint32_t job);
static inline bool sim_running(const struct sim *s, uint32_t job)
{
    return s->jobs[job].since_s >= 0;
}
static inline uint32_t sim_gpus(const struct sim *s, uint32_t job)
{
    return s->trace->jobs[job].gpus;
}
/* What a job still has to run, now. */
static inline int64_t sim_left(const struct sim *s, uint32_t job)
{
    const struct sim_job *j = &s->jobs[job];
    return j->since_s < 0 ? j->left_s : j->left_s - (s->now_s - j->since_s);
}

/* ---- what there is ---- */

extern const struct placement_ops placement_count, placement_yarn;
extern const struct policy policy_fifo, policy_fjf, policy_sjf, policy_srtf, policy_srsf, policy_dlas, policy_dlas_gpu,
    policy_las, policy_easy, policy_conservative;

/* By name or alias; NULL when there is none. */
const struct policy *policy_find(const char *name);
/* The i-th policy in the order of the help; NULL after the last. */
const struct policy *policy_at(size_t i);
const struct placement_ops *placement_find(const char *name);

#endif
