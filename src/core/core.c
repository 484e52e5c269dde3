/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applying records. Each apply_*() moves the state and nothing else: it decides nothing, and it is the same code live
 * and at recovery. What has to be decided afterwards is remembered in c->todo and c->unblock for the next pass.
 *
 * A record that contradicts the state (a job started twice, a grant of what is held) is an error, never an assertion:
 * it may come from a damaged log. A late or doubled report from an engine (an older attempt, a worker that has been
 * reported) is not an error and changes nothing.
 */
#include "core/core.h"

#include "base/mem.h"
#include "core/state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *job_state_name(enum job_state s)
{
    static const char *const names[] = {
#define X(symbol, name) name,
        JOB_STATES(X)
#undef X
    };
    return (unsigned)s < JOB_STATES_LEN ? names[s] : "unknown";
}

const char *reason_name(enum reason_code code)
{
    static const char *const names[] = {
#define X(symbol, name) name,
        REASON_CODES(X)
#undef X
    };
    return (unsigned)code < REASON_CODES_LEN ? names[code] : "unknown";
}

bool job_ended(const struct job *j)
{
    return j->state >= JOB_SUCCEEDED;
}

bool job_holds(const struct job *j)
{
    return j->state == JOB_STARTING || j->state == JOB_RUNNING;
}

uint64_t job_gpus_milli(const struct job *j)
{
    uint64_t one = j->req.gpus > 0 ? (uint64_t)j->req.gpus * GPU_MILLI : j->req.share_milli;
    return one * j->workers;
}

int64_t job_wake_ms(const struct job *j)
{
    return j->held || j->links_left > 0 || j->links_failed ? INT64_MAX : j->not_before_ms;
}

int64_t job_deadline_ms(const struct job *j)
{
    if (j->time_limit_ms <= 0)
        return INT64_MAX;
    int64_t end;
    return __builtin_add_overflow(j->started_ms, j->time_limit_ms, &end) ? INT64_MAX : end;
}

struct core *core_new(void)
{
    struct core *c = mem_alloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->table_base = 1;
    queue_init(c);
    depend_init(c);
    ledger_init(&c->ledger, &c->cluster);
    if (cluster_init(&c->cluster) < 0 || config_defaults(&c->config) < 0) {
        core_free(c);
        return NULL;
    }
    c->placer = placer_new(&c->cluster);
    if (c->placer == NULL) {
        core_free(c);
        return NULL;
    }
    return c;
}

static void job_free(struct job *j)
{
    if (j == NULL)
        return;
    mem_free(j->grants);
    mem_free(j->exited);
    mem_free(j->links);
    mem_free(j);
}

void core_free(struct core *c)
{
    if (c == NULL)
        return;
    reserve_clear(c);
    queue_done(c);
    for (uint64_t i = 0; i < c->table_len; i++)
        job_free(c->table[i]);
    mem_free(c->table);
    for (size_t i = 0; i < c->holders_cap; i++)
        mem_free(c->holders[i].rows);
    mem_free(c->holders);
    mem_free(c->banned);
    placement_done(&c->scratch);
    placer_free(c->placer);
    ledger_done(&c->ledger);
    cluster_done(&c->cluster);
    config_done(&c->config);
    intern_done(&c->tenants);
    intern_done(&c->users);
    intern_done(&c->members);
    intern_done(&c->queues);
    mem_free(c);
}

/* --- reading --- */

struct job *core_job_mutable(struct core *c, uint64_t id)
{
    if (id < c->table_base || id - c->table_base >= c->table_len)
        return NULL;
    return c->table[id - c->table_base];
}

const struct job *core_job(const struct core *c, uint64_t id)
{
    if (id < c->table_base || id - c->table_base >= c->table_len)
        return NULL;
    return c->table[id - c->table_base];
}

const struct job *core_job_after(const struct core *c, uint64_t after)
{
    uint64_t from = after < c->table_base ? 0 : after - c->table_base + 1;
    for (uint64_t i = from; i < c->table_len; i++)
        if (c->table[i] != NULL)
            return c->table[i];
    return NULL;
}

uint64_t core_last_job_id(const struct core *c)
{
    return c->table_base + c->table_len - 1;
}

