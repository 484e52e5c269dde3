/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/record.h"

#include "abi/runner.h"
#include "base/mem.h"
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const cause_names[] = {"normal", "oom", "launch_failed", "lost"};

/* `text` on one line: control bytes become spaces. */
static void put_line_text(struct strbuf *out, const char *text)
{
    for (; *text != '\0'; text++)
        strbuf_putc(out, (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text);
}

void runner_exit_write(const struct runner_exit *x, struct strbuf *out)
{
    strbuf_printf(out,
                  "rank=%" PRIu32 " code=%" PRId32 " signal=%" PRId32 " cause=%s core=%d peak_mem_mib=%" PRIu64
                  " cpu_ms=%" PRId64 " time_ms=%" PRId64 " output_lost=%" PRIu64 " detail=",
                  x->rank, x->code, x->signal, cause_names[x->cause], x->core ? 1 : 0, x->peak_mem_mib, x->cpu_ms,
                  x->time_ms, x->output_lost);
    put_line_text(out, x->detail);
    strbuf_putc(out, '\n');
}

/* Moves *p over "key=" and the word after it, which is copied to `word`. */
static bool take_word(const char **p, const char *key, char *word, size_t size)
{
    size_t len = strlen(key);
    if (strncmp(*p, key, len) != 0 || (*p)[len] != '=')
        return false;
    const char *value = *p + len + 1;
    size_t n = strcspn(value, " ");
    if (value[n] != ' ' || n >= size)
        return false;
    memcpy(word, value, n);
    word[n] = '\0';
    *p = value + n + 1;
    return true;
}

static bool take_number(const char **p, const char *key, int64_t low, int64_t high, int64_t *ret)
{
    char word[24];
    return take_word(p, key, word, sizeof word) && units_parse_int(word, low, high, ret, NULL) == 0;
}

int runner_exit_parse(const char *line, struct runner_exit *ret)
{
    int64_t rank, code, sig, core, peak, cpu, time, lost;
    char cause[16];
    const char *p = line;
    if (!take_number(&p, "rank", 0, UINT32_MAX, &rank) || !take_number(&p, "code", -1, 255, &code) ||
        !take_number(&p, "signal", 0, 128, &sig) || !take_word(&p, "cause", cause, sizeof cause) ||
        !take_number(&p, "core", 0, 1, &core) || !take_number(&p, "peak_mem_mib", 0, INT64_MAX, &peak) ||
        !take_number(&p, "cpu_ms", 0, INT64_MAX, &cpu) || !take_number(&p, "time_ms", 0, INT64_MAX, &time) ||
        !take_number(&p, "output_lost", 0, INT64_MAX, &lost) || strncmp(p, "detail=", 7) != 0)
        return -EINVAL;
    struct runner_exit x = {
        .rank = (uint32_t)rank,
        .code = (int32_t)code,
        .signal = (int32_t)sig,
        .core = core == 1,
        .peak_mem_mib = (uint64_t)peak,
        .cpu_ms = cpu,
        .time_ms = time,
        .output_lost = (uint64_t)lost,
    };
    unsigned i = 0;
    while (i < sizeof cause_names / sizeof cause_names[0] && strcmp(cause, cause_names[i]) != 0)
        i++;
    if (i == sizeof cause_names / sizeof cause_names[0])
        return -EINVAL;
    x.cause = (enum runner_cause)i;
    (void)snprintf(x.detail, sizeof x.detail, "%s", p + 7);
    *ret = x;
    return 0;
}

void runner_status_done(struct runner_status *s)
{
    mem_free(s->cgroup);
    mem_free(s->workers);
    *s = (struct runner_status){0};
}

void runner_status_write(const struct runner_status *s, struct strbuf *out)
{
    strbuf_printf(out, "version=%d\nstate=%s\npid=%" PRId32 "\nstart=%" PRIu64 "\nboot=%s\nstarted_ms=%" PRId64 "\n",
                  RUNNER_VERSION, s->state, s->pid, s->start_ticks, s->boot, s->started_ms);
    strbuf_puts(out, "cgroup=");
    put_line_text(out, s->cgroup != NULL ? s->cgroup : "");
    strbuf_puts(out, "\nnote=");
    put_line_text(out, s->note);
    strbuf_putc(out, '\n');
    for (size_t i = 0; i < s->workers_len; i++)
        strbuf_printf(out, "worker=%" PRIu32 " %" PRId32 " %" PRIu64 "\n", s->workers[i].rank, s->workers[i].pid,
                      s->workers[i].start_ticks);
}

static int parse_worker(const char *value, struct runner_status *s)
{
    static const int64_t low[] = {0, 1, 0}, high[] = {UINT32_MAX, INT32_MAX, INT64_MAX};
    int64_t numbers[3];
    for (int i = 0; i < 3; i++) {
        char word[24];
        size_t len = strcspn(value, " ");
        if (len >= sizeof word || value[len] != (i < 2 ? ' ' : '\0'))
            return -EINVAL;
        memcpy(word, value, len);
        word[len] = '\0';
        if (units_parse_int(word, low[i], high[i], &numbers[i], NULL) < 0)
            return -EINVAL;
        value += len + 1;
    }
    struct runner_process w = {
        .rank = (uint32_t)numbers[0], .pid = (int32_t)numbers[1], .start_ticks = (uint64_t)numbers[2]};
    if (mem_grow(&s->workers, &s->workers_cap, s->workers_len + 1, sizeof w) < 0)
        return -ENOMEM;
    s->workers[s->workers_len++] = w;
    return 0;
}

static int copy_text(char *dst, size_t size, const char *value)
{
    int n = snprintf(dst, size, "%s", value);
    return n < 0 || (size_t)n >= size ? -EINVAL : 0;
}

static int parse_line(const char *key, const char *value, struct runner_status *s)
{
    int64_t number;
    if (strcmp(key, "version") == 0)
        return units_parse_int(value, 1, RUNNER_VERSION, &number, NULL);
    if (strcmp(key, "state") == 0)
        return copy_text(s->state, sizeof s->state, value);
    if (strcmp(key, "boot") == 0)
        return copy_text(s->boot, sizeof s->boot, value);
    if (strcmp(key, "note") == 0)
        return copy_text(s->note, sizeof s->note, value);
    if (strcmp(key, "worker") == 0)
        return parse_worker(value, s);
    if (strcmp(key, "cgroup") == 0) {
        if (s->cgroup != NULL)
            return -EINVAL;
        s->cgroup = mem_strdup(value);
        return s->cgroup != NULL ? 0 : -ENOMEM;
    }
    int r;
    if (strcmp(key, "pid") == 0) {
        if ((r = units_parse_int(value, 1, INT32_MAX, &number, NULL)) == 0)
            s->pid = (int32_t)number;
    } else if (strcmp(key, "start") == 0) {
        if ((r = units_parse_int(value, 0, INT64_MAX, &number, NULL)) == 0)
            s->start_ticks = (uint64_t)number;
    } else if (strcmp(key, "started_ms") == 0) {
        if ((r = units_parse_int(value, 0, INT64_MAX, &number, NULL)) == 0)
            s->started_ms = number;
    } else {
        r = -EINVAL;
    }
    return r;
}

static int parse_lines(char *text, struct runner_status *s, struct err *e)
{
    for (char *line = text; *line != '\0';) {
        char *newline = strchr(line, '\n');
        char *equal = strchr(line, '=');
        if (newline == NULL || equal == NULL || equal > newline)
            return err_set(e, -EINVAL, "status: '%.60s' is not a line key=value", line);
        *newline = '\0';
        *equal = '\0';
        int r = parse_line(line, equal + 1, s);
        if (r == -ENOMEM)
            return err_set(e, r, "no memory for the status");
        if (r < 0)
            return err_set(e, -EINVAL, "status: key '%.40s' can't have the value '%.60s'", line, equal + 1);
        line = newline + 1;
    }
    if (s->pid == 0 || s->state[0] == '\0')
        return err_set(e, -EINVAL, "status: pid or state is missing");
    return 0;
}

int runner_status_parse(const char *text, struct runner_status *ret, struct err *e)
{
    CLEANUP_FREE char *copy = mem_strdup(text);
    if (copy == NULL)
        return err_set(e, -ENOMEM, "no memory for the status");
    struct runner_status s = {0};
    int r = parse_lines(copy, &s, e);
    if (r < 0) {
        runner_status_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}
