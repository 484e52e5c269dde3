/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the plots come about. A run is a step function of (cards used, jobs waiting) with up to two
 * steps for each job; it is drawn as the time-weighted means of 400 equal spans of the longest run,
 * so the area under the line is right whatever the number of jobs. Waits cover six orders of
 * magnitude: their distribution is drawn over a logarithmic axis from one second on, waits below it
 * at its left end, and as a histogram in spans that people think in.
 *
 * Nothing from the trace goes into the page unescaped.
 */
#include "replay/report.h"

#include "base/mem.h"
#include "base/units.h"
#include "replay/svg.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define SPANS  400
#define POINTS 300

int report_add(struct report *r, struct sim *s, const struct figures *f, struct err *e)
{
    if (r->len == REPORT_RUNS_MAX)
        return err_set(e, -EINVAL, "a report holds at most %d runs", REPORT_RUNS_MAX);
    r->runs[r->len++] = (struct report_run){.figures = f, .samples = s->samples, .samples_len = s->samples_len};
    s->samples = NULL;
    s->samples_len = 0;
    s->samples_cap = 0;
    return 0;
}

void report_done(struct report *r)
{
    for (size_t i = 0; i < r->len; i++)
        mem_free(r->runs[i].samples);
    r->len = 0;
}

/* ---- the parts of the page ---- */

/* "82,247" */
static void write_count(struct strbuf *out, uint64_t value)
{
    if (value >= 1000) {
        write_count(out, value / 1000);
        strbuf_printf(out, ",%03u", (unsigned)(value % 1000));
    } else {
        strbuf_u64(out, value);
    }
}

