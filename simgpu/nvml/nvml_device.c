/* SPDX-License-Identifier: Apache-2.0 */
/* The NVML stand-in: what a device is, how it is set and whether it is well. See nvml_impl.h. */
#include "simgpu/nvml/nvml_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024ull * 1024)

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    CARD_OR_RETURN(device, name);
    return nvml_text(c->name, name, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    CARD_OR_RETURN(device, uuid);
    return nvml_text(c->uuid, uuid, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    CARD_OR_RETURN(device, serial);
    return *c->serial ? nvml_text(c->serial, serial, length) : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length)
{
    CARD_OR_RETURN(device, version);
    return nvml_text(c->vbios, version, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    CARD_OR_RETURN(device, index);
    *index = card;
    return NVML_SUCCESS;
}

/* A getter that hands out one field of the card. */
#define GETTER(function, type, expression)                         \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, type *value) \
    {                                                              \
        CARD_OR_RETURN(device, value);                             \
        *value = (type)(expression);                               \
        return NVML_SUCCESS;                                       \
    }

GETTER(nvmlDeviceGetMinorNumber, unsigned int, c->minor)
GETTER(nvmlDeviceGetArchitecture, unsigned int, c->arch)
GETTER(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, c->pcie_gen)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, c->pcie_width)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, c->pcie_gen)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, c->pcie_width)
GETTER(nvmlDeviceGetMemoryBusWidth, unsigned int, c->mem_bus_bits)
GETTER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
GETTER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, NVML_COMPUTEMODE_DEFAULT)
GETTER(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
GETTER(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
GETTER(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t, NVML_FEATURE_DISABLED)
GETTER(nvmlDeviceIsMigDeviceHandle, unsigned int, 0)
/* Brand numbers: 2 Tesla, 14 NVIDIA. */
GETTER(nvmlDeviceGetBrand, unsigned int, strncmp(c->name, "Tesla", 5) == 0 ? 2 : 14)

EXPORT nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *cores)
{
    CARD_OR_RETURN(device, cores);
    /* FP32 lanes in one SM: 64 on compute capability 7.x and 8.0, 128 on all later. */
    unsigned lanes = c->cc_major < 8 || (c->cc_major == 8 && c->cc_minor == 0) ? 64 : 128;
    *cores = c->sm_count * lanes;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
    CARD_OR_RETURN(device, node);
    /* The memory of a card is a NUMA node of its own only on coherent systems, which none of these
     * is. */
    return NVML_ERROR_NOT_SUPPORTED;
}

void nvml_fill_pci(const struct simgpu_card *c, nvmlPciInfo_t *pci)
{
    memset(pci, 0, sizeof(*pci));
    pci->domain = c->pci_domain;
    pci->bus = c->pci_bus;
    pci->device = c->pci_device;
    pci->pciDeviceId = c->pci_device_id;
    pci->pciSubSystemId = c->pci_subsystem_id;
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.0", c->pci_domain & 0xffff, c->pci_bus & 0xff,
             c->pci_device & 0xff);
    snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.0", c->pci_domain, c->pci_bus & 0xff,
             c->pci_device & 0xff);
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    CARD_OR_RETURN(device, pci);
    nvml_fill_pci(c, pci);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    CARD_OR_RETURN(device, major && minor);
    *major = (int)c->cc_major;
    *minor = (int)c->cc_minor;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    CARD_OR_RETURN(device, memory);
    if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    uint64_t used, room = c->mem_bytes - c->mem_reserved_bytes;
    sim_card_total(s, card, &used, NULL);
    if (used > room)
        used = room;
    memory->total = c->mem_bytes;
    memory->reserved = c->mem_reserved_bytes;
    memory->used = used;
    memory->free = room - used;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    CARD_OR_RETURN(device, memory);
    nvmlMemory_v2_t v2 = {.version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};
    nvmlReturn_t rc = nvmlDeviceGetMemoryInfo_v2(device, &v2);
    if (rc != NVML_SUCCESS)
        return rc;
    memory->total = v2.total;
    memory->used = v2.used + v2.reserved;
    memory->free = v2.free;
    return NVML_SUCCESS;
}

/* The window onto the card's memory: all of it, rounded up to a power of two. */
EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    CARD_OR_RETURN(device, memory);
    unsigned long long total = 256 * MIB;
    while (total < c->mem_bytes)
        total *= 2;
    memory->bar1Total = total;
    memory->bar1Used = 1 * MIB;
    memory->bar1Free = total - memory->bar1Used;
    return NVML_SUCCESS;
}

static uint32_t permille_of(const struct sim_state *s, uint32_t card)
{
    uint32_t permille;
    sim_card_total(s, card, NULL, &permille);
    return permille;
}

/* Linear between idle and the limit; enough to tell a busy card from an idle one. */
EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatt)
{
    CARD_OR_RETURN(device, milliwatt);
    uint64_t span = c->power_limit_mw - c->power_idle_mw;
    *milliwatt = c->power_idle_mw + (unsigned)(span * permille_of(s, card) / SIMGPU_PERMILLE);
    return NVML_SUCCESS;
}

