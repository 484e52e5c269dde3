/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table says what the file may hold: key, kind, bounds, place in the structure. Reading walks
 * the document and looks every key up; then the whole is checked: names that stand twice, names
 * that are spoken of but not there, limits that contradict each other.
 *
 * What is not given keeps its default. Where `queues` is given, it replaces the default queue;
 * without `default_queue` the default is then "batch" when the list has it, else its first.
 */
#include "config/config_file.h"

#include "base/mem.h"
#include "base/units.h"
#include "config/suggest.h"
#include "config/value.h"
#include "config/yaml.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum kind {
    K_NAME,     /* char[NAME_SIZE] */
    K_STRATEGY, /* char[16] */
    K_U32,
    K_I32,
    K_MS,    /* duration: int64_t milliseconds */
    K_BYTES, /* size: uint64_t bytes */
    K_CARDS, /* number of cards with three decimals: uint64_t thousandths */
    K_COUNT, /* uint64_t */
    K_NAMES, /* list of names: the nodes of a rack */
};

struct field {
    const char *key;
    enum kind kind;
    size_t offset;
    int64_t low;
    int64_t high;
    bool required;
    const char *preset; /* the default, for people */
};

#define F(type, member, name, kind_, low_, high_, need, def)                                              \
    {                                                                                                     \
        .key = (name), .kind = (kind_), .offset = offsetof(type, member), .low = (low_), .high = (high_), \
        .required = (need), .preset = (def)                                                               \
    }

#define MONTH_MS       ((int64_t)31 * 86400 * 1000)
#define CARDS_MAX      1000000 /* cards in a cap */
#define JOBS_CAP_MAX   1000000000
#define LIST_ITEMS_MAX 100000

static const struct field top_fields[] = {
    F(struct config, strategy, "strategy", K_STRATEGY, 0, 0, false, "remuda"),
    F(struct config, default_queue, "default_queue", K_NAME, 0, 0, false, "batch"),
    F(struct config, default_tenant, "default_tenant", K_NAME, 0, 0, false, "default"),
    F(struct config, grace_ms, "grace", K_MS, 0, GRACE_MAX_MS, false, "30s"),
    F(struct config, sim_duration_ms, "sim_duration", K_MS, 1, MONTH_MS, false, "60s"),
    F(struct config, reservation_depth, "reservation_depth", K_U32, 0, 100, false, "1"),
    F(struct config, finished_jobs_kept, "finished_jobs_kept", K_U32, 0, 10000000, false, "10000"),
    F(struct config, log_bytes_max, "log_max_size", K_BYTES, 1, 1 << 20, false, "64MiB"),
    F(struct config, log_files_kept, "log_files_kept", K_U32, 0, 1000, false, "3"),
};

static const struct field tenant_fields[] = {
    F(struct config_tenant, name, "name", K_NAME, 0, 0, true, ""),
    F(struct config_tenant, caps.gpus_milli, "max_gpus", K_CARDS, 0, CARDS_MAX, false, "no cap"),
    F(struct config_tenant, caps.jobs, "max_jobs", K_COUNT, 0, JOBS_CAP_MAX, false, "no cap"),
    F(struct config_tenant, user_caps.gpus_milli, "user_max_gpus", K_CARDS, 0, CARDS_MAX, false, "no cap"),
    F(struct config_tenant, user_caps.jobs, "user_max_jobs", K_COUNT, 0, JOBS_CAP_MAX, false, "no cap"),
};

static const struct field user_fields[] = {
    F(struct config_user, name, "name", K_NAME, 0, 0, true, ""),
    F(struct config_user, tenant, "tenant", K_NAME, 0, 0, false, "default_tenant"),
    F(struct config_user, caps.gpus_milli, "max_gpus", K_CARDS, 0, CARDS_MAX, false, "the tenant's user_max_gpus"),
    F(struct config_user, caps.jobs, "max_jobs", K_COUNT, 0, JOBS_CAP_MAX, false, "the tenant's user_max_jobs"),
};

static const struct field queue_fields[] = {
    F(struct config_queue, name, "name", K_NAME, 0, 0, true, ""),
    F(struct config_queue, priority, "priority", K_I32, PRIORITY_MIN, PRIORITY_MAX, false, "0"),
    F(struct config_queue, caps.gpus_milli, "max_gpus", K_CARDS, 0, CARDS_MAX, false, "no cap"),
    F(struct config_queue, caps.jobs, "max_jobs", K_COUNT, 0, JOBS_CAP_MAX, false, "no cap"),
    F(struct config_queue, default_time_ms, "default_time", K_MS, 0, TIME_MAX_MS, false, "none"),
    F(struct config_queue, max_time_ms, "max_time", K_MS, 0, TIME_MAX_MS, false, "none"),
};

