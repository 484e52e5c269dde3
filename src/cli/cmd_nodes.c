/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs about the pool: nodes, drain, undrain, topo, status. */
#include "base/units.h"
#include "cli/verb.h"
#include "cli/view.h"

#include <inttypes.h>
#include <string.h>

/* "A100-80GB", or the first of several with "+". */
static void add_models(struct strbuf *b, const json_t *gpus)
{
    const char *first = get_str(json_array_get(gpus, 0), "model");
    size_t i;
    json_t *g;
    bool mixed = false;
    json_array_foreach(gpus, i, g) mixed = mixed || strcmp(get_str(g, "model"), first) != 0;
    strbuf_printf(b, "%s%s", first[0] != '\0' ? first : "-", mixed ? "+" : "");
}

static void add_node(struct table *t, const json_t *n)
{
    const json_t *gpus = json_object_get(n, "gpus");
    int64_t free_milli = 0;
    size_t i;
    json_t *g;
    json_array_foreach(gpus, i, g) free_milli += get_bool(g, "healthy") ? get_int(g, "free_milli") : 0;
    char cpu[32];
    char mem[32];
    char cards[32];
    format_milli(get_int(n, "cpu_free_milli"), cpu);
    units_format_mib((uint64_t)get_int(n, "mem_free_mib"), mem);
    format_milli(free_milli, cards);
    struct strbuf b = {0};
    table_add(t, get_str(n, "name"));
    table_add(t, get_str(n, "rack"));
    strbuf_puts(&b, state_text(get_str(n, "state")));
    if (get_bool(n, "draining"))
        strbuf_printf(&b, ",%s", msg(MSG_NODE_DRAINING));
    table_add(t, strbuf_str(&b));
    table_addf(t, "%zu", json_array_size(gpus));
    table_add(t, cards);
    strbuf_clear(&b);
    add_models(&b, gpus);
    if (get_bool(n, "simulated"))
        strbuf_puts(&b, " (SIMULATED)");
    table_add(t, strbuf_str(&b));
    table_add(t, cpu);
    table_add(t, mem);
    strbuf_done(&b);
}

int run_nodes(struct cli *c, struct args *a)
{
    (void)a;
    struct api_reply r;
    int rc = api_call(c->api, "GET", "/v1/nodes", NULL, &r);
    if (rc != CLI_OK) {
        (void)cli_fail_reply(c, &r);
    } else if (c->json) {
        print_json(r.body);
    } else if (json_array_size(json_object_get(r.body, "nodes")) == 0) {
        (void)printf("%s\n", msg(MSG_NO_NODES));
    } else {
        static const enum msg_id titles[] = {MSG_COL_NODE, MSG_COL_RACK,  MSG_COL_STATE,    MSG_COL_GPUS,
                                             MSG_COL_FREE, MSG_COL_MODEL, MSG_COL_CPU_FREE, MSG_COL_MEM_FREE};
        struct table t;
        table_init(&t, sizeof titles / sizeof titles[0], 8 | 16 | 64 | 128);
        for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
            table_add(&t, msg(titles[i]));
        size_t i;
        json_t *n;
        json_array_foreach(json_object_get(r.body, "nodes"), i, n) add_node(&t, n);
        table_print(&t, stdout);
        table_done(&t);
    }
    api_reply_done(&r);
    return rc;
}

static int set_drain(struct cli *c, const char *node, bool drain, const char *reason)
{
    struct strbuf path = {0};
    struct api_reply r;
    strbuf_puts(&path, "/v1/nodes/");
    api_encode(&path, node);
    strbuf_puts(&path, drain ? "/drain" : "/undrain");
    json_t *body = json_object();
    if (reason != NULL)
        (void)json_object_set_new(body, "reason", json_string(reason));
    int rc = api_call(c->api, "POST", strbuf_str(&path), body, &r);
    json_decref(body);
    strbuf_done(&path);
    if (rc != CLI_OK) {
        (void)cli_fail_reply(c, &r);
    } else if (c->json) {
        print_json(r.body);
    } else {
        if (drain)
            SAY(stdout, DRAINED, node);
        else
            SAY(stdout, UNDRAINED, node);
        (void)putchar('\n');
    }
    api_reply_done(&r);
    return rc;
}

int run_drain(struct cli *c, struct args *a)
{
    const char *reason = arg_get(a, "reason");
    if (reason != NULL && !utf8_valid(reason, strlen(reason)))
        return FAIL(c, CLI_USAGE, NOT_ALLOWED, "--reason", "?", "UTF-8");
    return set_drain(c, a->argv[0], true, reason);
}

int run_undrain(struct cli *c, struct args *a)
{
    return set_drain(c, a->argv[0], false, NULL);
}

/* --- topo --- */

static void print_matrix(const json_t *v)
{
    const json_t *links = json_object_get(v, "links");
    size_t len = json_array_size(links);
    struct table t;
    table_init(&t, len + 1, 0);
    table_add(&t, "");
    for (size_t i = 0; i < len; i++)
        table_addf(&t, "GPU%zu", i);
    for (size_t i = 0; i < len; i++) {
        const json_t *row = json_array_get(links, i);
        table_addf(&t, "GPU%zu", i);
        for (size_t k = 0; k < len; k++)
            table_add(&t, json_string_value(json_array_get(row, k)));
    }
    table_print(&t, stdout);
    table_done(&t);
}

