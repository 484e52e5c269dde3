/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Take and give. A whole card brings all its memory; a share brings what it asked for. A share of
 * GPU_MILLI is a whole card. What an unhealthy card has free does not count in
 * node->gpus_milli_free, so a grant on a card that fell ill meanwhile changes the card but not that
 * sum.
 */
#include "core/ledger.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>

void ledger_init(struct ledger *l, struct cluster *c)
{
    *l = (struct ledger){.cluster = c};
}

void ledger_done(struct ledger *l)
{
    mem_free(l->tenants.rows);
    mem_free(l->users.rows);
    mem_free(l->members.rows);
    mem_free(l->queues.rows);
    *l = (struct ledger){0};
}

static int reserve(struct accounts *a, uint32_t upto)
{
    return mem_grow(&a->rows, &a->cap, (size_t)upto + 1, sizeof *a->rows);
}

int ledger_reserve(struct ledger *l, struct payer upto)
{
    if (reserve(&l->tenants, upto.tenant) < 0 || reserve(&l->users, upto.user) < 0 ||
        reserve(&l->members, upto.member) < 0 || reserve(&l->queues, upto.queue) < 0)
        return -ENOMEM;
    return 0;
}

uint32_t grant_gpus_milli(const struct grant *g)
{
    return (uint32_t)__builtin_popcount(g->gpu_mask) * g->milli;
}

/* True when the card has the grant's part free. */
static bool card_fits(const struct gpu *c, const struct grant *g)
{
    if (c->whole || c->free_milli < g->milli)
        return false;
    return g->milli == GPU_MILLI ? c->holders == 0 : c->free_mem_mib >= g->gpu_mem_mib;
}

bool node_fits(const struct node *n, const struct grant *g)
{
    if (g->cpu_milli > n->free_cpu_milli || g->mem_mib > n->free_mem_mib)
        return false;
    if (g->gpu_mask >> n->gpus_len != 0)
        return false;
    for (uint32_t rest = g->gpu_mask; rest != 0; rest &= rest - 1) {
        if (!card_fits(&n->gpus[__builtin_ctz(rest)], g))
            return false;
    }
    return true;
}

bool ledger_fits(const struct ledger *l, const struct grant *g)
{
    assert(g->node < l->cluster->nodes_len);
    const struct node *n = l->cluster->nodes[g->node];
    if (!node_open(n) || !node_fits(n, g))
        return false;
    for (uint32_t rest = g->gpu_mask; rest != 0; rest &= rest - 1) {
        if (!n->gpus[__builtin_ctz(rest)].healthy)
            return false;
    }
    return true;
}

void node_take(struct node *n, const struct grant *g)
{
    assert(node_fits(n, g));
    assert(g->milli <= GPU_MILLI && (g->milli > 0) == (g->gpu_mask != 0));
    assert(g->milli == GPU_MILLI || __builtin_popcount(g->gpu_mask) <= 1);
    n->free_cpu_milli -= g->cpu_milli;
    n->free_mem_mib -= g->mem_mib;
    for (uint32_t rest = g->gpu_mask; rest != 0; rest &= rest - 1) {
        struct gpu *c = &n->gpus[__builtin_ctz(rest)];
        c->holders++;
        c->free_milli = (uint16_t)(c->free_milli - g->milli);
        if (g->milli == GPU_MILLI) {
            c->whole = true;
            c->free_mem_mib = 0;
        } else {
            c->free_mem_mib -= g->gpu_mem_mib;
        }
        if (c->healthy)
            n->gpus_milli_free -= g->milli;
    }
}

