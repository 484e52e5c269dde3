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

/*
 * Makes a place_req of a request for this cluster. Models that appear in the cluster later are not in its mask: make
 * it again when cluster->models has grown.
 */
struct place_req place_req_of(const struct cluster *c, const struct request *r);

/*
 * The levels. `require` is kept or nothing is placed. With `prefer` (nearer than `require`) that level is tried
 * first, then each wider one down to `require`. A request with neither leaves it to the strategy (gang_prefer).
 * A rack or machine is chosen as the tightest that holds the whole gang.
 */
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
    /* The nearest level that all its cards share; workers without cards are as near as their machines. */
    enum level level;
};

void placement_done(struct placement *p);

struct placer; /* indexes and the observed mix of requests */

/* `c` is borrowed. NULL when there is no memory. */
struct placer *placer_new(struct cluster *c);
void placer_free(struct placer *p);

/*
 * Tells the placer that such a request arrived: the mix that fragmentation is measured against. The mix in use is a
 * snapshot of these counts, renewed at fixed numbers of observations and only when it differs by enough (mix.h): it
 * is a function of the sequence of these calls and nothing else. Out of memory the old snapshot stays in use.
 */
void placer_observe(struct placer *p, const struct place_req *r, uint32_t workers);

/* One kind of request in a mix. */
struct mix_item {
    uint32_t cpu_milli;
    uint32_t gpus;       /* cards; 0 for a request that uses none */
    uint32_t milli;      /* of each card; GPU_MILLI: whole */
    uint64_t model_mask; /* models it may use */
    uint64_t weight;     /* how often, in any unit */
};

/* Uses this mix from now on; placer_observe() has no effect any more. For experiments. 0 or -ENOMEM. */
int placer_set_mix(struct placer *p, const struct mix_item *items, size_t len);

/* The mix in use. */
const struct mix *placer_mix(const struct placer *p);

/* What a strategy outside core keeps for itself (strategy.h); borrowed. */
void placer_set_state(struct placer *p, void *state);

/*
 * Finds a placement for the whole gang. Returns 0 and fills *ret; -EAGAIN when it does not fit now (*ret is
 * untouched); -ENOMEM. Deterministic: equal scores go to the lowest node rank.
 */
int place_find(struct placer *p, const struct place_query *q, struct placement *ret);

/*
 * True when the gang would fit on an empty cluster (with what nodes and cards exist now, drained and unreachable ones
 * too), level included: the difference between "not now" and "never".
 */
bool place_possible(struct placer *p, const struct place_query *q);

/* How many workers of this request fit on the node as it is now, at most WORKERS_MAX; 0 when it is not open. */
uint32_t place_room(const struct node *n, const struct place_req *r);

/* Figures of the indexes since the placer was made, for metrics and tests. */
struct place_stats {
    uint64_t scored;  /* scores computed */
    uint64_t rebuilt; /* indexes built from scratch */
    uint64_t evicted; /* indexes dropped for room */
    uint64_t bytes;   /* held by indexes now */
};
struct place_stats placer_stats(const struct placer *p);

/* "remuda", "binpack", "spread"; NULL for an unknown name. Names for error messages: strategy_names(). */
const struct strategy *strategy_find(const char *name);
const char *strategy_names(void);

#endif
