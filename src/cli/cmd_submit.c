/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verbs that bring a job: submit and run. The job is put together as the JSON object of POST /v1/jobs and checked here
 * with the parsers the daemon uses, so that an error speaks of what the user typed ("--gpus", "job.sh: line 2").
 */
#include "base/mem.h"
#include "cli/verb.h"
#include "cli/view.h"
#include "config/jobspec_json.h"
#include "config/script.h"
#include "config/yaml.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* --- the environment that goes along --- */

/* Sets NAME from "NAME=value"; what is not UTF-8 can't travel as JSON and is left out, with a warning. */
static int env_set(const struct cli *c, json_t *env, const char *entry, const char *option)
{
    const char *equals = strchr(entry, '=');
    if (equals == NULL || equals == entry)
        return FAIL(c, CLI_USAGE, NOT_ALLOWED, option, entry, "NAME=value");
    char *name = mem_strndup(entry, (size_t)(equals - entry));
    if (name == NULL)
        return FAIL(c, CLI_ERROR, OUT_OF_MEMORY);
    if (json_object_set_new(env, name, json_string(equals + 1)) != 0) {
        SAY(stderr, ENV_NOT_UTF8, name);
        (void)fputc('\n', stderr);
    }
    mem_free(name);
    return CLI_OK;
}

static int env_all(const struct cli *c, json_t *env)
{
    int rc = CLI_OK;
    for (char **entry = environ; *entry != NULL && rc == CLI_OK; entry++)
        if (strchr(*entry, '=') != NULL && (*entry)[0] != '=' && strncmp(*entry, "REMUDA_", 7) != 0)
            rc = env_set(c, env, *entry, "--export");
    return rc;
}

/* One word of --export: "ALL", "NONE", "NAME=value" or "NAME". */
static int env_export(const struct cli *c, json_t *env, const char *word)
{
    if (strcmp(word, "ALL") == 0)
        return env_all(c, env);
    if (strcmp(word, "NONE") == 0 || word[0] == '\0')
        return CLI_OK;
    if (strchr(word, '=') != NULL)
        return env_set(c, env, word, "--export");
    size_t len = strlen(word);
    for (char **entry = environ; *entry != NULL; entry++)
        if (strncmp(*entry, word, len) == 0 && (*entry)[len] == '=')
            return env_set(c, env, *entry, "--export");
    return FAIL(c, CLI_USAGE, ENV_NOT_SET, word);
}

/* A job file's own variables win over the shell's, --env over both. */
static int add_env(const struct cli *c, const struct args *a, json_t *body)
{
    json_t *env = json_object();
    const char *list = arg_get(a, "export");
    char *copy = mem_strdup(list != NULL ? list : "ALL");
    int rc = copy == NULL ? FAIL(c, CLI_ERROR, OUT_OF_MEMORY) : CLI_OK;
    char *rest = copy;
    for (char *word = strsep(&rest, ","); word != NULL && rc == CLI_OK; word = strsep(&rest, ","))
        rc = env_export(c, env, word);
    mem_free(copy);
    if (json_is_object(json_object_get(body, "env")))
        (void)json_object_update(env, json_object_get(body, "env"));
    for (size_t i = 0; i < a->given_len && rc == CLI_OK; i++)
        if (strcmp(a->given[i].name, "env") == 0)
            rc = env_set(c, env, a->given[i].value, "--env");
    (void)json_object_set_new(body, "env", env);
    return rc;
}

/* --- what to run --- */

