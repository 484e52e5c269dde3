/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML, opened at run time: the program starts and works on machines that have no driver. A few
 * functions must be there (those of 2013 that every driver has); all others may be missing, the
 * pointer is NULL then and the caller takes another way or leaves the figure out.
 *
 * The same code drives a real driver and the stand-in of simgpu/nvml; which one it is, the driver's
 * version tells. A `struct nvml` is opened by one thread; NVML itself may then be called from any.
 */
#ifndef REMUDA_GPU_NVML_H
#define REMUDA_GPU_NVML_H

#include "abi/nvml_abi.h"
#include "base/err.h"

#include <stdbool.h>

/* X(field, NVML function, required, older name or NULL) */
#define NVML_FUNCTIONS(X)                                                                       \
    X(init, nvmlInit_v2, true, "nvmlInit")                                                      \
    X(shutdown, nvmlShutdown, true, NULL)                                                       \
    X(error_string, nvmlErrorString, false, NULL)                                               \
    X(driver_version, nvmlSystemGetDriverVersion, true, NULL)                                   \
    X(nvml_version, nvmlSystemGetNVMLVersion, false, NULL)                                      \
    X(cuda_version, nvmlSystemGetCudaDriverVersion_v2, false, "nvmlSystemGetCudaDriverVersion") \
    X(count, nvmlDeviceGetCount_v2, true, "nvmlDeviceGetCount")                                 \
    X(handle_by_index, nvmlDeviceGetHandleByIndex_v2, true, "nvmlDeviceGetHandleByIndex")       \
    X(name, nvmlDeviceGetName, true, NULL)                                                      \
    X(uuid, nvmlDeviceGetUUID, true, NULL)                                                      \
    X(memory, nvmlDeviceGetMemoryInfo, true, NULL)                                              \
    X(memory_v2, nvmlDeviceGetMemoryInfo_v2, false, NULL)                                       \
    X(pci, nvmlDeviceGetPciInfo_v3, false, NULL)                                                \
    X(minor, nvmlDeviceGetMinorNumber, false, NULL)                                             \
    X(serial, nvmlDeviceGetSerial, false, NULL)                                                 \
    X(capability, nvmlDeviceGetCudaComputeCapability, false, NULL)                              \
    X(mig_mode, nvmlDeviceGetMigMode, false, NULL)                                              \
    X(utilization, nvmlDeviceGetUtilizationRates, false, NULL)                                  \
    X(processes_v3, nvmlDeviceGetComputeRunningProcesses_v3, false, NULL)                       \
    X(processes_v2, nvmlDeviceGetComputeRunningProcesses_v2, false, NULL)                       \
    X(process_utilization, nvmlDeviceGetProcessUtilization, false, NULL)                        \
    X(temperature, nvmlDeviceGetTemperature, false, NULL)                                       \
    X(power, nvmlDeviceGetPowerUsage, false, NULL)                                              \
    X(power_limit, nvmlDeviceGetEnforcedPowerLimit, false, NULL)                                \
    X(common_ancestor, nvmlDeviceGetTopologyCommonAncestor, false, NULL)                        \
    X(nvlink_state, nvmlDeviceGetNvLinkState, false, NULL)                                      \
    X(nvlink_remote_pci, nvmlDeviceGetNvLinkRemotePciInfo_v2, false, NULL)                      \
    X(nvlink_remote_type, nvmlDeviceGetNvLinkRemoteDeviceType, false, NULL)                     \
    X(nvlink_version, nvmlDeviceGetNvLinkVersion, false, NULL)                                  \
    X(cpu_affinity, nvmlDeviceGetCpuAffinity, false, NULL)                                      \
    X(memory_affinity, nvmlDeviceGetMemoryAffinity, false, NULL)                                \
    X(numa_node, nvmlDeviceGetNumaNodeId, false, NULL)

struct nvml {
    void *library; /* NULL: not open */
    char driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
    bool simulated; /* the driver says that its cards are */
#define X(field, function, required, older) __typeof__(function) *field;
    NVML_FUNCTIONS(X)
#undef X
};

/*
 * Opens the library and initialises it. `path` is a file, or NULL for the name the system knows
 * ("libnvidia-ml.so.1", then "libnvidia-ml.so"). -ENOENT when there is no library, -ENOSYS when it
 * lacks a required function, -ENODEV when there is no driver or card, -EACCES, -EPROTO when library
 * and driver do not match, else -EIO; the text says which. *ret is closed then.
 */
int nvml_open(const char *path, struct nvml *ret, struct err *e);
/* Ends NVML; the library stays loaded. A closed one is allowed. */
void nvml_close(struct nvml *n);
/* NVML's words for a result. */
const char *nvml_text_of(const struct nvml *n, nvmlReturn_t rc);

#endif
