/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/spec.h"

#include "base/mem.h"
#include "base/units.h"
#include "abi/runner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_U32, KIND_U64, KIND_I64, KIND_TEXT };

struct field {
    const char *key;
    enum kind kind;
    size_t offset;
    int64_t low, high; /* of numbers */
    bool required;
};

#define U32(key, low, high, required)                                          \
    {                                                                          \
#key, KIND_U32, offsetof(struct runner_spec, key), low, high, required \
    }
#define TEXT(key, required)                                                \
    {                                                                      \
#key, KIND_TEXT, offsetof(struct runner_spec, key), 0, 0, required \
    }

static const struct field fields[] = {
    {"job", KIND_U64, offsetof(struct runner_spec, job), 1, INT64_MAX, true},
    U32(attempt, 1, UINT32_MAX, true),
    U32(uid, 0, UINT32_MAX, true),
    U32(gid, 0, UINT32_MAX, true),
    U32(umask, 0, 0777, true),
    U32(world, 1, 1000000, true),
    U32(nodes, 1, 100000, true),
    U32(node_rank, 0, 99999, true),
    U32(master_port, 0, 65535, true),
    U32(log_files, 0, 1000, true),
    {"log_bytes", KIND_U64, offsetof(struct runner_spec, log_bytes), 0, INT64_MAX, true},
    {"grace_ms", KIND_I64, offsetof(struct runner_spec, grace_ms), 0, INT64_C(1) << 40, true},
    TEXT(name, false),
    TEXT(user, false),
    TEXT(tenant, false),
    TEXT(queue, false),
    TEXT(node, false),
    TEXT(state, true),
    TEXT(cwd, true),
    TEXT(script, false),
    TEXT(master_addr, true),
    TEXT(cgroup, true),
    TEXT(tag, true),
    TEXT(simgpu, false),
    TEXT(simgpu_lib, false),
};
#define FIELDS (sizeof fields / sizeof fields[0])

static void free_list(char **list, size_t len)
{
    for (size_t i = 0; i < len; i++)
        mem_free(list[i]);
    mem_free(list);
}

void runner_spec_done(struct runner_spec *s)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (fields[i].kind == KIND_TEXT)
            mem_free(*(char **)(void *)((char *)s + fields[i].offset));
    free_list(s->argv, s->argv_len);
    free_list(s->env, s->env_len);
    for (size_t i = 0; i < s->workers_len; i++)
        mem_free(s->workers[i].gpus);
    mem_free(s->workers);
    *s = (struct runner_spec){0};
}

static void write_text(struct strbuf *out, const char *key, const char *value)
{
    strbuf_puts(out, key);
    strbuf_putc(out, '=');
    strbuf_puts(out, value);
    strbuf_putc(out, '\0');
}

void runner_spec_write(const struct runner_spec *s, struct strbuf *out)
{
    strbuf_add(out, RUNNER_SPEC_FIRST, sizeof RUNNER_SPEC_FIRST);
    for (size_t i = 0; i < FIELDS; i++) {
        const struct field *f = &fields[i];
        const void *at = (const char *)s + f->offset;
        char number[32];
        const char *value = number;
        if (f->kind == KIND_U32)
            (void)snprintf(number, sizeof number, "%" PRIu32, *(const uint32_t *)at);
        else if (f->kind == KIND_U64)
            (void)snprintf(number, sizeof number, "%" PRIu64, *(const uint64_t *)at);
        else if (f->kind == KIND_I64)
            (void)snprintf(number, sizeof number, "%" PRId64, *(const int64_t *)at);
        else
            value = *(char *const *)at;
        if (value != NULL)
            write_text(out, f->key, value);
    }
    for (size_t i = 0; i < s->argv_len; i++)
        write_text(out, "arg", s->argv[i]);
    for (size_t i = 0; i < s->env_len; i++)
        write_text(out, "env", s->env[i]);
    for (size_t i = 0; i < s->workers_len; i++) {
        const struct runner_worker *w = &s->workers[i];
        strbuf_printf(out, "worker=%" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %s", w->rank,
                      w->cpu_milli, w->mem_mib, w->gpu_milli, w->gpu_mem_mib,
                      w->gpus != NULL && w->gpus[0] != '\0' ? w->gpus : "-");
        strbuf_putc(out, '\0');
    }
    strbuf_add(out, "end=", 5);
}

