/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated engine: many nodes, no processes. An attempt "runs" for the time its job declares
 * (sim_duration_ms, or the default), divided by the time scale, and then each of its workers
 * reports an exit. So the whole daemon, from the API to the store, can be run against a cluster
 * that nobody has.
 *
 * How a job ends is declared in its environment (docs/simulated-cluster.md): REMUDA_SIM_EXIT=CODE,
 * REMUDA_SIM_SIGNAL=N, REMUDA_SIM_OOM=1, REMUDA_SIM_LAUNCH_FAILED=1, REMUDA_SIM_IGNORE_TERM=1, and
 * REMUDA_SIM_RANK=R for only one worker of the gang.
 *
 * Nothing survives this process, and nothing needs to: reconcile() starts what the log says was
 * running again from the moment it had been started, so that it ends when it would have ended.
 *
 * What happens is put into a queue and told from a timer, never from inside a call. Endings stand
 * in a binary heap by (time, job, attempt).
 */
#include "engine/engine.h"

#include "base/idmap.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/units.h"
#include "engine/simulated/cluster.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <uv.h>

#define TELEMETRY_MS     5000
#define DURATION_DEFAULT 60000
#define DEFAULT_GRACE_MS 30000
#define NEVER_IN_HEAP    SIZE_MAX

/* What a worker of an attempt holds, for telemetry. */
struct held {
    struct sim_node *node; /* NULL: a node this engine does not know */
    uint16_t cards;        /* bit i: card i */
    uint32_t milli;
    uint32_t mem_mib; /* of a share */
};

enum phase {
    PHASE_RUNNING,
    PHASE_ENDED, /* its exits have been told; kept until it is forgotten */
};

struct attempt {
    uint64_t job;
    uint32_t number;
    struct attempt *other; /* another attempt of the same job */
    struct attempt *prev;  /* list of all */
    struct attempt *next;
    uint64_t expected_in; /* number of the last reconcile that named it */
    enum phase phase;
    int64_t started_ms; /* wall clock, as told */
    int64_t end_mono_ms;
    int64_t ended_ms; /* wall clock */
    size_t heap_index;
    /* How it ends when nobody stops it. */
    int32_t code;
    int32_t signal;
    int64_t only_rank; /* the others end with 0; -1: all end alike */
    enum engine_exit_cause cause;
    bool ignores_term;
    uint32_t workers;
    struct held held[];
};

enum told {
    TELL_NODES,
    TELL_STARTED,
    TELL_EXITED,
    TELL_RECONCILED,
};

struct message {
    enum told what;
    uint64_t job;
    uint32_t attempt;
};

struct simulated {
    struct engine engine; /* first: the public face */
    engine_event_cb *cb;
    void *cb_arg;
    uv_timer_t timer; /* the next ending */
    uv_timer_t tell;  /* the queue, at once */
    uv_timer_t telemetry;
    unsigned open_handles;
    void (*closed)(void *arg);
    void *closed_arg;
    uint64_t time_scale_milli;
    int64_t default_duration_ms;
    struct sim_cluster cluster;
    struct idmap jobs;   /* job -> chain of attempts */
    struct attempt *all; /* list */
    uint64_t reconciles;
    struct attempt **heap; /* by ending */
    size_t heap_len;
    size_t heap_cap;
    struct message *queue;
    size_t queue_len;
    size_t queue_cap;
};

/* --- the heap of endings --- */

static bool ends_before(const struct attempt *a, const struct attempt *b)
{
    if (a->end_mono_ms != b->end_mono_ms)
        return a->end_mono_ms < b->end_mono_ms;
    return a->job != b->job ? a->job < b->job : a->number < b->number;
}

static void heap_set(struct simulated *s, size_t i, struct attempt *a)
{
    s->heap[i] = a;
    a->heap_index = i;
}

static void heap_sift(struct simulated *s, size_t i)
{
    struct attempt *a = s->heap[i];
    for (; i > 0 && ends_before(a, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap_set(s, i, s->heap[(i - 1) / 2]);
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < s->heap_len && ends_before(s->heap[child + 1], s->heap[child]))
            child++;
        if (child >= s->heap_len || !ends_before(s->heap[child], a))
            break;
        heap_set(s, i, s->heap[child]);
        i = child;
    }
    heap_set(s, i, a);
}

