/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as values. A function that can fail returns 0 or a negative errno; where a person will read the
 * reason it also takes a `struct err *` and fills it through err_set(), whose value is the code, so that
 * `return err_set(e, -EINVAL, "...")` is one line. A NULL `struct err` is allowed everywhere.
 */
#ifndef REMUDA_BASE_ERR_H
#define REMUDA_BASE_ERR_H

struct err {
    int code;       /* negative errno, 0 when unset */
    char text[256]; /* names the field, the value and what is allowed; always terminated */
};

/* Fills `e` (when not NULL) with `code` and the formatted text, cut at 255 bytes. Returns `code`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text of an error that is already set. Returns e->code. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
