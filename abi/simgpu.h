/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file in which simulated cards live. One file is one simulated machine: a header, a static
 * description of each card, and for each card a table of slots, one for each process that uses it.
 * It is written once by src/gpu/sim_setup.c and then mapped by everybody who plays a part: the NVML
 * stand-in reads it, the CUDA stand-in and remuda-simload claim slots in it. They find it through
 * the environment variable REMUDA_SIMGPU (a path).
 *
 * Header-only, depends on nothing. All numbers are in the byte order of the machine; the file never
 * leaves it.
 *
 * What keeps the figures exact. There is no running total of a card's memory that a killed process
 * could leave wrong: a card's use is by definition the sum over the slots of living processes. A
 * process writes only its own slots, so SIGKILL at any point loses nothing but its own share, at
 * once. A slot belongs to (pid, start time), start time being field 22 of /proc/PID/stat, so that a
 * reused pid is not taken for the old process. Claiming a slot and taking memory happen under the
 * card's lock word, which names its holder in the same way and can be taken over from a dead one.
 *
 * Load. `mem_bytes` and the pending period are written by the owner and read by anybody, with
 * __atomic builtins. The pending period says: from busy_start_ns to busy_end_ns (CLOCK_MONOTONIC;
 * SIMGPU_FOREVER for "until told otherwise") this process keeps busy_ppm millionths of the card's
 * SMs busy. `seq` is odd while the owner is changing the three. What has passed is moved into
 * `history`, a ring of SIMGPU_BUCKETS entries of SIMGPU_BUCKET_NS each: the upper half of an entry
 * is the number of the interval (time / SIMGPU_BUCKET_NS, low 32 bits), the lower half the busy
 * amount in permille x microseconds.
 */
#ifndef REMUDA_ABI_SIMGPU_H
#define REMUDA_ABI_SIMGPU_H

#include <stdint.h>

#define SIMGPU_ENV       "REMUDA_SIMGPU"
#define SIMGPU_FILE      "simgpu.state"
#define SIMGPU_MAGIC     "RMSIMGPU" /* 8 bytes, no terminator in the file */
#define SIMGPU_VERSION   1u
#define SIMGPU_CARDS_MAX 16
#define SIMGPU_NICS_MAX  32
#define SIMGPU_SLOTS     512 /* processes on one card */
#define SIMGPU_BUCKETS   64
#define SIMGPU_BUCKET_NS 20000000ull /* 20 ms */
#define SIMGPU_FOREVER   UINT64_MAX
#define SIMGPU_PERMILLE  1000u /* all SMs of a card */
#define SIMGPU_CPU_WORDS 16    /* 1,024 CPUs */

/* How two devices reach each other without NVLink; the numbers of enum topo_class in
 * src/gpu/topo.h. */
enum simgpu_link {
    SIMGPU_LINK_SELF = 0,
    SIMGPU_LINK_PIX = 2,
    SIMGPU_LINK_PXB = 3,
    SIMGPU_LINK_PHB = 4,
    SIMGPU_LINK_NODE = 5,
    SIMGPU_LINK_SYS = 6,
};

/* A network card; it exists only as a row of the topology matrix. */
struct simgpu_nic {
    char name[32];                       /* "mlx5_0" */
    uint8_t link_card[SIMGPU_CARDS_MAX]; /* enum simgpu_link */
    uint8_t link_nic[SIMGPU_NICS_MAX];
};

struct simgpu_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* offset of the first card */
    uint32_t card_bytes;
    uint32_t slot_bytes;
    uint32_t slots_per_card;
    uint32_t cards_len;
    uint64_t file_bytes;
    uint64_t fingerprint; /* over everything static; equal for equal presets */
    char preset[64];
    char driver_version[80]; /* ends in "-simulated" */
    uint32_t cuda_version;   /* 1000 * major + 10 * minor */
    uint32_t nics_len;
    uint32_t host_cpus; /* of the simulated host, 0: not stated */
    uint32_t pad;
    uint64_t host_mem_mib;
    struct simgpu_nic nics[SIMGPU_NICS_MAX];
    uint8_t reserved[1320];
};

