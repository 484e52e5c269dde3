/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cards that will be free at each time from now on, given what runs and what is reserved: a
 * step function of time, for planners. Times are seconds, spans are half open (a card given back at
 * 10 can be taken from 10 on).
 */
#ifndef REMUDA_REPLAY_PROFILE_H
#define REMUDA_REPLAY_PROFILE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct profile {
    struct profile_block **blocks; /* in order of time; owned */
    size_t cap, len;
};

/* From `at_s` on `gpus` cards are free. 0 or -ENOMEM; what is filled is the caller's (profile_done)
 * in both cases. */
int profile_init(struct profile *p, int64_t at_s, int64_t gpus, struct err *e);
void profile_done(struct profile *p);
/* Forgets what was before `now_s`, as far as that is cheap. */
void profile_forget(struct profile *p, int64_t now_s);
/*
 * The earliest time from `from_s` on at which `gpus` cards are free for `span_s` (at least 1)
 * seconds in a row. `from_s` must not be before what was forgotten; `gpus` not more than all.
 */
int64_t profile_earliest(const struct profile *p, int64_t from_s, int64_t span_s, int64_t gpus);
/* Takes `gpus` cards from `from_s` for `span_s`; they must be free there. 0 or -ENOMEM. */
int profile_take(struct profile *p, int64_t from_s, int64_t span_s, int64_t gpus);

#endif
