/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The openb packing experiment's data: a pool of nodes, a list of tasks, the order in which tasks arrive, and the order
 * of nodes among equal scores. In the folder:
 *
 *     openb_node_list_gpu_node.csv                  sn, cpu_milli, memory_mib, gpu, model
 *     openb_pod_list_default.csv                    cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec (optional)
 *     variants/openb_pod_list_WORKLOAD.csv          the same for the other workloads
 *     orders/WORKLOAD_seedS_pods.csv                pod_row: rows of the task list, in order of arrival
 *     orders/WORKLOAD_seedS_noderank.csv            rank: of each node, in the order of the node list
 *
 * each plain or with .gz. Everything is checked; nothing is believed.
 */
#ifndef REMUDA_REPLAY_OPENB_DATA_H
#define REMUDA_REPLAY_OPENB_DATA_H

#include "base/intern.h"
#include "core/place.h"

struct openb_pod {
    struct request req;
    uint32_t spec; /* id of req.gpu_model in specs */
};

struct openb_data {
    struct node_desc *nodes;
    size_t nodes_cap;
    uint32_t nodes_len;
    uint32_t *ranks; /* by node */
    size_t ranks_cap;
    struct openb_pod *pods;
    size_t pods_cap;
    uint32_t pods_len;
    struct intern specs;
    uint32_t *arrivals; /* rows of pods */
    size_t arrivals_cap;
    uint32_t arrivals_len;
};

/* Reads all of one run. On an error nothing is left to be released. */
int openb_read(struct openb_data *d, const char *dir, const char *workload, uint32_t seed, struct err *e);
void openb_data_done(struct openb_data *d);

/*
 * The published mix of a task list: its distinct (CPU, cards, share, models), the most frequent first until 95 % of the
 * tasks are covered; equal frequencies by CPU, cards, share, models, each descending. *ret is the caller's (mem_free).
 */
int openb_mix(const struct openb_data *d, const struct cluster *c, struct mix_item **ret, size_t *ret_len);

#endif
