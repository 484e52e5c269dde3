/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of a replay.
 *
 * The running jobs stand in a binary heap by (end, job), in which every job knows its place, so
 * that a preemption takes one out in O(log n). The three sources of events are that heap, the next
 * line of the trace, and the policy's own wish to be woken (a demotion in the level policies). At a
 * moment all of them are taken in before the policy is asked, which is what the published
 * simulators do and what their figures depend on: a card that becomes free and a job that comes in
 * the same second meet.
 *
 * Invariants, asserted: free + cards of the running = all; time never goes back; a job is finished
 * exactly when it has run for its duration, however often it was interrupted.
 *
 * Example: 2 cards, job 0 (2 cards, 10 s) and job 1 (1 card, 5 s) both at 0, fifo. At 0 both come,
 * job 0 starts, job 1 does not fit. At 10 job 0 ends, then job 1 starts; at 15 it ends. Waits 0 and
 * 10, makespan 15, use 25/30 = 83.33 %.
 */
#include "replay/sim.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* ---- the running, by end ---- */

static int64_t end_of(const struct sim *s, uint32_t job)
{
    return s->jobs[job].since_s + s->jobs[job].left_s;
}

static bool ends_before(const struct sim *s, uint32_t a, uint32_t b)
{
    int64_t end_a = end_of(s, a), end_b = end_of(s, b);
    return end_a != end_b ? end_a < end_b : a < b;
}

static void heap_set(struct sim *s, uint32_t at, uint32_t job)
{
    s->heap[at] = job;
    s->jobs[job].heap_at = at;
}

static void heap_up(struct sim *s, uint32_t at, uint32_t job)
{
    while (at > 0) {
        uint32_t parent = (at - 1) / 2;
        if (!ends_before(s, job, s->heap[parent]))
            break;
        heap_set(s, at, s->heap[parent]);
        at = parent;
    }
    heap_set(s, at, job);
}

static void heap_down(struct sim *s, uint32_t at, uint32_t job)
{
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= s->running)
            break;
        if (child + 1 < s->running && ends_before(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (!ends_before(s, s->heap[child], job))
            break;
        heap_set(s, at, s->heap[child]);
        at = child;
    }
    heap_set(s, at, job);
}

static void heap_remove(struct sim *s, uint32_t job)
{
    uint32_t at = s->jobs[job].heap_at;
    assert(s->running > 0 && s->heap[at] == job);
    uint32_t last = s->heap[--s->running];
    if (last == job)
        return;
    if (at > 0 && ends_before(s, last, s->heap[(at - 1) / 2]))
        heap_up(s, at, last);
    else
        heap_down(s, at, last);
}

/* ---- what policies do ---- */

bool sim_start(struct sim *s, uint32_t job)
{
    struct sim_job *j = &s->jobs[job];
    uint32_t gpus = sim_gpus(s, job);
    assert(j->since_s < 0 && j->end_s < 0 && job < s->next);
    if (gpus > s->free || !s->placement->take(s, job))
        return false;
    s->free -= gpus;
    if (j->start_s < 0) {
        j->start_s = s->now_s;
        s->started++;
    }
    j->since_s = s->now_s;
    s->waiting--;
    heap_up(s, s->running++, job);
    return true;
}

/* Takes a job from its cards, for whatever reason. */
static void stop(struct sim *s, uint32_t job)
{
    struct sim_job *j = &s->jobs[job];
    assert(j->since_s >= 0);
    heap_remove(s, job);
    j->left_s -= s->now_s - j->since_s;
    j->since_s = -1;
    s->placement->give(s, job);
    s->free += sim_gpus(s, job);
    assert(s->free <= s->gpus && j->left_s >= 0);
}

void sim_preempt(struct sim *s, uint32_t job)
{
    stop(s, job);
    s->jobs[job].preemptions++;
    s->waiting++;
}

/* ---- the clock ---- */

static int sample(struct sim *s, struct err *e)
{
    if (!s->want_samples)
        return 0;
    struct sim_sample now = {.at_s = s->now_s, .gpus_used = s->gpus - s->free, .waiting = s->waiting};
    if (s->samples_len > 0) {
        struct sim_sample *last = &s->samples[s->samples_len - 1];
        if (last->gpus_used == now.gpus_used && last->waiting == now.waiting)
            return 0;
        if (last->at_s == now.at_s) {
            *last = now;
            return 0;
        }
    }
    if (mem_grow(&s->samples, &s->samples_cap, s->samples_len + 1, sizeof s->samples[0]) < 0)
        return err_set(e, -ENOMEM, "no memory for %zu samples of the replay", s->samples_len + 1);
    s->samples[s->samples_len++] = now;
    return 0;
}