const struct cluster *core_cluster(const struct core *c)
{
    return &c->cluster;
}

const struct config *core_config(const struct core *c)
{
    return &c->config;
}

static const struct account *account_at(const struct accounts *a, uint32_t id)
{
    static const struct account none;
    return id < a->cap ? &a->rows[id] : &none;
}

const struct account *core_tenant_account(const struct core *c, uint32_t tenant)
{
    return account_at(&c->ledger.tenants, tenant);
}

const struct account *core_user_account(const struct core *c, uint32_t user)
{
    return account_at(&c->ledger.users, user);
}

const struct account *core_member_account(const struct core *c, uint32_t member)
{
    return account_at(&c->ledger.members, member);
}

const struct account *core_queue_account(const struct core *c, uint32_t queue)
{
    return account_at(&c->ledger.queues, queue);
}

const char *core_tenant_name(const struct core *c, uint32_t tenant)
{
    return intern_name(&c->tenants, tenant);
}

const char *core_user_name(const struct core *c, uint32_t user)
{
    return intern_name(&c->users, user);
}

const char *core_queue_name(const struct core *c, uint32_t queue)
{
    return intern_name(&c->queues, queue);
}

uint32_t core_tenant_id(const struct core *c, const char *name)
{
    return intern_find(&c->tenants, name);
}

uint32_t core_user_id(const struct core *c, const char *name)
{
    return intern_find(&c->users, name);
}

uint32_t core_queue_id(const struct core *c, const char *name)
{
    return intern_find(&c->queues, name);
}

static const struct config_tenant *find_tenant(const struct config *cfg, const char *name)
{
    for (size_t i = 0; i < cfg->tenants_len; i++)
        if (strcmp(cfg->tenants[i].name, name) == 0)
            return &cfg->tenants[i];
    return NULL;
}

static const struct config_queue *find_queue(const struct config *cfg, const char *name)
{
    for (size_t i = 0; i < cfg->queues_len; i++)
        if (strcmp(cfg->queues[i].name, name) == 0)
            return &cfg->queues[i];
    return NULL;
}

static const struct caps no_caps = {NO_CAP, NO_CAP};

struct caps core_tenant_caps(const struct core *c, const char *tenant)
{
    const struct config_tenant *t = find_tenant(&c->config, tenant);
    return t == NULL ? no_caps : t->caps;
}

static const struct config_user *find_user(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->users_len; i++)
        if (strcmp(c->users[i].name, name) == 0)
            return &c->users[i];
    return NULL;
}

struct caps core_user_caps(const struct core *c, const char *user)
{
    const struct config_user *u = find_user(&c->config, user);
    return u == NULL ? no_caps : u->caps;
}

struct caps core_member_caps(const struct core *c, const char *user, const char *tenant)
{
    const struct config_tenant *t = find_tenant(&c->config, tenant);
    const struct config_user *u = find_user(&c->config, user);
    struct caps caps = t == NULL ? no_caps : t->user_caps;
    if (u != NULL && u->caps.gpus_milli != NO_CAP)
        caps.gpus_milli = NO_CAP;
    if (u != NULL && u->caps.jobs != NO_CAP)
        caps.jobs = NO_CAP;
    return caps;
}

struct caps core_queue_caps(const struct core *c, const char *queue)
{
    const struct config_queue *q = find_queue(&c->config, queue);
    return q == NULL ? no_caps : q->caps;
}

uint64_t core_count(const struct core *c, enum job_state s)
{
    return c->counts[s];
}

const struct holder *core_holders(const struct core *c, uint32_t node, uint32_t *ret_len)
{
    if (node >= c->holders_cap) {
        *ret_len = 0;
        return NULL;
    }
    *ret_len = c->holders[node].len;
    return c->holders[node].rows;
}

bool core_reservation(const struct core *c, uint64_t job, struct reservation_view *ret)
{
    for (uint32_t i = 0; i < c->reservations_len; i++) {
        const struct reservation *r = &c->reservations[i];
        if (r->job->id == job) {
            *ret = (struct reservation_view){r->start_ms, r->bounded, r->nodes, r->nodes_len};
            return true;
        }
    }
    return false;
}

const struct core_counters *core_counters(const struct core *c)
{
    return &c->counters;
}

