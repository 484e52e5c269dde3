/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys/process.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sys/file.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define PROC_FILE_MAX 65536

int process_self_path(char **ret, struct err *e)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n < 0 || (size_t)n >= sizeof path) {
        int code = n < 0 ? -errno : -ENAMETOOLONG;
        return err_set(e, code, "/proc/self/exe: %s", strerror(-code));
    }
    char *copy = mem_strndup(path, (size_t)n);
    if (copy == NULL)
        return err_set(e, -ENOMEM, "no memory for the program's path");
    *ret = copy;
    return 0;
}

int process_sibling_path(const char *name, char **ret, struct err *e)
{
    CLEANUP_FREE char *self = NULL;
    int r = process_self_path(&self, e);
    if (r < 0)
        return r;
    const char *slash = strrchr(self, '/');
    struct strbuf b = {0};
    strbuf_add(&b, self, slash == NULL ? 0 : (size_t)(slash - self) + 1);
    strbuf_puts(&b, name);
    char *path = strbuf_take(&b);
    if (path == NULL)
        return err_set(e, -ENOMEM, "no memory for the path of %s", name);
    *ret = path;
    return 0;
}

int process_stat_read(pid_t pid, struct process_stat *ret)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CLEANUP_FREE char *text = NULL;
    int r = file_read(path, PROC_FILE_MAX, &text, NULL, NULL);
    if (r < 0)
        return r == -ENOENT ? -ESRCH : r;
    /* The name may hold anything, also ")": the fields begin after the last one. */
    const char *p = strrchr(text, ')');
    if (p == NULL || p[1] != ' ')
        return -EBADMSG;
    int ppid, pgid, session;
    unsigned long long user, system, start;
    char state;
    int n = sscanf(p + 2, "%c %d %d %d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu", &state,
                   &ppid, &pgid, &session, &user, &system, &start);
    if (n != 7)
        return -EBADMSG;
    long hz = sysconf(_SC_CLK_TCK);
    *ret = (struct process_stat){
        .state = state,
        .ppid = ppid,
        .pgid = pgid,
        .session = session,
        .start_ticks = start,
        .cpu_ms = (user + system) * 1000 / (uint64_t)(hz > 0 ? hz : 100),
    };
    return 0;
}

int process_start_ticks(pid_t pid, uint64_t *ret)
{
    struct process_stat st;
    int r = process_stat_read(pid, &st);
    if (r == 0)
        *ret = st.start_ticks;
    return r;
}

bool process_alive(pid_t pid, uint64_t start_ticks)
{
    struct process_stat st;
    return pid > 0 && process_stat_read(pid, &st) == 0 && st.start_ticks == start_ticks && st.state != 'Z' &&
           st.state != 'X';
}

void process_boot_id(char out[40])
{
    out[0] = '\0';
    CLEANUP_FREE char *text = NULL;
    if (file_read("/proc/sys/kernel/random/boot_id", 64, &text, NULL, NULL) == 0)
        (void)snprintf(out, 40, "%.*s", (int)strcspn(text, "\n"), text);
}

/* Whether the comma-separated list of `len` bytes has `word`. */
static bool list_has(const char *list, size_t len, const char *word)
{
    size_t word_len = strlen(word);
    while (len > 0) {
        const char *comma = memchr(list, ',', len);
        size_t part = comma == NULL ? len : (size_t)(comma - list);
        if (part == word_len && memcmp(list, word, part) == 0)
            return true;
        if (comma == NULL)
            return false;
        list += part + 1;
        len -= part + 1;
    }
    return false;
}

int process_cgroup(const char *controller, char *ret, size_t size)
{
    CLEANUP_FREE char *text = NULL;
    int r = file_read("/proc/self/cgroup", PROC_FILE_MAX, &text, NULL, NULL);
    if (r < 0)
        return r;
    /* Lines "7:cpu,cpuacct:/a/b"; the v2 line is "0::/a/b". */
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        const char *first = strchr(line, ':');
        const char *second = first == NULL ? NULL : strchr(first + 1, ':');
        if (second == NULL)
            continue;
        size_t list_len = (size_t)(second - first - 1);
        bool match = controller == NULL ? list_len == 0 && line[0] == '0' : list_has(first + 1, list_len, controller);
        if (!match)
            continue;
        int n = snprintf(ret, size, "%s", second + 1);
        return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
    }
    return -ENOENT;
}

