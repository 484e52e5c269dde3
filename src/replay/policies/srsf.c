/* SPDX-License-Identifier: Apache-2.0 */
/*
 * srsf: shortest remaining service first: remaining time x cards, preemptive (shortest-gpu in the
 * published files). The key of a running job falls by its number of cards in each second; those of
 * the waiting stand still. The list, its ties and the walk are those of ranked.h.
 *
 * Example, 8 cards: A (8 cards, 5 s left: 40) runs, B (1 card, 30 s: 30) comes: B takes a card, A
 * no longer fits and waits, though it would be over sooner.
 */
#include "replay/policies/ranked.h"

static int64_t key_of(const struct sim *s, uint32_t job)
{
    return sim_left(s, job) * sim_gpus(s, job);
}

static void schedule(struct sim *s)
{
    ranked_policy_schedule(s, key_of);
}

const struct policy policy_srsf = {
    .name = "srsf",
    .alias = "shortest-gpu",
    .about = "least remaining card-seconds first, preemptive",
    .needs_count = true,
    .init = ranked_policy_init,
    .done = ranked_policy_done,
    .schedule = schedule,
};
