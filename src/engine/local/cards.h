/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cards of this machine as the local engine reports them: through NVML, from the real driver or from the
 * stand-in library when cards are simulated. A machine without cards is a node with none.
 */
#ifndef REMUDA_ENGINE_LOCAL_CARDS_H
#define REMUDA_ENGINE_LOCAL_CARDS_H

#include "engine/engine.h"

struct cards;

/*
 * With a preset: makes STATE/simgpu and opens the stand-in of `simgpu_dir` on it (sets REMUDA_SIMGPU in this process),
 * and any failure is an error. Without: the machine's own cards, none when there is no driver.
 */
int cards_open(const char *preset, const char *state_dir, const char *simgpu_dir, struct cards **ret, struct err *e);
void cards_free(struct cards *c);
/* Path of the state file of simulated cards; NULL when they are real. Borrowed. */
const char *cards_simulated(const struct cards *c);
/* Fills the cards, links, topology (borrowed from `c`) and, for a simulated machine, more CPUs than there are. */
void cards_describe(const struct cards *c, struct engine_node *node);
/*
 * One sample; *ret (borrowed until the next) has *ret_len entries, *ret_source says what it is. Returns true when the
 * health of a card changed: describe again.
 */
bool cards_sample(struct cards *c, const struct engine_gpu_sample **ret, uint32_t *ret_len, const char **ret_source);

#endif
