/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local engine with real runners and real processes: the conformance test, and what jobs and crashes do to it.
 * Every test has a state folder of its own. REQ: H1
 */
#include "engine_conformance.h"

#include "abi/runner.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "runner/cgroup.h"
#include "runner/record.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 30000

static char state[64];
static const char *cgroups = "auto";
static const char *preset; /* NULL: the machine's own cards */

static int open_local(uv_loop_t *loop, engine_event_cb *cb, void *arg, struct engine **ret, struct err *e)
{
    struct engine_options o = {.loop = loop,
                               .state_dir = state,
                               .cb = cb,
                               .cb_arg = arg,
                               .runner_path = RUNNER,
                               .cgroups = cgroups,
                               .preset = preset,
                               .simgpu_dir = preset != NULL ? SIMGPU_DIR : NULL};
    return local_engine_open(&o, ret, e);
}

static char *quick[] = {(char *)"true", NULL};
static char *lasting[] = {(char *)"sleep", (char *)"600", NULL};
static char *failing[] = {(char *)"sh", (char *)"-c", (char *)"exit 3", NULL};
static char *stubborn[] = {(char *)"sh", (char *)"-c", (char *)"trap '' TERM; while :; do sleep 1; done", NULL};

static void describe(enum conform_job what, struct job_spec *spec)
{
    char **commands[] = {quick, lasting, failing, stubborn};
    spec->argv = commands[what];
}

static const struct conform_fixture fixture = {
    .open = open_local, .describe = describe, .survives_close = true, .keeps_logs = true};

static int make_state(void **unused)
{
    (void)unused;
    memcpy(state, "/tmp/remuda-test-local-XXXXXX", sizeof "/tmp/remuda-test-local-XXXXXX");
    if (mkdtemp(state) == NULL)
        return -1;
    return chmod(state, 0711);
}

/* Leaves nothing behind: no process of the test, no cgroup, no file. */
static int remove_state(void **unused)
{
    (void)unused;
    struct cgroup_plan plan;
    if (cgroup_probe(cgroups, state, &plan, NULL) == 0) {
        for (int i = 0; i < 100; i++) { /* the last runner may be on its way out */
            cgroup_release(&plan);
            if (plan.role[CGROUP_TRACK].version == CGROUP_NONE || access(plan.role[CGROUP_TRACK].parent, F_OK) < 0)
                break;
            clock_sleep_ms(20);
        }
    }
    cgroups = "auto";
    int r = -1;
    for (int i = 0; i < 50 && (r = dir_remove_tree(state, NULL)) < 0; i++)
        clock_sleep_ms(20);
    return r;
}

/* --- harness --- */

static void begin(struct conform *c)
{
    conform_open(c, &fixture);
    conform_reconcile(c, NULL, 0);
}

static void prepare_shell(struct conform *c, struct conform_launch *l, uint64_t job, char *argv[4], const char *text)
{
    conform_prepare(c, l, job, 1, 1, CONFORM_QUICK);
    argv[0] = (char *)"sh";
    argv[1] = (char *)"-c";
    argv[2] = (char *)text;
    argv[3] = NULL;
    l->spec.argv = argv;
}

/* Runs a shell text to its end and gives the exit. */
static const struct conform_event *run_shell(struct conform *c, uint64_t job, const char *text)
{
    struct conform_launch l;
    char *argv[4];
    prepare_shell(c, &l, job, argv, text);
    conform_start(c, &l);
    return conform_expect(c, ENGINE_EXITED, job, 1, 0, WAIT_MS);
}

static char *output_of(struct conform *c, uint64_t job, uint32_t rank, bool error)
{
    char path[PATH_MAX];
    assert_int_equal(c->engine->ops->log_path(c->engine, job, 1, rank, error, path, sizeof path), 0);
    char *text = NULL;
    assert_int_equal(file_read(path, 16 << 20, &text, NULL, NULL), 0);
    return text;
}

static const char *in_attempt(uint64_t job, const char *file)
{
    static char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/jobs/%llu/1/%s", state, (unsigned long long)job, file);
    return path;
}

static void read_status(uint64_t job, struct runner_status *ret)
{
    CLEANUP_FREE char *text = NULL;
    struct err e = {0};
    assert_int_equal(file_read(in_attempt(job, RUNNER_FILE_STATUS), 1 << 20, &text, NULL, &e), 0);
    assert_int_equal(runner_status_parse(text, ret, &e), 0);
}

/* A pid that a job wrote into a file of the state folder. */
static pid_t pid_from(const char *name)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", state, name);
    for (int i = 0; i < 500; i++) {
        CLEANUP_FREE char *text = NULL;
        if (file_read(path, 64, &text, NULL, NULL) == 0 && strchr(text, '\n') != NULL)
            return (pid_t)strtol(text, NULL, 10);
        clock_sleep_ms(10);
    }
    fail_msg("%s was not written", path);
    return 0;
}

static bool gone(pid_t pid)
{
    struct process_stat st;
    return process_stat_read(pid, &st) < 0 || st.state == 'Z' || st.state == 'X';
}

