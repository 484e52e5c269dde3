/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/view.h"

#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *get_str(const json_t *v, const char *key)
{
    const char *s = json_string_value(json_object_get(v, key));
    return s != NULL ? s : "";
}

int64_t get_int(const json_t *v, const char *key)
{
    return json_integer_value(json_object_get(v, key));
}

bool get_bool(const json_t *v, const char *key)
{
    return json_is_true(json_object_get(v, key));
}

int64_t get_time(const json_t *v, const char *key)
{
    int64_t ms = 0;
    (void)units_parse_time(get_str(v, key), &ms, NULL);
    return ms;
}

int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void format_local(int64_t ms, char out[32])
{
    struct tm tm;
    time_t seconds = (time_t)(ms / 1000);
    if (ms <= 0 || localtime_r(&seconds, &tm) == NULL || strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        (void)snprintf(out, 32, "-");
}

void format_milli(int64_t milli, char out[32])
{
    int len = snprintf(out, 32, "%" PRId64 ".%03d", milli / 1000, (int)(milli % 1000));
    while (len > 0 && out[len - 1] == '0')
        out[--len] = '\0';
    if (len > 0 && out[len - 1] == '.')
        out[len - 1] = '\0';
}

/* Thousandths of a card as a percentage: 305 -> "30.5". */
static void format_percent(int64_t milli, char out[32])
{
    format_milli(milli * 100, out);
}

void format_gpus(const json_t *job, char out[64])
{
    int64_t gpus = get_int(job, "gpus");
    int64_t share = get_int(job, "share_milli");
    int64_t workers = get_int(job, "workers");
    char each[40] = "-";
    if (gpus > 0) {
        (void)snprintf(each, sizeof each, "%" PRId64, gpus);
    } else if (share > 0) {
        char percent[32];
        format_percent(share, percent);
        (void)snprintf(each, sizeof each, "%s%%", percent);
    }
    if (workers > 1 && (gpus > 0 || share > 0))
        (void)snprintf(out, 64, "%" PRId64 "x%s", workers, each);
    else
        (void)snprintf(out, 64, "%s", each);
}

/* --- codes in words --- */

struct word {
    const char *code;
    enum msg_id id;
};

static const char *word_for(const struct word *words, size_t len, const char *code)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(words[i].code, code) == 0)
            return msg(words[i].id);
    return code; /* a newer daemon may know more */
}
#define WORD_FOR(words, code) word_for((words), sizeof(words) / sizeof(words)[0], (code))

const char *state_text(const char *state)
{
    static const struct word words[] = {
        {"queued", MSG_STATE_QUEUED},
        {"starting", MSG_STATE_STARTING},
        {"running", MSG_STATE_RUNNING},
        {"succeeded", MSG_STATE_SUCCEEDED},
        {"failed", MSG_STATE_FAILED},
        {"cancelled", MSG_STATE_CANCELLED},
        {"up", MSG_NODE_UP},
        {"down", MSG_NODE_DOWN},
        {"gone", MSG_NODE_GONE},
    };
    return WORD_FOR(words, state);
}

void add_cards_line(struct strbuf *b, const json_t *status)
{
    char name[256];
    (void)snprintf(name, sizeof name, "%s", get_str(status, "cards"));
    char *from = name;
    if (!get_bool(status, "simulated")) {
        ADD(b, CARDS_LINE, from);
        return;
    }
    if (strncmp(from, "simulated ", 10) == 0) /* "simulated (dgx-a100)": the line says that already */
        from += 10;
    size_t len = strlen(from);
    if (len > 2 && from[0] == '(' && from[len - 1] == ')') {
        from[len - 1] = '\0';
        from++;
    }
    ADD(b, SIMULATED_LINE, from);
}

const char *state_word(const json_t *job)
{
    return get_bool(job, "stopping") ? msg(MSG_STATE_STOPPING) : state_text(get_str(job, "state"));
}

