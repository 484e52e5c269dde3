/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement: the one function from (worker request, number of workers, level, strategy) to concrete cards. Start,
 * preemption tests, estimates and explanations all ask here. It changes nothing: the caller takes the grants
 * through the ledger.
 *
 * A strategy scores nodes in integers; the placer finds the best node through a score index that is kept for
 * each distinct worker request and brought up to date from the cluster's change log.
 */
#ifndef REMUDA_CORE_PLACE_H
#define REMUDA_CORE_PLACE_H

#include "core/cluster.h"
#include "core/ledger.h"

/* A worker request with its models resolved; the unit of caching. */
struct place_req {
    uint32_t gpus;
    uint32_t share_milli;
    uint32_t share_mem_mib;
    uint32_t cpu_milli;
    uint64_t mem_mib;
    uint64_t model_mask;
};

/* Makes a place_req of a request for this cluster. */
struct place_req place_req_of(const struct cluster *c, const struct request *r);

struct place_query {
    struct place_req req;
    uint32_t workers; /* 1..WORKERS_MAX */
    enum level require;
    enum level prefer;
    const struct strategy *strategy; /* NULL: strategy_find("remuda") */
    /* Nodes that must not be used (reserved for somebody else), a bit per node id; NULL: none. */
    const uint64_t *banned;
};

/* Where each worker goes: grants[i] belongs to worker (rank) i. */
struct placement {
    struct grant *grants;
    size_t cap;
    uint32_t len;
    enum level level; /* the nearest level that all its cards share */
};

void placement_done(struct placement *p);

struct placer; /* indexes and the observed mix of requests */

/* `c` is borrowed. NULL when there is no memory. */
struct placer *placer_new(struct cluster *c);
void placer_free(struct placer *p);

/* Tells the placer that such a request arrived: the mix that fragmentation is measured against. */
void placer_observe(struct placer *p, const struct place_req *r, uint32_t workers);

/*
 * Finds a placement for the whole gang. Returns 0 and fills *ret; -EAGAIN when it does not fit now (*ret is
 * untouched); -ENOMEM. Deterministic: equal scores go to the lowest node rank.
 */
int place_find(struct placer *p, const struct place_query *q, struct placement *ret);

/*
 * True when the gang would fit on the open nodes of an empty cluster (with what nodes and cards exist now),
 * level included: the difference between "not now" and "never".
 */
bool place_possible(struct placer *p, const struct place_query *q);

/* How many workers of this request fit on the node as it is now. */
uint32_t place_room(const struct node *n, const struct place_req *r);

/* "remuda", "binpack", "spread"; NULL for an unknown name. Names for error messages: strategy_names(). */
const struct strategy *strategy_find(const char *name);
const char *strategy_names(void);

#endif
