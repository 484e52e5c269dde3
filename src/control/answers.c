/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers as JSON; docs/api.md has the shapes. Codes and numbers only: sentences are made by who shows them.
 */
#include "base/mem.h"
#include "control/state.h"
#include "core/explain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void control_write_status(const struct control *c, int64_t now_ms, struct jsonw *w)
{
    const struct cluster *cl = core_cluster(c->core);
    uint64_t gpus = 0;
    uint64_t free_milli = 0;
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < cl->nodes_len; i++) {
        const struct node *n = cl->nodes[i];
        if (n->state == NODE_GONE)
            continue;
        nodes++;
        gpus += n->gpus_len;
        free_milli += node_open(n) ? n->gpus_milli_free : 0;
    }
    jsonw_object(w);
    jsonw_key_i64(w, "pid", c->options.pid);
    jsonw_key_str(w, "version", c->options.version);
    jsonw_key_str(w, "engine", c->options.engine);
    jsonw_key_bool(w, "simulated", c->options.simulated);
    jsonw_key_str(w, "cards", c->options.cards);
    jsonw_key_time(w, "started_at", c->options.started_ms);
    jsonw_key_i64(w, "uptime_ms", now_ms - c->options.started_ms);
    jsonw_key_bool(w, "reconciled", c->reconciled);
    jsonw_key_u64(w, "nodes", nodes);
    jsonw_key_u64(w, "gpus", gpus);
    jsonw_key_u64(w, "gpus_free_milli", free_milli);
    jsonw_key(w, "jobs");
    jsonw_object(w);
    for (int s = 0; s < JOB_STATES_LEN; s++)
        jsonw_key_u64(w, job_state_name((enum job_state)s), core_count(c->core, (enum job_state)s));
    jsonw_end_object(w);
    jsonw_key(w, "scheduler");
    jsonw_object(w);
    const struct core_counters *counters = core_counters(c->core);
#define X(name, text) jsonw_key_u64(w, #name, counters->name);
    CORE_COUNTERS(X)
#undef X
    jsonw_end_object(w);
    jsonw_key_u64(w, "config_version", c->config_version);
    jsonw_key_u64(w, "log_seq", c->next_seq - 1);
    jsonw_key(w, "last_audit");
    jsonw_object(w);
    jsonw_key_bool(w, "ok", c->audit_ok);
    jsonw_key_str(w, "detail", c->audit_ok ? NULL : c->audit_text);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

/* --- jobs --- */

/* Caps are told as caps too: readers look for the words of the configuration. */
static bool is_cap(enum reason_code code)
{
    return code >= REASON_TENANT_GPUS && code <= REASON_QUEUE_JOBS;
}

static void write_reason_args(struct jsonw *w, const struct reason *r)
{
    jsonw_object(w);
    jsonw_key_u64(w, "asked", r->asked);
    jsonw_key_u64(w, "free", r->free);
    jsonw_key_u64(w, "total", r->total);
    jsonw_key_u64(w, "short_by", r->asked > r->free ? r->asked - r->free : 0);
    if (is_cap(r->code)) {
        jsonw_key_u64(w, "cap", r->total);
        jsonw_key_u64(w, "used", r->used);
    }
    if (r->level != LEVEL_ANY)
        jsonw_key_str(w, "level", level_name(r->level));
    if (r->name[0] != '\0')
        jsonw_key_str(w, "name", r->name);
    if (r->until_ms > 0)
        jsonw_key_time(w, "until", r->until_ms);
    if (r->job != 0)
        jsonw_key_u64(w, "job", r->job);
    jsonw_end_object(w);
}

static void write_reason(struct jsonw *w, const struct reason *r)
{
    if (r->code == REASON_NONE) {
        jsonw_null(w);
        return;
    }
    jsonw_object(w);
    jsonw_key_str(w, "code", reason_name(r->code));
    jsonw_key(w, "args");
    write_reason_args(w, r);
    jsonw_end_object(w);
}

