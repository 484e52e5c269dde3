/* SPDX-License-Identifier: Apache-2.0 */
#include "control/control.h"

#include "base/mem.h"
#include "control/state.h"
#include "core/audit.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static int compare_key(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    const struct ctl_job *x = OTREE_ENTRY(a, struct ctl_job, by_key);
    const struct ctl_job *y = OTREE_ENTRY(b, struct ctl_job, by_key);
    if (x->spec.uid != y->spec.uid)
        return x->spec.uid < y->spec.uid ? -1 : 1;
    return strcmp(x->spec.key, y->spec.key);
}

static int compare_ended(const struct otree_node *a, const struct otree_node *b, const void *ctx)
{
    (void)ctx;
    const struct ctl_job *x = OTREE_ENTRY(a, struct ctl_job, in_ended);
    const struct ctl_job *y = OTREE_ENTRY(b, struct ctl_job, in_ended);
    return x->ended_seq < y->ended_seq ? -1 : x->ended_seq > y->ended_seq;
}

static void job_free(struct ctl_job *j)
{
    job_spec_done(&j->spec);
    mem_free(j->grants);
    mem_free(j->exits);
    for (size_t i = 0; i < j->timeline_len; i++)
        mem_free(j->timeline[i].by);
    mem_free(j->timeline);
    mem_free(j);
}

struct control *control_new(const struct control_options *o)
{
    struct control *c = mem_alloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->options = *o;
    c->next_seq = 1;
    c->audit_ok = true;
    otree_init(&c->keys, compare_key, NULL);
    otree_init(&c->ended, compare_ended, NULL);
    c->core = core_new();
    struct record r = {.kind = REC_CONFIG, .config = (struct config *)o->config};
    if (c->core == NULL || (o->config != NULL && core_apply(c->core, &r, NULL) < 0)) {
        control_free(c);
        return NULL;
    }
    return c;
}

void control_free(struct control *c)
{
    if (c == NULL)
        return;
    for (uint64_t id = 0; c->core != NULL;) {
        const struct job *j = core_job_after(c->core, id);
        if (j == NULL)
            break;
        id = j->id;
        struct ctl_job *mine = idmap_get(&c->jobs, id);
        if (mine != NULL)
            job_free(mine);
    }
    core_free(c->core);
    idmap_done(&c->jobs);
    for (size_t i = 0; i < c->nodes_cap; i++) {
        mem_free(c->nodes[i].desc);
        mem_free(c->nodes[i].topology);
    }
    mem_free(c->nodes);
    for (size_t i = 0; i < c->unsaved_len; i++)
        record_done(&c->unsaved[i]);
    mem_free(c->unsaved);
    for (size_t i = c->effects_at; i < c->effects_len; i++)
        mem_free(c->effects[i].text);
    mem_free(c->effects);
    mem_free(c->effect_text);
    mem_free(c->config_text);
    mem_free(c);
}

struct ctl_job *control_find_job(const struct control *c, uint64_t id)
{
    return id == 0 ? NULL : idmap_get(&c->jobs, id);
}

struct ctl_job *control_by_key(const struct control *c, uint32_t uid, const char *key)
{
    struct ctl_job probe = {.spec = {.uid = uid, .key = (char *)key}};
    struct otree_node *at = otree_lower_bound(&c->keys, &probe.by_key);
    if (at == NULL || compare_key(at, &probe.by_key, NULL) != 0)
        return NULL;
    return OTREE_ENTRY(at, struct ctl_job, by_key);
}

/* --- control's part of a record --- */

static int note_submit(struct control *c, const struct record *r)
{
    struct ctl_job *j = mem_alloc(1, sizeof *j);
    if (j == NULL)
        return -ENOMEM;
    j->id = r->job;
    if (job_spec_copy(&j->spec, r->spec) < 0 || idmap_put(&c->jobs, j->id, j) < 0) {
        job_free(j);
        return -ENOMEM;
    }
    j->had_script = j->spec.script != NULL;
    if (j->spec.key != NULL && control_by_key(c, j->spec.uid, j->spec.key) == NULL)
        otree_insert(&c->keys, &j->by_key);
    return 0;
}

