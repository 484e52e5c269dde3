/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What dlas, dlas-gpu and las share: least attained service in three levels (Tiresias, Gu et al.,
 * NSDI 2019). A job begins in level 0 and moves to the end of the next level when the service it
 * has had reaches the level's limit, 3,250 and 7,200. At every event the levels are walked in
 * order, jobs of a level in theirs, and whatever fits gets cards; who gets none is preempted. Then
 * in each level those that run go before those that wait. The next event is the earliest of an
 * arrival, an end and a demotion.
 */
#ifndef REMUDA_REPLAY_POLICIES_LEVELS_H
#define REMUDA_REPLAY_POLICIES_LEVELS_H

#include "replay/sim.h"

#define LEVELS_COUNT 3

struct levels_rule {
    /* The service of a job that has run for `ran_s` seconds on `gpus` cards. */
    int64_t (*service)(int64_t ran_s, int64_t gpus);
    /* Seconds from now until a running job's service is thought to reach `limit`; not positive: no
     * wake-up for it. */
    int64_t (*until)(int64_t limit, int64_t ran_s, int64_t gpus);
};

int levels_init(struct sim *s, struct err *e);
void levels_done(struct sim *s);
void levels_schedule(struct sim *s, const struct levels_rule *rule);
int64_t levels_wake(const struct sim *s);

#endif