static void assert_gone_soon(pid_t pid)
{
    for (int i = 0; i < 200 && !gone(pid); i++)
        clock_sleep_ms(10);
    assert_true(gone(pid));
}

static bool tracks(void)
{
    struct cgroup_plan plan;
    assert_int_equal(cgroup_probe(cgroups, state, &plan, NULL), 0);
    return plan.role[CGROUP_TRACK].version != CGROUP_NONE;
}

static bool limits_memory(void)
{
    struct cgroup_plan plan;
    assert_int_equal(cgroup_probe(cgroups, state, &plan, NULL), 0);
    return plan.role[CGROUP_MEMORY].version != CGROUP_NONE;
}

/* --- tests --- */

static void conforms(void **unused)
{
    (void)unused;
    engine_conformance(&fixture);
}

static void conforms_with_v1(void **unused)
{
    (void)unused;
    cgroups = "v1";
    if (!tracks()) {
        print_message("SKIPPED: no cgroup v1 hierarchy may be used here\n");
        skip();
    }
    engine_conformance(&fixture);
}

static void conforms_with_v2(void **unused)
{
    (void)unused;
    cgroups = "v2";
    if (!tracks()) {
        print_message("SKIPPED: no cgroup v2 hierarchy may be used here\n");
        skip();
    }
    engine_conformance(&fixture);
}

static void conforms_without_cgroups(void **unused)
{
    (void)unused;
    cgroups = "none";
    engine_conformance(&fixture);
    struct conform c;
    begin(&c);
    (void)run_shell(&c, 200, "true");
    const struct conform_event *started = conform_find(&c, ENGINE_STARTED, 200, 1, 0);
    assert_non_null(strstr(started->detail, "not enforced")); /* the degraded mode is said */
    assert_non_null(strstr(conform_find(&c, ENGINE_NODE, 0, 0, 0)->detail, "not enforced"));
    conform_done(&c);
}

/* A grandchild that forked twice and leads a session of its own goes with its worker. */
static void escape_is_caught(void)
{
    struct conform c;
    begin(&c);
    struct strbuf text = {0};
    strbuf_printf(&text,
                  "(setsid sh -c 'trap \"\" TERM HUP; echo $$ >%s/escaped; exec sleep 600' &) & "
                  "while ! [ -s %s/escaped ]; do sleep 0.01; done; exit 5",
                  state, state);
    const struct conform_event *x = run_shell(&c, 1, strbuf_str(&text));
    strbuf_done(&text);
    assert_int_equal(x->ev.code, 5);
    assert_true(gone(pid_from("escaped"))); /* before the exit is told, not some time later */
    conform_done(&c);
}

static void an_escaped_process_is_killed(void **unused)
{
    (void)unused;
    escape_is_caught();
}

static void an_escaped_process_is_killed_v1(void **unused)
{
    (void)unused;
    cgroups = "v1";
    escape_is_caught();
}

static void an_escaped_process_is_killed_without_cgroups(void **unused)
{
    (void)unused;
    cgroups = "none";
    escape_is_caught();
}

/* The shell ends at SIGTERM at once; the program under it keeps its grace time to save. */
static void children_keep_the_grace_time(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    char *argv[4];
    begin(&c);
    prepare_shell(&c, &l, 1, argv,
                  "sh -c 'trap \"sleep 0.5; echo saved; exit 0\" TERM; echo up; "
                  "while :; do sleep 0.05; done' & wait");
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_STARTED, 1, 1, 0, WAIT_MS);
    clock_sleep_ms(300);
    conform_terminate(&c, 1, 1, 10000);
    int64_t before = clock_mono_ms();
    (void)conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS);
    assert_true(clock_mono_ms() - before < 5000);
    CLEANUP_FREE char *out = output_of(&c, 1, 0, false);
    assert_string_equal(out, "up\nsaved\n");
    conform_done(&c);
}

