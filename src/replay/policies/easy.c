/* SPDX-License-Identifier: Apache-2.0 */
/*
 * easy: EASY backfilling (Lifka, 1995) with exact run times. The head of the queue starts while it
 * fits. When it does not, it gets the earliest time at which it will (the shadow), and the cards
 * that will then be free beside it are the extra. The rest of the queue is walked in order, and a
 * job starts when it fits now and either ends by the shadow or takes no more than the extra, which
 * shrinks by it in the second case. So nothing delays the head.
 *
 * The walk again is a choice among size classes. What disqualifies a job in a walk (too many cards
 * now, too long and larger than the extra) can only get worse during it, so the next job of the
 * walk is the earliest over all classes of "first of the class with a duration of at most the time
 * to the shadow", or simply the first of the class while its size is within the extra. Each class
 * keeps a tree of minimal durations over its jobs in queue order, in which that first job is found
 * in O(log n).
 *
 * The running are kept by their ends in an array; the shadow is found by summing from its front.
 *
 * Example, 4 cards: A (3 cards, 10 s) runs since 0; waiting are B (4 cards), C (1 card, 12 s), D (1
 * card, 10 s). B is the head, its shadow is 10, the extra 4 - 4 = 0. C fits but would end at 12 and
 * exceeds the extra; D ends at 10: started.
 */
#include "replay/classes.h"
#include "replay/sim.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* The jobs of one class in queue order, those that wait with their durations. */
struct lane {
    uint32_t *jobs;
    int64_t *least; /* tree of minima: [1] the root, [leaves + i] the i-th job, SIM_NEVER when it
                       does not wait */
    uint32_t leaves;
    uint32_t arrived;
    uint32_t head; /* no job before it waits */
};

struct end {
    int64_t at_s;
    uint32_t gpus;
};

struct easy {
    struct classes classes;
    struct lane *lanes;
    uint32_t *place;  /* by job: its place in its lane */
    struct end *ends; /* of the running, ascending, from ends_from on */
    size_t ends_cap, ends_from, ends_len;
};

static void done(struct sim *s)
{
    struct easy *q = s->policy_state;
    if (!q)
        return;
    for (uint32_t c = 0; q->lanes && c < q->classes.len; c++) {
        mem_free(q->lanes[c].jobs);
        mem_free(q->lanes[c].least);
    }
    mem_free(q->lanes);
    mem_free(q->place);
    mem_free(q->ends);
    classes_done(&q->classes);
    mem_free(q);
    s->policy_state = NULL;
}

static int init_lane(struct lane *l, uint32_t size, struct err *e)
{
    l->leaves = 1;
    while (l->leaves < size)
        l->leaves *= 2;
    l->jobs = mem_alloc(size, sizeof l->jobs[0]);
    l->least = mem_alloc((size_t)l->leaves * 2, sizeof l->least[0]);
    if (!l->jobs || !l->least)
        return err_set(e, -ENOMEM, "no memory for the queue of %u jobs", size);
    for (uint32_t i = 0; i < l->leaves * 2; i++)
        l->least[i] = SIM_NEVER;
    return 0;
}

static int init(struct sim *s, struct err *e)
{
    struct easy *q = s->policy_state = mem_alloc(1, sizeof *q);
    if (!q)
        return err_set(e, -ENOMEM, "no memory for policy easy");
    int rc = classes_init(&q->classes, s->trace, e);
    if (rc < 0)
        return rc;
    q->lanes = mem_alloc(q->classes.len, sizeof q->lanes[0]);
    q->place = mem_alloc(s->trace->len, sizeof q->place[0]);
    if (!q->lanes || !q->place || mem_grow(&q->ends, &q->ends_cap, 64, sizeof q->ends[0]) < 0)
        return err_set(e, -ENOMEM, "no memory for the queue of %u jobs", s->trace->len);
    for (uint32_t c = 0; c < q->classes.len && rc == 0; c++)
        rc = init_lane(&q->lanes[c], q->classes.size[c], e);
    return rc;
}

static void set_least(struct lane *l, uint32_t place, int64_t value)
{
    uint32_t at = l->leaves + place;
    l->least[at] = value;
    while ((at /= 2) > 0) {
        int64_t left = l->least[at * 2], right = l->least[at * 2 + 1];
        int64_t least = left < right ? left : right;
        if (l->least[at] == least)
            break;
        l->least[at] = least;
    }
}

/* The first job of the lane that waits and runs for at most `most_s`; SIM_NONE when there is none.
 */
