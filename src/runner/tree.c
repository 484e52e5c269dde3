/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/tree.h"

#include "base/mem.h"
#include "base/units.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "runner/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENVIRON_BYTES_MAX (8u << 20)

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct tree_process *)a)->pid, y = ((const struct tree_process *)b)->pid;
    return x < y ? -1 : x > y;
}

int tree_read(struct tree *t)
{
    *t = (struct tree){0};
    DIR *dir = opendir("/proc");
    if (dir == NULL)
        return -errno;
    int r = 0;
    const struct dirent *entry;
    while (r == 0 && (entry = readdir(dir)) != NULL) {
        int64_t pid = 0;
        struct process_stat st;
        if (units_parse_int(entry->d_name, 1, INT32_MAX, &pid, NULL) < 0 || process_stat_read((pid_t)pid, &st) < 0)
            continue;
        r = mem_grow(&t->all, &t->cap, t->len + 1, sizeof *t->all);
        if (r == 0)
            t->all[t->len++] = (struct tree_process){
                .pid = pid, .ppid = st.ppid, .session = st.session, .start_ticks = st.start_ticks, .state = st.state};
    }
    closedir(dir);
    if (r < 0) {
        tree_done(t);
        return r;
    }
    if (t->len > 0)
        qsort(t->all, t->len, sizeof *t->all, by_pid);
    return 0;
}

void tree_done(struct tree *t)
{
    mem_free(t->all);
    *t = (struct tree){0};
}

static bool ended(const struct tree_process *p)
{
    return p->state == 'Z' || p->state == 'X';
}

static struct tree_process *find(struct tree *t, pid_t pid)
{
    struct tree_process key = {.pid = pid};
    return t->len == 0 ? NULL : bsearch(&key, t->all, t->len, sizeof key, by_pid);
}

/* Spreads the marks to children until nothing changes (pids wrap, so that one pass is not enough). */
static size_t spread(struct tree *t)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < t->len; i++) {
            struct tree_process *p = &t->all[i];
            const struct tree_process *parent = p->mine ? NULL : find(t, p->ppid);
            if (parent != NULL && parent->mine) {
                p->mine = true;
                changed = true;
            }
        }
    }
    size_t living = 0;
    for (size_t i = 0; i < t->len; i++)
        living += t->all[i].mine && !ended(&t->all[i]);
    return living;
}

size_t tree_mark_descendants(struct tree *t, pid_t root)
{
    struct tree_process *top = find(t, root);
    if (top == NULL)
        return 0;
    top->mine = true;
    size_t living = spread(t);
    top->mine = false;
    return living - (ended(top) ? 0 : 1);
}

/* True when the environment that `pid` was started with has the string `entry`. */
static bool has_environment(pid_t pid, const char *entry)
{
    char path[32];
    CLEANUP_FREE char *text = NULL;
    size_t len = 0, want = strlen(entry);
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    if (file_read(path, ENVIRON_BYTES_MAX, &text, &len, NULL) < 0)
        return false;
    for (size_t at = 0; at < len;) {
        size_t n = strlen(text + at);
        if (n == want && memcmp(text + at, entry, n) == 0)
            return true;
        at += n + 1;
    }
    return false;
}

size_t tree_mark_attempt(struct tree *t, const char *tag, const struct runner_process *workers, size_t len)
{
    char entry[128];
    (void)snprintf(entry, sizeof entry, "REMUDA_TAG=%s", tag);
    for (size_t i = 0; i < t->len; i++) {
        struct tree_process *p = &t->all[i];
        for (size_t k = 0; k < len && !p->mine; k++) {
            const struct tree_process *leader = p->session == workers[k].pid ? find(t, p->session) : NULL;
            p->mine = leader != NULL && leader->start_ticks == workers[k].start_ticks;
        }
        if (!p->mine && !ended(p) && p->pid != getpid())
            p->mine = has_environment(p->pid, entry);
    }
    return spread(t);
}

size_t tree_keep_worker(struct tree *t, uint32_t rank, pid_t session)
{
    char entry[32];
    size_t living = 0;
    (void)snprintf(entry, sizeof entry, "REMUDA_RANK=%u", rank);
    for (size_t i = 0; i < t->len; i++) {
        struct tree_process *p = &t->all[i];
        if (p->mine && p->session != session && !has_environment(p->pid, entry))
            p->mine = false;
        living += p->mine && !ended(p);
    }
    return living;
}

int tree_signal(const struct tree *t, int signal)
{
    int count = 0;
    for (size_t i = 0; i < t->len; i++) {
        const struct tree_process *p = &t->all[i];
        if (!p->mine || ended(p))
            continue;
        int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
        uint64_t start;
        if (fd < 0 && errno == ENOSYS) { /* before Linux 5.3: compare and hope */
            if (process_start_ticks(p->pid, &start) == 0 && start == p->start_ticks)
                count += kill(p->pid, signal) == 0;
            continue;
        }
        if (fd < 0)
            continue;
        if (process_start_ticks(p->pid, &start) == 0 && start == p->start_ticks &&
            syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0)
            count++;
        close(fd);
    }
    return count;
}

bool tree_kill_step(uint32_t rank, pid_t session)
{
    static const int signals[] = {SIGSTOP, SIGKILL}; /* stopped first, so that it can't fork away */
    for (unsigned i = 0; i < 2; i++) {
        struct tree t;
        if (tree_read(&t) < 0)
            return false;
        size_t living = tree_mark_descendants(&t, getpid());
        if (rank != CGROUP_ALL)
            living = tree_keep_worker(&t, rank, session);
        if (living > 0)
            (void)tree_signal(&t, signals[i]);
        tree_done(&t);
        if (living == 0)
            return true;
    }
    return false;
}
