/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list that the preemptive policies share. All jobs that have come and are not over, running or
 * not, stand in one order by (key, stamp); at every event the list is walked from its front and the
 * cards of the whole cluster are given to whatever fits. A running job that gets none is preempted.
 *
 * The published simulators sort one list stably over and over, so ties are decided by the history
 * of the list. That is what stamps are for: a job that changes its key goes behind all that have
 * the new key already, and jobs that change at once keep their order. See ranked.c for why this is
 * the same.
 */
#ifndef REMUDA_REPLAY_POLICIES_RANKED_H
#define REMUDA_REPLAY_POLICIES_RANKED_H

#include "base/otree.h"
#include "replay/classes.h"
#include "replay/sim.h"

struct rank {
    struct otree_node node; /* in the tree of its class while it waits */
    int64_t key;
    int64_t stamp;
    uint32_t job;
};

struct ranked {
    struct classes classes;
    struct rank *ranks;    /* by job */
    struct otree *waiting; /* by class */
    uint32_t *running;     /* in list order as of the last walk; may hold jobs that are over since */
    uint32_t *before;      /* the same of the walk before; scratch between walks */
    uint32_t running_len;
    uint32_t known;      /* jobs before this one are in the list */
    int64_t front, back; /* the last stamps given at either end */
};

/* 0 or -ENOMEM; what is filled is the caller's (ranked_done) in both cases. */
int ranked_init(struct ranked *r, const struct sim *s, struct err *e);
void ranked_done(struct ranked *r);

/* ---- the steps of a policy's schedule(), in this order ---- */

/* Drops from r->running what is over. */
void ranked_sweep(struct ranked *r, const struct sim *s);
/* Gives a running job another key: it goes behind all that have it. Call it in list order. */
void ranked_move(struct ranked *r, uint32_t job, int64_t key);
/* Takes in a job that has come, behind all with the same key. */
void ranked_add(struct ranked *r, uint32_t job, int64_t key);
/* Walks the list: starts and preempts. r->running is then what runs, in list order. */
void ranked_walk(struct ranked *r, struct sim *s);
/* Puts those that run before those that wait with the same key, order kept. For the level policies.
 */
void ranked_running_first(struct ranked *r);

/* ---- a whole policy whose state is a struct ranked and nothing else ---- */

int ranked_policy_init(struct sim *s, struct err *e);
void ranked_policy_done(struct sim *s);
/* The steps above with the keys that `key_of` gives now. */
void ranked_policy_schedule(struct sim *s, int64_t (*key_of)(const struct sim *s, uint32_t job));

#endif
