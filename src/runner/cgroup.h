/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups of attempts, over both kernel interfaces (cgroup v1 and v2), also side by side as in the hybrid
 * set-up of many machines. Used by the runner, which makes and enters them, and by the local engine, which finds a
 * place for them once (probe) and kills by them when a runner died.
 *
 * Three roles are filled, each from the best hierarchy that may be used: TRACK knows all processes of an attempt and
 * kills them, whatever sessions they escaped to; MEMORY and CPU limit. Under the daemon's own group of each hierarchy
 * (read from /proc/self/cgroup, for those above it are somebody else's) stands
 *
 *     remuda-KEY/JOB.ATTEMPT/wRANK        KEY: runner_state_key() of the daemon's state folder
 *
 * with the limits on the worker. A group is fresh for each attempt and never used again once it was killed: a kernel
 * keeps refusing to start processes in such a group. On a v2 hierarchy a group with processes can not hand
 * controllers down; the probe then moves the daemon into a leaf (when it is alone there) or goes up to the nearest
 * group that hands them down and may be written.
 *
 * Where no hierarchy may be used the plan has no roles, its note says what is not enforced, and processes are found
 * by runner/tree.h instead.
 *
 * All functions but cgroup_kill_step() return at once. Nothing here keeps state in memory.
 */
#ifndef REMUDA_RUNNER_CGROUP_H
#define REMUDA_RUNNER_CGROUP_H

#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

#define CGROUP_PATH_SIZE 512
#define CGROUP_NOTE_SIZE 200
#define CGROUP_ALL       UINT32_MAX /* in place of a rank: all workers of the attempt */

enum cgroup_version {
    CGROUP_NONE,
    CGROUP_V1,
    CGROUP_V2,
};

enum cgroup_role {
    CGROUP_TRACK,
    CGROUP_MEMORY,
    CGROUP_CPU,
    CGROUP_ROLES,
};

struct cgroup_plan {
    struct {
        enum cgroup_version version;
        char parent[CGROUP_PATH_SIZE]; /* the folder remuda-KEY */
    } role[CGROUP_ROLES];
    char note[CGROUP_NOTE_SIZE]; /* what is not enforced and why; "" when nothing is missing */
};

/* Identity of a state folder on this machine, 12 hexadecimal digits: its real path and the effective user. */
void runner_state_key(const char *state_dir, char out[16]);

/*
 * Finds the places for the groups of this state folder and makes the folders remuda-KEY. `choice` is "auto" (or
 * NULL), "v1", "v2" or "none"; anything else is -EINVAL. Never fails for want of cgroups: see the note.
 */
int cgroup_probe(const char *choice, const char *state_dir, struct cgroup_plan *ret, struct err *e);
/* Appends the plan as one line of text. */
void cgroup_plan_write(const struct cgroup_plan *p, struct strbuf *out);
/* The inverse; the note is not part of the text. 0 or -EINVAL. */
int cgroup_plan_parse(const char *text, struct cgroup_plan *ret, struct err *e);
/* Removes the folders remuda-KEY if nothing is left in them. */
void cgroup_release(const struct cgroup_plan *p);

struct cgroup_limits {
    uint32_t cpu_milli; /* 0: none */
    uint64_t mem_mib;   /* 0: none */
};

/* Makes the groups of an attempt ("JOB.ATTEMPT"); what an earlier life left there is killed and removed first. */
int cgroup_make(const struct cgroup_plan *p, const char *name, struct err *e);
/*
 * Makes a worker's groups with its limits. Fills fds (for cgroup_enter(); the caller's to close, -1 where a role has
 * none). A limit that the kernel refuses is an error: a job never runs without a limit it was given.
 */
int cgroup_make_worker(const struct cgroup_plan *p, const char *name, uint32_t rank, const struct cgroup_limits *limits,
                       int fds[CGROUP_ROLES], struct err *e);
/* Moves the calling process into the groups. Async-signal-safe. 0 or -errno. */
int cgroup_enter(const int fds[CGROUP_ROLES]);
/* Moves the calling process (a runner) out of the daemon's group into a leaf of remuda-KEY. 0 or -errno. */
int cgroup_enter_runners(const struct cgroup_plan *p);

/* Sends a signal to every process of the worker or attempt. The number of processes signalled. */
int cgroup_signal(const struct cgroup_plan *p, const char *name, uint32_t rank, int signal);
/* True when no process is left in it (also when the group is gone or there is no TRACK role). */
bool cgroup_empty(const struct cgroup_plan *p, const char *name, uint32_t rank);
/*
 * One step of killing everything in it: call again (some milliseconds later) until it returns true. With v1 it
 * freezes, signals and thaws, so that a process that forks without end can not outrun it; takes at most 5 ms.
 */
bool cgroup_kill_step(const struct cgroup_plan *p, const char *name, uint32_t rank);

struct cgroup_usage {
    uint64_t oom_kills;
    uint64_t peak_mem_mib; /* 0: not known */
    int64_t cpu_ms;        /* -1: not known */
};
void cgroup_usage_read(const struct cgroup_plan *p, const char *name, uint32_t rank, struct cgroup_usage *ret);
/*
 * A descriptor that becomes readable (8 bytes) when a process of the worker was hit by its memory limit, or -1 where
 * the kernel kills the whole group by itself (v2) or there is no MEMORY role.
 */
int cgroup_oom_fd(const struct cgroup_plan *p, const char *name, uint32_t rank);

/* Removes the groups of the attempt, those that jobs made in them too. True when all are gone. */
bool cgroup_remove(const struct cgroup_plan *p, const char *name);

#endif