struct place_query core_query(const struct core *c, const struct job *j)
{
    return (struct place_query){.req = place_req_of(&c->cluster, &j->req),
                                .workers = j->workers,
                                .require = j->require,
                                .prefer = j->prefer,
                                .strategy = j->strategy};
}

/* --- holding --- */

static void set_state(struct core *c, struct job *j, enum job_state to)
{
    assert(c->counts[j->state] > 0);
    c->counts[j->state]--;
    c->counts[to]++;
    j->state = to;
}

static int holders_reserve(struct core *c, const struct grant *grants, uint32_t len)
{
    int r = mem_grow(&c->holders, &c->holders_cap, c->cluster.nodes_len, sizeof *c->holders);
    for (uint32_t i = 0; i < len && r == 0; i++) {
        struct node_holders *h = &c->holders[grants[i].node];
        r = mem_grow(&h->rows, &h->cap, (size_t)h->len + len, sizeof *h->rows);
    }
    return r;
}

static void holders_add(struct core *c, const struct job *j)
{
    for (uint32_t i = 0; i < j->workers; i++) {
        struct node_holders *h = &c->holders[j->grants[i].node];
        assert(h->len < h->cap);
        h->rows[h->len++] = (struct holder){j->id, i};
    }
}

static void holders_remove(struct core *c, const struct job *j)
{
    for (uint32_t i = 0; i < j->workers; i++) {
        struct node_holders *h = &c->holders[j->grants[i].node];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < h->len; k++)
            if (h->rows[k].job != j->id)
                h->rows[kept++] = h->rows[k];
        h->len = kept;
    }
}

/* Everything the job holds goes back, by whatever way its attempt ended. REQ: F5 */
static void give_back(struct core *c, struct job *j)
{
    queue_limit_remove(c, j);
    holders_remove(c, j);
    ledger_give(&c->ledger, j->payer, j->grants, j->workers);
    mem_free(j->grants);
    j->grants = NULL;
    mem_free(j->exited);
    j->exited = NULL;
    c->unblock = true;
}

/* --- applying --- */

static int apply_config(struct core *c, const struct record *r, struct err *e)
{
    if (r->config == NULL)
        return err_set(e, -EINVAL, "record %llu: a configuration is missing", (unsigned long long)r->seq);
    struct config copy;
    if (config_copy(&copy, r->config) < 0)
        return -ENOMEM;
    config_done(&c->config);
    c->config = copy;
    for (uint64_t i = 0; i < c->table_len; i++) {
        struct job *j = c->table[i];
        if (j == NULL || j->state != JOB_QUEUED)
            continue;
        /* The queue's priority may have changed, and with it the order. */
        const struct config_queue *q = find_queue(&c->config, core_queue_name(c, j->payer.queue));
        queue_remove(c, j);
        j->order = j->priority + (q == NULL ? 0 : q->priority);
        if (queue_add(c, j, r->time_ms) < 0)
            return -ENOMEM;
    }
    c->unblock = true;
    return 0;
}

static int apply_node(struct core *c, const struct record *r, struct err *e)
{
    if (r->node == NULL)
        return err_set(e, -EINVAL, "record %llu: a node is missing", (unsigned long long)r->seq);
    uint32_t id;
    int res = cluster_set_node(&c->cluster, r->node, &id, e);
    if (res < 0)
        return res;
    cluster_set_state(&c->cluster, id, NODE_UP);
    if (mem_grow(&c->banned, &c->banned_cap, ((size_t)c->cluster.nodes_len + 63) / 64, sizeof *c->banned) < 0)
        return -ENOMEM;
    c->unblock = true;
    return 0;
}

static int apply_node_state(struct core *c, const struct record *r, struct err *e)
{
    if (r->node_id >= c->cluster.nodes_len)
        return err_set(e, -EINVAL, "record %llu: there is no node %u", (unsigned long long)r->seq, r->node_id);
    cluster_set_state(&c->cluster, r->node_id, r->node_state);
    cluster_set_draining(&c->cluster, r->node_id, r->draining);
    c->unblock = true;
    return 0;
}

static int reserve_table(struct core *c, uint64_t id)
{
    uint64_t last = core_last_job_id(c);
    if (id <= last)
        return -EEXIST;
    size_t need = (size_t)(id - c->table_base + 1);
    int r = mem_grow(&c->table, &c->table_cap, need, sizeof(struct job *));
    if (r == 0)
        c->table_len = need;
    return r;
}

