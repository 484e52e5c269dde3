/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remuda-simload: puts a load on simulated cards, so that telemetry has something to show, and
 * optionally runs a command while the load lasts. The load is held by this process and vanishes
 * with it, however it ends.
 *
 * With a command: a child runs it, signals to us are passed on, and its exit status becomes ours
 * (128 + n for signal n, 127 when it could not be started). Without: the load is held for the time
 * given, or until SIGTERM or SIGINT.
 *
 * It depends on libc only, as all of simgpu does; hence a small parser of sizes and times of its
 * own.
 */
#include "simgpu/state/state.h"
#include "simgpu/state/visible.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1024ull * 1024)

struct options {
    const char *cards; /* as in CUDA_VISIBLE_DEVICES; NULL: what that says, or all */
    uint32_t permille;
    uint64_t mem_bytes;
    uint64_t duration_ms; /* 0: no end */
    char **command;       /* NULL: none */
};

struct load {
    struct sim_state state;
    uint32_t cards[SIMGPU_CARDS_MAX];
    struct simgpu_slot *slots[SIMGPU_CARDS_MAX];
    uint32_t len;
};

static const char usage[] =
    "usage: remuda-simload [--gpu LIST] [--sm PERCENT] [--mem SIZE] [--for TIME] [-- COMMAND ...]\n"
    "Puts a load on simulated cards (those of the file that REMUDA_SIMGPU names).\n"
    "  --gpu LIST    indexes or UUIDs, separated by commas; default: CUDA_VISIBLE_DEVICES, else "
    "all cards\n"
    "  --sm PERCENT  part of the SMs to keep busy, 0 to 100 (default 100)\n"
    "  --mem SIZE    memory to hold on each card: a number with K, M, G or T (powers of 1024; "
    "default MiB)\n"
    "  --for TIME    seconds, or with s, m, h; default: until the command ends, or a signal "
    "comes\n";

static int fail(const char *what, const char *value, const char *allowed)
{
    fprintf(stderr, "remuda-simload: %s \"%s\": %s\n", what, value, allowed);
    return 2;
}

/* Digits with up to three decimals; the rest of the text goes to *rest. Thousandths; -1 when it is
 * no number. */
static int64_t decimal_milli(const char *text, const char **rest)
{
    size_t n = strspn(text, "0123456789"), frac = 0;
    if (n < 1 || n > 12)
        return -1;
    int64_t v = strtoll(text, NULL, 10) * 1000, unit = 100;
    text += n;
    if (*text == '.') {
        frac = strspn(++text, "0123456789");
        if (frac < 1 || frac > 3)
            return -1;
        for (size_t i = 0; i < frac; i++, unit /= 10)
            v += (text[i] - '0') * unit;
    }
    *rest = text + frac;
    return v;
}

static int parse_size(const char *text, uint64_t *ret)
{
    const char *unit;
    int64_t milli = decimal_milli(text, &unit);
    static const char letters[] = "KMGT";
    uint64_t factor = MIB;
    if (milli < 0)
        return -1;
    while (*unit == ' ')
        unit++;
    const char *l = *unit ? strchr(letters, *unit) : NULL;
    if (*unit) {
        if (!l || (strcmp(unit + 1, "") != 0 && strcmp(unit + 1, "B") != 0 && strcmp(unit + 1, "iB") != 0))
            return -1;
        factor = 1024ull << (10 * (l - letters));
    }
    if ((uint64_t)milli > UINT64_MAX / factor)
        return -1;
    *ret = (uint64_t)milli * factor / 1000;
    return 0;
}

static int parse_time(const char *text, uint64_t *ret_ms)
{
    const char *unit;
    int64_t milli = decimal_milli(text, &unit);
    if (milli < 0 || milli > 86400000ll * 1000)
        return -1;
    if (strcmp(unit, "ms") == 0)
        milli /= 1000;
    else if (strcmp(unit, "m") == 0)
        milli *= 60;
    else if (strcmp(unit, "h") == 0)
        milli *= 3600;
    else if (*unit && strcmp(unit, "s") != 0)
        return -1;
    *ret_ms = (uint64_t)milli;
    return 0;
}

