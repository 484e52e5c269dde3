/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine reports becomes records; what is known already becomes none, so that an engine may repeat itself as
 * often as it likes (after a reconcile it does).
 */
#include "base/mem.h"
#include "control/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct ctl_node *node_extra(struct control *c, uint32_t id)
{
    if (mem_grow(&c->nodes, &c->nodes_cap, (size_t)id + 1, sizeof *c->nodes) < 0)
        return NULL;
    return &c->nodes[id];
}

/* The rack that the configuration names for the node, if any. */
static void settle_rack(const struct config *cfg, struct node_desc *d)
{
    for (size_t i = 0; i < cfg->racks_len; i++)
        for (size_t k = 0; k < cfg->racks[i].nodes_len; k++)
            if (strcmp(cfg->racks[i].nodes[k], d->name) == 0)
                memcpy(d->rack, cfg->racks[i].name, sizeof d->rack);
}

/* Copies field by field, so that two equal descriptions are equal bytes. */
static void copy_desc(struct node_desc *to, const struct node_desc *from)
{
    memset(to, 0, sizeof *to);
    (void)snprintf(to->name, sizeof to->name, "%s", from->name);
    (void)snprintf(to->rack, sizeof to->rack, "%s", from->rack);
    to->cpu_milli = from->cpu_milli;
    to->mem_mib = from->mem_mib;
    to->gpus_len = from->gpus_len < NODE_GPUS_MAX ? from->gpus_len : NODE_GPUS_MAX;
    for (uint32_t i = 0; i < to->gpus_len; i++) {
        (void)snprintf(to->gpus[i].uuid, sizeof to->gpus[i].uuid, "%s", from->gpus[i].uuid);
        (void)snprintf(to->gpus[i].model, sizeof to->gpus[i].model, "%s", from->gpus[i].model);
        to->gpus[i].mem_mib = from->gpus[i].mem_mib;
        to->gpus[i].island = from->gpus[i].island;
        to->gpus[i].healthy = from->gpus[i].healthy;
        for (uint32_t k = 0; k < to->gpus_len; k++)
            to->link[i][k] = from->link[i][k];
    }
}

static int remember_node(struct control *c, uint32_t id, const struct node_desc *desc, const char *topology,
                         bool simulated)
{
    struct ctl_node *x = node_extra(c, id);
    char *text = topology == NULL ? NULL : mem_strdup(topology);
    if (x == NULL || (topology != NULL && text == NULL)) {
        mem_free(text);
        return -ENOMEM;
    }
    mem_free(x->topology);
    x->topology = text;
    x->simulated = simulated;
    if (x->desc == NULL)
        x->desc = mem_alloc(1, sizeof *x->desc);
    if (x->desc == NULL)
        return -ENOMEM;
    *x->desc = *desc;
    return 0;
}

int control_engine_node(struct control *c, int64_t now_ms, const struct node_desc *desc, const char *topology,
                        bool simulated, struct err *e)
{
    CLEANUP_FREE struct node_desc *own = mem_alloc(1, sizeof *own);
    if (own == NULL)
        return -ENOMEM;
    copy_desc(own, desc);
    settle_rack(core_config(c->core), own);
    const struct node *n = cluster_find(core_cluster(c->core), own->name);
    const struct ctl_node *x = n == NULL || n->id >= c->nodes_cap ? NULL : &c->nodes[n->id];
    if (n != NULL && n->state == NODE_UP && x != NULL && x->desc != NULL && memcmp(x->desc, own, sizeof *own) == 0)
        return remember_node(c, n->id, own, topology, simulated);
    struct record rec = {.kind = REC_NODE, .time_ms = now_ms, .node = mem_alloc(1, sizeof *rec.node)};
    if (rec.node == NULL)
        return -ENOMEM;
    *rec.node = *own;
    int r = control_record(c, &rec, e);
    if (r < 0)
        return r;
    n = cluster_find(core_cluster(c->core), own->name);
    return n == NULL ? -EINVAL : remember_node(c, n->id, own, topology, simulated);
}

int control_engine_node_down(struct control *c, int64_t now_ms, const char *name, const char *why)
{
    const struct node *n = cluster_find(core_cluster(c->core), name);
    if (n == NULL || n->state != NODE_UP)
        return 0;
    struct record rec = {.kind = REC_NODE_STATE,
                         .time_ms = now_ms,
                         .node_id = n->id,
                         .node_state = NODE_DOWN,
                         .draining = n->draining,
                         .text = mem_strdup(why == NULL ? "" : why)};
    if (rec.text == NULL)
        return -ENOMEM;
    return control_record(c, &rec, NULL);
}

static const struct job *current_job(const struct control *c, uint64_t job, uint32_t attempt)
{
    const struct job *j = core_job(c->core, job);
    return j != NULL && job_holds(j) && j->attempt == attempt ? j : NULL;
}

int control_engine_started(struct control *c, int64_t now_ms, uint64_t job, uint32_t attempt)
{
    const struct job *j = current_job(c, job, attempt);
    if (j == NULL)
        return 0;
    control_find_job(c, job)->seen = true;
    if (j->state != JOB_STARTING)
        return 0;
    struct record rec = {.kind = REC_JOB_RUNNING, .time_ms = now_ms, .job = job, .attempt = attempt};
    return control_record(c, &rec, NULL);
}

