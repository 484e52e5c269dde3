/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the processes of an attempt without cgroups, from /proc.
 *
 * While its runner lives, every process of an attempt descends from it, for the runner is a subreaper: a child that
 * forks twice and opens a session of its own is still its descendant. When the runner is dead its orphans have gone
 * to another parent; then a process belongs to the attempt when its environment holds the attempt's tag, or when its
 * session is led by a worker that the status file names by pid and start time, or when it descends from such a one.
 * A process that cleaned its environment, left its session and lost its parents can not be found then: that takes a
 * cgroup, and the plan's note says so.
 *
 * Numbers of ended processes come again: before a signal is sent a pidfd is taken and the start time compared.
 */
#ifndef REMUDA_RUNNER_TREE_H
#define REMUDA_RUNNER_TREE_H

#include "runner/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tree_process {
    pid_t pid;
    pid_t ppid;
    pid_t session;
    uint64_t start_ticks;
    char state;
    bool mine; /* belongs to what was asked for */
};

/* All processes of this machine; owned. */
struct tree {
    struct tree_process *all; /* by pid */
    size_t len, cap;
};

/* Reads /proc. 0 or -errno. */
int tree_read(struct tree *t);
void tree_done(struct tree *t);
/* Marks the descendants of `root` (not itself). Returns how many of them have not ended. */
size_t tree_mark_descendants(struct tree *t, pid_t root);
/* Marks what belongs to an attempt whose runner is dead; `workers` as its status says. Returns how many live. */
size_t tree_mark_attempt(struct tree *t, const char *tag, const struct runner_process *workers, size_t len);
/* Takes the mark from processes of other workers of the attempt: keeps those with REMUDA_RANK=rank or in `session`. */
size_t tree_keep_worker(struct tree *t, uint32_t rank, pid_t session);
/* Sends a signal to everything marked that lives. The number of processes signalled. */
int tree_signal(const struct tree *t, int signal);

/*
 * One step of killing all descendants of the calling process (of one worker only, when rank is not CGROUP_ALL):
 * stops them, then kills. True when there is none left; zombies are the caller's to reap.
 */
bool tree_kill_step(uint32_t rank, pid_t session);

#endif
