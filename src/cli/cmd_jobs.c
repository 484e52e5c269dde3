/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs about jobs that are there: ps, history, show, explain, update, cancel, wait. */
#include "base/sys/clock.h"
#include "base/units.h"
#include "cli/verb.h"
#include "cli/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_CALL_MS 30000 /* one call of a long poll */

/* The filter options as query parameters behind `path`. */
static void add_filters(struct strbuf *path, const struct args *a)
{
    static const struct {
        const char *option;
        const char *key;
    } filters[] = {{"status", "state"}, {"user", "user"}, {"queue", "queue"}, {"tenant", "tenant"}, {"name", "name"}};
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        const char *value = arg_get(a, filters[i].option);
        if (value == NULL)
            continue;
        strbuf_printf(path, "&%s=", filters[i].key);
        api_encode(path, value);
    }
}

/*
 * All jobs that `query` ("all=1...") selects, page by page, into *ret (owned by the caller). An exit code; what went
 * wrong has been said.
 */
static int fetch_jobs(struct cli *c, const struct args *a, const char *query, json_t **ret)
{
    json_t *jobs = json_array();
    int64_t after = 0;
    int rc = CLI_OK;
    while (rc == CLI_OK) {
        struct strbuf path = {0};
        struct api_reply r;
        strbuf_printf(&path, "/v1/jobs?limit=1000&after=%" PRId64 "%s", after, query);
        add_filters(&path, a);
        rc = api_call(c->api, "GET", strbuf_str(&path), NULL, &r);
        strbuf_done(&path);
        if (rc != CLI_OK)
            (void)cli_fail_reply(c, &r);
        else
            (void)json_array_extend(jobs, json_object_get(r.body, "jobs"));
        int64_t next = rc == CLI_OK ? get_int(r.body, "next") : 0;
        api_reply_done(&r);
        if (next <= after)
            break;
        after = next;
    }
    if (rc != CLI_OK) {
        json_decref(jobs);
        return rc;
    }
    *ret = jobs;
    return CLI_OK;
}

static void add_simulated(struct strbuf *out, const json_t *jobs)
{
    size_t i;
    json_t *job;
    json_array_foreach(jobs, i, job)
    {
        if (get_bool(job, "simulated")) {
            strbuf_printf(out, "%s\n", msg(MSG_SIMULATED_SHORT));
            return;
        }
    }
}

static int print_jobs(const struct cli *c, json_t *jobs, const char *format, bool ended)
{
    if (c->json) {
        json_t *v = json_pack("{s:O}", "jobs", jobs);
        print_json(v);
        json_decref(v);
        return CLI_OK;
    }
    struct strbuf out = {0};
    if (format == NULL && json_array_size(jobs) == 0) {
        strbuf_printf(&out, "%s\n", msg(MSG_NO_JOBS));
    } else {
        if (format == NULL || strcmp(format, "wide") == 0)
            add_simulated(&out, jobs);
        jobs_write(&out, jobs, format, ended);
    }
    (void)fputs(strbuf_str(&out), stdout);
    strbuf_done(&out);
    return CLI_OK;
}

int run_ps(struct cli *c, struct args *a)
{
    const char *format = arg_get(a, "format");
    const char *watch = arg_get(a, "watch");
    struct err e;
    uint64_t pause_milli = 2000;
    if (jobs_check_format(format, &e) < 0)
        return cli_fail(c, CLI_USAGE, "%s", e.text);
    if (watch != NULL && watch[0] != '\0' &&
        (units_parse_milli(watch, 86400000, &pause_milli, &e) < 0 || pause_milli < 100))
        return FAIL(c, CLI_USAGE, NOT_ALLOWED, "--watch", watch, "0.1..86400");
    for (;;) {
        json_t *jobs;
        int rc = fetch_jobs(c, a, arg_has(a, "all") ? "&all=1" : "", &jobs);
        if (rc != CLI_OK)
            return rc;
        if (watch != NULL && !c->json)
            (void)fputs("\033[H\033[2J", stdout);
        rc = print_jobs(c, jobs, format, false);
        json_decref(jobs);
        if (watch == NULL || fflush(stdout) != 0)
            return rc;
        clock_sleep_ms((int64_t)pause_milli);
    }
}

