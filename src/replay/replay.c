/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `remuda replay --trace FILE`: reads a job trace, runs it under one or several policies, and
 * prints the figures as a table or as JSON; the jobs as CSV and a report as HTML where asked for.
 * docs/replay.md is its manual.
 */
#include "replay/replay.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/units.h"
#include "replay/figures.h"
#include "replay/report.h"
#include "replay/sim.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RUNS_MAX  REPORT_RUNS_MAX
#define NODES_MAX 1000000

struct request {
    const char *trace;
    const char *jobs_out, *html;
    const char *policies[RUNS_MAX];
    size_t policies_len;
    const struct placement_ops *placement;
    uint32_t nodes, gpus_per_node;
    bool json, many, skip_oversize;
    char *compare; /* the list of --compare, cut; owned */
};

static const char help_text[] =
    "Usage: remuda replay --trace FILE --nodes N --gpus-per-node G [--policy P] [OPTIONS]\n"
    "       remuda replay --openb DIR [OPTIONS]     the openb packing experiment, see --openb "
    "--help\n"
    "\n"
    "Replays a job trace on a virtual cluster and prints what came of it.\n"
    "\n"
    "  --trace FILE         job list as CSV, plain or .gz: columns job_id, num_gpu, submit_time, "
    "duration,\n"
    "                       or as published for Tiresias, ITP (elasticflow-traces) and Philly\n"
    "  --nodes N            nodes of the virtual cluster\n"
    "  --gpus-per-node G    cards of each\n"
    "  --policy P           one of those below (default fifo)\n"
    "  --compare P1,P2,...  several policies side by side\n"
    "  --placement RULE     count (default): only the number of free cards matters;\n"
    "                       yarn: node by node (fifo and fjf)\n"
    "  --skip-oversize      leave out jobs larger than the cluster instead of refusing the trace\n"
    "  --json               one JSON object (with --compare an array of them)\n"
    "  --jobs-out FILE      start, end and preemptions of each job as CSV (one policy only)\n"
    "  --html FILE          a report with plots, one file without outside parts\n"
    "  -h, --help\n"
    "\n"
    "Policies:\n";

static void print_help(void)
{
    fputs(help_text, stdout);
    for (size_t i = 0; policy_at(i); i++) {
        const struct policy *p = policy_at(i);
        char name[48];
        snprintf(name, sizeof name, "%s%s%s", p->name, p->alias ? ", " : "", p->alias ? p->alias : "");
        printf("  %-20s %s\n", name, p->about);
    }
}

/* ---- the command line ---- */

static int add_policy(struct request *q, const char *name, struct err *e)
{
    if (!policy_find(name)) {
        struct strbuf names = {0};
        for (size_t i = 0; policy_at(i); i++) {
            strbuf_printf(&names, "%s%s", i > 0 ? ", " : "", policy_at(i)->name);
            if (policy_at(i)->alias)
                strbuf_printf(&names, ", %s", policy_at(i)->alias);
        }
        err_set(e, -EINVAL, "policy is \"%.32s\"; allowed: %s", name, strbuf_str(&names));
        strbuf_done(&names);
        return -EINVAL;
    }
    if (q->policies_len == RUNS_MAX)
        return err_set(e, -EINVAL, "more than %d policies; allowed: at most %d", RUNS_MAX, RUNS_MAX);
    q->policies[q->policies_len++] = name;
    return 0;
}

