/* SPDX-License-Identifier: Apache-2.0 */
/* See sim_setup.h. */
#include "gpu/sim_setup.h"

#include "abi/simgpu.h"
#include "base/mem.h"
#include "base/sys/file.h"
#include "gpu/preset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1024 * 1024)
/* The static part of a card ends where its lock begins. */
#define CARD_STATIC offsetof(struct simgpu_card, lock)

/* NVML's number of the architecture of a compute capability: 6 Turing, 7 Ampere, 8 Ada, 9 Hopper,
 * 10 Blackwell. */
static uint32_t architecture(uint32_t major, uint32_t minor)
{
    if (major == 7)
        return minor == 5 ? 6 : 5;
    if (major == 8)
        return minor == 9 ? 8 : 7;
    if (major == 9)
        return 9;
    return major >= 10 ? 10 : 4;
}

static void fill_hardware(const struct preset_model *m, struct simgpu_card *c)
{
    memcpy(c->name, m->name, sizeof(c->name));
    c->pci_device_id = m->pci_id << 16 | 0x10de;
    c->pci_subsystem_id = c->pci_device_id;
    c->arch = architecture(m->cc_major, m->cc_minor);
    c->cc_major = m->cc_major;
    c->cc_minor = m->cc_minor;
    c->sm_count = m->sm_count;
    c->sm_clock_mhz = m->sm_clock_mhz;
    c->mem_clock_mhz = m->mem_clock_mhz;
    c->mem_bus_bits = m->mem_bus_bits;
    c->power_limit_mw = m->power_limit_w * 1000;
    c->power_idle_mw = m->power_idle_w * 1000;
    c->pcie_gen = m->pcie_gen;
    c->pcie_width = m->pcie_width;
    c->nvlink_version = m->nvlink_version;
    c->nvlinks = m->nvlinks;
    c->nvlink_switched = m->nvlink_switched;
    c->mig_capable = m->mig;
    c->ecc = m->ecc;
    c->mem_bytes = m->mem_mib * MIB;
    c->mem_reserved_bytes = m->reserved_mib * MIB;
    c->context_bytes = m->context_mib * MIB;
}

static void fill_card(const struct preset *p, uint32_t i, struct simgpu_card *c)
{
    const struct preset_gpu *g = &p->gpus[i];
    fill_hardware(&p->models[g->model], c);
    preset_uuid(p->name, i, c->uuid);
    /* A serial of 13 digits, as real ones have, taken from the UUID. */
    unsigned long long n = 0;
    for (const char *u = c->uuid + 4; *u; u++)
        n = n * 31 + (unsigned char)*u;
    snprintf(c->serial, sizeof(c->serial), "1%012llu", n % 1000000000000ull);
    snprintf(c->vbios, sizeof(c->vbios), "SIM.%u.%u.00.%02u", c->cc_major, c->cc_minor, i);
    c->pci_domain = g->domain;
    c->pci_bus = g->bus;
    c->pci_device = g->device;
    c->minor = i;
    c->numa_node = g->numa;
    memcpy(c->cpu_mask, g->cpus, sizeof(c->cpu_mask));
    for (uint32_t j = 0; j < p->gpus_len; j++) {
        c->link[j] = p->pcie[i][j];
        c->nvlink_to[j] = c->nvlink_switched ? 0 : p->topo.link[i][j].nvlinks;
    }
}

static uint64_t fnv(uint64_t h, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static void fill_header(const struct preset *p, struct simgpu_header *h)
{
    memcpy(h->magic, SIMGPU_MAGIC, sizeof(h->magic));
    h->version = SIMGPU_VERSION;
    h->header_bytes = sizeof(struct simgpu_header);
    h->card_bytes = sizeof(struct simgpu_card);
    h->slot_bytes = sizeof(struct simgpu_slot);
    h->slots_per_card = SIMGPU_SLOTS;
    h->cards_len = p->gpus_len;
    h->file_bytes = simgpu_file_bytes(p->gpus_len);
    memcpy(h->preset, p->name, sizeof(h->preset));
    snprintf(h->driver_version, sizeof(h->driver_version), "%s-simulated", p->driver);
    h->cuda_version = p->cuda_version;
    h->host_cpus = p->host_cpus;
    h->host_mem_mib = p->host_mem_mib;
    h->nics_len = p->nics_len;
    for (uint32_t i = 0; i < p->nics_len; i++) {
        uint32_t row = p->gpus_len + i;
        memcpy(h->nics[i].name, p->nics[i], sizeof(h->nics[i].name));
        for (uint32_t j = 0; j < p->gpus_len; j++)
            h->nics[i].link_card[j] = p->topo.link[row][j].cls;
        for (uint32_t j = 0; j < p->nics_len; j++)
            h->nics[i].link_nic[j] = p->topo.link[row][p->gpus_len + j].cls;
    }
}

static void fill_file(const struct preset *p, void *file)
{
    struct simgpu_header *h = file;
    fill_header(p, h);
    for (uint32_t i = 0; i < p->gpus_len; i++)
        fill_card(p, i, simgpu_card_at(file, i));
    uint64_t sum = fnv(0xcbf29ce484222325u, h, sizeof(*h));
    for (uint32_t i = 0; i < p->gpus_len; i++)
        sum = fnv(sum, simgpu_card_at(file, i), CARD_STATIC);
    h->fingerprint = sum;
}

/* True when the file at `path` describes the same machine: every static byte is equal. */
static bool same_machine(const char *path, void *wanted)
{
    const struct simgpu_header *h = wanted;
    CLEANUP_FREE char *have = NULL;
    size_t len = 0;
    if (file_read(path, h->file_bytes, &have, &len, NULL) != 0 || len != h->file_bytes ||
        memcmp(have, h, sizeof(*h)) != 0)
        return false;
    for (uint32_t i = 0; i < h->cards_len; i++)
        if (memcmp(simgpu_card_at(have, i), simgpu_card_at(wanted, i), CARD_STATIC) != 0)
            return false;
    return true;
}

int sim_setup_create(const char *preset_path, const char *dir, struct err *e)
{
    CLEANUP_FREE struct preset *p = mem_alloc(1, sizeof(*p));
    if (!p)
        return err_set(e, -ENOMEM, "no memory");
    int rc = preset_load(preset_path, p, e);
    if (rc != 0)
        return rc;
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/%s", dir, SIMGPU_FILE) >= (int)sizeof(path))
        return err_set(e, -ENAMETOOLONG, "%.100s...: the path is too long", dir);
    uint64_t bytes = simgpu_file_bytes(p->gpus_len);
    CLEANUP_FREE void *file = mem_alloc(1, bytes);
    if (!file)
        return err_set(e, -ENOMEM, "no memory");
    fill_file(p, file);
    if (same_machine(path, file))
        return 0;
    mode_t mode = geteuid() == 0 ? 0666 : 0600;
    rc = file_write_atomic(path, file, bytes, mode, FILE_SYNC_NO, e);
    if (rc == 0 && chmod(path, mode) != 0)
        rc = err_set(e, -errno, "%s: %s", path, strerror(errno));
    return rc;
}
