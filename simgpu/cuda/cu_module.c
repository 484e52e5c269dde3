/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver stand-in: modules, functions, launches. See cu_impl.h.
 *
 * A module is not machine code but a description of how long kernels take:
 *
 *     remuda-kernels 1
 *     # name, then pairs of word and number
 *     kernel gemm time-us 250 block-ns 40 sm 90
 *     kernel axpy time-us 20
 *
 * A launch takes time-us, and block-ns more for each block of the grid. While it runs it keeps sm
 * per cent of the SMs busy; without that word one SM for each block, all at most. Nothing is
 * computed. Any other image is CUDA_ERROR_INVALID_IMAGE. Example: gemm with 1,000 blocks takes 250
 * + 40 = 290 us.
 */
#include "simgpu/cuda/cu_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD        "remuda-kernels 1\n"
#define KERNELS_MAX 4096
#define IMAGE_MAX   (1024u * 1024)

static bool number_of(const char *text, uint64_t max, uint64_t *ret)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno == 0 && *end == 0 && *ret <= max;
}

/* "kernel NAME word number ...", in place. */
static bool parse_kernel(char *line, struct kernel *k)
{
    char *save = NULL, *word = strtok_r(line, " \t\r", &save);
    if (!word || strcmp(word, "kernel") != 0)
        return false;
    const char *name = strtok_r(NULL, " \t\r", &save);
    if (!name || strlen(name) >= sizeof(k->name))
        return false;
    memset(k, 0, sizeof(*k));
    memcpy(k->name, name, strlen(name) + 1);
    bool timed = false;
    while ((word = strtok_r(NULL, " \t\r", &save)) != NULL) {
        const char *text = strtok_r(NULL, " \t\r", &save);
        uint64_t v;
        if (!text)
            return false;
        if (strcmp(word, "time-us") == 0 && number_of(text, 3600000000u, &v)) {
            k->time_ns = v * 1000;
            timed = true;
        } else if (strcmp(word, "block-ns") == 0 && number_of(text, 1000000000u, &v)) {
            k->block_ns = v;
        } else if (strcmp(word, "sm") == 0 && number_of(text, 100, &v) && v > 0) {
            k->permille = (uint32_t)v * 10;
        } else {
            return false;
        }
    }
    return timed || k->block_ns > 0;
}

static CUresult add_kernel(struct CUmod_st *m, char *line)
{
    struct kernel k;
    if (!parse_kernel(line, &k) || m->len == KERNELS_MAX)
        return CUDA_ERROR_INVALID_IMAGE;
    for (unsigned i = 0; i < m->len; i++)
        if (strcmp(m->functions[i].kernel.name, k.name) == 0)
            return CUDA_ERROR_INVALID_IMAGE;
    m->functions[m->len++] = (struct CUfunc_st){MAGIC_FUNCTION, m, k};
    return CUDA_SUCCESS;
}

static void free_module(struct CUmod_st *m)
{
    if (!m)
        return;
    m->magic = 0;
    for (unsigned i = 0; i < m->len; i++)
        m->functions[i].magic = 0;
    free(m->functions);
    free(m);
}

/* Reads the description; the functions' addresses are handles, so room for all lines is made at
 * once. */
