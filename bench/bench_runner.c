/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short jobs (`true`) through the local engine alone, with runners, cgroups and the syncs of exit records, but without
 * the daemon: jobs per second from launch to forgotten with 16 jobs at a time, and the time of one job alone.
 */
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

struct bench {
    struct engine *engine;
    uint64_t next, total, ended, running, at_once;
    bool reconciled, bad;
};

static void launch_more(struct bench *b)
{
    static char *argv[] = {(char *)"true", NULL};
    static struct job_spec spec = {.name = "bench", .user = "bench", .cwd = (char *)"/", .argv = argv, .workers = 1};
    spec.uid = geteuid();
    spec.gid = getegid();
    while (b->running < b->at_once && b->next <= b->total) {
        struct engine_worker w = {.node = "here"};
        struct engine_launch l = {.job = b->next++,
                                  .attempt = 1,
                                  .spec = &spec,
                                  .workers = &w,
                                  .workers_len = 1,
                                  .log_bytes_max = 1 << 20,
                                  .log_files_kept = 1};
        if (b->engine->ops->launch(b->engine, &l, NULL) < 0)
            b->bad = true;
        b->running++;
    }
}

static void on_event(void *arg, const struct engine_event *ev)
{
    struct bench *b = arg;
    if (ev->kind == ENGINE_RECONCILED)
        b->reconciled = true;
    if (ev->kind != ENGINE_EXITED)
        return;
    b->bad = b->bad || ev->code != 0;
    b->ended++;
    b->running--;
    b->engine->ops->forget(b->engine, ev->job, ev->attempt);
    launch_more(b);
}

static double cpu_s(int who)
{
    struct rusage u;
    (void)getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int run(const char *state, uint64_t total, uint64_t at_once, const char *cgroups, const char *figure)
{
    uv_loop_t loop;
    struct bench b = {.next = 1, .total = total, .at_once = at_once};
    struct err e = {0};
    struct engine_options o = {
        .loop = &loop, .state_dir = state, .cb = on_event, .cb_arg = &b, .runner_path = RUNNER, .cgroups = cgroups};
    (void)uv_loop_init(&loop);
    if (local_engine_open(&o, &b.engine, &e) < 0 || b.engine->ops->reconcile(b.engine, NULL, 0, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    while (!b.reconciled)
        (void)uv_run(&loop, UV_RUN_ONCE);
    int64_t start = clock_mono_ns();
    double own = cpu_s(RUSAGE_SELF);
    launch_more(&b);
    while (b.ended < total && !b.bad)
        (void)uv_run(&loop, UV_RUN_ONCE);
    double s = (double)(clock_mono_ns() - start) / 1e9;
    own = cpu_s(RUSAGE_SELF) - own;
    b.engine->ops->close(b.engine, NULL, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    if (b.bad)
        return 1;
    if (at_once > 1)
        (void)printf("%s\t%.0f\tjobs/s\t%llu at a time, cgroups %s, %.2f ms of CPU per job in the engine\n", figure,
                     (double)total / s, (unsigned long long)at_once, cgroups, own * 1000 / (double)total);
    else
        (void)printf("%s\t%.1f\tms/job\tone after the other, cgroups %s\n", figure, s * 1000 / (double)total, cgroups);
    return 0;
}

int main(void)
{
    uint64_t total = getenv("BENCH_QUICK") != NULL ? 200 : 2000;
    struct {
        uint64_t total, at_once;
        const char *cgroups, *figure;
    } rounds[] = {{total, 16, "auto", "short jobs"},
                  {total, 16, "none", "short jobs without cgroups"},
                  {total / 10, 1, "auto", "latency"}};
    int bad = 0;
    for (unsigned i = 0; i < 3 && bad == 0; i++) {
        char state[] = "/var/tmp/remuda-bench-XXXXXX"; /* on a disk: /tmp may be memory */
        if (mkdtemp(state) == NULL)
            return 1;
        bad = run(state, rounds[i].total, rounds[i].at_once, rounds[i].cgroups, rounds[i].figure);
        clock_sleep_ms(200);
        (void)dir_remove_tree(state, NULL);
    }
    return bad;
}
