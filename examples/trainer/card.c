/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The card, through the CUDA driver API and nothing else: libcuda.so.1 is opened at run time, so that the program also
 * runs where there is none. Under simulated cards that library is a stand-in with the same calls.
 *
 * The network is so small that its arithmetic is done on the CPU. What the card does: it holds the memory that was
 * asked for, of which the first part are the parameters (copied there in every step and compared on demand), and it
 * runs a kernel of one millisecond on all its multiprocessors, as often as fills the part of each step that --busy
 * says, so that memory and use show where a real training's would.
 */
#include "trainer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CARDS_MAX                16
#define CHUNKS_MAX               512
#define CHUNK_BYTES              ((uint64_t)1 << 30)
#define ATTRIBUTE_SM_COUNT       16
#define THREADS_PER_BLOCK        256
#define CUDA_SUCCESS             0
#define CUDA_ERROR_OUT_OF_MEMORY 2
#define CUDA_ERROR_INVALID_IMAGE 200
#define KERNEL_US                1000

/* Spins on the card's clock until `ns` have passed, in every thread. */
static const char kernel_text[] = ".version 6.0\n"
                                  ".target sm_50\n"
                                  ".address_size 64\n"
                                  ".visible .entry spin(.param .u64 ns)\n"
                                  "{\n"
                                  "    .reg .u64 %rd<4>;\n"
                                  "    .reg .pred %p<2>;\n"
                                  "    ld.param.u64 %rd1, [ns];\n"
                                  "    mov.u64 %rd2, %globaltimer;\n"
                                  "AGAIN:\n"
                                  "    mov.u64 %rd3, %globaltimer;\n"
                                  "    sub.u64 %rd3, %rd3, %rd2;\n"
                                  "    setp.lt.u64 %p1, %rd3, %rd1;\n"
                                  "    @%p1 bra AGAIN;\n"
                                  "    ret;\n"
                                  "}\n";

/* What a simulated card takes in place of machine code: how long the kernel lasts and what part of the card it fills.
 */
static const char kernel_description[] = "remuda-kernels 1\n"
                                         "kernel spin time-us 1000 sm 100\n";

/* The driver calls that are used: X(member, symbol, parameters). */
#define DRIVER_CALLS(X)                                                                                         \
    X(init, "cuInit", (unsigned))                                                                               \
    X(device_count, "cuDeviceGetCount", (int *))                                                                \
    X(device_get, "cuDeviceGet", (int *, int))                                                                  \
    X(device_name, "cuDeviceGetName", (char *, int, int))                                                       \
    X(device_attribute, "cuDeviceGetAttribute", (int *, int, int))                                              \
    X(context_create, "cuCtxCreate_v2", (void **, unsigned, int))                                               \
    X(context_destroy, "cuCtxDestroy_v2", (void *))                                                             \
    X(context_use, "cuCtxSetCurrent", (void *))                                                                 \
    X(synchronize, "cuCtxSynchronize", (void))                                                                  \
    X(mem_alloc, "cuMemAlloc_v2", (uint64_t *, size_t))                                                         \
    X(mem_free, "cuMemFree_v2", (uint64_t))                                                                     \
    X(copy_to, "cuMemcpyHtoD_v2", (uint64_t, const void *, size_t))                                             \
    X(copy_back, "cuMemcpyDtoH_v2", (void *, uint64_t, size_t))                                                 \
    X(module_load, "cuModuleLoadData", (void **, const void *))                                                 \
    X(module_function, "cuModuleGetFunction", (void **, void *, const char *))                                  \
    X(module_unload, "cuModuleUnload", (void *))                                                                \
    X(launch, "cuLaunchKernel",                                                                                 \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)) \
    X(error_name, "cuGetErrorName", (int, const char **))

struct card {
    void *context;
    void *module;
    void *kernel;
    unsigned sm_count;
    uint64_t chunks[CHUNKS_MAX];
    uint32_t chunks_len;
};

struct cards {
    void *library;
#define X(member, symbol, parameters) int(*member) parameters;
    DRIVER_CALLS(X)
#undef X
    char name[128];
    uint32_t len;
    struct card card[CARDS_MAX];
};

static int failed(const struct cards *c, const char *what, int code)
{
    const char *name = NULL;
    if (c->error_name(code, &name) != CUDA_SUCCESS || name == NULL)
        name = "unknown error";
    return complain("%s: %s (%d)", what, name, code);
}