static CUresult parse_module(const char *image, struct CUmod_st **ret)
{
    if (strncmp(image, HEAD, strlen(HEAD)) != 0 || strnlen(image, IMAGE_MAX) == IMAGE_MAX)
        return CUDA_ERROR_INVALID_IMAGE;
    char *text = strdup(image + strlen(HEAD)), *save = NULL;
    struct CUmod_st *m = calloc(1, sizeof(*m));
    size_t lines = 1;
    for (const char *p = image; *p; p++)
        lines += *p == '\n';
    if (m)
        m->functions = calloc(lines, sizeof(*m->functions));
    CUresult rc = text && m && m->functions ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (char *line = rc == CUDA_SUCCESS ? strtok_r(text, "\n", &save) : NULL; line && rc == CUDA_SUCCESS;
         line = strtok_r(NULL, "\n", &save)) {
        if (line[strspn(line, " \t\r")] && *line != '#')
            rc = add_kernel(m, line);
    }
    free(text);
    if (rc != CUDA_SUCCESS) {
        free_module(m);
        return rc;
    }
    m->magic = MAGIC_MODULE;
    *ret = m;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    struct CUctx_st *ctx;
    if (!module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct CUmod_st *m;
    rc = parse_module(image, &m);
    if (rc == CUDA_SUCCESS) {
        m->context = ctx;
        *module = m;
    }
    cu_unlock();
    return rc;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int options_len, int *options,
                                   void **values)
{
    if (options_len > 0 && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    return cuModuleLoadData(module, image);
}

EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    if (!module || !path)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *f = fopen(path, "re");
    if (!f)
        return CUDA_ERROR_FILE_NOT_FOUND;
    char *text = calloc(1, IMAGE_MAX + 1);
    size_t n = text ? fread(text, 1, IMAGE_MAX, f) : 0;
    fclose(f);
    if (!text)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult rc = n > 0 ? cuModuleLoadData(module, text) : CUDA_ERROR_INVALID_IMAGE;
    free(text);
    return rc;
}

/* Takes the lock and checks the module; lock held on success only. */
static CUresult enter_module(CUmodule module)
{
    struct CUctx_st *ctx;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (module && module->magic == MAGIC_MODULE)
        return CUDA_SUCCESS;
    cu_unlock();
    return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    CUresult rc = enter_module(module);
    if (rc != CUDA_SUCCESS)
        return rc;
    free_module(module);
    cu_unlock();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult rc = enter_module(module);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = function && name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < module->len && rc == CUDA_ERROR_NOT_FOUND; i++) {
        if (strcmp(module->functions[i].kernel.name, name) == 0) {
            *function = &module->functions[i];
            rc = CUDA_SUCCESS;
        }
    }
    cu_unlock();
    return rc;
}

EXPORT CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
    CUresult rc = enter_module(module);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (count)
        *count = module->len;
    cu_unlock();
    return count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuModuleGetLoadingMode(int *mode)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (mode)
        *mode = CU_MODULE_EAGER_LOADING;
    cu_unlock();
    return mode ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool function_ok(const struct CUfunc_st *f)
{
    return f && f->magic == MAGIC_FUNCTION;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!function_ok(function))
        return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuFuncGetName(const char **name, CUfunction function)
{
    if (!name || !function_ok(function))
        return !name ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *name = function->kernel.name;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
    if (!module || !function_ok(function))
        return !module ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *module = function->module;
    return CUDA_SUCCESS;
}

static CUresult shape_ok(const CUlaunchConfig *c)
{
    if (c->gridDimX == 0 || c->gridDimY == 0 || c->gridDimZ == 0 || c->blockDimX == 0 || c->blockDimY == 0 ||
        c->blockDimZ == 0 || c->gridDimX > 2147483647u || c->gridDimY > 65535 || c->gridDimZ > 65535 ||
        c->blockDimX > 1024 || c->blockDimY > 1024 || c->blockDimZ > 64)
        return CUDA_ERROR_INVALID_VALUE;
    if ((uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    return c->sharedMemBytes > 49152 ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    struct CUctx_st *ctx;
    (void)params;
    (void)extra;
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = shape_ok(config);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct CUstream_st *s = cu_stream(ctx, config->hStream);
    if (!s || !function_ok(function)) {
        cu_unlock();
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const struct kernel *k = &function->kernel;
    __uint128_t blocks = (__uint128_t)config->gridDimX * config->gridDimY * config->gridDimZ;
    __uint128_t time = k->time_ns + blocks * k->block_ns;
    uint64_t limit = 86400000000000ull; /* a day */
    uint32_t sms = cu_card(&cu.devices[ctx->device])->sm_count, permille = k->permille;
    if (permille == 0)
        permille = blocks >= sms ? SIMGPU_PERMILLE : (uint32_t)(blocks * SIMGPU_PERMILLE / sms);
    cu_queue(ctx, s, time > limit ? limit : (uint64_t)time, permille ? permille : 1);
    cu_unlock();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                               unsigned int block_x, unsigned int block_y, unsigned int block_z,
                               unsigned int shared_bytes, CUstream stream, void **params, void **extra)
{
    CUlaunchConfig c = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, NULL, 0};
    return cuLaunchKernelEx(&c, function, params, extra);
}
