/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive ordered tree (AVL: Adelson-Velsky and Landis, 1962). Elements embed a `struct otree_node`; the
 * comparison function must be a total order over the elements (ties broken by a stable id), so that the order
 * of a walk is defined. Insert, remove and search are O(log n); nothing is allocated.
 */
#ifndef REMUDA_BASE_OTREE_H
#define REMUDA_BASE_OTREE_H

#include <stdbool.h>
#include <stddef.h>

struct otree_node {
    struct otree_node *left;
    struct otree_node *right;
    struct otree_node *parent;
    int height; /* 0: in no tree */
};

/* Negative, 0, positive as in qsort; `ctx` is the tree's. Two different nodes must never compare equal. */
typedef int otree_cmp(const struct otree_node *a, const struct otree_node *b, const void *ctx);

struct otree {
    struct otree_node *root;
    otree_cmp *cmp;
    const void *ctx;
    size_t len;
};

#define OTREE_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

void otree_init(struct otree *t, otree_cmp *cmp, const void *ctx);
/* `n` must be in no tree. */
void otree_insert(struct otree *t, struct otree_node *n);
/* `n` must be in this tree. Its ordering fields must be those it was inserted with. */
void otree_remove(struct otree *t, struct otree_node *n);
bool otree_linked(const struct otree_node *n);
struct otree_node *otree_first(const struct otree *t);
struct otree_node *otree_last(const struct otree *t);
struct otree_node *otree_next(const struct otree_node *n);
/* The first element that is not less than `key`, which need not be in the tree; NULL when there is none. */
struct otree_node *otree_lower_bound(const struct otree *t, const struct otree_node *key);

#endif
