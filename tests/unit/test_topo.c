/* SPDX-License-Identifier: Apache-2.0 */
/* The topology matrix: reading what nvidia-smi printed, printing it again, islands. REQ: E1 */
#include "test.h"

#include "gpu/inventory.h"
#include "gpu/topo.h"

#include <errno.h>
#include <string.h>

static struct topo t;

static int parse(const char *text, struct err *e)
{
    return topo_parse(text, strlen(text), &t, e);
}

static void assert_cell(uint32_t a, uint32_t b, enum topo_class cls, unsigned nvlinks)
{
    assert_int_equal(t.link[a][b].cls, cls);
    assert_int_equal(t.link[a][b].nvlinks, nvlinks);
}

/* Tabs, three columns behind, network cards with a legend, escapes of a terminal. */
static void test_new_driver(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(parse("$ nvidia-smi topo -m\n"
                           "\t\033[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n"
                           "GPU0\t X \tNV18\tPIX\t0-55,112-167\t0\t\tN/A\n"
                           "GPU1\tNV18\t X \tSYS\t56-111,168-223\t1\t\tN/A\n"
                           "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
                           "\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n",
                           &e),
                     0);
    assert_int_equal(t.gpus_len, 2);
    assert_int_equal(t.devices_len, 3);
    assert_cell(0, 1, TOPO_NVLINK, 18);
    assert_cell(0, 2, TOPO_PIX, 0);
    assert_cell(2, 1, TOPO_SYS, 0);
    assert_cell(2, 2, TOPO_SELF, 0);
    assert_string_equal(t.dev[0].cpus, "0-55,112-167");
    assert_string_equal(t.dev[1].numa, "1");
    assert_string_equal(t.dev[1].gpu_numa, "N/A");
    assert_string_equal(t.dev[2].nic, "mlx5_0");
}

/* Spaces for tabs, network cards named in the header, no NUMA columns, SOC for SYS. */
static void test_old_driver(void **state)
{
    (void)state;
    assert_int_equal(parse("        GPU0    GPU1    GPU2    mlx5_0  CPU Affinity\n"
                           "GPU0     X      PIX     SOC     PHB     0-9\n"
                           "GPU1    PIX      X      SOC     PHB     0-9\n"
                           "GPU2    SOC     SOC      X      SOC     10-19\r\n"
                           "mlx5_0  PHB     PHB     SOC      X\n",
                           NULL),
                     0);
    assert_int_equal(t.gpus_len, 3);
    assert_string_equal(t.dev[3].name, "mlx5_0");
    assert_cell(0, 2, TOPO_SYS, 0);
    assert_cell(3, 1, TOPO_PHB, 0);
    assert_string_equal(t.dev[2].cpus, "10-19");
    assert_false(t.has_numa);
}

