/* SPDX-License-Identifier: Apache-2.0 */
#include "base/idmap.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>

struct idmap_slot {
    uint64_t key;
    void *value; /* NULL: free */
};

static size_t home(const struct idmap *m, uint64_t key)
{
    uint64_t h = key * 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ (h >> 32)) & (m->cap - 1);
}

void idmap_init(struct idmap *m)
{
    *m = (struct idmap){0};
}

void idmap_done(struct idmap *m)
{
    mem_free(m->slots);
    *m = (struct idmap){0};
}

static struct idmap_slot *find(const struct idmap *m, uint64_t key)
{
    size_t i = home(m, key);
    while (m->slots[i].value != NULL && m->slots[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

static int grow(struct idmap *m)
{
    struct idmap bigger = {.cap = m->cap == 0 ? 16 : m->cap * 2, .len = m->len};
    bigger.slots = mem_alloc(bigger.cap, sizeof *bigger.slots);
    if (bigger.slots == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].value != NULL)
            *find(&bigger, m->slots[i].key) = m->slots[i];
    mem_free(m->slots);
    *m = bigger;
    return 0;
}

int idmap_put(struct idmap *m, uint64_t key, void *value)
{
    assert(key != 0 && value != NULL);
    if (m->len + 1 > m->cap / 4 * 3) {
        int r = grow(m);
        if (r < 0)
            return r;
    }
    struct idmap_slot *slot = find(m, key);
    if (slot->value == NULL)
        m->len++;
    *slot = (struct idmap_slot){key, value};
    return 0;
}

void *idmap_get(const struct idmap *m, uint64_t key)
{
    return m->cap == 0 ? NULL : find(m, key)->value;
}

void *idmap_remove(struct idmap *m, uint64_t key)
{
    if (m->cap == 0)
        return NULL;
    struct idmap_slot *slot = find(m, key);
    void *value = slot->value;
    if (value == NULL)
        return NULL;
    m->len--;
    /* Close the gap: move up every later entry of the run whose home lies at or before the gap. */
    size_t gap = (size_t)(slot - m->slots);
    m->slots[gap].value = NULL;
    for (size_t i = (gap + 1) & (m->cap - 1); m->slots[i].value != NULL; i = (i + 1) & (m->cap - 1)) {
        size_t want = home(m, m->slots[i].key);
        if (((i - want) & (m->cap - 1)) >= ((i - gap) & (m->cap - 1))) {
            m->slots[gap] = m->slots[i];
            m->slots[i].value = NULL;
            gap = i;
        }
    }
    return value;
}
