/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs about the daemon itself: up, down, daemon. */
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/units.h"
#include "cli/verb.h"
#include "cli/view.h"
#include "config/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG_KEPT_BYTES (8 << 20) /* `up` puts a longer log aside */
#define LOG_TAIL_BYTES 4000      /* shown of the log of a daemon that did not start */

/* The options of `daemon` and `up`, checked. Paths are absolute and owned. */
struct wish {
    struct cli_daemon o;
    char *config;
    char *preset;
    char *cluster;
    char *cards;
};

static void wish_done(struct wish *w)
{
    mem_free(w->config);
    mem_free(w->preset);
    mem_free(w->cluster);
    mem_free(w->cards);
}

/* The name of a file without its folder and ".yaml". */
static int bare_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, ".yaml") == 0 ? (int)(dot - path) : (int)strlen(path);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int own_path(const struct cli *c, const char *option, const char *given, char **ret)
{
    if (given == NULL)
        return CLI_OK;
    if (given[0] == '\0')
        return FAIL(c, CLI_USAGE, NOT_ALLOWED, option, given, msg(MSG_GIVE_FILE));
    *ret = cli_absolute(given);
    return *ret == NULL ? FAIL(c, CLI_ERROR, OUT_OF_MEMORY) : CLI_OK;
}

/* Where cards come from, in words: "NVML", "simulated (dgx-a100)", "simulated cluster (lab)". */
static char *cards_text(const struct wish *w)
{
    struct strbuf b = {0};
    const char *path = w->preset != NULL ? w->preset : w->cluster;
    const char *name = path != NULL ? base_name(path) : "";
    if (w->preset != NULL)
        strbuf_printf(&b, "simulated (%.*s)", bare_name(name), name);
    else if (w->cluster != NULL)
        strbuf_printf(&b, "simulated cluster (%.*s)", bare_name(name), name);
    else
        strbuf_puts(&b, "NVML");
    return strbuf_take(&b);
}

static int check_config(const struct cli *c, const char *path)
{
    struct config cfg;
    struct err e;
    if (path == NULL)
        return CLI_OK;
    if (config_load_file(path, &cfg, NULL, &e) < 0)
        return cli_fail(c, CLI_USAGE, "%s", e.text);
    config_done(&cfg);
    return CLI_OK;
}

static int read_wish(const struct cli *c, const struct args *a, struct wish *w)
{
    const char *preset = arg_get(a, "simulate");
    const char *cluster = arg_get(a, "simulate-cluster");
    const char *scale = arg_get(a, "time-scale");
    struct err e;
    w->o.time_scale_milli = 1000;
    if (preset != NULL && cluster != NULL)
        return FAIL(c, CLI_USAGE, EXCLUDE_EACH_OTHER, "--simulate", "--simulate-cluster");
    if (scale != NULL && cluster == NULL)
        return FAIL(c, CLI_USAGE, NEEDS_OTHER, "--time-scale", "--simulate-cluster");
    if (scale != NULL &&
        (units_parse_milli(scale, 1000000, &w->o.time_scale_milli, &e) < 0 || w->o.time_scale_milli == 0))
        return FAIL(c, CLI_USAGE, NOT_ALLOWED, "--time-scale", scale, "0.001..1000000");
    int rc = own_path(c, "--config", arg_get(a, "config"), &w->config);
    if (rc == CLI_OK)
        rc = own_path(c, "--simulate-cluster", cluster, &w->cluster);
    /* A word without '/' is the name of a preset, not of a file. */
    if (rc == CLI_OK && preset != NULL && strchr(preset, '/') == NULL && preset[0] != '\0') {
        w->preset = mem_strdup(preset);
        rc = w->preset == NULL ? FAIL(c, CLI_ERROR, OUT_OF_MEMORY) : CLI_OK;
    } else if (rc == CLI_OK) {
        rc = own_path(c, "--simulate", preset, &w->preset);
    }
    if (rc == CLI_OK)
        rc = check_config(c, w->config);
    w->cards = rc == CLI_OK ? cards_text(w) : NULL;
    w->o.state_dir = c->state_dir;
    w->o.config_path = w->config;
    w->o.preset = w->preset;
    w->o.cluster_file = w->cluster;
    w->o.cards = w->cards;
    w->o.listen = arg_get(a, "listen");
    return rc;
}

