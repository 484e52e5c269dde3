/* SPDX-License-Identifier: Apache-2.0 */
/* The NVML stand-in: start and end, the machine, and how a device is found. See nvml_impl.h. */
#include "simgpu/nvml/nvml_impl.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* One file that was mapped; kept for ever, since handles point into it. */
struct mapping {
    struct sim_state state;
    dev_t dev;
    ino_t ino;
    struct mapping *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;
static struct mapping *current; /* read without the lock by nvml_state() */
static unsigned init_count;

static nvmlReturn_t init_error(int rc)
{
    switch (rc) {
    case -ENOENT:
        return NVML_ERROR_DRIVER_NOT_LOADED;
    case -EACCES:
    case -EPERM:
        return NVML_ERROR_NO_PERMISSION;
    case -EPROTONOSUPPORT:
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    case -ENOMEM:
        return NVML_ERROR_MEMORY;
    default:
        return NVML_ERROR_UNKNOWN;
    }
}

/* The mapping of the file that REMUDA_SIMGPU names now. With the lock held. */
static int find_or_map(struct mapping **ret)
{
    const char *path = getenv(SIMGPU_ENV);
    struct stat st;
    if (!path || !*path)
        return -ENOENT;
    if (stat(path, &st) != 0)
        return -errno;
    for (struct mapping *m = mappings; m; m = m->next) {
        if (m->dev == st.st_dev && m->ino == st.st_ino && m->state.size == (size_t)st.st_size) {
            *ret = m;
            return 0;
        }
    }
    struct mapping *m = calloc(1, sizeof(*m));
    if (!m)
        return -ENOMEM;
    int rc = sim_state_open(&m->state, path, false);
    if (rc != 0) {
        free(m);
        return rc;
    }
    m->dev = st.st_dev;
    m->ino = st.st_ino;
    m->next = mappings;
    mappings = m;
    *ret = m;
    return 0;
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    if (flags & ~(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH))
        return NVML_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    int rc = 0;
    struct mapping *m = current;
    if (init_count == 0)
        rc = find_or_map(&m);
    if (rc == 0) {
        init_count++;
        __atomic_store_n(&current, m, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return rc == 0 ? NVML_SUCCESS : init_error(rc);
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

EXPORT nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    nvmlReturn_t rc = NVML_ERROR_UNINITIALIZED;
    if (init_count > 0) {
        rc = NVML_SUCCESS;
        if (--init_count == 0)
            __atomic_store_n(&current, NULL, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

const struct sim_state *nvml_state(void)
{
    const struct mapping *m = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    return m ? &m->state : NULL;
}

nvmlReturn_t nvml_card(nvmlDevice_t device, const struct sim_state **ret_state, uint32_t *ret_card)
{
    const struct sim_state *s = nvml_state();
    if (!s)
        return NVML_ERROR_UNINITIALIZED;
    for (uint32_t i = 0; i < s->header->cards_len; i++) {
        if ((void *)sim_card(s, i) == (void *)device) {
            *ret_state = s;
            *ret_card = i;
            return __atomic_load_n(&sim_card(s, i)->failed, __ATOMIC_RELAXED) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
        }
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlDevice_t nvml_handle(const struct sim_state *s, uint32_t card)
{
    return (nvmlDevice_t)(void *)sim_card(s, card);
}

nvmlReturn_t nvml_text(const char *text, char *buffer, unsigned int length)
{
    if (!buffer)
        return NVML_ERROR_INVALID_ARGUMENT;
    size_t need = strlen(text) + 1;
    if (length < need)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, need);
    return NVML_SUCCESS;
}

static const char *const error_texts[] = {
    [NVML_SUCCESS] = "Success",
    [NVML_ERROR_UNINITIALIZED] = "Uninitialized",
    [NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
    [NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
    [NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
    [NVML_ERROR_ALREADY_INITIALIZED] = "Already Initialized",
    [NVML_ERROR_NOT_FOUND] = "Not Found",
    [NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
    [NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient External Power",
    [NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
    [NVML_ERROR_TIMEOUT] = "Timeout",
    [NVML_ERROR_IRQ_ISSUE] = "Interrupt Request Issue",
    [NVML_ERROR_LIBRARY_NOT_FOUND] = "NVML Shared Library Not Found",
    [NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
    [NVML_ERROR_CORRUPTED_INFOROM] = "Corrupted infoROM",
    [NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
    [NVML_ERROR_RESET_REQUIRED] = "GPU requires reset",
    [NVML_ERROR_OPERATING_SYSTEM] = "Operating System Error",
    [NVML_ERROR_LIB_RM_VERSION_MISMATCH] = "Driver/library version mismatch",
    [NVML_ERROR_IN_USE] = "In use by another client",
    [NVML_ERROR_MEMORY] = "Insufficient Memory",
    [NVML_ERROR_NO_DATA] = "No data",
    [NVML_ERROR_VGPU_ECC_NOT_SUPPORTED] = "vGPU ECC not supported",
    [NVML_ERROR_INSUFFICIENT_RESOURCES] = "Insufficient Resources",
    [NVML_ERROR_FREQ_NOT_SUPPORTED] = "Frequency not supported",
    [NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
    [NVML_ERROR_DEPRECATED] = "Deprecated",
    [NVML_ERROR_NOT_READY] = "Not ready",
    [NVML_ERROR_GPU_NOT_FOUND] = "No GPUs were found",
    [NVML_ERROR_INVALID_STATE] = "Invalid state",
};

EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    unsigned i = (unsigned)result;
    if (i < sizeof(error_texts) / sizeof(error_texts[0]) && error_texts[i])
        return error_texts[i];
    return "Unknown Error";
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    const struct sim_state *s = nvml_state();
    return s ? nvml_text(s->header->driver_version, version, length) : NVML_ERROR_UNINITIALIZED;
}

/* NVML's version is the CUDA major number before the driver's version. */
EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    const struct sim_state *s = nvml_state();
    if (!s)
        return NVML_ERROR_UNINITIALIZED;
    char text[128];
    snprintf(text, sizeof(text), "%u.%s", s->header->cuda_version / 1000, s->header->driver_version);
    return nvml_text(text, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    const struct sim_state *s = nvml_state();
    if (!s)
        return NVML_ERROR_UNINITIALIZED;
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = (int)s->header->cuda_version;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    if (!nvml_state())
        return NVML_ERROR_UNINITIALIZED;
    if (!name || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    char path[40], text[1024];
    snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return NVML_ERROR_NOT_FOUND;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = 0;
    if (n == 0)
        return NVML_ERROR_NOT_FOUND;
    /* Unlike other texts a name that is too long is cut. */
    snprintf(name, length, "%s", text);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    const struct sim_state *s = nvml_state();
    if (!s)
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = s->header->cards_len;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    const struct sim_state *s = nvml_state();
    if (!s)
        return NVML_ERROR_UNINITIALIZED;
    if (!device || index >= s->header->cards_len)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = nvml_handle(s, index);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    const struct sim_state *s = nvml_state();
    if (!s)
        return NVML_ERROR_UNINITIALIZED;
    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < s->header->cards_len; i++) {
        if (strcasecmp(sim_card(s, i)->uuid, uuid) == 0) {
            *device = nvml_handle(s, i);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    const struct sim_state *s = nvml_state();
    if (!s)
        return NVML_ERROR_UNINITIALIZED;
    if (!serial || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < s->header->cards_len; i++) {
        if (*serial && strcmp(sim_card(s, i)->serial, serial) == 0) {
            *device = nvml_handle(s, i);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

/* "domain:bus:device.function" or "bus:device.function", hexadecimal, any number of leading zeros.
 */
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    const struct sim_state *s = nvml_state();
    if (!s)
        return NVML_ERROR_UNINITIALIZED;
    if (!bus_id || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned domain = 0, bus, dev, function = 0;
    int end = 0;
    bool full = sscanf(bus_id, "%8x:%2x:%2x%n.%1x%n", &domain, &bus, &dev, &end, &function, &end) >= 3;
    if (!full) {
        domain = 0;
        end = 0;
        if (sscanf(bus_id, "%2x:%2x%n.%1x%n", &bus, &dev, &end, &function, &end) < 2)
            return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (bus_id[end] != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < s->header->cards_len; i++) {
        const struct simgpu_card *c = sim_card(s, i);
        if (c->pci_domain == domain && c->pci_bus == bus && c->pci_device == dev && function == 0) {
            *device = nvml_handle(s, i);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}
