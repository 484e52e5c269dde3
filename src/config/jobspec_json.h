/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's specification from JSON: the body of POST /v1/jobs and, through yaml.h, a job file. Keys are those of
 * options.h and
 *
 *     command   list of words, or one text that /bin/sh runs
 *     script    text of a script; its #REMUDA lines count, keys given beside it win over them
 *     args      list of words behind the command or for the script
 *     env       mapping of names to values
 *     uid, gid  numbers; the server decides who may give them
 *     hold      true: waits until somebody releases it
 *
 * Numbers may be given as numbers or as text. Unknown keys are refused.
 */
#ifndef REMUDA_CONFIG_JOBSPEC_JSON_H
#define REMUDA_CONFIG_JOBSPEC_JSON_H

#include "base/err.h"
#include "config/types.h"

#include <jansson.h>
#include <stddef.h>

/*
 * Fills *ret (owned by the caller, job_spec_done()); a missing name is made from the command. The result has passed
 * job_spec_check(). `uid` and `gid` are JOB_ID_NONE when not given, `user`, `tenant`, `queue`, `strategy` may be
 * empty. 0; -EINVAL, -ERANGE, -EOPNOTSUPP with "KEY: ..."; -ENOMEM. *ret is untouched on failure.
 */
int job_spec_from_json(const json_t *v, struct job_spec *ret, struct err *e);

/* Which part of the text of an error of job_spec_from_json() names the key; "" when none does. */
void job_spec_error_key(const struct err *e, char *ret, size_t size);

/*
 * Reads a job file (YAML or JSON) into a JSON object for job_spec_from_json(), after checking it; *ret is owned by
 * the caller. Errors have file, line and column.
 */
int job_file_load(const char *path, json_t **ret, struct err *e);

/* The name a job gets that brings none: the last part of its program's path, made fit for a name. */
void job_name_from(const char *program, char ret[NAME_SIZE]);

#endif
