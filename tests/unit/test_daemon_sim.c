/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deterministic simulation of the whole daemon: the real core, control and codec on a store, an engine and a clock
 * that live in this file (no processes, no disk), driven by one seed. In the safety phase requests, reports and faults
 * come in random order: the daemon is killed at any step (before a commit, between commit and effects, in the midst of
 * effects), commits fail, reports come late, twice or from older attempts. In the liveness phase the faults stop and
 * everything has to come to an end. After every step the audit runs.
 *
 * REQ: H4 REQ: F5 REQ: C8 REQ: G8
 */
#include "test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "control/codec.h"
#include "control/control.h"
#include "core/audit.h"
#include "control/state.h"

#include <errno.h>
#include <string.h>

#define JOBS_MAX 400

struct stored {
    uint64_t seq;
    int64_t time_ms;
    enum record_kind kind;
    char *bytes;
    size_t len;
};

/* What the engine really runs; survives the death of the daemon, as processes do. */
struct attempt {
    uint64_t job;
    uint32_t attempt;
    uint32_t workers;
    int64_t end_ms[16]; /* by worker */
    int32_t code[16];
    bool ended[16];
    bool reported[16]; /* handed to a daemon at least once */
    bool fails_to_start;
    bool live; /* any worker left */
    bool forgotten;
};

struct world {
    struct rng rng;
    int64_t now_ms;
    struct control *c;
    struct config config;
    struct stored *log;
    size_t log_cap;
    size_t log_len;
    struct attempt *attempts;
    size_t attempts_cap;
    size_t attempts_len;
    uint64_t accepted[JOBS_MAX]; /* ids that a client was told */
    size_t accepted_len;
    uint32_t faults_ppm;
    uint64_t crashes;
    uint64_t failed_commits;
    uint64_t digest;
};