static int parse_number(const struct field *f, const char *value, void *at, struct err *e)
{
    int64_t number;
    int r = units_parse_int(value, f->low, f->high, &number, e);
    if (r < 0) {
        (void)err_prefix(e, "spec key '%s'", f->key);
        return r;
    }
    if (f->kind == KIND_U32)
        *(uint32_t *)at = (uint32_t)number;
    else if (f->kind == KIND_U64)
        *(uint64_t *)at = (uint64_t)number;
    else
        *(int64_t *)at = number;
    return 0;
}

static int parse_field(const struct field *f, const char *value, struct runner_spec *s, struct err *e)
{
    void *at = (char *)s + f->offset;
    if (f->kind != KIND_TEXT)
        return parse_number(f, value, at, e);
    char **text = at;
    *text = mem_strdup(value);
    return *text != NULL ? 0 : err_set(e, -ENOMEM, "no memory for the spec");
}

static int append(char ***list, size_t *len, size_t *cap, const char *value, struct err *e)
{
    if (mem_grow(list, cap, *len + 2, sizeof **list) < 0 || ((*list)[*len] = mem_strdup(value)) == NULL)
        return err_set(e, -ENOMEM, "no memory for the spec");
    (*list)[++*len] = NULL;
    return 0;
}

static int parse_worker(const char *value, struct runner_spec *s, struct err *e)
{
    static const char *const names[] = {"rank", "cpu_milli", "mem_mib", "gpu_milli", "gpu_mem_mib"};
    static const int64_t high[] = {999999, UINT32_MAX, INT64_MAX >> 21, 1000, UINT32_MAX};
    int64_t numbers[5];
    for (unsigned i = 0; i < 5; i++) {
        char word[24];
        size_t len = strcspn(value, " ");
        if (len >= sizeof word || value[len] != ' ')
            return err_set(e, -EINVAL, "spec key 'worker': field %s of \"%.80s\" is not a number", names[i], value);
        memcpy(word, value, len);
        word[len] = '\0';
        int r = units_parse_int(word, 0, high[i], &numbers[i], e);
        if (r < 0) {
            (void)err_prefix(e, "spec key 'worker', field %s", names[i]);
            return r;
        }
        value += len + 1;
    }
    if (value[0] == '\0' || strchr(value, ' ') != NULL)
        return err_set(e, -EINVAL, "spec key 'worker': '%.80s' is not a list of cards (uuids joined by commas, or -)",
                       value);
    if (mem_grow(&s->workers, &s->workers_cap, s->workers_len + 1, sizeof *s->workers) < 0)
        return err_set(e, -ENOMEM, "no memory for the spec");
    struct runner_worker *w = &s->workers[s->workers_len];
    *w = (struct runner_worker){
        .rank = (uint32_t)numbers[0],
        .cpu_milli = (uint32_t)numbers[1],
        .mem_mib = (uint64_t)numbers[2],
        .gpu_milli = (uint32_t)numbers[3],
        .gpu_mem_mib = (uint32_t)numbers[4],
        .gpus = mem_strdup(strcmp(value, "-") == 0 ? "" : value),
    };
    if (w->gpus == NULL)
        return err_set(e, -ENOMEM, "no memory for the spec");
    s->workers_len++;
    return 0;
}

static const struct field *find_field(const char *key, size_t len, size_t *index)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (strlen(fields[i].key) == len && memcmp(fields[i].key, key, len) == 0) {
            *index = i;
            return &fields[i];
        }
    return NULL;
}

