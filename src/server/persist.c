/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decide, commit, act. All inputs of one turn of the loop (requests, what the engine told, timers)
 * are followed by one scheduling pass and one transaction of the store; then the engine is called
 * and the held requests are answered.
 *
 * When the commit fails, nothing of the turn has happened: the held requests get 507 or 503, the
 * control object (which is ahead of the disk) is thrown away and made anew from the store, and
 * inputs are refused until a write has worked again. Reads go on from the new object. What the
 * engine told in the meantime is asked for again by a reconcile.
 */
#include "server/state.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "control/codec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct loading {
    struct control *control;
    struct err *e;
    uint64_t rows;
};

static int load_row(void *arg, const struct store_row *row)
{
    struct loading *l = arg;
    struct record r = {0};
    int rc = codec_decode((enum record_kind)row->kind, row->seq, row->time_ms, row->body, row->len, &r, l->e);
    if (rc == 0) {
        rc = control_load(l->control, &r, l->e);
        record_done(&r);
    }
    if (rc != 0)
        return err_prefix(l->e, "log row %llu", (unsigned long long)row->seq);
    l->rows++;
    return 0;
}

/* A control object as the store has it. */
static int rebuild(struct server *s, struct err *e)
{
    struct loading l = {.control = control_new(&s->control_options), .e = e};
    if (l.control == NULL)
        return err_set(e, -ENOMEM, "out of memory");
    int rc = store_read(s->store, 0, 0, 0, load_row, &l, e);
    if (rc != 0) {
        control_free(l.control);
        return rc;
    }
    control_free(s->control);
    s->control = l.control;
    return 0;
}

int persist_open(struct server *s, struct err *e)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/store.db", s->o->state_dir);
    int rc = store_sqlite_open(path, NULL, &s->store, e);
    if (rc == 0)
        rc = rebuild(s, e);
    if (rc != 0)
        return rc;
    uint64_t last = 0;
    rc = store_last_seq(s->store, &last, e);
    if (rc == 0)
        events_catch_up(s->events, last);
    s->storing = true;
    return rc;
}

void persist_dirty(struct server *s)
{
    s->dirty = true;
}

int persist_reconcile(struct server *s, struct err *e)
{
    return bridge_reconcile(s, e);
}

/* --- the store's side of a turn --- */

static int encode(struct server *s, const struct record *records, size_t len)
{
    strbuf_clear(&s->encoded);
    if (mem_grow(&s->rows, &s->rows_cap, len, sizeof(*s->rows)) != 0 ||
        mem_grow(&s->offsets, &s->offsets_cap, len + 1, sizeof(*s->offsets)) != 0)
        return -ENOMEM;
    for (size_t i = 0; i < len; i++) {
        s->offsets[i] = s->encoded.len;
        codec_encode(&s->encoded, &records[i]);
    }
    s->offsets[len] = s->encoded.len;
    if (s->encoded.failed)
        return -ENOMEM;
    for (size_t i = 0; i < len; i++)
        s->rows[i] = (struct store_row){
            .seq = records[i].seq,
            .time_ms = records[i].time_ms,
            .kind = (uint32_t)records[i].kind,
            .job = records[i].job,
            .body = s->encoded.data + s->offsets[i],
            .len = s->offsets[i + 1] - s->offsets[i],
        };
    return 0;
}

static int commit(struct server *s, struct err *e)
{
    size_t len = 0;
    const struct record *records = control_unsaved(s->control, &len);
    if (len == 0)
        return 0;
    int rc = encode(s, records, len);
    if (rc != 0)
        return err_set(e, rc, "encoding %zu records: out of memory", len);
    return store_append(s->store, s->rows, len, e);
}

static void answer_held(struct server *s, int failed)
{
    while (s->held != NULL) {
        struct http_request *r = s->held;
        if (failed == -ENOSPC)
            request_problem(r, 507, "disk-full", NULL,
                            "the disk of the state folder is full: nothing has been changed");
        else if (failed != 0)
            request_problem(r, 503, "store-failed", NULL, "the store can't be written to: nothing has been changed");
        else
            r->finish(s, r);
        idem_end(s, r);
        request_resume(r);
    }
}

static void on_retry(uv_timer_t *timer)
{
    persist_retry(timer->data);
}

