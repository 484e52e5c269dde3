/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlas: the levels of levels.h with the seconds a job has run as its service, whatever its cards.
 *
 * Example: a job of 8 cards leaves level 0 after 3,250 s of running and level 1 after 7,200 s.
 */
#include "replay/policies/levels.h"

static int64_t service(int64_t ran_s, int64_t gpus)
{
    (void)gpus;
    return ran_s;
}

static int64_t until(int64_t limit, int64_t ran_s, int64_t gpus)
{
    (void)gpus;
    return limit - ran_s;
}

static const struct levels_rule rule = {.service = service, .until = until};

static void schedule(struct sim *s)
{
    levels_schedule(s, &rule);
}

const struct policy policy_dlas = {
    .name = "dlas",
    .about = "least attained service in three levels, by seconds run",
    .needs_count = true,
    .init = levels_init,
    .done = levels_done,
    .schedule = schedule,
    .wake = levels_wake,
};
