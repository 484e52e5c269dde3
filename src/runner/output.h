/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One output stream of a worker: what comes out of its pipe goes to a file that is rotated by size. The runner owns
 * the file, so that it can be rotated while the worker writes and a job can not fill the disk with output:
 * at most (files kept + 1) x limit, and a note.
 *
 * A disk that is full must not block or end a job: what can't be written is dropped and counted, and when there is
 * room again (or at the end) a line in the file says how much is missing.
 */
#ifndef REMUDA_RUNNER_OUTPUT_H
#define REMUDA_RUNNER_OUTPUT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct output {
    char name[32]; /* in the folder that is the working directory */
    int fd;        /* of the file; -1: not open */
    uid_t uid;     /* who may read it */
    gid_t gid;
    uint64_t size;       /* of the current file */
    uint64_t limit;      /* 0: no rotation */
    uint32_t kept;       /* rotated files */
    uint64_t lost;       /* bytes dropped in all */
    uint64_t lost_noted; /* of them already told in the file */
    int why;             /* the errno of the last failure, positive */
};

/* Opens (appends to) the file and makes it readable for its owner. 0 or -errno. */
int output_open(struct output *o, const char *name, uid_t uid, gid_t gid, uint64_t limit, uint32_t kept, struct err *e);
/* Writes, rotates, drops. Never fails and never blocks on anything but the disk. */
void output_write(struct output *o, const char *bytes, size_t len);
/* Tells of what is missing, if anything, and closes. */
void output_close(struct output *o);

#endif
