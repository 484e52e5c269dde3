/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binpack: the node that is left with the least.
 *
 * Overview: the score is what stays free afterwards, CPU as a part of the node's and cards as a
 * part of the node's, half each, the fuller the better; nodes that hold something come before idle
 * ones of the same fill. A share goes to the tightest card. Example: a share of 300 on a node of
 * two cards with 400 and 1000 free and all CPU: 1100 of 2000 stay free. The same on a node with 300
 * and 300: 300 of 2000. The second is taken.
 *
 * Typical use: clusters of one card model with uniform requests, where machines that are wholly
 * free are wanted (to switch off, to drain, for large jobs). It knows nothing of what arrives: on
 * mixed requests `remuda` packs better (docs/placement.md).
 *
 * Production ready? Yes.
 */
#include "core/cards.h"
#include "core/strategy.h"
#include "core/strategies/strategies.h"

int64_t strategy_left_free(const struct score_in *in, uint32_t share_card, uint32_t *ret_mask)
{
    const struct node *n = in->node;
    const struct place_req *r = in->req;
    uint32_t free_milli = n->gpus_milli_free;
    *ret_mask = 0;
    if (r->gpus > 0) {
        *ret_mask = cards_pick(n, in->cards, r->gpus);
        free_milli -= r->gpus * GPU_MILLI;
    } else if (r->share_milli > 0) {
        *ret_mask = share_card;
        free_milli -= r->share_milli;
    }
    int64_t left = 0;
    if (n->cpu_milli > 0)
        left += (int64_t)(n->free_cpu_milli - r->cpu_milli) * 500000 / n->cpu_milli;
    if (n->gpus_len > 0)
        left += (int64_t)free_milli * 500000 / (n->gpus_len * GPU_MILLI);
    return left;
}

static int64_t score(const struct score_in *in, uint32_t *ret_mask)
{
    uint32_t card = in->req->share_milli > 0 ? strategy_tightest_card(in) : 0;
    return -strategy_left_free(in, card, ret_mask);
}

const struct strategy strategy_binpack = {
    .name = "binpack",
    .summary = "fullest node first, tightest card for a share",
    .together = true,
    .gang_prefer = LEVEL_NVLINK,
    .score = score,
};
