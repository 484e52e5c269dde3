/* SPDX-License-Identifier: Apache-2.0 */
/* Between control and the engine: effects become calls, events become inputs. */
#include "server/state.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The workers of a launch with their card names; freed by built_done(). */
struct built {
    struct engine_worker *workers;
    const char **uuids;
};

static void built_done(struct built *b)
{
    mem_free(b->workers);
    mem_free(b->uuids);
}

static int build(const struct control *c, uint64_t job, uint32_t attempt, const struct job_spec *spec,
                 const struct grant *grants, uint32_t len, struct built *b, struct engine_launch *ret)
{
    size_t cards = 0;
    for (uint32_t i = 0; i < len; i++)
        cards += (size_t)__builtin_popcount(grants[i].gpu_mask);
    b->workers = mem_alloc(len, sizeof(*b->workers));
    b->uuids = mem_alloc(cards, sizeof(*b->uuids));
    if (b->workers == NULL || b->uuids == NULL)
        return -ENOMEM;
    const char **at = b->uuids;
    for (uint32_t i = 0; i < len; i++) {
        const struct grant *g = &grants[i];
        b->workers[i] = (struct engine_worker){
            .rank = i,
            .node = control_node_name(c, g->node),
            .gpus_len = (uint32_t)__builtin_popcount(g->gpu_mask),
            .gpu_uuids = at,
            .gpu_milli = g->milli,
            .gpu_mem_mib = g->gpu_mem_mib,
            .cpu_milli = g->cpu_milli,
            .mem_mib = g->mem_mib,
        };
        for (uint32_t card = 0; card < 32; card++)
            if (g->gpu_mask & (1u << card))
                *at++ = control_gpu_uuid(c, g->node, card);
    }
    const struct config *cfg = control_config(c);
    *ret = (struct engine_launch){
        .job = job,
        .attempt = attempt,
        .spec = spec,
        .workers = b->workers,
        .workers_len = len,
        .grace_ms = spec->grace_ms > 0 ? spec->grace_ms : cfg->grace_ms,
        .log_bytes_max = cfg->log_bytes_max,
        .log_files_kept = cfg->log_files_kept,
    };
    return 0;
}

static void remember_failure(struct server *s, uint64_t job, uint32_t attempt, uint32_t workers, const char *why)
{
    if (mem_grow(&s->failures, &s->failures_cap, s->failures_len + 1, sizeof(*s->failures)) != 0) {
        log_error("no memory to tell of a failed launch; it is found by the next reconcile", "job=%llu",
                  (unsigned long long)job);
        return;
    }
    struct failure *f = &s->failures[s->failures_len++];
    *f = (struct failure){.job = job, .attempt = attempt, .workers = workers};
    snprintf(f->why, sizeof(f->why), "%.*s", (int)sizeof(f->why) - 1, why);
}

void bridge_report_failures(struct server *s)
{
    for (size_t i = 0; i < s->failures_len; i++) {
        const struct failure *f = &s->failures[i];
        for (uint32_t w = 0; w < f->workers; w++) {
            struct worker_exit x = {.worker = w, .code = -1, .cause = CAUSE_LAUNCH_FAILED};
            memcpy(x.detail, f->why, sizeof(x.detail));
            control_engine_exited(s->control, clock_wall_ms(), f->job, f->attempt, &x);
        }
        persist_dirty(s);
    }
    s->failures_len = 0;
}

static void launch(struct server *s, const struct effect *x)
{
    struct built b = {0};
    struct engine_launch l;
    struct err e = {0};
    int rc = build(s->control, x->job, x->attempt, x->spec, x->grants, x->workers, &b, &l);
    if (rc == 0)
        rc = s->engine->ops->launch(s->engine, &l, &e);
    else
        err_set(&e, rc, "out of memory");
    built_done(&b);
    if (rc != 0)
        remember_failure(s, x->job, x->attempt, x->workers, e.text);
}

void bridge_effect(struct server *s, const struct effect *x)
{
    struct err e = {0};
    char text[400];
    if (s->engine == NULL || s->stopping)
        return; /* the next start asks for it again */
    if (x->kind == EFFECT_LAUNCH) {
        launch(s, x);
    } else if (x->kind == EFFECT_FORGET) {
        s->engine->ops->forget(s->engine, x->job, x->attempt);
    } else if (s->engine->ops->terminate(s->engine, x->job, x->attempt, x->grace_ms, &e) != 0 && e.code != -ENOENT) {
        log_warn("the engine could not be asked to stop a job", "job=%llu attempt=%u why=%s",
                 (unsigned long long)x->job, x->attempt, log_quote(e.text, text, sizeof(text)));
    }
}

/* --- what the engine tells --- */

static enum cause cause_of(enum engine_exit_cause cause)
{
    switch (cause) {
    case ENGINE_EXIT_NORMAL:
        return CAUSE_EXIT;
    case ENGINE_EXIT_OOM:
        return CAUSE_OOM;
    case ENGINE_EXIT_LAUNCH_FAILED:
        return CAUSE_LAUNCH_FAILED;
    case ENGINE_EXIT_LOST:
        break;
    }
    return CAUSE_LOST;
}

