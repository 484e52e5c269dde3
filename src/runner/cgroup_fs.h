/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the small files of a cgroup folder; shared by the files of the cgroup layer only. */
#ifndef REMUDA_RUNNER_CGROUP_FS_H
#define REMUDA_RUNNER_CGROUP_FS_H

#include "runner/cgroup.h"

#include <sys/types.h>

#define CGROUP_PROBE_LEAF "probe" /* below remuda-KEY, while it is tried out */

/* Writes `text` to FOLDER/FILE in one write. 0 or -errno. */
int cgfs_write(const char *folder, const char *file, const char *text);
/* The first bytes of FOLDER/FILE, terminated. 0 or -errno. */
int cgfs_read(const char *folder, const char *file, char *ret, size_t size);
/* The number after "KEY " on a line of FOLDER/FILE, or a file that is one number (key NULL). 0 or -errno. */
int cgfs_number(const char *folder, const char *file, const char *key, uint64_t *ret);
/* True when FOLDER/FILE holds `word` among its words. */
bool cgfs_has_word(const char *folder, const char *file, const char *word);

/* Calls visit for every process in the folder and those below; returns their number (those visited). */
int cgfs_processes(const char *folder, void (*visit)(pid_t pid, void *arg), void *arg);
/* Removes the folder and those below. True when it is gone. */
bool cgfs_remove(const char *folder);

/* The back ends: one folder each. */
bool cg1_kill_step(const char *folder);
int cg1_set_memory(const char *folder, uint64_t mem_mib, struct err *e);
int cg1_set_cpu(const char *folder, uint32_t cpu_milli, struct err *e);
void cg1_usage_memory(const char *folder, struct cgroup_usage *u);
int cg1_oom_fd(const char *folder);
bool cg2_kill_step(const char *folder);
bool cg2_empty(const char *folder);
int cg2_set_memory(const char *folder, uint64_t mem_mib, struct err *e);
int cg2_set_cpu(const char *folder, uint32_t cpu_milli, struct err *e);
void cg2_usage_memory(const char *folder, struct cgroup_usage *u);
/* Hands the controllers of the MEMORY and CPU roles down to the children of `folder`. 0 or -errno. */
int cg2_enable(const char *folder, bool memory, bool cpu);

#endif
