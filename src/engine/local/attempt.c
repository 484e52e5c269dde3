/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt as the engine sees it: a channel to its runner while there is one, and what its folder says when there
 * is none any more. A runner is alive when it holds the lock of the folder, whatever its pid.
 */
#include "engine/local/local.h"

#include "abi/runner.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "base/units.h"
#include "runner/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define EXIT_BYTES_MAX   (8u << 20)
#define STATUS_BYTES_MAX (1u << 20)
#define LOG_TAIL_MAX     (1u << 20)
#define IN_BYTES_MAX     (1u << 20)
#define RIVALS_MAX       5

void attempt_path(const struct attempt *a, const char *file, char path[PATH_MAX])
{
    (void)snprintf(path, PATH_MAX, "%s/%s", a->dir, file);
}

static bool runner_lives(const struct attempt *a)
{
    char path[PATH_MAX];
    attempt_path(a, RUNNER_FILE_LOCK, path);
    return lock_file_held(path);
}

/* --- words from the runner --- */

static void note_exit(struct local *l, struct attempt *a, const struct runner_exit *x)
{
    for (uint32_t i = 0; i < a->workers; i++) {
        if (a->ranks[i] != x->rank || a->ended[i])
            continue;
        a->ended[i] = true;
        a->exits[i] = *x;
        a->told++;
        local_tell_exit(l, a, x);
    }
}

static void note_started(struct local *l, struct attempt *a, const char *words)
{
    char *note;
    errno = 0;
    long long ms = strtoll(words, &note, 10);
    if (errno != 0 || ms <= 0 || a->started_ms != 0)
        return;
    a->started_ms = ms;
    (void)snprintf(a->note, sizeof a->note, "%s", *note == ' ' ? note + 1 : note);
    local_tell_started(l, a);
}

static void become_ended(struct local *l, struct attempt *a)
{
    a->phase = PHASE_ENDED;
    local_set_busy(l, a, false);
    attempt_unlink(a);
    runner_status_done(&a->status);
    local_settled(l, a);
    if (a->stray) {
        recover_tidy(l, a);
        local_drop(l, a);
    }
}

static void begin_connecting(struct local *l, struct attempt *a)
{
    attempt_unlink(a);
    a->phase = PHASE_CONNECTING;
    a->deadline_ms = clock_mono_ms() + 10000;
    local_set_busy(l, a, true);
}

/* One line. False when the link was let go. */
static bool obey(struct local *l, struct attempt *a, const char *line)
{
    struct runner_exit x;
    if (strncmp(line, "hello ", 6) == 0) {
        if (a->term_ms >= 0)
            attempt_terminate(a, a->term_ms);
    } else if (strncmp(line, "started ", 8) == 0) {
        note_started(l, a, line + 8);
    } else if (strncmp(line, "exit ", 5) == 0 && runner_exit_parse(line + 5, &x) == 0) {
        note_exit(l, a, &x);
    } else if (strcmp(line, "busy") == 0) {
        a->rivals++;
        begin_connecting(l, a);
        return false;
    }
    return true;
}

static void take_lines(struct local *l, struct attempt *a)
{
    struct link *link = a->link;
    size_t used = 0;
    char *newline;
    while (used < link->in.len && (newline = memchr(link->in.data + used, '\n', link->in.len - used)) != NULL) {
        *newline = '\0';
        const char *line = link->in.data + used;
        used = (size_t)(newline + 1 - link->in.data);
        if (!obey(l, a, line))
            return;
    }
    memmove(link->in.data, link->in.data + used, link->in.len - used);
    link->in.len -= used;
    /* The runner says all it knows at once after hello: what has come with it settles the attempt. */
    if (a->reconciling && used > 0)
        local_settled(l, a);
}

static void channel_ended(struct local *l, struct attempt *a)
{
    attempt_unlink(a);
    if (a->told == a->workers) {
        become_ended(l, a);
        return;
    }
    a->phase = PHASE_CHECKING;
    local_set_busy(l, a, true);
    attempt_step(l, a);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct link *link = poll->data;
    struct attempt *a = link->attempt;
    struct local *l = link->engine;
    (void)events;
    if (a == NULL)
        return;
    bool over = status < 0;
    for (bool more = true; more && !over;) {
        char buffer[4096];
        ssize_t n = recv(link->fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        more = n == (ssize_t)sizeof buffer;
        over = n == 0 || (n < 0 && errno != EAGAIN);
        if (n > 0)
            strbuf_add(&link->in, buffer, (size_t)n);
        if (link->in.failed || link->in.len > IN_BYTES_MAX)
            over = true;
    }
    if (link->in.len > 0)
        take_lines(l, a);
    if (a->link != link)
        return; /* let go meanwhile; the attempt goes another way */
    if (over || a->told == a->workers)
        channel_ended(l, a);
}

/* --- the channel --- */

static void on_link_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;
    struct local *l = link->engine;
    close(link->fd);
    strbuf_done(&link->in);
    mem_free(link);
    local_handle_closed(l);
}

