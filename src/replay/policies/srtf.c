/* SPDX-License-Identifier: Apache-2.0 */
/*
 * srtf: shortest remaining time first, preemptive (the published files call it shortest).
 * The keys of the running fall by one in each second; those of the waiting stand still.
 * The list, its ties and the walk are those of ranked.h.
 *
 * Example, 1 card: A (9 s left) runs, B (4 s) comes: B preempts A and A goes on at 4.
 */
#include "replay/policies/ranked.h"

static int64_t key_of(const struct sim *s, uint32_t job)
{
    return sim_left(s, job);
}

static void schedule(struct sim *s)
{
    ranked_policy_schedule(s, key_of);
}

const struct policy policy_srtf = {
    .name = "srtf",
    .alias = "shortest",
    .about = "shortest remaining time first, preemptive",
    .needs_count = true,
    .init = ranked_policy_init,
    .done = ranked_policy_done,
    .schedule = schedule,
};