static int heap_put(struct simulated *s, struct attempt *a)
{
    int rc = mem_grow(&s->heap, &s->heap_cap, s->heap_len + 1, sizeof(struct attempt *));
    if (rc != 0)
        return rc;
    heap_set(s, s->heap_len++, a);
    heap_sift(s, a->heap_index);
    return 0;
}

static void heap_remove(struct simulated *s, struct attempt *a)
{
    size_t i = a->heap_index;
    if (i == NEVER_IN_HEAP)
        return;
    a->heap_index = NEVER_IN_HEAP;
    struct attempt *last = s->heap[--s->heap_len];
    if (last == a)
        return;
    heap_set(s, i, last);
    heap_sift(s, i);
}

/* --- attempts --- */

static struct attempt *find(const struct simulated *s, uint64_t job, uint32_t number)
{
    struct attempt *a = idmap_get(&s->jobs, job);
    while (a != NULL && a->number != number)
        a = a->other;
    return a;
}

static void hold(struct attempt *a, bool take)
{
    for (uint32_t w = 0; w < a->workers; w++) {
        struct held *h = &a->held[w];
        for (uint32_t i = 0; h->node != NULL && i < h->node->node.gpus_len; i++) {
            if ((h->cards & (1u << i)) == 0)
                continue;
            uint64_t mib = h->mem_mib != 0 ? h->mem_mib : h->node->node.gpus[i].mem_mib / 4 * 3;
            h->node->busy_milli[i] += take ? h->milli : -h->milli;
            h->node->used_mib[i] += take ? mib : -mib;
            h->node->changed = true;
        }
    }
}

static void drop(struct simulated *s, struct attempt *a)
{
    struct attempt *head = idmap_get(&s->jobs, a->job);
    if (a->phase == PHASE_RUNNING)
        hold(a, false);
    heap_remove(s, a);
    if (head == a && a->other == NULL) {
        idmap_remove(&s->jobs, a->job);
    } else if (head == a) {
        idmap_put(&s->jobs, a->job, a->other); /* replaces: needs no memory */
    } else {
        while (head->other != a)
            head = head->other;
        head->other = a->other;
    }
    if (a->prev != NULL)
        a->prev->next = a->next;
    else
        s->all = a->next;
    if (a->next != NULL)
        a->next->prev = a->prev;
    mem_free(a);
}

static const char *env_value(const struct job_spec *spec, const char *name)
{
    size_t len = strlen(name);
    for (char **e = spec->env; e != NULL && *e != NULL; e++)
        if (strncmp(*e, name, len) == 0 && (*e)[len] == '=')
            return *e + len + 1;
    return NULL;
}

static int64_t env_number(const struct job_spec *spec, const char *name, int64_t high, int64_t otherwise)
{
    const char *text = env_value(spec, name);
    int64_t n = 0;
    return text != NULL && units_parse_int(text, 0, high, &n, NULL) == 0 ? n : otherwise;
}

static void read_outcome(struct attempt *a, const struct job_spec *spec)
{
    a->only_rank = env_number(spec, "REMUDA_SIM_RANK", WORKERS_MAX - 1, -1);
    a->ignores_term = env_number(spec, "REMUDA_SIM_IGNORE_TERM", 1, 0) == 1;
    a->code = (int32_t)env_number(spec, "REMUDA_SIM_EXIT", 255, 0);
    a->signal = (int32_t)env_number(spec, "REMUDA_SIM_SIGNAL", 64, 0);
    a->cause = ENGINE_EXIT_NORMAL;
    if (env_number(spec, "REMUDA_SIM_OOM", 1, 0) == 1) {
        a->cause = ENGINE_EXIT_OOM;
        a->signal = SIGKILL;
    }
    if (env_number(spec, "REMUDA_SIM_LAUNCH_FAILED", 1, 0) == 1) {
        a->cause = ENGINE_EXIT_LAUNCH_FAILED;
        a->code = -1;
    }
    if (a->signal != 0)
        a->code = -1;
}

