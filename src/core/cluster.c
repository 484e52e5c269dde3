/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool as reported by the engines. The delicate part is the report of a node that is in use:
 * grants name cards by their number on the node, so a card may not change its number while anything
 * on the node is held, whatever order the driver lists the cards in after a restart. merge_slots()
 * settles that. Example: cards A B C, B held, now reported as C D: C keeps number 2, D takes number
 * 0 (A is gone and idle), B stays as number 1, unhealthy, until it is given back.
 */
#include "core/cluster.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define CHANGES_MIN      1024
#define CHANGES_PER_NODE 2

int cluster_init(struct cluster *c)
{
    *c = (struct cluster){0};
    intern_init(&c->names);
    intern_init(&c->models);
    intern_init(&c->racks);
    return mem_grow(&c->changes, &c->changes_cap, CHANGES_MIN, sizeof *c->changes);
}

void cluster_done(struct cluster *c)
{
    for (uint32_t i = 0; i < c->nodes_len; i++)
        mem_free(c->nodes[i]);
    mem_free(c->nodes);
    mem_free(c->changes);
    intern_done(&c->names);
    intern_done(&c->models);
    intern_done(&c->racks);
    *c = (struct cluster){0};
}

struct node *cluster_find(const struct cluster *c, const char *name)
{
    uint32_t id = intern_find(&c->names, name);
    /* A name without a node: memory ran out between the two. */
    return id == INTERN_NONE || id >= c->nodes_len ? NULL : c->nodes[id];
}

bool node_open(const struct node *n)
{
    return n->state == NODE_UP && !n->draining;
}

void cluster_touch(struct cluster *c, uint32_t id)
{
    assert(id < c->nodes_len);
    size_t len = (size_t)(c->changes_end - c->changes_base);
    if (len == c->changes_cap) {
        size_t drop = len / 2;
        memmove(c->changes, c->changes + drop, (len - drop) * sizeof *c->changes);
        c->changes_base += drop;
        len -= drop;
    }
    c->changes[len] = id;
    c->changes_end++;
}

void cluster_set_rank(struct cluster *c, uint32_t id, uint32_t rank)
{
    assert(id < c->nodes_len);
    if (c->nodes[id]->rank == rank)
        return;
    c->nodes[id]->rank = rank;
    c->layout_generation++;
}

void cluster_set_state(struct cluster *c, uint32_t id, enum node_state state)
{
    assert(id < c->nodes_len);
    if (c->nodes[id]->state == state)
        return;
    c->nodes[id]->state = state;
    c->topology_generation++;
    cluster_touch(c, id);
}

void cluster_set_draining(struct cluster *c, uint32_t id, bool draining)
{
    assert(id < c->nodes_len);
    if (c->nodes[id]->draining == draining)
        return;
    c->nodes[id]->draining = draining;
    c->topology_generation++;
    cluster_touch(c, id);
}

static char lower(char ch)
{
    return ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
}

/* True when `name` equals the `len` bytes at `word`, case aside. */
static bool same_word(const char *name, const char *word, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (name[i] == '\0' || lower(name[i]) != lower(word[i]))
            return false;
    }
    return name[len] == '\0';
}

uint64_t cluster_model_mask(const struct cluster *c, const char *models)
{
    if (models[0] == '\0')
        return UINT64_MAX;
    uint64_t mask = 0;
    const char *word = models;
    for (;;) {
        size_t len = strcspn(word, "|");
        for (uint32_t i = 0; i < c->models.count; i++) {
            if (same_word(intern_name(&c->models, i), word, len))
                mask |= UINT64_C(1) << i;
        }
        if (word[len] == '\0')
            return mask;
        word += len + 1;
    }
}

static int check_gpus(const struct node_desc *d, struct err *e)
{
    for (uint32_t i = 0; i < d->gpus_len; i++) {
        const struct gpu_desc *g = &d->gpus[i];
        if (g->uuid[0] == '\0' || memchr(g->uuid, '\0', sizeof g->uuid) == NULL)
            return err_set(e, -EINVAL, "node '%s': gpus[%u].uuid must have 1 to %d bytes", d->name, i, UUID_SIZE - 1);
        if (memchr(g->model, '\0', sizeof g->model) == NULL)
            return err_set(e, -EINVAL, "node '%s': gpus[%u].model is longer than %d bytes", d->name, i,
                           GPU_MODEL_SIZE - 1);
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(d->gpus[j].uuid, g->uuid) == 0)
                return err_set(e, -EINVAL, "node '%s': gpus[%u].uuid '%s' is that of gpus[%u] too", d->name, i, g->uuid,
                               j);
        }
        for (uint32_t j = 0; j < d->gpus_len; j++) {
            if (d->link[i][j] > LINK_UNKNOWN)
                return err_set(e, -EINVAL, "node '%s': link[%u][%u] is %u, allowed are 0 to %d", d->name, i, j,
                               d->link[i][j], LINK_UNKNOWN);
        }
    }
    return 0;
}

