/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver stand-in: time, streams, events. See cu_impl.h.
 *
 * Sharing model. A kernel alone on the card takes its own time. When the processes busy at the
 * moment of the launch together ask for more than all SMs, it takes that much longer and gets that
 * much less, as time-sliced kernels do. Example: a kernel of 10 ms that fills the card, launched
 * while another process keeps it full: 2000 permille are asked for, so it takes 20 ms at 500
 * permille. Kernels queued earlier are not stretched afterwards.
 *
 * A default stream (legacy semantics) begins after everything queued on streams that are not
 * NON_BLOCKING, and those begin after it. The per-thread default stream is treated as the legacy
 * one.
 */
#include "simgpu/cuda/cu_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define POLL_STEP_NS 10000

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t cu_now(const struct device *d)
{
    return cu.virtual_time ? d->virtual_now_ns : sim_now_ns();
}

/* Where the next piece of work in the stream can begin. */
static uint64_t stream_start(const struct CUctx_st *ctx, const struct CUstream_st *s, uint64_t now)
{
    uint64_t start = max64(now, s->ready_ns);
    if (s == &ctx->legacy)
        return max64(start, ctx->blocking_ready_ns);
    return s->flags & CU_STREAM_NON_BLOCKING ? start : max64(start, ctx->legacy.ready_ns);
}

static void stream_end(struct CUctx_st *ctx, struct CUstream_st *s, uint64_t end)
{
    s->ready_ns = max64(s->ready_ns, end);
    if (s != &ctx->legacy && !(s->flags & CU_STREAM_NON_BLOCKING))
        ctx->blocking_ready_ns = max64(ctx->blocking_ready_ns, end);
    ctx->all_ready_ns = max64(ctx->all_ready_ns, end);
}

void cu_queue(struct CUctx_st *ctx, struct CUstream_st *stream, uint64_t duration_ns, uint32_t permille)
{
    struct device *d = &cu.devices[ctx->device];
    uint64_t now = cu_now(d), start = stream_start(ctx, stream, now);
    if (permille > 0 && !cu.virtual_time) {
        uint32_t asked = permille + sim_load_others(&cu.state, d->card, d->slot, now);
        if (asked > SIMGPU_PERMILLE) {
            duration_ns = (uint64_t)((__uint128_t)duration_ns * asked / SIMGPU_PERMILLE);
            permille = permille * SIMGPU_PERMILLE / asked;
        }
        sim_load_add(d->slot, now, start, duration_ns, permille ? permille : 1);
    }
    stream_end(ctx, stream, start + duration_ns);
    __atomic_store_n(&d->slot->virtual_ns, start + duration_ns, __ATOMIC_RELAXED);
}

bool cu_reached(struct device *d, uint64_t time_ns)
{
    if (cu_now(d) >= time_ns)
        return true;
    if (cu.virtual_time)
        d->virtual_now_ns += POLL_STEP_NS;
    return false;
}

