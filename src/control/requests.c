/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "control/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "a, b, c" of the names in a configuration, for messages. */
static void list_names(char *out, size_t size, const char *first, const char *base, size_t stride, size_t len)
{
    int n = snprintf(out, size, "%s", first);
    size_t at = n < 0 ? 0 : (size_t)n;
    for (size_t i = 0; i < len && at < size; i++) {
        const char *name = base + i * stride;
        if (strcmp(name, first) == 0)
            continue;
        n = snprintf(out + at, size - at, "%s%s", at == 0 ? "" : ", ", name);
        at += n < 0 ? 0 : (size_t)n;
    }
}

static const struct config_queue *find_queue(const struct config *cfg, const char *name)
{
    for (size_t i = 0; i < cfg->queues_len; i++)
        if (strcmp(cfg->queues[i].name, name) == 0)
            return &cfg->queues[i];
    return NULL;
}

static int check_queue(const struct config *cfg, const char *name, const struct config_queue **ret, struct err *e)
{
    *ret = find_queue(cfg, name);
    if (*ret != NULL)
        return 0;
    char names[160];
    list_names(names, sizeof names, "", cfg->queues_len == 0 ? "" : cfg->queues[0].name, sizeof cfg->queues[0],
               cfg->queues_len);
    return err_set(e, -EINVAL, "queue: there is no queue \"%s\"; allowed: %s", name, names);
}

/* Fills in the tenant and checks that the user belongs to it. */
static int settle_tenant(const struct config *cfg, const struct caller *who, struct job_spec *spec, struct err *e)
{
    const char *own = NULL;
    for (size_t i = 0; i < cfg->users_len; i++)
        if (strcmp(cfg->users[i].name, spec->user) == 0)
            own = cfg->users[i].tenant;
    if (spec->tenant[0] == '\0')
        (void)snprintf(spec->tenant, sizeof spec->tenant, "%s",
                       own == NULL || own[0] == '\0' ? cfg->default_tenant : own);
    bool known = strcmp(spec->tenant, cfg->default_tenant) == 0;
    for (size_t i = 0; i < cfg->tenants_len && !known; i++)
        known = strcmp(cfg->tenants[i].name, spec->tenant) == 0;
    if (!known) {
        char names[160];
        list_names(names, sizeof names, cfg->default_tenant, cfg->tenants_len == 0 ? "" : cfg->tenants[0].name,
                   sizeof cfg->tenants[0], cfg->tenants_len);
        return err_set(e, -EINVAL, "tenant: there is no tenant \"%s\"; allowed: %s", spec->tenant, names);
    }
    if (own != NULL && own[0] != '\0' && strcmp(own, spec->tenant) != 0 && !who->admin)
        return err_set(e, -EACCES, "tenant: user \"%s\" belongs to tenant \"%s\" and can't submit for \"%s\"",
                       spec->user, own, spec->tenant);
    return 0;
}

static int settle_time(const struct config_queue *q, int64_t *limit_ms, struct err *e)
{
    if (*limit_ms == 0)
        *limit_ms = q->default_time_ms > 0 ? q->default_time_ms : q->max_time_ms;
    if (q->max_time_ms > 0 && *limit_ms > q->max_time_ms)
        return err_set(e, -EINVAL, "time: queue \"%s\" allows at most %lld s, asked for: %lld s", q->name,
                       (long long)(q->max_time_ms / 1000), (long long)(*limit_ms / 1000));
    return 0;
}

/* Fills in the configuration's defaults and checks the specification against it. */
static int settle(const struct control *c, const struct caller *who, struct job_spec *spec, struct err *e)
{
    const struct config *cfg = core_config(c->core);
    if (spec->queue[0] == '\0')
        (void)snprintf(spec->queue, sizeof spec->queue, "%s", cfg->default_queue);
    if (spec->strategy[0] == '\0')
        (void)snprintf(spec->strategy, sizeof spec->strategy, "%s", cfg->strategy);
    if (spec->user[0] == '\0')
        (void)snprintf(spec->user, sizeof spec->user, "%s", who->user);
    const struct config_queue *q;
    int r = check_queue(cfg, spec->queue, &q, e);
    if (r == 0)
        r = settle_tenant(cfg, who, spec, e);
    if (r == 0)
        r = settle_time(q, &spec->time_limit_ms, e);
    if (r == 0)
        r = job_spec_check(spec, e);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < spec->after_len; i++)
        if (core_job(c->core, spec->after[i].job) == NULL)
            return err_set(e, -EINVAL, "after: there is no job %llu (or it ended so long ago that it is forgotten)",
                           (unsigned long long)spec->after[i].job);
    if (!who->admin && spec->uid != who->uid)
        return err_set(e, -EACCES, "uid: only an administrator may submit for uid %u", spec->uid);
    bool processes = strcmp(c->options.engine, "simulated") != 0;
    if (processes && c->options.owner_uid != 0 && spec->uid != c->options.owner_uid)
        return err_set(
            e, -EACCES,
            "uid: this daemon runs as uid %u and can't start jobs of uid %u; run the daemon as root for that",
            c->options.owner_uid, spec->uid);
    return 0;
}