int attempt_link(struct local *l, struct attempt *a, int fd, struct err *e)
{
    struct link *link = mem_alloc(1, sizeof *link);
    if (link == NULL) {
        close(fd);
        return err_set(e, -ENOMEM, "no memory for a channel");
    }
    *link = (struct link){.attempt = a, .engine = l, .fd = fd};
    link->poll.data = link;
    int r = uv_poll_init(l->loop, &link->poll, fd);
    if (r < 0) {
        close(fd);
        mem_free(link);
        return err_set(e, r, "channel to the runner: %s", uv_strerror(r));
    }
    l->handles++;
    a->link = link;
    a->phase = PHASE_ALIVE;
    local_set_busy(l, a, false);
    (void)uv_poll_start(&link->poll, UV_READABLE, on_readable); /* fails only on a handle that is closing */
    return 0;
}

void attempt_unlink(struct attempt *a)
{
    if (a->link == NULL)
        return;
    a->link->attempt = NULL;
    (void)uv_poll_stop(&a->link->poll);
    uv_close((uv_handle_t *)&a->link->poll, on_link_closed);
    a->link = NULL;
}

void attempt_send(struct attempt *a, const char *text)
{
    if (a->link != NULL) /* a few bytes into a buffer of its own: it fits or the runner is gone */
        (void)send(a->link->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void attempt_terminate(struct attempt *a, int64_t grace_ms)
{
    a->term_ms = grace_ms;
    char text[48];
    (void)snprintf(text, sizeof text, "term %" PRId64 "\n", grace_ms);
    attempt_send(a, text);
}

/* Connects to ctl.sock in the folder, whose path may be longer than an address holds. */
static int connect_runner(const struct attempt *a)
{
    int dir = open(a->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/" RUNNER_FILE_SOCKET, dir);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r = fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof addr) < 0 ? -errno : fd;
    close(dir);
    if (r < 0 && fd >= 0)
        close(fd);
    return r;
}

/* --- what the folder says --- */

static void read_exits(struct local *l, struct attempt *a)
{
    char path[PATH_MAX];
    CLEANUP_FREE char *text = NULL;
    attempt_path(a, RUNNER_FILE_EXIT, path);
    if (file_read(path, EXIT_BYTES_MAX, &text, NULL, NULL) < 0)
        return;
    char *newline;
    for (char *line = text; (newline = strchr(line, '\n')) != NULL; line = newline + 1) {
        struct runner_exit x;
        *newline = '\0';
        if (runner_exit_parse(line, &x) == 0)
            note_exit(l, a, &x);
    }
}

static bool read_status(struct attempt *a, struct runner_status *ret)
{
    char path[PATH_MAX];
    CLEANUP_FREE char *text = NULL;
    attempt_path(a, RUNNER_FILE_STATUS, path);
    return file_read(path, STATUS_BYTES_MAX, &text, NULL, NULL) == 0 && runner_status_parse(text, ret, NULL) == 0;
}

static void append_exits(const struct attempt *a, const struct strbuf *lines)
{
    char path[PATH_MAX];
    attempt_path(a, RUNNER_FILE_EXIT, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return; /* without room it is decided again after a restart, with the same result */
    if (file_write_fd(fd, lines->data, lines->len) == 0 && fdatasync(fd) == 0)
        (void)dir_sync(a->dir, NULL);
    close(fd);
}

void attempt_fail(struct local *l, struct attempt *a, enum runner_cause cause, const char *why)
{
    struct strbuf lines = {0};
    struct runner_exit x = {.code = -1, .cause = cause, .time_ms = clock_wall_ms()};
    (void)snprintf(x.detail, sizeof x.detail, "%s", why);
    strbuf_putc(&lines, '\n'); /* ends a line that a crash cut */
    for (uint32_t i = 0; i < a->workers; i++) {
        if (a->ended[i])
            continue;
        x.rank = a->ranks[i];
        runner_exit_write(&x, &lines);
    }
    if (!lines.failed)
        append_exits(a, &lines);
    strbuf_done(&lines);
    for (uint32_t i = 0; i < a->workers; i++) {
        x.rank = a->ranks[i];
        note_exit(l, a, &x);
    }
    become_ended(l, a);
}

static void begin_killing(struct local *l, struct attempt *a, struct runner_status *st, const char *why)
{
    a->status = *st;
    a->lost_why = why;
    if (cgroup_plan_parse(st->cgroup != NULL ? st->cgroup : "none", &a->plan, NULL) < 0)
        a->plan = (struct cgroup_plan){0};
    a->phase = PHASE_KILLING;
    local_set_busy(l, a, true);
}

bool attempt_resume(struct local *l, struct attempt *a)
{
    struct runner_status st = {0};
    char path[PATH_MAX];
    if (runner_lives(a)) {
        a->rivals++; /* it may be a late one that finds itself void */
        begin_connecting(l, a);
        return true;
    }
    attempt_path(a, RUNNER_FILE_STATUS, path);
    bool known = read_status(a, &st);
    if (!known && access(path, F_OK) < 0 && (attempt_path(a, RUNNER_FILE_EXIT, path), access(path, F_OK) < 0))
        return false;
    if (known && st.started_ms != 0 && a->started_ms == 0) {
        a->started_ms = st.started_ms;
        (void)snprintf(a->note, sizeof a->note, "%s", st.note);
        local_tell_started(l, a);
    }
    read_exits(l, a);
    if (a->told == a->workers) {
        runner_status_done(&st);
        become_ended(l, a);
        return true;
    }
    char boot[40];
    process_boot_id(boot);
    bool rebooted = known && strcmp(boot, st.boot) != 0;
    if (!known || rebooted) { /* nothing of it can run */
        runner_status_done(&st);
        attempt_fail(l, a, RUNNER_LOST, rebooted ? "the machine was restarted" : "its status file is damaged");
        return true;
    }
    begin_killing(l, a, &st, "its runner was killed or crashed");
    return true;
}

/* --- busy phases --- */

/* The runner's own words on why it gave up: the last error in its log. */
static void why_not_started(const struct attempt *a, char out[RUNNER_DETAIL_SIZE])
{
    char path[PATH_MAX];
    CLEANUP_FREE char *text = NULL;
    (void)snprintf(out, RUNNER_DETAIL_SIZE, "remuda-runner ended before it started the job");
    attempt_path(a, RUNNER_FILE_LOG, path);
    if (file_read(path, LOG_TAIL_MAX, &text, NULL, NULL) < 0)
        return;
    const char *found = NULL;
    for (const char *p = text; (p = strstr(p, " error=\"")) != NULL; p++)
        found = p + 8;
    if (found != NULL)
        (void)snprintf(out, RUNNER_DETAIL_SIZE, "remuda-runner: %.*s", (int)strcspn(found, "\"\n"), found);
}

/*
 * Two runners of one attempt, one of them late from an earlier life of the daemon, may turn each other away: one has
 * the lock, finds that it has been declared void and goes; the other found the lock held and has gone as well.
 */
static bool try_again(struct local *l, struct attempt *a)
{
    if (a->stray) { /* all the better */
        become_ended(l, a);
        return true;
    }
    return a->rivals > 0 && a->rivals <= RIVALS_MAX && launch_again(l, a, NULL) == 0;
}

static void step_checking(struct local *l, struct attempt *a)
{
    char why[RUNNER_DETAIL_SIZE];
    if (runner_lives(a)) { /* on its way out, or it closed the channel only */
        begin_connecting(l, a);
        return;
    }
    if (attempt_resume(l, a) || try_again(l, a))
        return;
    why_not_started(a, why);
    attempt_fail(l, a, RUNNER_LAUNCH_FAILED, why);
}

/* A runner that holds the lock and does not answer is of no use to anybody. */
static void kill_runner(struct attempt *a)
{
    struct runner_status st;
    if (!read_status(a, &st))
        return;
    if (process_alive(st.pid, st.start_ticks))
        (void)kill(st.pid, SIGKILL);
    runner_status_done(&st);
}

static void step_connecting(struct local *l, struct attempt *a)
{
    int fd = connect_runner(a);
    if (fd >= 0) {
        if (attempt_link(l, a, fd, NULL) < 0)
            return; /* tried again */
        a->deadline_ms = clock_mono_ms() + 10000;
        return;
    }
    if (!runner_lives(a)) {
        a->phase = PHASE_CHECKING;
        step_checking(l, a);
    } else if (clock_mono_ms() > a->deadline_ms) {
        kill_runner(a);
    }
}

static void step_killing(struct local *l, struct attempt *a)
{
    char name[64], tag[96];
    (void)snprintf(name, sizeof name, "%" PRIu64 ".%" PRIu32, a->job, a->attempt);
    (void)snprintf(tag, sizeof tag, "%s.%s", l->key, name);
    bool empty = cgroup_kill_step(&a->plan, name, CGROUP_ALL);
    struct tree t;
    if (tree_read(&t) < 0)
        return;
    if (tree_mark_attempt(&t, tag, a->status.workers, a->status.workers_len) > 0) {
        (void)tree_signal(&t, SIGKILL);
        empty = false;
    }
    tree_done(&t);
    if (!empty)
        return;
    (void)cgroup_remove(&a->plan, name);
    attempt_fail(l, a, RUNNER_LOST, a->lost_why);
}

void attempt_step(struct local *l, struct attempt *a)
{
    switch (a->phase) {
    case PHASE_CONNECTING:
        step_connecting(l, a);
        break;
    case PHASE_CHECKING:
        step_checking(l, a);
        break;
    case PHASE_KILLING:
        step_killing(l, a);
        break;
    case PHASE_ALIVE:
    case PHASE_ENDED:
        break;
    }
}
