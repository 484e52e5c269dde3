/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/figures.h"

#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef __int128 wide; /* sums of card-seconds over ten million jobs pass 64 bits */

/* num / den rounded half to even; num >= 0, den > 0. */
static int64_t divide(wide num, wide den)
{
    wide q = num / den, rest2 = (num % den) * 2;
    if (rest2 > den || (rest2 == den && (q & 1)))
        q++;
    return (int64_t)q;
}

static int compare_s(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/*
 * The percentile `p` of n ascending values in tenths. This is the one place that reckons in binary
 * fractions, since the published tables did: 0.95 x 59 places is a little less than 56.05 there, so
 * that a quantile of 62.35 became 62.3.
 */
static int64_t quantile(const int64_t *values, uint32_t n, uint32_t p)
{
    double position = p / 100.0 * (n - 1);
    uint32_t i = (uint32_t)position;
    double value = (double)values[i];
    if (i + 1 < n)
        value += (double)(values[i + 1] - values[i]) * (position - i);
    return llrint(value * 10);
}

static void sum_up(struct figures *f, const struct sim *s)
{
    wide completion = 0, queueing = 0, waiting = 0, card_s = 0;
    int64_t last_s = 0;
    for (uint32_t i = 0; i < s->trace->len; i++) {
        const struct trace_job *t = &s->trace->jobs[i];
        const struct sim_job *j = &s->jobs[i];
        f->completion_s[i] = j->end_s - t->submit_s;
        f->queueing_s[i] = j->start_s - t->submit_s;
        completion += f->completion_s[i];
        queueing += f->queueing_s[i];
        waiting += f->completion_s[i] - t->duration_s;
        card_s += (wide)t->duration_s * t->gpus;
        f->preemptions += j->preemptions;
        if (j->end_s > last_s)
            last_s = j->end_s;
    }
    uint32_t n = s->trace->len;
    f->jct_avg = divide(completion * 100, n);
    f->queue_avg = divide(queueing * 100, n);
    f->wait_avg = divide(waiting * 100, n);
    f->makespan_s = last_s; /* the first submission is at 0 */
    f->use = last_s > 0 ? divide(card_s * 10000, (wide)last_s * s->gpus) : 0;
}

int figures_take(struct figures *f, const struct sim *s, const char *schedule, struct err *e)
{
    uint32_t n = s->trace->len;
    *f = (struct figures){
        .placement = s->placement->name, .nodes = s->nodes, .gpus = s->gpus, .jobs = n, .skipped = s->trace->skipped};
    f->trace = mem_strdup(s->trace->name);
    f->schedule = mem_strdup(schedule);
    f->queueing_s = mem_alloc(n, sizeof f->queueing_s[0]);
    f->completion_s = mem_alloc(n, sizeof f->completion_s[0]);
    if (!f->trace || !f->schedule || !f->queueing_s || !f->completion_s)
        return err_set(e, -ENOMEM, "no memory for the figures of %u jobs", n);
    sum_up(f, s);
    qsort(f->queueing_s, n, sizeof f->queueing_s[0], compare_s);
    qsort(f->completion_s, n, sizeof f->completion_s[0], compare_s);
    f->jct_p50 = quantile(f->completion_s, n, 50);
    f->jct_p95 = quantile(f->completion_s, n, 95);
    f->queue_p50 = quantile(f->queueing_s, n, 50);
    f->queue_p95 = quantile(f->queueing_s, n, 95);
    f->queue_max_s = f->queueing_s[n - 1];
    return 0;
}

void figures_done(struct figures *f)
{
    mem_free(f->trace);
    mem_free(f->schedule);
    mem_free(f->queueing_s);
    mem_free(f->completion_s);
    *f = (struct figures){0};
}

void figures_number(struct strbuf *b, int64_t value, unsigned decimals)
{
    while (decimals > 1 && value % 10 == 0) {
        value /= 10;
        decimals--;
    }
    int64_t unit = 1;
    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    strbuf_printf(b, "%" PRId64 ".%0*" PRId64, value / unit, (int)decimals, value % unit);
}

static void json_number(struct jsonw *w, const char *key, int64_t value, unsigned decimals)
{
    struct strbuf b = {0};
    figures_number(&b, value, decimals);
    jsonw_key(w, key);
    jsonw_raw(w, b.failed ? "null" : strbuf_str(&b));
    w->out->failed |= b.failed;
    strbuf_done(&b);
}

void figures_json(const struct figures *f, struct jsonw *w)
{
    jsonw_object(w);
    jsonw_key_str(w, "trace", f->trace);
    jsonw_key_u64(w, "nodes", f->nodes);
    jsonw_key_u64(w, "gpus", f->gpus);
    jsonw_key_str(w, "schedule", f->schedule);
    jsonw_key_str(w, "placement", f->placement);
    jsonw_key_u64(w, "jobs", f->jobs);
    json_number(w, "avg_jct", f->jct_avg, 2);
    json_number(w, "p50_jct", f->jct_p50, 1);
    json_number(w, "p95_jct", f->jct_p95, 1);
    jsonw_key_i64(w, "makespan", f->makespan_s);
    json_number(w, "q_avg", f->queue_avg, 2);
    json_number(w, "q_p50", f->queue_p50, 1);
    json_number(w, "q_p95", f->queue_p95, 1);
    jsonw_key_i64(w, "q_max", f->queue_max_s);
    json_number(w, "util_pct", f->use, 2);
    jsonw_key_u64(w, "preemptions", f->preemptions);
    json_number(w, "wait_total_avg", f->wait_avg, 2);
    json_number(w, "wall_s", f->wall_us, 6);
    jsonw_end_object(w);
}

void figures_jobs_csv(const struct sim *s, struct strbuf *b)
{
    strbuf_puts(b, "job_id,start_time,end_time,preempt\n");
    for (uint32_t i = 0; i < s->trace->len; i++) {
        strbuf_puts(b, trace_id(s->trace, i));
        strbuf_putc(b, ',');
        strbuf_i64(b, s->jobs[i].start_s);
        strbuf_putc(b, ',');
        strbuf_i64(b, s->jobs[i].end_s);
        strbuf_putc(b, ',');
        strbuf_u64(b, s->jobs[i].preemptions);
        strbuf_putc(b, '\n');
    }
}
