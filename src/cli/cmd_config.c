/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs about the configuration and those it speaks of: config, queues, tenants. */
#include "base/mem.h"
#include "base/units.h"
#include "cli/verb.h"
#include "cli/view.h"
#include "config/config_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* --- config --- */

struct changes {
    json_t *list;
};

static void on_difference(void *arg, const char *key, const char *from, const char *to)
{
    struct changes *c = arg;
    (void)json_array_append_new(c->list, json_pack("{s:s,s:s?,s:s?}", "key", key, "from", from, "to", to));
}

/* The configuration in force, as text; *ret is the caller's (mem_free). */
static int fetch_text(struct cli *c, char **ret)
{
    struct api_reply r;
    int rc = api_call(c->api, "GET", "/v1/config", NULL, &r);
    if (rc != CLI_OK)
        (void)cli_fail_reply(c, &r);
    else if ((*ret = mem_strdup(get_str(r.body, "text"))) == NULL)
        rc = FAIL(c, CLI_ERROR, OUT_OF_MEMORY);
    api_reply_done(&r);
    return rc;
}

/* What the file would change; *ret (owned by the caller) is a list of {"key", "from", "to"}. */
static int compare(struct cli *c, const struct config *wanted, json_t **ret)
{
    CLEANUP_FREE char *text = NULL;
    struct config now = {.queues_len = 0};
    struct err e = {0};
    int rc = fetch_text(c, &text);
    if (rc != CLI_OK)
        return rc;
    /* A daemon that was never given one has the defaults. */
    int got = text[0] == '\0' ? config_defaults(&now) : config_parse(text, strlen(text), c->state_dir, &now, &e);
    if (got < 0)
        return cli_fail(c, CLI_ERROR, "%s", e.code != 0 ? e.text : strerror(-got));
    struct changes found = {.list = json_array()};
    if (config_diff(&now, wanted, on_difference, &found) < 0)
        rc = FAIL(c, CLI_ERROR, OUT_OF_MEMORY);
    config_done(&now);
    if (rc == CLI_OK)
        *ret = found.list;
    else
        json_decref(found.list);
    return rc;
}

static void print_changes(const json_t *changes)
{
    size_t i;
    json_t *one;
    if (json_array_size(changes) == 0)
        (void)printf("%s\n", msg(MSG_CONFIG_SAME));
    json_array_foreach(changes, i, one)
    {
        const char *from = json_string_value(json_object_get(one, "from"));
        const char *to = json_string_value(json_object_get(one, "to"));
        if (from == NULL)
            (void)printf("+ %s: %s\n", get_str(one, "key"), to);
        else if (to == NULL)
            (void)printf("- %s: %s\n", get_str(one, "key"), from);
        else
            (void)printf("~ %s: %s -> %s\n", get_str(one, "key"), from, to);
    }
}

static int apply(struct cli *c, const char *text, json_t *changes)
{
    struct api_reply r;
    int rc = api_put_text(c->api, "/v1/config", text, &r);
    if (rc != CLI_OK) {
        (void)cli_fail_reply(c, &r);
    } else if (c->json) {
        json_t *v = json_pack("{s:I,s:O}", "version", (json_int_t)get_int(r.body, "version"), "changes", changes);
        print_json(v);
        json_decref(v);
    } else {
        print_changes(changes);
        SAY(stdout, CONFIG_APPLIED, (long long)get_int(r.body, "version"));
        (void)putchar('\n');
    }
    api_reply_done(&r);
    return rc;
}

static int with_file(struct cli *c, const char *action, const char *path)
{
    struct config wanted;
    CLEANUP_FREE char *text = NULL;
    struct err e = {0};
    json_t *changes = NULL;
    if (config_load_file(path, &wanted, &text, &e) < 0)
        return cli_fail(c, CLI_USAGE, "%s", e.text);
    int rc = CLI_OK;
    if (strcmp(action, "check") == 0) {
        if (c->json)
            (void)printf("{\"valid\": true}\n");
        else
            SAY(stdout, CONFIG_VALID, path);
        if (!c->json)
            (void)putchar('\n');
    } else {
        rc = compare(c, &wanted, &changes);
        if (rc == CLI_OK && strcmp(action, "apply") == 0) {
            rc = apply(c, text, changes);
        } else if (rc == CLI_OK && c->json) {
            json_t *v = json_pack("{s:O}", "changes", changes);
            print_json(v);
            json_decref(v);
        } else if (rc == CLI_OK) {
            print_changes(changes);
        }
    }
    json_decref(changes);
    config_done(&wanted);
    return rc;
}