static void the_environment_is_set(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    begin(&c);
    conform_prepare(&c, &l, 77, 1, 2, CONFORM_QUICK);
    char *argv[] = {(char *)"env", NULL};
    char *env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"MINE=yes", (char *)"RANK=9",
                   (char *)"CUDA_VISIBLE_DEVICES=GPU-of-somebody", NULL};
    const char *const uuids[] = {"GPU-a", "GPU-b"};
    l.spec.argv = argv;
    l.spec.env = env;
    memcpy(l.spec.queue, "batch", sizeof "batch");
    l.workers[1].gpus_len = 2;
    l.workers[1].gpu_uuids = uuids;
    l.workers[1].gpu_milli = GPU_MILLI;
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_EXITED, 77, 1, 1, WAIT_MS);
    CLEANUP_FREE char *none = output_of(&c, 77, 0, false);
    CLEANUP_FREE char *two = output_of(&c, 77, 1, false);
    /* A job sees no card that it was not given. */
    assert_non_null(strstr(none, "\nCUDA_VISIBLE_DEVICES=\n"));
    assert_non_null(strstr(none, "\nNVIDIA_VISIBLE_DEVICES=void\n"));
    assert_non_null(strstr(none, "\nRANK=0\n"));
    assert_non_null(strstr(none, "MINE=yes\n"));
    assert_null(strstr(none, "somebody"));
    static const char *const lines[] = {"\nCUDA_VISIBLE_DEVICES=GPU-a,GPU-b\n",
                                        "\nNVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b\n",
                                        "\nRANK=1\n",
                                        "\nLOCAL_RANK=1\n",
                                        "\nWORLD_SIZE=2\n",
                                        "\nREMUDA_JOB_ID=77\n",
                                        "\nREMUDA_ATTEMPT=1\n",
                                        "\nREMUDA_RANK=1\n",
                                        "\nREMUDA_WORLD_SIZE=2\n",
                                        "\nREMUDA_NODES=1\n",
                                        "\nREMUDA_QUEUE=batch\n",
                                        "\nMASTER_ADDR=127.0.0.1\n",
                                        "\nREMUDA_GPU_MILLI=1000\n",
                                        "\nCUDA_DEVICE_ORDER=PCI_BUS_ID\n"};
    for (unsigned i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (strstr(two, lines[i]) == NULL)
            fail_msg("the environment lacks %s in:\n%s", lines[i] + 1, two);
    const char *port = strstr(none, "\nMASTER_PORT="), *same = strstr(two, "\nMASTER_PORT=");
    assert_true(port != NULL && same != NULL && strtol(port + 13, NULL, 10) == strtol(same + 13, NULL, 10));
    conform_done(&c);
}

static void a_job_starts_clean(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    begin(&c);
    const struct conform_event *x =
        run_shell(&c, 1,
                  "readlink /proc/$$/fd/0; umask; grep SigIgn /proc/$$/status;"
                  "ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo leader; echo oops >&2");
    assert_int_equal(x->ev.code, 0);
    CLEANUP_FREE char *out = output_of(&c, 1, 0, false);
    CLEANUP_FREE char *err = output_of(&c, 1, 0, true);
    assert_string_equal(out, "/dev/null\n0022\nSigIgn:\t0000000000000000\nleader\n");
    assert_string_equal(err, "oops\n");
    char *argv[] = {(char *)"ls", (char *)"/proc/self/fd", NULL};
    conform_prepare(&c, &l, 2, 1, 1, CONFORM_QUICK);
    l.spec.argv = argv;
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_EXITED, 2, 1, 0, WAIT_MS);
    CLEANUP_FREE char *fds = output_of(&c, 2, 0, false);
    assert_string_equal(fds, "0\n1\n2\n3\n"); /* 3 is the folder that ls reads */
    conform_done(&c);
}

static void scripts_run_with_their_first_line(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    begin(&c);
    conform_prepare(&c, &l, 1, 1, 1, CONFORM_QUICK);
    char *argv[] = {(char *)"train.sh", (char *)"one two", NULL};
    l.spec.argv = argv;
    l.spec.script = (char *)"echo \"plain: $1\"\n"; /* without a first line: /bin/sh */
    conform_start(&c, &l);
    conform_prepare(&c, &l, 2, 1, 1, CONFORM_QUICK);
    l.spec.argv = argv;
    l.spec.script = (char *)"#!/usr/bin/awk -f\nBEGIN { print \"awk\" }\n";
    conform_start(&c, &l);
    conform_prepare(&c, &l, 3, 1, 1, CONFORM_QUICK);
    l.spec.script = (char *)"#!/no/such/interpreter\n";
    conform_start(&c, &l);
    assert_int_equal(conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS)->ev.code, 0);
    assert_int_equal(conform_expect(&c, ENGINE_EXITED, 2, 1, 0, WAIT_MS)->ev.code, 0);
    const struct conform_event *x = conform_expect(&c, ENGINE_EXITED, 3, 1, 0, WAIT_MS);
    assert_int_equal(x->ev.cause, ENGINE_EXIT_LAUNCH_FAILED);
    assert_non_null(strstr(x->detail, "/no/such/interpreter"));
    CLEANUP_FREE char *plain = output_of(&c, 1, 0, false);
    CLEANUP_FREE char *awk = output_of(&c, 2, 0, false);
    assert_string_equal(plain, "plain: one two\n");
    assert_string_equal(awk, "awk\n");
    conform_done(&c);
}

