/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQLite store: the conformance test, formats, faults at every I/O, a disk that is really full,
 * and SIGKILL in the middle of commits.
 */
#include "tests/fault_vfs.h"
#include "tests/store_conformance.h"

#include "base/rng.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64];
static char path[96];

static void wipe(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char file[128];
    for (size_t i = 0; i < 4; i++) {
        snprintf(file, sizeof(file), "%s%s", path, ends[i]);
        unlink(file);
    }
}

struct store *conformance_open(bool fresh)
{
    struct store *s = NULL;
    struct err e = {0};
    if (fresh)
        wipe();
    if (store_sqlite_open(path, NULL, &s, &e) != 0)
        fail_msg("%s", e.text);
    return s;
}

static void sql(const char *text)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void file_is_private(void **state)
{
    (void)state;
    struct stat st;
    store_close(conformance_open(true));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

#define FORMAT_1                                                                                  \
    "CREATE TABLE log (seq INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, kind INTEGER NOT NULL," \
    " job INTEGER NOT NULL, body BLOB NOT NULL) STRICT;"                                          \
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;"       \
    "INSERT INTO log VALUES (1, 10, 4, 1, x'6162'), (2, 20, 7, 1, x'63'), (3, 30, 4, 2, x'64');"  \
    "PRAGMA application_id = 0x524d5544; PRAGMA user_version = 1;"

static int count_rows(void *arg, const struct store_row *row)
{
    (void)row;
    ++*(size_t *)arg;
    return 0;
}

static void older_format_is_migrated(void **state)
{
    (void)state;
    wipe();
    sql(FORMAT_1);
    struct store *s = conformance_open(false);
    size_t rows = 0;
    assert_int_equal(store_read(s, 0, 1, 0, count_rows, &rows, NULL), 0);
    assert_int_equal(rows, 2);
    struct store_blob blob = {"x", 1};
    assert_int_equal(store_write_snapshot(s, 3, &blob, 1, NULL), 0);
    store_close(s);
    store_close(conformance_open(false));
}

/* A crash or a fault at any point of a migration leaves a store that opens afterwards with all its
 * rows. */
static void migration_survives_faults(void **state)
{
    (void)state;
    bool done = false;
    for (uint64_t nth = 1; !done; nth++) {
        assert_true(nth < 500);
        wipe();
        sql(FORMAT_1);
        struct store *s = NULL;
        struct err e = {0};
        fault_vfs_arm(nth, SQLITE_IOERR, true, false);
        int rc = store_sqlite_open(path, FAULT_VFS_NAME, &s, &e);
        done = fault_vfs_hits() == 0;
        if (rc != 0)
            assert_true(e.text[0] != '\0');
        store_close(s);
        fault_vfs_arm(0, 0, false, false);
        s = conformance_open(false);
        size_t rows = 0;
        assert_int_equal(store_read(s, 0, 0, 0, count_rows, &rows, NULL), 0);
        assert_int_equal(rows, 3);
        store_close(s);
    }
}

static void newer_and_foreign_are_refused(void **state)
{
    (void)state;
    struct store *s = NULL;
    struct err e = {0};
    store_close(conformance_open(true));
    sql("PRAGMA user_version = 99");
    assert_int_equal(store_sqlite_open(path, NULL, &s, &e), -EPROTO);
    assert_non_null(strstr(e.text, "newer Remuda (format 99"));
    assert_null(s);

    wipe();
    sql("CREATE TABLE theirs (a); PRAGMA user_version = 1");
    assert_int_equal(store_sqlite_open(path, NULL, &s, &e), -EBADMSG);
    assert_non_null(strstr(e.text, "another program"));

    wipe();
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 200; i++)
        fputs("this is no database at all\n", f);
    fclose(f);
    assert_int_equal(store_sqlite_open(path, NULL, &s, &e), -EBADMSG);
    wipe();
    assert_int_equal(store_sqlite_open("/nowhere/at/all/store.db", NULL, &s, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nowhere/at/all/store.db"));
}

#define BATCH 8
static char filler[3000];

static int append_batch(struct store *s, uint64_t last, struct err *e)
{
    struct store_row rows[BATCH];
    for (size_t i = 0; i < BATCH; i++)
        rows[i] = (struct store_row){.seq = last + 1 + i, .job = i + 1, .body = filler, .len = sizeof(filler)};
    return store_append(s, rows, BATCH, e);
}

static uint64_t last_of(struct store *s)
{
    uint64_t last = UINT64_MAX;
    assert_int_equal(store_last_seq(s, &last, NULL), 0);
    return last;
}

/*
 * Each I/O of a batch fails once, in each manner; the failed batch leaves no trace, the store goes
 * on, and what was there before is there afterwards. Many small batches before, so that a
 * checkpoint falls into the tested range.
 */
static void fault_at_every_operation(int code, int want, bool lasting, bool reads)
{
    bool done = false;
    for (uint64_t nth = 1; !done; nth++) {
        assert_true(nth < 2000);
        wipe();
        struct store *s = NULL;
        struct err e = {0};
        assert_int_equal(store_sqlite_open(path, FAULT_VFS_NAME, &s, &e), 0);
        assert_int_equal(append_batch(s, 0, &e), 0);
        fault_vfs_arm(nth, code, lasting, reads);
        int rc = append_batch(s, BATCH, &e);
        done = fault_vfs_hits() == 0;
        fault_vfs_arm(0, 0, false, false);
        if (rc != 0) {
            assert_true(rc == want || rc == -EIO);
            assert_true(e.text[0] != '\0');
            assert_int_equal(last_of(s), BATCH);
            if (append_batch(s, BATCH, &e) != 0)
                fail_msg("after fault %d at operation %d: %s", code, (int)nth, e.text);
        }
        assert_int_equal(last_of(s), 2 * BATCH);
        store_close(s);
        s = conformance_open(false);
        size_t rows = 0;
        assert_int_equal(store_read(s, 0, 0, 0, count_rows, &rows, NULL), 0);
        assert_int_equal(rows, 2 * BATCH);
        store_close(s);
    }
}

/* REQ: H4 */
static void disk_faults(void **state)
{
    (void)state;
    fault_at_every_operation(SQLITE_FULL, -ENOSPC, false, false);
    fault_at_every_operation(SQLITE_FULL, -ENOSPC, true, false);
    fault_at_every_operation(SQLITE_IOERR, -EIO, false, false);
    fault_at_every_operation(SQLITE_IOERR, -EIO, true, true);
}

/* A checkpoint that fails must not fail the commit that it ran in, nor lose anything. */
static void checkpoint_faults(void **state)
{
    (void)state;
    wipe();
    struct store *s = NULL;
    assert_int_equal(store_sqlite_open(path, FAULT_VFS_NAME, &s, NULL), 0);
    struct rng rng;
    rng_init(&rng, 7);
    uint64_t last = 0;
    unsigned failed = 0;
    for (int i = 0; i < 700; i++) {
        fault_vfs_arm(rng_below(&rng, 60) + 1, SQLITE_IOERR, false, false);
        int rc = append_batch(s, last, NULL);
        failed += rc != 0;
        fault_vfs_arm(0, 0, false, false);
        if (rc == 0)
            last += BATCH;
        assert_int_equal(last_of(s), last);
    }
    assert_true(failed > 0 && last > 0);
    store_close(s);
    s = conformance_open(false);
    assert_int_equal(last_of(s), last);
    store_close(s);
}

/* Runs in a child with a tmpfs of 1 MiB as its state folder. Exit status: 0 passed, 77 no right to
 * mount. */
static int full_disk_child(void)
{
    char file[128];
    snprintf(file, sizeof(file), "%s/store.db", dir);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", dir, "tmpfs", 0, "size=1m") != 0)
        return 77;
    struct store *s = NULL;
    struct err e = {0};
    if (store_sqlite_open(file, NULL, &s, &e) != 0)
        return 2;
    uint64_t last = 0;
    int rc;
    while ((rc = append_batch(s, last, &e)) == 0)
        last += BATCH;
    if (rc != -ENOSPC || last == 0 || strstr(e.text, "no space is left") == NULL)
        return 3;
    uint64_t seen = 0;
    if (store_last_seq(s, &seen, NULL) != 0 || seen != last)
        return 4;
    if (mount(NULL, dir, NULL, MS_REMOUNT, "size=8m") != 0)
        return 77;
    if (store_probe(s, NULL) != 0 || append_batch(s, last, &e) != 0)
        return 5;
    store_close(s);
    return 0;
}

static void disk_really_full(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(full_disk_child());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void writer_child(int fd)
{
    struct store *s = NULL;
    if (store_sqlite_open(path, NULL, &s, NULL) != 0)
        _exit(1);
    uint64_t last = 0;
    store_last_seq(s, &last, NULL);
    for (;;) {
        if (append_batch(s, last, NULL) != 0)
            _exit(2);
        last += BATCH;
        if (write(fd, &last, sizeof(last)) != (ssize_t)sizeof(last))
            _exit(3);
    }
}

/* REQ: H4 */
static void killed_in_the_middle(void **state)
{
    (void)state;
    store_close(conformance_open(true));
    struct rng rng;
    rng_init(&rng, 42);
    uint64_t acknowledged = 0;
    for (int round = 0; round < 60; round++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(fds[0]);
            writer_child(fds[1]);
        }
        close(fds[1]);
        usleep((useconds_t)rng_below(&rng, 15000));
        kill(pid, SIGKILL);
        int status = 0;
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        uint64_t last;
        while (read(fds[0], &last, sizeof(last)) == (ssize_t)sizeof(last))
            acknowledged = last;
        close(fds[0]);
        struct store *s = conformance_open(false);
        assert_true(last_of(s) >= acknowledged);
        assert_int_equal(last_of(s) % BATCH, 0);
        acknowledged = last_of(s);
        store_close(s);
    }
    assert_true(acknowledged > 0);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof(dir), "%.40s/remuda-store-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    if (mkdtemp(dir) == NULL)
        return 1;
    snprintf(path, sizeof(path), "%s/store.db", dir);
    fault_vfs_register();
    const struct CMUnitTest tests[] = {
        STORE_CONFORMANCE_TESTS,
        cmocka_unit_test(file_is_private),
        cmocka_unit_test(older_format_is_migrated),
        cmocka_unit_test(migration_survives_faults),
        cmocka_unit_test(newer_and_foreign_are_refused),
        cmocka_unit_test(disk_faults),
        cmocka_unit_test(checkpoint_faults),
        cmocka_unit_test(disk_really_full),
        cmocka_unit_test(killed_in_the_middle),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    wipe();
    rmdir(dir);
    return failed;
}
