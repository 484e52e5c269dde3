/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See inventory.h.
 *
 * Links between two cards. For each NVLink of a card that is enabled: it counts for the card at its
 * other end, or, when the other end is an NVSwitch, for every card that has such links too. The
 * first number that NVML does not know ends the card's links. A pair with n links shows as NVn, any
 * other by the common ancestor on PCIe. Example: on an HGX board each of 8 cards has 18 links to
 * switches, so every pair is NV18.
 *
 * LIMITATIONS. Network cards are known for simulated machines only (from the state file), so far.
 */
#include "gpu/inventory.h"

#include "abi/simgpu.h"
#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINKS_MAX 64

/* What the links of one card lead to. */
struct links {
    unsigned to_switch;
    unsigned to_card[TOPO_GPUS_MAX];
};

struct scan {
    const struct nvml *n;
    struct gpu_inventory *inv;
    nvmlDevice_t dev[TOPO_GPUS_MAX];
    nvmlPciInfo_t pci[TOPO_GPUS_MAX];
    bool has_pci[TOPO_GPUS_MAX];
    struct links links[TOPO_GPUS_MAX];
};

static bool dropped(const char *word)
{
    static const char *const whole[] = {"NVIDIA", "Tesla", "Quadro", "GeForce", "PCIe", "PCI", "FHHL"};
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
        if (strcasecmp(word, whole[i]) == 0)
            return true;
    return strncasecmp(word, "SXM", 3) == 0 || strncasecmp(word, "HBM", 3) == 0;
}

void gpu_short_model(const char *name, char out[INVENTORY_MODEL_SIZE])
{
    size_t len = 0;
    const char *p = name;
    while (*p) {
        p += strspn(p, " -_/");
        char word[INVENTORY_MODEL_SIZE];
        size_t n = strcspn(p, " -_/"), keep = n < sizeof(word) ? n : sizeof(word) - 1;
        for (size_t i = 0; i < keep; i++) {
            unsigned char c = (unsigned char)p[i];
            bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '.' || c == '+';
            word[i] = plain ? (char)c : '-';
        }
        word[keep] = 0;
        p += n;
        if (keep == 0 || dropped(word) || len + keep + 2 > INVENTORY_MODEL_SIZE)
            continue;
        if (len > 0)
            out[len++] = '-';
        memcpy(out + len, word, keep);
        len += keep;
    }
    out[len] = 0;
    if (len == 0)
        memcpy(out, "GPU", 4);
}

/* The driver's text, terminated and free of anything that is not printable ASCII. */
static void tidy_text(char *text, size_t size)
{
    text[size - 1] = 0;
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
            *p = '?';
}

static int call_error(const struct scan *s, uint32_t i, const char *what, nvmlReturn_t rc, struct err *e)
{
    return err_set(e, -EIO, "NVML: card %u: %s: %s", i, what, nvml_text_of(s->n, rc));
}

static uint32_t mib(unsigned long long bytes)
{
    unsigned long long m = bytes >> 20;
    return m > UINT32_MAX ? UINT32_MAX : (uint32_t)m;
}

static nvmlReturn_t read_memory(const struct scan *s, uint32_t i, struct inventory_gpu *g)
{
    nvmlMemory_v2_t v2 = {.version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};
    if (s->n->memory_v2 && s->n->memory_v2(s->dev[i], &v2) == NVML_SUCCESS) {
        g->mem_mib = mib(v2.total);
        g->mem_usable_mib = mib(v2.total - (v2.reserved < v2.total ? v2.reserved : 0));
        return NVML_SUCCESS;
    }
    nvmlMemory_t v1 = {0};
    nvmlReturn_t rc = s->n->memory(s->dev[i], &v1);
    g->mem_mib = g->mem_usable_mib = mib(v1.total);
    return rc;
}

