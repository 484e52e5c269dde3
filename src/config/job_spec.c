/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's specification as data: life, copy and the check that every door shares. The check knows
 * no cluster and no configuration: whether a queue exists or a request can ever fit is said by
 * control and core.
 */
#include "config/types.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

void job_spec_init(struct job_spec *s)
{
    *s = (struct job_spec){.workers = 1, .uid = JOB_ID_NONE, .gid = JOB_ID_NONE};
}

static void words_free(char **words)
{
    for (char **w = words; w != NULL && *w != NULL; w++)
        mem_free(*w);
    mem_free(words);
}

void job_spec_done(struct job_spec *s)
{
    if (s == NULL)
        return;
    words_free(s->argv);
    words_free(s->env);
    mem_free(s->cwd);
    mem_free(s->script);
    mem_free(s->key);
    mem_free(s->after);
    *s = (struct job_spec){0};
}

static int words_copy(char ***ret, char *const *words)
{
    if (words == NULL)
        return 0;
    size_t len = 0;
    while (words[len] != NULL)
        len++;
    char **copy = mem_alloc(len + 1, sizeof *copy);
    if (copy == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < len; i++) {
        copy[i] = mem_strdup(words[i]);
        if (copy[i] == NULL) {
            words_free(copy);
            return -ENOMEM;
        }
    }
    *ret = copy;
    return 0;
}

static int text_copy(char **ret, const char *text)
{
    if (text == NULL)
        return 0;
    *ret = mem_strdup(text);
    return *ret == NULL ? -ENOMEM : 0;
}

static int after_copy(struct dependency **ret, const struct dependency *rows, uint32_t len)
{
    if (len == 0)
        return 0;
    *ret = mem_alloc(len, sizeof **ret);
    if (*ret == NULL)
        return -ENOMEM;
    memcpy(*ret, rows, len * sizeof **ret);
    return 0;
}

int job_spec_copy(struct job_spec *dst, const struct job_spec *src)
{
    struct job_spec copy = *src;
    copy.argv = copy.env = NULL;
    copy.cwd = copy.script = copy.key = NULL;
    copy.after = NULL;
    if (words_copy(&copy.argv, src->argv) < 0 || words_copy(&copy.env, src->env) < 0 ||
        text_copy(&copy.cwd, src->cwd) < 0 || text_copy(&copy.script, src->script) < 0 ||
        text_copy(&copy.key, src->key) < 0 || after_copy(&copy.after, src->after, src->after_len) < 0) {
        job_spec_done(&copy);
        return -ENOMEM;
    }
    *dst = copy;
    return 0;
}

static const char *const level_names[LEVEL_COUNT] = {"any", "nvlink", "machine", "rack"};

const char *after_name(enum after_kind kind)
{
    static const char *const names[AFTER_KINDS] = {"ok", "fail", "any"};
    return (unsigned)kind < AFTER_KINDS ? names[kind] : NULL;
}

const char *level_name(enum level level)
{
    return (unsigned)level < LEVEL_COUNT ? level_names[level] : NULL;
}

int level_parse(const char *text, enum level *ret)
{
    for (unsigned i = 0; i < LEVEL_COUNT; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *ret = (enum level)i;
            return 0;
        }
    }
    return -EINVAL;
}

/* UTF-8 of 1..63 bytes without control characters (C0, DEL, C1, and the two Unicode line ends). */
static bool clean_text(const char *s)
{
    size_t len = strnlen(s, NAME_SIZE);
    if (len == 0 || len >= NAME_SIZE || !utf8_valid(s, len))
        return false;
    for (const unsigned char *p = (const unsigned char *)s; *p != '\0'; p++) {
        if (*p < 0x20 || *p == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0))
            return false;
        if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
            return false;
    }
    return true;
}

bool name_ok(const char *name)
{
    if (!clean_text(name) || name[0] == '-' || name[0] == '.')
        return false;
    for (const unsigned char *p = (const unsigned char *)name; *p != '\0'; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        bool digit = *p >= '0' && *p <= '9';
        if (!letter && !digit && *p < 0x80 && strchr("._-@", *p) == NULL)
            return false;
    }
    return true;
}

bool job_name_ok(const char *name)
{
    return clean_text(name);
}

bool strategy_name_ok(const char *name)
{
    return strcmp(name, "remuda") == 0 || strcmp(name, "binpack") == 0 || strcmp(name, "spread") == 0;
}

static bool model_char(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-_.+/ ", c) != NULL;
}

