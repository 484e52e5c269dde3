/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one ledger: everything held is held through ledger_take() and comes back through ledger_give(). A grant is
 * what one worker holds on one node. The accounts (tenants, users, members, queues) are charged in the same step, so
 * that no sum can drift from the grants it stands for; the audit (audit.h) checks exactly that.
 */
#ifndef REMUDA_CORE_LEDGER_H
#define REMUDA_CORE_LEDGER_H

#include "core/cluster.h"

struct grant {
    uint32_t node;
    uint32_t gpu_mask;    /* bit i: card i of the node; one bit for a share, several for whole cards */
    uint32_t milli;       /* thousandths of each card in the mask: GPU_MILLI when whole, 0 without cards */
    uint32_t gpu_mem_mib; /* of a share; a whole card brings all its memory whatever stands here */
    uint32_t cpu_milli;
    uint64_t mem_mib;
};

/* Who pays for a grant: ids in core's tables. */
struct payer {
    uint32_t tenant;
    uint32_t user;
    uint32_t member; /* the user within the tenant */
    uint32_t queue;
};

/* Running totals of one tenant, user, member or queue. */
struct account {
    uint64_t gpus_milli;
    uint64_t jobs; /* jobs that hold something */
    uint64_t cpu_milli;
    uint64_t mem_mib;
};

struct accounts {
    struct account *rows; /* by id */
    size_t cap;
};

struct ledger {
    struct cluster *cluster; /* borrowed */
    struct accounts tenants;
    struct accounts users;
    struct accounts members;
    struct accounts queues;
};

void ledger_init(struct ledger *l, struct cluster *c);
void ledger_done(struct ledger *l);

/* Room for accounts up to these ids; to be called before they pay. 0 or -ENOMEM. */
int ledger_reserve(struct ledger *l, struct payer upto);

/* True when every part of the grant is free on an open node. */
bool ledger_fits(const struct ledger *l, const struct grant *g);

/*
 * Takes all grants of a job (a gang: all or nothing was decided before). Every one must fit: asserted. The node
 * need not be open, so that what runs on a lost or draining node can be booked again at recovery. Counts as one
 * job of the payer when len > 0.
 */
void ledger_take(struct ledger *l, struct payer p, const struct grant *grants, size_t len);

/*
 * The same for grants that come from outside (recovery): takes all of them when every one fits beside the others,
 * else takes nothing and returns -EBUSY.
 */
int ledger_try_take(struct ledger *l, struct payer p, const struct grant *grants, size_t len);

/* Gives back what ledger_take() took. Asserts that it was held. */
void ledger_give(struct ledger *l, struct payer p, const struct grant *grants, size_t len);

/*
 * The same on one node alone and without accounts, for hypotheses on a copy of a node. The real nodes change
 * through ledger_take() and ledger_give() only.
 */
bool node_fits(const struct node *n, const struct grant *g); /* open or not */
void node_take(struct node *n, const struct grant *g);
void node_give(struct node *n, const struct grant *g);

/* Cards in thousandths that one grant counts for. */
uint32_t grant_gpus_milli(const struct grant *g);

#endif
