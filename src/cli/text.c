/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const texts[MSG_COUNT][LANG_COUNT] = {
#define X(id, en, zh) [MSG_##id] = {en, zh},
    MESSAGES(X)
#undef X
};

static const char *const names[MSG_COUNT] = {
#define X(id, en, zh) [MSG_##id] = #id,
    MESSAGES(X)
#undef X
};

static enum lang current = LANG_EN;

void lang_set(enum lang lang)
{
    current = lang;
}

enum lang lang_get(void)
{
    return current;
}

enum lang lang_from_env(void)
{
    const char *const vars[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < sizeof vars / sizeof vars[0]; i++) {
        const char *value = getenv(vars[i]);
        if (value == NULL || value[0] == '\0')
            continue;
        if (strncmp(value, "zh", 2) != 0 || (value[2] != '\0' && strchr("_.-@", value[2]) == NULL))
            return LANG_EN;
        const char *charset = strchr(value, '.');
        bool utf8 = charset == NULL || strncasecmp(charset, ".utf-8", 6) == 0 || strncasecmp(charset, ".utf8", 5) == 0;
        return utf8 ? LANG_ZH : LANG_EN;
    }
    return LANG_EN;
}

const char *msg_in(enum msg_id id, enum lang lang)
{
    return texts[id][lang];
}

const char *msg(enum msg_id id)
{
    return texts[id][current];
}

const char *msg_name(enum msg_id id)
{
    return names[id];
}

void say_(FILE *f, enum msg_id id, ...)
{
    va_list args;
    va_start(args, id);
    (void)vfprintf(f, msg(id), args);
    va_end(args);
}

void add_(struct strbuf *b, enum msg_id id, ...)
{
    va_list args;
    va_start(args, id);
    char small[512];
    va_list again;
    va_copy(again, args);
    int need = vsnprintf(small, sizeof small, msg(id), args);
    va_end(args);
    if (need >= 0 && (size_t)need < sizeof small) {
        strbuf_add(b, small, (size_t)need);
    } else if (need >= 0) {
        char *large = mem_alloc((size_t)need + 1, 1);
        if (large != NULL) {
            (void)vsnprintf(large, (size_t)need + 1, msg(id), again);
            strbuf_add(b, large, (size_t)need);
        } else {
            b->failed = true;
        }
        mem_free(large);
    }
    va_end(again);
}

void add_strings(struct strbuf *b, enum msg_id id, const char *const *args, size_t len)
{
    for (const char *p = msg(id); *p != '\0'; p++) {
        if (p[0] == '%' && p[1] == '%') {
            strbuf_putc(b, *p++);
        } else if (p[0] == '%' && p[1] >= '1' && p[1] <= '9' && p[2] == '$' && p[3] == 's') {
            size_t n = (size_t)(p[1] - '1');
            strbuf_puts(b, n < len && args[n] != NULL ? args[n] : "?");
            p += 3;
        } else {
            strbuf_putc(b, *p);
        }
    }
}

/* --- width --- */

struct range {
    uint32_t first;
    uint32_t last;
};

/* Unicode East Asian Width W and F, in the blocks that occur; and emoji. */
static const struct range wide[] = {
    {0x1100, 0x115f}, {0x231a, 0x231b}, {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
    {0xa000, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

static const struct range zero[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x064b, 0x065f}, {0x200b, 0x200f},
    {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff},
};

static bool in_ranges(uint32_t c, const struct range *r, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (c >= r[i].first && c <= r[i].last)
            return true;
    return false;
}

/* Length of the character at `s`; 1 for a bad byte. *ret_columns is what it takes. */
static size_t next_char(const char *s, size_t *ret_columns)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t len = *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc0 ? 2 : 1;
    uint32_t c = len == 4 ? *p & 7u : len == 3 ? *p & 15u : len == 2 ? *p & 31u : *p;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            *ret_columns = 1;
            return 1;
        }
        c = c << 6 | (p[i] & 0x3fu);
    }
    *ret_columns = 1;
    if (in_ranges(c, wide, sizeof wide / sizeof wide[0]))
        *ret_columns = 2;
    else if (in_ranges(c, zero, sizeof zero / sizeof zero[0]))
        *ret_columns = 0;
    return len;
}