int run_history(struct cli *c, struct args *a)
{
    const char *format = arg_get(a, "format");
    const char *limit = arg_get(a, "limit");
    int64_t most = INT64_MAX;
    struct err e;
    json_t *jobs;
    if (jobs_check_format(format, &e) < 0)
        return cli_fail(c, CLI_USAGE, "%s", e.text);
    if (limit != NULL && units_parse_int(limit, 1, 1000000000, &most, &e) < 0)
        return cli_fail(c, CLI_USAGE, "--limit: %s", e.text);
    int rc = fetch_jobs(c, a, "&ended=1", &jobs);
    if (rc != CLI_OK)
        return rc;
    while ((int64_t)json_array_size(jobs) > most && json_array_remove(jobs, 0) == 0)
        ;
    rc = print_jobs(c, jobs, format, true);
    json_decref(jobs);
    return rc;
}

/* GET of /v1/jobs/ID + `rest`. */
static int get_job(struct cli *c, const char *word, const char *rest, struct api_reply *r)
{
    char path[96];
    uint64_t id = parse_job_id(c, word);
    *r = (struct api_reply){.exit = CLI_USAGE};
    if (id == 0)
        return CLI_USAGE;
    (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "%s", id, rest);
    int rc = api_call(c->api, "GET", path, NULL, r);
    if (rc != CLI_OK)
        (void)cli_fail_reply(c, r);
    return rc;
}

/* One answer, printed as JSON or by `write`. */
static int print_answer(struct cli *c, const char *word, const char *rest,
                        void (*write)(struct strbuf *, const json_t *))
{
    struct api_reply r;
    int rc = get_job(c, word, rest, &r);
    if (rc == CLI_OK && c->json) {
        print_json(r.body);
    } else if (rc == CLI_OK) {
        struct strbuf out = {0};
        write(&out, r.body);
        (void)fputs(strbuf_str(&out), stdout);
        strbuf_done(&out);
    }
    api_reply_done(&r);
    return rc;
}

int run_show(struct cli *c, struct args *a)
{
    return print_answer(c, a->argv[0], "", job_write);
}

int run_explain(struct cli *c, struct args *a)
{
    if (!c->json) {
        struct api_reply r;
        int rc = get_job(c, a->argv[0], "", &r);
        if (rc == CLI_OK && get_bool(r.body, "simulated"))
            (void)printf("%s\n", msg(MSG_SIMULATED_SHORT));
        api_reply_done(&r);
        if (rc != CLI_OK)
            return rc;
    }
    return print_answer(c, a->argv[0], "/explain", explain_write);
}

int run_update(struct cli *c, struct args *a)
{
    static const struct {
        const char *option;
        const char *key;
        enum job_option_id id;
    } fields[] = {{"priority", "priority", JOB_OPT_PRIORITY},
                  {"time", "time_limit", JOB_OPT_TIME},
                  {"name", "name", JOB_OPT_NAME},
                  {"queue", "queue", JOB_OPT_QUEUE}};
    json_t *body = json_object();
    struct job_spec trial;
    struct err e = {0};
    int rc = CLI_OK;
    job_spec_init(&trial);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0] && rc == CLI_OK; i++) {
        const char *value = arg_get(a, fields[i].option);
        if (value == NULL)
            continue;
        if (job_option_set(&trial, fields[i].id, value, &e) < 0)
            rc = cli_fail(c, CLI_USAGE, "--%s: %s", fields[i].option, e.text);
        else if (fields[i].id == JOB_OPT_PRIORITY)
            (void)json_object_set_new(body, fields[i].key, json_integer(trial.priority));
        else
            (void)json_object_set_new(body, fields[i].key, json_string(value));
    }
    job_spec_done(&trial);
    uint64_t id = rc == CLI_OK ? parse_job_id(c, a->argv[0]) : 0;
    if (rc == CLI_OK && json_object_size(body) == 0)
        rc = FAIL(c, CLI_USAGE, UPDATE_NOTHING);
    else if (rc == CLI_OK && id == 0)
        rc = CLI_USAGE;
    if (rc == CLI_OK) {
        char path[64];
        struct api_reply r;
        (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, id);
        rc = api_call(c->api, "PATCH", path, body, &r);
        if (rc != CLI_OK)
            (void)cli_fail_reply(c, &r);
        else if (c->json)
            print_json(r.body);
        else
            SAY(stdout, UPDATED, (long long)id);
        if (rc == CLI_OK && !c->json)
            (void)putchar('\n');
        api_reply_done(&r);
    }
    json_decref(body);
    return rc;
}

