/* SPDX-License-Identifier: Apache-2.0 */
/* A core, a clock and the records so far, for tests of the scheduler. Every step is audited. */
#ifndef REMUDA_TESTS_CORE_WORLD_H
#define REMUDA_TESTS_CORE_WORLD_H

#include "core/audit.h"
#include "core/core.h"
#include "core/explain.h"
#include "test.h"

#include <errno.h>

/* What a job asks for; zeros and NULLs are defaults (one worker, no cards, user "u", tenant "default"). */
struct wish {
    uint32_t gpus;
    uint32_t share; /* thousandths */
    uint32_t share_mem_mib;
    uint32_t workers;
    uint32_t cpu_milli;
    uint64_t mem_mib;
    int32_t priority;
    int64_t limit_ms;
    int64_t begin_after_ms;
    bool hold;
    uint64_t after; /* a job; 0: none */
    enum after_kind after_kind;
    enum level require;
    enum level prefer;
    const char *user;
    const char *tenant;
    const char *queue;
    const char *model;
    const char *strategy;
};

struct world {
    struct core *core;
    int64_t now_ms;
    uint64_t seq;
    uint64_t next_job;
    struct record *log; /* every record so far; owned */
    size_t log_len;
    size_t log_cap;
    const struct record *made; /* decisions of the last pass, in the log */
    size_t made_len;
    char *argv[2];
};

void world_init(struct world *w);
void world_done(struct world *w);

/* A node with 64 CPUs, 1 TiB and `gpus` cards of 80 GiB in two NVLink islands. */
uint32_t world_node(struct world *w, const char *name, const char *rack, uint32_t gpus, const char *model);
void world_node_state(struct world *w, uint32_t node, enum node_state state, bool draining);
/* The configuration in YAML. */
void world_config(struct world *w, const char *yaml);
/* Borrows from `wish` and the world. */
void world_spec(const struct world *w, const struct wish *wish, struct job_spec *ret);
uint64_t world_submit(struct world *w, const struct wish *wish);
void world_update(struct world *w, uint64_t job, const struct job_change *change);
void world_cancel(struct world *w, uint64_t job);
void world_hold(struct world *w, uint64_t job, bool hold);
void world_requeue(struct world *w, uint64_t job);
void world_running(struct world *w, uint64_t job);
void world_exit(struct world *w, uint64_t job, uint32_t worker, int32_t code, int32_t signal, enum cause cause);
/* All workers that have not ended end with `code`, and a pass takes it in. */
void world_finish(struct world *w, uint64_t job, int32_t code);
void world_pass(struct world *w);
/* Another core that was told the same records. */
struct core *world_again(const struct world *w);

#endif
