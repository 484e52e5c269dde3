/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where cgroups may be made. Each candidate is tried by doing it (making the folder, handing controllers down),
 * since permissions of delegated groups, containers and read-only mounts can not be told from the outside.
 */
#include "runner/cgroup.h"

#include "base/mem.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "runner/cgroup_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOUNTINFO_MAX (4u << 20)
#define DAEMON_LEAF   "remuda-daemon"

struct probe {
    struct cgroup_plan *plan;
    char key[16];
    int why; /* the last refusal, -errno; 0 while none was met */
};

/* Whether the comma-separated `list` has `word`. */
static bool list_has(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = list; *p != '\0'; p += strcspn(p, ",")) {
        p += *p == ',' ? 1 : 0;
        if (strncmp(p, word, len) == 0 && (p[len] == ',' || p[len] == '\0'))
            return true;
    }
    return false;
}

/*
 * Mount point and root of a hierarchy (controller NULL: v2) from /proc/self/mountinfo, whose lines are
 * "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAGS] - TYPE SOURCE SUPEROPTIONS".
 */
static int find_mount(const char *controller, char *ret_mount, char *ret_root, size_t size)
{
    CLEANUP_FREE char *text = NULL;
    int r = file_read("/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL, NULL);
    if (r < 0)
        return r;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        char root[CGROUP_PATH_SIZE], mount[CGROUP_PATH_SIZE], type[16], options[256];
        const char *tail = strstr(line, " - ");
        if (tail == NULL || sscanf(line, "%*s %*s %*s %511s %511s", root, mount) != 2 ||
            sscanf(tail + 3, "%15s %*s %255s", type, options) != 2)
            continue;
        bool match = controller == NULL ? strcmp(type, "cgroup2") == 0
                                        : strcmp(type, "cgroup") == 0 && list_has(options, controller);
        if (!match)
            continue;
        (void)snprintf(ret_mount, size, "%s", mount);
        (void)snprintf(ret_root, size, "%s", root);
        return 0;
    }
    return -ENOENT;
}

/* The folder of this process's group in a hierarchy. */
static int own_folder(const char *controller, char mount[CGROUP_PATH_SIZE], char ret[PATH_MAX])
{
    char root[CGROUP_PATH_SIZE], path[CGROUP_PATH_SIZE];
    int r = find_mount(controller, mount, root, CGROUP_PATH_SIZE);
    if (r == 0)
        r = process_cgroup(controller, path, sizeof path);
    if (r < 0)
        return r;
    const char *rest = path;
    size_t len = strlen(root);
    if (len > 1 && strncmp(path, root, len) == 0 && (path[len] == '/' || path[len] == '\0'))
        rest = path + len; /* only a part of the hierarchy is mounted */
    (void)snprintf(ret, PATH_MAX, "%s%s", mount, strcmp(rest, "/") == 0 ? "" : rest);
    char *slash = strrchr(ret, '/');
    if (slash != NULL && strcmp(slash + 1, DAEMON_LEAF) == 0)
        *slash = '\0'; /* moved there by an earlier probe */
    if (access(ret, F_OK) < 0)
        (void)snprintf(ret, PATH_MAX, "%s", mount);
    return 0;
}

/* Makes FOLDER/remuda-KEY and gives its path. */
static int make_parent(const struct probe *pr, const char *folder, char ret[CGROUP_PATH_SIZE])
{
    char path[PATH_MAX + 32];
    int n = snprintf(path, sizeof path, "%s/remuda-%s", folder, pr->key);
    if (n < 0 || n >= CGROUP_PATH_SIZE || strpbrk(path, ";\n") != NULL)
        return -ENAMETOOLONG;
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return -errno;
    if (access(path, W_OK) < 0)
        return -errno;
    memcpy(ret, path, (size_t)n + 1);
    return 0;
}

static void probe_v1(struct probe *pr, enum cgroup_role role, const char *controller)
{
    if (pr->plan->role[role].version != CGROUP_NONE)
        return;
    char mount[CGROUP_PATH_SIZE], folder[PATH_MAX];
    int r = own_folder(controller, mount, folder);
    if (r == 0)
        r = make_parent(pr, folder, pr->plan->role[role].parent);
    if (r == 0)
        pr->plan->role[role].version = CGROUP_V1;
    else
        pr->why = r;
}

static void only_self(pid_t pid, void *arg)
{
    if (pid != getpid())
        *(bool *)arg = false;
}

/* Hands controllers down from a group that the daemon lives in: it steps aside when it is alone there. */
static int enable_own(const char *folder, bool memory, bool cpu)
{
    int r = cg2_enable(folder, memory, cpu);
    if (r != -EBUSY)
        return r;
    bool alone = true;
    (void)cgfs_processes(folder, only_self, &alone);
    if (!alone)
        return r;
    char leaf[PATH_MAX + 16];
    (void)snprintf(leaf, sizeof leaf, "%s/" DAEMON_LEAF, folder);
    if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
        return -errno;
    r = cgfs_write(leaf, "cgroup.procs", "0");
    return r < 0 ? r : cg2_enable(folder, memory, cpu);
}

