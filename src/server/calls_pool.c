/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about nodes, accounts, the configuration and the daemon itself. */
#include "server/calls.h"

#include "base/sys/clock.h"
#include "config/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What is known without a control object: the store can't be read. */
static void write_broken_status(struct server *s, struct jsonw *w)
{
    jsonw_object(w);
    jsonw_key_i64(w, "pid", s->control_options.pid);
    jsonw_key_str(w, "version", s->o->version);
    jsonw_key_str(w, "engine", s->o->engine);
    jsonw_key_bool(w, "simulated", s->o->simulated);
    jsonw_key_str(w, "cards", s->o->cards);
    jsonw_key_time(w, "started_at", s->started_ms);
    jsonw_key_bool(w, "reconciled", false);
    jsonw_key_str(w, "state_dir", s->o->state_dir);
    jsonw_key_bool(w, "store_ok", false);
    jsonw_end_object(w);
}

void call_status(struct server *s, struct http_request *r)
{
    struct jsonw w;
    jsonw_init(&w, &r->out);
    if (s->control == NULL) {
        write_broken_status(s, &w);
        request_answer(r, 200);
        return;
    }
    control_write_status(s->control, clock_wall_ms(), &w);
    /* The shell's own facts go in front of the closing brace. */
    if (r->out.len > 0 && !r->out.failed) {
        r->out.len--;
        strbuf_puts(&r->out, ",\"state_dir\":");
        struct jsonw tail;
        jsonw_init(&tail, &r->out);
        jsonw_str(&tail, s->o->state_dir);
        strbuf_puts(&r->out, s->storing ? ",\"store_ok\":true}" : ",\"store_ok\":false}");
    }
    request_answer(r, 200);
}

void call_nodes(struct server *s, struct http_request *r)
{
    struct jsonw w;
    jsonw_init(&w, &r->out);
    control_write_nodes(s->control, clock_wall_ms(), &w);
    request_answer(r, 200);
}

static void finish_drain(struct server *s, struct http_request *r)
{
    struct jsonw w;
    struct err e = {0};
    jsonw_init(&w, &r->out);
    int rc = control_write_node(s->control, r->params[0], &w, &e);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_answer(r, 200);
}

static void drain(struct server *s, struct http_request *r, bool on)
{
    static const char *const known[] = {"reason", NULL};
    const json_t *reason = json_object_get(r->json, "reason");
    struct err e = {0};
    if (!call_check_keys(r, known))
        return;
    if (reason != NULL && (!json_is_string(reason) || json_string_length(reason) > 1000)) {
        request_problem(r, 400, "invalid-field", "reason", "reason: a text of at most 1000 bytes is wanted");
        return;
    }
    int rc = control_drain(s->control, &r->who, clock_wall_ms(), r->params[0], on, json_string_value(reason), &e);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_hold(s, r, finish_drain);
}

void call_drain(struct server *s, struct http_request *r)
{
    drain(s, r, true);
}

void call_undrain(struct server *s, struct http_request *r)
{
    drain(s, r, false);
}

void call_topology(struct server *s, struct http_request *r)
{
    struct jsonw w;
    struct err e = {0};
    const char *node = request_query(r, "node");
    jsonw_init(&w, &r->out);
    int rc = control_write_topology(s->control, node, &w, &e);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_answer(r, 200);
}

void call_queues(struct server *s, struct http_request *r)
{
    struct jsonw w;
    jsonw_init(&w, &r->out);
    control_write_queues(s->control, &w);
    request_answer(r, 200);
}

void call_tenants(struct server *s, struct http_request *r)
{
    struct jsonw w;
    jsonw_init(&w, &r->out);
    control_write_tenants(s->control, &w);
    request_answer(r, 200);
}

void call_get_config(struct server *s, struct http_request *r)
{
    struct jsonw w;
    uint64_t version = 0;
    const char *text = control_config_text(s->control, &version);
    jsonw_init(&w, &r->out);
    jsonw_object(&w);
    jsonw_key_str(&w, "text", text == NULL ? "" : text);
    jsonw_key_u64(&w, "version", version);
    jsonw_end_object(&w);
    request_answer(r, 200);
}

static void finish_config(struct server *s, struct http_request *r)
{
    struct jsonw w;
    uint64_t version = 0;
    control_config_text(s->control, &version);
    jsonw_init(&w, &r->out);
    jsonw_object(&w);
    jsonw_key_u64(&w, "version", version);
    jsonw_end_object(&w);
    request_answer(r, 200);
}

void call_put_config(struct server *s, struct http_request *r)
{
    struct config cfg = {0};
    struct err e = {0};
    const char *text = strbuf_str(&r->body);
    if (strlen(text) != r->body.len) {
        request_problem(r, 400, "invalid", NULL, "the configuration has a NUL byte in it");
        return;
    }
    int rc = config_parse(text, r->body.len, "config", &cfg, &e);
    if (rc != 0) {
        request_error(r, &e, rc);
        return;
    }
    rc = control_configure(s->control, &r->who, clock_wall_ms(), &cfg, text, &e);
    config_done(&cfg);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_hold(s, r, finish_config);
}

void call_shutdown(struct server *s, struct http_request *r)
{
    static const char *const none[] = {NULL};
    if (!call_check_keys(r, none))
        return;
    if (!r->who.admin) {
        request_problem(r, 403, "forbidden", NULL, "only root, the daemon's own user and administrators may stop it");
        return;
    }
    strbuf_puts(&r->out, "{\"stopping\":true}");
    request_answer(r, 202);
    server_stop(s, "asked for by the API");
}
