/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of jobs: the files of a worker, rotated ones first (PATH.N the oldest, PATH.1, PATH), and
 * with follow=1 what is added until the job has ended.
 *
 * Rotation renames files under our hands. The open file keeps its inode: at its end it is looked
 * for among the names, and the next newer one follows. If it has been deleted meanwhile, the oldest
 * that is left follows.
 *
 * The files belong to the job's user, who may put anything in their place: only a regular file with
 * one name that belongs to the job's user or to the daemon is opened, never a link.
 */
#include "server/state.h"

#include "base/mem.h"
#include "base/sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_SIZE  32768
#define ROTATED_MAX 1000
#define TAIL_CHUNK  65536
#define TAIL_MAX    1000000

struct logs_stream {
    struct server *server;
    struct http_request *request;
    struct logs_stream *next;
    struct logs_stream *prev;
    char path[PATH_MAX]; /* "": there is no file yet */
    uint64_t job;
    uint32_t uid;     /* of the job */
    uint32_t attempt; /* followed */
    uint32_t worker;
    bool stderr_file;
    int fd; /* -1: none open now */
    dev_t dev;
    ino_t ino;
    bool follow;
    bool suspended;
    bool ended; /* the job has ended: what is there is all */
};

static void name_of(const struct logs_stream *l, unsigned index, char out[PATH_MAX + 16])
{
    if (index == 0)
        snprintf(out, PATH_MAX + 16, "%s", l->path);
    else
        snprintf(out, PATH_MAX + 16, "%s.%u", l->path, index);
}

/* Opens file number `index` (0: the current one). The descriptor or -errno. */
static int open_file(const struct logs_stream *l, unsigned index, struct stat *st)
{
    char name[PATH_MAX + 16];
    name_of(l, index, name);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode) || st->st_nlink > 1 ||
        (st->st_uid != l->uid && st->st_uid != geteuid())) {
        close(fd);
        return -EACCES;
    }
    return fd;
}

/* The highest number among the rotated files, 0 when there is none. */
static unsigned oldest(const struct logs_stream *l)
{
    char name[PATH_MAX + 16];
    struct stat st;
    unsigned n = 0;
    while (n < ROTATED_MAX) {
        name_of(l, n + 1, name);
        if (lstat(name, &st) != 0)
            break;
        n++;
    }
    return n;
}

static bool take_file(struct logs_stream *l, unsigned index)
{
    struct stat st;
    int fd = open_file(l, index, &st);
    if (fd < 0)
        return false;
    if (l->fd >= 0)
        close(l->fd);
    l->fd = fd;
    l->dev = st.st_dev;
    l->ino = st.st_ino;
    return true;
}

/* Asks the engine where the output is; false while there is none. */
static bool find_path(struct logs_stream *l)
{
    struct engine *engine = l->server->engine;
    return l->path[0] != '\0' ||
           (engine != NULL && engine->ops->log_path(engine, l->job, l->attempt, l->worker, l->stderr_file, l->path,
                                                    sizeof(l->path)) == 0);
}

