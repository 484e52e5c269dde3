/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd inside our loop. Each listening socket has a daemon of its own in external epoll
 * mode: its epoll descriptor is watched by libuv, and MHD_run() does what is due. A request passes
 * through on_request() several times: headers, pieces of the body, its end, and again after each
 * suspension.
 *
 * Limits: 32 KiB for the line and headers of a request (libmicrohttpd refuses more),
 * SERVER_BODY_MAX for a body, a connection limit, and 60 s without a byte. A body that is too large
 * is read to its end, as far as it is at most four times the limit, so that the client sees the
 * answer and not a broken pipe.
 */
#include "server/state.h"

#include "base/mem.h"
#include "base/sys/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HEADER_BYTES_MAX (32 * 1024)
#define CONNECTIONS_MAX  1000
#define IDLE_SECONDS     60
#define BACKLOG          1024

/* --- answers --- */

void request_answer(struct http_request *r, unsigned status)
{
    r->status = status;
    r->phase = PHASE_ANSWERED;
    if (r->content_type == NULL)
        r->content_type = "application/json";
}

static const char *title_of(unsigned status)
{
    switch (status) {
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 409:
        return "Conflict";
    case 413:
        return "Content Too Large";
    case 422:
        return "Unprocessable Content";
    case 503:
        return "Service Unavailable";
    case 507:
        return "Insufficient Storage";
    default:
        return "Internal Server Error";
    }
}

void request_problem(struct http_request *r, unsigned status, const char *code, const char *field, const char *fmt, ...)
{
    char detail[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof(detail), fmt, args);
    va_end(args);
    struct jsonw w;
    strbuf_clear(&r->out);
    jsonw_init(&w, &r->out);
    jsonw_object(&w);
    jsonw_key_str(&w, "type", "about:blank");
    jsonw_key_str(&w, "title", title_of(status));
    jsonw_key_u64(&w, "status", status);
    jsonw_key_str(&w, "code", code);
    jsonw_key_str(&w, "detail", detail);
    if (field != NULL && field[0] != '\0')
        jsonw_key_str(&w, "field", field);
    jsonw_end_object(&w);
    r->content_type = "application/problem+json";
    request_answer(r, status);
}

/* Errors about a field begin with its name: "gpus: ...", those of a text with "config:LINE:COLUMN:
 * " before it. */
static void field_of(const struct err *e, char *out, size_t size)
{
    const char *text = e->text;
    if (strncmp(text, "config:", 7) == 0) {
        const char *name = strchr(text, ' ');
        text = name == NULL ? text : name + 1;
    }
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    out[0] = '\0';
    if (len > 0 && len < size && text[len] == ':') {
        memcpy(out, text, len);
        out[len] = '\0';
    }
}

void request_error(struct http_request *r, const struct err *e, int code)
{
    char field[64];
    const char *text = e->code != 0 ? e->text : strerror(-code);
    field_of(e, field, sizeof(field));
    switch (code) {
    case -EINVAL:
    case -ERANGE:
        request_problem(r, 400, field[0] != '\0' ? "invalid-field" : "invalid", field, "%s", text);
        break;
    case -EOPNOTSUPP:
        request_problem(r, 400, "unsupported", field, "%s", text);
        break;
    case -EACCES:
    case -EPERM:
        request_problem(r, 403, "forbidden", field, "%s", text);
        break;
    case -ENOENT:
        request_problem(r, 404, "not-found", NULL, "%s", text);
        break;
    case -EALREADY:
    case -EBUSY:
        request_problem(r, 409, "conflict", field, "%s", text);
        break;
    case -ENOMEM:
        request_problem(r, 503, "out-of-memory", NULL, "the daemon is out of memory");
        break;
    default:
        request_problem(r, 500, "internal", NULL, "%s", text);
    }
}

static struct http_request **list_of(struct http_request *r)
{
    return r->in_waiting ? &r->server->waiting : &r->server->held;
}

void request_list(struct http_request *r, bool waiting)
{
    r->in_waiting = waiting;
    struct http_request **list = list_of(r);
    r->next = *list;
    r->prev = NULL;
    if (*list != NULL)
        (*list)->prev = r;
    *list = r;
    r->listed = true;
}

static void list_remove(struct http_request *r)
{
    if (!r->listed)
        return;
    if (r->prev != NULL)
        r->prev->next = r->next;
    else
        *list_of(r) = r->next;
    if (r->next != NULL)
        r->next->prev = r->prev;
    r->listed = false;
}

void request_hold(struct server *s, struct http_request *r, void (*finish)(struct server *, struct http_request *))
{
    r->finish = finish;
    r->phase = PHASE_HELD;
    request_list(r, false);
    persist_dirty(s);
}

