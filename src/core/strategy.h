/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placement strategy: a table of operations over one node. Scores are integers, higher is better; the placer
 * breaks ties by node rank. The production strategies are in src/core/strategies/, the published ones for
 * comparison in src/replay/strategies/, through this same interface.
 */
#ifndef REMUDA_CORE_STRATEGY_H
#define REMUDA_CORE_STRATEGY_H

#include "core/place.h"

#define SCORE_NONE INT64_MIN /* the worker does not fit on the node */

struct mix; /* the observed mix of requests (fragmentation.h) */

struct strategy {
    const char *name;
    const char *summary; /* one line for help texts */
    /*
     * The score of putting one worker of request `r` on `n` (which has room), and the cards it would get: fills
     * *ret_mask. Must depend on nothing but its arguments.
     */
    int64_t (*score)(const struct mix *mix, const struct node *n, const struct place_req *r, uint32_t *ret_mask);
    /*
     * Optional: maps raw scores to final ones once the lowest and highest raw score over all candidates are
     * known (the published best-fit rescales). A strategy with it is not served from the index.
     */
    int64_t (*rescale)(int64_t score, int64_t lowest, int64_t highest);
    /*
     * Optional: picks among `len` candidates by itself (the published random choice); returns the index.
     */
    uint32_t (*choose)(struct placer *p, uint32_t len);
};

#endif
