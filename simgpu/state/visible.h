/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cards a process may see, and in which order: the value of CUDA_VISIBLE_DEVICES as the CUDA
 * driver reads it.
 */
#ifndef REMUDA_SIMGPU_VISIBLE_H
#define REMUDA_SIMGPU_VISIBLE_H

#include "simgpu/state/state.h"

/*
 * Resolves a list of indexes and UUIDs, separated by commas. NULL: all cards in order of index. A
 * UUID begins with "GPU-" and may be cut short as long as it means one card only. The first entry
 * that names no card ends the list: those before it are visible, none after it. A card named twice,
 * and "", make none visible. Returns the number of cards written to `out`.
 */
uint32_t sim_visible_cards(const struct sim_state *s, const char *list, uint32_t out[SIMGPU_CARDS_MAX]);

#endif
