/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlas-gpu: the levels of levels.h with card-seconds as the service, exactly as in the published
 * simulator, so that its figures can be reproduced. That simulator wakes up for a demotion at
 * floor((limit - seconds run) / cards), where the service it then looks at is seconds x cards:
 * mostly it wakes too late, and the job stays in its level until some other event comes by. The
 * policy without this fault is las.
 *
 * Example: a job of 8 cards starts at 0. It is due to leave level 0 at 407 s (3,256 card-seconds);
 * the first wake-up is at floor(3,250 / 8) = 406 s, where the service is 3,248 and nothing happens;
 * the next one is floor((3,250 - 406) / 8) = 355 s later, at 761 s.
 */
#include "replay/policies/levels.h"

static int64_t service(int64_t ran_s, int64_t gpus)
{
    return ran_s * gpus;
}

/* floor((limit - ran) / cards) where that is positive, else not positive */
static int64_t until(int64_t limit, int64_t ran_s, int64_t gpus)
{
    return (limit - ran_s) / gpus;
}

static const struct levels_rule rule = {.service = service, .until = until};

static void schedule(struct sim *s)
{
    levels_schedule(s, &rule);
}

const struct policy policy_dlas_gpu = {
    .name = "dlas-gpu",
    .about = "the same by card-seconds, exactly as published, with its late demotions",
    .needs_count = true,
    .init = levels_init,
    .done = levels_done,
    .schedule = schedule,
    .wake = levels_wake,
};
