/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client side of docs/api.md over libcurl: the Unix socket of a state folder, or REMUDA_URL with REMUDA_TOKEN. One
 * thread. Errors are told as exit codes (enum cli_exit) with a sentence, because that is what every caller needs.
 */
#ifndef REMUDA_CLI_API_H
#define REMUDA_CLI_API_H

#include "base/err.h"
#include "base/strbuf.h"

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

struct api;

/*
 * `state_dir` is where the socket is; `url` (or NULL) wins over it. Nothing is connected yet. NULL without memory.
 */
struct api *api_new(const char *state_dir, const char *url, const char *token);
void api_free(struct api *a);
/* "the socket /.../daemon.sock" or the URL, for messages. Valid for the life of `a`. */
const char *api_where(const struct api *a);

struct api_reply {
    long status;    /* HTTP status; 0: no answer came */
    json_t *body;   /* owned; NULL when there is none */
    char code[64];  /* "code" of a problem document */
    struct err err; /* what to tell when the call failed */
    int exit;       /* enum cli_exit */
};

/*
 * One call. `body` (borrowed, may be NULL) goes as JSON. Mutating calls get an idempotency key and are tried again
 * with the same key when the connection broke. Returns r->exit: CLI_OK for 2xx. api_reply_done() always.
 */
int api_call(struct api *a, const char *method, const char *path, const json_t *body, struct api_reply *r);
/* The same for PUT with a text that is not JSON. */
int api_put_text(struct api *a, const char *path, const char *text, struct api_reply *r);
void api_reply_done(struct api_reply *r);

/* Waits at most this long for one answer; 30 s unless set. */
void api_timeout(struct api *a, long ms);

/* Bytes of a streamed answer; return false to end the transfer. */
typedef bool api_bytes_cb(void *arg, const char *bytes, size_t len);

struct api_stream {
    const char *path;
    api_bytes_cb *cb;
    void *arg;
    /* results */
    long status;
    int exit;
    struct err err;
};

/*
 * Several streamed GETs at once until all have ended, or *stop (may be NULL; set by a signal handler) is not 0: then
 * -EINTR is returned, else 0.
 */
int api_streams(struct api *a, struct api_stream *streams, size_t len, const volatile sig_atomic_t *stop);

/* Appends `text` percent-encoded for a path or query. */
void api_encode(struct strbuf *b, const char *text);

#endif