int run_daemon(struct cli *c, struct args *a)
{
    struct wish w = {.config = NULL};
    int rc = read_wish(c, a, &w);
    if (rc == CLI_OK)
        rc = c->hooks->daemon(&w.o);
    wish_done(&w);
    return rc;
}

/* --- up --- */

/* The status of the daemon; NULL when none answers. The caller's. */
static json_t *daemon_status(struct cli *c)
{
    struct api_reply r;
    json_t *status = NULL;
    api_timeout(c->api, 5000);
    if (api_call(c->api, "GET", "/v1/status", NULL, &r) == CLI_OK)
        status = json_incref(r.body);
    api_reply_done(&r);
    return status;
}

static void warn_differs(const char *setting, const char *is, const char *asked)
{
    if (strcmp(is, asked) == 0)
        return;
    SAY(stderr, UP_DIFFERS, setting, is, asked);
    (void)fputc('\n', stderr);
}

static void print_up(const struct cli *c, const json_t *status, bool already)
{
    long long pid = (long long)get_int(status, "pid");
    if (c->json) {
        json_t *v = json_pack("{s:I,s:s,s:b,s:s,s:b,s:s}", "pid", (json_int_t)pid, "state_dir", c->state_dir, "already",
                              already, "engine", get_str(status, "engine"), "simulated", get_bool(status, "simulated"),
                              "cards", get_str(status, "cards"));
        print_json(v);
        json_decref(v);
        return;
    }
    if (already)
        SAY(stdout, UP_ALREADY, pid, c->state_dir);
    else
        SAY(stdout, UP_READY, pid, c->state_dir);
    (void)putchar('\n');
    struct strbuf cards = {0};
    add_cards_line(&cards, status);
    (void)printf("%s\n", strbuf_str(&cards));
    strbuf_done(&cards);
    if (get_int(status, "gpus") == 0)
        (void)printf("%s\n", msg(MSG_UP_NO_CARDS));
}

static int already_up(const struct cli *c, const struct wish *w, const json_t *status, const struct args *a)
{
    if (arg_has(a, "simulate") || arg_has(a, "simulate-cluster"))
        warn_differs("cards", get_str(status, "cards"), w->cards);
    print_up(c, status, true);
    return CLI_OK;
}

/* Opens the log for the daemon to write to; a long one is put aside as daemon.log.1. *ret_at is its length. */
static int open_log(const struct cli *c, const char *path, off_t *ret_at)
{
    struct err e;
    struct stat st;
    struct strbuf old = {0};
    /* The daemon itself would make the folder, but its log must be there first; the mode is the server's. */
    if (dir_make(c->state_dir, geteuid() == 0 ? 0755 : 0700, &e) < 0) {
        (void)cli_fail(c, CLI_ERROR, "%s", e.text);
        return -1;
    }
    strbuf_printf(&old, "%s.1", path);
    if (stat(path, &st) == 0 && st.st_size > LOG_KEPT_BYTES)
        (void)rename(path, strbuf_str(&old));
    strbuf_done(&old);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, &st) < 0) {
        (void)FAIL(c, CLI_ERROR, PATH_BAD, "--state", path, strerror(errno));
        return -1;
    }
    *ret_at = st.st_size;
    return fd;
}

static void add_word(const char **argv, size_t *len, const char *option, const char *value)
{
    if (value == NULL)
        return;
    argv[(*len)++] = option;
    argv[(*len)++] = value;
}

/* Never returns. In a session of its own, with nothing open but the log. */
static void be_daemon(const struct cli *c, const struct wish *w, const char *scale, int log_fd)
{
    const char *argv[20];
    size_t len = 0;
    argv[len++] = "remuda";
    argv[len++] = "daemon";
    add_word(argv, &len, "--state", c->state_dir);
    add_word(argv, &len, "--config", w->o.config_path);
    add_word(argv, &len, "--simulate", w->o.preset);
    add_word(argv, &len, "--simulate-cluster", w->o.cluster_file);
    add_word(argv, &len, "--time-scale", scale);
    add_word(argv, &len, "--listen", w->o.listen);
    argv[len] = NULL;
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)setsid();
    if (dup2(null_fd, STDIN_FILENO) >= 0 && dup2(log_fd, STDOUT_FILENO) >= 0 && dup2(log_fd, STDERR_FILENO) >= 0 &&
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0 && chdir("/") == 0)
        (void)execv("/proc/self/exe", (char **)(uintptr_t)argv);
    (void)fprintf(stderr, "remuda: the daemon can't be started: %s\n", strerror(errno));
    _exit(127);
}