int control_submit(struct control *c, const struct caller *who, int64_t now_ms, struct job_spec *spec, uint64_t *ret_id,
                   struct err *e)
{
    if (spec->key != NULL) {
        const struct ctl_job *known = control_by_key(c, spec->uid, spec->key);
        if (known != NULL) {
            *ret_id = known->id;
            job_spec_done(spec);
            return 0;
        }
    }
    if (spec->strategy[0] != '\0' && strategy_find(spec->strategy) == NULL)
        return err_set(e, -EINVAL, "strategy: \"%s\" is unknown; allowed: %s", spec->strategy, strategy_names());
    int r = settle(c, who, spec, e);
    if (r == 0)
        r = core_check_spec(c->core, spec, e);
    if (r < 0)
        return r;
    struct job_spec *own = mem_alloc(1, sizeof *own);
    if (own == NULL)
        return -ENOMEM;
    *own = *spec;
    struct record rec = {.kind = REC_JOB_SUBMIT, .time_ms = now_ms, .job = core_last_job_id(c->core) + 1, .spec = own};
    uint64_t id = rec.job;
    *spec = (struct job_spec){0};
    r = control_record(c, &rec, e);
    if (r == 0)
        *ret_id = id;
    return r;
}

/* The job, when `who` may change it and it has not ended. */
static int need_own(const struct control *c, const struct caller *who, uint64_t id, const struct job **ret,
                    struct err *e)
{
    const struct ctl_job *mine = control_find_job(c, id);
    const struct job *j = core_job(c->core, id);
    if (mine == NULL || j == NULL)
        return err_set(e, -ENOENT, "there is no job %llu", (unsigned long long)id);
    if (!control_may(who, mine))
        return err_set(e, -EACCES, "job %llu belongs to %s", (unsigned long long)id, mine->spec.user);
    if (job_ended(j))
        return err_set(e, -EALREADY, "job %llu has ended: it is %s", (unsigned long long)id, job_state_name(j->state));
    *ret = j;
    return 0;
}

int control_cancel(struct control *c, const struct caller *who, int64_t now_ms, uint64_t id, struct err *e)
{
    const struct job *j;
    int r = need_own(c, who, id, &j, e);
    if (r < 0 || j->cancel_asked)
        return r;
    struct record rec = {.kind = REC_JOB_CANCEL, .time_ms = now_ms, .job = id, .attempt = j->attempt};
    (void)snprintf(rec.by, sizeof rec.by, "%s", who->user);
    return control_record(c, &rec, e);
}

int control_requeue(struct control *c, const struct caller *who, int64_t now_ms, uint64_t id, struct err *e)
{
    const struct job *j;
    int r = need_own(c, who, id, &j, e);
    if (r < 0 || j->requeue_asked)
        return r;
    if (!job_holds(j))
        return err_set(e, -EALREADY, "job %llu is %s; only one that runs can be put back into the queue",
                       (unsigned long long)id, job_state_name(j->state));
    struct record rec = {.kind = REC_JOB_REQUEUE, .time_ms = now_ms, .job = id, .attempt = j->attempt};
    (void)snprintf(rec.by, sizeof rec.by, "%s", who->user);
    return control_record(c, &rec, e);
}

