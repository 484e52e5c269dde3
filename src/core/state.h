/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the core, shared by its files only (core.c applies records, schedule.c decides, queue.c orders,
 * reserve.c plans for the blocked, explain.c and audit.c read).
 */
#ifndef REMUDA_CORE_STATE_H
#define REMUDA_CORE_STATE_H

#include "base/intern.h"
#include "core/core.h"

/*
 * Queued jobs that ask for the same thing and are paid for by the same accounts: when the first of them does not fit,
 * none does. Blocked classes are not looked at until something is given back.
 */
struct job_class {
    struct payer payer;
    struct request req;
    uint32_t workers;
    enum level require;
    enum level prefer;
    int64_t time_limit_ms; /* decides who may pass behind a reservation */
    const struct strategy *strategy;
    struct otree jobs;          /* by order */
    struct otree_node in_all;   /* by the fields above */
    struct otree_node in_ready; /* by the first job; linked while not blocked */
    struct reason reason;       /* why the first job does not start; valid while blocked */
    bool capacity;              /* blocked by capacity: the reason's numbers are filled in when asked for */
    uint64_t reason_at;         /* the cluster's change number they were filled in for */
};

/* A node as it is expected to be when the reservation starts, with what started behind the reservation taken off. */
struct reserved_node {
    uint32_t workers; /* of the blocked job; room for them is kept */
    bool broken;      /* something else took the room: nothing more may start there */
    struct node then;
};

/* Nodes kept for a blocked job from `start_ms` on. */
struct reservation {
    const struct job *job;
    int64_t start_ms;
    bool bounded;                /* time limits say so; else a guess is in it */
    uint32_t *nodes;             /* ascending; owned */
    struct reserved_node *rooms; /* by the index in nodes; owned */
    uint32_t nodes_len;
};

#define RESERVATIONS_MAX 100

struct node_holders {
    struct holder *rows;
    size_t cap;
    uint32_t len;
};

struct core {
    struct cluster cluster;
    struct ledger ledger;
    struct placer *placer;
    struct config config;
    struct intern tenants;
    struct intern users;
    struct intern members; /* "TENANT\nUSER" */
    struct intern queues;

    struct job **table; /* job `id` is table[id - table_base]; NULL where forgotten */
    size_t table_cap;
    uint64_t table_base; /* at least 1 */
    uint64_t table_len;
    uint64_t counts[JOB_STATES_LEN];

    struct otree classes; /* every class with a queued job */
    struct otree ready;   /* classes to be tried, by their first job */
    struct otree delayed; /* queued jobs in back-off, by time */
    struct otree limits;  /* holding jobs with a time limit, by deadline */
    struct otree links;   /* wishes to start after others, by the job that is waited for */
    struct otree todo;    /* jobs with something to decide, by id */
    bool unblock;         /* something was given back or changed: try blocked classes again */

    struct reservation reservations[RESERVATIONS_MAX];
    uint32_t reservations_len;
    uint64_t *banned; /* scratch bit set over nodes */
    size_t banned_cap;

    struct node_holders *holders; /* by node */
    size_t holders_cap;

    struct placement scratch; /* of the pass */
    struct core_counters counters;
};

/* --- queue.c --- */
void queue_init(struct core *c);
void queue_done(struct core *c);
/* Order of jobs: priority with the queue's, then submission, then id. Negative: a first. */
int queue_compare(const struct job *a, const struct job *b);
/* Puts a queued job where it belongs: its class, or the delayed tree. 0 or -ENOMEM. */
int queue_add(struct core *c, struct job *j, int64_t now_ms);
void queue_remove(struct core *c, struct job *j);
struct job_class *queue_first_ready(struct core *c);
struct job *queue_head(const struct job_class *k);
/* Takes the class out of the ready ones until queue_unblock(). */
void queue_block(struct core *c, struct job_class *k, const struct reason *why, bool capacity);
void queue_unblock(struct core *c);
/* Moves jobs whose back-off is over from the delayed tree into their classes. */
int queue_wake(struct core *c, int64_t now_ms);
void queue_limit_add(struct core *c, struct job *j);
void queue_limit_remove(struct core *c, struct job *j);
void queue_todo(struct core *c, struct job *j);

/* --- reserve.c --- */
/* Drops reservations of jobs that no longer wait; true when any was dropped. */
bool reserve_prune(struct core *c);
void reserve_clear(struct core *c);
/* Makes (or renews) the reservation of a job blocked by capacity, when the depth allows. 0 or -ENOMEM. */
int reserve_make(struct core *c, const struct job *j, int64_t now_ms);
/*
 * place_find() that keeps the reservations: on a reserved node `j` gets only what leaves room for the workers of the
 * blocked job when the reservation starts, unless it ends before or comes first in the queue.
 */
int reserve_place(struct core *c, const struct job *j, int64_t now_ms, struct placement *ret);
/* To be told of each start: what runs on when a reservation starts is taken off there. */
void reserve_started(struct core *c, const struct job *j);
/* When a holding job is expected to end. */
int64_t reserve_expected_end(const struct job *j, int64_t now_ms);

/* --- depend.c --- */
void depend_init(struct core *c);
/* The wishes of a new job. 0, -EINVAL or -ENOMEM. */
int depend_add(struct core *c, struct job *j, const struct job_spec *s, struct err *e);
/* To be told of each end: jobs that waited for it become ready, or are to be ended. 0 or -ENOMEM. */
int depend_ended(struct core *c, const struct job *on, int64_t now_ms);
/* The job waits no more. */
void depend_drop(struct core *c, struct job *j);
/* The first job that is still waited for; 0: none. */
uint64_t depend_first(const struct job *j);

/* --- core.c --- */
struct job *core_job_mutable(struct core *c, uint64_t id);
struct place_query core_query(const struct core *c, const struct job *j);

/* --- schedule.c --- */
/* The caps that stand against the job, at most `rows_cap`; returns how many. */
uint32_t schedule_cap_reasons(const struct core *c, const struct job *j, struct reason *rows, uint32_t rows_cap);
#define CAP_REASONS_MAX 8

/* --- explain.c --- */
/* The first capacity reason against the job, with its numbers; false when it would fit. */
bool explain_capacity(struct core *c, const struct job *j, int64_t now_ms, struct reason *ret);
/* Says in words why the request can never run on the nodes that exist. Returns -ERANGE. */
int explain_never(const struct core *c, const struct job *probe, struct err *e);

#endif
