/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys/file.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREE_DEPTH_MAX 64

static int open_retry(int dir_fd, const char *name, int flags, mode_t mode)
{
    int fd;
    do
        fd = openat(dir_fd, name, flags | O_CLOEXEC | O_NOCTTY, mode);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

/* Reads until the end or until more than `max` bytes have come. */
static int read_all(int fd, size_t max, char **ret, size_t *ret_len)
{
    CLEANUP_FREE char *data = NULL;
    size_t cap = 0, len = 0;
    for (;;) {
        size_t want = len + 4096;
        if (want > max + 1)
            want = max + 1;
        if (mem_grow(&data, &cap, want + 1, 1) < 0)
            return -ENOMEM;
        ssize_t n = read(fd, data + len, want - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
        if (len > max)
            return -EFBIG;
    }
    data[len] = '\0';
    *ret = TAKE_PTR(data);
    if (ret_len != NULL)
        *ret_len = len;
    return 0;
}

int file_read_at(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_len, struct err *e)
{
    int fd = open_retry(dir_fd, name, O_RDONLY, 0);
    if (fd < 0)
        return err_set(e, fd, "%s: %s", name, strerror(-fd));
    int r = read_all(fd, max, ret, ret_len);
    close(fd);
    if (r == -EFBIG)
        return err_set(e, r, "%s: longer than the %zu bytes allowed", name, max);
    if (r < 0)
        return err_set(e, r, "%s: %s", name, strerror(-r));
    return 0;
}

int file_read(const char *path, size_t max, char **ret, size_t *ret_len, struct err *e)
{
    return file_read_at(AT_FDCWD, path, max, ret, ret_len, e);
}

int file_write_fd(int fd, const void *bytes, size_t len)
{
    const char *p = bytes;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* fsync of the folder that holds `name`. */
static int sync_parent(int dir_fd, const char *name)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(name, '/');
    if (slash == NULL)
        memcpy(parent, ".", 2);
    else if (slash == name)
        memcpy(parent, "/", 2);
    else if ((size_t)(slash - name) >= sizeof parent)
        return -ENAMETOOLONG;
    else
        (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - name), name);
    int fd = open_retry(dir_fd, parent, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    int r = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return r;
}

static int write_named(int dir_fd, const char *name, const void *bytes, size_t len, mode_t mode, enum file_sync sync)
{
    int fd = open_retry(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode);
    if (fd < 0)
        return fd;
    int r = file_write_fd(fd, bytes, len);
    if (r == 0 && fchmod(fd, mode) < 0) /* whatever the umask and an older file said */
        r = -errno;
    if (r == 0 && sync != FILE_SYNC_NO && fdatasync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

int file_write_atomic_at(int dir_fd, const char *name, const void *bytes, size_t len, mode_t mode, enum file_sync sync,
                         struct err *e)
{
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof temporary, "%s.tmp", name);
    if (n < 0 || (size_t)n >= sizeof temporary)
        return err_set(e, -ENAMETOOLONG, "%.100s...: the path is too long", name);
    int r = write_named(dir_fd, temporary, bytes, len, mode, sync);
    if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlinkat(dir_fd, temporary, 0);
        return err_set(e, r, "%s: %s", name, strerror(-r));
    }
    if (sync == FILE_SYNC_ALL) {
        r = sync_parent(dir_fd, name);
        if (r < 0)
            return err_set(e, r, "%s: folder can't be synced: %s", name, strerror(-r));
    }
    return 0;
}

int file_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode, enum file_sync sync, struct err *e)
{
    return file_write_atomic_at(AT_FDCWD, path, bytes, len, mode, sync, e);
}

int dir_sync(const char *path, struct err *e)
{
    int fd = open_retry(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return err_set(e, fd, "folder %s: %s", path, strerror(-fd));
    int r = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return r == 0 ? 0 : err_set(e, r, "folder %s: %s", path, strerror(-r));
}

int dir_make(const char *path, mode_t mode, struct err *e)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof part)
        return err_set(e, -EINVAL, "folder '%.100s': a path of 1 to %d bytes is needed", path, PATH_MAX - 1);
    if (mkdir(path, mode) == 0)
        return 0;
    if (errno == ENOENT) {
        memcpy(part, path, len + 1);
        while (len > 1 && part[len - 1] == '/')
            part[--len] = '\0';
        char *slash = strrchr(part, '/');
        if (slash != NULL && slash != part) {
            *slash = '\0';
            int r = dir_make(part, mode, e);
            if (r < 0)
                return r;
        }
        if (mkdir(path, mode) == 0)
            return 0;
    }
    int code = -errno;
    struct stat st;
    if (code == -EEXIST && stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return 0;
        code = -ENOTDIR;
    }
    return err_set(e, code, "folder %s: %s", path, strerror(-code));
}

static int remove_at(int dir_fd, const char *name, unsigned depth)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM && errno != EACCES)
        return -errno;
    if (depth >= TREE_DEPTH_MAX)
        return -ELOOP;
    int fd = open_retry(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0)
        return fd;
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        int code = -errno;
        close(fd);
        return code;
    }
    int r = 0;
    const struct dirent *entry;
    while (r == 0 && (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = remove_at(dirfd(dir), entry->d_name, depth + 1);
    closedir(dir);
    if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        r = -errno;
    return r;
}

int dir_remove_tree(const char *path, struct err *e)
{
    int r = remove_at(AT_FDCWD, path, 0);
    return r == 0 ? 0 : err_set(e, r, "removing %s: %s", path, strerror(-r));
}

int lock_file_take(const char *path, int *ret_fd, struct err *e)
{
    int fd = open_retry(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(e, fd, "lock %s: %s", path, strerror(-fd));
    int r;
    do
        r = flock(fd, LOCK_EX | LOCK_NB);
    while (r < 0 && errno == EINTR);
    if (r < 0) {
        int code = -errno;
        close(fd);
        return err_set(e, code, "lock %s: %s", path,
                       code == -EWOULDBLOCK ? "held by another process" : strerror(-code));
    }
    *ret_fd = fd;
    return 0;
}

bool lock_file_held(const char *path)
{
    int fd = open_retry(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW, 0);
    if (fd < 0)
        return false;
    bool held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    close(fd); /* gives a lock just taken back */
    return held;
}
