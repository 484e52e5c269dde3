/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all parts of the simulation do with the file of abi/simgpu.h: map and check it, tell living
 * processes from dead ones, claim a slot, take and give memory, say how busy one is, and read what
 * others use.
 *
 * Depends on libc only (it is linked into stand-ins that live in foreign programs). Nothing here
 * keeps global state. Functions that change a slot are for its owner; within one process the caller
 * serialises them (the CUDA stand-in holds its device lock). Readers need nothing.
 */
#ifndef REMUDA_SIMGPU_STATE_H
#define REMUDA_SIMGPU_STATE_H

#include "abi/simgpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The window over which use is averaged, as long as the sample period of real cards. */
#define SIM_WINDOW_NS 200000000ull

struct sim_state {
    void *map; /* NULL: not open */
    size_t size;
    struct simgpu_header *header;
    bool writable;
};

/*
 * Maps the file at `path` (NULL: the one that REMUDA_SIMGPU names), for reading or also for
 * claiming slots. -ENOENT when there is none or the variable is unset, -EPROTONOSUPPORT when the
 * version is another, -EBADMSG when it is no such file or is damaged, else the errno of the system
 * call.
 */
int sim_state_open(struct sim_state *s, const char *path, bool writable);
void sim_state_close(struct sim_state *s);
struct simgpu_card *sim_card(const struct sim_state *s, uint32_t card);
struct simgpu_slot *sim_slots(const struct sim_state *s, uint32_t card);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t sim_now_ns(void);

/* Start time of a living process (field 22 of its stat file); 0 when it is dead, a zombie or not
 * there. */
uint64_t sim_process_start(pid_t pid);
/* True when the process that a slot names still lives. */
bool sim_slot_alive(uint32_t pid, uint64_t start_time);

/*
 * Claims a slot of `card` for this process, reusing those of the dead. Two claims by one process
 * give two slots. -ENOSPC when all are taken.
 */
int sim_slot_claim(struct sim_state *s, uint32_t card, struct simgpu_slot **ret);
/* Gives a slot of this process up, with all it held. NULL is allowed. */
void sim_slot_release(struct sim_state *s, uint32_t card, struct simgpu_slot *slot);

/*
 * Takes `bytes` of the card's memory for the slot, or -ENOMEM when the living processes' use would
 * pass what the card has; never both fit when only one does.
 */
int sim_mem_take(struct sim_state *s, uint32_t card, struct simgpu_slot *slot, uint64_t bytes);
void sim_mem_give(struct simgpu_slot *slot, uint64_t bytes);
/* Memory that living processes hold on the card; `self` is a slot of ours. No system call while
 * only we use it. */
uint64_t sim_mem_used(const struct sim_state *s, uint32_t card, const struct simgpu_slot *self);

/*
 * From `start_ns` (at least `now_ns`) for `duration_ns` this slot keeps `permille` of the SMs busy.
 * A period that follows on what is pending at the same load makes that longer; otherwise all that
 * is pending becomes one period of the same area. Duration SIMGPU_FOREVER: until sim_load_stop().
 */
void sim_load_add(struct simgpu_slot *slot, uint64_t now_ns, uint64_t start_ns, uint64_t duration_ns,
                  uint32_t permille);
/* Nothing is pending any more from `now_ns` on. */
void sim_load_stop(struct simgpu_slot *slot, uint64_t now_ns);
/* SM permille that the living processes other than `self` ask for right now, not capped. */
uint32_t sim_load_others(struct sim_state *s, uint32_t card, const struct simgpu_slot *self, uint64_t now_ns);

/* One living process on a card, as a reader sees it. */
struct sim_use {
    uint32_t pid;
    uint64_t mem_bytes;
    uint32_t sm_permille; /* average over the last SIM_WINDOW_NS */
    uint64_t busy_total;  /* permille x microseconds since it came */
};

/*
 * The living processes of a card, one entry for each pid (slots of one process are summed), by slot
 * order. Writes at most `cap` entries and returns the number there are.
 */
uint32_t sim_card_use(const struct sim_state *s, uint32_t card, struct sim_use *out, uint32_t cap);
/* Sums over the living: memory, and SM permille capped at SIMGPU_PERMILLE. Either may be NULL. */
void sim_card_total(const struct sim_state *s, uint32_t card, uint64_t *ret_mem_bytes, uint32_t *ret_permille);

#endif