const char *cause_text(const char *cause)
{
    static const struct word words[] = {
        {"exit", MSG_CAUSE_EXIT},
        {"cancelled", MSG_CAUSE_CANCEL},
        {"time-limit", MSG_CAUSE_TIME_LIMIT},
        {"worker-failed", MSG_CAUSE_WORKER_FAILED},
        {"launch-failed", MSG_CAUSE_LAUNCH_FAILED},
        {"lost", MSG_CAUSE_LOST},
        {"out-of-memory", MSG_CAUSE_OOM},
        {"node-gone", MSG_CAUSE_NODE_GONE},
        {"requeued", MSG_CAUSE_REQUEUE},
        {"dependency", MSG_CAUSE_DEPENDENCY},
    };
    return WORD_FOR(words, cause);
}

const char *event_text(const char *event)
{
    static const struct word words[] = {
        {"config", MSG_EVENT_CONFIG},
        {"node", MSG_EVENT_NODE},
        {"node-state", MSG_EVENT_NODE_STATE},
        {"submitted", MSG_EVENT_SUBMITTED},
        {"updated", MSG_EVENT_UPDATED},
        {"cancel-requested", MSG_EVENT_CANCEL_REQUESTED},
        {"starting", MSG_EVENT_STARTING},
        {"running", MSG_EVENT_RUNNING},
        {"worker-exited", MSG_EVENT_WORKER_EXITED},
        {"stopping", MSG_EVENT_STOPPING},
        {"requeued", MSG_EVENT_REQUEUED},
        {"requeue-requested", MSG_EVENT_REQUEUE_REQUESTED},
        {"ended", MSG_EVENT_ENDED},
        {"restored", MSG_EVENT_RESTORED},
    };
    return WORD_FOR(words, event);
}

const char *level_text(const char *level)
{
    static const struct word words[] = {
        {"any", MSG_LEVEL_ANY},
        {"nvlink", MSG_LEVEL_NVLINK},
        {"machine", MSG_LEVEL_MACHINE},
        {"rack", MSG_LEVEL_RACK},
    };
    return WORD_FOR(words, level);
}

enum unit { UNIT_COUNT, UNIT_MILLI, UNIT_PERCENT, UNIT_MIB };

static const struct reason_word {
    const char *code;
    enum msg_id id;
    enum unit unit;
} reason_words[] = {
    {"gpus", MSG_REASON_GPUS, UNIT_COUNT},
    {"gpu-share", MSG_REASON_GPU_SHARE, UNIT_PERCENT},
    {"gpu-mem", MSG_REASON_GPU_MEM, UNIT_MIB},
    {"gpu-model", MSG_REASON_GPU_MODEL, UNIT_COUNT},
    {"cpu", MSG_REASON_CPU, UNIT_MILLI},
    {"mem", MSG_REASON_MEM, UNIT_MIB},
    {"level", MSG_REASON_LEVEL, UNIT_COUNT},
    {"fragmented", MSG_REASON_FRAGMENTED, UNIT_COUNT},
    {"workers", MSG_REASON_WORKERS, UNIT_COUNT},
    {"tenant-gpus", MSG_REASON_TENANT_GPUS, UNIT_MILLI},
    {"tenant-jobs", MSG_REASON_TENANT_JOBS, UNIT_COUNT},
    {"user-gpus", MSG_REASON_USER_GPUS, UNIT_MILLI},
    {"user-jobs", MSG_REASON_USER_JOBS, UNIT_COUNT},
    {"queue-gpus", MSG_REASON_QUEUE_GPUS, UNIT_MILLI},
    {"queue-jobs", MSG_REASON_QUEUE_JOBS, UNIT_COUNT},
    {"reserved", MSG_REASON_RESERVED, UNIT_COUNT},
    {"backoff", MSG_REASON_BACKOFF, UNIT_COUNT},
    {"held", MSG_REASON_HELD, UNIT_COUNT},
    {"begin", MSG_REASON_BEGIN, UNIT_COUNT},
    {"after", MSG_REASON_AFTER, UNIT_COUNT},
    {"behind", MSG_REASON_BEHIND, UNIT_COUNT},
    {"nodes", MSG_REASON_NODES, UNIT_COUNT},
    {"recovering", MSG_REASON_RECOVERING, UNIT_COUNT},
};