static int topo_one(struct cli *c, const char *node, json_t *all)
{
    struct strbuf path = {0};
    struct api_reply r;
    strbuf_puts(&path, "/v1/topology?node=");
    api_encode(&path, node);
    int rc = api_call(c->api, "GET", strbuf_str(&path), NULL, &r);
    strbuf_done(&path);
    if (rc != CLI_OK) {
        (void)cli_fail_reply(c, &r);
    } else if (c->json) {
        (void)json_array_append(all, r.body);
    } else {
        const char *text = get_str(r.body, "text");
        (void)printf("%s %s%s%s\n", msg(MSG_COL_NODE), get_str(r.body, "node"),
                     get_bool(r.body, "simulated") ? "  " : "",
                     get_bool(r.body, "simulated") ? msg(MSG_SIMULATED_SHORT) : "");
        if (text[0] != '\0')
            (void)printf("%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
        else
            print_matrix(r.body);
    }
    api_reply_done(&r);
    return rc;
}

int run_topo(struct cli *c, struct args *a)
{
    const char *node = arg_get(a, "node");
    json_t *all = json_array();
    int rc = CLI_OK;
    if (node != NULL) {
        rc = topo_one(c, node, all);
        if (rc == CLI_OK && c->json)
            print_json(json_array_get(all, 0));
        json_decref(all);
        return rc;
    }
    struct api_reply r;
    rc = api_call(c->api, "GET", "/v1/nodes", NULL, &r);
    if (rc != CLI_OK)
        (void)cli_fail_reply(c, &r);
    const json_t *nodes = json_object_get(r.body, "nodes");
    for (size_t i = 0; i < json_array_size(nodes) && rc == CLI_OK; i++) {
        if (i > 0 && !c->json)
            (void)putchar('\n');
        rc = topo_one(c, get_str(json_array_get(nodes, i), "name"), all);
    }
    if (rc == CLI_OK && c->json) {
        json_t *v = json_pack("{s:O}", "nodes", all);
        print_json(v);
        json_decref(v);
    } else if (rc == CLI_OK && json_array_size(nodes) == 0) {
        (void)printf("%s\n", msg(MSG_NO_NODES));
    }
    api_reply_done(&r);
    json_decref(all);
    return rc;
}

/* --- status --- */

static void status_line(struct strbuf *out, enum msg_id title, const char *value)
{
    text_pad(out, msg(title), 10, false);
    strbuf_printf(out, "%s\n", value);
}

static void status_write(struct strbuf *out, const json_t *v, const char *state_dir)
{
    char text[32];
    struct strbuf b = {0};
    if (get_bool(v, "simulated")) {
        add_cards_line(out, v);
        strbuf_putc(out, '\n');
    }
    units_format_duration(get_int(v, "uptime_ms"), text);
    ADD(&b, STATUS_DAEMON_VALUE, get_str(v, "version"), (long long)get_int(v, "pid"), text);
    status_line(out, MSG_STATUS_DAEMON, strbuf_str(&b));
    status_line(out, MSG_STATUS_ENGINE, get_str(v, "engine"));
    strbuf_clear(&b);
    format_milli(get_int(v, "gpus_free_milli"), text);
    ADD(&b, STATUS_CARDS_VALUE, (long long)get_int(v, "gpus"), (long long)get_int(v, "nodes"), text);
    status_line(out, MSG_STATUS_CARDS, strbuf_str(&b));
    if (get_str(v, "cards")[0] != '\0')
        status_line(out, MSG_STATUS_SOURCE, get_str(v, "cards"));
    strbuf_clear(&b);
    const json_t *jobs = json_object_get(v, "jobs");
    ADD(&b, STATUS_JOBS_VALUE, (long long)get_int(jobs, "queued"), (long long)get_int(jobs, "starting"),
        (long long)get_int(jobs, "running"), (long long)get_int(jobs, "succeeded"), (long long)get_int(jobs, "failed"),
        (long long)get_int(jobs, "cancelled"));
    status_line(out, MSG_STATUS_JOBS, strbuf_str(&b));
    const char *dir = get_str(v, "state_dir");
    status_line(out, MSG_STATUS_STATE, dir[0] != '\0' ? dir : state_dir);
    const json_t *audit = json_object_get(v, "last_audit");
    status_line(out, MSG_STATUS_AUDIT, get_bool(audit, "ok") ? msg(MSG_STATUS_AUDIT_OK) : get_str(audit, "detail"));
    if (!get_bool(v, "reconciled"))
        strbuf_printf(out, "%s\n", msg(MSG_STATUS_RECOVERING));
    strbuf_done(&b);
}

int run_status(struct cli *c, struct args *a)
{
    (void)a;
    struct api_reply r;
    int rc = api_call(c->api, "GET", "/v1/status", NULL, &r);
    if (rc != CLI_OK) {
        (void)cli_fail_reply(c, &r);
    } else if (c->json) {
        print_json(r.body);
    } else {
        struct strbuf out = {0};
        status_write(&out, r.body, c->state_dir);
        (void)fputs(strbuf_str(&out), stdout);
        strbuf_done(&out);
    }
    api_reply_done(&r);
    return rc;
}
