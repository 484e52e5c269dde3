/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver stand-in, called as a program calls libcuda.so.1. The driver of a process can not
 * be started anew on other cards, so each scenario runs in a child of its own; CHECK ends the child
 * with the line that failed. REQ: H3
 */
#include "test.h"

#include "tests/sim_fixture.h"

#include "abi/cuda_abi.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/sys/file.h"
#include "gpu/preset.h"
#include "gpu/telemetry.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            fflush(stdout);                                                      \
            _exit(1);                                                            \
        }                                                                        \
    } while (0)
#define OK(call) CHECK((call) == CUDA_SUCCESS)

static int64_t *shared; /* among a test's processes */

/* Runs the scenario in a child on these cards and expects it to end well. */
static void scenario(const char *preset, const char *visible, bool virtual_time, void (*body)(void))
{
    struct sim_fixture f;
    sim_begin(&f, preset);
    if (visible)
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    if (virtual_time)
        setenv("REMUDA_SIMGPU_TIME", "virtual", 1);
    fflush(stdout);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(90);
        body();
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("REMUDA_SIMGPU_TIME");
    sim_end(&f);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static CUcontext use_device(int ordinal)
{
    CUcontext c;
    CUdevice d;
    OK(cuInit(0));
    OK(cuDeviceGet(&d, ordinal));
    OK(cuDevicePrimaryCtxRetain(&c, d));
    OK(cuCtxSetCurrent(c));
    return c;
}

static void uuid_text(CUdevice d, char out[48])
{
    CUuuid u;
    OK(cuDeviceGetUuid_v2(&u, d));
    int n = snprintf(out, 48, "GPU-");
    for (int i = 0; i < 16; i++)
        n += snprintf(out + n, 48 - (size_t)n, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                      (unsigned char)u.bytes[i]);
}

static void body_devices(void)
{
    int count, value, major, minor;
    size_t bytes;
    char text[100], uuid[48];
    CUdevice d;
    CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    CHECK(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    CHECK(count == 8);
    CHECK(cuDeviceGet(&d, 8) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(cuDeviceGet(&d, -1) == CUDA_ERROR_INVALID_DEVICE);
    CHECK(cuDeviceGet(NULL, 0) == CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetName(text, sizeof(text), 3));
    CHECK(strcmp(text, "NVIDIA A100-SXM4-80GB") == 0);
    OK(cuDeviceTotalMem_v2(&bytes, 0));
    CHECK(bytes == (81920 - 603) * MIB);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    CHECK(value == 108);
    CHECK(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0) == CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceComputeCapability(&major, &minor, 0));
    CHECK(major == 8 && minor == 0);
    OK(cuDeviceGetPCIBusId(text, sizeof(text), 2));
    CHECK(strcmp(text, "0000:47:00.0") == 0);
    OK(cuDeviceGetByPCIBusId(&d, text));
    CHECK(d == 2);
    OK(cuDeviceCanAccessPeer(&value, 0, 7));
    CHECK(value == 1);
    uuid_text(5, uuid);
    preset_uuid("dgx-a100", 5, text);
    CHECK(strcmp(uuid, text) == 0);
    OK(cuDriverGetVersion(&value));
    CHECK(value == 12040);
    const char *name;
    OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name));
    CHECK(strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY") == 0);
    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &name));
    CHECK(strcmp(name, "out of memory") == 0);
    CHECK(cuGetErrorString((CUresult)12345, &name) == CUDA_ERROR_INVALID_VALUE);
}

static void test_devices(void **state)
{
    (void)state;
    scenario("dgx-a100", NULL, false, body_devices);
}

/* expected[0] is the number, then the cards in order. */
static const int *expected;

static void body_visible(void)
{
    int count = 0;
    CUresult rc = cuInit(0);
    if (expected[0] == 0) {
        CHECK(rc == CUDA_ERROR_NO_DEVICE);
        return;
    }
    OK(rc);
    OK(cuDeviceGetCount(&count));
    CHECK(count == expected[0]);
    for (int i = 0; i < count; i++) {
        char have[48], want[48];
        uuid_text(i, have);
        preset_uuid("dgx-a100", (uint32_t)expected[1 + i], want);
        CHECK(strcmp(have, want) == 0);
    }
}