void request_stream(struct http_request *r, struct MHD_Response *response)
{
    r->stream = response;
    r->status = 200;
    r->phase = PHASE_ANSWERED;
}

void request_resume(struct http_request *r)
{
    list_remove(r);
    if (r->suspended) {
        r->suspended = false;
        MHD_resume_connection(r->conn);
    }
}

const char *request_query(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->conn, MHD_GET_ARGUMENT_KIND, name);
}

const char *request_header(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name);
}

bool request_query_number(struct http_request *r, const char *name, uint64_t max, uint64_t *ret)
{
    const char *text = request_query(r, name);
    uint64_t n = 0;
    if (text == NULL)
        return true;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && n <= (UINT64_MAX - 9) / 10; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    if (*p != '\0' || p == text || n > max) {
        request_problem(r, 400, "invalid-field", name, "%s: \"%.40s\" is not allowed; a number from 0 to %llu", name,
                        text, (unsigned long long)max);
        return false;
    }
    *ret = n;
    return true;
}

bool request_query_flag(struct http_request *r, const char *name, bool *ret)
{
    const char *text = request_query(r, name);
    if (text == NULL)
        return true;
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
        request_problem(r, 400, "invalid-field", name, "%s: \"%.40s\" is not allowed; 0 or 1", name, text);
        return false;
    }
    *ret = text[0] == '1';
    return true;
}

/* --- one request --- */

static void request_free(struct http_request *r)
{
    if (r == NULL)
        return;
    list_remove(r);
    strbuf_done(&r->body);
    strbuf_done(&r->out);
    json_decref(r->json);
    mem_free(r->ids);
    mem_free(r);
}

static struct http_request *request_new(struct listener *l, struct MHD_Connection *conn, const char *method,
                                        const char *path)
{
    struct http_request *r = mem_alloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->server = l->server;
    r->conn = conn;
    r->over_tcp = l->tcp;
    if (!utf8_valid(path, strlen(path)))
        request_problem(r, 400, "invalid", NULL, "the path is not UTF-8");
    else if (auth_check(l->server, r))
        r->route = route_find(method, path, r);
    return r;
}

struct query_check {
    struct http_request *r;
};

static enum MHD_Result check_query(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct query_check *q = arg;
    const char *allowed = q->r->route->call.query;
    char needle[64];
    (void)kind;
    if (!utf8_valid(key, strlen(key)) || (value != NULL && !utf8_valid(value, strlen(value)))) {
        request_problem(q->r, 400, "invalid", NULL, "the query is not UTF-8");
        return MHD_NO;
    }
    int len = snprintf(needle, sizeof(needle), "%s ", key);
    if (len >= (int)sizeof(needle) || strchr(key, ' ') != NULL || strstr(allowed, needle) == NULL) {
        request_problem(q->r, 400, "unknown-field", "query", "\"%.40s\" is no parameter of this call; allowed: %s", key,
                        allowed[0] == '\0' ? "none" : allowed);
        return MHD_NO;
    }
    if (value == NULL) {
        request_problem(q->r, 400, "invalid-field", key, "%s: a value is wanted", key);
        return MHD_NO;
    }
    return MHD_YES;
}

/* The body as JSON; false when answered with what is wrong. */
static bool parse_body(struct http_request *r)
{
    json_error_t why;
    const char *text = strbuf_str(&r->body);
    if (r->body_too_large) {
        request_problem(r, 413, "too-large", NULL, "the body is larger than %zu bytes", SERVER_BODY_MAX);
        return false;
    }
    if (r->body.failed) {
        request_problem(r, 503, "out-of-memory", NULL, "the daemon is out of memory");
        return false;
    }
    if (!utf8_valid(text, r->body.len)) {
        request_problem(r, 400, "invalid", NULL, "the body is not UTF-8");
        return false;
    }
    if ((r->route->flags & CALL_JSON) == 0)
        return true;
    r->json = r->body.len == 0 ? json_object() : json_loadb(text, r->body.len, JSON_REJECT_DUPLICATES, &why);
    if (r->json == NULL)
        request_problem(r, 400, "invalid-json", NULL, "the body is no JSON: line %d, column %d: %s", why.line,
                        why.column, why.text);
    else if (!json_is_object(r->json))
        request_problem(r, 400, "invalid-json", NULL, "the body is to be a JSON object");
    return r->phase != PHASE_ANSWERED;
}

