/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests for capacity, each of which stands for one sentence that a person can act on:
 *
 *   nodes       no open node at all
 *   gpu-model   no card of that model in the pool
 *   gpus        fewer idle cards (of the model) than all workers need together
 *   gpu-share   no card has that much compute and memory left
 *   fragmented  enough idle cards, but not enough of them together on single machines
 *   cpu, mem    machines with the cards lack CPU or host memory
 *   level       fits, but not within the required level
 *   reserved    fits, but only on nodes that are kept for a job that comes before
 */
#include "core/explain.h"

#include "base/mem.h"
#include "core/cards.h"
#include "core/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *verdict_name(enum verdict v)
{
    static const char *const names[] = {"running", "ended", "can-start", "waits", "never"};
    return names[v];
}

const char *change_name(int change)
{
    static const char *const names[] = {"gpus", "workers", "require", "gpu_model", "cpus", "mem", "time"};
    return names[change];
}

/* What the pool has for one request, over open nodes. */
struct supply {
    uint32_t nodes;        /* open */
    uint64_t cards;        /* of the model, healthy */
    uint64_t idle;         /* of them, idle */
    uint32_t best_idle;    /* most idle on one node */
    uint32_t best_cards;   /* most on one node */
    uint32_t best_milli;   /* most compute left on a card */
    uint32_t best_mem_mib; /* most memory left on a card that has the compute of a share */
    uint32_t card_mem_mib; /* of the largest card */
    uint64_t best_cpu;     /* most free CPU on a node with the cards */
    uint64_t best_mem;     /* most free host memory on a node with the cards */
    uint64_t max_cpu;      /* of any node */
    uint64_t max_mem;
    uint64_t room_gpu; /* workers that fit by cards alone */
    uint64_t room_cpu; /* by cards and CPU */
    uint64_t room_mem; /* by cards and host memory */
    uint64_t room;     /* by everything */
    uint64_t capacity; /* workers that empty nodes would hold */
};

static bool card_counts(const struct node *n, uint32_t i, const struct place_req *req)
{
    return n->gpus[i].healthy && (req->model_mask >> n->gpus[i].model & 1) != 0;
}

static bool card_idle(const struct gpu *g)
{
    return g->holders == 0 && g->free_milli == GPU_MILLI;
}

static void supply_cards(struct supply *s, const struct node *n, const struct place_req *req)
{
    uint32_t cards = 0;
    uint32_t idle = 0;
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        if (!card_counts(n, i, req))
            continue;
        const struct gpu *g = &n->gpus[i];
        cards++;
        idle += card_idle(g);
        if (!g->whole && g->free_milli > s->best_milli)
            s->best_milli = g->free_milli;
        s->card_mem_mib = g->mem_mib > s->card_mem_mib ? g->mem_mib : s->card_mem_mib;
        if (!g->whole && g->free_milli >= req->share_milli && g->free_mem_mib > s->best_mem_mib)
            s->best_mem_mib = g->free_mem_mib;
    }
    s->cards += cards;
    s->idle += idle;
    s->best_idle = idle > s->best_idle ? idle : s->best_idle;
    s->best_cards = cards > s->best_cards ? cards : s->best_cards;
}

static void supply_node(struct supply *s, const struct node *n, const struct place_req *req)
{
    struct place_req cards = *req;
    cards.cpu_milli = 0;
    cards.mem_mib = 0;
    struct place_req with_cpu = cards;
    with_cpu.cpu_milli = req->cpu_milli;
    struct place_req with_mem = cards;
    with_mem.mem_mib = req->mem_mib;
    uint32_t room = place_room(n, &cards);
    s->nodes++;
    s->room_gpu += room;
    s->room_cpu += place_room(n, &with_cpu);
    s->room_mem += place_room(n, &with_mem);
    s->room += place_room(n, req);
    s->capacity += cards_capacity(n, req, CARDS_ALL);
    if (room > 0 && n->free_cpu_milli > s->best_cpu)
        s->best_cpu = n->free_cpu_milli;
    if (room > 0 && n->free_mem_mib > s->best_mem)
        s->best_mem = n->free_mem_mib;
    s->max_cpu = n->cpu_milli > s->max_cpu ? n->cpu_milli : s->max_cpu;
    s->max_mem = n->mem_mib > s->max_mem ? n->mem_mib : s->max_mem;
    supply_cards(s, n, req);
}

