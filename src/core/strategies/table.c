/* SPDX-License-Identifier: Apache-2.0 */
#include "core/strategies/strategies.h"

#include <string.h>

/* The default first. */
static const struct strategy *const strategies[] = {
    &strategy_remuda,
    &strategy_binpack,
    &strategy_spread,
};

const struct strategy *strategy_find(const char *name)
{
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        if (strcmp(strategies[i]->name, name) == 0)
            return strategies[i];
    }
    return NULL;
}

const char *strategy_names(void)
{
    return "remuda, binpack, spread";
}

uint32_t strategy_tightest_card(const struct score_in *in)
{
    uint32_t best = in->cards & -in->cards;
    for (uint32_t rest = in->cards; rest != 0; rest &= rest - 1) {
        uint32_t bit = rest & -rest;
        if (frag_card_free(&in->node->gpus[__builtin_ctz(bit)]) < frag_card_free(&in->node->gpus[__builtin_ctz(best)]))
            best = bit;
    }
    return best;
}
