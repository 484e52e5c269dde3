/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler as a function: records in, passes, decisions out, the audit after every step. Rules one by one here;
 * random workloads in test_core_random.c; what a daemon makes of it in test_daemon_sim.c.
 */
#include "core_world.h"

#include <string.h>

/* Starts of a pass in their order, as "id id ". */
static const char *starts(struct world *w)
{
    static char text[512];
    text[0] = '\0';
    for (size_t i = 0; i < w->made_len; i++) {
        if (w->made[i].kind == REC_JOB_START) {
            size_t at = strlen(text);
            snprintf(text + at, sizeof text - at, "%llu ", (unsigned long long)w->made[i].job);
        }
    }
    return text;
}

static enum job_state state_of(const struct world *w, uint64_t job)
{
    return core_job(w->core, job)->state;
}

static struct reason why(struct world *w, uint64_t job)
{
    return core_reason(w->core, core_job(w->core, job), w->now_ms);
}

/* REQ: C2 */
static void test_order(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_node(&w, "n1", "r1", 8, "A100-80GB");
    uint64_t held = world_submit(&w, &(struct wish){.gpus = 8});
    world_pass(&w);
    uint64_t low = world_submit(&w, &(struct wish){.gpus = 2, .priority = -1});
    uint64_t first = world_submit(&w, &(struct wish){.gpus = 2});
    uint64_t second = world_submit(&w, &(struct wish){.gpus = 2});
    uint64_t high = world_submit(&w, &(struct wish){.gpus = 2, .priority = 1});
    world_pass(&w);
    assert_string_equal(starts(&w), "");
    world_finish(&w, held, 0);
    world_pass(&w);
    char want[64];
    snprintf(want, sizeof want, "%llu %llu %llu %llu ", (unsigned long long)high, (unsigned long long)first,
             (unsigned long long)second, (unsigned long long)low);
    assert_string_equal(starts(&w), want);
    world_done(&w);
}

/* A queue's priority counts with the job's own; a change while it waits counts at once. */
static void test_order_changes(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_config(&w, "queues:\n  - name: batch\n  - name: debug\n    priority: 100\n");
    world_node(&w, "n1", "r1", 1, "A100-80GB");
    uint64_t held = world_submit(&w, &(struct wish){.gpus = 1});
    world_pass(&w);
    uint64_t a = world_submit(&w, &(struct wish){.gpus = 1, .priority = 50});
    uint64_t b = world_submit(&w, &(struct wish){.gpus = 1, .queue = "debug"});
    uint64_t c = world_submit(&w, &(struct wish){.gpus = 1});
    world_pass(&w);
    uint64_t order[4] = {b, a, c, 0};
    for (int i = 0; i < 2; i++) {
        world_finish(&w, held, 0);
        world_pass(&w);
        held = order[i];
        assert_int_equal(state_of(&w, held), JOB_STARTING);
    }
    uint64_t d = world_submit(&w, &(struct wish){.gpus = 1});
    world_update(&w, d, &(struct job_change){.set_priority = true, .priority = 7});
    world_finish(&w, held, 0);
    world_pass(&w);
    assert_int_equal(state_of(&w, d), JOB_STARTING);
    world_update(&w, c, &(struct job_change){.set_queue = true, .queue = "debug"});
    uint64_t e = world_submit(&w, &(struct wish){.gpus = 1, .priority = 99});
    world_finish(&w, d, 0);
    world_pass(&w);
    assert_int_equal(state_of(&w, c), JOB_STARTING);
    assert_int_equal(state_of(&w, e), JOB_QUEUED);
    world_done(&w);
}

