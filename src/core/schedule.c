/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scheduling pass.
 *
 *   1. Jobs with something to decide (c->todo): ended workers, failed gangs, cancellations.
 *   2. Time limits that are over.
 *   3. Back-offs that are over.
 *   4. Waiting classes in order of their first job: caps, then placement. What does not fit is blocked; the first
 *      few that are blocked by capacity get a reservation on concrete nodes, and whoever comes later may use those
 *      nodes only when it ends before the reservation starts (EASY backfill; Lifka, "The ANL/IBM SP scheduling system",
 *      1995, on concrete nodes instead of a count).
 *
 * Example. Two nodes of 8 cards; A holds 8 cards of n0 until 12:00. B asks for 16 cards: it does not fit and gets a
 * reservation on n0 and n1 from 12:00. C asks for 4 cards for one hour at 10:00: it would end at 11:00, before the
 * reservation, and starts on n1. D asks for 4 cards without a limit: it would keep n1 busy and waits.
 *
 * Why this does not starve a gang: nothing new that may outlast the reservation enters its nodes, so they empty.
 *
 * LIMITATIONS. A running job without a time limit is expected to run as long again as it has run (at least ten
 * minutes), which may be wrong in both directions; a reservation is renewed whenever something is given back.
 */
#include "base/mem.h"
#include "core/state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct pass {
    struct core *c;
    int64_t now_ms;
    core_emit *emit;
    void *arg;
};

/* Applies a decision and hands it on; the record is consumed in every case. */
static int decide(struct pass *p, struct record *r)
{
    r->time_ms = p->now_ms;
    struct err e = {0};
    int res = core_apply(p->c, r, &e);
    /* A decision that the state refuses is a fault of the scheduler itself. */
    assert(res == 0 || res == -ENOMEM);
    if (res == 0)
        res = p->emit(p->arg, r);
    else
        record_done(r);
    return res;
}

static int decide_cause(struct pass *p, enum record_kind kind, const struct job *j, enum cause cause)
{
    struct record r = {.kind = kind, .job = j->id, .attempt = j->attempt, .cause = cause};
    return decide(p, &r);
}

/* 1 s, 8 s, 64 s, ... : a start that keeps failing must not win every pass. */
static int64_t backoff_ms(uint32_t failures)
{
    uint32_t shift = 3 * (failures < 4 ? failures : 4);
    return (int64_t)1000 << shift;
}

/* Exit codes of a shell for "can't be executed" and "not found": trying again would not help. */
static bool launch_is_hopeless(const struct job *j)
{
    return j->exit_status == 126 || j->exit_status == 127;
}

static int decide_attempt_over(struct pass *p, struct job *j)
{
    if (j->stop_cause == CAUSE_CANCEL || j->cancel_asked)
        return decide_cause(p, REC_JOB_END, j, CAUSE_CANCEL);
    if (j->stop_cause == CAUSE_TIME_LIMIT)
        return decide_cause(p, REC_JOB_END, j, CAUSE_TIME_LIMIT);
    if (j->stop_cause == CAUSE_REQUEUE) {
        struct record r = {.kind = REC_JOB_RETRY, .job = j->id, .attempt = j->attempt, .cause = CAUSE_REQUEUE};
        return decide(p, &r);
    }
    if (j->failed && j->fail_cause == CAUSE_LAUNCH_FAILED && !launch_is_hopeless(j) &&
        j->launch_failures + 1 < LAUNCH_TRIES_MAX) {
        p->c->counters.retries++;
        struct record r = {.kind = REC_JOB_RETRY,
                           .job = j->id,
                           .attempt = j->attempt,
                           .cause = CAUSE_LAUNCH_FAILED,
                           .not_before_ms = p->now_ms + backoff_ms(j->launch_failures)};
        return decide(p, &r);
    }
    return decide_cause(p, REC_JOB_END, j, j->failed ? j->fail_cause : CAUSE_EXIT);
}

