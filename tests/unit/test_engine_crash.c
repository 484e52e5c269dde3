/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGKILL at random instants to the process that holds the local engine, while jobs come, run and end; and to runners.
 * The log that a daemon would keep on disk is kept in shared memory: a decision is noted before the engine is asked,
 * an ending when it is told. Each job writes a line of its own when it begins. At the end every job ended, each began
 * once (once at most, where its runner was killed), and no process is left. REQ: F5
 */
#include "engine_conformance.h"

#include "abi/runner.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "runner/cgroup.h"
#include "runner/record.h"
#include "runner/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define JOBS    60
#define AT_ONCE 8

/* The log. Written by the daemon, which may be killed at any instruction; each field is one word. */
struct log_entry {
    uint32_t attempt; /* 0: not decided yet */
    int64_t started_ms;
    bool ended;
    bool forgotten;
    int32_t code;
    enum engine_exit_cause cause;
};
static struct log_entry *entries; /* by job - 1; shared */

static char state[64];
static const char *cgroups;

struct daemon_run {
    uv_loop_t loop;
    struct engine *engine;
    struct engine_launch launches[JOBS];
    struct engine_worker worker;
    struct job_spec specs[JOBS];
    char *argv[JOBS][4];
    char *texts[JOBS];
    bool reconciled;
};

static void describe(struct daemon_run *d)
{
    d->worker = (struct engine_worker){.node = "here"};
    for (int i = 0; i < JOBS; i++) {
        struct strbuf text = {0};
        strbuf_printf(&text, "echo %d >>%s/began; sleep 0.0%d; exit %d", i + 1, state, i % 7, i % 5);
        d->texts[i] = strbuf_take(&text);
        d->argv[i][0] = (char *)"/bin/sh";
        d->argv[i][1] = (char *)"-c";
        d->argv[i][2] = d->texts[i];
        d->specs[i] = (struct job_spec){
            .name = "crash", .user = "u", .uid = geteuid(), .gid = getegid(), .cwd = (char *)"/", .argv = d->argv[i]};
        d->launches[i] = (struct engine_launch){.job = (uint64_t)i + 1,
                                                .attempt = 1,
                                                .spec = &d->specs[i],
                                                .workers = &d->worker,
                                                .workers_len = 1,
                                                .grace_ms = 1000,
                                                .log_bytes_max = 1 << 20,
                                                .log_files_kept = 1};
    }
}

static void decide(struct daemon_run *d)
{
    int running = 0;
    for (int i = 0; i < JOBS; i++) {
        struct log_entry *e = &entries[i];
        if (e->attempt != 0 && !e->ended)
            running++;
        if (e->attempt != 0 || running >= AT_ONCE)
            continue;
        e->attempt = 1; /* decided, written, then done */
        (void)d->engine->ops->launch(d->engine, &d->launches[i], NULL);
        running++;
    }
}

static void on_event(void *arg, const struct engine_event *ev)
{
    struct daemon_run *d = arg;
    struct log_entry *e = ev->job >= 1 && ev->job <= JOBS ? &entries[ev->job - 1] : NULL;
    if (ev->kind == ENGINE_STARTED) {
        e->started_ms = ev->time_ms;
    } else if (ev->kind == ENGINE_EXITED) {
        e->code = ev->code;
        e->cause = ev->cause;
        e->ended = true;
        d->engine->ops->forget(d->engine, ev->job, ev->attempt);
        e->forgotten = true;
        if (d->reconciled)
            decide(d);
    } else if (ev->kind == ENGINE_RECONCILED) {
        d->reconciled = true;
        for (int i = 0; i < JOBS; i++) /* decided, never confirmed: launched again, which may not run it twice */
            if (entries[i].attempt != 0 && !entries[i].ended && entries[i].started_ms == 0)
                (void)d->engine->ops->launch(d->engine, &d->launches[i], NULL);
        decide(d);
    }
}

static bool all_ended(void)
{
    for (int i = 0; i < JOBS; i++)
        if (!entries[i].ended)
            return false;
    return true;
}

/* The daemon's life: until it is killed, or everything has ended. */
static void daemon_main(void)
{
    static struct daemon_run d;
    struct err e = {0};
    struct engine_expected expected[JOBS];
    uint32_t len = 0;
    (void)setpgid(0, 0);
    (void)uv_loop_init(&d.loop);
    describe(&d);
    struct engine_options o = {
        .loop = &d.loop, .state_dir = state, .cb = on_event, .cb_arg = &d, .runner_path = RUNNER, .cgroups = cgroups};
    if (local_engine_open(&o, &d.engine, &e) < 0)
        _exit(2);
    for (int i = 0; i < JOBS; i++)
        if (entries[i].attempt != 0 && !entries[i].ended)
            expected[len++] = (struct engine_expected){.launch = d.launches[i], .started_ms = entries[i].started_ms};
    if (d.engine->ops->reconcile(d.engine, expected, len, &e) < 0)
        _exit(3);
    while (!all_ended())
        (void)uv_run(&d.loop, UV_RUN_ONCE);
    _exit(0);
}

/* SIGKILL to the runner of some job that is running. */
static void kill_some_runner(struct rng *rng)
{
    char path[PATH_MAX];
    CLEANUP_FREE char *text = NULL;
    struct runner_status st;
    (void)snprintf(path, sizeof path, "%s/jobs/%d/1/" RUNNER_FILE_STATUS, state, (int)rng_below(rng, JOBS) + 1);
    if (file_read(path, 65536, &text, NULL, NULL) < 0 || runner_status_parse(text, &st, NULL) < 0)
        return;
    if (process_alive(st.pid, st.start_ticks))
        (void)kill(st.pid, SIGKILL);
    runner_status_done(&st);
}

