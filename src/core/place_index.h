/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Score indexes. For each distinct (strategy, unit) that is asked for there is an index: the score of every node, and
 * over them a tournament tree, so that the best node, in the whole pool or in one rack, is found in O(log nodes). An
 * index reads the cluster's change log from where it stood last and scores again only what changed.
 *
 * Nodes stand in the tree in the order of the layout: by rack, then rank. So a rack is a range. Memory is bounded: the
 * indexes that were not used for longest are dropped when all together pass a limit.
 *
 * Example: 10,000 nodes, 40 kinds of requests. After 100 changes each kind that is asked for scores 100 nodes (about
 * 0.2 us each) and walks 100 x 14 tree levels; one index takes 180 kB.
 */
#ifndef REMUDA_CORE_PLACE_INDEX_H
#define REMUDA_CORE_PLACE_INDEX_H

#include "core/place_unit.h"

#define POS_NONE UINT32_MAX

/* The order of the nodes in every tree. */
struct layout {
    uint64_t generation; /* cluster->layout_generation this was made for */
    bool made;
    uint32_t len;
    uint32_t racks_len;
    uint32_t *node_at;    /* position -> node id */
    uint32_t *pos_of;     /* node id -> position */
    uint32_t *rank_at;    /* position -> rank */
    uint32_t *rack_start; /* racks_len + 1 positions */
};

struct place_index {
    const struct strategy *strategy;
    struct unit unit;
    uint64_t hash;
    struct place_index *chain;         /* next in the hash bucket */
    struct place_index *newer, *older; /* by last use */
    size_t bytes;
    uint64_t cursor; /* changes seen so far */
    uint64_t layout_generation;
    uint64_t mix_generation;
    uint32_t len;
    uint32_t leaves; /* a power of two, at least len */
    uint32_t racks_len;
    int64_t *scores;      /* by position; SCORE_NONE where the unit does not fit */
    uint32_t *tree;       /* 2 * leaves winners' positions; the root is tree[1] */
    uint64_t *rack_rooms; /* units of one worker only: sum of rooms by rack */
    uint64_t room;        /* sum of all rooms */
    uint16_t *rooms;      /* by position: workers that fit */
};

#define INDEX_BUCKETS   1024
#define INDEX_BYTES_MAX (64u << 20)

struct index_cache {
    struct cluster *cluster;
    struct layout layout;
    struct place_index *buckets[INDEX_BUCKETS];
    struct place_index *newest, *oldest;
    size_t bytes_max;
    uint32_t *stamps; /* by node: the refresh that looked at it last */
    size_t stamps_cap;
    uint32_t stamp;
    struct place_stats stats;
};

void index_cache_init(struct index_cache *c, struct cluster *cluster);
void index_cache_done(struct index_cache *c);

/*
 * The index for the unit, made when new, brought up to date. Valid until the next call. `mix_generation` changes with
 * the mix. 0 or -ENOMEM.
 */
int index_get(struct index_cache *c, const struct scorer *s, uint64_t mix_generation, const struct unit *u,
              struct place_index **ret);

/* The best position in low..high-1, or POS_NONE when the unit fits nowhere there. */
uint32_t index_best(const struct index_cache *c, const struct place_index *ix, uint32_t low, uint32_t high);

/* Overwrites one score for the time of a search; the caller puts the old one back. Rooms are not touched. */
void index_poke(const struct index_cache *c, struct place_index *ix, uint32_t pos, int64_t score);

#endif