static struct attempt *attempt_new(struct simulated *s, const struct engine_launch *l)
{
    struct attempt *a = mem_alloc(1, sizeof(*a) + l->workers_len * sizeof(a->held[0]));
    if (a == NULL)
        return NULL;
    a->job = l->job;
    a->number = l->attempt;
    a->heap_index = NEVER_IN_HEAP;
    a->workers = l->workers_len;
    read_outcome(a, l->spec);
    for (uint32_t w = 0; w < l->workers_len; w++) {
        const struct engine_worker *in = &l->workers[w];
        struct held *h = &a->held[w];
        h->node = sim_cluster_find(&s->cluster, in->node);
        h->milli = in->gpu_milli;
        h->mem_mib = in->gpu_milli < GPU_MILLI ? in->gpu_mem_mib : 0;
        for (uint32_t g = 0; h->node != NULL && g < in->gpus_len; g++) {
            int card = sim_node_card(h->node, in->gpu_uuids[g]);
            if (card >= 0)
                h->cards = (uint16_t)(h->cards | 1u << card);
        }
    }
    a->other = idmap_get(&s->jobs, l->job);
    if (idmap_put(&s->jobs, l->job, a) != 0) {
        mem_free(a);
        return NULL;
    }
    a->next = s->all;
    if (s->all != NULL)
        s->all->prev = a;
    s->all = a;
    a->expected_in = s->reconciles;
    return a;
}

/* How long an attempt lasts by the real clock. */
static int64_t real_ms(const struct simulated *s, const struct job_spec *spec)
{
    int64_t ms = spec->sim_duration_ms > 0 ? spec->sim_duration_ms : s->default_duration_ms;
    uint64_t scaled = (uint64_t)ms > UINT64_MAX / 1000 ? UINT64_MAX : (uint64_t)ms * 1000;
    return (int64_t)(scaled / s->time_scale_milli);
}

/* --- telling --- */

static void wake_at_next_ending(struct simulated *s);
static void on_tell(uv_timer_t *timer);

static void tell_later(struct simulated *s)
{
    if (!uv_is_active((uv_handle_t *)&s->tell))
        uv_timer_start(&s->tell, on_tell, 0, 0);
}

static int enqueue(struct simulated *s, enum told what, const struct attempt *a)
{
    int rc = mem_grow(&s->queue, &s->queue_cap, s->queue_len + 1, sizeof(*s->queue));
    if (rc != 0)
        return rc;
    s->queue[s->queue_len++] =
        (struct message){.what = what, .job = a == NULL ? 0 : a->job, .attempt = a == NULL ? 0 : a->number};
    tell_later(s);
    return 0;
}

static void tell_nodes(struct simulated *s)
{
    for (uint32_t i = 0; i < s->cluster.len; i++) {
        struct engine_event ev = {.kind = ENGINE_NODE,
                                  .time_ms = clock_wall_ms(),
                                  .node_name = s->cluster.nodes[i].node.name,
                                  .node = &s->cluster.nodes[i].node};
        s->cb(s->cb_arg, &ev);
    }
}

static void tell_exits(struct simulated *s, const struct attempt *a)
{
    for (uint32_t rank = 0; rank < a->workers; rank++) {
        bool alike = a->only_rank < 0 || a->only_rank == rank;
        struct engine_event ev = {
            .kind = ENGINE_EXITED,
            .time_ms = a->ended_ms,
            .job = a->job,
            .attempt = a->number,
            .rank = rank,
            .code = alike ? a->code : 0,
            .signal = alike ? a->signal : 0,
            .cause = alike ? a->cause : ENGINE_EXIT_NORMAL,
            .detail = alike && a->cause == ENGINE_EXIT_LAUNCH_FAILED ? "declared by REMUDA_SIM_LAUNCH_FAILED" : NULL,
        };
        s->cb(s->cb_arg, &ev);
    }
}