static int64_t next_moment(const struct sim *s)
{
    int64_t at = SIM_NEVER;
    if (s->next < s->trace->len)
        at = s->trace->jobs[s->next].submit_s;
    if (s->running > 0 && end_of(s, s->heap[0]) < at)
        at = end_of(s, s->heap[0]);
    if (s->policy->wake) {
        int64_t wake = s->policy->wake(s);
        if (wake < at)
            at = wake;
    }
    return at;
}

static void complete(struct sim *s)
{
    while (s->running > 0 && end_of(s, s->heap[0]) == s->now_s) {
        uint32_t job = s->heap[0];
        stop(s, job);
        assert(s->jobs[job].left_s == 0);
        s->jobs[job].end_s = s->now_s;
        s->finished++;
        if (s->policy->finish)
            s->policy->finish(s, job);
    }
}

static int run(struct sim *s, struct err *e)
{
    while (s->finished < s->trace->len) {
        int64_t at = next_moment(s);
        if (at == SIM_NEVER) /* a policy that forgot a job */
            return err_set(e, -EDEADLK, "policy %s stands still with %u jobs waiting", s->policy->name, s->waiting);
        assert(at >= s->now_s);
        s->now_s = at;
        complete(s);
        while (s->next < s->trace->len && s->trace->jobs[s->next].submit_s == at) {
            s->waiting++;
            s->next++;
            if (s->policy->arrive)
                s->policy->arrive(s, s->next - 1);
        }
        s->policy->schedule(s);
        s->events++;
        if (s->failed)
            return err_set(e, -ENOMEM, "no memory for the replay of %u jobs", s->trace->len);
        int rc = sample(s, e);
        if (rc < 0)
            return rc;
    }
    assert(s->free == s->gpus && s->running == 0 && s->waiting == 0);
    return 0;
}

/* Every job must be able to run on the empty cluster, or the replay would never end. */
static int check_possible(const struct sim *s, struct err *e)
{
    for (uint32_t i = 0; i < s->trace->len; i++) {
        const struct trace_job *j = &s->trace->jobs[i];
        if (s->placement->possible(s, j->gpus))
            continue;
        return err_set(e, -EINVAL,
                       "%s: job %.32s (line %u) asks for num_gpu %u, which %u nodes x %u GPUs can "
                       "never give with "
                       "placement %s; use more nodes or --skip-oversize",
                       s->trace->name, trace_id(s->trace, i), j->line, j->gpus, s->nodes, s->gpus_per_node,
                       s->placement->name);
    }
    return 0;
}

int sim_run(struct sim *s, const struct trace *trace, uint32_t nodes, uint32_t gpus_per_node,
            const struct policy *policy, const struct placement_ops *placement, bool want_samples, struct err *e)
{
    *s = (struct sim){.trace = trace,
                      .policy = policy,
                      .placement = placement,
                      .nodes = nodes,
                      .gpus_per_node = gpus_per_node,
                      .gpus = nodes * gpus_per_node,
                      .want_samples = want_samples};
    s->free = s->gpus;
    if (policy->needs_count && placement != &placement_count)
        return err_set(e, -EINVAL, "--placement is \"%s\"; allowed with policy %s: count", placement->name,
                       policy->name);
    if (trace->len == 0)
        return err_set(e, -EINVAL, "%s: no job is left that %u GPUs can run", trace->name, s->gpus);
    int rc = check_possible(s, e);
    if (rc < 0)
        return rc;
    s->jobs = mem_alloc(trace->len, sizeof s->jobs[0]);
    s->heap = mem_alloc(trace->len, sizeof s->heap[0]);
    if (!s->jobs || !s->heap)
        return err_set(e, -ENOMEM, "no memory for the replay of %u jobs", trace->len);
    for (uint32_t i = 0; i < trace->len; i++)
        s->jobs[i] = (struct sim_job){.left_s = trace->jobs[i].duration_s, .start_s = -1, .since_s = -1, .end_s = -1};
    rc = placement->init ? placement->init(s, e) : 0;
    if (rc == 0)
        rc = policy->init(s, e);
    return rc < 0 ? rc : run(s, e);
}

void sim_done(struct sim *s)
{
    if (s->policy)
        s->policy->done(s);
    if (s->placement && s->placement->done)
        s->placement->done(s);
    mem_free(s->jobs);
    mem_free(s->heap);
    mem_free(s->samples);
    *s = (struct sim){0};
}
