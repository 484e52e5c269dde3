/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place where memory comes from. Everything allocates through here so that a test can make the
 * Nth allocation fail and check that the caller reports -ENOMEM and leaks nothing. Memory is zeroed.
 * Also the cleanup attributes used for locals.
 */
#ifndef REMUDA_BASE_MEM_H
#define REMUDA_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory for `count` things of `size` bytes, owned by the caller; NULL when there is none. */
void *mem_alloc(size_t count, size_t size);
/* Releases what mem_alloc, mem_grow or mem_strdup returned. NULL is allowed. */
void mem_free(void *p);
/* A copy of `s` owned by the caller; NULL when there is no memory. */
char *mem_strdup(const char *s);
/* A copy of the first `len` bytes of `s`, terminated. */
char *mem_strndup(const char *s, size_t len);

/*
 * Makes the array *array (elements of `size` bytes, capacity *cap) hold at least `need` elements, growing
 * by half; new elements are zeroed. Returns 0 or -ENOMEM, in which case nothing has changed.
 */
int mem_grow(void *array, size_t *cap, size_t need, size_t size);

/*
 * Fault switch for tests: the `nth` allocation from now on (1 is the next) and all later ones fail;
 * 0 switches it off. Not for programs.
 */
void mem_fail_from(uint64_t nth);
/* Number of allocations made so far in this process. */
uint64_t mem_allocations(void);

void mem_free_ptr(void *p); /* for CLEANUP_FREE only */
#define CLEANUP(fn)  __attribute__((cleanup(fn)))
#define CLEANUP_FREE CLEANUP(mem_free_ptr)
/* Gives up a cleanup-managed pointer: yields its value and leaves NULL behind. */
#define TAKE_PTR(p)                 \
    ({                              \
        __typeof__(p) taken_ = (p); \
        (p) = NULL;                 \
        taken_;                     \
    })

#endif
