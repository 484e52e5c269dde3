/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about the pool: nodes, topology, queues, tenants. */
#include "control/state.h"

#include <errno.h>
#include <string.h>

static const struct ctl_node *extra_of(const struct control *c, uint32_t id)
{
    static const struct ctl_node none;
    return id < c->nodes_cap ? &c->nodes[id] : &none;
}

static void write_optional(struct jsonw *w, const char *key, int64_t value)
{
    jsonw_key(w, key);
    if (value < 0)
        jsonw_null(w);
    else
        jsonw_i64(w, value);
}

static void write_sample(const struct ctl_node *x, const char *uuid, struct jsonw *w)
{
    const struct gpu_sample *s = NULL;
    for (uint32_t i = 0; i < x->samples_len && s == NULL; i++)
        if (strcmp(x->samples[i].uuid, uuid) == 0)
            s = &x->samples[i];
    write_optional(w, "util_pct", s == NULL ? -1 : s->util_pct);
    write_optional(w, "mem_used_mib", s == NULL ? -1 : s->mem_used_mib);
    write_optional(w, "power_w", s == NULL ? -1 : s->power_w);
    write_optional(w, "temp_c", s == NULL ? -1 : s->temp_c);
    jsonw_key_str(w, "source", s == NULL ? NULL : x->source);
}