static const char style[] =
    "<style>\n"
    ":root{color-scheme:light "
    "dark;--page:#fcfcfb;--card:#ffffff;--ink:#1a1a19;--soft:#5f5e5a;--grid:#e6e5e0;--edge:"
    "#dad9d3;--c0:#2a78d6;--c1:#eb6834;--c2:#1baf7a;--c3:#4a3aa7;--c4:#c98500;--c5:#d55181;--c6:#"
    "008300;--c7:#8a5a3c}\n"
    "@media "
    "(prefers-color-scheme:dark){:root{--page:#161615;--card:#1f1f1e;--ink:#f2f1ec;--soft:#a9a8a1;-"
    "-grid:"
    "#33332f;--edge:#3a3a36;--c0:#5598e7;--c1:#ee8258;--c2:#2fbd8b;--c3:#9d93ee;--c4:#dba13a;--c5:#"
    "e4759c;--c6:"
    "#4fae4f;--c7:#c2956f}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 "
    "system-ui,sans-serif}\n"
    "main{max-width:1080px;margin:0 auto;padding:32px 20px "
    "48px}h1{font-size:26px;line-height:1.2;margin:0 0 4px}"
    "h2{font-size:16px;margin:0}p{margin:0;color:var(--soft)}\n"
    "section{background:var(--card);border:1px solid var(--edge);border-radius:10px;padding:18px "
    "20px 12px;"
    "margin-top:20px}section "
    "p{font-size:13px;margin-bottom:8px}svg{display:block;width:100%;height:auto}\n"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:20px}@media("
    "max-width:480px){"
    ".pair{grid-template-columns:1fr}}.wide{overflow-x:auto}\n"
    ".grid{stroke:var(--grid);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}.tick{fill:"
    "var(--soft);font:12px "
    "system-ui,sans-serif}.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.dash{stroke-"
    "dasharray:6 4}.pale,"
    ".area{opacity:.55}.area{opacity:.13}\n"
    ".legend{display:flex;flex-wrap:wrap;gap:6px "
    "18px;margin-top:16px;color:var(--ink)}.strip{margin:6px 0 0}.legend svg,.strip "
    "svg{display:inline;width:"
    "26px;height:10px;margin-right:7px;vertical-align:middle}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px}th,"
    "td{padding:7px "
    "10px;text-align:right;white-space:nowrap;border-bottom:1px solid "
    "var(--grid)}th:first-child,td:first-child{"
    "text-align:left}th{color:var(--soft);font-weight:500}tr:last-child "
    "td{border-bottom:0}.group{text-align:center}tr:first-child "
    "th{border-bottom:0}.best{font-weight:650}\n"
    "footer{margin-top:24px;color:var(--soft);font-size:13px}\n"
    ".s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{"
    "stroke:var(--c4)}.s5{"
    "stroke:var(--c5)}.s6{stroke:var(--c6)}.s7{stroke:var(--c7)}\n"
    ".f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)"
    "}.f5{fill:var(--c5)}"
    ".f6{fill:var(--c6)}.f7{fill:var(--c7)}\n"
    "</style>\n";

static void write_head(const struct report *r, struct strbuf *out)
{
    const struct figures *f = r->runs[0].figures;
    strbuf_puts(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
                     "name=\"viewport\" "
                     "content=\"width=device-width,initial-scale=1\">\n<title>Replay of ");
    svg_escape(out, f->trace);
    strbuf_puts(out, "</title>\n");
    strbuf_puts(out, style);
    strbuf_puts(out, "</head>\n<body>\n<main>\n<h1>Replay of ");
    svg_escape(out, f->trace);
    strbuf_puts(out, "</h1>\n<p>");
    write_count(out, f->jobs);
    strbuf_puts(out, " jobs on a simulated cluster of ");
    write_count(out, f->nodes);
    strbuf_puts(out, " nodes with ");
    write_count(out, f->gpus);
    strbuf_puts(out, " GPUs, placement ");
    svg_escape(out, f->placement);
    strbuf_puts(out, ".");
    if (f->skipped > 0)
        strbuf_printf(out, " %u jobs larger than the cluster are left out.", f->skipped);
    strbuf_puts(out, " Times count from the first submission.</p>\n");
}

/* A short stroke as in the plots, and the policy's name. */
static void write_key(const struct report *r, unsigned i, struct strbuf *out)
{
    strbuf_printf(out,
                  "<span><svg viewBox=\"0 0 26 10\" aria-hidden=\"true\"><path class=\"line s%u%s\" "
                  "d=\"M0 5L26 5\"/></svg>",
                  i % SVG_COLOURS, i >= SVG_COLOURS ? " dash" : "");
    svg_escape(out, r->runs[i].figures->schedule);
    strbuf_puts(out, "</span>\n");
}

static void write_legend(const struct report *r, struct strbuf *out)
{
    if (r->len < 2)
        return;
    strbuf_puts(out, "<div class=\"legend\">\n");
    for (unsigned i = 0; i < r->len; i++)
        write_key(r, i, out);
    strbuf_puts(out, "</div>\n");
}

/* ---- the table ---- */

/* Seconds x `scale` as people read them, the exact figure on resting the mouse. */
static void write_span(struct strbuf *out, int64_t value, int64_t scale, unsigned decimals, bool best)
{
    char text[32];
    if (value == 0)
        snprintf(text, sizeof text, "0 s");
    else
        units_format_duration(value * 1000 / scale, text);
    strbuf_printf(out, "<td%s title=\"", best ? " class=\"best\"" : "");
    if (decimals > 0)
        figures_number(out, value, decimals);
    else
        strbuf_i64(out, value);
    strbuf_printf(out, " s\">%s</td>", text);
}

struct column {
    const char *head;
    size_t at; /* of the value in struct figures */
    int64_t scale;
    unsigned decimals;
};

static const struct column columns[] = {
    {"mean", offsetof(struct figures, jct_avg), 100, 2},      {"median", offsetof(struct figures, jct_p50), 10, 1},
    {"95 %", offsetof(struct figures, jct_p95), 10, 1},       {"mean", offsetof(struct figures, queue_avg), 100, 2},
    {"median", offsetof(struct figures, queue_p50), 10, 1},   {"95 %", offsetof(struct figures, queue_p95), 10, 1},
    {"longest", offsetof(struct figures, queue_max_s), 1, 0}, {"", offsetof(struct figures, makespan_s), 1, 0},
};

static int64_t value_of(const struct figures *f, const struct column *c)
{
    return *(const int64_t *)(const void *)((const char *)f + c->at);
}

static void write_table(const struct report *r, struct strbuf *out)
{
    strbuf_printf(out,
                  "<section>\n<h2>Figures</h2>\n<p>Completion: from submission to end. Wait: from "
                  "submission to first start.%s</p>\n<div class=\"wide\"><table>\n"
                  "<tr><th></th><th class=\"group\" colspan=\"3\">completion</th>"
                  "<th class=\"group\" colspan=\"4\">wait</th><th>makespan</th><th>GPUs in use</th>"
                  "<th>preemptions</th></tr>\n<tr><th>policy</th>",
                  r->len > 1 ? " The best of a column is bold." : "");
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
        strbuf_printf(out, "<th>%s</th>", columns[c].head);
    strbuf_puts(out, "<th></th><th></th></tr>\n");
    for (size_t i = 0; i < r->len; i++) {
        const struct figures *f = r->runs[i].figures;
        strbuf_puts(out, "<tr><td>");
        svg_escape(out, f->schedule);
        strbuf_puts(out, "</td>");
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
            int64_t value = value_of(f, &columns[c]);
            bool best = r->len > 1;
            for (size_t k = 0; k < r->len; k++)
                best = best && value <= value_of(r->runs[k].figures, &columns[c]);
            write_span(out, value, columns[c].scale, columns[c].decimals, best);
        }
        strbuf_puts(out, "<td>");
        figures_number(out, f->use, 2);
        strbuf_puts(out, " %</td><td>");
        write_count(out, f->preemptions);
        strbuf_puts(out, "</td></tr>\n");
    }
    strbuf_puts(out, "</table></div>\n</section>\n");
}

