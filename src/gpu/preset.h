/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preset: a machine to simulate, as a text file (presets/, format in docs/simulated-gpus.md). The
 * format is a strict subset of YAML that needs no library: "key: value" lines, sections of keys
 * indented by two spaces, whole lines of comment. Everything is checked when it is read; an error
 * names the line, the key, and what is allowed.
 */
#ifndef REMUDA_GPU_PRESET_H
#define REMUDA_GPU_PRESET_H

#include "abi/simgpu.h"
#include "gpu/topo.h"

#define PRESET_MODELS_MAX 8
#define PRESET_FILE_MAX   (256u * 1024)

struct preset_model {
    char id[TOPO_NAME_SIZE]; /* as cards refer to it */
    char name[96];           /* as the driver names the card */
    uint32_t mem_mib;        /* as NVML reports it */
    uint32_t reserved_mib;   /* of it, never given out */
    uint32_t context_mib;    /* what a CUDA context costs */
    uint32_t sm_count;
    uint32_t cc_major;
    uint32_t cc_minor;
    uint32_t power_limit_w;
    uint32_t power_idle_w;
    uint32_t sm_clock_mhz;
    uint32_t mem_clock_mhz;
    uint32_t mem_bus_bits;
    uint32_t pcie_gen;
    uint32_t pcie_width;
    uint32_t pci_id; /* device number, 0x20b2 */
    uint32_t nvlink_version;
    uint32_t nvlinks; /* of one card */
    bool nvlink_switched;
    bool mig;
    bool ecc;
};

struct preset_gpu {
    uint32_t model; /* index */
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    int32_t numa; /* -1: not stated */
    uint64_t cpus[SIMGPU_CPU_WORDS];
};

struct preset {
    char name[64];         /* "dgx-a100" */
    char title[128];       /* for people */
    char driver[64];       /* "550.54.15" */
    uint32_t cuda_version; /* 12040 for 12.4 */
    uint32_t host_cpus;    /* 0: not stated */
    uint64_t host_mem_mib; /* 0: not stated */
    uint32_t models_len;
    struct preset_model models[PRESET_MODELS_MAX];
    uint32_t gpus_len;
    struct preset_gpu gpus[SIMGPU_CARDS_MAX];
    uint32_t nics_len;
    char nics[SIMGPU_NICS_MAX][TOPO_NAME_SIZE];
    struct topo topo;                                 /* as nvidia-smi would print it */
    uint8_t pcie[SIMGPU_CARDS_MAX][SIMGPU_CARDS_MAX]; /* enum topo_class of the path without NVLink */
};

/* Parses the `len` bytes. -EINVAL with the reason; *ret is untouched then. `ret` is large: not for
 * the stack. */
int preset_parse(const char *text, size_t len, struct preset *ret, struct err *e);
/* The same for a file. Also the errno of reading it. */
int preset_load(const char *path, struct preset *ret, struct err *e);
/*
 * The path of the preset that a person means: a text with a '/' is a path and taken as it is,
 * anything else names `folder`/TEXT.yaml. *ret is the caller's (mem_free). -ENOENT when there is no
 * such file, with the names that there are.
 */
int preset_find(const char *text, const char *folder, char **ret, struct err *e);
/* The UUID of a card: the same for the same preset name and index. `out` of 48 bytes. */
void preset_uuid(const char *preset_name, uint32_t index, char out[48]);

#endif
