/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See state.h and abi/simgpu.h.
 *
 * The lock word. Zero is free; else it names the holder by pid and the low half of its start time.
 * A waiter that finds the same holder again and again asks /proc whether it lives, and takes the
 * lock over by compare-and-swap from a dead one. That is safe since nothing protected by it is ever
 * half done: a claim is one store of the pid (after all else is cleared), taking memory is one
 * store of the slot's sum.
 *
 * LIMITATIONS. A process that is stopped (not killed) between taking and giving back the lock holds
 * up the others on that card. Pids are those of the pid namespace of the reader: simulated cards
 * are shared among processes of one namespace. At most 1.28 s of history are kept, which is more
 * than the window.
 */
#include "simgpu/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOAD(p)     __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

static bool header_ok(const struct simgpu_header *h, uint64_t size)
{
    return h->header_bytes == sizeof(struct simgpu_header) && h->card_bytes == sizeof(struct simgpu_card) &&
           h->slot_bytes == sizeof(struct simgpu_slot) && h->slots_per_card == SIMGPU_SLOTS && h->cards_len >= 1 &&
           h->cards_len <= SIMGPU_CARDS_MAX && h->nics_len <= SIMGPU_NICS_MAX &&
           h->file_bytes == simgpu_file_bytes(h->cards_len) && size == h->file_bytes &&
           memchr(h->preset, 0, sizeof(h->preset)) && memchr(h->driver_version, 0, sizeof(h->driver_version));
}

/* Text must end inside its field, numbers that index or divide must be in range: the file may be
 * anything. */
static bool card_ok(const struct simgpu_card *c)
{
    return memchr(c->uuid, 0, sizeof(c->uuid)) && memchr(c->name, 0, sizeof(c->name)) &&
           memchr(c->serial, 0, sizeof(c->serial)) && memchr(c->vbios, 0, sizeof(c->vbios)) &&
           c->mem_reserved_bytes < c->mem_bytes && c->mem_bytes <= (uint64_t)1 << 44 && c->sm_count >= 1 &&
           c->nvlinks <= 18 && c->power_idle_mw <= c->power_limit_mw && c->slots_high <= SIMGPU_SLOTS;
}

static int check(const struct sim_state *s)
{
    const struct simgpu_header *h = s->header;
    if (memcmp(h->magic, SIMGPU_MAGIC, sizeof(h->magic)) != 0)
        return -EBADMSG;
    if (h->version != SIMGPU_VERSION)
        return -EPROTONOSUPPORT;
    if (!header_ok(h, s->size))
        return -EBADMSG;
    for (uint32_t i = 0; i < h->nics_len; i++)
        if (!memchr(h->nics[i].name, 0, sizeof(h->nics[i].name)))
            return -EBADMSG;
    for (uint32_t i = 0; i < h->cards_len; i++)
        if (!card_ok(sim_card(s, i)))
            return -EBADMSG;
    return 0;
}

int sim_state_open(struct sim_state *s, const char *path, bool writable)
{
    memset(s, 0, sizeof(*s));
    if (!path)
        path = getenv(SIMGPU_ENV);
    if (!path || !*path)
        return -ENOENT;
    int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct simgpu_header) ||
        st.st_size > (off_t)simgpu_file_bytes(SIMGPU_CARDS_MAX)) {
        close(fd);
        return -EBADMSG;
    }
    s->size = (size_t)st.st_size;
    s->map = mmap(NULL, s->size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    int saved = errno;
    close(fd);
    if (s->map == MAP_FAILED) {
        memset(s, 0, sizeof(*s));
        return -saved;
    }
    s->header = s->map;
    s->writable = writable;
    int rc = check(s);
    if (rc != 0)
        sim_state_close(s);
    return rc;
}

void sim_state_close(struct sim_state *s)
{
    if (s->map)
        munmap(s->map, s->size);
    memset(s, 0, sizeof(*s));
}

struct simgpu_card *sim_card(const struct sim_state *s, uint32_t card)
{
    return simgpu_card_at(s->map, card);
}

