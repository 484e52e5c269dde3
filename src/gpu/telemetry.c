/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See telemetry.h. Memory of processes comes from the list of running processes, use of SMs from
 * the driver's ring of process samples, of which the newest for each pid since the last call
 * counts. A process may be in one list and not in the other: both are merged.
 */
#include "gpu/telemetry.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A list grows between being counted and being read; so many times we try again with more room. */
#define LIST_TRIES 5
#define LIST_ROOM  64

void telemetry_done(struct telemetry *t)
{
    mem_free(t->processes);
    memset(t, 0, sizeof(*t));
}

static void sample_card(const struct nvml *n, nvmlDevice_t d, struct telemetry_gpu *g)
{
    nvmlUtilization_t util;
    nvmlMemory_v2_t v2 = {.version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};
    nvmlMemory_t v1;
    unsigned value;
    *g = (struct telemetry_gpu){TELEMETRY_NONE, TELEMETRY_NONE, TELEMETRY_NONE, TELEMETRY_NONE, TELEMETRY_NONE, false};
    if (n->utilization && n->utilization(d, &util) == NVML_SUCCESS) {
        g->util_pct = (int32_t)(util.gpu <= 100 ? util.gpu : 100);
        g->mem_util_pct = (int32_t)(util.memory <= 100 ? util.memory : 100);
    }
    nvmlReturn_t rc = n->memory_v2 ? n->memory_v2(d, &v2) : NVML_ERROR_FUNCTION_NOT_FOUND;
    if (rc == NVML_SUCCESS) {
        g->mem_used_mib = (int64_t)(v2.used >> 20);
    } else {
        rc = n->memory(d, &v1);
        if (rc == NVML_SUCCESS)
            g->mem_used_mib = (int64_t)(v1.used >> 20);
    }
    g->lost = rc == NVML_ERROR_GPU_IS_LOST || rc == NVML_ERROR_RESET_REQUIRED;
    if (n->power && n->power(d, &value) == NVML_SUCCESS)
        g->power_w = (int32_t)(value / 1000);
    if (n->temperature && n->temperature(d, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS)
        g->temp_c = (int32_t)value;
}

/* The entry of (gpu, pid) among those from `first` on, made when new; NULL without memory. */
static struct telemetry_process *entry(struct telemetry *t, size_t first, uint32_t gpu, uint32_t pid)
{
    for (size_t i = first; i < t->processes_len; i++)
        if (t->processes[i].pid == pid)
            return &t->processes[i];
    if (mem_grow(&t->processes, &t->processes_cap, t->processes_len + 1, sizeof(*t->processes)) != 0)
        return NULL;
    struct telemetry_process *p = &t->processes[t->processes_len++];
    *p = (struct telemetry_process){.gpu = gpu, .pid = pid, .mem_mib = TELEMETRY_NONE, .sm_pct = TELEMETRY_NONE};
    return p;
}

static int sample_memory(const struct nvml *n, nvmlDevice_t d, uint32_t gpu, size_t first, struct telemetry *t)
{
    __typeof__(n->processes_v3) list = n->processes_v3 ? n->processes_v3 : n->processes_v2;
    unsigned room = LIST_ROOM;
    for (int tries = 0; list && tries < LIST_TRIES; tries++) {
        CLEANUP_FREE nvmlProcessInfo_t *infos = mem_alloc(room, sizeof(*infos));
        if (!infos)
            return -ENOMEM;
        unsigned count = room;
        nvmlReturn_t rc = list(d, &count, infos);
        if (rc == NVML_ERROR_INSUFFICIENT_SIZE && count <= 1u << 20) {
            room = (count > room ? count : room) + LIST_ROOM;
            continue;
        }
        for (unsigned i = 0; rc == NVML_SUCCESS && i < count && i < room; i++) {
            struct telemetry_process *p = entry(t, first, gpu, infos[i].pid);
            if (!p)
                return -ENOMEM;
            int64_t mem = (int64_t)(infos[i].usedGpuMemory >> 20);
            if (infos[i].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE_ULL)
                p->mem_mib = p->mem_mib == TELEMETRY_NONE ? mem : p->mem_mib + mem;
        }
        return 0;
    }
    return 0;
}

static int take_utilization(const nvmlProcessUtilizationSample_t *samples, unsigned count, uint32_t gpu, size_t first,
                            struct telemetry *t)
{
    for (unsigned i = 0; i < count; i++) {
        if (samples[i].timeStamp > t->last_seen_us[gpu])
            t->last_seen_us[gpu] = samples[i].timeStamp;
        bool newest = true;
        for (unsigned j = 0; j < count; j++)
            newest = newest &&
                     !(samples[j].pid == samples[i].pid && (samples[j].timeStamp > samples[i].timeStamp ||
                                                            (samples[j].timeStamp == samples[i].timeStamp && j > i)));
        if (!newest)
            continue;
        struct telemetry_process *p = entry(t, first, gpu, samples[i].pid);
        if (!p)
            return -ENOMEM;
        p->sm_pct = (int32_t)(samples[i].smUtil <= 100 ? samples[i].smUtil : 100);
    }
    return 0;
}

static int sample_utilization(const struct nvml *n, nvmlDevice_t d, uint32_t gpu, size_t first, struct telemetry *t)
{
    unsigned room = LIST_ROOM;
    for (int tries = 0; n->process_utilization && tries < LIST_TRIES; tries++) {
        CLEANUP_FREE nvmlProcessUtilizationSample_t *samples = mem_alloc(room, sizeof(*samples));
        if (!samples)
            return -ENOMEM;
        unsigned count = room;
        nvmlReturn_t rc = n->process_utilization(d, samples, &count, t->last_seen_us[gpu]);
        if (rc == NVML_ERROR_INSUFFICIENT_SIZE && count <= 1u << 16) {
            room = (count > room ? count : room) + LIST_ROOM;
            continue;
        }
        return rc == NVML_SUCCESS ? take_utilization(samples, count < room ? count : room, gpu, first, t) : 0;
    }
    return 0;
}

static int by_card_and_pid(const void *a, const void *b)
{
    const struct telemetry_process *x = a, *y = b;
    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

int telemetry_sample(const struct nvml *n, const struct gpu_inventory *inv, struct telemetry *t, struct err *e)
{
    t->source = inv->simulated ? "nvml utilization, simulated" : "nvml utilization";
    t->process_source = inv->simulated ? "nvml process utilization, simulated" : "nvml process utilization";
    t->gpus_len = inv->gpus_len;
    t->processes_len = 0;
    for (uint32_t i = 0; i < inv->gpus_len; i++) {
        nvmlDevice_t d;
        size_t first = t->processes_len;
        nvmlReturn_t found = n->handle_by_index(inv->gpus[i].index, &d);
        if (found != NVML_SUCCESS) {
            t->gpus[i] = (struct telemetry_gpu){TELEMETRY_NONE, TELEMETRY_NONE, TELEMETRY_NONE,
                                                TELEMETRY_NONE, TELEMETRY_NONE, true};
            continue;
        }
        sample_card(n, d, &t->gpus[i]);
        int rc = sample_memory(n, d, i, first, t);
        if (rc == 0)
            rc = sample_utilization(n, d, i, first, t);
        if (rc != 0)
            return err_set(e, rc, "no memory");
    }
    if (t->processes_len > 1)
        qsort(t->processes, t->processes_len, sizeof(*t->processes), by_card_and_pid);
    return 0;
}
