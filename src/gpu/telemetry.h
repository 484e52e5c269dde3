/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample of what the cards of a machine are doing: per card and per process. Each figure is
 * said to be missing where the card does not offer it, never made up; the sources are named.
 */
#ifndef REMUDA_GPU_TELEMETRY_H
#define REMUDA_GPU_TELEMETRY_H

#include "gpu/inventory.h"

#define TELEMETRY_NONE (-1) /* not offered by this card */

/* One process on one card. */
struct telemetry_process {
    uint32_t gpu; /* index in the inventory */
    uint32_t pid;
    int64_t mem_mib; /* or TELEMETRY_NONE */
    int32_t sm_pct;  /* share of the SMs it kept busy, or TELEMETRY_NONE */
};

/* One card. */
struct telemetry_gpu {
    int32_t util_pct;     /* part of the time in which a kernel ran */
    int32_t mem_util_pct; /* part of the time in which memory was used */
    int64_t mem_used_mib; /* without what the driver keeps for itself, where the driver tells them
                             apart */
    int32_t power_w;
    int32_t temp_c;
    bool lost; /* the card does not answer any more */
};

struct telemetry {
    const char *source;         /* what util_pct is: "nvml utilization", or with ", simulated" */
    const char *process_source; /* what sm_pct is */
    uint32_t gpus_len;
    struct telemetry_gpu gpus[TOPO_GPUS_MAX];
    struct telemetry_process *processes; /* by card, then pid */
    size_t processes_len;
    size_t processes_cap;
    uint64_t last_seen_us[TOPO_GPUS_MAX]; /* newest process sample taken, by card */
};

/* Zero is an empty sample too. */
void telemetry_done(struct telemetry *t);
/*
 * Takes a sample of the cards of `inv` into `t`, which is used again and again (the memory is kept,
 * the figures are replaced). A card that fails has `lost` set and no figures; only -ENOMEM is an
 * error.
 */
int telemetry_sample(const struct nvml *n, const struct gpu_inventory *inv, struct telemetry *t, struct err *e);

#endif
