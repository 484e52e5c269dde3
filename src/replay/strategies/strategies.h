/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published placement strategies, for comparison: the openb experiment runs them through the very ledger and placer of
 * production. They follow the definitions of the simulator published with FGD (USENIX ATC 2023), truncations included,
 * since the truncation decides many ties.
 */
#ifndef REMUDA_REPLAY_STRATEGIES_STRATEGIES_H
#define REMUDA_REPLAY_STRATEGIES_STRATEGIES_H

#include "base/rng.h"
#include "core/strategy.h"

extern const struct strategy replay_bestfit;
extern const struct strategy replay_clustering;
extern const struct strategy replay_dotprod;
extern const struct strategy replay_fgd;
extern const struct strategy replay_packing;
extern const struct strategy replay_random;

/* The published formulas scale by the largest machine of that pool. */
#define OPENB_CPU_MILLI 128000
#define OPENB_GPU_MILLI 8000

/* What strategies of the experiment know beside the cluster: the state behind placer_set_state(). */
struct openb_state {
    uint8_t *classes; /* by node: bit set of the classes (openb_class) of what it holds */
    struct rng rng;
};

/* Bit of the class that clustering sorts a request into: shares, 1, 2, 4, 8 cards; 0 for one without cards. */
uint8_t openb_class(const struct place_req *r);

/* The share of each card and the cards' free sum, as the formulas use them. */
uint32_t openb_asked_milli(const struct place_req *r);

/* The lowest-numbered `r->gpus` cards, or the tightest one for a share; 0 without cards. */
uint32_t openb_cards(const struct score_in *in);

#endif