static const struct field rack_fields[] = {
    F(struct config_rack, name, "name", K_NAME, 0, 0, true, ""),
    F(struct config_rack, nodes, "nodes", K_NAMES, 0, 0, true, ""),
};

#define LEN(a) (sizeof(a) / sizeof(a)[0])

struct list {
    const char *key;
    const struct field *fields;
    size_t fields_len;
    size_t item_size;
    size_t array_offset; /* of the pointer in struct config */
    size_t len_offset;
};

#define L(member, name, table)                                                                                         \
    {                                                                                                                  \
        .key = (name), .fields = (table), .fields_len = LEN(table), .item_size = sizeof *((struct config *)0)->member, \
        .array_offset = offsetof(struct config, member), .len_offset = offsetof(struct config, member##_len)           \
    }

static const struct list lists[] = {
    L(queues, "queues", queue_fields),
    L(tenants, "tenants", tenant_fields),
    L(users, "users", user_fields),
    L(racks, "racks", rack_fields),
};

/* What a kind takes, in words, with the field's bounds. */
static void allowed_text(const struct field *f, char *out, size_t size)
{
    switch (f->kind) {
    case K_NAME:
        (void)snprintf(out, size, "a name of 1 to 63 letters, digits and . _ - @");
        break;
    case K_STRATEGY:
        (void)snprintf(out, size, "remuda, binpack or spread");
        break;
    case K_U32:
    case K_I32:
    case K_COUNT:
        (void)snprintf(out, size, "a whole number from %" PRId64 " to %" PRId64, f->low, f->high);
        break;
    case K_MS: {
        char most[32];
        units_format_duration(f->high, most);
        (void)snprintf(out, size, "a duration like 90s or 2h30m, %s to %s", f->low > 0 ? "more than 0" : "0", most);
        break;
    }
    case K_BYTES:
        (void)snprintf(out, size, "a size like 64MiB, 1 MiB to 1 TiB");
        break;
    case K_CARDS:
        (void)snprintf(out, size, "a number of cards like 8 or 2.5, 0 to %" PRId64, f->high);
        break;
    case K_NAMES:
        (void)snprintf(out, size, "a list of node names");
        break;
    }
}

void config_schema_write(struct strbuf *out)
{
    char allowed[128];
    for (size_t i = 0; i < LEN(top_fields); i++) {
        allowed_text(&top_fields[i], allowed, sizeof allowed);
        strbuf_printf(out, "%s\t%s\t%s\n", top_fields[i].key, top_fields[i].preset, allowed);
    }
    for (size_t k = 0; k < LEN(lists); k++) {
        for (size_t i = 0; i < lists[k].fields_len; i++) {
            const struct field *f = &lists[k].fields[i];
            allowed_text(f, allowed, sizeof allowed);
            strbuf_printf(out, "%s[].%s\t%s\t%s\n", lists[k].key, f->key, f->required ? "(required)" : f->preset,
                          allowed);
        }
    }
}

/* The largest unit that loses nothing: 90 s, 2 h. */
static void write_ms(struct strbuf *out, int64_t ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    size_t i = 0;
    while (ms % units[i].ms != 0)
        i++;
    strbuf_printf(out, "%" PRId64 "%s", ms / units[i].ms, ms == 0 ? "s" : units[i].name);
}

static void write_cards(struct strbuf *out, uint64_t milli)
{
    strbuf_printf(out, "%" PRIu64, milli / 1000);
    unsigned rest = (unsigned)(milli % 1000);
    if (rest == 0)
        return;
    strbuf_printf(out, ".%0*u",
                  rest % 100 == 0  ? 1
                  : rest % 10 == 0 ? 2
                                   : 3,
                  rest % 100 == 0  ? rest / 100
                  : rest % 10 == 0 ? rest / 10
                                   : rest);
}

static void write_value(struct strbuf *out, const struct field *f, const void *base)
{
    const void *at = (const char *)base + f->offset;
    const struct config_rack *rack = base;
    switch (f->kind) {
    case K_NAME:
    case K_STRATEGY:
        strbuf_puts(out, at);
        break;
    case K_U32:
        strbuf_printf(out, "%" PRIu32, *(const uint32_t *)at);
        break;
    case K_I32:
        strbuf_printf(out, "%" PRId32, *(const int32_t *)at);
        break;
    case K_COUNT:
        strbuf_printf(out, "%" PRIu64, *(const uint64_t *)at);
        break;
    case K_MS:
        write_ms(out, *(const int64_t *)at);
        break;
    case K_BYTES:
        strbuf_printf(out, "%" PRIu64 "MiB", *(const uint64_t *)at >> 20);
        break;
    case K_CARDS:
        write_cards(out, *(const uint64_t *)at);
        break;
    case K_NAMES:
        for (size_t i = 0; i < rack->nodes_len; i++)
            strbuf_printf(out, "%s%s", i > 0 ? "," : "", rack->nodes[i]);
        break;
    }
}

/* What stands for "not given" in an entry of a list. */
static bool is_unset(const struct field *f, const void *base)
{
    const void *at = (const char *)base + f->offset;
    switch (f->kind) {
    case K_COUNT:
    case K_CARDS:
        return *(const uint64_t *)at == NO_CAP;
    case K_MS:
        return *(const int64_t *)at == 0;
    case K_I32:
        return *(const int32_t *)at == 0;
    default:
        return false;
    }
}

void config_write_flat(const struct config *c, struct strbuf *out)
{
    for (size_t i = 0; i < LEN(top_fields); i++) {
        strbuf_printf(out, "%s\t", top_fields[i].key);
        write_value(out, &top_fields[i], c);
        strbuf_putc(out, '\n');
    }
    for (size_t k = 0; k < LEN(lists); k++) {
        const struct list *l = &lists[k];
        const char *items = *(const char *const *)((const char *)c + l->array_offset);
        size_t len = *(const size_t *)((const char *)c + l->len_offset);
        for (size_t n = 0; n < len; n++) {
            const char *item = items + n * l->item_size; /* its name comes first in every list */
            for (size_t i = 0; i < l->fields_len; i++) {
                if (is_unset(&l->fields[i], item))
                    continue;
                strbuf_printf(out, "%s[%s].%s\t", l->key, item, l->fields[i].key);
                write_value(out, &l->fields[i], item);
                strbuf_putc(out, '\n');
            }
        }
    }
}

/* A name into a buffer of `size` bytes. */
static bool put_name(char *at, const char *text)
{
    if (!name_ok(text))
        return false;
    memcpy(at, text, strlen(text) + 1);
    return true;
}

/* Text into the field at `at`; false when it is not allowed there. */
static bool put_value(const struct field *f, const char *text, void *at)
{
    int64_t whole = 0;
    uint64_t count = 0;
    switch (f->kind) {
    case K_NAME:
        return put_name(at, text);
    case K_STRATEGY:
        if (!strategy_name_ok(text))
            return false;
        memcpy(at, text, strlen(text) + 1);
        return true;
    case K_U32:
    case K_I32:
    case K_COUNT:
        if (units_parse_int(text, f->low, f->high, &whole, NULL) < 0)
            return false;
        break;
    case K_MS:
        if (units_parse_duration_ms(text, &whole, NULL) < 0 || whole < f->low || whole > f->high)
            return false;
        break;
    case K_BYTES:
        if (units_parse_mib(text, &count, NULL) < 0 || count < (uint64_t)f->low || count > (uint64_t)f->high)
            return false;
        count <<= 20;
        break;
    case K_CARDS:
        if (units_parse_milli(text, (uint64_t)f->high * 1000, &count, NULL) < 0)
            return false;
        break;
    case K_NAMES:
        return false;
    }
    if (f->kind == K_U32)
        *(uint32_t *)at = (uint32_t)whole;
    else if (f->kind == K_I32)
        *(int32_t *)at = (int32_t)whole;
    else if (f->kind == K_MS)
        *(int64_t *)at = whole;
    else
        *(uint64_t *)at = f->kind == K_COUNT ? (uint64_t)whole : count;
    return true;
}

struct reader {
    const struct yaml_doc *doc;
    struct config *cfg;
    struct err *err;
};

static int read_names(struct reader *r, const json_t *owner, const struct field *f, const json_t *v,
                      struct config_rack *rack)
{
    size_t len = json_array_size(v);
    if (!json_is_array(v) || len == 0 || len > LIST_ITEMS_MAX)
        return yaml_err_key(r->doc, r->err, owner, f->key, "%s: a list of 1 to %d node names is allowed, not %s",
                            f->key, LIST_ITEMS_MAX, json_is_array(v) ? "this length" : value_kind(v));
    rack->nodes = mem_alloc(len, sizeof *rack->nodes);
    if (rack->nodes == NULL)
        return err_set(r->err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < len; i++) {
        char text[VALUE_SIZE];
        struct err why;
        const json_t *item = json_array_get(v, i);
        if (value_text(item, "a node name", text, &why) < 0)
            return yaml_err_item(r->doc, r->err, v, i, "%s: %s", f->key, why.text);
        if (!put_name(rack->nodes[i], text))
            return yaml_err_item(r->doc, r->err, v, i,
                                 "%s: \"%.63s\" is not a node name; 1 to 63 letters, digits and . _ - @ are "
                                 "allowed",
                                 f->key, text);
        rack->nodes_len = i + 1;
    }
    return 0;
}

static int read_field(struct reader *r, const json_t *owner, const struct field *f, const json_t *v, void *base)
{
    char allowed[128];
    char text[VALUE_SIZE];
    struct err why;
    if (f->kind == K_NAMES)
        return read_names(r, owner, f, v, base);
    allowed_text(f, allowed, sizeof allowed);
    if (value_text(v, allowed, text, &why) < 0)
        return yaml_err_key(r->doc, r->err, owner, f->key, "%s: %s", f->key, why.text);
    if (!put_value(f, text, (char *)base + f->offset))
        return yaml_err_key(r->doc, r->err, owner, f->key, "%s: \"%.60s\" is not allowed; %s is", f->key, text,
                            allowed);
    return 0;
}

static const struct field *field_find(const struct field *fields, size_t len, const char *key)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(fields[i].key, key) == 0)
            return &fields[i];
    return NULL;
}