static json_t *words_of(char **words, int len)
{
    json_t *list = json_array();
    for (int i = 0; i < len; i++) {
        json_t *word = json_string(words[i]);
        if (word == NULL || json_array_append_new(list, word) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

struct script_check {
    struct job_spec trial;
    bool named;
};

static int check_script_option(void *arg, const struct job_option *o, const char *value, struct err *e)
{
    struct script_check *s = arg;
    s->named = s->named || o->id == JOB_OPT_NAME;
    return job_option_set(&s->trial, o->id, value, e);
}

static int add_script(const struct cli *c, const char *path, json_t *body)
{
    char *text = NULL;
    size_t len = 0;
    size_t late = 0;
    struct err e = {0};
    struct script_check check = {.named = false};
    if (config_read_text(path, SCRIPT_BYTES_MAX, &text, &len, &e) < 0) {
        int code = cli_fail(c, CLI_USAGE, "%s", e.text);
        if (e.code == -ENOENT && !c->json && strchr(path, '/') == NULL)
            (void)fprintf(stderr, "%s\n", msg(MSG_SUBMIT_COMMAND_HINT));
        return code;
    }
    job_spec_init(&check.trial);
    int rc = script_parse(text, len, check_script_option, &check, &late, &e);
    if (rc == 0 && check.trial.cwd != NULL && json_object_get(body, "cwd") == NULL)
        (void)json_object_set_new(body, "cwd", json_string(check.trial.cwd));
    job_spec_done(&check.trial);
    if (rc < 0) {
        mem_free(text);
        return cli_fail(c, CLI_USAGE, "%s: %s", path, e.text);
    }
    if (late > 0 && !c->json) {
        SAY(stderr, SCRIPT_LATE, path, late);
        (void)fputc('\n', stderr);
    }
    if (!check.named && !json_object_get(body, "name")) {
        char name[NAME_SIZE];
        job_name_from(strcmp(path, "-") == 0 ? "stdin" : path, name);
        (void)json_object_set_new(body, "name", json_string(name));
    }
    (void)json_object_set_new(body, "script", json_stringn(text, len));
    mem_free(text);
    return CLI_OK;
}

static int add_command(const struct cli *c, const struct args *a, json_t *body)
{
    json_t *words = words_of(a->argv + !a->after_dashes, a->argc - !a->after_dashes);
    if (words == NULL)
        return FAIL(c, CLI_USAGE, NOT_UTF8, c->verb->name);
    if (a->after_dashes) {
        (void)json_object_set_new(body, "command", words);
        return CLI_OK;
    }
    if (json_array_size(words) > 0)
        (void)json_object_set(body, "args", words);
    json_decref(words);
    return add_script(c, a->argv[0], body);
}

/* The options of the command line, each checked by itself first, so that an error can name it. */
static int add_options(const struct cli *c, const struct args *a, json_t *body)
{
    int rc = CLI_OK;
    for (size_t i = 0; i < a->given_len && rc == CLI_OK; i++) {
        const struct job_option *o = job_option_by_name(a->given[i].name, NULL);
        if (o == NULL || strcmp(o->name, a->given[i].name) != 0)
            continue;
        struct job_spec trial;
        struct err e = {0};
        const char *value = a->given[i].value;
        /* A folder may be given relative to this one; the daemon has another. */
        CLEANUP_FREE char *folder = o->id == JOB_OPT_CHDIR && value[0] != '\0' ? cli_absolute(value) : NULL;
        value = folder != NULL ? folder : value;
        job_spec_init(&trial);
        if (job_option_set(&trial, o->id, value, &e) < 0)
            rc = cli_fail(c, CLI_USAGE, "--%s: %s", o->name, e.text);
        else
            (void)json_object_set_new(body, o->key, json_string(value));
        job_spec_done(&trial);
    }
    return rc;
}

/* Where the job runs: here, when nothing else is said. */
static int add_cwd(const struct cli *c, json_t *body)
{
    if (json_object_get(body, "cwd") != NULL)
        return CLI_OK;
    CLEANUP_FREE char *cwd = cli_absolute(".");
    if (cwd == NULL)
        return FAIL(c, CLI_ERROR, PATH_BAD, "--chdir", ".", strerror(errno));
    return json_object_set_new(body, "cwd", json_string(cwd)) == 0 ? CLI_OK : FAIL(c, CLI_USAGE, NOT_UTF8, "--chdir");
}

/* The whole job; *ret is the caller's. An exit code; what is wrong has been said. */
static int make_job(const struct cli *c, const struct args *a, json_t **ret)
{
    const char *file = arg_get(a, "file");
    json_t *body = NULL;
    struct err e = {0};
    if (file != NULL && a->argc > 0)
        return FAIL(c, CLI_USAGE, EXCLUDE_EACH_OTHER, "--file", a->argv[0]);
    if (file == NULL && a->argc == 0)
        return FAIL(c, CLI_USAGE, SUBMIT_NOTHING, c->verb->name);
    if (file == NULL)
        body = json_object();
    else if (job_file_load(file, &body, &e) < 0)
        return cli_fail(c, CLI_USAGE, "%s", e.text);
    int rc = add_options(c, a, body);
    if (rc == CLI_OK && file == NULL)
        rc = add_command(c, a, body);
    if (arg_has(a, "hold"))
        (void)json_object_set_new(body, "hold", json_true());
    if (rc == CLI_OK)
        rc = add_env(c, a, body);
    if (rc == CLI_OK)
        rc = add_cwd(c, body);
    struct job_spec trial;
    if (rc == CLI_OK && job_spec_from_json(body, &trial, &e) < 0)
        rc = cli_fail(c, CLI_USAGE, "%s", e.text);
    else if (rc == CLI_OK)
        job_spec_done(&trial);
    if (rc != CLI_OK) {
        json_decref(body);
        return rc;
    }
    *ret = body;
    return CLI_OK;
}

/* Sends it; *r has the answer (api_reply_done() always). */
static int submit(struct cli *c, const struct args *a, struct api_reply *r)
{
    json_t *body = NULL;
    *r = (struct api_reply){.exit = CLI_ERROR};
    int rc = make_job(c, a, &body);
    if (rc != CLI_OK)
        return rc;
    rc = api_call(c->api, "POST", "/v1/jobs", body, r);
    json_decref(body);
    if (rc != CLI_OK)
        return cli_fail_reply(c, r);
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(r->body, "warnings"), i, warning)
    {
        if (c->json)
            break; /* they stand in the object */
        SAY(stderr, WARNING, json_is_string(warning) ? json_string_value(warning) : get_str(warning, "detail"));
        (void)fputc('\n', stderr);
    }
    return rc;
}

int run_submit(struct cli *c, struct args *a)
{
    struct api_reply r;
    int rc = submit(c, a, &r);
    if (rc == CLI_OK && c->json) {
        print_json(r.body);
    } else if (rc == CLI_OK && arg_has(a, "parsable")) {
        (void)printf("%" PRId64 "\n", get_int(r.body, "id"));
    } else if (rc == CLI_OK) {
        SAY(stdout, SUBMITTED, (long long)get_int(r.body, "id"), state_text(get_str(r.body, "state")));
        (void)putchar('\n');
    }
    api_reply_done(&r);
    return rc;
}

/* --- run --- */

#define RUN_WORKERS_MAX 64 /* workers whose output is shown; two connections for each */

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signum)
{
    (void)signum;
    interrupts = interrupts + 1;
}

/* One stream of one worker. With several workers each line is led by its rank, and whole lines are written. */
struct run_stream {
    FILE *to;
    struct strbuf line;
    int rank; /* -1: alone */
};

static void put_line(struct run_stream *s)
{
    (void)fprintf(s->to, "%d: ", s->rank);
    (void)fwrite(strbuf_str(&s->line), 1, s->line.len, s->to);
    strbuf_clear(&s->line);
}

static bool on_output(void *arg, const char *bytes, size_t len)
{
    struct run_stream *s = arg;
    if (s->rank < 0)
        return fwrite(bytes, 1, len, s->to) == len && fflush(s->to) == 0;
    for (size_t i = 0; i < len; i++) {
        strbuf_putc(&s->line, bytes[i]);
        if (bytes[i] == '\n' || s->line.len >= 65536)
            put_line(s);
    }
    return fflush(s->to) == 0 && !s->line.failed;
}

/* Streams the output of all workers until the job has ended or a signal came. CLI_OK, or what broke. */
static int stream_output(struct cli *c, uint64_t id, int64_t workers)
{
    size_t len = 2 * (size_t)(workers < RUN_WORKERS_MAX ? workers : RUN_WORKERS_MAX);
    struct api_stream *streams = mem_alloc(len, sizeof *streams);
    struct run_stream *outs = mem_alloc(len, sizeof *outs);
    struct strbuf *paths = mem_alloc(len, sizeof *paths);
    int rc = streams == NULL || outs == NULL || paths == NULL ? CLI_ERROR : CLI_OK;
    for (size_t i = 0; i < len && rc == CLI_OK; i++) {
        strbuf_printf(&paths[i], "/v1/jobs/%" PRIu64 "/logs?worker=%zu&stream=%s&follow=1", id, i / 2,
                      i % 2 == 0 ? "stdout" : "stderr");
        outs[i] = (struct run_stream){.to = i % 2 == 0 ? stdout : stderr, .rank = workers > 1 ? (int)(i / 2) : -1};
        streams[i] = (struct api_stream){.path = strbuf_str(&paths[i]), .cb = on_output, .arg = &outs[i]};
    }
    if (rc == CLI_OK)
        (void)api_streams(c->api, streams, len, &interrupts);
    for (size_t i = 0; i < len && outs != NULL && paths != NULL; i++) {
        if (outs[i].line.len > 0) {
            strbuf_putc(&outs[i].line, '\n');
            put_line(&outs[i]);
        }
        strbuf_done(&outs[i].line);
        strbuf_done(&paths[i]);
    }
    mem_free(streams);
    mem_free(outs);
    mem_free(paths);
    return rc;
}

static void say_reason(uint64_t id, const json_t *reason)
{
    struct strbuf b = {0};
    add_reason(&b, reason);
    SAY(stderr, RUN_WAITS, (long long)id, strbuf_str(&b));
    (void)fputc('\n', stderr);
    strbuf_done(&b);
}

static bool is_state(const struct api_reply *r, const char *state)
{
    return strcmp(get_str(r->body, "state"), state) == 0;
}

/* Waits until the job has begun, telling once why it waits. *ret_workers is how many it has. */
static int await_start(struct cli *c, uint64_t id, int64_t *ret_workers)
{
    char path[64];
    bool told = false;
    (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, id);
    for (int64_t pause_us = 20000; interrupts == 0; pause_us = pause_us < 500000 ? pause_us * 2 : 500000) {
        struct api_reply r;
        int rc = api_call(c->api, "GET", path, NULL, &r);
        bool waits = rc == CLI_OK && (is_state(&r, "queued") || is_state(&r, "starting"));
        if (rc != CLI_OK)
            (void)cli_fail_reply(c, &r);
        else
            *ret_workers = get_int(r.body, "workers");
        const json_t *reason = waits ? json_object_get(r.body, "reason") : NULL;
        if (!told && json_is_object(reason) && pause_us >= 80000) {
            told = true;
            say_reason(id, reason);
        }
        api_reply_done(&r);
        if (!waits)
            return rc;
        (void)usleep((useconds_t)pause_us); /* a signal ends it early */
    }
    return CLI_OK;
}

static int finish_run(struct cli *c, uint64_t id)
{
    json_t *answer = NULL;
    bool cancelled = false;
    for (;;) {
        if (interrupts > 0 && !cancelled) {
            char path[64];
            struct api_reply r;
            cancelled = true;
            SAY(stderr, RUN_CANCELS, (long long)id);
            (void)fputc('\n', stderr);
            (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/cancel", id);
            (void)api_call(c->api, "POST", path, NULL, &r); /* "conflict": it has just ended */
            api_reply_done(&r);
        }
        if (interrupts > 1)
            return CLI_CANCELLED;
        int rc = cli_wait(c, id, interrupts > 0 || cancelled ? 500 : 2000, &answer);
        if (rc == CLI_TIMEOUT)
            continue;
        if (rc == CLI_OK)
            rc = (int)get_int(answer, "exit_status");
        json_decref(answer);
        return rc;
    }
}

int run_run(struct cli *c, struct args *a)
{
    struct api_reply r;
    int64_t workers = 1;
    if (c->json)
        return FAIL(c, CLI_USAGE, RUN_NO_JSON);
    int rc = submit(c, a, &r);
    uint64_t id = rc == CLI_OK ? (uint64_t)get_int(r.body, "id") : 0;
    api_reply_done(&r);
    if (rc != CLI_OK)
        return rc;
    /* No SA_RESTART: a signal ends a wait. */
    struct sigaction act = {.sa_handler = on_interrupt};
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    rc = await_start(c, id, &workers);
    if (rc == CLI_OK && interrupts == 0)
        rc = stream_output(c, id, workers);
    return rc == CLI_OK ? finish_run(c, id) : rc;
}
