/* SPDX-License-Identifier: Apache-2.0 */
#include "config/options.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "config/suggest.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const struct job_option table[JOB_OPT_COUNT] = {
    {JOB_OPT_NAME, "name", "name", "NAME"},
    {JOB_OPT_GPUS, "gpus", "gpus", "N"},
    {JOB_OPT_GPU_MEM, "gpu-mem", "gpu_mem", "SIZE"},
    {JOB_OPT_GPU_PERCENT, "gpu-percent", "gpu_percent", "P"},
    {JOB_OPT_MIG, "mig", "mig", "PROFILE"},
    {JOB_OPT_GPU_MODEL, "gpu-model", "gpu_model", "MODEL"},
    {JOB_OPT_WORKERS, "workers", "workers", "N"},
    {JOB_OPT_CPUS, "cpus", "cpus", "N"},
    {JOB_OPT_MEM, "mem", "mem", "SIZE"},
    {JOB_OPT_TIME, "time", "time", "DURATION"},
    {JOB_OPT_GRACE, "grace", "grace", "DURATION"},
    {JOB_OPT_QUEUE, "queue", "queue", "QUEUE"},
    {JOB_OPT_PRIORITY, "priority", "priority", "N"},
    {JOB_OPT_TENANT, "tenant", "tenant", "TENANT"},
    {JOB_OPT_REQUIRE, "require", "require", "LEVEL"},
    {JOB_OPT_PREFER, "prefer", "prefer", "LEVEL"},
    {JOB_OPT_STRATEGY, "strategy", "strategy", "STRATEGY"},
    {JOB_OPT_CHDIR, "chdir", "cwd", "DIR"},
    {JOB_OPT_BEGIN, "begin", "begin", "TIME"},
    {JOB_OPT_AFTER, "after", "after", "JOBS"},
    {JOB_OPT_SIM_DURATION, "sim-duration", "sim_duration", "DURATION"},
};

const struct job_option *job_options(void)
{
    return table;
}

static const struct job_option *find(const char *word, bool by_key, const char **ret_best)
{
    const char *best = NULL;
    for (size_t i = 0; i < JOB_OPT_COUNT; i++) {
        const char *known = by_key ? table[i].key : table[i].name;
        if (strcmp(known, word) == 0)
            return &table[i];
        suggest_offer(word, known, &best);
    }
    if (ret_best != NULL)
        *ret_best = best;
    return NULL;
}

const struct job_option *job_option_by_name(const char *name, const char **ret_best)
{
    return find(name, false, ret_best);
}

const struct job_option *job_option_by_key(const char *key, const char **ret_best)
{
    return find(key, true, ret_best);
}

static int set_u32(uint32_t *at, const char *value, int64_t low, int64_t high, struct err *e)
{
    int64_t number;
    int rc = units_parse_int(value, low, high, &number, e);
    if (rc == 0)
        *at = (uint32_t)number;
    return rc;
}

static int set_duration(int64_t *at, const char *value, int64_t most, const char *most_text, struct err *e)
{
    int64_t ms;
    int rc = units_parse_duration_ms(value, &ms, e);
    if (rc < 0)
        return rc;
    if (ms > most)
        return err_set(e, -ERANGE, "\"%.60s\" is too long; at most %s is allowed", value, most_text);
    *at = ms;
    return 0;
}

static int set_name(char at[NAME_SIZE], const char *value, struct err *e)
{
    if (!name_ok(value))
        return err_set(e, -EINVAL,
                       "\"%.63s\" is not a name; 1 to 63 bytes of letters, digits and . _ - @ (or UTF-8) "
                       "are allowed",
                       value);
    memcpy(at, value, strlen(value) + 1);
    return 0;
}

static int set_job_name(struct job_spec *s, const char *value, struct err *e)
{
    if (!job_name_ok(value))
        return err_set(e, -EINVAL, "\"%.63s\" is not a name; 1 to 63 bytes without control characters are allowed",
                       value);
    memcpy(s->name, value, strlen(value) + 1);
    return 0;
}

static int set_share_mem(struct job_spec *s, const char *value, struct err *e)
{
    uint64_t mib;
    int rc = units_parse_mib(value, &mib, e);
    if (rc < 0)
        return rc;
    if (mib < 1 || mib > 16 << 20)
        return err_set(e, -ERANGE, "\"%.60s\" is out of range; 1 MiB to 16 TiB are allowed", value);
    s->req.share_mem_mib = (uint32_t)mib;
    return 0;
}

