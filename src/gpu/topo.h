/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the devices of one machine are connected: the matrix that `nvidia-smi topo -m` prints, as
 * data. It is filled from NVML (inventory.h), from a preset (preset.h) or from the saved output of
 * nvidia-smi (topo_parse), and printed in the same layout.
 *
 * Plain structures, no allocation but for the text; no thread rule.
 */
#ifndef REMUDA_GPU_TOPO_H
#define REMUDA_GPU_TOPO_H

#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOPO_GPUS_MAX    16
#define TOPO_DEVICES_MAX 80 /* cards and network cards */
#define TOPO_NAME_SIZE   32
#define TOPO_CPUS_SIZE   128

/* Best first. The numbers are those of enum link_class in core/cluster.h, to which they are copied.
 */
enum topo_class {
    TOPO_SELF = 0,
    TOPO_NVLINK = 1,
    TOPO_PIX = 2,  /* at most one PCIe bridge between the two */
    TOPO_PXB = 3,  /* several PCIe bridges, no host bridge */
    TOPO_PHB = 4,  /* through one host bridge */
    TOPO_NODE = 5, /* between host bridges of one NUMA node */
    TOPO_SYS = 6,  /* between NUMA nodes */
    TOPO_UNKNOWN = 7,
};

struct topo_link {
    uint8_t cls;     /* enum topo_class */
    uint8_t nvlinks; /* bonded links, 1 or more for TOPO_NVLINK, else 0 */
};

struct topo_device {
    char name[TOPO_NAME_SIZE];     /* as in the matrix: "GPU0", "NIC0", with old drivers "mlx5_0" */
    char nic[TOPO_NAME_SIZE];      /* network cards: what the legend says "NIC0" is; "" when it says
                                      nothing */
    char cpus[TOPO_CPUS_SIZE];     /* CPU affinity, "0-15,32-47"; "" unknown */
    char numa[TOPO_NAME_SIZE];     /* NUMA affinity, "0"; "" unknown */
    char gpu_numa[TOPO_NAME_SIZE]; /* "N/A" where a card's memory is no NUMA node */
};

/* The cards come first: GPU0, GPU1, ...; a number may be missing (a card that fell off the bus). */
struct topo {
    uint32_t gpus_len;
    uint32_t devices_len; /* cards and network cards */
    bool has_cpus;        /* which of the three columns there are */
    bool has_numa;
    bool has_gpu_numa;
    struct topo_device dev[TOPO_DEVICES_MAX];
    struct topo_link link[TOPO_DEVICES_MAX][TOPO_DEVICES_MAX]; /* symmetric, TOPO_SELF on the diagonal */
};

/* An all-unknown matrix of named devices with all three columns; the counts are within the maxima.
 */
void topo_init(struct topo *t, uint32_t gpus, uint32_t nics);

/* "X", "NV12", "PIX", ...; `out` of 8 bytes. "?" for TOPO_UNKNOWN. */
void topo_link_format(struct topo_link link, char out[8]);
/* The inverse. "SOC", the word of old drivers for SYS, is known. -EINVAL for anything else. */
int topo_link_parse(const char *text, struct topo_link *ret);
/* Sets both directions. */
void topo_set(struct topo *t, uint32_t a, uint32_t b, struct topo_link link);

/*
 * Numbers the cards so that those with equal numbers are all joined pairwise by NVLink: each card,
 * in order of index, joins the first island to all of whose members it has a link, else begins a
 * new one. With NVSwitch all cards are one island; on a machine of four NVLink pairs there are
 * four. Returns the number of islands.
 */
uint32_t topo_islands(const struct topo *t, uint8_t ret_island[TOPO_GPUS_MAX]);

/* Appends the matrix, the legend and, when there are network cards, their legend, as nvidia-smi
 * lays them out. */
void topo_format(const struct topo *t, struct strbuf *out);

/*
 * Reads saved output of `nvidia-smi topo -m`: with or without NUMA columns and network cards, tabs
 * kept or turned into spaces, terminal escapes included, lines before and after the matrix.
 * Anything odd inside the matrix is refused with the line and what was expected. -EINVAL; *ret is
 * untouched then.
 */
int topo_parse(const char *text, size_t len, struct topo *ret, struct err *e);

/* "0-3,8" into bits (words of 64) and back. Parsing: -EINVAL, -ERANGE beyond the words; "" is an
 * empty set. */
int topo_cpus_parse(const char *text, uint64_t *bits, uint32_t words);
/* Cut (with "...") when it does not fit. */
void topo_cpus_format(const uint64_t *bits, uint32_t words, char *out, size_t size);

#endif
