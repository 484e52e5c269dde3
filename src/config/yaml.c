/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event-driven: libyaml's parser gives events, a stack of open containers turns them into a jansson
 * tree. Every limit is checked before memory is spent on what passes it.
 *
 * Positions are an array in document order of (container, key or index) -> (line, column). They are
 * looked up only when an error is about to be told, so a linear search does.
 */
#include "config/yaml.h"

#include "base/mem.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

struct yaml_place {
    const json_t *container;
    char *key; /* NULL: `index` counts */
    size_t index;
    uint32_t line; /* from 1 */
    uint32_t column;
};

struct level_state {
    json_t *node; /* borrowed from the tree */
    char *key;    /* of the value that comes next, in a mapping; owned */
};

struct builder {
    struct yaml_doc *doc;
    struct level_state stack[YAML_DEPTH_MAX];
    size_t depth;
    size_t nodes;
    struct err *err;
};

static int at_mark(struct builder *b, yaml_mark_t m, int code, const char *text, const char *what)
{
    return err_set(b->err, code, "%.90s:%zu:%zu: %s%.80s", b->doc->name, m.line + 1, m.column + 1, text, what);
}

static int bad(struct builder *b, yaml_mark_t m, const char *text)
{
    return at_mark(b, m, -EINVAL, text, "");
}

static int add_place(struct builder *b, const json_t *container, const char *key, size_t index, yaml_mark_t m)
{
    struct yaml_doc *d = b->doc;
    if (mem_grow(&d->places, &d->places_cap, d->places_len + 1, sizeof *d->places) < 0)
        return err_set(b->err, -ENOMEM, "%.90s: out of memory", d->name);
    struct yaml_place place = {
        .container = container, .index = index, .line = (uint32_t)m.line + 1, .column = (uint32_t)m.column + 1};
    if (key != NULL) {
        place.key = mem_strdup(key);
        if (place.key == NULL)
            return err_set(b->err, -ENOMEM, "%.90s: out of memory", d->name);
    }
    d->places[d->places_len++] = place;
    return 0;
}

/* Hangs `node` (taken over, also on failure) where it belongs. */
static int attach(struct builder *b, json_t *node, yaml_mark_t m)
{
    if (node == NULL)
        return err_set(b->err, -ENOMEM, "%.90s: out of memory", b->doc->name);
    if (++b->nodes > YAML_NODES_MAX) {
        json_decref(node);
        return bad(b, m, "too many values; at most 1,000,000 are allowed");
    }
    if (b->depth == 0) {
        json_decref(b->doc->root);
        b->doc->root = node;
        return add_place(b, node, NULL, SIZE_MAX, m);
    }
    struct level_state *top = &b->stack[b->depth - 1];
    int rc;
    if (json_is_array(top->node)) {
        rc = add_place(b, top->node, NULL, json_array_size(top->node), m);
        if (json_array_append_new(top->node, node) < 0 && rc == 0)
            rc = err_set(b->err, -ENOMEM, "%.90s: out of memory", b->doc->name);
        return rc;
    }
    rc = add_place(b, top->node, top->key, 0, m);
    if (json_object_set_new(top->node, top->key, node) < 0 && rc == 0)
        rc = err_set(b->err, -ENOMEM, "%.90s: out of memory", b->doc->name);
    mem_free(top->key);
    top->key = NULL;
    return rc;
}

/* A plain scalar as a number when that loses nothing; NULL when it is no such number. */
static json_t *plain_number(const char *text, size_t len)
{
    char again[32];
    char *end;
    if (len == 0 || len >= sizeof again || (text[0] != '-' && (text[0] < '0' || text[0] > '9')))
        return NULL;
    errno = 0;
    long long whole = strtoll(text, &end, 10);
    if (errno == 0 && *end == '\0') {
        (void)snprintf(again, sizeof again, "%lld", whole);
        return strcmp(again, text) == 0 ? json_integer(whole) : NULL;
    }
    double real = strtod(text, &end);
    if (*end != '\0' || !isfinite(real))
        return NULL;
    (void)snprintf(again, sizeof again, "%.15g", real);
    return strcmp(again, text) == 0 ? json_real(real) : NULL;
}

