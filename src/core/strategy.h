/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placement strategy: a table of operations over one node. Scores are integers, higher is better; the placer
 * breaks ties by node rank. The production strategies are in src/core/strategies/, the published ones for
 * comparison in src/replay/strategies/, through this same interface.
 *
 * What the placer asks to be scored is one worker, or, for a gang that has to stay on one machine, the sum of its
 * workers as one request (req->gpus cards for all of them). What fits is the placer's business: a strategy is only
 * asked about nodes that have room.
 */
#ifndef REMUDA_CORE_STRATEGY_H
#define REMUDA_CORE_STRATEGY_H

#include "core/fragmentation.h"
#include "core/place.h"

#define SCORE_NONE INT64_MIN /* the placer's own mark for "does not fit"; no strategy returns it */

struct score_in {
    const struct mix *mix; /* never NULL */
    const void *state;     /* placer_set_state() */
    const struct node *node;
    const struct place_req *req;
    uint32_t cards; /* cards that may be used: all of them have room for the share, or are idle */
};

struct strategy {
    const char *name;
    const char *summary;    /* one line for help texts */
    bool uses_mix;          /* its scores change with the mix */
    bool together;          /* workers of a gang fill one machine after the other, largest room first */
    enum level gang_prefer; /* what a gang of several workers prefers when it says nothing */
    /*
     * The score of putting one worker of the request on the node, and the cards it would get: fills *ret_mask (0
     * for a request without cards). Must depend on nothing but what it is given and, through it, the node.
     */
    int64_t (*score)(const struct score_in *in, uint32_t *ret_mask);
    /*
     * Optional: picks among `len` candidates, in order of rank, by itself (the published random choice); returns
     * the index. Such a strategy is served by looking at all nodes.
     */
    uint32_t (*choose)(void *state, uint32_t len);
};

#endif
