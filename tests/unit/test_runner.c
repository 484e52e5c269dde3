/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the runner by themselves, and the program driven without an engine. */
#include "abi/runner.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "runner/cgroup.h"
#include "runner/environment.h"
#include "runner/output.h"
#include "runner/record.h"
#include "runner/spec.h"
#include "runner/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char home[PATH_MAX];

static int make_folder(void **state)
{
    (void)state;
    memcpy(folder, "/tmp/remuda-test-runner-XXXXXX", sizeof "/tmp/remuda-test-runner-XXXXXX");
    if (mkdtemp(folder) == NULL || getcwd(home, sizeof home) == NULL)
        return -1;
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    int r = chdir(home);
    for (int i = 0; i < 50 && (r = dir_remove_tree(folder, NULL)) < 0; i++)
        clock_sleep_ms(20);
    return r;
}

static char *true_argv[] = {(char *)"true", NULL};
static char *sleep_argv[] = {(char *)"sleep", (char *)"600", NULL};
static struct runner_worker two[] = {{.rank = 0, .gpus = (char *)"GPU-a,GPU-b", .gpu_milli = 1000},
                                     {.rank = 3, .cpu_milli = 1500, .mem_mib = 64, .gpus = (char *)""}};

/* A spec that borrows everything. */
static struct runner_spec sample(void)
{
    return (struct runner_spec){.job = 7,
                                .attempt = 2,
                                .uid = geteuid(),
                                .gid = getegid(),
                                .umask = 022,
                                .world = 4,
                                .nodes = 2,
                                .node_rank = 1,
                                .log_files = 3,
                                .log_bytes = 1 << 20,
                                .grace_ms = 1000,
                                .name = (char *)"n",
                                .user = (char *)"u",
                                .tenant = (char *)"t",
                                .queue = (char *)"q",
                                .node = (char *)"h",
                                .state = folder,
                                .cwd = (char *)"/",
                                .master_addr = (char *)"127.0.0.1",
                                .cgroup = (char *)"none",
                                .tag = (char *)"abc.7.2",
                                .argv = true_argv,
                                .argv_len = 1,
                                .workers = two,
                                .workers_len = 2};
}

static void a_spec_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct runner_spec s = sample(), read;
    struct strbuf text = {0};
    struct err e = {0};
    char *env[] = {(char *)"A=1\n2", (char *)"EMPTY=", NULL};
    s.env = env;
    s.env_len = 2;
    s.script = (char *)"#!/bin/sh\nx=y\n";
    runner_spec_write(&s, &text);
    assert_int_equal(runner_spec_parse(text.data, text.len, &read, &e), 0);
    assert_int_equal(read.job, 7);
    assert_int_equal(read.attempt, 2);
    assert_int_equal(read.grace_ms, 1000);
    assert_string_equal(read.script, s.script);
    assert_string_equal(read.env[0], "A=1\n2");
    assert_null(read.env[2]);
    assert_string_equal(read.argv[0], "true");
    assert_int_equal(read.workers_len, 2);
    assert_string_equal(read.workers[0].gpus, "GPU-a,GPU-b");
    assert_string_equal(read.workers[1].gpus, "");
    assert_int_equal(read.workers[1].mem_mib, 64);
    runner_spec_done(&read);
    /* Cut anywhere it is refused; nothing is half taken. */
    for (size_t len = 0; len < text.len; len++)
        assert_int_equal(runner_spec_parse(text.data, len, &read, &e), -EINVAL);
    /* Without memory at any point it is said, and nothing leaks. */
    int r = -ENOMEM;
    for (uint64_t n = 1; r == -ENOMEM; n++) {
        mem_fail_from(n);
        r = runner_spec_parse(text.data, text.len, &read, &e);
        mem_fail_from(0);
        assert_true(n < 200);
    }
    assert_int_equal(r, 0);
    runner_spec_done(&read);
    strbuf_done(&text);
}

static void a_status_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct runner_process workers[] = {{0, 100, 5}, {1, 101, 6}};
    struct runner_status s = {.state = "running",
                              .pid = 99,
                              .start_ticks = 4,
                              .boot = "b",
                              .started_ms = 12,
                              .note = "two\nlines",
                              .cgroup = (char *)"none",
                              .workers = workers,
                              .workers_len = 2};
    struct runner_status read;
    struct strbuf text = {0};
    struct err e = {0};
    runner_status_write(&s, &text);
    assert_int_equal(runner_status_parse(text.data, &read, &e), 0);
    assert_string_equal(read.note, "two lines");
    assert_int_equal(read.workers[1].pid, 101);
    assert_int_equal(read.workers[1].start_ticks, 6);
    runner_status_done(&read);
    assert_int_equal(runner_status_parse("version=2\nstate=running\npid=3\n", &read, &e), -EINVAL);
    assert_non_null(strstr(e.text, "version"));
    strbuf_done(&text);
}

