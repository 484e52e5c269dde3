/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: what carries out decisions. Everything is asynchronous and runs on the one event loop: calls return
 * at once, what happens comes back through the event callback, never from inside a call. Everything is idempotent
 * by (job, attempt): asking twice is the same as asking once, also across a restart of the daemon.
 *
 * Life: xxx_engine_open() -> reconcile() with what the log says is running -> ENGINE_NODE for every node and
 * ENGINE_STARTED / ENGINE_EXITED for every expected attempt it knows of -> ENGINE_RECONCILED. Only then is anything
 * scheduled. An expected attempt that the engine knows nothing about is not reported; the daemon decides.
 *
 * An engine never sees a decision that is not on disk. tests/unit/test_engine_*.c hold every engine against one
 * conformance test (tests/engine_conformance.h).
 */
#ifndef REMUDA_ENGINE_ENGINE_H
#define REMUDA_ENGINE_ENGINE_H

#include "base/err.h"
#include "config/types.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
typedef struct uv_loop_s uv_loop_t;

#define ENGINE_UUID_SIZE 48

/* One worker's place and devices. */
struct engine_worker {
    uint32_t rank;
    const char *node; /* node name */
    uint32_t gpus_len;
    const char *const *gpu_uuids;
    uint32_t gpu_milli;   /* GPU_MILLI: whole cards; below: a share of the one card */
    uint32_t gpu_mem_mib; /* of a share */
    uint32_t cpu_milli;   /* 0: none asked */
    uint64_t mem_mib;     /* 0: no limit */
};

struct engine_launch {
    uint64_t job;
    uint32_t attempt;
    const struct job_spec *spec;
    const struct engine_worker *workers; /* by rank */
    uint32_t workers_len;
    int64_t grace_ms;
    uint64_t log_bytes_max;
    uint32_t log_files_kept;
};

/* What the log says about an attempt, for reconcile(). */
struct engine_expected {
    struct engine_launch launch;
    int64_t started_ms; /* 0: starting was decided, never confirmed */
    bool stopping;
};

enum engine_event_kind {
    ENGINE_NODE,       /* a node with what it has; also whenever that changes */
    ENGINE_NODE_DOWN,  /* not reached any more; `detail` says why */
    ENGINE_STARTED,    /* all workers of the attempt run (repeated after a reconcile) */
    ENGINE_EXITED,     /* one worker ended */
    ENGINE_TELEMETRY,  /* one sample of the cards of a node */
    ENGINE_RECONCILED, /* end of the answer to reconcile() */
};

enum engine_exit_cause {
    ENGINE_EXIT_NORMAL,
    ENGINE_EXIT_OOM,
    ENGINE_EXIT_LAUNCH_FAILED, /* never ran */
    ENGINE_EXIT_LOST,          /* its runner or node vanished; its processes are gone */
};

struct engine_gpu {
    char uuid[ENGINE_UUID_SIZE];
    char model[GPU_MODEL_SIZE];
    uint32_t mem_mib;
    uint8_t island;
    bool healthy;
};

struct engine_node {
    char name[NAME_SIZE];
    char rack[NAME_SIZE]; /* "": unknown */
    bool simulated;       /* its cards are simulated */
    uint32_t cpu_milli;
    uint64_t mem_mib;
    uint32_t gpus_len;
    struct engine_gpu gpus[16];
    uint8_t link[16][16]; /* enum link_class numbers of core/cluster.h (self, nvlink, pix, pxb, phb, node, sys) */
    const char *topology; /* the matrix as `nvidia-smi topo -m` prints it; borrowed, or NULL */
};

/* One card's use. Negative: not offered by this card. */
struct engine_gpu_sample {
    char uuid[ENGINE_UUID_SIZE];
    int32_t util_pct;
    int64_t mem_used_mib;
    int32_t power_w;
    int32_t temp_c;
};

struct engine_event {
    enum engine_event_kind kind;
    int64_t time_ms; /* wall clock when it happened */
    uint64_t job;
    uint32_t attempt;
    /* ENGINE_EXITED */
    uint32_t rank;
    int32_t code;   /* exit code; -1 when killed by a signal or never started (127, 126: as a shell says it) */
    int32_t signal; /* 0: none */
    enum engine_exit_cause cause;
    bool core_dumped;
    uint64_t peak_mem_mib;
    int64_t cpu_ms;
    const char *detail; /* borrowed, or NULL; of ENGINE_STARTED and ENGINE_NODE: what is not enforced there */
    /* ENGINE_NODE, ENGINE_NODE_DOWN, ENGINE_TELEMETRY */
    const char *node_name; /* borrowed */
    const struct engine_node *node;
    const struct engine_gpu_sample *samples;
    uint32_t samples_len;
    const char *source; /* which figure `util_pct` is, e.g. "nvml utilization" */
};

typedef void engine_event_cb(void *arg, const struct engine_event *ev);

struct engine_ops {
    const char *name; /* "local", "simulated" */
    /* Answers with events and one ENGINE_RECONCILED. `expected` is borrowed for the call. */
    int (*reconcile)(struct engine *e, const struct engine_expected *expected, uint32_t len, struct err *err);
    /* Starts all workers of an attempt, or reports ENGINE_EXITED with ENGINE_EXIT_LAUNCH_FAILED for each. */
    int (*launch)(struct engine *e, const struct engine_launch *launch, struct err *err);
    /*
     * SIGTERM to every process of the attempt, SIGKILL after its grace time; grace_ms 0: SIGKILL at once. Asked
     * again, the earlier end counts. -ENOENT when the attempt is not known, 0 when it has ended.
     */
    int (*terminate)(struct engine *e, uint64_t job, uint32_t attempt, int64_t grace_ms, struct err *err);
    /* Sends a signal to every process of the attempt. */
    int (*signal)(struct engine *e, uint64_t job, uint32_t attempt, int signal, struct err *err);
    /*
     * Path of the current output file of a worker ("stdout" or "stderr"), or -ENOENT when this engine keeps none.
     * Rotated files stand beside it as PATH.1 (the newest) and so on.
     */
    int (*log_path)(struct engine *e, uint64_t job, uint32_t attempt, uint32_t rank, bool stderr_file, char *ret,
                    size_t size);
    /* The daemon needs nothing more of this ended attempt (its exits are on disk): tidy up, keep the logs. */
    void (*forget)(struct engine *e, uint64_t job, uint32_t attempt);
    /* Lets go without touching what runs. `closed` is called once no callback can come any more. */
    void (*close)(struct engine *e, void (*closed)(void *arg), void *arg);
};

struct engine {
    const struct engine_ops *ops;
};

/* Options shared by all engines. Strings are borrowed for the open call only. */
struct engine_options {
    uv_loop_t *loop;
    const char *state_dir;
    engine_event_cb *cb;
    void *cb_arg;
    /* local */
    const char *preset;      /* simulated cards from this preset file; NULL: the machine's own cards */
    const char *runner_path; /* remuda-runner */
    const char *simgpu_dir;  /* folder of the stand-in libraries */
    const char *cgroups;     /* "auto" (NULL too), "v1", "v2", "none": which cgroup interfaces may be used */
    /* simulated */
    const char *cluster_file;  /* description of the nodes */
    uint64_t time_scale_milli; /* simulated milliseconds for each 1,000 real ones; 1,000: real time */
    int64_t default_duration_ms;
};

int local_engine_open(const struct engine_options *o, struct engine **ret, struct err *e);
int simulated_engine_open(const struct engine_options *o, struct engine **ret, struct err *e);

#endif