/* Each way in which a start fails says what was wrong; nothing ran. */
static void failed_starts_are_explained(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    char file[128];
    (void)snprintf(file, sizeof file, "%s/data", state);
    assert_int_equal(file_write_atomic(file,
                                       "\x7f"
                                       "data",
                                       5, 0755, FILE_SYNC_NO, NULL),
                     0);
    begin(&c);
    char *absent[] = {(char *)"no-such-program", NULL}, *folder[] = {(char *)"/etc", NULL}, *data[] = {file, NULL};
    struct {
        char **argv;
        const char *cwd;
        uint32_t uid;
        int code;
        const char *words;
    } cases[] = {
        {absent, "/", geteuid(), 127, "no-such-program: command not found"},
        {folder, "/", geteuid(), 126, "/etc: can't be executed: Permission denied"},
        {data, "/", geteuid(), 126, "not a program this machine can run"},
        {quick, "/no/such/folder", geteuid(), -1, "working directory /no/such/folder: No such file"},
        {quick, "/", UINT32_MAX, -1, "not a user"},
    };
    for (unsigned i = 0; i < 5; i++) {
        conform_prepare(&c, &l, 10 + i, 1, 1, CONFORM_QUICK);
        l.spec.argv = cases[i].argv;
        l.spec.cwd = (char *)cases[i].cwd;
        l.spec.uid = cases[i].uid;
        conform_start(&c, &l);
        const struct conform_event *x = conform_expect(&c, ENGINE_EXITED, 10 + i, 1, 0, WAIT_MS);
        assert_int_equal(x->ev.cause, ENGINE_EXIT_LAUNCH_FAILED);
        assert_int_equal(x->ev.code, cases[i].code);
        if (strstr(x->detail, cases[i].words) == NULL)
            fail_msg("case %u: '%s' lacks '%s'", i, x->detail, cases[i].words);
        assert_null(conform_find(&c, ENGINE_STARTED, 10 + i, 1, 0));
    }
    conform_done(&c);
}

static void a_daemon_of_root_runs_jobs_as_their_users(void **unused)
{
    (void)unused;
    if (geteuid() != 0) {
        print_message("SKIPPED: needs root\n");
        skip();
    }
    struct conform c;
    struct conform_launch l;
    begin(&c);
    conform_prepare(&c, &l, 1, 1, 1, CONFORM_QUICK);
    char *argv[] = {(char *)"x", NULL};
    l.spec.uid = 65534;
    l.spec.gid = 65534;
    l.spec.argv = argv;
    l.spec.script =
        (char *)"id -u; id -g; cat /proc/self/status | grep -c 'Groups:.*\\<0\\>'; touch \"$(dirname $0)/x\"";
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS);
    CLEANUP_FREE char *out = output_of(&c, 1, 0, false);
    assert_string_equal(out, "65534\n65534\n0\n");
    assert_true(access(in_attempt(1, "x"), F_OK) < 0); /* the attempt's folder is not the job's */
    struct stat st;
    assert_int_equal(stat(in_attempt(1, "worker-0.out"), &st), 0);
    assert_int_equal(st.st_uid, 65534); /* who may read their output */
    conform_done(&c);
}

/* What the runner has to say when it can't begin at all reaches the job's record. */
static void a_refused_spec_is_explained(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    begin(&c);
    conform_prepare(&c, &l, 1, 1, 2, CONFORM_QUICK);
    l.workers[0].rank = 1;
    l.workers[1].rank = 0;
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_EXITED, 1, 1, 1, WAIT_MS);
    for (size_t i = 0; i < 2; i++) {
        const struct conform_event *x = conform_find(&c, ENGINE_EXITED, 1, 1, i);
        assert_int_equal(x->ev.cause, ENGINE_EXIT_LAUNCH_FAILED);
        assert_non_null(strstr(x->detail, "rank 0 does not follow rank 1"));
    }
    conform_done(&c);
}

static void output_is_rotated(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    char *argv[4];
    begin(&c);
    prepare_shell(&c, &l, 1, argv, "i=0; while [ $i -lt 400 ]; do printf '%01000d\\n' $i; i=$((i+1)); done");
    l.launch.log_bytes_max = 50000;
    l.launch.log_files_kept = 2;
    conform_start(&c, &l);
    assert_int_equal(conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS)->ev.code, 0);
    static const char *const names[] = {"worker-0.out", "worker-0.out.1", "worker-0.out.2"};
    for (unsigned i = 0; i < 3; i++) {
        struct stat st;
        assert_int_equal(stat(in_attempt(1, names[i]), &st), 0);
        assert_true(st.st_size <= 50000 && st.st_size > 0);
    }
    assert_true(access(in_attempt(1, "worker-0.out.3"), F_OK) < 0);
    CLEANUP_FREE char *out = output_of(&c, 1, 0, false);
    assert_non_null(strstr(out, "0399\n")); /* the end is there, whole */
    conform_done(&c);
}

static void a_hundred_megabytes_of_output_fit_the_limit(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    char *argv[4];
    begin(&c);
    prepare_shell(&c, &l, 1, argv, "yes 0123456789012345678901234567890 | head -c 100000000");
    l.launch.log_bytes_max = 1 << 20;
    l.launch.log_files_kept = 1;
    conform_start(&c, &l);
    assert_int_equal(conform_expect(&c, ENGINE_EXITED, 1, 1, 0, 4 * WAIT_MS)->ev.code, 0);
    struct stat st;
    assert_int_equal(stat(in_attempt(1, "worker-0.out"), &st), 0);
    assert_true(st.st_size <= 1 << 20);
    assert_int_equal(stat(in_attempt(1, "worker-0.out.1"), &st), 0);
    assert_int_equal(st.st_size, 1 << 20);
    conform_done(&c);
}

static pid_t runner_of(uint64_t job)
{
    struct runner_status st;
    read_status(job, &st);
    pid_t pid = st.pid;
    assert_true(process_alive(pid, st.start_ticks));
    runner_status_done(&st);
    return pid;
}

