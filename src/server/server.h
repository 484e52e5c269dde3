/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon: the shell round core and control. It moves bytes between the API's sockets, the store
 * and an engine, on one thread and one event loop, and decides nothing. docs/api.md is what it
 * answers.
 */
#ifndef REMUDA_SERVER_SERVER_H
#define REMUDA_SERVER_SERVER_H

#include "base/err.h"
#include "config/types.h"
#include "engine/engine.h"

#include <stdbool.h>

struct server_options {
    const char *state_dir; /* made when absent: 0755 for root, 0700 for others */
    const char *version;
    const struct config *config;          /* NULL: what the store has, else defaults */
    const char *config_text;              /* source of `config`: imported when it differs from the store's */
    const char *engine;                   /* "local" or "simulated" */
    struct engine_options engine_options; /* its loop, state_dir and callback are filled in here */
    bool simulated;                       /* cards are simulated */
    const char *cards;                    /* where cards come from, for people: "NVML", "simulated (dgx-a100)" */
    const char *listen;                   /* "127.0.0.1:8080", or NULL for the Unix socket alone */
    bool listen_anywhere;                 /* `listen` may name an address that others can reach */
    int ready_fd; /* one byte is written to it when the engine has been reconciled; -1: nobody waits
                   */
};

/* Runs until it is told to stop (SIGTERM, SIGINT, POST /v1/shutdown). Logs through base/sys/log.
 * Exit code. */
int server_main(const struct server_options *o);

/* What a daemon is asked for in words and paths. Strings are borrowed. */
struct server_setup {
    const char *state_dir;
    const char *version;
    const char *config_path;   /* NULL: what the store has, else defaults */
    const char *preset;        /* simulated cards: a preset's name or file; NULL: the machine's own */
    const char *cluster_file;  /* the simulated engine instead of the local one; NULL: no */
    uint64_t time_scale_milli; /* of the simulated engine */
    const char *cards;         /* as in server_options */
    const char *listen;        /* as in server_options */
    /* Where the stand-in libraries and the presets are, below the folder above the program's own. */
    const char *simgpu_dir;
    const char *presets_dir;
};

/*
 * Opens the log on standard error (level: REMUDA_LOG, else info), reads the files that are named, and runs
 * server_main(). Exit code; why it is not 0 stands in the log.
 */
int server_run(const struct server_setup *o);

/* The calls that the server answers, for the test that holds them against api/openapi.yaml. */
struct server_call {
    const char *method;
    const char *path;  /* "/v1/jobs/{id}/cancel" */
    const char *query; /* allowed parameters, each followed by a blank; "" for none */
};
const struct server_call *server_calls(size_t *ret_len);

/* The largest body of a request. */
#define SERVER_BODY_MAX ((size_t)8 << 20)

#endif
