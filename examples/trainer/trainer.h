/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small trainer, as an ordinary program of a user: it knows nothing of the project and links nothing but libc.
 *
 *   trainer.c      options, the training loop, signals
 *   model.c        the data (three spirals), the network, its gradient, the optimiser
 *   peers.c        data parallelism: the mean of all workers' gradients over TCP
 *   card.c         the card: memory, copies and kernels through the CUDA driver (opened at run time)
 *   checkpoint.c   state to a file and back, atomically
 *
 * One thread. Functions that can fail return 0 or -1 after saying on standard error what is wrong.
 */
#ifndef REMUDA_EXAMPLES_TRAINER_H
#define REMUDA_EXAMPLES_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLASSES    3
#define INPUTS     2
#define HIDDEN_MAX 4096
#define WORLD_MAX  1024

/* Says "trainer: ..." on standard error; always -1. */
int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- model.c --- */

/* Everything that training changes; what a checkpoint holds. `params`, `mean` and `square` have `len` elements. */
struct model {
    uint32_t hidden;
    size_t len;
    uint64_t seed;
    uint64_t step; /* steps done */
    float *params;
    float *mean;   /* of the gradient (Adam) */
    float *square; /* of its square (Adam) */
};

/* The points, the same on every worker for the same seed. */
struct points {
    size_t len;
    float *xy; /* two for each */
    uint8_t *label;
};

/* What a step over some of the points gives, as sums, so that workers' results can be added. */
struct gradient {
    double loss;
    double correct;
    double count;
    float *sum; /* model.len elements */
};

int model_init(struct model *m, uint32_t hidden, uint64_t seed);
void model_done(struct model *m);
int points_make(struct points *p, size_t len, uint64_t seed);
void points_done(struct points *p);
int gradient_init(struct gradient *g, const struct model *m);
void gradient_done(struct gradient *g);
/*
 * Adds up loss and gradient over this worker's part of the batch of step m->step: of its `batch` points every
 * world-th beginning with the rank-th. 0, or -1 when there is no memory.
 */
int model_gradient(const struct model *m, const struct points *p, uint32_t batch, uint32_t rank, uint32_t world,
                   struct gradient *ret);
/* One step of Adam with the mean gradient; m->step goes up. */
void model_update(struct model *m, const struct gradient *g, float rate);
/* Mean loss and the part classified rightly over all points. 0, or -1 when there is no memory. */
int model_evaluate(const struct model *m, const struct points *p, double *ret_loss, double *ret_accuracy);

/* --- peers.c --- */

struct peers {
    uint32_t rank;
    uint32_t world;
    int *fd; /* rank 0: a socket for each other rank; others: fd[0] leads to rank 0 */
};

/* Meets the other workers at address:port within `wait_s` seconds. world 1: nothing to do. */
int peers_open(struct peers *p, uint32_t rank, uint32_t world, const char *address, uint16_t port, uint32_t wait_s);
void peers_close(struct peers *p);
/* Everybody gets rank 0's model (step, parameters, optimiser); sizes and seeds must agree. */
int peers_share_model(struct peers *p, struct model *m);
/*
 * Replaces *g by the sum over all workers, added in order of rank, so that it is the same on all and in every run.
 * *flags becomes the union of everybody's.
 */
int peers_sum(struct peers *p, const struct model *m, struct gradient *g, uint32_t *flags);

/* --- card.c --- */

struct cards;

/*
 * Opens every card that CUDA shows to this process and takes `mem_bytes` on each. *ret stays NULL when there is none
 * and `needed` is false.
 */
int cards_open(struct cards **ret, uint64_t mem_bytes, bool needed);
void cards_close(struct cards *c);
/* Number of cards, 0 for NULL. */
uint32_t cards_len(const struct cards *c);
/* "NVIDIA A100-SXM4-80GB" of the first, "none" for NULL. */
const char *cards_name(const struct cards *c);
/* Copies the parameters to every card. */
int cards_put(struct cards *c, const struct model *m);
/* Keeps every card busy for busy_us microseconds, to the nearest millisecond, and waits for it. */
int cards_work(struct cards *c, uint32_t busy_us);
/* Copies them back from the first card; fails when they are not what was put there. */
int cards_check(struct cards *c, const struct model *m);

/* --- checkpoint.c --- */

/* Writes everything to a new file beside `path`, syncs it and renames it: there is always one whole checkpoint. */
int checkpoint_save(const char *path, const struct model *m);
/* 0: loaded; 1: there is none; -1: it is damaged or of another model. */
int checkpoint_load(const char *path, struct model *m);

#endif
