/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Test switches only: no behaviour of the program depends on them. */
static uint64_t allocations;
static uint64_t fail_from;

static int must_fail(void)
{
    uint64_t number = __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return fail_from != 0 && number >= fail_from;
}

void mem_fail_from(uint64_t nth)
{
    fail_from = nth == 0 ? 0 : allocations + nth;
}

uint64_t mem_allocations(void)
{
    return allocations;
}

void *mem_alloc(size_t count, size_t size)
{
    if (must_fail())
        return NULL;
    return calloc(count == 0 ? 1 : count, size == 0 ? 1 : size);
}

void mem_free(void *p)
{
    free(p);
}

void mem_free_ptr(void *p)
{
    free(*(void **)p);
}

char *mem_strndup(const char *s, size_t len)
{
    char *copy = mem_alloc(len + 1, 1);
    if (copy != NULL)
        memcpy(copy, s, len);
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

int mem_grow(void *array, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return 0;
    size_t want = *cap + *cap / 2;
    if (want < need)
        want = need;
    if (want < 8)
        want = 8;
    if (size != 0 && want > SIZE_MAX / size)
        return -ENOMEM;
    if (must_fail())
        return -ENOMEM;
    void **slot = array;
    char *grown = realloc(*slot, want * size);
    if (grown == NULL)
        return -ENOMEM;
    memset(grown + *cap * size, 0, (want - *cap) * size);
    *slot = grown;
    *cap = want;
    return 0;
}
