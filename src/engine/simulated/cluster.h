/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of the simulated engine: made from a cluster file, and what of their cards is in use,
 * for telemetry.
 */
#ifndef REMUDA_ENGINE_SIMULATED_CLUSTER_H
#define REMUDA_ENGINE_SIMULATED_CLUSTER_H

#include "base/intern.h"
#include "engine/engine.h"

struct sim_node {
    struct engine_node node; /* node.topology is owned here */
    char *topology;
    uint32_t busy_milli[16]; /* compute given away, by card */
    uint64_t used_mib[16];   /* memory given away */
    bool changed;            /* since the last telemetry */
};

struct sim_cluster {
    struct sim_node *nodes; /* owned */
    uint32_t len;
    struct intern names; /* node name -> index in nodes */
};

/* Fills *ret (sim_cluster_done()) from the file; errors as cluster_file_load(). */
int sim_cluster_load(struct sim_cluster *ret, const char *path, struct err *e);
void sim_cluster_done(struct sim_cluster *c);

/* NULL when there is no such node. */
struct sim_node *sim_cluster_find(const struct sim_cluster *c, const char *name);
/* Index of a card, -1 when the node has none of that uuid. */
int sim_node_card(const struct sim_node *n, const char *uuid);

/* One sample of each card, as a busy card would show it. `ret` has room for 16. Returns their
 * number. */
uint32_t sim_node_samples(const struct sim_node *n, struct engine_gpu_sample *ret);

#endif