int run_config(struct cli *c, struct args *a)
{
    const char *action = a->argv[0];
    bool show = strcmp(action, "show") == 0;
    bool known = show || strcmp(action, "check") == 0 || strcmp(action, "diff") == 0 || strcmp(action, "apply") == 0;
    if (!known)
        return FAIL(c, CLI_USAGE, NOT_ALLOWED, "config", action, "show, check, diff, apply");
    if (show != (a->argc == 1))
        return FAIL(c, CLI_USAGE, TOO_FEW_WORDS, "config", c->verb->usage);
    if (!show)
        return with_file(c, action, a->argv[1]);
    if (c->json) {
        struct api_reply r;
        int rc = api_call(c->api, "GET", "/v1/config", NULL, &r);
        if (rc != CLI_OK)
            (void)cli_fail_reply(c, &r);
        else
            print_json(r.body);
        api_reply_done(&r);
        return rc;
    }
    CLEANUP_FREE char *text = NULL;
    int rc = fetch_text(c, &text);
    if (rc == CLI_OK)
        (void)fputs(text[0] != '\0' ? text : "{}\n", stdout);
    return rc;
}

/* --- queues and tenants --- */

/* "3 of 8" or "3". */
static void add_of(struct table *t, int64_t used, const json_t *cap, bool milli)
{
    char text[32];
    char most[32];
    if (milli)
        format_milli(used, text);
    else
        (void)snprintf(text, sizeof text, "%" PRId64, used);
    if (!json_is_integer(cap)) {
        table_add(t, text);
        return;
    }
    if (milli)
        format_milli(json_integer_value(cap), most);
    else
        (void)snprintf(most, sizeof most, "%" JSON_INTEGER_FORMAT, json_integer_value(cap));
    table_addf(t, "%s/%s", text, most);
}

static void add_account(struct table *t, const json_t *v)
{
    add_of(t, get_int(v, "jobs"), json_object_get(v, "cap_jobs"), false);
    add_of(t, get_int(v, "gpus_milli"), json_object_get(v, "cap_gpus_milli"), true);
}

static void add_time(struct table *t, int64_t ms)
{
    char text[32] = "-";
    if (ms > 0)
        units_format_duration(ms, text);
    table_add(t, text);
}

/* GET `path`; with --json it is printed. *ret (owned) is the answer for a table, NULL when there is nothing more to do.
 */
static int get_list(struct cli *c, const char *path, json_t **ret)
{
    struct api_reply r;
    int rc = api_call(c->api, "GET", path, NULL, &r);
    *ret = NULL;
    if (rc != CLI_OK)
        (void)cli_fail_reply(c, &r);
    else if (c->json)
        print_json(r.body);
    else
        *ret = json_incref(r.body);
    api_reply_done(&r);
    return rc;
}

int run_queues(struct cli *c, struct args *a)
{
    static const enum msg_id titles[] = {MSG_COL_QUEUE,    MSG_COL_JOBS,         MSG_COL_GPUS,
                                         MSG_COL_PRIORITY, MSG_COL_DEFAULT_TIME, MSG_COL_MAX_TIME};
    json_t *answer;
    int rc = get_list(c, "/v1/queues", &answer);
    (void)a;
    if (answer == NULL)
        return rc;
    struct table t;
    table_init(&t, sizeof titles / sizeof titles[0], 2 | 4 | 8 | 16 | 32);
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        table_add(&t, msg(titles[i]));
    size_t i;
    json_t *q;
    json_array_foreach(json_object_get(answer, "queues"), i, q)
    {
        table_addf(&t, "%s%s", get_str(q, "name"), get_bool(q, "default") ? "*" : "");
        add_account(&t, q);
        table_addf(&t, "%" PRId64, get_int(q, "priority"));
        add_time(&t, get_int(q, "default_time_ms"));
        add_time(&t, get_int(q, "max_time_ms"));
    }
    table_print(&t, stdout);
    table_done(&t);
    json_decref(answer);
    return rc;
}

int run_tenants(struct cli *c, struct args *a)
{
    static const enum msg_id titles[] = {MSG_COL_TENANT, MSG_COL_USER, MSG_COL_JOBS, MSG_COL_GPUS};
    json_t *answer;
    int rc = get_list(c, "/v1/tenants", &answer);
    (void)a;
    if (answer == NULL)
        return rc;
    struct table t;
    table_init(&t, sizeof titles / sizeof titles[0], 4 | 8);
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        table_add(&t, msg(titles[i]));
    size_t i;
    size_t k;
    json_t *tenant;
    json_t *user;
    json_array_foreach(json_object_get(answer, "tenants"), i, tenant)
    {
        table_add(&t, get_str(tenant, "name"));
        table_add(&t, "");
        add_account(&t, tenant);
        json_array_foreach(json_object_get(tenant, "users"), k, user)
        {
            table_add(&t, "");
            table_add(&t, get_str(user, "name"));
            add_account(&t, user);
        }
    }
    table_print(&t, stdout);
    table_done(&t);
    json_decref(answer);
    return rc;
}