static void write_where(const struct control *c, const struct ctl_job *mine, struct jsonw *w)
{
    const struct cluster *cl = core_cluster(c->core);
    jsonw_key(w, "nodes");
    jsonw_array(w);
    for (uint32_t i = 0; i < mine->grants_len; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++)
            again = mine->grants[k].node == mine->grants[i].node;
        if (!again)
            jsonw_str(w, control_node_name(c, mine->grants[i].node));
    }
    jsonw_end_array(w);
    jsonw_key(w, "gpu_uuids");
    jsonw_array(w);
    for (uint32_t i = 0; i < mine->grants_len; i++) {
        const struct node *n = cl->nodes[mine->grants[i].node];
        for (uint32_t g = 0; g < n->gpus_len; g++)
            if ((mine->grants[i].gpu_mask >> g & 1) != 0)
                jsonw_str(w, n->gpus[g].uuid);
    }
    jsonw_end_array(w);
}

static void write_numbers(const struct job *j, struct jsonw *w)
{
    jsonw_key_i64(w, "priority", j->priority);
    jsonw_key_u64(w, "gpus", j->req.gpus);
    jsonw_key_u64(w, "share_milli", j->req.share_milli);
    jsonw_key_u64(w, "share_mem_mib", j->req.share_mem_mib);
    jsonw_key_u64(w, "gpus_milli", job_gpus_milli(j));
    jsonw_key_u64(w, "workers", j->workers);
    jsonw_key_u64(w, "cpu_milli", j->req.cpu_milli);
    jsonw_key_u64(w, "mem_mib", j->req.mem_mib);
    jsonw_key_str(w, "gpu_model", j->req.gpu_model);
    jsonw_key_u64(w, "attempt", j->attempt);
    jsonw_key_time(w, "submitted_at", j->submitted_ms);
    jsonw_key_time(w, "started_at", j->started_ms);
    jsonw_key_time(w, "ended_at", j->ended_ms);
    jsonw_key_i64(w, "time_limit_ms", j->time_limit_ms);
}

/* The members of a job summary, without the braces. */
static void write_summary(const struct control *c, int64_t now_ms, const struct job *j, const struct ctl_job *mine,
                          struct jsonw *w)
{
    jsonw_key_u64(w, "id", j->id);
    jsonw_key_str(w, "name", mine->spec.name);
    jsonw_key_str(w, "state", job_state_name(j->state));
    jsonw_key_str(w, "tenant", core_tenant_name(c->core, j->payer.tenant));
    jsonw_key_str(w, "user", mine->spec.user);
    jsonw_key_str(w, "queue", core_queue_name(c->core, j->payer.queue));
    write_numbers(j, w);
    struct reason why = c->reconciled ? core_reason(c->core, j, now_ms) : (struct reason){.code = REASON_RECOVERING};
    if (j->state != JOB_QUEUED)
        why.code = REASON_NONE;
    jsonw_key(w, "reason");
    write_reason(w, &why);
    jsonw_key_str(w, "cause", j->cause == CAUSE_NONE ? NULL : cause_name(j->cause));
    int status;
    jsonw_key(w, "exit_status");
    if (control_exit_status(c, j->id, &status))
        jsonw_i64(w, status);
    else
        jsonw_null(w);
    write_where(c, mine, w);
    jsonw_key_bool(w, "simulated", c->options.simulated);
    jsonw_key_bool(w, "stopping", job_holds(j) && (j->stop_cause != CAUSE_NONE || j->cancel_asked));
}

/* States named in a comma-separated list, as a bit mask. */
static int parse_states(const char *text, uint32_t *ret, struct err *e)
{
    uint32_t mask = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        int found = -1;
        for (int s = 0; s < JOB_STATES_LEN; s++) {
            const char *name = job_state_name((enum job_state)s);
            if (strlen(name) == len && strncmp(name, text, len) == 0)
                found = s;
        }
        if (found < 0)
            return err_set(
                e, -EINVAL,
                "state: \"%.*s\" is unknown; allowed: queued, starting, running, succeeded, failed, cancelled",
                (int)(len < 40 ? len : 40), text);
        mask |= 1u << found;
        text += len + (text[len] == ',');
    }
    *ret = mask;
    return 0;
}

static const uint32_t states_ended = 1u << JOB_SUCCEEDED | 1u << JOB_FAILED | 1u << JOB_CANCELLED;

static int states_of(const struct job_filter *f, uint32_t *ret, struct err *e)
{
    if (f->state != NULL && f->state[0] != '\0')
        return parse_states(f->state, ret, e);
    *ret = f->all ? UINT32_MAX : f->ended_only ? states_ended : ~states_ended;
    return 0;
}

