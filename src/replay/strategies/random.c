/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random: any node with room, each as likely as the other; the tightest card for a share.
 *
 * Overview: the generator is seeded with the seed of the run, so that a run can be repeated. The
 * published figures come from another generator, so they are met in the mean (87.5 % on openb
 * default) and not to the digit.
 *
 * Typical use: the floor that other strategies are measured from. Production ready? No.
 */
#include "replay/strategies/strategies.h"

static int64_t score(const struct score_in *in, uint32_t *ret_mask)
{
    *ret_mask = openb_cards(in);
    return 0;
}

static uint32_t choose(void *state, uint32_t len)
{
    struct openb_state *s = state;
    return (uint32_t)rng_below(&s->rng, len);
}

const struct strategy replay_random = {
    .name = "random",
    .summary = "any node with room",
    .score = score,
    .choose = choose,
};
