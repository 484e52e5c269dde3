/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spec of an attempt on one node: what the engine writes and the runner reads. abi/runner.h has the layout. The
 * parser takes any bytes (tests/fuzz/fuzz_runner_spec.c) and refuses what it does not know with the key's name.
 */
#ifndef REMUDA_RUNNER_SPEC_H
#define REMUDA_RUNNER_SPEC_H

#include "base/err.h"
#include "base/strbuf.h"

#include <stddef.h>
#include <stdint.h>

struct runner_worker {
    uint32_t rank;
    uint32_t cpu_milli;
    uint64_t mem_mib; /* 0: no limit */
    uint32_t gpu_milli;
    uint32_t gpu_mem_mib;
    char *gpus; /* comma-separated uuids, "" for none; owned */
};

/* All strings are owned; text keys that were not given are "". */
struct runner_spec {
    uint64_t job;
    uint32_t attempt;
    uint32_t uid;
    uint32_t gid;
    uint32_t umask;
    uint32_t world;
    uint32_t nodes;
    uint32_t node_rank;
    uint32_t master_port; /* 0: to be found */
    uint32_t log_files;
    uint64_t log_bytes;
    int64_t grace_ms;
    char *name;
    char *user;
    char *tenant;
    char *queue;
    char *node;
    char *state;
    char *cwd;
    char *script; /* NULL: none */
    char *master_addr;
    char *cgroup;
    char *tag;
    char *simgpu;
    char *simgpu_lib;
    char **argv; /* NULL-terminated */
    char **env;  /* NULL-terminated */
    size_t argv_len, argv_cap;
    size_t env_len, env_cap;
    struct runner_worker *workers; /* by local rank, at least one */
    size_t workers_len, workers_cap;
};

void runner_spec_done(struct runner_spec *s);
/* Appends the spec to `out`; check out->failed at the end. Strings that are NULL are left out. */
void runner_spec_write(const struct runner_spec *s, struct strbuf *out);
/* Fills *ret from `len` bytes. 0, -EINVAL with the key and what is wrong, -ENOMEM; *ret is untouched on failure. */
int runner_spec_parse(const char *bytes, size_t len, struct runner_spec *ret, struct err *e);

#endif
