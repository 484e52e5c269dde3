/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement alone, ledger included, as programs see it: many one-card jobs on 500 nodes, a large
 * gang, single changes on 10,000 nodes, and the openb experiment. Prints figures, asserts none.
 */
#include "base/mem.h"
#include "base/sys/clock.h"
#include "core/strategy.h"
#include "replay/openb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct cluster cluster;
static struct ledger ledger;
static struct placer *placer;
static struct placement found;

static void die(const char *what)
{
    fprintf(stderr, "bench_place: %s\n", what);
    exit(EXIT_FAILURE);
}

/* Nodes of eight cards in racks of 16, two islands each. */
static void make_pool(uint32_t nodes)
{
    if (cluster_init(&cluster) < 0)
        die("no memory");
    ledger_init(&ledger, &cluster);
    placer = placer_new(&cluster);
    if (placer == NULL || ledger_reserve(&ledger, (struct payer){0}) < 0)
        die("no memory");
    for (uint32_t i = 0; i < nodes; i++) {
        struct node_desc d = {.cpu_milli = 128000, .mem_mib = 1 << 20, .gpus_len = 8};
        struct err e;
        uint32_t id;
        snprintf(d.name, sizeof d.name, "node-%u", i);
        snprintf(d.rack, sizeof d.rack, "rack-%u", i / 16);
        for (uint32_t g = 0; g < 8; g++) {
            snprintf(d.gpus[g].uuid, sizeof d.gpus[g].uuid, "GPU-%u-%u", i, g);
            snprintf(d.gpus[g].model, sizeof d.gpus[g].model, "A100");
            d.gpus[g].mem_mib = 81920;
            d.gpus[g].island = (uint8_t)(g / 4);
            d.gpus[g].healthy = true;
            for (uint32_t h = 0; h < 8; h++)
                d.link[g][h] = g == h ? LINK_SELF : g / 4 == h / 4 ? LINK_NVLINK : LINK_SYS;
        }
        if (cluster_set_node(&cluster, &d, &id, &e) < 0)
            die(e.text);
    }
}

static void drop_pool(void)
{
    placer_free(placer);
    ledger_done(&ledger);
    cluster_done(&cluster);
}

static struct place_query query(uint32_t workers, uint32_t gpus, uint32_t share, uint32_t cpu, const char *strategy)
{
    return (struct place_query){
        .req = {.gpus = gpus, .share_milli = share, .cpu_milli = cpu, .model_mask = UINT64_MAX},
        .workers = workers,
        .strategy = strategy_find(strategy),
    };
}

static void place(const struct place_query *q)
{
    if (place_find(placer, q, &found) < 0)
        die("no placement was found");
    ledger_take(&ledger, (struct payer){0}, found.grants, found.len);
}

static double ms_since(int64_t start_ns)
{
    return (double)(clock_mono_ns() - start_ns) / 1e6;
}

static void one_card_jobs(const char *strategy)
{
    make_pool(500);
    struct place_query q = query(1, 1, 0, 4000, strategy);
    int64_t start = clock_mono_ns();
    for (int i = 0; i < 4000; i++) {
        placer_observe(placer, &q.req, 1);
        place(&q);
    }
    printf("4,000 one-card jobs on 500 nodes x 8, %s\t%.2f\tms\n", strategy, ms_since(start));
    drop_pool();
}

static void large_gang(const char *strategy)
{
    make_pool(512);
    struct place_query q = query(512, 8, 0, 64000, strategy);
    int64_t start = clock_mono_ns();
    place(&q);
    printf("a gang of 512 workers x 8 cards on 512 nodes, %s\t%.2f\tms\n", strategy, ms_since(start));
    struct place_query no = query(10, 8, 0, 0, strategy);
    start = clock_mono_ns();
    if (place_find(placer, &no, &found) == 0)
        die("a placement was found where none is");
    printf("\"does not fit\" for 80 cards on the full pool, %s\t%.3f\tms\n", strategy, ms_since(start));
    drop_pool();
}

/* A pool of 10,000 nodes half full; then 100 changes and one search for each of ten kinds. */
static void many_nodes(void)
{
    enum { KINDS = 10, CHANGES = 100 };
    make_pool(10000);
    struct place_query kinds[KINDS];
    for (uint32_t k = 0; k < KINDS; k++)
        kinds[k] = query(1, k % 3 == 0 ? 0 : 1u << (k % 3 - 1), k % 3 == 0 ? 100 + 50 * k : 0, 1000 * k, "remuda");
    for (uint32_t k = 0; k < KINDS; k++)
        place(&kinds[k]);
    struct grant changed[CHANGES];
    struct place_query share = query(1, 0, 300, 100, "spread");
    for (int i = 0; i < CHANGES; i++) {
        place(&share);
        changed[i] = found.grants[0];
    }
    for (uint32_t k = 0; k < KINDS; k++)
        place(&kinds[k]);
    ledger_give(&ledger, (struct payer){0}, changed, CHANGES);
    int64_t start = clock_mono_ns();
    for (uint32_t k = 0; k < KINDS; k++)
        place(&kinds[k]);
    printf("10,000 nodes x 8: ten kinds of requests after 100 changes\t%.2f\tms\n", ms_since(start));
    start = clock_mono_ns();
    for (int i = 0; i < 20000; i++)
        place(&kinds[1]);
    printf("10,000 nodes x 8: one-card jobs\t%.0f\tjobs/s\n", 20000 / ms_since(start) * 1e3);
    start = clock_mono_ns();
    struct place_query fresh = query(1, 1, 0, 777, "remuda");
    place(&fresh);
    printf("10,000 nodes x 8: first request of a new kind\t%.2f\tms\n", ms_since(start));
    drop_pool();
}

static void openb(void)
{
    static const char *const policies[] = {"fgd", "remuda", "bestfit"};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        struct rusage before;
        struct rusage after;
        struct openb_data d;
        struct openb_result res;
        struct err e;
        getrusage(RUSAGE_SELF, &before);
        if (openb_read(&d, OPENB, "default", 42, &e) < 0 ||
            openb_run(&d, openb_strategy(policies[i]), 42, &res, NULL, &e) < 0)
            die(e.text);
        openb_data_done(&d);
        getrusage(RUSAGE_SELF, &after);
        double s = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                   (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6;
        printf("openb default, 10,866 arrivals on 1,213 nodes, %s\t%.3f\ts CPU\t%u.%02u %% "
               "allocated, largest memory %ld MB\n",
               policies[i], s, res.alloc_pct / 100, res.alloc_pct % 100, after.ru_maxrss / 1024);
    }
}

int main(void)
{
    openb();
    one_card_jobs("remuda");
    one_card_jobs("binpack");
    large_gang("remuda");
    large_gang("spread");
    many_nodes();
    placement_done(&found);
    return EXIT_SUCCESS;
}
