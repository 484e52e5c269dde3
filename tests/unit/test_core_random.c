/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random pools, configurations and workloads. After every record the audit; besides, by bookkeeping of its own that
 * knows the records alone: no start passes a cap, a gang starts wholly, cards are where a nearness was required,
 * nothing is placed on a closed node. At the end: the records alone give the same state, the same seed gives the same
 * records, and what an explanation says would start now does. REQ: C2, C5, C6, C8, E2, F5, G8
 */
#include "core_world.h"

#include "base/mem.h"
#include "base/rng.h"

#include <string.h>

#define TENANTS 3
#define USERS   4
#define QUEUES  2
#define JOBS    400

/* What a job holds, as the records say. */
struct held {
    bool holds;
    uint32_t tenant, user, queue;
    uint64_t milli;
};

struct run {
    struct world w;
    struct rng rng;
    struct held jobs[JOBS + 1];
    uint64_t tenant_cap[TENANTS]; /* NO_CAP: none */
    uint64_t member_cap[TENANTS]; /* jobs of each user in the tenant */
    uint64_t queue_cap;           /* jobs in queue 1 */
    uint64_t checked;             /* explanations whose changes were tried */
};

static const char *const tenants[TENANTS] = {"default", "t1", "t2"};
static const char *const users[USERS] = {"u0", "u1", "u2", "u3"};
static const char *const queues[QUEUES] = {"batch", "fast"};

static uint32_t below(struct run *r, uint32_t n)
{
    return (uint32_t)rng_below(&r->rng, n);
}

static void make_pool(struct run *r)
{
    static const char *const models[] = {"A100-80GB", "L40S"};
    uint32_t nodes = 2 + below(r, 5);
    for (uint32_t i = 0; i < nodes; i++) {
        char name[16];
        char rack[16];
        snprintf(name, sizeof name, "n%u", i);
        snprintf(rack, sizeof rack, "r%u", i / 3);
        world_node(&r->w, name, rack, 4 + 4 * below(r, 2), models[below(r, 4) == 0]);
    }
}

static void make_config(struct run *r)
{
    char text[600];
    char caps[TENANTS][80];
    for (int t = 0; t < TENANTS; t++) {
        r->tenant_cap[t] = below(r, 2) == 0 ? NO_CAP : 4 + below(r, 12);
        r->member_cap[t] = below(r, 2) == 0 ? NO_CAP : 1 + below(r, 4);
        caps[t][0] = '\0';
        if (r->tenant_cap[t] != NO_CAP)
            snprintf(caps[t], sizeof caps[t], "\n    max_gpus: %u", (unsigned)r->tenant_cap[t]);
        if (r->member_cap[t] != NO_CAP)
            snprintf(caps[t] + strlen(caps[t]), sizeof caps[t] - strlen(caps[t]), "\n    user_max_jobs: %u",
                     (unsigned)r->member_cap[t]);
    }
    r->queue_cap = 2 + below(r, 6);
    snprintf(text, sizeof text,
             "reservation_depth: %u\nqueues:\n  - name: batch\n  - name: fast\n    priority: 10\n    max_jobs: %u\n"
             "tenants:\n  - name: default%s\n  - name: t1%s\n  - name: t2%s\n",
             below(r, 4), (unsigned)r->queue_cap, caps[0], caps[1], caps[2]);
    world_config(&r->w, text);
}

static struct wish random_wish(struct run *r)
{
    static const enum level levels[] = {LEVEL_ANY, LEVEL_ANY, LEVEL_ANY, LEVEL_NVLINK, LEVEL_MACHINE, LEVEL_RACK};
    static const char *const strategies[] = {"remuda", "remuda", "binpack", "spread"};
    struct wish w = {.tenant = tenants[below(r, TENANTS)],
                     .user = users[below(r, USERS)],
                     .queue = queues[below(r, 4) == 0],
                     .strategy = strategies[below(r, 4)],
                     .priority = (int32_t)below(r, 5) - 2,
                     .require = levels[below(r, 6)],
                     .prefer = levels[below(r, 6)],
                     .cpu_milli = 500 * below(r, 6),
                     .mem_mib = 1024 * below(r, 5)};
    if (below(r, 3) == 0) {
        w.share = 100 + 100 * below(r, 9);
        w.share_mem_mib = 4096 * below(r, 6);
    } else {
        w.gpus = below(r, 5);
    }
    if (below(r, 4) == 0)
        w.workers = 1 + below(r, 6);
    if (below(r, 2) == 0)
        w.limit_ms = 1000 + 1000 * (int64_t)below(r, 60);
    if (below(r, 10) == 0)
        w.begin_after_ms = 1 + below(r, 9000);
    w.hold = below(r, 20) == 0;
    if (below(r, 8) == 0 && r->w.next_job > 1) {
        w.after = 1 + rng_below(&r->rng, r->w.next_job - 1);
        w.after_kind = (enum after_kind)below(r, AFTER_KINDS);
    }
    if (below(r, 6) == 0)
        w.model = "A100-80GB|L40S";
    return w;
}