static void tell_one(struct simulated *s, const struct message *m)
{
    const struct attempt *a = m->job == 0 ? NULL : find(s, m->job, m->attempt);
    struct engine_event ev = {.time_ms = clock_wall_ms()};
    switch (m->what) {
    case TELL_NODES:
        tell_nodes(s);
        break;
    case TELL_RECONCILED:
        ev.kind = ENGINE_RECONCILED;
        s->cb(s->cb_arg, &ev);
        break;
    case TELL_STARTED:
        if (a == NULL)
            break;
        ev.kind = ENGINE_STARTED;
        ev.time_ms = a->started_ms;
        ev.job = a->job;
        ev.attempt = a->number;
        s->cb(s->cb_arg, &ev);
        break;
    case TELL_EXITED:
        if (a != NULL)
            tell_exits(s, a);
        break;
    }
}

static void on_tell(uv_timer_t *timer)
{
    struct simulated *s = timer->data;
    /* What the callbacks ask for is appended behind and told in the same go or, when it comes
     * later, by the timer. */
    for (size_t i = 0; i < s->queue_len; i++) {
        struct message m = s->queue[i];
        tell_one(s, &m);
    }
    s->queue_len = 0;
}

static void end_attempt(struct simulated *s, struct attempt *a)
{
    if (a->phase == PHASE_RUNNING)
        hold(a, false);
    heap_remove(s, a);
    a->phase = PHASE_ENDED;
    a->ended_ms = clock_wall_ms();
    if (enqueue(s, TELL_EXITED, a) != 0) {
        /* No memory to tell of it now: it stays "running" for another second. */
        hold(a, true);
        a->phase = PHASE_RUNNING;
        a->end_mono_ms = clock_mono_ms() + 1000;
        int rc = heap_put(s, a);
        assert(rc == 0); /* its place in the heap has just been given up, so there is room */
        (void)rc;
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct simulated *s = timer->data;
    int64_t now = clock_mono_ms();
    while (s->heap_len > 0 && s->heap[0]->end_mono_ms <= now)
        end_attempt(s, s->heap[0]);
    wake_at_next_ending(s);
}

static void wake_at_next_ending(struct simulated *s)
{
    if (s->heap_len == 0) {
        uv_timer_stop(&s->timer);
        return;
    }
    int64_t wait = s->heap[0]->end_mono_ms - clock_mono_ms();
    uv_timer_start(&s->timer, on_timer, wait < 0 ? 0 : (uint64_t)wait, 0);
}

static void on_telemetry(uv_timer_t *timer)
{
    struct simulated *s = timer->data;
    for (uint32_t i = 0; i < s->cluster.len; i++) {
        struct sim_node *n = &s->cluster.nodes[i];
        struct engine_gpu_sample samples[16] = {0};
        if (!n->changed)
            continue;
        n->changed = false;
        struct engine_event ev = {.kind = ENGINE_TELEMETRY,
                                  .time_ms = clock_wall_ms(),
                                  .node_name = n->node.name,
                                  .samples = samples,
                                  .source = "simulated"};
        ev.samples_len = sim_node_samples(n, samples);
        s->cb(s->cb_arg, &ev);
    }
}

/* --- operations --- */

static int run_attempt(struct simulated *s, struct attempt *a, int64_t lasts_ms, int64_t already_ms)
{
    int64_t left = already_ms >= lasts_ms ? 0 : lasts_ms - already_ms;
    int64_t now = clock_mono_ms();
    a->phase = PHASE_RUNNING;
    a->end_mono_ms = left > INT64_MAX - now ? INT64_MAX : now + left;
    int rc = heap_put(s, a);
    if (rc != 0)
        return rc;
    hold(a, true);
    rc = enqueue(s, TELL_STARTED, a);
    if (rc == 0 && s->heap[0] == a)
        wake_at_next_ending(s);
    return rc;
}

static int sim_launch(struct engine *engine, const struct engine_launch *l, struct err *e)
{
    struct simulated *s = (struct simulated *)engine;
    if (find(s, l->job, l->attempt) != NULL)
        return 0;
    struct attempt *a = attempt_new(s, l);
    if (a == NULL)
        return err_set(e, -ENOMEM, "job %llu: out of memory", (unsigned long long)l->job);
    a->started_ms = clock_wall_ms();
    int rc = 0;
    if (a->cause == ENGINE_EXIT_LAUNCH_FAILED) {
        a->only_rank = -1; /* a gang starts completely or not at all */
        a->phase = PHASE_ENDED;
        a->ended_ms = a->started_ms;
        rc = enqueue(s, TELL_EXITED, a);
    } else {
        rc = run_attempt(s, a, real_ms(s, l->spec), 0);
    }
    if (rc != 0) {
        drop(s, a);
        return err_set(e, rc, "job %llu: out of memory", (unsigned long long)l->job);
    }
    return 0;
}

static int stop_attempt(struct simulated *s, struct attempt *a, int sig, int64_t grace_ms)
{
    if (a->phase != PHASE_RUNNING)
        return 0;
    a->cause = ENGINE_EXIT_NORMAL;
    a->only_rank = -1;
    a->code = -1;
    a->signal = sig;
    if (sig == SIGTERM && a->ignores_term) {
        int64_t kill_at = clock_mono_ms() + (int64_t)((uint64_t)grace_ms * 1000 / s->time_scale_milli);
        a->signal = SIGKILL;
        if (kill_at < a->end_mono_ms) {
            a->end_mono_ms = kill_at;
            heap_sift(s, a->heap_index);
        }
        wake_at_next_ending(s);
        return 0;
    }
    end_attempt(s, a);
    return 0;
}

static int sim_terminate(struct engine *engine, uint64_t job, uint32_t attempt, int64_t grace_ms, struct err *e)
{
    struct simulated *s = (struct simulated *)engine;
    struct attempt *a = find(s, job, attempt);
    if (a == NULL)
        return err_set(e, -ENOENT, "job %llu attempt %u: not known", (unsigned long long)job, attempt);
    return stop_attempt(s, a, grace_ms <= 0 ? SIGKILL : SIGTERM, grace_ms);
}

static int sim_signal(struct engine *engine, uint64_t job, uint32_t attempt, int sig, struct err *e)
{
    struct simulated *s = (struct simulated *)engine;
    struct attempt *a = find(s, job, attempt);
    if (a == NULL || a->phase != PHASE_RUNNING)
        return err_set(e, -ENOENT, "job %llu attempt %u: not running", (unsigned long long)job, attempt);
    if (sig < 1 || sig > 64)
        return err_set(e, -EINVAL, "signal %d: 1 to 64 are allowed", sig);
    if (sig == SIGKILL || (sig == SIGTERM && !a->ignores_term))
        return stop_attempt(s, a, sig, 0);
    return 0; /* there is no process that could take it */
}

/* Picks up one attempt that the log says is running. */
static int restore(struct simulated *s, const struct engine_expected *x)
{
    const struct engine_launch *l = &x->launch;
    struct attempt *a = find(s, l->job, l->attempt);
    if (a != NULL)
        return enqueue(s, a->phase == PHASE_RUNNING ? TELL_STARTED : TELL_EXITED, a);
    if (x->started_ms <= 0)
        return 0; /* never confirmed: it never ran, the daemon launches it */
    a = attempt_new(s, l);
    if (a == NULL)
        return -ENOMEM;
    int64_t now = clock_wall_ms();
    a->started_ms = x->started_ms;
    int64_t lasts_ms = real_ms(s, l->spec);
    int64_t already_ms = now > x->started_ms ? now - x->started_ms : 0;
    int rc = run_attempt(s, a, lasts_ms, already_ms);
    if (rc == 0 && already_ms >= lasts_ms)
        end_attempt(s, a); /* while nobody looked: told before the reconcile is answered */
    else if (rc == 0 && x->stopping)
        rc = stop_attempt(s, a, SIGTERM, l->grace_ms > 0 ? l->grace_ms : DEFAULT_GRACE_MS);
    if (rc != 0)
        drop(s, a);
    return rc;
}

/* What is here and the log knows nothing of is dropped without a word. */
static void drop_strangers(struct simulated *s, const struct engine_expected *expected, uint32_t len)
{
    s->reconciles++;
    for (uint32_t i = 0; i < len; i++) {
        struct attempt *a = find(s, expected[i].launch.job, expected[i].launch.attempt);
        if (a != NULL)
            a->expected_in = s->reconciles;
    }
    for (struct attempt *a = s->all, *next; a != NULL; a = next) {
        next = a->next;
        if (a->expected_in != s->reconciles)
            drop(s, a);
    }
}

static int sim_reconcile(struct engine *engine, const struct engine_expected *expected, uint32_t len, struct err *e)
{
    struct simulated *s = (struct simulated *)engine;
    drop_strangers(s, expected, len);
    int rc = enqueue(s, TELL_NODES, NULL);
    for (uint32_t i = 0; rc == 0 && i < len; i++)
        rc = restore(s, &expected[i]);
    if (rc == 0)
        rc = enqueue(s, TELL_RECONCILED, NULL);
    for (uint32_t i = 0; i < s->cluster.len; i++)
        s->cluster.nodes[i].changed = true; /* the daemon may have begun anew */
    wake_at_next_ending(s);
    return rc == 0 ? 0 : err_set(e, rc, "reconciling %u attempts: out of memory", len);
}

static int sim_log_path(struct engine *engine, uint64_t job, uint32_t attempt, uint32_t rank, bool stderr_file,
                        char *ret, size_t size)
{
    (void)engine, (void)job, (void)attempt, (void)rank, (void)stderr_file, (void)ret, (void)size;
    return -ENOENT; /* there is no process and no output */
}

static void sim_forget(struct engine *engine, uint64_t job, uint32_t attempt)
{
    struct simulated *s = (struct simulated *)engine;
    struct attempt *a = find(s, job, attempt);
    if (a != NULL && a->phase == PHASE_ENDED)
        drop(s, a);
}

static void free_all(struct simulated *s)
{
    while (s->all != NULL)
        drop(s, s->all);
    sim_cluster_done(&s->cluster);
    idmap_done(&s->jobs);
    mem_free(s->heap);
    mem_free(s->queue);
    mem_free(s);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct simulated *s = handle->data;
    if (--s->open_handles > 0)
        return;
    void (*closed)(void *arg) = s->closed;
    void *arg = s->closed_arg;
    free_all(s);
    if (closed != NULL)
        closed(arg);
}

static void sim_close(struct engine *engine, void (*closed)(void *arg), void *arg)
{
    struct simulated *s = (struct simulated *)engine;
    s->closed = closed;
    s->closed_arg = arg;
    uv_close((uv_handle_t *)&s->timer, on_handle_closed);
    uv_close((uv_handle_t *)&s->tell, on_handle_closed);
    uv_close((uv_handle_t *)&s->telemetry, on_handle_closed);
}

static const struct engine_ops ops = {
    .name = "simulated",
    .reconcile = sim_reconcile,
    .launch = sim_launch,
    .terminate = sim_terminate,
    .signal = sim_signal,
    .log_path = sim_log_path,
    .forget = sim_forget,
    .close = sim_close,
};

int simulated_engine_open(const struct engine_options *o, struct engine **ret, struct err *e)
{
    if (o->cluster_file == NULL)
        return err_set(e, -EINVAL, "the simulated engine needs a cluster file");
    struct simulated *s = mem_alloc(1, sizeof(*s));
    if (s == NULL)
        return err_set(e, -ENOMEM, "out of memory");
    int rc = sim_cluster_load(&s->cluster, o->cluster_file, e);
    if (rc != 0) {
        mem_free(s);
        return rc;
    }
    s->engine.ops = &ops;
    s->cb = o->cb;
    s->cb_arg = o->cb_arg;
    s->time_scale_milli = o->time_scale_milli == 0 ? 1000 : o->time_scale_milli;
    s->default_duration_ms = o->default_duration_ms > 0 ? o->default_duration_ms : DURATION_DEFAULT;
    idmap_init(&s->jobs);
    uv_timer_init(o->loop, &s->timer);
    uv_timer_init(o->loop, &s->tell);
    uv_timer_init(o->loop, &s->telemetry);
    s->timer.data = s->tell.data = s->telemetry.data = s;
    s->open_handles = 3;
    uv_timer_start(&s->telemetry, on_telemetry, TELEMETRY_MS / 5, TELEMETRY_MS);
    *ret = &s->engine;
    return 0;
}