/* "A100-80GB|H100": alternatives joined by '|', none of them empty. */
static bool models_ok(const char *models)
{
    if (memchr(models, '\0', GPU_MODEL_SIZE) == NULL)
        return false;
    size_t run = 0;
    for (const unsigned char *p = (const unsigned char *)models;; p++) {
        if (*p == '|' || *p == '\0') {
            if (run == 0)
                return models[0] == '\0';
            if (*p == '\0')
                return true;
            run = 0;
        } else if (!model_char(*p)) {
            return false;
        } else {
            run++;
        }
    }
}

#define NAME_RULE "1 to 63 bytes of letters, digits and . _ - @ (or UTF-8) are allowed"

static int check_names(const struct job_spec *s, struct err *e)
{
    if (!job_name_ok(s->name))
        return err_set(e, -EINVAL,
                       "name: \"%.63s\" is not allowed; 1 to 63 bytes of UTF-8 without control "
                       "characters are",
                       utf8_valid(s->name, strnlen(s->name, NAME_SIZE)) ? s->name : "(not UTF-8)");
    const struct {
        const char *field;
        const char *value;
    } names[] = {{"user", s->user}, {"tenant", s->tenant}, {"queue", s->queue}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *v = names[i].value;
        if (v[0] != '\0' && !name_ok(v))
            return err_set(e, -EINVAL, "%s: \"%.63s\" is not a name; " NAME_RULE, names[i].field,
                           utf8_valid(v, strnlen(v, NAME_SIZE)) ? v : "(not UTF-8)");
    }
    if (s->strategy[0] != '\0' && !strategy_name_ok(s->strategy))
        return err_set(e, -EINVAL, "strategy: \"%.15s\" is unknown; allowed: remuda, binpack, spread", s->strategy);
    return 0;
}

static int check_request(const struct request *r, struct err *e)
{
    if (r->gpus > GPUS_PER_WORKER_MAX)
        return err_set(e, -EINVAL, "gpus: %" PRIu32 " is not allowed; 0 to %d for each worker are", r->gpus,
                       GPUS_PER_WORKER_MAX);
    if (r->gpus > 0 && (r->share_milli > 0 || r->share_mem_mib > 0))
        return err_set(e, -EINVAL,
                       "gpus: %" PRIu32 " whole cards and a share of one (gpu_mem, gpu_percent) exclude "
                       "each other; ask for one of them",
                       r->gpus);
    if (r->share_milli > GPU_MILLI)
        return err_set(e, -EINVAL, "gpu_percent: %" PRIu32 " thousandths are not allowed; 1 to 1000 are",
                       r->share_milli);
    if (r->share_mem_mib > 0 && r->share_milli == 0)
        return err_set(e, -EINVAL,
                       "gpu_mem: %" PRIu32 " MiB without gpu_percent is not a share; give gpu_percent "
                       "(0.1 to 100) too",
                       r->share_mem_mib);
    if (r->cpu_milli > CPU_MILLI_MAX)
        return err_set(e, -EINVAL, "cpus: %" PRIu32 ".%03" PRIu32 " are not allowed; 0 to 4096 are",
                       r->cpu_milli / 1000, r->cpu_milli % 1000);
    if (r->mem_mib > MEM_MIB_MAX)
        return err_set(e, -EINVAL, "mem: %" PRIu64 " MiB are not allowed; at most 1 PiB is", r->mem_mib);
    if (!models_ok(r->gpu_model))
        return err_set(e, -EINVAL,
                       "gpu_model: \"%.63s\" is not a list of models; allowed: names of letters, digits "
                       "and - _ . + / joined by |, e.g. \"A100-80GB|H100\"",
                       utf8_valid(r->gpu_model, strnlen(r->gpu_model, GPU_MODEL_SIZE)) ? r->gpu_model : "(not UTF-8)");
    if (r->gpu_model[0] != '\0' && r->gpus == 0 && r->share_milli == 0)
        return err_set(e, -EINVAL, "gpu_model: \"%s\" without a card; give gpus, or gpu_mem and gpu_percent",
                       r->gpu_model);
    return 0;
}

