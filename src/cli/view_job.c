/* SPDX-License-Identifier: Apache-2.0 */
/* The page of one job, and its explanation. */
#include "base/units.h"
#include "cli/view.h"
#include "config/types.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One line of the page: title, then the value. */
static void line(struct strbuf *out, enum msg_id title, const char *value)
{
    text_pad(out, msg(title), 12, false);
    strbuf_putc(out, ' ');
    text_add(out, value);
    strbuf_putc(out, '\n');
}

#define LINE(out, title, id, ...)              \
    do {                                       \
        struct strbuf b_ = {0};                \
        ADD(&b_, id, ##__VA_ARGS__);           \
        line((out), (title), strbuf_str(&b_)); \
        strbuf_done(&b_);                      \
    } while (0)

static void add_cards(struct strbuf *b, const json_t *job)
{
    char percent[32];
    char mem[32];
    format_milli(get_int(job, "share_milli") * 100, percent);
    units_format_mib((uint64_t)get_int(job, "share_mem_mib"), mem);
    if (get_int(job, "gpus") > 0)
        ADD(b, GPUS_WHOLE, (long long)get_int(job, "gpus"));
    else if (get_int(job, "share_milli") > 0 && get_int(job, "share_mem_mib") > 0)
        ADD(b, GPUS_SHARE, percent, mem);
    else if (get_int(job, "share_milli") > 0)
        ADD(b, GPUS_SHARE_ONLY, percent);
    else
        ADD(b, GPUS_NONE);
    if (get_str(job, "gpu_model")[0] != '\0')
        strbuf_printf(b, " (%s)", get_str(job, "gpu_model"));
}

static void write_request(struct strbuf *out, const json_t *job)
{
    char cpus[32];
    char mem[32];
    struct strbuf cards = {0};
    add_cards(&cards, job);
    format_milli(get_int(job, "cpu_milli"), cpus);
    units_format_mib((uint64_t)get_int(job, "mem_mib"), mem);
    const char *cpus_text = get_int(job, "cpu_milli") > 0 ? cpus : msg(MSG_ANY);
    const char *mem_text = get_int(job, "mem_mib") > 0 ? mem : msg(MSG_ANY);
    if (get_int(job, "workers") > 1)
        LINE(out, MSG_SHOW_REQUEST, SHOW_REQUEST_VALUE, (long long)get_int(job, "workers"), strbuf_str(&cards),
             cpus_text, mem_text);
    else
        LINE(out, MSG_SHOW_REQUEST, SHOW_REQUEST_ONE, strbuf_str(&cards), cpus_text, mem_text);
    strbuf_done(&cards);
}

static void write_command(struct strbuf *out, const json_t *job)
{
    struct strbuf b = {0};
    size_t i;
    json_t *word;
    json_array_foreach(json_object_get(job, "command"), i, word)
    {
        const char *s = json_string_value(word);
        bool plain = s != NULL && s[0] != '\0' && strpbrk(s, " \t\n'\"\\$`*?;&|<>()") == NULL;
        strbuf_printf(&b, plain ? "%s%s" : "%s'%s'", i > 0 ? " " : "", s != NULL ? s : "");
    }
    for (size_t k = 0; k < b.len; k++)
        if (b.data[k] == '\n')
            b.data[k] = ' ';
    line(out, MSG_SHOW_COMMAND, strbuf_str(&b));
    strbuf_done(&b);
}

static void write_times(struct strbuf *out, const json_t *job)
{
    static const struct {
        const char *key;
        enum msg_id title;
    } rows[] = {{"submitted_at", MSG_SHOW_SUBMITTED}, {"started_at", MSG_SHOW_STARTED}, {"ended_at", MSG_SHOW_ENDED}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        format_local(get_time(job, rows[i].key), text);
        if (get_time(job, rows[i].key) > 0)
            line(out, rows[i].title, text);
    }
    char limit[32];
    units_format_duration(get_int(job, "time_limit_ms"), limit);
    line(out, MSG_SHOW_LIMIT, get_int(job, "time_limit_ms") > 0 ? limit : msg(MSG_NONE));
}

static void write_placement(struct strbuf *out, const json_t *job)
{
    const json_t *rows = json_object_get(job, "placement");
    if (json_array_size(rows) == 0)
        return;
    struct table t;
    table_init(&t, 4, 1 | 4);
    table_add(&t, msg(MSG_COL_WORKER));
    table_add(&t, msg(MSG_COL_NODE));
    table_add(&t, msg(MSG_COL_CPUS));
    table_add(&t, msg(MSG_COL_GPUS));
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        char cpus[32];
        format_milli(get_int(row, "cpu_milli"), cpus);
        table_addf(&t, "%" PRId64, get_int(row, "worker"));
        table_add(&t, get_str(row, "node"));
        table_add(&t, get_int(row, "cpu_milli") > 0 ? cpus : "-");
        struct strbuf b = {0};
        size_t k;
        json_t *uuid;
        json_array_foreach(json_object_get(row, "gpus"), k, uuid)
            strbuf_printf(&b, "%s%s", k > 0 ? " " : "", json_string_value(uuid));
        int64_t milli = get_int(row, "milli");
        if (milli > 0 && milli < 1000) {
            char percent[32];
            char mem[32];
            format_milli(milli * 100, percent);
            units_format_mib((uint64_t)get_int(row, "gpu_mem_mib"), mem);
            strbuf_printf(&b, " (%s%%, %s)", percent, mem);
        }
        table_add(&t, b.len > 0 ? strbuf_str(&b) : "-");
        strbuf_done(&b);
    }
    strbuf_printf(out, "\n%s\n", msg(MSG_SHOW_PLACEMENT));
    table_write(&t, out, 0);
    table_done(&t);
}