static const struct reason_word *reason_find(const char *code)
{
    for (size_t i = 0; i < sizeof reason_words / sizeof reason_words[0]; i++)
        if (strcmp(reason_words[i].code, code) == 0)
            return &reason_words[i];
    return NULL;
}

void reason_amount(const char *code, int64_t amount, char out[32])
{
    const struct reason_word *w = reason_find(code);
    switch (w != NULL ? w->unit : UNIT_COUNT) {
    case UNIT_COUNT:
        (void)snprintf(out, 32, "%" PRId64, amount);
        break;
    case UNIT_MILLI:
        format_milli(amount, out);
        break;
    case UNIT_PERCENT: {
        char number[32];
        format_percent(amount, number);
        (void)snprintf(out, 32, "%.30s%%", number);
        break;
    }
    case UNIT_MIB:
        units_format_mib(amount > 0 ? (uint64_t)amount : 0, out);
        break;
    }
}

static const char *resource_text(const char *resource)
{
    static const struct word words[] = {
        {"gpus", MSG_RESOURCE_GPUS}, {"cpu", MSG_RESOURCE_CPU}, {"mem", MSG_RESOURCE_MEM}};
    return WORD_FOR(words, resource);
}

void add_reason(struct strbuf *b, const json_t *reason)
{
    const char *code = get_str(reason, "code");
    const json_t *args = json_object_get(reason, "args");
    const struct reason_word *w = reason_find(code);
    if (w == NULL) {
        strbuf_puts(b, code);
        return;
    }
    char asked[32];
    char free_text[32];
    char total[32];
    char job[32];
    char until[32];
    reason_amount(code, get_int(args, "asked"), asked);
    reason_amount(code, get_int(args, "free"), free_text);
    reason_amount(code, get_int(args, "total"), total);
    (void)snprintf(job, sizeof job, "%" PRId64, get_int(args, "job"));
    format_local(get_time(args, "until"), until);
    const char *name = get_str(args, "name");
    if (name[0] == '\0' && strcmp(code, "level") == 0)
        name = level_text(get_str(args, "level"));
    else if (name[0] == '\0' && strcmp(code, "gpu-model") == 0)
        name = msg(MSG_ANY);
    else if (strcmp(code, "workers") == 0)
        name = resource_text(name);
    const char *all[] = {asked, free_text, total, name, job, until};
    add_strings(b, w->id, all, sizeof all / sizeof all[0]);
}

/* --- columns of job lists --- */

typedef void cell_fn(struct strbuf *b, const json_t *job);

static void cell_id(struct strbuf *b, const json_t *job)
{
    strbuf_i64(b, get_int(job, "id"));
}

