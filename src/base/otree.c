/* SPDX-License-Identifier: Apache-2.0 */
#include "base/otree.h"

#include <assert.h>

void otree_init(struct otree *t, otree_cmp *cmp, const void *ctx)
{
    *t = (struct otree){.cmp = cmp, .ctx = ctx};
}

static int height(const struct otree_node *n)
{
    return n == NULL ? 0 : n->height;
}

static void update(struct otree_node *n)
{
    int l = height(n->left);
    int r = height(n->right);
    n->height = (l > r ? l : r) + 1;
}

/* Puts `with` in the place of `n` under n's parent. */
static void replace(struct otree *t, struct otree_node *n, struct otree_node *with)
{
    if (n->parent == NULL)
        t->root = with;
    else if (n->parent->left == n)
        n->parent->left = with;
    else
        n->parent->right = with;
    if (with != NULL)
        with->parent = n->parent;
}

static struct otree_node *rotate(struct otree *t, struct otree_node *n, bool to_left)
{
    struct otree_node *up = to_left ? n->right : n->left;
    struct otree_node *middle = to_left ? up->left : up->right;
    replace(t, n, up);
    if (to_left) {
        up->left = n;
        n->right = middle;
    } else {
        up->right = n;
        n->left = middle;
    }
    n->parent = up;
    if (middle != NULL)
        middle->parent = n;
    update(n);
    update(up);
    return up;
}

static void rebalance(struct otree *t, struct otree_node *n)
{
    while (n != NULL) {
        update(n);
        int balance = height(n->left) - height(n->right);
        if (balance > 1) {
            if (height(n->left->left) < height(n->left->right))
                (void)rotate(t, n->left, true);
            n = rotate(t, n, false);
        } else if (balance < -1) {
            if (height(n->right->right) < height(n->right->left))
                (void)rotate(t, n->right, false);
            n = rotate(t, n, true);
        }
        n = n->parent;
    }
}

bool otree_linked(const struct otree_node *n)
{
    return n->height != 0;
}

void otree_insert(struct otree *t, struct otree_node *n)
{
    assert(!otree_linked(n));
    struct otree_node **link = &t->root;
    struct otree_node *parent = NULL;
    while (*link != NULL) {
        parent = *link;
        int c = t->cmp(n, parent, t->ctx);
        assert(c != 0);
        link = c < 0 ? &parent->left : &parent->right;
    }
    *n = (struct otree_node){.parent = parent, .height = 1};
    *link = n;
    t->len++;
    rebalance(t, parent);
}

static struct otree_node *leftmost(struct otree_node *n)
{
    while (n != NULL && n->left != NULL)
        n = n->left;
    return n;
}

void otree_remove(struct otree *t, struct otree_node *n)
{
    assert(otree_linked(n) && t->len > 0);
    struct otree_node *from;
    if (n->left == NULL || n->right == NULL) {
        from = n->parent;
        replace(t, n, n->left != NULL ? n->left : n->right);
    } else {
        /* The successor has no left child: it leaves its place and takes the place of n. */
        struct otree_node *heir = leftmost(n->right);
        from = heir->parent == n ? heir : heir->parent;
        if (heir->parent != n) {
            replace(t, heir, heir->right);
            heir->right = n->right;
            heir->right->parent = heir;
        }
        replace(t, n, heir);
        heir->left = n->left;
        heir->left->parent = heir;
    }
    t->len--;
    *n = (struct otree_node){0};
    rebalance(t, from);
}

struct otree_node *otree_first(const struct otree *t)
{
    return leftmost(t->root);
}

struct otree_node *otree_last(const struct otree *t)
{
    struct otree_node *n = t->root;
    while (n != NULL && n->right != NULL)
        n = n->right;
    return n;
}

struct otree_node *otree_next(const struct otree_node *n)
{
    if (n->right != NULL)
        return leftmost(n->right);
    struct otree_node *parent = n->parent;
    while (parent != NULL && parent->right == n) {
        n = parent;
        parent = n->parent;
    }
    return parent;
}

struct otree_node *otree_lower_bound(const struct otree *t, const struct otree_node *key)
{
    struct otree_node *best = NULL;
    struct otree_node *n = t->root;
    while (n != NULL) {
        if (t->cmp(n, key, t->ctx) < 0) {
            n = n->right;
        } else {
            best = n;
            n = n->left;
        }
    }
    return best;
}
