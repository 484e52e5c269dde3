/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of one or several replays of one trace as a single HTML file: a table of figures, use
 * and queue over time, waits as a distribution. It needs nothing from outside and holds no script;
 * it follows the reader's choice of a light or dark page.
 */
#ifndef REMUDA_REPLAY_REPORT_H
#define REMUDA_REPLAY_REPORT_H

#include "replay/figures.h"

#define REPORT_RUNS_MAX 16

struct report_run {
    const struct figures *figures; /* borrowed */
    struct sim_sample *samples;    /* owned */
    size_t samples_len;
};

struct report {
    struct report_run runs[REPORT_RUNS_MAX];
    size_t len;
};

/*
 * Adds a finished run whose samples were asked for; they are taken over from `s`. `f` must outlive
 * the report. All runs must be of one trace and cluster. 0 or -EINVAL when there are
 * REPORT_RUNS_MAX already.
 */
int report_add(struct report *r, struct sim *s, const struct figures *f, struct err *e);
void report_done(struct report *r);
/* Writes the page; out->failed says when memory ran out. */
void report_html(const struct report *r, struct strbuf *out);

#endif
