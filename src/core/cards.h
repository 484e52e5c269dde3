/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cards inside one node: which of them a worker may use, how many workers fit, and which set of whole cards to
 * take so that they are linked well. Sets of cards are bit masks.
 */
#ifndef REMUDA_CORE_CARDS_H
#define REMUDA_CORE_CARDS_H

#include "core/place.h"

#define CARDS_ALL UINT32_MAX

/* Cards that have room for the share of `r`, or are idle when `r` asks for whole ones; 0 when it asks for none. */
uint32_t cards_usable(const struct node *n, const struct place_req *r);

/* Workers of `r` that fit on the node at once using only `within`, at most WORKERS_MAX. Open or not. */
uint32_t cards_room(const struct node *n, const struct place_req *r, uint32_t within);

/* The same for the node with nothing held on it. */
uint32_t cards_capacity(const struct node *n, const struct place_req *r, uint32_t within);

/* All cards of the island that card `g` is in. */
uint32_t cards_island(const struct node *n, uint32_t g);

/*
 * `count` of the cards in `from` (which has at least so many): inside one NVLink island if one has enough, the
 * island with the fewest to spare; else the set whose worst link is best. Ties go to the lowest numbers; where
 * links are unknown these are the lowest-numbered cards.
 */
uint32_t cards_pick(const struct node *n, uint32_t from, uint32_t count);

/* The worst link inside the set; LINK_SELF for fewer than two cards. */
enum link_class cards_worst_link(const struct node *n, uint32_t set);

#endif
