/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trains a small network on generated data and shows how the loss falls:
 *
 *   trainer --steps 400 --seed 1 --checkpoint spiral.ckpt
 *
 * With WORLD_SIZE above 1 it is one worker of several (RANK, MASTER_ADDR, MASTER_PORT) that average their gradients;
 * the batch is split among them, so that the loss falls as with one. With CUDA_VISIBLE_DEVICES set it uses the cards
 * it sees (card.c).
 *
 * Signals, looked at between two steps: SIGUSR1 saves a checkpoint and goes on; SIGTERM saves one and ends with exit
 * status 143, the same step on all workers. Started again with the same options it goes on from there, and ends with
 * the very numbers that an undisturbed run gives.
 */
#include "trainer.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLAG_STOP    1u
#define FLAG_SAVE    2u
#define EXIT_USAGE   2
#define EXIT_STOPPED 143

struct options {
    uint32_t hidden;
    uint32_t points;
    uint32_t batch;
    uint32_t steps;
    uint32_t print;
    uint32_t step_ms;
    uint32_t busy_percent;
    uint64_t card_mem_mib;
    uint64_t seed;
    double rate;
    const char *checkpoint;
    int device; /* 'a'uto, 'c'uda, 'n'one */
    uint32_t rank;
    uint32_t world;
    uint16_t port;
    const char *address;
};

static const char usage[] =
    "usage: trainer [options]\n"
    "  --steps N         steps to train (400)\n"
    "  --hidden N        units in each hidden layer, 1 to 4096 (64)\n"
    "  --points N        points of the data set (1200)\n"
    "  --batch N         points of a step, over all workers (256)\n"
    "  --rate R          learning rate (0.003)\n"
    "  --seed N          of data, first weights and batches (1)\n"
    "  --print N         steps between two lines of output (50)\n"
    "  --step-ms N       a step takes at least N milliseconds (0: as fast as it goes)\n"
    "  --busy N          part of a step's time that the cards are kept busy, in percent (80)\n"
    "  --card-mem N      MiB to hold on each card (1024)\n"
    "  --device WHICH    auto: cards if CUDA_VISIBLE_DEVICES is set; cuda: cards or fail; cpu: none (auto)\n"
    "  --checkpoint FILE go on from FILE if it is there; save to it on SIGUSR1, SIGTERM and at the end\n"
    "Workers: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT from the environment.\n";

static volatile sig_atomic_t asked_to_stop;
static volatile sig_atomic_t asked_to_save;

static void on_signal(int signal)
{
    if (signal == SIGTERM)
        asked_to_stop = 1;
    else
        asked_to_save = 1;
}

int complain(const char *fmt, ...)
{
    va_list args;
    fputs("trainer: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    return -1;
}

static int parse_number(const char *name, const char *text, uint64_t low, uint64_t high, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < low || value > high)
        return complain("%s: \"%s\" is not allowed; a whole number from %llu to %llu is", name, text,
                        (unsigned long long)low, (unsigned long long)high);
    *ret = value;
    return 0;
}

static int parse_u32(const char *name, const char *text, uint32_t low, uint32_t high, uint32_t *ret)
{
    uint64_t value;
    if (parse_number(name, text, low, high, &value) < 0)
        return -1;
    *ret = (uint32_t)value;
    return 0;
}

static int parse_rate(const char *text, double *ret)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0 && value <= 1))
        return complain("--rate: \"%s\" is not allowed; a number above 0 and up to 1 is", text);
    *ret = value;
    return 0;
}

static int parse_device(const char *text, int *ret)
{
    if (strcmp(text, "auto") != 0 && strcmp(text, "cuda") != 0 && strcmp(text, "cpu") != 0)
        return complain("--device: \"%s\" is unknown; allowed: auto, cuda, cpu", text);
    *ret = strcmp(text, "cpu") == 0 ? 'n' : text[0];
    return 0;
}

