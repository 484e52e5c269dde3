/* SPDX-License-Identifier: Apache-2.0 */
/* Presets: those that ship are sound and are what they claim; bad ones are refused with the line
 * and the reason. */
#include "test.h"

#include "base/mem.h"
#include "base/sys/file.h"
#include "config/cluster_file.h"
#include "gpu/inventory.h"
#include "gpu/preset.h"

#include <errno.h>
#include <string.h>

static struct preset p;

static void load(const char *name)
{
    char path[512];
    struct err e = {0};
    snprintf(path, sizeof(path), "%s/%s.yaml", PRESETS_DIR, name);
    if (preset_load(path, &p, &e) != 0)
        fail_msg("%s", e.text);
    assert_string_equal(p.name, name);
}

static void test_shipped(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t gpus;
        const char *card;
        uint32_t mem_mib;
        uint32_t sms;
        unsigned nvlinks; /* between any two, 0: none */
    } cases[] = {
        {"dgx-a100", 8, "NVIDIA A100-SXM4-80GB", 81920, 108, 12},
        {"dgx-h100", 8, "NVIDIA H100 80GB HBM3", 81559, 132, 18},
        {"hgx-h200", 8, "NVIDIA H200", 143771, 132, 18},
        {"hgx-b200", 8, "NVIDIA B200", 183359, 148, 18},
        {"4xl40s", 4, "NVIDIA L40S", 46068, 142, 0},
        {"2xt4", 2, "Tesla T4", 15360, 40, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        load(cases[i].name);
        assert_int_equal(p.gpus_len, cases[i].gpus);
        for (uint32_t a = 0; a < p.gpus_len; a++) {
            const struct preset_model *m = &p.models[p.gpus[a].model];
            assert_string_equal(m->name, cases[i].card);
            assert_int_equal(m->mem_mib, cases[i].mem_mib);
            assert_int_equal(m->sm_count, cases[i].sms);
            for (uint32_t b = 0; b < a; b++)
                assert_int_equal(p.topo.link[a][b].nvlinks, cases[i].nvlinks);
        }
    }
    load("mixed");
    assert_int_equal(p.gpus_len, 5);
    assert_int_equal(p.models_len, 3);
    assert_int_equal(p.topo.link[0][1].nvlinks, 12);
    assert_int_equal(p.pcie[0][1], TOPO_PHB);
    assert_int_equal(p.topo.link[2][3].cls, TOPO_PIX);
}

/* A node of a simulated cluster is the machine that the preset of the same name simulates. */
static void test_same_as_in_clusters(void **state)
{
    (void)state;
    static const char *const names[] = {"dgx-a100", "dgx-h100", "hgx-h200", "hgx-b200", "4xl40s", "2xt4"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct cluster_file c;
        struct err e = {0};
        char text[100];
        char model[INVENTORY_MODEL_SIZE];
        snprintf(text, sizeof(text), "nodes: [{name: n, preset: %s}]", names[i]);
        if (cluster_file_parse(text, strlen(text), "test", &c, &e) != 0)
            fail_msg("%s", e.text);
        load(names[i]);
        const struct cluster_node *n = &c.nodes[0];
        const struct preset_model *m = &p.models[p.gpus[0].model];
        gpu_short_model(m->name, model);
        assert_string_equal(n->gpu_model, model);
        assert_int_equal(n->gpus, p.gpus_len);
        assert_int_equal(n->gpu_mem_mib, m->mem_mib);
        assert_int_equal(n->cpu_milli, p.host_cpus * 1000);
        assert_int_equal(n->mem_mib, p.host_mem_mib);
        assert_int_equal(n->nvlinks, p.topo.link[0][1].nvlinks);
        cluster_file_done(&c);
    }
}

