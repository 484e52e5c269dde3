/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated engine: the conformance test, its own clock, declared endings, and what it tells of
 * its cards. */
#include "tests/engine_conformance.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char dir[64];
static char cluster[96];
static uint64_t scale = 1000;

static int open_simulated(uv_loop_t *loop, engine_event_cb *cb, void *arg, struct engine **ret, struct err *e)
{
    struct engine_options o = {.loop = loop,
                               .state_dir = dir,
                               .cb = cb,
                               .cb_arg = arg,
                               .cluster_file = cluster,
                               .time_scale_milli = scale,
                               .default_duration_ms = 50};
    return simulated_engine_open(&o, ret, e);
}

static char *fails[] = {(char *)"REMUDA_SIM_EXIT=3", NULL};
static char *stubborn[] = {(char *)"REMUDA_SIM_IGNORE_TERM=1", NULL};
static char *words[] = {(char *)"train", NULL};

static void describe(enum conform_job what, struct job_spec *spec)
{
    spec->argv = words;
    spec->sim_duration_ms = what == CONFORM_LONG || what == CONFORM_IGNORES_TERM ? 600000 : 50;
    if (what == CONFORM_FAILS)
        spec->env = fails;
    if (what == CONFORM_IGNORES_TERM)
        spec->env = stubborn;
}

static const struct conform_fixture fixture = {
    .open = open_simulated, .describe = describe, .survives_close = true, .keeps_logs = false};

static void conforms(void **state)
{
    (void)state;
    engine_conformance(&fixture);
}

static void endings_are_declared(void **state)
{
    (void)state;
    static char *oom[] = {(char *)"REMUDA_SIM_OOM=1", NULL};
    static char *killed[] = {(char *)"REMUDA_SIM_SIGNAL=11", (char *)"REMUDA_SIM_RANK=1", NULL};
    static char *refused[] = {(char *)"REMUDA_SIM_LAUNCH_FAILED=1", NULL};
    struct conform c;
    struct conform_launch a, b, x;
    conform_open(&c, &fixture);
    conform_reconcile(&c, NULL, 0);
    conform_prepare(&c, &a, 1, 1, 1, CONFORM_QUICK);
    a.spec.env = oom;
    conform_prepare(&c, &b, 2, 1, 2, CONFORM_QUICK);
    b.spec.env = killed;
    conform_prepare(&c, &x, 3, 1, 2, CONFORM_QUICK);
    x.spec.env = refused;
    conform_start(&c, &a);
    conform_start(&c, &b);
    conform_start(&c, &x);
    const struct engine_event *e = &conform_expect(&c, ENGINE_EXITED, 1, 1, 0, 5000)->ev;
    assert_int_equal(e->cause, ENGINE_EXIT_OOM);
    assert_int_equal(e->signal, SIGKILL);
    e = &conform_expect(&c, ENGINE_EXITED, 2, 1, 1, 5000)->ev;
    assert_int_equal(e->rank, 1);
    assert_int_equal(e->signal, 11);
    assert_int_equal(e->code, -1);
    e = &conform_expect(&c, ENGINE_EXITED, 2, 1, 0, 5000)->ev;
    assert_int_equal(e->code, 0);
    e = &conform_expect(&c, ENGINE_EXITED, 3, 1, 1, 5000)->ev;
    assert_int_equal(e->cause, ENGINE_EXIT_LAUNCH_FAILED);
    assert_null(conform_find(&c, ENGINE_STARTED, 3, 1, 0));
    conform_close(&c);
    conform_done(&c);
}

/* An hour passes in 36 ms at a scale of 100,000. */
static void time_is_scaled(void **state)
{
    (void)state;
    struct conform c;
    struct conform_launch a;
    scale = 100000 * UINT64_C(1000);
    conform_open(&c, &fixture);
    conform_reconcile(&c, NULL, 0);
    conform_prepare(&c, &a, 1, 1, 1, CONFORM_LONG);
    a.spec.sim_duration_ms = 3600000;
    int64_t begin = clock_mono_ms();
    conform_start(&c, &a);
    conform_expect(&c, ENGINE_EXITED, 1, 1, 0, 20000);
    assert_true(clock_mono_ms() - begin >= 36);
    conform_close(&c);
    conform_done(&c);
    scale = 1000;
}

/* What the log says was running goes on from when it began; what had been over by now ends at once.
 */
static void log_brings_jobs_back(void **state)
{
    (void)state;
    struct conform c;
    struct conform_launch going, over, never;
    conform_open(&c, &fixture);
    conform_reconcile(&c, NULL, 0);
    conform_prepare(&c, &going, 1, 1, 1, CONFORM_LONG);
    conform_prepare(&c, &over, 2, 1, 1, CONFORM_LONG);
    conform_prepare(&c, &never, 3, 1, 1, CONFORM_LONG);
    int64_t now = clock_wall_ms();
    struct engine_expected expected[] = {
        {.launch = going.launch, .started_ms = now - 1000},
        {.launch = over.launch, .started_ms = now - 700000},
        {.launch = never.launch, .started_ms = 0},
    };
    conform_reconcile(&c, expected, 3);
    assert_int_equal(conform_expect(&c, ENGINE_STARTED, 1, 1, 0, 1000)->ev.time_ms, now - 1000);
    conform_expect(&c, ENGINE_EXITED, 2, 1, 0, 5000);
    assert_null(conform_find(&c, ENGINE_STARTED, 3, 1, 0));
    assert_null(conform_find(&c, ENGINE_EXITED, 1, 1, 0));
    conform_close(&c);
    conform_done(&c);
}

static bool has_telemetry(struct conform *c, void *arg)
{
    (void)arg;
    return c->telemetry > 0;
}

static void cards_are_told(void **state)
{
    (void)state;
    struct conform c;
    conform_open(&c, &fixture);
    conform_reconcile(&c, NULL, 0);
    assert_true(c.node.simulated);
    assert_int_equal(c.node.gpus_len, 8);
    assert_int_equal(c.node.link[0][1], 1);
    assert_int_equal(c.node.link[3][3], 0);
    assert_int_equal(strncmp(c.node.gpus[0].uuid, "GPU-", 4), 0);
    assert_int_equal(strlen(c.node.gpus[0].uuid), 40);
    assert_string_not_equal(c.node.gpus[0].uuid, c.node.gpus[1].uuid);
    assert_true(conform_wait(&c, has_telemetry, NULL, 10000));
    conform_close(&c);
    conform_done(&c);
}

int main(void)
{
    static const char nodes[] = "nodes: [{name: only, preset: dgx-a100}]\n";
    snprintf(dir, sizeof(dir), "/tmp/remuda-simulated-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return 1;
    snprintf(cluster, sizeof(cluster), "%s/cluster.yaml", dir);
    if (file_write_atomic(cluster, nodes, strlen(nodes), 0644, FILE_SYNC_NO, NULL) != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conforms),       cmocka_unit_test(endings_are_declared),
        cmocka_unit_test(time_is_scaled), cmocka_unit_test(log_brings_jobs_back),
        cmocka_unit_test(cards_are_told),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dir_remove_tree(dir, NULL);
    return failed;
}
