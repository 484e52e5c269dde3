/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one simulated card in one process: a range of addresses, cut into blocks that are
 * free or given out. Blocks live in a treap by address in which each node knows the largest free
 * block below it, so that giving out (lowest address that fits), taking back (with merging) and
 * finding the block of any address cost O(log n).
 *
 * The range is address space, backed by nothing until it is written. A pointer into it is a host
 * pointer as well. Not thread-safe: the device lock protects it.
 */
#ifndef REMUDA_SIMGPU_CUDA_HEAP_H
#define REMUDA_SIMGPU_CUDA_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_GRAIN 512 /* addresses and sizes are multiples of it */

struct heap_block {
    uint64_t address;
    uint64_t size;     /* multiple of HEAP_GRAIN */
    uint64_t asked;    /* what was asked for */
    uint64_t max_free; /* largest free block in this subtree */
    uint32_t priority;
    bool free;
    bool touched; /* written to: has memory behind it */
    void *owner;  /* context */
    struct heap_block *left;
    struct heap_block *right;
};

struct heap {
    uint64_t base;
    uint64_t size;
    uint32_t seed;
    struct heap_block *root;
};

/* Reserves `size` bytes of address space. 0 or -ENOMEM. */
int heap_init(struct heap *h, uint64_t size);
void heap_done(struct heap *h);
/* Rounded to the grain; 0 when that overflows. */
uint64_t heap_round(uint64_t bytes);
/* A block for `bytes` (not 0), or NULL. */
struct heap_block *heap_take(struct heap *h, uint64_t bytes, void *owner);
/* Gives back the block that begins at `address`; its size, or 0 when there is none. */
uint64_t heap_give(struct heap *h, uint64_t address);
/* The block given out in which `address` lies, or NULL. */
struct heap_block *heap_find(const struct heap *h, uint64_t address);
/* Gives back all blocks of `owner`; the sum of their sizes. */
uint64_t heap_give_all(struct heap *h, const void *owner);

#endif
