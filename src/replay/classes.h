/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs of a trace by the number of cards they ask for. Whoever walks a long queue looking for
 * what fits needs to look at the first of each class only: when it does not fit, no job of its
 * class does. Traces have few classes (ten in the 82,247 jobs of Philly), so a walk costs that many
 * steps and not the length of the queue.
 */
#ifndef REMUDA_REPLAY_CLASSES_H
#define REMUDA_REPLAY_CLASSES_H

#include "base/err.h"
#include "replay/trace.h"

struct classes {
    uint32_t *gpus; /* by class, ascending */
    uint32_t *size; /* jobs of the class in the whole trace */
    uint32_t len;
    uint32_t *of; /* class of each job */
};

/* 0 or -ENOMEM. What is filled is the caller's (classes_done), also after an error. */
int classes_init(struct classes *c, const struct trace *t, struct err *e);
void classes_done(struct classes *c);
/* The number of classes whose jobs ask for at most `gpus` cards: those are 0 to result - 1. */
uint32_t classes_within(const struct classes *c, uint32_t gpus);

#endif
