/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of one replay of a job trace: what the published simulators print, computed in
 * integers and rounded the same way (half to even), so that they are equal digit by digit on every
 * machine.
 *
 * Completion time = end - submission; queueing = first start - submission; waiting = completion
 * time - duration, which also counts the time after preemptions. Quantiles are interpolated
 * linearly between neighbours.
 */
#ifndef REMUDA_REPLAY_FIGURES_H
#define REMUDA_REPLAY_FIGURES_H

#include "base/jsonw.h"
#include "replay/sim.h"

/* Averages and use in hundredths, quantiles in tenths; everything else in whole units. */
struct figures {
    char *trace;    /* owned */
    char *schedule; /* the policy as the user named it; owned */
    const char *placement;
    uint32_t nodes, gpus;
    uint32_t jobs, skipped;
    int64_t jct_avg, jct_p50, jct_p95;
    int64_t makespan_s;
    int64_t queue_avg, queue_p50, queue_p95, queue_max_s;
    int64_t use; /* percent of all card-seconds until the last end */
    uint64_t preemptions;
    int64_t wait_avg;
    int64_t wall_us;     /* real time the replay took; 0: unknown */
    int64_t *queueing_s; /* of all jobs, ascending; owned */
    int64_t *completion_s;
};

/* Computes the figures of a finished run. 0 or -ENOMEM; what is filled is the caller's
 * (figures_done). */
int figures_take(struct figures *f, const struct sim *s, const char *schedule, struct err *e);
void figures_done(struct figures *f);
/* One JSON object with the columns of the published table, in their order. */
void figures_json(const struct figures *f, struct jsonw *w);
/* `value` / 10^decimals without needless zeros but with one decimal at least: (2240, 2) -> "22.4".
 */
void figures_number(struct strbuf *b, int64_t value, unsigned decimals);
/* One line for each job in queue order: id, first start, end, number of preemptions. */
void figures_jobs_csv(const struct sim *s, struct strbuf *b);

#endif
