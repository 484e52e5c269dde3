/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store in SQLite: write-ahead log, synchronous=FULL, so that a commit is one sequential write
 * and one sync.
 *
 * What a failed commit leaves. SQLite rolls back by itself on most errors; rollback() covers the
 * others. The frames of a failed commit may be in the -wal file, but its end mark in memory has not
 * moved, so that the next commit writes over them. Should the process die first, recovery may find
 * them whole: then a batch that was answered with "not kept" is there after all, completely, which
 * is the same as a reply that was lost.
 *
 * Checkpoints run after a commit, inside it; their failure does not fail the commit (SQLite tries
 * again later).
 *
 * LIMITATIONS. A commit blocks the calling thread for one sync of the disk. The log is never
 * shortened.
 */
#include "store/store.h"
#include "store/sqlite.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Pages in the -wal file before it is copied into the database: fewer and longer syncs than the
 * default. */
#define CHECKPOINT_PAGES "4000"
#define BUSY_MS          1000

struct sqlite_store {
    struct store store; /* first: the public face */
    sqlite3 *db;
    sqlite3_stmt *insert;
    uint64_t last_seq;
    bool last_known; /* false: read last_seq from the database first */
};

static int errno_of(sqlite3 *db)
{
    int sys = db == NULL ? 0 : sqlite3_system_errno(db);
    switch (db == NULL ? SQLITE_NOMEM : sqlite3_errcode(db)) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_IOERR:
        return sys == ENOSPC || sys == EDQUOT ? -ENOSPC : -EIO;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
        return -EACCES;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return -EBADMSG;
    default:
        return -EIO;
    }
}

int sqlite_err(sqlite3 *db, struct err *e, const char *doing)
{
    int code = errno_of(db);
    if (code == -ENOSPC)
        return err_set(e, code, "%s: no space is left on the disk of the state folder", doing);
    return err_set(e, code, "%s: %s", doing, db == NULL ? "out of memory" : sqlite3_errmsg(db));
}

int sqlite_run(sqlite3 *db, const char *sql, const char *doing, struct err *e)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_err(db, e, doing);
}

static void rollback(struct sqlite_store *s)
{
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    s->last_known = false;
}

static int know_last(struct sqlite_store *s, struct err *e)
{
    if (s->last_known)
        return 0;
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(s->db, "SELECT coalesce(max(seq), 0) FROM log", -1, &st, NULL) != SQLITE_OK)
        return sqlite_err(s->db, e, "reading the end of the log");
    int rc = 0;
    if (sqlite3_step(st) == SQLITE_ROW) {
        s->last_seq = (uint64_t)sqlite3_column_int64(st, 0);
        s->last_known = true;
    } else {
        rc = sqlite_err(s->db, e, "reading the end of the log");
    }
    sqlite3_finalize(st);
    return rc;
}

static int sq_last_seq(struct store *store, uint64_t *ret_seq, struct err *e)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    int rc = know_last(s, e);
    if (rc == 0)
        *ret_seq = s->last_seq;
    return rc;
}

/* An empty body must be an empty blob, not NULL. */
static void bind_bytes(sqlite3_stmt *st, int index, const void *bytes, size_t len)
{
    if (len == 0)
        sqlite3_bind_zeroblob(st, index, 0);
    else
        sqlite3_bind_blob64(st, index, bytes, len, SQLITE_STATIC);
}

static int insert_row(struct sqlite_store *s, const struct store_row *r, struct err *e)
{
    sqlite3_bind_int64(s->insert, 1, (int64_t)r->seq);
    sqlite3_bind_int64(s->insert, 2, r->time_ms);
    sqlite3_bind_int64(s->insert, 3, r->kind);
    sqlite3_bind_int64(s->insert, 4, (int64_t)r->job);
    bind_bytes(s->insert, 5, r->body, r->len);
    int rc = sqlite3_step(s->insert) == SQLITE_DONE ? 0 : sqlite_err(s->db, e, "writing to the log");
    sqlite3_reset(s->insert);
    sqlite3_clear_bindings(s->insert);
    return rc;
}

static int check_batch(uint64_t last_seq, const struct store_row *rows, size_t len, struct err *e)
{
    for (size_t i = 0; i < len; i++) {
        if (rows[i].seq != last_seq + 1 + i)
            return err_set(e, -EINVAL, "log row %llu does not follow row %llu", (unsigned long long)rows[i].seq,
                           (unsigned long long)(last_seq + i));
        if (rows[i].job > INT64_MAX || rows[i].len > INT_MAX)
            return err_set(e, -EINVAL, "log row %llu is out of bounds", (unsigned long long)rows[i].seq);
    }
    return 0;
}

