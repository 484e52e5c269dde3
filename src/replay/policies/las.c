/* SPDX-License-Identifier: Apache-2.0 */
/*
 * las: the levels of levels.h with card-seconds as the service and every demotion exactly when it
 * is due: the first whole second in which seconds x cards reaches the limit. This is dlas-gpu
 * without its fault.
 *
 * Example: a job of 8 cards leaves level 0 after ceil(3,250 / 8) = 407 s of running and level 1
 * after 900 s.
 */
#include "replay/policies/levels.h"

static int64_t service(int64_t ran_s, int64_t gpus)
{
    return ran_s * gpus;
}

/* At least one second: a job that is past the next limit too goes down at the next second. */
static int64_t until(int64_t limit, int64_t ran_s, int64_t gpus)
{
    int64_t missing = limit - ran_s * gpus;
    return missing > 0 ? (missing + gpus - 1) / gpus : 1;
}

static const struct levels_rule rule = {.service = service, .until = until};

static void schedule(struct sim *s)
{
    levels_schedule(s, &rule);
}

const struct policy policy_las = {
    .name = "las",
    .about = "least attained service by card-seconds, demotions on time",
    .needs_count = true,
    .init = levels_init,
    .done = levels_done,
    .schedule = schedule,
    .wake = levels_wake,
};