struct simgpu_slot *sim_slots(const struct sim_state *s, uint32_t card)
{
    return simgpu_slots_at(s->map, s->header->cards_len, card);
}

uint64_t sim_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * The fields of interest after the name (which may hold anything, so the last ')' counts): 3 state,
 * 20 number of threads, 22 start time. A group leader that ended while other threads go on is a 'Z'
 * with more than one thread.
 */
uint64_t sim_process_start(pid_t pid)
{
    char path[40], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    const char *p = strrchr(text, ')');
    if (!p)
        return 0;
    char state = 0;
    long threads = 0;
    unsigned long long start = 0;
    if (sscanf(p + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %*s %llu", &state,
               &threads, &start) != 3)
        return 0;
    if (state == 'X' || state == 'x' || (state == 'Z' && threads <= 1))
        return 0;
    return start ? start : 1;
}

bool sim_slot_alive(uint32_t pid, uint64_t start_time)
{
    return pid != 0 && pid <= INT32_MAX && sim_process_start((pid_t)pid) == start_time;
}

static uint64_t lock_name(uint32_t pid, uint64_t start_time)
{
    return ((uint64_t)pid << 32) | (uint32_t)start_time;
}

static void pause_us(long us)
{
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

static void card_lock(struct simgpu_card *c, uint64_t self)
{
    uint64_t seen = 0;
    for (unsigned round = 0;; round++) {
        uint64_t holder = 0;
        if (__atomic_compare_exchange_n(&c->lock, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        if (round < 64)
            continue;
        if (holder == seen && round % 64 == 0) {
            pid_t pid = (pid_t)(holder >> 32);
            uint64_t start = pid > 0 ? sim_process_start(pid) : 0;
            if ((start == 0 || (uint32_t)start != (uint32_t)holder) &&
                __atomic_compare_exchange_n(&c->lock, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return;
        }
        seen = holder;
        pause_us(20);
    }
}

static void card_unlock(struct simgpu_card *c)
{
    STORE(&c->lock, 0);
}

static bool slot_used(const struct simgpu_slot *slot, uint32_t *ret_pid, uint64_t *ret_start)
{
    *ret_pid = LOAD(&slot->pid);
    *ret_start = LOAD(&slot->start_time);
    return *ret_pid != 0;
}

static void slot_clear(struct simgpu_slot *slot)
{
    STORE(&slot->pid, 0);
    STORE(&slot->mem_bytes, 0);
    STORE(&slot->seq, 0);
    STORE(&slot->busy_start_ns, 0);
    STORE(&slot->busy_end_ns, 0);
    STORE(&slot->busy_ppm, 0);
    STORE(&slot->busy_total, 0);
    STORE(&slot->virtual_ns, 0);
    for (int i = 0; i < SIMGPU_BUCKETS; i++)
        STORE(&slot->history[i], 0);
}

int sim_slot_claim(struct sim_state *s, uint32_t card, struct simgpu_slot **ret)
{
    struct simgpu_card *c = sim_card(s, card);
    struct simgpu_slot *slots = sim_slots(s, card);
    pid_t pid = getpid();
    uint64_t start = sim_process_start(pid);
    if (start == 0)
        return -ESRCH;
    card_lock(c, lock_name((uint32_t)pid, start));
    struct simgpu_slot *found = NULL;
    for (uint32_t i = 0; i < SIMGPU_SLOTS && !found; i++) {
        uint32_t other;
        uint64_t other_start;
        if (i >= LOAD(&c->slots_high) || !slot_used(&slots[i], &other, &other_start) ||
            !sim_slot_alive(other, other_start)) {
            found = &slots[i];
            if (i >= c->slots_high)
                STORE(&c->slots_high, i + 1);
        }
    }
    if (found) {
        slot_clear(found);
        STORE(&found->start_time, start);
        STORE(&found->pid, (uint32_t)pid);
    }
    card_unlock(c);
    if (!found)
        return -ENOSPC;
    *ret = found;
    return 0;
}

void sim_slot_release(struct sim_state *s, uint32_t card, struct simgpu_slot *slot)
{
    if (!slot)
        return;
    struct simgpu_card *c = sim_card(s, card);
    card_lock(c, lock_name(LOAD(&slot->pid), LOAD(&slot->start_time)));
    slot_clear(slot);
    card_unlock(c);
}

/* Sum of the memory of the living. With the card's lock held, slots of the dead are cleared on the
 * way. */
static uint64_t mem_in_use(const struct sim_state *s, uint32_t card, const struct simgpu_slot *self, bool locked)
{
    struct simgpu_card *c = sim_card(s, card);
    struct simgpu_slot *slots = sim_slots(s, card);
    uint32_t high = LOAD(&c->slots_high), own_pid = LOAD(&self->pid);
    uint64_t own_start = LOAD(&self->start_time), sum = 0;
    for (uint32_t i = 0; i < high && i < SIMGPU_SLOTS; i++) {
        uint32_t pid;
        uint64_t start;
        if (!slot_used(&slots[i], &pid, &start))
            continue;
        uint64_t mem = LOAD(&slots[i].mem_bytes);
        if ((pid == own_pid && start == own_start) || sim_slot_alive(pid, start))
            sum += mem;
        else if (locked)
            slot_clear(&slots[i]);
    }
    return sum;
}

uint64_t sim_mem_used(const struct sim_state *s, uint32_t card, const struct simgpu_slot *self)
{
    return mem_in_use(s, card, self, false);
}

/* The sum without asking who lives: never below the true one, and without a system call. */
static uint64_t mem_recorded(const struct sim_state *s, uint32_t card)
{
    struct simgpu_slot *slots = sim_slots(s, card);
    uint32_t high = LOAD(&sim_card(s, card)->slots_high);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < high && i < SIMGPU_SLOTS; i++)
        sum += LOAD(&slots[i].pid) ? LOAD(&slots[i].mem_bytes) : 0;
    return sum;
}

int sim_mem_take(struct sim_state *s, uint32_t card, struct simgpu_slot *slot, uint64_t bytes)
{
    struct simgpu_card *c = sim_card(s, card);
    uint64_t cap = c->mem_bytes - c->mem_reserved_bytes;
    if (bytes > cap)
        return -ENOMEM;
    card_lock(c, lock_name(LOAD(&slot->pid), LOAD(&slot->start_time)));
    uint64_t used = mem_recorded(s, card);
    if (used > cap - bytes)
        used = mem_in_use(s, card, slot, true);
    bool fits = used <= cap - bytes;
    if (fits)
        STORE(&slot->mem_bytes, slot->mem_bytes + bytes);
    card_unlock(c);
    return fits ? 0 : -ENOMEM;
}

void sim_mem_give(struct simgpu_slot *slot, uint64_t bytes)
{
    uint64_t have = LOAD(&slot->mem_bytes);
    STORE(&slot->mem_bytes, have > bytes ? have - bytes : 0);
}

#define PPM 1000000u

static void history_add(struct simgpu_slot *slot, uint64_t from, uint64_t to, uint32_t ppm)
{
    uint64_t keep = (uint64_t)SIMGPU_BUCKETS * SIMGPU_BUCKET_NS;
    if (to > keep && from < to - keep)
        from = to - keep;
    while (from < to) {
        uint64_t number = from / SIMGPU_BUCKET_NS, edge = (number + 1) * SIMGPU_BUCKET_NS;
        uint64_t upto = edge < to ? edge : to;
        uint64_t add = ((upto - from) * ppm + PPM / 2) / PPM;
        uint64_t *b = &slot->history[number % SIMGPU_BUCKETS], old = LOAD(b);
        uint64_t amount = (old >> 32) == (uint32_t)number ? (uint32_t)old : 0;
        STORE(b, (number << 32) | (uint32_t)(amount + add));
        from = upto;
    }
}

/*
 * Moves what has passed of the pending period into the history, in whole microseconds, so that
 * frequent calls lose nothing by rounding. Between the two marks of `seq`.
 */
static void settle(struct simgpu_slot *slot, uint64_t now)
{
    uint64_t start = slot->busy_start_ns, end = slot->busy_end_ns, upto = end < now ? end : now;
    if (upto < start + 1000)
        return;
    upto -= (upto - start) % 1000;
    history_add(slot, start, upto, slot->busy_ppm);
    STORE(&slot->busy_total, slot->busy_total + (upto - start) / 1000 * slot->busy_ppm / 1000);
    STORE(&slot->busy_start_ns, upto);
}

/*
 * A sequence lock without fences: every store in between releases, so whoever acquires one of the
 * new values also sees the odd number before it, and every load of a reader acquires, so its second
 * look at the number comes last.
 */
static void change_begin(struct simgpu_slot *slot)
{
    STORE(&slot->seq, slot->seq + 1);
}

static void change_end(struct simgpu_slot *slot)
{
    STORE(&slot->seq, slot->seq + 1);
}

/* One period for two: the load that has the area of both over `length_ns`, at most all SMs. */
static uint32_t merged_ppm(uint64_t a_ns, uint32_t a, uint64_t b_ns, uint32_t b, uint64_t length_ns)
{
    __uint128_t area = (__uint128_t)a_ns * a + (__uint128_t)b_ns * b;
    uint64_t ppm = length_ns ? (uint64_t)((area + length_ns / 2) / length_ns) : 0;
    return ppm > PPM ? PPM : (uint32_t)ppm;
}

void sim_load_add(struct simgpu_slot *slot, uint64_t now, uint64_t start, uint64_t duration_ns, uint32_t permille)
{
    uint32_t ppm = (permille > SIMGPU_PERMILLE ? SIMGPU_PERMILLE : permille) * 1000;
    start = start > now ? start : now;
    uint64_t end = duration_ns > SIMGPU_FOREVER - start ? SIMGPU_FOREVER : start + duration_ns;
    change_begin(slot);
    settle(slot, now);
    uint64_t from = slot->busy_start_ns, pending_end = slot->busy_end_ns;
    if (pending_end <= now || from >= pending_end) {
        from = start;
    } else if (end == SIMGPU_FOREVER || pending_end == SIMGPU_FOREVER) {
        ppm = slot->busy_ppm > PPM - ppm ? PPM : slot->busy_ppm + ppm;
        end = SIMGPU_FOREVER;
    } else if (start != pending_end || ppm != slot->busy_ppm) {
        uint64_t longest = end > pending_end ? end : pending_end;
        ppm = merged_ppm(pending_end - from, slot->busy_ppm, end - start, ppm, longest - from);
        end = longest;
    }
    STORE(&slot->busy_start_ns, from);
    STORE(&slot->busy_end_ns, end);
    STORE(&slot->busy_ppm, ppm);
    change_end(slot);
}

void sim_load_stop(struct simgpu_slot *slot, uint64_t now)
{
    change_begin(slot);
    settle(slot, now);
    STORE(&slot->busy_end_ns, slot->busy_start_ns);
    STORE(&slot->busy_ppm, 0);
    change_end(slot);
}

struct pending {
    uint64_t start;
    uint64_t end;
    uint32_t ppm;
    uint64_t total;
};

/* A consistent copy of the pending period. Gives up after many tries: the owner then died while
 * changing it. */
static struct pending read_pending(const struct simgpu_slot *slot, uint64_t *in_window, uint64_t from, uint64_t to)
{
    struct pending p = {0};
    for (int tries = 0; tries < 1000; tries++) {
        uint32_t before = LOAD(&slot->seq);
        p = (struct pending){LOAD(&slot->busy_start_ns), LOAD(&slot->busy_end_ns), LOAD(&slot->busy_ppm),
                             LOAD(&slot->busy_total)};
        uint64_t area = 0;
        for (int i = 0; i < SIMGPU_BUCKETS && in_window; i++) {
            uint64_t b = LOAD(&slot->history[i]);
            uint64_t first = (from + SIMGPU_BUCKET_NS - 1) / SIMGPU_BUCKET_NS, last = to / SIMGPU_BUCKET_NS;
            uint32_t age = (uint32_t)last - (uint32_t)(b >> 32);
            if ((uint32_t)b && age <= last - first)
                area += (uint32_t)b;
        }
        if (before % 2 == 0 && LOAD(&slot->seq) == before) {
            if (in_window)
                *in_window = area;
            return p;
        }
    }
    if (in_window)
        *in_window = 0;
    return p;
}

uint32_t sim_load_others(struct sim_state *s, uint32_t card, const struct simgpu_slot *self, uint64_t now)
{
    struct simgpu_slot *slots = sim_slots(s, card);
    uint32_t high = LOAD(&sim_card(s, card)->slots_high), sum = 0;
    for (uint32_t i = 0; i < high && i < SIMGPU_SLOTS; i++) {
        uint32_t pid;
        uint64_t start;
        if (&slots[i] == self || !slot_used(&slots[i], &pid, &start))
            continue;
        struct pending p = read_pending(&slots[i], NULL, 0, 0);
        /* A period with an end runs out by itself; only an endless one needs to be asked after. */
        if (p.end > now && p.ppm && (p.end != SIMGPU_FOREVER || sim_slot_alive(pid, start)))
            sum += (p.ppm < PPM ? p.ppm : PPM) / 1000;
    }
    return sum;
}

static void use_of_slot(const struct simgpu_slot *slot, uint64_t now, struct sim_use *u)
{
    /* The window begins on a bucket edge, so that whole buckets are counted. */
    uint64_t from = (now > SIM_WINDOW_NS ? now - SIM_WINDOW_NS : 0) / SIMGPU_BUCKET_NS * SIMGPU_BUCKET_NS, area = 0;
    struct pending p = read_pending(slot, &area, from, now);
    uint64_t a = p.start > from ? p.start : from, b = p.end < now ? p.end : now;
    if (b > a)
        area += (b - a) / 1000 * p.ppm / 1000;
    uint64_t us = (now - from) / 1000, permille = us ? (area + us / 2) / us : 0;
    u->sm_permille = permille > SIMGPU_PERMILLE ? SIMGPU_PERMILLE : (uint32_t)permille;
    u->mem_bytes = LOAD(&slot->mem_bytes);
    uint64_t upto = p.end < now ? p.end : now;
    u->busy_total = p.total + (upto > p.start ? (upto - p.start) / 1000 * p.ppm / 1000 : 0);
}

uint32_t sim_card_use(const struct sim_state *s, uint32_t card, struct sim_use *out, uint32_t cap)
{
    struct simgpu_slot *slots = sim_slots(s, card);
    uint32_t high = LOAD(&sim_card(s, card)->slots_high), len = 0;
    uint32_t seen[SIMGPU_SLOTS];
    uint64_t now = sim_now_ns();
    for (uint32_t i = 0; i < high && i < SIMGPU_SLOTS; i++) {
        uint32_t pid, at = 0;
        uint64_t start;
        if (!slot_used(&slots[i], &pid, &start) || !sim_slot_alive(pid, start))
            continue;
        struct sim_use u = {.pid = pid};
        use_of_slot(&slots[i], now, &u);
        while (at < len && seen[at] != pid)
            at++;
        if (at < len && at < cap) {
            uint32_t sum = out[at].sm_permille + u.sm_permille;
            out[at].mem_bytes += u.mem_bytes;
            out[at].busy_total += u.busy_total;
            out[at].sm_permille = sum > SIMGPU_PERMILLE ? SIMGPU_PERMILLE : sum;
        } else if (at == len) {
            seen[len++] = pid;
            if (at < cap)
                out[at] = u;
        }
    }
    return len;
}

void sim_card_total(const struct sim_state *s, uint32_t card, uint64_t *ret_mem_bytes, uint32_t *ret_permille)
{
    struct sim_use use[SIMGPU_SLOTS];
    uint32_t n = sim_card_use(s, card, use, SIMGPU_SLOTS), permille = 0;
    uint64_t mem = 0;
    for (uint32_t i = 0; i < n; i++) {
        mem += use[i].mem_bytes;
        permille += use[i].sm_permille;
    }
    if (ret_mem_bytes)
        *ret_mem_bytes = mem;
    if (ret_permille)
        *ret_permille = permille > SIMGPU_PERMILLE ? SIMGPU_PERMILLE : permille;
}
