/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void strbuf_init(struct strbuf *b)
{
    *b = (struct strbuf){0};
}

void strbuf_done(struct strbuf *b)
{
    mem_free(b->data);
    *b = (struct strbuf){0};
}

void strbuf_clear(struct strbuf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data != NULL)
        b->data[0] = '\0';
}

static bool reserve(struct strbuf *b, size_t more)
{
    if (b->failed)
        return false;
    if (more > SIZE_MAX - b->len - 1 || mem_grow(&b->data, &b->cap, b->len + more + 1, 1) < 0) {
        b->failed = true;
        return false;
    }
    return true;
}

void strbuf_add(struct strbuf *b, const void *bytes, size_t len)
{
    if (!reserve(b, len))
        return;
    if (len > 0)
        memcpy(b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void strbuf_puts(struct strbuf *b, const char *s)
{
    strbuf_add(b, s, strlen(s));
}

void strbuf_putc(struct strbuf *b, char c)
{
    strbuf_add(b, &c, 1);
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int need = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (need >= 0 && reserve(b, (size_t)need)) {
        (void)vsnprintf(b->data + b->len, (size_t)need + 1, fmt, again);
        b->len += (size_t)need;
    } else {
        b->failed = true;
    }
    va_end(again);
}

void strbuf_u64(struct strbuf *b, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    strbuf_add(b, digits + at, sizeof digits - at);
}

void strbuf_i64(struct strbuf *b, int64_t value)
{
    if (value < 0)
        strbuf_putc(b, '-');
    strbuf_u64(b, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

const char *strbuf_str(const struct strbuf *b)
{
    return b->data == NULL ? "" : b->data;
}

char *strbuf_take(struct strbuf *b)
{
    if (b->data == NULL && !b->failed)
        strbuf_add(b, "", 0);
    if (b->failed) {
        strbuf_done(b);
        return NULL;
    }
    char *data = b->data;
    *b = (struct strbuf){0};
    return data;
}

/* Length of the well-formed sequence at s (RFC 3629, table 3-7 of Unicode), 0 when there is none. */
static size_t utf8_sequence(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return 1;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || len > left)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
               (s[0] == 0xf4 && s[1] > 0x8f);
    return bad ? 0 : len;
}

bool utf8_valid(const char *s, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)s;
    for (size_t i = 0; i < len;) {
        size_t step = utf8_sequence(bytes + i, len - i);
        if (step == 0)
            return false;
        i += step;
    }
    return true;
}
