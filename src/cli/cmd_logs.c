/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that show what flows: logs and events. */
#include "base/sys/clock.h"
#include "base/units.h"
#include "cli/verb.h"
#include "cli/view.h"

#include <inttypes.h>
#include <string.h>

static bool to_stdout(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    return fwrite(bytes, 1, len, stdout) == len && fflush(stdout) == 0;
}

static bool to_buffer(void *arg, const char *bytes, size_t len)
{
    struct strbuf *b = arg;
    strbuf_add(b, bytes, len);
    return !b->failed;
}

/* A whole-number option as a query parameter; 0 or an exit code. */
static int add_number(const struct cli *c, const struct args *a, const char *name, int64_t low, struct strbuf *path)
{
    const char *value = arg_get(a, name);
    int64_t number;
    struct err e;
    if (value == NULL)
        return 0;
    if (units_parse_int(value, low, INT32_MAX, &number, &e) < 0)
        return cli_fail(c, CLI_USAGE, "--%s: %s", name, e.text);
    strbuf_printf(path, "&%s=%" PRId64, name, number);
    return 0;
}

/* Waits until the job has started or ended; an exit code. */
static int wait_started(struct cli *c, uint64_t id)
{
    for (int64_t pause = 50;; pause = pause < 1000 ? pause * 2 : 1000) {
        char path[64];
        struct api_reply r;
        (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, id);
        int rc = api_call(c->api, "GET", path, NULL, &r);
        if (rc != CLI_OK)
            (void)cli_fail_reply(c, &r);
        bool waits = rc == CLI_OK && strcmp(get_str(r.body, "state"), "queued") == 0;
        api_reply_done(&r);
        if (!waits)
            return rc;
        clock_sleep_ms(pause);
    }
}

/* Output is bytes; JSON is UTF-8: every bad byte becomes U+FFFD. */
static void add_clean(struct strbuf *out, const struct strbuf *raw)
{
    for (size_t i = 0; i < raw->len;) {
        size_t n = 1;
        while (n < 4 && i + n < raw->len && ((unsigned char)raw->data[i + n] & 0xc0) == 0x80)
            n++;
        if (utf8_valid(raw->data + i, n) && raw->data[i] != '\0') {
            strbuf_add(out, raw->data + i, n);
            i += n;
        } else {
            strbuf_puts(out, "\xef\xbf\xbd");
            i++;
        }
    }
}

static int print_logs_json(struct cli *c, struct api_stream *s, uint64_t id, const struct args *a)
{
    struct strbuf raw = {0};
    struct strbuf clean = {0};
    int64_t worker = 0;
    s->cb = to_buffer;
    s->arg = &raw;
    (void)api_streams(c->api, s, 1, NULL);
    if (s->exit == CLI_OK) {
        if (arg_get(a, "worker") != NULL)
            (void)units_parse_int(arg_get(a, "worker"), 0, INT32_MAX, &worker, NULL);
        add_clean(&clean, &raw);
        json_t *v = json_pack("{s:I,s:I,s:s,s:s}", "id", (json_int_t)id, "worker", (json_int_t)worker, "stream",
                              arg_has(a, "stderr") ? "stderr" : "stdout", "text", strbuf_str(&clean));
        print_json(v);
        json_decref(v);
    }
    strbuf_done(&raw);
    strbuf_done(&clean);
    return s->exit;
}

