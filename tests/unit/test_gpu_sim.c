/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery, topology and telemetry on simulated cards, through the NVML code that real cards go
 * through; and what happens when the library or the state file is not as it should be. REQ: E1,
 * REQ: H3
 */
#include "test.h"

#include "tests/sim_fixture.h"

#include "base/mem.h"
#include "gpu/preset.h"
#include "gpu/telemetry.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static struct gpu_inventory inv;
static struct preset preset;
static const char *const presets[] = {"dgx-a100", "dgx-h100", "hgx-h200", "hgx-b200", "4xl40s", "2xt4", "mixed"};

static void open_nvml(struct nvml *n)
{
    struct err e = {0};
    if (nvml_open(NVML_PATH, n, &e) != 0)
        fail_msg("%s", e.text);
}

static void check_card(uint32_t i)
{
    const struct preset_model *m = &preset.models[preset.gpus[i].model];
    const struct inventory_gpu *g = &inv.gpus[i];
    char uuid[48], model[INVENTORY_MODEL_SIZE];
    preset_uuid(preset.name, i, uuid);
    gpu_short_model(m->name, model);
    assert_int_equal(g->index, i);
    assert_string_equal(g->uuid, uuid);
    assert_string_equal(g->name, m->name);
    assert_string_equal(g->model, model);
    assert_int_equal(g->mem_mib, m->mem_mib);
    assert_int_equal(g->mem_usable_mib, m->mem_mib - m->reserved_mib);
    assert_int_equal(g->minor, i);
    assert_int_equal(g->numa, preset.gpus[i].numa);
    assert_int_equal(g->cc_major, m->cc_major);
    assert_int_equal(g->cc_minor, m->cc_minor);
    assert_int_equal(g->power_limit_w, m->power_limit_w);
    assert_int_equal(g->mig_capable, m->mig);
    assert_false(g->mig_enabled);
    assert_int_equal(strlen(g->serial), 13);
    assert_int_equal(strlen(g->bus_id), 16);
}

/* Each preset is found as it is written; the matrix is equal, cell by cell and as text. */
static void test_discovery(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(presets) / sizeof(presets[0]); k++) {
        struct sim_fixture f;
        struct nvml n;
        struct err e = {0};
        char path[PATH_MAX];
        sim_begin(&f, presets[k]);
        snprintf(path, sizeof(path), "%s/%s.yaml", PRESETS_DIR, presets[k]);
        assert_int_equal(preset_load(path, &preset, &e), 0);
        open_nvml(&n);
        assert_true(n.simulated);
        if (inventory_read(&n, &inv, &e) != 0)
            fail_msg("%s", e.text);
        assert_true(inv.simulated);
        assert_int_equal(inv.cuda_version, preset.cuda_version);
        assert_int_equal(inv.gpus_len, preset.gpus_len);
        for (uint32_t i = 0; i < inv.gpus_len; i++)
            check_card(i);
        assert_memory_equal(&inv.topo, &preset.topo, sizeof(inv.topo));
        struct strbuf a = {0}, b = {0};
        topo_format(&inv.topo, &a);
        topo_format(&preset.topo, &b);
        assert_string_equal(strbuf_str(&a), strbuf_str(&b));
        strbuf_done(&a);
        strbuf_done(&b);
        nvml_close(&n);
        sim_end(&f);
    }
}

static void test_islands(void **state)
{
    (void)state;
    struct sim_fixture f;
    struct nvml n;
    sim_begin(&f, "dgx-a100");
    open_nvml(&n);
    assert_int_equal(inventory_read(&n, &inv, NULL), 0);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(inv.gpus[i].island, 0);
    nvml_close(&n);
    sim_end(&f);
    sim_begin(&f, "mixed");
    open_nvml(&n);
    assert_int_equal(inventory_read(&n, &inv, NULL), 0);
    static const uint8_t islands[] = {0, 0, 1, 2, 3};
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(inv.gpus[i].island, islands[i]);
    nvml_close(&n);
    sim_end(&f);
}

/* The process's entry on a card, or NULL. */
static const struct telemetry_process *process_on(const struct telemetry *t, uint32_t gpu, pid_t pid)
{
    for (size_t i = 0; i < t->processes_len; i++)
        if (t->processes[i].gpu == gpu && t->processes[i].pid == (uint32_t)pid)
            return &t->processes[i];
    return NULL;
}

/* Samples until the process is busy on the card at this share (the window must fill), for at most
 * ten seconds. */