static void test_uuids(void **state)
{
    (void)state;
    char a[48], b[48];
    preset_uuid("dgx-a100", 0, a);
    preset_uuid("dgx-a100", 0, b);
    assert_string_equal(a, b);
    assert_int_equal(strlen(a), 40);
    assert_int_equal(strspn(a + 4, "0123456789abcdef-"), 36);
    preset_uuid("dgx-a100", 1, b);
    assert_string_not_equal(a, b);
    preset_uuid("dgx-h100", 0, b);
    assert_string_not_equal(a, b);
}

/* One change to a good preset. */
struct change {
    const char *from;
    const char *to;
    const char *says;
};

static const struct change changes[] = {
    {"format: 1", "format: 2", "format 1"},
    {"format: 1\n", "", "lacks the key \"format\""},
    {"name: 2xt4", "name: a/b", "are allowed"},
    {"name: 2xt4", "name: 2xt4\nname: again", "twice"},
    {"name: 2xt4", "colour: red\nname: 2xt4", "unknown key \"colour\""},
    {"cuda: 12.2", "cuda: 12", "a version such as"},
    {"  cpus: 64", "  cpus: 1025", "1025"},
    {"  memory: 256 GiB", "  memory: -1", "memory"},
    {"  memory: 256 GiB", "  memory: nan", "memory"},
    {"  memory-mib: 15360", "  memory-mib: 99999999999999999999", "memory-mib"},
    {"  memory-mib: 15360", "  memory-mib: 15360 ", "white space"},
    {"  memory-mib: 15360", "\tmemory-mib: 15360", "a tab"},
    {"  memory-mib: 15360", "   memory-mib: 15360", "indented"},
    {"  reserved-mib: 444", "  reserved-mib: 15300", "leave nothing"},
    {"  ecc: yes", "  ecc: true", "yes or no"},
    {"  capability: 7.5", "  capability: 7", "capability"},
    {"  pci-id: 1eb8", "  pci-id: 0x1eb8", "hexadecimal"},
    {"  power-idle-w: 10", "  power-idle-w: 71", "above power-limit-w"},
    {"gpu 1:", "gpu 2:", "1 is next"},
    {"gpu 1:", "gpux 1:", "unknown section"},
    {"gpu 1:", "cards:", "unknown section"},
    {"  bus: 00000000:AF:00.0", "  bus: 00000000:3B:00.0", "same bus"},
    {"  bus: 00000000:AF:00.0", "  bus: AF:00.0", "bus id"},
    {"  numa: 1", "  numa: 64", "numa"},
    {"  cpus: 16-31,48-63", "  cpus: 16-", "list such as"},
    {"  cpus: 16-31,48-63", "  cpus: 2000", "list such as"},
    {"  model: t4\n  bus: 00000000:AF", "  model: t5\n  bus: 00000000:AF", "no such model"},
    {"  GPU1: SYS  X", "", "row of GPU1 is missing"},
    {"  GPU1: SYS  X", "  GPU1: SYS  X SYS", "2 cells"},
    {"  GPU1: SYS  X", "  GPU1: SYS", "1 cells instead of 2"},
    {"  GPU1: SYS  X", "  GPU1: PHB  X", "different things"},
    {"  GPU1: SYS  X", "  GPU1: X    X", "diagonal"},
    {"  GPU1: SYS  X", "  GPU1: SYS  X\n  GPU1: SYS  X", "twice"},
    {"  GPU1: SYS  X", "  GPU1: SYS  X\n  GPU9: SYS  X", "no device"},
    {"  GPU0: X    SYS\n  GPU1: SYS  X", "  GPU0: X    NV2\n  GPU1: NV2  X", "2 NVLinks, but the model t4 has 0"},
    {"links:", "links:\n  GPU0 X SYS", "key: value"},
    {"links:", "host:", "twice"},
};