static void run_to_the_end(struct rng *rng, bool runners_too)
{
    int64_t give_up = clock_mono_ms() + 60000;
    unsigned kills = 0;
    while (!all_ended()) {
        if (clock_mono_ms() > give_up)
            fail_msg("not at the end after %u kills", kills);
        pid_t daemon = fork();
        if (daemon == 0)
            daemon_main();
        int64_t until = clock_mono_ms() + (kills < 40 ? rng_between(rng, 1, 120) : 20000);
        int status;
        while (waitpid(daemon, &status, WNOHANG) == 0 && clock_mono_ms() < until) {
            clock_sleep_ms(1);
            if (runners_too && rng_chance(rng, 50000))
                kill_some_runner(rng);
        }
        if (kill(daemon, 0) < 0) {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), 0);
            continue;
        }
        (void)kill(-daemon, SIGKILL);
        (void)kill(daemon, SIGKILL);
        (void)waitpid(daemon, NULL, 0);
        kills++;
    }
}

static void check_began(bool runners_too)
{
    char path[128];
    CLEANUP_FREE char *text = NULL;
    unsigned began[JOBS + 1] = {0};
    (void)snprintf(path, sizeof path, "%s/began", state);
    assert_int_equal(file_read(path, 1 << 20, &text, NULL, NULL), 0);
    for (char *p = text; *p != '\0'; p += strcspn(p, "\n") + 1) {
        long job = strtol(p, NULL, 10);
        assert_true(job >= 1 && job <= JOBS);
        began[job]++;
    }
    for (int i = 0; i < JOBS; i++) {
        const struct log_entry *e = &entries[i];
        if (runners_too && e->cause != ENGINE_EXIT_NORMAL) {
            assert_true(began[i + 1] <= 1);
            continue;
        }
        if (began[i + 1] != 1 || e->cause != ENGINE_EXIT_NORMAL || e->code != i % 5)
            fail_msg("job %d began %u times and ended with cause %d, code %d", i + 1, began[i + 1], e->cause, e->code);
    }
}

static void check_nothing_is_left(void)
{
    char key[16], prefix[64];
    runner_state_key(state, key);
    for (int i = 1; i <= JOBS; i++) {
        struct tree t;
        (void)snprintf(prefix, sizeof prefix, "%s.%d.1", key, i);
        assert_int_equal(tree_read(&t), 0);
        assert_int_equal(tree_mark_attempt(&t, prefix, NULL, 0), 0);
        tree_done(&t);
    }
}

/* What killed runners could not remove. */
static void remove_groups(void)
{
    struct cgroup_plan plan;
    char name[32];
    assert_int_equal(cgroup_probe(cgroups, state, &plan, NULL), 0);
    for (int i = 1; i <= JOBS; i++) {
        (void)snprintf(name, sizeof name, "%d.1", i);
        (void)cgroup_remove(&plan, name);
    }
    for (int i = 0; i < 50 && plan.role[CGROUP_TRACK].version != CGROUP_NONE; i++) {
        cgroup_release(&plan);
        if (access(plan.role[CGROUP_TRACK].parent, F_OK) < 0)
            return;
        clock_sleep_ms(20); /* the last runner is on its way out */
    }
}

static void crash_round(uint64_t seed, const char *which, bool runners_too)
{
    struct rng rng;
    char name[] = "/tmp/remuda-test-crash-XXXXXX";
    print_message("seed %" PRIu64 "\n", seed);
    rng_init(&rng, seed);
    cgroups = which;
    assert_non_null(mkdtemp(name));
    memcpy(state, name, sizeof name);
    assert_int_equal(chmod(state, 0711), 0);
    entries = mmap(NULL, JOBS * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(entries != MAP_FAILED);
    run_to_the_end(&rng, runners_too);
    check_began(runners_too);
    check_nothing_is_left();
    assert_int_equal(munmap(entries, JOBS * sizeof *entries), 0);
    remove_groups();
    for (int i = 0; i < 50 && dir_remove_tree(state, NULL) < 0; i++)
        clock_sleep_ms(20);
}

static uint64_t seed_of(uint64_t usual)
{
    const char *text = getenv("REMUDA_TEST_SEED");
    return text != NULL ? strtoull(text, NULL, 10) : usual;
}

static void killed_daemons_lose_nothing(void **unused)
{
    (void)unused;
    crash_round(seed_of(1), "auto", false);
}

static void killed_daemons_lose_nothing_without_cgroups(void **unused)
{
    (void)unused;
    crash_round(seed_of(2), "none", false);
}

static void killed_runners_lose_their_job_only(void **unused)
{
    (void)unused;
    crash_round(seed_of(3), "auto", true);
}

static void killed_runners_lose_their_job_only_without_cgroups(void **unused)
{
    (void)unused;
    crash_round(seed_of(4), "none", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_daemons_lose_nothing),
        cmocka_unit_test(killed_daemons_lose_nothing_without_cgroups),
        cmocka_unit_test(killed_runners_lose_their_job_only),
        cmocka_unit_test(killed_runners_lose_their_job_only_without_cgroups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