static uint32_t member_id(struct core *c, const struct job_spec *s)
{
    char name[2 * NAME_SIZE];
    (void)snprintf(name, sizeof name, "%s\n%s", s->tenant, s->user);
    return intern_id(&c->members, name);
}

static int fill_job(struct core *c, struct job *j, const struct record *r, struct err *e)
{
    const struct job_spec *s = r->spec;
    j->id = r->job;
    j->state = JOB_QUEUED;
    j->payer = (struct payer){.tenant = intern_id(&c->tenants, s->tenant),
                              .user = intern_id(&c->users, s->user),
                              .member = member_id(c, s),
                              .queue = intern_id(&c->queues, s->queue)};
    if (j->payer.tenant == INTERN_NONE || j->payer.user == INTERN_NONE || j->payer.member == INTERN_NONE ||
        j->payer.queue == INTERN_NONE || ledger_reserve(&c->ledger, j->payer) < 0)
        return -ENOMEM;
    j->strategy = strategy_find(s->strategy);
    if (j->strategy == NULL)
        return err_set(e, -EINVAL, "job %llu: unknown strategy \"%s\"; allowed: %s", (unsigned long long)r->job,
                       s->strategy, strategy_names());
    const struct config_queue *q = find_queue(&c->config, s->queue);
    j->req = s->req;
    j->workers = s->workers;
    j->priority = s->priority;
    j->order = s->priority + (q == NULL ? 0 : q->priority);
    j->require = s->require;
    j->prefer = s->prefer;
    j->submitted_ms = r->time_ms;
    j->time_limit_ms = s->time_limit_ms;
    j->held = s->hold;
    j->not_before_ms = s->begin_ms;
    if (s->begin_after_ms > 0 && __builtin_add_overflow(r->time_ms, s->begin_after_ms, &j->not_before_ms))
        j->not_before_ms = INT64_MAX;
    j->grace_ms = s->grace_ms;
    return 0;
}

static int apply_submit(struct core *c, const struct record *r, struct err *e)
{
    if (r->spec == NULL || r->job == 0 || r->job < c->table_base || r->spec->workers == 0 ||
        r->spec->workers > WORKERS_MAX)
        return err_set(e, -EINVAL, "record %llu: not a submission", (unsigned long long)r->seq);
    int res = reserve_table(c, r->job);
    if (res == -EEXIST)
        return err_set(e, -EINVAL, "record %llu: job %llu exists", (unsigned long long)r->seq,
                       (unsigned long long)r->job);
    if (res < 0)
        return res;
    struct job *j = mem_alloc(1, sizeof *j);
    if (j == NULL)
        return -ENOMEM;
    res = fill_job(c, j, r, e);
    if (res == 0)
        res = depend_add(c, j, r->spec, e);
    if (res < 0) {
        job_free(j);
        return res;
    }
    c->table[r->job - c->table_base] = j;
    c->counts[JOB_QUEUED]++;
    struct place_req req = place_req_of(&c->cluster, &j->req);
    placer_observe(c->placer, &req, j->workers);
    if (j->links_failed)
        queue_todo(c, j);
    return queue_add(c, j, r->time_ms);
}

static struct job *need_job(struct core *c, const struct record *r, struct err *e)
{
    struct job *j = core_job_mutable(c, r->job);
    if (j == NULL)
        (void)err_set(e, -EINVAL, "record %llu: there is no job %llu", (unsigned long long)r->seq,
                      (unsigned long long)r->job);
    return j;
}

static int apply_update(struct core *c, struct job *j, const struct record *r)
{
    const struct job_change *ch = &r->change;
    if (job_ended(j))
        return 0;
    bool queued = j->state == JOB_QUEUED;
    if (queued)
        queue_remove(c, j);
    else
        queue_limit_remove(c, j);
    if (ch->set_hold)
        j->held = ch->hold;
    if (ch->set_priority)
        j->priority = ch->priority;
    if (ch->set_time_limit)
        j->time_limit_ms = ch->time_limit_ms;
    if (ch->set_queue && queued) {
        uint32_t queue = intern_id(&c->queues, ch->queue);
        if (queue == INTERN_NONE)
            return -ENOMEM;
        j->payer.queue = queue;
        if (ledger_reserve(&c->ledger, j->payer) < 0)
            return -ENOMEM;
    }
    const struct config_queue *q = find_queue(&c->config, core_queue_name(c, j->payer.queue));
    j->order = j->priority + (q == NULL ? 0 : q->priority);
    if (queued)
        return queue_add(c, j, r->time_ms);
    queue_limit_add(c, j);
    return 0;
}

