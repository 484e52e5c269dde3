/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two configurations, key by key. */
#include "config/config_file.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *key;
    const char *value;
};

struct entries {
    struct strbuf text;
    struct entry *rows;
    size_t cap;
    size_t len;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    return strcmp(x->key, y->key);
}

static int collect(struct entries *s, const struct config *c)
{
    config_write_flat(c, &s->text);
    if (s->text.failed)
        return -ENOMEM;
    for (char *line = s->text.data; line != NULL && *line != '\0';) {
        char *tab = strchr(line, '\t');
        char *end = strchr(tab, '\n');
        *tab = '\0';
        *end = '\0';
        if (mem_grow(&s->rows, &s->cap, s->len + 1, sizeof *s->rows) < 0)
            return -ENOMEM;
        s->rows[s->len++] = (struct entry){line, tab + 1};
        line = end + 1;
    }
    if (s->len > 0)
        qsort(s->rows, s->len, sizeof *s->rows, compare);
    return 0;
}

int config_diff(const struct config *from, const struct config *to, config_diff_cb *cb, void *arg)
{
    struct entries a = {.rows = NULL};
    struct entries b = {.rows = NULL};
    int rc = collect(&a, from);
    if (rc == 0)
        rc = collect(&b, to);
    for (size_t i = 0, k = 0; rc == 0 && (i < a.len || k < b.len);) {
        int order = i == a.len ? 1 : k == b.len ? -1 : compare(&a.rows[i], &b.rows[k]);
        if (order < 0)
            cb(arg, a.rows[i].key, a.rows[i].value, NULL);
        else if (order > 0)
            cb(arg, b.rows[k].key, NULL, b.rows[k].value);
        else if (strcmp(a.rows[i].value, b.rows[k].value) != 0)
            cb(arg, a.rows[i].key, a.rows[i].value, b.rows[k].value);
        i += order <= 0;
        k += order >= 0;
    }
    strbuf_done(&a.text);
    strbuf_done(&b.text);
    mem_free(a.rows);
    mem_free(b.rows);
    return rc;
}