#define TRY(c, call)                          \
    do {                                      \
        int code_ = (c)->call;                \
        if (code_ != CUDA_SUCCESS)            \
            return failed((c), #call, code_); \
    } while (0)

static int open_driver(struct cards *c)
{
    c->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (c->library == NULL)
        return -1;
    const struct {
        const char *symbol;
        void *where;
    } calls[] = {
#define X(member, symbol, parameters) {symbol, &c->member},
        DRIVER_CALLS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *found = dlsym(c->library, calls[i].symbol);
        if (found == NULL)
            return complain("libcuda.so.1 has no %s", calls[i].symbol);
        memcpy(calls[i].where, &found, sizeof found);
    }
    return 0;
}

static int take_memory(struct cards *c, struct card *card, uint64_t bytes)
{
    while (bytes > 0) {
        uint64_t chunk = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;
        if (card->chunks_len == CHUNKS_MAX)
            return complain("more than %d GiB on a card", CHUNKS_MAX);
        int code = c->mem_alloc(&card->chunks[card->chunks_len], chunk);
        if (code == CUDA_ERROR_OUT_OF_MEMORY)
            return complain("out of memory on the card: %llu MiB more wanted, %u GiB already held",
                            (unsigned long long)(bytes >> 20), card->chunks_len);
        if (code != CUDA_SUCCESS)
            return failed(c, "cuMemAlloc", code);
        card->chunks_len++;
        bytes -= chunk;
    }
    return 0;
}

static int open_card(struct cards *c, int index, uint64_t mem_bytes)
{
    struct card *card = &c->card[index];
    int device, sm_count;
    TRY(c, device_get(&device, index));
    TRY(c, device_attribute(&sm_count, ATTRIBUTE_SM_COUNT, device));
    TRY(c, context_create(&card->context, 0, device));
    c->len = (uint32_t)index + 1;
    card->sm_count = sm_count > 0 ? (unsigned)sm_count : 1;
    if (index == 0)
        TRY(c, device_name(c->name, (int)sizeof c->name, device));
    int code = c->module_load(&card->module, kernel_text);
    if (code == CUDA_ERROR_INVALID_IMAGE)
        code = c->module_load(&card->module, kernel_description);
    if (code != CUDA_SUCCESS)
        return failed(c, "cuModuleLoadData", code);
    TRY(c, module_function(&card->kernel, card->module, "spin"));
    return take_memory(c, card, mem_bytes);
}

static int open_all(struct cards *c, uint64_t mem_bytes, int *ret_count)
{
    TRY(c, init(0));
    TRY(c, device_count(ret_count));
    for (int i = 0; i < *ret_count && i < CARDS_MAX; i++) {
        if (open_card(c, i, mem_bytes) < 0)
            return -1;
    }
    return 0;
}

int cards_open(struct cards **ret, uint64_t mem_bytes, bool needed)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    *ret = NULL;
    if (!needed && (visible == NULL || visible[0] == '\0'))
        return 0;
    struct cards *c = calloc(1, sizeof *c);
    if (c == NULL)
        return complain("no memory");
    int count = 0;
    if (open_driver(c) < 0) {
        bool absent = c->library == NULL;
        cards_close(c);
        return absent && !needed ? 0 : complain("no CUDA driver: libcuda.so.1 was not found or is not whole");
    }
    if (open_all(c, mem_bytes, &count) < 0) {
        cards_close(c);
        return -1;
    }
    if (count == 0) {
        cards_close(c);
        return needed ? complain("CUDA shows no card to this process") : 0;
    }
    *ret = c;
    return 0;
}

void cards_close(struct cards *c)
{
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < c->len; i++) {
        c->context_use(c->card[i].context);
        for (uint32_t k = 0; k < c->card[i].chunks_len; k++)
            c->mem_free(c->card[i].chunks[k]);
        if (c->card[i].module != NULL)
            c->module_unload(c->card[i].module);
        c->context_destroy(c->card[i].context);
    }
    /* The driver stays open until the process ends: it is not made to be unloaded. */
    free(c);
}

uint32_t cards_len(const struct cards *c)
{
    return c == NULL ? 0 : c->len;
}

const char *cards_name(const struct cards *c)
{
    return c == NULL ? "none" : c->name;
}

int cards_put(struct cards *c, const struct model *m)
{
    for (uint32_t i = 0; i < cards_len(c); i++) {
        TRY(c, context_use(c->card[i].context));
        TRY(c, copy_to(c->card[i].chunks[0], m->params, m->len * sizeof *m->params));
    }
    return 0;
}

static int launch_some(struct cards *c, struct card *card, uint32_t count)
{
    uint64_t ns = (uint64_t)KERNEL_US * 1000;
    void *parameters[] = {&ns};
    TRY(c, context_use(card->context));
    for (uint32_t i = 0; i < count; i++)
        TRY(c, launch(card->kernel, card->sm_count, 1, 1, THREADS_PER_BLOCK, 1, 1, 0, NULL, parameters, NULL));
    return 0;
}

int cards_work(struct cards *c, uint32_t busy_us)
{
    for (uint32_t i = 0; i < cards_len(c); i++) {
        if (launch_some(c, &c->card[i], (busy_us + KERNEL_US / 2) / KERNEL_US) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < cards_len(c); i++) {
        TRY(c, context_use(c->card[i].context));
        TRY(c, synchronize());
    }
    return 0;
}

int cards_check(struct cards *c, const struct model *m)
{
    if (cards_len(c) == 0)
        return 0;
    size_t bytes = m->len * sizeof *m->params;
    float *copy = malloc(bytes);
    if (copy == NULL)
        return complain("no memory");
    int code = c->context_use(c->card[0].context);
    if (code == CUDA_SUCCESS)
        code = c->copy_back(copy, c->card[0].chunks[0], bytes);
    int rc = 0;
    if (code != CUDA_SUCCESS)
        rc = failed(c, "cuMemcpyDtoH", code);
    else if (memcmp(copy, m->params, bytes) != 0)
        rc = complain("the parameters on the card differ from those in memory");
    free(copy);
    return rc;
}
