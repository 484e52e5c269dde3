/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One description of each structure (the `fields_` tables below) drives encoding and decoding, so that the two can not
 * drift apart. A field is: tag (u16), length (u32), bytes. What is zero, empty or NULL is not written. Tags are part of
 * the stored format: never change or reuse one. A tag with TAG_MUST set that this version does not know makes the
 * record unreadable; any other unknown tag is skipped.
 */
#include "control/codec.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

#define TAG_MUST    0x8000u
#define STRINGS_MAX 131072u /* words of a command or an environment */

enum field_type {
    F_INT,   /* integer of `size` bytes, 1..8; `max` bounds it when not 0 */
    F_CHARS, /* char[size], terminated */
    F_BYTES, /* plain bytes of fixed size */
    F_STR,   /* char *, owned */
    F_STRV,  /* char **, NULL-terminated, owned */
    F_SUB,   /* a structure in place */
    F_PTR,   /* pointer to one structure, owned */
    F_ARRAY, /* pointer to structures, with their number at len_offset */
    F_ROWS,  /* structures in place, at most `max`, with their number at len_offset */
};

struct schema {
    size_t size;
    size_t fields_len;
    const struct field *fields;
};

struct field {
    uint16_t tag;
    enum field_type type;
    size_t offset;
    size_t size;
    uint64_t max;
    size_t len_offset;
    size_t len_size;
    const struct schema *sub;
};

#define INT_(tag, type, member)                                                        \
    {                                                                                  \
        tag, F_INT, offsetof(type, member), sizeof(((type *)0)->member), 0, 0, 0, NULL \
    }
#define INT_MAX_(tag, type, member, most)                                                 \
    {                                                                                     \
        tag, F_INT, offsetof(type, member), sizeof(((type *)0)->member), most, 0, 0, NULL \
    }
#define CHARS_(tag, type, member)                                                        \
    {                                                                                    \
        tag, F_CHARS, offsetof(type, member), sizeof(((type *)0)->member), 0, 0, 0, NULL \
    }
#define BYTES_(tag, type, member)                                                        \
    {                                                                                    \
        tag, F_BYTES, offsetof(type, member), sizeof(((type *)0)->member), 0, 0, 0, NULL \
    }
#define STR_(tag, type, member)                              \
    {                                                        \
        tag, F_STR, offsetof(type, member), 0, 0, 0, 0, NULL \
    }
#define STRV_(tag, type, member)                                        \
    {                                                                   \
        tag, F_STRV, offsetof(type, member), 0, STRINGS_MAX, 0, 0, NULL \
    }
#define SUB_(tag, type, member, schema)                         \
    {                                                           \
        tag, F_SUB, offsetof(type, member), 0, 0, 0, 0, &schema \
    }
#define PTR_(tag, type, member, schema)                         \
    {                                                           \
        tag, F_PTR, offsetof(type, member), 0, 0, 0, 0, &schema \
    }
#define ARRAY_(tag, type, member, len, most, schema)                                                          \
    {                                                                                                         \
        tag, F_ARRAY, offsetof(type, member), 0, most, offsetof(type, len), sizeof(((type *)0)->len), &schema \
    }
#define ROWS_(tag, type, member, len, most, schema)                                                          \
    {                                                                                                        \
        tag, F_ROWS, offsetof(type, member), 0, most, offsetof(type, len), sizeof(((type *)0)->len), &schema \
    }