static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {{"gpu", required_argument, NULL, 'g'}, {"sm", required_argument, NULL, 's'},
                                          {"mem", required_argument, NULL, 'm'}, {"for", required_argument, NULL, 'f'},
                                          {"help", no_argument, NULL, 'h'},      {NULL, 0, NULL, 0}};
    *o = (struct options){.permille = SIMGPU_PERMILLE};
    int c;
    while ((c = getopt_long(argc, argv, "+h", longs, NULL)) != -1) {
        const char *rest = "";
        int64_t milli;
        switch (c) {
        case 'g':
            o->cards = optarg;
            break;
        case 's':
            milli = decimal_milli(optarg, &rest);
            if (milli < 0 || milli > 100000 || *rest)
                return fail("--sm", optarg, "0 to 100 is allowed");
            o->permille = (uint32_t)(milli / 100);
            break;
        case 'm':
            if (parse_size(optarg, &o->mem_bytes) != 0)
                return fail("--mem", optarg, "a size such as 4GiB or 512M is needed");
            break;
        case 'f':
            if (parse_time(optarg, &o->duration_ms) != 0)
                return fail("--for", optarg, "a time such as 30, 1.5s, 10m or 2h is needed, at most a day");
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs(usage, stderr);
            return 2;
        }
    }
    if (optind < argc)
        o->command = argv + optind;
    return 0;
}

static const char *open_error(int rc)
{
    switch (rc) {
    case -ENOENT:
        return "no simulated cards: REMUDA_SIMGPU does not name a state file";
    case -EPROTONOSUPPORT:
        return "the state file is of another version";
    case -EBADMSG:
        return "the state file is damaged";
    default:
        return strerror(-rc);
    }
}

static int start_load(const struct options *o, struct load *l)
{
    int rc = sim_state_open(&l->state, NULL, true);
    if (rc != 0) {
        fprintf(stderr, "remuda-simload: %s\n", open_error(rc));
        return 1;
    }
    const char *list = o->cards ? o->cards : getenv("CUDA_VISIBLE_DEVICES");
    l->len = sim_visible_cards(&l->state, list, l->cards);
    if (l->len == 0)
        return fail(o->cards ? "--gpu" : "CUDA_VISIBLE_DEVICES", list ? list : "", "no such card");
    for (uint32_t i = 0; i < l->len; i++) {
        const struct simgpu_card *c = sim_card(&l->state, l->cards[i]);
        rc = sim_slot_claim(&l->state, l->cards[i], &l->slots[i]);
        if (rc == 0)
            rc = sim_mem_take(&l->state, l->cards[i], l->slots[i], o->mem_bytes);
        if (rc == -ENOMEM)
            fprintf(stderr, "remuda-simload: out of memory on card %u (%s): %llu MiB are not free\n", l->cards[i],
                    c->uuid, (unsigned long long)(o->mem_bytes / MIB));
        else if (rc != 0)
            fprintf(stderr, "remuda-simload: card %u: %s\n", l->cards[i], strerror(-rc));
        if (rc != 0)
            return 1;
        if (o->permille)
            sim_load_add(l->slots[i], sim_now_ns(), 0, SIMGPU_FOREVER, o->permille);
    }
    return 0;
}

static void stop_load(struct load *l)
{
    for (uint32_t i = 0; i < l->len; i++)
        sim_slot_release(&l->state, l->cards[i], l->slots[i]);
    sim_state_close(&l->state);
}

static void add_signals(sigset_t *set)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaddset(set, signals[i]);
}

/* The command's pid, or -1. Signals are blocked in us and not in it. */
static pid_t start_command(char **command, const sigset_t *old)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, old, NULL);
    execvp(command[0], command);
    fprintf(stderr, "remuda-simload: %s: %s\n", command[0], strerror(errno));
    _exit(127);
}

static int status_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Waits for the end: of the command, of the time, or a signal. Returns our exit status. */
static int hold(const struct options *o, pid_t child, const sigset_t *set)
{
    uint64_t end = o->duration_ms ? sim_now_ns() + o->duration_ms * 1000000u : SIMGPU_FOREVER;
    bool ended = false;
    for (;;) {
        uint64_t now = sim_now_ns(), left = end > now ? end - now : 0;
        if (left == 0 && !ended) {
            if (child <= 0)
                return 0;
            ended = true;
            kill(child, SIGTERM);
        }
        uint64_t wait_ns = ended || left > 3600000000000ull ? 3600000000000ull : left;
        struct timespec t = {(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
        int sig = sigtimedwait(set, NULL, &t), status;
        if (sig == SIGCHLD) {
            if (child > 0 && waitpid(child, &status, WNOHANG) == child)
                return status_code(status);
        } else if (sig > 0 && child > 0) {
            kill(child, sig);
        } else if (sig > 0) {
            return sig == SIGTERM || sig == SIGINT ? 0 : 128 + sig;
        }
    }
}

int main(int argc, char **argv)
{
    struct options o;
    struct load l = {0};
    int rc = parse_options(argc, argv, &o);
    if (rc != 0)
        return rc;
    sigset_t set, old;
    add_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &old);
    rc = start_load(&o, &l);
    if (rc != 0)
        return rc;
    pid_t child = o.command ? start_command(o.command, &old) : 0;
    if (child < 0) {
        fprintf(stderr, "remuda-simload: fork: %s\n", strerror(errno));
        return 1;
    }
    rc = hold(&o, child, &set);
    stop_load(&l);
    return rc;
}