static int read_necessary(struct scan *s, uint32_t i, struct inventory_gpu *g, struct err *e)
{
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "", name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = "";
    nvmlReturn_t rc = s->n->handle_by_index(g->index, &s->dev[i]);
    if (rc != NVML_SUCCESS)
        return call_error(s, g->index, "handle", rc, e);
    rc = s->n->uuid(s->dev[i], uuid, sizeof(uuid));
    tidy_text(uuid, sizeof(uuid));
    if (rc != NVML_SUCCESS)
        return call_error(s, g->index, "UUID", rc, e);
    if (!*uuid || strlen(uuid) >= sizeof(g->uuid))
        return err_set(e, -EIO, "NVML: card %u: UUID \"%.60s\": 1 to 47 characters are expected", g->index, uuid);
    memcpy(g->uuid, uuid, strlen(uuid) + 1);
    rc = s->n->name(s->dev[i], name, sizeof(name));
    if (rc != NVML_SUCCESS)
        return call_error(s, g->index, "name", rc, e);
    tidy_text(name, sizeof(name));
    memcpy(g->name, name, sizeof(g->name));
    gpu_short_model(g->name, g->model);
    rc = read_memory(s, i, g);
    if (rc != NVML_SUCCESS)
        return call_error(s, g->index, "memory", rc, e);
    return 0;
}

static void read_optional(struct scan *s, uint32_t i, struct inventory_gpu *g)
{
    const struct nvml *n = s->n;
    nvmlDevice_t d = s->dev[i];
    unsigned value = 0, pending = 0;
    int major = 0, minor = 0;
    if (n->pci && n->pci(d, &s->pci[i]) == NVML_SUCCESS) {
        s->has_pci[i] = true;
        memcpy(g->bus_id, s->pci[i].busId, sizeof(g->bus_id));
        tidy_text(g->bus_id, sizeof(g->bus_id));
    }
    g->minor = n->minor && n->minor(d, &value) == NVML_SUCCESS ? (int32_t)value : -1;
    if (n->serial && n->serial(d, g->serial, NVML_DEVICE_SERIAL_BUFFER_SIZE) == NVML_SUCCESS)
        tidy_text(g->serial, sizeof(g->serial));
    else
        g->serial[0] = 0;
    if (n->capability && n->capability(d, &major, &minor) == NVML_SUCCESS) {
        g->cc_major = (uint32_t)major;
        g->cc_minor = (uint32_t)minor;
    }
    if (n->power_limit && n->power_limit(d, &value) == NVML_SUCCESS)
        g->power_limit_w = value / 1000;
    if (n->mig_mode && n->mig_mode(d, &value, &pending) == NVML_SUCCESS) {
        g->mig_capable = true;
        g->mig_enabled = value == NVML_DEVICE_MIG_ENABLE;
    }
}

/* CPU and NUMA columns of the matrix, and the NUMA node. */
static void read_affinity(struct scan *s, uint32_t i, struct inventory_gpu *g)
{
    struct topo_device *row = &s->inv->topo.dev[i];
    unsigned long cpus[16] = {0}, nodes[4] = {0};
    uint64_t bits[16] = {0};
    unsigned id = 0;
    g->numa = -1;
    if (s->n->cpu_affinity && s->n->cpu_affinity(s->dev[i], 16, cpus) == NVML_SUCCESS) {
        for (int w = 0; w < 16; w++)
            bits[w] = cpus[w];
        topo_cpus_format(bits, 16, row->cpus, sizeof(row->cpus));
    }
    if (s->n->memory_affinity && s->n->memory_affinity(s->dev[i], 4, nodes, NVML_AFFINITY_SCOPE_NODE) == NVML_SUCCESS) {
        for (int w = 0; w < 4; w++)
            bits[w] = nodes[w];
        topo_cpus_format(bits, 4, row->numa, sizeof(row->numa));
        for (int node = 255; node >= 0; node--)
            if (bits[node / 64] >> (node % 64) & 1)
                g->numa = node;
    }
    if (s->n->numa_node && s->n->numa_node(s->dev[i], &id) == NVML_SUCCESS)
        snprintf(row->gpu_numa, sizeof(row->gpu_numa), "%u", id);
    else
        memcpy(row->gpu_numa, "N/A", 4);
}

