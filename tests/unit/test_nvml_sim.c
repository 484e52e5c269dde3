/* SPDX-License-Identifier: Apache-2.0 */
/* The NVML stand-in as a library: life cycle, error codes, size protocols, links, threads. REQ: H3
 */
#include "test.h"

#include "tests/sim_fixture.h"

#include "abi/nvml_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

static void *library;

/* The function of that name, with its type. */
#define NV(name) ((__typeof__(name) *)symbol(#name))

static void *symbol(const char *name)
{
    void *f = dlsym(library, name);
    if (!f)
        fail_msg("the library lacks %s", name);
    return f;
}

static nvmlDevice_t card(unsigned index)
{
    nvmlDevice_t d = NULL;
    assert_int_equal(NV(nvmlDeviceGetHandleByIndex_v2)(index, &d), NVML_SUCCESS);
    return d;
}

static void test_life_cycle(void **state)
{
    (void)state;
    struct sim_fixture f;
    unsigned count = 0;
    char text[80];
    nvmlDevice_t d;
    sim_begin(&f, "2xt4");
    assert_int_equal(NV(nvmlShutdown)(), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(NV(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(NV(nvmlSystemGetDriverVersion)(text, sizeof(text)), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(NV(nvmlInitWithFlags)(64), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NV(nvmlInit_v2)(), NVML_SUCCESS);
    assert_int_equal(NV(nvmlInit)(), NVML_SUCCESS);
    assert_int_equal(NV(nvmlShutdown)(), NVML_SUCCESS);
    assert_int_equal(NV(nvmlDeviceGetCount)(&count), NVML_SUCCESS);
    assert_int_equal(count, 2);
    d = card(1);
    assert_int_equal(NV(nvmlShutdown)(), NVML_SUCCESS);
    assert_int_equal(NV(nvmlDeviceGetName)(d, text, sizeof(text)), NVML_ERROR_UNINITIALIZED);
    /* The same file again: handles of before are good. */
    assert_int_equal(NV(nvmlInit_v2)(), NVML_SUCCESS);
    assert_int_equal(NV(nvmlDeviceGetName)(d, text, sizeof(text)), NVML_SUCCESS);
    assert_string_equal(text, "Tesla T4");
    assert_int_equal(NV(nvmlShutdown)(), NVML_SUCCESS);
    assert_string_equal(NV(nvmlErrorString)(NVML_ERROR_INSUFFICIENT_SIZE), "Insufficient Size");
    assert_string_equal(NV(nvmlErrorString)((nvmlReturn_t)12345), "Unknown Error");
    sim_end(&f);
}

static void test_arguments(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_begin(&f, "dgx-a100");
    assert_int_equal(NV(nvmlInit_v2)(), NVML_SUCCESS);
    char text[96];
    unsigned value;
    nvmlDevice_t d = card(0), other = NULL;
    assert_int_equal(NV(nvmlDeviceGetHandleByIndex_v2)(8, &other), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NV(nvmlDeviceGetHandleByIndex_v2)(0, NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NV(nvmlDeviceGetMinorNumber)(NULL, &value), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NV(nvmlDeviceGetMinorNumber)((nvmlDevice_t)(void *)text, &value), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NV(nvmlDeviceGetMinorNumber)(d, NULL), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NV(nvmlDeviceGetUUID)(d, text, 40), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(NV(nvmlDeviceGetUUID)(d, text, 41), NVML_SUCCESS);
    assert_int_equal(NV(nvmlDeviceGetHandleByUUID)(text, &other), NVML_SUCCESS);
    assert_ptr_equal(other, d);
    assert_int_equal(NV(nvmlDeviceGetHandleByUUID)("GPU-none", &other), NVML_ERROR_NOT_FOUND);
    nvmlPciInfo_t pci;
    assert_int_equal(NV(nvmlDeviceGetPciInfo_v3)(card(3), &pci), NVML_SUCCESS);
    assert_string_equal(pci.busId, "00000000:4E:00.0");
    assert_string_equal(pci.busIdLegacy, "0000:4E:00.0");
    assert_int_equal(pci.pciDeviceId, 0x20b210de);
    static const char *const same[] = {"00000000:4E:00.0", "0000:4e:00.0", "4E:00.0", "4e:0"};
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        assert_int_equal(NV(nvmlDeviceGetHandleByPciBusId_v2)(same[i], &other), NVML_SUCCESS);
        assert_ptr_equal(other, card(3));
    }
    assert_int_equal(NV(nvmlDeviceGetHandleByPciBusId_v2)("0000:4f:00.0", &other), NVML_ERROR_NOT_FOUND);
    assert_int_equal(NV(nvmlDeviceGetHandleByPciBusId_v2)("four", &other), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NV(nvmlDeviceGetHandleByPciBusId_v2)("4E:00.0x", &other), NVML_ERROR_INVALID_ARGUMENT);
    nvmlMemory_v2_t memory = {.version = 1};
    assert_int_equal(NV(nvmlDeviceGetMemoryInfo_v2)(d, &memory), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    unsigned current = 9, pending = 9;
    assert_int_equal(NV(nvmlDeviceGetMigMode)(d, &current, &pending), NVML_SUCCESS);
    assert_int_equal(current, NVML_DEVICE_MIG_DISABLE);
    nvmlGpmSupport_t gpm = {.version = 1, .isSupportedDevice = 1};
    nvmlGpmSample_t sample;
    assert_int_equal(NV(nvmlGpmQueryDeviceSupport)(d, &gpm), NVML_SUCCESS);
    assert_int_equal(gpm.isSupportedDevice, 0);
    assert_int_equal(NV(nvmlGpmSampleAlloc)(&sample), NVML_SUCCESS);
    assert_int_equal(NV(nvmlGpmSampleGet)(d, sample), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(NV(nvmlGpmSampleFree)(sample), NVML_SUCCESS);
    assert_int_equal(NV(nvmlDeviceGetNumaNodeId)(d, &value), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(NV(nvmlDeviceGetFanSpeed)(d, &value), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(NV(nvmlDeviceSetPersistenceMode)(d, NVML_FEATURE_DISABLED), NVML_ERROR_NO_PERMISSION);
    assert_int_equal(NV(nvmlShutdown)(), NVML_SUCCESS);
    sim_end(&f);
}

/* Lists say how many there are when the room is too small; a process with two slots is one entry.
 */
static void test_lists(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_begin(&f, "2xt4");
    assert_int_equal(NV(nvmlInit_v2)(), NVML_SUCCESS);
    nvmlDevice_t d = card(0);
    nvmlProcessInfo_t infos[8];
    nvmlProcessUtilizationSample_t samples[8] = {{0}};
    unsigned count = 0;
    assert_int_equal(NV(nvmlDeviceGetComputeRunningProcesses_v3)(d, &count, NULL), NVML_SUCCESS);
    assert_int_equal(count, 0);
    count = 8;
    assert_int_equal(NV(nvmlDeviceGetProcessUtilization)(d, samples, &count, 0), NVML_ERROR_NOT_FOUND);
    pid_t one = sim_spawn((const char *[]){"--gpu", "0", "--sm", "40", "--mem", "1G", NULL});
    pid_t two = sim_spawn((const char *[]){"--gpu", "0", "--sm", "40", "--mem", "2G", NULL});
    for (int i = 0; i < 1000; i++) {
        count = 0;
        nvmlReturn_t rc = NV(nvmlDeviceGetComputeRunningProcesses_v3)(d, &count, NULL);
        if (rc == NVML_ERROR_INSUFFICIENT_SIZE && count == 2)
            break;
        sim_sleep_ms(5);
    }
    assert_int_equal(count, 2);
    /* The window fills; on a busy machine the processes may need a while to begin. */
    samples[0].smUtil = 0;
    for (int i = 0; i < 1000 && (samples[0].smUtil < 40 || samples[1].smUtil < 40); i++) {
        sim_sleep_ms(5);
        count = 8;
        assert_int_equal(NV(nvmlDeviceGetProcessUtilization)(d, samples, &count, 0), NVML_SUCCESS);
    }
    assert_int_equal(samples[0].smUtil, 40);
    assert_int_equal(samples[1].smUtil, 40);
    count = 1;
    assert_int_equal(NV(nvmlDeviceGetComputeRunningProcesses_v3)(d, &count, infos), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(count, 2);
    assert_int_equal(NV(nvmlDeviceGetComputeRunningProcesses_v3)(d, &count, infos), NVML_SUCCESS);
    assert_true((infos[0].pid == (unsigned)one && infos[1].pid == (unsigned)two) ||
                (infos[0].pid == (unsigned)two && infos[1].pid == (unsigned)one));
    assert_true(infos[0].usedGpuMemory + infos[1].usedGpuMemory == 3ull << 30);
    count = 8;
    assert_int_equal(NV(nvmlDeviceGetProcessUtilization)(d, samples, &count, 0), NVML_SUCCESS);
    assert_int_equal(count, 2);
    assert_int_equal(NV(nvmlDeviceGetProcessUtilization)(d, samples, &count, ~0ull), NVML_ERROR_NOT_FOUND);
    nvmlMemory_t memory;
    nvmlMemory_v2_t v2 = {.version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};
    assert_int_equal(NV(nvmlDeviceGetMemoryInfo)(d, &memory), NVML_SUCCESS);
    assert_int_equal(NV(nvmlDeviceGetMemoryInfo_v2)(d, &v2), NVML_SUCCESS);
    assert_true(v2.used == 3ull << 30 && v2.total == 15360ull << 20 && v2.reserved == 444ull << 20);
    assert_true(memory.used == v2.used + v2.reserved && memory.free == memory.total - memory.used);
    sim_kill(one, SIGKILL);
    sim_kill(two, SIGKILL);
    assert_int_equal(NV(nvmlShutdown)(), NVML_SUCCESS);
    sim_end(&f);
}

static void test_links(void **state)
{
    (void)state;
    struct sim_fixture f;
    nvmlEnableState_t active;
    nvmlIntNvLinkDeviceType_t type;
    nvmlPciInfo_t pci, self;
    nvmlGpuP2PStatus_t p2p;
    nvmlDevice_t near[8];
    unsigned count = 8;
    sim_begin(&f, "mixed");
    assert_int_equal(NV(nvmlInit_v2)(), NVML_SUCCESS);
    for (unsigned link = 0; link < 12; link++) {
        assert_int_equal(NV(nvmlDeviceGetNvLinkState)(card(0), link, &active), NVML_SUCCESS);
        assert_int_equal(active, NVML_FEATURE_ENABLED);
        assert_int_equal(NV(nvmlDeviceGetNvLinkRemoteDeviceType)(card(0), link, &type), NVML_SUCCESS);
        assert_int_equal(type, NVML_NVLINK_DEVICE_TYPE_GPU);
        assert_int_equal(NV(nvmlDeviceGetNvLinkRemotePciInfo_v2)(card(0), link, &pci), NVML_SUCCESS);
        assert_int_equal(NV(nvmlDeviceGetPciInfo_v3)(card(1), &self), NVML_SUCCESS);
        assert_string_equal(pci.busId, self.busId);
    }
    assert_int_equal(NV(nvmlDeviceGetNvLinkState)(card(0), 12, &active), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(NV(nvmlDeviceGetNvLinkState)(card(2), 0, &active), NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(NV(nvmlDeviceGetP2PStatus)(card(0), card(1), NVML_P2P_CAPS_INDEX_NVLINK, &p2p), NVML_SUCCESS);
    assert_int_equal(p2p, NVML_P2P_STATUS_OK);
    assert_int_equal(NV(nvmlDeviceGetP2PStatus)(card(0), card(4), NVML_P2P_CAPS_INDEX_READ, &p2p), NVML_SUCCESS);
    assert_int_equal(p2p, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED);
    assert_int_equal(NV(nvmlDeviceGetTopologyNearestGpus)(card(2), NVML_TOPOLOGY_SINGLE, &count, near), NVML_SUCCESS);
    assert_int_equal(count, 1);
    assert_ptr_equal(near[0], card(3));
    assert_int_equal(NV(nvmlShutdown)(), NVML_SUCCESS);
    sim_end(&f);
    sim_begin(&f, "hgx-h200");
    assert_int_equal(NV(nvmlInit_v2)(), NVML_SUCCESS);
    assert_int_equal(NV(nvmlDeviceGetNvLinkRemoteDeviceType)(card(5), 17, &type), NVML_SUCCESS);
    assert_int_equal(type, NVML_NVLINK_DEVICE_TYPE_SWITCH);
    assert_int_equal(NV(nvmlDeviceGetNvLinkRemotePciInfo_v2)(card(5), 17, &pci), NVML_SUCCESS);
    nvmlDevice_t none;
    assert_int_equal(NV(nvmlDeviceGetHandleByPciBusId_v2)(pci.busId, &none), NVML_ERROR_NOT_FOUND);
    assert_int_equal(NV(nvmlShutdown)(), NVML_SUCCESS);
    sim_end(&f);
}

/* Threads that initialise, ask and end at will; run under the thread sanitizer too. */
static void *worker(void *arg)
{
    for (int i = 0; i < 200; i++) {
        unsigned count = 0;
        nvmlDevice_t d;
        nvmlUtilization_t u;
        char text[96];
        if (NV(nvmlInit_v2)() != NVML_SUCCESS || NV(nvmlDeviceGetCount_v2)(&count) != NVML_SUCCESS || count != 8 ||
            NV(nvmlDeviceGetHandleByIndex_v2)((unsigned)i % 8, &d) != NVML_SUCCESS ||
            NV(nvmlDeviceGetUUID)(d, text, sizeof(text)) != NVML_SUCCESS ||
            NV(nvmlDeviceGetUtilizationRates)(d, &u) != NVML_SUCCESS || NV(nvmlShutdown)() != NVML_SUCCESS)
            *(bool *)arg = true;
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct sim_fixture f;
    pthread_t threads[8];
    bool failed[8] = {false};
    sim_begin(&f, "dgx-a100");
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, &failed[i]), 0);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_false(failed[i]);
    }
    assert_int_equal(NV(nvmlShutdown)(), NVML_ERROR_UNINITIALIZED);
    sim_end(&f);
}

int main(void)
{
    library = dlopen(NVML_PATH, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life_cycle), cmocka_unit_test(test_arguments), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_links),      cmocka_unit_test(test_threads),
    };
    return test_run("nvml_sim", tests);
}