/* ---- over time ---- */

static int64_t longest_s(const struct report *r)
{
    int64_t most = 1;
    for (size_t i = 0; i < r->len; i++)
        if (r->runs[i].figures->makespan_s > most)
            most = r->runs[i].figures->makespan_s;
    return most;
}

/* Means over SPANS equal spans of [0, span_s]. `waiting`: of the jobs waiting, else of the cards
 * used in percent. */
static void means(const struct report_run *run, int64_t span_s, bool waiting, double y[SPANS])
{
    double width = (double)span_s / SPANS;
    for (size_t k = 0; k < SPANS; k++)
        y[k] = 0;
    for (size_t i = 0; i + 1 < run->samples_len; i++) { /* the last sample is the end: nothing runs or waits */
        const struct sim_sample *a = &run->samples[i];
        double value = waiting ? a->waiting : a->gpus_used * 100.0 / run->figures->gpus;
        double at = (double)a->at_s, to = (double)run->samples[i + 1].at_s;
        for (size_t k = (size_t)(at / width); k < SPANS && at < to; k++) {
            double end = (double)(k + 1) * width < to ? (double)(k + 1) * width : to;
            if (end > at) {
                y[k] += value * (end - at) / width;
                at = end;
            }
        }
    }
}

static void format_ticks(int64_t at_s, int64_t step_s, char *text, size_t size)
{
    int64_t unit = step_s >= 86400 ? 86400 : step_s >= 3600 ? 3600 : step_s >= 60 ? 60 : 1;
    const char *name = unit == 86400 ? "d" : unit == 3600 ? "h" : unit == 60 ? "min" : "s";
    snprintf(text, size, "%" PRId64 " %s", at_s / unit, name);
}

static void time_axis(struct svg_chart *c, int64_t span_s)
{
    static const int64_t steps[] = {1,      2,      5,      10,      30,      60,      120,      300,
                                    600,    1800,   3600,   7200,    10800,   21600,   43200,    86400,
                                    172800, 432000, 864000, 1728000, 4320000, 8640000, 17280000, 43200000};
    size_t i = 0, count = sizeof steps / sizeof steps[0];
    while (i + 1 < count && span_s / steps[i] > 10)
        i++;
    int64_t step = steps[i];
    while (span_s / step > 10)
        step *= 2;
    for (int64_t at = 0; at <= span_s; at += step) {
        char text[48];
        format_ticks(at, step, text, sizeof text);
        svg_x_tick(c, (double)at, text);
    }
}