/* The card at this PCI address, or -1. */
static int card_at(const struct scan *s, const nvmlPciInfo_t *pci)
{
    for (uint32_t i = 0; i < s->inv->gpus_len; i++)
        if (s->has_pci[i] && s->pci[i].domain == pci->domain && s->pci[i].bus == pci->bus &&
            s->pci[i].device == pci->device)
            return (int)i;
    return -1;
}

static void read_links(struct scan *s, uint32_t i)
{
    const struct nvml *n = s->n;
    if (!n->nvlink_state)
        return;
    for (unsigned link = 0; link < LINKS_MAX; link++) {
        nvmlEnableState_t active = NVML_FEATURE_DISABLED;
        nvmlReturn_t rc = n->nvlink_state(s->dev[i], link, &active);
        if (rc == NVML_ERROR_INVALID_ARGUMENT || rc == NVML_ERROR_NOT_SUPPORTED)
            break;
        if (rc != NVML_SUCCESS || active != NVML_FEATURE_ENABLED)
            continue;
        nvmlPciInfo_t pci = {0};
        nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
        int card = -1;
        if (n->nvlink_remote_pci && n->nvlink_remote_pci(s->dev[i], link, &pci) == NVML_SUCCESS)
            card = card_at(s, &pci);
        if (card >= 0)
            s->links[i].to_card[card]++;
        else if (n->nvlink_remote_type && n->nvlink_remote_type(s->dev[i], link, &type) == NVML_SUCCESS &&
                 type == NVML_NVLINK_DEVICE_TYPE_SWITCH)
            s->links[i].to_switch++;
    }
}

static uint8_t ancestor_class(const struct scan *s, uint32_t a, uint32_t b)
{
    nvmlGpuTopologyLevel_t level;
    if (!s->n->common_ancestor || s->n->common_ancestor(s->dev[a], s->dev[b], &level) != NVML_SUCCESS)
        return TOPO_UNKNOWN;
    switch (level) {
    case NVML_TOPOLOGY_INTERNAL:
    case NVML_TOPOLOGY_SINGLE:
        return TOPO_PIX;
    case NVML_TOPOLOGY_MULTIPLE:
        return TOPO_PXB;
    case NVML_TOPOLOGY_HOSTBRIDGE:
        return TOPO_PHB;
    case NVML_TOPOLOGY_NODE:
        return TOPO_NODE;
    case NVML_TOPOLOGY_SYSTEM:
        return TOPO_SYS;
    default:
        return TOPO_UNKNOWN;
    }
}

static void fill_matrix(struct scan *s)
{
    struct gpu_inventory *inv = s->inv;
    uint8_t island[TOPO_GPUS_MAX];
    for (uint32_t a = 0; a < inv->gpus_len; a++) {
        for (uint32_t b = 0; b < a; b++) {
            unsigned direct = s->links[a].to_card[b], x = s->links[a].to_switch, y = s->links[b].to_switch;
            unsigned count = direct ? direct : x < y ? x : y;
            struct topo_link link = {TOPO_NVLINK, (uint8_t)(count < 99 ? count : 99)};
            if (count == 0)
                link.cls = ancestor_class(s, a, b);
            topo_set(&inv->topo, a, b, link);
        }
    }
    topo_islands(&inv->topo, island);
    for (uint32_t i = 0; i < inv->gpus_len; i++)
        inv->gpus[i].island = island[i];
}

/*
 * NVML knows no network cards. Those of a simulated machine are read from its state file; without
 * one, or with one that is not of these cards, there are none.
 */
