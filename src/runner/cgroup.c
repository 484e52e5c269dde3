/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/cgroup.h"

#include "base/mem.h"
#include "runner/cgroup_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNNERS_LEAF "runners"
#define STALE_STEPS  200

static const char *const role_names[CGROUP_ROLES] = {"track", "memory", "cpu"};

void runner_state_key(const char *state_dir, char out[16])
{
    char *real = realpath(state_dir, NULL);
    const char *path = real != NULL ? real : state_dir;
    uint64_t h = 14695981039346656037u ^ geteuid(); /* FNV-1a */
    for (const char *p = path; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    free(real); /* libc's, not base/mem.h's */
    (void)snprintf(out, 16, "%012llx", (unsigned long long)(h >> 16));
}

void cgroup_plan_write(const struct cgroup_plan *p, struct strbuf *out)
{
    bool first = true;
    for (int i = 0; i < CGROUP_ROLES; i++) {
        if (p->role[i].version == CGROUP_NONE)
            continue;
        strbuf_printf(out, "%s%s=v%d:%s", first ? "" : ";", role_names[i], p->role[i].version == CGROUP_V1 ? 1 : 2,
                      p->role[i].parent);
        first = false;
    }
    if (first)
        strbuf_puts(out, "none");
}

/* "track=v2:/path" of `len` bytes. */
static int parse_role(const char *text, size_t len, struct cgroup_plan *p)
{
    for (int i = 0; i < CGROUP_ROLES; i++) {
        size_t n = strlen(role_names[i]);
        if (len <= n + 5 || memcmp(text, role_names[i], n) != 0 || text[n] != '=' || text[n + 1] != 'v' ||
            text[n + 3] != ':' || text[n + 4] != '/')
            continue;
        size_t path_len = len - n - 4;
        if ((text[n + 2] != '1' && text[n + 2] != '2') || path_len >= CGROUP_PATH_SIZE ||
            p->role[i].version != CGROUP_NONE)
            return -EINVAL;
        p->role[i].version = text[n + 2] == '1' ? CGROUP_V1 : CGROUP_V2;
        memcpy(p->role[i].parent, text + n + 4, path_len);
        p->role[i].parent[path_len] = '\0';
        return 0;
    }
    return -EINVAL;
}

int cgroup_plan_parse(const char *text, struct cgroup_plan *ret, struct err *e)
{
    struct cgroup_plan p = {0};
    const char *at = text;
    if (strcmp(text, "none") == 0)
        at += 4;
    while (*at != '\0') {
        size_t len = strcspn(at, ";");
        if (parse_role(at, len, &p) < 0)
            return err_set(e, -EINVAL, "cgroup places: '%.100s' is not ROLE=vN:/FOLDER;...", text);
        at += len + (at[len] == ';' ? 1 : 0);
    }
    if (p.role[CGROUP_TRACK].version == CGROUP_NONE &&
        (p.role[CGROUP_MEMORY].version != CGROUP_NONE || p.role[CGROUP_CPU].version != CGROUP_NONE))
        return err_set(e, -EINVAL, "cgroup places: '%.100s' has limits but no track", text);
    *ret = p;
    return 0;
}

/* True for the first role of each distinct folder: a hierarchy that fills several roles is handled once. */
static bool distinct(const struct cgroup_plan *p, int role)
{
    if (p->role[role].version == CGROUP_NONE)
        return false;
    for (int i = 0; i < role; i++)
        if (p->role[i].version != CGROUP_NONE && strcmp(p->role[i].parent, p->role[role].parent) == 0)
            return false;
    return true;
}

/* True when this role's folder also limits `other`. */
static bool fills(const struct cgroup_plan *p, int role, int other)
{
    return p->role[other].version != CGROUP_NONE && strcmp(p->role[role].parent, p->role[other].parent) == 0;
}

/* The folder of an attempt, or of one worker of it. */
static void folder_of(const struct cgroup_plan *p, int role, const char *name, uint32_t rank, char path[PATH_MAX])
{
    if (rank == CGROUP_ALL)
        (void)snprintf(path, PATH_MAX, "%s/%s", p->role[role].parent, name);
    else
        (void)snprintf(path, PATH_MAX, "%s/%s/w%u", p->role[role].parent, name, rank);
}

static int enable_below(const struct cgroup_plan *p, int role, const char *folder)
{
    if (p->role[role].version != CGROUP_V2)
        return 0;
    return cg2_enable(folder, fills(p, role, CGROUP_MEMORY), fills(p, role, CGROUP_CPU));
}

void cgroup_release(const struct cgroup_plan *p)
{
    for (int i = 0; i < CGROUP_ROLES; i++) {
        if (!distinct(p, i))
            continue;
        static const char *const leaves[] = {RUNNERS_LEAF, CGROUP_PROBE_LEAF};
        char path[PATH_MAX];
        for (int k = 0; k < 2; k++) {
            folder_of(p, i, leaves[k], CGROUP_ALL, path);
            (void)rmdir(path);
        }
        (void)rmdir(p->role[i].parent);
    }
}

static bool kill_step(enum cgroup_version version, const char *folder)
{
    return version == CGROUP_V1 ? cg1_kill_step(folder) : cg2_kill_step(folder);
}

/* One folder of an attempt; an earlier one of that name is emptied and removed. */
static int make_folder(const struct cgroup_plan *p, int role, const char *folder, struct err *e)
{
    int r = mkdir(folder, 0755) < 0 ? -errno : 0;
    if (r == -ENOENT) { /* the daemon that made the parent has gone and removed it */
        (void)mkdir(p->role[role].parent, 0755);
        (void)enable_below(p, role, p->role[role].parent);
        r = mkdir(folder, 0755) < 0 ? -errno : 0;
    }
    if (r == -EEXIST) {
        for (int i = 0; i < STALE_STEPS && !kill_step(p->role[role].version, folder); i++)
            (void)usleep(5000);
        r = cgfs_remove(folder) && mkdir(folder, 0755) == 0 ? 0 : -EBUSY;
    }
    if (r == 0)
        r = enable_below(p, role, folder);
    return r == 0 ? 0 : err_set(e, r, "cgroup %s can't be made: %s", folder, strerror(-r));
}

int cgroup_make(const struct cgroup_plan *p, const char *name, struct err *e)
{
    for (int i = 0; i < CGROUP_ROLES; i++) {
        if (!distinct(p, i))
            continue;
        char folder[PATH_MAX];
        folder_of(p, i, name, CGROUP_ALL, folder);
        int r = make_folder(p, i, folder, e);
        if (r < 0) {
            (void)cgroup_remove(p, name);
            return r;
        }
    }
    return 0;
}

static int set_limits(const struct cgroup_plan *p, int role, const char *folder, const struct cgroup_limits *limits,
                      struct err *e)
{
    bool v1 = p->role[role].version == CGROUP_V1;
    int r = 0;
    if (limits->mem_mib > 0 && fills(p, role, CGROUP_MEMORY))
        r = v1 ? cg1_set_memory(folder, limits->mem_mib, e) : cg2_set_memory(folder, limits->mem_mib, e);
    if (r == 0 && limits->cpu_milli > 0 && fills(p, role, CGROUP_CPU))
        r = v1 ? cg1_set_cpu(folder, limits->cpu_milli, e) : cg2_set_cpu(folder, limits->cpu_milli, e);
    return r;
}

static int make_worker_folder(const struct cgroup_plan *p, int role, const char *name, uint32_t rank,
                              const struct cgroup_limits *limits, int *ret_fd, struct err *e)
{
    char folder[PATH_MAX], procs[PATH_MAX + 16];
    folder_of(p, role, name, rank, folder);
    if (mkdir(folder, 0755) < 0) {
        int code = -errno;
        return err_set(e, code, "cgroup %s can't be made: %s", folder, strerror(-code));
    }
    int r = set_limits(p, role, folder, limits, e);
    if (r < 0)
        return r;
    (void)snprintf(procs, sizeof procs, "%s/cgroup.procs", folder);
    int fd = open(procs, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        int code = -errno;
        return err_set(e, code, "%s: %s", procs, strerror(-code));
    }
    *ret_fd = fd;
    return 0;
}

int cgroup_make_worker(const struct cgroup_plan *p, const char *name, uint32_t rank, const struct cgroup_limits *limits,
                       int fds[CGROUP_ROLES], struct err *e)
{
    for (int i = 0; i < CGROUP_ROLES; i++)
        fds[i] = -1;
    for (int i = 0; i < CGROUP_ROLES; i++) {
        if (!distinct(p, i))
            continue;
        int r = make_worker_folder(p, i, name, rank, limits, &fds[i], e);
        if (r == 0)
            continue;
        for (int k = 0; k < i; k++)
            if (fds[k] >= 0) {
                close(fds[k]);
                fds[k] = -1;
            }
        return r;
    }
    return 0;
}

int cgroup_enter(const int fds[CGROUP_ROLES])
{
    for (int i = 0; i < CGROUP_ROLES; i++)
        if (fds[i] >= 0 && write(fds[i], "0", 1) < 0)
            return -errno;
    return 0;
}

int cgroup_enter_runners(const struct cgroup_plan *p)
{
    if (p->role[CGROUP_TRACK].version == CGROUP_NONE)
        return 0;
    char folder[PATH_MAX];
    folder_of(p, CGROUP_TRACK, RUNNERS_LEAF, CGROUP_ALL, folder);
    int r = -ENOENT;
    for (int i = 0; i < 3 && r == -ENOENT; i++) { /* a daemon that ends may remove it in between */
        if (mkdir(folder, 0755) < 0 && errno == ENOENT && mkdir(p->role[CGROUP_TRACK].parent, 0755) == 0)
            (void)mkdir(folder, 0755);
        r = cgfs_write(folder, "cgroup.procs", "0");
    }
    return r;
}

static void signal_one(pid_t pid, void *arg)
{
    (void)kill(pid, *(const int *)arg);
}

int cgroup_signal(const struct cgroup_plan *p, const char *name, uint32_t rank, int signal)
{
    if (p->role[CGROUP_TRACK].version == CGROUP_NONE)
        return 0;
    char folder[PATH_MAX];
    folder_of(p, CGROUP_TRACK, name, rank, folder);
    return cgfs_processes(folder, signal_one, &signal);
}

static void ignore_one(pid_t pid, void *arg)
{
    (void)pid;
    (void)arg;
}

bool cgroup_empty(const struct cgroup_plan *p, const char *name, uint32_t rank)
{
    char folder[PATH_MAX];
    enum cgroup_version version = p->role[CGROUP_TRACK].version;
    if (version == CGROUP_NONE)
        return true;
    folder_of(p, CGROUP_TRACK, name, rank, folder);
    return version == CGROUP_V2 ? cg2_empty(folder) : cgfs_processes(folder, ignore_one, NULL) == 0;
}

bool cgroup_kill_step(const struct cgroup_plan *p, const char *name, uint32_t rank)
{
    char folder[PATH_MAX];
    if (p->role[CGROUP_TRACK].version == CGROUP_NONE)
        return true;
    folder_of(p, CGROUP_TRACK, name, rank, folder);
    return kill_step(p->role[CGROUP_TRACK].version, folder);
}

void cgroup_usage_read(const struct cgroup_plan *p, const char *name, uint32_t rank, struct cgroup_usage *ret)
{
    *ret = (struct cgroup_usage){.cpu_ms = -1};
    char folder[PATH_MAX];
    if (p->role[CGROUP_MEMORY].version != CGROUP_NONE) {
        folder_of(p, CGROUP_MEMORY, name, rank, folder);
        if (p->role[CGROUP_MEMORY].version == CGROUP_V1)
            cg1_usage_memory(folder, ret);
        else
            cg2_usage_memory(folder, ret);
    }
    uint64_t usec;
    if (p->role[CGROUP_TRACK].version == CGROUP_V2) { /* counted without any controller */
        folder_of(p, CGROUP_TRACK, name, rank, folder);
        if (cgfs_number(folder, "cpu.stat", "usage_usec", &usec) == 0)
            ret->cpu_ms = (int64_t)(usec / 1000);
    }
}

int cgroup_oom_fd(const struct cgroup_plan *p, const char *name, uint32_t rank)
{
    if (p->role[CGROUP_MEMORY].version != CGROUP_V1)
        return -1;
    char folder[PATH_MAX];
    folder_of(p, CGROUP_MEMORY, name, rank, folder);
    return cg1_oom_fd(folder);
}

bool cgroup_remove(const struct cgroup_plan *p, const char *name)
{
    bool all = true;
    for (int i = 0; i < CGROUP_ROLES; i++) {
        if (!distinct(p, i))
            continue;
        char folder[PATH_MAX];
        folder_of(p, i, name, CGROUP_ALL, folder);
        all = cgfs_remove(folder) && all;
    }
    return all;
}
