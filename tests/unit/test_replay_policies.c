/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies against their definitions. Each is written down here a second time in the plainest
 * way (whole queues walked, lists sorted, plans rebuilt at every event, nodes in an array), and
 * thousands of small random traces must give the same start, end and preemptions for every job. A
 * failure prints the seed, policy and trace.
 */
#include "base/rng.h"
#include "base/strbuf.h"
#include "replay/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define JOBS    40
#define NODES   3
#define CARDS   4 /* of a node */
#define HORIZON 4096

struct job {
    int64_t submit, duration, left, start, end;
    int gpus, preemptions, level;
    bool running, done;
    int node[NODES]; /* cards taken on each, yarn */
};

struct plain {
    struct job job[JOBS];
    int len, come;
    int64_t now;
    int free;
    bool yarn;
    int node_free[NODES];
    int list[JOBS], list_len; /* the stably sorted list */
    int level[3][JOBS], level_len[3];
    int64_t wake;
    const char *policy;
};

static bool is(const struct plain *p, const char *name)
{
    return strcmp(p->policy, name) == 0;
}

/* ---- cards ---- */

static bool take_nodes(struct plain *p, struct job *j)
{
    int whole = j->gpus > CARDS ? j->gpus / CARDS : 0, rest = j->gpus > CARDS ? j->gpus % CARDS : j->gpus;
    memset(j->node, 0, sizeof j->node);
    for (int n = 0; n < NODES && whole > 0; n++) {
        if (p->node_free[n] == CARDS) {
            j->node[n] = CARDS;
            whole--;
        }
    }
    for (int n = 0; n < NODES && rest > 0; n++) {
        if (j->node[n] == 0 && p->node_free[n] >= rest) {
            j->node[n] = rest;
            rest = 0;
        }
    }
    if (whole > 0 || rest > 0)
        return false;
    for (int n = 0; n < NODES; n++)
        p->node_free[n] -= j->node[n];
    return true;
}

static bool start(struct plain *p, int i)
{
    struct job *j = &p->job[i];
    if (j->gpus > p->free || (p->yarn && !take_nodes(p, j)))
        return false;
    p->free -= j->gpus;
    j->running = true;
    if (j->start < 0)
        j->start = p->now;
    return true;
}

static void release(struct plain *p, int i)
{
    struct job *j = &p->job[i];
    j->running = false;
    p->free += j->gpus;
    for (int n = 0; p->yarn && n < NODES; n++)
        p->node_free[n] += j->node[n];
}

static bool waits(const struct plain *p, int i)
{
    return i < p->come && !p->job[i].running && !p->job[i].done;
}

/* ---- the policies ---- */

static void walk_queue(struct plain *p, bool stop)
{
    for (int i = 0; i < p->come; i++)
        if (waits(p, i) && !start(p, i) && stop)
            return;
}

static void easy(struct plain *p)
{
    int head = 0;
    for (; head < p->come; head++)
        if (waits(p, head) && !start(p, head))
            break;
    if (head == p->come)
        return;
    int64_t shadow = p->now;
    int free = 0;
    for (;; shadow++) { /* second by second */
        free = p->free;
        for (int i = 0; i < p->come; i++)
            if (p->job[i].running && p->now + p->job[i].left <= shadow)
                free += p->job[i].gpus;
        if (free >= p->job[head].gpus)
            break;
    }
    int extra = free - p->job[head].gpus;
    for (int i = head + 1; i < p->come; i++) {
        if (!waits(p, i) || p->job[i].gpus > p->free)
            continue;
        bool in_time = p->now + p->job[i].duration <= shadow;
        if (!in_time && p->job[i].gpus > extra)
            continue;
        if (!in_time)
            extra -= p->job[i].gpus;
        start(p, i);
    }
}

/* The plan is rebuilt at every event, second by second. */
static void conservative(struct plain *p)
{
    static int free[HORIZON];
    for (int t = 0; t < HORIZON; t++) {
        free[t] = NODES * CARDS;
        for (int i = 0; i < p->come; i++)
            if (p->job[i].running && t < p->job[i].left)
                free[t] -= p->job[i].gpus;
    }
    p->wake = SIM_NEVER;
    for (int i = 0; i < p->come; i++) {
        struct job *j = &p->job[i];
        if (!waits(p, i))
            continue;
        int at = 0, run = 0;
        for (; run < j->duration; run++) {
            assert_true(at + run < HORIZON);
            if (free[at + run] < j->gpus) {
                at += run + 1;
                run = -1;
            }
        }
        for (int t = at; t < at + j->duration; t++)
            free[t] -= j->gpus;
        if (at == 0)
            assert_true(start(p, i));
        else if (p->now + at < p->wake)
            p->wake = p->now + at;
    }
}

