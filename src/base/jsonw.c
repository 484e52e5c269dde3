/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonw.h"

#include "base/units.h"

#include <assert.h>
#include <string.h>

void jsonw_init(struct jsonw *w, struct strbuf *out)
{
    *w = (struct jsonw){.out = out};
}

static void before_value(struct jsonw *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->need_comma[w->depth])
        strbuf_putc(w->out, ',');
    w->need_comma[w->depth] = true;
}

static void open(struct jsonw *w, char bracket)
{
    before_value(w);
    strbuf_putc(w->out, bracket);
    assert(w->depth + 1 < JSONW_DEPTH_MAX);
    w->need_comma[++w->depth] = false;
}

static void close_with(struct jsonw *w, char bracket)
{
    assert(w->depth > 0 && !w->after_key);
    w->depth--;
    strbuf_putc(w->out, bracket);
}

void jsonw_object(struct jsonw *w)
{
    open(w, '{');
}

void jsonw_end_object(struct jsonw *w)
{
    close_with(w, '}');
}

void jsonw_array(struct jsonw *w)
{
    open(w, '[');
}

void jsonw_end_array(struct jsonw *w)
{
    close_with(w, ']');
}

static size_t plain_run(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && (unsigned char)s[n] >= 0x20 && s[n] != '"' && s[n] != '\\')
        n++;
    return n;
}

static void escape(struct strbuf *out, unsigned char c)
{
    switch (c) {
    case '"':
        strbuf_puts(out, "\\\"");
        break;
    case '\\':
        strbuf_puts(out, "\\\\");
        break;
    case '\n':
        strbuf_puts(out, "\\n");
        break;
    case '\t':
        strbuf_puts(out, "\\t");
        break;
    case '\r':
        strbuf_puts(out, "\\r");
        break;
    default:
        strbuf_printf(out, "\\u%04x", c);
    }
}

static void quoted(struct strbuf *out, const char *s, size_t len)
{
    strbuf_putc(out, '"');
    for (size_t i = 0; i < len;) {
        size_t run = plain_run(s + i, len - i);
        strbuf_add(out, s + i, run);
        i += run;
        if (i < len)
            escape(out, (unsigned char)s[i++]);
    }
    strbuf_putc(out, '"');
}

/* The slow path for text with bad bytes: copies it byte by byte, mending what is not UTF-8. */
static void quoted_mended(struct strbuf *out, const char *s, size_t len)
{
    struct strbuf mended = {0};
    for (size_t i = 0; i < len;) {
        size_t n = 1;
        while (n < 4 && i + n <= len && !utf8_valid(s + i, n))
            n++;
        if (i + n <= len && utf8_valid(s + i, n)) {
            strbuf_add(&mended, s + i, n);
            i += n;
        } else {
            strbuf_puts(&mended, "\xef\xbf\xbd");
            i++;
        }
    }
    quoted(out, strbuf_str(&mended), mended.len);
    out->failed = out->failed || mended.failed;
    strbuf_done(&mended);
}

void jsonw_strn(struct jsonw *w, const char *s, size_t len)
{
    before_value(w);
    if (utf8_valid(s, len))
        quoted(w->out, s, len);
    else
        quoted_mended(w->out, s, len);
}

void jsonw_str(struct jsonw *w, const char *s)
{
    if (s == NULL)
        jsonw_null(w);
    else
        jsonw_strn(w, s, strlen(s));
}

void jsonw_key(struct jsonw *w, const char *key)
{
    assert(!w->after_key);
    jsonw_str(w, key);
    strbuf_putc(w->out, ':');
    w->after_key = true;
}

void jsonw_u64(struct jsonw *w, uint64_t value)
{
    before_value(w);
    strbuf_u64(w->out, value);
}

void jsonw_i64(struct jsonw *w, int64_t value)
{
    before_value(w);
    strbuf_i64(w->out, value);
}

void jsonw_bool(struct jsonw *w, bool value)
{
    before_value(w);
    strbuf_puts(w->out, value ? "true" : "false");
}

void jsonw_null(struct jsonw *w)
{
    before_value(w);
    strbuf_puts(w->out, "null");
}

void jsonw_fixed(struct jsonw *w, int64_t value, unsigned decimals)
{
    before_value(w);
    uint64_t scale = 1;
    for (unsigned i = 0; i < decimals; i++)
        scale *= 10;
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    strbuf_printf(w->out, "%s%llu", value < 0 ? "-" : "", (unsigned long long)(size / scale));
    if (decimals > 0)
        strbuf_printf(w->out, ".%0*llu", (int)decimals, (unsigned long long)(size % scale));
}

void jsonw_raw(struct jsonw *w, const char *json)
{
    before_value(w);
    strbuf_puts(w->out, json);
}

void jsonw_key_str(struct jsonw *w, const char *key, const char *s)
{
    jsonw_key(w, key);
    jsonw_str(w, s);
}

void jsonw_key_u64(struct jsonw *w, const char *key, uint64_t value)
{
    jsonw_key(w, key);
    jsonw_u64(w, value);
}

void jsonw_key_i64(struct jsonw *w, const char *key, int64_t value)
{
    jsonw_key(w, key);
    jsonw_i64(w, value);
}

void jsonw_key_bool(struct jsonw *w, const char *key, bool value)
{
    jsonw_key(w, key);
    jsonw_bool(w, value);
}

void jsonw_key_time(struct jsonw *w, const char *key, int64_t ms)
{
    jsonw_key(w, key);
    if (ms <= 0) {
        jsonw_null(w);
        return;
    }
    char text[UNITS_TIME_SIZE];
    units_format_time(ms, text);
    jsonw_str(w, text);
}