/* One number from a file; UINT64_MAX for "max", "-1" or when it can not be read. The second number goes to *second. */
static uint64_t read_limit(const char *path, uint64_t *second)
{
    CLEANUP_FREE char *text = NULL;
    if (file_read(path, 256, &text, NULL, NULL) < 0)
        return UINT64_MAX;
    char *end = text;
    uint64_t value = UINT64_MAX;
    if (strncmp(text, "max", 3) == 0)
        end = text + 3;
    else if (text[0] != '-')
        value = strtoull(text, &end, 10);
    if (second != NULL && *end == ' ')
        *second = strtoull(end, NULL, 10);
    return value;
}

/* Calls visit() for the cgroup of this process and each one above it, up to the root of the mount. */
static void walk_up(const char *mount, const char *controller, void (*visit)(const char *folder, uint64_t *least),
                    uint64_t *least)
{
    char path[PATH_MAX / 2], folder[PATH_MAX];
    if (process_cgroup(controller, path, sizeof path) < 0)
        return;
    for (;;) {
        (void)snprintf(folder, sizeof folder, "%s%s", mount, path);
        visit(folder, least);
        char *slash = strrchr(path, '/');
        if (slash == NULL || path[1] == '\0')
            return;
        slash[slash == path ? 1 : 0] = '\0';
    }
}

static void lower(uint64_t *least, uint64_t value)
{
    if (value < *least)
        *least = value;
}

static void visit_cpu_v1(const char *folder, uint64_t *least)
{
    char path[PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    uint64_t quota = read_limit(path, NULL);
    (void)snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    uint64_t period = read_limit(path, NULL);
    if (quota != UINT64_MAX && period != UINT64_MAX && period > 0 && quota < UINT64_MAX / 1000)
        lower(least, quota * 1000 / period);
}

static void visit_cpu_v2(const char *folder, uint64_t *least)
{
    char path[PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/cpu.max", folder);
    uint64_t period = 0, quota = read_limit(path, &period);
    if (quota != UINT64_MAX && period > 0 && quota < UINT64_MAX / 1000)
        lower(least, quota * 1000 / period);
}

static void visit_mem_v1(const char *folder, uint64_t *least)
{
    char path[PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/memory.limit_in_bytes", folder);
    lower(least, read_limit(path, NULL));
}

static void visit_mem_v2(const char *folder, uint64_t *least)
{
    char path[PATH_MAX + 32];
    (void)snprintf(path, sizeof path, "%s/memory.max", folder);
    lower(least, read_limit(path, NULL));
}

uint32_t host_cpu_milli(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    uint64_t least = 0;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        least = (uint64_t)CPU_COUNT(&set) * 1000;
    if (least == 0) {
        long n = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than fit the set */
        least = (uint64_t)(n > 0 ? n : 1) * 1000;
    }
    walk_up("/sys/fs/cgroup/cpu", "cpu", visit_cpu_v1, &least);
    walk_up("/sys/fs/cgroup", NULL, visit_cpu_v2, &least);
    if (least < 1000)
        least = 1000;
    return (uint32_t)least;
}

uint64_t host_mem_mib(void)
{
    struct sysinfo info;
    uint64_t least = UINT64_MAX;
    if (sysinfo(&info) == 0)
        least = (uint64_t)info.totalram * info.mem_unit;
    walk_up("/sys/fs/cgroup/memory", "memory", visit_mem_v1, &least);
    walk_up("/sys/fs/cgroup", NULL, visit_mem_v2, &least);
    return least == UINT64_MAX ? 0 : least >> 20;
}

void host_name(char *ret, size_t size)
{
    if (gethostname(ret, size) < 0)
        ret[0] = '\0';
    ret[size - 1] = '\0';
    if (ret[0] == '\0')
        (void)snprintf(ret, size, "localhost");
}