static void await_load(const struct nvml *n, struct telemetry *t, uint32_t gpu, pid_t pid, int sm_pct)
{
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(telemetry_sample(n, &inv, t, NULL), 0);
        const struct telemetry_process *p = process_on(t, gpu, pid);
        if (p && p->sm_pct >= sm_pct - 1 && p->sm_pct <= sm_pct + 1)
            return;
        sim_sleep_ms(10);
    }
    fail_msg("the load did not show");
}

/* REQ: E1. A process's load shows on its card, for it and in total, and is gone with the process at
 * once. */
static void test_load(void **state)
{
    (void)state;
    struct sim_fixture f;
    struct nvml n;
    struct telemetry t = {0};
    sim_begin(&f, "2xt4");
    open_nvml(&n);
    assert_int_equal(inventory_read(&n, &inv, NULL), 0);
    assert_int_equal(telemetry_sample(&n, &inv, &t, NULL), 0);
    assert_int_equal(t.processes_len, 0);
    assert_int_equal(t.gpus[0].util_pct, 0);
    assert_int_equal(t.gpus[0].mem_used_mib, 0);
    assert_int_equal(t.gpus[0].power_w, 10);
    assert_non_null(strstr(t.source, "simulated"));

    pid_t one = sim_spawn((const char *[]){"--gpu", "1", "--sm", "50", "--mem", "4GiB", NULL});
    pid_t two = sim_spawn((const char *[]){"--gpu", inv.gpus[1].uuid, "--sm", "30", "--mem", "1G", NULL});
    await_load(&n, &t, 1, one, 50);
    await_load(&n, &t, 1, two, 30);
    /* Both have begun: after the length of the window it is full of them. */
    sim_sleep_ms(250);
    assert_int_equal(telemetry_sample(&n, &inv, &t, NULL), 0);
    assert_int_equal(t.processes_len, 2);
    assert_int_equal(process_on(&t, 1, one)->sm_pct, 50);
    assert_int_equal(process_on(&t, 1, two)->sm_pct, 30);
    assert_int_equal(process_on(&t, 1, one)->mem_mib, 4096);
    assert_int_equal(process_on(&t, 1, two)->mem_mib, 1024);
    assert_int_equal(t.gpus[1].util_pct, 80);
    assert_int_equal(t.gpus[1].mem_used_mib, 5120);
    assert_in_range(t.gpus[1].power_w, 50, 66);
    assert_in_range(t.gpus[1].temp_c, 60, 75);
    assert_int_equal(t.gpus[0].util_pct, 0);

    int status = sim_kill(one, SIGKILL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(telemetry_sample(&n, &inv, &t, NULL), 0);
    assert_null(process_on(&t, 1, one));
    assert_int_equal(t.gpus[1].mem_used_mib, 1024);
    assert_int_equal(t.gpus[1].util_pct, 30);
    status = sim_kill(two, SIGTERM);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(telemetry_sample(&n, &inv, &t, NULL), 0);
    assert_int_equal(t.processes_len, 0);
    assert_int_equal(t.gpus[1].util_pct, 0);
    assert_int_equal(t.gpus[1].mem_used_mib, 0);
    telemetry_done(&t);
    nvml_close(&n);
    sim_end(&f);
}

/* A killed process that nobody has waited for is a zombie: dead all the same. */
static void test_zombie(void **state)
{
    (void)state;
    struct sim_fixture f;
    struct nvml n;
    struct telemetry t = {0};
    sim_begin(&f, "2xt4");
    open_nvml(&n);
    assert_int_equal(inventory_read(&n, &inv, NULL), 0);
    pid_t pid = sim_spawn((const char *[]){"--gpu", "0", "--mem", "8GiB", NULL});
    await_load(&n, &t, 0, pid, 100);
    kill(pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(telemetry_sample(&n, &inv, &t, NULL), 0);
    assert_int_equal(t.processes_len, 0);
    assert_int_equal(t.gpus[0].mem_used_mib, 0);
    waitpid(pid, NULL, 0);
    telemetry_done(&t);
    nvml_close(&n);
    sim_end(&f);
}

/* More processes than one list is asked for at first, and the daemon's restart keeps their loads.
 */
static void test_many_and_kept(void **state)
{
    (void)state;
    struct sim_fixture f;
    struct nvml n;
    struct telemetry t = {0};
    struct stat before, after;
    pid_t pids[70];
    sim_begin(&f, "2xt4");
    for (int i = 0; i < 70; i++)
        pids[i] = sim_spawn((const char *[]){"--gpu", "0", "--sm", "1", "--mem", "100", NULL});
    open_nvml(&n);
    assert_int_equal(inventory_read(&n, &inv, NULL), 0);
    for (int i = 0; i < 70; i++)
        await_load(&n, &t, 0, pids[i], 1);
    assert_int_equal(t.processes_len, 70);
    assert_int_equal(t.gpus[0].mem_used_mib, 7000);
    for (size_t i = 1; i < t.processes_len; i++)
        assert_true(t.processes[i].pid > t.processes[i - 1].pid);

    assert_int_equal(stat(f.state, &before), 0);
    assert_int_equal(sim_setup_create(PRESETS_DIR "/2xt4.yaml", f.dir, NULL), 0);
    assert_int_equal(stat(f.state, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(sim_setup_create(PRESETS_DIR "/4xl40s.yaml", f.dir, NULL), 0);
    assert_int_equal(stat(f.state, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
    for (int i = 0; i < 70; i++)
        sim_kill(pids[i], SIGKILL);
    telemetry_done(&t);
    nvml_close(&n);
    sim_end(&f);
}

/* The program holds the load while a command runs, passes on its status, and refuses what it can't
 * read. */
static void test_simload(void **state)
{
    (void)state;
    struct sim_fixture f;
    sim_begin(&f, "2xt4");
    static const struct {
        const char *words[12];
        int code;
    } cases[] = {
        {{"--sm", "10", "--", "sh", "-c", "exit 7", NULL}, 7},
        {{"--", "sh", "-c", "kill -9 $$", NULL}, 137},
        {{"--", "/nonexistent/command", NULL}, 127},
        {{"--for", "50ms", NULL}, 0},
        {{"--for", "0.05", "--", "sleep", "100", NULL}, 143},
        {{"--mem", "16GiB", NULL}, 1},
        {{"--mem", "-1", NULL}, 2},
        {{"--mem", "1X", NULL}, 2},
        {{"--sm", "101", NULL}, 2},
        {{"--sm", "nan", NULL}, 2},
        {{"--for", "1e9", NULL}, 2},
        {{"--gpu", "2", NULL}, 2},
        {{"--gpu", "0,0", NULL}, 2},
        {{"--gpu", "GPU-zzz", NULL}, 2},
        {{"--what", NULL}, 2},
    };
    fflush(stdout);
    int old = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = 0;
        waitpid(sim_spawn(cases[i].words), &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != cases[i].code)
            fail_msg("case %zu: status %#x instead of code %d", i, (unsigned)status, cases[i].code);
    }
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    int status = 0;
    waitpid(sim_spawn((const char *[]){"--for", "1ms", NULL}), &status, 0);
    assert_int_equal(WEXITSTATUS(status), 2);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv(SIMGPU_ENV);
    waitpid(sim_spawn((const char *[]){"--for", "1ms", NULL}), &status, 0);
    assert_int_equal(WEXITSTATUS(status), 1);
    dup2(old, 2);
    close(old);
    close(null);
    sim_end(&f);
}

static void test_no_library(void **state)
{
    (void)state;
    struct nvml n;
    struct err e = {0};
    assert_int_equal(nvml_open("/nonexistent/libnvidia-ml.so.1", &n, &e), -ENOENT);
    assert_true(e.text[0] != 0);
    assert_null(n.library);
    nvml_close(&n);
    assert_int_equal(nvml_open(NVML_LACKING, &n, &e), -ENOSYS);
    assert_non_null(strstr(e.text, "nvmlShutdown"));
}

/* A library with the necessary functions only: one card, all else unknown. */
static void test_old_library(void **state)
{
    (void)state;
    struct nvml n;
    struct err e = {0};
    struct telemetry t = {0};
    if (nvml_open(NVML_OLD, &n, &e) != 0)
        fail_msg("%s", e.text);
    assert_false(n.simulated);
    assert_int_equal(inventory_read(&n, &inv, &e), 0);
    assert_int_equal(inv.gpus_len, 2);
    assert_string_equal(inv.gpus[1].model, "K80");
    assert_int_equal(inv.gpus[1].mem_mib, 11441);
    assert_int_equal(inv.gpus[1].minor, -1);
    assert_int_equal(inv.gpus[1].numa, -1);
    assert_int_equal(inv.topo.link[0][1].cls, TOPO_UNKNOWN);
    assert_int_equal(telemetry_sample(&n, &inv, &t, &e), 0);
    assert_int_equal(t.gpus[0].util_pct, TELEMETRY_NONE);
    assert_int_equal(t.gpus[0].mem_used_mib, 62);
    assert_int_equal(t.gpus[0].power_w, TELEMETRY_NONE);
    assert_string_equal(t.source, "nvml utilization");
    telemetry_done(&t);
    nvml_close(&n);
}

static void overwrite(const char *path, off_t at, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, at), (ssize_t)len);
    close(fd);
}

static int open_code(void)
{
    struct nvml n;
    struct err e = {0};
    int rc = nvml_open(NVML_PATH, &n, &e);
    assert_true(rc == 0 || e.text[0]);
    nvml_close(&n);
    return rc;
}

static void test_bad_state_file(void **state)
{
    (void)state;
    struct sim_fixture f;
    uint32_t number = 99;
    sim_begin(&f, "2xt4");
    setenv(SIMGPU_ENV, "/nonexistent/simgpu.state", 1);
    assert_int_equal(open_code(), -ENODEV);
    unsetenv(SIMGPU_ENV);
    assert_int_equal(open_code(), -ENODEV);
    setenv(SIMGPU_ENV, f.dir, 1);
    assert_int_equal(open_code(), -EIO);
    setenv(SIMGPU_ENV, f.state, 1);
    overwrite(f.state, offsetof(struct simgpu_header, version), &number, sizeof(number));
    assert_int_equal(open_code(), -EPROTO);
    number = SIMGPU_VERSION;
    overwrite(f.state, offsetof(struct simgpu_header, version), &number, sizeof(number));
    number = 3;
    overwrite(f.state, offsetof(struct simgpu_header, cards_len), &number, sizeof(number));
    assert_int_equal(open_code(), -EIO);
    number = 2;
    overwrite(f.state, offsetof(struct simgpu_header, cards_len), &number, sizeof(number));
    char unended[96];
    memset(unended, 'x', sizeof(unended));
    off_t name = (off_t)(sizeof(struct simgpu_header) + offsetof(struct simgpu_card, name));
    overwrite(f.state, name, unended, sizeof(unended));
    assert_int_equal(open_code(), -EIO);
    /* Whatever is there is replaced by a good one. */
    assert_int_equal(sim_setup_create(PRESETS_DIR "/2xt4.yaml", f.dir, NULL), 0);
    assert_int_equal(open_code(), 0);
    for (off_t size = 0; size < 200000; size += 40000) {
        assert_int_equal(sim_setup_create(PRESETS_DIR "/2xt4.yaml", f.dir, NULL), 0);
        assert_int_equal(truncate(f.state, size), 0);
        assert_int_equal(open_code(), -EIO);
    }
    overwrite(f.state, 0, "XXXXXXXX", 8);
    assert_int_equal(open_code(), -EIO);
    sim_end(&f);
}

/* A card that fell off the bus: the others are there under their numbers; in use it is said to be
 * lost. */
static void test_lost_card(void **state)
{
    (void)state;
    struct sim_fixture f;
    struct nvml n;
    struct err e = {0};
    struct telemetry t = {0};
    uint32_t failed = 1;
    off_t cards = (off_t)sizeof(struct simgpu_header);
    off_t at = (off_t)offsetof(struct simgpu_card, failed);
    sim_begin(&f, "dgx-a100");
    open_nvml(&n);
    assert_int_equal(inventory_read(&n, &inv, NULL), 0);
    assert_int_equal(inv.left_out, 0);
    overwrite(f.state, cards + 3 * (off_t)sizeof(struct simgpu_card) + at, &failed, sizeof(failed));
    assert_int_equal(telemetry_sample(&n, &inv, &t, NULL), 0);
    assert_true(t.gpus[3].lost);
    assert_int_equal(t.gpus[3].util_pct, TELEMETRY_NONE);
    assert_false(t.gpus[4].lost);
    assert_int_equal(inventory_read(&n, &inv, NULL), 0);
    assert_int_equal(inv.gpus_len, 7);
    assert_int_equal(inv.left_out, 1);
    assert_non_null(strstr(inv.left_out_why, "card 3"));
    assert_int_equal(inv.gpus[3].index, 4);
    assert_string_equal(inv.topo.dev[3].name, "GPU4");
    assert_int_equal(inv.topo.link[3][2].nvlinks, 12);
    assert_int_equal(inv.topo.devices_len, 17);
    assert_int_equal(inv.topo.link[3][7 + 4].cls, TOPO_PXB); /* GPU4 and NIC4 */
    struct strbuf text = {0};
    static struct topo again;
    topo_format(&inv.topo, &text);
    assert_int_equal(topo_parse(text.data, text.len, &again, NULL), 0);
    assert_string_equal(again.dev[6].name, "GPU7");
    strbuf_done(&text);
    for (int i = 0; i < 8; i++)
        overwrite(f.state, cards + i * (off_t)sizeof(struct simgpu_card) + at, &failed, sizeof(failed));
    assert_int_equal(inventory_read(&n, &inv, &e), -EIO);
    assert_non_null(strstr(e.text, "card 0"));
    telemetry_done(&t);
    nvml_close(&n);
    sim_end(&f);
}

static void test_setup_errors(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(sim_setup_create("/nonexistent/p.yaml", "/tmp", &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent/p.yaml"));
    assert_int_equal(sim_setup_create(PRESETS_DIR "/2xt4.yaml", "/nonexistent/dir", &e), -ENOENT);
    assert_int_equal(sim_setup_create(PRESETS_DIR "/meson.build", "/tmp", &e), -EINVAL);
    assert_non_null(strstr(e.text, "line "));
}

/* Garbage in the part that changes: figures may be nonsense, within bounds, and nothing else
 * happens. */
static void test_garbage_slots(void **state)
{
    (void)state;
    struct sim_fixture f;
    struct nvml n;
    struct telemetry t = {0};
    sim_begin(&f, "2xt4");
    open_nvml(&n);
    assert_int_equal(inventory_read(&n, &inv, NULL), 0);
    struct simgpu_slot slot;
    memset(&slot, 0xff, sizeof(slot));
    slot.pid = (uint32_t)getpid();
    uint32_t high = 400;
    off_t card = (off_t)sizeof(struct simgpu_header), slots = card + 2 * (off_t)sizeof(struct simgpu_card);
    overwrite(f.state, card + (off_t)offsetof(struct simgpu_card, slots_high), &high, sizeof(high));
    for (int i = 0; i < 400; i++)
        overwrite(f.state, slots + i * (off_t)sizeof(slot), &slot, sizeof(slot));
    assert_int_equal(telemetry_sample(&n, &inv, &t, NULL), 0);
    assert_int_equal(t.processes_len, 0); /* the start time is wrong */
    assert_int_equal(t.gpus[0].util_pct, 0);
    telemetry_done(&t);
    nvml_close(&n);
    sim_end(&f);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct sim_fixture f;
    struct nvml n;
    struct telemetry t = {0};
    sim_begin(&f, "2xt4");
    pid_t pid = sim_spawn((const char *[]){"--gpu", "0", NULL});
    open_nvml(&n);
    int rc = -ENOMEM;
    for (uint64_t k = 1; rc != 0 && k < 20; k++) {
        mem_fail_from(k);
        rc = inventory_read(&n, &inv, NULL);
        mem_fail_from(0);
        assert_true(rc == 0 || rc == -ENOMEM);
    }
    assert_int_equal(rc, 0);
    await_load(&n, &t, 0, pid, 100);
    telemetry_done(&t);
    rc = -ENOMEM;
    for (uint64_t k = 1; rc != 0 && k < 40; k++) {
        mem_fail_from(k);
        rc = telemetry_sample(&n, &inv, &t, NULL);
        mem_fail_from(0);
        assert_true(rc == 0 || rc == -ENOMEM);
    }
    assert_int_equal(rc, 0);
    sim_kill(pid, SIGKILL);
    telemetry_done(&t);
    nvml_close(&n);
    sim_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_discovery),      cmocka_unit_test(test_islands),
        cmocka_unit_test(test_load),           cmocka_unit_test(test_zombie),
        cmocka_unit_test(test_many_and_kept),  cmocka_unit_test(test_simload),
        cmocka_unit_test(test_no_library),     cmocka_unit_test(test_old_library),
        cmocka_unit_test(test_bad_state_file), cmocka_unit_test(test_setup_errors),
        cmocka_unit_test(test_lost_card),      cmocka_unit_test(test_garbage_slots),
        cmocka_unit_test(test_no_memory),
    };
    return test_run("gpu_sim", tests);
}
