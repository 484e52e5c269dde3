/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a worker (docs/job-environment.md lists every variable). */
#ifndef REMUDA_RUNNER_ENVIRONMENT_H
#define REMUDA_RUNNER_ENVIRONMENT_H

#include "runner/spec.h"

struct environment {
    char **list; /* NULL-terminated NAME=value; owned */
    size_t len, cap;
};

/*
 * The submitter's environment with what the runner sets put over it, for the worker at `local_rank` of the spec;
 * `master_port` is the one in use. 0 or -ENOMEM.
 */
int environment_build(const struct runner_spec *s, uint32_t local_rank, uint32_t master_port, struct environment *ret);
void environment_done(struct environment *env);
/* The value of `name`, or NULL. */
const char *environment_get(const struct environment *env, const char *name);

#endif