static struct supply supply_of(const struct core *c, const struct place_req *req)
{
    struct supply s = {0};
    for (uint32_t i = 0; i < c->cluster.nodes_len; i++)
        if (node_open(c->cluster.nodes[i]))
            supply_node(&s, c->cluster.nodes[i], req);
    return s;
}

static bool fits(struct core *c, const struct place_query *q)
{
    struct placement found = {0};
    int r = place_find(c->placer, q, &found);
    placement_done(&found);
    return r == 0;
}

/* The same, reservations kept. */
static bool fits_beside(struct core *c, const struct job *j, int64_t now_ms)
{
    struct placement found = {0};
    int r = reserve_place(c, j, now_ms, &found);
    placement_done(&found);
    return r == 0;
}

/* Room for workers on the cards of the best NVLink island of `n`. */
static uint32_t island_room(const struct node *n, const struct place_req *req)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        struct node one = *n;
        for (uint32_t k = 0; k < n->gpus_len; k++)
            one.gpus[k].healthy = one.gpus[k].healthy && n->gpus[k].island == n->gpus[i].island;
        uint32_t room = place_room(&one, req);
        best = room > best ? room : best;
    }
    return best;
}

/* Room for workers in the best single island, machine or rack. O(nodes^2) at worst for racks, asked for one job. */
static uint32_t level_room(const struct core *c, const struct place_req *req, enum level level)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i < c->cluster.nodes_len; i++) {
        const struct node *n = c->cluster.nodes[i];
        uint32_t room = 0;
        if (!node_open(n))
            continue;
        for (uint32_t k = i; k < c->cluster.nodes_len && level == LEVEL_RACK; k++)
            if (node_open(c->cluster.nodes[k]) && c->cluster.nodes[k]->rack == n->rack)
                room += place_room(c->cluster.nodes[k], req);
        if (level != LEVEL_RACK)
            room = level == LEVEL_NVLINK ? island_room(n, req) : place_room(n, req);
        best = room > best ? room : best;
    }
    return best;
}

struct list {
    struct reason *rows;
    uint32_t cap;
    uint32_t len;
};

static struct reason *add(struct list *l, enum reason_code code, uint64_t asked, uint64_t free, uint64_t total)
{
    static struct reason spill; /* never read: only reached when a caller asks for fewer reasons */
    struct reason *r = l->len < l->cap ? &l->rows[l->len++] : &spill;
    *r = (struct reason){.code = code, .asked = asked, .free = free, .total = total};
    return r;
}

/* Each worker alone would fit, all together do not, for want of `what`. */
static void add_workers(struct list *l, const struct job *j, uint64_t room, const struct supply *s, const char *what)
{
    struct reason *r = add(l, REASON_WORKERS, j->workers, room, s->capacity);
    (void)snprintf(r->name, sizeof r->name, "%s", what);
}

static void card_reasons(const struct job *j, const struct supply *s, struct list *l)
{
    uint64_t asked = (uint64_t)j->req.gpus * j->workers;
    bool share = j->req.share_milli > 0;
    if (s->room_gpu >= j->workers)
        return;
    if (j->req.gpus > 0 && s->idle < asked)
        (void)add(l, REASON_GPUS, asked, s->idle, s->cards);
    else if (j->req.gpus > s->best_idle)
        (void)add(l, REASON_FRAGMENTED, j->req.gpus, s->best_idle, s->best_cards);
    else if (share && s->best_milli < j->req.share_milli)
        (void)add(l, REASON_GPU_SHARE, j->req.share_milli, s->best_milli, GPU_MILLI);
    else if (share && s->best_mem_mib < j->req.share_mem_mib)
        (void)add(l, REASON_GPU_MEM, j->req.share_mem_mib, s->best_mem_mib, s->card_mem_mib);
    else if (j->req.gpus > 0 || share)
        add_workers(l, j, s->room_gpu, s, "gpus");
}