/* Round steps for a y axis from 0 to at least `most`, about five of them. */
static double nice_step(double most)
{
    double raw = most / 5, power = pow(10, floor(log10(raw)));
    double part = raw / power;
    double step = (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10) * power;
    return step < 1 ? 1 : step;
}

static void span_middles(int64_t span_s, double x[SPANS])
{
    for (size_t k = 0; k < SPANS; k++)
        x[k] = ((double)k + 0.5) * (double)span_s / SPANS;
}

/* Busy lines over each other can not be read: every run has a strip of its own, below each other on
 * one time axis. */
static void use_over_time(const struct report *r, struct strbuf *out)
{
    int64_t span_s = longest_s(r);
    double x[SPANS], y[SPANS];
    bool alone = r->len == 1;
    span_middles(span_s, x);
    for (unsigned i = 0; i < r->len; i++) {
        if (!alone) {
            strbuf_puts(out, "<div class=\"strip\">");
            write_key(r, i, out);
            strbuf_puts(out, "</div>\n");
        }
        struct svg_chart c = {.width = 1040,
                              .height = alone ? 280 : 120,
                              .left = 62,
                              .right = 16,
                              .top = 8,
                              .bottom = 30,
                              .x_high = (double)span_s,
                              .y_high = 100};
        svg_begin(&c, out, "GPUs in use over time");
        for (int at = 0; at <= 100; at += alone ? 25 : 50) {
            char text[16];
            snprintf(text, sizeof text, "%d %%", at);
            svg_y_tick(&c, at, text);
        }
        time_axis(&c, span_s);
        means(&r->runs[i], span_s, false, y);
        svg_line(&c, x, y, SPANS, i, true);
        svg_end(&c);
    }
}

static void queue_over_time(const struct report *r, struct strbuf *out, double *y)
{
    int64_t span_s = longest_s(r);
    double x[SPANS], most = 1;
    span_middles(span_s, x);
    for (size_t i = 0; i < r->len; i++) {
        means(&r->runs[i], span_s, true, y + i * SPANS);
        for (size_t k = 0; k < SPANS; k++)
            most = y[i * SPANS + k] > most ? y[i * SPANS + k] : most;
    }
    double step = nice_step(most);
    struct svg_chart c = {.width = 1040,
                          .height = 280,
                          .left = 62,
                          .right = 16,
                          .top = 12,
                          .bottom = 30,
                          .x_high = (double)span_s,
                          .y_high = ceil(most / step) * step};
    svg_begin(&c, out, "Jobs waiting over time");
    for (double at = 0; at <= c.y_high + step / 2; at += step) {
        struct strbuf text = {0};
        write_count(&text, (uint64_t)at);
        svg_y_tick(&c, at, strbuf_str(&text));
        strbuf_done(&text);
    }
    time_axis(&c, span_s);
    for (unsigned i = 0; i < r->len; i++)
        svg_line(&c, x, y + i * SPANS, SPANS, i, r->len == 1);
    svg_end(&c);
}

/* ---- waits ---- */

static const struct {
    int64_t below_s;
    const char *name;
} bins[] = {
    {1, "none"},      {60, "< 1 min"},  {600, "< 10 min"}, {3600, "< 1 h"},
    {21600, "< 6 h"}, {86400, "< 1 d"}, {604800, "< 7 d"}, {INT64_MAX, "longer"},
};
#define BINS (sizeof bins / sizeof bins[0])

/* How many of the ascending values are below `limit`. */
static uint32_t count_below(const int64_t *values, uint32_t n, int64_t limit)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (values[mid] < limit)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void percent_axis(struct svg_chart *c)
{
    for (int at = 0; at <= 100; at += 25) {
        char text[16];
        snprintf(text, sizeof text, "%d %%", at);
        svg_y_tick(c, at, text);
    }
}

