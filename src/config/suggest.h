/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the nearest known word to one that is not known. */
#ifndef REMUDA_CONFIG_SUGGEST_H
#define REMUDA_CONFIG_SUGGEST_H

#include <stddef.h>

/* Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`; at most 99 is told apart. */
size_t suggest_distance(const char *a, const char *b);

/*
 * Keeps the best candidate so far: call for every known word, starting with *best = NULL. A candidate counts when it
 * differs by at most a third of the word's letters (at least one, at most three), '-' and '_' being the same.
 */
void suggest_offer(const char *word, const char *candidate, const char **best);

#endif