static bool is(const char *wanted, const char *value)
{
    return wanted == NULL || wanted[0] == '\0' || strcmp(wanted, value) == 0;
}

static bool matches(const struct control *c, const struct job_filter *f, uint32_t states, const struct job *j,
                    const struct ctl_job *mine)
{
    return (states >> j->state & 1) != 0 && is(f->user, mine->spec.user) && is(f->name, mine->spec.name) &&
           is(f->queue, core_queue_name(c->core, j->payer.queue)) &&
           is(f->tenant, core_tenant_name(c->core, j->payer.tenant));
}

/* The next job that matches, NULL at the end. */
static const struct job *next_match(const struct control *c, const struct job_filter *f, uint32_t states,
                                    uint64_t after)
{
    const struct job *j = core_job_after(c->core, after);
    while (j != NULL) {
        const struct ctl_job *mine = control_find_job(c, j->id);
        if (mine != NULL && matches(c, f, states, j, mine))
            return j;
        j = core_job_after(c->core, j->id);
    }
    return NULL;
}

int control_write_jobs(const struct control *c, int64_t now_ms, const struct job_filter *f, struct jsonw *w,
                       struct err *e)
{
    uint32_t states;
    int r = states_of(f, &states, e);
    if (r < 0)
        return r;
    uint32_t limit = f->limit == 0 ? 1000 : f->limit;
    jsonw_object(w);
    jsonw_key(w, "jobs");
    jsonw_array(w);
    uint64_t last = f->after;
    const struct job *j = next_match(c, f, states, last);
    for (uint32_t n = 0; j != NULL && n < limit; n++) {
        jsonw_object(w);
        write_summary(c, now_ms, j, control_find_job(c, j->id), w);
        jsonw_end_object(w);
        last = j->id;
        j = next_match(c, f, states, last);
    }
    jsonw_end_array(w);
    jsonw_key(w, "next");
    if (j == NULL)
        jsonw_null(w);
    else
        jsonw_u64(w, last);
    jsonw_end_object(w);
    return 0;
}

int control_match(const struct control *c, const struct job_filter *f, uint64_t **ret_ids, size_t *ret_len,
                  struct err *e)
{
    uint32_t states;
    int r = states_of(f, &states, e);
    if (r < 0)
        return r;
    uint64_t *ids = NULL;
    size_t cap = 0;
    size_t len = 0;
    for (const struct job *j = next_match(c, f, states, f->after); j != NULL; j = next_match(c, f, states, j->id)) {
        if (mem_grow(&ids, &cap, len + 1, sizeof *ids) < 0) {
            mem_free(ids);
            return -ENOMEM;
        }
        ids[len++] = j->id;
    }
    *ret_ids = ids;
    *ret_len = len;
    return 0;
}

