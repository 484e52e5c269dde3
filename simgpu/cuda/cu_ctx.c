/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver stand-in: contexts. See cu_impl.h.
 *
 * The first context on a device claims the process's slot on the card; each context takes the
 * card's context_bytes from its memory, as real contexts do, and gives back with its end all that
 * was allocated in it.
 */
#include "simgpu/cuda/cu_impl.h"

#include <stdlib.h>
#include <string.h>

#define STACK_MAX 32

static __thread struct CUctx_st *stack[STACK_MAX];
static __thread unsigned stack_len;

bool cu_context_alive(const struct CUctx_st *context)
{
    for (const struct CUctx_st *c = cu.contexts; c; c = c->next)
        if (c == context)
            return true;
    return false;
}

static struct CUctx_st *current(void)
{
    return stack_len ? stack[stack_len - 1] : NULL;
}

CUresult cu_enter_context(struct CUctx_st **ret)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    *ret = current();
    if (*ret && cu_context_alive(*ret))
        return CUDA_SUCCESS;
    cu_unlock();
    return *ret ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

/* Address space for twice the memory, so that it can be cut up without running out of addresses. */
static CUresult attach(struct device *d)
{
    struct simgpu_card *c = cu_card(d);
    if (!d->has_heap && heap_init(&d->heap, heap_round(2 * c->mem_bytes)) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->has_heap = true;
    if (d->contexts == 0 && sim_slot_claim(&cu.state, d->card, &d->slot) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (sim_mem_take(&cu.state, d->card, d->slot, c->context_bytes) != 0) {
        if (d->contexts == 0) {
            sim_slot_release(&cu.state, d->card, d->slot);
            d->slot = NULL;
        }
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    d->contexts++;
    return CUDA_SUCCESS;
}

static CUresult create(struct device *d, CUdevice number, unsigned flags, struct CUctx_st **ret)
{
    if (flags & ~CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUctx_st *c = calloc(1, sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult rc = attach(d);
    if (rc != CUDA_SUCCESS) {
        free(c);
        return rc;
    }
    c->magic = MAGIC_CONTEXT;
    c->device = number;
    c->flags = flags;
    c->limits[CU_LIMIT_STACK_SIZE] = 1024;
    c->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1048576;
    c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608;
    c->legacy.magic = MAGIC_STREAM;
    c->legacy.context = c;
    c->next = cu.contexts;
    cu.contexts = c;
    *ret = c;
    return CUDA_SUCCESS;
}

static void destroy(struct CUctx_st *c)
{
    struct device *d = &cu.devices[c->device];
    sim_mem_give(d->slot, heap_give_all(&d->heap, c) + cu_card(d)->context_bytes);
    for (struct CUstream_st *s = c->streams, *next; s; s = next) {
        next = s->next;
        s->magic = 0;
        free(s);
    }
    for (struct CUctx_st **p = &cu.contexts; *p; p = &(*p)->next) {
        if (*p == c) {
            *p = c->next;
            break;
        }
    }
    if (--d->contexts == 0) {
        sim_slot_release(&cu.state, d->card, d->slot);
        d->slot = NULL;
    }
    c->magic = 0;
    free(c);
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d = cu_device(device);
    rc = !context ? CUDA_ERROR_INVALID_VALUE : d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    if (rc == CUDA_SUCCESS && !d->primary) {
        rc = create(d, device, d->primary_flags, &d->primary);
        if (rc == CUDA_SUCCESS)
            d->primary->is_primary = true;
    }
    if (rc == CUDA_SUCCESS) {
        d->primary_refs++;
        *context = d->primary;
    }
    cu_unlock();
    return rc;
}

static void end_primary(struct device *d)
{
    d->primary_refs = 0;
    if (d->primary)
        destroy(d->primary);
    d->primary = NULL;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d = cu_device(device);
    rc = !d ? CUDA_ERROR_INVALID_DEVICE : d->primary_refs == 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    if (rc == CUDA_SUCCESS && --d->primary_refs == 0)
        end_primary(d);
    cu_unlock();
    return rc;
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d = cu_device(device);
    if (d)
        end_primary(d);
    cu_unlock();
    return d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d = cu_device(device);
    rc = !d ? CUDA_ERROR_INVALID_DEVICE : flags & ~CU_CTX_FLAGS_MASK ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (rc == CUDA_SUCCESS) {
        d->primary_flags = flags;
        if (d->primary)
            d->primary->flags = flags;
    }
    cu_unlock();
    return rc;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d = cu_device(device);
    rc = !flags || !active ? CUDA_ERROR_INVALID_VALUE : d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    if (rc == CUDA_SUCCESS) {
        *flags = d->primary_flags;
        *active = d->primary != NULL;
    }
    cu_unlock();
    return rc;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    struct device *d = cu_device(device);
    struct CUctx_st *c = NULL;
    rc = !context || stack_len == STACK_MAX ? CUDA_ERROR_INVALID_VALUE : d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    if (rc == CUDA_SUCCESS)
        rc = create(d, device, flags, &c);
    if (rc == CUDA_SUCCESS)
        *context = stack[stack_len++] = c;
    cu_unlock();
    return rc;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!context || !cu_context_alive(context) || context->is_primary)
        rc = CUDA_ERROR_INVALID_CONTEXT;
    if (rc == CUDA_SUCCESS) {
        if (current() == context)
            stack_len--;
        destroy(context);
    }
    cu_unlock();
    return rc;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!context || !cu_context_alive(context))
        rc = CUDA_ERROR_INVALID_CONTEXT;
    else if (stack_len == STACK_MAX)
        rc = CUDA_ERROR_INVALID_VALUE;
    else
        stack[stack_len++] = context;
    cu_unlock();
    return rc;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (stack_len == 0) {
        rc = CUDA_ERROR_INVALID_CONTEXT;
    } else {
        struct CUctx_st *top = stack[--stack_len];
        if (context)
            *context = top;
    }
    cu_unlock();
    return rc;
}

/* NULL takes the top of the stack away; another replaces it. */
EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!context) {
        stack_len -= stack_len > 0;
    } else if (!cu_context_alive(context)) {
        rc = CUDA_ERROR_INVALID_CONTEXT;
    } else {
        stack_len += stack_len == 0;
        stack[stack_len - 1] = context;
    }
    cu_unlock();
    return rc;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (context)
        *context = current();
    cu_unlock();
    return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    struct CUctx_st *c;
    CUresult rc = cu_enter_context(&c);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (device)
        *device = c->device;
    cu_unlock();
    return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuCtxGetFlags(unsigned int *flags)
{
    struct CUctx_st *c;
    CUresult rc = cu_enter_context(&c);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (flags)
        *flags = c->flags;
    cu_unlock();
    return flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (context && !cu_context_alive(context))
        rc = CUDA_ERROR_INVALID_CONTEXT;
    else if (!version)
        rc = CUDA_ERROR_INVALID_VALUE;
    else
        *version = 3020;
    cu_unlock();
    return rc;
}

EXPORT CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    struct CUctx_st *c;
    CUresult rc = cu_enter_context(&c);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!value)
        rc = CUDA_ERROR_INVALID_VALUE;
    else if ((unsigned)limit > CU_LIMIT_MALLOC_HEAP_SIZE)
        rc = CUDA_ERROR_UNSUPPORTED_LIMIT;
    else
        *value = c->limits[limit];
    cu_unlock();
    return rc;
}

EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct CUctx_st *c;
    CUresult rc = cu_enter_context(&c);
    if (rc != CUDA_SUCCESS)
        return rc;
    if ((unsigned)limit > CU_LIMIT_MALLOC_HEAP_SIZE)
        rc = CUDA_ERROR_UNSUPPORTED_LIMIT;
    else
        c->limits[limit] = value;
    cu_unlock();
    return rc;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct CUctx_st *c;
    CUresult rc = cu_enter_context(&c);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    cu_unlock();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    struct CUctx_st *c;
    CUresult rc = cu_enter_context(&c);
    if (rc == CUDA_SUCCESS)
        cu_wait(&cu.devices[c->device], c->all_ready_ns);
    return rc;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    struct CUctx_st *c;
    CUresult rc = cu_enter_context(&c);
    if (rc != CUDA_SUCCESS)
        return rc;
    int device = peer && cu_context_alive(peer) ? peer->device : -1, own = c->device;
    bool on = device >= 0 && (c->peers >> device & 1);
    cu_unlock();
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    int can = 0;
    if (device < 0 || device == own)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (on)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    rc = cuDeviceCanAccessPeer(&can, own, device);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!can)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    cu_lock();
    if (cu_context_alive(c))
        c->peers |= 1u << device;
    cu_unlock();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    struct CUctx_st *c;
    CUresult rc = cu_enter_context(&c);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!peer || !cu_context_alive(peer))
        rc = CUDA_ERROR_INVALID_CONTEXT;
    else if (!(c->peers >> peer->device & 1))
        rc = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    else
        c->peers &= ~(1u << peer->device);
    cu_unlock();
    return rc;
}
