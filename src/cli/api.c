/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/api.h"

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/text.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#define REPLY_BYTES_MAX ((size_t)256 << 20)
#define TRIES           3

struct api {
    CURL *curl;
    char *where;
    char *socket_path; /* NULL: over TCP */
    char *base;        /* "http://localhost" */
    char *token;
    int dir_fd; /* keeps a long socket path short, see socket_name() */
    long timeout_ms;
};

/*
 * The address of a Unix socket holds 107 bytes; a longer path is reached through an open descriptor of its folder.
 */
static char *socket_name(const char *state_dir, int *ret_fd)
{
    struct strbuf b = {0};
    strbuf_printf(&b, "%s/daemon.sock", state_dir);
    if (b.len >= sizeof((struct sockaddr_un *)0)->sun_path) {
        int fd = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            strbuf_clear(&b);
            strbuf_printf(&b, "/proc/self/fd/%d/daemon.sock", fd);
            *ret_fd = fd;
        }
    }
    return strbuf_take(&b);
}

struct api *api_new(const char *state_dir, const char *url, const char *token)
{
    struct api *a = mem_alloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->dir_fd = -1;
    a->timeout_ms = 30000;
    a->curl = curl_easy_init();
    struct strbuf where = {0};
    if (url != NULL) {
        size_t len = strlen(url);
        while (len > 0 && url[len - 1] == '/')
            len--;
        a->base = mem_strndup(url, len);
        strbuf_puts(&where, url);
        if (token != NULL)
            a->token = mem_strdup(token);
    } else {
        a->base = mem_strdup("http://localhost");
        a->socket_path = socket_name(state_dir, &a->dir_fd);
        strbuf_printf(&where, "%s/daemon.sock", state_dir);
    }
    a->where = strbuf_take(&where);
    if (a->curl == NULL || a->base == NULL || a->where == NULL || (url == NULL && a->socket_path == NULL)) {
        api_free(a);
        return NULL;
    }
    return a;
}

void api_free(struct api *a)
{
    if (a == NULL)
        return;
    if (a->curl != NULL)
        curl_easy_cleanup(a->curl);
    if (a->dir_fd >= 0)
        (void)close(a->dir_fd);
    mem_free(a->where);
    mem_free(a->socket_path);
    mem_free(a->base);
    mem_free(a->token);
    mem_free(a);
}

const char *api_where(const struct api *a)
{
    return a->where;
}

void api_timeout(struct api *a, long ms)
{
    a->timeout_ms = ms;
}

void api_encode(struct strbuf *b, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                     strchr("-_.~", *p) != NULL;
        if (plain)
            strbuf_putc(b, (char)*p);
        else
            strbuf_printf(b, "%%%02X", *p);
    }
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *arg)
{
    struct strbuf *b = arg;
    size_t len = size * count;
    if (b->len + len > REPLY_BYTES_MAX)
        return 0;
    strbuf_add(b, bytes, len);
    return b->failed ? 0 : len;
}

/* What every request has. *headers is appended to and owned by the caller. */
static void prepare(const struct api *a, CURL *c, const char *path, struct curl_slist **headers)
{
    struct strbuf url = {0};
    strbuf_printf(&url, "%s%s", a->base, path);
    (void)curl_easy_setopt(c, CURLOPT_URL, strbuf_str(&url)); /* copied */
    strbuf_done(&url);
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
    if (a->socket_path != NULL) {
        (void)curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, a->socket_path);
        (void)curl_easy_setopt(c, CURLOPT_PROXY, "");
    }
    if (a->token != NULL) {
        struct strbuf auth = {0};
        strbuf_printf(&auth, "Authorization: Bearer %s", a->token);
        *headers = curl_slist_append(*headers, strbuf_str(&auth));
        strbuf_done(&auth);
    }
    *headers = curl_slist_append(*headers, "Expect:");
}

/* What a failed transfer means. */
static int transfer_failed(const struct api *a, CURLcode rc, struct err *e)
{
    struct strbuf text = {0};
    int code = CLI_ERROR;
    if (rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST) {
        ADD(&text, NO_DAEMON, a->where);
        code = CLI_NO_DAEMON;
    } else if (rc == CURLE_OPERATION_TIMEDOUT) {
        ADD(&text, DAEMON_TIMEOUT, a->where);
    } else {
        ADD(&text, DAEMON_BROKE, a->where, curl_easy_strerror(rc));
    }
    (void)err_set(e, -EIO, "%s", strbuf_str(&text));
    strbuf_done(&text);
    return code;
}

