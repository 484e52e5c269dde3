/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remuda: least fragmentation over the requests that arrive; the default.
 *
 * Overview: FGD's measure (fragmentation.h) with terms of our own. All in millionths of a card; the
 * node with the highest sum is taken, and on it the card with the highest sum:
 *
 *   + how much F falls by the placement, in steps of 3,000: smaller differences are noise against
 *     what the mix can know, and the terms below decide better;
 *   - 0.9 x by how much the waste to be expected grows (mix_waste): F sees whether what is left of a
 *     card can be used by somebody, this sees what is left over once it has been;
 *   - 20,000 x what is left on the card of a share, as a part of it: a soft best fit;
 *   - 70,000 x what is left of the node's cards, in eighths of a card each, and 35,000 x what is left
 *     of its CPUs, in parts of 128: a soft best fit of the node, so that nodes fill up one after
 *     another and idle ones stay idle for large requests;
 *   - 10,000 for each class that the worst link between whole cards is below the best.
 *
 * Example: a share of 300; the mix is half "one card", half "share of 300" (F in thousandths). A
 * node has cards with 400 and 1000 free. On the first, F falls from 200 to 100 (400 is useless to
 * the whole card, then 100 is useless to both): a gain of 100,000 less the small terms. On the
 * second, F grows from 200 to 550 (1100 useless to the whole card, nothing to the share): -350,000.
 * The first card is taken.
 *
 * docs/placement.md has the results on nine task lists beside those of the published measure.
 *
 * Typical use: every cluster with requests of different sizes. Where all requests are equal it
 * behaves like binpack.
 *
 * Production ready? Yes.
 */
#include "core/cards.h"
#include "core/strategies/strategies.h"

#define STEP        3000
#define WASTE_MILLI 900
#define CARD_LEFT   20000
#define NODE_LEFT   70000
#define CPU_LEFT    35000
#define LINK_STEP   10000

/* The largest machines that the weights of NODE_LEFT and CPU_LEFT are made for; larger ones simply
 * weigh more. */
#define NODE_MILLI     8000
#define NODE_CPU_MILLI 128000

/* The gain in F by the placement, rounded down to a step. */
static int64_t gain(const struct score_in *in, const struct frag_state *now, int64_t before, uint32_t mask)
{
    int64_t after = mix_fragmentation_after(in->mix, now, in->node, in->req, mask);
    int64_t value = (before - after) * 1000 / mix_weight(in->mix);
    int64_t rest = value % STEP;
    return value - (rest < 0 ? rest + STEP : rest);
}

/* What is left of the card when the share is on it. */
static uint32_t left_on(const struct gpu *g, const struct place_req *r)
{
    struct gpu after = *g;
    after.free_milli = (uint16_t)(after.free_milli - r->share_milli);
    after.free_mem_mib -= r->share_mem_mib;
    return frag_card_free(&after);
}

/* The best card for a share: its value, and its bit in *ret_mask. */
static int64_t best_card(const struct score_in *in, const struct frag_state *now, int64_t before, uint32_t *ret_mask)
{
    int64_t best = INT64_MIN;
    uint32_t last_free = 0;
    uint32_t last_left = 0;
    for (uint32_t rest = in->cards; rest != 0; rest &= rest - 1) {
        uint32_t bit = rest & -rest;
        const struct gpu *g = &in->node->gpus[__builtin_ctz(bit)];
        uint32_t free = frag_card_free(g);
        uint32_t left = left_on(g, in->req);
        if (best != INT64_MIN && free == last_free && left == last_left && !now->mixed)
            continue; /* the same card once more */
        last_free = free;
        last_left = left;
        int64_t wasted = mix_waste(in->mix, left) - mix_waste(in->mix, free);
        int64_t value =
            gain(in, now, before, bit) - (int64_t)left * CARD_LEFT / GPU_MILLI - wasted * WASTE_MILLI / 1000;
        if (value > best) {
            best = value;
            *ret_mask = bit;
        }
    }
    return best;
}

static int64_t score(const struct score_in *in, uint32_t *ret_mask)
{
    const struct node *n = in->node;
    const struct place_req *r = in->req;
    struct frag_state now;
    frag_state_of(&now, n);
    int64_t before = mix_fragmentation(in->mix, &now);
    int64_t value;
    *ret_mask = 0;
    if (r->share_milli > 0) {
        value = best_card(in, &now, before, ret_mask);
    } else {
        *ret_mask = cards_pick(n, in->cards, r->gpus);
        value = gain(in, &now, before, *ret_mask) - (int64_t)cards_worst_link(n, *ret_mask) * LINK_STEP;
    }
    int64_t cards_left = (int64_t)now.total - r->gpus * GPU_MILLI - r->share_milli;
    int64_t cpu_left = (int64_t)n->free_cpu_milli - r->cpu_milli;
    return value - cards_left * NODE_LEFT / NODE_MILLI - cpu_left * CPU_LEFT / NODE_CPU_MILLI;
}

const struct strategy strategy_remuda = {
    .name = "remuda",
    .summary = "least fragmentation over the requests that arrive, then the tightest node",
    .uses_mix = true,
    .together = true,
    .gang_prefer = LEVEL_NVLINK,
    .score = score,
};
