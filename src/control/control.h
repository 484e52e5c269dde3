/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's logic, pure: requests and engine events in; records to store, effects to carry out and JSON answers
 * out. No I/O, no clock, no threads. The shell (src/server, or a test with a simulated engine, store and clock)
 * drives it like this:
 *
 *     control_load() for every stored record            recovery; then
 *     control_expected()                                 what the engine is asked to reconcile
 *     control_engine_*() for its answers, control_reconciled()
 *     then, in each turn of the loop:
 *         control_submit(), control_cancel(), ..., control_engine_*()   inputs become records
 *         control_step(now)                                             a scheduling pass: decisions become records
 *         control_unsaved()                                             -> append all and commit once
 *         control_saved()                                               now, and only now, effects come out:
 *         control_next_effect()                                         launches, terminations, publications, ...
 *
 * Decide, commit, then act: an effect is handed out only after control_saved() for the records that caused it. When
 * a commit fails the shell throws this object away and loads a new one from the store; nothing undecided remains.
 *
 * Answers are written through base/jsonw.h. Every function that takes a `struct caller` checks its rights: one may
 * change one's own jobs; root, the daemon's own user and admin tokens may change everything.
 */
#ifndef REMUDA_CONTROL_CONTROL_H
#define REMUDA_CONTROL_CONTROL_H

#include "base/err.h"
#include "base/jsonw.h"
#include "core/record.h"

struct control;

/* Facts about the daemon that appear in answers. Strings are borrowed for the life of the object. */
struct control_options {
    const char *engine; /* "local" or "simulated" */
    bool simulated;     /* cards are simulated */
    const char *cards;  /* "NVML", "simulated (dgx-a100)": where cards come from */
    const char *version;
    int32_t pid;
    int64_t started_ms;
    uint32_t owner_uid;          /* the daemon's user */
    const struct config *config; /* used until the log holds a REC_CONFIG; copied */
};

struct caller {
    uint32_t uid;
    char user[NAME_SIZE];
    bool admin;
};

struct control *control_new(const struct control_options *o);
void control_free(struct control *c);

/* --- recovery --- */
/* Applies one stored record, in order. Errors name what is wrong with it; the object is then useless. */
int control_load(struct control *c, const struct record *r, struct err *e);

struct control_expected {
    uint64_t job;
    uint32_t attempt;
    const struct job_spec *spec; /* borrowed */
    const struct grant *grants;  /* by rank; borrowed */
    uint32_t workers;
    int64_t started_ms; /* 0: start decided, never confirmed */
    bool stopping;
};
/* The attempts that should run now; an array owned by the caller (mem_free). NULL with *ret_len 0 when none. */
struct control_expected *control_expected(const struct control *c, size_t *ret_len);
/*
 * The engine has answered: attempts it did not report are settled (a start that never reached the engine is
 * launched now, what ran is lost). Before this call control_step() decides nothing.
 */
int control_reconciled(struct control *c, int64_t now_ms);
bool control_is_reconciled(const struct control *c);

/* --- inputs: each makes records; they count once saved. Outputs are untouched on failure. --- */
/* Takes the content of *spec on success. `spec->key`, when set, makes a repeated call return the same id. */
int control_submit(struct control *c, const struct caller *who, int64_t now_ms, struct job_spec *spec, uint64_t *ret_id,
                   struct err *e);
int control_cancel(struct control *c, const struct caller *who, int64_t now_ms, uint64_t id, struct err *e);
/* Ends a running job and puts it back into the queue, to be run again. -EALREADY when it does not run. */
int control_requeue(struct control *c, const struct caller *who, int64_t now_ms, uint64_t id, struct err *e);
int control_update(struct control *c, const struct caller *who, int64_t now_ms, uint64_t id,
                   const struct job_change *change, struct err *e);
int control_drain(struct control *c, const struct caller *who, int64_t now_ms, const char *node, bool drain,
                  const char *why, struct err *e);
/* Takes *cfg on success. `text` is kept as the source. */
int control_configure(struct control *c, const struct caller *who, int64_t now_ms, struct config *cfg, const char *text,
                      struct err *e);

int control_engine_node(struct control *c, int64_t now_ms, const struct node_desc *desc, const char *topology,
                        bool simulated, struct err *e);
int control_engine_node_down(struct control *c, int64_t now_ms, const char *name, const char *why);
int control_engine_started(struct control *c, int64_t now_ms, uint64_t job, uint32_t attempt);
int control_engine_exited(struct control *c, int64_t now_ms, uint64_t job, uint32_t attempt,
                          const struct worker_exit *exit);