static void dispatch(struct http_request *r)
{
    struct server *s = r->server;
    struct query_check q = {.r = r};
    MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, check_query, &q);
    if (r->phase == PHASE_ANSWERED || !parse_body(r))
        return;
    if (s->stopping && (r->route->flags & CALL_MUTATES))
        request_problem(r, 503, "stopping", NULL, "the daemon is stopping");
    else if (!s->storing && (r->route->flags & CALL_MUTATES) && (r->route->flags & CALL_ANY_TIME) == 0)
        request_problem(r, s->store_error == -ENOSPC ? 507 : 503,
                        s->store_error == -ENOSPC ? "disk-full" : "store-failed", NULL,
                        s->store_error == -ENOSPC ? "the disk of the state folder is full: nothing is accepted"
                                                  : "the store can't be written to: nothing is accepted");
    else if (s->control == NULL && (r->route->flags & CALL_ANY_TIME) == 0)
        request_problem(r, 503, "store-failed", NULL, "the store can't be read");
    else if ((r->route->flags & CALL_MUTATES) == 0 || idem_begin(s, r))
        r->route->handler(s, r);
    if (r->phase == PHASE_ANSWERED)
        idem_end(s, r);
}

static enum MHD_Result send_answer(struct http_request *r)
{
    struct MHD_Response *response = r->stream;
    if (response == NULL) {
        size_t len = r->out.len;
        char *bytes = strbuf_take(&r->out);
        response = MHD_create_response_from_buffer_with_free_callback(bytes == NULL ? 0 : len, bytes, mem_free);
        if (response == NULL) {
            mem_free(bytes);
            return MHD_NO;
        }
        MHD_add_response_header(response, "Content-Type", r->content_type);
        MHD_add_response_header(response, "Cache-Control", "no-store");
    }
    if (r->allow[0] != '\0')
        MHD_add_response_header(response, "Allow", r->allow);
    if (r->job_state[0] != '\0')
        MHD_add_response_header(response, "Remuda-State", r->job_state);
    if (r->replayed)
        MHD_add_response_header(response, "Idempotency-Replayed", "true");
    if (r->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (r->status == 503 || r->status == 507)
        MHD_add_response_header(response, "Retry-After", "1");
    if (r->server->stopping)
        MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result rc = MHD_queue_response(r->conn, r->status, response);
    MHD_destroy_response(response);
    r->stream = NULL;
    r->phase = PHASE_STREAMING;
    return rc;
}

static void take_bytes(struct http_request *r, const char *bytes, size_t len)
{
    if (r->body_too_large || r->body.len + len > SERVER_BODY_MAX) {
        r->body_too_large = true;
        strbuf_done(&r->body);
        return;
    }
    strbuf_add(&r->body, bytes, len);
}

/* True when the headers announce more than is read even to be polite. */
static bool announces_too_much(const struct http_request *r)
{
    const char *text = request_header(r, "Content-Length");
    return text != NULL && (strlen(text) > 9 || strtoull(text, NULL, 10) > 4 * SERVER_BODY_MAX);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *path, const char *method,
                                  const char *version, const char *bytes, size_t *bytes_len, void **con_cls)
{
    struct http_request *r = *con_cls;
    (void)version;
    if (r == NULL) {
        r = request_new(cls, conn, method, path);
        *con_cls = r;
        if (r == NULL)
            return MHD_NO;
        if (announces_too_much(r)) {
            request_problem(r, 413, "too-large", NULL, "the body is larger than %zu bytes", SERVER_BODY_MAX);
            return send_answer(r);
        }
        return MHD_YES;
    }
    if (*bytes_len > 0) {
        take_bytes(r, bytes, *bytes_len);
        *bytes_len = 0;
        return MHD_YES;
    }
    if (r->phase == PHASE_BODY)
        dispatch(r);
    if (r->phase == PHASE_ANSWERED)
        return send_answer(r);
    if ((r->phase == PHASE_HELD || r->phase == PHASE_WAITING) && !r->suspended) {
        r->suspended = true;
        MHD_suspend_connection(conn);
    }
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **con_cls, enum MHD_RequestTerminationCode why)
{
    (void)cls;
    (void)conn;
    (void)why;
    request_free(*con_cls);
    *con_cls = NULL;
}

/* --- sockets --- */

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;
    (void)status;
    (void)events;
    MHD_run(l->mhd);
}

static void on_http_timer(uv_timer_t *timer)
{
    http_run(timer->data);
}

void http_run(struct server *s)
{
    uint64_t soonest = UINT64_MAX;
    for (unsigned i = 0; i < s->listeners_len; i++) {
        MHD_UNSIGNED_LONG_LONG ms;
        if (s->listeners[i].mhd == NULL)
            continue;
        MHD_run(s->listeners[i].mhd);
        if (MHD_get_timeout(s->listeners[i].mhd, &ms) == MHD_YES && ms < soonest)
            soonest = ms;
    }
    if (soonest == UINT64_MAX)
        uv_timer_stop(&s->http_timer);
    else
        uv_timer_start(&s->http_timer, on_http_timer, soonest == 0 ? 1 : soonest, 0);
}