static int parse_one(int option, const char *text, struct options *o)
{
    switch (option) {
    case 'h':
        return parse_u32("--hidden", text, 1, HIDDEN_MAX, &o->hidden);
    case 'p':
        return parse_u32("--points", text, CLASSES, 10000000, &o->points);
    case 'b':
        return parse_u32("--batch", text, 1, 1000000, &o->batch);
    case 's':
        return parse_u32("--steps", text, 1, 1000000000, &o->steps);
    case 'n':
        return parse_u32("--print", text, 1, 1000000000, &o->print);
    case 'm':
        return parse_u32("--step-ms", text, 0, 3600000, &o->step_ms);
    case 'u':
        return parse_u32("--busy", text, 0, 100, &o->busy_percent);
    case 'g':
        return parse_number("--card-mem", text, 1, 512 << 10, &o->card_mem_mib);
    case 'e':
        return parse_number("--seed", text, 0, UINT64_MAX, &o->seed);
    case 'r':
        return parse_rate(text, &o->rate);
    case 'd':
        return parse_device(text, &o->device);
    case 'c':
        o->checkpoint = text;
        return 0;
    default:
        return -1;
    }
}

static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {
        {"hidden", 1, NULL, 'h'},     {"points", 1, NULL, 'p'},
        {"batch", 1, NULL, 'b'},      {"steps", 1, NULL, 's'},
        {"print", 1, NULL, 'n'},      {"step-ms", 1, NULL, 'm'},
        {"busy", 1, NULL, 'u'},       {"card-mem", 1, NULL, 'g'},
        {"seed", 1, NULL, 'e'},       {"rate", 1, NULL, 'r'},
        {"device", 1, NULL, 'd'},     {"checkpoint", 1, NULL, 'c'},
        {"help", 0, NULL, '?' + 256}, {0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == '?' + 256) {
            fputs(usage, stdout);
            exit(0);
        }
        if (option == '?' || parse_one(option, optarg, o) < 0)
            return -1;
    }
    return optind == argc ? 0 : complain("\"%s\": no further words are allowed", argv[optind]);
}

static int parse_environment(struct options *o)
{
    const char *world = getenv("WORLD_SIZE");
    const char *rank = getenv("RANK");
    const char *port = getenv("MASTER_PORT");
    uint32_t number = 0;
    o->world = 1;
    if (world != NULL && parse_u32("WORLD_SIZE", world, 1, WORLD_MAX, &o->world) < 0)
        return -1;
    if (o->world == 1)
        return 0;
    if (rank == NULL || port == NULL)
        return complain("WORLD_SIZE is %u but RANK or MASTER_PORT is not set", o->world);
    if (parse_u32("RANK", rank, 0, o->world - 1, &o->rank) < 0 || parse_u32("MASTER_PORT", port, 1, 65535, &number) < 0)
        return -1;
    o->port = (uint16_t)number;
    o->address = getenv("MASTER_ADDR") != NULL ? getenv("MASTER_ADDR") : "127.0.0.1";
    return 0;
}

/* Everything a run needs; what is not open is zero. */
struct run {
    struct options o;
    struct model model;
    struct points points;
    struct gradient gradient;
    struct peers peers;
    struct cards *cards;
};

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int save(struct run *r)
{
    if (r->o.checkpoint == NULL || r->o.rank != 0)
        return 0;
    if (checkpoint_save(r->o.checkpoint, &r->model) < 0)
        return -1;
    printf("saved step %llu to %s\n", (unsigned long long)r->model.step, r->o.checkpoint);
    return 0;
}

static int set_up(struct run *r)
{
    struct options *o = &r->o;
    if (model_init(&r->model, o->hidden, o->seed) < 0 || points_make(&r->points, o->points, o->seed) < 0 ||
        gradient_init(&r->gradient, &r->model) < 0)
        return -1;
    int loaded = o->checkpoint != NULL && o->rank == 0 ? checkpoint_load(o->checkpoint, &r->model) : 1;
    if (loaded < 0 || cards_open(&r->cards, o->card_mem_mib << 20, o->device == 'c') < 0)
        return -1;
    if (r->model.len * sizeof(float) > o->card_mem_mib << 20 && r->cards != NULL)
        return complain("--card-mem: %llu MiB do not hold the %zu parameters", (unsigned long long)o->card_mem_mib,
                        r->model.len);
    if (peers_open(&r->peers, o->rank, o->world, o->address, o->port, 60) < 0 ||
        peers_share_model(&r->peers, &r->model) < 0 || cards_put(r->cards, &r->model) < 0)
        return -1;
    printf("%zu parameters, %u points, batch %u, seed %llu, rank %u of %u, cards: %u (%s)\n", r->model.len, o->points,
           o->batch, (unsigned long long)o->seed, o->rank, o->world, cards_len(r->cards), cards_name(r->cards));
    if (r->model.step > 0)
        printf("going on from step %llu\n", (unsigned long long)r->model.step);
    return 0;
}