static void killed_runner(void)
{
    struct conform c;
    struct conform_launch l;
    char *argv[4];
    begin(&c);
    struct strbuf text = {0};
    strbuf_printf(&text, "(setsid sleep 600 & echo $! >%s/escaped) ; echo $$ >%s/worker; sleep 600", state, state);
    prepare_shell(&c, &l, 1, argv, strbuf_str(&text));
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_STARTED, 1, 1, 0, WAIT_MS);
    pid_t worker = pid_from("worker"), escaped = pid_from("escaped");
    assert_false(gone(worker) || gone(escaped));
    assert_int_equal(kill(runner_of(1), SIGKILL), 0);
    const struct conform_event *x = conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS);
    assert_int_equal(x->ev.cause, ENGINE_EXIT_LOST);
    assert_true(gone(worker) && gone(escaped)); /* gone before it is told */
    strbuf_done(&text);
    /* The same is found after a restart. */
    conform_close(&c);
    conform_reopen(&c);
    conform_forget_events(&c);
    struct engine_expected expected = {.launch = l.launch, .started_ms = 1};
    conform_reconcile(&c, &expected, 1);
    x = conform_find(&c, ENGINE_EXITED, 1, 1, 0);
    assert_true(x != NULL && x->ev.cause == ENGINE_EXIT_LOST);
    conform_done(&c);
}

static void a_killed_runner_loses_its_job_and_nothing_stays(void **unused)
{
    (void)unused;
    killed_runner();
}

static void a_killed_runner_without_cgroups(void **unused)
{
    (void)unused;
    cgroups = "none";
    killed_runner();
}

static void a_killed_runner_is_found_after_a_restart(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    begin(&c);
    conform_prepare(&c, &l, 1, 1, 2, CONFORM_LONG);
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_STARTED, 1, 1, 0, WAIT_MS);
    struct runner_status st;
    read_status(1, &st);
    conform_close(&c);
    assert_int_equal(kill(st.pid, SIGKILL), 0);
    conform_reopen(&c);
    conform_forget_events(&c);
    struct engine_expected expected = {.launch = l.launch, .started_ms = 1};
    conform_reconcile(&c, &expected, 1);
    for (size_t i = 0; i < 2; i++) {
        const struct conform_event *x = conform_find(&c, ENGINE_EXITED, 1, 1, i);
        assert_true(x != NULL && x->ev.cause == ENGINE_EXIT_LOST);
        assert_true(x < conform_find(&c, ENGINE_RECONCILED, 0, 0, 0));
        assert_true(gone(st.workers[i].pid));
    }
    runner_status_done(&st);
    conform_done(&c);
}

/* A number in the status file that belongs to somebody else by now: that process is not touched. */
static void a_reused_pid_is_left_alone(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    cgroups = "none"; /* here the numbers are all there is */
    begin(&c);
    conform_prepare(&c, &l, 1, 1, 1, CONFORM_LONG);
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_STARTED, 1, 1, 0, WAIT_MS);
    struct runner_status st;
    read_status(1, &st);
    conform_close(&c);
    clock_sleep_ms(50); /* start times are counted in hundredths of a second */
    pid_t runner = st.pid, bystander = fork();
    if (bystander == 0) {
        (void)setsid();
        (void)execlp("sleep", "sleep", "600", (char *)NULL);
        _exit(127);
    }
    st.workers[0].pid = bystander; /* its start time stays that of the worker */
    st.pid = bystander;
    struct strbuf text = {0};
    runner_status_write(&st, &text);
    assert_int_equal(kill(runner, SIGKILL), 0);
    assert_gone_soon(runner);
    assert_int_equal(
        file_write_atomic(in_attempt(1, RUNNER_FILE_STATUS), text.data, text.len, 0644, FILE_SYNC_NO, NULL), 0);
    strbuf_done(&text);
    runner_status_done(&st);
    conform_reopen(&c);
    struct engine_expected expected = {.launch = l.launch, .started_ms = 1};
    conform_reconcile(&c, &expected, 1);
    assert_false(gone(bystander));
    assert_int_equal(kill(bystander, SIGKILL), 0);
    assert_int_equal(waitpid(bystander, NULL, 0), bystander);
    conform_done(&c);
}

