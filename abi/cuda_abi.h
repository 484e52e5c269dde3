/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the CUDA driver ABI (libcuda.so.1) that Remuda uses, in our own words: names, numbers
 * and layouts that the driver fixes. simgpu/cuda implements it; test programs call it. Header-only,
 * depends on nothing. Where a CUDA toolkit is installed, tests/unit/test_cuda_abi.c compares it
 * with the toolkit's header.
 *
 * Functions are declared under the names that the library exports (with _v2 and so on), since the
 * plain name is another, older function there. All of them return a CUresult.
 */
#ifndef REMUDA_ABI_CUDA_ABI_H
#define REMUDA_ABI_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* X(name, number, what cuGetErrorString says) */
#define CUDA_RESULTS(X)                                                                        \
    X(CUDA_SUCCESS, 0, "no error")                                                             \
    X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                         \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                            \
    X(CUDA_ERROR_NOT_INITIALIZED, 3, "initialization error")                                   \
    X(CUDA_ERROR_DEINITIALIZED, 4, "driver shutting down")                                     \
    X(CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                         \
    X(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                \
    X(CUDA_ERROR_INVALID_IMAGE, 200, "device kernel image is invalid")                         \
    X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context")                               \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image is available for the device")        \
    X(CUDA_ERROR_UNSUPPORTED_LIMIT, 215, "limit is not supported on this architecture")        \
    X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217, "peer access is not supported between devices") \
    X(CUDA_ERROR_FILE_NOT_FOUND, 301, "file not found")                                        \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304, "OS call failed or operation not supported")           \
    X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle")                               \
    X(CUDA_ERROR_ILLEGAL_STATE, 401, "the operation cannot be performed in the present state") \
    X(CUDA_ERROR_NOT_FOUND, 500, "named symbol not found")                                     \
    X(CUDA_ERROR_NOT_READY, 600, "device not ready")                                           \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")             \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch")      \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already enabled")           \
    X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705, "peer access has not been enabled")             \
    X(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708, "primary context is active")                     \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed")                            \
    X(CUDA_ERROR_NOT_PERMITTED, 800, "operation not permitted")                                \
    X(CUDA_ERROR_NOT_SUPPORTED, 801, "operation not supported")                                \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803, "display driver and CUDA driver do not match")   \
    X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

typedef enum {
#define X(name, number, text) name = number,
    CUDA_RESULTS(X)
#undef X
} CUresult;

typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct {
    char bytes[16];
} CUuuid;

#define CU_STREAM_LEGACY_HANDLE     ((CUstream)0x1)
#define CU_STREAM_PER_THREAD_HANDLE ((CUstream)0x2)

/* Device attributes: X(name, number). */
#define CUDA_DEVICE_ATTRIBUTES(X)               \
    X(MAX_THREADS_PER_BLOCK, 1)                 \
    X(MAX_BLOCK_DIM_X, 2)                       \
    X(MAX_BLOCK_DIM_Y, 3)                       \
    X(MAX_BLOCK_DIM_Z, 4)                       \
    X(MAX_GRID_DIM_X, 5)                        \
    X(MAX_GRID_DIM_Y, 6)                        \
    X(MAX_GRID_DIM_Z, 7)                        \
    X(MAX_SHARED_MEMORY_PER_BLOCK, 8)           \
    X(TOTAL_CONSTANT_MEMORY, 9)                 \
    X(WARP_SIZE, 10)                            \
    X(MAX_PITCH, 11)                            \
    X(MAX_REGISTERS_PER_BLOCK, 12)              \
    X(CLOCK_RATE, 13)                           \
    X(GPU_OVERLAP, 15)                          \
    X(MULTIPROCESSOR_COUNT, 16)                 \
    X(KERNEL_EXEC_TIMEOUT, 17)                  \
    X(INTEGRATED, 18)                           \
    X(CAN_MAP_HOST_MEMORY, 19)                  \
    X(COMPUTE_MODE, 20)                         \
    X(CONCURRENT_KERNELS, 31)                   \
    X(ECC_ENABLED, 32)                          \
    X(PCI_BUS_ID, 33)                           \
    X(PCI_DEVICE_ID, 34)                        \
    X(MEMORY_CLOCK_RATE, 36)                    \
    X(GLOBAL_MEMORY_BUS_WIDTH, 37)              \
    X(MAX_THREADS_PER_MULTIPROCESSOR, 39)       \
    X(ASYNC_ENGINE_COUNT, 40)                   \
    X(UNIFIED_ADDRESSING, 41)                   \
    X(PCI_DOMAIN_ID, 50)                        \
    X(COMPUTE_CAPABILITY_MAJOR, 75)             \
    X(COMPUTE_CAPABILITY_MINOR, 76)             \
    X(STREAM_PRIORITIES_SUPPORTED, 78)          \
    X(MANAGED_MEMORY, 83)                       \
    X(COOPERATIVE_LAUNCH, 95)                   \
    X(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102) \
    X(MEMORY_POOLS_SUPPORTED, 115)

