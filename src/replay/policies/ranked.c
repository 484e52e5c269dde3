/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why stamps equal repeated stable sorting. Let the list be in order by (key, stamp). Between two
 * events only the keys of running jobs change. A stable sort by the new keys puts a job x before a
 * job y of the same new key exactly when x was before y. If neither changed, their stamps say so
 * still. If both changed, ranked_move was called in list order, so the new stamps do. If only x
 * changed, its key has fallen (remaining time) or risen (level); when it has fallen, x was behind y
 * before, which had the lower key, and its new and greatest stamp says so; a job that rises in
 * level is appended to its new level by definition. New jobs are appended last. So the order is the
 * same, and the list needs not be sorted: those that wait stand in one tree for each size class and
 * are only touched when they are taken.
 *
 * The walk merges the running with the heads of the classes. When the head of a class does not fit,
 * none of its class does, now or later in the walk, as cards only get fewer. A walk thus takes
 * (running + started) steps, whatever the length of the queue, and a look at all heads only after a
 * step that changed them.
 *
 * Example (srtf, 2 cards): A (2 cards, 9 s left) runs, B (1 card, 4 s) comes. The order is B, A: B
 * takes a card, A no longer fits and is preempted, the second card goes to the first waiting job of
 * one card, if any.
 */
#include "replay/policies/ranked.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>

static int compare_ranks(const struct rank *x, const struct rank *y)
{
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->stamp > y->stamp) - (x->stamp < y->stamp);
}

static int compare_nodes(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    return compare_ranks(OTREE_ENTRY(a, struct rank, node), OTREE_ENTRY(b, struct rank, node));
}

int ranked_init(struct ranked *r, const struct sim *s, struct err *e)
{
    *r = (struct ranked){0};
    int rc = classes_init(&r->classes, s->trace, e);
    if (rc < 0)
        return rc;
    uint32_t most = s->gpus < s->trace->len ? s->gpus : s->trace->len; /* that can run at once */
    r->ranks = mem_alloc(s->trace->len, sizeof r->ranks[0]);
    r->waiting = mem_alloc(r->classes.len, sizeof r->waiting[0]);
    r->running = mem_alloc(most, sizeof r->running[0]);
    r->before = mem_alloc(most, sizeof r->before[0]);
    if (!r->ranks || !r->waiting || !r->running || !r->before)
        return err_set(e, -ENOMEM, "no memory for the list of %u jobs", s->trace->len);
    for (uint32_t c = 0; c < r->classes.len; c++)
        otree_init(&r->waiting[c], compare_nodes, NULL);
    return 0;
}

void ranked_done(struct ranked *r)
{
    classes_done(&r->classes);
    mem_free(r->ranks);
    mem_free(r->waiting);
    mem_free(r->running);
    mem_free(r->before);
    *r = (struct ranked){0};
}

void ranked_add(struct ranked *r, uint32_t job, int64_t key)
{
    r->ranks[job].job = job;
    r->ranks[job].key = key;
    r->ranks[job].stamp = ++r->back;
    otree_insert(&r->waiting[r->classes.of[job]], &r->ranks[job].node);
}

void ranked_sweep(struct ranked *r, const struct sim *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->running_len; i++)
        if (sim_running(s, r->running[i]))
            r->running[kept++] = r->running[i];
    r->running_len = kept;
    assert(kept == s->running);
}

void ranked_move(struct ranked *r, uint32_t job, int64_t key)
{
    r->ranks[job].key = key;
    r->ranks[job].stamp = ++r->back;
}

/* The running are nearly in order already (all of srtf's keys fall alike): insertion sort. */
static void sort_running(struct ranked *r)
{
    for (uint32_t i = 1; i < r->running_len; i++) {
        uint32_t job = r->running[i], k = i;
        for (; k > 0 && compare_ranks(&r->ranks[job], &r->ranks[r->running[k - 1]]) < 0; k--)
            r->running[k] = r->running[k - 1];
        r->running[k] = job;
    }
}

/* The first in list order of those that wait and would fit into `free` cards. */
static struct rank *first_waiting(const struct ranked *r, uint32_t free)
{
    struct rank *first = NULL;
    for (uint32_t c = 0; c < r->classes.len && r->classes.gpus[c] <= free; c++) {
        struct otree_node *n = otree_first(&r->waiting[c]);
        if (n && (!first || compare_nodes(n, &first->node, NULL) < 0))
            first = OTREE_ENTRY(n, struct rank, node);
    }
    return first;
}

/*
 * The preempted give their cards before the started take theirs: both are collected first.
 * r->running is read as it was, r->before is filled with what runs from now on, and the two are
 * swapped.
 */
void ranked_walk(struct ranked *r, struct sim *s)
{
    sort_running(r);
    uint32_t free = s->gpus, taken = 0, at = 0;
    struct rank *next = first_waiting(r, free);
    while (at < r->running_len || next) {
        bool from_running = at < r->running_len && (!next || compare_ranks(&r->ranks[r->running[at]], next) < 0);
        uint32_t job = from_running ? r->running[at] : next->job;
        uint32_t gpus = sim_gpus(s, job);
        if (from_running)
            at++;
        else
            otree_remove(&r->waiting[r->classes.of[job]], &next->node);
        if (gpus <= free) {
            free -= gpus;
            r->before[taken++] = job;
        } else {
            sim_preempt(s, job); /* only a running job can be here */
        }
        if (next && (!from_running || sim_gpus(s, next->job) > free))
            next = first_waiting(r, free);
    }
    for (uint32_t i = 0; i < r->running_len; i++) /* back into the trees only now: this walk is over for them */
        if (!sim_running(s, r->running[i]))
            otree_insert(&r->waiting[r->classes.of[r->running[i]]], &r->ranks[r->running[i]].node);
    for (uint32_t i = 0; i < taken; i++) {
        if (sim_running(s, r->before[i]))
            continue;
        bool started = sim_start(s, r->before[i]);
        assert(started);
    }
    uint32_t *swap = r->running;
    r->running = r->before;
    r->before = swap;
    r->running_len = taken;
    assert(taken == s->running);
}

void ranked_running_first(struct ranked *r)
{
    for (uint32_t i = r->running_len; i-- > 0;)
        r->ranks[r->running[i]].stamp = --r->front;
}

int ranked_policy_init(struct sim *s, struct err *e)
{
    s->policy_state = mem_alloc(1, sizeof(struct ranked));
    if (!s->policy_state)
        return err_set(e, -ENOMEM, "no memory for policy %s", s->policy->name);
    return ranked_init(s->policy_state, s, e);
}

void ranked_policy_done(struct sim *s)
{
    if (s->policy_state)
        ranked_done(s->policy_state);
    mem_free(s->policy_state);
    s->policy_state = NULL;
}

void ranked_policy_schedule(struct sim *s, int64_t (*key_of)(const struct sim *s, uint32_t job))
{
    struct ranked *r = s->policy_state;
    ranked_sweep(r, s);
    for (uint32_t i = 0; i < r->running_len; i++) {
        int64_t key = key_of(s, r->running[i]);
        if (key != r->ranks[r->running[i]].key)
            ranked_move(r, r->running[i], key);
    }
    while (r->known < s->next) {
        ranked_add(r, r->known, key_of(s, r->known));
        r->known++;
    }
    ranked_walk(r, s);
}