static int sq_append(struct store *store, const struct store_row *rows, size_t len, struct err *e)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    int rc = know_last(s, e);
    if (rc == 0)
        rc = check_batch(s->last_seq, rows, len, e);
    if (rc != 0 || len == 0)
        return rc;
    rc = sqlite_run(s->db, "BEGIN IMMEDIATE", "beginning to write the log", e);
    for (size_t i = 0; rc == 0 && i < len; i++)
        rc = insert_row(s, &rows[i], e);
    if (rc == 0)
        rc = sqlite_run(s->db, "COMMIT", "committing the log", e);
    if (rc != 0) {
        rollback(s);
        return rc;
    }
    s->last_seq += len;
    return 0;
}

static int walk_rows(sqlite3_stmt *st, store_row_cb *cb, void *arg)
{
    struct store_row row = {
        .seq = (uint64_t)sqlite3_column_int64(st, 0),
        .time_ms = sqlite3_column_int64(st, 1),
        .kind = (uint32_t)sqlite3_column_int64(st, 2),
        .job = (uint64_t)sqlite3_column_int64(st, 3),
        .body = sqlite3_column_blob(st, 4),
        .len = (size_t)sqlite3_column_bytes(st, 4),
    };
    return cb(arg, &row);
}

static int sq_read(struct store *store, uint64_t after, uint64_t job, uint32_t limit, store_row_cb *cb, void *arg,
                   struct err *e)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    if (after > INT64_MAX || job > INT64_MAX)
        return 0; /* no row has such a number */
    const char *sql = job == 0 ? "SELECT seq, time_ms, kind, job, body FROM log WHERE seq > ?1 ORDER BY seq LIMIT ?2"
                               : "SELECT seq, time_ms, kind, job, body FROM log WHERE job <> 0 AND job = ?3"
                                 " AND seq > ?1 ORDER BY seq LIMIT ?2";
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) != SQLITE_OK)
        return sqlite_err(s->db, e, "reading the log");
    sqlite3_bind_int64(st, 1, (int64_t)after);
    sqlite3_bind_int64(st, 2, limit == 0 ? -1 : (int64_t)limit);
    if (job != 0)
        sqlite3_bind_int64(st, 3, (int64_t)job);
    int rc = 0;
    int step = SQLITE_ROW;
    while (rc == 0 && (step = sqlite3_step(st)) == SQLITE_ROW)
        rc = walk_rows(st, cb, arg);
    if (rc == 0 && step != SQLITE_DONE)
        rc = sqlite_err(s->db, e, "reading the log");
    sqlite3_finalize(st);
    return rc;
}

static int insert_blobs(struct sqlite_store *s, uint64_t seq, const struct store_blob *blobs, size_t len, struct err *e)
{
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(s->db, "INSERT INTO snapshot (seq, part, body) VALUES (?1, ?2, ?3)", -1, &st, NULL) !=
        SQLITE_OK)
        return sqlite_err(s->db, e, "writing a snapshot");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < len; i++) {
        sqlite3_bind_int64(st, 1, (int64_t)seq);
        sqlite3_bind_int64(st, 2, (int64_t)i);
        bind_bytes(st, 3, blobs[i].bytes, blobs[i].len);
        if (sqlite3_step(st) != SQLITE_DONE)
            rc = sqlite_err(s->db, e, "writing a snapshot");
        sqlite3_reset(st);
    }
    sqlite3_finalize(st);
    return rc;
}

static int sq_write_snapshot(struct store *store, uint64_t seq, const struct store_blob *blobs, size_t len,
                             struct err *e)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    int rc = know_last(s, e);
    if (rc != 0)
        return rc;
    if (seq == 0 || seq > s->last_seq)
        return err_set(e, -EINVAL, "a snapshot of row %llu is asked for, the log ends at %llu", (unsigned long long)seq,
                       (unsigned long long)s->last_seq);
    rc = sqlite_run(s->db, "BEGIN IMMEDIATE; DELETE FROM snapshot", "beginning a snapshot", e);
    if (rc == 0)
        rc = insert_blobs(s, seq, blobs, len, e);
    if (rc == 0)
        rc = sqlite_run(s->db, "COMMIT", "committing a snapshot", e);
    if (rc != 0)
        rollback(s);
    return rc;
}