static void waits_distribution(const struct report *r, struct strbuf *out)
{
    static const struct {
        double at_s;
        const char *name;
    } marks[] = {{1, "1 s"},      {10, "10 s"},    {60, "1 min"},     {600, "10 min"},  {3600, "1 h"},
                 {36000, "10 h"}, {259200, "3 d"}, {2592000, "30 d"}, {31536000, "1 y"}};
    int64_t most = 60;
    for (size_t i = 0; i < r->len; i++)
        most = r->runs[i].figures->queue_max_s > most ? r->runs[i].figures->queue_max_s : most;
    struct svg_chart c = {.width = 520,
                          .height = 280,
                          .left = 56,
                          .right = 18,
                          .top = 12,
                          .bottom = 30,
                          .x_low = 0,
                          .x_high = log10((double)most + 1),
                          .y_high = 100};
    svg_begin(&c, out, "Share of jobs started within a wait");
    percent_axis(&c);
    for (size_t m = 0; m < sizeof marks / sizeof marks[0] && marks[m].at_s <= (double)most; m++)
        svg_x_tick(&c, log10(marks[m].at_s), marks[m].name);
    double x[POINTS], y[POINTS];
    for (unsigned i = 0; i < r->len; i++) {
        const struct figures *f = r->runs[i].figures;
        for (size_t k = 0; k < POINTS; k++) {
            x[k] = c.x_high * (double)k / (POINTS - 1);
            int64_t within_s = k == POINTS - 1 ? most : (int64_t)floor(pow(10, x[k]));
            y[k] = count_below(f->queueing_s, f->jobs, within_s + 1) * 100.0 / f->jobs;
        }
        svg_line(&c, x, y, POINTS, i, r->len == 1);
    }
    svg_end(&c);
}

static void waits_histogram(const struct report *r, struct strbuf *out)
{
    struct svg_chart c = {.width = 520,
                          .height = 280,
                          .left = 56,
                          .right = 18,
                          .top = 12,
                          .bottom = 30,
                          .x_high = (double)BINS,
                          .y_high = 100};
    svg_begin(&c, out, "Share of jobs by how long they waited");
    percent_axis(&c);
    for (size_t k = 0; k < BINS; k++) {
        svg_x_tick(&c, (double)k + 0.5, bins[k].name);
        for (unsigned i = 0; i < r->len; i++) {
            const struct figures *f = r->runs[i].figures;
            uint32_t jobs = count_below(f->queueing_s, f->jobs, bins[k].below_s) -
                            (k > 0 ? count_below(f->queueing_s, f->jobs, bins[k - 1].below_s) : 0);
            double width = 0.8 / (double)r->len, from = (double)k + 0.1 + width * i;
            char title[128];
            snprintf(title, sizeof title, "%s, %s: %u jobs (%.1f %%)", f->schedule, bins[k].name, jobs,
                     jobs * 100.0 / f->jobs);
            if (jobs > 0)
                svg_bar(&c, from, from + width * 0.9, jobs * 100.0 / f->jobs, i, title);
        }
    }
    svg_end(&c);
}

void report_html(const struct report *r, struct strbuf *out)
{
    CLEANUP_FREE double *y = mem_alloc(r->len * SPANS, sizeof y[0]);
    if (!y) {
        out->failed = true;
        return;
    }
    write_head(r, out);
    write_legend(r, out);
    write_table(r, out);
    strbuf_puts(out, "<section>\n<h2>GPUs in use</h2>\n<p>Percent of all GPUs over time; each "
                     "point is the mean of 1/400 "
                     "of the time shown.</p>\n");
    use_over_time(r, out);
    strbuf_puts(out, "</section>\n<section>\n<h2>Queue</h2>\n<p>Jobs that have come and do not "
                     "run, preempted ones "
                     "included.</p>\n");
    queue_over_time(r, out, y);
    strbuf_puts(out, "</section>\n<div class=\"pair\">\n<section>\n<h2>Waits as a "
                     "distribution</h2>\n<p>Percent of the jobs "
                     "that had started within the wait below (logarithmic).</p>\n");
    waits_distribution(r, out);
    strbuf_puts(out, "</section>\n<section>\n<h2>Waits by length</h2>\n<p>Percent of the jobs by "
                     "the time from submission to "
                     "first start.</p>\n");
    waits_histogram(r, out);
    strbuf_puts(out, "</section>\n</div>\n<footer>Simulated: a replay of recorded jobs on a "
                     "virtual clock by Remuda. No job "
                     "ran.</footer>\n</main>\n</body>\n</html>\n");
}
