/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job traces: lists of jobs with the time they came, the cards they asked for and how long they
 * ran. The reader takes comma-separated text, plain or compressed with gzip, and recognises what it
 * has by the header line:
 *
 *     job_id,num_gpu,submit_time,duration                                      our own four columns
 *     job_id,num_gpu,submit_time,iterations,model_name,duration,interval       Tiresias
 * (SymbioticLab) job_id,submission_time,duration,num_gpu                                  Microsoft
 * ITP (elasticflow-traces) timestamp,duration,num_gpus,gpu_time,cluster Microsoft Philly, the
 * derived list
 *
 * Columns may stand in any order and further columns are passed over, so a list exported from
 * elsewhere needs only the right names. Times are whole seconds and are moved so that the first
 * submission is at 0. The input is not trusted: whatever it holds, the result is a trace or an
 * error that names file, line, column, value and what is allowed.
 */
#ifndef REMUDA_REPLAY_TRACE_H
#define REMUDA_REPLAY_TRACE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define TRACE_JOBS_MAX     10000000u
#define TRACE_GPUS_MAX     1000000
#define TRACE_DURATION_MAX INT64_C(3155760000) /* 100 years in seconds */
#define TRACE_LINE_MAX     65536u              /* bytes of one line, its end included */

struct trace_job {
    int64_t submit_s;   /* since the first submission of the trace */
    int64_t duration_s; /* 0..TRACE_DURATION_MAX */
    uint32_t gpus;      /* 1..TRACE_GPUS_MAX */
    uint32_t line;      /* of the file, for messages */
    uint32_t id_at;     /* of the id in trace.ids */
};

/*
 * The jobs stand in queue order: by submission, then by id (as numbers when every id is one, else
 * in the order of the file). A job is named by its place in this array everywhere in replay.
 */
struct trace {
    char *name; /* base name of the file without .gz and .csv; owned */
    struct trace_job *jobs;
    size_t jobs_cap;
    uint32_t len;
    char *ids; /* all ids, each terminated; owned */
    size_t ids_cap;
    size_t ids_len;
    uint32_t skipped; /* jobs left out by trace_limit */
};

/* Reads `path`. `t` is filled and the caller's (trace_done), or untouched on error (-EINVAL,
 * -ENOMEM, -errno). */
int trace_read(const char *path, struct trace *t, struct err *e);
/* The same from memory; `name` stands for the file in messages and gives the trace its name. */
int trace_parse(const char *name, const void *bytes, size_t len, struct trace *t, struct err *e);
/* Frees what the trace holds; a zeroed one is fine. */
void trace_done(struct trace *t);

/* The id of a job as the file wrote it (its place in queue order, from 0, where the file has none).
 * Valid until trace_done. */
const char *trace_id(const struct trace *t, uint32_t job);

/* Leaves out the jobs that ask for more than `gpus` cards and counts them in t->skipped. */
void trace_limit(struct trace *t, uint32_t gpus);

#endif