static void show_log(const char *path, off_t from)
{
    char *text = NULL;
    size_t len = 0;
    if (file_read(path, (size_t)1 << 30, &text, &len, NULL) < 0)
        return;
    size_t at = (size_t)from < len ? (size_t)from : len;
    if (len - at > LOG_TAIL_BYTES)
        at = len - LOG_TAIL_BYTES;
    (void)fputs(text + at, stderr);
    mem_free(text);
}

static int up_failed(const struct cli *c, const char *log, off_t from, enum msg_id why, const char *text, int number)
{
    struct strbuf b = {0};
    if (why == MSG_UP_SLOW)
        ADD(&b, UP_SLOW, text);
    else if (why == MSG_UP_SIGNAL)
        ADD(&b, UP_SIGNAL, number);
    else
        ADD(&b, UP_EXIT, number);
    int code = FAIL(c, why == MSG_UP_SLOW ? CLI_TIMEOUT : CLI_ERROR, UP_FAILED, strbuf_str(&b), log);
    strbuf_done(&b);
    show_log(log, from);
    return code;
}

/* Some daemon, ours or another, is at work on the state folder. */
static bool folder_taken(const struct cli *c)
{
    struct strbuf lock = {0};
    strbuf_printf(&lock, "%s/daemon.lock", c->state_dir);
    bool held = lock_file_held(strbuf_str(&lock));
    strbuf_done(&lock);
    return held;
}

/*
 * Until the daemon has asked what runs and takes orders, it has ended, or it is too late. When ours ended because
 * another `up` was faster, that other daemon is waited for.
 */
static int await_ready(struct cli *c, const struct wish *w, const struct args *a, pid_t pid, int64_t timeout_ms,
                       const char *log, off_t from)
{
    int64_t deadline = clock_mono_ms() + timeout_ms;
    bool ended = false;
    int status = 0;
    for (int64_t pause_ms = 5;; pause_ms = pause_ms < 100 ? pause_ms * 2 : 100) {
        ended = ended || waitpid(pid, &status, WNOHANG) == pid;
        bool hopeless = ended && !folder_taken(c);
        json_t *answer = daemon_status(c);
        bool own = get_int(answer, "pid") == (int64_t)pid;
        if (answer != NULL && get_bool(answer, "reconciled") && (own || ended)) {
            int rc = CLI_OK;
            if (own)
                print_up(c, answer, false);
            else
                rc = already_up(c, w, answer, a);
            json_decref(answer);
            return rc;
        }
        json_decref(answer);
        if (hopeless && WIFSIGNALED(status))
            return up_failed(c, log, from, MSG_UP_SIGNAL, NULL, WTERMSIG(status));
        if (hopeless)
            return up_failed(c, log, from, MSG_UP_EXIT, NULL, WEXITSTATUS(status));
        if (clock_mono_ms() > deadline) {
            char text[32];
            units_format_duration(timeout_ms, text);
            return up_failed(c, log, from, MSG_UP_SLOW, text, 0);
        }
        clock_sleep_ms(pause_ms);
    }
}

static int read_timeout(const struct cli *c, const struct args *a, int64_t *ret_ms)
{
    const char *text = arg_get(a, "timeout");
    struct err e;
    if (text != NULL && units_parse_duration_ms(text, ret_ms, &e) < 0)
        return cli_fail(c, CLI_USAGE, "--timeout: %s", e.text);
    return CLI_OK;
}

static int start(struct cli *c, const struct wish *w, const struct args *a, int64_t timeout_ms)
{
    struct strbuf log = {0};
    off_t from = 0;
    strbuf_printf(&log, "%s/daemon.log", c->state_dir);
    int fd = open_log(c, strbuf_str(&log), &from);
    int rc = fd < 0 ? CLI_ERROR : CLI_OK;
    if (rc == CLI_OK) {
        (void)fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            be_daemon(c, w, arg_get(a, "time-scale"), fd);
        rc = pid < 0 ? FAIL(c, CLI_ERROR, PATH_BAD, "up", "fork", strerror(errno))
                     : await_ready(c, w, a, pid, timeout_ms, strbuf_str(&log), from);
        (void)close(fd);
    }
    strbuf_done(&log);
    return rc;
}