static void forget_oldest(struct control *c)
{
    while (c->ended.len > core_config(c->core)->finished_jobs_kept) {
        struct ctl_job *old = OTREE_ENTRY(otree_first(&c->ended), struct ctl_job, in_ended);
        otree_remove(&c->ended, &old->in_ended);
        if (otree_linked(&old->by_key))
            otree_remove(&c->keys, &old->by_key);
        (void)idmap_remove(&c->jobs, old->id);
        core_forget(c->core, old->id);
        job_free(old);
    }
}

static void note_end(struct control *c, struct ctl_job *j, const struct record *r)
{
    /* What only a running job needs is given up; who asks about an ended one sees the rest. */
    for (char **v = j->spec.env; v != NULL && *v != NULL; v++)
        mem_free(*v);
    mem_free(j->spec.env);
    j->spec.env = NULL;
    mem_free(j->spec.script);
    j->spec.script = NULL;
    j->ended_seq = r->seq;
    otree_insert(&c->ended, &j->in_ended);
}

static int note_start(struct ctl_job *j, const struct record *r)
{
    struct grant *grants = mem_alloc(r->grants_len, sizeof *grants);
    if (grants == NULL)
        return -ENOMEM;
    memcpy(grants, r->grants, r->grants_len * sizeof *grants);
    mem_free(j->grants);
    j->grants = grants;
    j->grants_len = r->grants_len;
    j->exits_len = 0;
    j->seen = true;
    return 0;
}

static int note_exit(struct ctl_job *j, const struct record *r)
{
    for (size_t i = 0; i < j->exits_len; i++)
        if (j->exits[i].worker == r->exit.worker)
            return 0;
    int res = mem_grow(&j->exits, &j->exits_cap, j->exits_len + 1, sizeof *j->exits);
    if (res == 0)
        j->exits[j->exits_len++] = r->exit;
    return res;
}

static int note_mark(struct ctl_job *j, const struct record *r)
{
    if (j->timeline_len >= TIMELINE_MAX)
        return 0;
    int res = mem_grow(&j->timeline, &j->timeline_cap, j->timeline_len + 1, sizeof *j->timeline);
    if (res < 0)
        return res;
    struct mark *m = &j->timeline[j->timeline_len];
    *m = (struct mark){.seq = r->seq,
                       .time_ms = r->time_ms,
                       .kind = r->kind,
                       .attempt = r->attempt,
                       .cause = r->kind == REC_WORKER_EXIT ? r->exit.cause : r->cause};
    if (r->by[0] != '\0' && (m->by = mem_strdup(r->by)) == NULL)
        return -ENOMEM;
    j->timeline_len++;
    return 0;
}

static void note_update(struct ctl_job *j, const struct record *r)
{
    if (r->change.set_name)
        memcpy(j->spec.name, r->change.name, sizeof j->spec.name);
    if (r->change.set_queue)
        memcpy(j->spec.queue, r->change.queue, sizeof j->spec.queue);
    if (r->change.set_priority)
        j->spec.priority = r->change.priority;
    if (r->change.set_time_limit)
        j->spec.time_limit_ms = r->change.time_limit_ms;
}

static int note_config(struct control *c, const struct record *r)
{
    char *text = r->text == NULL ? NULL : mem_strdup(r->text);
    if (r->text != NULL && text == NULL)
        return -ENOMEM;
    mem_free(c->config_text);
    c->config_text = text;
    c->config_version++;
    return 0;
}