/* One string "key=value". */
static int parse_string(const char *string, struct runner_spec *s, bool seen[FIELDS], struct err *e)
{
    const char *equal = strchr(string, '=');
    if (equal == NULL)
        return err_set(e, -EINVAL, "spec: '%.80s' is not key=value", string);
    size_t len = (size_t)(equal - string), index = 0;
    const char *value = equal + 1;
    const struct field *f = find_field(string, len, &index);
    if (f != NULL) {
        if (seen[index])
            return err_set(e, -EINVAL, "spec key '%s' is given twice", f->key);
        seen[index] = true;
        return parse_field(f, value, s, e);
    }
    if (len == 3 && memcmp(string, "arg", 3) == 0)
        return append(&s->argv, &s->argv_len, &s->argv_cap, value, e);
    if (len == 3 && memcmp(string, "env", 3) == 0) {
        if (value[0] == '=' || strchr(value, '=') == NULL)
            return err_set(e, -EINVAL, "spec key 'env': '%.80s' is not NAME=value", value);
        return append(&s->env, &s->env_len, &s->env_cap, value, e);
    }
    if (len == 6 && memcmp(string, "worker", 6) == 0)
        return parse_worker(value, s, e);
    return err_set(e, -EINVAL, "spec key '%.*s' is not known to this runner (version %d)", (int)(len < 80 ? len : 80),
                   string, RUNNER_VERSION);
}

/* What the parts must be together; fills in the texts that may be missing. */
static int check_whole(struct runner_spec *s, const bool seen[FIELDS], struct err *e)
{
    for (size_t i = 0; i < FIELDS; i++) {
        if (seen[i])
            continue;
        if (fields[i].required)
            return err_set(e, -EINVAL, "spec key '%s' is missing", fields[i].key);
        char **text = (char **)(void *)((char *)s + fields[i].offset);
        if (text != &s->script && (*text = mem_strdup("")) == NULL)
            return err_set(e, -ENOMEM, "no memory for the spec");
    }
    if (s->workers_len == 0)
        return err_set(e, -EINVAL, "spec key 'worker' is missing");
    for (size_t i = 0; i < s->workers_len; i++) {
        if (s->workers[i].rank >= s->world)
            return err_set(e, -EINVAL, "spec: rank %" PRIu32 " is not below world %" PRIu32, s->workers[i].rank,
                           s->world);
        if (i > 0 && s->workers[i].rank <= s->workers[i - 1].rank)
            return err_set(e, -EINVAL, "spec: rank %" PRIu32 " does not follow rank %" PRIu32 "; ranks rise",
                           s->workers[i].rank, s->workers[i - 1].rank);
    }
    if (s->node_rank >= s->nodes)
        return err_set(e, -EINVAL, "spec: node_rank %" PRIu32 " is not below nodes %" PRIu32, s->node_rank, s->nodes);
    if (s->script == NULL && (s->argv_len == 0 || s->argv[0][0] == '\0'))
        return err_set(e, -EINVAL, "spec: there is neither a script nor a command (key 'arg')");
    if (s->cwd[0] != '/')
        return err_set(e, -EINVAL, "spec key 'cwd': '%.80s' is not an absolute path", s->cwd);
    return 0;
}

static int parse(const char *bytes, size_t len, struct runner_spec *s, struct err *e)
{
    bool seen[FIELDS] = {false};
    size_t at = sizeof RUNNER_SPEC_FIRST;
    if (len < at || memcmp(bytes, RUNNER_SPEC_FIRST, at) != 0)
        return err_set(e, -EINVAL, "spec: does not begin with '%s'", RUNNER_SPEC_FIRST);
    static const char end[] = "end=";
    if (len < at + sizeof end || memcmp(bytes + len - sizeof end, end, sizeof end) != 0)
        return err_set(e, -EINVAL, "spec: is cut (does not end with '%s')", end);
    while (at < len - sizeof end) {
        int r = parse_string(bytes + at, s, seen, e);
        if (r < 0)
            return r;
        at += strlen(bytes + at) + 1; /* the last byte is a zero: never beyond */
    }
    if (at != len - sizeof end) /* e.g. "x=end=" as the last string */
        return err_set(e, -EINVAL, "spec: is cut (does not end with '%s')", end);
    return check_whole(s, seen, e);
}

int runner_spec_parse(const char *bytes, size_t len, struct runner_spec *ret, struct err *e)
{
    struct runner_spec s = {0};
    int r = len > RUNNER_SPEC_BYTES
                ? err_set(e, -EINVAL, "spec: %zu bytes; at most %u are allowed", len, RUNNER_SPEC_BYTES)
                : parse(bytes, len, &s, e);
    if (r < 0) {
        runner_spec_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}