static void write_gpu_jobs(const struct control *c, const struct node *n, uint32_t gpu, struct jsonw *w)
{
    uint32_t len;
    const struct holder *holders = core_holders(c->core, n->id, &len);
    jsonw_key(w, "jobs");
    jsonw_array(w);
    for (uint32_t i = 0; i < len; i++) {
        const struct job *j = core_job(c->core, holders[i].job);
        const struct grant *g = &j->grants[holders[i].worker];
        if ((g->gpu_mask >> gpu & 1) == 0)
            continue;
        const struct ctl_job *mine = control_find_job(c, j->id);
        jsonw_object(w);
        jsonw_key_u64(w, "id", j->id);
        jsonw_key_u64(w, "worker", holders[i].worker);
        jsonw_key_str(w, "name", mine == NULL ? NULL : mine->spec.name);
        jsonw_key_str(w, "user", mine == NULL ? NULL : mine->spec.user);
        jsonw_key_u64(w, "milli", g->milli);
        jsonw_key_u64(w, "mem_mib", g->milli == GPU_MILLI ? n->gpus[gpu].mem_mib : g->gpu_mem_mib);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void write_gpu(const struct control *c, const struct node *n, uint32_t i, struct jsonw *w)
{
    const struct gpu *g = &n->gpus[i];
    jsonw_object(w);
    jsonw_key_u64(w, "index", i);
    jsonw_key_str(w, "uuid", g->uuid);
    jsonw_key_str(w, "model", intern_name(&core_cluster(c->core)->models, g->model));
    jsonw_key_u64(w, "mem_mib", g->mem_mib);
    jsonw_key_u64(w, "mem_free_mib", g->free_mem_mib);
    jsonw_key_u64(w, "free_milli", g->free_milli);
    jsonw_key_bool(w, "whole", g->whole);
    jsonw_key_bool(w, "healthy", g->healthy);
    jsonw_key_u64(w, "island", g->island);
    write_sample(extra_of(c, n->id), g->uuid, w);
    write_gpu_jobs(c, n, i, w);
    jsonw_end_object(w);
}

static void write_node(const struct control *c, const struct node *n, struct jsonw *w)
{
    static const char *const states[] = {"up", "down", "gone"};
    const struct ctl_node *x = extra_of(c, n->id);
    jsonw_object(w);
    jsonw_key_str(w, "name", n->name);
    jsonw_key_str(w, "rack", intern_name(&core_cluster(c->core)->racks, n->rack));
    jsonw_key_str(w, "state", states[n->state]);
    jsonw_key_bool(w, "draining", n->draining);
    jsonw_key_bool(w, "simulated", x->simulated);
    jsonw_key_u64(w, "cpu_milli", n->cpu_milli);
    jsonw_key_u64(w, "cpu_free_milli", n->free_cpu_milli);
    jsonw_key_u64(w, "mem_mib", n->mem_mib);
    jsonw_key_u64(w, "mem_free_mib", n->free_mem_mib);
    jsonw_key_time(w, "sampled_at", x->samples_ms);
    jsonw_key(w, "gpus");
    jsonw_array(w);
    for (uint32_t i = 0; i < n->gpus_len; i++)
        write_gpu(c, n, i, w);
    jsonw_end_array(w);
    jsonw_end_object(w);
}

void control_write_nodes(const struct control *c, int64_t now_ms, struct jsonw *w)
{
    (void)now_ms;
    const struct cluster *cl = core_cluster(c->core);
    jsonw_object(w);
    jsonw_key(w, "nodes");
    jsonw_array(w);
    for (uint32_t i = 0; i < cl->nodes_len; i++)
        if (cl->nodes[i]->state != NODE_GONE)
            write_node(c, cl->nodes[i], w);
    jsonw_end_array(w);
    jsonw_end_object(w);
}

int control_write_node(const struct control *c, const char *name, struct jsonw *w, struct err *e)
{
    const struct node *n = cluster_find(core_cluster(c->core), name);
    if (n == NULL || n->state == NODE_GONE)
        return err_set(e, -ENOENT, "there is no node \"%s\"", name);
    write_node(c, n, w);
    return 0;
}

static const char *link_name(uint8_t link)
{
    static const char *const names[] = {"X", "NVLINK", "PIX", "PXB", "PHB", "NODE", "SYS", "?"};
    return link < sizeof names / sizeof names[0] ? names[link] : "?";
}

int control_write_topology(const struct control *c, const char *node, struct jsonw *w, struct err *e)
{
    const struct cluster *cl = core_cluster(c->core);
    const struct node *n = node != NULL && node[0] != '\0' ? cluster_find(cl, node) : NULL;
    if (n == NULL && (node == NULL || node[0] == '\0') && cl->nodes_len > 0)
        n = cl->nodes[0];
    if (n == NULL)
        return err_set(e, -ENOENT, "there is no node \"%s\"", node == NULL ? "" : node);
    const struct ctl_node *x = extra_of(c, n->id);
    jsonw_object(w);
    jsonw_key_str(w, "node", n->name);
    jsonw_key_bool(w, "simulated", x->simulated);
    jsonw_key_str(w, "text", x->topology);
    jsonw_key(w, "gpus");
    jsonw_array(w);
    for (uint32_t i = 0; i < n->gpus_len; i++)
        jsonw_str(w, n->gpus[i].uuid);
    jsonw_end_array(w);
    jsonw_key(w, "links");
    jsonw_array(w);
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        jsonw_array(w);
        for (uint32_t k = 0; k < n->gpus_len; k++)
            jsonw_str(w, i == k ? "X" : link_name(n->link[i][k]));
        jsonw_end_array(w);
    }
    jsonw_end_array(w);
    jsonw_end_object(w);
    return 0;
}

static void write_cap(struct jsonw *w, const char *key, uint64_t cap)
{
    jsonw_key(w, key);
    if (cap == NO_CAP)
        jsonw_null(w);
    else
        jsonw_u64(w, cap);
}

static void write_account(struct jsonw *w, const char *name, const struct account *a, struct caps caps)
{
    jsonw_key_str(w, "name", name);
    jsonw_key_u64(w, "gpus_milli", a->gpus_milli);
    jsonw_key_u64(w, "jobs", a->jobs);
    jsonw_key_u64(w, "cpu_milli", a->cpu_milli);
    jsonw_key_u64(w, "mem_mib", a->mem_mib);
    write_cap(w, "cap_gpus_milli", caps.gpus_milli);
    write_cap(w, "cap_jobs", caps.jobs);
}

void control_write_queues(const struct control *c, struct jsonw *w)
{
    const struct config *cfg = core_config(c->core);
    jsonw_object(w);
    jsonw_key(w, "queues");
    jsonw_array(w);
    for (size_t i = 0; i < cfg->queues_len; i++) {
        const struct config_queue *q = &cfg->queues[i];
        jsonw_object(w);
        write_account(w, q->name, core_queue_account(c->core, core_queue_id(c->core, q->name)), q->caps);
        jsonw_key_i64(w, "priority", q->priority);
        jsonw_key_i64(w, "default_time_ms", q->default_time_ms);
        jsonw_key_i64(w, "max_time_ms", q->max_time_ms);
        jsonw_key_bool(w, "default", strcmp(q->name, cfg->default_queue) == 0);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_end_object(w);
}

/* Users that configuration names for the tenant, and what they hold. */
static void write_users(const struct control *c, const char *tenant, struct jsonw *w)
{
    const struct config *cfg = core_config(c->core);
    jsonw_key(w, "users");
    jsonw_array(w);
    for (size_t i = 0; i < cfg->users_len; i++) {
        const struct config_user *u = &cfg->users[i];
        if (strcmp(u->tenant, tenant) != 0)
            continue;
        jsonw_object(w);
        write_account(w, u->name, core_user_account(c->core, core_user_id(c->core, u->name)), u->caps);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void write_tenant(const struct control *c, const char *name, struct jsonw *w)
{
    jsonw_object(w);
    write_account(w, name, core_tenant_account(c->core, core_tenant_id(c->core, name)),
                  core_tenant_caps(c->core, name));
    write_users(c, name, w);
    jsonw_end_object(w);
}

void control_write_tenants(const struct control *c, struct jsonw *w)
{
    const struct config *cfg = core_config(c->core);
    bool default_listed = false;
    jsonw_object(w);
    jsonw_key(w, "tenants");
    jsonw_array(w);
    for (size_t i = 0; i < cfg->tenants_len; i++) {
        default_listed = default_listed || strcmp(cfg->tenants[i].name, cfg->default_tenant) == 0;
        write_tenant(c, cfg->tenants[i].name, w);
    }
    if (!default_listed)
        write_tenant(c, cfg->default_tenant, w);
    jsonw_end_array(w);
    jsonw_end_object(w);
}
