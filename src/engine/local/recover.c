/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a restart: what runs, what ended meanwhile, what nobody asked for. STATE/run holds an empty file JOB.ATTEMPT
 * for each attempt that was started and not yet forgotten, so that this costs what runs and not what ever ran.
 *
 * An attempt whose spec lies there without a sign of life (no lock held, no status) was decided and never ran; or its
 * runner is just being started by a process of the daemon's earlier life. A file "void", written while holding the
 * lock, keeps such a late runner from starting; a new launch takes it away again.
 */
#include "engine/local/local.h"

#include "abi/runner.h"
#include "base/mem.h"
#include "base/sys/file.h"
#include "runner/spec.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_ranks(struct local *l, struct attempt *a, const struct runner_spec *s)
{
    (void)l;
    if (s->job != a->job || s->attempt != a->attempt)
        return false;
    for (size_t i = 0; i < s->workers_len; i++)
        a->ranks[i] = s->workers[i].rank;
    return true;
}

/* True when the attempt has had no life and will have none before it is launched again. */
static bool make_void(const struct attempt *a)
{
    char path[PATH_MAX];
    int lock = -1;
    attempt_path(a, RUNNER_FILE_LOCK, path);
    if (lock_file_take(path, &lock, NULL) < 0)
        return false;
    attempt_path(a, RUNNER_FILE_STATUS, path);
    bool dead = access(path, F_OK) < 0;
    attempt_path(a, RUNNER_FILE_VOID, path);
    dead = dead && file_write_atomic(path, "", 0, 0600, FILE_SYNC_NO, NULL) == 0;
    close(lock);
    return dead;
}

struct attempt *recover_attempt(struct local *l, uint64_t job, uint32_t attempt)
{
    char path[PATH_MAX];
    CLEANUP_FREE char *text = NULL;
    size_t len = 0;
    (void)snprintf(path, sizeof path, "%s/jobs/%" PRIu64 "/%" PRIu32 "/" RUNNER_FILE_SPEC, l->state_dir, job, attempt);
    struct runner_spec s;
    if (file_read(path, RUNNER_SPEC_BYTES, &text, &len, NULL) < 0 || runner_spec_parse(text, len, &s, NULL) < 0)
        return NULL;
    struct attempt *a = local_add(l, job, attempt, (uint32_t)s.workers_len);
    if (a != NULL && !read_ranks(l, a, &s)) {
        local_drop(l, a);
        a = NULL;
    }
    runner_spec_done(&s);
    if (a == NULL || attempt_resume(l, a))
        return a;
    if (!make_void(a) && attempt_resume(l, a)) /* it came to life in between */
        return a;
    local_drop(l, a);
    return NULL;
}

void recover_tidy(struct local *l, struct attempt *a)
{
    static const char *const files[] = {RUNNER_FILE_SPEC,   RUNNER_FILE_SCRIPT, RUNNER_FILE_STATUS,
                                        RUNNER_FILE_SOCKET, RUNNER_FILE_LOCK,   RUNNER_FILE_VOID};
    char path[PATH_MAX];
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
        attempt_path(a, files[i], path);
        (void)unlink(path);
    }
    attempt_path(a, RUNNER_FILE_LOG, path);
    CLEANUP_FREE char *text = NULL;
    size_t len = 1;
    if (file_read(path, 1, &text, &len, NULL) == 0 && len == 0)
        (void)unlink(path); /* nothing was said */
    (void)snprintf(path, sizeof path, "%s/run/%" PRIu64 ".%" PRIu32, l->state_dir, a->job, a->attempt);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%" PRIu64 ".%" PRIu32, a->job, a->attempt);
    (void)cgroup_remove(&l->plan, path);
}

static void end_stray(struct local *l, struct attempt *a)
{
    a->stray = true;
    if (a->phase == PHASE_ENDED) {
        recover_tidy(l, a);
        local_drop(l, a);
        return;
    }
    a->reconciling = true; /* what it holds must be free before anything is scheduled */
    attempt_terminate(a, 0);
}

static void end_stray_named(struct local *l, const char *name)
{
    char *end;
    errno = 0;
    unsigned long long job = strtoull(name, &end, 10);
    if (errno != 0 || *end != '.' || job == 0)
        return;
    unsigned long attempt = strtoul(end + 1, &end, 10);
    if (errno != 0 || *end != '\0' || attempt == 0 || attempt > UINT32_MAX)
        return;
    if (local_find(l, job, (uint32_t)attempt) != NULL)
        return;
    struct attempt *a = recover_attempt(l, job, (uint32_t)attempt);
    if (a != NULL) {
        end_stray(l, a);
        return;
    }
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/run/%s", l->state_dir, name);
    (void)unlink(path);
}

void recover_strays(struct local *l)
{
    for (struct attempt *a = l->all, *next; a != NULL; a = next) {
        next = a->next;
        if (!a->expected && !a->stray)
            end_stray(l, a);
    }
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/run", l->state_dir);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            end_stray_named(l, entry->d_name);
    closedir(dir);
}
