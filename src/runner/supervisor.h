/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of an attempt: the state of each worker, driven by a table of state x event (supervisor.c), over one
 * epoll loop (loop.c) and the control connections (channel.c). One thread, one instance per process. The working
 * directory is the attempt's folder, so that names of files and of the socket stay short.
 */
#ifndef REMUDA_RUNNER_SUPERVISOR_H
#define REMUDA_RUNNER_SUPERVISOR_H

#include "base/strbuf.h"
#include "runner/cgroup.h"
#include "runner/environment.h"
#include "runner/output.h"
#include "runner/record.h"
#include "runner/spec.h"
#include "runner/worker.h"

#define CHANNELS_MAX 16

enum worker_state {
    WORKER_NEW,       /* not forked */
    WORKER_LAUNCHING, /* forked, the exec not confirmed */
    WORKER_RUNNING,
    WORKER_LINGERING, /* its main process ended while the attempt is being stopped: the rest has until the grace ends */
    WORKER_SWEEPING,  /* its main process ended: the rest is being killed */
    WORKER_DONE,      /* no process left, the record made */
    WORKER_STATES,
};

enum worker_event {
    EVENT_FORKED,
    EVENT_EXECED,
    EVENT_ENDED, /* the main process is reaped, or could not be started */
    EVENT_STOP,  /* SIGTERM is due */
    EVENT_KILL,  /* SIGKILL is due */
    EVENT_EMPTY, /* no process left */
    WORKER_EVENTS,
};

/* One of the two pipes of a worker. */
struct stream {
    int fd; /* -1: ended */
    struct output out;
};

struct worker {
    const struct runner_worker *spec;
    enum worker_state state;
    pid_t pid; /* 0: never forked */
    uint64_t start_ticks;
    int exec_pipe; /* -1: read to its end */
    bool execed;
    bool oom; /* some process of it hit the memory limit */
    int oom_fd;
    struct stream streams[2]; /* standard output, standard error */
    struct runner_exit exit;
};

/* A control connection; channels[0] is the inherited one. */
struct channel {
    int fd; /* -1: free */
    char in[256];
    size_t in_len;
    struct strbuf out;
};

struct supervisor {
    struct runner_spec spec;
    struct cgroup_plan plan;
    struct identity identity;
    struct rlimit open_files; /* as it was at the start, for the workers */
    char name[64];            /* JOB.ATTEMPT */
    char *script;             /* absolute path; owned; NULL without one */
    uint32_t master_port;
    char state[16]; /* as in the status file */
    char note[RUNNER_DETAIL_SIZE];
    int64_t started_ms; /* wall clock; 0: not all run yet */
    bool launch_failed;
    bool stopping;
    bool killing;
    int64_t kill_at_ms;         /* monotonic; when stopping */
    int64_t oom_check_until_ms; /* monotonic; 0: nothing to look at */
    struct worker *workers;
    size_t workers_len;
    size_t done;               /* workers in WORKER_DONE */
    struct strbuf exits_ready; /* lines to be written and announced together */
    struct strbuf exits_told;  /* all lines announced so far, for new connections */
    int exit_fd;               /* of the exit file */
    bool exit_named;           /* its name is on disk */
    int epoll_fd;
    int signal_fd;
    int listen_fd;
    struct channel channels[CHANNELS_MAX];
};

/* supervisor.c */
/* Starts all workers. What fails becomes their exit record. */
void supervisor_launch(struct supervisor *s);
void supervisor_event(struct supervisor *s, struct worker *w, enum worker_event event);
/* SIGTERM now and SIGKILL after grace_ms; again: the earlier end counts. */
void supervisor_stop(struct supervisor *s, int64_t grace_ms);
void supervisor_signal(struct supervisor *s, int signal);
/* Reaps everything that ended. */
void supervisor_reap(struct supervisor *s);
/* What an exec pipe says; `w->exec_pipe` is readable. */
void supervisor_exec_result(struct supervisor *s, struct worker *w);
/* What is due by now; returns the milliseconds until the next time, -1: nothing is. */
int supervisor_tick(struct supervisor *s);
/* Writes, syncs and announces what became ready. 0 or -errno. */
int supervisor_flush(struct supervisor *s);
int supervisor_write_status(struct supervisor *s, const char *state, bool durable, struct err *e);
void supervisor_done(struct supervisor *s);

/* loop.c */
enum source {
    SOURCE_SIGNAL,
    SOURCE_LISTEN,
    SOURCE_CHANNEL,
    SOURCE_EXEC,
    SOURCE_OUTPUT,
    SOURCE_ERROR,
    SOURCE_OOM,
};
int loop_open(struct supervisor *s, struct err *e);
int loop_watch(struct supervisor *s, int fd, enum source source, size_t index, bool write_too);
void loop_rewatch(struct supervisor *s, int fd, enum source source, size_t index, bool write_too);
/* Runs until all workers are done and told. */
void loop_run(struct supervisor *s);
/* Reads what a stream has now; `all` true: to its end, since no writer is left. */
void loop_drain(struct stream *stream, bool all);

/* channel.c */
int channel_listen(struct supervisor *s, struct err *e);
void channel_accept(struct supervisor *s);
/* Takes over `fd` and tells it all that is known. */
void channel_add(struct supervisor *s, int fd);
void channel_ready(struct supervisor *s, struct channel *c, bool readable, bool writable);
/* Sends text to all. */
void channel_tell(struct supervisor *s, const char *text, size_t len);
/* Gives each connection at most `ms` to take what is queued, and closes. */
void channel_close_all(struct supervisor *s, int64_t ms);

#endif