static int cancel_one(struct cli *c, const char *word)
{
    char path[64];
    struct api_reply r;
    uint64_t id = parse_job_id(c, word);
    if (id == 0)
        return CLI_USAGE;
    (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/cancel", id);
    int rc = api_call(c->api, "POST", path, NULL, &r);
    if (rc != CLI_OK) {
        (void)cli_fail_reply(c, &r);
    } else if (c->json) {
        print_json(r.body);
    } else {
        if (strcmp(get_str(r.body, "state"), "cancelled") == 0)
            SAY(stdout, CANCEL_DONE, (long long)id);
        else
            SAY(stdout, CANCEL_ASKED, (long long)id);
        (void)putchar('\n');
    }
    api_reply_done(&r);
    return rc;
}

static int cancel_many(struct cli *c, const struct args *a)
{
    static const char *const options[] = {"status", "user", "queue", "tenant", "name"};
    json_t *body = json_object();
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const char *value = arg_get(a, options[i]);
        if (value != NULL)
            (void)json_object_set_new(body, i == 0 ? "state" : options[i], json_string(value));
    }
    if (arg_has(a, "all"))
        (void)json_object_set_new(body, "all", json_true());
    int rc;
    if (json_object_size(body) == 0) {
        rc = FAIL(c, CLI_USAGE, FILTER_NEEDED);
    } else {
        struct api_reply r;
        rc = api_call(c->api, "POST", "/v1/jobs/cancel", body, &r);
        if (rc != CLI_OK) {
            (void)cli_fail_reply(c, &r);
        } else if (c->json) {
            print_json(r.body);
        } else {
            SAY(stdout, CANCELLED_COUNT, json_array_size(json_object_get(r.body, "cancelled")));
            (void)putchar('\n');
        }
        api_reply_done(&r);
    }
    json_decref(body);
    return rc;
}

int run_cancel(struct cli *c, struct args *a)
{
    if (a->argc == 0)
        return cancel_many(c, a);
    static const char *const options[] = {"status", "user", "queue", "tenant", "name", "all"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        char option[16];
        (void)snprintf(option, sizeof option, "--%s", options[i]);
        if (arg_has(a, options[i]))
            return FAIL(c, CLI_USAGE, EXCLUDE_EACH_OTHER, option, "ID");
    }
    int rc = CLI_OK;
    for (int i = 0; i < a->argc; i++) {
        int one = cancel_one(c, a->argv[i]);
        rc = rc == CLI_OK ? one : rc;
    }
    return rc;
}