int control_note(struct control *c, const struct record *r)
{
    if (r->kind == REC_CONFIG)
        return note_config(c, r);
    if (r->job == 0)
        return 0;
    int res = r->kind == REC_JOB_SUBMIT ? note_submit(c, r) : 0;
    struct ctl_job *j = control_find_job(c, r->job);
    if (res < 0 || j == NULL)
        return res < 0 ? res : -EINVAL;
    if (r->kind == REC_JOB_START)
        res = note_start(j, r);
    else if (r->kind == REC_WORKER_EXIT)
        res = note_exit(j, r);
    else if (r->kind == REC_JOB_UPDATE)
        note_update(j, r);
    if (res == 0)
        res = note_mark(j, r);
    if (res == 0 && r->kind == REC_JOB_END) {
        note_end(c, j, r);
        forget_oldest(c);
    }
    return res;
}

/* --- records --- */

/* Numbers a record that core has applied, notes it, and keeps it for the store. Consumes it. */
static int keep(struct control *c, struct record *r)
{
    r->seq = c->next_seq;
    int res = mem_grow(&c->unsaved, &c->unsaved_cap, c->unsaved_len + 1, sizeof *c->unsaved);
    if (res == 0)
        res = control_note(c, r);
    if (res < 0) {
        record_done(r);
        return res;
    }
    c->next_seq++;
    c->unsaved[c->unsaved_len++] = *r;
    *r = (struct record){0};
    return 0;
}

int control_record(struct control *c, struct record *r, struct err *e)
{
    r->seq = c->next_seq;
    int res = core_apply(c->core, r, e);
    if (res < 0) {
        record_done(r);
        return res;
    }
    return keep(c, r);
}

int control_load(struct control *c, const struct record *r, struct err *e)
{
    if (r->seq < c->next_seq)
        return err_set(e, -EINVAL, "record %llu comes after record %llu", (unsigned long long)r->seq,
                       (unsigned long long)(c->next_seq - 1));
    int res = core_apply(c->core, r, e);
    if (res == 0)
        res = control_note(c, r);
    if (res == 0)
        c->next_seq = r->seq + 1;
    return res;
}

static int emit(void *arg, struct record *r)
{
    return keep(arg, r);
}

int control_step(struct control *c, int64_t now_ms)
{
    return c->reconciled ? core_pass(c->core, now_ms, emit, c) : 0;
}

int64_t control_next_wake_ms(const struct control *c)
{
    return c->reconciled ? core_next_wake_ms(c->core) : INT64_MAX;
}

bool control_is_reconciled(const struct control *c)
{
    return c->reconciled;
}

/* --- effects --- */

int control_effect(struct control *c, enum effect_kind kind, uint64_t job, uint32_t attempt, char *text)
{
    if (c->effects_at == c->effects_len)
        c->effects_at = c->effects_len = 0;
    if (mem_grow(&c->effects, &c->effects_cap, c->effects_len + 1, sizeof *c->effects) < 0) {
        mem_free(text);
        return -ENOMEM;
    }
    c->effects[c->effects_len++] = (struct ctl_effect){.kind = kind, .job = job, .attempt = attempt, .text = text};
    return 0;
}

const struct record *control_unsaved(const struct control *c, size_t *ret_len)
{
    *ret_len = c->unsaved_len;
    return c->unsaved;
}

static int publish(struct control *c, const struct record *r)
{
    struct strbuf text = {0};
    struct jsonw w;
    jsonw_init(&w, &text);
    control_write_event(c, r, &w);
    char *json = strbuf_take(&text);
    if (json == NULL)
        return -ENOMEM;
    int res = control_effect(c, EFFECT_PUBLISH, r->job, r->attempt, json);
    if (res == 0)
        c->effects[c->effects_len - 1].seq = r->seq;
    return res;
}

/*
 * What a saved record asks the engine for. A lack of memory here loses no decision: the record is on disk, and the
 * reconcile after a restart asks for the same again.
 */
static void effects_of(struct control *c, const struct record *r)
{
    if (r->kind == REC_JOB_START)
        (void)control_effect(c, EFFECT_LAUNCH, r->job, r->attempt, NULL);
    else if (r->kind == REC_JOB_STOP)
        (void)control_effect(c, EFFECT_TERMINATE, r->job, r->attempt, NULL);
    else if ((r->kind == REC_JOB_END || r->kind == REC_JOB_RETRY) && r->attempt > 0)
        (void)control_effect(c, EFFECT_FORGET, r->job, r->attempt, NULL);
    (void)publish(c, r);
}

