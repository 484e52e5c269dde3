/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the local engine, shared by its files only. local.c has the essay. */
#ifndef REMUDA_ENGINE_LOCAL_LOCAL_H
#define REMUDA_ENGINE_LOCAL_LOCAL_H

#include "base/idmap.h"
#include "base/strbuf.h"
#include "engine/engine.h"
#include "engine/local/cards.h"
#include "runner/cgroup.h"
#include "runner/record.h"

#include <limits.h>
#include <sys/types.h>
#include <uv.h>

enum phase {
    PHASE_CONNECTING, /* a runner holds the lock; its socket is being reached (busy list) */
    PHASE_ALIVE,      /* a channel to its runner is open */
    PHASE_CHECKING,   /* the channel ended before all exits were told (busy list) */
    PHASE_KILLING,    /* no runner any more: its processes are being killed (busy list) */
    PHASE_ENDED,      /* all exits are told */
};

/* The poll handle and the descriptor of a channel; outlives the attempt until libuv lets go of it. */
struct link {
    uv_poll_t poll;
    struct attempt *attempt; /* NULL once let go */
    struct local *engine;
    int fd;
    struct strbuf in;
};

struct attempt {
    uint64_t job;
    uint32_t attempt;
    struct attempt *same_job;    /* other attempts of this job */
    struct attempt *prev, *next; /* of all */
    struct attempt *busy_prev, *busy_next;
    bool busy;
    bool expected;    /* named by the reconcile that runs */
    bool reconciling; /* RECONCILED waits for it */
    bool stray;       /* nobody asked for it: killed and dropped, nothing is told */
    bool forgotten;
    enum phase phase;
    struct link *link;
    int64_t deadline_ms; /* monotonic, of PHASE_CONNECTING */
    unsigned rivals;     /* runners of ours that found another one at work */
    int64_t term_ms;     /* grace of a terminate that could not be sent yet; -1: none */
    int64_t started_ms;  /* 0: not yet */
    char note[RUNNER_DETAIL_SIZE];
    const char *lost_why;
    struct runner_status status; /* of PHASE_KILLING */
    struct cgroup_plan plan;     /* of PHASE_KILLING */
    uint32_t *ranks;
    struct runner_exit *exits; /* by index in ranks */
    bool *ended;
    uint32_t workers;
    uint32_t told;
    char dir[]; /* the attempt's folder */
};

/* An event that waits to be told. */
struct message {
    struct engine_event event;
    char detail[RUNNER_DETAIL_SIZE];
    struct message *next;
};

struct local {
    struct engine engine;
    uv_loop_t *loop;
    engine_event_cb *cb;
    void *cb_arg;
    char *state_dir;
    char *runner_path;
    char *simgpu_lib;
    char *plan_text;
    struct cgroup_plan plan;
    char key[16];
    struct cards *cards;
    struct engine_node *node;
    struct idmap jobs; /* job id -> newest attempt */
    struct attempt *all, *busy;
    struct message *first, *last;
    bool reconciled; /* told once */
    bool reconcile_runs;
    pid_t *spawned; /* first processes of runners, to be reaped */
    size_t spawned_len, spawned_cap;
    uv_timer_t tell_timer, busy_timer, telemetry_timer;
    uv_signal_t child_signal;
    unsigned handles; /* that libuv still holds */
    bool closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* local.c */
struct attempt *local_find(const struct local *l, uint64_t job, uint32_t attempt);
/* A new attempt in PHASE_ENDED with `workers` places for ranks; NULL without memory. */
struct attempt *local_add(struct local *l, uint64_t job, uint32_t attempt, uint32_t workers);
void local_drop(struct local *l, struct attempt *a);
void local_set_busy(struct local *l, struct attempt *a, bool busy);
/* Queues what is to be told of an attempt. */
void local_tell_started(struct local *l, struct attempt *a);
void local_tell_exit(struct local *l, struct attempt *a, const struct runner_exit *x);
/* An attempt of a running reconcile is settled. */
void local_settled(struct local *l, struct attempt *a);
void local_handle_closed(struct local *l);

/* attempt.c: one attempt's channel and phases */
void attempt_path(const struct attempt *a, const char *file, char path[PATH_MAX]);
/* Uses `fd` as the channel. */
int attempt_link(struct local *l, struct attempt *a, int fd, struct err *e);
void attempt_unlink(struct attempt *a);
void attempt_send(struct attempt *a, const char *text);
void attempt_terminate(struct attempt *a, int64_t grace_ms);
/* Makes what happened known from disk: alive, ended or lost. False when this attempt has had no life. */
bool attempt_resume(struct local *l, struct attempt *a);
/* Something was not possible: all workers that did not end are reported so. */
void attempt_fail(struct local *l, struct attempt *a, enum runner_cause cause, const char *why);
/* What a busy attempt does next. */
void attempt_step(struct local *l, struct attempt *a);

/* launch.c */
int launch_attempt(struct local *l, const struct engine_launch *launch, struct err *e);
/* Starts a runner once more on the spec that lies there. */
int launch_again(struct local *l, struct attempt *a, struct err *e);
void launch_reap(struct local *l);

/* recover.c */
/* The attempt with the ranks of its spec; NULL when there is none or no memory. */
struct attempt *recover_attempt(struct local *l, uint64_t job, uint32_t attempt);
/* Finds what runs but was not expected, and has it killed. */
void recover_strays(struct local *l);
/* Removes what an ended attempt does not need any more. */
void recover_tidy(struct local *l, struct attempt *a);

#endif