static const struct {
    const char *config;
    struct wish wish;
    struct wish other; /* not under the cap */
    enum reason_code code;
    const char *name;
    uint64_t asked, free, total;
    int fit;
} cap_cases[] = {
    {"tenants:\n  - name: t\n    max_gpus: 4\n",
     {.gpus = 3, .tenant = "t"},
     {.gpus = 1},
     REASON_TENANT_GPUS,
     "t",
     3000,
     1000,
     4000,
     1},
    {"tenants:\n  - name: t\n    max_jobs: 2\n", {.tenant = "t"}, {.gpus = 1}, REASON_TENANT_JOBS, "t", 1, 0, 2, 2},
    {"tenants:\n  - name: t\n    user_max_gpus: 1.5\n",
     {.share = 1000, .tenant = "t", .user = "eve"},
     {.share = 1000, .tenant = "t", .user = "adam"},
     REASON_USER_GPUS,
     "eve",
     1000,
     500,
     1500,
     1},
    {"tenants:\n  - name: t\n    user_max_jobs: 1\n",
     {.tenant = "t", .user = "eve"},
     {.user = "eve"},
     REASON_USER_JOBS,
     "eve",
     1,
     0,
     1,
     1},
    {"tenants:\n  - name: t\n    user_max_jobs: 1\n    user_max_gpus: 1\nusers:\n  - name: eve\n    tenant: t\n    "
     "max_jobs: 3\n",
     {.share = 500, .tenant = "t", .user = "eve"},
     {.user = "adam"},
     REASON_USER_GPUS,
     "eve",
     500,
     0,
     1000,
     2},
    {"users:\n  - name: eve\n    max_gpus: 5\n",
     {.gpus = 2, .user = "eve"},
     {.gpus = 1, .user = "adam"},
     REASON_USER_GPUS,
     "eve",
     2000,
     1000,
     5000,
     2},
    {"users:\n  - name: eve\n    max_jobs: 3\n",
     {.user = "eve"},
     {.user = "adam"},
     REASON_USER_JOBS,
     "eve",
     1,
     0,
     3,
     3},
    {"queues:\n  - name: batch\n  - name: q\n    max_gpus: 2\n",
     {.gpus = 1, .queue = "q"},
     {.gpus = 1},
     REASON_QUEUE_GPUS,
     "q",
     1000,
     0,
     2000,
     2},
    {"queues:\n  - name: batch\n  - name: q\n    max_jobs: 1\n",
     {.gpus = 1, .queue = "q"},
     {.gpus = 1},
     REASON_QUEUE_JOBS,
     "q",
     1,
     0,
     1,
     1},
};

/* REQ: C5. Each cap holds what would pass it, names itself, and lets others pass. */
static void test_caps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cap_cases / sizeof cap_cases[0]; i++) {
        struct world w;
        world_init(&w);
        world_config(&w, cap_cases[i].config);
        world_node(&w, "n1", "r1", 8, "A100-80GB");
        uint64_t ids[4];
        for (int k = 0; k <= cap_cases[i].fit; k++)
            ids[k] = world_submit(&w, &cap_cases[i].wish);
        uint64_t other = world_submit(&w, &cap_cases[i].other);
        world_pass(&w);
        for (int k = 0; k < cap_cases[i].fit; k++)
            assert_int_equal(state_of(&w, ids[k]), JOB_STARTING);
        uint64_t waits = ids[cap_cases[i].fit];
        assert_int_equal(state_of(&w, waits), JOB_QUEUED);
        assert_int_equal(state_of(&w, other), JOB_STARTING);
        struct reason r = why(&w, waits);
        assert_int_equal(r.code, cap_cases[i].code);
        assert_string_equal(r.name, cap_cases[i].name);
        assert_int_equal(r.asked, cap_cases[i].asked);
        assert_int_equal(r.free, cap_cases[i].free);
        assert_int_equal(r.total, cap_cases[i].total);
        struct explanation x;
        assert_int_equal(core_explain(w.core, w.now_ms, waits, &x), 0);
        assert_int_equal(x.verdict, VERDICT_WAITS);
        assert_int_equal(x.reasons[0].holders_len, cap_cases[i].fit);
        world_finish(&w, ids[0], 0);
        world_pass(&w);
        assert_int_equal(state_of(&w, waits), JOB_STARTING);
        world_done(&w);
    }
}

/* The gang gets its cards when they are there at once, however many small jobs keep coming. REQ: C8 */
static void test_gang_is_not_starved(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        world_node(&w, name, "r1", 8, "A100-80GB");
    }
    uint64_t small[64];
    size_t len = 0;
    for (; len < 32; len++)
        small[len] = world_submit(&w, &(struct wish){.gpus = 1, .limit_ms = 600000});
    world_pass(&w);
    uint64_t gang = world_submit(&w, &(struct wish){.gpus = 4, .workers = 6, .limit_ms = 3600000});
    world_pass(&w);
    struct reservation_view v;
    assert_true(core_reservation(w.core, gang, &v));
    assert_int_equal(v.start_ms, w.now_ms + 600000);
    assert_true(v.bounded);
    /* One small job ends each second and another comes that would end long after the gang may start. */
    for (size_t i = 0; i < 32 && state_of(&w, gang) == JOB_QUEUED; i++) {
        w.now_ms += 1000;
        world_finish(&w, small[i], 0);
        (void)world_submit(&w, &(struct wish){.gpus = 1, .limit_ms = 7200000});
        world_pass(&w);
        const struct job *j = core_job(w.core, gang);
        assert_true(j->state == JOB_QUEUED ? j->grants == NULL : j->grants != NULL);
    }
    assert_int_equal(state_of(&w, gang), JOB_STARTING);
    world_done(&w);
}