struct simgpu_card {
    char uuid[48]; /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */
    char name[96]; /* as the real card's driver names it */
    char serial[32];
    char vbios[32];
    uint32_t pci_domain;
    uint32_t pci_bus;
    uint32_t pci_device;
    uint32_t pci_device_id; /* device in the upper 16 bits, vendor 0x10de in the lower */
    uint32_t pci_subsystem_id;
    uint32_t minor;    /* of /dev/nvidiaN on a real machine */
    int32_t numa_node; /* -1: none */
    uint32_t arch;     /* NVML's architecture number */
    uint32_t cc_major;
    uint32_t cc_minor;
    uint32_t sm_count;
    uint32_t sm_clock_mhz;
    uint32_t mem_clock_mhz;
    uint32_t mem_bus_bits;
    uint32_t power_limit_mw;
    uint32_t power_idle_mw;
    uint32_t pcie_gen;
    uint32_t pcie_width;
    uint32_t nvlink_version;  /* NVML's number; 0: the card has no NVLink */
    uint32_t nvlinks;         /* links of the card */
    uint32_t nvlink_switched; /* 1: they go to NVSwitches, every card reaches every other with all
                                 of them */
    uint32_t mig_capable;
    uint32_t ecc; /* 1: enabled */
    uint32_t pad;
    uint64_t mem_bytes;          /* as NVML reports it on the real card */
    uint64_t mem_reserved_bytes; /* of it, never given to anybody */
    uint64_t context_bytes;      /* what a CUDA context of a process costs */
    uint64_t cpu_mask[SIMGPU_CPU_WORDS];
    uint8_t link[SIMGPU_CARDS_MAX];      /* enum simgpu_link, the PCIe path */
    uint8_t nvlink_to[SIMGPU_CARDS_MAX]; /* direct links to each card; 0 with NVSwitch */
    /* From here on it changes. */
    uint64_t lock;       /* 0: free; else holder: pid << 32 | low 32 bits of its start time */
    uint32_t slots_high; /* slots from here on were never used */
    uint32_t failed;     /* kept 0; a card that fell off the bus later */
    uint8_t reserved[3592];
};

struct simgpu_slot {
    uint32_t pid; /* 0: free */
    uint32_t seq; /* odd while the pending period changes */
    uint64_t start_time;
    uint64_t mem_bytes;
    uint64_t busy_start_ns;
    uint64_t busy_end_ns;
    uint32_t busy_ppm;
    uint32_t pad;
    uint64_t busy_total; /* permille x microseconds since the slot was claimed, pending period
                            excluded */
    uint64_t virtual_ns; /* the card's virtual clock as this process sees it */
    uint8_t reserved[64];
    uint64_t history[SIMGPU_BUCKETS];
};

_Static_assert(sizeof(struct simgpu_nic) == 80, "simgpu_nic");
_Static_assert(sizeof(struct simgpu_header) == 4096, "simgpu_header");
_Static_assert(sizeof(struct simgpu_card) == 4096, "simgpu_card");
_Static_assert(sizeof(struct simgpu_slot) == 640, "simgpu_slot");

/* Size of a file with `cards` cards: header, cards, then the slots of card 0, of card 1, ... */
static inline uint64_t simgpu_file_bytes(uint32_t cards)
{
    return sizeof(struct simgpu_header) +
           (uint64_t)cards * (sizeof(struct simgpu_card) + (uint64_t)SIMGPU_SLOTS * sizeof(struct simgpu_slot));
}

/* Card `i` of a mapped file of this version; i < cards_len. */
static inline struct simgpu_card *simgpu_card_at(void *file, uint32_t i)
{
    return (struct simgpu_card *)(void *)((char *)file + sizeof(struct simgpu_header)) + i;
}

/* The slots of card `i`. */
static inline struct simgpu_slot *simgpu_slots_at(void *file, uint32_t cards_len, uint32_t i)
{
    char *slots = (char *)file + sizeof(struct simgpu_header) + (uint64_t)cards_len * sizeof(struct simgpu_card);
    return (struct simgpu_slot *)(void *)slots + (uint64_t)i * SIMGPU_SLOTS;
}

#endif
