/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v2. Killing is one write to cgroup.kill (Linux 5.14), before that freeze, signal, thaw as with v1; both work
 * in a hierarchy without any controller too. After cgroup.kill the group must not be used again.
 */
#include "runner/cgroup_fs.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define PERIOD_US 100000

static void kill_one(pid_t pid, void *arg)
{
    (void)arg;
    (void)kill(pid, SIGKILL);
}

bool cg2_empty(const char *folder)
{
    uint64_t populated;
    return cgfs_number(folder, "cgroup.events", "populated", &populated) < 0 || populated == 0;
}

bool cg2_kill_step(const char *folder)
{
    if (cg2_empty(folder))
        return true;
    if (cgfs_write(folder, "cgroup.kill", "1") == 0)
        return cg2_empty(folder);
    (void)cgfs_write(folder, "cgroup.freeze", "1");
    (void)cgfs_processes(folder, kill_one, NULL); /* delivered to frozen processes as well */
    (void)cgfs_write(folder, "cgroup.freeze", "0");
    return cg2_empty(folder);
}

static int refused(struct err *e, int code, const char *folder, const char *file, const char *text)
{
    return err_set(e, code, "cgroup %s: %s can't be set to %s: %s", folder, file, text, strerror(-code));
}

int cg2_set_memory(const char *folder, uint64_t mem_mib, struct err *e)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, mem_mib << 20);
    int r = cgfs_write(folder, "memory.max", text);
    if (r < 0)
        return refused(e, r, folder, "memory.max", text);
    (void)cgfs_write(folder, "memory.swap.max", "0"); /* absent without swap */
    (void)cgfs_write(folder, "memory.oom.group", "1");
    return 0;
}

int cg2_set_cpu(const char *folder, uint32_t cpu_milli, struct err *e)
{
    char text[64];
    uint64_t quota = (uint64_t)cpu_milli * PERIOD_US / 1000, weight = cpu_milli / 10;
    (void)snprintf(text, sizeof text, "%" PRIu64 " %d", quota < 1000 ? 1000 : quota, PERIOD_US);
    int r = cgfs_write(folder, "cpu.max", text);
    if (r < 0)
        return refused(e, r, folder, "cpu.max", text);
    (void)snprintf(text, sizeof text, "%" PRIu64, weight < 1 ? 1 : weight > 10000 ? 10000 : weight);
    r = cgfs_write(folder, "cpu.weight", text);
    return r == 0 ? 0 : refused(e, r, folder, "cpu.weight", text);
}

void cg2_usage_memory(const char *folder, struct cgroup_usage *u)
{
    uint64_t bytes;
    if (cgfs_number(folder, "memory.peak", NULL, &bytes) == 0) /* Linux 5.19 */
        u->peak_mem_mib = (bytes + (1 << 20) - 1) >> 20;
    (void)cgfs_number(folder, "memory.events", "oom_kill", &u->oom_kills);
}

int cg2_enable(const char *folder, bool memory, bool cpu)
{
    static const struct {
        const char *word, *text;
    } controllers[] = {{"memory", "+memory"}, {"cpu", "+cpu"}};
    bool wanted[] = {memory, cpu};
    for (unsigned i = 0; i < 2; i++) {
        if (!wanted[i] || cgfs_has_word(folder, "cgroup.subtree_control", controllers[i].word))
            continue;
        int r = cgfs_write(folder, "cgroup.subtree_control", controllers[i].text);
        if (r < 0)
            return r;
    }
    return 0;
}
