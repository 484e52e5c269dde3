/* SPDX-License-Identifier: Apache-2.0 */
#include "core_world.h"

#include "base/mem.h"
#include "config/config_file.h"
#include "control/codec.h"

#include <string.h>

static void audit(const struct world *w)
{
    struct err e = {0};
    if (core_audit(w->core, &e) < 0)
        fail_msg("after record %llu: %s", (unsigned long long)w->seq, e.text);
}

/* A copy by way of the bytes that the store would keep. */
static void keep(struct world *w, const struct record *r)
{
    struct strbuf bytes = {0};
    struct err e = {0};
    codec_encode(&bytes, r);
    assert_int_equal(mem_grow(&w->log, &w->log_cap, w->log_len + 1, sizeof *w->log), 0);
    if (codec_decode(r->kind, r->seq, r->time_ms, bytes.data, bytes.len, &w->log[w->log_len], &e) < 0)
        fail_msg("record %llu: %s", (unsigned long long)r->seq, e.text);
    w->log_len++;
    strbuf_done(&bytes);
}

static void apply(struct world *w, struct record *r)
{
    struct err e = {0};
    r->seq = ++w->seq;
    r->time_ms = w->now_ms;
    if (core_apply(w->core, r, &e) < 0)
        fail_msg("record %llu: %s", (unsigned long long)r->seq, e.text);
    keep(w, r);
    audit(w);
}

void world_init(struct world *w)
{
    *w = (struct world){.core = core_new(), .now_ms = INT64_C(1800000000000), .next_job = 1};
    assert_non_null(w->core);
    w->argv[0] = (char *)(uintptr_t) "true";
}

void world_done(struct world *w)
{
    core_free(w->core);
    for (size_t i = 0; i < w->log_len; i++)
        record_done(&w->log[i]);
    mem_free(w->log);
}

uint32_t world_node(struct world *w, const char *name, const char *rack, uint32_t gpus, const char *model)
{
    struct node_desc d = {.cpu_milli = 64000, .mem_mib = 1 << 20, .gpus_len = gpus};
    struct record r = {.kind = REC_NODE, .node = &d};
    snprintf(d.name, sizeof d.name, "%s", name);
    snprintf(d.rack, sizeof d.rack, "%s", rack);
    for (uint32_t g = 0; g < gpus; g++) {
        snprintf(d.gpus[g].uuid, sizeof d.gpus[g].uuid, "GPU-%s-%u", name, g);
        snprintf(d.gpus[g].model, sizeof d.gpus[g].model, "%s", model);
        d.gpus[g].mem_mib = 81920;
        d.gpus[g].island = (uint8_t)(g / 4);
        d.gpus[g].healthy = true;
        for (uint32_t h = 0; h < gpus; h++)
            d.link[g][h] = g == h ? LINK_SELF : g / 4 == h / 4 ? LINK_NVLINK : LINK_SYS;
    }
    apply(w, &r);
    return core_cluster(w->core)->nodes_len - 1;
}

void world_node_state(struct world *w, uint32_t node, enum node_state state, bool draining)
{
    struct record r = {.kind = REC_NODE_STATE, .node_id = node, .node_state = state, .draining = draining};
    apply(w, &r);
}

void world_config(struct world *w, const char *yaml)
{
    struct config c;
    struct err e = {0};
    if (config_parse(yaml, strlen(yaml), "test", &c, &e) < 0)
        fail_msg("%s", e.text);
    struct record r = {.kind = REC_CONFIG, .config = &c};
    apply(w, &r);
    config_done(&c);
}

static void set(char *to, size_t size, const char *text, const char *usual)
{
    snprintf(to, size, "%s", text != NULL ? text : usual);
}