/* Without any affinity, and with values missing as on some virtual machines. */
static void test_missing_columns(void **state)
{
    (void)state;
    assert_int_equal(parse("\tGPU0\nGPU0\t X\n", NULL), 0);
    assert_false(t.has_cpus);
    assert_int_equal(parse("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
                           "GPU0\t X \tPHB\t\t\t\tN/A\nGPU1\tPHB\t X \t\t\t\tN/A\n",
                           NULL),
                     0);
    assert_string_equal(t.dev[0].cpus, "");
    assert_string_equal(t.dev[0].gpu_numa, "N/A");
    assert_int_equal(parse("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
                           "GPU0\t X \tPHB\t0-3\tN/A\nGPU1\tPHB\t X \t0-3\tN/A\n",
                           NULL),
                     0);
    assert_string_equal(t.dev[1].cpus, "0-3");
    assert_string_equal(t.dev[1].numa, "");
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "no header"},
        {"hello\nworld\n", "no header"},
        {"\tGPU0\tGPU1\nGPU0\t X \tNV0\nGPU1\tNV0\t X \n", "NV0"},
        {"\tGPU0\tGPU1\nGPU0\t X \tNV100\nGPU1\tNV100\t X \n", "NV100"},
        {"\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV3\t X \n", "not symmetric"},
        {"\tGPU0\tGPU1\nGPU0\t X \tX\nGPU1\tX\t X \n", "diagonal"},
        {"\tGPU0\tGPU1\nGPU0\tPIX\tPIX\nGPU1\tPIX\t X \n", "diagonal"},
        {"\tGPU0\tGPU1\nGPU0\t X \tPIX\n", "after 1 of 2 rows"},
        {"\tGPU0\tGPU1\nGPU0\t X \tPIX\n\nGPU1\tPIX\t X\n", "after 1 of 2 rows"},
        {"\tGPU0\tGPU1\nGPU0\t X \n", "1 cells instead of 2"},
        {"\tGPU0\tGPU1\nGPU1\t X \tPIX\n", "row of GPU0"},
        {"\tGPU2\tGPU0\nGPU2\t X \tPIX\n", "in order"},
        {"\tGPU0\tGPU01\nGPU0\t X \tPIX\n", "in order"},
        {"\tGPU0\tNIC0\tGPU1\n", "in order"},
        {"\tGPU0\tNIC0\tNIC0\n", "twice"},
        {"\tGPU0\tNIC0\nGPU0\t X \tNV4\nNIC0\tNV4\t X \n", "not both cards"},
        {"\tGPU0\tCPU Affinity\tWhat\nGPU0\t X \t0-3\n", "unknown words"},
        {"\tGPU0\tCPU Affinity\nGPU0\t X \t0-3\t0\n", "more values"},
        {"\tGPU0\tCPU Affinity\nGPU0\t X \t0-3x\n", "affinity"},
        {"\tGPU0\tNIC0\nGPU0\t X \tSYS\nNIC0\tSYS\t X \t0-3\n", "behind the row"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {0};
        memset(&t, 0x5a, sizeof(t));
        assert_int_equal(parse(cases[i].text, &e), -EINVAL);
        if (!strstr(e.text, cases[i].says))
            fail_msg("case %zu: \"%s\" does not say \"%s\"", i, e.text, cases[i].says);
        assert_int_equal(t.gpus_len, 0x5a5a5a5a);
    }
    char *wide = malloc(40000);
    size_t n = (size_t)snprintf(wide, 40000, "\tGPU0");
    for (int i = 0; i < 200; i++)
        n += (size_t)snprintf(wide + n, 40000 - n, "\tNIC%d", i);
    struct err e = {0};
    assert_int_equal(topo_parse(wide, n, &t, &e), -EINVAL);
    free(wide);
    assert_int_equal(topo_parse("\tGPU0\0x", 7, &t, &e), -EINVAL);
    assert_int_equal(topo_parse("x", 2u << 20, &t, &e), -EINVAL);
}

/* What is printed is read back as the same. */
static void test_round_trip(void **state)
{
    (void)state;
    static struct topo a;
    topo_init(&a, 4, 2);
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t j = 0; j < i; j++)
            topo_set(&a, i, j,
                     (struct topo_link){(uint8_t)(i < 2 ? TOPO_NVLINK : TOPO_PIX + (i + j) % 5), i < 2 ? 4 : 0});
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(a.dev[i].cpus, sizeof(a.dev[i].cpus), "%u-%u", i * 8, i * 8 + 7);
        snprintf(a.dev[i].numa, sizeof(a.dev[i].numa), "%u", i / 2);
        snprintf(a.dev[i].gpu_numa, sizeof(a.dev[i].gpu_numa), "N/A");
    }
    snprintf(a.dev[4].nic, sizeof(a.dev[4].nic), "mlx5_0");
    snprintf(a.dev[5].nic, sizeof(a.dev[5].nic), "mlx5_bond_0");
    struct strbuf b = {0}, again = {0};
    topo_format(&a, &b);
    struct err e = {0};
    if (parse(strbuf_str(&b), &e) != 0)
        fail_msg("%s\n%s", e.text, strbuf_str(&b));
    assert_memory_equal(&a, &t, sizeof(a));
    topo_format(&t, &again);
    assert_string_equal(strbuf_str(&b), strbuf_str(&again));
    strbuf_done(&b);
    strbuf_done(&again);
}