int cli_wait(struct cli *c, uint64_t id, int64_t timeout_ms, json_t **ret)
{
    int64_t deadline = timeout_ms < 0 ? INT64_MAX : clock_mono_ms() + timeout_ms;
    for (;;) {
        int64_t left = deadline == INT64_MAX ? WAIT_CALL_MS : deadline - clock_mono_ms();
        if (left < 0)
            return CLI_TIMEOUT;
        char path[96];
        struct api_reply r;
        (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/wait?timeout_ms=%" PRId64, id,
                       left < WAIT_CALL_MS ? left : (int64_t)WAIT_CALL_MS);
        api_timeout(c->api, 2 * WAIT_CALL_MS);
        int rc = api_call(c->api, "GET", path, NULL, &r);
        if (rc != CLI_OK)
            (void)cli_fail_reply(c, &r);
        bool ended = rc == CLI_OK && get_bool(r.body, "ended");
        if (ended)
            *ret = json_incref(r.body);
        api_reply_done(&r);
        if (rc != CLI_OK || ended)
            return rc;
    }
}

/* `method` of /v1/jobs/ID + `rest` with `body` for each word; prints `done` (with the id) for each that worked. */
static int each_job(struct cli *c, const struct args *a, const char *method, const char *rest, const json_t *body,
                    enum msg_id done)
{
    int rc = CLI_OK;
    for (int i = 0; i < a->argc; i++) {
        char path[96];
        struct api_reply r = {.exit = CLI_USAGE};
        uint64_t id = parse_job_id(c, a->argv[i]);
        int one = CLI_USAGE;
        if (id != 0) {
            (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "%s", id, rest);
            one = api_call(c->api, method, path, body, &r);
            if (one != CLI_OK)
                (void)cli_fail_reply(c, &r);
        }
        if (one == CLI_OK && c->json) {
            print_json(r.body);
        } else if (one == CLI_OK) {
            say_(stdout, done, (long long)id);
            (void)putchar('\n');
        }
        api_reply_done(&r);
        rc = rc == CLI_OK ? one : rc;
    }
    return rc;
}

static int set_held(struct cli *c, const struct args *a, bool held)
{
    json_t *body = json_pack("{s:b}", "hold", held);
    int rc = each_job(c, a, "PATCH", "", body, held ? MSG_HELD : MSG_RELEASED);
    json_decref(body);
    return rc;
}

int run_hold(struct cli *c, struct args *a)
{
    return set_held(c, a, true);
}

int run_release(struct cli *c, struct args *a)
{
    return set_held(c, a, false);
}

int run_requeue(struct cli *c, struct args *a)
{
    return each_job(c, a, "POST", "/requeue", NULL, MSG_REQUEUED);
}

int run_wait(struct cli *c, struct args *a)
{
    int64_t timeout_ms = -1;
    int64_t deadline = INT64_MAX;
    const char *timeout = arg_get(a, "timeout");
    struct err e;
    if (timeout != NULL) {
        if (units_parse_duration_ms(timeout, &timeout_ms, &e) < 0)
            return cli_fail(c, CLI_USAGE, "--timeout: %s", e.text);
        deadline = clock_mono_ms() + timeout_ms;
    }
    for (int i = 0; i < a->argc; i++)
        if (parse_job_id(c, a->argv[i]) == 0)
            return CLI_USAGE;
    int status = CLI_OK;
    json_t *all = json_array();
    for (int i = 0; i < a->argc; i++) {
        json_t *answer = NULL;
        int64_t left = deadline == INT64_MAX ? -1 : deadline - clock_mono_ms();
        int rc = cli_wait(c, parse_job_id(c, a->argv[i]), deadline != INT64_MAX && left < 0 ? 0 : left, &answer);
        if (rc == CLI_TIMEOUT) {
            char text[32];
            units_format_duration(timeout_ms, text);
            (void)FAIL(c, CLI_TIMEOUT, NOT_IN_TIME, text);
        }
        if (rc == CLI_OK)
            rc = (int)get_int(answer, "exit_status");
        if (answer != NULL)
            (void)json_array_append_new(all, answer);
        if (status == CLI_OK)
            status = rc;
        if (rc != CLI_OK && answer == NULL)
            break;
    }
    if (c->json) {
        json_t *v = json_pack("{s:O}", "jobs", all);
        print_json(v);
        json_decref(v);
    }
    json_decref(all);
    return status;
}