static int apply_start(struct core *c, struct job *j, const struct record *r, struct err *e)
{
    if (j->state != JOB_QUEUED || r->attempt != j->attempt + 1 || r->grants_len != j->workers || r->grants == NULL)
        return err_set(e, -EINVAL, "record %llu: job %llu can't start attempt %u: it is %s, attempt %u, %u workers",
                       (unsigned long long)r->seq, (unsigned long long)j->id, r->attempt, job_state_name(j->state),
                       j->attempt, j->workers);
    struct grant *grants = mem_alloc(j->workers, sizeof *grants);
    uint8_t *exited = mem_alloc(j->workers, 1);
    for (uint32_t i = 0; grants != NULL && i < j->workers; i++)
        if (r->grants[i].node >= c->cluster.nodes_len) {
            mem_free(grants);
            mem_free(exited);
            return err_set(e, -EINVAL, "record %llu: there is no node %u", (unsigned long long)r->seq,
                           r->grants[i].node);
        }
    if (grants == NULL || exited == NULL || holders_reserve(c, r->grants, r->grants_len) < 0) {
        mem_free(grants);
        mem_free(exited);
        return -ENOMEM;
    }
    memcpy(grants, r->grants, j->workers * sizeof *grants);
    if (ledger_try_take(&c->ledger, j->payer, grants, j->workers) < 0) {
        mem_free(grants);
        mem_free(exited);
        return err_set(e, -EINVAL, "record %llu: what job %llu is to get is not free", (unsigned long long)r->seq,
                       (unsigned long long)j->id);
    }
    queue_remove(c, j);
    j->grants = grants;
    j->exited = exited;
    holders_add(c, j);
    set_state(c, j, JOB_STARTING);
    j->attempt = r->attempt;
    j->level = r->level;
    j->started_ms = r->time_ms;
    j->running_ms = 0;
    j->not_before_ms = 0;
    j->exits = 0;
    j->failed = false;
    j->fail_cause = CAUSE_NONE;
    j->stop_cause = CAUSE_NONE;
    j->exit_status = 0;
    j->reason = (struct reason){.code = REASON_NONE};
    queue_limit_add(c, j);
    reserve_started(c, j);
    return 0;
}

/* True when the report is about what runs now; an older attempt's is late and means nothing. */
static bool current(const struct job *j, const struct record *r)
{
    return job_holds(j) && r->attempt == j->attempt;
}

static int apply_exit(struct core *c, struct job *j, const struct record *r, struct err *e)
{
    if (!current(j, r))
        return 0;
    const struct worker_exit *x = &r->exit;
    if (x->worker >= j->workers)
        return err_set(e, -EINVAL, "record %llu: job %llu has no worker %u", (unsigned long long)r->seq,
                       (unsigned long long)j->id, x->worker);
    if (j->exited[x->worker])
        return 0;
    j->exited[x->worker] = 1;
    j->exits++;
    bool bad = x->cause != CAUSE_EXIT || x->code != 0 || x->signal != 0;
    if (bad && !j->failed) {
        j->failed = true;
        j->fail_cause = x->cause;
        j->exit_status = x->signal > 0 ? 128 + x->signal : x->code > 0 ? x->code : 1;
    }
    queue_todo(c, j);
    return 0;
}

static int apply_stop(struct core *c, struct job *j, const struct record *r)
{
    if (!current(j, r) || j->stop_cause != CAUSE_NONE)
        return 0;
    queue_limit_remove(c, j);
    j->stop_cause = r->cause;
    return 0;
}

