/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: the log of the daemon on disk, as raw rows. It knows nothing of what a row means
 * (src/control/codec.h does), only that rows are numbered from 1 without a gap, that a batch is
 * there completely or not at all, and that what store_append() has acknowledged survives a kill and
 * a power cut.
 *
 * A store is a table of operations, so that another database can stand in;
 * tests/store_conformance.h is the test that every one of them passes. A store belongs to one
 * thread.
 *
 * Errors: -ENOSPC disk full or over quota, -EIO the device failed, -EBUSY somebody else holds the
 * database, -EBADMSG it is damaged or no store, -EACCES not permitted, -EPROTO written by a newer
 * version, -ENOMEM. After any of them but -EBADMSG from open the store stays usable: nothing of the
 * failed batch is in the log, and the same batch can be tried again.
 */
#ifndef REMUDA_STORE_STORE_H
#define REMUDA_STORE_STORE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* One entry of the log. */
struct store_row {
    uint64_t seq;     /* from 1, without gaps */
    int64_t time_ms;  /* wall clock */
    uint32_t kind;    /* not interpreted here */
    uint64_t job;     /* 0: concerns no job; otherwise rows can be read by it */
    const void *body; /* borrowed for the call */
    size_t len;
};

/* One part of a snapshot. */
struct store_blob {
    const void *bytes; /* borrowed for the call */
    size_t len;
};

/* Return 0 to go on; anything else ends the walk and is what the walk returns. The row is borrowed.
 */
typedef int store_row_cb(void *arg, const struct store_row *row);
typedef int store_blob_cb(void *arg, const struct store_blob *blob);

struct store;

struct store_ops {
    const char *name; /* "sqlite" */
    int (*append)(struct store *s, const struct store_row *rows, size_t len, struct err *e);
    int (*last_seq)(struct store *s, uint64_t *ret_seq, struct err *e);
    int (*read)(struct store *s, uint64_t after, uint64_t job, uint32_t limit, store_row_cb *cb, void *arg,
                struct err *e);
    int (*write_snapshot)(struct store *s, uint64_t seq, const struct store_blob *blobs, size_t len, struct err *e);
    int (*read_snapshot)(struct store *s, uint64_t *ret_seq, store_blob_cb *cb, void *arg, struct err *e);
    int (*probe)(struct store *s, struct err *e);
    void (*close)(struct store *s);
};

struct store {
    const struct store_ops *ops;
};

/*
 * Opens the SQLite store in the file `path`, made when it is not there (mode 0600), and brought to
 * today's format when it is older. `vfs` names a SQLite file system layer, NULL for the usual one
 * (tests inject faults through it). On success *ret_store is the caller's (store_close()).
 */
int store_sqlite_open(const char *path, const char *vfs, struct store **ret_store, struct err *e);

/*
 * Appends the rows in one transaction and returns when they are safely on disk. Their numbers must
 * follow the last one: -EINVAL otherwise.
 */
static inline int store_append(struct store *s, const struct store_row *rows, size_t len, struct err *e)
{
    return s->ops->append(s, rows, len, e);
}

/* Number of the newest row, 0 when there is none. */
static inline int store_last_seq(struct store *s, uint64_t *ret_seq, struct err *e)
{
    return s->ops->last_seq(s, ret_seq, e);
}

/*
 * Walks the rows with numbers above `after` in order, only those of `job` unless it is 0, at most
 * `limit` of them (0: all). The callback must not write to the store.
 */
static inline int store_read(struct store *s, uint64_t after, uint64_t job, uint32_t limit, store_row_cb *cb, void *arg,
                             struct err *e)
{
    return s->ops->read(s, after, job, limit, cb, arg, e);
}

/*
 * Keeps `len` blobs as the state after row `seq`, in place of any older snapshot, in one
 * transaction. The log keeps its rows: a snapshot only saves the time to replay them. -EINVAL when
 * row `seq` is not in the log yet.
 */
static inline int store_write_snapshot(struct store *s, uint64_t seq, const struct store_blob *blobs, size_t len,
                                       struct err *e)
{
    return s->ops->write_snapshot(s, seq, blobs, len, e);
}

/* Walks the blobs of the newest snapshot in order; *ret_seq is 0 when there is none. */
static inline int store_read_snapshot(struct store *s, uint64_t *ret_seq, store_blob_cb *cb, void *arg, struct err *e)
{
    return s->ops->read_snapshot(s, ret_seq, cb, arg, e);
}

/* Writes and commits something without meaning: 0 when the store can be written to again. */
static inline int store_probe(struct store *s, struct err *e)
{
    return s->ops->probe(s, e);
}

/* Releases the store. NULL is allowed. */
static inline void store_close(struct store *s)
{
    if (s != NULL)
        s->ops->close(s);
}

#endif