int control_engine_exited(struct control *c, int64_t now_ms, uint64_t job, uint32_t attempt,
                          const struct worker_exit *exit)
{
    const struct job *j = current_job(c, job, attempt);
    if (j == NULL)
        return 0;
    if (exit->worker >= j->workers)
        return -EINVAL;
    control_find_job(c, job)->seen = true;
    if (j->exited[exit->worker])
        return 0;
    struct record rec = {.kind = REC_WORKER_EXIT, .time_ms = now_ms, .job = job, .attempt = attempt, .exit = *exit};
    return control_record(c, &rec, NULL);
}

void control_engine_telemetry(struct control *c, int64_t now_ms, const char *node, const struct gpu_sample *samples,
                              size_t len, const char *source)
{
    const struct node *n = cluster_find(core_cluster(c->core), node);
    struct ctl_node *x = n == NULL ? NULL : node_extra(c, n->id);
    if (x == NULL)
        return;
    x->samples_len = (uint32_t)(len < NODE_GPUS_MAX ? len : NODE_GPUS_MAX);
    memcpy(x->samples, samples, x->samples_len * sizeof *samples);
    x->samples_ms = now_ms;
    (void)snprintf(x->source, sizeof x->source, "%s", source == NULL ? "" : source);
}

/* --- reconcile --- */

struct control_expected *control_expected(const struct control *c, size_t *ret_len)
{
    size_t count = (size_t)(core_count(c->core, JOB_STARTING) + core_count(c->core, JOB_RUNNING));
    struct control_expected *rows = count == 0 ? NULL : mem_alloc(count, sizeof *rows);
    *ret_len = 0;
    if (rows == NULL)
        return NULL;
    for (const struct job *j = core_job_after(c->core, 0); j != NULL; j = core_job_after(c->core, j->id)) {
        struct ctl_job *mine = control_find_job(c, j->id);
        if (!job_holds(j) || mine == NULL)
            continue;
        mine->seen = false;
        rows[(*ret_len)++] = (struct control_expected){.job = j->id,
                                                       .attempt = j->attempt,
                                                       .spec = &mine->spec,
                                                       .grants = j->grants,
                                                       .workers = j->workers,
                                                       .started_ms = j->running_ms,
                                                       .stopping = j->stop_cause != CAUSE_NONE};
    }
    return rows;
}

/* Reports every worker that has not ended as gone. */
static int settle_gone(struct control *c, int64_t now_ms, const struct job *j, enum cause cause, const char *detail)
{
    for (uint32_t i = 0; i < j->workers; i++) {
        if (j->exited[i])
            continue;
        struct worker_exit x = {.worker = i, .code = -1, .cause = cause};
        (void)snprintf(x.detail, sizeof x.detail, "%s", detail);
        struct record rec = {
            .kind = REC_WORKER_EXIT, .time_ms = now_ms, .job = j->id, .attempt = j->attempt, .exit = x};
        int r = control_record(c, &rec, NULL);
        if (r < 0)
            return r;
    }
    return 0;
}

static int settle_attempt(struct control *c, int64_t now_ms, const struct job *j, const struct ctl_job *mine)
{
    bool stopping = j->stop_cause != CAUSE_NONE;
    if (mine->seen)
        return stopping ? control_effect(c, EFFECT_TERMINATE, j->id, j->attempt, NULL) : 0;
    if (j->state == JOB_RUNNING)
        return settle_gone(c, now_ms, j, CAUSE_LOST, "its runner was not found after a restart of the daemon");
    if (stopping)
        return settle_gone(c, now_ms, j, CAUSE_LAUNCH_FAILED, "it was stopped before it started");
    /* The decision was saved and the daemon ended before the engine heard of it. */
    return control_effect(c, EFFECT_LAUNCH, j->id, j->attempt, NULL);
}

/* A node that the engine did not name after a restart has left: another file, another engine, another machine. */
static int settle_nodes(struct control *c, int64_t now_ms)
{
    const struct cluster *cl = core_cluster(c->core);
    for (uint32_t i = 0; i < cl->nodes_len; i++) {
        if (cl->nodes[i]->state == NODE_GONE || (i < c->nodes_cap && c->nodes[i].desc != NULL))
            continue;
        struct record rec = {.kind = REC_NODE_STATE,
                             .time_ms = now_ms,
                             .node_id = i,
                             .node_state = NODE_GONE,
                             .draining = cl->nodes[i]->draining,
                             .text = mem_strdup("the engine does not have it any more")};
        int r = rec.text == NULL ? -ENOMEM : control_record(c, &rec, NULL);
        if (r < 0)
            return r;
    }
    return 0;
}

int control_reconciled(struct control *c, int64_t now_ms)
{
    int nodes = settle_nodes(c, now_ms);
    if (nodes < 0)
        return nodes;
    for (const struct job *j = core_job_after(c->core, 0); j != NULL; j = core_job_after(c->core, j->id)) {
        const struct ctl_job *mine = control_find_job(c, j->id);
        if (!job_holds(j) || mine == NULL)
            continue;
        int r = settle_attempt(c, now_ms, j, mine);
        if (r < 0)
            return r;
    }
    c->reconciled = true;
    return 0;
}
