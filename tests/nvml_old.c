/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVML library of long ago for tests: the necessary functions under their old names, nothing
 * else, two cards. With LACKING it has not even those.
 */
#include "abi/nvml_abi.h"

#include <string.h>

nvmlReturn_t nvmlInit(void)
{
    return NVML_SUCCESS;
}

#ifndef LACKING
nvmlReturn_t nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    strncpy(version, "319.37", length);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    *count = 2;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    static char cards[2];
    if (index > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = (nvmlDevice_t)(void *)&cards[index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    (void)device;
    strncpy(name, "Tesla K80", length);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    (void)device;
    strncpy(uuid, "GPU-old", length);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    (void)device;
    memory->total = 11441ull << 20;
    memory->used = 62ull << 20;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}
#endif