static void add_simulated_nics(struct gpu_inventory *inv)
{
    const char *path = getenv(SIMGPU_ENV);
    CLEANUP_FREE char *file = NULL;
    size_t len = 0;
    if (!path || file_read(path, simgpu_file_bytes(SIMGPU_CARDS_MAX), &file, &len, NULL) != 0 ||
        len < sizeof(struct simgpu_header))
        return;
    const struct simgpu_header *h = (const struct simgpu_header *)(void *)file;
    if (memcmp(h->magic, SIMGPU_MAGIC, sizeof(h->magic)) != 0 || h->version != SIMGPU_VERSION ||
        h->cards_len != inv->gpus_len + inv->left_out || h->nics_len > SIMGPU_NICS_MAX)
        return;
    struct topo *t = &inv->topo;
    for (uint32_t i = 0; i < h->nics_len; i++) {
        uint32_t row = t->devices_len++;
        snprintf(t->dev[row].name, sizeof(t->dev[row].name), "NIC%u", i);
        snprintf(t->dev[row].nic, sizeof(t->dev[row].nic), "%.*s", TOPO_NAME_SIZE - 1, h->nics[i].name);
        t->link[row][row] = (struct topo_link){TOPO_SELF, 0};
        for (uint32_t j = 0; j < row; j++) {
            uint8_t cls =
                j < inv->gpus_len ? h->nics[i].link_card[inv->gpus[j].index] : h->nics[i].link_nic[j - inv->gpus_len];
            topo_set(t, row, j, (struct topo_link){cls <= TOPO_SYS ? cls : TOPO_UNKNOWN, 0});
        }
    }
}

static int scan_all(struct scan *s, struct err *e)
{
    struct gpu_inventory *inv = s->inv;
    unsigned count = 0;
    nvmlReturn_t rc = s->n->count(&count);
    if (rc != NVML_SUCCESS)
        return err_set(e, -EIO, "NVML: number of cards: %s", nvml_text_of(s->n, rc));
    if (count == 0)
        return err_set(e, -ENODEV, "the driver is there, but no card");
    if (count > TOPO_GPUS_MAX)
        return err_set(e, -E2BIG, "%u cards; at most %d in one machine are supported", count, TOPO_GPUS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct err why = {0};
        uint32_t at = inv->gpus_len;
        struct inventory_gpu *g = &inv->gpus[at];
        memset(g, 0, sizeof(*g));
        g->index = i;
        if (read_necessary(s, at, g, &why) == 0)
            inv->gpus_len++;
        else if (inv->left_out++ == 0)
            memcpy(inv->left_out_why, why.text, sizeof(inv->left_out_why) - 1);
    }
    if (inv->gpus_len == 0)
        return err_set(e, -EIO, "%s", inv->left_out_why);
    topo_init(&inv->topo, inv->gpus_len, 0);
    for (uint32_t i = 0; i < inv->gpus_len; i++) {
        struct topo_device *row = &inv->topo.dev[i];
        snprintf(row->name, sizeof(row->name), "GPU%u", inv->gpus[i].index);
        read_optional(s, i, &inv->gpus[i]);
        read_affinity(s, i, &inv->gpus[i]);
    }
    for (uint32_t i = 0; i < inv->gpus_len; i++)
        read_links(s, i);
    fill_matrix(s);
    return 0;
}

int inventory_read(const struct nvml *n, struct gpu_inventory *ret, struct err *e)
{
    CLEANUP_FREE struct gpu_inventory *inv = mem_alloc(1, sizeof(*inv));
    CLEANUP_FREE struct scan *s = mem_alloc(1, sizeof(*s));
    if (!inv || !s)
        return err_set(e, -ENOMEM, "no memory");
    s->n = n;
    s->inv = inv;
    memcpy(inv->driver, n->driver, sizeof(inv->driver));
    inv->simulated = n->simulated;
    int cuda = 0;
    if (n->cuda_version && n->cuda_version(&cuda) == NVML_SUCCESS && cuda > 0)
        inv->cuda_version = (uint32_t)cuda;
    int rc = scan_all(s, e);
    if (rc != 0)
        return rc;
    if (inv->simulated)
        add_simulated_nics(inv);
    *ret = *inv;
    return 0;
}