size_t text_width(const char *s)
{
    size_t sum = 0;
    while (*s != '\0') {
        size_t columns;
        s += next_char(s, &columns);
        sum += columns;
    }
    return sum;
}

size_t text_cut(const char *s, size_t columns)
{
    size_t at = 0;
    size_t sum = 0;
    while (s[at] != '\0') {
        size_t more;
        size_t len = next_char(s + at, &more);
        if (sum + more > columns)
            break;
        sum += more;
        at += len;
    }
    return at;
}

/* The first `len` bytes of `s`. C0, DEL, and C1 (two bytes in UTF-8: c2 80 to c2 9f) are control characters. */
static void add_clean(struct strbuf *b, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const unsigned char *p = (const unsigned char *)s + i;
        if (*p == 0xc2 && i + 1 < len && p[1] >= 0x80 && p[1] <= 0x9f) {
            strbuf_putc(b, '?');
            i++;
        } else {
            strbuf_putc(b, *p < 0x20 || *p == 0x7f ? '?' : s[i]);
        }
    }
}

void text_add(struct strbuf *b, const char *s)
{
    add_clean(b, s, strlen(s));
}

void text_pad(struct strbuf *b, const char *s, size_t columns, bool right)
{
    size_t len = text_cut(s, columns);
    size_t used = 0;
    for (size_t at = 0; at < len;) {
        size_t more;
        at += next_char(s + at, &more);
        used += more;
    }
    for (size_t i = used; right && i < columns; i++)
        strbuf_putc(b, ' ');
    add_clean(b, s, len);
    for (size_t i = used; !right && i < columns; i++)
        strbuf_putc(b, ' ');
}

/* --- table --- */

void table_init(struct table *t, size_t columns, uint64_t right)
{
    *t = (struct table){.columns = columns, .right = right};
}

void table_done(struct table *t)
{
    for (size_t i = 0; i < t->len; i++)
        mem_free(t->cells[i]);
    mem_free(t->cells);
    *t = (struct table){0};
}

void table_add(struct table *t, const char *cell)
{
    if (t->failed || mem_grow(&t->cells, &t->cap, t->len + 1, sizeof *t->cells) < 0) {
        t->failed = true;
        return;
    }
    char *copy = mem_strdup(cell != NULL ? cell : "-");
    if (copy == NULL)
        t->failed = true;
    else
        t->cells[t->len++] = copy;
}

void table_addf(struct table *t, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    table_add(t, text);
}

static void write_row(const struct table *t, size_t row, const size_t *widths, struct strbuf *line)
{
    strbuf_clear(line);
    for (size_t c = 0; c < t->columns; c++) {
        const char *cell = t->cells[row * t->columns + c];
        bool right = (t->right >> c & 1) != 0;
        bool last = c + 1 == t->columns;
        if (c > 0)
            strbuf_puts(line, "  ");
        text_pad(line, cell, last && !right ? text_width(cell) : widths[c], right);
    }
    while (line->len > 0 && line->data[line->len - 1] == ' ')
        line->data[--line->len] = '\0';
}

void table_write(const struct table *t, struct strbuf *out, size_t columns_max)
{
    size_t widths[64] = {0};
    size_t rows = t->columns > 0 && t->columns <= 64 ? t->len / t->columns : 0;
    for (size_t i = 0; i < rows * t->columns; i++) {
        size_t w = text_width(t->cells[i]);
        if (w > widths[i % t->columns])
            widths[i % t->columns] = w;
    }
    struct strbuf line = {0};
    for (size_t r = 0; r < rows; r++) {
        write_row(t, r, widths, &line);
        const char *s = strbuf_str(&line);
        strbuf_add(out, s, columns_max > 0 ? text_cut(s, columns_max) : line.len);
        strbuf_putc(out, '\n');
    }
    if (t->failed || line.failed)
        out->failed = true;
    strbuf_done(&line);
}

void table_print(const struct table *t, FILE *f)
{
    struct strbuf out = {0};
    table_write(t, &out, 0);
    (void)fputs(strbuf_str(&out), f);
    strbuf_done(&out);
}