/* "30", "12.5", "30%": thousandths of a card are the finest step. */
static int set_percent(struct job_spec *s, const char *value, struct err *e)
{
    static const char allowed[] = "0.1 to 100 in steps of 0.1 are allowed";
    char text[32];
    size_t len = strlen(value);
    if (len > 0 && value[len - 1] == '%')
        len--;
    uint64_t milli = 0;
    if (len < sizeof text) {
        memcpy(text, value, len);
        text[len] = '\0';
    }
    if (len >= sizeof text || units_parse_milli(text, UINT64_MAX / 2000, &milli, NULL) < 0)
        return err_set(e, -EINVAL, "\"%.60s\" is not a percentage; %s", value, allowed);
    if (milli < 100 || milli > 100000 || milli % 100 != 0)
        return err_set(e, -ERANGE, "\"%.60s\" is out of range; %s", value, allowed);
    s->req.share_milli = (uint32_t)(milli / 100);
    return 0;
}

static int set_model(struct job_spec *s, const char *value, struct err *e)
{
    struct job_spec trial = {.name = "x", .workers = 1, .argv = (char *[]){"x", NULL}, .req.gpus = 1};
    size_t len = strlen(value);
    if (len == 0 || len >= GPU_MODEL_SIZE)
        return err_set(e, -EINVAL, "a model of %zu bytes is not allowed; 1 to %d are", len, GPU_MODEL_SIZE - 1);
    memcpy(trial.req.gpu_model, value, len + 1);
    if (job_spec_check(&trial, NULL) < 0)
        return err_set(e, -EINVAL,
                       "\"%.63s\" is not a list of models; letters, digits and - _ . + / joined by | are "
                       "allowed, e.g. \"A100-80GB|H100\"",
                       value);
    memcpy(s->req.gpu_model, value, len + 1);
    return 0;
}

static int set_workers(struct job_spec *s, const char *value, struct err *e)
{
    const char *dots = strstr(value, "..");
    if (dots != NULL && dots > value && dots[2] != '\0')
        return err_set(e, -EOPNOTSUPP,
                       "\"%.30s\" is a range, and jobs that grow and shrink are not built yet; give one "
                       "number from 1 to %d",
                       value, WORKERS_MAX);
    return set_u32(&s->workers, value, 1, WORKERS_MAX, e);
}

static int set_cpus(struct job_spec *s, const char *value, struct err *e)
{
    uint64_t milli;
    int rc = units_parse_milli(value, CPU_MILLI_MAX, &milli, e);
    if (rc == 0)
        s->req.cpu_milli = (uint32_t)milli;
    return rc;
}

static int set_mem(struct job_spec *s, const char *value, struct err *e)
{
    uint64_t mib;
    int rc = units_parse_mib(value, &mib, e);
    if (rc < 0)
        return rc;
    if (mib > MEM_MIB_MAX)
        return err_set(e, -ERANGE, "\"%.60s\" is too large; at most 1 PiB is allowed", value);
    s->req.mem_mib = mib;
    return 0;
}

static int set_priority(struct job_spec *s, const char *value, struct err *e)
{
    int64_t number;
    int rc = units_parse_int(value, PRIORITY_MIN, PRIORITY_MAX, &number, e);
    if (rc == 0)
        s->priority = (int32_t)number;
    return rc;
}

static int set_level(enum level *at, const char *value, struct err *e)
{
    if (level_parse(value, at) < 0)
        return err_set(e, -EINVAL, "\"%.60s\" is not a level; any, nvlink, machine and rack are allowed", value);
    return 0;
}

static int set_strategy(struct job_spec *s, const char *value, struct err *e)
{
    if (!strategy_name_ok(value))
        return err_set(e, -EINVAL, "\"%.60s\" is not a strategy; remuda, binpack and spread are allowed", value);
    memcpy(s->strategy, value, strlen(value) + 1);
    return 0;
}

/* A time, or a duration from the submission on: core, which knows when that is, adds them up. */
static int set_begin(struct job_spec *s, const char *value, struct err *e)
{
    int64_t after = 0;
    int64_t at = 0;
    bool is_time = strchr(value, 'T') != NULL;
    int rc = is_time ? units_parse_time(value, &at, e) : set_duration(&after, value, TIME_MAX_MS, "100 years", e);
    if (rc == 0) {
        s->begin_ms = at;
        s->begin_after_ms = after;
    }
    return rc;
}