static int check_desc(const struct node_desc *d, struct err *e)
{
    if (memchr(d->name, '\0', sizeof d->name) == NULL || d->name[0] == '\0')
        return err_set(e, -EINVAL, "node: name must have 1 to %d bytes", NAME_SIZE - 1);
    if (memchr(d->rack, '\0', sizeof d->rack) == NULL)
        return err_set(e, -EINVAL, "node '%s': rack is longer than %d bytes", d->name, NAME_SIZE - 1);
    if (d->gpus_len > NODE_GPUS_MAX)
        return err_set(e, -EINVAL, "node '%s': %u GPUs, at most %d are allowed", d->name, d->gpus_len, NODE_GPUS_MAX);
    return check_gpus(d, e);
}

/* Ids for the rack and the models, made where new. */
static int intern_desc(struct cluster *c, const struct node_desc *d, uint32_t *ret_rack, uint8_t models[NODE_GPUS_MAX],
                       struct err *e)
{
    for (uint32_t i = 0; i < d->gpus_len; i++) {
        const char *model = d->gpus[i].model;
        uint32_t id = intern_find(&c->models, model);
        if (id == INTERN_NONE && c->models.count == MODELS_MAX)
            return err_set(e, -ENOSPC,
                           "node '%s': gpus[%u].model '%s' would be model number %d, at most %d are allowed", d->name,
                           i, model, MODELS_MAX + 1, MODELS_MAX);
        if (id == INTERN_NONE)
            id = intern_id(&c->models, model);
        if (id == INTERN_NONE)
            return err_set(e, -ENOMEM, "out of memory");
        models[i] = (uint8_t)id;
    }
    *ret_rack = intern_id(&c->racks, d->rack[0] == '\0' ? "default" : d->rack);
    return *ret_rack == INTERN_NONE ? err_set(e, -ENOMEM, "out of memory") : 0;
}

/* The number each reported card gets on the node. Returns how many numbers the node has then, 0 < x
 * <= max + 1. */
static uint32_t merge_slots(const struct node *n, const struct node_desc *d, uint32_t slot[NODE_GPUS_MAX])
{
    bool used[2 * NODE_GPUS_MAX] = {false};
    bool placed[NODE_GPUS_MAX] = {false};
    bool any_held = false;
    for (uint32_t s = 0; s < n->gpus_len; s++)
        any_held = any_held || n->gpus[s].holders > 0;
    for (uint32_t s = 0; any_held && s < n->gpus_len; s++) {
        for (uint32_t i = 0; i < d->gpus_len && !used[s]; i++) {
            if (strcmp(n->gpus[s].uuid, d->gpus[i].uuid) == 0) {
                slot[i] = s;
                placed[i] = used[s] = true;
            }
        }
        if (n->gpus[s].holders > 0)
            used[s] = true;
    }
    uint32_t next = 0;
    for (uint32_t i = 0; i < d->gpus_len; i++) {
        if (placed[i])
            continue;
        while (used[next])
            next++;
        slot[i] = next;
        used[next] = true;
    }
    uint32_t len = 0;
    for (uint32_t s = 0; s < 2 * NODE_GPUS_MAX; s++)
        len = used[s] ? s + 1 : len;
    return len;
}

static uint32_t grow_free_u32(uint32_t total, uint32_t held, uint32_t *ret_total)
{
    *ret_total = total < held ? held : total;
    return *ret_total - held;
}

/* One reported card onto its number, with what is held on it carried over. */
static void merge_gpu(struct gpu *g, const struct gpu_desc *d, uint8_t model)
{
    bool same = g->holders > 0; /* else the number may have belonged to another card */
    uint32_t held = same ? g->mem_mib - g->free_mem_mib : 0;
    if (same && g->whole) {
        g->mem_mib = d->mem_mib;
        g->free_mem_mib = 0;
    } else {
        g->free_mem_mib = grow_free_u32(d->mem_mib, held, &g->mem_mib);
    }
    if (!same) {
        g->free_milli = GPU_MILLI;
        g->whole = false;
    }
    memset(g->uuid, 0, sizeof g->uuid);
    memcpy(g->uuid, d->uuid, strlen(d->uuid));
    g->model = model;
    g->island = d->island;
    g->healthy = d->healthy;
}

