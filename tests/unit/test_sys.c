/* SPDX-License-Identifier: Apache-2.0 */
/* base/sys: clocks, log, files, processes. */
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/log.h"
#include "base/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/remuda-test-sys-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return dir_remove_tree(folder, NULL);
}

static const char *in(const char *name)
{
    static char path[2][256];
    static int turn;
    turn ^= 1;
    (void)snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void clocks_move_forward(void **state)
{
    (void)state;
    int64_t mono = clock_mono_ns(), wall = clock_wall_ms();
    clock_sleep_ms(20);
    assert_true(clock_mono_ns() - mono >= 20 * 1000000);
    assert_true(clock_wall_ms() - wall >= 19);
    assert_true(wall > 1700000000000); /* after 2023 */
}

static void a_file_is_replaced_whole(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(file_write_atomic(in("a"), "one", 3, 0600, FILE_SYNC_ALL, &e), 0);
    assert_int_equal(file_write_atomic(in("a"), "three", 5, 0640, FILE_SYNC_DATA, &e), 0);
    CLEANUP_FREE char *text = NULL;
    size_t len = 0;
    assert_int_equal(file_read(in("a"), 5, &text, &len, &e), 0);
    assert_int_equal(len, 5);
    assert_string_equal(text, "three");
    struct stat st;
    assert_int_equal(stat(in("a"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(access(in("a.tmp"), F_OK), -1);
}

static void a_read_has_a_limit_and_names_the_path(void **state)
{
    (void)state;
    struct err e = {0};
    char *text = NULL;
    assert_int_equal(file_write_atomic(in("long"), "123456", 6, 0600, FILE_SYNC_NO, &e), 0);
    assert_int_equal(file_read(in("long"), 5, &text, NULL, &e), -EFBIG);
    assert_non_null(strstr(e.text, "long"));
    assert_int_equal(file_read(in("absent"), 5, &text, NULL, &e), -ENOENT);
    assert_non_null(strstr(e.text, "absent"));
    assert_null(text);
    assert_int_equal(file_write_atomic(in("no/such/folder"), "x", 1, 0600, FILE_SYNC_NO, &e), -ENOENT);
}

static void folders_are_made_and_removed(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(dir_make(in("x/y//z/"), 0755, &e), 0);
    assert_int_equal(dir_make(in("x/y/z"), 0755, &e), 0);
    assert_int_equal(file_write_atomic(in("x/y/z/f"), "", 0, 0600, FILE_SYNC_NO, &e), 0);
    assert_int_equal(dir_make(in("x/y/z/f"), 0755, &e), -ENOTDIR);
    assert_int_equal(symlink("/etc", in("x/link")), 0);
    assert_int_equal(dir_remove_tree(in("x"), &e), 0);
    assert_int_equal(access(in("x"), F_OK), -1);
    assert_int_equal(access("/etc/passwd", F_OK), 0); /* the link was not followed */
    assert_int_equal(dir_remove_tree(in("x"), &e), 0);
    assert_int_equal(dir_make("", 0755, &e), -EINVAL);
}

static void a_lock_ends_with_its_holder(void **state)
{
    (void)state;
    struct err e = {0};
    int fd = -1, other = -1;
    assert_false(lock_file_held(in("lock")));
    pid_t child = fork();
    if (child == 0) {
        int mine = -1;
        if (lock_file_take(in("lock"), &mine, NULL) == 0)
            pause();
        _exit(1);
    }
    while (!lock_file_held(in("lock")))
        clock_sleep_ms(1);
    assert_int_equal(lock_file_take(in("lock"), &other, &e), -EWOULDBLOCK);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(lock_file_held(in("lock")));
    assert_int_equal(lock_file_take(in("lock"), &fd, &e), 0);
    assert_true(lock_file_held(in("lock")));
    close(fd);
}

static void log_lines_are_logfmt(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(log_open("unit", LOG_LEVEL_INFO, in("log"), &e), 0);
    log_debug("hidden", NULL);
    log_info("two \"words\"\n", "job=%d", 7);
    assert_int_equal(rename(in("log"), in("log.1")), 0);
    assert_int_equal(log_reopen(), 0);
    char big[4000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    log_error("long", "text=%s", big);
    log_close();
    CLEANUP_FREE char *first = NULL, *second = NULL;
    size_t len = 0;
    assert_int_equal(file_read(in("log.1"), 4096, &first, NULL, &e), 0);
    assert_non_null(strstr(first, " level=info program=unit msg=\"two \\\"words\\\"\\n\" job=7\n"));
    assert_null(strstr(first, "hidden"));
    assert_int_equal(file_read(in("log"), 4096, &second, &len, &e), 0);
    assert_int_equal(second[len - 1], '\n');
    assert_ptr_equal(strchr(second, '\n'), second + len - 1); /* cut, still one line */
    enum log_level level;
    assert_int_equal(log_parse_level("warn", &level, &e), 0);
    assert_int_equal(level, LOG_LEVEL_WARN);
    assert_int_equal(log_parse_level("loud", &level, &e), -EINVAL);
}

static void a_full_log_drops_lines_and_says_so(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) < 0)
        skip();
    assert_int_equal(symlink("/dev/full", in("full")), 0);
    assert_int_equal(log_open("unit", LOG_LEVEL_INFO, in("full"), NULL), 0);
    log_info("lost", NULL);
    log_info("lost", NULL);
    assert_int_equal(unlink(in("full")), 0);
    assert_int_equal(log_reopen(), 0);
    log_info("kept", NULL);
    log_close();
    CLEANUP_FREE char *text = NULL;
    assert_int_equal(file_read(in("full"), 4096, &text, NULL, NULL), 0);
    assert_non_null(strstr(text, "msg=\"kept\" log_lines_dropped=2\n"));
}

static void a_process_is_its_pid_and_start_time(void **state)
{
    (void)state;
    struct process_stat st;
    assert_int_equal(process_stat_read(getpid(), &st), 0);
    assert_int_equal(st.ppid, getppid());
    assert_int_equal(st.session, getsid(0));
    assert_true(process_alive(getpid(), st.start_ticks));
    assert_false(process_alive(getpid(), st.start_ticks + 1));
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    uint64_t start = 0;
    assert_int_equal(process_start_ticks(child, &start), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_false(process_alive(child, start)); /* a zombie is over */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(process_start_ticks(child, &start), -ESRCH);
    char boot[40];
    process_boot_id(boot);
    assert_int_equal(strlen(boot), 36);
}

static void the_host_is_described(void **state)
{
    (void)state;
    assert_true(host_cpu_milli() >= 1000);
    assert_true(host_mem_mib() > 100);
    char name[64];
    host_name(name, sizeof name);
    assert_true(name[0] != '\0');
    CLEANUP_FREE char *self = NULL, *sibling = NULL;
    struct err e = {0};
    assert_int_equal(process_self_path(&self, &e), 0);
    assert_non_null(strstr(self, "test_sys"));
    assert_int_equal(process_sibling_path("other", &sibling, &e), 0);
    assert_string_equal(strrchr(sibling, '/'), "/other");
    assert_int_equal(strncmp(self, sibling, (size_t)(strrchr(sibling, '/') - sibling)), 0);
    char path[PATH_MAX];
    assert_int_equal(process_cgroup("no-such-controller", path, sizeof path), -ENOENT);
}

static void the_nth_failing_allocation_is_reported(void **state)
{
    (void)state;
    assert_int_equal(file_write_atomic(in("n"), "content", 7, 0600, FILE_SYNC_NO, NULL), 0);
    struct err e = {0};
    for (uint64_t n = 1;; n++) {
        char *text = NULL, *self = NULL;
        mem_fail_from(n);
        int r = file_read(in("n"), 100, &text, NULL, &e);
        if (r == 0)
            r = process_sibling_path("x", &self, &e);
        mem_fail_from(0);
        mem_free(text);
        mem_free(self);
        if (r == 0)
            break;
        assert_int_equal(r, -ENOMEM);
        assert_true(n < 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_move_forward),
        cmocka_unit_test(a_file_is_replaced_whole),
        cmocka_unit_test(a_read_has_a_limit_and_names_the_path),
        cmocka_unit_test(folders_are_made_and_removed),
        cmocka_unit_test(a_lock_ends_with_its_holder),
        cmocka_unit_test(log_lines_are_logfmt),
        cmocka_unit_test(a_full_log_drops_lines_and_says_so),
        cmocka_unit_test(a_process_is_its_pid_and_start_time),
        cmocka_unit_test(the_host_is_described),
        cmocka_unit_test(the_nth_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