/* Which jobs may pass one that waits with a reservation. */
static void test_backfill(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_node(&w, "n1", "r1", 8, "A100-80GB");
    uint64_t a = world_submit(&w, &(struct wish){.gpus = 6, .limit_ms = 100000});
    world_pass(&w);
    uint64_t wide = world_submit(&w, &(struct wish){.gpus = 7, .limit_ms = 100000});
    uint64_t late = world_submit(&w, &(struct wish){.gpus = 2, .limit_ms = 100001});
    uint64_t unlimited = world_submit(&w, &(struct wish){.gpus = 2});
    uint64_t one = world_submit(&w, &(struct wish){.gpus = 1});     /* one card is spare */
    uint64_t another = world_submit(&w, &(struct wish){.gpus = 1}); /* not a second one */
    uint64_t in_time = world_submit(&w, &(struct wish){.gpus = 1, .limit_ms = 100000});
    uint64_t no_card = world_submit(&w, &(struct wish){.cpu_milli = 1000});
    world_pass(&w);
    assert_int_equal(state_of(&w, wide), JOB_QUEUED);
    assert_int_equal(state_of(&w, late), JOB_QUEUED);
    assert_int_equal(state_of(&w, unlimited), JOB_QUEUED);
    assert_int_equal(state_of(&w, one), JOB_STARTING);
    assert_int_equal(state_of(&w, another), JOB_QUEUED);
    assert_int_equal(state_of(&w, in_time), JOB_STARTING);
    assert_int_equal(state_of(&w, no_card), JOB_STARTING);
    struct reason r = why(&w, another);
    assert_int_equal(r.code, REASON_GPUS); /* by now all cards are taken */
    /* A job of higher priority is not bound. */
    world_finish(&w, in_time, 0);
    uint64_t urgent = world_submit(&w, &(struct wish){.gpus = 1, .priority = 1});
    world_pass(&w);
    assert_int_equal(state_of(&w, urgent), JOB_STARTING);
    world_finish(&w, urgent, 0);
    world_pass(&w);
    r = why(&w, another);
    assert_int_equal(r.code, REASON_RESERVED);
    assert_int_equal(r.job, wide);
    world_finish(&w, a, 0);
    world_pass(&w);
    assert_int_equal(state_of(&w, wide), JOB_STARTING);
    world_done(&w);
}

/* A job that runs into its limit is stopped then and not before; one without is not. */
static void test_time_limit(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_node(&w, "n1", "r1", 8, "A100-80GB");
    uint64_t a = world_submit(&w, &(struct wish){.gpus = 1, .limit_ms = 5000});
    uint64_t b = world_submit(&w, &(struct wish){.gpus = 1});
    world_pass(&w);
    world_running(&w, a);
    world_running(&w, b);
    assert_int_equal(core_next_wake_ms(w.core), w.now_ms + 5000);
    w.now_ms += 4999;
    world_pass(&w);
    assert_int_equal(w.made_len, 0);
    w.now_ms += 1;
    world_pass(&w);
    assert_int_equal(w.made_len, 1);
    assert_int_equal(w.made[0].kind, REC_JOB_STOP);
    assert_int_equal(w.made[0].job, a);
    assert_int_equal(w.made[0].cause, CAUSE_TIME_LIMIT);
    world_pass(&w);
    assert_int_equal(w.made_len, 0); /* asked once */
    world_exit(&w, a, 0, 0, 15, CAUSE_EXIT);
    world_pass(&w);
    assert_int_equal(state_of(&w, a), JOB_FAILED);
    assert_int_equal(core_job(w.core, a)->cause, CAUSE_TIME_LIMIT);
    assert_int_equal(state_of(&w, b), JOB_RUNNING);
    world_done(&w);
}

