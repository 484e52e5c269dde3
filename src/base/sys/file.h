/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as the daemon and the runner need them: whole reads with a limit, writes that are there completely or not at
 * all after a crash, folders, locks. Every function retries interrupted calls, sets close-on-exec, and names the path
 * in its error.
 */
#ifndef REMUDA_BASE_SYS_FILE_H
#define REMUDA_BASE_SYS_FILE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads the whole file; *ret is the caller's (mem_free) and terminated by a zero byte that *ret_len (may be NULL)
 * does not count. -EFBIG when it is longer than `max` bytes. Works for files of /proc too.
 */
int file_read(const char *path, size_t max, char **ret, size_t *ret_len, struct err *e);
/* The same relative to the folder `dir_fd` (or AT_FDCWD). */
int file_read_at(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_len, struct err *e);

/* Writes all bytes to `fd`. 0 or -errno; part may have been written then. */
int file_write_fd(int fd, const void *bytes, size_t len);

enum file_sync {
    FILE_SYNC_NO,   /* atomic for readers, not durable */
    FILE_SYNC_DATA, /* the new content is on disk before it gets its name; the name may still be lost */
    FILE_SYNC_ALL,  /* content and name are on disk on return */
};
/*
 * Replaces `path` by a file with this content and `mode`: a reader (or the state after a crash) has the whole old
 * content or the whole new one. Needs room for both. The temporary name is `path` and ".tmp"; two writers of one path
 * at once are the caller's fault.
 */
int file_write_atomic(const char *path, const void *bytes, size_t len, mode_t mode, enum file_sync sync, struct err *e);
int file_write_atomic_at(int dir_fd, const char *name, const void *bytes, size_t len, mode_t mode, enum file_sync sync,
                         struct err *e);

/* fsync of a folder, so that names made or removed in it survive a crash. */
int dir_sync(const char *path, struct err *e);
/* Makes the folder and those above it; one that is there already is fine, its mode is left alone. */
int dir_make(const char *path, mode_t mode, struct err *e);
/* Removes a file or a whole tree without following links. One that is not there is fine. */
int dir_remove_tree(const char *path, struct err *e);

/*
 * Takes an exclusive lock on `path` (made when absent), held until the descriptor and all its copies are closed; a
 * dead holder holds nothing. *ret_fd is the caller's. -EWOULDBLOCK when another holds it.
 */
int lock_file_take(const char *path, int *ret_fd, struct err *e);
/* True when somebody holds the lock of `path`. False also when there is no such file. */
bool lock_file_held(const char *path);

#endif
