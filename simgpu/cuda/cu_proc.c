/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver stand-in: functions by name and version. See cu_impl.h.
 *
 * LIMITATIONS. There are no per-thread-default-stream twins: a request for one gets the plain
 * function, as the driver does for names that have no twin. There are no export tables, on which
 * the CUDA runtime insists: programs that use the runtime (PyTorch among them) can not run on this
 * stand-in, and it does not pretend that they can.
 */
#include "simgpu/cuda/cu_impl.h"

#include <string.h>

struct entry {
    const char *base;
    int version;
    void (*function)(void);
};

static const struct entry entries[] = {
#define X(name, base, version, parameters) {base, version, (void (*)(void))name},
    CUDA_FUNCTIONS(X)
#undef X
};

static CUdriverProcAddressQueryResult find(const char *symbol, int version, void **fn)
{
    const struct entry *best = NULL;
    bool known = false;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        const struct entry *e = &entries[i];
        if (strcmp(e->base, symbol) != 0)
            continue;
        known = true;
        if (e->version <= version && (!best || e->version > best->version))
            best = e;
    }
    *fn = NULL;
    if (best)
        memcpy(fn, &best->function, sizeof(*fn));
    return best    ? CU_GET_PROC_ADDRESS_SUCCESS
           : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                   : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
    if (!symbol || !fn || flags > 3 || flags == 3)
        return CUDA_ERROR_INVALID_VALUE;
    CUdriverProcAddressQueryResult r = find(symbol, version, fn);
    if (status)
        *status = r;
    return r == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, fn, version, flags, NULL);
}

EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