/* The daemon is killed, with its whole process group; the job goes on and is found, its end too. */
static void jobs_outlive_the_daemon(void **unused)
{
    (void)unused;
    pid_t daemon = fork();
    if (daemon == 0) { /* a daemon of its own process group */
        (void)setpgid(0, 0);
        struct conform c;
        struct conform_launch l;
        char *argv[4];
        struct strbuf text = {0};
        begin(&c);
        strbuf_printf(&text, "echo $$ >%s/worker; while ! [ -e %s/go ]; do sleep 0.05; done; echo done; exit 6", state,
                      state);
        prepare_shell(&c, &l, 1, argv, strbuf_str(&text));
        conform_start(&c, &l);
        for (;;)
            (void)uv_run(&c.loop, UV_RUN_ONCE);
    }
    pid_t worker = pid_from("worker");
    clock_sleep_ms(200);
    assert_int_equal(kill(-daemon, SIGKILL), 0);
    assert_int_equal(waitpid(daemon, NULL, 0), daemon);
    clock_sleep_ms(100);
    assert_false(gone(worker));
    struct conform c;
    struct conform_launch l;
    conform_open(&c, &fixture);
    memcpy(c.node.name, "x", 2);
    conform_prepare(&c, &l, 1, 1, 1, CONFORM_LONG);
    struct engine_expected expected = {.launch = l.launch};
    conform_reconcile(&c, &expected, 1);
    assert_non_null(conform_find(&c, ENGINE_STARTED, 1, 1, 0));
    assert_null(conform_find(&c, ENGINE_EXITED, 1, 1, 0));
    char go[128];
    (void)snprintf(go, sizeof go, "%s/go", state);
    assert_int_equal(file_write_atomic(go, "", 0, 0600, FILE_SYNC_NO, NULL), 0);
    assert_int_equal(conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS)->ev.code, 6);
    CLEANUP_FREE char *out = output_of(&c, 1, 0, false);
    assert_string_equal(out, "done\n");
    conform_done(&c);
}

static void what_nobody_expects_is_killed(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    begin(&c);
    conform_prepare(&c, &l, 1, 1, 1, CONFORM_IGNORES_TERM);
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_STARTED, 1, 1, 0, WAIT_MS);
    struct runner_status st;
    read_status(1, &st);
    conform_close(&c);
    conform_reopen(&c);
    conform_forget_events(&c);
    conform_reconcile(&c, NULL, 0);
    assert_true(gone(st.workers[0].pid)); /* before anything is scheduled on what it held */
    assert_null(conform_find(&c, ENGINE_EXITED, 1, 1, 0));
    runner_status_done(&st);
    conform_done(&c);
}

/* A runner on an attempt's folder, with nobody at its channel. */
static void start_by_hand(uint64_t job)
{
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        (void)dup2(null, RUNNER_CHANNEL_FD);
        (void)execl(RUNNER, "remuda-runner", in_attempt(job, "."), (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0); /* the process it leaves behind goes on */
    clock_sleep_ms(200);
}

/* A runner that comes up after the daemon restarted and gave its attempt up must not start the job. */
static void a_late_runner_does_not_start(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    begin(&c);
    conform_prepare(&c, &l, 1, 1, 1, CONFORM_QUICK);
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS);
    conform_close(&c);
    clock_sleep_ms(100);
    /* As it was before the runner took its lock: only a spec. */
    assert_int_equal(unlink(in_attempt(1, RUNNER_FILE_STATUS)), 0);
    assert_int_equal(unlink(in_attempt(1, RUNNER_FILE_EXIT)), 0);
    conform_reopen(&c);
    conform_forget_events(&c);
    struct engine_expected expected = {.launch = l.launch};
    conform_reconcile(&c, &expected, 1);
    assert_null(conform_find(&c, ENGINE_STARTED, 1, 1, 0));
    assert_null(conform_find(&c, ENGINE_EXITED, 1, 1, 0));
    start_by_hand(1);
    assert_true(access(in_attempt(1, RUNNER_FILE_STATUS), F_OK) < 0);
    conform_start(&c, &l); /* launched again, it runs, once */
    assert_int_equal(conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS)->ev.code, 0);
    assert_null(conform_find(&c, ENGINE_STARTED, 1, 1, 1));
    start_by_hand(1); /* and not after its end either */
    CLEANUP_FREE char *exits = NULL;
    assert_int_equal(file_read(in_attempt(1, RUNNER_FILE_EXIT), 4096, &exits, NULL, NULL), 0);
    assert_ptr_equal(strchr(exits, '\n') + 1, exits + strlen(exits)); /* one line */
    conform_done(&c);
}

static void out_of_memory_is_told_apart(void **unused)
{
    (void)unused;
    if (!limits_memory()) {
        print_message("SKIPPED: needs a memory cgroup\n");
        skip();
    }
    struct conform c;
    struct conform_launch l;
    char *argv[4];
    begin(&c);
    /* The shell waits for its child, which alone is killed: the worker is over all the same. */
    prepare_shell(&c, &l, 1, argv,
                  "(head -c 200000000 /dev/zero | tail -c 190000000 | tail -c 1 >/dev/null); sleep 600");
    l.workers[0].mem_mib = 48;
    conform_start(&c, &l);
    const struct conform_event *x = conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS);
    assert_int_equal(x->ev.cause, ENGINE_EXIT_OOM);
    assert_non_null(strstr(x->detail, "48 MiB"));
    assert_true(x->ev.peak_mem_mib >= 40 && x->ev.peak_mem_mib <= 48);
    /* SIGKILL by itself is not out of memory. */
    x = run_shell(&c, 2, "kill -KILL $$");
    assert_int_equal(x->ev.cause, ENGINE_EXIT_NORMAL);
    assert_int_equal(x->ev.signal, SIGKILL);
    conform_done(&c);
}