static int exit_for_status(long status)
{
    switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
        return CLI_USAGE;
    case 401:
    case 403:
    case 409:
        return CLI_REFUSED;
    case 404:
        return CLI_NOT_FOUND;
    case 503:
        return CLI_NO_DAEMON;
    default:
        return CLI_ERROR;
    }
}

/* Fills exit, err and code from the answer. */
static void judge(struct api_reply *r)
{
    if (r->status >= 200 && r->status < 300) {
        r->exit = CLI_OK;
        return;
    }
    r->exit = exit_for_status(r->status);
    const char *detail = json_string_value(json_object_get(r->body, "detail"));
    const char *title = json_string_value(json_object_get(r->body, "title"));
    const char *code = json_string_value(json_object_get(r->body, "code"));
    if (code != NULL)
        (void)snprintf(r->code, sizeof r->code, "%s", code);
    if (detail == NULL || detail[0] == '\0')
        detail = title;
    if (detail != NULL)
        (void)err_set(&r->err, -EIO, "%s", detail);
    else
        (void)err_set(&r->err, -EIO, "HTTP %ld", r->status);
}

static void random_key(char out[40])
{
    unsigned char bytes[16] = {0};
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        (void)snprintf((char *)bytes, sizeof bytes, "%d", (int)getpid());
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* One request. `key` is NULL for what changes nothing, `text` for what has no body. */
struct request_out {
    const char *method;
    const char *path;
    const char *text;
    const char *type; /* of the text */
    const char *key;
};

static CURLcode try_once(struct api *a, const struct request_out *q, struct strbuf *answer, long *ret_status)
{
    struct curl_slist *headers = NULL;
    curl_easy_reset(a->curl);
    prepare(a, a->curl, q->path, &headers);
    headers = curl_slist_append(headers, "Accept: application/json");
    char line[80];
    if (q->key != NULL) {
        (void)snprintf(line, sizeof line, "Idempotency-Key: %s", q->key);
        headers = curl_slist_append(headers, line);
    }
    if (q->text != NULL) {
        (void)snprintf(line, sizeof line, "Content-Type: %s", q->type);
        headers = curl_slist_append(headers, line);
        (void)curl_easy_setopt(a->curl, CURLOPT_POSTFIELDS, q->text);
        (void)curl_easy_setopt(a->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(q->text));
    }
    (void)curl_easy_setopt(a->curl, CURLOPT_CUSTOMREQUEST, q->method);
    (void)curl_easy_setopt(a->curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(a->curl, CURLOPT_TIMEOUT_MS, a->timeout_ms);
    (void)curl_easy_setopt(a->curl, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(a->curl, CURLOPT_WRITEDATA, answer);
    strbuf_clear(answer);
    CURLcode rc = curl_easy_perform(a->curl);
    (void)curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, ret_status);
    curl_slist_free_all(headers);
    return rc;
}

static int exchange(struct api *a, struct request_out *q, struct api_reply *r)
{
    char key[40];
    struct strbuf answer = {0};
    CURLcode rc = CURLE_OK;
    *r = (struct api_reply){.exit = CLI_ERROR};
    random_key(key);
    q->key = strcmp(q->method, "GET") != 0 ? key : NULL;
    for (int i = 0; i < TRIES; i++) {
        rc = try_once(a, q, &answer, &r->status);
        bool broken = rc == CURLE_RECV_ERROR || rc == CURLE_SEND_ERROR || rc == CURLE_GOT_NOTHING;
        if (!broken)
            break;
        (void)usleep(100000);
    }
    if (rc != CURLE_OK) {
        r->status = 0;
        r->exit = transfer_failed(a, rc, &r->err);
    } else {
        json_error_t bad;
        r->body = answer.len > 0 ? json_loadb(answer.data, answer.len, 0, &bad) : NULL;
        judge(r);
        if (r->exit == CLI_OK && answer.len > 0 && r->body == NULL) {
            r->exit = CLI_ERROR;
            (void)err_set(&r->err, -EPROTO, "%s: %s", a->where, bad.text);
        }
    }
    strbuf_done(&answer);
    return r->exit;
}

int api_call(struct api *a, const char *method, const char *path, const json_t *body, struct api_reply *r)
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    *r = (struct api_reply){.exit = CLI_ERROR};
    if (body != NULL && text == NULL) {
        (void)err_set(&r->err, -ENOMEM, "%s", msg(MSG_OUT_OF_MEMORY));
        return r->exit;
    }
    struct request_out q = {.method = method, .path = path, .text = text, .type = "application/json"};
    if (text == NULL && strcmp(method, "GET") != 0)
        q.text = "{}";
    int rc = exchange(a, &q, r);
    free(text); /* jansson's, not base/mem.h's */
    return rc;
}

int api_put_text(struct api *a, const char *path, const char *text, struct api_reply *r)
{
    struct request_out q = {.method = "PUT", .path = path, .text = text, .type = "text/plain"};
    return exchange(a, &q, r);
}

void api_reply_done(struct api_reply *r)
{
    json_decref(r->body);
    r->body = NULL;
}

/* --- streams --- */

struct transfer {
    struct api_stream *s;
    CURL *curl;
    struct curl_slist *headers;
    struct strbuf problem; /* the body of an answer that is not 2xx */
};

static size_t on_stream(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *t = arg;
    size_t len = size * count;
    (void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->s->status);
    if (t->s->status < 200 || t->s->status >= 300) {
        if (t->problem.len + len < 65536)
            strbuf_add(&t->problem, bytes, len);
        return len;
    }
    return t->s->cb(t->s->arg, bytes, len) ? len : 0;
}

static void finish(const struct api *a, struct transfer *t, CURLcode rc)
{
    (void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->s->status);
    if (rc == CURLE_WRITE_ERROR && t->s->status == 200) {
        t->s->exit = CLI_OK; /* the receiver had enough */
    } else if (rc != CURLE_OK) {
        t->s->exit = transfer_failed(a, rc, &t->s->err);
    } else {
        struct api_reply r = {.status = t->s->status};
        r.body = json_loads(strbuf_str(&t->problem), 0, NULL);
        judge(&r);
        t->s->exit = r.exit;
        t->s->err = r.err;
        api_reply_done(&r);
    }
}

static void collect(const struct api *a, CURLM *multi, struct transfer *ts, size_t len)
{
    int left;
    for (CURLMsg *m = curl_multi_info_read(multi, &left); m != NULL; m = curl_multi_info_read(multi, &left))
        for (size_t i = 0; i < len && m->msg == CURLMSG_DONE; i++)
            if (ts[i].curl == m->easy_handle)
                finish(a, &ts[i], m->data.result);
}

static int run_all(const struct api *a, CURLM *multi, struct transfer *ts, size_t len,
                   const volatile sig_atomic_t *stop)
{
    int running = 1;
    while (running > 0) {
        if (stop != NULL && *stop != 0)
            return -EINTR;
        if (curl_multi_perform(multi, &running) != CURLM_OK)
            return -EIO;
        collect(a, multi, ts, len);
        if (running > 0)
            (void)curl_multi_poll(multi, NULL, 0, 200, NULL);
    }
    return 0;
}

int api_streams(struct api *a, struct api_stream *streams, size_t len, const volatile sig_atomic_t *stop)
{
    struct transfer *ts = mem_alloc(len, sizeof *ts);
    CURLM *multi = curl_multi_init();
    int rc = ts == NULL || multi == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < len && rc == 0; i++) {
        struct transfer *t = &ts[i];
        t->s = &streams[i];
        t->s->exit = CLI_ERROR;
        t->curl = curl_easy_init();
        if (t->curl == NULL) {
            rc = -ENOMEM;
            break;
        }
        prepare(a, t->curl, t->s->path, &t->headers);
        (void)curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, t->headers);
        (void)curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, on_stream);
        (void)curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
        (void)curl_multi_add_handle(multi, t->curl);
    }
    if (rc == 0)
        rc = run_all(a, multi, ts, len, stop);
    for (size_t i = 0; ts != NULL && i < len; i++) {
        if (ts[i].curl != NULL) {
            (void)curl_multi_remove_handle(multi, ts[i].curl);
            curl_easy_cleanup(ts[i].curl);
        }
        curl_slist_free_all(ts[i].headers);
        strbuf_done(&ts[i].problem);
    }
    if (multi != NULL)
        (void)curl_multi_cleanup(multi);
    mem_free(ts);
    return rc;
}
