/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setting up, running and stopping. The loop's turn: libuv runs the callbacks of sockets, timers
 * and the engine, which only make inputs; then the check handle ends the turn (persist_turn()) and
 * lets libmicrohttpd send the answers. When that brought further inputs, an idle handle keeps the
 * loop from sleeping.
 *
 * Stopping: no new connections; held requests are still committed and answered, streams and long
 * polls end; when the connections are gone or after STOP_MS the rest is closed. Jobs are not
 * touched.
 */
#include "server/state.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/log.h"
#include "base/units.h"
#include "config/config_file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STOP_MS          1000
#define LOCK_TRIES       200
#define LOCK_PAUSE_MS    10
#define KEEP_ALIVE_TICKS (15000 / TICK_MS)

static int state_path(const struct server *s, const char *name, char out[4096], struct err *e)
{
    if (snprintf(out, 4096, "%s/%s", s->o->state_dir, name) >= 4096)
        return err_set(e, -ENAMETOOLONG, "%s: the name of the state folder is too long", s->o->state_dir);
    return 0;
}

/* The pid in the lock file, 0 when there is none. */
static int64_t lock_holder(const char *path)
{
    CLEANUP_FREE char *text = NULL;
    int64_t pid = 0;
    if (file_read(path, 64, &text, NULL, NULL) != 0)
        return 0;
    text[strspn(text, "0123456789")] = '\0';
    return units_parse_int(text, 1, INT32_MAX, &pid, NULL) == 0 ? pid : 0;
}

/*
 * A daemon that was killed while it started a runner leaves its lock for a moment to the child that
 * has not yet become the runner: worth waiting for, since nobody is there.
 */
