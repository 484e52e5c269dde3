/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/simulated/cluster.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "config/cluster_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Numbers of enum link_class (core/cluster.h), which an engine does not see. */
enum { LINK_IS_SELF, LINK_IS_NVLINK, LINK_IS_PIX, LINK_IS_PXB, LINK_IS_PHB, LINK_IS_NODE, LINK_IS_SYS };

static uint8_t link_of(const struct cluster_node *n, uint32_t a, uint32_t b)
{
    if (a == b)
        return LINK_IS_SELF;
    if (n->links == CLUSTER_LINKS_NVLINK || (n->links == CLUSTER_LINKS_NVLINK_PAIRS && a / 2 == b / 2))
        return LINK_IS_NVLINK;
    if (a / 2 == b / 2)
        return LINK_IS_PIX;
    uint32_t half = (n->gpus + 1) / 2;
    return a / half == b / half ? LINK_IS_NODE : LINK_IS_SYS;
}

static uint8_t island_of(const struct cluster_node *n, uint32_t gpu)
{
    switch (n->links) {
    case CLUSTER_LINKS_NVLINK:
        return 0;
    case CLUSTER_LINKS_NVLINK_PAIRS:
        return (uint8_t)(gpu / 2);
    case CLUSTER_LINKS_PCIE:
        break;
    }
    return (uint8_t)gpu;
}

static uint64_t fnv1a(const char *text, uint64_t hash)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return hash;
}

/* The same name and index give the same uuid for ever, so that placements are found again after a
 * restart. */
static void make_uuid(const char *node, uint32_t gpu, char out[ENGINE_UUID_SIZE])
{
    uint64_t high = fnv1a(node, 0xcbf29ce484222325u);
    uint64_t low = fnv1a(node, high ^ 0x9e3779b97f4a7c15u);
    snprintf(out, ENGINE_UUID_SIZE, "GPU-%08x-%04x-%04x-%04x-%010llx%02x", (unsigned)(high >> 32),
             (unsigned)(high >> 16) & 0xffff, (unsigned)high & 0xffff, (unsigned)(low >> 48),
             (unsigned long long)(low & 0xffffffffff), gpu);
}

static void link_label(const struct cluster_node *n, uint32_t a, uint32_t b, char out[16])
{
    static const char *const labels[] = {"X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS"};
    uint8_t link = link_of(n, a, b);
    if (link == LINK_IS_NVLINK)
        snprintf(out, 16, "NV%u", n->nvlinks);
    else
        snprintf(out, 16, "%s", labels[link]);
}

/* The matrix in the layout of `nvidia-smi topo -m`; NULL when there is no memory or no card. */
static char *topology_text(const struct cluster_node *n)
{
    struct strbuf b = {0};
    if (n->gpus == 0)
        return NULL;
    for (uint32_t i = 0; i < n->gpus; i++)
        strbuf_printf(&b, "\tGPU%u", i);
    strbuf_putc(&b, '\n');
    for (uint32_t i = 0; i < n->gpus; i++) {
        strbuf_printf(&b, "GPU%u", i);
        for (uint32_t j = 0; j < n->gpus; j++) {
            char label[16];
            link_label(n, i, j, label);
            strbuf_printf(&b, "\t%s%s", i == j ? " " : "", label);
        }
        strbuf_putc(&b, '\n');
    }
    char *text = strbuf_take(&b);
    strbuf_done(&b);
    return text;
}

static void fill_node(struct sim_node *out, const struct cluster_node *in)
{
    struct engine_node *n = &out->node;
    snprintf(n->name, sizeof(n->name), "%s", in->name);
    snprintf(n->rack, sizeof(n->rack), "%s", in->rack);
    n->simulated = true;
    n->cpu_milli = in->cpu_milli;
    n->mem_mib = in->mem_mib;
    n->gpus_len = in->gpus;
    for (uint32_t i = 0; i < in->gpus; i++) {
        struct engine_gpu *g = &n->gpus[i];
        make_uuid(in->name, i, g->uuid);
        snprintf(g->model, sizeof(g->model), "%s", in->gpu_model);
        g->mem_mib = in->gpu_mem_mib;
        g->island = island_of(in, i);
        g->healthy = true;
        for (uint32_t j = 0; j < in->gpus; j++)
            n->link[i][j] = link_of(in, i, j);
    }
    out->topology = topology_text(in);
    n->topology = out->topology;
    out->changed = true;
}

int sim_cluster_load(struct sim_cluster *ret, const char *path, struct err *e)
{
    struct cluster_file file = {0};
    int rc = cluster_file_load(path, &file, e);
    if (rc != 0)
        return rc;
    struct sim_cluster c = {.nodes = mem_alloc(file.len, sizeof(*c.nodes))};
    intern_init(&c.names);
    if (c.nodes == NULL)
        rc = -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < file.len; i++) {
        fill_node(&c.nodes[i], &file.nodes[i]);
        c.len = i + 1;
        if (intern_id(&c.names, file.nodes[i].name) != i ||
            (c.nodes[i].node.gpus_len > 0 && c.nodes[i].topology == NULL))
            rc = -ENOMEM; /* names are unique: the file's check */
    }
    cluster_file_done(&file);
    if (rc != 0) {
        sim_cluster_done(&c);
        return err_set(e, rc, "%s: out of memory", path);
    }
    *ret = c;
    return 0;
}

void sim_cluster_done(struct sim_cluster *c)
{
    for (uint32_t i = 0; i < c->len; i++)
        mem_free(c->nodes[i].topology);
    mem_free(c->nodes);
    intern_done(&c->names);
    *c = (struct sim_cluster){0};
}

struct sim_node *sim_cluster_find(const struct sim_cluster *c, const char *name)
{
    uint32_t id = intern_find(&c->names, name);
    return id == INTERN_NONE ? NULL : &c->nodes[id];
}

int sim_node_card(const struct sim_node *n, const char *uuid)
{
    for (uint32_t i = 0; i < n->node.gpus_len; i++)
        if (strcmp(n->node.gpus[i].uuid, uuid) == 0)
            return (int)i;
    return -1;
}

uint32_t sim_node_samples(const struct sim_node *n, struct engine_gpu_sample *ret)
{
    for (uint32_t i = 0; i < n->node.gpus_len; i++) {
        struct engine_gpu_sample *s = &ret[i];
        uint32_t util = n->busy_milli[i] / 10;
        uint64_t total = n->node.gpus[i].mem_mib;
        memcpy(s->uuid, n->node.gpus[i].uuid, sizeof(s->uuid));
        s->util_pct = (int32_t)(util > 100 ? 100 : util);
        s->mem_used_mib = (int64_t)(n->used_mib[i] > total ? total : n->used_mib[i]);
        s->power_w = 60 + s->util_pct * 3;
        s->temp_c = 32 + s->util_pct / 3;
    }
    return n->node.gpus_len;
}
