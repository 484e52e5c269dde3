/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit finds what it is there to find: each invariant is broken by hand, once, and the audit has to say so and
 * name what is wrong. REQ: F5, G8
 */
#include "core_world.h"

#include "core/state.h"

#include <string.h>

struct scene {
    struct world w;
    struct core *c;
    struct job *runs;   /* two workers of two cards */
    struct job *shares; /* a quarter of a card */
    struct job *waits;
    struct job *ended;
};

static void make(struct scene *s)
{
    struct world *w = &s->w;
    world_init(w);
    world_node(w, "n1", "r1", 8, "A100-80GB");
    uint64_t ended = world_submit(w, &(struct wish){.gpus = 1});
    uint64_t runs =
        world_submit(w, &(struct wish){.gpus = 2, .workers = 2, .cpu_milli = 500, .mem_mib = 100, .limit_ms = 60000});
    uint64_t shares = world_submit(w, &(struct wish){.share = 250, .share_mem_mib = 1000});
    uint64_t waits = world_submit(w, &(struct wish){.gpus = 8});
    world_pass(w);
    world_running(w, runs);
    world_finish(w, ended, 0);
    world_pass(w);
    s->c = w->core;
    s->runs = core_job_mutable(w->core, runs);
    s->shares = core_job_mutable(w->core, shares);
    s->waits = core_job_mutable(w->core, waits);
    s->ended = core_job_mutable(w->core, ended);
    assert_int_equal(s->runs->state, JOB_RUNNING);
    assert_int_equal(s->shares->state, JOB_STARTING);
    assert_int_equal(s->waits->state, JOB_QUEUED);
    assert_int_equal(s->ended->state, JOB_SUCCEEDED);
}

static struct node *node(struct scene *s)
{
    return s->c->cluster.nodes[0];
}

/* Each breaks one thing; all are undone by throwing the scene away. */
static void held_twice(struct scene *s)
{
    s->runs->grants[1].gpu_mask = s->runs->grants[0].gpu_mask;
}

static void whole_card_shared(struct scene *s)
{
    s->shares->grants[0].gpu_mask = s->runs->grants[0].gpu_mask & -s->runs->grants[0].gpu_mask;
}

static void card_called_free(struct scene *s)
{
    node(s)->gpus[__builtin_ctz(s->runs->grants[0].gpu_mask)].free_milli = GPU_MILLI;
}

static void card_called_taken(struct scene *s)
{
    for (uint32_t i = 0; i < node(s)->gpus_len; i++)
        if (node(s)->gpus[i].holders == 0)
            node(s)->gpus[i].free_milli = 0;
}

static void memory_of_card_lost(struct scene *s)
{
    node(s)->gpus[__builtin_ctz(s->shares->grants[0].gpu_mask)].free_mem_mib--;
}

static void node_sum_wrong(struct scene *s)
{
    node(s)->gpus_milli_free++;
}

static void cpu_lost(struct scene *s)
{
    node(s)->free_cpu_milli--;
}

static void host_memory_lost(struct scene *s)
{
    node(s)->free_mem_mib--;
}

static void holder_count_wrong(struct scene *s)
{
    node(s)->gpus[__builtin_ctz(s->shares->grants[0].gpu_mask)].holders++;
}

static void whole_flag_lost(struct scene *s)
{
    node(s)->gpus[__builtin_ctz(s->runs->grants[0].gpu_mask)].whole = false;
}

static void tenant_charged_wrong(struct scene *s)
{
    s->c->ledger.tenants.rows[s->runs->payer.tenant].gpus_milli++;
}

static void user_charged_wrong(struct scene *s)
{
    s->c->ledger.users.rows[s->runs->payer.user].jobs++;
}

static void member_charged_wrong(struct scene *s)
{
    s->c->ledger.members.rows[s->runs->payer.member].cpu_milli++;
}

static void queue_charged_wrong(struct scene *s)
{
    s->c->ledger.queues.rows[s->runs->payer.queue].mem_mib++;
}

static void got_less_than_asked(struct scene *s)
{
    s->runs->grants[0].gpu_mask &= s->runs->grants[0].gpu_mask - 1;
}

static void got_other_than_asked(struct scene *s)
{
    s->shares->grants[0].gpu_mem_mib += 1;
}

static void on_no_node(struct scene *s)
{
    s->runs->grants[0].node = 77;
}

static void dead_job_holds(struct scene *s)
{
    s->ended->grants = s->shares->grants;
}

static void running_job_holds_nothing(struct scene *s)
{
    s->shares->grants = NULL;
}

static void queued_nowhere(struct scene *s)
{
    queue_remove(s->c, s->waits);
}

static void still_queued_while_running(struct scene *s)
{
    s->waits->state = JOB_FAILED;
    s->c->counts[JOB_QUEUED]--;
    s->c->counts[JOB_FAILED]++;
}

static void count_wrong(struct scene *s)
{
    s->c->counts[JOB_SUCCEEDED]++;
}

static void limit_not_watched(struct scene *s)
{
    queue_limit_remove(s->c, s->runs);
}

static void holder_not_listed(struct scene *s)
{
    s->c->holders[0].len--;
}

static void more_ended_than_there_are(struct scene *s)
{
    s->runs->exits = 3;
}

static void test_every_break_is_found(void **state)
{
    static const struct {
        const char *name;
        void (*apply)(struct scene *);
    } breaks[] = {
#define BREAK(name) {#name, name}
        BREAK(held_twice),
        BREAK(whole_card_shared),
        BREAK(card_called_free),
        BREAK(card_called_taken),
        BREAK(memory_of_card_lost),
        BREAK(node_sum_wrong),
        BREAK(cpu_lost),
        BREAK(host_memory_lost),
        BREAK(holder_count_wrong),
        BREAK(whole_flag_lost),
        BREAK(tenant_charged_wrong),
        BREAK(user_charged_wrong),
        BREAK(member_charged_wrong),
        BREAK(queue_charged_wrong),
        BREAK(got_less_than_asked),
        BREAK(got_other_than_asked),
        BREAK(on_no_node),
        BREAK(dead_job_holds),
        BREAK(running_job_holds_nothing),
        BREAK(queued_nowhere),
        BREAK(still_queued_while_running),
        BREAK(count_wrong),
        BREAK(limit_not_watched),
        BREAK(holder_not_listed),
        BREAK(more_ended_than_there_are),
#undef BREAK
    };
    (void)state;
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        struct scene s;
        make(&s);
        struct grant *grants[2] = {s.ended->grants, s.shares->grants};
        struct err e = {0};
        breaks[i].apply(&s);
        int r = core_audit(s.c, &e);
        if (r != -EPROTO || e.text[0] == '\0')
            fail_msg("%s: the audit says %d, \"%s\"", breaks[i].name, r, e.text);
        s.ended->grants = grants[0]; /* so that everything is released once */
        s.shares->grants = grants[1];
        world_done(&s.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_break_is_found)};
    return test_run("audit", tests);
}
