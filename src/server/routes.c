/* SPDX-License-Identifier: Apache-2.0 */
/* The table of calls, and how a path is found in it. api/openapi.yaml describes the same calls. */
#include "server/state.h"
#include "server/calls.h"

#include <stdio.h>
#include <string.h>

#define ROUTES(X)                                                                             \
    X("GET", "/v1/status", "", call_status, CALL_ANY_TIME)                                    \
    X("POST", "/v1/jobs", "", call_submit, CALL_MUTATES | CALL_JSON)                          \
    X("GET", "/v1/jobs", "state user queue tenant name all ended after limit ", call_jobs, 0) \
    X("POST", "/v1/jobs/cancel", "", call_cancel_many, CALL_MUTATES | CALL_JSON)              \
    X("GET", "/v1/jobs/{id}", "", call_job, 0)                                                \
    X("PATCH", "/v1/jobs/{id}", "", call_update, CALL_MUTATES | CALL_JSON)                    \
    X("POST", "/v1/jobs/{id}/cancel", "", call_cancel, CALL_MUTATES | CALL_JSON)              \
    X("POST", "/v1/jobs/{id}/requeue", "", call_requeue, CALL_MUTATES | CALL_JSON)            \
    X("GET", "/v1/jobs/{id}/explain", "", call_explain, 0)                                    \
    X("GET", "/v1/jobs/{id}/wait", "timeout_ms ", call_wait, 0)                               \
    X("GET", "/v1/jobs/{id}/logs", "worker stream attempt tail follow ", call_logs, 0)        \
    X("GET", "/v1/nodes", "", call_nodes, 0)                                                  \
    X("POST", "/v1/nodes/{name}/drain", "", call_drain, CALL_MUTATES | CALL_JSON)             \
    X("POST", "/v1/nodes/{name}/undrain", "", call_undrain, CALL_MUTATES | CALL_JSON)         \
    X("GET", "/v1/topology", "node ", call_topology, 0)                                       \
    X("GET", "/v1/queues", "", call_queues, 0)                                                \
    X("GET", "/v1/tenants", "", call_tenants, 0)                                              \
    X("GET", "/v1/events", "after job follow ", call_events, 0)                               \
    X("GET", "/v1/config", "", call_get_config, 0)                                            \
    X("PUT", "/v1/config", "", call_put_config, CALL_MUTATES | CALL_TEXT)                     \
    X("POST", "/v1/shutdown", "", call_shutdown, CALL_JSON | CALL_ANY_TIME)

static const struct route routes[] = {
#define X(method, path, query, handler, flags) {{method, path, query}, handler, flags},
    ROUTES(X)
#undef X
};

static const struct server_call calls[] = {
#define X(method, path, query, handler, flags) {method, path, query},
    ROUTES(X)
#undef X
};

const struct server_call *server_calls(size_t *ret_len)
{
    *ret_len = sizeof(calls) / sizeof(calls[0]);
    return calls;
}

/* Compares a path with a template; {x} takes one segment that is not empty. */
static bool match(const char *template, const char *path, char params[PARAMS_MAX][NAME_SIZE * 2])
{
    unsigned n = 0;
    while (*template != '\0' && *path != '\0') {
        if (*template != '{') {
            if (*template ++ != *path++)
                return false;
            continue;
        }
        size_t len = strcspn(path, "/");
        if (len == 0 || len >= NAME_SIZE * 2 || n == PARAMS_MAX)
            return false;
        memcpy(params[n], path, len);
        params[n++][len] = '\0';
        path += len;
        template = strchr(template, '}') + 1;
    }
    return *template == '\0' && *path == '\0';
}

/* An id from 1; "cancel" is none. */
static bool parse_id(const char *text, uint64_t *ret)
{
    uint64_t n = 0;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || n > (INT64_MAX - 9) / 10)
            return false;
        n = n * 10 + (uint64_t)(*p - '0');
    }
    *ret = n;
    return n > 0;
}

const struct route *route_find(const char *method, const char *path, struct http_request *r)
{
    bool other_method = false;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        const struct server_call *call = &routes[i].call;
        if (!match(call->path, path, r->params))
            continue;
        if (strstr(call->path, "{id}") != NULL && strcmp(r->params[0], "cancel") == 0)
            continue;
        if (strcmp(call->method, method) != 0) {
            size_t len = strlen(r->allow);
            other_method = true;
            snprintf(r->allow + len, sizeof(r->allow) - len, "%s%s", len == 0 ? "" : ", ", call->method);
            continue;
        }
        r->allow[0] = '\0';
        if (strstr(call->path, "{id}") != NULL && !parse_id(r->params[0], &r->id)) {
            request_problem(r, 400, "invalid-field", "id", "id: \"%.40s\" is no number of a job", r->params[0]);
            return NULL;
        }
        return &routes[i];
    }
    if (other_method)
        request_problem(r, 405, "method-not-allowed", NULL, "%.20s is not possible here; allowed: %s", method,
                        r->allow);
    else
        request_problem(r, 404, "not-found", NULL, "there is no call \"%.200s\"", path);
    return NULL;
}
