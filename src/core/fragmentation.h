/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation: how much of a node's free cards is useless to the requests that arrive (the measure of "Beware of
 * Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", Weng et al., USENIX ATC
 * 2023). Integers only.
 *
 * For a node with free shares r_g (thousandths, one for each card) and free CPU c, and a kind of request m that
 * asks for k cards with a share s of each (s = 1000: whole cards) and some CPU:
 *
 *     R        = sum of r_g
 *     F(n, m)  = R                                 when m can not run on n, or uses no card
 *              = R - sum of the r_g with r_g >= s  when at least k cards have r_g >= s and c is enough
 *     F(n)     = sum over the mix of weight(m) * F(n, m)
 *
 * Example: free shares 300 and 1000, CPU plenty; the mix is half "one card" and half "a share of 500". Both can use
 * only the idle card, so 300 is useless to each: F = 1 * 300 + 1 * 300 = 600 at weights 1 and 1, that is 300
 * thousandths of a card. Putting a share of 200 on the idle card leaves 300 and 800: "one card" finds nothing
 * (1100 useless), the share of 500 still has 800 (300 useless): F = 1400. Putting it on the used one leaves 100
 * and 1000: F = 200. Hence the used card is the better one, by 1200 / 2 = 600 thousandths.
 *
 * A mix is immutable once made. What of a card can be used is the lesser of its free compute and its free memory
 * (as a part of the whole), so a card whose memory is gone counts as full.
 */
#ifndef REMUDA_CORE_FRAGMENTATION_H
#define REMUDA_CORE_FRAGMENTATION_H

#include "core/place.h"

/* The free state of a node as the measure sees it: its healthy cards, sorted by free share. */
struct frag_state {
    uint32_t cpu_milli;
    uint32_t len;
    uint32_t total;               /* sum of free */
    uint16_t free[NODE_GPUS_MAX]; /* ascending */
    uint8_t model[NODE_GPUS_MAX]; /* of the card at that place */
    bool mixed;                   /* the cards are of several models */
};

/* NULL when there is no memory. Items whose weight is 0 are dropped; order does not matter. */
struct mix *mix_new(const struct mix_item *items, size_t len);
void mix_free(struct mix *m);

/* Sum of all weights; the unit of mix_fragmentation() is thousandths of a card times this. At least 1. */
int64_t mix_weight(const struct mix *m);

/* The items as given, those without weight left out. */
const struct mix_item *mix_items(const struct mix *m, size_t *ret_len);

/*
 * What of a card with `free` is expected to be wasted in the end, in millionths of a card: the look-ahead that F
 * itself does not have. With requests for one card drawn from the mix, W(r) = r when none fits into r, else the mean
 * of W(r - s) over those that fit, taken for as likely as they are frequent: when what fits is rarer than one in
 * forty of all requests with cards, W(r) leans towards r in proportion. Example: shares of 800 and 200, equally
 * frequent: W(200) = 0, W(800) = (W(0) + W(600)) / 2 = 0 with W(600) = W(400) = W(200); and with shares of 800 alone
 * W(1000) = 200 thousandths.
 */
int64_t mix_waste(const struct mix *m, uint32_t free);

/* F of a state. */
int64_t mix_fragmentation(const struct mix *m, const struct frag_state *s);

/* What of a card can still be used, in thousandths. */
uint32_t frag_card_free(const struct gpu *g);
void frag_state_of(struct frag_state *s, const struct node *n);

/* One card of that model goes from `free` to `left`, which is less. There must be one. */
void frag_state_take(struct frag_state *s, uint32_t free, uint8_t model, uint32_t left);

/* F of the node once the worker or the gang as one request stands on it with the cards in `mask`. */
int64_t mix_fragmentation_after(const struct mix *m, const struct frag_state *now, const struct node *n,
                                const struct place_req *r, uint32_t mask);

#endif
