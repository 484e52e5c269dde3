/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fifo: first in, first out. The queue stops at the first job that does not fit, so nobody is ever
 * overtaken and cards stay idle while a large job waits for them.
 *
 * Since jobs start in the order in which they stand in the trace, the queue is one number: the next
 * job to start.
 *
 * Example, 4 cards: jobs of 3, 2, 1 cards, all at 0, 10 s each. The first starts; the second needs
 * 2 of the 1 that is left and waits; the third would fit and waits behind it until 10, when both
 * start.
 */
#include "replay/sim.h"

#include "base/mem.h"

#include <errno.h>

static int init(struct sim *s, struct err *e)
{
    s->policy_state = mem_alloc(1, sizeof(uint32_t));
    return s->policy_state ? 0 : err_set(e, -ENOMEM, "no memory for policy fifo");
}

static void done(struct sim *s)
{
    mem_free(s->policy_state);
    s->policy_state = NULL;
}

static void schedule(struct sim *s)
{
    uint32_t *head = s->policy_state;
    while (*head < s->next && sim_start(s, *head))
        (*head)++;
}

const struct policy policy_fifo = {
    .name = "fifo",
    .about = "in order; stops at the first job that does not fit",
    .init = init,
    .done = done,
    .schedule = schedule,
};
