/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations for blocked jobs.
 *
 * For every open node it is found, from the expected ends of what runs there, when the node will have room for a
 * first, a second, ... worker of the blocked job. The earliest `workers` such openings (within one rack or one
 * machine when the job requires it) are the reservation; it starts when the latest of them opens. Nodes reserved
 * for jobs that come before are left out.
 *
 * Jobs further back in the queue pass (EASY backfilling: Lifka, "The ANL/IBM SP scheduling system", 1995) when they end
 * before the start, or when the reserved nodes, as they will be then, have room for them beside the reserved workers.
 *
 * Example: worker = 4 cards, n0 (8 cards) runs A (4 cards, ends 11:00) and B (4 cards, ends 13:00), n1 runs C (8 cards,
 * ends 12:00). Openings: n0 at 11:00, n1 twice at 12:00, n0 at 13:00. A gang of 3 workers gets n0, n1, n1 from 12:00.
 *
 * Cost: O(nodes + grants log grants), once for each blocked job up to the configured depth, and only after
 * something was given back.
 */
#include "base/mem.h"
#include "core/state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHARING_TRIES      8      /* then reserved nodes are left alone altogether */
#define UNLIMITED_GUESS_MS 600000 /* a job without a limit is expected to run at least this much longer */

struct opening {
    int64_t at_ms;
    bool bounded;  /* every job that ends before has a time limit */
    uint32_t rank; /* of the node, for a total order */
    uint32_t node;
    uint32_t group; /* rack or node, as the level wants */
};

struct openings {
    struct opening *rows;
    size_t cap;
    size_t len;
};

int64_t reserve_expected_end(const struct job *j, int64_t now_ms)
{
    int64_t deadline = job_deadline_ms(j);
    if (deadline != INT64_MAX)
        return deadline > now_ms ? deadline : now_ms + 60000;
    int64_t ran = now_ms - j->started_ms;
    return now_ms + (ran > UNLIMITED_GUESS_MS ? ran : UNLIMITED_GUESS_MS);
}

void reserve_clear(struct core *c)
{
    for (uint32_t i = 0; i < c->reservations_len; i++) {
        mem_free(c->reservations[i].nodes);
        mem_free(c->reservations[i].rooms);
    }
    c->reservations_len = 0;
}

bool reserve_prune(struct core *c)
{
    for (uint32_t i = 0; i < c->reservations_len; i++)
        if (c->reservations[i].job->state != JOB_QUEUED)
            return true;
    return false;
}

struct release {
    int64_t at_ms;
    bool bounded;
    uint32_t order; /* among equal times, so that the sort is total */
    const struct grant *grant;
};