struct gpu_sample {
    char uuid[UUID_SIZE];
    int32_t util_pct; /* negative: not offered */
    int64_t mem_used_mib;
    int32_t power_w;
    int32_t temp_c;
};
/* Telemetry is shown, not stored. */
void control_engine_telemetry(struct control *c, int64_t now_ms, const char *node, const struct gpu_sample *samples,
                              size_t len, const char *source);

/* One scheduling pass. Returns 0, or -ENOMEM. */
int control_step(struct control *c, int64_t now_ms);
/* When control_step() has to be called again though nothing happens; INT64_MAX: never. Wall clock. */
int64_t control_next_wake_ms(const struct control *c);

/*
 * Runs the audit (core/audit.h) and remembers the result for control_write_status(). A violation is an EFFECT_ALERT
 * too. Returns 0, -EPROTO or -ENOMEM.
 */
int control_audit(struct control *c);

/* --- outputs --- */
/* Records made since the last control_saved(), oldest first, with their `seq` set. Borrowed. */
const struct record *control_unsaved(const struct control *c, size_t *ret_len);
void control_saved(struct control *c);

enum effect_kind {
    EFFECT_LAUNCH,
    EFFECT_TERMINATE,
    EFFECT_FORGET,  /* the engine may tidy up an ended attempt */
    EFFECT_PUBLISH, /* a record for the event stream */
    EFFECT_ALERT,   /* the audit found a violation: `text` */
};

struct effect {
    enum effect_kind kind;
    uint64_t job;
    uint32_t attempt;
    const struct job_spec *spec; /* EFFECT_LAUNCH; borrowed until the next input */
    const struct grant *grants;  /* EFFECT_LAUNCH: by rank; borrowed likewise */
    uint32_t workers;
    int64_t grace_ms;
    uint64_t seq;     /* EFFECT_PUBLISH */
    const char *text; /* EFFECT_PUBLISH: one JSON object; EFFECT_ALERT; valid until the next call */
};
/* The next effect of what has been saved; false when there is none. */
bool control_next_effect(struct control *c, struct effect *ret);

/* --- answers: each writes one JSON value; docs/api.md has the shapes --- */
struct job_filter {
    const char *state; /* comma-separated states; NULL or "": by `all` */
    const char *user;
    const char *queue;
    const char *tenant;
    const char *name;
    bool all;        /* ended jobs too */
    bool ended_only; /* history */
    uint64_t after;  /* only ids above */
    uint32_t limit;  /* 0: 1,000 */
};
void control_write_status(const struct control *c, int64_t now_ms, struct jsonw *w);
int control_write_jobs(const struct control *c, int64_t now_ms, const struct job_filter *f, struct jsonw *w,
                       struct err *e);
int control_write_job(const struct control *c, int64_t now_ms, uint64_t id, struct jsonw *w, struct err *e);
int control_write_explain(struct control *c, int64_t now_ms, uint64_t id, struct jsonw *w, struct err *e);
void control_write_nodes(const struct control *c, int64_t now_ms, struct jsonw *w);
int control_write_node(const struct control *c, const char *name, struct jsonw *w, struct err *e);
int control_write_topology(const struct control *c, const char *node, struct jsonw *w, struct err *e);
void control_write_queues(const struct control *c, struct jsonw *w);
void control_write_tenants(const struct control *c, struct jsonw *w);
/* A stored record as the event stream shows it. */
void control_write_event(const struct control *c, const struct record *r, struct jsonw *w);

/* Ids that match a filter, for bulk cancel; array owned by the caller. */
int control_match(const struct control *c, const struct job_filter *f, uint64_t **ret_ids, size_t *ret_len,
                  struct err *e);
/* True and *ret_code set when the job has ended: the exit status that `remuda wait` gives. */
bool control_exit_status(const struct control *c, uint64_t id, int *ret_code);
/* Owner of a job, its last attempt and number of workers; -ENOENT. */
int control_job_facts(const struct control *c, uint64_t id, uint32_t *ret_uid, uint32_t *ret_attempt,
                      uint32_t *ret_workers, bool *ret_ended);
/* "queued", "running" and so on; NULL when there is no such job. */
const char *control_job_state(const struct control *c, uint64_t id);
/* Name of a node and uuid of a card for building launches. Borrowed. */
const char *control_node_name(const struct control *c, uint32_t node);
const char *control_gpu_uuid(const struct control *c, uint32_t node, uint32_t gpu);
const struct config *control_config(const struct control *c);
/* The source text of the configuration in force ("" when it came from defaults) and its version. Borrowed. */
const char *control_config_text(const struct control *c, uint64_t *ret_version);

#endif
