/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several workers on one node are scored as their sum: one request for all their cards, CPU and
 * memory. Shares can not be summed (each needs one card), so they are scored one after the other on
 * a copy; beyond SHARES_SCORED the rest is taken to be alike. That bounds the cost and touches the
 * order only, never what fits.
 */
#include "core/place_unit.h"

#include "core/cards.h"

#include <assert.h>

#define SHARES_SCORED 16

static struct grant grant_of(const struct node *n, const struct place_req *r, uint32_t mask)
{
    return (struct grant){
        .node = n->id,
        .gpu_mask = mask,
        .milli = r->gpus > 0 ? GPU_MILLI : r->share_milli,
        .gpu_mem_mib = r->gpus > 0 ? 0 : r->share_mem_mib,
        .cpu_milli = r->cpu_milli,
        .mem_mib = r->mem_mib,
    };
}

/* Scores one request with the cards of `within` that it may use. */
static int64_t score_one(const struct scorer *s, const struct place_req *r, const struct node *n, uint32_t within,
                         uint32_t *ret_mask)
{
    struct score_in in = {
        .mix = s->mix,
        .state = s->state,
        .node = n,
        .req = r,
        .cards = cards_usable(n, r) & within,
    };
    return s->strategy->score(&in, ret_mask);
}

static struct place_req sum_of(const struct unit *u)
{
    struct place_req sum = u->req;
    sum.gpus *= u->workers;
    sum.cpu_milli *= u->workers;
    sum.mem_mib *= u->workers;
    return sum;
}

/* The score with the cards of `within`, which have room. *ret_mask: the cards for whole ones and
 * for one worker. */
static int64_t score_within(const struct scorer *s, const struct unit *u, const struct node *n, uint32_t within,
                            uint32_t *ret_mask)
{
    if (u->workers == 1)
        return score_one(s, &u->req, n, within, ret_mask);
    if (u->req.share_milli == 0) {
        struct place_req sum = sum_of(u);
        return score_one(s, &sum, n, within, ret_mask);
    }
    struct node copy = *n;
    int64_t score = 0;
    for (uint32_t i = 0; i < u->workers && i < SHARES_SCORED; i++) {
        uint32_t mask = 0;
        score += score_one(s, &u->req, &copy, within, &mask);
        struct grant g = grant_of(&copy, &u->req, mask);
        node_take(&copy, &g);
    }
    *ret_mask = within;
    return score;
}

/* The island with the best score, then with the fewest usable cards, then the first; 0 when none
 * has room. */
static uint32_t best_island(const struct scorer *s, const struct unit *u, const struct node *n, int64_t *ret_score)
{
    uint32_t best = 0;
    uint32_t best_len = 0;
    uint32_t usable = cards_usable(n, &u->req);
    for (uint32_t rest = usable; rest != 0;) {
        uint32_t island = usable & cards_island(n, (uint32_t)__builtin_ctz(rest));
        rest &= ~island;
        if (cards_room(n, &u->req, island) < u->workers)
            continue;
        uint32_t mask = 0;
        uint32_t len = (uint32_t)__builtin_popcount(island);
        int64_t score = score_within(s, u, n, island, &mask);
        if (best == 0 || score > *ret_score || (score == *ret_score && len < best_len)) {
            best = island;
            best_len = len;
            *ret_score = score;
        }
    }
    return best;
}

static bool needs_island(const struct unit *u)
{
    return u->island && (u->req.gpus > 0 || u->req.share_milli > 0);
}

int64_t unit_score(const struct scorer *s, const struct unit *u, const struct node *n)
{
    uint32_t mask = 0;
    int64_t score = SCORE_NONE;
    if (needs_island(u)) {
        best_island(s, u, n, &score);
        return score;
    }
    if (cards_room(n, &u->req, CARDS_ALL) < u->workers)
        return SCORE_NONE;
    return score_within(s, u, n, CARDS_ALL, &mask);
}

void unit_fill(const struct scorer *s, const struct unit *u, struct node *n, struct grant *grants)
{
    int64_t score = SCORE_NONE;
    uint32_t within = needs_island(u) ? best_island(s, u, n, &score) : CARDS_ALL;
    assert(within != 0);
    if (u->workers > 1 && u->req.gpus > 0) {
        uint32_t mask = 0;
        score_within(s, u, n, within, &mask);
        within = mask;
    }
    for (uint32_t i = 0; i < u->workers; i++) {
        uint32_t mask = 0;
        if (u->workers > 1 && u->req.gpus > 0)
            mask = cards_pick(n, cards_usable(n, &u->req) & within, u->req.gpus);
        else if (u->workers == 1 || u->req.share_milli > 0)
            score_one(s, &u->req, n, within, &mask);
        grants[i] = grant_of(n, &u->req, mask);
        node_take(n, &grants[i]);
    }
}