static int decide_todo(struct pass *p, struct job *j)
{
    if (job_ended(j))
        return 0;
    if (j->state == JOB_QUEUED) {
        if (j->cancel_asked)
            return decide_cause(p, REC_JOB_END, j, CAUSE_CANCEL);
        return j->links_failed ? decide_cause(p, REC_JOB_END, j, CAUSE_DEPENDENCY) : 0;
    }
    if (j->exits == j->workers)
        return decide_attempt_over(p, j);
    if (j->stop_cause != CAUSE_NONE)
        return 0;
    if (j->cancel_asked)
        return decide_cause(p, REC_JOB_STOP, j, CAUSE_CANCEL);
    if (j->failed)
        return decide_cause(p, REC_JOB_STOP, j, CAUSE_WORKER_FAILED);
    if (j->requeue_asked)
        return decide_cause(p, REC_JOB_STOP, j, CAUSE_REQUEUE);
    return 0;
}

static int step_todo(struct pass *p)
{
    for (;;) {
        struct otree_node *first = otree_first(&p->c->todo);
        if (first == NULL)
            return 0;
        struct job *j = OTREE_ENTRY(first, struct job, in_todo);
        otree_remove(&p->c->todo, first);
        int r = decide_todo(p, j);
        if (r < 0)
            return r;
    }
}

static int step_limits(struct pass *p)
{
    for (;;) {
        struct otree_node *first = otree_first(&p->c->limits);
        if (first == NULL)
            return 0;
        struct job *j = OTREE_ENTRY(first, struct job, by_time);
        if (job_deadline_ms(j) > p->now_ms)
            return 0;
        p->c->counters.time_limits++;
        int r = decide_cause(p, REC_JOB_STOP, j, CAUSE_TIME_LIMIT);
        if (r < 0)
            return r;
    }
}

/* Fills *ret when adding `more` to `used` passes `cap`. */
static bool over_cap(uint64_t used, uint64_t more, uint64_t cap, enum reason_code code, const char *name,
                     struct reason *ret)
{
    if (cap == NO_CAP || (used <= cap && more <= cap - used))
        return false;
    *ret =
        (struct reason){.code = code, .asked = more, .free = used < cap ? cap - used : 0, .total = cap, .used = used};
    (void)snprintf(ret->name, sizeof ret->name, "%s", name);
    return true;
}

uint32_t schedule_cap_reasons(const struct core *c, const struct job *j, struct reason *rows, uint32_t rows_cap)
{
    const char *tenant = core_tenant_name(c, j->payer.tenant);
    const char *user = core_user_name(c, j->payer.user);
    const char *queue = core_queue_name(c, j->payer.queue);
    const struct {
        const struct account *account;
        struct caps caps;
        const char *name;
        enum reason_code gpus;
        enum reason_code jobs;
        bool member;
    } checks[] = {
        {core_tenant_account(c, j->payer.tenant), core_tenant_caps(c, tenant), tenant, REASON_TENANT_GPUS,
         REASON_TENANT_JOBS, false},
        {core_user_account(c, j->payer.user), core_user_caps(c, user), user, REASON_USER_GPUS, REASON_USER_JOBS, false},
        {core_member_account(c, j->payer.member), core_member_caps(c, user, tenant), user, REASON_USER_GPUS,
         REASON_USER_JOBS, true},
        {core_queue_account(c, j->payer.queue), core_queue_caps(c, queue), queue, REASON_QUEUE_GPUS, REASON_QUEUE_JOBS,
         false},
    };
    uint32_t len = 0;
    for (size_t i = 0; i < 2 * sizeof checks / sizeof checks[0] && len < rows_cap; i++) {
        const struct account *a = checks[i / 2].account;
        struct caps caps = checks[i / 2].caps;
        bool over = i % 2 == 0 ? over_cap(a->gpus_milli, job_gpus_milli(j), caps.gpus_milli, checks[i / 2].gpus,
                                          checks[i / 2].name, &rows[len])
                               : over_cap(a->jobs, 1, caps.jobs, checks[i / 2].jobs, checks[i / 2].name, &rows[len]);
        if (over)
            rows[len++].member = checks[i / 2].member;
    }
    return len;
}