static void on_wake(uv_timer_t *timer)
{
    persist_dirty(timer->data);
}

static void fail(struct server *s, int code, const struct err *e)
{
    char text[512];
    struct err why = {0};
    s->backoff_ms = s->backoff_ms == 0 ? BACKOFF_FIRST_MS : s->backoff_ms * 2;
    if (s->backoff_ms > BACKOFF_LAST_MS)
        s->backoff_ms = BACKOFF_LAST_MS;
    log_error("the store can't be written; nothing of this turn is acted on", "why=%s retry_in_ms=%lld",
              log_quote(e->text, text, sizeof(text)), (long long)s->backoff_ms);
    s->storing = false;
    s->store_error = code;
    s->failures_len = 0;
    answer_held(s, code);
    if (rebuild(s, &why) != 0) {
        log_error("the state can't be read back from the store", "why=%s", log_quote(why.text, text, sizeof(text)));
        control_free(s->control);
        s->control = NULL;
    }
    uv_timer_start(&s->retry, on_retry, (uint64_t)s->backoff_ms, 0);
}

/* A retry writes something without meaning first, so that an error costs little. */
void persist_retry(struct server *s)
{
    struct err e = {0};
    char text[512];
    int rc = store_probe(s->store, &e);
    if (rc == 0 && s->control == NULL)
        rc = rebuild(s, &e);
    if (rc == 0) {
        s->storing = true;
        rc = persist_reconcile(s, &e);
    }
    if (rc == 0) {
        log_info("the store can be written again", NULL);
        return;
    }
    s->storing = false;
    s->store_error = rc;
    s->backoff_ms = s->backoff_ms * 2 > BACKOFF_LAST_MS ? BACKOFF_LAST_MS : s->backoff_ms * 2;
    log_error("the store still can't be written", "why=%s retry_in_ms=%lld", log_quote(e.text, text, sizeof(text)),
              (long long)s->backoff_ms);
    uv_timer_start(&s->retry, on_retry, (uint64_t)s->backoff_ms, 0);
}

/* --- effects --- */

static void carry_out(struct server *s)
{
    struct effect x;
    char text[600];
    while (control_next_effect(s->control, &x)) {
        switch (x.kind) {
        case EFFECT_LAUNCH:
        case EFFECT_TERMINATE:
        case EFFECT_FORGET:
            bridge_effect(s, &x);
            break;
        case EFFECT_PUBLISH:
            events_publish(s->events, x.seq, x.job, x.text);
            if (x.job != 0)
                wait_check(s, x.job);
            break;
        case EFFECT_ALERT:
            log_error("audit found a violation", "detail=%s", log_quote(x.text, text, sizeof(text)));
            break;
        }
    }
    bridge_report_failures(s);
}

static void set_wake(struct server *s)
{
    int64_t at = control_next_wake_ms(s->control);
    if (at == INT64_MAX) {
        uv_timer_stop(&s->wake);
        return;
    }
    int64_t wait = at - clock_wall_ms();
    /* The wall clock may be set: look again at least once a minute. */
    uint64_t ms = wait < 1 ? 1 : wait > 60000 ? 60000 : (uint64_t)wait;
    uv_timer_start(&s->wake, on_wake, ms, 0);
}

static void say_ready(struct server *s)
{
    if (s->ready || !control_is_reconciled(s->control))
        return;
    s->ready = true;
    log_info("ready", "state_dir=%s engine=%s", s->o->state_dir, s->o->engine);
    if (s->o->ready_fd >= 0 && write(s->o->ready_fd, "\n", 1) != 1)
        log_warn("nobody waits for the start any more", NULL);
}

void persist_turn(struct server *s)
{
    struct err e = {0};
    if (!s->dirty || !s->storing || s->control == NULL)
        return;
    s->dirty = false;
    int rc = control_step(s->control, clock_wall_ms());
    if (rc != 0)
        err_set(&e, rc, "a scheduling pass failed: %s", strerror(-rc));
    else
        rc = commit(s, &e);
    if (rc != 0) {
        fail(s, rc, &e);
        return;
    }
    control_saved(s->control);
    s->backoff_ms = 0;
    carry_out(s);
    answer_held(s, 0);
    say_ready(s);
    set_wake(s);
}