static void write_placement(const struct control *c, const struct ctl_job *mine, struct jsonw *w)
{
    jsonw_key(w, "placement");
    jsonw_array(w);
    for (uint32_t i = 0; i < mine->grants_len; i++) {
        const struct grant *g = &mine->grants[i];
        jsonw_object(w);
        jsonw_key_u64(w, "worker", i);
        jsonw_key_str(w, "node", control_node_name(c, g->node));
        jsonw_key(w, "gpus");
        jsonw_array(w);
        for (uint32_t k = 0; k < NODE_GPUS_MAX; k++)
            if ((g->gpu_mask >> k & 1) != 0)
                jsonw_str(w, control_gpu_uuid(c, g->node, k));
        jsonw_end_array(w);
        jsonw_key_u64(w, "milli", g->milli);
        jsonw_key_u64(w, "gpu_mem_mib", g->gpu_mem_mib);
        jsonw_key_u64(w, "cpu_milli", g->cpu_milli);
        jsonw_key_u64(w, "mem_mib", g->mem_mib);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void write_exit(const struct worker_exit *x, struct jsonw *w)
{
    jsonw_key_u64(w, "worker", x->worker);
    jsonw_key_i64(w, "code", x->code);
    jsonw_key_i64(w, "signal", x->signal);
    jsonw_key_str(w, "cause", cause_name(x->cause));
    jsonw_key_bool(w, "core_dumped", x->core_dumped);
    jsonw_key_u64(w, "peak_mem_mib", x->peak_mem_mib);
    jsonw_key_i64(w, "cpu_ms", x->cpu_ms);
    jsonw_key_str(w, "detail", x->detail[0] == '\0' ? NULL : x->detail);
}

static void write_life(const struct ctl_job *mine, struct jsonw *w)
{
    jsonw_key(w, "exits");
    jsonw_array(w);
    for (size_t i = 0; i < mine->exits_len; i++) {
        jsonw_object(w);
        write_exit(&mine->exits[i], w);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_key(w, "timeline");
    jsonw_array(w);
    for (size_t i = 0; i < mine->timeline_len; i++) {
        const struct mark *m = &mine->timeline[i];
        jsonw_object(w);
        jsonw_key_u64(w, "seq", m->seq);
        jsonw_key_time(w, "time", m->time_ms);
        jsonw_key_str(w, "event", record_kind_name(m->kind));
        jsonw_key_u64(w, "attempt", m->attempt);
        jsonw_key_str(w, "cause", m->cause == CAUSE_NONE ? NULL : cause_name(m->cause));
        jsonw_key_str(w, "by", m->by);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

int control_write_job(const struct control *c, int64_t now_ms, uint64_t id, struct jsonw *w, struct err *e)
{
    const struct job *j = core_job(c->core, id);
    const struct ctl_job *mine = control_find_job(c, id);
    if (j == NULL || mine == NULL)
        return err_set(e, -ENOENT, "there is no job %llu", (unsigned long long)id);
    jsonw_object(w);
    write_summary(c, now_ms, j, mine, w);
    jsonw_key_u64(w, "uid", mine->spec.uid);
    jsonw_key(w, "command");
    jsonw_array(w);
    for (char **v = mine->spec.argv; v != NULL && *v != NULL; v++)
        jsonw_str(w, *v);
    jsonw_end_array(w);
    jsonw_key_str(w, "cwd", mine->spec.cwd);
    jsonw_key_bool(w, "script", mine->had_script);
    jsonw_key_str(w, "require", level_name(j->require));
    jsonw_key_str(w, "prefer", level_name(j->prefer));
    jsonw_key_str(w, "level", mine->grants_len == 0 || job_gpus_milli(j) == 0 ? NULL : level_name(j->level));
    jsonw_key_str(w, "strategy", mine->spec.strategy);
    jsonw_key_i64(w, "grace_ms", j->grace_ms > 0 ? j->grace_ms : core_config(c->core)->grace_ms);
    write_placement(c, mine, w);
    write_life(mine, w);
    jsonw_end_object(w);
    return 0;
}

/* --- explanations --- */

static void write_holders(const struct control *c, const struct reason *r, struct jsonw *w)
{
    jsonw_array(w);
    for (uint32_t i = 0; i < r->holders_len; i++) {
        const struct ctl_job *h = control_find_job(c, r->holders[i].job);
        jsonw_object(w);
        jsonw_key_u64(w, "job", r->holders[i].job);
        jsonw_key_str(w, "name", h == NULL ? NULL : h->spec.name);
        jsonw_key_str(w, "user", h == NULL ? NULL : h->spec.user);
        jsonw_key_u64(w, "amount", r->holders[i].amount);
        jsonw_key_time(w, "until", r->holders[i].until_ms);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void write_reservation(const struct control *c, uint64_t id, struct jsonw *w)
{
    struct reservation_view v;
    if (!core_reservation(c->core, id, &v)) {
        jsonw_null(w);
        return;
    }
    jsonw_object(w);
    jsonw_key_time(w, "start_at", v.start_ms);
    jsonw_key_bool(w, "bounded", v.bounded);
    jsonw_key(w, "nodes");
    jsonw_array(w);
    for (uint32_t i = 0; i < v.nodes_len; i++)
        jsonw_str(w, control_node_name(c, v.nodes[i]));
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void write_change(const struct would_start *s, struct jsonw *w)
{
    jsonw_object(w);
    jsonw_key_str(w, "change", change_name((int)s->change));
    jsonw_key(w, "value");
    if (s->change == CHANGE_REQUIRE)
        jsonw_str(w, level_name(s->level));
    else if (s->change == CHANGE_MODEL)
        jsonw_str(w, s->model);
    else
        jsonw_u64(w, s->value);
    jsonw_end_object(w);
}

int control_write_explain(struct control *c, int64_t now_ms, uint64_t id, struct jsonw *w, struct err *e)
{
    CLEANUP_FREE struct explanation *x = mem_alloc(1, sizeof *x);
    if (x == NULL)
        return -ENOMEM;
    int r = core_explain(c->core, now_ms, id, x);
    if (r < 0)
        return err_set(e, r, "there is no job %llu", (unsigned long long)id);
    const struct job *j = core_job(c->core, id);
    if (!c->reconciled && j->state == JOB_QUEUED && x->reasons_len < EXPLAIN_REASONS_MAX)
        x->reasons[x->reasons_len++] = (struct reason){.code = REASON_RECOVERING};
    jsonw_object(w);
    jsonw_key_u64(w, "id", id);
    jsonw_key_str(w, "state", job_state_name(j->state));
    jsonw_key_str(w, "verdict", verdict_name(x->verdict));
    jsonw_key_u64(w, "position", x->position);
    jsonw_key(w, "reasons");
    jsonw_array(w);
    for (uint32_t i = 0; i < x->reasons_len; i++) {
        jsonw_object(w);
        jsonw_key_str(w, "code", reason_name(x->reasons[i].code));
        jsonw_key(w, "args");
        write_reason_args(w, &x->reasons[i]);
        jsonw_key(w, "holders");
        write_holders(c, &x->reasons[i], w);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_key(w, "reservation");
    write_reservation(c, id, w);
    jsonw_key(w, "would_start_with");
    jsonw_array(w);
    for (uint32_t i = 0; i < x->changes_len; i++)
        write_change(&x->changes[i], w);
    jsonw_end_array(w);
    jsonw_end_object(w);
    return 0;
}

/* --- events --- */

static void write_event_node(const struct control *c, const struct record *r, struct jsonw *w)
{
    if (r->kind == REC_NODE && r->node != NULL)
        jsonw_key_str(w, "node", r->node->name);
    if (r->kind == REC_NODE_STATE) {
        static const char *const states[] = {"up", "down", "gone"};
        jsonw_key_str(w, "node", control_node_name(c, r->node_id));
        jsonw_key_str(w, "state", states[r->node_state]);
        jsonw_key_bool(w, "draining", r->draining);
        jsonw_key_str(w, "why", r->text);
    }
}

void control_write_event(const struct control *c, const struct record *r, struct jsonw *w)
{
    jsonw_object(w);
    jsonw_key_u64(w, "seq", r->seq);
    jsonw_key_time(w, "time", r->time_ms);
    jsonw_key_str(w, "event", record_kind_name(r->kind));
    if (r->job != 0) {
        jsonw_key_u64(w, "job", r->job);
        jsonw_key_u64(w, "attempt", r->attempt);
    }
    if (r->kind == REC_JOB_SUBMIT && r->spec != NULL) {
        jsonw_key_str(w, "name", r->spec->name);
        jsonw_key_str(w, "user", r->spec->user);
        jsonw_key_str(w, "queue", r->spec->queue);
        jsonw_key_str(w, "tenant", r->spec->tenant);
    }
    if (r->kind == REC_JOB_START) {
        jsonw_key(w, "nodes");
        jsonw_array(w);
        for (uint32_t i = 0; i < r->grants_len; i++)
            jsonw_str(w, control_node_name(c, r->grants[i].node));
        jsonw_end_array(w);
    }
    if (r->kind == REC_WORKER_EXIT)
        write_exit(&r->exit, w);
    else if (r->cause != CAUSE_NONE)
        jsonw_key_str(w, "cause", cause_name(r->cause));
    if (r->not_before_ms > 0)
        jsonw_key_time(w, "not_before", r->not_before_ms);
    write_event_node(c, r, w);
    if (r->by[0] != '\0')
        jsonw_key_str(w, "by", r->by);
    jsonw_end_object(w);
}

const char *control_job_state(const struct control *c, uint64_t id)
{
    const struct job *j = core_job(c->core, id);
    return j == NULL ? NULL : job_state_name(j->state);
}
