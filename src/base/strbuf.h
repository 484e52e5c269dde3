/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing, always terminated byte string. A failed allocation is remembered in `failed`, so that a writer can
 * append many times and check once at the end; after a failure further appends do nothing.
 */
#ifndef REMUDA_BASE_STRBUF_H
#define REMUDA_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strbuf {
    char *data; /* NULL while nothing has been appended */
    size_t len;
    size_t cap;
    bool failed;
};

/* An empty string; also what `= {0}` gives. */
void strbuf_init(struct strbuf *b);
void strbuf_done(struct strbuf *b);
/* Keeps the memory, forgets the content and the failure. */
void strbuf_clear(struct strbuf *b);
void strbuf_add(struct strbuf *b, const void *bytes, size_t len);
void strbuf_puts(struct strbuf *b, const char *s);
void strbuf_putc(struct strbuf *b, char c);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_u64(struct strbuf *b, uint64_t value);
void strbuf_i64(struct strbuf *b, int64_t value);
/* The content as a C string, "" when empty; valid until the next change. */
const char *strbuf_str(const struct strbuf *b);
/* Hands the content over to the caller (mem_free), NULL after a failure; the buffer is empty then. */
char *strbuf_take(struct strbuf *b);

/* True when the `len` bytes are well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF). */
bool utf8_valid(const char *s, size_t len);

#endif