void control_saved(struct control *c)
{
    for (size_t i = 0; i < c->unsaved_len; i++) {
        effects_of(c, &c->unsaved[i]);
        record_done(&c->unsaved[i]);
    }
    c->unsaved_len = 0;
}

/* Fills in a launch from what is true now; false when the attempt is over already. */
static bool fill_launch(const struct control *c, struct effect *x)
{
    const struct job *j = core_job(c->core, x->job);
    struct ctl_job *mine = control_find_job(c, x->job);
    if (j == NULL || mine == NULL || !job_holds(j) || j->attempt != x->attempt)
        return false;
    x->spec = &mine->spec;
    x->grants = j->grants;
    x->workers = j->workers;
    return true;
}

static int64_t grace_of(const struct control *c, uint64_t id)
{
    const struct job *j = core_job(c->core, id);
    return j != NULL && j->grace_ms > 0 ? j->grace_ms : core_config(c->core)->grace_ms;
}

bool control_next_effect(struct control *c, struct effect *ret)
{
    while (c->effects_at < c->effects_len) {
        struct ctl_effect *next = &c->effects[c->effects_at++];
        mem_free(c->effect_text);
        c->effect_text = next->text;
        *ret = (struct effect){.kind = next->kind,
                               .job = next->job,
                               .attempt = next->attempt,
                               .seq = next->seq,
                               .text = next->text,
                               .grace_ms = grace_of(c, next->job)};
        next->text = NULL;
        if (ret->kind != EFFECT_LAUNCH || fill_launch(c, ret))
            return true;
    }
    return false;
}

int control_audit(struct control *c)
{
    struct err e = {0};
    int r = core_audit(c->core, &e);
    c->audit_ok = r == 0;
    (void)memcpy(c->audit_text, e.text, sizeof c->audit_text);
    if (r == -EPROTO)
        (void)control_effect(c, EFFECT_ALERT, 0, 0, mem_strdup(e.text));
    return r;
}

/* --- small questions --- */

bool control_may(const struct caller *who, const struct ctl_job *j)
{
    return who->admin || who->uid == j->spec.uid;
}

bool control_exit_status(const struct control *c, uint64_t id, int *ret_code)
{
    const struct job *j = core_job(c->core, id);
    if (j == NULL || !job_ended(j))
        return false;
    *ret_code = j->state == JOB_FAILED && j->exit_status == 0 ? 1 : j->exit_status;
    return true;
}

int control_job_facts(const struct control *c, uint64_t id, uint32_t *ret_uid, uint32_t *ret_attempt,
                      uint32_t *ret_workers, bool *ret_ended)
{
    const struct job *j = core_job(c->core, id);
    const struct ctl_job *mine = control_find_job(c, id);
    if (j == NULL || mine == NULL)
        return -ENOENT;
    *ret_uid = mine->spec.uid;
    *ret_attempt = j->attempt;
    *ret_workers = j->workers;
    *ret_ended = job_ended(j);
    return 0;
}

const char *control_node_name(const struct control *c, uint32_t node)
{
    const struct cluster *cl = core_cluster(c->core);
    return node < cl->nodes_len ? cl->nodes[node]->name : "";
}

const char *control_gpu_uuid(const struct control *c, uint32_t node, uint32_t gpu)
{
    const struct cluster *cl = core_cluster(c->core);
    return node < cl->nodes_len && gpu < cl->nodes[node]->gpus_len ? cl->nodes[node]->gpus[gpu].uuid : "";
}

const struct config *control_config(const struct control *c)
{
    return core_config(c->core);
}

const char *control_config_text(const struct control *c, uint64_t *ret_version)
{
    *ret_version = c->config_version;
    return c->config_text == NULL ? "" : c->config_text;
}