static int64_t key(const struct plain *p, int i)
{
    const struct job *j = &p->job[i];
    return is(p, "sjf") ? j->gpus : is(p, "srtf") ? j->left : j->left * j->gpus;
}

/* Gives all cards anew in the order of the list. */
static void greedy(struct plain *p, const int *list, int len, bool *was)
{
    for (int k = 0; k < len; k++)
        if (!start(p, list[k]) && was[list[k]])
            p->job[list[k]].preemptions++;
}

static void release_all(struct plain *p, bool *was)
{
    for (int i = 0; i < p->come; i++) {
        was[i] = p->job[i].running;
        if (was[i])
            release(p, i);
    }
}

static void sorted(struct plain *p, int came)
{
    bool was[JOBS] = {0};
    int kept = 0;
    for (int k = 0; k < p->list_len; k++)
        if (!p->job[p->list[k]].done)
            p->list[kept++] = p->list[k];
    for (int i = p->come - came; i < p->come; i++)
        p->list[kept++] = i;
    p->list_len = kept;
    for (int k = 1; k < kept; k++) { /* stable */
        int i = p->list[k], at = k;
        for (; at > 0 && key(p, p->list[at - 1]) > key(p, i); at--)
            p->list[at] = p->list[at - 1];
        p->list[at] = i;
    }
    release_all(p, was);
    greedy(p, p->list, kept, was);
}

static void drop(int *list, int *len, int i)
{
    int kept = 0;
    for (int k = 0; k < *len; k++)
        if (list[k] != i)
            list[kept++] = list[k];
    *len = kept;
}

static void demote(struct plain *p)
{
    static const int64_t limit[] = {3250, 7200};
    for (int i = 0; i < p->come; i++) {
        struct job *j = &p->job[i];
        int64_t service = (j->duration - j->left) * (is(p, "dlas") ? 1 : j->gpus);
        if (!j->running || j->level == 2 || service < limit[j->level])
            continue;
        drop(p->level[j->level], &p->level_len[j->level], i);
        j->level++;
        p->level[j->level][p->level_len[j->level]++] = i;
    }
}

static void next_demotion(struct plain *p)
{
    static const int64_t limit[] = {3250, 7200};
    p->wake = SIM_NEVER;
    for (int i = 0; i < p->come; i++) {
        struct job *j = &p->job[i];
        if (!j->running || j->level == 2)
            continue;
        int64_t ran = j->duration - j->left, until = limit[j->level] - ran;
        if (is(p, "dlas-gpu"))
            until = until > 0 ? until / j->gpus : 0;
        else if (is(p, "las"))
            for (until = 1; (ran + until) * j->gpus < limit[j->level];)
                until++;
        if (until > 0 && p->now + until < p->wake)
            p->wake = p->now + until;
    }
}

static void levels(struct plain *p, int came)
{
    bool was[JOBS] = {0};
    for (int q = 0; q < 3; q++)
        for (int k = p->level_len[q]; k-- > 0;)
            if (p->job[p->level[q][k]].done)
                drop(p->level[q], &p->level_len[q], p->level[q][k]);
    for (int i = p->come - came; i < p->come; i++)
        p->level[0][p->level_len[0]++] = i;
    demote(p);
    release_all(p, was);
    for (int q = 0; q < 3; q++)
        greedy(p, p->level[q], p->level_len[q], was);
    for (int q = 0; q < 3; q++) {
        int order[JOBS], n = 0;
        for (int running = 1; running >= 0; running--)
            for (int k = 0; k < p->level_len[q]; k++)
                if (p->job[p->level[q][k]].running == running)
                    order[n++] = p->level[q][k];
        memcpy(p->level[q], order, sizeof order[0] * (size_t)n);
    }
    next_demotion(p);
}

static void schedule(struct plain *p, int came)
{
    if (is(p, "fifo") || is(p, "fjf"))
        walk_queue(p, is(p, "fifo"));
    else if (is(p, "easy"))
        easy(p);
    else if (is(p, "conservative"))
        conservative(p);
    else if (is(p, "sjf") || is(p, "srtf") || is(p, "srsf"))
        sorted(p, came);
    else
        levels(p, came);
}