static void digest(struct world *w, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        w->digest = (w->digest ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

static void must_audit(struct world *w)
{
    struct err e = {0};
    int r = core_audit(w->c->core, &e);
    if (r != 0)
        fail_msg("audit: %s", e.text);
}

/* --- the engine --- */

static struct attempt *find_attempt(struct world *w, uint64_t job, uint32_t attempt)
{
    for (size_t i = 0; i < w->attempts_len; i++)
        if (w->attempts[i].job == job && w->attempts[i].attempt == attempt)
            return &w->attempts[i];
    return NULL;
}

static void engine_launch(struct world *w, const struct effect *x)
{
    if (find_attempt(w, x->job, x->attempt) != NULL)
        return; /* idempotent: it runs or has run */
    for (size_t i = 0; i < w->attempts_len; i++)
        if (w->attempts[i].job == x->job && w->attempts[i].live)
            fail_msg("job %llu is started twice at once", (unsigned long long)x->job);
    assert_true(x->workers <= 16);
    assert_int_equal(mem_grow(&w->attempts, &w->attempts_cap, w->attempts_len + 1, sizeof *w->attempts), 0);
    struct attempt *a = &w->attempts[w->attempts_len++];
    *a = (struct attempt){.job = x->job, .attempt = x->attempt, .workers = x->workers, .live = true};
    a->fails_to_start = rng_chance(&w->rng, 50000);
    for (uint32_t i = 0; i < a->workers; i++) {
        a->end_ms[i] = w->now_ms + rng_between(&w->rng, 0, 60000);
        a->code[i] = rng_chance(&w->rng, 100000) ? 3 : 0;
    }
}

static void engine_advance(struct world *w)
{
    for (size_t i = 0; i < w->attempts_len; i++) {
        struct attempt *a = &w->attempts[i];
        uint32_t left = 0;
        for (uint32_t k = 0; k < a->workers; k++) {
            a->ended[k] = a->ended[k] || a->fails_to_start || a->end_ms[k] <= w->now_ms;
            left += !a->ended[k];
        }
        a->live = left > 0;
    }
}

static void report_exit(struct world *w, struct attempt *a, uint32_t k)
{
    struct worker_exit x = {.worker = k, .code = a->code[k], .cause = CAUSE_EXIT};
    if (a->fails_to_start)
        x = (struct worker_exit){.worker = k, .code = -1, .cause = CAUSE_LAUNCH_FAILED};
    assert_int_equal(control_engine_exited(w->c, w->now_ms, a->job, a->attempt, &x), 0);
    a->reported[k] = true;
}

/* Reports of one attempt; each may be lost for now, and old ones may come again. */
static void engine_report(struct world *w, struct attempt *a, uint32_t skip_ppm)
{
    if (a->forgotten)
        return;
    if (!a->fails_to_start && !rng_chance(&w->rng, skip_ppm))
        assert_int_equal(control_engine_started(w->c, w->now_ms, a->job, a->attempt), 0);
    for (uint32_t k = 0; k < a->workers; k++) {
        bool again = a->reported[k] && rng_chance(&w->rng, w->faults_ppm);
        if (a->ended[k] && (!a->reported[k] || again) && !rng_chance(&w->rng, skip_ppm))
            report_exit(w, a, k);
    }
}

static void engine_terminate(struct world *w, const struct effect *x)
{
    struct attempt *a = find_attempt(w, x->job, x->attempt);
    for (uint32_t k = 0; a != NULL && k < a->workers; k++)
        if (!a->ended[k] && a->end_ms[k] > w->now_ms + x->grace_ms) {
            a->end_ms[k] = w->now_ms + rng_between(&w->rng, 0, x->grace_ms);
            a->code[k] = 143;
        }
}

/* --- the daemon --- */

static void describe_node(struct node_desc *d, int number)
{
    *d = (struct node_desc){.cpu_milli = 64000, .mem_mib = 262144, .gpus_len = 8};
    (void)snprintf(d->name, sizeof d->name, "n%d", number);
    (void)snprintf(d->rack, sizeof d->rack, "r%d", number / 2);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(d->gpus[i].uuid, sizeof d->gpus[i].uuid, "GPU-%d-%d", number, i);
        (void)snprintf(d->gpus[i].model, sizeof d->gpus[i].model, "%s", number % 2 == 0 ? "A100-80GB" : "L40S");
        d->gpus[i].mem_mib = number % 2 == 0 ? 81920 : 46068;
        d->gpus[i].healthy = true;
        for (int k = 0; k < 8; k++)
            d->link[i][k] = i == k ? LINK_SELF : LINK_NVLINK;
    }
}

static void reconcile(struct world *w)
{
    size_t len;
    struct control_expected *expected = control_expected(w->c, &len);
    for (int i = 0; i < 4; i++) {
        struct node_desc d;
        describe_node(&d, i);
        assert_int_equal(control_engine_node(w->c, w->now_ms, &d, NULL, true, NULL), 0);
    }
    for (size_t i = 0; i < len; i++) {
        struct attempt *a = find_attempt(w, expected[i].job, expected[i].attempt);
        if (a != NULL) {
            memset(a->reported, 0, sizeof a->reported);
            engine_report(w, a, 0);
        }
    }
    mem_free(expected);
    assert_int_equal(control_reconciled(w->c, w->now_ms), 0);
}

static void boot(struct world *w)
{
    const struct control_options o = {
        .engine = "simulated", .simulated = true, .cards = "test", .version = "test", .config = &w->config};
    w->c = control_new(&o);
    assert_non_null(w->c);
    for (size_t i = 0; i < w->log_len; i++) {
        struct record r;
        struct err e = {0};
        const struct stored *s = &w->log[i];
        assert_int_equal(codec_decode(s->kind, s->seq, s->time_ms, s->bytes, s->len, &r, &e), 0);
        int res = control_load(w->c, &r, &e);
        if (res != 0)
            fail_msg("recovery: %s", e.text);
        record_done(&r);
    }
    must_audit(w);
    reconcile(w);
}

static void crash(struct world *w)
{
    w->crashes++;
    control_free(w->c);
    boot(w);
}

static void store_records(struct world *w)
{
    size_t len;
    const struct record *rows = control_unsaved(w->c, &len);
    for (size_t i = 0; i < len; i++) {
        struct strbuf b = {0};
        codec_encode(&b, &rows[i]);
        assert_int_equal(mem_grow(&w->log, &w->log_cap, w->log_len + 1, sizeof *w->log), 0);
        w->log[w->log_len++] = (struct stored){rows[i].seq, rows[i].time_ms, rows[i].kind, b.data, b.len};
        digest(w, &rows[i].kind, sizeof rows[i].kind);
        digest(w, b.data, b.len);
    }
}

static void carry_out(struct world *w, const struct effect *x)
{
    if (x->kind == EFFECT_LAUNCH)
        engine_launch(w, x);
    else if (x->kind == EFFECT_TERMINATE)
        engine_terminate(w, x);
    else if (x->kind == EFFECT_FORGET && find_attempt(w, x->job, x->attempt) != NULL)
        find_attempt(w, x->job, x->attempt)->forgotten = true;
    else if (x->kind == EFFECT_ALERT)
        fail_msg("alert: %s", x->text);
}

/* One turn of the loop: pass, commit, effects. True when the inputs of this turn became durable. */
static bool turn(struct world *w)
{
    assert_int_equal(control_step(w->c, w->now_ms), 0);
    must_audit(w);
    if (rng_chance(&w->rng, w->faults_ppm / 4)) {
        crash(w); /* killed before the commit */
        return false;
    }
    if (rng_chance(&w->rng, w->faults_ppm / 4)) {
        w->failed_commits++; /* disk full: everything undecided is thrown away */
        control_free(w->c);
        boot(w);
        return false;
    }
    store_records(w);
    if (rng_chance(&w->rng, w->faults_ppm / 4)) {
        crash(w); /* killed between commit and effects */
        return true;
    }
    control_saved(w->c);
    struct effect x;
    while (control_next_effect(w->c, &x)) {
        carry_out(w, &x);
        if (rng_chance(&w->rng, w->faults_ppm / 16)) {
            crash(w);
            return true;
        }
    }
    return true;
}

/* --- requests --- */

static struct job_spec *new_spec(struct world *w)
{
    struct job_spec *s = mem_alloc(1, sizeof *s);
    job_spec_init(s);
    (void)snprintf(s->name, sizeof s->name, "job");
    (void)snprintf(s->user, sizeof s->user, "user%d", (int)rng_below(&w->rng, 3));
    s->argv = mem_alloc(2, sizeof *s->argv);
    s->argv[0] = mem_strdup("train");
    s->cwd = mem_strdup("/");
    s->workers = 1;
    switch (rng_below(&w->rng, 5)) {
    case 0:
        s->req.gpus = 1 + (uint32_t)rng_below(&w->rng, 8);
        break;
    case 1:
        s->req.gpus = 4;
        s->workers = 1 + (uint32_t)rng_below(&w->rng, 8);
        s->require = (enum level)rng_below(&w->rng, 2) == 0 ? LEVEL_ANY : LEVEL_RACK;
        break;
    case 2:
        s->req.share_milli = 100 * (1 + (uint32_t)rng_below(&w->rng, 10));
        s->req.share_mem_mib = 1024 * (1 + (uint32_t)rng_below(&w->rng, 40));
        break;
    case 3:
        s->req.gpus = 1;
        (void)snprintf(s->req.gpu_model, sizeof s->req.gpu_model, "L40S");
        break;
    default:
        break;
    }
    s->req.cpu_milli = 1000 * (uint32_t)rng_below(&w->rng, 9);
    s->req.mem_mib = 1024 * rng_below(&w->rng, 33);
    s->priority = (int32_t)rng_between(&w->rng, -5, 5);
    s->time_limit_ms = rng_chance(&w->rng, 500000) ? rng_between(&w->rng, 5000, 90000) : 0;
    s->grace_ms = 5000;
    return s;
}

static const struct caller admin = {.uid = 0, .user = "root", .admin = true};

static void request_submit(struct world *w)
{
    if (w->accepted_len == JOBS_MAX)
        return;
    struct job_spec *s = new_spec(w);
    struct err e = {0};
    uint64_t id = 0;
    int r = control_submit(w->c, &admin, w->now_ms, s, &id, &e);
    if (r != 0) {
        assert_int_equal(r, -ERANGE);
        job_spec_done(s);
    }
    mem_free(s);
    if (turn(w) && r == 0)
        w->accepted[w->accepted_len++] = id;
}

static void request_about_job(struct world *w)
{
    if (w->accepted_len == 0)
        return;
    uint64_t id = w->accepted[rng_below(&w->rng, w->accepted_len)];
    struct err e = {0};
    if (rng_chance(&w->rng, 300000)) {
        (void)control_cancel(w->c, &admin, w->now_ms, id, &e);
    } else if (rng_chance(&w->rng, 150000)) {
        (void)control_requeue(w->c, &admin, w->now_ms, id, &e);
    } else if (rng_chance(&w->rng, 100000)) {
        struct job_change ch = {.set_hold = true, .hold = rng_chance(&w->rng, 500000)};
        (void)control_update(w->c, &admin, w->now_ms, id, &ch, &e);
    } else {
        struct job_change ch = {.set_priority = true, .priority = (int32_t)rng_between(&w->rng, -5, 5)};
        ch.set_time_limit = rng_chance(&w->rng, 300000);
        ch.time_limit_ms = rng_between(&w->rng, 1000, 90000);
        (void)control_update(w->c, &admin, w->now_ms, id, &ch, &e);
    }
    (void)turn(w);
}

static void request_drain(struct world *w)
{
    char name[8];
    (void)snprintf(name, sizeof name, "n%d", (int)rng_below(&w->rng, 4));
    (void)control_drain(w->c, &admin, w->now_ms, name, rng_chance(&w->rng, 500000), "test", NULL);
    (void)turn(w);
}

/* Every answer is written and the explanation of a random job is asked for: nothing may trip. */
static void request_answers(struct world *w)
{
    struct strbuf out = {0};
    struct jsonw j;
    jsonw_init(&j, &out);
    struct job_filter all = {.all = true};
    jsonw_array(&j);
    control_write_status(w->c, w->now_ms, &j);
    assert_int_equal(control_write_jobs(w->c, w->now_ms, &all, &j, NULL), 0);
    control_write_nodes(w->c, w->now_ms, &j);
    control_write_tenants(w->c, &j);
    control_write_queues(w->c, &j);
    if (w->accepted_len > 0) {
        uint64_t id = w->accepted[rng_below(&w->rng, w->accepted_len)];
        assert_int_equal(control_write_job(w->c, w->now_ms, id, &j, NULL), 0);
        assert_int_equal(control_write_explain(w->c, w->now_ms, id, &j, NULL), 0);
    }
    jsonw_end_array(&j);
    assert_false(out.failed);
    strbuf_done(&out);
    must_audit(w);
}

static void step(struct world *w)
{
    w->now_ms += rng_between(&w->rng, 0, 2000);
    engine_advance(w);
    uint64_t what = rng_below(&w->rng, 100);
    if (what < 40)
        request_submit(w);
    else if (what < 50)
        request_about_job(w);
    else if (what < 54)
        request_drain(w);
    else if (what < 57)
        request_answers(w);
    else if (what < 59 && w->faults_ppm > 0)
        crash(w);
    for (size_t i = 0; i < w->attempts_len; i++)
        engine_report(w, &w->attempts[i], 300000);
    (void)turn(w);
}

/* Faults off: everything accepted has to come to an end, and everything held has to come back. */
static void liveness(struct world *w)
{
    w->faults_ppm = 0;
    for (int i = 0; i < 4; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)control_drain(w->c, &admin, w->now_ms, name, false, "", NULL);
    }
    for (size_t i = 0; i < w->accepted_len; i++) {
        struct job_change release = {.set_hold = true, .hold = false};
        (void)control_update(w->c, &admin, w->now_ms, w->accepted[i], &release, NULL);
    }
    for (int n = 0; n < 20000; n++) {
        if (core_count(w->c->core, JOB_QUEUED) + core_count(w->c->core, JOB_STARTING) +
                core_count(w->c->core, JOB_RUNNING) ==
            0)
            break;
        w->now_ms += 1000;
        engine_advance(w);
        for (size_t i = 0; i < w->attempts_len; i++)
            engine_report(w, &w->attempts[i], 0);
        assert_true(turn(w));
    }
    for (size_t i = 0; i < w->accepted_len; i++) {
        const struct job *j = core_job(w->c->core, w->accepted[i]);
        assert_non_null(j);
        if (!job_ended(j))
            fail_msg("job %llu never ended: it is %s", (unsigned long long)j->id, job_state_name(j->state));
    }
    const struct cluster *cl = core_cluster(w->c->core);
    for (uint32_t i = 0; i < cl->nodes_len; i++)
        assert_int_equal(cl->nodes[i]->gpus_milli_free, 8 * GPU_MILLI);
    for (size_t i = 0; i < w->attempts_len; i++)
        assert_false(w->attempts[i].live);
}

