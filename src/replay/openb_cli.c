/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the openb experiment: options in, runs one after another, JSON or a table
 * out. */
#include "replay/openb.h"
#include "replay/replay.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKLOAD_SIZE 64
#define POLICIES      "fgd, bestfit, packing, clustering, dotprod, random, remuda, binpack, spread"

static const char help_text[] =
    "Usage: remuda replay --openb DIR [--workload W] [--seed S] [--policy P] [--json] "
    "[--placements FILE]\n"
    "       remuda replay --openb DIR --all [--policy P] [--json]\n"
    "\n"
    "The packing experiment on the openb trace: tasks arrive, stay, and are dropped when they fit "
    "nowhere.\n"
    "\n"
    "  --openb DIR          folder with node list, task lists and orders\n"
    "  --workload W         task list: default (the default) or one of DIR/variants\n"
    "  --seed S             order of arrival (default 42)\n"
    "  --policy P           " POLICIES "\n"
    "                       (default remuda)\n"
    "  --all                every workload and seed that DIR/orders has\n"
    "  --json               one JSON object (with --all an array of them)\n"
    "  --placements FILE    where each task went, as CSV: k,pod_row,node_row,shared_gpu\n";

struct openb_request {
    const char *dir;
    const char *workload;
    const char *policy;
    const char *placements;
    uint32_t seed;
    bool all;
    bool json;
};

/* One order of arrival. */
struct order {
    char workload[WORKLOAD_SIZE];
    uint32_t seed;
};

