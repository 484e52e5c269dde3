/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dependencies: jobs that start only after others have ended, well, badly or in any way. A link stands for each wish
 * that is not met yet, in one tree ordered by the job that is waited for, so that an end finds its waiters in
 * O(log links + waiters). A wish that can not be met any more ends the waiting job (CAUSE_DEPENDENCY), and with it, in
 * turn, those that wait for it.
 */
#include "base/mem.h"
#include "core/state.h"

#include <errno.h>

static int compare_links(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    const struct dependency_link *x = OTREE_ENTRY(a, struct dependency_link, node);
    const struct dependency_link *y = OTREE_ENTRY(b, struct dependency_link, node);
    if (x->on != y->on)
        return x->on < y->on ? -1 : 1;
    if (x->job->id != y->job->id)
        return x->job->id < y->job->id ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void depend_init(struct core *c)
{
    otree_init(&c->links, compare_links, NULL);
}

/* 1: met, -1: can not be met any more, 0: not decided. */
static int judge(enum after_kind kind, const struct job *on)
{
    if (!job_ended(on))
        return 0;
    bool well = on->state == JOB_SUCCEEDED;
    return kind == AFTER_ANY || well == (kind == AFTER_OK) ? 1 : -1;
}

void depend_drop(struct core *c, struct job *j)
{
    for (uint32_t i = 0; i < j->links_len; i++)
        if (otree_linked(&j->links[i].node))
            otree_remove(&c->links, &j->links[i].node);
}

int depend_add(struct core *c, struct job *j, const struct job_spec *s, struct err *e)
{
    if (s->after_len == 0)
        return 0;
    j->links = mem_alloc(s->after_len, sizeof *j->links);
    if (j->links == NULL)
        return -ENOMEM;
    j->links_len = s->after_len;
    for (uint32_t i = 0; i < s->after_len; i++) {
        const struct job *on = core_job(c, s->after[i].job);
        struct dependency_link *l = &j->links[i];
        if (on == NULL || on->id >= j->id) {
            depend_drop(c, j);
            return err_set(e, -EINVAL, "job %llu is to start after job %llu, which is not there",
                           (unsigned long long)j->id, (unsigned long long)s->after[i].job);
        }
        *l = (struct dependency_link){.on = on->id, .kind = s->after[i].kind, .job = j, .number = i};
        int verdict = judge(l->kind, on);
        if (verdict == 0) {
            otree_insert(&c->links, &l->node);
            j->links_left++;
        } else if (verdict < 0) {
            j->links_failed = true;
        }
    }
    return 0;
}

/* One link less, or one that can never go. */
static int settle(struct core *c, struct dependency_link *l, const struct job *on, int64_t now_ms)
{
    struct job *j = l->job;
    bool met = judge(l->kind, on) > 0;
    otree_remove(&c->links, &l->node);
    if (!met) {
        j->links_failed = true;
        queue_todo(c, j);
        return 0;
    }
    queue_remove(c, j); /* its place depends on what is changed here */
    j->links_left--;
    return queue_add(c, j, now_ms);
}

int depend_ended(struct core *c, const struct job *on, int64_t now_ms)
{
    struct job none = {.id = 0};
    struct dependency_link key = {.on = on->id, .job = &none};
    for (;;) {
        struct otree_node *at = otree_lower_bound(&c->links, &key.node);
        if (at == NULL || OTREE_ENTRY(at, struct dependency_link, node)->on != on->id)
            return 0;
        int r = settle(c, OTREE_ENTRY(at, struct dependency_link, node), on, now_ms);
        if (r < 0)
            return r;
    }
}

uint64_t depend_first(const struct job *j)
{
    for (uint32_t i = 0; i < j->links_len; i++)
        if (otree_linked(&j->links[i].node))
            return j->links[i].on;
    return 0;
}
