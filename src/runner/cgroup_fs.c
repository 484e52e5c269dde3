/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/cgroup_fs.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCS_BYTES_MAX (4u << 20)
#define DEPTH_MAX       32

static int join(char *path, size_t size, const char *folder, const char *file)
{
    int n = snprintf(path, size, "%s/%s", folder, file);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int cgfs_write(const char *folder, const char *file, const char *text)
{
    char path[PATH_MAX];
    int r = join(path, sizeof path, folder, file);
    if (r < 0)
        return r;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n;
    do
        n = write(fd, text, strlen(text));
    while (n < 0 && errno == EINTR);
    r = n < 0 ? -errno : 0;
    close(fd);
    return r;
}

int cgfs_read(const char *folder, const char *file, char *ret, size_t size)
{
    char path[PATH_MAX];
    int r = join(path, sizeof path, folder, file);
    if (r < 0)
        return r;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n;
    do
        n = read(fd, ret, size - 1);
    while (n < 0 && errno == EINTR);
    r = n < 0 ? -errno : 0;
    close(fd);
    ret[n > 0 ? n : 0] = '\0';
    return r;
}

int cgfs_number(const char *folder, const char *file, const char *key, uint64_t *ret)
{
    char text[4096];
    int r = cgfs_read(folder, file, text, sizeof text);
    if (r < 0)
        return r;
    const char *p = text;
    size_t len = key != NULL ? strlen(key) : 0;
    while (key != NULL && !(strncmp(p, key, len) == 0 && p[len] == ' ')) {
        p = strchr(p, '\n');
        if (p == NULL)
            return -ENOENT;
        p++;
    }
    p += len;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(p, &end, 10);
    if (end == p || errno != 0)
        return -EBADMSG;
    *ret = value;
    return 0;
}

bool cgfs_has_word(const char *folder, const char *file, const char *word)
{
    char text[1024];
    if (cgfs_read(folder, file, text, sizeof text) < 0)
        return false;
    char *save = NULL;
    for (char *w = strtok_r(text, " \n", &save); w != NULL; w = strtok_r(NULL, " \n", &save))
        if (strcmp(w, word) == 0)
            return true;
    return false;
}

static int visit_folder(const char *folder, void (*visit)(pid_t pid, void *arg), void *arg)
{
    char path[PATH_MAX];
    CLEANUP_FREE char *text = NULL;
    if (join(path, sizeof path, folder, "cgroup.procs") < 0 || file_read(path, PROCS_BYTES_MAX, &text, NULL, NULL) < 0)
        return 0;
    int count = 0;
    for (char *p = text; *p != '\0';) {
        char *end;
        long pid = strtol(p, &end, 10);
        if (end == p)
            break;
        if (pid > 0) { /* 0: a process of another pid namespace */
            visit((pid_t)pid, arg);
            count++;
        }
        p = end + strspn(end, "\n");
    }
    return count;
}

/* Calls each() for the path of every subfolder. */
static void each_child(const char *folder, void (*each)(const char *path, void *arg), void *arg)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        char path[PATH_MAX];
        if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            join(path, sizeof path, folder, entry->d_name) == 0)
            each(path, arg);
    }
    closedir(dir);
}

struct walk {
    void (*visit)(pid_t pid, void *arg);
    void *arg;
    int count;
    unsigned depth;
};

static void walk_folder(const char *folder, void *arg)
{
    struct walk *w = arg;
    w->count += visit_folder(folder, w->visit, w->arg);
    if (w->depth >= DEPTH_MAX)
        return;
    w->depth++;
    each_child(folder, walk_folder, w);
    w->depth--;
}

int cgfs_processes(const char *folder, void (*visit)(pid_t pid, void *arg), void *arg)
{
    struct walk w = {.visit = visit, .arg = arg};
    walk_folder(folder, &w);
    return w.count;
}

static void remove_folder(const char *folder, void *arg)
{
    unsigned *depth = arg;
    if (rmdir(folder) == 0 || errno == ENOENT || *depth >= DEPTH_MAX)
        return;
    ++*depth;
    each_child(folder, remove_folder, depth);
    --*depth;
    (void)rmdir(folder);
}

bool cgfs_remove(const char *folder)
{
    unsigned depth = 0;
    remove_folder(folder, &depth);
    return access(folder, F_OK) < 0 && errno == ENOENT;
}