static int start_job(struct pass *p, struct job *j)
{
    struct core *c = p->c;
    struct record r = {.kind = REC_JOB_START,
                       .job = j->id,
                       .attempt = j->attempt + 1,
                       .grants_len = c->scratch.len,
                       .level = c->scratch.level};
    r.grants = mem_alloc(c->scratch.len, sizeof *r.grants);
    if (r.grants == NULL)
        return -ENOMEM;
    memcpy(r.grants, c->scratch.grants, c->scratch.len * sizeof *r.grants);
    c->counters.placed++;
    return decide(p, &r);
}

/* Tries the first job of a class: it starts, or the class is blocked with the reason. */
static int try_class(struct pass *p, struct job_class *k)
{
    struct core *c = p->c;
    struct job *j = queue_head(k);
    struct reason why;
    if (schedule_cap_reasons(c, j, &why, 1) > 0) {
        c->counters.blocked_caps++;
        queue_block(c, k, &why, false);
        return 0;
    }
    c->counters.tried++;
    int r = reserve_place(c, j, p->now_ms, &c->scratch);
    if (r == 0) {
        if (c->reservations_len > 0)
            c->counters.backfilled++;
        return start_job(p, j);
    }
    if (r != -EAGAIN)
        return r;
    c->counters.blocked_capacity++;
    why = (struct reason){.code = REASON_GPUS};
    queue_block(c, k, &why, true);
    return reserve_make(c, j, p->now_ms);
}

int core_pass(struct core *c, int64_t now_ms, core_emit *emit, void *arg)
{
    struct pass p = {c, now_ms, emit, arg};
    c->counters.passes++;
    int r = step_todo(&p);
    if (r == 0)
        r = step_limits(&p);
    if (r == 0)
        r = queue_wake(c, now_ms);
    if (r < 0)
        return r;
    if (reserve_prune(c) || c->unblock) {
        /* Reservations are made anew in order, so that they follow what is true now. */
        c->unblock = false;
        reserve_clear(c);
        queue_unblock(c);
    } else {
        c->counters.skipped_class += c->classes.len - c->ready.len;
    }
    for (;;) {
        struct job_class *k = queue_first_ready(c);
        if (k == NULL)
            return 0;
        r = try_class(&p, k);
        if (r < 0)
            return r;
    }
}

int64_t core_next_wake_ms(const struct core *c)
{
    int64_t next = INT64_MAX;
    struct otree_node *n = otree_first(&c->limits);
    if (n != NULL)
        next = job_deadline_ms(OTREE_ENTRY(n, struct job, by_time));
    n = otree_first(&c->delayed);
    if (n != NULL) {
        int64_t at = job_wake_ms(OTREE_ENTRY(n, struct job, by_time));
        next = at < next ? at : next;
    }
    return next;
}

int core_check_spec(struct core *c, const struct job_spec *spec, struct err *e)
{
    struct job probe = {.req = spec->req, .workers = spec->workers, .require = spec->require};
    uint64_t asked = job_gpus_milli(&probe);
    const struct {
        const char *what;
        const char *name;
        struct caps caps;
    } checks[] = {
        {"tenant", spec->tenant, core_tenant_caps(c, spec->tenant)},
        {"user", spec->user, core_user_caps(c, spec->user)},
        {"user", spec->user, core_member_caps(c, spec->user, spec->tenant)},
        {"queue", spec->queue, core_queue_caps(c, spec->queue)},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        uint64_t cap = checks[i].caps.gpus_milli;
        if (cap != NO_CAP && asked > cap)
            return err_set(e, -ERANGE,
                           "gpus: %llu.%03llu cards asked for in all, but %s \"%s\" may never hold more than "
                           "%llu.%03llu",
                           (unsigned long long)(asked / 1000), (unsigned long long)(asked % 1000), checks[i].what,
                           checks[i].name, (unsigned long long)(cap / 1000), (unsigned long long)(cap % 1000));
    }
    struct place_query q = core_query(c, &probe);
    if (c->cluster.nodes_len == 0 || place_possible(c->placer, &q))
        return 0;
    return explain_never(c, &probe, e);
}
