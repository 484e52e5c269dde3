/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the server, shared by its files only. Who does what:
 *
 *     server.c   sets up, runs the loop, stops           persist.c  one turn: decide, commit, act;
 * failures http.c     libmicrohttpd in our loop, requests      bridge.c   control's effects <-> the
 * engine routes.c   the table of calls; calls_*.c: each      events.c   the event stream (SSE)
 *     auth.c     who is calling, tokens                   logs.c     output of jobs
 *     wait.c     long polls                               idem.c     Idempotency-Key
 *
 * Everything runs on one thread. A mutating request is *held* (its connection suspended) until the
 * turn that took it has been committed; only then is it answered.
 */
#ifndef REMUDA_SERVER_STATE_H
#define REMUDA_SERVER_STATE_H

#include "base/idmap.h"
#include "base/strbuf.h"
#include "control/control.h"
#include "server/server.h"
#include "store/store.h"

#include <jansson.h>
#include <microhttpd.h>
#include <uv.h>

#define LISTENERS_MAX    2
#define PARAMS_MAX       2
#define TICK_MS          200
#define AUDIT_MS         60000
#define EVENT_RING       4096  /* events kept in memory for those who follow */
#define EVENT_LAG_MAX    16384 /* a follower this far behind is cut off */
#define BACKOFF_FIRST_MS 250
#define BACKOFF_LAST_MS  10000

struct server;
struct http_request;
struct stream;

/* --- requests (http.c) --- */

typedef void call_fn(struct server *s, struct http_request *r);

enum call_flags {
    CALL_MUTATES = 1, /* refused while the store can't be written; takes Idempotency-Key */
    CALL_JSON = 2,    /* has a JSON object as its body, parsed before the handler runs */
    CALL_TEXT = 4,    /* has a text as its body */
    CALL_ANY_TIME = 8 /* needs no control object */
};

struct route {
    struct server_call call;
    call_fn *handler;
    unsigned flags;
};

enum request_phase {
    PHASE_BODY,      /* being received */
    PHASE_HELD,      /* taken; waits for the commit, suspended */
    PHASE_WAITING,   /* a long poll, suspended */
    PHASE_ANSWERED,  /* status and out are set */
    PHASE_STREAMING, /* the response has been queued and reads from a stream */
};

struct http_request {
    struct server *server;
    struct MHD_Connection *conn;
    const struct route *route; /* NULL: no such call */
    struct http_request *next; /* list of held or waiting requests */
    struct http_request *prev;
    bool listed;
    bool in_waiting; /* which list */
    bool suspended;
    bool over_tcp;
    enum request_phase phase;
    struct caller who;
    char params[PARAMS_MAX][NAME_SIZE * 2]; /* values of {..} in the path, in order */
    uint64_t id;                            /* {id} as a number */
    struct strbuf body;
    bool body_too_large;
    json_t *json; /* parsed body, owned */
    /* the answer */
    unsigned status;
    struct strbuf out;
    const char *content_type;
    char allow[64];     /* Allow header of a 405 */
    char job_state[16]; /* Remuda-State header of logs */
    bool replayed;
    struct MHD_Response *stream; /* set by request_stream(): the answer is this */
    /* held */
    void (*finish)(struct server *s, struct http_request *r); /* writes the answer after the commit */
    uint64_t *ids;
    size_t ids_len;
    bool ids_shown; /* bulk cancel */
    char name[NAME_SIZE];
    /* waiting */
    uint64_t job;
    int64_t deadline_ms; /* monotonic */
    uint64_t idem;       /* entry in the cache of idempotency keys, 0: none */
};