static int sq_read_snapshot(struct store *store, uint64_t *ret_seq, store_blob_cb *cb, void *arg, struct err *e)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(s->db, "SELECT seq, body FROM snapshot ORDER BY seq, part", -1, &st, NULL) != SQLITE_OK)
        return sqlite_err(s->db, e, "reading a snapshot");
    uint64_t seq = 0;
    int rc = 0;
    int step = SQLITE_ROW;
    while (rc == 0 && (step = sqlite3_step(st)) == SQLITE_ROW) {
        seq = (uint64_t)sqlite3_column_int64(st, 0);
        struct store_blob blob = {
            .bytes = sqlite3_column_blob(st, 1),
            .len = (size_t)sqlite3_column_bytes(st, 1),
        };
        rc = cb(arg, &blob);
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = sqlite_err(s->db, e, "reading a snapshot");
    sqlite3_finalize(st);
    if (rc == 0)
        *ret_seq = seq;
    return rc;
}

static int sq_probe(struct store *store, struct err *e)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    int rc = sqlite_run(s->db,
                        "BEGIN IMMEDIATE;"
                        "INSERT OR REPLACE INTO meta (name, value) VALUES ('probe', strftime('%s', 'now'));"
                        "COMMIT",
                        "writing to the store", e);
    if (rc != 0)
        rollback(s);
    return rc;
}

static void sq_close(struct store *store)
{
    struct sqlite_store *s = (struct sqlite_store *)store;
    sqlite3_finalize(s->insert);
    sqlite3_close(s->db);
    mem_free(s);
}

static const struct store_ops sqlite_ops = {
    .name = "sqlite",
    .append = sq_append,
    .last_seq = sq_last_seq,
    .read = sq_read,
    .write_snapshot = sq_write_snapshot,
    .read_snapshot = sq_read_snapshot,
    .probe = sq_probe,
    .close = sq_close,
};

/*
 * The log holds the environments of jobs, which may hold secrets: the file is made with mode 0600
 * before SQLite sees it (-wal and -shm take its mode). The folder is synced so that a new file
 * survives a power cut.
 */
static int make_file(const char *path, struct err *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(e, -errno, "%s: %s", path, strerror(errno));
    close(fd);
    char dir[PATH_MAX];
    snprintf(dir, sizeof(dir), "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash == NULL)
        snprintf(dir, sizeof(dir), ".");
    else
        slash[slash == dir ? 1 : 0] = '\0';
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0 || fsync(dir_fd) != 0) {
        int code = -errno;
        if (dir_fd >= 0)
            close(dir_fd);
        return err_set(e, code, "%s: syncing the folder: %s", dir, strerror(-code));
    }
    close(dir_fd);
    return 0;
}

static int prepare(struct sqlite_store *s, const char *path, struct err *e)
{
    sqlite3_extended_result_codes(s->db, 0);
    sqlite3_busy_timeout(s->db, BUSY_MS);
    int rc = sqlite_run(s->db, "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF", path, e);
    if (rc == 0) /* before anything is written: a file that is not ours stays as it is */
        rc = sqlite_schema_upgrade(s->db, path, e);
    if (rc == 0)
        rc = sqlite_run(s->db, "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = " CHECKPOINT_PAGES, path, e);
    if (rc == 0 && sqlite3_prepare_v3(s->db,
                                      "INSERT INTO log (seq, time_ms, kind, job, body)"
                                      " VALUES (?1, ?2, ?3, ?4, ?5)",
                                      -1, SQLITE_PREPARE_PERSISTENT, &s->insert, NULL) != SQLITE_OK)
        rc = sqlite_err(s->db, e, path);
    return rc == 0 ? know_last(s, e) : rc;
}

int store_sqlite_open(const char *path, const char *vfs, struct store **ret_store, struct err *e)
{
    int rc = make_file(path, e);
    if (rc != 0)
        return rc;
    struct sqlite_store *s = mem_alloc(1, sizeof(*s));
    if (s == NULL)
        return err_set(e, -ENOMEM, "%s: out of memory", path);
    s->store.ops = &sqlite_ops;
    if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs) != SQLITE_OK)
        rc = sqlite_err(s->db, e, path);
    else
        rc = prepare(s, path, e);
    if (rc != 0) {
        sq_close(&s->store);
        return rc;
    }
    *ret_store = &s->store;
    return 0;
}
