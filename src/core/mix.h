/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observed mix: how often each kind of request arrives, counted from placer_observe(), and the snapshot that
 * scores are computed with. Every snapshot makes all scores of strategies that use the mix stale, so it is renewed
 * rarely: after 64 observations, then whenever their number has grown by a quarter (at most 4,096), and only if at
 * least 5 % of the weight moved. Popular kinds that make up 95 % of the weight are kept, as published. Old
 * observations fade: when the weights sum to MIX_TOTAL_MAX, all are halved.
 *
 * Before anything was observed a small prior stands for the usual sizes (1, 2, 4 and 8 whole cards).
 *
 * A function of the sequence of observations alone.
 */
#ifndef REMUDA_CORE_MIX_H
#define REMUDA_CORE_MIX_H

#include "core/fragmentation.h"

#define MIX_KINDS_MAX      256
#define MIX_TOTAL_MAX      65536
#define MIX_GANG_WEIGHT    64 /* a gang counts for its workers, at most this many */
#define MIX_KEEP_PPM       950000
#define MIX_DIFFERENCE_PPM 50000

struct mix_counter {
    struct mix_item kinds[MIX_KINDS_MAX]; /* in order of first appearance */
    size_t len;
    uint64_t total; /* sum of the weights */
    uint64_t seen;  /* observations so far */
    uint64_t next;  /* the number of observations the next snapshot is due at */
};

void mix_counter_init(struct mix_counter *c);

/* Counts a request. True when a snapshot is due. */
bool mix_counter_add(struct mix_counter *c, const struct place_req *r, uint32_t workers);

/*
 * A new mix, owned by the caller, when it differs enough from `old` (NULL: always); NULL when it does not or when
 * there is no memory.
 */
struct mix *mix_counter_snapshot(const struct mix_counter *c, const struct mix *old);

/* The kind that a request is counted as, weight 0. */
struct mix_item mix_item_of(const struct place_req *r);

#endif
