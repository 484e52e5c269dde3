/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash map from a 64-bit id (not 0) to a pointer: linear probing, backward-shift deletion, load at most 3/4. It
 * can not be iterated on purpose: an order that depends on a hash must never reach a decision. Keep what has to
 * be walked in a table or an otree beside it.
 */
#ifndef REMUDA_BASE_IDMAP_H
#define REMUDA_BASE_IDMAP_H

#include <stddef.h>
#include <stdint.h>

struct idmap {
    struct idmap_slot *slots;
    size_t cap; /* a power of two, or 0 */
    size_t len;
};

void idmap_init(struct idmap *m);
void idmap_done(struct idmap *m); /* does not touch the values */
/* Sets key -> value, replacing an earlier value. `value` must not be NULL. 0 or -ENOMEM. */
int idmap_put(struct idmap *m, uint64_t key, void *value);
void *idmap_get(const struct idmap *m, uint64_t key); /* NULL when absent */
void *idmap_remove(struct idmap *m, uint64_t key);    /* the removed value, or NULL */

#endif