static int wait_lock(struct server *s, const char *path, struct err *e)
{
    int rc = lock_file_take(path, &s->lock_fd, e);
    for (int i = 0; i < LOCK_TRIES && (rc == -EWOULDBLOCK || rc == -EAGAIN); i++) {
        int64_t pid = lock_holder(path);
        if (pid == 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            break;
        clock_sleep_ms(LOCK_PAUSE_MS);
        rc = lock_file_take(path, &s->lock_fd, e);
    }
    return rc;
}

/* Another daemon on the same state would be a second truth. */
static int take_lock(struct server *s, struct err *e)
{
    char path[4096];
    char pid[32];
    int rc = state_path(s, "daemon.lock", path, e);
    if (rc != 0)
        return rc;
    rc = wait_lock(s, path, e);
    if (rc == -EWOULDBLOCK || rc == -EAGAIN)
        return err_set(e, -EBUSY, "a daemon with pid %lld runs on %s already", (long long)lock_holder(path),
                       s->o->state_dir);
    if (rc != 0)
        return rc;
    int len = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    if (ftruncate(s->lock_fd, 0) != 0 || pwrite(s->lock_fd, pid, (size_t)len, 0) != len)
        log_warn("the pid can't be written into the lock file", NULL);
    return 0;
}

static int make_state_dir(struct server *s, struct err *e)
{
    return dir_make(s->o->state_dir, geteuid() == 0 ? 0755 : 0700, e);
}

static int open_engine(struct server *s, struct err *e)
{
    struct engine_options o = s->o->engine_options;
    o.loop = &s->loop;
    o.state_dir = s->o->state_dir;
    o.cb = bridge_event;
    o.cb_arg = s;
    if (o.default_duration_ms == 0)
        o.default_duration_ms = control_config(s->control)->sim_duration_ms;
    int rc = strcmp(s->o->engine, "simulated") == 0 ? simulated_engine_open(&o, &s->engine, e)
                                                    : local_engine_open(&o, &s->engine, e);
    s->engine_open = rc == 0;
    return rc;
}

/*
 * Jobs that run belong to the engine that started them: another one would know nothing of them and
 * they would be taken for lost while they run on. Which engine it was stands in the file "engine".
 */
static int check_engine(struct server *s, struct err *e)
{
    char path[4096];
    CLEANUP_FREE char *before = NULL;
    size_t holding = 0;
    int rc = state_path(s, "engine", path, e);
    if (rc != 0)
        return rc;
    if (file_read(path, 64, &before, NULL, NULL) == 0) {
        before[strcspn(before, "\n")] = '\0';
        if (strcmp(before, s->o->engine) == 0)
            return 0;
        mem_free(control_expected(s->control, &holding));
        if (holding > 0)
            return err_set(e, -EBUSY,
                           "%zu jobs of the engine \"%s\" run on %s, and this is the engine \"%s\"; start as "
                           "before, or end them first (remuda cancel --all)",
                           holding, before, s->o->state_dir, s->o->engine);
    }
    return file_write_atomic(path, s->o->engine, strlen(s->o->engine), 0644, FILE_SYNC_ALL, e);
}

/* A configuration given at the start becomes a version in the store when it is not the one in
 * force. */
static int import_config(struct server *s, struct err *e)
{
    struct caller self = {.uid = (uint32_t)geteuid(), .admin = true};
    struct config cfg = {0};
    uint64_t version = 0;
    if (s->o->config_text == NULL)
        return 0;
    const char *known = control_config_text(s->control, &version);
    if (version > 0 && known != NULL && strcmp(known, s->o->config_text) == 0)
        return 0;
    auth_user_name(self.uid, self.user);
    int rc = config_parse(s->o->config_text, strlen(s->o->config_text), "config", &cfg, e);
    if (rc == 0)
        rc = control_configure(s->control, &self, clock_wall_ms(), &cfg, s->o->config_text, e);
    config_done(&cfg);
    persist_dirty(s);
    return rc;
}

/* --- the loop --- */

static void on_again(uv_idle_t *idle)
{
    (void)idle; /* its being active is what keeps the loop from sleeping */
}

static void finish_stop(struct server *s);

static void on_check(uv_check_t *check)
{
    struct server *s = check->data;
    persist_turn(s);
    http_run(s);
    if (s->dirty && s->storing && s->control != NULL)
        uv_idle_start(&s->again, on_again);
    else
        uv_idle_stop(&s->again);
    if (s->stopping && !s->stopped && s->held == NULL &&
        (http_connections(s) == 0 || clock_mono_ms() >= s->stop_deadline_ms))
        finish_stop(s);
}

static void on_tick(uv_timer_t *timer)
{
    struct server *s = timer->data;
    logs_poll(s);
    wait_tick(s);
    if (++s->ticks % KEEP_ALIVE_TICKS == 0)
        events_keep_alive(s->events);
}

static void on_audit(uv_timer_t *timer)
{
    struct server *s = timer->data;
    if (s->control == NULL)
        return;
    control_audit(s->control); /* a violation comes out as an effect */
    persist_dirty(s);
}

static void on_signal(uv_signal_t *handle, int signum)
{
    server_stop(handle->data, signum == SIGTERM ? "SIGTERM" : "SIGINT");
}

static void close_any(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void on_engine_closed(void *arg)
{
    struct server *s = arg;
    s->engine = NULL;
    s->engine_open = false;
    uv_walk(&s->loop, close_any, NULL);
}

static void finish_stop(struct server *s)
{
    s->stopped = true;
    http_close(s);
    if (s->engine_open)
        s->engine->ops->close(s->engine, on_engine_closed, s);
    else
        on_engine_closed(s);
}

void server_stop(struct server *s, const char *why)
{
    if (s->stopping)
        return;
    log_info("stopping; jobs go on", "why=\"%s\"", why);
    s->stopping = true;
    s->stop_deadline_ms = clock_mono_ms() + STOP_MS;
    http_quiesce(s);
    events_stop(s->events);
    logs_stop(s);
    wait_tick(s);
    uv_timer_start(&s->tick, on_tick, 0, 20);
}

static int init_loop(struct server *s, struct err *e)
{
    if (uv_loop_init(&s->loop) != 0)
        return err_set(e, -EIO, "the event loop can't be made");
    s->loop_open = true;
    uv_check_init(&s->loop, &s->check);
    uv_idle_init(&s->loop, &s->again);
    uv_timer_init(&s->loop, &s->wake);
    uv_timer_init(&s->loop, &s->tick);
    uv_timer_init(&s->loop, &s->http_timer);
    uv_timer_init(&s->loop, &s->audit);
    uv_timer_init(&s->loop, &s->retry);
    uv_signal_init(&s->loop, &s->sigterm);
    uv_signal_init(&s->loop, &s->sigint);
    s->check.data = s->again.data = s->wake.data = s->tick.data = s->http_timer.data = s;
    s->audit.data = s->retry.data = s->sigterm.data = s->sigint.data = s;
    uv_check_start(&s->check, on_check);
    uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
    uv_timer_start(&s->audit, on_audit, AUDIT_MS, AUDIT_MS);
    uv_signal_start(&s->sigterm, on_signal, SIGTERM);
    uv_signal_start(&s->sigint, on_signal, SIGINT);
    return 0;
}

static int set_up(struct server *s, struct err *e)
{
    int rc = make_state_dir(s, e);
    if (rc == 0)
        rc = take_lock(s, e);
    if (rc == 0 && s->o->config == NULL) {
        rc = config_defaults(&s->defaults);
        s->have_defaults = rc == 0;
    }
    s->control_options = (struct control_options){
        .engine = s->o->engine,
        .simulated = s->o->simulated,
        .cards = s->o->cards,
        .version = s->o->version,
        .pid = (int32_t)getpid(),
        .started_ms = s->started_ms,
        .owner_uid = (uint32_t)geteuid(),
        .config = s->o->config != NULL ? s->o->config : &s->defaults,
    };
    s->events = events_new(s);
    s->idem = idem_new();
    if (rc == 0 && (s->events == NULL || s->idem == NULL))
        rc = err_set(e, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = init_loop(s, e);
    if (rc == 0)
        rc = persist_open(s, e);
    if (rc == 0)
        rc = check_engine(s, e);
    if (rc == 0)
        rc = import_config(s, e);
    if (rc == 0)
        rc = open_engine(s, e);
    if (rc == 0)
        rc = persist_reconcile(s, e);
    if (rc == 0)
        rc = http_open_unix(s, e);
    if (rc == 0 && s->o->listen != NULL && (rc = auth_open(s, e)) == 0)
        rc = http_open_tcp(s, s->o->listen, e);
    return rc;
}

static void tear_down(struct server *s)
{
    char path[4096];
    if (s->loop_open) {
        uv_run(&s->loop, UV_RUN_DEFAULT); /* what is still to be closed */
        uv_loop_close(&s->loop);
    }
    control_free(s->control);
    store_close(s->store);
    events_free(s->events);
    idem_free(s->idem);
    auth_close(s);
    strbuf_done(&s->encoded);
    mem_free(s->rows);
    mem_free(s->offsets);
    mem_free(s->failures);
    if (s->have_defaults)
        config_done(&s->defaults);
    if (s->lock_fd >= 0) {
        if (state_path(s, "daemon.sock", path, NULL) == 0)
            unlink(path);
        close(s->lock_fd);
    }
}

int server_main(const struct server_options *o)
{
    struct err e = {0};
    char text[400];
    struct server *s = mem_alloc(1, sizeof(*s));
    if (s == NULL)
        return 1;
    s->o = o;
    s->lock_fd = -1;
    s->started_ms = clock_wall_ms();
    signal(SIGPIPE, SIG_IGN);
    int rc = set_up(s, &e);
    if (rc == 0) {
        log_info("started", "pid=%d version=%s engine=%s", (int)getpid(), o->version, o->engine);
        http_run(s);
        uv_run(&s->loop, UV_RUN_DEFAULT);
        log_info("stopped", NULL);
    } else {
        log_error("can't start", "why=%s", log_quote(e.code != 0 ? e.text : strerror(-rc), text, sizeof(text)));
        s->stopping = true;
        if (s->loop_open)
            finish_stop(s);
    }
    tear_down(s);
    mem_free(s);
    return rc == 0 ? 0 : 1;
}
