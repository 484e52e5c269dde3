/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: nodes, their cards, what is free on them. Plain structures that the scheduler reads everywhere; what
 * is free changes only through the ledger (ledger.h), what exists only through cluster_set_node().
 *
 * Numbers. Node ids index cluster->nodes and stay for ever; a node that went away is `NODE_GONE`. Models and
 * racks are small ids from the intern tables. Cards are counted in thousandths (GPU_MILLI is a whole one).
 *
 * Every change of a node appends its id to the change log, so that an index (place.h) can bring itself up to
 * date at a cost that follows what changed and not the size of the cluster.
 */
#ifndef REMUDA_CORE_CLUSTER_H
#define REMUDA_CORE_CLUSTER_H

#include "base/err.h"
#include "base/intern.h"
#include "config/types.h"

#define NODE_GPUS_MAX 16
#define MODELS_MAX    64
#define UUID_SIZE     48

/*
 * How two cards of a node are linked, best first; PIX .. SYS are NVIDIA's names. LINK_UNKNOWN ranks as the worst.
 */
enum link_class {
    LINK_SELF = 0,
    LINK_NVLINK,
    LINK_PIX,
    LINK_PXB,
    LINK_PHB,
    LINK_NODE,
    LINK_SYS,
    LINK_UNKNOWN,
};

struct gpu {
    char uuid[UUID_SIZE];
    uint32_t mem_mib;
    uint32_t free_mem_mib;
    uint16_t free_milli; /* 0..GPU_MILLI; GPU_MILLI and no holder: the card is idle */
    uint16_t holders;    /* grants on this card */
    uint8_t model;       /* id in cluster->models */
    uint8_t island;      /* cards of a node with equal numbers are joined by NVLink */
    bool whole;          /* held whole by one worker */
    bool healthy;        /* false: nothing new is placed on it */
};

enum node_state {
    NODE_UP,
    NODE_DOWN, /* not reached; nothing is placed, what runs is believed to run */
    NODE_GONE, /* left the pool */
};

struct node {
    uint32_t id;
    uint32_t rack; /* id in cluster->racks */
    char name[NAME_SIZE];
    enum node_state state;
    bool draining; /* keeps what runs, gets nothing new */
    uint32_t cpu_milli;
    uint32_t free_cpu_milli;
    uint64_t mem_mib;
    uint64_t free_mem_mib;
    uint32_t gpus_len;
    uint32_t gpus_milli_free; /* sum of free_milli over its healthy cards */
    uint32_t rank;            /* order among equal scores: lower first; the id unless set (cluster_set_rank) */
    struct gpu gpus[NODE_GPUS_MAX];
    uint8_t link[NODE_GPUS_MAX][NODE_GPUS_MAX]; /* enum link_class */
};

struct cluster {
    struct node **nodes; /* by id; owned */
    size_t nodes_cap;
    uint32_t nodes_len;
    struct intern names;  /* node name -> node id */
    struct intern models; /* at most MODELS_MAX */
    struct intern racks;
    /*
     * Ids of changed nodes, oldest first; change number i is changes[i - changes_base]. The log has room for a few
     * entries per node and forgets its older half when it is full: a reader that is behind changes_base has to
     * look at every node. Appending therefore never fails.
     */
    uint32_t *changes;
    size_t changes_cap;
    uint64_t changes_base;        /* number of the first entry still kept */
    uint64_t changes_end;         /* one past the newest */
    uint64_t topology_generation; /* grows when what could be used changes: nodes, cards, health, state, drain */
    uint64_t layout_generation;   /* grows when the nodes' number, racks or ranks change */
};

/* A node as an engine reports it. Names are checked by the caller. */
struct node_desc {
    char name[NAME_SIZE];
    char rack[NAME_SIZE]; /* "" : "default" */
    uint32_t cpu_milli;
    uint64_t mem_mib;
    uint32_t gpus_len;
    struct gpu_desc {
        char uuid[UUID_SIZE];
        char model[GPU_MODEL_SIZE];
        uint32_t mem_mib;
        uint8_t island;
        bool healthy;
    } gpus[NODE_GPUS_MAX];
    uint8_t link[NODE_GPUS_MAX][NODE_GPUS_MAX];
};

int cluster_init(struct cluster *c);
void cluster_done(struct cluster *c);

/*
 * Adds the node, or brings a known one (same name) up to date: capacity, cards (matched by uuid) and links. What is
 * reported is there, so the node is NODE_UP afterwards; draining is kept. A card keeps its number as long as
 * anything on the node is held. A card that is no longer reported but held stays, unhealthy; CPU, memory and card
 * memory never shrink below what is held. A number that a vanished card left free reads: no uuid, no memory,
 * unhealthy. A report that says nothing new changes nothing (no entry in the log, no new generation).
 * Errors: -EINVAL with the reason, -ENOSPC for more than MODELS_MAX models, -ENOMEM; nothing has changed then.
 * Sets *ret_id.
 */
int cluster_set_node(struct cluster *c, const struct node_desc *desc, uint32_t *ret_id, struct err *e);
/* Sets the order among equal scores; every node needs a rank of its own. */
void cluster_set_rank(struct cluster *c, uint32_t id, uint32_t rank);
void cluster_set_state(struct cluster *c, uint32_t id, enum node_state state);
void cluster_set_draining(struct cluster *c, uint32_t id, bool draining);

/* NULL when there is no such node. */
struct node *cluster_find(const struct cluster *c, const char *name);

/* True when new work may be placed on the node. */
bool node_open(const struct node *n);

/* Appends the node to the change log. For ledger.c and cluster.c. */
void cluster_touch(struct cluster *c, uint32_t id);

/*
 * The set of models that "A|B" allows as a bit mask over cluster->models; all ones for "". 0 when the pool has
 * none of them. Names compare without regard to case. Ask again when cluster->models has grown.
 */
uint64_t cluster_model_mask(const struct cluster *c, const char *models);

#endif