void world_spec(const struct world *w, const struct wish *wish, struct job_spec *ret)
{
    job_spec_init(ret);
    ret->argv = (char **)(uintptr_t)w->argv;
    ret->req.gpus = wish->gpus;
    ret->req.share_milli = wish->share;
    ret->req.share_mem_mib = wish->share_mem_mib;
    ret->req.cpu_milli = wish->cpu_milli;
    ret->req.mem_mib = wish->mem_mib;
    ret->workers = wish->workers > 0 ? wish->workers : 1;
    ret->priority = wish->priority;
    ret->time_limit_ms = wish->limit_ms;
    ret->begin_after_ms = wish->begin_after_ms;
    ret->hold = wish->hold;
    ret->require = wish->require;
    ret->prefer = wish->prefer;
    set(ret->name, sizeof ret->name, NULL, "job");
    set(ret->user, sizeof ret->user, wish->user, "u");
    set(ret->tenant, sizeof ret->tenant, wish->tenant, "default");
    set(ret->queue, sizeof ret->queue, wish->queue, "batch");
    set(ret->strategy, sizeof ret->strategy, wish->strategy, "remuda");
    set(ret->req.gpu_model, sizeof ret->req.gpu_model, wish->model, "");
}

uint64_t world_submit(struct world *w, const struct wish *wish)
{
    struct job_spec spec;
    struct dependency after = {wish->after, wish->after_kind};
    world_spec(w, wish, &spec);
    spec.after = &after;
    spec.after_len = wish->after != 0;
    struct record r = {.kind = REC_JOB_SUBMIT, .job = w->next_job++, .spec = &spec};
    apply(w, &r);
    return r.job;
}

void world_update(struct world *w, uint64_t job, const struct job_change *change)
{
    struct record r = {.kind = REC_JOB_UPDATE, .job = job, .change = *change};
    apply(w, &r);
}

void world_cancel(struct world *w, uint64_t job)
{
    struct record r = {.kind = REC_JOB_CANCEL, .job = job};
    apply(w, &r);
}

void world_hold(struct world *w, uint64_t job, bool hold)
{
    world_update(w, job, &(struct job_change){.set_hold = true, .hold = hold});
}

void world_requeue(struct world *w, uint64_t job)
{
    struct record r = {.kind = REC_JOB_REQUEUE, .job = job};
    apply(w, &r);
}

void world_running(struct world *w, uint64_t job)
{
    struct record r = {.kind = REC_JOB_RUNNING, .job = job, .attempt = core_job(w->core, job)->attempt};
    apply(w, &r);
}

void world_exit(struct world *w, uint64_t job, uint32_t worker, int32_t code, int32_t signal, enum cause cause)
{
    struct record r = {.kind = REC_WORKER_EXIT,
                       .job = job,
                       .attempt = core_job(w->core, job)->attempt,
                       .exit = {.worker = worker, .code = code, .signal = signal, .cause = cause}};
    apply(w, &r);
}

void world_finish(struct world *w, uint64_t job, int32_t code)
{
    const struct job *j = core_job(w->core, job);
    uint32_t workers = j->workers;
    for (uint32_t i = 0; i < workers; i++)
        if (!j->exited[i])
            world_exit(w, job, i, code, 0, CAUSE_EXIT);
}

static int on_decision(void *arg, struct record *r)
{
    struct world *w = arg;
    r->seq = ++w->seq;
    r->time_ms = w->now_ms;
    keep(w, r);
    record_done(r);
    audit(w);
    return 0;
}

void world_pass(struct world *w)
{
    size_t before = w->log_len;
    assert_int_equal(core_pass(w->core, w->now_ms, on_decision, w), 0);
    w->made = w->log + before;
    w->made_len = w->log_len - before;
    audit(w);
}

struct core *world_again(const struct world *w)
{
    struct core *c = core_new();
    assert_non_null(c);
    for (size_t i = 0; i < w->log_len; i++) {
        struct err e = {0};
        if (core_apply(c, &w->log[i], &e) < 0)
            fail_msg("again, record %zu: %s", i + 1, e.text);
    }
    return c;
}