static void take_v2(struct probe *pr, const char *parent, bool memory, bool cpu)
{
    bool wanted[CGROUP_ROLES] = {true, memory, cpu};
    for (int i = 0; i < CGROUP_ROLES; i++)
        if (wanted[i]) {
            pr->plan->role[i].version = CGROUP_V2;
            (void)snprintf(pr->plan->role[i].parent, sizeof pr->plan->role[i].parent, "%s", parent);
        }
}

static void probe_v2(struct probe *pr)
{
    char mount[CGROUP_PATH_SIZE], own[PATH_MAX], folder[PATH_MAX], parent[CGROUP_PATH_SIZE];
    int r = own_folder(NULL, mount, own);
    if (r < 0) {
        pr->why = r;
        return;
    }
    bool memory = cgfs_has_word(mount, "cgroup.controllers", "memory");
    bool cpu = cgfs_has_word(mount, "cgroup.controllers", "cpu");
    memcpy(folder, own, sizeof folder);
    while (memory || cpu) { /* upwards, to the nearest that hands both down */
        r = strcmp(folder, own) == 0 ? enable_own(folder, memory, cpu) : cg2_enable(folder, memory, cpu);
        if (r == 0)
            r = make_parent(pr, folder, parent);
        if (r == 0)
            r = cg2_enable(parent, memory, cpu);
        if (r == 0) {
            take_v2(pr, parent, memory, cpu);
            return;
        }
        pr->why = r;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || strlen(folder) <= strlen(mount))
            break;
        *slash = '\0';
    }
    r = make_parent(pr, own, parent);
    if (r == 0)
        take_v2(pr, parent, false, false);
    else
        pr->why = r;
}

/* Whether a process may be moved into groups below `parent`: that takes rights on what lies above both as well. */
static int try_entering(const char *parent)
{
    char leaf[CGROUP_PATH_SIZE + 16], procs[CGROUP_PATH_SIZE + 32];
    (void)snprintf(leaf, sizeof leaf, "%s/" CGROUP_PROBE_LEAF, parent);
    (void)snprintf(procs, sizeof procs, "%s/cgroup.procs", leaf);
    if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) { /* only what is safe between fork and exec */
        int fd = open(procs, O_WRONLY | O_CLOEXEC);
        _exit(fd >= 0 && write(fd, "0", 1) == 1 ? 0 : errno > 0 && errno < 256 ? errno : EIO);
    }
    int status = 0, r = pid < 0 ? -errno : 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r == 0)
        r = WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
    (void)rmdir(leaf);
    return r;
}

/* Takes back the roles whose places can't be entered; a place that can be serves for tracking too. */
static void verify(struct probe *pr)
{
    struct cgroup_plan *p = pr->plan;
    for (int i = 0; i < CGROUP_ROLES; i++) {
        int r = p->role[i].version == CGROUP_NONE ? 0 : try_entering(p->role[i].parent);
        if (r == 0)
            continue;
        pr->why = r;
        (void)rmdir(p->role[i].parent);
        p->role[i].version = CGROUP_NONE;
        p->role[i].parent[0] = '\0';
    }
    for (int i = CGROUP_MEMORY; i < CGROUP_ROLES && p->role[CGROUP_TRACK].version == CGROUP_NONE; i++)
        p->role[CGROUP_TRACK] = p->role[i];
}

static void write_note(struct probe *pr, const char *choice)
{
    const struct cgroup_plan *p = pr->plan;
    bool memory = p->role[CGROUP_MEMORY].version != CGROUP_NONE, cpu = p->role[CGROUP_CPU].version != CGROUP_NONE;
    const char *why = pr->why != 0 ? strerror(-pr->why) : "switched off";
    if (strcmp(choice, "none") == 0)
        why = "switched off";
    if (p->role[CGROUP_TRACK].version == CGROUP_NONE)
        (void)snprintf(pr->plan->note, CGROUP_NOTE_SIZE,
                       "no cgroups (%s): memory and CPU limits are not enforced, processes are found by their parents",
                       why);
    else if (!memory || !cpu)
        (void)snprintf(pr->plan->note, CGROUP_NOTE_SIZE, "%s limits are not enforced (cgroups: %s)",
                       memory ? "CPU"
                       : cpu  ? "memory"
                              : "memory and CPU",
                       why);
}

int cgroup_probe(const char *choice, const char *state_dir, struct cgroup_plan *ret, struct err *e)
{
    if (choice == NULL || choice[0] == '\0')
        choice = "auto";
    bool any = strcmp(choice, "auto") == 0, v1 = strcmp(choice, "v1") == 0, v2 = strcmp(choice, "v2") == 0;
    if (!any && !v1 && !v2 && strcmp(choice, "none") != 0)
        return err_set(e, -EINVAL, "cgroups '%.40s': allowed are auto, v1, v2, none", choice);
    struct probe pr = {.plan = ret};
    *ret = (struct cgroup_plan){0};
    runner_state_key(state_dir, pr.key);
    if (any || v2)
        probe_v2(&pr);
    if (any || v1) {
        probe_v1(&pr, CGROUP_MEMORY, "memory");
        probe_v1(&pr, CGROUP_CPU, "cpu");
        /* The freezer tracks best, any other does. */
        static const char *const trackers[] = {"freezer", "pids", "memory", "cpu"};
        for (unsigned i = 0; i < 4; i++)
            probe_v1(&pr, CGROUP_TRACK, trackers[i]);
    }
    verify(&pr);
    write_note(&pr, choice);
    return 0;
}