void node_give(struct node *n, const struct grant *g)
{
    assert(n->cpu_milli - n->free_cpu_milli >= g->cpu_milli);
    assert(n->mem_mib - n->free_mem_mib >= g->mem_mib);
    assert(g->gpu_mask >> n->gpus_len == 0);
    n->free_cpu_milli += g->cpu_milli;
    n->free_mem_mib += g->mem_mib;
    for (uint32_t rest = g->gpu_mask; rest != 0; rest &= rest - 1) {
        struct gpu *c = &n->gpus[__builtin_ctz(rest)];
        assert(c->holders > 0 && c->free_milli + g->milli <= GPU_MILLI);
        assert(c->whole == (g->milli == GPU_MILLI));
        c->holders--;
        c->free_milli = (uint16_t)(c->free_milli + g->milli);
        if (g->milli == GPU_MILLI) {
            c->whole = false;
            c->free_mem_mib = c->mem_mib;
        } else {
            assert(c->mem_mib - c->free_mem_mib >= g->gpu_mem_mib);
            c->free_mem_mib += g->gpu_mem_mib;
        }
        if (c->healthy)
            n->gpus_milli_free += g->milli;
    }
}

static struct account *account(struct accounts *a, uint32_t id)
{
    assert(id < a->cap);
    return &a->rows[id];
}

static void charge(struct account *a, const struct account *sum)
{
    a->gpus_milli += sum->gpus_milli;
    a->jobs += sum->jobs;
    a->cpu_milli += sum->cpu_milli;
    a->mem_mib += sum->mem_mib;
}

static void refund(struct account *a, const struct account *sum)
{
    assert(a->gpus_milli >= sum->gpus_milli && a->jobs >= sum->jobs);
    assert(a->cpu_milli >= sum->cpu_milli && a->mem_mib >= sum->mem_mib);
    a->gpus_milli -= sum->gpus_milli;
    a->jobs -= sum->jobs;
    a->cpu_milli -= sum->cpu_milli;
    a->mem_mib -= sum->mem_mib;
}

static struct account sum_of(const struct grant *grants, size_t len)
{
    struct account sum = {.jobs = len > 0};
    for (size_t i = 0; i < len; i++) {
        sum.gpus_milli += grant_gpus_milli(&grants[i]);
        sum.cpu_milli += grants[i].cpu_milli;
        sum.mem_mib += grants[i].mem_mib;
    }
    return sum;
}

void ledger_take(struct ledger *l, struct payer p, const struct grant *grants, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        assert(grants[i].node < l->cluster->nodes_len);
        node_take(l->cluster->nodes[grants[i].node], &grants[i]);
        cluster_touch(l->cluster, grants[i].node);
    }
    struct account sum = sum_of(grants, len);
    charge(account(&l->tenants, p.tenant), &sum);
    charge(account(&l->users, p.user), &sum);
    charge(account(&l->members, p.member), &sum);
    charge(account(&l->queues, p.queue), &sum);
}

/* The form that node_take() asserts. */
static bool well_formed(const struct grant *g)
{
    return g->milli <= GPU_MILLI && (g->milli > 0) == (g->gpu_mask != 0) &&
           (g->milli == GPU_MILLI || __builtin_popcount(g->gpu_mask) <= 1);
}

int ledger_try_take(struct ledger *l, struct payer p, const struct grant *grants, size_t len)
{
    size_t taken = 0;
    for (; taken < len; taken++) {
        const struct grant *g = &grants[taken];
        if (g->node >= l->cluster->nodes_len || !well_formed(g) || !node_fits(l->cluster->nodes[g->node], g))
            break;
        node_take(l->cluster->nodes[g->node], g); /* so that the next one is tried beside it */
    }
    for (size_t i = taken; i-- > 0;)
        node_give(l->cluster->nodes[grants[i].node], &grants[i]);
    if (taken < len)
        return -EBUSY;
    ledger_take(l, p, grants, len);
    return 0;
}

void ledger_give(struct ledger *l, struct payer p, const struct grant *grants, size_t len)
{
    struct account sum = sum_of(grants, len);
    refund(account(&l->tenants, p.tenant), &sum);
    refund(account(&l->users, p.user), &sum);
    refund(account(&l->members, p.member), &sum);
    refund(account(&l->queues, p.queue), &sum);
    for (size_t i = 0; i < len; i++) {
        assert(grants[i].node < l->cluster->nodes_len);
        node_give(l->cluster->nodes[grants[i].node], &grants[i]);
        cluster_touch(l->cluster, grants[i].node);
    }
}