int run_up(struct cli *c, struct args *a)
{
    struct wish w = {.config = NULL};
    int64_t timeout_ms = 60000;
    if (c->url != NULL)
        return FAIL(c, CLI_USAGE, NOT_OVER_URL, "up", c->url);
    int rc = read_timeout(c, a, &timeout_ms);
    if (rc == CLI_OK)
        rc = read_wish(c, a, &w);
    if (rc == CLI_OK) {
        json_t *status = daemon_status(c);
        rc = status != NULL ? already_up(c, &w, status, a) : start(c, &w, a, timeout_ms);
        json_decref(status);
    }
    wish_done(&w);
    return rc;
}

/* --- down --- */

static int64_t live_jobs(const json_t *status)
{
    const json_t *jobs = json_object_get(status, "jobs");
    return get_int(jobs, "queued") + get_int(jobs, "starting") + get_int(jobs, "running");
}

static int not_in_time(const struct cli *c, int64_t timeout_ms)
{
    char text[32];
    units_format_duration(timeout_ms, text);
    return FAIL(c, CLI_TIMEOUT, NOT_IN_TIME, text);
}

static int cancel_jobs(struct cli *c, int64_t deadline, int64_t timeout_ms)
{
    struct api_reply r;
    json_t *body = json_pack("{s:b}", "all", 1);
    int rc = api_call(c->api, "POST", "/v1/jobs/cancel", body, &r);
    json_decref(body);
    if (rc != CLI_OK)
        (void)cli_fail_reply(c, &r);
    api_reply_done(&r);
    while (rc == CLI_OK) {
        json_t *status = daemon_status(c);
        bool left = status == NULL || live_jobs(status) > 0;
        json_decref(status);
        if (!left)
            break;
        if (clock_mono_ms() > deadline)
            rc = not_in_time(c, timeout_ms);
        else
            clock_sleep_ms(50);
    }
    return rc;
}

/* Until the daemon has let go of its state folder. */
static int await_end(struct cli *c, int64_t deadline, int64_t timeout_ms)
{
    int rc = CLI_OK;
    for (;;) {
        json_t *status = c->url != NULL ? daemon_status(c) : NULL;
        bool there = c->url != NULL ? status != NULL : folder_taken(c);
        json_decref(status);
        if (!there)
            break;
        if (clock_mono_ms() > deadline) {
            rc = not_in_time(c, timeout_ms);
            break;
        }
        clock_sleep_ms(10);
    }
    return rc;
}

static void print_down(const struct cli *c, bool was_up, int64_t running)
{
    if (c->json)
        (void)printf("{\"was_up\": %s, \"running\": %" PRId64 "}\n", was_up ? "true" : "false", running);
    else if (was_up)
        SAY(stdout, DOWN_DONE, (long long)running);
    else
        SAY(stdout, DOWN_NONE, api_where(c->api));
    if (!c->json)
        (void)putchar('\n');
}

int run_down(struct cli *c, struct args *a)
{
    int64_t timeout_ms = 60000;
    int rc = read_timeout(c, a, &timeout_ms);
    if (rc != CLI_OK)
        return rc;
    int64_t deadline = clock_mono_ms() + timeout_ms;
    struct api_reply r;
    rc = api_call(c->api, "GET", "/v1/status", NULL, &r);
    json_t *status = json_incref(r.body);
    bool none = r.status == 0 && rc == CLI_NO_DAEMON;
    if (rc != CLI_OK && !none)
        (void)cli_fail_reply(c, &r);
    api_reply_done(&r);
    if (none) {
        print_down(c, false, 0);
        json_decref(status);
        return CLI_OK;
    }
    if (rc == CLI_OK && arg_has(a, "cancel-jobs"))
        rc = cancel_jobs(c, deadline, timeout_ms);
    if (rc == CLI_OK) {
        json_decref(status);
        status = daemon_status(c);
        rc = api_call(c->api, "POST", "/v1/shutdown", NULL, &r);
        if (rc != CLI_OK)
            (void)cli_fail_reply(c, &r);
        api_reply_done(&r);
    }
    if (rc == CLI_OK)
        rc = await_end(c, deadline, timeout_ms);
    const json_t *jobs = json_object_get(status, "jobs");
    if (rc == CLI_OK)
        print_down(c, true, get_int(jobs, "starting") + get_int(jobs, "running"));
    json_decref(status);
    return rc;
}
