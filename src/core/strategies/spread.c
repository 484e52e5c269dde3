/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread: the node that has the most left.
 *
 * Overview: the mirror of binpack. A share goes to the card with the most free; the workers of a
 * gang are placed one by one, so that they land on different machines as long as these are equally
 * free. Example: four workers of one card each on four idle machines get one machine each.
 *
 * Typical use: few jobs on many cards (heat, memory bandwidth and host memory to themselves),
 * services that should survive the loss of a machine. It scatters: large jobs find no free machine
 * soon. A job may ask for it alone with
 * `--strategy spread` on a cluster that packs.
 *
 * Production ready? Yes.
 */
#include "core/strategy.h"
#include "core/strategies/strategies.h"

/* The card of `in->cards` with the most free; lowest number on ties. */
static uint32_t emptiest_card(const struct score_in *in)
{
    uint32_t best = in->cards & -in->cards;
    for (uint32_t rest = in->cards; rest != 0; rest &= rest - 1) {
        uint32_t bit = rest & -rest;
        if (frag_card_free(&in->node->gpus[__builtin_ctz(bit)]) > frag_card_free(&in->node->gpus[__builtin_ctz(best)]))
            best = bit;
    }
    return best;
}

static int64_t score(const struct score_in *in, uint32_t *ret_mask)
{
    uint32_t card = in->req->share_milli > 0 ? emptiest_card(in) : 0;
    return strategy_left_free(in, card, ret_mask);
}

const struct strategy strategy_spread = {
    .name = "spread",
    .summary = "emptiest node first, emptiest card for a share",
    .score = score,
};
