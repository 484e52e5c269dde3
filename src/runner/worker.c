/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between fork and exec the child does one thing after the other and says through a pipe which of them failed; the
 * pipe closes by itself at the exec. The order matters: the cgroups first, so that nothing is ever outside of them;
 * the user before the folder, so that a folder is entered with the user's rights only; the parent's death signal
 * after the user, since changing it takes the signal away.
 *
 * Limits are only ever lowered or left: the daemon may itself live under limits that even root can't raise.
 */
#include "runner/worker.h"

#include "abi/runner.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUPS_MAX   65536
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

enum launch_step { STEP_CGROUP, STEP_SESSION, STEP_DESCRIPTORS, STEP_USER, STEP_PARENT, STEP_FOLDER, STEP_EXEC };

static int find_groups(const struct passwd *pw, gid_t gid, struct identity *id)
{
    int len = 64;
    for (;;) {
        id->groups = mem_alloc((size_t)len, sizeof *id->groups);
        if (id->groups == NULL)
            return -ENOMEM;
        int had = len;
        if (getgrouplist(pw->pw_name, gid, id->groups, &len) >= 0) {
            id->groups_len = (size_t)len;
            return 0;
        }
        mem_free(id->groups);
        id->groups = NULL;
        if (len <= had)
            len = had * 2;
        if (len > GROUPS_MAX)
            return -E2BIG;
    }
}

int identity_find(uint32_t uid, uint32_t gid, struct identity *ret, struct err *e)
{
    struct identity id = {.uid = uid, .gid = gid};
    if (uid == UINT32_MAX || gid == UINT32_MAX)
        return err_set(e, -EINVAL, "uid %u, gid %u: not a user; allowed are ids below %u", uid, gid, UINT32_MAX);
    if (geteuid() != 0) {
        if (uid != geteuid())
            return err_set(e, -EPERM, "uid %u: a daemon of uid %u starts jobs of its own user only", uid, geteuid());
        *ret = id;
        return 0;
    }
    const struct passwd *pw = getpwuid(uid);
    int r = 0;
    if (pw != NULL) {
        r = find_groups(pw, gid, &id);
    } else if ((id.groups = mem_alloc(1, sizeof *id.groups)) != NULL) { /* no account: the one group */
        id.groups[0] = gid;
        id.groups_len = 1;
    } else {
        r = -ENOMEM;
    }
    if (r < 0)
        return err_set(e, r, "uid %u: its groups can't be found: %s", uid, strerror(-r));
    *ret = id;
    return 0;
}

void identity_done(struct identity *id)
{
    mem_free(id->groups);
    *id = (struct identity){0};
}