#define TEXT_CELL(name)                                          \
    static void cell_##name(struct strbuf *b, const json_t *job) \
    {                                                            \
        const char *s = get_str(job, #name);                     \
        strbuf_puts(b, s[0] != '\0' ? s : "-");                  \
    }
TEXT_CELL(name)
TEXT_CELL(user)
TEXT_CELL(tenant)
TEXT_CELL(queue)

#define NUMBER_CELL(name)                                        \
    static void cell_##name(struct strbuf *b, const json_t *job) \
    {                                                            \
        strbuf_i64(b, get_int(job, #name));                      \
    }
NUMBER_CELL(priority)
NUMBER_CELL(workers)
NUMBER_CELL(attempt)

#define TIME_CELL(name)                                          \
    static void cell_##name(struct strbuf *b, const json_t *job) \
    {                                                            \
        char text[32];                                           \
        format_local(get_time(job, #name), text);                \
        strbuf_puts(b, text);                                    \
    }
TIME_CELL(submitted_at)
TIME_CELL(started_at)
TIME_CELL(ended_at)

static void cell_state(struct strbuf *b, const json_t *job)
{
    strbuf_puts(b, state_word(job));
}

static void cell_gpus(struct strbuf *b, const json_t *job)
{
    char text[64];
    format_gpus(job, text);
    strbuf_puts(b, text);
}

static void cell_cpus(struct strbuf *b, const json_t *job)
{
    char text[32];
    format_milli(get_int(job, "cpu_milli"), text);
    strbuf_puts(b, get_int(job, "cpu_milli") > 0 ? text : "-");
}

static void cell_mem(struct strbuf *b, const json_t *job)
{
    char text[32];
    units_format_mib((uint64_t)get_int(job, "mem_mib"), text);
    strbuf_puts(b, get_int(job, "mem_mib") > 0 ? text : "-");
}

/* How long it has run, or ran, or has waited. */
static void cell_time(struct strbuf *b, const json_t *job)
{
    int64_t from = get_time(job, "started_at");
    int64_t to = get_time(job, "ended_at");
    const char *state = get_str(job, "state");
    if (from == 0 || strcmp(state, "queued") == 0)
        from = get_time(job, "submitted_at");
    if (to == 0)
        to = now_ms();
    char text[32];
    units_format_duration(to > from ? (to - from) / 1000 * 1000 : 0, text);
    strbuf_puts(b, to - from < 1000 ? "0s" : text);
}

static void cell_limit(struct strbuf *b, const json_t *job)
{
    char text[32];
    units_format_duration(get_int(job, "time_limit_ms"), text);
    strbuf_puts(b, get_int(job, "time_limit_ms") > 0 ? text : "-");
}

static void cell_exit_status(struct strbuf *b, const json_t *job)
{
    if (json_is_integer(json_object_get(job, "exit_status")))
        strbuf_i64(b, get_int(job, "exit_status"));
    else
        strbuf_putc(b, '-');
}

static void cell_cause(struct strbuf *b, const json_t *job)
{
    const char *cause = get_str(job, "cause");
    strbuf_puts(b, cause[0] != '\0' ? cause_text(cause) : "-");
}

static void cell_nodes(struct strbuf *b, const json_t *job)
{
    const json_t *nodes = json_object_get(job, "nodes");
    size_t len = json_array_size(nodes);
    for (size_t i = 0; i < len && i < 4; i++)
        strbuf_printf(b, "%s%s", i > 0 ? "," : "", json_string_value(json_array_get(nodes, i)));
    if (len > 4)
        strbuf_printf(b, ",+%zu", len - 4);
    if (len == 0)
        strbuf_putc(b, '-');
}

static void cell_reason(struct strbuf *b, const json_t *job)
{
    const json_t *reason = json_object_get(job, "reason");
    if (json_is_object(reason))
        add_reason(b, reason);
    else
        strbuf_putc(b, '-');
}

static void cell_where(struct strbuf *b, const json_t *job)
{
    if (json_is_object(json_object_get(job, "reason")))
        cell_reason(b, job);
    else
        cell_nodes(b, job);
}

static const struct column {
    const char *name; /* as in JSON where there is one */
    enum msg_id title;
    bool right;
    cell_fn *cell;
} columns[] = {
    {"id", MSG_COL_ID, true, cell_id},
    {"name", MSG_COL_NAME, false, cell_name},
    {"state", MSG_COL_STATE, false, cell_state},
    {"user", MSG_COL_USER, false, cell_user},
    {"tenant", MSG_COL_TENANT, false, cell_tenant},
    {"queue", MSG_COL_QUEUE, false, cell_queue},
    {"priority", MSG_COL_PRIORITY, true, cell_priority},
    {"gpus", MSG_COL_GPUS, true, cell_gpus},
    {"workers", MSG_COL_WORKERS, true, cell_workers},
    {"cpus", MSG_COL_CPUS, true, cell_cpus},
    {"mem", MSG_COL_MEM, true, cell_mem},
    {"time", MSG_COL_TIME, true, cell_time},
    {"time_limit", MSG_COL_LIMIT, true, cell_limit},
    {"submitted_at", MSG_COL_SUBMITTED, false, cell_submitted_at},
    {"started_at", MSG_COL_STARTED, false, cell_started_at},
    {"ended_at", MSG_COL_ENDED, false, cell_ended_at},
    {"exit_status", MSG_COL_EXIT, true, cell_exit_status},
    {"cause", MSG_COL_CAUSE, false, cell_cause},
    {"attempt", MSG_COL_ATTEMPT, true, cell_attempt},
    {"nodes", MSG_COL_NODES, false, cell_nodes},
    {"reason", MSG_COL_REASON, false, cell_reason},
    {"where", MSG_COL_WHERE, false, cell_where},
};
#define COLUMNS_LEN (sizeof columns / sizeof columns[0])

static const struct column *column_find(const char *name, size_t len)
{
    for (size_t i = 0; i < COLUMNS_LEN; i++)
        if (strlen(columns[i].name) == len && strncmp(columns[i].name, name, len) == 0)
            return &columns[i];
    return NULL;
}

static int unknown_column(const char *name, size_t len, struct err *e)
{
    char cut[48];
    (void)snprintf(cut, sizeof cut, "%.*s", (int)(len < 40 ? len : 40), name);
    struct strbuf all = {0};
    struct strbuf text = {0};
    for (size_t i = 0; i < COLUMNS_LEN; i++)
        strbuf_printf(&all, "%s%s", i > 0 ? "," : "", columns[i].name);
    ADD(&text, UNKNOWN_COLUMN, cut, strbuf_str(&all));
    int rc = err_set(e, -EINVAL, "%s", strbuf_str(&text));
    strbuf_done(&all);
    strbuf_done(&text);
    return rc;
}

int jobs_check_format(const char *format, struct err *e)
{
    if (format == NULL || strcmp(format, "wide") == 0)
        return 0;
    if (strchr(format, '{') == NULL) {
        for (const char *p = format;; p++) {
            size_t len = strcspn(p, ",");
            if (column_find(p, len) == NULL)
                return unknown_column(p, len, e);
            p += len;
            if (*p == '\0')
                return 0;
        }
    }
    for (const char *p = strchr(format, '{'); p != NULL; p = strchr(p, '{')) {
        size_t len = strcspn(++p, "}");
        if (p[len] != '}' || column_find(p, len) == NULL)
            return unknown_column(p, len, e);
    }
    return 0;
}

static void write_template(struct strbuf *out, const json_t *job, const char *format)
{
    for (const char *p = format; *p != '\0'; p++) {
        size_t len = strcspn(p + 1, "}");
        const struct column *c = *p == '{' ? column_find(p + 1, len) : NULL;
        if (c != NULL) {
            c->cell(out, job);
            p += len + 1;
        } else if (p[0] == '\\' && (p[1] == 't' || p[1] == 'n')) {
            strbuf_putc(out, *++p == 't' ? '\t' : '\n');
        } else {
            strbuf_putc(out, *p);
        }
    }
    strbuf_putc(out, '\n');
}

void jobs_write(struct strbuf *out, const json_t *jobs, const char *format, bool ended)
{
    size_t i;
    json_t *job;
    if (format != NULL && strchr(format, '{') != NULL) {
        json_array_foreach(jobs, i, job) write_template(out, job, format);
        return;
    }
    if (format == NULL)
        format = ended ? "id,name,user,queue,state,gpus,time,exit_status,ended_at,cause"
                       : "id,name,user,queue,state,gpus,time,where";
    else if (strcmp(format, "wide") == 0)
        format = "id,name,user,tenant,queue,priority,state,gpus,workers,cpus,mem,time,time_limit,submitted_at,"
                 "started_at,attempt,exit_status,where";
    const struct column *chosen[64];
    size_t len = 0;
    uint64_t right = 0;
    for (const char *p = format; *p != '\0' && len < 64; p += strcspn(p, ","), p += *p == ',') {
        chosen[len] = column_find(p, strcspn(p, ","));
        if (chosen[len] == NULL)
            continue;
        right |= (uint64_t)chosen[len]->right << len;
        len++;
    }
    struct table t;
    table_init(&t, len, right);
    for (size_t c = 0; c < len; c++)
        table_add(&t, msg(chosen[c]->title));
    json_array_foreach(jobs, i, job)
    {
        for (size_t c = 0; c < len; c++) {
            struct strbuf b = {0};
            chosen[c]->cell(&b, job);
            table_add(&t, strbuf_str(&b));
            strbuf_done(&b);
        }
    }
    table_write(&t, out, 0);
    table_done(&t);
}