#define SCHEMA(name, type) \
    static const struct schema name = {sizeof(type), sizeof(fields_##name) / sizeof(struct field), fields_##name}

static const struct field fields_request[] = {
    INT_MAX_(1, struct request, gpus, GPUS_PER_WORKER_MAX),
    INT_MAX_(2, struct request, share_milli, GPU_MILLI),
    INT_(3, struct request, share_mem_mib),
    INT_(4, struct request, cpu_milli),
    INT_(5, struct request, mem_mib),
    CHARS_(6, struct request, gpu_model),
};
SCHEMA(request, struct request);

static const struct field fields_dependency[] = {
    INT_(1, struct dependency, job),
    INT_MAX_(2, struct dependency, kind, AFTER_KINDS - 1),
};
SCHEMA(dependency, struct dependency);

static const struct field fields_spec[] = {
    CHARS_(1, struct job_spec, name),
    CHARS_(2, struct job_spec, user),
    CHARS_(3, struct job_spec, tenant),
    CHARS_(4, struct job_spec, queue),
    CHARS_(5, struct job_spec, strategy),
    INT_(6, struct job_spec, uid),
    INT_(7, struct job_spec, gid),
    SUB_(8, struct job_spec, req, request),
    INT_MAX_(9, struct job_spec, workers, WORKERS_MAX),
    INT_(10, struct job_spec, priority),
    INT_MAX_(11, struct job_spec, require, LEVEL_COUNT - 1),
    INT_MAX_(12, struct job_spec, prefer, LEVEL_COUNT - 1),
    INT_(13, struct job_spec, time_limit_ms),
    INT_(14, struct job_spec, grace_ms),
    INT_(15, struct job_spec, sim_duration_ms),
    STRV_(16, struct job_spec, argv),
    STRV_(17, struct job_spec, env),
    STR_(18, struct job_spec, cwd),
    STR_(19, struct job_spec, script),
    STR_(20, struct job_spec, key),
    INT_(21, struct job_spec, begin_ms),
    INT_(22, struct job_spec, begin_after_ms),
    INT_MAX_(23, struct job_spec, hold, 1),
    ARRAY_(24, struct job_spec, after, after_len, AFTER_MAX, dependency),
};
SCHEMA(spec, struct job_spec);

static const struct field fields_caps[] = {
    INT_(1, struct caps, gpus_milli),
    INT_(2, struct caps, jobs),
};
SCHEMA(caps, struct caps);

static const struct field fields_tenant[] = {
    CHARS_(1, struct config_tenant, name),
    SUB_(2, struct config_tenant, caps, caps),
    SUB_(3, struct config_tenant, user_caps, caps),
};
SCHEMA(tenant, struct config_tenant);

static const struct field fields_user[] = {
    CHARS_(1, struct config_user, name),
    CHARS_(2, struct config_user, tenant),
    SUB_(3, struct config_user, caps, caps),
};
SCHEMA(user, struct config_user);

static const struct field fields_queue[] = {
    CHARS_(1, struct config_queue, name),      SUB_(2, struct config_queue, caps, caps),
    INT_(3, struct config_queue, priority),    INT_(4, struct config_queue, default_time_ms),
    INT_(5, struct config_queue, max_time_ms),
};
SCHEMA(queue, struct config_queue);

struct node_name {
    char name[NAME_SIZE];
};
static const struct field fields_node_name[] = {
    CHARS_(1, struct node_name, name),
};
SCHEMA(node_name, struct node_name);

static const struct field fields_rack[] = {
    CHARS_(1, struct config_rack, name),
    ARRAY_(2, struct config_rack, nodes, nodes_len, 65536, node_name),
};
SCHEMA(rack, struct config_rack);

static const struct field fields_config[] = {
    CHARS_(1, struct config, default_queue),
    CHARS_(2, struct config, default_tenant),
    CHARS_(3, struct config, strategy),
    INT_(4, struct config, grace_ms),
    INT_(5, struct config, sim_duration_ms),
    INT_(6, struct config, reservation_depth),
    INT_(7, struct config, finished_jobs_kept),
    INT_(8, struct config, log_bytes_max),
    INT_(9, struct config, log_files_kept),
    ARRAY_(10, struct config, tenants, tenants_len, 65536, tenant),
    ARRAY_(11, struct config, users, users_len, 1048576, user),
    ARRAY_(12, struct config, queues, queues_len, 65536, queue),
    ARRAY_(13, struct config, racks, racks_len, 65536, rack),
};
SCHEMA(config, struct config);

static const struct field fields_gpu[] = {
    CHARS_(1, struct gpu_desc, uuid), CHARS_(2, struct gpu_desc, model),        INT_(3, struct gpu_desc, mem_mib),
    INT_(4, struct gpu_desc, island), INT_MAX_(5, struct gpu_desc, healthy, 1),
};
SCHEMA(gpu, struct gpu_desc);

static const struct field fields_node[] = {
    CHARS_(1, struct node_desc, name),
    CHARS_(2, struct node_desc, rack),
    INT_(3, struct node_desc, cpu_milli),
    INT_(4, struct node_desc, mem_mib),
    ROWS_(5, struct node_desc, gpus, gpus_len, NODE_GPUS_MAX, gpu),
    BYTES_(6, struct node_desc, link),
};
SCHEMA(node, struct node_desc);

static const struct field fields_grant[] = {
    INT_(1, struct grant, node),        INT_(2, struct grant, gpu_mask),  INT_MAX_(3, struct grant, milli, GPU_MILLI),
    INT_(4, struct grant, gpu_mem_mib), INT_(5, struct grant, cpu_milli), INT_(6, struct grant, mem_mib),
};
SCHEMA(grant, struct grant);

static const struct field fields_worker_exit[] = {
    INT_(1, struct worker_exit, worker),
    INT_(2, struct worker_exit, code),
    INT_(3, struct worker_exit, signal),
    INT_MAX_(4, struct worker_exit, cause, CAUSE_LAST),
    INT_MAX_(5, struct worker_exit, core_dumped, 1),
    INT_(6, struct worker_exit, peak_mem_mib),
    INT_(7, struct worker_exit, cpu_ms),
    CHARS_(8, struct worker_exit, detail),
};
SCHEMA(worker_exit, struct worker_exit);

static const struct field fields_change[] = {
    INT_MAX_(1, struct job_change, set_priority, 1),
    INT_MAX_(2, struct job_change, set_time_limit, 1),
    INT_MAX_(3, struct job_change, set_name, 1),
    INT_MAX_(4, struct job_change, set_queue, 1),
    INT_(5, struct job_change, priority),
    INT_(6, struct job_change, time_limit_ms),
    CHARS_(7, struct job_change, name),
    CHARS_(8, struct job_change, queue),
    INT_MAX_(9, struct job_change, set_hold, 1),
    INT_MAX_(10, struct job_change, hold, 1),
};
SCHEMA(change, struct job_change);

static const struct field fields_record[] = {
    INT_(1, struct record, job),
    INT_(2, struct record, attempt),
    PTR_(3, struct record, config, config),
    STR_(4, struct record, text),
    PTR_(5, struct record, node, node),
    INT_(6, struct record, node_id),
    INT_MAX_(7, struct record, node_state, NODE_GONE),
    INT_MAX_(8, struct record, draining, 1),
    PTR_(9, struct record, spec, spec),
    SUB_(10, struct record, change, change),
    CHARS_(11, struct record, by),
    ARRAY_(12, struct record, grants, grants_len, WORKERS_MAX, grant),
    INT_MAX_(13, struct record, level, LEVEL_COUNT - 1),
    SUB_(14, struct record, exit, worker_exit),
    INT_MAX_(15, struct record, cause, CAUSE_LAST),
    INT_(16, struct record, not_before_ms),
};
SCHEMA(record, struct record);

/* --- raw integers --- */

static uint64_t load_int(const void *at, size_t size)
{
    uint64_t v = 0;
    memcpy(&v, at, size); /* little-endian hosts only, as the whole project */
    return v;
}

static void put_int(struct strbuf *out, uint64_t v, size_t size)
{
    strbuf_add(out, &v, size);
}

static size_t load_len(const void *base, const struct field *f)
{
    return (size_t)load_int((const char *)base + f->len_offset, f->len_size);
}

/* --- encoding --- */

static void encode_struct(struct strbuf *out, const void *base, const struct schema *s);

/* Writes the header with a length to be filled in; returns where the length stands. */
static size_t open_field(struct strbuf *out, uint16_t tag)
{
    put_int(out, tag, 2);
    put_int(out, 0, 4);
    return out->len;
}

static void close_field(struct strbuf *out, size_t start)
{
    if (out->failed)
        return;
    uint32_t len = (uint32_t)(out->len - start);
    memcpy(out->data + start - 4, &len, 4);
}

static void put_field(struct strbuf *out, uint16_t tag, const void *bytes, size_t len)
{
    put_int(out, tag, 2);
    put_int(out, len, 4);
    strbuf_add(out, bytes, len);
}

static void encode_rows(struct strbuf *out, const struct field *f, const char *rows, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        size_t start = open_field(out, f->tag);
        encode_struct(out, rows + i * f->sub->size, f->sub);
        close_field(out, start);
    }
}

static bool all_zero(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static void encode_strings(struct strbuf *out, const struct field *f, char *const *strings)
{
    size_t start = open_field(out, f->tag);
    for (size_t i = 0; strings[i] != NULL; i++)
        strbuf_add(out, strings[i], strlen(strings[i]) + 1);
    close_field(out, start);
}

static void encode_field(struct strbuf *out, const char *base, const struct field *f)
{
    const char *at = base + f->offset;
    bool points = f->type == F_STR || f->type == F_STRV || f->type == F_PTR || f->type == F_ARRAY;
    const void *pointer = NULL;
    if (points)
        memcpy(&pointer, at, sizeof pointer);
    switch (f->type) {
    case F_INT:
    case F_BYTES:
        if (!all_zero(at, f->size))
            put_field(out, f->tag, at, f->size);
        break;
    case F_CHARS:
        if (at[0] != '\0')
            put_field(out, f->tag, at, strnlen(at, f->size - 1));
        break;
    case F_STR:
        if (pointer != NULL)
            put_field(out, f->tag, pointer, strlen(pointer));
        break;
    case F_STRV:
        if (pointer != NULL)
            encode_strings(out, f, pointer);
        break;
    case F_SUB:
        if (!all_zero(at, f->sub->size))
            encode_rows(out, f, at, 1);
        break;
    case F_PTR:
        if (pointer != NULL)
            encode_rows(out, f, pointer, 1);
        break;
    case F_ARRAY:
        encode_rows(out, f, pointer, load_len(base, f));
        break;
    case F_ROWS:
        encode_rows(out, f, at, load_len(base, f));
        break;
    }
}

static void encode_struct(struct strbuf *out, const void *base, const struct schema *s)
{
    for (size_t i = 0; i < s->fields_len; i++)
        encode_field(out, base, &s->fields[i]);
}

void codec_encode(struct strbuf *out, const struct record *r)
{
    encode_struct(out, r, &record);
}

/* --- decoding --- */

struct reader {
    const char *bytes;
    size_t len;
    size_t at;
    size_t origin; /* of bytes[0] in the whole record, for messages */
};

static int bad(struct err *e, const struct reader *r, const char *what)
{
    return err_set(e, -EINVAL, "record is damaged at byte %zu: %s", r->origin + r->at, what);
}

static int decode_struct(struct reader *r, void *base, const struct schema *s, struct err *e);

static int decode_int(char *at, const struct field *f, struct reader *v, struct err *e)
{
    if (v->len != f->size)
        return bad(e, v, "an integer has another size");
    uint64_t value = load_int(v->bytes, f->size);
    if (f->max != 0 && value > f->max)
        return bad(e, v, "a value is out of range");
    memcpy(at, v->bytes, f->size);
    return 0;
}

static int decode_str(char *at, struct reader *v, struct err *e)
{
    char *old;
    memcpy(&old, at, sizeof old);
    if (old != NULL)
        return bad(e, v, "a text stands twice");
    if (memchr(v->bytes, '\0', v->len) != NULL)
        return bad(e, v, "a text holds a zero byte");
    char *copy = mem_strndup(v->bytes, v->len);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(at, &copy, sizeof copy);
    return 0;
}

static int decode_strings(char *at, const struct field *f, struct reader *v, struct err *e)
{
    char **old;
    memcpy(&old, at, sizeof old);
    size_t count = 0;
    for (size_t i = 0; i < v->len; i++)
        count += v->bytes[i] == '\0';
    if (old != NULL || count > f->max || (v->len > 0 && v->bytes[v->len - 1] != '\0'))
        return bad(e, v, "a list of texts is not one");
    char **list = mem_alloc(count + 1, sizeof *list);
    if (list == NULL)
        return -ENOMEM;
    memcpy(at, &list, sizeof(char **)); /* owned by the record from here on, also half filled */
    const char *text = v->bytes;
    for (size_t i = 0; i < count; i++) {
        list[i] = mem_strdup(text);
        if (list[i] == NULL)
            return -ENOMEM;
        text += strlen(text) + 1;
    }
    return 0;
}

static int decode_pointer(char *at, const struct field *f, struct reader *v, struct err *e)
{
    void *old;
    memcpy(&old, at, sizeof old);
    if (old != NULL)
        return bad(e, v, "a part stands twice");
    void *part = mem_alloc(1, f->sub->size);
    if (part == NULL)
        return -ENOMEM;
    memcpy(at, &part, sizeof part);
    return decode_struct(v, part, f->sub, e);
}

/* One more row of an array or of rows in place. */
static int decode_row(char *base, const struct field *f, struct reader *v, struct err *e)
{
    size_t len = load_len(base, f);
    if (len >= f->max)
        return bad(e, v, "too many rows");
    char *at = base + f->offset;
    char *rows = at;
    if (f->type == F_ARRAY) {
        memcpy(&rows, at, sizeof rows);
        size_t cap = len;
        /* Grows by powers of two; the capacity follows from the length. */
        if ((len & (len - 1)) == 0) {
            int r = mem_grow(&rows, &cap, len == 0 ? 1 : 2 * len, f->sub->size);
            if (r < 0)
                return r;
            memcpy(at, &rows, sizeof rows);
        }
        memset(rows + len * f->sub->size, 0, f->sub->size);
    }
    uint64_t more = len + 1;
    memcpy(base + f->len_offset, &more, f->len_size);
    return decode_struct(v, rows + len * f->sub->size, f->sub, e);
}

static int decode_field(char *base, const struct field *f, struct reader *v, struct err *e)
{
    char *at = base + f->offset;
    switch (f->type) {
    case F_INT:
        return decode_int(at, f, v, e);
    case F_BYTES:
        if (v->len != f->size)
            return bad(e, v, "a block has another size");
        memcpy(at, v->bytes, f->size);
        return 0;
    case F_CHARS:
        if (v->len >= f->size || memchr(v->bytes, '\0', v->len) != NULL)
            return bad(e, v, "a name is too long");
        memcpy(at, v->bytes, v->len);
        at[v->len] = '\0';
        return 0;
    case F_STR:
        return decode_str(at, v, e);
    case F_STRV:
        return decode_strings(at, f, v, e);
    case F_SUB:
        return decode_struct(v, at, f->sub, e);
    case F_PTR:
        return decode_pointer(at, f, v, e);
    case F_ARRAY:
    case F_ROWS:
        return decode_row(base, f, v, e);
    }
    return bad(e, v, "unknown type of field");
}

static const struct field *find_field(const struct schema *s, uint16_t tag)
{
    for (size_t i = 0; i < s->fields_len; i++)
        if (s->fields[i].tag == tag)
            return &s->fields[i];
    return NULL;
}

static int decode_struct(struct reader *r, void *base, const struct schema *s, struct err *e)
{
    while (r->at < r->len) {
        if (r->len - r->at < 6)
            return bad(e, r, "cut off");
        uint16_t tag = (uint16_t)load_int(r->bytes + r->at, 2);
        size_t len = (size_t)load_int(r->bytes + r->at + 2, 4);
        r->at += 6;
        if (len > r->len - r->at)
            return bad(e, r, "a field is longer than the record");
        const struct field *f = find_field(s, tag);
        if (f == NULL && (tag & TAG_MUST) != 0)
            return bad(e, r, "a newer version wrote it");
        struct reader value = {.bytes = r->bytes + r->at, .len = len, .origin = r->origin + r->at};
        int res = f == NULL ? 0 : decode_field(base, f, &value, e);
        if (res < 0)
            return res;
        r->at += len;
    }
    return 0;
}

/* What a kind can not do without. */
static int check_kind(const struct record *r, struct err *e)
{
    bool ok = record_kind_name(r->kind) != NULL;
    ok = ok && (r->kind != REC_CONFIG || r->config != NULL);
    ok = ok && (r->kind != REC_NODE || r->node != NULL);
    ok = ok && (r->kind != REC_JOB_SUBMIT || (r->spec != NULL && r->spec->argv != NULL));
    ok = ok && (r->kind != REC_JOB_START || r->grants != NULL);
    if (!ok)
        return err_set(e, -EINVAL, "record %llu of kind %d lacks its content", (unsigned long long)r->seq,
                       (int)r->kind);
    return 0;
}

int codec_decode(enum record_kind kind, uint64_t seq, int64_t time_ms, const void *bytes, size_t len,
                 struct record *ret, struct err *e)
{
    struct record r = {0};
    struct reader reader = {.bytes = bytes, .len = len};
    int res = decode_struct(&reader, &r, &record, e);
    r.kind = kind;
    r.seq = seq;
    r.time_ms = time_ms;
    if (res == 0)
        res = check_kind(&r, e);
    if (res < 0) {
        record_done(&r);
        return res;
    }
    *ret = r;
    return 0;
}