static int open_descriptors(const struct launch *l)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(l->stdout_fd, STDOUT_FILENO) < 0 ||
        dup2(l->stderr_fd, STDERR_FILENO) < 0)
        return -errno;
    /* Whatever else is open goes at the exec. */
    if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return 0;
    long max = sysconf(_SC_OPEN_MAX); /* before Linux 5.11 */
    for (int fd = 3; fd < max; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

static int become(const struct identity *id)
{
    if (id->groups == NULL)
        return 0;
    if (setgroups(id->groups_len, id->groups) < 0 || setresgid(id->gid, id->gid, id->gid) < 0 ||
        setresuid(id->uid, id->uid, id->uid) < 0)
        return -errno;
    return 0;
}

static void reset_signals(void)
{
    /* The kernel's own call, for libc keeps two signals to itself that posix_spawn left ignored. All zero: default. */
    unsigned long normal[8] = {0};
    for (int s = 1; s < NSIG; s++)
        (void)syscall(SYS_rt_sigaction, s, normal, NULL, (size_t)(NSIG - 1) / 8); /* no for SIGKILL, SIGSTOP */
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* As execvp does it, but with the PATH of the job, and a text without a first line #! is not given to a shell. */
static int execute(char *const *argv, char *const *env)
{
    if (strchr(argv[0], '/') != NULL) {
        (void)execve(argv[0], argv, env);
        return errno;
    }
    const char *path = DEFAULT_PATH;
    for (char *const *v = env; *v != NULL; v++)
        if (strncmp(*v, "PATH=", 5) == 0)
            path = *v + 5;
    int code = ENOENT;
    for (const char *p = path;; p++) {
        char file[PATH_MAX];
        size_t len = strcspn(p, ":");
        int n = snprintf(file, sizeof file, "%.*s%s%s", (int)len, p, len > 0 ? "/" : "./", argv[0]);
        if (n > 0 && (size_t)n < sizeof file) {
            (void)execve(file, argv, env);
            if (errno != ENOENT && errno != ENOTDIR && (errno != EACCES || code == ENOENT))
                code = errno;
            if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
                return code;
        }
        p += len;
        if (*p == '\0')
            return code;
    }
}

static int execute_launch(const struct launch *l)
{
    if (l->script == NULL)
        return execute(l->spec->argv, l->env);
    bool shebang = strncmp(l->spec->script, "#!", 2) == 0;
    char **argv = mem_alloc(l->spec->argv_len + 3, sizeof *argv);
    if (argv == NULL)
        return ENOMEM;
    size_t n = 0;
    if (!shebang)
        argv[n++] = (char *)"/bin/sh";
    argv[n++] = (char *)l->script;
    for (size_t i = 0; i < l->spec->argv_len; i++)
        argv[n++] = l->spec->argv[i];
    int code = execute(argv, l->env);
    mem_free(argv);
    return code;
}

static int child_steps(const struct launch *l, pid_t runner, int *step)
{
    int r;
    *step = STEP_CGROUP;
    if ((r = cgroup_enter(l->cgroup_fds)) < 0)
        return r;
    *step = STEP_SESSION;
    if (setsid() < 0)
        return -errno;
    *step = STEP_DESCRIPTORS;
    if ((r = open_descriptors(l)) < 0)
        return r;
    if (l->open_files != NULL && setrlimit(RLIMIT_NOFILE, l->open_files) < 0)
        return -errno;
    *step = STEP_USER;
    if ((r = become(l->identity)) < 0)
        return r;
    *step = STEP_PARENT;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    if (getppid() != runner) /* it died before the line above */
        return -ESRCH;
    *step = STEP_FOLDER;
    if (chdir(l->spec->cwd) < 0)
        return -errno;
    (void)umask((mode_t)l->spec->umask);
    reset_signals();
    *step = STEP_EXEC;
    return -execute_launch(l);
}

pid_t worker_fork(const struct launch *l, int *ret_pipe, struct err *e)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        int code = -errno;
        return err_set(e, code, "pipe: %s", strerror(-code));
    }
    pid_t runner = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        struct launch_failure f = {0};
        f.code = -child_steps(l, runner, &f.step);
        ssize_t n = write(fds[1], &f, sizeof f); /* atomic: far below PIPE_BUF */
        _exit(n == (ssize_t)sizeof f ? 127 : 126);
    }
    int code = -errno;
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return err_set(e, code, "fork: %s", strerror(-code));
    }
    *ret_pipe = fds[0];
    return pid;
}

static void explain_exec(const struct launch *l, int code, struct runner_exit *x)
{
    const char *what = l->script != NULL ? l->script : l->spec->argv[0];
    x->code = code == ENOENT || code == ENOTDIR ? 127 : 126;
    int shebang = l->script == NULL ? 0 : (int)strcspn(l->spec->script, "\n");
    if (l->script != NULL && code == ENOENT)
        (void)snprintf(x->detail, sizeof x->detail, "the script's interpreter was not found: %.*s",
                       shebang < 100 ? shebang : 100, l->spec->script);
    else if (l->script != NULL && code == EACCES)
        (void)snprintf(x->detail, sizeof x->detail,
                       "%.120s: permission denied (uid %u needs to reach the daemon's state folder)", what,
                       l->identity->uid);
    else if (code == ENOENT && strchr(what, '/') != NULL && access(what, F_OK) == 0)
        (void)snprintf(x->detail, sizeof x->detail, "%.120s: its interpreter was not found", what);
    else if (code == ENOENT)
        (void)snprintf(x->detail, sizeof x->detail, "%.120s: command not found", what);
    else if (code == ENOEXEC)
        (void)snprintf(x->detail, sizeof x->detail, "%.120s: not a program this machine can run, and no #! line", what);
    else
        (void)snprintf(x->detail, sizeof x->detail, "%.120s: can't be executed: %s", what, strerror(code));
}

void worker_explain(const struct launch *l, const struct launch_failure *f, struct runner_exit *x)
{
    static const char *const steps[] = {"cgroup", "new session", "standard input and output", "user", "parent"};
    x->cause = RUNNER_LAUNCH_FAILED;
    x->code = -1;
    x->signal = 0;
    if (f->step == STEP_EXEC)
        explain_exec(l, f->code, x);
    else if (f->step == STEP_FOLDER)
        (void)snprintf(x->detail, sizeof x->detail, "working directory %.150s: %s", l->spec->cwd, strerror(f->code));
    else if (f->step == STEP_USER)
        (void)snprintf(x->detail, sizeof x->detail, "becoming uid %u: %s", l->identity->uid, strerror(f->code));
    else if (f->step >= 0 && f->step < STEP_FOLDER)
        (void)snprintf(x->detail, sizeof x->detail, "%s: %s", steps[f->step], strerror(f->code));
    else
        (void)snprintf(x->detail, sizeof x->detail, "the start failed in an unknown way");
}
