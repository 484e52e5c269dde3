/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster file: which nodes the simulated engine pretends to have. YAML of racks and groups of
 * equal nodes; docs/simulated-cluster.md describes it. Parsing gives one plain entry for each node,
 * in the order of the file.
 */
#ifndef REMUDA_CONFIG_CLUSTER_FILE_H
#define REMUDA_CONFIG_CLUSTER_FILE_H

#include "base/err.h"
#include "config/types.h"

#define CLUSTER_FILE_NODES_MAX 20000

/* How the cards of a node are linked. */
enum cluster_links {
    CLUSTER_LINKS_PCIE,         /* no NVLink: PIX within a pair, NODE within a half, SYS between the halves
                                 */
    CLUSTER_LINKS_NVLINK,       /* every card with every other, as through NVSwitch */
    CLUSTER_LINKS_NVLINK_PAIRS, /* bridges between cards 0-1, 2-3, ...; the rest as PCIE */
};

struct cluster_node {
    char name[NAME_SIZE];
    char rack[NAME_SIZE]; /* "": none named */
    uint32_t cpu_milli;
    uint64_t mem_mib;
    uint32_t gpus;
    char gpu_model[GPU_MODEL_SIZE];
    uint32_t gpu_mem_mib;
    enum cluster_links links;
    uint32_t nvlinks; /* NVLink connections of a pair, for the topology matrix: "NV12" */
};

struct cluster_file {
    struct cluster_node *nodes; /* owned */
    size_t len;
    size_t cap;
};

/*
 * Fills *ret (the caller's, cluster_file_done()) on success only. `name` is what messages call the
 * text. -EINVAL with file, line, column, key and what is allowed; -ENOMEM.
 */
int cluster_file_parse(const char *text, size_t len, const char *name, struct cluster_file *ret, struct err *e);
/* The same for a file; also -ENOENT and other errors of reading. */
int cluster_file_load(const char *path, struct cluster_file *ret, struct err *e);
void cluster_file_done(struct cluster_file *c);

#endif