/* Host resources that stand against a job whose cards are there. */
static void host_reasons(const struct job *j, const struct supply *s, struct list *l)
{
    if (s->room_gpu < j->workers)
        return;
    if (s->room_cpu < j->workers && s->best_cpu < j->req.cpu_milli)
        (void)add(l, REASON_CPU, j->req.cpu_milli, s->best_cpu, s->max_cpu);
    else if (s->room_cpu < j->workers)
        add_workers(l, j, s->room_cpu, s, "cpu");
    if (s->room_mem < j->workers && s->best_mem < j->req.mem_mib)
        (void)add(l, REASON_MEM, j->req.mem_mib, s->best_mem, s->max_mem);
    else if (s->room_mem < j->workers)
        add_workers(l, j, s->room_mem, s, "mem");
    /* CPU and memory are there, but not on the same nodes. */
    if (s->room < j->workers && s->room_cpu >= j->workers && s->room_mem >= j->workers)
        add_workers(l, j, s->room, s, "cpu");
}

static void add_reserved(const struct core *c, struct list *l, const struct job *j, uint64_t room)
{
    struct reason *r = add(l, REASON_RESERVED, j->workers, 0, room);
    if (c->reservations_len > 0) {
        r->job = c->reservations[0].job->id;
        r->until_ms = c->reservations[0].start_ms;
    }
}

/* Collects every capacity reason that stands against the job, most basic first. */
static void capacity_reasons(struct core *c, const struct job *j, int64_t now_ms, struct list *l)
{
    struct place_query q = core_query(c, j);
    struct supply s = supply_of(c, &q.req);
    bool cards = j->req.gpus > 0 || j->req.share_milli > 0;
    if (s.nodes == 0) {
        (void)add(l, REASON_NODES, 1, 0, c->cluster.nodes_len);
        return;
    }
    if (cards && s.cards == 0 && j->req.gpu_model[0] == '\0') {
        (void)add(l, REASON_GPUS, (uint64_t)(j->req.gpus > 0 ? j->req.gpus : 1) * j->workers, 0, 0);
        return;
    }
    if (cards && s.cards == 0) {
        struct reason *r = add(l, REASON_GPU_MODEL, (uint64_t)j->req.gpus * j->workers, 0, 0);
        (void)snprintf(r->name, sizeof r->name, "%s", j->req.gpu_model);
        return;
    }
    card_reasons(j, &s, l);
    host_reasons(j, &s, l);
    if (s.room < j->workers)
        return;
    if (!fits(c, &q)) {
        add(l, REASON_LEVEL, j->workers, level_room(c, &q.req, j->require), s.room)->level = j->require;
        return;
    }
    if (!fits_beside(c, j, now_ms))
        add_reserved(c, l, j, s.room);
}

/* --- who holds it --- */

struct candidate {
    const struct job *job;
    uint64_t amount;
};

static int compare_candidate(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    int64_t s = job_deadline_ms(x->job);
    int64_t t = job_deadline_ms(y->job);
    if (s != t)
        return s < t ? -1 : 1;
    return x->job->id < y->job->id ? -1 : x->job->id > y->job->id;
}

/* How much a running job holds of what the reason is about. */
static uint64_t amount_of(const struct core *c, const struct job *h, const struct job *j, const struct reason *r)
{
    switch (r->code) {
    case REASON_TENANT_GPUS:
    case REASON_TENANT_JOBS:
        if (h->payer.tenant != j->payer.tenant)
            return 0;
        return r->code == REASON_TENANT_JOBS ? 1 : job_gpus_milli(h);
    case REASON_USER_GPUS:
    case REASON_USER_JOBS:
        if (r->member ? h->payer.member != j->payer.member : h->payer.user != j->payer.user)
            return 0;
        return r->code == REASON_USER_JOBS ? 1 : job_gpus_milli(h);
    case REASON_QUEUE_GPUS:
    case REASON_QUEUE_JOBS:
        if (h->payer.queue != j->payer.queue)
            return 0;
        return r->code == REASON_QUEUE_JOBS ? 1 : job_gpus_milli(h);
    default:
        break;
    }
    struct place_req req = place_req_of(&c->cluster, &j->req);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < h->workers; i++) {
        const struct grant *g = &h->grants[i];
        const struct node *n = c->cluster.nodes[g->node];
        if (r->code == REASON_CPU || r->code == REASON_MEM) {
            sum += r->code == REASON_CPU ? g->cpu_milli : g->mem_mib;
            continue;
        }
        if (r->code == REASON_WORKERS && strcmp(r->name, "gpus") != 0) {
            sum += (strcmp(r->name, "cpu") == 0 ? g->cpu_milli : g->mem_mib) > 0;
            continue;
        }
        for (uint32_t k = 0; k < n->gpus_len; k++) {
            if ((g->gpu_mask >> k & 1) == 0 || !card_counts(n, k, &req))
                continue;
            if (r->code == REASON_GPU_MEM)
                sum += g->milli == GPU_MILLI ? n->gpus[k].mem_mib : g->gpu_mem_mib;
            else
                sum += r->code == REASON_GPU_SHARE ? g->milli : 1;
        }
    }
    return sum;
}

