/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/daemon.h"

#include "base/strbuf.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/log.h"
#include "server/server.h"
#include "tests/openapi.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

void daemon_prepare(struct daemon *d, unsigned nodes)
{
    char text[256];
    *d = (struct daemon){0};
    snprintf(d->state_dir, sizeof(d->state_dir), "/tmp/remuda-server-XXXXXX");
    assert_non_null(mkdtemp(d->state_dir));
    assert_int_equal(chmod(d->state_dir, geteuid() == 0 ? 0755 : 0700), 0); /* as the daemon itself makes it */
    snprintf(d->cluster_file, sizeof(d->cluster_file), "%s/cluster.yaml", d->state_dir);
    int len = snprintf(text, sizeof(text), "nodes: [{name: n%%d, count: %u, preset: dgx-a100}]\n", nodes);
    assert_int_equal(file_write_atomic(d->cluster_file, text, (size_t)len, 0644, FILE_SYNC_NO, NULL), 0);
}

/* Never returns. */
static void run_child(const struct daemon *d, int ready_fd)
{
    char log[128];
    struct server_options o = {
        .state_dir = d->state_dir,
        .version = "test",
        .config_text = d->config_text,
        .engine = "simulated",
        .engine_options = {.cluster_file = d->cluster_file, .time_scale_milli = 1000, .default_duration_ms = 60000},
        .simulated = true,
        .cards = "simulated",
        .listen = d->listen,
        .ready_fd = ready_fd,
    };
    if (d->runner != NULL) {
        o.engine = "local";
        o.engine_options = (struct engine_options){.runner_path = d->runner};
        o.simulated = false;
        o.cards = "none";
    }
    snprintf(log, sizeof(log), "%s/daemon.log", d->state_dir);
    log_open("remuda", LOG_LEVEL_INFO, log, NULL);
    if (d->full_after != 0) {
        struct rlimit limit = {.rlim_cur = d->full_after * 1024, .rlim_max = RLIM_INFINITY};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    int rc = server_main(&o);
    log_close();
    exit(rc); /* not _exit: the leak check of a sanitizer runs at exit */
}

static int spawn(struct daemon *d)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    d->pid = fork();
    assert_true(d->pid >= 0);
    if (d->pid == 0) {
        close(fds[0]);
        run_child(d, fds[1]);
    }
    close(fds[1]);
    return fds[0];
}

void daemon_start(struct daemon *d)
{
    char byte;
    int fd = spawn(d);
    if (read(fd, &byte, 1) != 1)
        fail_msg("the daemon on %s did not get ready", d->state_dir);
    close(fd);
}

int daemon_start_fails(struct daemon *d)
{
    int status = 0;
    close(spawn(d));
    assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
    d->pid = 0;
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

void daemon_kill(struct daemon *d)
{
    int status = 0;
    if (d->pid == 0)
        return;
    kill(d->pid, SIGKILL);
    waitpid(d->pid, &status, 0);
    d->pid = 0;
}

int daemon_stop(struct daemon *d)
{
    int status = 0;
    assert_int_equal(kill(d->pid, SIGTERM), 0);
    assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
    d->pid = 0;
    if (!WIFEXITED(status))
        fail_msg("the daemon on %s was ended by signal %d", d->state_dir, WTERMSIG(status));
    return WEXITSTATUS(status);
}

void daemon_remove(struct daemon *d)
{
    daemon_kill(d);
    dir_remove_tree(d->state_dir, NULL);
}

int daemon_connect(const struct daemon *d)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 30};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    snprintf(a.sun_path, sizeof(a.sun_path), "%s/daemon.sock", d->state_dir);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
        fail_msg("%s: %s", a.sun_path, strerror(errno));
    return fd;
}

struct reply daemon_raw(int fd, const void *bytes, size_t len)
{
    struct strbuf in = {0};
    struct reply r = {0};
    char buf[65536];
    ssize_t n;
    size_t sent = 0;
    while (sent < len && (n = send(fd, (const char *)bytes + sent, len - sent, MSG_NOSIGNAL)) > 0)
        sent += (size_t)n;
    while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
        strbuf_add(&in, buf, (size_t)n);
    close(fd);
    const char *text = strbuf_str(&in);
    const char *end = strstr(text, "\r\n\r\n");
    if (end != NULL && strncmp(text, "HTTP/1.", 7) == 0) {
        r.status = (int)strtol(text + 9, NULL, 10);
        r.head = mem_strndup(text, (size_t)(end - text));
        r.len = in.len - (size_t)(end + 4 - text);
        r.body = mem_strndup(end + 4, r.len);
        r.json = json_loadb(r.body, r.len, 0, NULL);
    }
    strbuf_done(&in);
    return r;
}

struct reply daemon_call(const struct daemon *d, const char *method, const char *path, const char *headers,
                         const char *body)
{
    struct strbuf out = {0};
    strbuf_printf(&out, "%s %s HTTP/1.0\r\nHost: localhost\r\n%s", method, path, headers == NULL ? "" : headers);
    if (body != NULL)
        strbuf_printf(&out, "Content-Length: %zu\r\n", strlen(body));
    strbuf_puts(&out, "\r\n");
    if (body != NULL)
        strbuf_puts(&out, body);
    struct reply r = daemon_raw(daemon_connect(d), out.data, out.len);
    strbuf_done(&out);
    openapi_check_reply(method, path, r.status, r.json);
    return r;
}

void reply_done(struct reply *r)
{
    mem_free(r->head);
    mem_free(r->body);
    json_decref(r->json);
    *r = (struct reply){0};
}

json_t *daemon_json(const struct daemon *d, const char *method, const char *path, const char *body, int status)
{
    struct reply r = daemon_call(d, method, path, NULL, body);
    if (r.status != status || r.json == NULL)
        fail_msg("%s %s gave %d %s", method, path, r.status, r.body == NULL ? "(nothing)" : r.body);
    json_t *json = json_incref(r.json);
    reply_done(&r);
    return json;
}
