/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See heap.h. The treap (Seidel and Aragon, 1989) is changed by split and merge only; depth is
 * logarithmic with overwhelming probability, so recursion is safe.
 */
#include "simgpu/cuda/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t best(const struct heap_block *b)
{
    return b ? b->max_free : 0;
}

static void update(struct heap_block *b)
{
    uint64_t m = b->free ? b->size : 0;
    m = best(b->left) > m ? best(b->left) : m;
    b->max_free = best(b->right) > m ? best(b->right) : m;
}

/* Blocks below `address` to *a, the others to *b. */
static void split(struct heap_block *t, uint64_t address, struct heap_block **a, struct heap_block **b)
{
    if (!t) {
        *a = *b = NULL;
    } else if (t->address < address) {
        split(t->right, address, &t->right, b);
        update(t);
        *a = t;
    } else {
        split(t->left, address, a, &t->left);
        update(t);
        *b = t;
    }
}

static struct heap_block *merge(struct heap_block *a, struct heap_block *b)
{
    if (!a || !b)
        return a ? a : b;
    if (a->priority > b->priority) {
        a->right = merge(a->right, b);
        update(a);
        return a;
    }
    b->left = merge(a, b->left);
    update(b);
    return b;
}

static void insert(struct heap *h, struct heap_block *n)
{
    struct heap_block *a, *b;
    update(n);
    split(h->root, n->address, &a, &b);
    h->root = merge(merge(a, n), b);
}

/* Takes the block that begins at `address` out of the tree. */
static struct heap_block *take_out(struct heap *h, uint64_t address)
{
    struct heap_block *a, *b, *mid;
    split(h->root, address, &a, &b);
    split(b, address + 1, &mid, &b);
    h->root = merge(a, b);
    return mid;
}

static struct heap_block *new_block(struct heap *h, uint64_t address, uint64_t size)
{
    struct heap_block *n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    n->address = address;
    n->size = size;
    n->free = true;
    h->seed = h->seed * 1664525u + 1013904223u;
    n->priority = h->seed ^ h->seed >> 16;
    return n;
}

int heap_init(struct heap *h, uint64_t size)
{
    memset(h, 0, sizeof(*h));
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return -ENOMEM;
    h->base = (uint64_t)(uintptr_t)p;
    h->size = size;
    h->seed = 1;
    struct heap_block *all = new_block(h, h->base, size);
    if (!all) {
        munmap(p, size);
        return -ENOMEM;
    }
    insert(h, all);
    return 0;
}

static void free_tree(struct heap_block *b)
{
    if (!b)
        return;
    free_tree(b->left);
    free_tree(b->right);
    free(b);
}

void heap_done(struct heap *h)
{
    free_tree(h->root);
    if (h->base)
        munmap((void *)(uintptr_t)h->base, h->size);
    memset(h, 0, sizeof(*h));
}

uint64_t heap_round(uint64_t bytes)
{
    return bytes > UINT64_MAX - HEAP_GRAIN ? 0 : (bytes + HEAP_GRAIN - 1) / HEAP_GRAIN * HEAP_GRAIN;
}

static struct heap_block *lowest_fit(struct heap_block *b, uint64_t size)
{
    while (b && b->max_free >= size) {
        if (best(b->left) >= size)
            b = b->left;
        else if (b->free && b->size >= size)
            return b;
        else
            b = b->right;
    }
    return NULL;
}

struct heap_block *heap_take(struct heap *h, uint64_t bytes, void *owner)
{
    uint64_t size = heap_round(bytes);
    struct heap_block *fit = size ? lowest_fit(h->root, size) : NULL;
    if (!fit)
        return NULL;
    struct heap_block *rest = NULL;
    if (fit->size > size) {
        rest = new_block(h, fit->address + size, fit->size - size);
        if (!rest)
            return NULL;
    }
    fit = take_out(h, fit->address);
    fit->left = fit->right = NULL;
    fit->size = size;
    fit->asked = bytes;
    fit->free = false;
    fit->touched = false;
    fit->owner = owner;
    insert(h, fit);
    if (rest)
        insert(h, rest);
    return fit;
}

struct heap_block *heap_find(const struct heap *h, uint64_t address)
{
    struct heap_block *b = h->root;
    while (b) {
        if (address < b->address)
            b = b->left;
        else if (address - b->address >= b->size)
            b = b->right;
        else
            return b->free ? NULL : b;
    }
    return NULL;
}

/* The block in which `address` lies when it is free. */
static struct heap_block *find_free(const struct heap *h, uint64_t address)
{
    struct heap_block *b = h->root;
    while (b && (address < b->address || address - b->address >= b->size))
        b = address < b->address ? b->left : b->right;
    return b && b->free ? b : NULL;
}

/* Hands the pages that lie wholly inside back to the system. */
static void drop_pages(uint64_t address, uint64_t size)
{
    uint64_t page = 4096, from = (address + page - 1) / page * page, to = (address + size) / page * page;
    if (to > from)
        madvise((void *)(uintptr_t)from, to - from, MADV_DONTNEED);
}

uint64_t heap_give(struct heap *h, uint64_t address)
{
    struct heap_block *b = heap_find(h, address);
    if (!b || b->address != address)
        return 0;
    uint64_t size = b->size;
    if (b->touched)
        drop_pages(b->address, b->size);
    b = take_out(h, address);
    struct heap_block *before = address > h->base ? find_free(h, address - 1) : NULL;
    struct heap_block *after = find_free(h, address + size);
    if (before) {
        before = take_out(h, before->address);
        b->address = before->address;
        b->size += before->size;
        free(before);
    }
    if (after) {
        after = take_out(h, after->address);
        b->size += after->size;
        free(after);
    }
    b->left = b->right = NULL;
    b->free = true;
    b->owner = NULL;
    insert(h, b);
    return size;
}

static struct heap_block *first_of(struct heap_block *b, const void *owner)
{
    if (!b)
        return NULL;
    struct heap_block *l = first_of(b->left, owner);
    if (l)
        return l;
    return !b->free && b->owner == owner ? b : first_of(b->right, owner);
}

uint64_t heap_give_all(struct heap *h, const void *owner)
{
    uint64_t sum = 0;
    for (struct heap_block *b; (b = first_of(h->root, owner)) != NULL;)
        sum += heap_give(h, b->address);
    return sum;
}