static void merge_links(struct node *n, const struct node_desc *d, const uint32_t slot[NODE_GPUS_MAX])
{
    memset(n->link, LINK_UNKNOWN, sizeof n->link);
    for (uint32_t i = 0; i < NODE_GPUS_MAX; i++)
        n->link[i][i] = LINK_SELF;
    for (uint32_t i = 0; i < d->gpus_len; i++) {
        for (uint32_t j = 0; j < d->gpus_len; j++) {
            if (i != j)
                n->link[slot[i]][slot[j]] = d->link[i][j];
        }
    }
}

/* `n` as it is after the report; `len` from merge_slots(), at most NODE_GPUS_MAX. */
static void merge_node(struct node *n, const struct node_desc *d, const uint8_t models[NODE_GPUS_MAX],
                       const uint32_t slot[NODE_GPUS_MAX], uint32_t len)
{
    uint32_t held_cpu = n->cpu_milli - n->free_cpu_milli;
    n->free_cpu_milli = grow_free_u32(d->cpu_milli, held_cpu, &n->cpu_milli);
    uint64_t held_mem = n->mem_mib - n->free_mem_mib;
    n->mem_mib = d->mem_mib < held_mem ? held_mem : d->mem_mib;
    n->free_mem_mib = n->mem_mib - held_mem;
    uint32_t reported = 0;
    for (uint32_t i = 0; i < d->gpus_len; i++) {
        merge_gpu(&n->gpus[slot[i]], &d->gpus[i], models[i]);
        reported |= 1u << slot[i];
    }
    for (uint32_t s = 0; s < NODE_GPUS_MAX; s++) {
        struct gpu *g = &n->gpus[s];
        if ((reported >> s & 1) != 0)
            continue;
        if (g->holders > 0)
            g->healthy = false;
        else
            memset(g, 0, sizeof *g);
    }
    n->gpus_len = len;
    n->gpus_milli_free = 0;
    for (uint32_t s = 0; s < len; s++)
        n->gpus_milli_free += n->gpus[s].healthy ? n->gpus[s].free_milli : 0;
    merge_links(n, d, slot);
    n->state = NODE_UP;
}

/* A new, empty node under the name, with room in the tables. NULL when there is no memory. */
static struct node *add_node(struct cluster *c, const char *name)
{
    size_t log_len = (size_t)(c->nodes_len + 1) * CHANGES_PER_NODE;
    struct node *n = mem_alloc(1, sizeof *n);
    if (n == NULL || mem_grow(&c->nodes, &c->nodes_cap, (size_t)c->nodes_len + 1, sizeof *c->nodes) < 0 ||
        mem_grow(&c->changes, &c->changes_cap, log_len, sizeof *c->changes) < 0) {
        mem_free(n);
        return NULL;
    }
    uint32_t id = intern_id(&c->names, name);
    if (id == INTERN_NONE) {
        mem_free(n);
        return NULL;
    }
    assert(id == c->nodes_len);
    memcpy(n->name, name, strlen(name));
    n->id = id;
    n->rank = id;
    n->rack = INTERN_NONE;
    c->nodes[c->nodes_len++] = n;
    return n;
}

int cluster_set_node(struct cluster *c, const struct node_desc *desc, uint32_t *ret_id, struct err *e)
{
    uint32_t rack;
    uint8_t models[NODE_GPUS_MAX] = {0};
    uint32_t slot[NODE_GPUS_MAX] = {0};
    int r = check_desc(desc, e);
    if (r < 0)
        return r;
    struct node *n = cluster_find(c, desc->name);
    const struct node fresh = {0};
    uint32_t len = merge_slots(n == NULL ? &fresh : n, desc, slot);
    if (len > NODE_GPUS_MAX)
        return err_set(e, -EINVAL, "node '%s': %u GPUs beside those that are gone but still held are more than %d",
                       desc->name, desc->gpus_len, NODE_GPUS_MAX);
    r = intern_desc(c, desc, &rack, models, e);
    if (r < 0)
        return r;
    bool is_new = n == NULL;
    if (is_new) {
        n = add_node(c, desc->name);
        if (n == NULL)
            return err_set(e, -ENOMEM, "out of memory");
    }
    struct node next;
    memcpy(&next, n, sizeof next);
    merge_node(&next, desc, models, slot, len);
    next.rack = rack;
    *ret_id = n->id;
    if (!is_new && memcmp(&next, n, sizeof next) == 0)
        return 0;
    if (n->rack != next.rack)
        c->layout_generation++;
    memcpy(n, &next, sizeof next);
    c->topology_generation++;
    cluster_touch(c, n->id);
    return 0;
}