static void a_line_of_an_exit_stays_one_line(void **state)
{
    (void)state;
    struct runner_exit x = {.rank = 2, .code = -1, .signal = 9, .cause = RUNNER_OOM, .detail = "a\nb"}, read;
    struct strbuf line = {0};
    runner_exit_write(&x, &line);
    assert_ptr_equal(strchr(line.data, '\n'), line.data + line.len - 1);
    line.data[line.len - 1] = '\0';
    assert_int_equal(runner_exit_parse(line.data, &read), 0);
    assert_int_equal(read.cause, RUNNER_OOM);
    assert_string_equal(read.detail, "a b");
    for (size_t len = 0; len + 10 < line.len; len += 7) {
        line.data[len] = '\0';
        assert_int_equal(runner_exit_parse(line.data, &read), -EINVAL);
    }
    strbuf_done(&line);
}

static void the_runner_has_the_last_word_on_its_variables(void **state)
{
    (void)state;
    struct runner_spec s = sample();
    struct environment env;
    char *given[] = {(char *)"REMUDA_RANK=5", (char *)"LD_LIBRARY_PATH=/mine", (char *)"REMUDA_RANK=6", NULL};
    s.env = given;
    s.env_len = 3;
    s.simgpu = (char *)"/state/simgpu.state";
    s.simgpu_lib = (char *)"/lib/simgpu";
    assert_int_equal(environment_build(&s, 1, 20000, &env), 0);
    assert_string_equal(environment_get(&env, "REMUDA_RANK"), "3");
    assert_string_equal(environment_get(&env, "LOCAL_RANK"), "1");
    assert_string_equal(environment_get(&env, "WORLD_SIZE"), "4");
    assert_string_equal(environment_get(&env, "LOCAL_WORLD_SIZE"), "2");
    assert_string_equal(environment_get(&env, "REMUDA_NODE_RANK"), "1");
    assert_string_equal(environment_get(&env, "LD_LIBRARY_PATH"), "/lib/simgpu:/mine");
    assert_string_equal(environment_get(&env, "REMUDA_SIMGPU"), "/state/simgpu.state");
    assert_string_equal(environment_get(&env, "REMUDA_SIMULATED"), "1");
    unsigned ranks = 0;
    for (size_t i = 0; i < env.len; i++)
        ranks += strncmp(env.list[i], "REMUDA_RANK=", 12) == 0;
    assert_int_equal(ranks, 1);
    environment_done(&env);
    int r = -ENOMEM;
    for (uint64_t n = 1; r == -ENOMEM; n++) {
        mem_fail_from(n);
        r = environment_build(&s, 0, 1, &env);
        mem_fail_from(0);
        assert_true(n < 500);
    }
    environment_done(&env);
}

static void output_keeps_nothing_when_told_so(void **state)
{
    (void)state;
    struct output o;
    struct stat st;
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(output_open(&o, "o", getuid(), getgid(), 10, 0, NULL), 0);
    for (int i = 0; i < 7; i++)
        output_write(&o, "abcdefg", 7);
    output_close(&o);
    assert_int_equal(stat("o", &st), 0);
    assert_int_equal(st.st_size, 9); /* 49 bytes, ten at a time */
    assert_true(access("o.1", F_OK) < 0);
    assert_int_equal(o.lost, 0);
    assert_int_equal(output_open(&o, "o", getuid(), getgid(), 10, 2, NULL), 0); /* goes on where it was */
    output_write(&o, "12345", 5);
    output_close(&o);
    assert_int_equal(stat("o.1", &st), 0);
    assert_int_equal(st.st_size, 10);
}

static void places_of_cgroups_are_checked(void **state)
{
    (void)state;
    struct cgroup_plan p, q;
    struct err e = {0};
    struct strbuf text = {0};
    assert_int_equal(cgroup_plan_parse("track=v2:/a/remuda-1;cpu=v1:/b c/remuda-1", &p, &e), 0);
    assert_string_equal(p.role[CGROUP_CPU].parent, "/b c/remuda-1");
    assert_int_equal(p.role[CGROUP_MEMORY].version, CGROUP_NONE);
    cgroup_plan_write(&p, &text);
    assert_int_equal(cgroup_plan_parse(text.data, &q, &e), 0);
    assert_int_equal(q.role[CGROUP_TRACK].version, CGROUP_V2);
    strbuf_done(&text);
    static const char *const bad[] = {"track=v3:/a",     "track=v1:a", "track", "cpu=v1:/a", "track=v1:/a;track=v1:/a",
                                      "none;track=v1:/a"};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(cgroup_plan_parse(bad[i], &p, &e), -EINVAL);
    assert_int_equal(cgroup_probe("maybe", folder, &p, &e), -EINVAL);
    assert_int_equal(cgroup_probe("none", folder, &p, &e), 0);
    assert_non_null(strstr(p.note, "not enforced"));
    char here[16], there[16];
    runner_state_key(folder, here);
    runner_state_key("/", there);
    assert_int_equal(strlen(here), 12);
    assert_string_not_equal(here, there);
}

