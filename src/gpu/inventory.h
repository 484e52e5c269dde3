/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cards a machine has and how they are connected, asked from NVML once (and again when
 * something changed). A figure that the driver does not offer is left at "unknown" as said at each
 * field; only what names a card is necessary. Plain data afterwards: it outlives NVML.
 */
#ifndef REMUDA_GPU_INVENTORY_H
#define REMUDA_GPU_INVENTORY_H

#include "gpu/nvml.h"
#include "gpu/topo.h"

#define INVENTORY_UUID_SIZE  48
#define INVENTORY_MODEL_SIZE 64

struct inventory_gpu {
    uint32_t index;                   /* NVML's; a CUDA ordinal may be another */
    char uuid[INVENTORY_UUID_SIZE];   /* "GPU-..." */
    char name[96];                    /* "NVIDIA A100-SXM4-80GB" */
    char model[INVENTORY_MODEL_SIZE]; /* the short name for requests, "A100-80GB"; see
                                         gpu_short_model */
    char serial[32];                  /* "" unknown */
    char bus_id[32];                  /* "00000000:07:00.0"; "" unknown */
    uint32_t mem_mib;                 /* total */
    uint32_t mem_usable_mib;          /* total without what the driver keeps for itself */
    int32_t minor;                    /* of /dev/nvidiaN; -1 unknown */
    int32_t numa;                     /* -1 unknown */
    uint32_t cc_major;                /* 0 unknown */
    uint32_t cc_minor;
    uint32_t power_limit_w; /* 0 unknown */
    uint8_t island;         /* cards with equal numbers are joined pairwise by NVLink */
    bool mig_capable;
    bool mig_enabled;
};

struct gpu_inventory {
    char driver[80];
    uint32_t cuda_version; /* 12040 for 12.4; 0 unknown */
    bool simulated;
    uint32_t gpus_len;
    struct inventory_gpu gpus[TOPO_GPUS_MAX]; /* by index; those left out have none */
    uint32_t left_out;                        /* cards that could not be read (fell off the bus, ...) */
    char left_out_why[128];                   /* what the first of them said; "" when there is none */
    struct topo topo;                         /* gpus_len cards; network cards of a simulated machine too */
};

/*
 * Asks an open NVML. A card that does not answer a call that is necessary is left out, so that one
 * broken card does not take the others along. -ENODEV when there is no card, -E2BIG for more than
 * 16, -EIO with the card and the call when none can be read. `ret` is large: not for the stack. It
 * is untouched on failure.
 */
int inventory_read(const struct nvml *n, struct gpu_inventory *ret, struct err *e);

/*
 * The short model name for requests, from the driver's name: words NVIDIA, Tesla, Quadro and
 * GeForce and those that tell bus, board or memory type (PCIe, SXM.., HBM.., FHHL) are left out,
 * the rest is joined by '-'. So "NVIDIA A100-SXM4-80GB" and "NVIDIA A100 80GB PCIe" are both
 * "A100-80GB", "NVIDIA H100 80GB HBM3" is "H100-80GB", "NVIDIA H200" is "H200", "Tesla T4" is "T4",
 * "NVIDIA GeForce RTX 4090" is "RTX-4090". Characters other than letters, digits, '.' and '+'
 * become '-'. Never empty ("GPU").
 */
void gpu_short_model(const char *name, char out[INVENTORY_MODEL_SIZE]);

#endif
