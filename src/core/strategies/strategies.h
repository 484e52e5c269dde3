/* SPDX-License-Identifier: Apache-2.0 */
/* The production strategies, and what they share. One file each; the table is in table.c. */
#ifndef REMUDA_CORE_STRATEGIES_STRATEGIES_H
#define REMUDA_CORE_STRATEGIES_STRATEGIES_H

#include "core/strategy.h"

extern const struct strategy strategy_binpack;
extern const struct strategy strategy_remuda;
extern const struct strategy strategy_spread;

/* The card of `in->cards` with the least free; lowest number on ties. There must be one. */
uint32_t strategy_tightest_card(const struct score_in *in);

/*
 * What is left free on the node once the worker is placed: 0 (full) to 1,000,000 (empty), half of it by CPU and half by
 * cards. A share goes to `share_card`, whole cards to those that cards_pick() takes; *ret_mask says which.
 */
int64_t strategy_left_free(const struct score_in *in, uint32_t share_card, uint32_t *ret_mask);

#endif
