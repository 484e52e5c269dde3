/* SPDX-License-Identifier: Apache-2.0 */
/* See nvml.h. */
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct entry {
    const char *name;
    const char *older;
    size_t offset;
    bool required;
};

static const struct entry entries[] = {
#define X(field, function, required, older) {#function, older, offsetof(struct nvml, field), required},
    NVML_FUNCTIONS(X)
#undef X
};

static void *open_library(const char *path, struct err *e)
{
    static const char *const names[] = {"libnvidia-ml.so.1", "libnvidia-ml.so"};
    if (path) {
        void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!h) {
            const char *why = dlerror();
            err_set(e, -ENOENT, "NVML: %s", why ? why : path);
        }
        return h;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *h = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (h)
            return h;
    }
    err_set(e, -ENOENT, "no NVIDIA driver: the library libnvidia-ml.so.1 was not found");
    return NULL;
}

static int bind_functions(struct nvml *n, struct err *e)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *f = dlsym(n->library, entries[i].name);
        if (!f && entries[i].older)
            f = dlsym(n->library, entries[i].older);
        if (!f && entries[i].required)
            return err_set(e, -ENOSYS, "NVML: the library lacks the function %s", entries[i].name);
        /* ISO C has no cast from a data pointer to a function pointer; POSIX promises that the
         * bytes are the same. */
        memcpy((char *)n + entries[i].offset, &f, sizeof(f));
    }
    return 0;
}

const char *nvml_text_of(const struct nvml *n, nvmlReturn_t rc)
{
    const char *text = n->error_string ? n->error_string(rc) : NULL;
    return text ? text : "unknown NVML error";
}

static int code_of(nvmlReturn_t rc)
{
    switch (rc) {
    case NVML_SUCCESS:
        return 0;
    case NVML_ERROR_DRIVER_NOT_LOADED:
    case NVML_ERROR_GPU_NOT_FOUND:
    case NVML_ERROR_NOT_FOUND:
        return -ENODEV;
    case NVML_ERROR_NO_PERMISSION:
        return -EACCES;
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return -EPROTO;
    case NVML_ERROR_MEMORY:
        return -ENOMEM;
    default:
        return -EIO;
    }
}

static int start(struct nvml *n, struct err *e)
{
    nvmlReturn_t rc = n->init();
    if (rc != NVML_SUCCESS)
        return err_set(e, code_of(rc), "NVML: initialisation: %s", nvml_text_of(n, rc));
    rc = n->driver_version(n->driver, sizeof(n->driver));
    if (rc != NVML_SUCCESS) {
        n->shutdown();
        return err_set(e, code_of(rc), "NVML: driver version: %s", nvml_text_of(n, rc));
    }
    n->driver[sizeof(n->driver) - 1] = 0;
    n->simulated = strstr(n->driver, "simulated") != NULL;
    return 0;
}

int nvml_open(const char *path, struct nvml *ret, struct err *e)
{
    memset(ret, 0, sizeof(*ret));
    struct nvml n = {.library = open_library(path, e)};
    if (!n.library)
        return -ENOENT;
    int rc = bind_functions(&n, e);
    if (rc == 0)
        rc = start(&n, e);
    if (rc != 0) {
        dlclose(n.library);
        return rc;
    }
    *ret = n;
    return 0;
}

/*
 * The library is not unloaded: the driver's may keep threads and exit handlers of its own.
 */
void nvml_close(struct nvml *n)
{
    if (n->library)
        n->shutdown();
    memset(n, 0, sizeof(*n));
}
