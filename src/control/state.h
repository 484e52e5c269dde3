/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of control, shared by its files only: control.c keeps records and effects, requests.c takes what people
 * ask, reports.c what the engine tells, answers.c writes JSON.
 */
#ifndef REMUDA_CONTROL_STATE_H
#define REMUDA_CONTROL_STATE_H

#include "base/idmap.h"
#include "base/otree.h"
#include "control/control.h"
#include "core/core.h"

#define TIMELINE_MAX 1000 /* changes kept for one job; later ones are in the log only */

/* One change in a job's life. */
struct mark {
    uint64_t seq;
    int64_t time_ms;
    enum record_kind kind;
    uint32_t attempt;
    enum cause cause;
    char *by; /* who asked, or NULL; owned */
};

/* What is known about a job beside the core's view. */
struct ctl_job {
    uint64_t id;
    struct job_spec spec; /* owned; environment and script are dropped when the job has ended */
    bool had_script;
    bool seen;            /* the engine reported the current attempt since the last reconcile began */
    struct grant *grants; /* of the last attempt, also after its end; owned */
    uint32_t grants_len;
    struct worker_exit *exits; /* of the last attempt; owned */
    size_t exits_cap;
    size_t exits_len;
    struct mark *timeline; /* owned */
    size_t timeline_cap;
    size_t timeline_len;
    struct otree_node by_key;   /* linked when the job has an idempotency key */
    struct otree_node in_ended; /* ended jobs, oldest first */
    uint64_t ended_seq;
};

/* What is known about a node beside the core's view. Not stored: reported again after every restart. */
struct ctl_node {
    struct node_desc *desc; /* as last reported; owned */
    char *topology;         /* owned, or NULL */
    bool simulated;
    struct gpu_sample samples[NODE_GPUS_MAX];
    uint32_t samples_len;
    int64_t samples_ms;
    char source[64];
};

struct ctl_effect {
    enum effect_kind kind;
    uint64_t job;
    uint32_t attempt;
    uint64_t seq;
    char *text; /* owned, or NULL */
};

struct control {
    struct control_options options;
    struct core *core;
    char *config_text; /* source of the configuration in force, or NULL */
    uint64_t config_version;
    bool reconciled;
    uint64_t next_seq;
    struct idmap jobs; /* id -> ctl_job */
    struct otree keys;
    struct otree ended;
    struct ctl_node *nodes; /* by node id */
    size_t nodes_cap;

    struct record *unsaved;
    size_t unsaved_cap;
    size_t unsaved_len;

    struct ctl_effect *effects; /* ready ones are [effects_at, effects_len) */
    size_t effects_cap;
    size_t effects_len;
    size_t effects_at;
    char *effect_text; /* of the effect handed out last */
    bool audit_ok;
    char audit_text[256]; /* of the last violation */
};

/* Applies an input to core and control and keeps it for the store; the record is consumed in every case. */
int control_record(struct control *c, struct record *r, struct err *e);
/* Control's part of applying a record. */
int control_note(struct control *c, const struct record *r);
struct ctl_job *control_find_job(const struct control *c, uint64_t id);
struct ctl_job *control_by_key(const struct control *c, uint32_t uid, const char *key);
/* Queues an effect; `text` is taken. 0 or -ENOMEM. */
int control_effect(struct control *c, enum effect_kind kind, uint64_t job, uint32_t attempt, char *text);
bool control_may(const struct caller *who, const struct ctl_job *j);

#endif