/* The holders that end first, at most REASON_HOLDERS_MAX. */
static int fill_holders(const struct core *c, const struct job *j, struct reason *r)
{
    uint64_t holding = c->counts[JOB_STARTING] + c->counts[JOB_RUNNING];
    CLEANUP_FREE struct candidate *rows = mem_alloc((size_t)holding, sizeof *rows);
    if (rows == NULL)
        return -ENOMEM;
    size_t len = 0;
    for (uint64_t i = 0; i < c->table_len; i++) {
        const struct job *h = c->table[i];
        if (h == NULL || !job_holds(h))
            continue;
        uint64_t amount = amount_of(c, h, j, r);
        if (amount > 0)
            rows[len++] = (struct candidate){h, amount};
    }
    qsort(rows, len, sizeof *rows, compare_candidate);
    r->holders_len = 0;
    for (size_t i = 0; i < len && i < REASON_HOLDERS_MAX; i++) {
        int64_t until = job_deadline_ms(rows[i].job);
        r->holders[r->holders_len++] =
            (struct reason_holder){rows[i].job->id, rows[i].amount, until == INT64_MAX ? 0 : until};
    }
    return 0;
}

bool explain_capacity(struct core *c, const struct job *j, int64_t now_ms, struct reason *ret)
{
    struct list l = {.rows = ret, .cap = 1};
    capacity_reasons(c, j, now_ms, &l);
    return l.len > 0;
}

/* Why a job that is in no class is not tried yet. */
static struct reason put_off_reason(const struct job *j)
{
    if (j->held)
        return (struct reason){.code = REASON_HELD, .asked = 1, .total = 1};
    if (j->links_left > 0 || j->links_failed)
        return (struct reason){.code = REASON_AFTER,
                               .asked = j->links_len,
                               .free = j->links_len - j->links_left,
                               .total = j->links_len,
                               .job = depend_first(j)};
    if (j->launch_failures == 0)
        return (struct reason){.code = REASON_BEGIN, .asked = 1, .total = 1, .until_ms = j->not_before_ms};
    return (struct reason){
        .code = REASON_BACKOFF, .asked = j->launch_failures, .total = LAUNCH_TRIES_MAX, .until_ms = j->not_before_ms};
}

struct reason core_reason(struct core *c, const struct job *j, int64_t now_ms)
{
    struct reason none = {.code = REASON_NONE};
    if (j->state != JOB_QUEUED)
        return none;
    if (j->class == NULL)
        return put_off_reason(j);
    struct job_class *k = j->class;
    if (otree_linked(&k->in_ready))
        return none;
    if (k->capacity && k->reason_at != c->cluster.changes_end) {
        struct reason why;
        const struct job *head = queue_head(k);
        k->reason = explain_capacity(c, head, now_ms, &why) ? why : (struct reason){.code = REASON_GPUS};
        k->reason_at = c->cluster.changes_end;
    }
    return k->reason;
}

/* --- counterfactuals --- */

/* True when the changed job would start now, caps and reservations included. */
static bool starts(struct core *c, const struct job *changed, int64_t now_ms)
{
    struct reason why;
    if (schedule_cap_reasons(c, changed, &why, 1) > 0)
        return false;
    return fits_beside(c, changed, now_ms);
}

static void offer(struct explanation *x, int change, uint64_t value, enum level level, const char *model)
{
    if (x->changes_len == EXPLAIN_CHANGES_MAX)
        return;
    struct would_start *w = &x->changes[x->changes_len++];
    *w = (struct would_start){.value = value, .level = level};
    w->change = (__typeof__(w->change))change;
    (void)snprintf(w->model, sizeof w->model, "%s", model);
}

