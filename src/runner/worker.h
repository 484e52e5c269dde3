/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the main process of a worker: session, cgroup, user, folder, environment, descriptors, limits, exec. */
#ifndef REMUDA_RUNNER_WORKER_H
#define REMUDA_RUNNER_WORKER_H

#include "runner/cgroup.h"
#include "runner/record.h"
#include "runner/spec.h"

#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

/* The user as whom an attempt runs. */
struct identity {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* owned; NULL: this process keeps its own user and groups */
    size_t groups_len;
};

/* Looks the user up. -EPERM with the reason when this process may not run things as that user. */
int identity_find(uint32_t uid, uint32_t gid, struct identity *ret, struct err *e);
void identity_done(struct identity *id);

struct launch {
    const struct runner_spec *spec;
    const struct identity *identity;
    const char *script; /* absolute path of the script, NULL without one */
    char *const *env;
    const int *cgroup_fds;
    int stdout_fd;
    int stderr_fd;
    const struct rlimit *open_files; /* the limit that the worker gets, when the runner raised its own; else NULL */
};

/* What went wrong between fork and exec, as the child writes it into its pipe. */
struct launch_failure {
    int step; /* enum launch_step in worker.c */
    int code; /* errno */
};

/*
 * Forks a worker. *ret_pipe (the caller's) ends without a byte when the exec worked, and holds a struct
 * launch_failure when something failed. Returns the pid or -errno.
 */
pid_t worker_fork(const struct launch *l, int *ret_pipe, struct err *e);
/* The exit code and the sentence for a failure. */
void worker_explain(const struct launch *l, const struct launch_failure *f, struct runner_exit *x);

#endif
