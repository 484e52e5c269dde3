/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packing: used cards first, then idle cards of used nodes, then idle nodes, as published with FGD.
 *
 * Overview: a share that fits on a used card scores 100 less a tenth of what is free on that card in
 * percent; a request that needs idle cards of a node in use scores 50 less their number, at least
 * 33; an idle node scores 33 less its cards. A request without cards scores 0 everywhere. Example:
 * a share of 300 on a card with 400 free: 100 - 4 = 96; on an idle card of a used node: 49.
 *
 * Typical use: comparison. Production ready? No: see `binpack`.
 */
#include "replay/strategies/strategies.h"

static int64_t at_least(int64_t value, int64_t low)
{
    return value < low ? low : value;
}

static int64_t score(const struct score_in *in, uint32_t *ret_mask)
{
    const struct node *n = in->node;
    *ret_mask = openb_cards(in);
    if (*ret_mask == 0)
        return 0;
    uint32_t idle = 0;
    for (uint32_t i = 0; i < n->gpus_len; i++)
        idle += n->gpus[i].free_milli == GPU_MILLI;
    const struct gpu *first = &n->gpus[__builtin_ctz(*ret_mask)];
    if (in->req->share_milli > 0 && first->free_milli < GPU_MILLI)
        return 100 - first->free_milli / 100;
    if (idle < n->gpus_len)
        return at_least(50 - __builtin_popcount(*ret_mask), 33);
    return 33 - (int64_t)idle;
}

const struct strategy replay_packing = {
    .name = "packing",
    .summary = "used cards, then used nodes, then idle nodes",
    .score = score,
};
