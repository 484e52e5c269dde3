/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event stream: server-sent events whose ids are the numbers of the log's rows, so that a
 * client that comes back with Last-Event-ID goes on where it was, across restarts too. The newest
 * events are kept in a ring; a client that is further behind reads from the store, page by page.
 * Nothing is kept for a client but its place.
 *
 * A client that follows and takes no more than it is offered is cut off at EVENT_LAG_MAX events
 * with `event: reset`; it may come back with its last id.
 */
#include "server/state.h"

#include "base/mem.h"
#include "base/sys/log.h"
#include "control/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_ROWS  64
#define BLOCK_SIZE 16384
#define FULL_BYTES 65536 /* a page ends at this size */

struct kept {
    uint64_t seq;
    uint64_t job;
    char *text; /* owned */
};

struct events {
    struct server *server;
    struct kept ring[EVENT_RING]; /* event n stands at n % EVENT_RING */
    uint64_t newest;              /* last seq known to be on disk */
    uint64_t oldest;              /* first seq that the ring has without a gap; newest + 1: none */
    struct stream *streams;
};

struct stream {
    struct events *events;
    struct http_request *request;
    struct stream *next;
    struct stream *prev;
    uint64_t cursor; /* last seq dealt with */
    uint64_t job;    /* 0: all */
    bool follow;
    bool live; /* has caught up once */
    bool suspended;
    bool over; /* nothing comes after `out` */
    struct strbuf out;
    size_t out_at;
};

struct events *events_new(struct server *s)
{
    struct events *v = mem_alloc(1, sizeof(*v));
    if (v != NULL) {
        v->server = s;
        v->oldest = 1;
    }
    return v;
}

void events_free(struct events *v)
{
    if (v == NULL)
        return;
    for (size_t i = 0; i < EVENT_RING; i++)
        mem_free(v->ring[i].text);
    mem_free(v);
}

void events_catch_up(struct events *v, uint64_t seq)
{
    if (seq <= v->newest)
        return;
    v->newest = seq;
    v->oldest = seq + 1;
}

static void wake(struct stream *st)
{
    if (st->suspended) {
        st->suspended = false;
        MHD_resume_connection(st->request->conn);
    }
}

void events_publish(struct events *v, uint64_t seq, uint64_t job, const char *text)
{
    struct kept *k = &v->ring[seq % EVENT_RING];
    mem_free(k->text);
    *k = (struct kept){.seq = seq, .job = job, .text = mem_strdup(text)};
    if (k->text == NULL || seq != v->newest + 1)
        v->oldest = seq + (k->text == NULL);
    v->newest = seq;
    if (v->oldest + EVENT_RING <= seq)
        v->oldest = seq + 1 - EVENT_RING;
    for (struct stream *st = v->streams; st != NULL; st = st->next) {
        if (!st->suspended)
            continue;
        if (st->job != 0 && st->job != job)
            st->cursor = seq; /* it has caught up, and this one is not for it */
        else
            wake(st);
    }
}

/* --- what a stream sends --- */

/* The name stands in the text as "event":"NAME"; names are ours and need no escapes. */
static void put_event(struct stream *st, uint64_t seq, const char *text)
{
    static const char mark[] = "\"event\":\"";
    const char *name = strstr(text, mark);
    strbuf_printf(&st->out, "id: %llu\n", (unsigned long long)seq);
    if (name != NULL) {
        name += sizeof(mark) - 1;
        strbuf_printf(&st->out, "event: %.*s\n", (int)strcspn(name, "\""), name);
    }
    strbuf_printf(&st->out, "data: %s\n\n", text);
}

static int put_row(void *arg, const struct store_row *row)
{
    struct stream *st = arg;
    struct record r = {0};
    struct strbuf text = {0};
    struct jsonw w;
    if (st->out.len >= FULL_BYTES || row->seq > st->events->newest)
        return 1;
    int rc = codec_decode((enum record_kind)row->kind, row->seq, row->time_ms, row->body, row->len, &r, NULL);
    if (rc != 0)
        return rc;
    jsonw_init(&w, &text);
    control_write_event(st->events->server->control, &r, &w);
    put_event(st, row->seq, strbuf_str(&text));
    strbuf_done(&text);
    record_done(&r);
    st->cursor = row->seq;
    return 0;
}

static void put_reset(struct stream *st, const char *why)
{
    strbuf_printf(&st->out, "event: reset\ndata: {\"event\":\"reset\",\"last\":%llu,\"why\":\"%s\"}\n\n",
                  (unsigned long long)st->cursor, why);
    st->over = true;
}

