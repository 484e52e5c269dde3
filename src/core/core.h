/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler. A pure function: the same records in the same order give the same state and the same decisions, bit
 * for bit, on every machine. No I/O, no clock, no threads, no globals.
 *
 * core_apply() takes a record (an input or a decision) into the state; core_pass() looks at the state and makes
 * decisions, each of which it applies itself and hands to the caller as a record. At recovery only core_apply() is
 * called: recorded decisions are applied, never made again.
 *
 * One thread at a time. Pointers that are handed out are borrowed and valid until the next change.
 */
#ifndef REMUDA_CORE_CORE_H
#define REMUDA_CORE_CORE_H

#include "core/job.h"

struct core;

/* A core without nodes or jobs, with default configuration. NULL when there is no memory. */
struct core *core_new(void);
void core_free(struct core *c);

/*
 * Takes a record into the state. Errors: -EINVAL when the record contradicts the state (the text says how), -ENOMEM;
 * the core must then be thrown away, unless core_check() was asked first.
 */
int core_apply(struct core *c, const struct record *r, struct err *e);

/* Takes over the record (record_done() is the receiver's), which has been applied already. 0 or a negative errno. */
typedef int core_emit(void *arg, struct record *r);

/*
 * One pass: ends what is over, starts what fits in order, keeps reservations for the first blocked jobs. Cost
 * follows what has changed since the last pass: classes of jobs that did not fit are looked at again only after
 * something was given back. Returns 0, or what emit returned, or -ENOMEM.
 */
int core_pass(struct core *c, int64_t now_ms, core_emit *emit, void *arg);

/* When a pass is needed though nothing happens (a time limit, a back-off); INT64_MAX: never. */
int64_t core_next_wake_ms(const struct core *c);

/*
 * The best reason against accepting a job: it could never run on the nodes that exist (the text names the field, what
 * was asked and what is there) or it passes a cap by itself. 0 or -ERANGE.
 */
int core_check_spec(struct core *c, const struct job_spec *spec, struct err *e);

/* --- reading --- */
const struct job *core_job(const struct core *c, uint64_t id);
/* Jobs in order of id: the first with an id above `after`, NULL at the end. */
const struct job *core_job_after(const struct core *c, uint64_t after);
uint64_t core_last_job_id(const struct core *c);
const struct cluster *core_cluster(const struct core *c);
const struct config *core_config(const struct core *c);
const struct account *core_tenant_account(const struct core *c, uint32_t tenant);
const struct account *core_user_account(const struct core *c, uint32_t user);
const struct account *core_member_account(const struct core *c, uint32_t member);
const struct account *core_queue_account(const struct core *c, uint32_t queue);
const char *core_tenant_name(const struct core *c, uint32_t tenant);
const char *core_user_name(const struct core *c, uint32_t user);
const char *core_queue_name(const struct core *c, uint32_t queue);
/* The inverse; INTERN_NONE (an account of zeros) for a name that no job has brought. */
uint32_t core_tenant_id(const struct core *c, const char *name);
uint32_t core_user_id(const struct core *c, const char *name);
uint32_t core_queue_id(const struct core *c, const char *name);
/*
 * The caps that hold for a tenant, user or queue by name. Those of a user count all its jobs; those of a member (what
 * a tenant allows each of its users) count the user's jobs in that tenant; a cap of the user's own stands instead.
 */
struct caps core_tenant_caps(const struct core *c, const char *tenant);
struct caps core_user_caps(const struct core *c, const char *user);
struct caps core_member_caps(const struct core *c, const char *user, const char *tenant);
struct caps core_queue_caps(const struct core *c, const char *queue);
uint64_t core_count(const struct core *c, enum job_state s);

/* Who holds something on a node. */
struct holder {
    uint64_t job;
    uint32_t worker;
};
const struct holder *core_holders(const struct core *c, uint32_t node, uint32_t *ret_len);

/*
 * Why a queued job waits, as the last pass saw it, with the numbers as they are now; REASON_NONE for any other job.
 * Jobs of a class share the answer, so that a list of many costs little.
 */
struct reason core_reason(struct core *c, const struct job *j, int64_t now_ms);

/* The reservation kept for a blocked job; false when it has none. */
struct reservation_view {
    int64_t start_ms;      /* expected start */
    bool bounded;          /* all jobs that are waited for have time limits: it starts no later */
    const uint32_t *nodes; /* borrowed */
    uint32_t nodes_len;
};
bool core_reservation(const struct core *c, uint64_t job, struct reservation_view *ret);

/* Forgets an ended job. */
void core_forget(struct core *c, uint64_t id);

/* Counters: one for each branch of the pass that matters, exported as metrics. */
#define CORE_COUNTERS(X)                                          \
    X(passes, "passes")                                           \
    X(tried, "placements tried")                                  \
    X(placed, "jobs started")                                     \
    X(blocked_capacity, "jobs found blocked by capacity")         \
    X(blocked_caps, "jobs found blocked by a cap")                \
    X(skipped_class, "classes not tried: nothing was given back") \
    X(backfilled, "jobs started behind a reservation")            \
    X(reservations, "reservations made")                          \
    X(time_limits, "jobs stopped at their time limit")            \
    X(retries, "starts tried again")
struct core_counters {
#define X(name, text) uint64_t name;
    CORE_COUNTERS(X)
#undef X
};
const struct core_counters *core_counters(const struct core *c);

#endif