static int compare_release(const void *a, const void *b)
{
    const struct release *x = a;
    const struct release *y = b;
    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int compare_opening(const void *a, const void *b)
{
    const struct opening *x = a;
    const struct opening *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Adds `count` openings like `at`, whose other fields are filled in here. */
static int push(struct openings *o, const struct node *n, enum level level, const struct opening *at, uint32_t count)
{
    int r = mem_grow(&o->rows, &o->cap, o->len + count, sizeof *o->rows);
    if (r < 0)
        return r;
    uint32_t group = level == LEVEL_RACK ? n->rack : level == LEVEL_ANY ? 0 : n->id;
    for (uint32_t i = 0; i < count; i++)
        o->rows[o->len++] = (struct opening){at->at_ms, at->bounded, n->rank, n->id, group};
    return 0;
}

/* When the node opens for workers of `j`, one after another, at most `j->workers` of them. */
static int node_openings(struct core *c, const struct node *n, const struct job *j, const struct place_req *req,
                         int64_t now_ms, struct openings *out)
{
    uint32_t len;
    const struct holder *holders = core_holders(c, n->id, &len);
    CLEANUP_FREE struct release *releases = mem_alloc(len, sizeof *releases);
    CLEANUP_FREE struct node *then = mem_alloc(1, sizeof *then);
    if (releases == NULL || then == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < len; i++) {
        const struct job *h = core_job(c, holders[i].job);
        releases[i] = (struct release){reserve_expected_end(h, now_ms), job_deadline_ms(h) != INT64_MAX, i,
                                       &h->grants[holders[i].worker]};
    }
    qsort(releases, len, sizeof *releases, compare_release);
    *then = *n;
    uint32_t room = 0;
    struct opening at = {.at_ms = now_ms, .bounded = true};
    for (uint32_t i = 0;; i++) {
        uint32_t more = place_room(then, req);
        more = more > j->workers ? j->workers : more;
        if (more > room) {
            int r = push(out, n, j->require, &at, more - room);
            if (r < 0)
                return r;
            room = more;
        }
        if (i == len || room == j->workers)
            return 0;
        node_give(then, releases[i].grant);
        at.at_ms = releases[i].at_ms;
        at.bounded = at.bounded && releases[i].bounded;
    }
}

static bool bit(const uint64_t *set, uint32_t i)
{
    return set != NULL && (set[i / 64] >> (i % 64) & 1) != 0;
}

/* The group whose `workers`-th opening is earliest; returns its first row, or NULL when no group has enough. */
static const struct opening *best_group(struct openings *o, uint32_t workers)
{
    if (o->len > 0)
        qsort(o->rows, o->len, sizeof *o->rows, compare_opening);
    const struct opening *best = NULL;
    for (size_t i = 0; i < o->len;) {
        size_t end = i;
        while (end < o->len && o->rows[end].group == o->rows[i].group)
            end++;
        if (end - i >= workers && (best == NULL || o->rows[i + workers - 1].at_ms < best[workers - 1].at_ms))
            best = &o->rows[i];
        i = end;
    }
    return best;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The node as it will be at `at_ms`, when what is expected to end by then has ended. */
static void node_at(const struct core *c, const struct node *n, int64_t now_ms, int64_t at_ms, struct node *ret)
{
    uint32_t len;
    const struct holder *holders = core_holders(c, n->id, &len);
    *ret = *n;
    for (uint32_t i = 0; i < len; i++) {
        const struct job *h = core_job(c, holders[i].job);
        if (reserve_expected_end(h, now_ms) <= at_ms)
            node_give(ret, &h->grants[holders[i].worker]);
    }
}

static int keep(struct core *c, const struct job *j, int64_t now_ms, const struct opening *rows)
{
    struct reservation *r = &c->reservations[c->reservations_len];
    uint32_t *nodes = mem_alloc(j->workers, sizeof *nodes);
    struct reserved_node *rooms = mem_alloc(j->workers, sizeof *rooms);
    if (nodes == NULL || rooms == NULL) {
        mem_free(nodes);
        mem_free(rooms);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < j->workers; i++)
        nodes[i] = rows[i].node;
    qsort(nodes, j->workers, sizeof *nodes, compare_u32);
    int64_t start_ms = rows[j->workers - 1].at_ms;
    bool bounded = true;
    uint32_t len = 0;
    for (uint32_t i = 0; i < j->workers; i++) {
        bounded = bounded && rows[i].bounded;
        if (len == 0 || nodes[len - 1] != nodes[i]) {
            node_at(c, c->cluster.nodes[nodes[i]], now_ms, start_ms, &rooms[len].then);
            nodes[len++] = nodes[i];
        }
        rooms[len - 1].workers++;
    }
    *r = (struct reservation){j, start_ms, bounded, nodes, rooms, len};
    c->reservations_len++;
    c->counters.reservations++;
    return 0;
}

/* --- passing behind reservations --- */

/* True when the reservation does not bind `j`. */
static bool may_pass(const struct reservation *r, const struct job *j, int64_t now_ms)
{
    return r->job == j || queue_compare(j, r->job) < 0 ||
           (j->time_limit_ms > 0 && now_ms <= r->start_ms - j->time_limit_ms);
}

/*
 * Cards of `n` for one worker, those that the reserved request can't use first, then the fullest: a guess at what
 * hurts it least. 0 when they are not there.
 */
static uint32_t pick_cards(const struct node *n, const struct place_req *req, const struct place_req *reserved)
{
    uint32_t mask = 0;
    uint32_t want = req->gpus > 0 ? req->gpus : req->share_milli > 0;
    for (uint32_t k = 0; k < want; k++) {
        uint32_t best = NODE_GPUS_MAX;
        uint32_t best_key = UINT32_MAX;
        for (uint32_t i = 0; i < n->gpus_len; i++) {
            const struct gpu *g = &n->gpus[i];
            bool room = req->gpus > 0
                            ? g->holders == 0
                            : !g->whole && g->free_milli >= req->share_milli && g->free_mem_mib >= req->share_mem_mib;
            if (!g->healthy || !room || (mask >> i & 1) != 0 || (req->model_mask >> g->model & 1) == 0)
                continue;
            uint32_t key = (reserved->model_mask >> g->model & 1) != 0 ? 10000u + g->free_milli : g->free_milli;
            if (key < best_key) {
                best = i;
                best_key = key;
            }
        }
        if (best == NODE_GPUS_MAX)
            return 0;
        mask |= UINT32_C(1) << best;
    }
    return mask;
}

/* True when one worker of `req` may well fit beside the reserved ones. */
static bool has_spare(const struct reserved_node *room, const struct place_req *req, const struct place_req *reserved)
{
    struct node then = room->then;
    struct grant g = {.node = then.id, .cpu_milli = req->cpu_milli, .mem_mib = req->mem_mib};
    if (req->gpus > 0 || req->share_milli > 0) {
        g.gpu_mask = pick_cards(&then, req, reserved);
        g.milli = req->gpus > 0 ? GPU_MILLI : req->share_milli;
        g.gpu_mem_mib = req->gpus > 0 ? 0 : req->share_mem_mib;
        if (g.gpu_mask == 0)
            return false;
    }
    if (!node_fits(&then, &g))
        return false;
    node_take(&then, &g);
    return place_room(&then, reserved) >= room->workers;
}

static void ban(struct core *c, uint32_t node)
{
    c->banned[node / 64] |= (uint64_t)1 << (node % 64);
}

static void ban_none(struct core *c)
{
    size_t words = ((size_t)c->cluster.nodes_len + 63) / 64;
    assert(words <= c->banned_cap);
    memset(c->banned, 0, words * sizeof *c->banned);
}

/* Every reserved node, as a bit set. */
static const uint64_t *all_reserved(struct core *c)
{
    if (c->reservations_len == 0)
        return NULL;
    ban_none(c);
    for (uint32_t i = 0; i < c->reservations_len; i++)
        for (uint32_t k = 0; k < c->reservations[i].nodes_len; k++)
            ban(c, c->reservations[i].nodes[k]);
    return c->banned;
}

/* The reserved nodes `j` may not use now; NULL: none. *ret_shares: some that bind it are left open to it. */
static const uint64_t *banned_for(struct core *c, const struct job *j, const struct place_req *req, int64_t now_ms,
                                  bool sharing, bool *ret_shares)
{
    bool any = false;
    *ret_shares = false;
    for (uint32_t i = 0; i < c->reservations_len; i++) {
        const struct reservation *r = &c->reservations[i];
        if (may_pass(r, j, now_ms))
            continue;
        if (!any)
            ban_none(c);
        any = true;
        struct place_req reserved = place_req_of(&c->cluster, &r->job->req);
        for (uint32_t k = 0; k < r->nodes_len; k++) {
            if (place_room(c->cluster.nodes[r->nodes[k]], req) == 0)
                continue; /* nothing of it can go there anyway: the usual case on a full pool */
            if (sharing && !r->rooms[k].broken && has_spare(&r->rooms[k], req, &reserved))
                *ret_shares = true;
            else
                ban(c, r->nodes[k]);
        }
    }
    return any ? c->banned : NULL;
}

/*
 * Bans every reserved node on which what was found would take the room of a reservation that binds `j`; false when
 * there is none.
 */
static bool ban_broken(struct core *c, const struct job *j, const struct placement *found, int64_t now_ms)
{
    bool any = false;
    for (uint32_t i = 0; i < c->reservations_len; i++) {
        const struct reservation *r = &c->reservations[i];
        if (may_pass(r, j, now_ms))
            continue;
        struct place_req reserved = place_req_of(&c->cluster, &r->job->req);
        for (uint32_t k = 0; k < r->nodes_len; k++) {
            struct node then = r->rooms[k].then;
            bool touched = false;
            bool fits = !r->rooms[k].broken;
            for (uint32_t w = 0; w < found->len; w++) {
                if (found->grants[w].node != r->nodes[k])
                    continue;
                touched = true;
                fits = fits && node_fits(&then, &found->grants[w]);
                if (fits)
                    node_take(&then, &found->grants[w]);
            }
            if (touched && (!fits || place_room(&then, &reserved) < r->rooms[k].workers)) {
                ban(c, r->nodes[k]);
                any = true;
            }
        }
    }
    return any;
}

int reserve_place(struct core *c, const struct job *j, int64_t now_ms, struct placement *ret)
{
    struct place_query q = core_query(c, j);
    bool shares = false;
    q.banned = banned_for(c, j, &q.req, now_ms, true, &shares);
    int r = place_find(c->placer, &q, ret);
    /* Where it would get other cards than hoped for it must not go: each try bans a node, so that this ends. */
    for (int i = 0; r == 0 && shares && ban_broken(c, j, ret, now_ms); i++) {
        if (i == SHARING_TRIES)
            q.banned = banned_for(c, j, &q.req, now_ms, false, &shares);
        r = place_find(c->placer, &q, ret);
    }
    return r;
}

void reserve_started(struct core *c, const struct job *j)
{
    for (uint32_t i = 0; i < c->reservations_len; i++) {
        struct reservation *r = &c->reservations[i];
        if (r->job == j || job_deadline_ms(j) <= r->start_ms)
            continue;
        for (uint32_t w = 0; w < j->workers; w++) {
            const uint32_t *at = bsearch(&j->grants[w].node, r->nodes, r->nodes_len, sizeof *at, compare_u32);
            if (at == NULL)
                continue;
            struct reserved_node *room = &r->rooms[at - r->nodes];
            if (!room->broken && node_fits(&room->then, &j->grants[w]))
                node_take(&room->then, &j->grants[w]);
            else
                room->broken = true;
        }
    }
}

int reserve_make(struct core *c, const struct job *j, int64_t now_ms)
{
    uint32_t depth = c->config.reservation_depth;
    if (c->reservations_len >= (depth < RESERVATIONS_MAX ? depth : RESERVATIONS_MAX))
        return 0;
    struct place_query q = core_query(c, j);
    if (!place_possible(c->placer, &q))
        return 0;
    const uint64_t *banned = all_reserved(c);
    struct openings o = {0};
    int r = 0;
    for (uint32_t i = 0; i < c->cluster.nodes_len && r == 0; i++)
        if (node_open(c->cluster.nodes[i]) && !bit(banned, i))
            r = node_openings(c, c->cluster.nodes[i], j, &q.req, now_ms, &o);
    const struct opening *best = r == 0 ? best_group(&o, j->workers) : NULL;
    if (best != NULL)
        r = keep(c, j, now_ms, best);
    mem_free(o.rows);
    return r;
}