static void fill_from_store(struct stream *st)
{
    struct server *s = st->events->server;
    struct err e = {0};
    char text[400];
    uint64_t upto = st->events->newest;
    uint64_t before = st->cursor;
    if (s->control == NULL) {
        put_reset(st, "the store can't be read");
        return;
    }
    int rc = store_read(s->store, st->cursor, st->job, PAGE_ROWS, put_row, st, &e);
    if (rc < 0) {
        log_error("events can't be read from the store", "why=%s", log_quote(e.text, text, sizeof(text)));
        put_reset(st, "the store can't be read");
    } else if (rc == 0 && st->cursor == before) {
        st->cursor = upto; /* nothing more for this one */
    }
}

static void fill_from_ring(struct stream *st)
{
    const struct events *v = st->events;
    while (st->cursor < v->newest && st->out.len < FULL_BYTES) {
        const struct kept *k = &v->ring[(st->cursor + 1) % EVENT_RING];
        st->cursor++;
        if (k->seq == st->cursor && (st->job == 0 || st->job == k->job))
            put_event(st, k->seq, k->text);
    }
}

static void fill(struct stream *st)
{
    struct events *v = st->events;
    if (st->out_at == st->out.len) {
        strbuf_clear(&st->out);
        st->out_at = 0;
    }
    if (st->over || st->out.len > 0)
        return;
    if (st->live && v->newest - st->cursor > EVENT_LAG_MAX) {
        put_reset(st, "too slow");
        return;
    }
    while (st->out.len == 0 && st->cursor < v->newest && !st->over) {
        if (st->cursor + 1 >= v->oldest)
            fill_from_ring(st);
        else
            fill_from_store(st);
    }
    if (st->cursor >= v->newest)
        st->live = true;
    if (st->cursor >= v->newest && (!st->follow || v->server->stopping))
        st->over = true;
}

static ssize_t on_read(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct stream *st = cls;
    (void)pos;
    fill(st);
    if (st->out.failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t len = st->out.len - st->out_at;
    if (len == 0 && st->over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (len == 0) {
        st->suspended = true;
        MHD_suspend_connection(st->request->conn);
        return 0;
    }
    if (len > max)
        len = max;
    memcpy(buf, st->out.data + st->out_at, len);
    st->out_at += len;
    return (ssize_t)len;
}

static void on_free(void *cls)
{
    struct stream *st = cls;
    if (st->prev != NULL)
        st->prev->next = st->next;
    else
        st->events->streams = st->next;
    if (st->next != NULL)
        st->next->prev = st->prev;
    strbuf_done(&st->out);
    mem_free(st);
}

/* Says something that clients ignore, so that a dead connection is noticed. */
void events_keep_alive(struct events *v)
{
    for (struct stream *st = v->streams; st != NULL; st = st->next) {
        if (!st->suspended)
            continue;
        strbuf_clear(&st->out);
        st->out_at = 0;
        strbuf_puts(&st->out, ":\n\n");
        wake(st);
    }
}

void events_stop(struct events *v)
{
    for (struct stream *st = v->streams; st != NULL; st = st->next)
        wake(st);
}

/* Where to begin: Last-Event-ID wins over `after`. */
static bool read_start(struct http_request *r, uint64_t *ret)
{
    const char *last = request_header(r, "Last-Event-ID");
    if (!request_query_number(r, "after", INT64_MAX, ret))
        return false;
    if (last == NULL || last[0] == '\0')
        return true;
    if (strlen(last) > 18 || strspn(last, "0123456789") != strlen(last)) {
        request_problem(r, 400, "invalid-field", "Last-Event-ID", "Last-Event-ID: \"%.40s\" is no id of an event",
                        last);
        return false;
    }
    *ret = strtoull(last, NULL, 10);
    return true;
}

void call_events(struct server *s, struct http_request *r)
{
    struct events *v = s->events;
    uint64_t start = 0;
    uint64_t job = 0;
    bool follow = true;
    if (!read_start(r, &start) || !request_query_number(r, "job", INT64_MAX, &job) ||
        !request_query_flag(r, "follow", &follow))
        return;
    struct stream *st = mem_alloc(1, sizeof(*st));
    struct MHD_Response *response =
        st == NULL ? NULL : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, on_read, st, on_free);
    if (response == NULL) {
        mem_free(st);
        request_problem(r, 503, "out-of-memory", NULL, "the daemon is out of memory");
        return;
    }
    *st = (struct stream){.events = v, .request = r, .cursor = start, .job = job, .follow = follow, .next = v->streams};
    if (v->streams != NULL)
        v->streams->prev = st;
    v->streams = st;
    strbuf_puts(&st->out, "retry: 1000\n\n");
    if (start > v->newest) { /* an id from another life of this state folder */
        strbuf_printf(&st->out, "event: reset\ndata: {\"event\":\"reset\",\"last\":%llu,\"why\":\"no such id\"}\n\n",
                      (unsigned long long)v->newest);
        st->cursor = v->newest;
    }
    MHD_add_response_header(response, "Content-Type", "text/event-stream");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    request_stream(r, response);
}