static void replay(struct plain *p)
{
    p->now = 0;
    p->wake = SIM_NEVER;
    for (int done = 0; done < p->len;) {
        int64_t next = p->wake;
        for (int i = 0; i < p->len; i++) {
            int64_t at = SIM_NEVER;
            if (i >= p->come)
                at = p->job[i].submit;
            else if (p->job[i].running)
                at = p->now + p->job[i].left;
            next = at < next ? at : next;
        }
        assert_true(next != SIM_NEVER);
        for (int i = 0; i < p->come; i++)
            if (p->job[i].running)
                p->job[i].left -= next - p->now;
        p->now = next;
        for (int i = 0; i < p->come; i++) {
            if (p->job[i].running && p->job[i].left == 0) {
                release(p, i);
                p->job[i].end = p->now;
                p->job[i].done = true;
                done++;
            }
        }
        int before = p->come;
        while (p->come < p->len && p->job[p->come].submit == p->now)
            p->come++;
        schedule(p, p->come - before);
    }
}

/* ---- the comparison ---- */

/* Short jobs make many ties; long ones cross the limits of the levels. */
static void make_jobs(struct plain *p, struct rng *r, int64_t longest, int64_t gap)
{
    static const int sizes[] = {1, 1, 1, 2, 2, 3, 4, 4, 6, 8, 12};
    p->len = (int)rng_between(r, 1, JOBS);
    int64_t at = 0;
    for (int i = 0; i < p->len; i++) {
        if (i > 0 && !rng_chance(r, 300000))
            at += rng_between(r, 0, gap);
        p->job[i] = (struct job){.submit = at,
                                 .duration = rng_between(r, 1, longest),
                                 .start = -1,
                                 .end = -1,
                                 .gpus = sizes[rng_below(r, sizeof sizes / sizeof sizes[0])]};
        p->job[i].left = p->job[i].duration;
    }
}

static void compare(const struct plain *made, const char *policy, const char *placement, uint64_t seed)
{
    struct plain p = *made;
    struct strbuf text = {0};
    p.policy = policy;
    p.yarn = strcmp(placement, "yarn") == 0;
    p.free = NODES * CARDS;
    for (int n = 0; n < NODES; n++)
        p.node_free[n] = CARDS;
    strbuf_puts(&text, "job_id,num_gpu,submit_time,duration\n");
    for (int i = 0; i < p.len; i++)
        strbuf_printf(&text, "%d,%d,%lld,%lld\n", i, p.job[i].gpus, (long long)p.job[i].submit,
                      (long long)p.job[i].duration);
    struct trace t = {0};
    struct sim s = {0};
    struct err e = {0};
    assert_int_equal(trace_parse("made", strbuf_str(&text), text.len, &t, &e), 0);
    assert_int_equal(sim_run(&s, &t, NODES, CARDS, policy_find(policy), placement_find(placement), false, &e), 0);
    replay(&p);
    for (int i = 0; i < p.len; i++) {
        const struct job *j = &p.job[i];
        const struct sim_job *k = &s.jobs[i];
        if (k->start_s != j->start || k->end_s != j->end || (int)k->preemptions != j->preemptions)
            fail_msg("seed %llu, %s, %s: job %d: start %lld end %lld preempted %u, by definition "
                     "%lld %lld %d; trace:\n%s",
                     (unsigned long long)seed, policy, placement, i, (long long)k->start_s, (long long)k->end_s,
                     k->preemptions, (long long)j->start, (long long)j->end, j->preemptions, strbuf_str(&text));
    }
    strbuf_done(&text);
    sim_done(&s);
    trace_done(&t);
}

static void compare_all(uint64_t first, uint64_t count, int64_t longest, int64_t gap, bool plan)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct rng r;
        static struct plain made;
        memset(&made, 0, sizeof made);
        rng_init(&r, seed);
        make_jobs(&made, &r, longest, gap);
        for (size_t i = 0; policy_at(i); i++) {
            const struct policy *policy = policy_at(i);
            bool by_second = policy == &policy_conservative || policy == &policy_easy;
            if (by_second && !plan)
                continue;
            compare(&made, policy->name, "count", seed);
            if (!policy->needs_count)
                compare(&made, policy->name, "yarn", seed);
        }
    }
}

/* REQ: G7 the policies are what they are said to be. */
static void test_short_jobs(void **state)
{
    (void)state;
    compare_all(1, 400, 30, 6, true);
    compare_all(5000, 150, 4, 2, true);
}

static void test_long_jobs(void **state)
{
    (void)state;
    compare_all(10000, 800, 20000, 3000, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_short_jobs), cmocka_unit_test(test_long_jobs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
