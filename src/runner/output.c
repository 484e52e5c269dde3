/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_file(struct output *o, int flags)
{
    int fd = open(o->name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | flags, 0640);
    if (fd < 0)
        return -errno;
    if (geteuid() == 0 && fchown(fd, o->uid, o->gid) < 0) {
        int code = -errno;
        close(fd);
        return code;
    }
    o->fd = fd;
    return 0;
}

int output_open(struct output *o, const char *name, uid_t uid, gid_t gid, uint64_t limit, uint32_t kept, struct err *e)
{
    *o = (struct output){.fd = -1, .uid = uid, .gid = gid, .limit = limit, .kept = kept};
    (void)snprintf(o->name, sizeof o->name, "%s", name);
    int r = open_file(o, 0);
    if (r < 0)
        return err_set(e, r, "output file %s: %s", name, strerror(-r));
    struct stat st;
    if (fstat(o->fd, &st) == 0)
        o->size = (uint64_t)st.st_size;
    return 0;
}

/* PATH.k-1 -> PATH.k, ..., PATH -> PATH.1, and a new PATH. With nothing kept the file is emptied. */
static void rotate(struct output *o)
{
    char from[48], to[48];
    for (uint32_t i = o->kept; i > 0; i--) {
        (void)snprintf(to, sizeof to, "%s.%" PRIu32, o->name, i);
        if (i > 1)
            (void)snprintf(from, sizeof from, "%s.%" PRIu32, o->name, i - 1);
        else
            (void)snprintf(from, sizeof from, "%s", o->name);
        (void)rename(from, to); /* those that are not there yet fail */
    }
    int old = o->fd;
    if (open_file(o, O_TRUNC) < 0) { /* no inode left: empty the old file and go on with it */
        if (ftruncate(old, 0) == 0)
            o->size = 0;
        return;
    }
    o->size = 0;
    close(old);
}

/* How many of the bytes got into the file. */
static size_t write_some(struct output *o, const char *bytes, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = write(o->fd, bytes + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            o->why = n < 0 ? errno : ENOSPC;
            break;
        }
        done += (size_t)n;
    }
    o->size += done;
    return done;
}

static void note_lost(struct output *o)
{
    if (o->lost == o->lost_noted)
        return;
    char line[160];
    int n = snprintf(line, sizeof line, "\n[remuda: %" PRIu64 " bytes of output could not be written here: %s]\n",
                     o->lost - o->lost_noted, strerror(o->why));
    off_t before = lseek(o->fd, 0, SEEK_END);
    size_t done = write_some(o, line, (size_t)n);
    if (done == (size_t)n) {
        o->lost_noted = o->lost;
    } else if (done > 0 && before >= 0 && ftruncate(o->fd, before) == 0) { /* half a line helps nobody */
        o->size -= done;
    }
}

void output_write(struct output *o, const char *bytes, size_t len)
{
    if (o->fd < 0) {
        o->lost += len;
        return;
    }
    while (len > 0) {
        if (o->limit > 0 && o->size >= o->limit)
            rotate(o);
        note_lost(o);
        size_t part = len;
        if (o->limit > 0 && o->size < o->limit && part > o->limit - o->size)
            part = (size_t)(o->limit - o->size);
        size_t done = o->lost == o->lost_noted ? write_some(o, bytes, part) : 0;
        o->lost += part - done;
        bytes += part;
        len -= part;
    }
}

void output_close(struct output *o)
{
    if (o->fd < 0)
        return;
    note_lost(o);
    close(o->fd);
    o->fd = -1;
}
