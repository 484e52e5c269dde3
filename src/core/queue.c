/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of waiting.
 *
 * Every queued job stands in exactly one place: in its class, or, during a back-off, in the delayed tree. A class is
 * ready (to be tried in the next pass, ordered by its first job) or blocked. So a pass walks the classes that can have
 * changed, not the queue: 100,000 queued jobs of 40 kinds cost 40 placements after something was given back, and none
 * after nothing was.
 *
 * Order of jobs: priority (its own plus the queue's), then time of submission, then id. The order is total, so that the
 * same state always gives the same pass.
 */
#include "base/mem.h"
#include "core/state.h"
#include "core/strategy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int queue_compare(const struct job *a, const struct job *b)
{
    if (a->order != b->order)
        return a->order > b->order ? -1 : 1;
    if (a->submitted_ms != b->submitted_ms)
        return a->submitted_ms < b->submitted_ms ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int compare_in_class(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    return queue_compare(OTREE_ENTRY(a, struct job, in_class), OTREE_ENTRY(b, struct job, in_class));
}

static int compare_ready(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    return queue_compare(queue_head(OTREE_ENTRY(a, struct job_class, in_ready)),
                         queue_head(OTREE_ENTRY(b, struct job_class, in_ready)));
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_request(const struct request *a, const struct request *b)
{
    int d = compare_u64(a->gpus, b->gpus);
    d = d != 0 ? d : compare_u64(a->share_milli, b->share_milli);
    d = d != 0 ? d : compare_u64(a->share_mem_mib, b->share_mem_mib);
    d = d != 0 ? d : compare_u64(a->cpu_milli, b->cpu_milli);
    d = d != 0 ? d : compare_u64(a->mem_mib, b->mem_mib);
    return d != 0 ? d : strcmp(a->gpu_model, b->gpu_model);
}

static int compare_class(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    const struct job_class *x = OTREE_ENTRY(a, struct job_class, in_all);
    const struct job_class *y = OTREE_ENTRY(b, struct job_class, in_all);
    int d = compare_request(&x->req, &y->req);
    d = d != 0 ? d : compare_u64(x->workers, y->workers);
    d = d != 0 ? d : compare_u64(x->require, y->require);
    d = d != 0 ? d : compare_u64(x->prefer, y->prefer);
    d = d != 0 ? d : compare_u64((uint64_t)x->time_limit_ms, (uint64_t)y->time_limit_ms);
    d = d != 0 ? d : compare_u64(x->payer.tenant, y->payer.tenant);
    d = d != 0 ? d : compare_u64(x->payer.user, y->payer.user);
    d = d != 0 ? d : compare_u64(x->payer.queue, y->payer.queue);
    return d != 0 ? d : strcmp(x->strategy->name, y->strategy->name);
}

static int compare_delayed(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    const struct job *x = OTREE_ENTRY(a, struct job, by_time);
    const struct job *y = OTREE_ENTRY(b, struct job, by_time);
    int64_t s = job_wake_ms(x);
    int64_t t = job_wake_ms(y);
    if (s != t)
        return s < t ? -1 : 1;
    return compare_u64(x->id, y->id);
}

static int compare_limits(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    const struct job *x = OTREE_ENTRY(a, struct job, by_time);
    const struct job *y = OTREE_ENTRY(b, struct job, by_time);
    int64_t s = job_deadline_ms(x);
    int64_t t = job_deadline_ms(y);
    if (s != t)
        return s < t ? -1 : 1;
    return compare_u64(x->id, y->id);
}

static int compare_todo(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    return compare_u64(OTREE_ENTRY(a, struct job, in_todo)->id, OTREE_ENTRY(b, struct job, in_todo)->id);
}

void queue_init(struct core *c)
{
    otree_init(&c->classes, compare_class, NULL);
    otree_init(&c->ready, compare_ready, NULL);
    otree_init(&c->delayed, compare_delayed, NULL);
    otree_init(&c->limits, compare_limits, NULL);
    otree_init(&c->todo, compare_todo, NULL);
}

void queue_done(struct core *c)
{
    struct otree_node *n = c->classes.cmp == NULL ? NULL : otree_first(&c->classes);
    while (n != NULL) {
        struct job_class *k = OTREE_ENTRY(n, struct job_class, in_all);
        otree_remove(&c->classes, n);
        mem_free(k);
        n = otree_first(&c->classes);
    }
}

struct job *queue_head(const struct job_class *k)
{
    struct otree_node *first = otree_first(&k->jobs);
    assert(first != NULL);
    return OTREE_ENTRY(first, struct job, in_class);
}

/* The class of the job, made when it is the first of its kind; NULL when there is no memory. */
static struct job_class *class_of(struct core *c, const struct job *j)
{
    struct job_class key = {.payer = j->payer,
                            .req = j->req,
                            .workers = j->workers,
                            .require = j->require,
                            .prefer = j->prefer,
                            .time_limit_ms = j->time_limit_ms,
                            .strategy = j->strategy};
    struct otree_node *at = otree_lower_bound(&c->classes, &key.in_all);
    if (at != NULL && compare_class(at, &key.in_all, NULL) == 0)
        return OTREE_ENTRY(at, struct job_class, in_all);
    struct job_class *k = mem_alloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    *k = key;
    otree_init(&k->jobs, compare_in_class, NULL);
    otree_insert(&c->classes, &k->in_all);
    return k;
}

static void enter_class(struct core *c, struct job_class *k, struct job *j)
{
    bool fresh = k->jobs.len == 0;
    bool ready = otree_linked(&k->in_ready);
    /* The ready tree is ordered by the first job of a class, which may change now. */
    if (ready)
        otree_remove(&c->ready, &k->in_ready);
    j->class = k;
    otree_insert(&k->jobs, &j->in_class);
    /*
     * A blocked class stays blocked: what its first job does not get, this one does not get either, unless it comes
     * before the others, where reservations may stand differently.
     */
    if (fresh || ready || queue_head(k) == j)
        otree_insert(&c->ready, &k->in_ready);
}

int queue_add(struct core *c, struct job *j, int64_t now_ms)
{
    assert(j->state == JOB_QUEUED && j->class == NULL && !otree_linked(&j->by_time));
    if (job_wake_ms(j) > now_ms) {
        otree_insert(&c->delayed, &j->by_time);
        return 0;
    }
    struct job_class *k = class_of(c, j);
    if (k == NULL)
        return -ENOMEM;
    enter_class(c, k, j);
    return 0;
}

void queue_remove(struct core *c, struct job *j)
{
    struct job_class *k = j->class;
    if (k == NULL) {
        if (otree_linked(&j->by_time))
            otree_remove(&c->delayed, &j->by_time);
        return;
    }
    bool ready = otree_linked(&k->in_ready);
    bool was_head = queue_head(k) == j;
    if (ready)
        otree_remove(&c->ready, &k->in_ready);
    otree_remove(&k->jobs, &j->in_class);
    j->class = NULL;
    if (k->jobs.len == 0) {
        otree_remove(&c->classes, &k->in_all);
        mem_free(k);
    } else if (ready || was_head) {
        /* The next job was never tried by itself: a reservation may have stood for the one that left. */
        otree_insert(&c->ready, &k->in_ready);
    }
}

struct job_class *queue_first_ready(struct core *c)
{
    struct otree_node *first = otree_first(&c->ready);
    return first == NULL ? NULL : OTREE_ENTRY(first, struct job_class, in_ready);
}

void queue_block(struct core *c, struct job_class *k, const struct reason *why, bool capacity)
{
    otree_remove(&c->ready, &k->in_ready);
    k->reason = *why;
    k->capacity = capacity;
    k->reason_at = UINT64_MAX;
}

void queue_unblock(struct core *c)
{
    for (struct otree_node *n = otree_first(&c->classes); n != NULL; n = otree_next(n)) {
        struct job_class *k = OTREE_ENTRY(n, struct job_class, in_all);
        if (!otree_linked(&k->in_ready))
            otree_insert(&c->ready, &k->in_ready);
    }
}

int queue_wake(struct core *c, int64_t now_ms)
{
    for (;;) {
        struct otree_node *first = otree_first(&c->delayed);
        if (first == NULL)
            return 0;
        struct job *j = OTREE_ENTRY(first, struct job, by_time);
        if (job_wake_ms(j) > now_ms)
            return 0;
        otree_remove(&c->delayed, first);
        int r = queue_add(c, j, now_ms);
        if (r < 0)
            return r;
    }
}

void queue_limit_add(struct core *c, struct job *j)
{
    if (j->time_limit_ms > 0 && j->stop_cause == CAUSE_NONE)
        otree_insert(&c->limits, &j->by_time);
}

void queue_limit_remove(struct core *c, struct job *j)
{
    if (otree_linked(&j->by_time))
        otree_remove(&c->limits, &j->by_time);
}

void queue_todo(struct core *c, struct job *j)
{
    if (!otree_linked(&j->in_todo))
        otree_insert(&c->todo, &j->in_todo);
}
