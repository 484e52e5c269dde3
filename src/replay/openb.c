/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/openb.h"

#include "base/mem.h"
#include "replay/strategies/strategies.h"

#include <errno.h>
#include <string.h>

struct run {
    const struct openb_data *d;
    struct cluster cluster;
    struct ledger ledger;
    struct placer *placer;
    struct openb_state state;
    struct place_req *reqs; /* by pod */
};

const struct strategy *openb_strategy(const char *name)
{
    static const struct strategy *const published[] = {
        &replay_bestfit, &replay_clustering, &replay_dotprod, &replay_fgd, &replay_packing, &replay_random,
    };
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        if (strcmp(published[i]->name, name) == 0)
            return published[i];
    }
    return strategy_find(name);
}

static void run_done(struct run *r)
{
    placer_free(r->placer);
    ledger_done(&r->ledger);
    cluster_done(&r->cluster);
    mem_free(r->state.classes);
    mem_free(r->reqs);
}

static int set_up_nodes(struct run *r, struct err *e)
{
    for (uint32_t i = 0; i < r->d->nodes_len; i++) {
        uint32_t id = 0;
        int rc = cluster_set_node(&r->cluster, &r->d->nodes[i], &id, e);
        if (rc < 0)
            return rc;
        if (id != i)
            return err_set(e, -EINVAL, "node list: row %u has the name '%s' of row %u", i, r->d->nodes[i].name, id);
        cluster_set_rank(&r->cluster, id, r->d->ranks[i]);
    }
    return 0;
}

static int set_up_mix(struct run *r)
{
    struct mix_item *items = NULL;
    size_t len = 0;
    int rc = openb_mix(r->d, &r->cluster, &items, &len);
    if (rc == 0)
        rc = placer_set_mix(r->placer, items, len);
    mem_free(items);
    return rc;
}

static int set_up(struct run *r, uint64_t seed, struct err *e)
{
    if (cluster_init(&r->cluster) < 0)
        return err_set(e, -ENOMEM, "out of memory");
    ledger_init(&r->ledger, &r->cluster);
    int rc = set_up_nodes(r, e);
    if (rc < 0)
        return rc;
    r->placer = placer_new(&r->cluster);
    r->state.classes = mem_alloc(r->d->nodes_len, 1);
    r->reqs = mem_alloc(r->d->pods_len, sizeof *r->reqs);
    if (r->placer == NULL || r->state.classes == NULL || r->reqs == NULL || set_up_mix(r) < 0 ||
        ledger_reserve(&r->ledger, (struct payer){0}) < 0)
        return err_set(e, -ENOMEM, "out of memory");
    rng_init(&r->state.rng, seed);
    placer_set_state(r->placer, &r->state);
    for (uint32_t i = 0; i < r->d->pods_len; i++)
        r->reqs[i] = place_req_of(&r->cluster, &r->d->pods[i].req);
    return 0;
}

/* a / b in hundredths of a percent, rounded to nearest. */
static uint32_t percent(uint64_t a, uint64_t b)
{
    return b == 0 ? 0 : (uint32_t)((a * 10000 + b / 2) / b);
}

static void measure(const struct run *r, struct openb_result *ret)
{
    const struct mix *mix = placer_mix(r->placer);
    uint64_t capacity = 0;
    uint64_t idle = 0;
    uint64_t fragmentation = 0; /* in thousandths of a card, times the weight */
    for (uint32_t i = 0; i < r->cluster.nodes_len; i++) {
        const struct node *n = r->cluster.nodes[i];
        struct frag_state state;
        frag_state_of(&state, n);
        fragmentation += (uint64_t)mix_fragmentation(mix, &state);
        capacity += (uint64_t)n->gpus_len * GPU_MILLI;
        idle += n->gpus_milli_free;
    }
    uint64_t weight = (uint64_t)mix_weight(mix);
    ret->alloc_gpu_milli = capacity - idle;
    ret->alloc_pct = percent(ret->alloc_gpu_milli, capacity);
    ret->frag_pct_of_capacity = percent(fragmentation, capacity * weight);
    ret->frag_pct_of_idle = percent(fragmentation, idle * weight);
}

static int arrive(struct run *r, const struct strategy *strategy, struct openb_result *ret, struct openb_placed *placed,
                  struct err *e)
{
    struct placement found CLEANUP(placement_done) = {0};
    for (uint32_t k = 0; k < r->d->arrivals_len; k++) {
        const struct place_req *req = &r->reqs[r->d->arrivals[k]];
        struct place_query q = {.req = *req, .workers = 1, .strategy = strategy};
        struct openb_placed at = {.node = -1, .shared_gpu = -1};
        int rc = place_find(r->placer, &q, &found);
        if (rc < 0 && rc != -EAGAIN)
            return err_set(e, rc, "out of memory");
        if (rc == 0) {
            const struct grant *g = &found.grants[0];
            ledger_take(&r->ledger, (struct payer){0}, g, 1);
            r->state.classes[g->node] |= openb_class(req);
            at.node = (int32_t)g->node;
            if (req->share_milli > 0)
                at.shared_gpu = __builtin_ctz(g->gpu_mask);
        } else {
            ret->unscheduled_pods++;
        }
        if (placed != NULL)
            placed[k] = at;
    }
    return 0;
}

int openb_run(const struct openb_data *d, const struct strategy *strategy, uint64_t seed, struct openb_result *ret,
              struct openb_placed *placed, struct err *e)
{
    struct run r = {.d = d};
    struct openb_result result = {.arrived_pods = d->arrivals_len};
    int rc = set_up(&r, seed, e);
    if (rc == 0)
        rc = arrive(&r, strategy, &result, placed, e);
    if (rc == 0) {
        measure(&r, &result);
        *ret = result;
    }
    run_done(&r);
    return rc;
}