static void test_visible(void **state)
{
    (void)state;
    char full[48], pair[100], cut[16];
    preset_uuid("dgx-a100", 6, full);
    snprintf(cut, sizeof(cut), "%.12s", full);
    preset_uuid("dgx-a100", 2, pair);
    snprintf(pair + 40, sizeof(pair) - 40, ",%s", full);
    const struct {
        const char *value;
        int cards[10];
    } cases[] = {
        {"3,1", {2, 3, 1}}, {" 0 , 7 ", {2, 0, 7}}, {full, {1, 6}},      {cut, {1, 6}},
        {pair, {2, 2, 6}},  {"2,9,1", {1, 2}},      {"-1", {0}},         {"", {0}},
        {"1,1", {0}},       {"GPU-", {0}},          {"NoDevFiles", {0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expected = cases[i].cards;
        scenario("dgx-a100", cases[i].value, false, body_visible);
    }
}

static void body_memory(void)
{
    CUdeviceptr a, b, base;
    size_t available, total, before, size;
    char out[4096], in[4096];
    CHECK(cuMemAlloc_v2(&a, 100) == CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    CHECK(cuMemAlloc_v2(&a, 100) == CUDA_ERROR_INVALID_CONTEXT);
    use_device(0);
    OK(cuMemGetInfo_v2(&before, &total));
    CHECK(total == (15360 - 444) * MIB && before == total - 105 * MIB);
    OK(cuMemAlloc_v2(&a, 4096));
    OK(cuMemAlloc_v2(&b, 1 * GIB));
    OK(cuMemGetInfo_v2(&available, NULL));
    CHECK(available == before - 1 * GIB - 4096);
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (char)(i * 7);
    OK(cuMemcpyHtoD_v2(a, in, sizeof(in)));
    OK(cuMemcpyDtoD_v2(b + GIB - 4096, a, 4096));
    OK(cuMemcpyDtoH_v2(out, b + GIB - 4096, 4096));
    CHECK(memcmp(in, out, sizeof(in)) == 0);
    OK(cuMemsetD32_v2(a, 0x01020304, 16));
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)out, a, 128));
    CHECK(out[0] == 4 && out[63] == 1 && out[64] == in[64]);
    CHECK(cuMemsetD32_v2(a + 1, 0, 1) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemcpyHtoD_v2(a + 1, in, 4096) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)out, in, 10) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemcpyHtoD_v2(0, in, 10) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemGetAddressRange_v2(&base, &size, b + 12345));
    CHECK(base == b && size == GIB);
    CHECK(cuMemFree_v2(b + 512) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(b));
    CHECK(cuMemFree_v2(b) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemcpyDtoH_v2(out, b, 1) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(0));
    OK(cuMemFree_v2(a));
    OK(cuMemGetInfo_v2(&available, NULL));
    CHECK(available == before);
    CHECK(cuMemAlloc_v2(&a, 0) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuMemAlloc_v2(&a, before + 1) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(cuMemAlloc_v2(&a, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&a, before));
    OK(cuMemsetD8_v2(a + before - 4096, 9, 4096)); /* only what is written takes memory of the host */
    OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    use_device(0);
    OK(cuMemGetInfo_v2(&available, NULL));
    CHECK(available == before);
}

static void test_memory(void **state)
{
    (void)state;
    scenario("2xt4", NULL, true, body_memory);
}

/* Random allocations and frees: no two overlap, the account is exact at every step. */
static void body_heap(void)
{
    enum { MAX = 3000 };
    static struct {
        CUdeviceptr at;
        uint64_t size;
    } live[MAX];
    struct rng r;
    size_t n = 0, before, available;
    uint64_t sum = 0;
    use_device(0);
    rng_init(&r, TEST_SEED);
    OK(cuMemGetInfo_v2(&before, NULL));
    for (int step = 0; step < 30000; step++) {
        if (n < MAX && (n == 0 || rng_below(&r, 100) < 55)) {
            uint64_t size = 1 + rng_below(&r, rng_below(&r, 10) ? 100000 : 20 * MIB);
            CUresult rc = cuMemAlloc_v2(&live[n].at, size);
            live[n].size = (size + 511) / 512 * 512;
            CHECK(rc == CUDA_SUCCESS ? sum + live[n].size <= before : sum + live[n].size > before);
            if (rc == CUDA_SUCCESS) {
                CHECK(live[n].at % 512 == 0);
                sum += live[n++].size;
            }
        } else {
            size_t i = rng_below(&r, n);
            OK(cuMemFree_v2(live[i].at));
            sum -= live[i].size;
            live[i] = live[--n];
        }
        if (step % 5000 == 0) {
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < i; j++)
                    CHECK(live[i].at + live[i].size <= live[j].at || live[j].at + live[j].size <= live[i].at);
            OK(cuMemGetInfo_v2(&available, NULL));
            CHECK(available == before - sum);
        }
    }
    while (n > 0)
        OK(cuMemFree_v2(live[--n].at));
    OK(cuMemGetInfo_v2(&available, NULL));
    CHECK(available == before);
}

