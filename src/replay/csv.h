/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables in comma-separated text, plain or compressed with gzip: the first line names the columns, every other line has
 * as many fields. No quoting, as none of the data read with it has any. Strict: whatever does not fit is an error that
 * names file, line, column, value and what is allowed.
 */
#ifndef REMUDA_REPLAY_CSV_H
#define REMUDA_REPLAY_CSV_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSV_COLUMNS_MAX 32
#define CSV_BYTES_MAX   (256u << 20)

struct csv {
    char *path; /* for messages; owned */
    char *text; /* the whole file, cut in place; owned */
    char *at;   /* what is not read yet */
    size_t columns;
    char *names[CSV_COLUMNS_MAX];
    char *fields[CSV_COLUMNS_MAX]; /* of the present line */
    uint32_t line;                 /* number of the present line, from 1 */
};

/* Opens `path`, or `path`.gz when there is no such file. 0 or negative errno; csv_done() in the first case. */
int csv_open(struct csv *c, const char *path, struct err *e);
void csv_done(struct csv *c);

/* The number of a column; -1 when it is absent, with the reason in `e` (may be NULL). */
int csv_column(const struct csv *c, const char *name, struct err *e);

/* Goes to the next line: 1, 0 at the end, or -EINVAL. */
int csv_next(struct csv *c, struct err *e);

/* A field of the present line as an integer in 0..max. */
int csv_u32(const struct csv *c, int column, uint32_t max, uint32_t *ret, struct err *e);

#endif