static int check_ranges(const struct job_spec *s, struct err *e)
{
    if (s->workers < 1 || s->workers > WORKERS_MAX)
        return err_set(e, -EINVAL, "workers: %" PRIu32 " is not allowed; 1 to %d are", s->workers, WORKERS_MAX);
    if (s->priority < PRIORITY_MIN || s->priority > PRIORITY_MAX)
        return err_set(e, -EINVAL, "priority: %" PRId32 " is not allowed; %d to %d are", s->priority, PRIORITY_MIN,
                       PRIORITY_MAX);
    if ((unsigned)s->require >= LEVEL_COUNT || (unsigned)s->prefer >= LEVEL_COUNT)
        return err_set(e, -EINVAL, "%s: unknown level; allowed: any, nvlink, machine, rack",
                       (unsigned)s->require >= LEVEL_COUNT ? "require" : "prefer");
    const struct {
        const char *field;
        int64_t value;
        int64_t max;
        const char *allowed;
    } times[] = {{"time", s->time_limit_ms, TIME_MAX_MS, "100 years"},
                 {"grace", s->grace_ms, GRACE_MAX_MS, "1 day"},
                 {"sim_duration", s->sim_duration_ms, TIME_MAX_MS, "100 years"},
                 {"begin", s->begin_after_ms, TIME_MAX_MS, "100 years"},
                 {"begin", s->begin_ms, INT64_MAX, "any time"}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (times[i].value < 0 || times[i].value > times[i].max)
            return err_set(e, -EINVAL, "%s: %" PRId64 " ms is not allowed; 0 to %s is", times[i].field, times[i].value,
                           times[i].allowed);
    return 0;
}

/* Bounds on a NULL-terminated list; `field` names it in errors. */
static int check_words(const char *field, char *const *words, struct err *e)
{
    size_t count = 0;
    size_t total = 0;
    for (; words != NULL && words[count] != NULL; count++) {
        size_t len = strlen(words[count]);
        total += len + 1;
        if (len >= JOB_WORD_BYTES_MAX)
            return err_set(e, -EINVAL, "%s: entry %zu has %zu bytes; less than %zu are allowed", field, count + 1, len,
                           JOB_WORD_BYTES_MAX);
        if (count >= JOB_WORDS_MAX)
            return err_set(e, -EINVAL, "%s: more than %d entries; no more are allowed", field, JOB_WORDS_MAX);
    }
    if (total > JOB_BYTES_MAX)
        return err_set(e, -EINVAL, "%s: %zu bytes together; at most %zu are allowed", field, total, JOB_BYTES_MAX);
    return 0;
}

static int check_command(const struct job_spec *s, struct err *e)
{
    if (s->argv == NULL || s->argv[0] == NULL || s->argv[0][0] == '\0')
        return err_set(e, -EINVAL, "command: is empty; give a program and its arguments, or a script");
    int rc = check_words("command", s->argv, e);
    if (rc < 0)
        return rc;
    rc = check_words("env", s->env, e);
    if (rc < 0)
        return rc;
    for (char **v = s->env; v != NULL && *v != NULL; v++) {
        const char *equals = strchr(*v, '=');
        if (equals == NULL || equals == *v)
            return err_set(e, -EINVAL, "env: \"%.60s\" is not a variable; NAME=value is allowed", *v);
    }
    if (s->cwd != NULL && (s->cwd[0] != '/' || strlen(s->cwd) >= 4096))
        return err_set(e, -EINVAL, "cwd: \"%.120s\" is not allowed; an absolute path of less than 4096 bytes is",
                       s->cwd);
    if (s->after_len > AFTER_MAX)
        return err_set(e, -EINVAL, "after: %u jobs; at most %d are allowed", s->after_len, AFTER_MAX);
    for (uint32_t i = 0; i < s->after_len; i++)
        if (s->after[i].job == 0 || (unsigned)s->after[i].kind >= AFTER_KINDS)
            return err_set(e, -EINVAL, "after: entry %u is not a job", i + 1);
    if (s->script != NULL) {
        size_t len = strlen(s->script);
        if (len == 0 || len > SCRIPT_BYTES_MAX)
            return err_set(e, -EINVAL, "script: has %zu bytes; 1 to %zu are allowed", len, SCRIPT_BYTES_MAX);
    }
    if (s->key != NULL && (s->key[0] == '\0' || strlen(s->key) > KEY_BYTES_MAX))
        return err_set(e, -EINVAL, "Idempotency-Key: has %zu bytes; 1 to %d are allowed", strlen(s->key),
                       KEY_BYTES_MAX);
    return 0;
}

int job_spec_check(const struct job_spec *s, struct err *e)
{
    int rc = check_names(s, e);
    if (rc == 0)
        rc = check_request(&s->req, e);
    if (rc == 0)
        rc = check_ranges(s, e);
    if (rc == 0)
        rc = check_command(s, e);
    return rc;
}