GETTER(nvmlDeviceGetPowerManagementLimit, unsigned int, c->power_limit_mw)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, c->power_limit_mw)
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned int, c->power_limit_mw)
/* 30 degrees at rest, 75 under full load. */
static unsigned temperature(const struct sim_state *s, uint32_t card)
{
    return 30 + 45 * permille_of(s, card) / SIMGPU_PERMILLE;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *low,
                                                                 unsigned int *high)
{
    CARD_OR_RETURN(device, low && high);
    *low = c->power_idle_mw;
    *high = c->power_limit_mw;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                             unsigned int *celsius)
{
    CARD_OR_RETURN(device, celsius);
    if (sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    *celsius = temperature(s, card);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t threshold,
                                                      unsigned int *celsius)
{
    CARD_OR_RETURN(device, celsius);
    static const unsigned values[] = {92, 89, 95, 85};
    if ((unsigned)threshold >= sizeof(values) / sizeof(values[0]))
        return NVML_ERROR_INVALID_ARGUMENT;
    *celsius = values[threshold];
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *per_cent)
{
    CARD_OR_RETURN(device, per_cent);
    return NVML_ERROR_NOT_SUPPORTED; /* cooled by the chassis */
}

EXPORT nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state)
{
    CARD_OR_RETURN(device, state);
    *state = NVML_PSTATE_0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    CARD_OR_RETURN(device, mhz);
    if ((unsigned)type >= NVML_CLOCK_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *mhz = type == NVML_CLOCK_MEM ? c->mem_clock_mhz : c->sm_clock_mhz;
    return NVML_SUCCESS;
}

/* An idle card runs its SMs at about a fifth of the top clock. */
EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    nvmlReturn_t rc = nvmlDeviceGetMaxClockInfo(device, type, mhz);
    if (rc != NVML_SUCCESS || type == NVML_CLOCK_MEM)
        return rc;
    CARD_OR_RETURN(device, mhz);
    if (permille_of(s, card) == 0)
        *mhz = c->sm_clock_mhz / 5;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    CARD_OR_RETURN(device, reasons);
    *reasons = permille_of(s, card) == 0 ? 1 : 0; /* 1: the card is idle */
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *kib_s)
{
    CARD_OR_RETURN(device, kib_s);
    if (counter != NVML_PCIE_UTIL_TX_BYTES && counter != NVML_PCIE_UTIL_RX_BYTES)
        return NVML_ERROR_INVALID_ARGUMENT;
    *kib_s = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    CARD_OR_RETURN(device, values);
    if (count < 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        nvmlFieldValue_t *v = &values[i];
        v->timestamp = (long long)(sim_now_ns() / 1000);
        v->latencyUsec = 0;
        v->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        v->nvmlReturn = NVML_SUCCESS;
        memset(&v->value, 0, sizeof(v->value));
        if (v->fieldId == NVML_FI_DEV_ECC_CURRENT)
            v->value.uiVal = c->ecc;
        else if (v->fieldId == NVML_FI_DEV_NVLINK_LINK_COUNT)
            v->value.uiVal = c->nvlinks;
        else if (v->fieldId == NVML_FI_DEV_POWER_INSTANT)
            v->nvmlReturn = nvmlDeviceGetPowerUsage(device, &v->value.uiVal);
        else
            v->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    }
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    CARD_OR_RETURN(device, true);
    (void)mode;
    return NVML_ERROR_NO_PERMISSION; /* settings are the preset's */
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *now, nvmlEnableState_t *pending)
{
    CARD_OR_RETURN(device, now && pending);
    *now = *pending = c->ecc ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                                nvmlEccCounterType_t counter, unsigned long long *count)
{
    CARD_OR_RETURN(device, count);
    if ((unsigned)type > 1 || (unsigned)counter > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!c->ecc)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count,
                                              unsigned long long *addresses)
{
    CARD_OR_RETURN(device, count);
    if ((unsigned)cause >= NVML_PAGE_RETIREMENT_CAUSE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    (void)addresses;
    *count = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,
                                              unsigned int *pending, unsigned int *failure)
{
    CARD_OR_RETURN(device, corrected && uncorrected && pending && failure);
    if (c->cc_major < 8)
        return NVML_ERROR_NOT_SUPPORTED; /* rows are remapped from Ampere on */
    *corrected = *uncorrected = *pending = *failure = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *now, unsigned int *pending)
{
    CARD_OR_RETURN(device, now && pending);
    if (!c->mig_capable)
        return NVML_ERROR_NOT_SUPPORTED;
    *now = *pending = NVML_DEVICE_MIG_DISABLE;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
    CARD_OR_RETURN(device, activation);
    if (mode > NVML_DEVICE_MIG_ENABLE)
        return NVML_ERROR_INVALID_ARGUMENT;
    return c->mig_capable ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_NOT_SUPPORTED;
}

GETTER(nvmlDeviceGetMaxMigDeviceCount, unsigned int, c->mig_capable ? 7 : 0)

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    CARD_OR_RETURN(device, mig);
    (void)index;
    return c->mig_capable ? NVML_ERROR_NOT_FOUND : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    CARD_OR_RETURN(device, support);
    if (support->version != 1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->isSupportedDevice = 0;
    return NVML_SUCCESS;
}

/* Samples can be had; taking one is what a card without GPM refuses. */
EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    if (!nvml_state())
        return NVML_ERROR_UNINITIALIZED;
    if (!sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    *sample = calloc(1, 64);
    return *sample ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    if (!nvml_state())
        return NVML_ERROR_UNINITIALIZED;
    if (!sample)
        return NVML_ERROR_INVALID_ARGUMENT;
    free(sample);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    CARD_OR_RETURN(device, sample);
    return NVML_ERROR_NOT_SUPPORTED;
}