static int unknown_key(struct reader *r, const json_t *owner, const char *key, const struct field *fields, size_t len,
                       const char *where)
{
    const char *best = NULL;
    for (size_t i = 0; i < len; i++)
        suggest_offer(key, fields[i].key, &best);
    for (size_t k = 0; k < LEN(lists) && fields == top_fields; k++)
        suggest_offer(key, lists[k].key, &best);
    if (best != NULL)
        return yaml_err_key(r->doc, r->err, owner, key, "unknown key \"%.60s\"%s; did you mean \"%s\"?", key, where,
                            best);
    struct strbuf all = {0};
    for (size_t i = 0; i < len; i++)
        strbuf_printf(&all, "%s%s", i > 0 ? ", " : "", fields[i].key);
    for (size_t k = 0; k < LEN(lists) && fields == top_fields; k++)
        strbuf_printf(&all, ", %s", lists[k].key);
    int rc =
        yaml_err_key(r->doc, r->err, owner, key, "unknown key \"%.60s\"%s; allowed: %s", key, where, strbuf_str(&all));
    strbuf_done(&all);
    return rc;
}

/* What an item holds before its keys are read. */
static void item_defaults(const struct list *l, void *item)
{
    if (l->fields == tenant_fields) {
        struct config_tenant *t = item;
        t->caps = t->user_caps = (struct caps){NO_CAP, NO_CAP};
    } else if (l->fields == user_fields) {
        ((struct config_user *)item)->caps = (struct caps){NO_CAP, NO_CAP};
    } else if (l->fields == queue_fields) {
        ((struct config_queue *)item)->caps = (struct caps){NO_CAP, NO_CAP};
    }
}

