/* SPDX-License-Identifier: Apache-2.0 */
/* The NVML stand-in: who uses a device and how much. See nvml_impl.h. */
#include "simgpu/nvml/nvml_impl.h"

#include <string.h>
#include <time.h>

static unsigned per_cent(uint32_t permille)
{
    return (permille + 5) / 10;
}

/* A kernel that works on memory for half of the time it runs: a round figure, not a measurement. */
static unsigned memory_per_cent(uint32_t permille)
{
    return per_cent(permille) / 2;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    CARD_OR_RETURN(device, utilization);
    uint32_t permille;
    sim_card_total(s, card, NULL, &permille);
    utilization->gpu = per_cent(permille);
    utilization->memory = memory_per_cent(permille);
    return NVML_SUCCESS;
}

static nvmlReturn_t codec_utilization(nvmlDevice_t device, unsigned int *util, unsigned int *period_us)
{
    CARD_OR_RETURN(device, util && period_us);
    *util = 0;
    *period_us = (unsigned)(SIM_WINDOW_NS / 1000);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *util, unsigned int *period_us)
{
    return codec_utilization(device, util, period_us);
}

EXPORT nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *util, unsigned int *period_us)
{
    return codec_utilization(device, util, period_us);
}

/* The list protocol: *count takes the number there is in any case. */
static nvmlReturn_t list_size(unsigned int *count, uint32_t have, const void *out)
{
    unsigned room = *count;
    *count = have;
    if (have == 0)
        return NVML_SUCCESS;
    return room < have || !out ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                            nvmlProcessInfo_t *infos)
{
    CARD_OR_RETURN(device, count);
    struct sim_use use[SIMGPU_SLOTS];
    uint32_t n = sim_card_use(s, card, use, SIMGPU_SLOTS);
    nvmlReturn_t rc = list_size(count, n, infos);
    for (uint32_t i = 0; i < n && rc == NVML_SUCCESS; i++)
        infos[i] = (nvmlProcessInfo_t){.pid = use[i].pid,
                                       .usedGpuMemory = use[i].mem_bytes,
                                       .gpuInstanceId = 0xffffffffu,
                                       .computeInstanceId = 0xffffffffu};
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                            nvmlProcessInfo_t *infos)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                         nvmlProcessInfo_v1_t *infos)
{
    CARD_OR_RETURN(device, count);
    struct sim_use use[SIMGPU_SLOTS];
    uint32_t n = sim_card_use(s, card, use, SIMGPU_SLOTS);
    nvmlReturn_t rc = list_size(count, n, infos);
    for (uint32_t i = 0; i < n && rc == NVML_SUCCESS; i++)
        infos[i] = (nvmlProcessInfo_v1_t){.pid = use[i].pid, .usedGpuMemory = use[i].mem_bytes};
    return rc;
}

/* Nothing here draws, and there is no MPS server. */
static nvmlReturn_t empty_list(nvmlDevice_t device, unsigned int *count)
{
    CARD_OR_RETURN(device, count);
    *count = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                             nvmlProcessInfo_t *infos)
{
    (void)infos;
    return empty_list(device, count);
}

EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                               nvmlProcessInfo_t *infos)
{
    (void)infos;
    return empty_list(device, count);
}

static unsigned long long wall_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (unsigned long long)t.tv_sec * 1000000u + (unsigned long long)t.tv_nsec / 1000;
}

/* One sample for each process, taken now: whatever time the caller has seen lies before it. */
EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization,
                                                    unsigned int *count, unsigned long long last_seen_us)
{
    CARD_OR_RETURN(device, count);
    struct sim_use use[SIMGPU_SLOTS];
    unsigned long long now = wall_us();
    uint32_t n = last_seen_us < now ? sim_card_use(s, card, use, SIMGPU_SLOTS) : 0;
    if (n == 0) {
        *count = 0;
        return NVML_ERROR_NOT_FOUND;
    }
    nvmlReturn_t rc = list_size(count, n, utilization);
    for (uint32_t i = 0; i < n && rc == NVML_SUCCESS; i++)
        utilization[i] = (nvmlProcessUtilizationSample_t){.pid = use[i].pid,
                                                          .timeStamp = now,
                                                          .smUtil = per_cent(use[i].sm_permille),
                                                          .memUtil = memory_per_cent(use[i].sm_permille)};
    return rc;
}
