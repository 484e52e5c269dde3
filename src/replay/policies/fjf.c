/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fjf: fit job first. The whole queue is walked in order and whatever fits is started. No
 * reservation is made, so small jobs keep taking the cards a large gang waits for, which may starve
 * it.
 *
 * A walk of the queue is replaced by a choice among the heads of the size classes: of the classes
 * whose size is within the free cards, the one whose first job came earliest is tried. If it does
 * not fit (placement yarn), no job of its class fits for the rest of this moment, as starting
 * others only takes cards away; the class is left out. This gives the same starts in the same order
 * as the walk.
 *
 * Example, 4 cards: jobs of 3, 2, 1 cards, all at 0. The first starts; the head of class 2 does not
 * fit; the third starts beside the first.
 */
#include "replay/classes.h"
#include "replay/sim.h"

#include "base/mem.h"

#include <errno.h>

struct fjf {
    struct classes classes;
    uint32_t *head; /* by class: its first waiting job, SIM_NONE when there is none */
    uint32_t *tail;
    uint32_t *behind; /* by job: the next of its class */
    uint64_t *failed; /* by class: the moment (s->events + 1) at which it did not fit */
};

static void done(struct sim *s)
{
    struct fjf *q = s->policy_state;
    if (!q)
        return;
    classes_done(&q->classes);
    mem_free(q->head);
    mem_free(q->tail);
    mem_free(q->behind);
    mem_free(q->failed);
    mem_free(q);
    s->policy_state = NULL;
}

static int init(struct sim *s, struct err *e)
{
    struct fjf *q = s->policy_state = mem_alloc(1, sizeof *q);
    if (!q)
        return err_set(e, -ENOMEM, "no memory for policy fjf");
    int rc = classes_init(&q->classes, s->trace, e);
    if (rc < 0)
        return rc;
    q->head = mem_alloc(q->classes.len, sizeof q->head[0]);
    q->tail = mem_alloc(q->classes.len, sizeof q->tail[0]);
    q->failed = mem_alloc(q->classes.len, sizeof q->failed[0]);
    q->behind = mem_alloc(s->trace->len, sizeof q->behind[0]);
    if (!q->head || !q->tail || !q->failed || !q->behind)
        return err_set(e, -ENOMEM, "no memory for the queue of %u jobs", s->trace->len);
    for (uint32_t c = 0; c < q->classes.len; c++)
        q->head[c] = SIM_NONE;
    return 0;
}

static void arrive(struct sim *s, uint32_t job)
{
    struct fjf *q = s->policy_state;
    uint32_t c = q->classes.of[job];
    q->behind[job] = SIM_NONE;
    if (q->head[c] == SIM_NONE)
        q->head[c] = job;
    else
        q->behind[q->tail[c]] = job;
    q->tail[c] = job;
}

static void schedule(struct sim *s)
{
    struct fjf *q = s->policy_state;
    uint64_t moment = s->events + 1;
    for (;;) {
        uint32_t first = SIM_NONE;
        for (uint32_t c = 0; c < q->classes.len && q->classes.gpus[c] <= s->free; c++)
            if (q->head[c] < first && q->failed[c] != moment)
                first = q->head[c];
        if (first == SIM_NONE)
            return;
        uint32_t c = q->classes.of[first];
        if (sim_start(s, first))
            q->head[c] = q->behind[first];
        else
            q->failed[c] = moment;
    }
}

const struct policy policy_fjf = {
    .name = "fjf",
    .about = "in order; whatever fits is started, large jobs may starve",
    .init = init,
    .done = done,
    .arrive = arrive,
    .schedule = schedule,
};
