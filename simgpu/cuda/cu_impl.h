/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the CUDA driver stand-in. One lock protects everything of the process (contexts, streams,
 * heaps, the process's slots); nobody sleeps while holding it. The current context is a stack for
 * each thread.
 *
 * Time. Each stream has the moment at which its queued work is done. In real time (the default)
 * moments are CLOCK_MONOTONIC and waiting means sleeping until then, so that two processes on a
 * card are seen side by side. With REMUDA_SIMGPU_TIME=virtual the clock of a device only moves when
 * somebody waits, at once: programs run at full speed, and events measure what the kernels would
 * have taken.
 *
 * After fork() the child can not use CUDA, as with the real driver: every call answers
 * NOT_INITIALIZED.
 */
#ifndef REMUDA_SIMGPU_CUDA_CU_IMPL_H
#define REMUDA_SIMGPU_CUDA_CU_IMPL_H

#include "abi/cuda_abi.h"
#include "simgpu/cuda/heap.h"
#include "simgpu/state/state.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

#define MAGIC_CONTEXT  0x52435458u
#define MAGIC_STREAM   0x5253544du
#define MAGIC_EVENT    0x52455654u
#define MAGIC_MODULE   0x524d4f44u
#define MAGIC_FUNCTION 0x5246554eu

/* A visible device; its number is its place in the list. */
struct device {
    uint32_t card;            /* in the state file */
    struct simgpu_slot *slot; /* while there is a context */
    unsigned contexts;
    struct heap heap; /* made with the first context, kept */
    bool has_heap;
    struct CUctx_st *primary; /* NULL: not active */
    unsigned primary_refs;
    unsigned primary_flags;
    uint64_t virtual_now_ns;
};

struct CUstream_st {
    uint32_t magic;
    unsigned flags;
    int priority;
    struct CUctx_st *context;
    uint64_t ready_ns; /* when all that was queued is done */
    struct CUstream_st *next;
};

struct CUevent_st {
    uint32_t magic;
    unsigned flags;
    struct CUctx_st *context;
    bool recorded;
    uint64_t time_ns;
};

struct CUctx_st {
    uint32_t magic;
    CUdevice device;
    unsigned flags;
    bool is_primary;
    size_t limits[3];
    uint32_t peers;            /* bit mask of devices with peer access enabled */
    struct CUstream_st legacy; /* the default stream */
    struct CUstream_st *streams;
    uint64_t blocking_ready_ns; /* latest end on streams that the default stream waits for */
    uint64_t all_ready_ns;
    struct CUctx_st *next;
};

struct kernel {
    char name[64];
    uint64_t time_ns;  /* of a launch */
    uint64_t block_ns; /* more for each block of the grid */
    uint32_t permille; /* of the SMs; 0: by the number of blocks */
};

struct CUfunc_st {
    uint32_t magic;
    struct CUmod_st *module;
    struct kernel kernel;
};

struct CUmod_st {
    uint32_t magic;
    struct CUctx_st *context;
    unsigned len;
    struct CUfunc_st *functions;
};

struct driver {
    bool initialized;
    bool forked; /* we are the child of a process that had initialised */
    bool virtual_time;
    struct sim_state state;
    uint32_t devices_len;
    struct device devices[SIMGPU_CARDS_MAX];
    struct CUctx_st *contexts;
};

extern struct driver cu;

void cu_lock(void);
void cu_unlock(void);
/* Takes the lock and checks that the driver is initialised; the lock is held only on CUDA_SUCCESS.
 */
CUresult cu_enter(void);
/* The same, and the calling thread has a current context, which goes to *ret. */
CUresult cu_enter_context(struct CUctx_st **ret);
/* NULL when `device` is no number of a device. Lock held. */
struct device *cu_device(CUdevice device);
struct simgpu_card *cu_card(const struct device *d);
/* True when `context` is one that lives. Lock held. */
bool cu_context_alive(const struct CUctx_st *context);

/* Moments, cu_time.c. Lock held for all but cu_wait. */
uint64_t cu_now(const struct device *d);
/*
 * Queues work of `duration_ns` at full speed that keeps `permille` of the SMs busy (0: a copy)
 * behind what is in the stream; the default stream also waits for the others and they for it.
 */
void cu_queue(struct CUctx_st *ctx, struct CUstream_st *stream, uint64_t duration_ns, uint32_t permille);
/* True when the moment has come. In virtual time asking moves the clock a little, so that polling
 * ends. */
bool cu_reached(struct device *d, uint64_t time_ns);
/* Waits for the moment and gives the lock back, which the caller holds. */
void cu_wait(struct device *d, uint64_t time_ns);
/* The stream behind a handle (NULL and the special handles: the default stream), or NULL when it is
 * none. */
struct CUstream_st *cu_stream(struct CUctx_st *ctx, CUstream handle);

#endif