static void offer_fewer(struct core *c, const struct job *j, int64_t now_ms, struct explanation *x)
{
    struct job other = *j;
    for (other.req.gpus = j->req.gpus; other.req.gpus > 1;) {
        other.req.gpus--;
        if (starts(c, &other, now_ms)) {
            offer(x, CHANGE_GPUS, other.req.gpus, LEVEL_ANY, "");
            break;
        }
    }
    /* More workers never fit where fewer do not: the largest number is found by halving. */
    other = *j;
    uint32_t low = 0;
    uint32_t high = j->workers;
    while (low + 1 < high) {
        other.workers = low + (high - low) / 2;
        if (starts(c, &other, now_ms))
            low = other.workers;
        else
            high = other.workers;
    }
    if (low > 0)
        offer(x, CHANGE_WORKERS, low, LEVEL_ANY, "");
}

static void offer_others(struct core *c, const struct job *j, int64_t now_ms, struct explanation *x)
{
    struct job other = *j;
    for (enum level level = j->require; level != LEVEL_ANY;) {
        level = level == LEVEL_RACK ? LEVEL_ANY : level + 1;
        other.require = level;
        if (starts(c, &other, now_ms)) {
            offer(x, CHANGE_REQUIRE, level, level, "");
            break;
        }
    }
    other = *j;
    other.req.gpu_model[0] = '\0';
    if (j->req.gpu_model[0] != '\0' && starts(c, &other, now_ms))
        offer(x, CHANGE_MODEL, 0, LEVEL_ANY, "");
    struct supply s = supply_of(c, &(struct place_req){.gpus = j->req.gpus,
                                                       .share_milli = j->req.share_milli,
                                                       .share_mem_mib = j->req.share_mem_mib,
                                                       .model_mask = core_query(c, j).req.model_mask});
    other = *j;
    other.req.cpu_milli = (uint32_t)(s.best_cpu / j->workers);
    if (other.req.cpu_milli > 0 && other.req.cpu_milli < j->req.cpu_milli && starts(c, &other, now_ms))
        offer(x, CHANGE_CPU, other.req.cpu_milli, LEVEL_ANY, "");
    other = *j;
    other.req.mem_mib = s.best_mem / j->workers;
    if (other.req.mem_mib > 0 && other.req.mem_mib < j->req.mem_mib && starts(c, &other, now_ms))
        offer(x, CHANGE_MEM, other.req.mem_mib, LEVEL_ANY, "");
    other = *j;
    other.time_limit_ms = c->reservations_len == 0 ? 0 : c->reservations[0].start_ms - now_ms;
    if (other.time_limit_ms >= 60000 && starts(c, &other, now_ms))
        offer(x, CHANGE_TIME_LIMIT, (uint64_t)other.time_limit_ms, LEVEL_ANY, "");
}

static uint64_t position_of(const struct core *c, const struct job *j)
{
    uint64_t before = 0;
    for (uint64_t i = 0; i < c->table_len; i++) {
        const struct job *o = c->table[i];
        before += o != NULL && o->state == JOB_QUEUED && o != j && queue_compare(o, j) < 0;
    }
    return before + 1;
}

static void explain_waiting(struct core *c, const struct job *j, int64_t now_ms, struct explanation *x)
{
    struct list l = {.rows = x->reasons, .cap = EXPLAIN_REASONS_MAX};
    struct reason caps[CAP_REASONS_MAX];
    if (j->class == NULL)
        *add(&l, REASON_BACKOFF, 0, 0, 0) = put_off_reason(j);
    uint32_t caps_len = schedule_cap_reasons(c, j, caps, CAP_REASONS_MAX);
    for (uint32_t i = 0; i < caps_len; i++)
        *add(&l, caps[i].code, 0, 0, 0) = caps[i];
    capacity_reasons(c, j, now_ms, &l);
    /*
     * The last pass looked at it and kept it back for the sake of a reservation, though by now other cards would be
     * picked for it: the next thing that is given back lets it be looked at again.
     */
    if (l.len == 0 && j->class != NULL && !otree_linked(&j->class->in_ready))
        add_reserved(c, &l, j, j->workers);
    x->reasons_len = l.len;
    x->position = position_of(c, j);
    struct place_query q = core_query(c, j);
    if (l.len == 0)
        x->verdict = VERDICT_CAN_START;
    else if (!place_possible(c->placer, &q))
        x->verdict = VERDICT_NEVER;
    else
        x->verdict = VERDICT_WAITS;
}

