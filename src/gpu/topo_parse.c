/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what `nvidia-smi topo -m` printed. See topo.h.
 *
 * The output is a matrix between a header line, which begins with white space and names the
 * devices, and the first line that is no row. nvidia-smi separates by tabs, but what people keep is
 * often a copy from a terminal with spaces, so white space of any kind separates. On a terminal the
 * header is underlined by escape sequences; they are taken out. Columns behind the matrix differ by
 * driver: none, "CPU Affinity", also "NUMA Affinity" (from about 440), also "GPU NUMA ID" (from
 * about 535). Network cards are named as such in the header before about 510
 * ("mlx5_0") and as "NIC0" with a legend since.
 *
 * LIMITATIONS. A column whose value is missing in a row can only be told apart where the values'
 * form says which it is; the last "N/A" is taken for "GPU NUMA ID".
 */
#include "gpu/topo.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX   (1024 * 1024)
#define LINE_MAX_  8192
#define TOKENS_MAX (TOPO_DEVICES_MAX + 16)

struct reader {
    const char *p;
    const char *end;
    unsigned line_number;
    char line[LINE_MAX_]; /* without escapes, terminated */
    char *token[TOKENS_MAX];
    unsigned tokens_len;
    bool indented; /* the line began with white space */
};

/* Skips "ESC [ ... letter". Returns the place behind it, or `p` when there is none. */
static const char *skip_escape(const char *p, const char *end)
{
    if (p + 1 >= end || p[0] != '\033' || p[1] != '[')
        return p;
    for (p += 2; p < end && *p != '\n'; p++)
        if (*p >= '@' && *p <= '~')
            return p + 1;
    return p;
}

/* The next line into r->line. 0, -ENODATA at the end, -EINVAL when it is too long or no text. */
static int next_line(struct reader *r)
{
    if (r->p >= r->end)
        return -ENODATA;
    size_t n = 0;
    r->line_number++;
    while (r->p < r->end && *r->p != '\n') {
        const char *after = skip_escape(r->p, r->end);
        if (after != r->p) {
            r->p = after;
            continue;
        }
        unsigned char c = (unsigned char)*r->p++;
        if (n + 1 >= sizeof(r->line) || c == 0)
            return -EINVAL;
        r->line[n++] = (char)c;
    }
    if (r->p < r->end)
        r->p++;
    r->line[n] = 0;
    return 0;
}

/* Splits r->line in place. -EINVAL when there are more tokens than any matrix has. */
static int split(struct reader *r)
{
    char *p = r->line;
    r->tokens_len = 0;
    r->indented = isspace((unsigned char)*p);
    for (;;) {
        while (isspace((unsigned char)*p))
            p++;
        if (!*p)
            return 0;
        if (r->tokens_len == TOKENS_MAX)
            return -EINVAL;
        r->token[r->tokens_len++] = p;
        while (*p && !isspace((unsigned char)*p))
            p++;
        if (*p)
            *p++ = 0;
    }
}

static int line_error(const struct reader *r, struct err *e, const char *what)
{
    return err_set(e, -EINVAL, "line %u: %s", r->line_number, what);
}

static bool name_ok(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    return n > 0 && n < TOPO_NAME_SIZE && !name[n];
}

/* The number in "GPU12"; -1 for any other text. */
static int gpu_number(const char *name)
{
    size_t digits = strncmp(name, "GPU", 3) == 0 ? strspn(name + 3, "0123456789") : 0;
    if (digits < 1 || digits > 2 || name[3 + digits] || (digits == 2 && name[3] == '0'))
        return -1;
    return digits == 1 ? name[3] - '0' : (name[3] - '0') * 10 + (name[4] - '0');
}

/* The words behind the devices: pairs "CPU Affinity", "NUMA Affinity", then "GPU NUMA ID". From
 * token `i` on. */