static int read_item(struct reader *r, const struct list *l, const json_t *items, size_t index, void *item)
{
    json_t *v = json_array_get(items, index);
    if (!json_is_object(v))
        return yaml_err_item(r->doc, r->err, items, index, "%s: an entry is a mapping with \"name\" and more, not %s",
                             l->key, value_kind(v));
    item_defaults(l, item);
    char where[48];
    (void)snprintf(where, sizeof where, " in %s", l->key);
    const char *key;
    json_t *value;
    json_object_foreach(v, key, value)
    {
        const struct field *f = field_find(l->fields, l->fields_len, key);
        if (f == NULL)
            return unknown_key(r, v, key, l->fields, l->fields_len, where);
        int rc = read_field(r, v, f, value, item);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < l->fields_len; i++)
        if (l->fields[i].required && json_object_get(v, l->fields[i].key) == NULL)
            return yaml_err_item(r->doc, r->err, items, index, "%s: the key \"%s\" is missing", l->key,
                                 l->fields[i].key);
    return 0;
}

static int read_list(struct reader *r, const json_t *root, const struct list *l, const json_t *v)
{
    size_t len = json_array_size(v);
    if (!json_is_array(v) || len > LIST_ITEMS_MAX)
        return yaml_err_key(r->doc, r->err, root, l->key, "%s: a list of at most %d entries is allowed, not %s", l->key,
                            LIST_ITEMS_MAX, json_is_array(v) ? "more" : value_kind(v));
    char *items = mem_alloc(len, l->item_size);
    if (items == NULL)
        return err_set(r->err, -ENOMEM, "out of memory");
    void *array = (char *)r->cfg + l->array_offset;
    size_t *count = (size_t *)(void *)((char *)r->cfg + l->len_offset);
    void *old;
    memcpy(&old, array, sizeof old);
    mem_free(old);
    memcpy(array, &items, sizeof items);
    *count = 0;
    for (size_t i = 0; i < len; i++) {
        *count = i + 1; /* before it is read, so that what a half-read entry owns is released */
        int rc = read_item(r, l, v, i, items + i * l->item_size);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_root(struct reader *r)
{
    json_t *root = r->doc->root;
    if (json_is_null(root)) /* more likely a file that was lost than a wish */
        return err_set(r->err, -EINVAL, "%s: is empty; a mapping of keys is allowed ({} gives every default)",
                       r->doc->name);
    if (!json_is_object(root))
        return yaml_err_item(r->doc, r->err, root, SIZE_MAX, "a mapping of keys is allowed here, not %s",
                             value_kind(root));
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        const struct list *l = NULL;
        for (size_t k = 0; k < LEN(lists); k++)
            if (strcmp(lists[k].key, key) == 0)
                l = &lists[k];
        const struct field *f = field_find(top_fields, LEN(top_fields), key);
        int rc;
        if (l != NULL)
            rc = read_list(r, root, l, value);
        else if (f != NULL)
            rc = read_field(r, root, f, value, r->cfg);
        else
            rc = unknown_key(r, root, key, top_fields, LEN(top_fields), "");
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Two entries of a list with one name. */
static int check_twice(struct reader *r, const struct list *l)
{
    const json_t *items = json_object_get(r->doc->root, l->key);
    json_t *seen = json_object(); /* name -> index; jansson's hash table keeps this linear */
    if (seen == NULL)
        return err_set(r->err, -ENOMEM, "out of memory");
    int rc = 0;
    for (size_t i = 0; i < json_array_size(items) && rc == 0; i++) {
        char text[VALUE_SIZE];
        const json_t *name = json_object_get(json_array_get(items, i), "name");
        if (value_text(name, "a name", text, NULL) < 0)
            continue;
        const json_t *first = json_object_get(seen, text);
        if (first != NULL)
            rc = yaml_err_key(r->doc, r->err, json_array_get(items, i), "name",
                              "%s: the name \"%s\" stands twice (entries %lld and %zu); each may stand once", l->key,
                              text, (long long)json_integer_value(first) + 1, i + 1);
        else if (json_object_set_new(seen, text, json_integer((json_int_t)i)) < 0)
            rc = err_set(r->err, -ENOMEM, "out of memory");
    }
    json_decref(seen);
    return rc;
}

static int check_racks(struct reader *r)
{
    const json_t *racks = json_object_get(r->doc->root, "racks");
    json_t *seen = json_object();
    if (seen == NULL)
        return err_set(r->err, -ENOMEM, "out of memory");
    int rc = 0;
    for (size_t i = 0; i < r->cfg->racks_len && rc == 0; i++) {
        const struct config_rack *rack = &r->cfg->racks[i];
        const json_t *nodes = json_object_get(json_array_get(racks, i), "nodes");
        for (size_t n = 0; n < rack->nodes_len && rc == 0; n++) {
            const json_t *other = json_object_get(seen, rack->nodes[n]);
            if (other != NULL)
                rc = yaml_err_item(r->doc, r->err, nodes, n,
                                   "racks: node \"%s\" stands in rack \"%s\" already; a node is in one rack",
                                   rack->nodes[n], json_string_value(other));
            else if (json_object_set_new(seen, rack->nodes[n], json_string(rack->name)) < 0)
                rc = err_set(r->err, -ENOMEM, "out of memory");
        }
    }
    json_decref(seen);
    return rc;
}

static bool has_queue(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->queues_len; i++)
        if (strcmp(c->queues[i].name, name) == 0)
            return true;
    return false;
}

static int check_queues(struct reader *r)
{
    struct config *c = r->cfg;
    const json_t *root = r->doc->root;
    if (c->queues_len == 0)
        return yaml_err_key(r->doc, r->err, root, "queues", "queues: an empty list; at least one is needed");
    if (json_object_get(root, "default_queue") == NULL && !has_queue(c, c->default_queue))
        memcpy(c->default_queue, c->queues[0].name, sizeof c->default_queue);
    if (!has_queue(c, c->default_queue)) {
        const char *best = NULL;
        for (size_t i = 0; i < c->queues_len; i++)
            suggest_offer(c->default_queue, c->queues[i].name, &best);
        return yaml_err_key(r->doc, r->err, root, "default_queue",
                            "default_queue: there is no queue \"%s\" in queues%s%s%s", c->default_queue,
                            best != NULL ? "; did you mean \"" : "", best != NULL ? best : "",
                            best != NULL ? "\"?" : "");
    }
    for (size_t i = 0; i < c->queues_len; i++) {
        const struct config_queue *q = &c->queues[i];
        if (q->max_time_ms > 0 && q->default_time_ms > q->max_time_ms)
            return yaml_err_key(r->doc, r->err, json_array_get(json_object_get(root, "queues"), i), "default_time",
                                "default_time: is longer than the max_time of queue \"%s\"; at most that is "
                                "allowed",
                                q->name);
    }
    return 0;
}

static int check_tenants(struct reader *r)
{
    struct config *c = r->cfg;
    const json_t *root = r->doc->root;
    json_t *known = json_object();
    if (known == NULL)
        return err_set(r->err, -ENOMEM, "out of memory");
    (void)json_object_set_new(known, c->default_tenant, json_true());
    for (size_t i = 0; i < c->tenants_len; i++)
        (void)json_object_set_new(known, c->tenants[i].name, json_true());
    int rc = 0;
    for (size_t i = 0; i < c->users_len && rc == 0; i++) {
        struct config_user *u = &c->users[i];
        if (u->tenant[0] == '\0')
            memcpy(u->tenant, c->default_tenant, sizeof u->tenant);
        if (json_object_get(known, u->tenant) != NULL)
            continue;
        const char *best = NULL;
        for (size_t t = 0; t < c->tenants_len; t++)
            suggest_offer(u->tenant, c->tenants[t].name, &best);
        rc = yaml_err_key(r->doc, r->err, json_array_get(json_object_get(root, "users"), i), "tenant",
                          "tenant: user \"%s\" belongs to \"%s\", which is not in tenants%s%s%s", u->name, u->tenant,
                          best != NULL ? "; did you mean \"" : "", best != NULL ? best : "", best != NULL ? "\"?" : "");
    }
    json_decref(known);
    return rc;
}

static int check_whole(struct reader *r)
{
    int rc = 0;
    for (size_t k = 0; k < LEN(lists) && rc == 0; k++)
        rc = check_twice(r, &lists[k]);
    if (rc == 0)
        rc = check_racks(r);
    if (rc == 0)
        rc = check_queues(r);
    if (rc == 0)
        rc = check_tenants(r);
    return rc;
}

int config_parse(const char *text, size_t len, const char *name, struct config *ret, struct err *e)
{
    struct yaml_doc doc;
    int rc = yaml_parse(text, len, name, &doc, e);
    if (rc < 0)
        return rc;
    struct config cfg;
    if (config_defaults(&cfg) < 0) {
        yaml_done(&doc);
        return err_set(e, -ENOMEM, "%.90s: out of memory", name);
    }
    struct reader r = {.doc = &doc, .cfg = &cfg, .err = e};
    rc = read_root(&r);
    if (rc == 0)
        rc = check_whole(&r);
    yaml_done(&doc);
    if (rc < 0) {
        config_done(&cfg);
        return rc;
    }
    *ret = cfg;
    return 0;
}

int config_load_file(const char *path, struct config *ret, char **ret_text, struct err *e)
{
    CLEANUP_FREE char *text = NULL;
    size_t len;
    int rc = config_read_text(path, YAML_BYTES_MAX, &text, &len, e);
    if (rc < 0)
        return rc;
    rc = config_parse(text, len, path, ret, e);
    if (rc == 0 && ret_text != NULL)
        *ret_text = TAKE_PTR(text);
    return rc;
}
