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

#define NAME_SIZE           64 /* names of jobs, tenants, users, queues, nodes: 1..63 bytes */
#define GPU_MODEL_SIZE      64 /* "A100-80GB", alternatives joined by '|' */
#define WORKERS_MAX         4096
#define GPUS_PER_WORKER_MAX 16
#define GPU_MILLI           1000 /* one whole card */
#define PRIORITY_MIN        (-1000)
#define PRIORITY_MAX        1000
#define NO_CAP              UINT64_MAX

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
    uint32_t gpus;                  /* whole cards, 0..GPUS_PER_WORKER_MAX; 0 when a share is asked for */
    uint32_t share_milli;           /* compute of one card in thousandths, 1..1000; 0: no share */
    uint32_t share_mem_mib;         /* memory of the share in MiB; 0: none asked */
    uint32_t cpu_milli;             /* thousandths of a CPU */
    uint64_t mem_mib;               /* host memory in MiB; 0: no limit and nothing accounted */
    char gpu_model[GPU_MODEL_SIZE]; /* "" for any */
};

/* A wish to start only after another job has ended. */
enum after_kind {
    AFTER_OK,   /* it succeeded */
    AFTER_FAIL, /* it failed or was cancelled */
    AFTER_ANY,  /* it ended */
    AFTER_KINDS,
};
struct dependency {
    uint64_t job;
    enum after_kind kind;
};
#define AFTER_MAX 1024 /* wishes of one job */

/* Everything known about a job at submission. */
struct job_spec {
    char name[NAME_SIZE];
    char user[NAME_SIZE];
    char tenant[NAME_SIZE]; /* "" : the user's tenant by configuration, else "default" */
    char queue[NAME_SIZE];  /* "" : the configuration's default queue */
    char strategy[16];      /* "" : the configuration's default */
    uint32_t uid;           /* JOB_ID_NONE: not given */
    uint32_t gid;
    struct request req;
    uint32_t workers; /* 1..WORKERS_MAX */
    int32_t priority; /* PRIORITY_MIN..PRIORITY_MAX, higher first */
    enum level require;
    enum level prefer;
    int64_t time_limit_ms;    /* 0: the queue's default, which may be none */
    int64_t grace_ms;         /* between SIGTERM and SIGKILL; 0: the configuration's default */
    int64_t sim_duration_ms;  /* how long the simulated engine lets it run; 0: its default */
    int64_t begin_ms;         /* does not start before this wall-clock time; 0: no such wish */
    int64_t begin_after_ms;   /* or before this much after its submission; 0: no such wish */
    bool hold;                /* waits until somebody releases it */
    struct dependency *after; /* owned; all have to be met */
    uint32_t after_len;
    /*
     * NULL-terminated. Without a script: the command. With one: argv[0] is the name the script is shown by and the
     * rest are its arguments; the engine puts the text into a file and runs that file with them, through /bin/sh
     * when the text does not begin with "#!".
     */
    char **argv;
    char **env;   /* NULL-terminated "NAME=value" */
    char *cwd;    /* absolute */
    char *script; /* text of a submitted script, or NULL */
    char *key;    /* idempotency key, or NULL */
};

/* Limits on what one job may bring along, held by job_spec_check(). */
#define CPU_MILLI_MAX      ((uint64_t)4096 * 1000)
#define MEM_MIB_MAX        ((uint64_t)1 << 30)
#define TIME_MAX_MS        ((int64_t)100 * 366 * 86400 * 1000)
#define GRACE_MAX_MS       ((int64_t)86400 * 1000)
#define SCRIPT_BYTES_MAX   ((size_t)4 << 20)
#define JOB_WORDS_MAX      65536               /* words of a command, and variables of an environment */
#define JOB_WORD_BYTES_MAX ((size_t)128 << 10) /* one of them: what Linux takes */
#define JOB_BYTES_MAX      ((size_t)1 << 20)   /* all words of a command, or all variables, together */
#define KEY_BYTES_MAX      255
#define JOB_ID_NONE        UINT32_MAX /* no user or group id: the caller's own */

/* A specification with every default: one worker, no wish, no limit, no user or group. Owns nothing yet. */
void job_spec_init(struct job_spec *s);
void job_spec_done(struct job_spec *s);                              /* releases what it owns */
int job_spec_copy(struct job_spec *dst, const struct job_spec *src); /* deep copy; 0 or -ENOMEM */
/*
 * Everything that can be said about a specification without a cluster and a configuration: names, ranges, what
 * excludes what, sizes, UTF-8. Every door (command line, job file, API, recovery) calls it. `user`, `tenant`,
 * `queue` and `strategy` may be empty. 0 or -EINVAL with a text that names the field, the value and what is allowed.
 */
struct err;
int job_spec_check(const struct job_spec *s, struct err *e);

/* "ok", "fail", "any"; NULL for a number that is no kind. */
const char *after_name(enum after_kind kind);

/* "any", "nvlink", "machine", "rack"; NULL for a number that is no level. */
const char *level_name(enum level level);
/* The inverse. 0, or -EINVAL with *ret untouched. */
int level_parse(const char *text, enum level *ret);

/*
 * The rule for names of tenants, users, queues, racks and nodes: 1 to 63 bytes of letters, digits, '.', '_', '-', '@'
 * (and UTF-8 beyond ASCII), not beginning with '-' or '.'. A job's name may also hold spaces and most signs, see
 * job_name_ok(). Both refuse control characters and what is not UTF-8.
 */
bool name_ok(const char *name);
bool job_name_ok(const char *name);
/* "remuda", "binpack" or "spread". */
bool strategy_name_ok(const char *name);

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
    int32_t priority;        /* added to the priority of its jobs */
    int64_t default_time_ms; /* time limit of a job that brings none; 0: none */
    int64_t max_time_ms;     /* 0: none */
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
/* Deep copy; 0 or -ENOMEM. */
int config_copy(struct config *dst, const struct config *src);
void config_done(struct config *c);

#endif
