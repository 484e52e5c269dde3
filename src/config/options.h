/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that describe a job, in one table: the command line (`--gpu-mem 8GiB`), `#REMUDA` lines of a script, job
 * files in YAML (`gpu_mem: 8GiB`) and the JSON of the API all read it, so that a name, a bound or a message can not
 * differ between them. Requests are per worker.
 */
#ifndef REMUDA_CONFIG_OPTIONS_H
#define REMUDA_CONFIG_OPTIONS_H

#include "base/err.h"
#include "config/types.h"

enum job_option_id {
    JOB_OPT_NAME,
    JOB_OPT_GPUS,
    JOB_OPT_GPU_MEM,
    JOB_OPT_GPU_PERCENT,
    JOB_OPT_MIG,
    JOB_OPT_GPU_MODEL,
    JOB_OPT_WORKERS,
    JOB_OPT_CPUS,
    JOB_OPT_MEM,
    JOB_OPT_TIME,
    JOB_OPT_GRACE,
    JOB_OPT_QUEUE,
    JOB_OPT_PRIORITY,
    JOB_OPT_TENANT,
    JOB_OPT_REQUIRE,
    JOB_OPT_PREFER,
    JOB_OPT_STRATEGY,
    JOB_OPT_CHDIR,
    JOB_OPT_BEGIN,
    JOB_OPT_AFTER,
    JOB_OPT_SIM_DURATION,
    JOB_OPT_COUNT,
};

struct job_option {
    enum job_option_id id;
    const char *name; /* on the command line, without the dashes: "gpu-mem" */
    const char *key;  /* in job files and JSON: "gpu_mem" */
    const char *arg;  /* what stands for the value in help texts: "SIZE" */
};

/* All JOB_OPT_COUNT options, in the order of the enumeration. */
const struct job_option *job_options(void);
/* By name or by key; NULL when there is none. `*ret_best`, when given, is then the nearest name or NULL. */
const struct job_option *job_option_by_name(const char *name, const char **ret_best);
const struct job_option *job_option_by_key(const char *key, const char **ret_best);

/*
 * Parses `value` and puts it into the specification. 0; -EINVAL or -ERANGE with a text that names the value and what is
 * allowed, but not the option (the caller knows how its user wrote it: err_prefix(e, "--gpus")); -ENOMEM;
 * -EOPNOTSUPP for what is not built yet (MIG, a range of workers), with the reason. The specification is unchanged
 * then.
 */
int job_option_set(struct job_spec *s, enum job_option_id id, const char *value, struct err *e);

#endif
