/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration and a job's specification as plain data: what the parsers in src/config produce and what
 * core and control read. No function here does I/O. Strings are owned by the structure that holds them and come
 * from base/mem.h; fixed arrays are terminated.
 */
#ifndef REMUDA_CONFIG_TYPES_H
#define REMUDA_CONFIG_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_SIZE        64 /* names of jobs, tenants, users, queues, nodes: 1..63 bytes */
#define GPU_MODEL_SIZE   64 /* "A100-80GB", alternatives joined by '|' */
#define WORKERS_MAX      4096
#define GPUS_PER_WORKER_MAX 16
#define GPU_MILLI        1000 /* one whole card */
#define PRIORITY_MIN     (-1000)
#define PRIORITY_MAX     1000
#define NO_CAP           UINT64_MAX

/* How near the cards of a job must be to each other, nearest first. */
enum level {
    LEVEL_ANY = 0, /* no wish */
    LEVEL_NVLINK,  /* all cards of the job in one NVLink island of one machine */
    LEVEL_MACHINE, /* all workers on one machine */
    LEVEL_RACK,    /* all workers in one rack */
    LEVEL_COUNT,
};

/* What one worker of a job asks for: whole cards, or a share of one card, or neither; CPU and host memory. */
struct request {
    uint32_t gpus;           /* whole cards, 0..GPUS_PER_WORKER_MAX; 0 when a share is asked for */
    uint32_t share_milli;    /* compute of one card in thousandths, 1..1000; 0: no share */
    uint32_t share_mem_mib;  /* memory of the share in MiB; 0: none asked */
    uint32_t cpu_milli;      /* thousandths of a CPU */
    uint64_t mem_mib;        /* host memory in MiB; 0: no limit and nothing accounted */
    char gpu_model[GPU_MODEL_SIZE]; /* "" for any */
};

/* Everything known about a job at submission. */
struct job_spec {
    char name[NAME_SIZE];
    char user[NAME_SIZE];
    char tenant[NAME_SIZE]; /* "" : the user's tenant by configuration, else "default" */
    char queue[NAME_SIZE];  /* "" : the configuration's default queue */
    char strategy[16];      /* "" : the configuration's default */
    uint32_t uid;
    uint32_t gid;
    struct request req;
    uint32_t workers; /* 1..WORKERS_MAX */
    int32_t priority; /* PRIORITY_MIN..PRIORITY_MAX, higher first */
    enum level require;
    enum level prefer;
    int64_t time_limit_ms;   /* 0: the queue's default, which may be none */
    int64_t grace_ms;        /* between SIGTERM and SIGKILL; 0: the configuration's default */
    int64_t sim_duration_ms; /* how long the simulated engine lets it run; 0: its default */
    char **argv;             /* NULL-terminated; the command, or the interpreter line of the script */
    char **env;              /* NULL-terminated "NAME=value" */
    char *cwd;               /* absolute */
    char *script;            /* text of a submitted script, or NULL */
    char *key;               /* idempotency key, or NULL */
};

void job_spec_done(struct job_spec *s);                                /* releases what it owns */
int job_spec_copy(struct job_spec *dst, const struct job_spec *src);   /* deep copy; 0 or -ENOMEM */

/* Limits on what may run at once; NO_CAP where there is none. */
struct caps {
    uint64_t gpus_milli; /* cards in thousandths, shares counted by their compute */
    uint64_t jobs;
};

struct config_tenant {
    char name[NAME_SIZE];
    struct caps caps;
    struct caps user_caps; /* for each user of the tenant that has no caps of its own */
};

struct config_user {
    char name[NAME_SIZE];
    char tenant[NAME_SIZE];
    struct caps caps;
};

struct config_queue {
    char name[NAME_SIZE];
    struct caps caps;
    int32_t priority;         /* added to the priority of its jobs */
    int64_t default_time_ms;  /* time limit of a job that brings none; 0: none */
    int64_t max_time_ms;      /* 0: none */
};

/* One rack and the nodes in it; a node that no rack names is in rack "default". */
struct config_rack {
    char name[NAME_SIZE];
    char (*nodes)[NAME_SIZE];
    size_t nodes_len;
};

struct config {
    char default_queue[NAME_SIZE];
    char default_tenant[NAME_SIZE];
    char strategy[16];           /* "remuda", "binpack" or "spread" */
    int64_t grace_ms;            /* 30 s by default */
    int64_t sim_duration_ms;     /* the simulated engine's default run time */
    uint32_t reservation_depth;  /* how many blocked jobs get reservations, 0..100; default 1 */
    uint32_t finished_jobs_kept; /* how many ended jobs stay in `remuda ps --all` */
    uint64_t log_bytes_max;      /* a job's output file is rotated at this size */
    uint32_t log_files_kept;     /* rotated files kept beside the current one */
    struct config_tenant *tenants;
    size_t tenants_len;
    struct config_user *users;
    size_t users_len;
    struct config_queue *queues;
    size_t queues_len;
    struct config_rack *racks;
    size_t racks_len;
};

/* A configuration with every default and one queue "batch"; 0 or -ENOMEM. */
int config_defaults(struct config *c);
void config_done(struct config *c);

#endif