static void write_exits(struct strbuf *out, const json_t *job)
{
    const json_t *rows = json_object_get(job, "exits");
    if (json_array_size(rows) == 0)
        return;
    struct table t;
    table_init(&t, 7, 1 | 2 | 4 | 16 | 32);
    static const enum msg_id titles[] = {MSG_COL_WORKER,   MSG_COL_CODE,     MSG_COL_SIGNAL, MSG_COL_CAUSE,
                                         MSG_COL_PEAK_MEM, MSG_COL_CPU_TIME, MSG_COL_DETAIL};
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        table_add(&t, msg(titles[i]));
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        char mem[32];
        char cpu[32];
        units_format_mib((uint64_t)get_int(row, "peak_mem_mib"), mem);
        units_format_duration(get_int(row, "cpu_ms"), cpu);
        table_addf(&t, "%" PRId64, get_int(row, "worker"));
        table_addf(&t, "%" PRId64, get_int(row, "code"));
        table_addf(&t, "%" PRId64, get_int(row, "signal"));
        table_add(&t, cause_text(get_str(row, "cause")));
        table_add(&t, get_int(row, "peak_mem_mib") > 0 ? mem : "-");
        table_add(&t, get_int(row, "cpu_ms") > 0 ? cpu : "-");
        table_add(&t, get_str(row, "detail"));
    }
    strbuf_printf(out, "\n%s\n", msg(MSG_SHOW_EXITS));
    table_write(&t, out, 0);
    table_done(&t);
}

static void write_timeline(struct strbuf *out, const json_t *job)
{
    const json_t *rows = json_object_get(job, "timeline");
    struct table t;
    table_init(&t, 5, 4);
    static const enum msg_id titles[] = {MSG_COL_TIME, MSG_COL_EVENT, MSG_COL_ATTEMPT, MSG_COL_CAUSE, MSG_COL_BY};
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        table_add(&t, msg(titles[i]));
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        char when[32];
        const char *cause = get_str(row, "cause");
        const char *by = get_str(row, "by");
        format_local(get_time(row, "time"), when);
        table_add(&t, when);
        table_add(&t, event_text(get_str(row, "event")));
        table_addf(&t, "%" PRId64, get_int(row, "attempt"));
        table_add(&t, cause[0] != '\0' ? cause_text(cause) : "-");
        table_add(&t, by[0] != '\0' ? by : "-");
    }
    strbuf_printf(out, "\n%s\n", msg(MSG_SHOW_TIMELINE));
    table_write(&t, out, 0);
    table_done(&t);
}