static void cpu_time_is_limited(void **unused)
{
    (void)unused;
    struct cgroup_plan plan;
    assert_int_equal(cgroup_probe(cgroups, state, &plan, NULL), 0);
    if (plan.role[CGROUP_CPU].version == CGROUP_NONE) {
        print_message("SKIPPED: needs a cpu cgroup\n");
        skip();
    }
    struct conform c;
    struct conform_launch l;
    char *argv[4];
    begin(&c);
    prepare_shell(&c, &l, 1, argv, "timeout 2 sh -c 'while :; do :; done'; true");
    l.workers[0].cpu_milli = 250;
    conform_start(&c, &l);
    const struct conform_event *x = conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS);
    assert_int_equal(x->ev.code, 0);
    assert_true(x->ev.cpu_ms > 50);
    assert_true(x->ev.cpu_ms < 900); /* 500 ms by the quota; without one 2,000 */
    conform_done(&c);
}

/* Output that finds no room is dropped and counted; the job neither fails nor hangs. */
static void a_full_disk_does_not_stop_a_job(void **unused)
{
    (void)unused;
    if (geteuid() != 0 || mount("remuda-test", state, "tmpfs", MS_NOSUID | MS_NODEV, "size=2m,mode=711") < 0) {
        print_message("SKIPPED: needs the right to mount a small tmpfs (%s)\n", strerror(errno));
        skip();
    }
    struct conform c;
    struct conform_launch l;
    char *argv[4];
    begin(&c);
    struct strbuf text = {0};
    strbuf_printf(&text, "head -c 8000000 /dev/zero | tr '\\0' x; rm -f %s/ballast; sleep 0.3; echo; echo after",
                  state);
    prepare_shell(&c, &l, 1, argv, strbuf_str(&text));
    l.launch.log_bytes_max = 4 << 20;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/ballast", state);
    CLEANUP_FREE char *ballast = mem_alloc(1 << 20, 1);
    assert_non_null(ballast);
    assert_int_equal(file_write_atomic(path, ballast, 1 << 20, 0600, FILE_SYNC_NO, NULL), 0);
    conform_start(&c, &l);
    const struct conform_event *x = conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS);
    assert_int_equal(x->ev.code, 0);
    CLEANUP_FREE char *out = output_of(&c, 1, 0, false);
    assert_non_null(strstr(out, "bytes of output could not be written here: No space left on device]"));
    assert_non_null(strstr(out, "after\n"));
    CLEANUP_FREE char *exits = NULL;
    assert_int_equal(file_read(in_attempt(1, RUNNER_FILE_EXIT), 4096, &exits, NULL, NULL), 0);
    const char *lost = strstr(exits, "output_lost=");
    assert_true(lost != NULL && strtol(lost + 12, NULL, 10) > 1000000);
    strbuf_done(&text);
    /* No room at all: the next job is not started, and that is said. */
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, ballast, 4096) > 0)
        ;
    while (write(fd, ballast, 1) > 0)
        ;
    close(fd);
    conform_prepare(&c, &l, 2, 1, 1, CONFORM_QUICK);
    conform_start(&c, &l);
    x = conform_expect(&c, ENGINE_EXITED, 2, 1, 0, WAIT_MS);
    assert_int_equal(x->ev.cause, ENGINE_EXIT_LAUNCH_FAILED);
    assert_non_null(strstr(x->detail, "No space left on device"));
    conform_done(&c);
    for (int i = 0; i < 100 && umount2(state, 0) < 0; i++)
        clock_sleep_ms(20);
}

static void a_signal_reaches_all_processes(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    char *argv[4];
    begin(&c);
    prepare_shell(&c, &l, 1, argv,
                  "trap 'echo parent' USR1; sh -c 'trap \"echo child; exit 0\" USR1; echo up; "
                  "while :; do sleep 0.02; done' & wait; wait; exit 4");
    conform_start(&c, &l);
    (void)conform_expect(&c, ENGINE_STARTED, 1, 1, 0, WAIT_MS);
    clock_sleep_ms(300);
    assert_int_equal(c.engine->ops->signal(c.engine, 1, 1, SIGUSR1, NULL), 0);
    assert_int_equal(c.engine->ops->signal(c.engine, 1, 1, 0, NULL), -EINVAL);
    assert_int_equal(conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS)->ev.code, 4);
    CLEANUP_FREE char *out = output_of(&c, 1, 0, false);
    assert_non_null(strstr(out, "parent\n"));
    assert_non_null(strstr(out, "child\n"));
    conform_done(&c);
}

static void forgetting_keeps_the_logs_only(void **unused)
{
    (void)unused;
    struct conform c;
    begin(&c);
    (void)run_shell(&c, 1, "echo kept");
    c.engine->ops->forget(c.engine, 1, 1);
    CLEANUP_FREE char *out = output_of(&c, 1, 0, false);
    assert_string_equal(out, "kept\n");
    static const char *const files[] = {RUNNER_FILE_SPEC, RUNNER_FILE_SOCKET, RUNNER_FILE_STATUS, RUNNER_FILE_LOCK};
    for (unsigned i = 0; i < 4; i++)
        assert_true(access(in_attempt(1, files[i]), F_OK) < 0);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/run/1.1", state);
    assert_true(access(path, F_OK) < 0);
    conform_done(&c);
}