/* "7", "ok:7", "fail:7", "any:7". */
static int parse_after(const char *text, struct dependency *ret, struct err *e)
{
    static const char allowed[] = "a job's number, alone or behind ok:, fail: or any:";
    const char *colon = strchr(text, ':');
    int64_t id = 0;
    ret->kind = AFTER_OK;
    if (colon != NULL) {
        unsigned kind = 0;
        size_t len = (size_t)(colon - text);
        while (kind < AFTER_KINDS && (strlen(after_name((enum after_kind)kind)) != len ||
                                      memcmp(after_name((enum after_kind)kind), text, len) != 0))
            kind++;
        if (kind == AFTER_KINDS)
            return err_set(e, -EINVAL, "\"%.60s\" is not allowed; %s is", text, allowed);
        ret->kind = (enum after_kind)kind;
    }
    if (units_parse_int(colon != NULL ? colon + 1 : text, 1, INT64_MAX, &id, NULL) < 0)
        return err_set(e, -EINVAL, "\"%.60s\" is not allowed; %s is", text, allowed);
    ret->job = (uint64_t)id;
    return 0;
}

/* Joined by commas. */
static int set_after(struct job_spec *s, const char *value, struct err *e)
{
    CLEANUP_FREE char *copy = mem_strdup(value);
    struct dependency *rows = NULL;
    size_t cap = 0;
    uint32_t len = 0;
    int rc = copy == NULL ? err_set(e, -ENOMEM, "out of memory") : 0;
    char *rest = copy;
    for (char *word = strsep(&rest, ","); word != NULL && rc == 0; word = strsep(&rest, ",")) {
        if (len == AFTER_MAX)
            rc = err_set(e, -ERANGE, "more than %d jobs; no more are allowed", AFTER_MAX);
        else if (mem_grow(&rows, &cap, (size_t)len + 1, sizeof *rows) < 0)
            rc = err_set(e, -ENOMEM, "out of memory");
        else
            rc = parse_after(word, &rows[len++], e);
    }
    if (rc < 0) {
        mem_free(rows);
        return rc;
    }
    mem_free(s->after);
    s->after = rows;
    s->after_len = len;
    return 0;
}

static int set_cwd(struct job_spec *s, const char *value, struct err *e)
{
    if (value[0] != '/' || strlen(value) >= 4096)
        return err_set(e, -EINVAL, "\"%.120s\" is not allowed; an absolute path is", value);
    char *copy = mem_strdup(value);
    if (copy == NULL)
        return err_set(e, -ENOMEM, "out of memory");
    mem_free(s->cwd);
    s->cwd = copy;
    return 0;
}

int job_option_set(struct job_spec *s, enum job_option_id id, const char *value, struct err *e)
{
    if (!utf8_valid(value, strlen(value)))
        return err_set(e, -EINVAL, "the value is not UTF-8; UTF-8 text is allowed");
    if (value[0] == '\0')
        return err_set(e, -EINVAL, "an empty value is not allowed; give %s", table[id].arg);
    switch (id) {
    case JOB_OPT_NAME:
        return set_job_name(s, value, e);
    case JOB_OPT_GPUS:
        return set_u32(&s->req.gpus, value, 0, GPUS_PER_WORKER_MAX, e);
    case JOB_OPT_GPU_MEM:
        return set_share_mem(s, value, e);
    case JOB_OPT_GPU_PERCENT:
        return set_percent(s, value, e);
    case JOB_OPT_MIG:
        return err_set(e, -EOPNOTSUPP,
                       "\"%.30s\" can not be given: MIG slices are not built yet; ask for a share with "
                       "gpu-mem and gpu-percent, or for whole cards with gpus",
                       value);
    case JOB_OPT_GPU_MODEL:
        return set_model(s, value, e);
    case JOB_OPT_WORKERS:
        return set_workers(s, value, e);
    case JOB_OPT_CPUS:
        return set_cpus(s, value, e);
    case JOB_OPT_MEM:
        return set_mem(s, value, e);
    case JOB_OPT_TIME:
        return set_duration(&s->time_limit_ms, value, TIME_MAX_MS, "100 years", e);
    case JOB_OPT_GRACE:
        return set_duration(&s->grace_ms, value, GRACE_MAX_MS, "1 day", e);
    case JOB_OPT_QUEUE:
        return set_name(s->queue, value, e);
    case JOB_OPT_PRIORITY:
        return set_priority(s, value, e);
    case JOB_OPT_TENANT:
        return set_name(s->tenant, value, e);
    case JOB_OPT_REQUIRE:
        return set_level(&s->require, value, e);
    case JOB_OPT_PREFER:
        return set_level(&s->prefer, value, e);
    case JOB_OPT_STRATEGY:
        return set_strategy(s, value, e);
    case JOB_OPT_CHDIR:
        return set_cwd(s, value, e);
    case JOB_OPT_BEGIN:
        return set_begin(s, value, e);
    case JOB_OPT_AFTER:
        return set_after(s, value, e);
    case JOB_OPT_SIM_DURATION:
        return set_duration(&s->sim_duration_ms, value, TIME_MAX_MS, "100 years", e);
    case JOB_OPT_COUNT:
        break;
    }
    return err_set(e, -EINVAL, "unknown option");
}