int core_explain(struct core *c, int64_t now_ms, uint64_t job, struct explanation *ret)
{
    const struct job *j = core_job(c, job);
    if (j == NULL)
        return -ENOENT;
    *ret = (struct explanation){0};
    if (j->state != JOB_QUEUED) {
        ret->verdict = job_ended(j) ? VERDICT_ENDED : VERDICT_RUNNING;
        return 0;
    }
    explain_waiting(c, j, now_ms, ret);
    for (uint32_t i = 0; i < ret->reasons_len; i++) {
        int r = fill_holders(c, j, &ret->reasons[i]);
        if (r < 0)
            return r;
    }
    if (ret->verdict == VERDICT_CAN_START)
        return 0;
    offer_fewer(c, j, now_ms, ret);
    offer_others(c, j, now_ms, ret);
    return 0;
}

/* --- never --- */

/* The most that any node offers, full or empty, for the models that the request allows. */
struct extent {
    uint32_t node_cards;
    uint32_t card_mem_mib;
    uint32_t cpu_milli;
    uint64_t mem_mib;
    uint64_t cards;
};

static struct extent extent_of(const struct core *c, const struct place_req *req)
{
    struct extent x = {0};
    for (uint32_t i = 0; i < c->cluster.nodes_len; i++) {
        const struct node *n = c->cluster.nodes[i];
        if (n->state == NODE_GONE)
            continue;
        uint32_t cards = 0;
        for (uint32_t k = 0; k < n->gpus_len; k++) {
            if (!card_counts(n, k, req))
                continue;
            cards++;
            x.card_mem_mib = n->gpus[k].mem_mib > x.card_mem_mib ? n->gpus[k].mem_mib : x.card_mem_mib;
        }
        x.cards += cards;
        x.node_cards = cards > x.node_cards ? cards : x.node_cards;
        x.cpu_milli = n->cpu_milli > x.cpu_milli ? n->cpu_milli : x.cpu_milli;
        x.mem_mib = n->mem_mib > x.mem_mib ? n->mem_mib : x.mem_mib;
    }
    return x;
}

static void list_models(const struct core *c, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < c->cluster.models.count && at < size; i++) {
        int n = snprintf(out + at, size - at, "%s%s", i == 0 ? "" : ", ", intern_name(&c->cluster.models, i));
        at += n < 0 ? 0 : (size_t)n;
    }
}

int explain_never(const struct core *c, const struct job *probe, struct err *e)
{
    const struct request *r = &probe->req;
    struct place_req req = place_req_of(&c->cluster, r);
    struct extent x = extent_of(c, &req);
    bool cards = r->gpus > 0 || r->share_milli > 0;
    if (cards && x.cards == 0) {
        if (r->gpu_model[0] == '\0')
            return err_set(e, -ERANGE, "gpus: cards can never be given: the pool has none");
        char models[160];
        list_models(c, models, sizeof models);
        return err_set(e, -ERANGE, "gpu_model: \"%s\" can never be given: the pool has %s", r->gpu_model,
                       models[0] == '\0' ? "no cards" : models);
    }
    if (r->gpus > x.node_cards)
        return err_set(e, -ERANGE,
                       "gpus: %u cards for one worker can never be given: no machine has more than %u such cards; "
                       "use several workers",
                       r->gpus, x.node_cards);
    if (r->share_mem_mib > x.card_mem_mib)
        return err_set(e, -ERANGE, "gpu_mem: %u MiB can never be given: the largest card has %u MiB", r->share_mem_mib,
                       x.card_mem_mib);
    if (r->cpu_milli > x.cpu_milli)
        return err_set(e, -ERANGE, "cpus: %u.%03u can never be given: the largest machine has %u.%03u",
                       r->cpu_milli / 1000, r->cpu_milli % 1000, x.cpu_milli / 1000, x.cpu_milli % 1000);
    if (r->mem_mib > x.mem_mib)
        return err_set(e, -ERANGE, "mem: %llu MiB can never be given: the largest machine has %llu MiB",
                       (unsigned long long)r->mem_mib, (unsigned long long)x.mem_mib);
    if (probe->require != LEVEL_ANY)
        return err_set(e, -ERANGE,
                       "require: %u workers can never run within the required level, even on empty machines",
                       probe->workers);
    return err_set(e, -ERANGE, "workers: %u workers can never run at once, even on empty machines (%llu cards in all)",
                   probe->workers, (unsigned long long)x.cards);
}