static uint64_t run_world(uint64_t seed, uint32_t faults_ppm, struct world *stats)
{
    struct world w = {.now_ms = 1000000, .faults_ppm = faults_ppm, .digest = 0xcbf29ce484222325u};
    rng_init(&w.rng, seed);
    assert_int_equal(config_defaults(&w.config), 0);
    w.config.finished_jobs_kept = 10000;
    boot(&w);
    for (int i = 0; i < 300; i++)
        step(&w);
    liveness(&w);
    uint64_t result = w.digest;
    stats->crashes += w.crashes;
    stats->failed_commits += w.failed_commits;
    stats->accepted_len += w.accepted_len;
    stats->attempts_len += w.attempts_len;
    control_free(w.c);
    for (size_t i = 0; i < w.log_len; i++)
        mem_free(w.log[i].bytes);
    mem_free(w.log);
    mem_free(w.attempts);
    config_done(&w.config);
    return result;
}

static void test_worlds(void **state)
{
    (void)state;
    uint64_t worlds = test_count("REMUDA_TEST_WORLDS", 150);
    struct world stats = {0};
    for (uint64_t i = 0; i < worlds; i++) {
        uint64_t seed = TEST_SEED + i;
        printf("world seed %llu\n", (unsigned long long)seed);
        (void)run_world(seed, i % 3 == 0 ? 0 : i % 3 == 1 ? 100000 : 400000, &stats);
    }
    printf("%llu worlds: %zu jobs, %zu attempts, %llu crashes, %llu failed commits\n", (unsigned long long)worlds,
           stats.accepted_len, stats.attempts_len, (unsigned long long)stats.crashes,
           (unsigned long long)stats.failed_commits);
    assert_true(stats.crashes > worlds && stats.failed_commits > worlds / 4);
}

/* The same seed gives the same log, byte for byte. */
static void test_deterministic(void **state)
{
    (void)state;
    struct world stats = {0};
    for (uint64_t i = 0; i < 5; i++)
        assert_true(run_world(TEST_SEED + i, 200000, &stats) == run_world(TEST_SEED + i, 200000, &stats));
    assert_true(run_world(1, 200000, &stats) != run_world(2, 200000, &stats));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worlds),
        cmocka_unit_test(test_deterministic),
    };
    return test_run("daemon_sim", tests);
}