/* A start that fails is tried again after a while, a few times, and what it held is given back in between. */
static void test_retry(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_node(&w, "n1", "r1", 1, "A100-80GB");
    uint64_t a = world_submit(&w, &(struct wish){.gpus = 1});
    for (uint32_t attempt = 1; attempt <= LAUNCH_TRIES_MAX; attempt++) {
        world_pass(&w);
        assert_int_equal(state_of(&w, a), JOB_STARTING);
        assert_int_equal(core_job(w.core, a)->attempt, attempt);
        world_exit(&w, a, 0, -1, 0, CAUSE_LAUNCH_FAILED);
        world_pass(&w);
        if (attempt == LAUNCH_TRIES_MAX)
            break;
        assert_int_equal(state_of(&w, a), JOB_QUEUED);
        int64_t wake = core_next_wake_ms(w.core);
        assert_true(wake > w.now_ms && wake < w.now_ms + 3600000);
        assert_int_equal(why(&w, a).code, REASON_BACKOFF);
        assert_int_equal(why(&w, a).until_ms, wake);
        uint64_t other = world_submit(&w, &(struct wish){.gpus = 1});
        world_pass(&w);
        assert_int_equal(state_of(&w, other), JOB_STARTING);
        world_finish(&w, other, 0);
        w.now_ms = wake;
    }
    assert_int_equal(state_of(&w, a), JOB_FAILED);
    assert_int_equal(core_job(w.core, a)->cause, CAUSE_LAUNCH_FAILED);
    /* A program that is not there (127) or can not be executed (126) will not be there the next time. */
    uint64_t b = world_submit(&w, &(struct wish){.gpus = 1});
    world_pass(&w);
    world_exit(&w, b, 0, 127, 0, CAUSE_LAUNCH_FAILED);
    world_pass(&w);
    assert_int_equal(state_of(&w, b), JOB_FAILED);
    assert_int_equal(core_job(w.core, b)->attempt, 1);
    world_done(&w);
}

/* One worker that fails stops the others, and the job's status is that worker's. */
static void test_gang_fails_with_its_first(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_node(&w, "n1", "r1", 8, "A100-80GB");
    uint64_t a = world_submit(&w, &(struct wish){.gpus = 1, .workers = 3});
    world_pass(&w);
    world_running(&w, a);
    world_exit(&w, a, 2, 0, 0, CAUSE_EXIT);
    world_pass(&w);
    assert_int_equal(w.made_len, 0);
    world_exit(&w, a, 1, 9, 0, CAUSE_EXIT);
    world_pass(&w);
    assert_int_equal(w.made_len, 1);
    assert_int_equal(w.made[0].kind, REC_JOB_STOP);
    assert_int_equal(w.made[0].cause, CAUSE_WORKER_FAILED);
    world_exit(&w, a, 0, -1, 15, CAUSE_EXIT);
    world_pass(&w);
    assert_int_equal(state_of(&w, a), JOB_FAILED);
    assert_int_equal(core_job(w.core, a)->exit_status, 9);
    world_done(&w);
}

/* A cancelled job ends in each state it can be in, and only once. */
static void test_cancel(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_node(&w, "n1", "r1", 1, "A100-80GB");
    uint64_t starting = world_submit(&w, &(struct wish){.gpus = 1});
    uint64_t queued = world_submit(&w, &(struct wish){.gpus = 1});
    world_pass(&w);
    world_cancel(&w, queued);
    world_pass(&w);
    assert_int_equal(state_of(&w, queued), JOB_CANCELLED);
    assert_int_equal(core_job(w.core, queued)->exit_status, EXIT_STATUS_CANCELLED);
    world_cancel(&w, starting);
    world_pass(&w);
    assert_int_equal(w.made[0].kind, REC_JOB_STOP);
    assert_int_equal(w.made[0].cause, CAUSE_CANCEL);
    world_exit(&w, starting, 0, 0, 0, CAUSE_EXIT); /* it saved itself and ended well: cancelled all the same */
    world_pass(&w);
    assert_int_equal(state_of(&w, starting), JOB_CANCELLED);
    /* While it waits for another try. */
    uint64_t delayed = world_submit(&w, &(struct wish){.gpus = 1});
    world_pass(&w);
    world_exit(&w, delayed, 0, -1, 0, CAUSE_LAUNCH_FAILED);
    world_pass(&w);
    world_cancel(&w, delayed);
    world_pass(&w);
    assert_int_equal(state_of(&w, delayed), JOB_CANCELLED);
    world_done(&w);
}

