/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A variable that the runner sets replaces the submitter's, also when it is set to nothing: a job that was submitted
 * from inside another job must not see that job's rank or cards.
 */
#include "runner/environment.h"

#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void environment_done(struct environment *env)
{
    for (size_t i = 0; i < env->len; i++)
        mem_free(env->list[i]);
    mem_free(env->list);
    *env = (struct environment){0};
}

static bool named(const char *entry, const char *name, size_t len)
{
    return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

const char *environment_get(const struct environment *env, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < env->len; i++)
        if (named(env->list[i], name, len))
            return env->list[i] + len + 1;
    return NULL;
}

/* Appends `entry` (NAME=value, taken over; NULL: there was no memory). */
static int append(struct environment *env, char *entry)
{
    if (entry == NULL)
        return -ENOMEM;
    if (mem_grow(&env->list, &env->cap, env->len + 2, sizeof *env->list) < 0) {
        mem_free(entry);
        return -ENOMEM;
    }
    env->list[env->len++] = entry;
    env->list[env->len] = NULL;
    return 0;
}

/* The same in place of every entry of that name. */
static int put(struct environment *env, char *entry)
{
    if (entry == NULL)
        return -ENOMEM;
    size_t len = strcspn(entry, "="), kept = 0;
    for (size_t i = 0; i < env->len; i++) {
        if (named(env->list[i], entry, len))
            mem_free(env->list[i]);
        else
            env->list[kept++] = env->list[i];
    }
    env->len = kept;
    return append(env, entry);
}

static int set(struct environment *env, const char *name, const char *value)
{
    struct strbuf b = {0};
    strbuf_puts(&b, name);
    strbuf_putc(&b, '=');
    strbuf_puts(&b, value);
    return put(env, strbuf_take(&b));
}

static int set_number(struct environment *env, const char *name, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return set(env, name, text);
}

static int set_ranks(struct environment *env, const struct runner_spec *s, uint32_t local_rank, uint32_t master_port)
{
    const struct runner_worker *w = &s->workers[local_rank];
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"RANK", w->rank},
        {"LOCAL_RANK", local_rank},
        {"WORLD_SIZE", s->world},
        {"LOCAL_WORLD_SIZE", s->workers_len},
        {"GROUP_RANK", s->node_rank},
        {"MASTER_PORT", master_port},
        {"REMUDA_JOB_ID", s->job},
        {"REMUDA_ATTEMPT", s->attempt},
        {"REMUDA_RANK", w->rank},
        {"REMUDA_LOCAL_RANK", local_rank},
        {"REMUDA_WORLD_SIZE", s->world},
        {"REMUDA_LOCAL_WORLD_SIZE", s->workers_len},
        {"REMUDA_NODES", s->nodes},
        {"REMUDA_NODE_RANK", s->node_rank},
        {"REMUDA_GPU_MILLI", w->gpu_milli},
        {"REMUDA_GPU_MEM_MIB", w->gpu_mem_mib},
        {"REMUDA_CPU_MILLI", w->cpu_milli},
        {"REMUDA_MEM_MIB", w->mem_mib},
    };
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int r = set_number(env, numbers[i].name, numbers[i].value);
        if (r < 0)
            return r;
    }
    return 0;
}

static int set_texts(struct environment *env, const struct runner_spec *s, const struct runner_worker *w)
{
    const struct {
        const char *name, *value;
    } texts[] = {
        {"MASTER_ADDR", s->master_addr},
        {"REMUDA_JOB_NAME", s->name},
        {"REMUDA_USER", s->user},
        {"REMUDA_TENANT", s->tenant},
        {"REMUDA_QUEUE", s->queue},
        {"REMUDA_NODE", s->node},
        {"REMUDA_STATE", s->state},
        {"REMUDA_TAG", s->tag},
        {"REMUDA_GPUS", w->gpus},
        {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
        {"CUDA_VISIBLE_DEVICES", w->gpus},
        {"NVIDIA_VISIBLE_DEVICES", w->gpus[0] != '\0' ? w->gpus : "void"},
        {"REMUDA_SIMULATED", s->simgpu[0] != '\0' ? "1" : "0"},
    };
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int r = set(env, texts[i].name, texts[i].value);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Simulated cards: where their state is, and the stand-in libraries before all others. */
static int set_simulated(struct environment *env, const struct runner_spec *s)
{
    if (s->simgpu[0] == '\0')
        return 0;
    int r = set(env, "REMUDA_SIMGPU", s->simgpu);
    if (r < 0 || s->simgpu_lib[0] == '\0')
        return r;
    const char *old = environment_get(env, "LD_LIBRARY_PATH");
    struct strbuf b = {0};
    strbuf_puts(&b, "LD_LIBRARY_PATH=");
    strbuf_puts(&b, s->simgpu_lib);
    if (old != NULL && old[0] != '\0') {
        strbuf_putc(&b, ':');
        strbuf_puts(&b, old);
    }
    return put(env, strbuf_take(&b));
}

int environment_build(const struct runner_spec *s, uint32_t local_rank, uint32_t master_port, struct environment *ret)
{
    struct environment env = {0};
    int r = 0;
    for (size_t i = 0; i < s->env_len && r == 0; i++)
        r = append(&env, mem_strdup(s->env[i]));
    if (r == 0)
        r = set_ranks(&env, s, local_rank, master_port);
    if (r == 0)
        r = set_texts(&env, s, &s->workers[local_rank]);
    if (r == 0)
        r = set_simulated(&env, s);
    if (r < 0) {
        environment_done(&env);
        return r;
    }
    *ret = env;
    return 0;
}
