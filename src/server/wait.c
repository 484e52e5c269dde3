/* SPDX-License-Identifier: Apache-2.0 */
/* Long polls for the end of a job: answered when the end has been committed, or at their time. */
#include "server/state.h"

#include "base/sys/clock.h"

#define WAIT_MAX_MS 60000

static void write_answer(struct server *s, struct http_request *r, bool ended, int exit_status)
{
    struct jsonw w;
    const char *state = control_job_state(s->control, r->job);
    jsonw_init(&w, &r->out);
    jsonw_object(&w);
    jsonw_key_u64(&w, "id", r->job);
    jsonw_key_str(&w, "state", state);
    jsonw_key_bool(&w, "ended", ended);
    if (ended)
        jsonw_key_i64(&w, "exit_status", exit_status);
    jsonw_end_object(&w);
    request_answer(r, 200);
}

/* Answers when the job has ended, or in every case when `now`. */
static bool answer(struct server *s, struct http_request *r, bool now)
{
    int exit_status = 0;
    if (s->control == NULL) {
        if (now)
            request_problem(r, 503, "store-failed", NULL, "the store can't be read");
        return now;
    }
    bool ended = control_exit_status(s->control, r->job, &exit_status);
    if (ended || now)
        write_answer(s, r, ended, exit_status);
    return ended || now;
}

void call_wait(struct server *s, struct http_request *r)
{
    uint64_t timeout_ms = WAIT_MAX_MS;
    uint32_t uid, attempt, workers;
    bool ended;
    if (!request_query_number(r, "timeout_ms", WAIT_MAX_MS, &timeout_ms))
        return;
    if (control_job_facts(s->control, r->id, &uid, &attempt, &workers, &ended) != 0) {
        request_problem(r, 404, "not-found", NULL, "there is no job %llu", (unsigned long long)r->id);
        return;
    }
    r->job = r->id;
    if (answer(s, r, timeout_ms == 0 || s->stopping))
        return;
    r->deadline_ms = clock_mono_ms() + (int64_t)timeout_ms;
    r->phase = PHASE_WAITING;
    request_list(r, true);
}

void wait_check(struct server *s, uint64_t job)
{
    for (struct http_request *r = s->waiting, *next; r != NULL; r = next) {
        next = r->next;
        if (r->job == job && answer(s, r, false))
            request_resume(r);
    }
}

void wait_tick(struct server *s)
{
    int64_t now = clock_mono_ms();
    for (struct http_request *r = s->waiting, *next; r != NULL; r = next) {
        next = r->next;
        if (answer(s, r, s->stopping || now >= r->deadline_ms))
            request_resume(r);
    }
}