static void strangers_are_not_marked(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        (void)execlp("env", "env", "-i", "REMUDA_TAG=abc.1.1", "/bin/sleep", "600", (char *)NULL);
        _exit(127);
    }
    clock_sleep_ms(100);
    struct tree t;
    uint64_t start = 0;
    assert_int_equal(process_start_ticks(child, &start), 0);
    struct runner_process right = {.pid = child, .start_ticks = start},
                          wrong = {.pid = child, .start_ticks = start + 1};
    assert_int_equal(tree_read(&t), 0);
    assert_int_equal(tree_mark_attempt(&t, "abc.1.10", NULL, 0), 0);
    assert_int_equal(tree_mark_attempt(&t, "abc.1", &wrong, 1), 0);
    assert_int_equal(tree_signal(&t, SIGKILL), 0);
    assert_int_equal(tree_mark_attempt(&t, "abc.1.1", NULL, 0), 1);
    tree_done(&t);
    assert_int_equal(tree_read(&t), 0);
    assert_int_equal(tree_mark_attempt(&t, "other", &right, 1), 1);
    tree_done(&t);
    assert_int_equal(tree_read(&t), 0);
    assert_true(tree_mark_descendants(&t, getpid()) >= 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    tree_done(&t);
}

/* --- the program --- */

extern char **environ;

/* Starts the runner on a spec in the folder; returns our end of the channel. */
static int start_runner(const struct runner_spec *s)
{
    struct strbuf text = {0};
    char path[128], log[128];
    runner_spec_write(s, &text);
    (void)snprintf(path, sizeof path, "%s/spec", folder);
    (void)snprintf(log, sizeof log, "%s/runner.log", folder);
    assert_int_equal(file_write_atomic(path, text.data, text.len, 0600, FILE_SYNC_NO, NULL), 0);
    strbuf_done(&text);
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    int channel = fcntl(fds[1], F_DUPFD_CLOEXEC, 10);
    close(fds[1]);
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, channel, RUNNER_CHANNEL_FD);
    (void)posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    char *argv[] = {(char *)"remuda-runner", folder, NULL};
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, RUNNER, &actions, NULL, argv, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    close(channel);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid); /* the first process goes at once */
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return fds[0];
}

/* Reads until `word` has come (NULL: until the end). */
static void hear(int fd, struct strbuf *said, const char *word)
{
    while (word == NULL || strstr(strbuf_str(said), word) == NULL) {
        char buffer[1024];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 20000) != 1)
            fail_msg("nothing was heard; so far: %s", strbuf_str(said));
        ssize_t n = read(fd, buffer, sizeof buffer);
        if (n <= 0 && word == NULL)
            return;
        if (n <= 0)
            fail_msg("the end before '%s'; so far: %s", word, strbuf_str(said));
        strbuf_add(said, buffer, (size_t)n);
    }
}

static void one_bad_worker_fails_the_gang(void **state)
{
    (void)state;
    struct cgroup_plan plan;
    assert_int_equal(cgroup_probe("v2", folder, &plan, NULL), 0);
    if (plan.role[CGROUP_TRACK].version == CGROUP_NONE) {
        print_message("SKIPPED: needs a cgroup v2 hierarchy\n");
        skip();
    }
    /* Called a v1 place for memory limits, which it is not: the second worker, which has a limit, can't be given it. */
    plan.role[CGROUP_TRACK].version = CGROUP_V1;
    plan.role[CGROUP_CPU].version = CGROUP_NONE;
    plan.role[CGROUP_MEMORY] = plan.role[CGROUP_TRACK];
    struct strbuf places = {0}, said = {0};
    cgroup_plan_write(&plan, &places);
    struct runner_spec s = sample();
    s.cgroup = places.data;
    s.argv = sleep_argv;
    s.argv_len = 2;
    int fd = start_runner(&s);
    hear(fd, &said, NULL);
    assert_null(strstr(said.data, "\nstarted "));
    const char *first = strstr(said.data, "exit rank=0 "), *second = strstr(said.data, "exit rank=3 ");
    assert_true(first != NULL && second != NULL);
    assert_non_null(strstr(first, "cause=launch_failed"));
    if (strstr(first, "detail=another worker of the job could not be started\n") == NULL)
        fail_msg("%s", said.data);
    assert_non_null(strstr(second, "memory.limit_in_bytes can't be set"));
    close(fd);
    clock_sleep_ms(50);
    cgroup_release(&plan);
    strbuf_done(&places);
    strbuf_done(&said);
}