static int apply_retry(struct core *c, struct job *j, const struct record *r, struct err *e)
{
    if (!job_holds(j))
        return err_set(e, -EINVAL, "record %llu: job %llu is %s and can't be requeued", (unsigned long long)r->seq,
                       (unsigned long long)j->id, job_state_name(j->state));
    give_back(c, j);
    set_state(c, j, JOB_QUEUED);
    j->launch_failures += r->cause == CAUSE_LAUNCH_FAILED;
    j->requeue_asked = false;
    j->not_before_ms = r->not_before_ms;
    j->started_ms = 0;
    return queue_add(c, j, r->time_ms);
}

static enum job_state end_state(const struct job *j, enum cause cause)
{
    if (cause == CAUSE_CANCEL || cause == CAUSE_DEPENDENCY)
        return JOB_CANCELLED;
    return cause == CAUSE_EXIT && !j->failed ? JOB_SUCCEEDED : JOB_FAILED;
}

static int apply_end(struct core *c, struct job *j, const struct record *r, struct err *e)
{
    if (job_ended(j))
        return err_set(e, -EINVAL, "record %llu: job %llu has ended before", (unsigned long long)r->seq,
                       (unsigned long long)j->id);
    enum job_state to = end_state(j, r->cause);
    if (job_holds(j))
        give_back(c, j);
    else
        queue_remove(c, j);
    if (otree_linked(&j->in_todo))
        otree_remove(&c->todo, &j->in_todo);
    set_state(c, j, to);
    j->cause = r->cause;
    j->ended_ms = r->time_ms;
    if (to == JOB_CANCELLED)
        j->exit_status = EXIT_STATUS_CANCELLED;
    j->reason = (struct reason){.code = REASON_NONE};
    depend_drop(c, j);
    return depend_ended(c, j, r->time_ms);
}

static int apply_job(struct core *c, const struct record *r, struct err *e)
{
    struct job *j = need_job(c, r, e);
    if (j == NULL)
        return -EINVAL;
    switch (r->kind) {
    case REC_JOB_UPDATE:
        return apply_update(c, j, r);
    case REC_JOB_CANCEL:
        if (!job_ended(j)) {
            j->cancel_asked = true;
            queue_todo(c, j);
        }
        return 0;
    case REC_JOB_REQUEUE:
        if (job_holds(j)) {
            j->requeue_asked = true;
            queue_todo(c, j);
        }
        return 0;
    case REC_JOB_START:
        return apply_start(c, j, r, e);
    case REC_JOB_RUNNING:
        if (current(j, r) && j->state == JOB_STARTING) {
            set_state(c, j, JOB_RUNNING);
            j->running_ms = r->time_ms;
        }
        return 0;
    case REC_WORKER_EXIT:
        return apply_exit(c, j, r, e);
    case REC_JOB_STOP:
        return apply_stop(c, j, r);
    case REC_JOB_RETRY:
        return apply_retry(c, j, r, e);
    case REC_JOB_END:
        return apply_end(c, j, r, e);
    default:
        return err_set(e, -EINVAL, "record %llu: kind %d is not about a job", (unsigned long long)r->seq, (int)r->kind);
    }
}

int core_apply(struct core *c, const struct record *r, struct err *e)
{
    switch (r->kind) {
    case REC_CONFIG:
        return apply_config(c, r, e);
    case REC_NODE:
        return apply_node(c, r, e);
    case REC_NODE_STATE:
        return apply_node_state(c, r, e);
    case REC_JOB_SUBMIT:
        return apply_submit(c, r, e);
    default:
        return apply_job(c, r, e);
    }
}

void core_forget(struct core *c, uint64_t id)
{
    struct job *j = core_job_mutable(c, id);
    if (j == NULL || !job_ended(j))
        return;
    c->counts[j->state]--;
    c->table[id - c->table_base] = NULL;
    job_free(j);
    /* Drop the empty head of the table once it is half of it; the last id is never forgotten. */
    uint64_t empty = 0;
    while (empty + 1 < c->table_len && c->table[empty] == NULL)
        empty++;
    if (empty > 1024 && empty > c->table_len / 2) {
        memmove(c->table, c->table + empty, (size_t)(c->table_len - empty) * sizeof *c->table);
        memset(c->table + (c->table_len - empty), 0, (size_t)empty * sizeof *c->table);
        c->table_base += empty;
        c->table_len -= empty;
    }
}
