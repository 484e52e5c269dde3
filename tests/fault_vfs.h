/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite file layer whose Nth operation fails: the usual one of the system with a counter in
 * front. A failing write leaves half of its bytes, as a real disk may. For tests of one thread.
 */
#ifndef REMUDA_TESTS_FAULT_VFS_H
#define REMUDA_TESTS_FAULT_VFS_H

#include <stdbool.h>
#include <stdint.h>

#define FAULT_VFS_NAME "fault"

/* Registers the layer; call once. */
void fault_vfs_register(void);

/*
 * From now on the `nth` operation (1 is the next) fails with the SQLite result `code`, and every
 * later one too when `lasting`. Writes, truncations, syncs, openings, deletions and growth of the
 * shared index count; reads do when `reads`. 0 disarms.
 */
void fault_vfs_arm(uint64_t nth, int code, bool lasting, bool reads);

/* Operations that have failed since the last arming. */
uint64_t fault_vfs_hits(void);

#endif
