/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sjf: smallest job first. The list is ordered by the number of cards, and jobs of fewer cards
 * preempt larger ones. The key never changes, so equal jobs stay in the order in which they came.
 * The list, its ties and the walk are those of ranked.h.
 *
 * Example, 4 cards: A (4 cards) runs; B (1 card) comes: the order is B, A; B takes a card, A no
 * longer fits and is preempted until B is over.
 */
#include "replay/policies/ranked.h"

static int64_t key_of(const struct sim *s, uint32_t job)
{
    return sim_gpus(s, job);
}

static void schedule(struct sim *s)
{
    ranked_policy_schedule(s, key_of);
}

const struct policy policy_sjf = {
    .name = "sjf",
    .about = "fewest cards first, preemptive",
    .needs_count = true,
    .init = ranked_policy_init,
    .done = ranked_policy_done,
    .schedule = schedule,
};