static void tear_down(struct run *r)
{
    peers_close(&r->peers);
    cards_close(r->cards);
    gradient_done(&r->gradient);
    points_done(&r->points);
    model_done(&r->model);
}

/* Keeps cards busy and pads the step to its length. */
static int spend(struct run *r, uint64_t began_us)
{
    uint64_t length_us = (uint64_t)r->o.step_ms * 1000;
    uint64_t spent_us = now_us() - began_us;
    uint64_t base_us = length_us > spent_us ? length_us : spent_us;
    if (cards_work(r->cards, (uint32_t)(base_us * r->o.busy_percent / 100)) < 0)
        return -1;
    spent_us = now_us() - began_us;
    if (spent_us < length_us) {
        uint64_t left_us = length_us - spent_us;
        nanosleep(&(struct timespec){(time_t)(left_us / 1000000), (long)(left_us % 1000000) * 1000}, NULL);
    }
    return 0;
}

/* One step. *ret_flags: what some worker was asked for. */
static int one_step(struct run *r, uint32_t *ret_flags)
{
    uint64_t began_us = now_us();
    uint32_t flags = (asked_to_stop ? FLAG_STOP : 0) | (asked_to_save ? FLAG_SAVE : 0);
    asked_to_save = 0;
    if (model_gradient(&r->model, &r->points, r->o.batch, r->o.rank, r->o.world, &r->gradient) < 0 ||
        peers_sum(&r->peers, &r->model, &r->gradient, &flags) < 0)
        return -1;
    model_update(&r->model, &r->gradient, (float)r->o.rate);
    if (cards_put(r->cards, &r->model) < 0 || spend(r, began_us) < 0)
        return -1;
    if (r->model.step % r->o.print == 0)
        printf("step %llu loss %.6f accuracy %.1f %%\n", (unsigned long long)r->model.step,
               r->gradient.loss / r->gradient.count, 100 * r->gradient.correct / r->gradient.count);
    *ret_flags = flags;
    return 0;
}

static int train(struct run *r)
{
    while (r->model.step < r->o.steps) {
        uint32_t flags;
        if (one_step(r, &flags) < 0)
            return 1;
        if (flags != 0 && (cards_check(r->cards, &r->model) < 0 || save(r) < 0))
            return 1;
        if (flags & FLAG_STOP) {
            printf("stopped after step %llu\n", (unsigned long long)r->model.step);
            return EXIT_STOPPED;
        }
    }
    double loss, accuracy;
    if (model_evaluate(&r->model, &r->points, &loss, &accuracy) < 0 || cards_check(r->cards, &r->model) < 0 ||
        save(r) < 0)
        return 1;
    if (!isfinite(loss)) {
        complain("the loss is not a number any more; try a smaller --rate");
        return 1;
    }
    printf("done: steps %llu, loss %.6f, accuracy %.1f %%\n", (unsigned long long)r->model.step, loss, 100 * accuracy);
    return 0;
}

int main(int argc, char **argv)
{
    struct run r = {.o = {.hidden = 64,
                          .points = 1200,
                          .batch = 256,
                          .steps = 400,
                          .print = 50,
                          .busy_percent = 80,
                          .card_mem_mib = 1024,
                          .seed = 1,
                          .rate = 0.003,
                          .device = 'a'}};
    if (parse_options(argc, argv, &r.o) < 0 || parse_environment(&r.o) < 0) {
        fputs("Try trainer --help.\n", stderr);
        return EXIT_USAGE;
    }
    if (r.o.device == 'n')
        unsetenv("CUDA_VISIBLE_DEVICES");
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    int rc = set_up(&r) < 0 ? 1 : train(&r);
    tear_down(&r);
    return rc;
}
