/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cards.h"
#include "core/strategies/strategies.h"

static int64_t score(const struct score_in *in, uint32_t *ret_mask)
{
    const struct node *n = in->node;
    const struct place_req *r = in->req;
    struct frag_state now;
    frag_state_of(&now, n);
    int64_t before = mix_fragmentation(in->mix, &now);
    int64_t after;
    uint32_t used = r->gpus * GPU_MILLI + r->share_milli;
    *ret_mask = 0;
    if (r->share_milli > 0) {
        after = INT64_MAX;
        for (uint32_t rest = in->cards; rest != 0; rest &= rest - 1) {
            uint32_t bit = rest & -rest;
            int64_t f = mix_fragmentation_after(in->mix, &now, n, r, bit);
            if (f < after) {
                after = f;
                *ret_mask = bit;
            }
        }
    } else {
        *ret_mask = cards_pick(n, in->cards, r->gpus);
        after = mix_fragmentation_after(in->mix, &now, n, r, *ret_mask);
    }
    int64_t delta = (before - after) * 1000 / mix_weight(in->mix);
    int64_t left = (int64_t)(n->free_cpu_milli - r->cpu_milli) * 50000 / 128000 +
                   (int64_t)(now.total - used) * 50000 / 8000;
    return delta - left;
}

const struct strategy strategy_remuda = {
    .name = "remuda",
    .summary = "least fragmentation over the requests that arrive, then the tightest node",
    .uses_mix = true,
    .together = true,
    .gang_prefer = LEVEL_NVLINK,
    .score = score,
};
