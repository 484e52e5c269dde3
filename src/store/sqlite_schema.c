/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats of the SQLite store. PRAGMA user_version holds the number of the format, application_id
 * says that the file is ours. steps[n] leads from format n to n + 1; a step is never changed once
 * it has been released, so a state folder of any earlier version can be opened. All steps of one
 * opening run in one transaction: a crash in the middle leaves the old format whole.
 */
#include "store/sqlite.h"

#include <errno.h>
#include <stdio.h>

#define APPLICATION_ID 0x524d5544 /* "RMUD" */

static const char *const steps[STORE_FORMAT] = {
    "CREATE TABLE log (seq INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " job INTEGER NOT NULL, body BLOB NOT NULL) STRICT;"
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;",

    "CREATE INDEX log_by_job ON log (job, seq) WHERE job <> 0;"
    "CREATE TABLE snapshot (seq INTEGER NOT NULL, part INTEGER NOT NULL, body BLOB NOT NULL,"
    " PRIMARY KEY (seq, part)) STRICT;",
};

static int pragma_int(sqlite3 *db, const char *sql, int *ret, struct err *e)
{
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        return sqlite_err(db, e, "reading the store's format");
    int rc = 0;
    if (sqlite3_step(st) == SQLITE_ROW)
        *ret = sqlite3_column_int(st, 0);
    else
        rc = sqlite_err(db, e, "reading the store's format");
    sqlite3_finalize(st);
    return rc;
}

static int upgrade_from(sqlite3 *db, int format, struct err *e)
{
    int rc = sqlite_run(db, "BEGIN IMMEDIATE", "beginning the upgrade of the store", e);
    for (int n = format; rc == 0 && n < STORE_FORMAT; n++)
        rc = sqlite_run(db, steps[n], "upgrading the store", e);
    char set[96];
    snprintf(set, sizeof(set), "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION_ID, STORE_FORMAT);
    if (rc == 0)
        rc = sqlite_run(db, set, "marking the store's format", e);
    if (rc == 0)
        rc = sqlite_run(db, "COMMIT", "committing the upgrade of the store", e);
    if (rc != 0 && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

int sqlite_schema_upgrade(sqlite3 *db, const char *path, struct err *e)
{
    int application = 0;
    int format = 0;
    int tables = 0;
    int rc = pragma_int(db, "PRAGMA application_id", &application, e);
    if (rc == 0)
        rc = pragma_int(db, "PRAGMA user_version", &format, e);
    if (rc == 0)
        rc = pragma_int(db, "SELECT count(*) FROM sqlite_schema", &tables, e);
    if (rc != 0)
        return rc;
    if (application != APPLICATION_ID && (application != 0 || format != 0 || tables != 0))
        return err_set(e, -EBADMSG, "%s: this is a database of another program, not a Remuda store", path);
    if (format > STORE_FORMAT)
        return err_set(e, -EPROTO,
                       "%s: written by a newer Remuda (format %d, this version knows up to %d); "
                       "start that version, or choose another state folder",
                       path, format, STORE_FORMAT);
    if (format < 0)
        return err_set(e, -EBADMSG, "%s: format %d is no format of a Remuda store", path, format);
    return format == STORE_FORMAT ? 0 : upgrade_from(db, format, e);
}
