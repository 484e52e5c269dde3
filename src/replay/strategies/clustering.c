/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clustering: like to like, as published with FGD (after Gandiva).
 *
 * Overview: requests are sorted into classes (shares, 1, 2, 4, 8 cards). A node that holds the
 * request's class only scores 75, one that holds it among others 50, one without any class 25, one
 * with other classes 0, each plus floor(25 x used / 8000), used being 8000 less the free shares
 * before the placement. A request without cards scores 0 everywhere and does not count as a holder.
 * Example: a share, a node that holds shares only and has 2000 free: 75 + floor(25 x 6000 / 8000)
 * = 93.
 *
 * Typical use: comparison. Production ready? No.
 */
#include "replay/strategies/strategies.h"

static int64_t score(const struct score_in *in, uint32_t *ret_mask)
{
    const struct openb_state *state = in->state;
    *ret_mask = openb_cards(in);
    uint8_t class = openb_class(in->req);
    if (class == 0)
        return 0;
    uint8_t held = state->classes[in->node->id];
    int64_t base = held == class ? 75 : (held & class) != 0 ? 50 : held == 0 ? 25 : 0;
    int64_t used = OPENB_GPU_MILLI - (int64_t)in->node->gpus_milli_free;
    return base + 25 * used / OPENB_GPU_MILLI;
}

const struct strategy replay_clustering = {
    .name = "clustering",
    .summary = "nodes that hold the same kind of request first",
    .score = score,
};