static uint32_t first_within(const struct lane *l, int64_t most_s)
{
    if (l->least[1] > most_s)
        return SIM_NONE;
    uint32_t at = 1;
    while (at < l->leaves)
        at = l->least[at * 2] <= most_s ? at * 2 : at * 2 + 1;
    return l->jobs[at - l->leaves];
}

static void arrive(struct sim *s, uint32_t job)
{
    struct easy *q = s->policy_state;
    struct lane *l = &q->lanes[q->classes.of[job]];
    q->place[job] = l->arrived;
    l->jobs[l->arrived] = job;
    set_least(l, l->arrived, s->trace->jobs[job].duration_s);
    l->arrived++;
}

/* Starts a job that fits and notes its end. */
static void begin(struct sim *s, uint32_t job)
{
    struct easy *q = s->policy_state;
    if (q->ends_len == q->ends_cap && q->ends_from * 2 >= q->ends_len) {
        q->ends_len -= q->ends_from;
        memmove(q->ends, q->ends + q->ends_from, q->ends_len * sizeof q->ends[0]);
        q->ends_from = 0;
    }
    if (mem_grow(&q->ends, &q->ends_cap, q->ends_len + 1, sizeof q->ends[0]) < 0) {
        s->failed = true;
        return;
    }
    bool started = sim_start(s, job);
    assert(started);
    struct lane *l = &q->lanes[q->classes.of[job]];
    set_least(l, q->place[job], SIM_NEVER);
    while (l->head < l->arrived && l->least[l->leaves + l->head] == SIM_NEVER)
        l->head++;
    struct end end = {.at_s = s->now_s + s->trace->jobs[job].duration_s, .gpus = sim_gpus(s, job)};
    size_t low = q->ends_from, high = q->ends_len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (q->ends[mid].at_s <= end.at_s)
            low = mid + 1;
        else
            high = mid;
    }
    memmove(q->ends + low + 1, q->ends + low, (q->ends_len - low) * sizeof q->ends[0]);
    q->ends[low] = end;
    q->ends_len++;
}

/* The first waiting job in queue order; SIM_NONE when none waits. */
static uint32_t queue_head(const struct easy *q)
{
    uint32_t first = SIM_NONE;
    for (uint32_t c = 0; c < q->classes.len; c++) {
        const struct lane *l = &q->lanes[c];
        if (l->head < l->arrived && l->jobs[l->head] < first)
            first = l->jobs[l->head];
    }
    return first;
}

/* When `head` will fit, and how many cards will then be free beside it. */
static int64_t find_shadow(const struct sim *s, uint32_t head, uint32_t *ret_extra)
{
    const struct easy *q = s->policy_state;
    uint32_t need = sim_gpus(s, head), free = s->free;
    size_t i = q->ends_from;
    while (free < need) {
        assert(i < q->ends_len);
        free += q->ends[i++].gpus;
    }
    int64_t shadow_s = q->ends[i - 1].at_s;
    while (i < q->ends_len && q->ends[i].at_s == shadow_s)
        free += q->ends[i++].gpus;
    *ret_extra = free - need;
    return shadow_s;
}

static void backfill(struct sim *s, uint32_t head)
{
    struct easy *q = s->policy_state;
    uint32_t extra;
    int64_t time_s = find_shadow(s, head, &extra) - s->now_s;
    for (;;) {
        uint32_t first = SIM_NONE;
        for (uint32_t c = 0; c < q->classes.len && q->classes.gpus[c] <= s->free; c++) {
            const struct lane *l = &q->lanes[c];
            if (l->head == l->arrived || l->jobs[l->head] >= first)
                continue;
            uint32_t job = q->classes.gpus[c] <= extra ? l->jobs[l->head] : first_within(l, time_s);
            if (job < first)
                first = job;
        }
        if (first == SIM_NONE || s->failed)
            return;
        if (s->trace->jobs[first].duration_s > time_s)
            extra -= sim_gpus(s, first);
        begin(s, first);
    }
}

static void schedule(struct sim *s)
{
    struct easy *q = s->policy_state;
    while (q->ends_from < q->ends_len && q->ends[q->ends_from].at_s <= s->now_s)
        q->ends_from++;
    while (s->waiting > 0 && !s->failed) {
        uint32_t head = queue_head(q);
        if (sim_gpus(s, head) > s->free) {
            if (s->free > 0)
                backfill(s, head);
            return;
        }
        begin(s, head);
    }
}

const struct policy policy_easy = {
    .name = "easy",
    .about = "EASY backfill: nothing delays the first job of the queue",
    .needs_count = true,
    .init = init,
    .done = done,
    .arrive = arrive,
    .schedule = schedule,
};