static int header_columns(const struct reader *r, unsigned i, struct topo *t)
{
    char *const *w = r->token;
    unsigned n = r->tokens_len;
    if (i + 1 < n && strcmp(w[i], "CPU") == 0 && strcmp(w[i + 1], "Affinity") == 0) {
        t->has_cpus = true;
        i += 2;
    }
    if (i + 1 < n && t->has_cpus && strcmp(w[i], "NUMA") == 0 && strcmp(w[i + 1], "Affinity") == 0) {
        t->has_numa = true;
        i += 2;
    }
    if (i + 2 < n && t->has_numa && strcmp(w[i], "GPU") == 0 && strcmp(w[i + 1], "NUMA") == 0 &&
        strcmp(w[i + 2], "ID") == 0) {
        t->has_gpu_numa = true;
        i += 3;
    }
    return i == n ? 0 : -EINVAL;
}

static int parse_header(const struct reader *r, struct topo *t, struct err *e)
{
    unsigned i = 0;
    int last = -1;
    for (; i < r->tokens_len && strcmp(r->token[i], "CPU") != 0; i++) {
        const char *name = r->token[i];
        int number = gpu_number(name);
        bool gpu = number > last && t->gpus_len == t->devices_len;
        if (!name_ok(name))
            return line_error(r, e, "a device name in the header has characters other than letters, digits, '_.-'");
        if (t->devices_len == TOPO_DEVICES_MAX)
            return line_error(r, e, "more devices than are supported (80)");
        if (gpu && t->gpus_len == TOPO_GPUS_MAX)
            return line_error(r, e, "more cards than are supported (16)");
        if (strncmp(name, "GPU", 3) == 0 && !gpu)
            return line_error(r, e, "cards must be GPU0, GPU1, ... in order, before all other devices");
        if (gpu) {
            t->gpus_len++;
            last = number;
        }
        for (uint32_t j = 0; j < t->devices_len; j++)
            if (strcmp(t->dev[j].name, name) == 0)
                return line_error(r, e, "a device is named twice in the header");
        memcpy(t->dev[t->devices_len++].name, name, strlen(name) + 1);
    }
    if (header_columns(r, i, t) != 0)
        return line_error(r, e, "unknown words behind the devices; known are CPU Affinity, NUMA Affinity, GPU NUMA ID");
    return 0;
}

static bool list_ok(const char *text)
{
    return strcmp(text, "N/A") == 0 || (text[0] >= '0' && text[0] <= '9' && !text[strspn(text, "0123456789,-")]);
}

static int set_field(const struct reader *r, char *field, size_t size, const char *text, struct err *e)
{
    if (!list_ok(text))
        return line_error(r, e, "an affinity is neither a list of numbers nor N/A");
    if (strlen(text) >= size)
        return line_error(r, e, "an affinity is too long");
    if (strcmp(text, "N/A") != 0)
        memcpy(field, text, strlen(text) + 1);
    return 0;
}

/* The `n` tokens behind the cells of a card's row. */
static int row_columns(const struct reader *r, unsigned first, struct topo *t, struct topo_device *d, struct err *e)
{
    unsigned n = r->tokens_len - first, want = t->has_cpus + t->has_numa + t->has_gpu_numa, at = first;
    if (n > want)
        return line_error(r, e, "more values than columns");
    const char *last = n ? r->token[r->tokens_len - 1] : "";
    if (t->has_gpu_numa && n && (n == want || strcmp(last, "N/A") == 0)) {
        if (!list_ok(last) || strlen(last) >= sizeof(d->gpu_numa))
            return line_error(r, e, "GPU NUMA ID is neither a number nor N/A");
        memcpy(d->gpu_numa, last, strlen(last) + 1);
        n--;
    }
    int rc = 0;
    if (n > 0 && t->has_cpus) {
        rc = set_field(r, d->cpus, sizeof(d->cpus), r->token[at++], e);
        n--;
    }
    if (rc == 0 && n > 0)
        rc = set_field(r, d->numa, sizeof(d->numa), r->token[at], e);
    return rc;
}

