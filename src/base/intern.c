/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intern.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

void intern_init(struct intern *t)
{
    *t = (struct intern){0};
}

void intern_done(struct intern *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        mem_free(t->names[i]);
    mem_free(t->names);
    mem_free(t->slots);
    *t = (struct intern){0};
}

/* FNV-1a, 64 bit. */
static uint64_t hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s != '\0'; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h ^ (h >> 29);
}

static uint32_t *slot_of(const struct intern *t, const char *name)
{
    size_t i = (size_t)hash(name) & (t->slots_cap - 1);
    while (t->slots[i] != 0 && strcmp(t->names[t->slots[i] - 1], name) != 0)
        i = (i + 1) & (t->slots_cap - 1);
    return &t->slots[i];
}

static int rehash(struct intern *t)
{
    struct intern bigger = *t;
    bigger.slots_cap = t->slots_cap == 0 ? 16 : t->slots_cap * 2;
    bigger.slots = mem_alloc(bigger.slots_cap, sizeof *bigger.slots);
    if (bigger.slots == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->count; i++)
        *slot_of(&bigger, t->names[i]) = i + 1;
    mem_free(t->slots);
    *t = bigger;
    return 0;
}

uint32_t intern_find(const struct intern *t, const char *name)
{
    if (t->slots_cap == 0)
        return INTERN_NONE;
    uint32_t entry = *slot_of(t, name);
    return entry == 0 ? INTERN_NONE : entry - 1;
}

uint32_t intern_id(struct intern *t, const char *name)
{
    uint32_t known = intern_find(t, name);
    if (known != INTERN_NONE)
        return known;
    if ((t->count + 1) * 2 > t->slots_cap && rehash(t) < 0)
        return INTERN_NONE;
    if (mem_grow(&t->names, &t->names_cap, (size_t)t->count + 1, sizeof *t->names) < 0)
        return INTERN_NONE;
    char *copy = mem_strdup(name);
    if (copy == NULL)
        return INTERN_NONE;
    t->names[t->count] = copy;
    *slot_of(t, name) = t->count + 1;
    return t->count++;
}

const char *intern_name(const struct intern *t, uint32_t id)
{
    assert(id < t->count);
    return t->names[id];
}