static int connect_socket(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%.40s/ctl.sock", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&addr, sizeof addr), 0);
    return fd;
}

static void the_control_socket_tells_and_obeys(void **state)
{
    (void)state;
    struct runner_spec s = sample();
    s.argv = sleep_argv;
    s.argv_len = 2;
    struct strbuf first = {0}, second = {0};
    int channel = start_runner(&s);
    hear(channel, &first, "started ");
    int fd = connect_socket();
    hear(fd, &second, "started "); /* all that is known so far */
    assert_int_equal(strncmp(second.data, "hello 1\n", 8), 0);
    assert_int_equal(send(fd, "dance\nterm x\nterm -1\nsignal 0\n", 30, 0), 30);
    hear(fd, &second, "error 'signal 0'");
    assert_non_null(strstr(second.data, "error 'dance'"));
    assert_null(strstr(second.data, "exit"));
    close(channel); /* the daemon goes: nothing ends */
    int again = connect_socket();
    assert_int_equal(send(again, "te", 2, 0), 2);
    clock_sleep_ms(20);
    assert_int_equal(send(again, "rm 0\n", 5, 0), 5); /* a command in two parts */
    hear(fd, &second, NULL);
    assert_non_null(strstr(second.data, "exit rank=0 code=-1 signal=9"));
    assert_non_null(strstr(second.data, "exit rank=3 code=-1 signal=9"));
    close(fd);
    close(again);
    strbuf_done(&first);
    strbuf_done(&second);
}

static void sigterm_to_the_runner_stops_its_job(void **state)
{
    (void)state;
    struct runner_spec s = sample();
    s.argv = sleep_argv;
    s.argv_len = 2;
    s.workers_len = 1;
    struct strbuf said = {0};
    int fd = start_runner(&s);
    hear(fd, &said, "started ");
    char path[128];
    CLEANUP_FREE char *text = NULL;
    struct runner_status st;
    (void)snprintf(path, sizeof path, "%s/status", folder);
    assert_int_equal(file_read(path, 4096, &text, NULL, NULL), 0);
    assert_int_equal(runner_status_parse(text, &st, NULL), 0);
    struct process_stat ps;
    assert_int_equal(process_stat_read(st.pid, &ps), 0);
    assert_true(ps.session != getsid(0)); /* a session of its own, */
    assert_true(ps.ppid != getpid());     /* and not our child */
    assert_int_equal(kill(st.pid, SIGTERM), 0);
    hear(fd, &said, NULL);
    assert_non_null(strstr(said.data, "exit rank=0 code=-1 signal=15"));
    runner_status_done(&st);
    close(fd);
    strbuf_done(&said);
}

static void a_second_runner_is_turned_away(void **state)
{
    (void)state;
    struct runner_spec s = sample();
    s.argv = sleep_argv;
    s.argv_len = 2;
    struct strbuf said = {0}, other = {0};
    int fd = start_runner(&s), rival;
    hear(fd, &said, "started ");
    rival = start_runner(&s);
    hear(rival, &other, NULL);
    assert_string_equal(other.data, "busy\n");
    assert_int_equal(send(fd, "term 0\n", 7, 0), 7);
    hear(fd, &said, NULL);
    close(fd);
    close(rival);
    strbuf_done(&said);
    strbuf_done(&other);
}

#define RUNNER_TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUNNER_TEST(a_spec_is_read_as_it_was_written),   RUNNER_TEST(a_status_is_read_as_it_was_written),
        RUNNER_TEST(a_line_of_an_exit_stays_one_line),   RUNNER_TEST(the_runner_has_the_last_word_on_its_variables),
        RUNNER_TEST(output_keeps_nothing_when_told_so),  RUNNER_TEST(places_of_cgroups_are_checked),
        RUNNER_TEST(strangers_are_not_marked),           RUNNER_TEST(one_bad_worker_fails_the_gang),
        RUNNER_TEST(the_control_socket_tells_and_obeys), RUNNER_TEST(sigterm_to_the_runner_stops_its_job),
        RUNNER_TEST(a_second_runner_is_turned_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
