/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core alone, as the daemon drives it: records in, passes, decisions out; no store, no engine.
 *
 *  - 4,000 one-card jobs on 500 nodes of eight cards: from the first submission to the last start, all submitted at
 *    once and with a pass after each.
 *  - A long queue: 20,000 jobs of 40 kinds wait on a full pool of 64 nodes while jobs end and others start, one end
 *    at a time.
 *  - The same with a gang of 512 workers at the head of the queue, whose reservation covers all 512 nodes of the pool.
 *
 * Prints figures, asserts none.
 */
#include "base/mem.h"
#include "base/sys/clock.h"
#include "core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T0 INT64_C(1800000000000)

struct bench {
    struct core *core;
    uint64_t seq;
    uint64_t next_job;
    uint64_t started;
    uint64_t last_started;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_core: %s\n", what);
    exit(EXIT_FAILURE);
}

static void apply(struct bench *b, struct record *r)
{
    struct err e;
    r->seq = ++b->seq;
    if (core_apply(b->core, r, &e) < 0)
        die(e.text);
}

static int on_decision(void *arg, struct record *r)
{
    struct bench *b = arg;
    if (r->kind == REC_JOB_START) {
        b->started++;
        b->last_started = r->job;
    }
    record_done(r);
    return 0;
}

static void pass(struct bench *b)
{
    if (core_pass(b->core, T0, on_decision, b) < 0)
        die("no memory");
}

static struct bench make_pool(uint32_t nodes)
{
    struct bench b = {.core = core_new(), .next_job = 1};
    if (b.core == NULL)
        die("no memory");
    for (uint32_t i = 0; i < nodes; i++) {
        struct node_desc d = {.cpu_milli = 128000, .mem_mib = 1 << 20, .gpus_len = 8};
        struct record r = {.kind = REC_NODE, .time_ms = T0, .node = &d};
        (void)snprintf(d.name, sizeof d.name, "node-%u", i);
        (void)snprintf(d.rack, sizeof d.rack, "rack-%u", i / 16);
        for (uint32_t g = 0; g < 8; g++) {
            (void)snprintf(d.gpus[g].uuid, sizeof d.gpus[g].uuid, "GPU-%u-%u", i, g);
            (void)snprintf(d.gpus[g].model, sizeof d.gpus[g].model, "A100-80GB");
            d.gpus[g].mem_mib = 81920;
            d.gpus[g].healthy = true;
            for (uint32_t h = 0; h < 8; h++)
                d.link[g][h] = g == h ? LINK_SELF : LINK_NVLINK;
        }
        apply(&b, &r);
    }
    return b;
}

static void submit(struct bench *b, uint32_t gpus, uint32_t workers, int32_t priority)
{
    struct job_spec spec;
    char *argv[] = {(char[]){"true"}, NULL};
    job_spec_init(&spec);
    spec.argv = argv;
    spec.req.gpus = gpus;
    spec.workers = workers;
    spec.priority = priority;
    (void)snprintf(spec.name, sizeof spec.name, "b");
    (void)snprintf(spec.user, sizeof spec.user, "u%d", (int)(b->next_job % 10));
    (void)snprintf(spec.tenant, sizeof spec.tenant, "default");
    (void)snprintf(spec.queue, sizeof spec.queue, "batch");
    (void)snprintf(spec.strategy, sizeof spec.strategy, "remuda");
    struct record r = {.kind = REC_JOB_SUBMIT, .time_ms = T0, .job = b->next_job++, .spec = &spec};
    apply(b, &r);
}

static void finish(struct bench *b, uint64_t job)
{
    const struct job *j = core_job(b->core, job);
    for (uint32_t w = 0; w < j->workers; w++) {
        struct record r = {.kind = REC_WORKER_EXIT,
                           .time_ms = T0,
                           .job = job,
                           .attempt = j->attempt,
                           .exit = {.worker = w, .cause = CAUSE_EXIT}};
        apply(b, &r);
    }
}

static void fill(bool pass_each)
{
    struct bench b = make_pool(500);
    int64_t began = clock_mono_ns();
    for (uint32_t i = 0; i < 4000; i++) {
        submit(&b, 1, 1, 0);
        if (pass_each)
            pass(&b);
    }
    pass(&b);
    double ms = (double)(clock_mono_ns() - began) / 1e6;
    if (b.started != 4000)
        die("not all jobs have started");
    printf("4,000 one-card jobs on 500 nodes x 8, %s\t%.1f\tms\taim: 100 at most\n",
           pass_each ? "a pass after each" : "one pass", ms);
    core_free(b.core);
}

/* One end at a time, and what starts then. The jobs that end: those from `first` on, or (0) always the last started. */
static void churn(struct bench *b, int ends, uint64_t first, const char *what)
{
    uint64_t before = b->started;
    int64_t began = clock_mono_ns();
    for (int i = 0; i < ends; i++) {
        finish(b, first != 0 ? first + (uint64_t)i : b->last_started);
        pass(b);
    }
    printf("%s: one end and what starts then\t%.1f\tus\t%llu started in %d rounds\n", what,
           (double)(clock_mono_ns() - began) / 1e3 / ends, (unsigned long long)(b->started - before), ends);
}

static void long_queue(void)
{
    struct bench b = make_pool(64);
    for (uint32_t i = 0; i < 20000; i++)
        submit(&b, 1 + i % 4, 1 + i % 2, (int32_t)(i % 5));
    pass(&b);
    churn(&b, 2000, 0, "20,000 jobs wait");
    core_free(b.core);
}

static void behind_a_gang(void)
{
    struct bench b = make_pool(512);
    for (uint32_t i = 0; i < 4096; i++)
        submit(&b, 1, 1, 10);
    pass(&b);
    submit(&b, 8, 512, 9);
    for (uint32_t i = 0; i < 20000; i++)
        submit(&b, 1 + i % 4, 1 + i % 2, (int32_t)(i % 5));
    pass(&b);
    churn(&b, 500, 1, "20,000 jobs wait behind a gang of 512 nodes");
    core_free(b.core);
}

int main(void)
{
    fill(false);
    fill(true);
    long_queue();
    behind_a_gang();
    return 0;
}