static int take_node(struct server *s, const struct engine_node *n, int64_t now, struct err *e)
{
    struct node_desc d = {.cpu_milli = n->cpu_milli, .mem_mib = n->mem_mib, .gpus_len = n->gpus_len};
    if (n->gpus_len > NODE_GPUS_MAX)
        return err_set(e, -EINVAL, "node %s reports %u cards; at most %d are supported", n->name, n->gpus_len,
                       NODE_GPUS_MAX);
    memcpy(d.name, n->name, sizeof(d.name));
    memcpy(d.rack, n->rack, sizeof(d.rack));
    memcpy(d.link, n->link, sizeof(d.link));
    for (uint32_t i = 0; i < n->gpus_len; i++) {
        memcpy(d.gpus[i].uuid, n->gpus[i].uuid, sizeof(d.gpus[i].uuid));
        memcpy(d.gpus[i].model, n->gpus[i].model, sizeof(d.gpus[i].model));
        d.gpus[i].mem_mib = n->gpus[i].mem_mib;
        d.gpus[i].island = n->gpus[i].island;
        d.gpus[i].healthy = n->gpus[i].healthy;
    }
    return control_engine_node(s->control, now, &d, n->topology, n->simulated, e);
}

static int take_exit(struct server *s, const struct engine_event *ev, int64_t now)
{
    struct worker_exit x = {
        .worker = ev->rank,
        .code = ev->code,
        .signal = ev->signal,
        .cause = cause_of(ev->cause),
        .core_dumped = ev->core_dumped,
        .peak_mem_mib = ev->peak_mem_mib,
        .cpu_ms = ev->cpu_ms,
    };
    if (ev->detail != NULL)
        snprintf(x.detail, sizeof(x.detail), "%s", ev->detail);
    return control_engine_exited(s->control, now, ev->job, ev->attempt, &x);
}

static void take_telemetry(struct server *s, const struct engine_event *ev, int64_t now)
{
    struct gpu_sample samples[NODE_GPUS_MAX] = {0};
    uint32_t len = ev->samples_len < NODE_GPUS_MAX ? ev->samples_len : NODE_GPUS_MAX;
    for (uint32_t i = 0; i < len; i++) {
        memcpy(samples[i].uuid, ev->samples[i].uuid, sizeof(samples[i].uuid));
        samples[i].util_pct = ev->samples[i].util_pct;
        samples[i].mem_used_mib = ev->samples[i].mem_used_mib;
        samples[i].power_w = ev->samples[i].power_w;
        samples[i].temp_c = ev->samples[i].temp_c;
    }
    control_engine_telemetry(s->control, now, ev->node_name, samples, len, ev->source);
}

static int take_reconciled(struct server *s, int64_t now)
{
    if (s->reconciles > 0)
        s->reconciles--;
    return s->reconciles == 0 ? control_reconciled(s->control, now) : 0;
}

void bridge_event(void *arg, const struct engine_event *ev)
{
    struct server *s = arg;
    struct err e = {0};
    char text[400];
    int64_t now = clock_wall_ms();
    int rc = 0;
    if (s->control == NULL || !s->storing) {
        if (ev->kind == ENGINE_RECONCILED && s->reconciles > 0)
            s->reconciles--;
        return; /* asked for again by the reconcile that follows */
    }
    switch (ev->kind) {
    case ENGINE_NODE:
        rc = take_node(s, ev->node, now, &e);
        break;
    case ENGINE_NODE_DOWN:
        rc = control_engine_node_down(s->control, now, ev->node_name, ev->detail);
        break;
    case ENGINE_STARTED:
        rc = control_engine_started(s->control, now, ev->job, ev->attempt);
        break;
    case ENGINE_EXITED:
        rc = take_exit(s, ev, now);
        break;
    case ENGINE_TELEMETRY:
        take_telemetry(s, ev, now);
        return; /* decides nothing */
    case ENGINE_RECONCILED:
        rc = take_reconciled(s, now);
        break;
    }
    if (rc != 0)
        log_error("an engine's report could not be taken", "kind=%d job=%llu why=%s", (int)ev->kind,
                  (unsigned long long)ev->job, log_quote(e.code != 0 ? e.text : strerror(-rc), text, sizeof(text)));
    persist_dirty(s);
}

int bridge_reconcile(struct server *s, struct err *e)
{
    size_t len = 0;
    struct control_expected *rows = control_expected(s->control, &len);
    struct engine_expected *out = mem_alloc(len, sizeof(*out));
    struct built *built = mem_alloc(len, sizeof(*built));
    int rc = out == NULL || built == NULL ? err_set(e, -ENOMEM, "out of memory") : 0;
    for (size_t i = 0; rc == 0 && i < len; i++) {
        out[i].started_ms = rows[i].started_ms;
        out[i].stopping = rows[i].stopping;
        rc = build(s->control, rows[i].job, rows[i].attempt, rows[i].spec, rows[i].grants, rows[i].workers, &built[i],
                   &out[i].launch);
        if (rc != 0)
            err_set(e, rc, "out of memory");
    }
    if (rc == 0)
        rc = s->engine->ops->reconcile(s->engine, out, (uint32_t)len, e);
    if (rc == 0)
        s->reconciles++;
    for (size_t i = 0; built != NULL && i < len; i++)
        built_done(&built[i]);
    mem_free(built);
    mem_free(out);
    mem_free(rows);
    return rc;
}
