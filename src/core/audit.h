/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit walks the whole state and checks every invariant against what the jobs say they hold: nothing held
 * twice, nothing held by the dead, sums of every card, node, tenant, user and queue equal the sum of their grants,
 * no gang half placed, no whole card shared, every job with what it asked for, every queued job in exactly one place.
 * (Caps are kept by each start, but a new configuration may set one below what is already held.) It runs after
 * every step in tests and on a timer in production. O(jobs + nodes + grants).
 */
#ifndef REMUDA_CORE_AUDIT_H
#define REMUDA_CORE_AUDIT_H

#include "core/core.h"

/* 0 when all holds; -EPROTO with the first violation and its numbers; -ENOMEM. */
int core_audit(const struct core *c, struct err *e);

#endif