typedef enum {
#define X(name, number) CU_DEVICE_ATTRIBUTE_##name = number,
    CUDA_DEVICE_ATTRIBUTES(X)
#undef X
        CU_DEVICE_ATTRIBUTE_LAST_KNOWN = 147
} CUdevice_attribute;

typedef enum {
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12
} CUpointer_attribute;

typedef enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6
} CUfunction_attribute;

typedef enum {
    CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1,
    CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2,
    CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3,
    CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED = 4
} CUdevice_P2PAttribute;

typedef enum { CU_LIMIT_STACK_SIZE = 0, CU_LIMIT_PRINTF_FIFO_SIZE = 1, CU_LIMIT_MALLOC_HEAP_SIZE = 2 } CUlimit;

typedef enum {
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
} CUdriverProcAddressQueryResult;

#define CU_MEMORYTYPE_HOST      1
#define CU_MEMORYTYPE_DEVICE    2
#define CU_STREAM_NON_BLOCKING  1u
#define CU_EVENT_DISABLE_TIMING 2u
#define CU_CTX_FLAGS_MASK       0xffu
#define CU_MODULE_EAGER_LOADING 1

typedef struct {
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    void *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

_Static_assert(sizeof(CUresult) == 4, "CUDA enums are ints");
_Static_assert(sizeof(CUuuid) == 16, "CUuuid");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");

/*
 * Every function: X(exported name, base name asked of cuGetProcAddress, first CUDA version,
 * parameters). Of several with one base name the highest version that is not above the one asked
 * for is meant.
 */
#define CUDA_FUNCTIONS(X)                                                                                              \
    X(cuInit, "cuInit", 2000, (unsigned int flags))                                                                    \
    X(cuDriverGetVersion, "cuDriverGetVersion", 2020, (int *version))                                                  \
    X(cuGetErrorString, "cuGetErrorString", 6000, (CUresult error, const char **text))                                 \
    X(cuGetErrorName, "cuGetErrorName", 6000, (CUresult error, const char **name))                                     \
    X(cuGetProcAddress, "cuGetProcAddress", 11030, (const char *symbol, void **fn, int version, uint64_t flags))       \
    X(cuGetProcAddress_v2, "cuGetProcAddress", 12000,                                                                  \
      (const char *symbol, void **fn, int version, uint64_t flags, CUdriverProcAddressQueryResult *status))            \
    X(cuGetExportTable, "cuGetExportTable", 3000, (const void **table, const CUuuid *id))                              \
    X(cuDeviceGet, "cuDeviceGet", 2000, (CUdevice * device, int ordinal))                                              \
    X(cuDeviceGetCount, "cuDeviceGetCount", 2000, (int *count))                                                        \
    X(cuDeviceGetName, "cuDeviceGetName", 2000, (char *name, int length, CUdevice device))                             \
    X(cuDeviceGetUuid, "cuDeviceGetUuid", 9020, (CUuuid * uuid, CUdevice device))                                      \
    X(cuDeviceGetUuid_v2, "cuDeviceGetUuid", 11040, (CUuuid * uuid, CUdevice device))                                  \
    X(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020, (size_t * bytes, CUdevice device))                                \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, (int *value, CUdevice_attribute attribute, CUdevice device)) \
    X(cuDeviceComputeCapability, "cuDeviceComputeCapability", 2000, (int *major, int *minor, CUdevice device))         \
    X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 4010, (char *bus_id, int length, CUdevice device))                   \
    X(cuDeviceGetByPCIBusId, "cuDeviceGetByPCIBusId", 4010, (CUdevice * device, const char *bus_id))                   \
    X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", 4000, (int *can, CUdevice device, CUdevice peer))                \
    X(cuDeviceGetP2PAttribute, "cuDeviceGetP2PAttribute", 8000,                                                        \
      (int *value, CUdevice_P2PAttribute attribute, CUdevice source, CUdevice destination))                            \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, (CUcontext * context, CUdevice device))              \
    X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, (CUdevice device))                             \
    X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, (CUdevice device))                                 \
    X(cuDevicePrimaryCtxSetFlags_v2, "cuDevicePrimaryCtxSetFlags", 11000, (CUdevice device, unsigned int flags))       \
    X(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000,                                                  \
      (CUdevice device, unsigned int *flags, int *active))                                                             \
    X(cuCtxCreate_v2, "cuCtxCreate", 3020, (CUcontext * context, unsigned int flags, CUdevice device))                 \
    X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, (CUcontext context))                                                      \
    X(cuCtxPushCurrent_v2, "cuCtxPushCurrent", 4000, (CUcontext context))                                              \
    X(cuCtxPopCurrent_v2, "cuCtxPopCurrent", 4000, (CUcontext * context))                                              \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, (CUcontext context))                                                   \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, (CUcontext * context))                                                 \
    X(cuCtxGetDevice, "cuCtxGetDevice", 2000, (CUdevice * device))                                                     \
    X(cuCtxGetFlags, "cuCtxGetFlags", 7000, (unsigned int *flags))                                                     \
    X(cuCtxGetApiVersion, "cuCtxGetApiVersion", 3020, (CUcontext context, unsigned int *version))                      \
    X(cuCtxGetLimit, "cuCtxGetLimit", 3010, (size_t * value, CUlimit limit))                                           \
    X(cuCtxSetLimit, "cuCtxSetLimit", 3010, (CUlimit limit, size_t value))                                             \
    X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", 5050, (int *least, int *greatest))                   \
    X(cuCtxSynchronize, "cuCtxSynchronize", 2000, (void))                                                              \
    X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000, (CUcontext peer, unsigned int flags))                      \
    X(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", 4000, (CUcontext peer))                                        \
    X(cuMemAlloc_v2, "cuMemAlloc", 3020, (CUdeviceptr * address, size_t bytes))                                        \
    X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020,                                                                     \
      (CUdeviceptr * address, size_t * pitch, size_t width, size_t height, unsigned int element))                      \
    X(cuMemFree_v2, "cuMemFree", 3020, (CUdeviceptr address))                                                          \
    X(cuMemGetInfo_v2, "cuMemGetInfo", 3020, (size_t * available, size_t * total))                                     \
    X(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020,                                                           \
      (CUdeviceptr * base, size_t * bytes, CUdeviceptr address))                                                       \
    X(cuMemAllocHost_v2, "cuMemAllocHost", 3020, (void **host, size_t bytes))                                          \
    X(cuMemHostAlloc, "cuMemHostAlloc", 2020, (void **host, size_t bytes, unsigned int flags))                         \
    X(cuMemFreeHost, "cuMemFreeHost", 2000, (void *host))                                                              \
    X(cuMemAllocAsync, "cuMemAllocAsync", 11020, (CUdeviceptr * address, size_t bytes, CUstream stream))               \
    X(cuMemFreeAsync, "cuMemFreeAsync", 11020, (CUdeviceptr address, CUstream stream))                                 \
    X(cuPointerGetAttribute, "cuPointerGetAttribute", 4000,                                                            \
      (void *value, CUpointer_attribute attribute, CUdeviceptr address))                                               \
    X(cuMemcpy, "cuMemcpy", 4000, (CUdeviceptr to, CUdeviceptr from, size_t bytes))                                    \
    X(cuMemcpyAsync, "cuMemcpyAsync", 4000, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))         \
    X(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020, (CUdeviceptr to, const void *from, size_t bytes))                         \
    X(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020,                                                                 \
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                                               \
    X(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 3020, (void *to, CUdeviceptr from, size_t bytes))                               \
    X(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))    \
    X(cuMemcpyDtoD_v2, "cuMemcpyDtoD", 3020, (CUdeviceptr to, CUdeviceptr from, size_t bytes))                         \
    X(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020,                                                                 \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                                               \
    X(cuMemsetD8_v2, "cuMemsetD8", 3020, (CUdeviceptr to, unsigned char value, size_t count))                          \
    X(cuMemsetD16_v2, "cuMemsetD16", 3020, (CUdeviceptr to, unsigned short value, size_t count))                       \
    X(cuMemsetD32_v2, "cuMemsetD32", 3020, (CUdeviceptr to, unsigned int value, size_t count))                         \
    X(cuMemsetD8Async, "cuMemsetD8Async", 3020, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))  \
    X(cuMemsetD32Async, "cuMemsetD32Async", 3020, (CUdeviceptr to, unsigned int value, size_t count, CUstream stream)) \
    X(cuStreamCreate, "cuStreamCreate", 2000, (CUstream * stream, unsigned int flags))                                 \
    X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050,                                                  \
      (CUstream * stream, unsigned int flags, int priority))                                                           \
    X(cuStreamDestroy_v2, "cuStreamDestroy", 4000, (CUstream stream))                                                  \
    X(cuStreamSynchronize, "cuStreamSynchronize", 2000, (CUstream stream))                                             \
    X(cuStreamQuery, "cuStreamQuery", 2000, (CUstream stream))                                                         \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, (CUstream stream, CUevent event, unsigned int flags))              \
    X(cuStreamGetFlags, "cuStreamGetFlags", 5050, (CUstream stream, unsigned int *flags))                              \
    X(cuStreamGetPriority, "cuStreamGetPriority", 5050, (CUstream stream, int *priority))                              \
    X(cuStreamGetCtx, "cuStreamGetCtx", 9020, (CUstream stream, CUcontext * context))                                  \
    X(cuEventCreate, "cuEventCreate", 2000, (CUevent * event, unsigned int flags))                                     \
    X(cuEventDestroy_v2, "cuEventDestroy", 4000, (CUevent event))                                                      \
    X(cuEventRecord, "cuEventRecord", 2000, (CUevent event, CUstream stream))                                          \
    X(cuEventQuery, "cuEventQuery", 2000, (CUevent event))                                                             \
    X(cuEventSynchronize, "cuEventSynchronize", 2000, (CUevent event))                                                 \
    X(cuEventElapsedTime, "cuEventElapsedTime", 2000, (float *ms, CUevent start, CUevent end))                         \
    X(cuEventElapsedTime_v2, "cuEventElapsedTime", 12080, (float *ms, CUevent start, CUevent end))                     \
    X(cuModuleLoad, "cuModuleLoad", 2000, (CUmodule * module, const char *path))                                       \
    X(cuModuleLoadData, "cuModuleLoadData", 2000, (CUmodule * module, const void *image))                              \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010,                                                                  \
      (CUmodule * module, const void *image, unsigned int options_len, int *options, void **values))                   \
    X(cuModuleUnload, "cuModuleUnload", 2000, (CUmodule module))                                                       \
    X(cuModuleGetFunction, "cuModuleGetFunction", 2000, (CUfunction * function, CUmodule module, const char *name))    \
    X(cuModuleGetFunctionCount, "cuModuleGetFunctionCount", 12040, (unsigned int *count, CUmodule module))             \
    X(cuModuleGetLoadingMode, "cuModuleGetLoadingMode", 11070, (int *mode))                                            \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", 2020,                                                                  \
      (int *value, CUfunction_attribute attribute, CUfunction function))                                               \
    X(cuFuncGetName, "cuFuncGetName", 12030, (const char **name, CUfunction function))                                 \
    X(cuFuncGetModule, "cuFuncGetModule", 11000, (CUmodule * module, CUfunction function))                             \
    X(cuLaunchKernel, "cuLaunchKernel", 4000,                                                                          \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,       \
       unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params,          \
       void **extra))                                                                                                  \
    X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060,                                                                     \
      (const CUlaunchConfig *config, CUfunction function, void **params, void **extra))

#define X(name, base, version, parameters) CUresult name parameters;
CUDA_FUNCTIONS(X)
#undef X

#endif