static int add_compare(struct request *q, const char *list, struct err *e)
{
    if (q->compare)
        return err_set(e, -EINVAL, "--compare is given twice; allowed: once, the policies with commas between");
    q->many = true;
    q->compare = mem_strdup(list);
    if (!q->compare)
        return err_set(e, -ENOMEM, "no memory");
    for (char *at = q->compare, *comma; at; at = comma ? comma + 1 : NULL) {
        comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        int rc = add_policy(q, at, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int parse_count(const char *option, const char *text, int64_t most, uint32_t *ret, struct err *e)
{
    int64_t value;
    int rc = units_parse_int(text, 1, most, &value, e);
    if (rc < 0)
        return err_set(e, rc, "--%s is \"%.32s\"; allowed: a whole number, 1 to %" PRId64, option, text, most);
    *ret = (uint32_t)value;
    return 0;
}

enum option_id {
    OPT_TRACE = 256,
    OPT_NODES,
    OPT_GPUS,
    OPT_POLICY,
    OPT_COMPARE,
    OPT_PLACEMENT,
    OPT_SKIP,
    OPT_JSON,
    OPT_JOBS_OUT,
    OPT_HTML,
    OPT_HELP,
};

static const struct option options[] = {
    {"trace", required_argument, NULL, OPT_TRACE},
    {"nodes", required_argument, NULL, OPT_NODES},
    {"gpus-per-node", required_argument, NULL, OPT_GPUS},
    {"policy", required_argument, NULL, OPT_POLICY},
    {"compare", required_argument, NULL, OPT_COMPARE},
    {"placement", required_argument, NULL, OPT_PLACEMENT},
    {"skip-oversize", no_argument, NULL, OPT_SKIP},
    {"json", no_argument, NULL, OPT_JSON},
    {"jobs-out", required_argument, NULL, OPT_JOBS_OUT},
    {"html", required_argument, NULL, OPT_HTML},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

/* `word` is what stands on the command line. */
static int take_option(struct request *q, int option, const char *word, struct err *e)
{
    switch (option) {
    case OPT_TRACE:
        q->trace = optarg;
        return 0;
    case OPT_NODES:
        return parse_count("nodes", optarg, NODES_MAX, &q->nodes, e);
    case OPT_GPUS:
        return parse_count("gpus-per-node", optarg, 1024, &q->gpus_per_node, e);
    case OPT_POLICY:
        return add_policy(q, optarg, e);
    case OPT_COMPARE:
        return add_compare(q, optarg, e);
    case OPT_PLACEMENT:
        q->placement = placement_find(optarg);
        return q->placement ? 0 : err_set(e, -EINVAL, "--placement is \"%.32s\"; allowed: count, yarn", optarg);
    case OPT_SKIP:
        q->skip_oversize = true;
        return 0;
    case OPT_JSON:
        q->json = true;
        return 0;
    case OPT_JOBS_OUT:
        q->jobs_out = optarg;
        return 0;
    case OPT_HTML:
        q->html = optarg;
        return 0;
    default:
        return err_set(e, -EINVAL,
                       "\"%.64s\" is not an option, or its value is missing or too many; see remuda replay "
                       "--help",
                       word);
    }
}

static int check_request(struct request *q, struct err *e)
{
    if (!q->trace)
        return err_set(e, -EINVAL, "--trace is missing: the job list to replay (or --openb DIR)");
    if (q->nodes == 0)
        return err_set(e, -EINVAL, "--nodes is missing: the nodes of the virtual cluster");
    if (q->gpus_per_node == 0)
        return err_set(e, -EINVAL, "--gpus-per-node is missing: the cards of each node");
    if (q->policies_len == 0)
        q->policies[q->policies_len++] = "fifo";
    if (q->jobs_out && q->policies_len > 1)
        return err_set(e, -EINVAL, "--jobs-out with %zu policies; allowed: one", q->policies_len);
    for (size_t i = 0; i < q->policies_len; i++)
        if (policy_find(q->policies[i])->needs_count && q->placement != &placement_count)
            return err_set(e, -EINVAL, "--placement is \"%s\"; allowed with policy %s: count", q->placement->name,
                           q->policies[i]);
    return 0;
}

/* 0, 1: help was asked for, or a negative errno. */
static int parse(int argc, char **argv, struct request *q, struct err *e)
{
    q->placement = &placement_count;
    optind = 0; /* the caller may have used getopt already */
    opterr = 0;
    for (;;) {
        int option = getopt_long(argc, argv, "h", options, NULL);
        if (option == -1)
            break;
        if (option == OPT_HELP || option == 'h')
            return 1;
        int rc = take_option(q, option, argv[optind > 1 ? optind - 1 : 1], e);
        if (rc < 0)
            return rc;
    }
    if (optind < argc)
        return err_set(e, -EINVAL, "\"%.64s\" is one word too many; see remuda replay --help", argv[optind]);
    return check_request(q, e);
}

/* ---- output ---- */

static int write_file(const char *path, const struct strbuf *b, struct err *e)
{
    if (b->failed)
        return err_set(e, -ENOMEM, "no memory for what goes to %s", path);
    FILE *f = fopen(path, "we");
    bool ok = f && fwrite(strbuf_str(b), 1, b->len, f) == b->len;
    int code = errno;
    if (f && fclose(f) != 0 && ok) {
        ok = false;
        code = errno;
    }
    return ok ? 0 : err_set(e, -(code ? code : EIO), "%s: cannot be written: %s", path, strerror(code ? code : EIO));
}

static void print_json(const struct request *q, const struct figures *runs, struct strbuf *b)
{
    struct jsonw w;
    jsonw_init(&w, b);
    if (q->many)
        jsonw_array(&w);
    for (size_t i = 0; i < q->policies_len; i++)
        figures_json(&runs[i], &w);
    if (q->many)
        jsonw_end_array(&w);
    strbuf_putc(b, '\n');
}

static void print_table(const struct figures *runs, size_t len, struct strbuf *b)
{
    const struct figures *f = &runs[0];
    strbuf_printf(b, "%s: %u jobs on %u nodes, %u GPUs, placement %s", f->trace, f->jobs, f->nodes, f->gpus,
                  f->placement);
    if (f->skipped > 0)
        strbuf_printf(b, " (%u jobs larger than the cluster left out)", f->skipped);
    strbuf_puts(b, "\n\n");
    strbuf_printf(b, "%-13s %11s %11s %11s %11s %11s %11s %11s %7s %9s\n", "policy", "JCT avg", "JCT p50", "JCT p95",
                  "queue avg", "queue p50", "queue p95", "makespan", "use %", "preempted");
    for (size_t i = 0; i < len; i++) {
        f = &runs[i];
        strbuf_printf(b, "%-13s %9.1f s %9.1f s %9.1f s %9.1f s %9.1f s %9.1f s %9" PRId64 " s %7.2f %9" PRIu64 "\n",
                      f->schedule, (double)f->jct_avg / 100, (double)f->jct_p50 / 10, (double)f->jct_p95 / 10,
                      (double)f->queue_avg / 100, (double)f->queue_p50 / 10, (double)f->queue_p95 / 10, f->makespan_s,
                      (double)f->use / 100, f->preemptions);
    }
}

/* ---- the runs ---- */

static int write_jobs(const struct request *q, const struct sim *s, struct err *e)
{
    struct strbuf b = {0};
    figures_jobs_csv(s, &b);
    int rc = write_file(q->jobs_out, &b, e);
    strbuf_done(&b);
    return rc;
}

/* One policy: its figures, and what the report needs of it. */
static int run_one(const struct request *q, const struct trace *t, size_t i, struct figures *f, struct report *report,
                   struct err *e)
{
    struct sim s = {0};
    int64_t began_ns = clock_mono_ns();
    int rc = sim_run(&s, t, q->nodes, q->gpus_per_node, policy_find(q->policies[i]), q->placement, q->html != NULL, e);
    int64_t took_ns = clock_mono_ns() - began_ns;
    if (rc == 0)
        rc = figures_take(f, &s, q->policies[i], e);
    if (rc == 0) {
        f->wall_us = (took_ns + 500) / 1000;
        if (q->jobs_out)
            rc = write_jobs(q, &s, e);
    }
    if (rc == 0 && q->html)
        rc = report_add(report, &s, f, e);
    sim_done(&s);
    return rc;
}

static int output(const struct request *q, const struct figures *runs, const struct report *report, struct err *e)
{
    struct strbuf b = {0};
    int rc = 0;
    if (q->html) {
        report_html(report, &b);
        rc = write_file(q->html, &b, e);
        strbuf_clear(&b);
    }
    if (q->json)
        print_json(q, runs, &b);
    else
        print_table(runs, q->policies_len, &b);
    if (rc == 0 && b.failed)
        rc = err_set(e, -ENOMEM, "no memory for the output");
    if (rc == 0 && (fwrite(strbuf_str(&b), 1, b.len, stdout) != b.len || fflush(stdout) != 0))
        rc = err_set(e, -EIO, "standard output: cannot be written");
    strbuf_done(&b);
    return rc;
}

static int replay(const struct request *q, struct err *e)
{
    struct trace t = {0};
    struct figures runs[RUNS_MAX] = {0};
    struct report report = {0};
    int rc = trace_read(q->trace, &t, e);
    if (rc == 0 && q->skip_oversize)
        trace_limit(&t, q->nodes * q->gpus_per_node);
    for (size_t i = 0; i < q->policies_len && rc == 0; i++)
        rc = run_one(q, &t, i, &runs[i], &report, e);
    if (rc == 0)
        rc = output(q, runs, &report, e);
    report_done(&report);
    for (size_t i = 0; i < q->policies_len; i++)
        figures_done(&runs[i]);
    trace_done(&t);
    return rc;
}

/* Whether --openb stands on the command line; then all of it is for that experiment. */
static bool asks_openb(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--openb") == 0 || strncmp(argv[i], "--openb=", 8) == 0)
            return true;
    return false;
}

int replay_main(int argc, char **argv)
{
    if (asks_openb(argc, argv))
        return openb_main(argc, argv);
    struct request q = {0};
    struct err e = {0};
    int rc = parse(argc, argv, &q, &e);
    int code = 0;
    if (rc == 1) {
        print_help();
    } else if (rc < 0) {
        fprintf(stderr, "remuda replay: %s\n", e.text);
        code = 2;
    } else if (replay(&q, &e) < 0) {
        fprintf(stderr, "remuda replay: %s\n", e.text);
        code = 1;
    }
    mem_free(q.compare);
    return code;
}