static void test_heap(void **state)
{
    (void)state;
    scenario("2xt4", NULL, true, body_heap);
}

/* A child of a scenario, which ends with it. */
static pid_t fork_child(void)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static void await(const int64_t *value, int64_t wanted)
{
    while (__atomic_load_n(value, __ATOMIC_SEQ_CST) < wanted)
        sim_sleep_ms(1);
}

/*
 * Waits for the other one, then takes memory by 16 MiB until none is left, counting in shared[slot]
 * and with a break now and then, and at last waits to be killed.
 */
static void hog(int slot)
{
    CUdeviceptr p;
    use_device(0);
    __atomic_add_fetch(&shared[16], 1, __ATOMIC_SEQ_CST);
    await(&shared[16], 2);
    while (cuMemAlloc_v2(&p, 16 * MIB) == CUDA_SUCCESS)
        if (__atomic_add_fetch(&shared[slot], 1, __ATOMIC_SEQ_CST) % 50 == 0)
            sim_sleep_ms(2);
    __atomic_store_n(&shared[slot + 8], 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
}

/* Two processes race for the last byte: together they get what the card has; one killed, the other
 * can have it. */
static void body_two_processes(void)
{
    size_t total, available;
    CUdeviceptr p;
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        pids[i] = fork_child();
        if (pids[i] == 0)
            hog(i);
    }
    await(&shared[8], 1);
    await(&shared[9], 1);
    OK(cuInit(0));
    OK(cuDeviceTotalMem_v2(&total, 0));
    uint64_t used = (uint64_t)(shared[0] + shared[1]) * 16 * MIB + 2 * 105 * MIB;
    CHECK(used <= total && total - used < 16 * MIB);
    CHECK(shared[0] > 0 && shared[1] > 0);
    CUcontext c;
    CHECK(cuDevicePrimaryCtxRetain(&c, 0) == CUDA_ERROR_OUT_OF_MEMORY);
    sim_kill(pids[0], SIGKILL);
    use_device(0);
    OK(cuMemGetInfo_v2(&available, NULL));
    CHECK(available == total - (uint64_t)shared[1] * 16 * MIB - 2 * 105 * MIB);
    OK(cuMemAlloc_v2(&p, available));
    CHECK(cuMemAlloc_v2(&p, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    sim_kill(pids[1], SIGKILL);
    OK(cuMemAlloc_v2(&p, (uint64_t)shared[1] * 16 * MIB + 105 * MIB));
    CHECK(cuMemAlloc_v2(&p, 1) == CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_two_processes(void **state)
{
    (void)state;
    memset(shared, 0, 4096);
    scenario("2xt4", "0", true, body_two_processes);
}

/* Allocates and frees at random until killed. */
static void churn(uint64_t seed)
{
    struct rng r;
    CUdeviceptr p[64];
    int n = 0;
    rng_init(&r, seed);
    CUcontext c;
    CHECK(cuInit(0) == CUDA_SUCCESS);
    CUresult rc;
    while ((rc = cuDevicePrimaryCtxRetain(&c, 0)) == CUDA_ERROR_OUT_OF_MEMORY)
        sim_sleep_ms(1);
    OK(rc);
    OK(cuCtxSetCurrent(c));
    for (;;) {
        size_t available, total;
        if (n < 64 && rng_below(&r, 2)) {
            rc = cuMemAlloc_v2(&p[n], 1 + rng_below(&r, GIB));
            n += rc == CUDA_SUCCESS;
            CHECK(rc == CUDA_SUCCESS || rc == CUDA_ERROR_OUT_OF_MEMORY);
        } else if (n > 0) {
            OK(cuMemFree_v2(p[--n]));
        }
        OK(cuMemGetInfo_v2(&available, &total));
        CHECK(available <= total);
    }
}

/* Processes killed at any point: no lock stays taken, nothing stays charged, and living ones go on.
 */
static void body_killed(void)
{
    struct rng r;
    pid_t pids[6] = {0};
    rng_init(&r, TEST_SEED + 1);
    for (uint64_t round = 0; round < test_count("REMUDA_TEST_KILLS", 60); round++) {
        uint64_t i = rng_below(&r, 6);
        if (pids[i] > 0) {
            int status = sim_kill(pids[i], SIGKILL);
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        pids[i] = fork_child();
        if (pids[i] == 0)
            churn(TEST_SEED + round);
        sim_sleep_ms((long)rng_below(&r, 15));
    }
    for (int i = 0; i < 6; i++)
        if (pids[i] > 0)
            sim_kill(pids[i], SIGKILL);
    size_t available, total;
    use_device(0);
    OK(cuMemGetInfo_v2(&available, &total));
    CHECK(available == total - 105 * MIB);
}

static void test_killed(void **state)
{
    (void)state;
    scenario("2xt4", "1", false, body_killed);
}

static const char kernels[] = "remuda-kernels 1\n"
                              "# a kernel that fills the card, one that takes 60 per cent, one by its blocks\n"
                              "kernel full time-us 10000 sm 100\n"
                              "kernel part time-us 700000 sm 60\n"
                              "kernel blocks block-ns 1000\n";

static CUresult launch(CUfunction f, unsigned blocks, CUstream s)
{
    return cuLaunchKernel(f, blocks, 1, 1, 128, 1, 1, 0, s, NULL, NULL);
}

static float elapsed(CUevent a, CUevent b)
{
    float ms = -1;
    OK(cuEventElapsedTime(&ms, a, b));
    return ms;
}

static void body_virtual_time(void)
{
    CUmodule m;
    CUfunction full, blocks, none;
    CUstream s1, s2;
    CUevent e[4];
    unsigned count;
    use_device(0);
    CHECK(cuModuleLoadData(&m, "\177ELF") == CUDA_ERROR_INVALID_IMAGE);
    CHECK(cuModuleLoadData(&m, "remuda-kernels 1\nkernel x\n") == CUDA_ERROR_INVALID_IMAGE);
    CHECK(cuModuleLoadData(&m, "remuda-kernels 1\nkernel x time-us -1\n") == CUDA_ERROR_INVALID_IMAGE);
    CHECK(cuModuleLoadData(&m, "remuda-kernels 1\nkernel x time-us 1 sm 101\n") == CUDA_ERROR_INVALID_IMAGE);
    CHECK(cuModuleLoadData(&m, "remuda-kernels 1\nkernel x time-us 1\nkernel x time-us 1\n") ==
          CUDA_ERROR_INVALID_IMAGE);
    CHECK(cuModuleLoad(&m, "/nonexistent") == CUDA_ERROR_FILE_NOT_FOUND);
    OK(cuModuleLoadData(&m, kernels));
    OK(cuModuleGetFunctionCount(&count, m));
    CHECK(count == 3);
    OK(cuModuleGetFunction(&full, m, "full"));
    OK(cuModuleGetFunction(&blocks, m, "blocks"));
    CHECK(cuModuleGetFunction(&none, m, "other") == CUDA_ERROR_NOT_FOUND);
    OK(cuStreamCreate(&s1, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&s2, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 4; i++)
        OK(cuEventCreate(&e[i], 0));
    float ms;
    CHECK(cuEventElapsedTime(&ms, e[0], e[1]) == CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(e[0], s1));
    for (int i = 0; i < 100; i++)
        OK(launch(full, 1, s1));
    OK(cuEventRecord(e[1], s1));
    OK(launch(blocks, 5000, s2));
    OK(cuEventRecord(e[2], s2));
    CHECK(cuStreamQuery(s1) == CUDA_ERROR_NOT_READY);
    CHECK(cuEventQuery(e[1]) == CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize(s2));
    CHECK(cuEventQuery(e[2]) == CUDA_SUCCESS && cuEventQuery(e[1]) == CUDA_ERROR_NOT_READY);
    OK(cuCtxSynchronize());
    OK(cuStreamQuery(s1));
    CHECK(elapsed(e[0], e[1]) == 1000.0f); /* 100 launches of 10 ms */
    CHECK(elapsed(e[0], e[2]) == 5.0f);    /* 5,000 blocks of 1 us, on the other stream at the same time */
    OK(cuStreamWaitEvent(s2, e[1], 0));
    OK(launch(full, 1, s2));
    OK(cuEventRecord(e[3], s2));
    OK(cuEventSynchronize(e[3]));
    CHECK(elapsed(e[1], e[3]) == 10.0f);
    CHECK(cuLaunchKernel(full, 0, 1, 1, 1, 1, 1, 0, s1, NULL, NULL) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuLaunchKernel(full, 1, 1, 1, 1025, 1, 1, 0, s1, NULL, NULL) == CUDA_ERROR_INVALID_VALUE);
    CHECK(cuLaunchKernel(full, 1, 1, 1, 1, 1, 1, 1u << 20, s1, NULL, NULL) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK(launch(NULL, 1, s1) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(launch(full, 1, (CUstream)(void *)&ms) == CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamDestroy_v2(s1));
    CHECK(launch(full, 1, s1) == CUDA_ERROR_INVALID_HANDLE);
    for (int i = 0; i < 4; i++)
        OK(cuEventDestroy_v2(e[i]));
    OK(cuModuleUnload(m));
}

static void test_virtual_time(void **state)
{
    (void)state;
    scenario("2xt4", NULL, true, body_virtual_time);
}

/* The default stream waits for blocking streams, and they for it. */
static void body_default_stream(void)
{
    CUmodule m;
    CUfunction full;
    CUstream s;
    CUevent a, b;
    use_device(0);
    OK(cuModuleLoadData(&m, kernels));
    OK(cuModuleGetFunction(&full, m, "full"));
    OK(cuStreamCreate(&s, 0));
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuEventRecord(a, s));
    OK(launch(full, 1, s));
    OK(launch(full, 1, NULL));
    OK(launch(full, 1, s));
    OK(cuEventRecord(b, s));
    OK(cuStreamSynchronize(NULL));
    CHECK(elapsed(a, b) == 30.0f);
}

static void test_default_stream(void **state)
{
    (void)state;
    scenario("2xt4", NULL, true, body_default_stream);
}

/* In real time a running kernel shows in telemetry, as the share of the SMs it takes, and no longer
 * afterwards. */
static void body_telemetry(void)
{
    static struct gpu_inventory inv;
    struct telemetry t = {0};
    struct nvml n;
    struct timespec begin, end;
    CUmodule m;
    CUfunction part;
    CHECK(nvml_open(NVML_PATH, &n, NULL) == 0);
    CHECK(inventory_read(&n, &inv, NULL) == 0);
    use_device(0);
    OK(cuModuleLoadData(&m, kernels));
    OK(cuModuleGetFunction(&part, m, "part"));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    OK(launch(part, 1, NULL));
    sim_sleep_ms(400);
    CHECK(telemetry_sample(&n, &inv, &t, NULL) == 0);
    CHECK(t.processes_len == 1 && t.processes[0].pid == (uint32_t)getpid() && t.processes[0].gpu == 1);
    CHECK(t.processes[0].mem_mib == 105);
    int pct = t.processes[0].sm_pct;
    OK(cuCtxSynchronize());
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
    CHECK(ms >= 699);
    /* On a machine that was held up the sample may have come after the end. */
    CHECK((pct >= 58 && pct <= 61) || ms > 720);
    sim_sleep_ms(400);
    CHECK(telemetry_sample(&n, &inv, &t, NULL) == 0);
    CHECK(t.processes[0].sm_pct == 0);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK(telemetry_sample(&n, &inv, &t, NULL) == 0);
    CHECK(t.processes_len == 0);
    telemetry_done(&t);
}

static void test_telemetry(void **state)
{
    (void)state;
    scenario("2xt4", "1", false, body_telemetry);
}

/* A neighbour that keeps the card full makes a kernel take twice as long, at half of the SMs. */
static void body_neighbour(void)
{
    CUmodule m;
    CUfunction full;
    CUevent a, b;
    pid_t pid = sim_spawn((const char *[]){"--gpu", "0", "--sm", "100", NULL});
    use_device(0);
    size_t available, total;
    OK(cuModuleLoadData(&m, kernels));
    OK(cuModuleGetFunction(&full, m, "full"));
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    float ms = 0;
    for (int i = 0; i < 500 && ms < 15; i++) {
        sim_sleep_ms(5);
        OK(cuEventRecord(a, NULL));
        OK(launch(full, 1, NULL));
        OK(cuEventRecord(b, NULL));
        OK(cuEventSynchronize(b));
        ms = elapsed(a, b);
    }
    CHECK(ms > 19.9f && ms < 20.1f);
    sim_kill(pid, SIGKILL);
    OK(cuEventRecord(a, NULL));
    OK(launch(full, 1, NULL));
    OK(cuEventRecord(b, NULL));
    OK(cuEventSynchronize(b));
    ms = elapsed(a, b);
    CHECK(ms > 9.9f && ms < 10.1f);
    OK(cuMemGetInfo_v2(&available, &total));
}

/* What the state file says this process did on card 0, in permille x microseconds. */
static uint64_t recorded_work(void)
{
    char *file = NULL;
    size_t len;
    CHECK(file_read(getenv(SIMGPU_ENV), simgpu_file_bytes(SIMGPU_CARDS_MAX), &file, &len, NULL) == 0);
    const struct simgpu_slot *slots = simgpu_slots_at(file, 2, 0);
    uint64_t total = 0;
    for (int i = 0; i < SIMGPU_SLOTS; i++)
        if (slots[i].pid == (uint32_t)getpid())
            total += slots[i].busy_total;
    mem_free(file);
    return total;
}

/* Thousands of small kernels of different loads: the account of the work done is that of the
 * kernels. */
static void body_account(void)
{
    static const char text[] = "remuda-kernels 1\n"
                               "kernel a time-us 37 sm 100\nkernel b time-us 53 sm 30\n";
    CUmodule m;
    CUfunction f[2];
    uint64_t work = 0;
    use_device(0);
    OK(cuModuleLoadData(&m, text));
    OK(cuModuleGetFunction(&f[0], m, "a"));
    OK(cuModuleGetFunction(&f[1], m, "b"));
    for (int i = 0; i < 6000; i++) {
        int which = i % 3 == 0;
        OK(launch(f[which], 1, NULL));
        work += which ? 53 * 300 : 37 * 1000;
        if (i % 100 == 0)
            OK(cuCtxSynchronize());
    }
    OK(cuCtxSynchronize());
    /* The next launch moves what has passed into the account. */
    OK(launch(f[0], 1, NULL));
    uint64_t done = recorded_work();
    CHECK(done > work - work / 200 && done < work + work / 200);
}

static void test_account(void **state)
{
    (void)state;
    scenario("2xt4", NULL, false, body_account);
}

static void test_neighbour(void **state)
{
    (void)state;
    scenario("2xt4", NULL, false, body_neighbour);
}

static void body_fork(void)
{
    CUdeviceptr p;
    use_device(0);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(cuMemAlloc_v2(&p, 100) == CUDA_ERROR_NOT_INITIALIZED);
        CHECK(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(cuMemAlloc_v2(&p, 100));
}

static void test_fork(void **state)
{
    (void)state;
    scenario("2xt4", NULL, false, body_fork);
}

static void body_contexts(void)
{
    CUcontext a, b, c;
    CUdevice d;
    CUdeviceptr p;
    unsigned flags;
    int active;
    size_t before, after;
    OK(cuInit(0));
    CHECK(cuCtxPopCurrent_v2(&c) == CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuCtxCreate_v2(&b, 0, 1));
    OK(cuCtxGetDevice(&d));
    CHECK(d == 1);
    OK(cuCtxPopCurrent_v2(&c));
    CHECK(c == b);
    OK(cuCtxGetCurrent(&c));
    CHECK(c == a);
    OK(cuMemGetInfo_v2(&before, NULL));
    OK(cuCtxPushCurrent_v2(b));
    OK(cuCtxSetCurrent(a));
    OK(cuMemAlloc_v2(&p, GIB));
    CHECK(cuCtxDestroy_v2((CUcontext)(void *)&before) == CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxDestroy_v2(b));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(!active);
    CHECK(cuDevicePrimaryCtxRelease_v2(0) == CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    CHECK(cuCtxDestroy_v2(c) == CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(c));
    OK(cuMemGetInfo_v2(&after, NULL));
    CHECK(after == before - GIB - 105 * MIB); /* a second context on the card costs again */
    OK(cuCtxDestroy_v2(a));
    OK(cuMemGetInfo_v2(&after, NULL));
    CHECK(after == before); /* its memory went with it */
    OK(cuDevicePrimaryCtxReset_v2(0));
    CHECK(cuMemAlloc_v2(&p, 1) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

static void test_contexts(void **state)
{
    (void)state;
    scenario("2xt4", NULL, true, body_contexts);
}

/* Every function can be had by its base name and version, and only what is old enough for the
 * asker. */
static void test_get_proc_address(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *base;
        int version;
        void *address;
    } all[] = {
#define X(name, base, version, parameters) {#name, base, version, (void *)name},
        CUDA_FUNCTIONS(X)
#undef X
    };
    CUdriverProcAddressQueryResult status;
    void *f;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        assert_int_equal(cuGetProcAddress_v2(all[i].base, &f, all[i].version, 0, &status), CUDA_SUCCESS);
        assert_ptr_equal(f, all[i].address);
        assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
        assert_int_equal(cuGetProcAddress_v2(all[i].base, &f, 13000, 2, NULL), CUDA_SUCCESS);
        CUresult rc = cuGetProcAddress_v2(all[i].base, &f, all[i].version - 10, 0, &status);
        if (rc != CUDA_SUCCESS) {
            assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
            assert_null(f);
        } else {
            assert_ptr_not_equal(f, all[i].address);
        }
        assert_non_null(dlsym(RTLD_DEFAULT, all[i].name));
    }
    assert_int_equal(cuGetProcAddress_v2("cuGetProcAddress", &f, 11030, 0, NULL), CUDA_SUCCESS);
    assert_ptr_equal(f, (void *)cuGetProcAddress);
    assert_int_equal(cuGetProcAddress_v2("", &f, 0, 0, &status), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_int_equal(cuGetProcAddress("cuNothing", &f, 13000, 0), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(cuGetProcAddress_v2(NULL, &f, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    const void *table;
    CUuuid id = {{0}};
    assert_int_equal(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
}

static void *thread_body(void *arg)
{
    CUcontext c = arg;
    CUmodule m;
    CUfunction full;
    CUstream s;
    OK(cuCtxSetCurrent(c));
    OK(cuModuleLoadData(&m, kernels));
    OK(cuModuleGetFunction(&full, m, "full"));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 500; i++) {
        CUdeviceptr p;
        char text[64] = "text", back[64] = "";
        OK(cuMemAlloc_v2(&p, 1 + (size_t)i * 1000));
        OK(cuMemcpyHtoDAsync_v2(p, text, i ? sizeof(text) : 1, s));
        OK(launch(full, 1, s));
        OK(cuMemcpyDtoHAsync_v2(back, p, i ? sizeof(text) : 1, s));
        OK(cuStreamSynchronize(s));
        CHECK(back[0] == 't');
        OK(cuMemFree_v2(p));
    }
    OK(cuStreamDestroy_v2(s));
    return NULL;
}

static void body_threads(void)
{
    pthread_t t[6];
    size_t before, after;
    CUcontext c = use_device(0);
    OK(cuMemGetInfo_v2(&before, NULL));
    for (int i = 0; i < 6; i++)
        CHECK(pthread_create(&t[i], NULL, thread_body, c) == 0);
    for (int i = 0; i < 6; i++)
        pthread_join(t[i], NULL);
    OK(cuMemGetInfo_v2(&after, NULL));
    CHECK(before == after);
}

static void test_threads(void **state)
{
    (void)state;
    scenario("2xt4", NULL, true, body_threads);
}

static void body_no_cards(void)
{
    CHECK(cuInit(0) == *(const CUresult *)expected);
    int count;
    CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
}

static void body_unset(void)
{
    unsetenv(SIMGPU_ENV);
    body_no_cards();
}

static void body_damaged(void)
{
    CHECK(truncate(getenv(SIMGPU_ENV), 100) == 0);
    body_no_cards();
}

static void test_no_cards(void **state)
{
    (void)state;
    int code = CUDA_ERROR_NO_DEVICE;
    expected = &code;
    scenario("2xt4", NULL, false, body_unset);
    code = CUDA_ERROR_UNKNOWN;
    scenario("2xt4", NULL, false, body_damaged);
}

int main(void)
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),      cmocka_unit_test(test_visible),          cmocka_unit_test(test_memory),
        cmocka_unit_test(test_heap),         cmocka_unit_test(test_two_processes),    cmocka_unit_test(test_killed),
        cmocka_unit_test(test_virtual_time), cmocka_unit_test(test_default_stream),   cmocka_unit_test(test_telemetry),
        cmocka_unit_test(test_account),      cmocka_unit_test(test_neighbour),        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_contexts),     cmocka_unit_test(test_get_proc_address), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_no_cards),
    };
    return test_run("cuda_sim", tests);
}
