/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about jobs. */
#include "server/calls.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/units.h"
#include "config/jobspec_json.h"
#include "config/suggest.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

bool call_check_keys(struct http_request *r, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(r->json, key, value)
    {
        const char *best = NULL;
        bool found = false;
        for (size_t i = 0; known[i] != NULL; i++) {
            found = found || strcmp(known[i], key) == 0;
            suggest_offer(key, known[i], &best);
        }
        if (!found) {
            request_problem(r, 400, "unknown-field", key, "%.60s: there is no such key%s%s", key,
                            best == NULL ? "" : "; did you mean ", best == NULL ? "" : best);
            return false;
        }
    }
    return true;
}

/* --- submit --- */

static void finish_submit(struct server *s, struct http_request *r)
{
    struct jsonw w;
    jsonw_init(&w, &r->out);
    jsonw_object(&w);
    jsonw_key_u64(&w, "id", r->job);
    jsonw_key_str(&w, "state", control_job_state(s->control, r->job));
    jsonw_key(&w, "warnings");
    jsonw_array(&w);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    request_answer(r, 201);
}

/* Who the job is for: the caller, unless root or an administrator names somebody else. */
static int settle_owner(struct server *s, struct http_request *r, struct job_spec *spec, struct err *e)
{
    uint32_t uid = spec->uid == JOB_ID_NONE ? r->who.uid : spec->uid;
    char buffer[4096];
    struct passwd entry;
    struct passwd *found = NULL;
    (void)s;
    if (!r->who.admin && (uid != r->who.uid || spec->gid != JOB_ID_NONE))
        return err_set(e, -EACCES, "%s: only root and administrators may give it", uid != r->who.uid ? "uid" : "gid");
    if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) != 0)
        found = NULL;
    if (spec->gid == JOB_ID_NONE) {
        if (found == NULL && uid != r->who.uid)
            return err_set(e, -EINVAL, "uid: %u is no user of this machine; give gid too", uid);
        spec->gid = found == NULL ? uid : found->pw_gid;
    }
    spec->uid = uid;
    if (spec->user[0] != '\0' && !r->who.admin && strcmp(spec->user, r->who.user) != 0)
        return err_set(e, -EACCES, "user: only root and administrators may give it");
    if (spec->user[0] == '\0')
        auth_user_name(uid, spec->user);
    return 0;
}

void call_submit(struct server *s, struct http_request *r)
{
    struct job_spec spec = {0};
    struct err e = {0};
    const char *key = request_header(r, "Idempotency-Key");
    int rc = job_spec_from_json(r->json, &spec, &e);
    if (rc != 0) {
        request_error(r, &e, rc);
        return;
    }
    rc = settle_owner(s, r, &spec, &e);
    if (rc == 0 && key != NULL && (spec.key = mem_strdup(key)) == NULL)
        rc = -ENOMEM;
    if (rc == 0)
        rc = control_submit(s->control, &r->who, clock_wall_ms(), &spec, &r->job, &e);
    job_spec_done(&spec);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_hold(s, r, finish_submit);
}

/* --- lists --- */

void call_jobs(struct server *s, struct http_request *r)
{
    struct job_filter f = {
        .state = request_query(r, "state"),
        .user = request_query(r, "user"),
        .queue = request_query(r, "queue"),
        .tenant = request_query(r, "tenant"),
        .name = request_query(r, "name"),
    };
    uint64_t limit = 0;
    struct err e = {0};
    struct jsonw w;
    if (!request_query_flag(r, "all", &f.all) || !request_query_flag(r, "ended", &f.ended_only) ||
        !request_query_number(r, "after", INT64_MAX, &f.after) || !request_query_number(r, "limit", 10000, &limit))
        return;
    f.limit = (uint32_t)limit;
    jsonw_init(&w, &r->out);
    int rc = control_write_jobs(s->control, clock_wall_ms(), &f, &w, &e);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_answer(r, 200);
}

void call_job(struct server *s, struct http_request *r)
{
    struct err e = {0};
    struct jsonw w;
    jsonw_init(&w, &r->out);
    int rc = control_write_job(s->control, clock_wall_ms(), r->id, &w, &e);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_answer(r, 200);
}

void call_explain(struct server *s, struct http_request *r)
{
    struct err e = {0};
    struct jsonw w;
    jsonw_init(&w, &r->out);
    int rc = control_write_explain(s->control, clock_wall_ms(), r->id, &w, &e);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_answer(r, 200);
}

/* --- cancel --- */

static void finish_cancel(struct server *s, struct http_request *r)
{
    struct jsonw w;
    jsonw_init(&w, &r->out);
    jsonw_object(&w);
    jsonw_key_u64(&w, "id", r->id);
    jsonw_key_str(&w, "state", control_job_state(s->control, r->id));
    jsonw_end_object(&w);
    request_answer(r, 200);
}

void call_cancel(struct server *s, struct http_request *r)
{
    static const char *const none[] = {NULL};
    struct err e = {0};
    if (!call_check_keys(r, none))
        return;
    int rc = control_cancel(s->control, &r->who, clock_wall_ms(), r->id, &e);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_hold(s, r, finish_cancel);
}

void call_requeue(struct server *s, struct http_request *r)
{
    static const char *const none[] = {NULL};
    struct err e = {0};
    if (!call_check_keys(r, none))
        return;
    int rc = control_requeue(s->control, &r->who, clock_wall_ms(), r->id, &e);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_hold(s, r, finish_cancel);
}

