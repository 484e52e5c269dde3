/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every engine must do, as one test that all engines pass (src/engine/engine.h is the contract). A program for an
 * engine gives a fixture and calls engine_conformance(); the harness below is for its own further tests too.
 */
#ifndef REMUDA_TESTS_ENGINE_CONFORMANCE_H
#define REMUDA_TESTS_ENGINE_CONFORMANCE_H

#include "engine/engine.h"

#include <uv.h>

#define CONFORM_EVENTS_MAX 4096
#define CONFORM_DETAIL     256

/* What a job shall do. */
enum conform_job {
    CONFORM_QUICK,        /* ends by itself with 0 within a second */
    CONFORM_LONG,         /* runs for at least 60 s, ends at SIGTERM */
    CONFORM_FAILS,        /* ends by itself with exit code 3 within a second */
    CONFORM_IGNORES_TERM, /* runs for at least 60 s, only SIGKILL ends it */
};

struct conform_fixture {
    /* Opens the engine, always on the same state. 0 or -errno. */
    int (*open)(uv_loop_t *loop, engine_event_cb *cb, void *arg, struct engine **ret, struct err *e);
    /* Fills in what makes the job do that. The spec is zeroed but for name, user, uid, gid, cwd, workers, request. */
    void (*describe)(enum conform_job what, struct job_spec *spec);
    bool survives_close; /* what runs goes on running while the engine is closed */
    bool keeps_logs;
};

/* An event as it was told, with its own copy of the detail. */
struct conform_event {
    struct engine_event ev;
    char detail[CONFORM_DETAIL];
};

struct conform {
    const struct conform_fixture *fixture;
    uv_loop_t loop;
    struct engine *engine; /* NULL: closed */
    bool closed;
    bool inside; /* a call into the engine is running: no event may come */
    struct conform_event *events;
    size_t events_len;
    struct engine_node node; /* the last one told */
    uint64_t telemetry;      /* samples told */
};

/* Opens the engine; asserts that it works. */
void conform_open(struct conform *c, const struct conform_fixture *f);
/* Closes it and asserts that `closed` comes. Events stay readable until conform_done(). */
void conform_close(struct conform *c);
/* Opens it again after conform_close(), as a daemon that starts again does. */
void conform_reopen(struct conform *c);
void conform_done(struct conform *c);

/* Runs the loop until `until(c, arg)` or for `ms`. Returns whether it came true. */
bool conform_wait(struct conform *c, bool (*until)(struct conform *c, void *arg), void *arg, int64_t ms);
/* The n-th (from 0) event of a kind about an attempt (job 0: any), or NULL. */
const struct conform_event *conform_find(const struct conform *c, enum engine_event_kind kind, uint64_t job,
                                         uint32_t attempt, size_t n);
/* Waits for that event and returns it; fails the test after `ms`. */
const struct conform_event *conform_expect(struct conform *c, enum engine_event_kind kind, uint64_t job,
                                           uint32_t attempt, size_t n, int64_t ms);
void conform_forget_events(struct conform *c);

/* A launch of `workers` workers without cards on the engine's node; `spec` is filled by the caller and borrowed. */
struct conform_launch {
    struct engine_launch launch;
    struct engine_worker workers[16];
    struct job_spec spec;
};
void conform_prepare(struct conform *c, struct conform_launch *l, uint64_t job, uint32_t attempt, uint32_t workers,
                     enum conform_job what);
void conform_start(struct conform *c, const struct conform_launch *l);
void conform_terminate(struct conform *c, uint64_t job, uint32_t attempt, int64_t grace_ms);
/* Reconciles with what is expected and waits for the answer. */
void conform_reconcile(struct conform *c, const struct engine_expected *expected, uint32_t len);

/* The test itself; jobs 1 to 99 are used. A cmocka test function body: asserts. */
void engine_conformance(const struct conform_fixture *f);

#endif
