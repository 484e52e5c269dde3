/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver stand-in: memory. See cu_impl.h.
 *
 * Memory is taken from the card's account in the state file before an address is given out, so that
 * all processes together never pass what the card has. Copies and fills really happen, at once, on
 * the host; the time they would take goes into the stream: PCIe for host and device, the card's own
 * memory bandwidth (read and write) on the card.
 *
 * LIMITATIONS. A copy is done when the call returns, also where the real driver would do it later.
 * Sizes are counted in grains of 512 bytes. cuMemAllocAsync gives and takes at once. Memory of the
 * host is ordinary memory; device pointers happen to be readable on the host, on which nobody
 * should lean.
 */
#include "simgpu/cuda/cu_impl.h"

#include <stdlib.h>
#include <string.h>

static CUresult allocate(struct CUctx_st *ctx, size_t bytes, CUdeviceptr *address)
{
    struct device *d = &cu.devices[ctx->device];
    uint64_t size = heap_round(bytes);
    if (size == 0 || sim_mem_take(&cu.state, d->card, d->slot, size) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct heap_block *b = heap_take(&d->heap, bytes, ctx);
    if (!b) {
        sim_mem_give(d->slot, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = b->address;
    return CUDA_SUCCESS;
}

/* The block given out on any device in which the address lies. */
static struct heap_block *block_at(CUdeviceptr address, struct device **ret)
{
    for (uint32_t i = 0; i < cu.devices_len; i++) {
        struct device *d = &cu.devices[i];
        if (!d->has_heap || address < d->heap.base || address - d->heap.base >= d->heap.size)
            continue;
        *ret = d;
        return heap_find(&d->heap, address);
    }
    return NULL;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    struct CUctx_st *ctx;
    if (!address || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = allocate(ctx, bytes, address);
    cu_unlock();
    return rc;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                   unsigned int element)
{
    if (!address || !pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t p = heap_round(width), bytes;
    if (p == 0 || __builtin_mul_overflow(p, height, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult rc = cuMemAlloc_v2(address, bytes);
    if (rc == CUDA_SUCCESS)
        *pitch = p;
    return rc;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    struct CUctx_st *ctx;
    if (!address || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = cu_stream(ctx, stream) ? allocate(ctx, bytes, address) : CUDA_ERROR_INVALID_HANDLE;
    cu_unlock();
    return rc;
}

static CUresult release(CUdeviceptr address)
{
    struct device *d;
    struct heap_block *b = block_at(address, &d);
    if (!b || b->address != address)
        return CUDA_ERROR_INVALID_VALUE;
    sim_mem_give(d->slot, heap_give(&d->heap, address));
    return CUDA_SUCCESS;
}

/* Freeing nothing is fine. The real call waits for the work that may use the memory; so does this.
 */
EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
    struct CUctx_st *ctx;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d;
    struct heap_block *b = block_at(address, &d);
    uint64_t moment = ctx->all_ready_ns;
    if (address != 0 && (!b || b->address != address)) {
        cu_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (address == 0 || cu_now(&cu.devices[ctx->device]) >= moment) {
        rc = address ? release(address) : CUDA_SUCCESS;
        cu_unlock();
        return rc;
    }
    cu_wait(&cu.devices[ctx->device], moment);
    cu_lock();
    rc = release(address);
    cu_unlock();
    return rc;
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    struct CUctx_st *ctx;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!cu_stream(ctx, stream))
        rc = CUDA_ERROR_INVALID_HANDLE;
    else if (address)
        rc = release(address);
    cu_unlock();
    return rc;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    struct CUctx_st *ctx;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d = &cu.devices[ctx->device];
    const struct simgpu_card *c = cu_card(d);
    uint64_t room = c->mem_bytes - c->mem_reserved_bytes, used = sim_mem_used(&cu.state, d->card, d->slot);
    if (available)
        *available = used < room ? room - used : 0;
    if (total)
        *total = room;
    cu_unlock();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    struct CUctx_st *ctx;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d;
    struct heap_block *b = block_at(address, &d);
    if (b && base)
        *base = b->address;
    if (b && bytes)
        *bytes = b->asked;
    cu_unlock();
    return b ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
    struct CUctx_st *ctx;
    if (!host || bytes == 0 || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    cu_unlock();
    void *p = NULL;
    if (posix_memalign(&p, 4096, bytes) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *host = p;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocHost_v2(void **host, size_t bytes)
{
    return cuMemHostAlloc(host, bytes, 0);
}

EXPORT CUresult cuMemFreeHost(void *host)
{
    if (!host)
        return CUDA_ERROR_INVALID_VALUE;
    free(host);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d;
    struct heap_block *b = block_at(address, &d);
    if (!value || !b) {
        cu_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = b->owner;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)value = CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)value = address;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned int *)value = 0;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = (int)(d - cu.devices);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)value = b->address;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = b->asked;
        break;
    default:
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    cu_unlock();
    return rc;
}

/* Bytes in a microsecond between host and card: PCIe of generation g and width w gives about 2^g /
 * 8 * w GB/s. */
static uint64_t bus_bytes_us(const struct simgpu_card *c)
{
    uint64_t rate = ((uint64_t)1 << (c->pcie_gen & 7)) * c->pcie_width * 1000 / 10;
    return rate ? rate : 1000;
}

/* On the card: two transfers for each clock, and every byte is read and written. */
static uint64_t card_bytes_us(const struct simgpu_card *c)
{
    uint64_t rate = (uint64_t)c->mem_clock_mhz * 2 * (c->mem_bus_bits / 8) / 2;
    return rate ? rate : 1000;
}

enum side { SIDE_HOST, SIDE_DEVICE, SIDE_BAD };

/* Where `bytes` at the address lie. A range that begins in a block must end in it. Marks what is
 * written. */
static enum side side_of(CUdeviceptr address, size_t bytes, bool written)
{
    struct device *d = NULL;
    struct heap_block *b = block_at(address, &d);
    if (!d)
        return address ? SIDE_HOST : SIDE_BAD;
    if (!b || bytes > b->asked || address - b->address > b->asked - bytes)
        return SIDE_BAD;
    b->touched |= written;
    return SIDE_DEVICE;
}

struct copy {
    CUdeviceptr to;
    CUdeviceptr from;
    size_t bytes;
    bool need_to;   /* the destination must lie on a device */
    bool need_from; /* so must the source */
};

/* Does the copy and queues its time; with `wait` also waits for all of the stream. */
static CUresult copy(struct copy c, CUstream stream, bool wait)
{
    struct CUctx_st *ctx;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct CUstream_st *s = cu_stream(ctx, stream);
    struct device *d = &cu.devices[ctx->device];
    if (!s || c.bytes == 0) {
        cu_unlock();
        return s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    enum side to = side_of(c.to, c.bytes, true), from = side_of(c.from, c.bytes, false);
    if (to == SIDE_BAD || from == SIDE_BAD || (c.need_to && to != SIDE_DEVICE) ||
        (c.need_from && from != SIDE_DEVICE)) {
        cu_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    memmove((void *)(uintptr_t)c.to, (const void *)(uintptr_t)c.from, c.bytes);
    uint64_t rate = to == from ? card_bytes_us(cu_card(d)) : bus_bytes_us(cu_card(d));
    cu_queue(ctx, s, (uint64_t)((__uint128_t)c.bytes * 1000 / rate), 0);
    if (wait)
        cu_wait(d, s->ready_ns);
    else
        cu_unlock();
    return CUDA_SUCCESS;
}

#define HOST(p) ((CUdeviceptr)(uintptr_t)(p))

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy((struct copy){to, from, bytes, false, false}, NULL, true);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy((struct copy){to, from, bytes, false, false}, stream, false);
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return copy((struct copy){to, HOST(from), bytes, true, false}, NULL, true);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy((struct copy){to, HOST(from), bytes, true, false}, stream, false);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return copy((struct copy){HOST(to), from, bytes, false, true}, NULL, true);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy((struct copy){HOST(to), from, bytes, false, true}, stream, false);
}

EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy((struct copy){to, from, bytes, true, true}, NULL, false);
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy((struct copy){to, from, bytes, true, true}, stream, false);
}

/* Fills `count` elements of `size` bytes. Like the real call it does not wait for the device. */
static CUresult fill(CUdeviceptr to, const void *element, size_t size, size_t count, CUstream stream)
{
    struct CUctx_st *ctx;
    size_t bytes;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct CUstream_st *s = cu_stream(ctx, stream);
    rc = s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (rc == CUDA_SUCCESS && count > 0) {
        if (__builtin_mul_overflow(size, count, &bytes) || to % size != 0 || side_of(to, bytes, true) != SIDE_DEVICE) {
            rc = CUDA_ERROR_INVALID_VALUE;
        } else {
            char *p = (char *)(uintptr_t)to;
            for (size_t i = 0; i < count; i++)
                memcpy(p + i * size, element, size);
            uint64_t rate = 2 * card_bytes_us(cu_card(&cu.devices[ctx->device]));
            cu_queue(ctx, s, (uint64_t)((__uint128_t)bytes * 1000 / rate), 0);
        }
    }
    cu_unlock();
    return rc;
}

EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    return fill(to, &value, sizeof(value), count, NULL);
}

EXPORT CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
    return fill(to, &value, sizeof(value), count, NULL);
}

EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
    return fill(to, &value, sizeof(value), count, NULL);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return fill(to, &value, sizeof(value), count, stream);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
    return fill(to, &value, sizeof(value), count, stream);
}