static void test_refused(void **state)
{
    (void)state;
    CLEANUP_FREE char *good = NULL;
    size_t len;
    assert_int_equal(file_read(PRESETS_DIR "/2xt4.yaml", PRESET_FILE_MAX, &good, &len, NULL), 0);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const struct change *c = &changes[i];
        struct err e = {0};
        const char *at = strstr(good, c->from);
        if (!at)
            fail_msg("case %zu: \"%s\" is not in the preset", i, c->from);
        char *text = malloc(len + 256);
        int n = snprintf(text, len + 256, "%.*s%s%s", (int)(at - good), good, c->to, at + strlen(c->from));
        memset(&p, 0x5a, sizeof(p));
        int rc = preset_parse(text, (size_t)n, &p, &e);
        free(text);
        if (rc != -EINVAL || !strstr(e.text, c->says))
            fail_msg("case %zu (%s): %d \"%s\" does not say \"%s\"", i, c->to, rc, e.text, c->says);
        assert_int_equal(p.gpus_len, 0x5a5a5a5a);
    }
}

/* A preset cut at any byte is refused, or stands for as many cards as it names; never a crash. */
static void test_truncated(void **state)
{
    (void)state;
    CLEANUP_FREE char *good = NULL;
    size_t len;
    assert_int_equal(file_read(PRESETS_DIR "/mixed.yaml", PRESET_FILE_MAX, &good, &len, NULL), 0);
    size_t accepted = 0;
    for (size_t n = 0; n < len; n++) {
        struct err e = {0};
        int rc = preset_parse(good, n, &p, &e);
        if (rc == 0)
            accepted++;
        else
            assert_true(rc == -EINVAL && e.text[0]);
    }
    /* Only without the last newline, or before the optional section at the end. */
    assert_true(accepted >= 1 && accepted < 90);
}

static void test_hostile(void **state)
{
    (void)state;
    struct err e = {0};
    static char big[PRESET_FILE_MAX + 2];
    memset(big, 'a', sizeof(big));
    assert_int_equal(preset_parse(big, sizeof(big), &p, &e), -EINVAL);
    assert_int_equal(preset_parse(big, 5000, &p, &e), -EINVAL);
    memset(big, '\n', sizeof(big));
    assert_int_equal(preset_parse(big, 200000, &p, &e), -EINVAL);
    assert_int_equal(preset_parse("format: 1\0\n", 11, &p, &e), -EINVAL);
    assert_int_equal(preset_parse("\xff\xfe: 1\n", 7, &p, &e), -EINVAL);
    assert_int_equal(preset_load("/nonexistent/preset", &p, &e), -ENOENT);
    assert_int_equal(preset_load("/dev/zero", &p, &e), -EFBIG);
    assert_true(strstr(e.text, "/dev/zero") != NULL);
}

static void test_find(void **state)
{
    (void)state;
    struct err e = {0};
    char *path = NULL;
    assert_int_equal(preset_find("2xt4", PRESETS_DIR, &path, &e), 0);
    assert_string_equal(path, PRESETS_DIR "/2xt4.yaml");
    mem_free(path);
    assert_int_equal(preset_find(PRESETS_DIR "/mixed.yaml", "/nonexistent", &path, &e), 0);
    assert_string_equal(path, PRESETS_DIR "/mixed.yaml");
    mem_free(path);
    assert_int_equal(preset_find("dgx-a10", PRESETS_DIR, &path, &e), -ENOENT);
    assert_non_null(strstr(e.text, "there are 2xt4, 4xl40s, dgx-a100"));
    assert_int_equal(preset_find("dgx-a100", "/nonexistent", &path, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent"));
    assert_int_equal(preset_find("./none.yaml", PRESETS_DIR, &path, &e), -ENOENT);
    assert_non_null(strstr(e.text, "./none.yaml"));
}

static void test_no_memory(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 6; n++) {
        struct err e = {0};
        mem_fail_from(n);
        int rc = preset_load(PRESETS_DIR "/2xt4.yaml", &p, &e);
        mem_fail_from(0);
        if (rc == 0)
            return;
        assert_int_equal(rc, -ENOMEM);
    }
    fail_msg("loading never succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped), cmocka_unit_test(test_same_as_in_clusters), cmocka_unit_test(test_uuids),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_truncated),           cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_find),    cmocka_unit_test(test_no_memory),
    };
    return test_run("preset", tests);
}