void cu_wait(struct device *d, uint64_t time_ns)
{
    if (cu.virtual_time) {
        d->virtual_now_ns = max64(d->virtual_now_ns, time_ns);
        cu_unlock();
        return;
    }
    cu_unlock();
    struct timespec t = {(time_t)(time_ns / 1000000000u), (long)(time_ns % 1000000000u)};
    while (sim_now_ns() < time_ns && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

struct CUstream_st *cu_stream(struct CUctx_st *ctx, CUstream handle)
{
    if (!handle || handle == CU_STREAM_LEGACY_HANDLE || handle == CU_STREAM_PER_THREAD_HANDLE)
        return &ctx->legacy;
    for (struct CUctx_st *c = cu.contexts; c; c = c->next)
        for (struct CUstream_st *s = c->streams; s; s = s->next)
            if (s == handle)
                return c == ctx ? s : NULL;
    return NULL;
}

/* Takes the lock, finds the current context and the stream; lock held on success only. */
static CUresult enter_stream(CUstream handle, struct CUctx_st **ctx, struct CUstream_st **s)
{
    CUresult rc = cu_enter_context(ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    *s = cu_stream(*ctx, handle);
    if (*s)
        return CUDA_SUCCESS;
    cu_unlock();
    return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    if (!stream || flags & ~CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUctx_st *ctx;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct CUstream_st *s = calloc(1, sizeof(*s));
    if (s) {
        s->magic = MAGIC_STREAM;
        s->flags = flags;
        s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
        s->context = ctx;
        s->next = ctx->streams;
        ctx->streams = s;
        *stream = s;
    }
    cu_unlock();
    return s ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

/* What is queued in it still runs to its end: it stays in the context's moment of all work. */
EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    struct CUctx_st *ctx;
    struct CUstream_st *s;
    CUresult rc = enter_stream(stream, &ctx, &s);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (s == &ctx->legacy) {
        rc = CUDA_ERROR_INVALID_HANDLE;
    } else {
        for (struct CUstream_st **p = &ctx->streams; *p; p = &(*p)->next) {
            if (*p == s) {
                *p = s->next;
                break;
            }
        }
        s->magic = 0;
        free(s);
    }
    cu_unlock();
    return rc;
}

/* Waiting for the default stream means waiting for those it waits for, too. */
static uint64_t stream_moment(const struct CUctx_st *ctx, const struct CUstream_st *s)
{
    return s == &ctx->legacy ? max64(s->ready_ns, ctx->blocking_ready_ns) : s->ready_ns;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    struct CUctx_st *ctx;
    struct CUstream_st *s;
    CUresult rc = enter_stream(stream, &ctx, &s);
    if (rc == CUDA_SUCCESS)
        cu_wait(&cu.devices[ctx->device], stream_moment(ctx, s));
    return rc;
}

EXPORT CUresult cuStreamQuery(CUstream stream)
{
    struct CUctx_st *ctx;
    struct CUstream_st *s;
    CUresult rc = enter_stream(stream, &ctx, &s);
    if (rc != CUDA_SUCCESS)
        return rc;
    bool done = cu_reached(&cu.devices[ctx->device], stream_moment(ctx, s));
    cu_unlock();
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    struct CUctx_st *ctx;
    struct CUstream_st *s;
    if (!event || event->magic != MAGIC_EVENT)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = enter_stream(stream, &ctx, &s);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (event->recorded)
        stream_end(ctx, s, event->time_ns);
    cu_unlock();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
    struct CUctx_st *ctx;
    struct CUstream_st *s;
    CUresult rc = enter_stream(stream, &ctx, &s);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (flags)
        *flags = s->flags;
    cu_unlock();
    return flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    struct CUctx_st *ctx;
    struct CUstream_st *s;
    CUresult rc = enter_stream(stream, &ctx, &s);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (priority)
        *priority = s->priority;
    cu_unlock();
    return priority ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    struct CUctx_st *ctx;
    struct CUstream_st *s;
    CUresult rc = enter_stream(stream, &ctx, &s);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (context)
        *context = s->context;
    cu_unlock();
    return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    if (!event || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUctx_st *ctx;
    CUresult rc = cu_enter_context(&ctx);
    if (rc != CUDA_SUCCESS)
        return rc;
    struct CUevent_st *e = calloc(1, sizeof(*e));
    if (e) {
        e->magic = MAGIC_EVENT;
        e->flags = flags;
        e->context = ctx;
        *event = e;
    }
    cu_unlock();
    return e ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Takes the lock and checks the event; lock held on success only. */
static CUresult enter_event(CUevent event)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (event && event->magic == MAGIC_EVENT && cu_context_alive(event->context))
        return CUDA_SUCCESS;
    cu_unlock();
    return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    CUresult rc = cu_enter();
    if (rc != CUDA_SUCCESS)
        return rc;
    bool ok = event && event->magic == MAGIC_EVENT;
    if (ok) {
        event->magic = 0;
        free(event);
    }
    cu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    struct CUctx_st *ctx;
    struct CUstream_st *s;
    if (!event || event->magic != MAGIC_EVENT)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult rc = enter_stream(stream, &ctx, &s);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (event->context == ctx) {
        event->recorded = true;
        event->time_ns = stream_start(ctx, s, cu_now(&cu.devices[ctx->device]));
    } else {
        rc = CUDA_ERROR_INVALID_HANDLE;
    }
    cu_unlock();
    return rc;
}

EXPORT CUresult cuEventQuery(CUevent event)
{
    CUresult rc = enter_event(event);
    if (rc != CUDA_SUCCESS)
        return rc;
    bool done = !event->recorded || cu_reached(&cu.devices[event->context->device], event->time_ns);
    cu_unlock();
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    CUresult rc = enter_event(event);
    if (rc == CUDA_SUCCESS)
        cu_wait(&cu.devices[event->context->device], event->recorded ? event->time_ns : 0);
    return rc;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    CUresult rc = enter_event(start);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!end || end->magic != MAGIC_EVENT || !start->recorded || !end->recorded ||
        (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
        rc = CUDA_ERROR_INVALID_HANDLE;
    else if (!ms)
        rc = CUDA_ERROR_INVALID_VALUE;
    else if (!cu_reached(&cu.devices[start->context->device], max64(start->time_ns, end->time_ns)))
        rc = CUDA_ERROR_NOT_READY;
    else
        *ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
    cu_unlock();
    return rc;
}

EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
    return cuEventElapsedTime(ms, start, end);
}