static void finish_cancel_many(struct server *s, struct http_request *r)
{
    struct jsonw w;
    (void)s;
    jsonw_init(&w, &r->out);
    jsonw_object(&w);
    jsonw_key(&w, "cancelled");
    jsonw_array(&w);
    for (size_t i = 0; i < r->ids_len; i++)
        jsonw_u64(&w, r->ids[i]);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    request_answer(r, 200);
}

/* A text value of the body; false and answered when it is something else. */
static bool body_text(struct http_request *r, const char *key, const char **ret)
{
    const json_t *v = json_object_get(r->json, key);
    if (v == NULL)
        return true;
    if (!json_is_string(v) || json_string_length(v) == 0) {
        request_problem(r, 400, "invalid-field", key, "%s: a text is wanted", key);
        return false;
    }
    *ret = json_string_value(v);
    return true;
}

static bool read_filter(struct http_request *r, struct job_filter *f)
{
    static const char *const known[] = {"state", "user", "queue", "tenant", "name", "all", NULL};
    const json_t *all = json_object_get(r->json, "all");
    if (!call_check_keys(r, known) || !body_text(r, "state", &f->state) || !body_text(r, "user", &f->user) ||
        !body_text(r, "queue", &f->queue) || !body_text(r, "tenant", &f->tenant) || !body_text(r, "name", &f->name))
        return false;
    if (all != NULL && !json_is_boolean(all)) {
        request_problem(r, 400, "invalid-field", "all", "all: true or false is wanted");
        return false;
    }
    if (!json_is_true(all) && f->state == NULL && f->user == NULL && f->queue == NULL && f->tenant == NULL &&
        f->name == NULL) {
        request_problem(r, 400, "invalid", NULL,
                        "say which jobs: at least one of state, user, queue, tenant, name, all");
        return false;
    }
    return true;
}

/* Cancels what matches and is the caller's; jobs of others are passed over unless the caller may
 * cancel them. */
void call_cancel_many(struct server *s, struct http_request *r)
{
    struct job_filter f = {.limit = UINT32_MAX};
    struct err e = {0};
    if (!read_filter(r, &f))
        return;
    int rc = control_match(s->control, &f, &r->ids, &r->ids_len, &e);
    if (rc != 0) {
        request_error(r, &e, rc);
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < r->ids_len; i++)
        if (control_cancel(s->control, &r->who, clock_wall_ms(), r->ids[i], NULL) == 0)
            r->ids[kept++] = r->ids[i];
    r->ids_len = kept;
    request_hold(s, r, finish_cancel_many);
}

/* --- update --- */

static void finish_update(struct server *s, struct http_request *r)
{
    call_job(s, r);
}

static bool change_name(struct http_request *r, const char *key, bool *set, char out[NAME_SIZE])
{
    const char *text = NULL;
    if (!body_text(r, key, &text) || text == NULL)
        return r->phase != PHASE_ANSWERED;
    if (strlen(text) >= NAME_SIZE) {
        request_problem(r, 400, "invalid-field", key, "%s: at most %d bytes are allowed", key, NAME_SIZE - 1);
        return false;
    }
    *set = true;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

static bool change_time(struct http_request *r, struct job_change *c)
{
    const json_t *v = json_object_get(r->json, "time_limit");
    struct err e = {0};
    char text[64] = "";
    if (v == NULL)
        return true;
    if (json_is_string(v))
        snprintf(text, sizeof(text), "%s", json_string_value(v));
    else if (json_is_integer(v))
        snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(v));
    if (text[0] == '\0' || units_parse_duration_ms(text, &c->time_limit_ms, &e) != 0) {
        request_problem(r, 400, "invalid-field", "time_limit", "time_limit: %s",
                        e.code == 0 ? "a duration such as 2h30m is wanted" : e.text);
        return false;
    }
    c->set_time_limit = true;
    return true;
}

static bool read_change(struct http_request *r, struct job_change *c)
{
    static const char *const known[] = {"priority", "time_limit", "name", "queue", "hold", NULL};
    const json_t *priority = json_object_get(r->json, "priority");
    const json_t *hold = json_object_get(r->json, "hold");
    if (!call_check_keys(r, known) || !change_name(r, "name", &c->set_name, c->name) ||
        !change_name(r, "queue", &c->set_queue, c->queue) || !change_time(r, c))
        return false;
    if (priority != NULL && (!json_is_integer(priority) || json_integer_value(priority) < PRIORITY_MIN ||
                             json_integer_value(priority) > PRIORITY_MAX)) {
        request_problem(r, 400, "invalid-field", "priority", "priority: a whole number from %d to %d is wanted",
                        PRIORITY_MIN, PRIORITY_MAX);
        return false;
    }
    if (hold != NULL && !json_is_boolean(hold)) {
        request_problem(r, 400, "invalid-field", "hold", "hold: true or false is wanted");
        return false;
    }
    c->set_hold = hold != NULL;
    c->hold = json_is_true(hold);
    c->set_priority = priority != NULL;
    c->priority = (int32_t)json_integer_value(priority);
    if (json_object_size(r->json) == 0) {
        request_problem(r, 400, "invalid", NULL, "say what to change: priority, time_limit, name, queue or hold");
        return false;
    }
    return true;
}

void call_update(struct server *s, struct http_request *r)
{
    struct job_change change = {0};
    struct err e = {0};
    if (!read_change(r, &change))
        return;
    int rc = control_update(s->control, &r->who, clock_wall_ms(), r->id, &change, &e);
    if (rc != 0)
        request_error(r, &e, rc);
    else
        request_hold(s, r, finish_update);
}