/* REQ: C9. A held job starts when it is released, and takes its old place in the order then. */
static void test_hold(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_node(&w, "n1", "r1", 1, "A100-80GB");
    uint64_t held = world_submit(&w, &(struct wish){.gpus = 1, .hold = true});
    world_pass(&w);
    assert_int_equal(state_of(&w, held), JOB_QUEUED);
    assert_int_equal(why(&w, held).code, REASON_HELD);
    assert_true(core_next_wake_ms(w.core) == INT64_MAX);
    uint64_t first = world_submit(&w, &(struct wish){.gpus = 1});
    uint64_t second = world_submit(&w, &(struct wish){.gpus = 1});
    world_pass(&w);
    assert_int_equal(state_of(&w, first), JOB_STARTING);
    world_hold(&w, second, true);
    world_hold(&w, held, false);
    world_finish(&w, first, 0);
    world_pass(&w);
    assert_int_equal(state_of(&w, held), JOB_STARTING);
    world_hold(&w, second, false);
    world_finish(&w, held, 0);
    world_pass(&w);
    assert_int_equal(state_of(&w, second), JOB_STARTING);
    uint64_t third = world_submit(&w, &(struct wish){.gpus = 1, .hold = true});
    world_cancel(&w, third);
    world_pass(&w);
    assert_int_equal(state_of(&w, third), JOB_CANCELLED);
    world_done(&w);
}

/* REQ: C9. Not before its time, and then without anything else happening. */
static void test_begin(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_node(&w, "n1", "r1", 8, "A100-80GB");
    uint64_t later = world_submit(&w, &(struct wish){.gpus = 1, .begin_after_ms = 5000});
    world_pass(&w);
    assert_int_equal(why(&w, later).code, REASON_BEGIN);
    assert_int_equal(why(&w, later).until_ms, w.now_ms + 5000);
    assert_int_equal(core_next_wake_ms(w.core), w.now_ms + 5000);
    w.now_ms += 4999;
    world_pass(&w);
    assert_int_equal(state_of(&w, later), JOB_QUEUED);
    w.now_ms += 1;
    world_pass(&w);
    assert_int_equal(state_of(&w, later), JOB_STARTING);
    world_done(&w);
}

/* REQ: C9. Requeued: stopped, everything given back, run again as the next attempt; a cancel in between wins. */
static void test_requeue(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_node(&w, "n1", "r1", 2, "A100-80GB");
    uint64_t a = world_submit(&w, &(struct wish){.gpus = 1, .workers = 2});
    world_pass(&w);
    world_running(&w, a);
    world_requeue(&w, a);
    world_pass(&w);
    assert_int_equal(w.made[0].kind, REC_JOB_STOP);
    assert_int_equal(w.made[0].cause, CAUSE_REQUEUE);
    world_exit(&w, a, 0, 0, 15, CAUSE_EXIT);
    world_pass(&w);
    assert_int_equal(state_of(&w, a), JOB_RUNNING);
    world_exit(&w, a, 1, 0, 15, CAUSE_EXIT);
    world_pass(&w);
    assert_int_equal(state_of(&w, a), JOB_STARTING);
    assert_int_equal(core_job(w.core, a)->attempt, 2);
    assert_int_equal(core_job(w.core, a)->launch_failures, 0);
    world_requeue(&w, a);
    world_cancel(&w, a);
    world_pass(&w);
    assert_int_equal(w.made[0].cause, CAUSE_CANCEL);
    world_finish(&w, a, 0);
    world_pass(&w);
    assert_int_equal(state_of(&w, a), JOB_CANCELLED);
    world_done(&w);
}