static void test_islands(void **state)
{
    (void)state;
    static struct topo a;
    uint8_t island[TOPO_GPUS_MAX];
    struct topo_link nv = {TOPO_NVLINK, 2};
    topo_init(&a, 8, 0);
    assert_int_equal(topo_islands(&a, island), 8);
    for (uint32_t i = 0; i < 8; i += 2)
        topo_set(&a, i, i + 1, nv);
    assert_int_equal(topo_islands(&a, island), 4);
    assert_int_equal(island[0], island[1]);
    assert_int_equal(island[7], 3);
    /* The cube mesh of eight: two quads, each joined with its opposite; an island is a quad, not
     * all. */
    topo_init(&a, 8, 0);
    for (uint32_t q = 0; q < 8; q += 4)
        for (uint32_t i = 0; i < 4; i++)
            for (uint32_t j = 0; j < i; j++)
                topo_set(&a, q + i, q + j, nv);
    for (uint32_t i = 0; i < 4; i++)
        topo_set(&a, i, i + 4, nv);
    assert_int_equal(topo_islands(&a, island), 2);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(island[i], i / 4);
}

static void test_cpu_lists(void **state)
{
    (void)state;
    uint64_t bits[4];
    char out[64];
    assert_int_equal(topo_cpus_parse("0-3,8,64-66,255", bits, 4), 0);
    topo_cpus_format(bits, 4, out, sizeof(out));
    assert_string_equal(out, "0-3,8,64-66,255");
    assert_int_equal(topo_cpus_parse("", bits, 4), 0);
    topo_cpus_format(bits, 4, out, sizeof(out));
    assert_string_equal(out, "");
    assert_int_equal(topo_cpus_parse("256", bits, 4), -ERANGE);
    static const char *const bad[] = {"-", "1-", "3-1", "1,", ",1", "a", "1 2", "99999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(topo_cpus_parse(bad[i], bits, 4), -EINVAL);
    topo_cpus_parse("0,2,4,6,8,10,12,14", bits, 4);
    topo_cpus_format(bits, 4, out, 12);
    assert_string_equal(out, "0,2,4,6...");
}

static void test_short_model(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"NVIDIA A100-SXM4-80GB", "A100-80GB"},
        {"NVIDIA A100 80GB PCIe", "A100-80GB"},
        {"NVIDIA H100 80GB HBM3", "H100-80GB"},
        {"NVIDIA H200", "H200"},
        {"NVIDIA B200", "B200"},
        {"NVIDIA L40S", "L40S"},
        {"Tesla T4", "T4"},
        {"Tesla V100-SXM2-32GB", "V100-32GB"},
        {"NVIDIA H100 NVL", "H100-NVL"},
        {"NVIDIA GeForce RTX 4090", "RTX-4090"},
        {"Quadro RTX 8000", "RTX-8000"},
        {"NVIDIA", "GPU"},
        {"", "GPU"},
        {"A\xc3\xa4|B", "A---B"},
    };
    char out[INVENTORY_MODEL_SIZE];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        gpu_short_model(cases[i][0], out);
        assert_string_equal(out, cases[i][1]);
    }
    char longest[400];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    gpu_short_model(longest, out);
    assert_true(strlen(out) < sizeof(out) && strlen(out) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_driver), cmocka_unit_test(test_old_driver),  cmocka_unit_test(test_missing_columns),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_islands),
        cmocka_unit_test(test_cpu_lists),  cmocka_unit_test(test_short_model),
    };
    return test_run("topo", tests);
}