int run_logs(struct cli *c, struct args *a)
{
    uint64_t id = parse_job_id(c, a->argv[0]);
    bool follow = arg_has(a, "follow");
    if (id == 0)
        return CLI_USAGE;
    if (follow && c->json)
        return FAIL(c, CLI_USAGE, EXCLUDE_EACH_OTHER, "--follow", "--json");
    struct strbuf path = {0};
    strbuf_printf(&path, "/v1/jobs/%" PRIu64 "/logs?stream=%s", id, arg_has(a, "stderr") ? "stderr" : "stdout");
    int rc = add_number(c, a, "worker", 0, &path);
    if (rc == 0)
        rc = add_number(c, a, "attempt", 1, &path);
    if (rc == 0)
        rc = add_number(c, a, "tail", 0, &path);
    if (rc == 0 && follow) {
        strbuf_puts(&path, "&follow=1");
        rc = wait_started(c, id);
    }
    if (rc == 0) {
        struct api_stream s = {.path = strbuf_str(&path), .cb = to_stdout};
        if (c->json)
            rc = print_logs_json(c, &s, id, a);
        else if (api_streams(c->api, &s, 1, NULL) == 0)
            rc = s.exit;
        else
            rc = CLI_ERROR;
        if (rc != CLI_OK)
            rc = cli_fail(c, rc, "%s", s.err.text);
    }
    strbuf_done(&path);
    return rc;
}

/* --- events --- */

struct event_reader {
    const struct cli *cli;
    struct strbuf line;
    struct strbuf data;
};

static void print_event(const struct event_reader *r, const char *text)
{
    if (r->cli->json) {
        (void)printf("%s\n", text);
        return;
    }
    json_t *v = json_loads(text, 0, NULL);
    if (v == NULL)
        return;
    char when[32];
    format_local(get_time(v, "time"), when);
    struct strbuf b = {0};
    strbuf_printf(&b, "%8" PRId64 "  %s  ", get_int(v, "seq"), when);
    text_pad(&b, event_text(get_str(v, "event")), 18, false);
    if (get_int(v, "job") > 0)
        strbuf_printf(&b, "  %s %" PRId64, msg(MSG_SHOW_JOB), get_int(v, "job"));
    static const char *const words[] = {"name", "node", "state", "user", "by", "detail", "why"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (get_str(v, words[i])[0] == '\0')
            continue;
        strbuf_printf(&b, "  %s=", words[i]);
        text_add(&b, get_str(v, words[i]));
        if (strcmp(words[i], "state") == 0 && get_bool(v, "draining"))
            strbuf_puts(&b, ",draining");
    }
    const char *cause = get_str(v, "cause");
    if (cause[0] != '\0' && strcmp(cause, "none") != 0)
        strbuf_printf(&b, "  %s", cause_text(cause));
    (void)printf("%s\n", strbuf_str(&b));
    strbuf_done(&b);
    json_decref(v);
}

/* One line of the stream: "data: ..." is collected, an empty line ends an event. */
static void event_line(struct event_reader *r)
{
    const char *line = strbuf_str(&r->line);
    if (strncmp(line, "data:", 5) == 0) {
        line += line[5] == ' ' ? 6 : 5;
        if (r->data.len > 0)
            strbuf_putc(&r->data, '\n');
        strbuf_puts(&r->data, line);
    } else if (line[0] == '\0' && r->data.len > 0) {
        print_event(r, strbuf_str(&r->data));
        strbuf_clear(&r->data);
    }
    strbuf_clear(&r->line);
}

static bool on_events(void *arg, const char *bytes, size_t len)
{
    struct event_reader *r = arg;
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n')
            event_line(r);
        else if (bytes[i] != '\r')
            strbuf_putc(&r->line, bytes[i]);
    }
    return fflush(stdout) == 0 && !r->line.failed && !r->data.failed;
}

int run_events(struct cli *c, struct args *a)
{
    struct strbuf path = {0};
    strbuf_puts(&path, arg_has(a, "follow") ? "/v1/events?follow=1" : "/v1/events?follow=0");
    int rc = add_number(c, a, "after", 0, &path);
    if (rc == 0)
        rc = add_number(c, a, "job", 1, &path);
    if (rc == 0) {
        struct event_reader r = {.cli = c};
        struct api_stream s = {.path = strbuf_str(&path), .cb = on_events, .arg = &r};
        (void)api_streams(c->api, &s, 1, NULL);
        rc = s.exit;
        if (rc != CLI_OK)
            rc = cli_fail(c, rc, "%s", s.err.text);
        strbuf_done(&r.line);
        strbuf_done(&r.data);
    }
    strbuf_done(&path);
    return rc;
}
