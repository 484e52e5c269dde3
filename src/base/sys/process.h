/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc and the kernel tell about this machine and about processes. A pid alone never names a process, since
 * numbers come again: pid and start time together do.
 */
#ifndef REMUDA_BASE_SYS_PROCESS_H
#define REMUDA_BASE_SYS_PROCESS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Path of the running program; the caller's (mem_free). 0 or -errno. */
int process_self_path(char **ret, struct err *e);
/*
 * Path of a program installed beside the running one ("remuda-runner" -> "/usr/bin/remuda-runner"); the caller's.
 * Whether it exists is not checked.
 */
int process_sibling_path(const char *name, char **ret, struct err *e);

struct process_stat {
    char state; /* 'R', 'S', 'Z', ... as in proc(5) */
    pid_t ppid;
    pid_t pgid;
    pid_t session;
    uint64_t start_ticks; /* after boot, in clock ticks */
    uint64_t cpu_ms;      /* user and system time of the process itself */
};
/* 0, -ESRCH when there is no such process, or another -errno. */
int process_stat_read(pid_t pid, struct process_stat *ret);
/* Start time in clock ticks after boot: with the pid it names a process for the life of this boot. 0 or -errno. */
int process_start_ticks(pid_t pid, uint64_t *ret);
/* True when `pid` is a process with this start time that has not ended (a zombie has). */
bool process_alive(pid_t pid, uint64_t start_ticks);
/* Identity of this boot, 36 characters: "" when /proc does not tell. */
void process_boot_id(char out[40]);

/*
 * Path of this process in a cgroup hierarchy, e.g. "/user.slice/a": `controller` is a v1 controller ("memory"), or
 * NULL for the v2 hierarchy. 0, -ENOENT when there is no such hierarchy, -ENAMETOOLONG.
 */
int process_cgroup(const char *controller, char *ret, size_t size);

/* CPUs this process may use, in thousandths, at least 1,000: affinity and the CPU quotas of its cgroups count. */
uint32_t host_cpu_milli(void);
/* Memory this process may use in MiB: the machine's, or less where a cgroup above it says so. */
uint64_t host_mem_mib(void);
/* The machine's name, always terminated and never empty ("localhost" when the kernel has none). */
void host_name(char *ret, size_t size);

#endif
