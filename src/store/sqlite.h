/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the SQLite store share. Nobody else includes this: the public interface is
 * store.h.
 */
#ifndef REMUDA_STORE_SQLITE_H
#define REMUDA_STORE_SQLITE_H

#include "base/err.h"

#include <sqlite3.h>

/* The format that this version writes; sqlite_schema.c has the steps that lead to it. */
#define STORE_FORMAT 2

/* Fills `e` with what SQLite says about the last call on `db`, after `doing`; returns the negative
 * errno. */
int sqlite_err(sqlite3 *db, struct err *e, const char *doing);

/* Runs statements that return nothing; `doing` stands in the error. */
int sqlite_run(sqlite3 *db, const char *sql, const char *doing, struct err *e);

/*
 * Checks that the database is ours and not newer than STORE_FORMAT, and brings an older or empty
 * one to it in one transaction. -EPROTO when it is newer, -EBADMSG when it is something else.
 * `path` is for messages.
 */
int sqlite_schema_upgrade(sqlite3 *db, const char *path, struct err *e);

#endif
