/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver stand-in: start, errors, devices. See cu_impl.h. */
#include "simgpu/cuda/cu_impl.h"

#include "simgpu/state/visible.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct driver cu;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void cu_lock(void)
{
    pthread_mutex_lock(&lock);
}

void cu_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void child_after_fork(void)
{
    cu.forked = cu.initialized;
    cu.initialized = false;
    cu_unlock();
}

CUresult cu_enter(void)
{
    cu_lock();
    if (cu.initialized)
        return CUDA_SUCCESS;
    cu_unlock();
    return CUDA_ERROR_NOT_INITIALIZED;
}

struct device *cu_device(CUdevice device)
{
    return device >= 0 && (uint32_t)device < cu.devices_len ? &cu.devices[device] : NULL;
}

struct simgpu_card *cu_card(const struct device *d)
{
    return sim_card(&cu.state, d->card);
}

static CUresult open_error(int rc)
{
    switch (rc) {
    case -ENOENT:
        return CUDA_ERROR_NO_DEVICE;
    case -EPROTONOSUPPORT:
        return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    case -ENOMEM:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case -EACCES:
    case -EPERM:
    case -EROFS:
        return CUDA_ERROR_OPERATING_SYSTEM;
    default:
        return CUDA_ERROR_UNKNOWN;
    }
}

static CUresult start(void)
{
    static bool handlers;
    uint32_t cards[SIMGPU_CARDS_MAX];
    int rc = cu.state.map ? 0 : sim_state_open(&cu.state, NULL, true);
    if (rc != 0)
        return open_error(rc);
    cu.devices_len = sim_visible_cards(&cu.state, getenv("CUDA_VISIBLE_DEVICES"), cards);
    if (cu.devices_len == 0) {
        sim_state_close(&cu.state);
        return CUDA_ERROR_NO_DEVICE;
    }
    for (uint32_t i = 0; i < cu.devices_len; i++)
        cu.devices[i].card = cards[i];
    const char *time = getenv("REMUDA_SIMGPU_TIME");
    cu.virtual_time = time && strcmp(time, "virtual") == 0;
    if (!handlers)
        pthread_atfork(cu_lock, cu_unlock, child_after_fork);
    handlers = true;
    cu.initialized = true;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned int flags)
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    cu_lock();
    CUresult rc = cu.forked ? CUDA_ERROR_NOT_INITIALIZED : cu.initialized ? CUDA_SUCCESS : start();
    cu_unlock();
    return rc;
}

/* Works before cuInit; without simulated cards the version that this stand-in was written for is
 * told. */
EXPORT CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_state s;
    *version = 13000;
    if (sim_state_open(&s, NULL, false) == 0) {
        *version = (int)s.header->cuda_version;
        sim_state_close(&s);
    }
    return CUDA_SUCCESS;
}

struct result_text {
    CUresult result;
    const char *name;
    const char *text;
};

static const struct result_text results[] = {
#define X(name, number, text) {name, #name, text},
    CUDA_RESULTS(X)
#undef X
};

static const struct result_text *find_result(CUresult r)
{
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i].result == r)
            return &results[i];
    return NULL;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    const struct result_text *r = find_result(error);
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = r ? r->text : NULL;
    return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name)
{
    const struct result_text *r = find_result(error);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = r ? r->name : NULL;
    return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (count)
        *count = (int)cu.devices_len;
    cu_unlock();
    return count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    bool ok = cu_device(ordinal) != NULL;
    cu_unlock();
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (ok)
        *device = ordinal;
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* Finds the card of a device for the getters below; what is static needs no lock afterwards. */
static CUresult card_of(CUdevice device, const void *out, const struct simgpu_card **ret)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d = cu_device(device);
    if (d)
        *ret = cu_card(d);
    cu_unlock();
    return !out ? CUDA_ERROR_INVALID_VALUE : d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    const struct simgpu_card *c;
    CUresult rc = card_of(device, name, &c);
    if (rc == CUDA_SUCCESS && length < 1)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        snprintf(name, (size_t)length, "%s", c->name);
    return rc;
}

/* The 16 bytes behind "GPU-xxxxxxxx-...". */
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    const struct simgpu_card *c;
    CUresult rc = card_of(device, uuid, &c);
    if (rc != CUDA_SUCCESS)
        return rc;
    const char *p = c->uuid + (strncmp(c->uuid, "GPU-", 4) == 0 ? 4 : 0);
    for (int i = 0; i < 16; i++) {
        unsigned byte = 0;
        p += *p == '-';
        if (sscanf(p, "%2x", &byte) == 1)
            p += 2;
        uuid->bytes[i] = (char)byte;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    const struct simgpu_card *c;
    CUresult rc = card_of(device, bytes, &c);
    if (rc == CUDA_SUCCESS)
        *bytes = c->mem_bytes - c->mem_reserved_bytes;
    return rc;
}

EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    const struct simgpu_card *c;
    CUresult rc = card_of(device, major && minor ? major : NULL, &c);
    if (rc == CUDA_SUCCESS) {
        *major = (int)c->cc_major;
        *minor = (int)c->cc_minor;
    }
    return rc;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *bus_id, int length, CUdevice device)
{
    const struct simgpu_card *c;
    CUresult rc = card_of(device, bus_id, &c);
    if (rc == CUDA_SUCCESS && length < 13)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        snprintf(bus_id, (size_t)length, "%04x:%02x:%02x.0", c->pci_domain & 0xffff, c->pci_bus & 0xff,
                 c->pci_device & 0xff);
    return rc;
}

EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *bus_id)
{
    unsigned domain = 0, bus = 0, dev = 0;
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = CUDA_ERROR_INVALID_VALUE;
    if (device && bus_id &&
        (sscanf(bus_id, "%8x:%2x:%2x", &domain, &bus, &dev) == 3 ||
         (domain = 0, sscanf(bus_id, "%2x:%2x", &bus, &dev) == 2))) {
        rc = CUDA_ERROR_INVALID_DEVICE;
        for (uint32_t i = 0; i < cu.devices_len; i++) {
            const struct simgpu_card *c = cu_card(&cu.devices[i]);
            if (c->pci_domain == domain && c->pci_bus == bus && c->pci_device == dev) {
                *device = (CUdevice)i;
                rc = CUDA_SUCCESS;
            }
        }
    }
    cu_unlock();
    return rc;
}

/* Attributes that are the same on all cards: X(name, value). */
#define FIXED_ATTRIBUTES(X)               \
    X(MAX_THREADS_PER_BLOCK, 1024)        \
    X(MAX_BLOCK_DIM_X, 1024)              \
    X(MAX_BLOCK_DIM_Y, 1024)              \
    X(MAX_BLOCK_DIM_Z, 64)                \
    X(MAX_GRID_DIM_X, 2147483647)         \
    X(MAX_GRID_DIM_Y, 65535)              \
    X(MAX_GRID_DIM_Z, 65535)              \
    X(MAX_SHARED_MEMORY_PER_BLOCK, 49152) \
    X(TOTAL_CONSTANT_MEMORY, 65536)       \
    X(WARP_SIZE, 32)                      \
    X(MAX_PITCH, 2147483647)              \
    X(MAX_REGISTERS_PER_BLOCK, 65536)     \
    X(GPU_OVERLAP, 1)                     \
    X(CAN_MAP_HOST_MEMORY, 1)             \
    X(CONCURRENT_KERNELS, 1)              \
    X(ASYNC_ENGINE_COUNT, 3)              \
    X(UNIFIED_ADDRESSING, 1)              \
    X(STREAM_PRIORITIES_SUPPORTED, 1)

static bool card_attribute(const struct simgpu_card *c, CUdevice_attribute a, uint32_t *v)
{
    switch (a) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        return *v = c->sm_clock_mhz * 1000, true;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        return *v = c->mem_clock_mhz * 1000, true;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        return *v = c->mem_bus_bits, true;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return *v = c->sm_count, true;
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
        return *v = c->ecc, true;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        return *v = c->pci_domain, true;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return *v = c->pci_bus, true;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        return *v = c->pci_device, true;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return *v = c->cc_major == 7 && c->cc_minor == 5 ? 1024 : c->cc_major == 8 && c->cc_minor ? 1536 : 2048, true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return *v = c->cc_major, true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return *v = c->cc_minor, true;
    default:
        return false;
    }
}

/* What is not simulated answers 0, "no". */
EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    const struct simgpu_card *c;
    CUresult rc = card_of(device, value, &c);
    uint32_t v = 0;
    if (rc != CUDA_SUCCESS)
        return rc;
    if ((int)attribute < 1 || attribute > CU_DEVICE_ATTRIBUTE_LAST_KNOWN)
        return CUDA_ERROR_INVALID_VALUE;
    if (!card_attribute(c, attribute, &v)) {
        switch (attribute) {
#define X(name, number)              \
    case CU_DEVICE_ATTRIBUTE_##name: \
        v = number;                  \
        break;
            FIXED_ATTRIBUTES(X)
#undef X
        default:
            v = 0;
        }
    }
    *value = (int)v;
    return CUDA_SUCCESS;
}

static CUresult peer_link(CUdevice a, CUdevice b, const void *out, bool *ret_nvlink, bool *ret_any)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *da = cu_device(a), *db = cu_device(b);
    if (da && db && da != db) {
        const struct simgpu_card *ca = cu_card(da), *cb = cu_card(db);
        *ret_nvlink = ca->nvlink_switched ? cb->nvlink_switched != 0 : ca->nvlink_to[db->card] > 0;
        *ret_any = *ret_nvlink || ca->link[db->card] <= SIMGPU_LINK_NODE;
    }
    cu_unlock();
    return !out ? CUDA_ERROR_INVALID_VALUE : da && db ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    bool nvlink = false, any = false;
    CUresult rc = peer_link(device, peer, can, &nvlink, &any);
    if (rc == CUDA_SUCCESS)
        *can = any;
    return rc;
}

EXPORT CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice source,
                                        CUdevice destination)
{
    bool nvlink = false, any = false;
    CUresult rc = peer_link(source, destination, value, &nvlink, &any);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (source == destination)
        return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        *value = nvlink ? 0 : 1;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = any;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        *value = nvlink;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