static const struct option options[] = {
    {"openb", required_argument, NULL, 'o'},
    {"workload", required_argument, NULL, 'w'},
    {"seed", required_argument, NULL, 's'},
    {"policy", required_argument, NULL, 'p'},
    {"json", no_argument, NULL, 'j'},
    {"placements", required_argument, NULL, 'f'},
    {"all", no_argument, NULL, 'a'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int parse_seed(const char *text, uint32_t *ret, struct err *e)
{
    int64_t value;
    if (units_parse_int(text, 0, INT32_MAX, &value, NULL) < 0)
        return err_set(e, -EINVAL, "--seed is \"%.32s\"; allowed: a whole number, 0 to %d", text, INT32_MAX);
    *ret = (uint32_t)value;
    return 0;
}

/* A workload's name becomes part of a path. */
static int check_workload(const char *name, struct err *e)
{
    if (name[0] == '\0' || strlen(name) >= WORKLOAD_SIZE ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name))
        return err_set(e, -EINVAL, "--workload is \"%.64s\"; allowed: 1 to %d small letters, digits and '-'", name,
                       WORKLOAD_SIZE - 1);
    return 0;
}

/* 0, 1 for --help, or a negative errno. */
static int parse(int argc, char **argv, struct openb_request *q, struct err *e)
{
    *q = (struct openb_request){.workload = "default", .policy = "remuda", .seed = 42};
    optind = 0;
    opterr = 0;
    int r = 0;
    for (int c; r == 0 && (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        if (c == 'o')
            q->dir = optarg;
        else if (c == 'w')
            r = check_workload(q->workload = optarg, e);
        else if (c == 's')
            r = parse_seed(optarg, &q->seed, e);
        else if (c == 'p')
            q->policy = optarg;
        else if (c == 'f')
            q->placements = optarg;
        else if (c == 'j')
            q->json = true;
        else if (c == 'a')
            q->all = true;
        else if (c == 'h')
            return 1;
        else
            r = err_set(e, -EINVAL,
                        "\"%.64s\" is not an option, or its value is missing or too many; see "
                        "--openb DIR --help",
                        argv[optind - 1]);
    }
    if (r < 0)
        return r;
    if (optind < argc)
        return err_set(e, -EINVAL, "\"%.64s\" is too much; only options are allowed", argv[optind]);
    if (openb_strategy(q->policy) == NULL)
        return err_set(e, -EINVAL, "--policy is \"%.32s\"; allowed: " POLICIES, q->policy);
    if (q->all && q->placements != NULL)
        return err_set(e, -EINVAL, "--placements goes with one run, not with --all");
    return 0;
}

/* --- orders --- */

static int compare_orders(const void *a, const void *b)
{
    const struct order *x = a;
    const struct order *y = b;
    int r = strcmp(x->workload, y->workload);
    return r != 0 ? r : (x->seed > y->seed) - (x->seed < y->seed);
}

/* "default_seed42_pods.csv.gz" -> default, 42. False for other names. */
static bool parse_order(const char *file, struct order *o)
{
    const char *mark = strstr(file, "_seed");
    if (mark == NULL || mark == file || (size_t)(mark - file) >= sizeof o->workload)
        return false;
    char *end;
    unsigned long seed = strtoul(mark + 5, &end, 10);
    if (end == mark + 5 || seed > INT32_MAX || strncmp(end, "_pods.csv", 9) != 0)
        return false;
    *o = (struct order){.seed = (uint32_t)seed};
    memcpy(o->workload, file, (size_t)(mark - file));
    return check_workload(o->workload, NULL) == 0;
}

/* All orders of the folder, sorted; *ret is the caller's (mem_free). */
static int list_orders(const char *dir, struct order **ret, size_t *ret_len, struct err *e)
{
    char path[4096];
    size_t cap = 0;
    size_t len = 0;
    struct order *orders = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/orders", dir) >= sizeof path)
        return err_set(e, -EINVAL, "--openb: the name is longer than %zu bytes", sizeof path - 8);
    DIR *d = opendir(path);
    if (d == NULL)
        return err_set(e, -errno, "%s: cannot be opened: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        struct order o;
        if (!parse_order(entry->d_name, &o))
            continue;
        if (mem_grow(&orders, &cap, len + 1, sizeof *orders) < 0) {
            closedir(d);
            mem_free(orders);
            return err_set(e, -ENOMEM, "out of memory");
        }
        orders[len++] = o;
    }
    closedir(d);
    if (len == 0)
        return err_set(e, -ENOENT, "%s: no file WORKLOAD_seedS_pods.csv in it", path);
    qsort(orders, len, sizeof *orders, compare_orders);
    *ret = orders;
    *ret_len = len;
    return 0;
}

/* --- output --- */

static void write_json(struct jsonw *w, const struct order *o, const char *policy, const struct openb_result *res)
{
    jsonw_object(w);
    jsonw_key_str(w, "workload", o->workload);
    jsonw_key_u64(w, "seed", o->seed);
    jsonw_key_str(w, "policy", policy);
    jsonw_key_u64(w, "arrived_pods", res->arrived_pods);
    jsonw_key_u64(w, "unscheduled_pods", res->unscheduled_pods);
    jsonw_key_u64(w, "alloc_gpu_milli", res->alloc_gpu_milli);
    jsonw_key(w, "alloc_pct");
    jsonw_fixed(w, res->alloc_pct, 2);
    jsonw_key(w, "frag_pct_of_capacity");
    jsonw_fixed(w, res->frag_pct_of_capacity, 2);
    jsonw_key(w, "frag_pct_of_idle");
    jsonw_fixed(w, res->frag_pct_of_idle, 2);
    jsonw_end_object(w);
}

static void write_row(const struct order *o, const char *policy, const struct openb_result *res)
{
    printf("%-14s %6u  %-10s %8u %8u %10llu %7u.%02u %7u.%02u\n", o->workload, o->seed, policy, res->arrived_pods,
           res->unscheduled_pods, (unsigned long long)res->alloc_gpu_milli, res->alloc_pct / 100, res->alloc_pct % 100,
           res->frag_pct_of_capacity / 100, res->frag_pct_of_capacity % 100);
}

static int write_placements(const char *path, const struct openb_data *d, const struct openb_placed *placed,
                            struct err *e)
{
    FILE *f = fopen(path, "we");
    if (f == NULL)
        return err_set(e, -errno, "--placements %s: cannot be written: %s", path, strerror(errno));
    fputs("k,pod_row,node_row,shared_gpu\n", f);
    for (uint32_t k = 0; k < d->arrivals_len; k++)
        fprintf(f, "%u,%u,%d,%d\n", k, d->arrivals[k], placed[k].node, placed[k].shared_gpu);
    bool failed = ferror(f) != 0;
    failed = fclose(f) != 0 || failed;
    return failed ? err_set(e, -EIO, "--placements %s: cannot be written", path) : 0;
}

static int run_order(const struct openb_request *q, const struct order *o, struct openb_result *res, struct err *e)
{
    struct openb_data d;
    struct openb_placed *placed CLEANUP_FREE = NULL;
    int r = openb_read(&d, q->dir, o->workload, o->seed, e);
    if (r < 0)
        return r;
    if (q->placements != NULL)
        placed = mem_alloc(d.arrivals_len, sizeof *placed);
    if (q->placements != NULL && placed == NULL)
        r = err_set(e, -ENOMEM, "out of memory");
    if (r == 0)
        r = openb_run(&d, openb_strategy(q->policy), o->seed, res, placed, e);
    if (r == 0 && placed != NULL)
        r = write_placements(q->placements, &d, placed, e);
    openb_data_done(&d);
    return r;
}

static int run_orders(const struct openb_request *q, const struct order *orders, size_t len, struct err *e)
{
    struct strbuf out CLEANUP(strbuf_done) = {0};
    struct jsonw w;
    jsonw_init(&w, &out);
    if (q->all)
        jsonw_array(&w);
    for (size_t i = 0; i < len; i++) {
        struct openb_result res = {0};
        int r = run_order(q, &orders[i], &res, e);
        if (r < 0)
            return r;
        if (!q->json && i == 0)
            printf("%-14s %6s  %-10s %8s %8s %10s %10s %10s\n", "workload", "seed", "policy", "arrived", "dropped",
                   "gpu-milli", "alloc-%", "frag-%");
        write_json(&w, &orders[i], q->policy, &res);
        if (!q->json)
            write_row(&orders[i], q->policy, &res);
    }
    if (q->all)
        jsonw_end_array(&w);
    if (out.failed)
        return err_set(e, -ENOMEM, "out of memory");
    if (q->json)
        puts(strbuf_str(&out));
    return fflush(stdout) != 0 ? err_set(e, -EIO, "the output cannot be written") : 0;
}

int openb_main(int argc, char **argv)
{
    struct openb_request q;
    struct err e = {0};
    struct order one = {0};
    struct order *orders = NULL;
    size_t len = 0;
    int r = parse(argc, argv, &q, &e);
    if (r == 1) {
        fputs(help_text, stdout);
        return 0;
    }
    if (r < 0) {
        fprintf(stderr, "remuda replay: %s\n", e.text);
        return 2;
    }
    if (q.all) {
        r = list_orders(q.dir, &orders, &len, &e);
    } else {
        memcpy(one.workload, q.workload, strlen(q.workload));
        one.seed = q.seed;
    }
    if (r == 0)
        r = run_orders(&q, q.all ? orders : &one, q.all ? len : 1, &e);
    mem_free(orders);
    if (r < 0)
        fprintf(stderr, "remuda replay: %s\n", e.text);
    return r < 0 ? 1 : 0;
}
