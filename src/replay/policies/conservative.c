/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conservative: backfilling in which nobody delays anybody who came before, with exact run times.
 * In queue order every job gets the earliest time at which its cards are free for all of its
 * duration, given those before it, and what may start now starts.
 *
 * The definition rebuilds the plan at every event. With exact run times that changes nothing: by
 * induction over the queue, the jobs before j still have their times; what came after j and runs
 * was planned around j's time, so that it is still possible; and no earlier time was possible with
 * fewer reservations. So a job is planned once, when it comes, and started when its time has come,
 * and the plan is the step function of profile.h.
 *
 * A job of no duration is planned as one second, so that it has a place of its own.
 *
 * Example, 4 cards: A (3 cards, 10 s) runs from 0; B (4 cards, 5 s) gets 10 to 15; C (1 card, 12 s)
 * would break B's time if it began before 3 and so gets 15; D (1 card, 10 s) gets 0 to 10 and
 * starts at once.
 */
#include "replay/profile.h"
#include "replay/sim.h"

#include "base/mem.h"
#include "base/otree.h"

#include <assert.h>
#include <errno.h>

struct plan {
    struct otree_node node;
    int64_t at_s;
    uint32_t job;
};

struct conservative {
    struct profile profile;
    struct plan *plans;   /* by job */
    struct otree by_time; /* those that wait, by (at_s, job) */
};

static int compare(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    const struct plan *x = OTREE_ENTRY(a, struct plan, node), *y = OTREE_ENTRY(b, struct plan, node);
    if (x->at_s != y->at_s)
        return x->at_s < y->at_s ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

static void done(struct sim *s)
{
    struct conservative *q = s->policy_state;
    if (!q)
        return;
    profile_done(&q->profile);
    mem_free(q->plans);
    mem_free(q);
    s->policy_state = NULL;
}

static int init(struct sim *s, struct err *e)
{
    struct conservative *q = s->policy_state = mem_alloc(1, sizeof *q);
    if (!q)
        return err_set(e, -ENOMEM, "no memory for policy conservative");
    otree_init(&q->by_time, compare, NULL);
    q->plans = mem_alloc(s->trace->len, sizeof q->plans[0]);
    if (!q->plans)
        return err_set(e, -ENOMEM, "no memory for the plan of %u jobs", s->trace->len);
    return profile_init(&q->profile, 0, s->gpus, e);
}

static void arrive(struct sim *s, uint32_t job)
{
    struct conservative *q = s->policy_state;
    int64_t span_s = s->trace->jobs[job].duration_s > 0 ? s->trace->jobs[job].duration_s : 1;
    struct plan *plan = &q->plans[job];
    profile_forget(&q->profile, s->now_s);
    plan->job = job;
    plan->at_s = profile_earliest(&q->profile, s->now_s, span_s, sim_gpus(s, job));
    if (profile_take(&q->profile, plan->at_s, span_s, sim_gpus(s, job)) < 0)
        s->failed = true;
    otree_insert(&q->by_time, &plan->node);
}

static struct plan *next_plan(const struct conservative *q)
{
    struct otree_node *first = otree_first(&q->by_time);
    return first ? OTREE_ENTRY(first, struct plan, node) : NULL;
}

static void schedule(struct sim *s)
{
    struct conservative *q = s->policy_state;
    for (struct plan *plan; !s->failed && (plan = next_plan(q)) && plan->at_s <= s->now_s;) {
        bool started = sim_start(s, plan->job);
        assert(started && plan->at_s == s->now_s);
        otree_remove(&q->by_time, &plan->node);
    }
}

static int64_t wake(const struct sim *s)
{
    const struct plan *plan = next_plan(s->policy_state);
    return plan ? plan->at_s : SIM_NEVER;
}

const struct policy policy_conservative = {
    .name = "conservative",
    .alias = "cons",
    .about = "backfill in which nothing delays any job that came before",
    .needs_count = true,
    .init = init,
    .done = done,
    .arrive = arrive,
    .schedule = schedule,
    .wake = wake,
};