/* The open file has been read to its end: opens the next newer one. False when it is the newest. */
static bool next_file(struct logs_stream *l)
{
    char name[PATH_MAX + 16];
    struct stat st;
    if (!find_path(l))
        return false;
    unsigned last = oldest(l);
    if (l->fd < 0)
        return take_file(l, last) || (last > 0 && take_file(l, 0));
    for (unsigned i = 0; i <= last; i++) {
        name_of(l, i, name);
        if (lstat(name, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
            return i > 0 && take_file(l, i - 1);
    }
    return take_file(l, last); /* rotated out of sight while we read it */
}

static bool job_over(const struct logs_stream *l)
{
    uint32_t uid, attempt, workers;
    bool ended = true;
    if (l->server->control == NULL)
        return false;
    return control_job_facts(l->server->control, l->job, &uid, &attempt, &workers, &ended) != 0 || ended ||
           attempt != l->attempt;
}

static ssize_t on_read(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct logs_stream *l = cls;
    (void)pos;
    for (;;) {
        ssize_t n = l->fd < 0 ? 0 : read(l->fd, buf, max);
        if (n > 0)
            return n;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (next_file(l))
            continue;
        if (!l->follow || l->ended || l->server->stopping)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (!job_over(l))
            break;
        l->ended = true; /* look once more: something may have come just before the end */
    }
    l->suspended = true;
    MHD_suspend_connection(l->request->conn);
    return 0;
}

static void on_free(void *cls)
{
    struct logs_stream *l = cls;
    if (l->prev != NULL)
        l->prev->next = l->next;
    else
        l->server->logs = l->next;
    if (l->next != NULL)
        l->next->prev = l->prev;
    if (l->fd >= 0)
        close(l->fd);
    mem_free(l);
}

void logs_poll(struct server *s)
{
    for (struct logs_stream *l = s->logs; l != NULL; l = l->next) {
        struct stat mine;
        struct stat named;
        if (!l->suspended)
            continue;
        bool found = find_path(l);
        bool same = l->fd >= 0 && fstat(l->fd, &mine) == 0 && stat(l->path, &named) == 0 &&
                    mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
        bool grown = same && mine.st_size > lseek(l->fd, 0, SEEK_CUR);
        if (grown || (found && !same && access(l->path, F_OK) == 0) || job_over(l) || s->stopping) {
            l->suspended = false;
            MHD_resume_connection(l->request->conn);
        }
    }
}

void logs_stop(struct server *s)
{
    logs_poll(s);
}

/* --- tail --- */

/* Lines in one file counted from its end; *ret_at is where the wanted ones begin. Returns how many
 * were found. */
static uint64_t tail_of(int fd, uint64_t wanted, bool newest, off_t *ret_at)
{
    CLEANUP_FREE char *chunk = mem_alloc(1, TAIL_CHUNK);
    off_t at = lseek(fd, 0, SEEK_END);
    off_t end = at;
    uint64_t found = 0;
    *ret_at = 0;
    if (chunk == NULL)
        return wanted;
    while (at > 0) {
        off_t from = at > TAIL_CHUNK ? at - TAIL_CHUNK : 0;
        ssize_t n = pread(fd, chunk, (size_t)(at - from), from);
        if (n <= 0)
            break;
        for (ssize_t i = n; i-- > 0;) {
            /* The line feed that ends the last line begins no further one. */
            if (chunk[i] != '\n' || (newest && from + i + 1 == end))
                continue;
            if (++found == wanted) {
                *ret_at = from + i + 1;
                return found;
            }
        }
        at = from;
    }
    return found;
}

/* Opens the file in which the last `lines` lines begin, and goes to that place. */
static void begin_at_tail(struct logs_stream *l, uint64_t lines)
{
    unsigned last = oldest(l);
    for (unsigned i = 0; i <= last && lines > 0; i++) {
        off_t at = 0;
        if (!take_file(l, i))
            return;
        uint64_t found = tail_of(l->fd, lines, i == 0, &at);
        lseek(l->fd, at, SEEK_SET);
        if (found >= lines)
            return;
        lines -= found;
    }
    if (lines == 0 && l->fd < 0 && take_file(l, 0))
        lseek(l->fd, 0, SEEK_END);
}

/* --- the call --- */

struct wish {
    uint64_t worker;
    uint64_t attempt;
    uint64_t tail;
    bool has_tail;
    bool stderr_file;
    bool follow;
};

static bool read_wish(struct http_request *r, struct wish *w)
{
    const char *stream = request_query(r, "stream");
    w->has_tail = request_query(r, "tail") != NULL;
    if (!request_query_number(r, "worker", WORKERS_MAX - 1, &w->worker) ||
        !request_query_number(r, "attempt", UINT32_MAX, &w->attempt) ||
        !request_query_number(r, "tail", TAIL_MAX, &w->tail) || !request_query_flag(r, "follow", &w->follow))
        return false;
    if (stream != NULL && strcmp(stream, "stdout") != 0 && strcmp(stream, "stderr") != 0) {
        request_problem(r, 400, "invalid-field", "stream", "stream: \"%.40s\" is not allowed; stdout or stderr",
                        stream);
        return false;
    }
    w->stderr_file = stream != NULL && strcmp(stream, "stderr") == 0;
    return true;
}

static void answer_empty(struct http_request *r)
{
    r->content_type = "text/plain; charset=utf-8";
    request_answer(r, 200);
}

static void begin(struct server *s, struct http_request *r, const struct wish *w, uint32_t uid, bool ended)
{
    struct logs_stream *l = mem_alloc(1, sizeof(*l));
    struct MHD_Response *response =
        l == NULL ? NULL : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, on_read, l, on_free);
    if (response == NULL) {
        mem_free(l);
        request_problem(r, 503, "out-of-memory", NULL, "the daemon is out of memory");
        return;
    }
    *l = (struct logs_stream){.server = s,
                              .request = r,
                              .job = r->id,
                              .uid = uid,
                              .attempt = (uint32_t)w->attempt,
                              .worker = (uint32_t)w->worker,
                              .stderr_file = w->stderr_file,
                              .fd = -1,
                              .follow = w->follow,
                              .ended = ended,
                              .next = s->logs};
    if (s->logs != NULL)
        s->logs->prev = l;
    s->logs = l;
    if (find_path(l) && w->has_tail)
        begin_at_tail(l, w->tail);
    MHD_add_response_header(response, "Content-Type", "text/plain; charset=utf-8");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    request_stream(r, response);
}

void call_logs(struct server *s, struct http_request *r)
{
    struct wish w = {0};
    uint32_t uid, attempt, workers;
    bool ended;
    if (!read_wish(r, &w))
        return;
    if (control_job_facts(s->control, r->id, &uid, &attempt, &workers, &ended) != 0) {
        request_problem(r, 404, "not-found", NULL, "there is no job %llu", (unsigned long long)r->id);
        return;
    }
    if (!r->who.admin && r->who.uid != uid) {
        request_problem(r, 403, "forbidden", NULL, "the output of job %llu is its owner's", (unsigned long long)r->id);
        return;
    }
    const char *state = control_job_state(s->control, r->id);
    snprintf(r->job_state, sizeof(r->job_state), "%s", state == NULL ? "" : state);
    if (w.worker >= workers || w.attempt > attempt) {
        bool worker = w.worker >= workers;
        request_problem(r, 404, "not-found", worker ? "worker" : "attempt",
                        worker ? "worker: job %llu has workers 0 to %u" : "attempt: job %llu has had %u attempts",
                        (unsigned long long)r->id, worker ? workers - 1 : attempt);
        return;
    }
    if (w.attempt == 0)
        w.attempt = attempt;
    if (attempt == 0 || w.attempt < attempt)
        w.follow = false;
    if (attempt == 0 || s->engine == NULL) {
        answer_empty(r);
        return;
    }
    begin(s, r, &w, uid, ended);
}
