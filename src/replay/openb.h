/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The openb packing experiment (published with FGD, USENIX ATC 2023): tasks arrive one after another at a pool of 1,213
 * nodes and stay; one that fits nowhere is dropped; what counts is how much of the cards is given away when 130 % of
 * them have been asked for. Driven through the production ledger and placer, with production and published strategies.
 */
#ifndef REMUDA_REPLAY_OPENB_H
#define REMUDA_REPLAY_OPENB_H

#include "core/strategy.h"
#include "replay/openb_data.h"

/* The end state of a run; the fields are the columns of the published summary. */
struct openb_result {
    uint32_t arrived_pods;
    uint32_t unscheduled_pods;
    uint64_t alloc_gpu_milli;
    uint32_t alloc_pct; /* in hundredths, like those below: 9529 is 95.29 % */
    uint32_t frag_pct_of_capacity;
    uint32_t frag_pct_of_idle;
};

/* Where a task went; node -1: nowhere. */
struct openb_placed {
    int32_t node;
    int32_t shared_gpu; /* the card of a share, else -1 */
};

/*
 * Runs the experiment. `placed`, when not NULL, has room for every arrival. `seed` is that of the policy "random".
 * 0 or a negative errno with the reason.
 */
int openb_run(const struct openb_data *d, const struct strategy *strategy, uint64_t seed, struct openb_result *ret,
              struct openb_placed *placed, struct err *e);

/* By name: fgd, bestfit, dotprod, packing, clustering, random, and the production strategies. NULL: unknown. */
const struct strategy *openb_strategy(const char *name);

#endif