int control_update(struct control *c, const struct caller *who, int64_t now_ms, uint64_t id,
                   const struct job_change *change, struct err *e)
{
    const struct job *j;
    int r = need_own(c, who, id, &j, e);
    if (r < 0)
        return r;
    const struct config *cfg = core_config(c->core);
    struct record rec = {
        .kind = REC_JOB_UPDATE, .time_ms = now_ms, .job = id, .attempt = j->attempt, .change = *change};
    struct job_change *ch = &rec.change;
    if (ch->set_priority && (ch->priority < PRIORITY_MIN || ch->priority > PRIORITY_MAX))
        return err_set(e, -EINVAL, "priority: %d is out of range; allowed: %d..%d", ch->priority, PRIORITY_MIN,
                       PRIORITY_MAX);
    if (ch->set_priority && ch->priority > j->priority && !who->admin)
        return err_set(e, -EACCES, "priority: only an administrator may raise it (from %d to %d)", j->priority,
                       ch->priority);
    if (ch->set_name && !job_name_ok(ch->name))
        return err_set(e, -EINVAL, "name: \"%s\" is not a name; allowed: 1 to %d bytes of UTF-8 without control signs",
                       ch->name, NAME_SIZE - 1);
    if (ch->set_queue && j->state != JOB_QUEUED)
        return err_set(e, -EALREADY, "queue: job %llu is %s; only a waiting job can change its queue",
                       (unsigned long long)id, job_state_name(j->state));
    if (ch->set_hold && j->state != JOB_QUEUED)
        return err_set(e, -EALREADY, "hold: job %llu is %s; only a waiting job can be held or released",
                       (unsigned long long)id, job_state_name(j->state));
    const struct config_queue *q;
    r = check_queue(cfg, ch->set_queue ? ch->queue : core_queue_name(c->core, j->payer.queue), &q, e);
    if (r == 0 && (ch->set_time_limit || ch->set_queue)) {
        int64_t limit = ch->set_time_limit ? ch->time_limit_ms : j->time_limit_ms;
        if (limit < 0 || limit > TIME_MAX_MS)
            return err_set(e, -EINVAL, "time: %lld ms is out of range", (long long)limit);
        r = settle_time(q, &limit, e);
        ch->set_time_limit = true;
        ch->time_limit_ms = limit;
    }
    if (r < 0)
        return r;
    (void)snprintf(rec.by, sizeof rec.by, "%s", who->user);
    return control_record(c, &rec, e);
}

int control_drain(struct control *c, const struct caller *who, int64_t now_ms, const char *node, bool drain,
                  const char *why, struct err *e)
{
    const struct node *n = cluster_find(core_cluster(c->core), node);
    if (n == NULL || n->state == NODE_GONE)
        return err_set(e, -ENOENT, "there is no node \"%s\"", node);
    if (!who->admin)
        return err_set(e, -EACCES, "only an administrator may drain nodes");
    if (n->draining == drain)
        return 0;
    struct record rec = {.kind = REC_NODE_STATE,
                         .time_ms = now_ms,
                         .node_id = n->id,
                         .node_state = n->state,
                         .draining = drain,
                         .text = mem_strdup(why == NULL ? "" : why)};
    if (rec.text == NULL)
        return -ENOMEM;
    (void)snprintf(rec.by, sizeof rec.by, "%s", who->user);
    return control_record(c, &rec, e);
}

/* Jobs belong to their queue until they have ended: a configuration without it would leave them without rules. */
static int check_queues_kept(const struct control *c, const struct config *cfg, struct err *e)
{
    for (const struct job *j = core_job_after(c->core, 0); j != NULL; j = core_job_after(c->core, j->id)) {
        const char *queue = core_queue_name(c->core, j->payer.queue);
        bool kept = job_ended(j);
        for (size_t i = 0; i < cfg->queues_len && !kept; i++)
            kept = strcmp(cfg->queues[i].name, queue) == 0;
        if (!kept)
            return err_set(
                e, -EBUSY,
                "queues: \"%s\" is not there any more, but job %llu is in it and %s; keep the queue until its "
                "jobs have ended, or move them (remuda update ID --queue QUEUE)",
                queue, (unsigned long long)j->id, job_state_name(j->state));
    }
    return 0;
}

int control_configure(struct control *c, const struct caller *who, int64_t now_ms, struct config *cfg, const char *text,
                      struct err *e)
{
    if (!who->admin)
        return err_set(e, -EACCES, "only an administrator may change the configuration");
    int kept = check_queues_kept(c, cfg, e);
    if (kept < 0)
        return kept;
    struct record rec = {.kind = REC_CONFIG, .time_ms = now_ms};
    rec.config = mem_alloc(1, sizeof *rec.config);
    rec.text = mem_strdup(text);
    if (rec.config == NULL || rec.text == NULL) {
        record_done(&rec);
        return -ENOMEM;
    }
    *rec.config = *cfg;
    *cfg = (struct config){0};
    (void)snprintf(rec.by, sizeof rec.by, "%s", who->user);
    return control_record(c, &rec, e);
}
