/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/csv.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#define CHUNK 65536

static int read_all(gzFile gz, const char *path, char **ret, size_t *ret_len, struct err *e)
{
    struct strbuf all CLEANUP(strbuf_done) = {0};
    char chunk[CHUNK];
    for (;;) {
        int got = gzread(gz, chunk, CHUNK);
        int code = Z_OK;
        const char *why = gzerror(gz, &code);
        if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
            return err_set(e, code == Z_ERRNO ? -EIO : -EINVAL, "%s: cannot be read: %s", path, why);
        if (got == 0)
            break;
        if (all.len + (size_t)got > CSV_BYTES_MAX)
            return err_set(e, -EFBIG, "%s: more than %u bytes", path, CSV_BYTES_MAX);
        strbuf_add(&all, chunk, (size_t)got);
    }
    if (memchr(strbuf_str(&all), '\0', all.len) != NULL)
        return err_set(e, -EINVAL, "%s: has a zero byte; a table is text", path);
    *ret_len = all.len;
    strbuf_putc(&all, '\0');
    *ret = strbuf_take(&all);
    return *ret == NULL ? err_set(e, -ENOMEM, "out of memory") : 0;
}

/* Cuts the next line into `fields`. Returns how many there are (more than the maximum is possible),
 * 0 at the end. */
static size_t cut_line(struct csv *c, char *fields[CSV_COLUMNS_MAX])
{
    if (*c->at == '\0')
        return 0;
    char *line = c->at;
    char *end = strchr(line, '\n');
    if (end == NULL)
        end = line + strlen(line);
    c->at = *end == '\0' ? end : end + 1;
    if (end > line && end[-1] == '\r')
        end[-1] = '\0';
    *end = '\0';
    c->line++;
    size_t len = 0;
    for (;;) {
        char *comma = strchr(line, ',');
        if (comma != NULL)
            *comma = '\0';
        if (len < CSV_COLUMNS_MAX)
            fields[len] = line;
        len++;
        if (comma == NULL)
            return len;
        line = comma + 1;
    }
}

int csv_open(struct csv *c, const char *path, struct err *e)
{
    struct strbuf name CLEANUP(strbuf_done) = {0};
    *c = (struct csv){0};
    strbuf_puts(&name, path);
    errno = 0;
    gzFile gz = gzopen(path, "rbe");
    if (gz == NULL && errno == ENOENT) {
        strbuf_puts(&name, ".gz");
        gz = gzopen(strbuf_str(&name), "rbe");
        if (gz == NULL && errno == ENOENT)
            return err_set(e, -ENOENT, "%s: no such file, with or without .gz", path);
    }
    if (gz == NULL)
        return err_set(e, errno != 0 ? -errno : -ENOMEM, "%s: cannot be opened: %s", strbuf_str(&name),
                       strerror(errno != 0 ? errno : ENOMEM));
    size_t len = 0;
    int r = read_all(gz, strbuf_str(&name), &c->text, &len, e);
    gzclose(gz);
    if (r < 0)
        return r;
    c->at = c->text;
    c->path = strbuf_take(&name);
    if (c->path == NULL) {
        csv_done(c);
        return err_set(e, -ENOMEM, "out of memory");
    }
    c->columns = cut_line(c, c->names);
    if (c->columns == 0 || c->columns > CSV_COLUMNS_MAX) {
        r = err_set(e, -EINVAL, "%s: the first line names %zu columns, allowed are 1 to %d", c->path, c->columns,
                    CSV_COLUMNS_MAX);
        csv_done(c);
        return r;
    }
    return 0;
}

void csv_done(struct csv *c)
{
    mem_free(c->path);
    mem_free(c->text);
    *c = (struct csv){0};
}

int csv_column(const struct csv *c, const char *name, struct err *e)
{
    for (size_t i = 0; i < c->columns; i++) {
        if (strcmp(c->names[i], name) == 0)
            return (int)i;
    }
    err_set(e, -EINVAL, "%s: the first line names no column '%s'", c->path, name);
    return -1;
}

int csv_next(struct csv *c, struct err *e)
{
    size_t len = cut_line(c, c->fields);
    if (len == 0)
        return 0;
    if (len != c->columns)
        return err_set(e, -EINVAL, "%s:%u: %zu fields, the first line has %zu", c->path, c->line, len, c->columns);
    return 1;
}

int csv_u32(const struct csv *c, int column, uint32_t max, uint32_t *ret, struct err *e)
{
    const char *text = c->fields[column];
    uint64_t value = 0;
    size_t len = 0;
    for (; text[len] >= '0' && text[len] <= '9' && len < 11; len++)
        value = value * 10 + (uint64_t)(text[len] - '0');
    if (len == 0 || text[len] != '\0' || value > max)
        return err_set(e, -EINVAL, "%s:%u: column %s is '%.40s', allowed are whole numbers from 0 to %u", c->path,
                       c->line, c->names[column], text, max);
    *ret = (uint32_t)value;
    return 0;
}
