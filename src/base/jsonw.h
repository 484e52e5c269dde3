/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A streaming JSON writer onto a strbuf: no tree is built, so that an answer with many thousand jobs costs one
 * pass. Commas and quoting are the writer's business. Text that is not valid UTF-8 is written with U+FFFD in
 * place of each bad byte, so that what comes out always parses.
 *
 *     jsonw_object(&w);  jsonw_key(&w, "id");  jsonw_u64(&w, 7);  jsonw_end_object(&w);   ->  {"id":7}
 */
#ifndef REMUDA_BASE_JSONW_H
#define REMUDA_BASE_JSONW_H

#include "base/strbuf.h"

#define JSONW_DEPTH_MAX 64

struct jsonw {
    struct strbuf *out; /* borrowed */
    unsigned depth;
    bool need_comma[JSONW_DEPTH_MAX];
    bool after_key;
};

void jsonw_init(struct jsonw *w, struct strbuf *out);
void jsonw_object(struct jsonw *w);
void jsonw_end_object(struct jsonw *w);
void jsonw_array(struct jsonw *w);
void jsonw_end_array(struct jsonw *w);
void jsonw_key(struct jsonw *w, const char *key);
void jsonw_str(struct jsonw *w, const char *s); /* NULL is written as null */
void jsonw_strn(struct jsonw *w, const char *s, size_t len);
void jsonw_u64(struct jsonw *w, uint64_t value);
void jsonw_i64(struct jsonw *w, int64_t value);
void jsonw_bool(struct jsonw *w, bool value);
void jsonw_null(struct jsonw *w);
/* value / 10^decimals as a decimal number, e.g. (9529, 2) -> 95.29. */
void jsonw_fixed(struct jsonw *w, int64_t value, unsigned decimals);
/* Text that is JSON already. */
void jsonw_raw(struct jsonw *w, const char *json);

/* key and value in one call */
void jsonw_key_str(struct jsonw *w, const char *key, const char *s);
void jsonw_key_u64(struct jsonw *w, const char *key, uint64_t value);
void jsonw_key_i64(struct jsonw *w, const char *key, int64_t value);
void jsonw_key_bool(struct jsonw *w, const char *key, bool value);
/* Milliseconds since the epoch as RFC 3339 in UTC; null when `ms` is not positive. */
void jsonw_key_time(struct jsonw *w, const char *key, int64_t ms);

#endif
