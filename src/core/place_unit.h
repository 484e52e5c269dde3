/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit of placement: so many equal workers that have to stand on one node, if asked for in one NVLink island.
 * Here a strategy is asked for the score of a unit on a node, and a unit becomes grants.
 */
#ifndef REMUDA_CORE_PLACE_UNIT_H
#define REMUDA_CORE_PLACE_UNIT_H

#include "core/strategy.h"

struct unit {
    struct place_req req;
    uint32_t workers; /* 1..WORKERS_MAX */
    bool island;      /* all their cards in one island */
};

/* What a strategy is asked with. */
struct scorer {
    const struct strategy *strategy;
    const struct mix *mix;
    const void *state;
};

/* The score of the unit on the node; SCORE_NONE when it does not fit (the node's being open is not looked at). */
int64_t unit_score(const struct scorer *s, const struct unit *u, const struct node *n);

/* Places the unit, which must fit, on `n` (a copy: it is changed) and fills grants[0..workers-1]. */
void unit_fill(const struct scorer *s, const struct unit *u, struct node *n, struct grant *grants);

#endif
