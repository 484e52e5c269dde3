/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v1. There is no "kill all": a process that forks as fast as it is killed would win, so the group is frozen
 * first when its hierarchy has the freezer. SIGKILL is not delivered to a frozen process before it is thawed; one
 * step is freeze, signal all, thaw. memory.failcnt does not count reliably (it stays 0 when memory and swap have the
 * same limit); oom_kill in memory.oom_control does.
 */
#include "runner/cgroup_fs.h"

#include "base/sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FREEZE_WAIT_MS 4
#define PERIOD_US      100000

static void kill_one(pid_t pid, void *arg)
{
    (void)arg;
    (void)kill(pid, SIGKILL);
}

static void ignore_one(pid_t pid, void *arg)
{
    (void)pid;
    (void)arg;
}

bool cg1_kill_step(const char *folder)
{
    if (cgfs_processes(folder, ignore_one, NULL) == 0)
        return true;
    bool freezer = cgfs_write(folder, "freezer.state", "FROZEN") == 0;
    for (int i = 0; freezer && i < FREEZE_WAIT_MS; i++) {
        char state[32];
        if (cgfs_read(folder, "freezer.state", state, sizeof state) < 0 || strncmp(state, "FROZEN", 6) == 0)
            break;
        clock_sleep_ms(1);
    }
    (void)cgfs_processes(folder, kill_one, NULL);
    if (freezer)
        (void)cgfs_write(folder, "freezer.state", "THAWED");
    return false;
}

static int refused(struct err *e, int code, const char *folder, const char *file, const char *text)
{
    return err_set(e, code, "cgroup %s: %s can't be set to %s: %s", folder, file, text, strerror(-code));
}

int cg1_set_memory(const char *folder, uint64_t mem_mib, struct err *e)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, mem_mib << 20);
    int r = cgfs_write(folder, "memory.limit_in_bytes", text);
    if (r < 0)
        return refused(e, r, folder, "memory.limit_in_bytes", text);
    r = cgfs_write(folder, "memory.memsw.limit_in_bytes", text); /* absent without swap accounting */
    return r == 0 || r == -ENOENT || r == -EACCES ? 0 : refused(e, r, folder, "memory.memsw.limit_in_bytes", text);
}

int cg1_set_cpu(const char *folder, uint32_t cpu_milli, struct err *e)
{
    char text[32];
    uint64_t shares = (uint64_t)cpu_milli * 1024 / 1000;
    (void)snprintf(text, sizeof text, "%" PRIu64, shares < 2 ? 2 : shares);
    int r = cgfs_write(folder, "cpu.shares", text);
    if (r < 0)
        return refused(e, r, folder, "cpu.shares", text);
    uint64_t quota = (uint64_t)cpu_milli * PERIOD_US / 1000;
    (void)snprintf(text, sizeof text, "%" PRIu64, quota < 1000 ? 1000 : quota); /* the kernel's least */
    r = cgfs_write(folder, "cpu.cfs_quota_us", text);
    return r == 0 ? 0 : refused(e, r, folder, "cpu.cfs_quota_us", text);
}

void cg1_usage_memory(const char *folder, struct cgroup_usage *u)
{
    uint64_t bytes;
    if (cgfs_number(folder, "memory.max_usage_in_bytes", NULL, &bytes) == 0)
        u->peak_mem_mib = (bytes + (1 << 20) - 1) >> 20;
    (void)cgfs_number(folder, "memory.oom_control", "oom_kill", &u->oom_kills);
}

int cg1_oom_fd(const char *folder)
{
    char path[PATH_MAX], text[64];
    int n = snprintf(path, sizeof path, "%s/memory.oom_control", folder);
    if (n < 0 || (size_t)n >= sizeof path)
        return -1;
    int control = open(path, O_RDONLY | O_CLOEXEC);
    if (control < 0)
        return -1;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd >= 0) {
        (void)snprintf(text, sizeof text, "%d %d", fd, control);
        if (cgfs_write(folder, "cgroup.event_control", text) < 0) {
            close(fd);
            fd = -1;
        }
    }
    close(control);
    return fd;
}
