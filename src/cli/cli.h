/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `remuda` command: a table of verbs that talk to the daemon through its HTTP API only. Being the daemon comes in
 * as a function from main.c, so that this folder does not need the server.
 *
 * Exit codes are part of the interface (docs/cli.md).
 */
#ifndef REMUDA_CLI_CLI_H
#define REMUDA_CLI_CLI_H

#include <stdint.h>

enum cli_exit {
    CLI_OK = 0,
    CLI_ERROR = 1,       /* it was tried and failed */
    CLI_USAGE = 2,       /* the command line, or what it asks for, is not allowed */
    CLI_NO_DAEMON = 3,   /* no daemon answers */
    CLI_NOT_FOUND = 4,   /* no such job or node */
    CLI_REFUSED = 5,     /* not permitted, or not possible in this state */
    CLI_TIMEOUT = 124,   /* `wait --timeout`, `up`, `down`: not in time */
    CLI_CANCELLED = 125, /* `wait`, `run`: the job was cancelled */
};

/* What `remuda daemon` was asked for. Strings are borrowed. */
struct cli_daemon {
    const char *state_dir;
    const char *config_path;   /* NULL: defaults, or what the store has */
    const char *preset;        /* --simulate */
    const char *cluster_file;  /* --simulate-cluster */
    const char *cards;         /* where cards come from, for people: "NVML", "simulated (dgx-a100)" */
    const char *listen;        /* "127.0.0.1:8080", or NULL */
    uint64_t time_scale_milli; /* 1,000: real time */
};

struct cli_hooks {
    int (*daemon)(const struct cli_daemon *o); /* runs until it is told to stop; returns the exit code */
    const char *version;
};

/* Runs the command line; returns the exit code of the process. */
int cli_main(int argc, char **argv, const struct cli_hooks *hooks);

#endif
