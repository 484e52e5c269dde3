/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The levels are the keys of the ranked list (ranked.h), so the order inside a level is that of the
 * stamps: arrivals and demoted jobs are stamped at the back, and after every walk those that run
 * are stamped at the front in their order, which is the published simulator's stable partition into
 * running and pending. A preempted job therefore keeps a place before all that waited already.
 *
 * A job moves at most one level at an event, as published; only a job of so many cards that one
 * second carries it over two limits could tell the difference.
 *
 * Example, 4 cards, by card-seconds: A (4 cards) runs from 0 and B (4 cards) comes at 10. A is in
 * level 0 and running, so it stays. At 813 A has had 3,252 >= 3,250: it goes to level 1, B starts.
 * At 1,626 B follows to level 1, behind A; both are there and A is first in the walk: A runs, B
 * waits.
 */
#include "replay/policies/levels.h"

#include "base/mem.h"
#include "replay/policies/ranked.h"

#include <errno.h>

static const int64_t limits[LEVELS_COUNT - 1] = {3250, 7200};

struct levels {
    struct ranked list;
    int64_t wake_s;
};

int levels_init(struct sim *s, struct err *e)
{
    struct levels *l = s->policy_state = mem_alloc(1, sizeof *l);
    if (!l)
        return err_set(e, -ENOMEM, "no memory for policy %s", s->policy->name);
    l->wake_s = SIM_NEVER;
    return ranked_init(&l->list, s, e);
}

void levels_done(struct sim *s)
{
    struct levels *l = s->policy_state;
    if (l)
        ranked_done(&l->list);
    mem_free(l);
    s->policy_state = NULL;
}

static int64_t ran(const struct sim *s, uint32_t job)
{
    return s->trace->jobs[job].duration_s - sim_left(s, job);
}

/* Those due at once go down in the order in which they came. */
static void demote(struct sim *s, struct ranked *r, const struct levels_rule *rule)
{
    uint32_t due = 0;
    for (uint32_t i = 0; i < r->running_len; i++) {
        uint32_t job = r->running[i];
        int64_t level = r->ranks[job].key;
        if (level == LEVELS_COUNT - 1 || rule->service(ran(s, job), sim_gpus(s, job)) < limits[level])
            continue;
        uint32_t k = due++;
        for (; k > 0 && r->before[k - 1] > job; k--)
            r->before[k] = r->before[k - 1];
        r->before[k] = job;
    }
    for (uint32_t k = 0; k < due; k++)
        ranked_move(r, r->before[k], r->ranks[r->before[k]].key + 1);
}

static int64_t next_demotion(const struct sim *s, const struct ranked *r, const struct levels_rule *rule)
{
    int64_t first_s = SIM_NEVER;
    for (uint32_t i = 0; i < r->running_len; i++) {
        uint32_t job = r->running[i];
        int64_t level = r->ranks[job].key;
        if (level == LEVELS_COUNT - 1)
            continue;
        int64_t until_s = rule->until(limits[level], ran(s, job), sim_gpus(s, job));
        if (until_s > 0 && s->now_s + until_s < first_s)
            first_s = s->now_s + until_s;
    }
    return first_s;
}

void levels_schedule(struct sim *s, const struct levels_rule *rule)
{
    struct levels *l = s->policy_state;
    struct ranked *r = &l->list;
    ranked_sweep(r, s);
    demote(s, r, rule);
    for (; r->known < s->next; r->known++)
        ranked_add(r, r->known, 0);
    ranked_walk(r, s);
    ranked_running_first(r);
    l->wake_s = next_demotion(s, r, rule);
}

int64_t levels_wake(const struct sim *s)
{
    const struct levels *l = s->policy_state;
    return l->wake_s;
}
