/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as small numbers: each distinct string gets the next id from 0, in order of first appearance, and keeps
 * it for the life of the table. Ids index arrays; iteration is by id and therefore defined.
 */
#ifndef REMUDA_BASE_INTERN_H
#define REMUDA_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#define INTERN_NONE UINT32_MAX

struct intern {
    char **names; /* by id; owned */
    size_t names_cap;
    uint32_t count;
    uint32_t *slots; /* hash table of id + 1 */
    size_t slots_cap;
};

void intern_init(struct intern *t);
void intern_done(struct intern *t);
/* The id of `name`, made when new; INTERN_NONE when there is no memory. */
uint32_t intern_id(struct intern *t, const char *name);
/* The id of `name`, or INTERN_NONE when it was never seen. */
uint32_t intern_find(const struct intern *t, const char *name);
/* The name of an id below t->count; valid for the life of the table. */
const char *intern_name(const struct intern *t, uint32_t id);

#endif