static json_t *scalar_value(const yaml_event_t *ev)
{
    const char *text = (const char *)ev->data.scalar.value;
    size_t len = ev->data.scalar.length;
    if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
            return json_boolean(text[0] == 't');
        if (len == 0 || strcmp(text, "null") == 0 || strcmp(text, "~") == 0)
            return json_null();
        json_t *number = plain_number(text, len);
        if (number != NULL)
            return number;
    }
    return json_stringn(text, len);
}

static int on_scalar(struct builder *b, const yaml_event_t *ev)
{
    const char *text = (const char *)ev->data.scalar.value;
    size_t len = ev->data.scalar.length;
    if (ev->data.scalar.anchor != NULL)
        return bad(b, ev->start_mark, "anchors are not allowed; write the value out");
    if (ev->data.scalar.tag != NULL)
        return bad(b, ev->start_mark, "tags are not allowed; write a plain value");
    if (memchr(text, '\0', len) != NULL)
        return bad(b, ev->start_mark, "a NUL character is not allowed in text");
    struct level_state *top = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
    if (top == NULL || !json_is_object(top->node) || top->key != NULL)
        return attach(b, scalar_value(ev), ev->start_mark);
    if (len == 0)
        return bad(b, ev->start_mark, "an empty key is not allowed");
    if (json_object_get(top->node, text) != NULL)
        return at_mark(b, ev->start_mark, -EINVAL, "duplicate key; each may stand once: ", text);
    top->key = mem_strndup(text, len);
    return top->key == NULL ? err_set(b->err, -ENOMEM, "%.90s: out of memory", b->doc->name) : 0;
}

static int on_open(struct builder *b, const yaml_event_t *ev, bool mapping)
{
    const yaml_char_t *anchor = mapping ? ev->data.mapping_start.anchor : ev->data.sequence_start.anchor;
    const yaml_char_t *tag = mapping ? ev->data.mapping_start.tag : ev->data.sequence_start.tag;
    if (anchor != NULL)
        return bad(b, ev->start_mark, "anchors are not allowed; write the value out");
    if (tag != NULL)
        return bad(b, ev->start_mark, "tags are not allowed; write a plain value");
    if (b->depth == YAML_DEPTH_MAX)
        return bad(b, ev->start_mark, "nested too deeply; 16 levels are allowed");
    if (b->depth > 0 && json_is_object(b->stack[b->depth - 1].node) && b->stack[b->depth - 1].key == NULL)
        return bad(b, ev->start_mark, "a key must be plain text, not a list or a mapping");
    json_t *node = mapping ? json_object() : json_array();
    int rc = attach(b, node, ev->start_mark);
    if (rc == 0)
        b->stack[b->depth++] = (struct level_state){.node = node};
    return rc;
}

/* Takes in one event; *ret_end is set at the end of the stream. */
static int on_event(struct builder *b, const yaml_event_t *ev, bool *ret_end)
{
    switch (ev->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(b, ev);
    case YAML_MAPPING_START_EVENT:
        return on_open(b, ev, true);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(b, ev, false);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        b->depth--;
        return 0;
    case YAML_ALIAS_EVENT:
        return bad(b, ev->start_mark, "aliases are not allowed; write the value out");
    case YAML_DOCUMENT_START_EVENT:
        if (b->doc->root != NULL)
            return bad(b, ev->start_mark, "a second document is not allowed");
        return 0;
    case YAML_STREAM_END_EVENT:
        *ret_end = true;
        return 0;
    default:
        return 0;
    }
}

static int run(struct builder *b, yaml_parser_t *parser)
{
    for (bool end = false; !end;) {
        yaml_event_t ev;
        if (!yaml_parser_parse(parser, &ev)) {
            if (parser->error == YAML_MEMORY_ERROR)
                return err_set(b->err, -ENOMEM, "%.90s: out of memory", b->doc->name);
            return at_mark(b, parser->problem_mark, -EINVAL,
                           "not YAML: ", parser->problem != NULL ? parser->problem : "unreadable");
        }
        int rc = on_event(b, &ev, &end);
        yaml_event_delete(&ev);
        if (rc < 0)
            return rc;
    }
    if (b->doc->root == NULL)
        b->doc->root = json_null();
    return 0;
}