static bool has_telemetry(struct conform *c, void *arg)
{
    (void)arg;
    return c->telemetry >= 2;
}

/* Simulated cards, real processes: what the node has, the links, telemetry, and what a job sees of them. */
static void simulated_cards_are_there(void **unused)
{
    (void)unused;
    struct conform c;
    struct conform_launch l;
    preset = PRESETS_DIR "/dgx-a100.yaml";
    begin(&c);
    preset = NULL;
    assert_true(c.node.simulated); /* and it is said */
    assert_int_equal(c.node.gpus_len, 8);
    assert_string_equal(c.node.gpus[0].model, "A100-80GB");
    assert_true(c.node.gpus[7].healthy && c.node.gpus[7].mem_mib > 79 * 1024);
    assert_int_equal(c.node.link[0][0], 0);
    assert_int_equal(c.node.link[0][7], 1);
    assert_non_null(strstr(c.node.topology, "NV12"));
    char *argv[4];
    prepare_shell(&c, &l, 1, argv,
                  "echo $REMUDA_SIMULATED $CUDA_VISIBLE_DEVICES; test -e $REMUDA_SIMGPU && echo $LD_LIBRARY_PATH");
    const char *uuid = c.node.gpus[3].uuid;
    l.workers[0].gpus_len = 1;
    l.workers[0].gpu_uuids = &uuid;
    l.workers[0].gpu_milli = 400;
    conform_start(&c, &l);
    assert_int_equal(conform_expect(&c, ENGINE_EXITED, 1, 1, 0, WAIT_MS)->ev.code, 0);
    CLEANUP_FREE char *out = output_of(&c, 1, 0, false);
    char want[PATH_MAX];
    (void)snprintf(want, sizeof want, "1 %s\n%s\n", uuid, SIMGPU_DIR);
    assert_string_equal(out, want);
    assert_true(conform_wait(&c, has_telemetry, NULL, WAIT_MS));
    conform_done(&c);
    (void)unsetenv("REMUDA_SIMGPU");
}

static void bad_openings_are_refused(void **unused)
{
    (void)unused;
    struct engine *engine = NULL;
    struct err e = {0};
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct engine_options o = {.loop = &loop, .state_dir = state, .runner_path = "/no/such/runner"};
    assert_int_equal(local_engine_open(&o, &engine, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/no/such/runner"));
    o.runner_path = RUNNER;
    o.cgroups = "v3";
    assert_int_equal(local_engine_open(&o, &engine, &e), -EINVAL);
    assert_non_null(strstr(e.text, "v3"));
    o.cgroups = "none";
    o.preset = "/no/such/preset";
    assert_true(local_engine_open(&o, &engine, &e) < 0);
    assert_null(engine);
    assert_int_equal(uv_loop_close(&loop), 0);
}

#define LOCAL_TEST(f) cmocka_unit_test_setup_teardown(f, make_state, remove_state)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOCAL_TEST(conforms),
        LOCAL_TEST(conforms_with_v1),
        LOCAL_TEST(conforms_with_v2),
        LOCAL_TEST(conforms_without_cgroups),
        LOCAL_TEST(an_escaped_process_is_killed),
        LOCAL_TEST(an_escaped_process_is_killed_v1),
        LOCAL_TEST(an_escaped_process_is_killed_without_cgroups),
        LOCAL_TEST(children_keep_the_grace_time),
        LOCAL_TEST(the_environment_is_set),
        LOCAL_TEST(a_job_starts_clean),
        LOCAL_TEST(scripts_run_with_their_first_line),
        LOCAL_TEST(failed_starts_are_explained),
        LOCAL_TEST(a_daemon_of_root_runs_jobs_as_their_users),
        LOCAL_TEST(a_refused_spec_is_explained),
        LOCAL_TEST(output_is_rotated),
        LOCAL_TEST(a_hundred_megabytes_of_output_fit_the_limit),
        LOCAL_TEST(a_killed_runner_loses_its_job_and_nothing_stays),
        LOCAL_TEST(a_killed_runner_without_cgroups),
        LOCAL_TEST(a_killed_runner_is_found_after_a_restart),
        LOCAL_TEST(a_reused_pid_is_left_alone),
        LOCAL_TEST(jobs_outlive_the_daemon),
        LOCAL_TEST(what_nobody_expects_is_killed),
        LOCAL_TEST(a_late_runner_does_not_start),
        LOCAL_TEST(out_of_memory_is_told_apart),
        LOCAL_TEST(cpu_time_is_limited),
        LOCAL_TEST(a_full_disk_does_not_stop_a_job),
        LOCAL_TEST(a_signal_reaches_all_processes),
        LOCAL_TEST(forgetting_keeps_the_logs_only),
        LOCAL_TEST(simulated_cards_are_there),
        LOCAL_TEST(bad_openings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