/* Sets the answer. The JSON text is what was written to r->out. */
void request_answer(struct http_request *r, unsigned status);
/* Starts the answer over as a problem document. `field` may be NULL. */
void request_problem(struct http_request *r, unsigned status, const char *code, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* A problem from an error of a lower layer: its code chooses the status. */
void request_error(struct http_request *r, const struct err *e, int code);
/* Holds the request until the next commit; `finish` then writes the answer. */
void request_hold(struct server *s, struct http_request *r, void (*finish)(struct server *, struct http_request *));
/* Puts the request into the list of held or of waiting ones; request_resume() takes it out. */
void request_list(struct http_request *r, bool waiting);
/* Answers with a stream. */
void request_stream(struct http_request *r, struct MHD_Response *response);
/* Lets a suspended request go on (held or waiting ones that have been answered). */
void request_resume(struct http_request *r);
/* A query parameter: NULL when absent. */
const char *request_query(const struct http_request *r, const char *name);
/* A number in a query parameter. False (and answered) when it is none. *ret is untouched when it is
 * absent. */
bool request_query_number(struct http_request *r, const char *name, uint64_t max, uint64_t *ret);
bool request_query_flag(struct http_request *r, const char *name, bool *ret);
const char *request_header(const struct http_request *r, const char *name);

struct listener {
    struct server *server;
    struct MHD_Daemon *mhd;
    uv_poll_t poll;
    bool polling;
    int fd;
    bool tcp;
};

int http_open_unix(struct server *s, struct err *e);
int http_open_tcp(struct server *s, const char *address, struct err *e);
/* Lets libmicrohttpd do what it can do now. */
void http_run(struct server *s);
/* Takes no new connections. */
void http_quiesce(struct server *s);
unsigned http_connections(const struct server *s);
void http_close(struct server *s);

/* --- routes.c --- */
const struct route *route_find(const char *method, const char *path, struct http_request *r);

/* --- auth.c --- */
struct token {
    char name[NAME_SIZE];
    uint32_t uid;
    bool admin;
    unsigned char hash[32];
};
/* Reads STATE/tokens; makes the first token when there is none. */
int auth_open(struct server *s, struct err *e);
void auth_close(struct server *s);
/* Fills r->who; false and answered when the caller is not let in. */
bool auth_check(struct server *s, struct http_request *r);
void auth_user_name(uint32_t uid, char out[NAME_SIZE]);

/* --- idem.c --- */
struct idem;
struct idem *idem_new(void);
void idem_free(struct idem *c);
/* True when the request may go on; false when it has been answered from the cache or refused. */
bool idem_begin(struct server *s, struct http_request *r);
/* The request has been answered: keeps the answer when it is final. */
void idem_end(struct server *s, struct http_request *r);

/* --- persist.c --- */
int persist_open(struct server *s, struct err *e);
/* Something has to be decided or saved in this turn of the loop. */
void persist_dirty(struct server *s);
/* The end of a turn: pass, commit, effects, answers. */
void persist_turn(struct server *s);
void persist_retry(struct server *s);
int persist_reconcile(struct server *s, struct err *e);

/* --- bridge.c --- */
void bridge_event(void *arg, const struct engine_event *ev);
/* Calls the engine for an effect; a launch that can't be asked for is remembered as a failure. */
void bridge_effect(struct server *s, const struct effect *x);
/* Reports remembered failures to control. */
void bridge_report_failures(struct server *s);
int bridge_reconcile(struct server *s, struct err *e);

/* --- events.c --- */
struct events;
struct events *events_new(struct server *s);
void events_free(struct events *v);
void events_publish(struct events *v, uint64_t seq, uint64_t job, const char *text);
/* Something is known to be in the store up to `seq` although it was not published here. */
void events_catch_up(struct events *v, uint64_t seq);
void events_keep_alive(struct events *v);
void events_stop(struct events *v);
void call_events(struct server *s, struct http_request *r);

/* --- logs.c --- */
void call_logs(struct server *s, struct http_request *r);
void logs_poll(struct server *s);
void logs_stop(struct server *s);

/* --- wait.c --- */
void call_wait(struct server *s, struct http_request *r);
/* A job has changed: answers those who wait for its end. */
void wait_check(struct server *s, uint64_t job);
void wait_tick(struct server *s);

struct failure {
    uint64_t job;
    uint32_t attempt;
    uint32_t workers;
    char why[160];
};

struct server {
    const struct server_options *o;
    uv_loop_t loop;
    bool loop_open;
    int lock_fd;
    struct control_options control_options;
    struct config defaults;
    bool have_defaults;
    struct store *store;
    struct control *control; /* NULL: could not be rebuilt, is tried again */
    struct engine *engine;
    bool engine_open;
    unsigned reconciles; /* answers of the engine still to come */
    bool ready;          /* said so */
    int64_t started_ms;

    bool dirty;
    bool storing; /* false: the last commit failed, nothing is taken until it is tried again */
    int store_error;
    int64_t backoff_ms;
    struct strbuf encoded;
    struct store_row *rows;
    size_t rows_cap;
    size_t *offsets;
    size_t offsets_cap;
    struct failure *failures;
    size_t failures_len;
    size_t failures_cap;

    struct http_request *held;
    struct http_request *waiting;
    struct events *events;
    struct logs_stream *logs; /* list of those who follow */
    struct idem *idem;
    struct token *tokens;
    size_t tokens_len;
    size_t tokens_cap;

    struct listener listeners[LISTENERS_MAX];
    unsigned listeners_len;
    uv_check_t check;
    uv_idle_t again;
    uv_timer_t wake;
    uv_timer_t tick;
    uv_timer_t http_timer;
    uv_timer_t audit;
    uv_timer_t retry;
    uv_signal_t sigterm;
    uv_signal_t sigint;
    unsigned ticks;
    bool stopping;
    bool stopped;
    int64_t stop_deadline_ms;
    int exit_code;
};

/* Begins to stop: no new connections, streams end, jobs go on. */
void server_stop(struct server *s, const char *why);

#endif