int yaml_parse(const char *text, size_t len, const char *name, struct yaml_doc *ret, struct err *e)
{
    if (len > YAML_BYTES_MAX)
        return err_set(e, -EINVAL, "%.90s: %zu bytes are too much; at most 8 MiB are allowed", name, len);
    if (!utf8_valid(text, len))
        return err_set(e, -EINVAL, "%.90s: is not UTF-8 text; save it as UTF-8", name);
    struct yaml_doc doc = {.name = mem_strdup(name)};
    if (doc.name == NULL)
        return err_set(e, -ENOMEM, "%.90s: out of memory", name);
    struct builder b = {.doc = &doc, .err = e};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        yaml_done(&doc);
        return err_set(e, -ENOMEM, "%.90s: out of memory", name);
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    int rc = run(&b, &parser);
    yaml_parser_delete(&parser);
    for (size_t i = 0; i < YAML_DEPTH_MAX; i++)
        mem_free(b.stack[i].key);
    if (rc < 0) {
        yaml_done(&doc);
        return rc;
    }
    *ret = doc;
    return 0;
}

void yaml_done(struct yaml_doc *d)
{
    if (d == NULL)
        return;
    json_decref(d->root);
    for (size_t i = 0; i < d->places_len; i++)
        mem_free(d->places[i].key);
    mem_free(d->places);
    mem_free(d->name);
    *d = (struct yaml_doc){0};
}

static int read_all(int fd, const char *path, size_t max, struct strbuf *b, struct err *e)
{
    char part[16384];
    for (;;) {
        ssize_t got = read(fd, part, sizeof part);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set(e, -errno, "%.120s: %s", path, strerror(errno));
        if (got == 0)
            return b->failed ? err_set(e, -ENOMEM, "%.120s: out of memory", path) : 0;
        strbuf_add(b, part, (size_t)got);
        if (b->len > max)
            return err_set(e, -EFBIG, "%.120s: is larger than the %zu bytes allowed", path, max);
    }
}

int config_read_text(const char *path, size_t max, char **ret, size_t *ret_len, struct err *e)
{
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_set(e, -errno, "%.120s: %s", path, strerror(errno));
    struct strbuf b = {0};
    int rc = read_all(fd, path, max, &b, e);
    (void)close(fd);
    if (rc == 0 && b.len > 0 && memchr(b.data, '\0', b.len) != NULL)
        rc = err_set(e, -EINVAL, "%.120s: has a NUL byte; text is allowed", path);
    if (rc == 0 && b.data == NULL)
        strbuf_add(&b, "", 0);
    size_t len = b.len;
    char *text = rc == 0 ? strbuf_take(&b) : NULL;
    strbuf_done(&b);
    if (rc == 0 && text == NULL)
        rc = err_set(e, -ENOMEM, "%.120s: out of memory", path);
    if (rc < 0)
        return rc;
    *ret = text;
    *ret_len = len;
    return 0;
}

int yaml_load_file(const char *path, struct yaml_doc *ret, struct err *e)
{
    CLEANUP_FREE char *text = NULL;
    size_t len;
    int rc = config_read_text(path, YAML_BYTES_MAX, &text, &len, e);
    return rc < 0 ? rc : yaml_parse(text, len, path, ret, e);
}

#define YAML_ERR_TEXT 224 /* room for the text beside the place, in a struct err */

static int err_at(const struct yaml_doc *d, struct err *e, const json_t *container, const char *key, size_t index,
                  const char *text)
{
    const struct yaml_place *found = NULL;
    for (size_t i = 0; i < d->places_len && found == NULL; i++) {
        const struct yaml_place *p = &d->places[i];
        if (p->container != container || (p->key == NULL) != (key == NULL))
            continue;
        if (key != NULL ? strcmp(p->key, key) == 0 : p->index == index)
            found = p;
    }
    if (found == NULL)
        return err_set(e, -EINVAL, "%.90s: %s", d->name, text);
    return err_set(e, -EINVAL, "%.90s:%" PRIu32 ":%" PRIu32 ": %s", d->name, found->line, found->column, text);
}

int yaml_err_key(const struct yaml_doc *d, struct err *e, const json_t *container, const char *key, const char *fmt,
                 ...)
{
    char text[YAML_ERR_TEXT];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return err_at(d, e, container, key, SIZE_MAX, text);
}

int yaml_err_item(const struct yaml_doc *d, struct err *e, const json_t *container, size_t index, const char *fmt, ...)
{
    char text[YAML_ERR_TEXT];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return err_at(d, e, container, NULL, index, text);
}