void job_write(struct strbuf *out, const json_t *job)
{
    char id[NAME_SIZE + 32];
    (void)snprintf(id, sizeof id, "%" PRId64 "  %s", get_int(job, "id"), get_str(job, "name"));
    line(out, MSG_SHOW_JOB, id);
    line(out, MSG_SHOW_STATE, state_word(job));
    if (get_bool(job, "simulated"))
        line(out, MSG_SHOW_SIMULATED, msg(MSG_SHOW_SIMULATED_VALUE));
    LINE(out, MSG_SHOW_OWNER, SHOW_OWNER_VALUE, get_str(job, "user"), get_str(job, "tenant"));
    LINE(out, MSG_SHOW_QUEUE, SHOW_QUEUE_VALUE, get_str(job, "queue"), (long long)get_int(job, "priority"));
    write_command(out, job);
    if (get_str(job, "cwd")[0] != '\0')
        line(out, MSG_SHOW_CWD, get_str(job, "cwd"));
    write_request(out, job);
    const char *level = get_str(job, "level");
    LINE(out, MSG_SHOW_LEVELS, SHOW_LEVELS_VALUE, level_text(get_str(job, "require")),
         level_text(get_str(job, "prefer")), level[0] != '\0' ? level_text(level) : "-");
    write_times(out, job);
    const json_t *reason = json_object_get(job, "reason");
    if (json_is_object(reason)) {
        struct strbuf b = {0};
        add_reason(&b, reason);
        line(out, MSG_SHOW_REASON, strbuf_str(&b));
        strbuf_done(&b);
    }
    if (json_is_integer(json_object_get(job, "exit_status")))
        LINE(out, MSG_SHOW_CAUSE, SHOW_CAUSE_VALUE, cause_text(get_str(job, "cause")),
             (long long)get_int(job, "exit_status"));
    write_placement(out, job);
    write_exits(out, job);
    write_timeline(out, job);
}

/* --- explain --- */

static void write_holders(struct strbuf *out, const json_t *reason)
{
    size_t i;
    json_t *h;
    json_array_foreach(json_object_get(reason, "holders"), i, h)
    {
        char amount[32];
        char until[32];
        reason_amount(get_str(reason, "code"), get_int(h, "amount"), amount);
        format_local(get_time(h, "until"), until);
        strbuf_puts(out, "      ");
        ADD(out, HELD_BY, (long long)get_int(h, "job"), get_str(h, "name"), get_str(h, "user"), amount);
        if (get_time(h, "until") > 0)
            ADD(out, HELD_UNTIL, until);
        strbuf_putc(out, '\n');
    }
}

/* "gpus 2", "time 1h": as the option would be written. */
static void write_change(struct strbuf *out, const json_t *change)
{
    const char *what = get_str(change, "change");
    const json_t *value = json_object_get(change, "value");
    char text[32];
    if (json_is_string(value))
        (void)snprintf(text, sizeof text, "%.31s", json_string_value(value));
    else if (strcmp(what, "cpus") == 0)
        format_milli(json_integer_value(value), text);
    else if (strcmp(what, "mem") == 0)
        units_format_mib((uint64_t)json_integer_value(value), text);
    else if (strcmp(what, "time") == 0)
        units_format_duration(json_integer_value(value), text);
    else
        (void)snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    strbuf_puts(out, "  --");
    for (const char *p = what; *p != '\0'; p++)
        strbuf_putc(out, *p == '_' ? '-' : *p);
    strbuf_printf(out, " %s\n", text[0] != '\0' ? text : msg(MSG_ANY));
}

static void write_verdict(struct strbuf *out, const json_t *v)
{
    const char *verdict = get_str(v, "verdict");
    long long id = get_int(v, "id");
    if (strcmp(verdict, "running") == 0)
        ADD(out, VERDICT_RUNNING, id);
    else if (strcmp(verdict, "ended") == 0)
        ADD(out, VERDICT_ENDED, id, state_text(get_str(v, "state")));
    else if (strcmp(verdict, "can-start") == 0)
        ADD(out, VERDICT_CAN_START, id);
    else if (strcmp(verdict, "never") == 0)
        ADD(out, VERDICT_NEVER, id);
    else
        ADD(out, VERDICT_WAITS, id, (long long)get_int(v, "position"));
    strbuf_putc(out, '\n');
}

void explain_write(struct strbuf *out, const json_t *v)
{
    write_verdict(out, v);
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(v, "reasons"), i, row)
    {
        strbuf_puts(out, "  - ");
        add_reason(out, row);
        strbuf_putc(out, '\n');
        write_holders(out, row);
    }
    const json_t *reservation = json_object_get(v, "reservation");
    if (json_is_object(reservation)) {
        char when[32];
        format_local(get_time(reservation, "start_at"), when);
        if (get_bool(reservation, "bounded"))
            ADD(out, RESERVED_START, when);
        else
            ADD(out, RESERVED_GUESS, when);
        strbuf_putc(out, '\n');
    }
    const json_t *changes = json_object_get(v, "would_start_with");
    if (json_array_size(changes) == 0)
        return;
    strbuf_printf(out, "%s\n", msg(MSG_WOULD_START));
    json_array_foreach(changes, i, row) write_change(out, row);
}