/* REQ: C9. After others: each kind, met and not to be met any more, in chains, and when the other has ended before. */
static void test_after(void **state)
{
    static const struct {
        enum after_kind kind;
        int32_t code; /* how the first ends; -1: it is cancelled */
        bool runs;
    } cases[] = {{AFTER_OK, 0, true},   {AFTER_OK, 3, false},   {AFTER_OK, -1, false}, {AFTER_FAIL, 0, false},
                 {AFTER_FAIL, 3, true}, {AFTER_FAIL, -1, true}, {AFTER_ANY, 0, true},  {AFTER_ANY, 3, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        world_init(&w);
        world_node(&w, "n1", "r1", 8, "A100-80GB");
        uint64_t first = world_submit(&w, &(struct wish){.gpus = 1});
        uint64_t second = world_submit(&w, &(struct wish){.gpus = 1, .after = first, .after_kind = cases[i].kind});
        uint64_t third = world_submit(&w, &(struct wish){.gpus = 1, .after = second, .after_kind = AFTER_OK});
        world_pass(&w);
        assert_int_equal(state_of(&w, first), JOB_STARTING);
        assert_int_equal(state_of(&w, second), JOB_QUEUED);
        assert_int_equal(why(&w, second).code, REASON_AFTER);
        assert_int_equal(why(&w, second).job, first);
        if (cases[i].code < 0)
            world_cancel(&w, first);
        world_pass(&w);
        world_finish(&w, first, cases[i].code < 0 ? 0 : cases[i].code);
        world_pass(&w);
        assert_int_equal(state_of(&w, second), cases[i].runs ? JOB_STARTING : JOB_CANCELLED);
        assert_int_equal(state_of(&w, third), cases[i].runs ? JOB_QUEUED : JOB_CANCELLED);
        if (!cases[i].runs)
            assert_int_equal(core_job(w.core, third)->cause, CAUSE_DEPENDENCY);
        /* Of a job that has ended already it is known at once. */
        uint64_t late = world_submit(&w, &(struct wish){.gpus = 1, .after = first, .after_kind = cases[i].kind});
        world_pass(&w);
        assert_int_equal(state_of(&w, late), cases[i].runs ? JOB_STARTING : JOB_CANCELLED);
        world_done(&w);
    }
}

/* What is drained or not reached is still there: a job for it waits, with that reason. */
static void test_closed_nodes(void **state)
{
    (void)state;
    struct world w;
    struct err e = {0};
    world_init(&w);
    world_node(&w, "n1", "r1", 8, "A100-80GB");
    uint64_t runs = world_submit(&w, &(struct wish){.gpus = 2});
    world_pass(&w);
    world_running(&w, runs);
    world_node_state(&w, 0, NODE_UP, true);
    struct job_spec spec;
    world_spec(&w, &(struct wish){.gpus = 8}, &spec);
    assert_int_equal(core_check_spec(w.core, &spec, &e), 0);
    uint64_t waits = world_submit(&w, &(struct wish){.gpus = 1});
    world_pass(&w);
    assert_int_equal(state_of(&w, waits), JOB_QUEUED);
    assert_int_equal(why(&w, waits).code, REASON_NODES);
    struct explanation x;
    assert_int_equal(core_explain(w.core, w.now_ms, waits, &x), 0);
    assert_int_equal(x.verdict, VERDICT_WAITS);
    assert_int_equal(state_of(&w, runs), JOB_RUNNING);
    world_node_state(&w, 0, NODE_DOWN, false);
    world_pass(&w);
    assert_int_equal(state_of(&w, waits), JOB_QUEUED);
    world_node_state(&w, 0, NODE_UP, false);
    world_pass(&w);
    assert_int_equal(state_of(&w, waits), JOB_STARTING);
    world_done(&w);
}

/* What can never run is refused with what there is. */
static void test_never(void **state)
{
    static const struct {
        struct wish wish;
        const char *text;
    } cases[] = {
        {{.gpus = 9}, "gpus: 9"},
        {{.gpus = 8, .workers = 3}, "workers: 3"},
        {{.gpus = 1, .model = "H100-80GB"}, "A100-80GB"},
        {{.share = 500, .share_mem_mib = 90000}, "81920"},
        {{.cpu_milli = 200000}, "cpus: 200"},
        {{.mem_mib = UINT64_C(1) << 21}, "mem: 2097152"},
        {{.gpus = 4, .workers = 3, .require = LEVEL_MACHINE}, "require"},
        {{.gpus = 8, .workers = 2, .require = LEVEL_RACK}, "require"},
        {{.gpus = 5, .require = LEVEL_NVLINK}, "require"},
    };
    (void)state;
    struct world w;
    world_init(&w);
    world_node(&w, "n1", "r1", 8, "A100-80GB"); /* two islands of four */
    world_node(&w, "n2", "r2", 8, "A100-80GB");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_spec spec;
        struct err e = {0};
        world_spec(&w, &cases[i].wish, &spec);
        assert_int_equal(core_check_spec(w.core, &spec, &e), -ERANGE);
        if (strstr(e.text, cases[i].text) == NULL)
            fail_msg("case %zu says: %s", i, e.text);
    }
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),    cmocka_unit_test(test_order_changes),
        cmocka_unit_test(test_caps),     cmocka_unit_test(test_gang_is_not_starved),
        cmocka_unit_test(test_backfill), cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_retry),    cmocka_unit_test(test_gang_fails_with_its_first),
        cmocka_unit_test(test_cancel),   cmocka_unit_test(test_hold),
        cmocka_unit_test(test_begin),    cmocka_unit_test(test_requeue),
        cmocka_unit_test(test_after),    cmocka_unit_test(test_closed_nodes),
        cmocka_unit_test(test_never),
    };
    return test_run("core", tests);
}