static unsigned connection_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 2 * CONNECTIONS_MAX + 200)
        return files.rlim_cur < 300 ? 50 : (unsigned)(files.rlim_cur - 200) / 2;
    return CONNECTIONS_MAX;
}

static int start(struct server *s, int fd, bool tcp, struct err *e)
{
    struct listener *l = &s->listeners[s->listeners_len];
    *l = (struct listener){.server = s, .fd = fd, .tcp = tcp};
    l->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, l,
                              MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                              (size_t)HEADER_BYTES_MAX, MHD_OPTION_CONNECTION_LIMIT, connection_limit(),
                              MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED,
                              on_completed, l, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (l->mhd == NULL) {
        close(fd);
        return err_set(e, -EIO, "the HTTP server could not be started");
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL || uv_poll_init(&s->loop, &l->poll, info->epoll_fd) != 0) {
        MHD_stop_daemon(l->mhd);
        return err_set(e, -EIO, "the HTTP server could not be watched");
    }
    l->poll.data = l;
    l->polling = true;
    uv_poll_start(&l->poll, UV_READABLE, on_readable);
    s->listeners_len++;
    return 0;
}

int http_open_unix(struct server *s, struct err *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[4096];
    snprintf(path, sizeof(path), "%s/daemon.sock", s->o->state_dir);
    unlink(path); /* the lock is ours: what is there was left behind */
    /* An address holds 107 bytes: the name is bound relative to the folder through /proc. */
    int dir = -1;
    if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >= sizeof(address.sun_path)) {
        dir = open(s->o->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/daemon.sock", dir);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
                     chmod(address.sun_path, 0666) != 0 || listen(fd, BACKLOG) != 0
                 ? -errno
                 : 0;
    if (dir >= 0)
        close(dir);
    if (rc != 0) {
        if (fd >= 0)
            close(fd);
        return err_set(e, rc, "%s: %s", path, strerror(-rc));
    }
    return start(s, fd, false, e);
}

/* "127.0.0.1:8080", "[::1]:8080", "localhost:8080". */
static int split_address(const char *text, char host[128], char port[8], struct err *e)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - text);
    if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (colon == NULL || len == 0 || len >= 128 || colon[1] == '\0' || strlen(colon + 1) > 5 ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return err_set(e, -EINVAL, "listen: \"%s\" is not allowed; ADDRESS:PORT such as 127.0.0.1:8080", text);
    memcpy(host, text, len);
    host[len] = '\0';
    snprintf(port, 8, "%s", colon + 1);
    return 0;
}

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

int http_open_tcp(struct server *s, const char *address, struct err *e)
{
    char host[128];
    char port[8];
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int rc = split_address(address, host, port, e);
    if (rc != 0)
        return rc;
    int gai = getaddrinfo(host, port, &hints, &found);
    if (gai != 0)
        return err_set(e, -EINVAL, "listen: %s: %s", address, gai_strerror(gai));
    if (!is_loopback(found->ai_addr) && !s->o->listen_anywhere) {
        freeaddrinfo(found);
        return err_set(e, -EACCES,
                       "listen: %s can be reached by others and the connection is not encrypted; "
                       "only loopback addresses are allowed",
                       address);
    }
    int one = 1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0)
        rc = err_set(e, -errno, "listen: %s: %s", address, strerror(errno));
    freeaddrinfo(found);
    if (rc != 0) {
        if (fd >= 0)
            close(fd);
        return rc;
    }
    log_info("listening", "address=%s", address);
    return start(s, fd, true, e);
}

void http_quiesce(struct server *s)
{
    for (unsigned i = 0; i < s->listeners_len; i++) {
        struct listener *l = &s->listeners[i];
        if (l->mhd != NULL && l->fd >= 0 && MHD_quiesce_daemon(l->mhd) != MHD_INVALID_SOCKET) {
            close(l->fd);
            l->fd = -1;
        }
    }
}

unsigned http_connections(const struct server *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->listeners_len; i++) {
        const union MHD_DaemonInfo *info =
            s->listeners[i].mhd == NULL ? NULL
                                        : MHD_get_daemon_info(s->listeners[i].mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        n += info == NULL ? 0 : info->num_connections;
    }
    return n;
}

void http_close(struct server *s)
{
    for (unsigned i = 0; i < s->listeners_len; i++) {
        struct listener *l = &s->listeners[i];
        if (l->polling)
            uv_close((uv_handle_t *)&l->poll, NULL);
        l->polling = false;
        if (l->mhd != NULL)
            MHD_stop_daemon(l->mhd); /* closes the listening socket too unless it has been quiesced */
        l->mhd = NULL;
    }
}