static int parse_row(const struct reader *r, uint32_t row, struct topo *t, struct err *e)
{
    if (strcmp(r->token[0], t->dev[row].name) != 0)
        return err_set(e, -EINVAL, "line %u: expected the row of %s", r->line_number, t->dev[row].name);
    if (r->tokens_len < 1 + t->devices_len)
        return err_set(e, -EINVAL, "line %u: the row of %s has %u cells instead of %u", r->line_number,
                       t->dev[row].name, r->tokens_len - 1, t->devices_len);
    for (uint32_t j = 0; j < t->devices_len; j++) {
        const char *cell = r->token[1 + j];
        struct topo_link *link = &t->link[row][j];
        if (topo_link_parse(cell, link) != 0)
            return err_set(e, -EINVAL, "line %u: cell \"%.16s\" is none of X, NV1..NV99, PIX, PXB, PHB, NODE, SYS",
                           r->line_number, cell);
        if ((link->cls == TOPO_SELF) != (j == row))
            return line_error(r, e, "X must stand on the diagonal and nowhere else");
        if (link->cls == TOPO_NVLINK && (row >= t->gpus_len || j >= t->gpus_len))
            return line_error(r, e, "NVLink between devices that are not both cards");
    }
    unsigned first = 1 + t->devices_len;
    if (row < t->gpus_len)
        return row_columns(r, first, t, &t->dev[row], e);
    return r->tokens_len > first ? line_error(r, e, "values behind the row of a network card") : 0;
}

static int check_symmetry(const struct topo *t, struct err *e)
{
    for (uint32_t i = 0; i < t->devices_len; i++) {
        for (uint32_t j = 0; j < i; j++) {
            struct topo_link a = t->link[i][j], b = t->link[j][i];
            if (a.cls != b.cls || a.nvlinks != b.nvlinks)
                return err_set(e, -EINVAL, "the matrix is not symmetric at %s, %s", t->dev[i].name, t->dev[j].name);
        }
    }
    return 0;
}

/* "NIC0: mlx5_0" behind the matrix; any other line there is passed over. */
static void legend_line(struct reader *r, struct topo *t)
{
    if (split(r) != 0 || r->tokens_len != 2)
        return;
    size_t n = strlen(r->token[0]);
    if (n < 2 || r->token[0][n - 1] != ':' || !name_ok(r->token[1]))
        return;
    r->token[0][n - 1] = 0;
    for (uint32_t i = t->gpus_len; i < t->devices_len; i++)
        if (strcmp(t->dev[i].name, r->token[0]) == 0)
            memcpy(t->dev[i].nic, r->token[1], strlen(r->token[1]) + 1);
}

/* Reads on to the header and takes it in. */
static int find_header(struct reader *r, struct topo *t, struct err *e)
{
    int rc;
    while ((rc = next_line(r)) == 0) {
        if (split(r) != 0)
            continue;
        if (r->indented && r->tokens_len > 0 && gpu_number(r->token[0]) >= 0)
            return parse_header(r, t, e);
    }
    if (rc == -EINVAL)
        return line_error(r, e, "not text, or a line of more than 8,191 bytes");
    return err_set(e, -EINVAL, "no header line (GPU0 ...) of \"nvidia-smi topo -m\" found");
}

static int parse_all(struct reader *r, struct topo *t, struct err *e)
{
    int rc = find_header(r, t, e);
    if (rc != 0)
        return rc;
    for (uint32_t row = 0; row < t->devices_len;) {
        rc = next_line(r);
        if (rc == -ENODATA)
            return err_set(e, -EINVAL, "the matrix ends after %u of %u rows", row, t->devices_len);
        if (rc != 0 || split(r) != 0)
            return line_error(r, e, "not a row of the matrix");
        if (r->tokens_len == 0)
            return err_set(e, -EINVAL, "line %u: the matrix ends after %u of %u rows", r->line_number, row,
                           t->devices_len);
        rc = parse_row(r, row, t, e);
        if (rc != 0)
            return rc;
        row++;
    }
    rc = check_symmetry(t, e);
    while (rc == 0 && next_line(r) == 0)
        legend_line(r, t);
    return rc;
}

int topo_parse(const char *text, size_t len, struct topo *ret, struct err *e)
{
    if (len > TEXT_MAX)
        return err_set(e, -EINVAL, "more than 1 MiB of text");
    struct reader r = {.p = text, .end = text + len};
    struct topo t;
    memset(&t, 0, sizeof(t));
    int rc = parse_all(&r, &t, e);
    if (rc == 0)
        *ret = t;
    return rc;
}