static uint32_t index_of(const char *const *names, uint32_t len, const char *name)
{
    for (uint32_t i = 0; i < len; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fail_msg("no such name: %s", name);
    return 0;
}

static void check_caps(const struct run *r, const struct held *h)
{
    uint64_t tenant = 0;
    uint64_t member = 0;
    uint64_t queue = 0;
    for (uint64_t id = 1; id <= JOBS; id++) {
        const struct held *o = &r->jobs[id];
        if (!o->holds)
            continue;
        tenant += o->tenant == h->tenant ? o->milli : 0;
        member += o->tenant == h->tenant && o->user == h->user;
        queue += o->queue == h->queue;
    }
    assert_true(r->tenant_cap[h->tenant] == NO_CAP || tenant <= 1000 * r->tenant_cap[h->tenant]);
    assert_true(r->member_cap[h->tenant] == NO_CAP || member <= r->member_cap[h->tenant]);
    assert_true(h->queue == 0 || queue <= r->queue_cap);
}

static void check_places(const struct run *r, const struct record *start)
{
    const struct cluster *c = core_cluster(r->w.core);
    const struct job *j = core_job(r->w.core, start->job);
    assert_int_equal(start->grants_len, j->workers);
    for (uint32_t i = 0; i < start->grants_len; i++) {
        const struct node *n = c->nodes[start->grants[i].node];
        const struct node *first = c->nodes[start->grants[0].node];
        assert_true(node_open(n));
        if (j->require == LEVEL_MACHINE || j->require == LEVEL_NVLINK)
            assert_int_equal(n->id, first->id);
        if (j->require == LEVEL_RACK)
            assert_int_equal(n->rack, first->rack);
        for (uint32_t g = 0; g < n->gpus_len && j->require == LEVEL_NVLINK; g++)
            if ((start->grants[i].gpu_mask >> g & 1) != 0)
                assert_int_equal(n->gpus[g].island, n->gpus[__builtin_ctz(start->grants[0].gpu_mask)].island);
    }
}

/* A pass, and what its decisions mean for the bookkeeping. */
static void pass(struct run *r)
{
    world_pass(&r->w);
    for (size_t i = 0; i < r->w.made_len; i++) {
        const struct record *m = &r->w.made[i];
        struct held *h = &r->jobs[m->job];
        if (m->kind == REC_JOB_END || m->kind == REC_JOB_RETRY) {
            h->holds = false;
        } else if (m->kind == REC_JOB_START) {
            const struct job *j = core_job(r->w.core, m->job);
            h->holds = true;
            h->tenant = index_of(tenants, TENANTS, core_tenant_name(r->w.core, j->payer.tenant));
            h->user = index_of(users, USERS, core_user_name(r->w.core, j->payer.user));
            h->queue = index_of(queues, QUEUES, core_queue_name(r->w.core, j->payer.queue));
            h->milli = job_gpus_milli(j);
            check_caps(r, h);
            check_places(r, m);
        }
    }
}

static uint64_t random_job(struct run *r, bool holding)
{
    uint64_t last = core_last_job_id(r->w.core);
    for (int tries = 0; tries < 40 && last > 0; tries++) {
        const struct job *j = core_job(r->w.core, 1 + rng_below(&r->rng, last));
        if (j != NULL && !job_ended(j) && job_holds(j) == holding)
            return j->id;
    }
    return 0;
}

static void one_exit(struct run *r, uint64_t id)
{
    const struct job *j = core_job(r->w.core, id);
    uint32_t left = j->workers - j->exits;
    if (left == 0)
        return;
    uint32_t skip = below(r, left);
    for (uint32_t i = 0; i < j->workers; i++) {
        if (j->exited[i] || skip-- > 0)
            continue;
        bool launch = j->state == JOB_STARTING && below(r, 8) == 0;
        bool bad = below(r, 6) == 0;
        world_exit(&r->w, id, i, launch ? -1 : bad ? 3 : 0, 0, launch ? CAUSE_LAUNCH_FAILED : CAUSE_EXIT);
        return;
    }
}

static void submit(struct run *r)
{
    struct wish wish = random_wish(r);
    struct job_spec spec;
    world_spec(&r->w, &wish, &spec);
    if (r->w.next_job <= JOBS && core_check_spec(r->w.core, &spec, NULL) == 0)
        (void)world_submit(&r->w, &wish);
}

static void event(struct run *r)
{
    uint64_t holding = random_job(r, true);
    uint64_t waiting = random_job(r, false);
    uint32_t nodes = core_cluster(r->w.core)->nodes_len;
    switch (below(r, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        submit(r);
        break;
    case 4:
        if (holding != 0 && core_job(r->w.core, holding)->state == JOB_STARTING)
            world_running(&r->w, holding);
        break;
    case 5:
    case 6:
    case 7:
        if (holding != 0)
            one_exit(r, holding);
        break;
    case 8:
        if (holding != 0 || waiting != 0)
            world_cancel(&r->w, holding != 0 && below(r, 2) == 0 ? holding : waiting != 0 ? waiting : holding);
        break;
    case 9:
        if (waiting != 0)
            world_update(&r->w, waiting,
                         &(struct job_change){.set_priority = true, .priority = (int32_t)below(r, 7) - 3});
        break;
    case 10:
        if (waiting != 0 && below(r, 3) == 0)
            world_hold(&r->w, waiting, below(r, 2) == 0);
        if (holding != 0 && below(r, 6) == 0)
            world_requeue(&r->w, holding);
        if (below(r, 4) == 0)
            world_node_state(&r->w, below(r, nodes), below(r, 4) == 0 ? NODE_DOWN : NODE_UP, below(r, 4) == 0);
        break;
    default:
        r->w.now_ms += 1 + below(r, 5000);
    }
}

/* --- what an explanation says --- */

/* Puts the change into the specification that the job was submitted with. */
static void change_spec(struct job_spec *s, const struct would_start *change)
{
    switch (change->change) {
    case CHANGE_GPUS:
        s->req.gpus = (uint32_t)change->value;
        break;
    case CHANGE_WORKERS:
        s->workers = (uint32_t)change->value;
        break;
    case CHANGE_REQUIRE:
        s->require = change->level;
        break;
    case CHANGE_MODEL:
        snprintf(s->req.gpu_model, sizeof s->req.gpu_model, "%s", change->model);
        break;
    case CHANGE_CPU:
        s->req.cpu_milli = (uint32_t)change->value;
        break;
    case CHANGE_MEM:
        s->req.mem_mib = change->value;
        break;
    case CHANGE_TIME_LIMIT:
        s->time_limit_ms = (int64_t)change->value;
        break;
    }
}

static int ignore(void *arg, struct record *r)
{
    uint64_t *started = arg;
    if (r->kind == REC_JOB_START && *started == 0)
        *started = r->job;
    record_done(r);
    return 0;
}

/*
 * The whole past once more, the job having asked for the changed thing from the start. It never started, so all
 * decisions stand; its turn comes first when it is given the highest priority, which changes nothing for what
 * already runs.
 */
static bool starts_changed(struct run *r, uint64_t job, const struct would_start *change)
{
    struct core *c = core_new();
    assert_non_null(c);
    for (size_t i = 0; i < r->w.log_len; i++) {
        struct record *rec = &r->w.log[i];
        struct job_spec kept;
        bool mine = rec->kind == REC_JOB_SUBMIT && rec->job == job;
        if (mine) {
            kept = *rec->spec;
            change_spec(rec->spec, change);
        }
        struct err e = {0};
        if (core_apply(c, rec, &e) < 0)
            fail_msg("changed past, record %zu: %s", i + 1, e.text);
        if (mine)
            *rec->spec = kept;
    }
    uint64_t first = 0;
    struct record up = {.seq = r->w.seq + 1,
                        .time_ms = r->w.now_ms,
                        .kind = REC_JOB_UPDATE,
                        .job = job,
                        .change = {.set_priority = true, .priority = PRIORITY_MAX}};
    assert_int_equal(core_apply(c, &up, NULL), 0);
    assert_int_equal(core_pass(c, r->w.now_ms, ignore, &first), 0);
    core_free(c);
    return first == job;
}

static void check_explanations(struct run *r)
{
    uint64_t job = random_job(r, false);
    struct explanation x;
    if (job == 0 || core_job(r->w.core, job)->attempt > 0 || core_job(r->w.core, job)->class == NULL)
        return; /* started before: it can not have asked for something else; put off: not tried at all */
    assert_int_equal(core_explain(r->w.core, r->w.now_ms, job, &x), 0);
    if (x.verdict != VERDICT_WAITS && x.verdict != VERDICT_NEVER)
        fail_msg("job %llu waits, and the explanation says %s", (unsigned long long)job, verdict_name(x.verdict));
    assert_true(x.reasons_len > 0 && x.position > 0);
    for (uint32_t i = 0; i < x.reasons_len; i++)
        if (x.reasons[i].code != REASON_RESERVED && x.reasons[i].code != REASON_NODES &&
            x.reasons[i].code != REASON_BEHIND)
            if (x.reasons[i].asked <= x.reasons[i].free && x.reasons[i].total > 0)
                fail_msg("job %llu waits for %s: asked %llu, free %llu of %llu", (unsigned long long)job,
                         reason_name(x.reasons[i].code), (unsigned long long)x.reasons[i].asked,
                         (unsigned long long)x.reasons[i].free, (unsigned long long)x.reasons[i].total);
    for (uint32_t i = 0; i < x.changes_len; i++) {
        if (!starts_changed(r, job, &x.changes[i]))
            fail_msg("job %llu is said to start with %s %llu, and does not", (unsigned long long)job,
                     change_name((int)x.changes[i].change), (unsigned long long)x.changes[i].value);
        r->checked++;
    }
}

/* --- whole runs --- */

static void play(struct run *r, uint64_t seed, uint32_t steps, bool explain)
{
    memset(r, 0, sizeof *r);
    world_init(&r->w);
    rng_init(&r->rng, seed);
    make_pool(r);
    make_config(r);
    for (uint32_t i = 0; i < steps; i++) {
        event(r);
        if (below(r, 3) > 0)
            pass(r);
        if (explain && i % 25 == 24) {
            pass(r);
            check_explanations(r);
        }
    }
    pass(r);
}

static void assert_same(const struct core *a, const struct core *b)
{
    for (uint64_t id = 1; id <= core_last_job_id(a); id++) {
        const struct job *x = core_job(a, id);
        const struct job *y = core_job(b, id);
        assert_true((x == NULL) == (y == NULL));
        if (x == NULL)
            continue;
        assert_int_equal(x->state, y->state);
        assert_int_equal(x->attempt, y->attempt);
        assert_int_equal(x->order, y->order);
        if (x->grants != NULL)
            assert_memory_equal(x->grants, y->grants, x->workers * sizeof *x->grants);
    }
    const struct cluster *c = core_cluster(a);
    const struct cluster *d = core_cluster(b);
    for (uint32_t i = 0; i < c->nodes_len; i++)
        for (uint32_t g = 0; g < c->nodes[i]->gpus_len; g++)
            assert_memory_equal(&c->nodes[i]->gpus[g], &d->nodes[i]->gpus[g], sizeof c->nodes[i]->gpus[g]);
}

static void test_random(void **state)
{
    (void)state;
    uint64_t runs = test_count("REMUDA_TEST_RUNS", 40);
    uint64_t started = 0;
    uint64_t checked = 0;
    struct run *r = mem_alloc(1, sizeof *r);
    assert_non_null(r);
    for (uint64_t i = 0; i < runs; i++) {
        printf("seed %llu\n", (unsigned long long)(test_seed() + i));
        play(r, test_seed() + i, 700, true);
        struct core *again = world_again(&r->w);
        assert_same(r->w.core, again);
        core_free(again);
        started += core_counters(r->w.core)->placed;
        checked += r->checked;
        world_done(&r->w);
    }
    mem_free(r);
    printf("%llu starts, %llu promises of explanations tried\n", (unsigned long long)started,
           (unsigned long long)checked);
    assert_true(started > runs * 20);
    assert_true(runs < 20 || checked > runs / 2);
}

static void test_same_seed_same_records(void **state)
{
    (void)state;
    struct run *a = mem_alloc(1, sizeof *a);
    struct run *b = mem_alloc(1, sizeof *b);
    assert_non_null(a);
    assert_non_null(b);
    play(a, test_seed(), 600, false);
    play(b, test_seed(), 600, false);
    assert_int_equal(a->w.log_len, b->w.log_len);
    for (size_t i = 0; i < a->w.log_len; i++) {
        const struct record *x = &a->w.log[i];
        const struct record *y = &b->w.log[i];
        assert_int_equal(x->kind, y->kind);
        assert_int_equal(x->job, y->job);
        assert_int_equal(x->grants_len, y->grants_len);
        if (x->grants_len > 0)
            assert_memory_equal(x->grants, y->grants, x->grants_len * sizeof *x->grants);
    }
    world_done(&a->w);
    world_done(&b->w);
    mem_free(a);
    mem_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_same_seed_same_records),
    };
    return test_run("core_random", tests);
}
