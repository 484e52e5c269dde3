/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVML stand-in: how devices are connected. See nvml_impl.h.
 *
 * Links of a card are numbered from 0. With NVSwitch all of them are active and lead to a switch.
 * Without, they are dealt out to the other cards in order of index; numbers beyond the card's links
 * answer INVALID_ARGUMENT.
 */
#include "simgpu/nvml/nvml_impl.h"

#include <string.h>

static nvmlReturn_t two_cards(nvmlDevice_t a, nvmlDevice_t b, const struct sim_state **s, uint32_t *ca, uint32_t *cb)
{
    nvmlReturn_t rc = nvml_card(a, s, ca);
    return rc == NVML_SUCCESS ? nvml_card(b, s, cb) : rc;
}

static nvmlGpuTopologyLevel_t level_of(uint8_t link)
{
    switch (link) {
    case SIMGPU_LINK_SELF:
        return NVML_TOPOLOGY_INTERNAL;
    case SIMGPU_LINK_PIX:
        return NVML_TOPOLOGY_SINGLE;
    case SIMGPU_LINK_PXB:
        return NVML_TOPOLOGY_MULTIPLE;
    case SIMGPU_LINK_PHB:
        return NVML_TOPOLOGY_HOSTBRIDGE;
    case SIMGPU_LINK_NODE:
        return NVML_TOPOLOGY_NODE;
    default:
        return NVML_TOPOLOGY_SYSTEM;
    }
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *level)
{
    const struct sim_state *s;
    uint32_t ca, cb;
    nvmlReturn_t rc = two_cards(a, b, &s, &ca, &cb);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!level)
        return NVML_ERROR_INVALID_ARGUMENT;
    *level = level_of(sim_card(s, ca)->link[cb]);
    return NVML_SUCCESS;
}

/* All other cards at most `level` away; *count is their number, and capacity when `devices` is
 * given. */
EXPORT nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                                     unsigned int *count, nvmlDevice_t *devices)
{
    CARD_OR_RETURN(device, count);
    unsigned n = 0, room = *count;
    for (uint32_t i = 0; i < s->header->cards_len; i++) {
        if (i == card || level_of(c->link[i]) > level)
            continue;
        if (devices && n < room)
            devices[n] = nvml_handle(s, i);
        n++;
    }
    *count = devices && n > room ? room : n;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int *same)
{
    const struct sim_state *s;
    uint32_t ca, cb;
    nvmlReturn_t rc = two_cards(a, b, &s, &ca, &cb);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!same)
        return NVML_ERROR_INVALID_ARGUMENT;
    *same = ca == cb;
    return NVML_SUCCESS;
}

static bool joined_by_nvlink(const struct sim_state *s, uint32_t a, uint32_t b)
{
    const struct simgpu_card *c = sim_card(s, a);
    return c->nvlink_switched ? c->nvlinks > 0 && sim_card(s, b)->nvlink_switched : c->nvlink_to[b] > 0;
}

/* Over PCIe cards reach each other up to a common host bridge; over NVLink always. */
EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index,
                                           nvmlGpuP2PStatus_t *status)
{
    const struct sim_state *s;
    uint32_t ca, cb;
    nvmlReturn_t rc = two_cards(a, b, &s, &ca, &cb);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!status || ca == cb || (unsigned)index >= NVML_P2P_CAPS_INDEX_UNKNOWN)
        return NVML_ERROR_INVALID_ARGUMENT;
    bool nvlink = joined_by_nvlink(s, ca, cb), pcie = sim_card(s, ca)->link[cb] <= SIMGPU_LINK_NODE, ok;
    switch (index) {
    case NVML_P2P_CAPS_INDEX_NVLINK:
    case NVML_P2P_CAPS_INDEX_ATOMICS:
        ok = nvlink;
        break;
    case NVML_P2P_CAPS_INDEX_PCI:
        ok = pcie;
        break;
    default:
        ok = nvlink || pcie;
    }
    *status = ok ? NVML_P2P_STATUS_OK
              : (index == NVML_P2P_CAPS_INDEX_NVLINK || index == NVML_P2P_CAPS_INDEX_ATOMICS)
                  ? NVML_P2P_STATUS_NOT_SUPPORTED
                  : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* The card at the other end of `link`, or -1 for a switch; -2 when the link leads nowhere. */
static int remote_card(const struct sim_state *s, const struct simgpu_card *c, unsigned link)
{
    if (c->nvlink_switched)
        return -1;
    unsigned first = 0;
    for (uint32_t i = 0; i < s->header->cards_len; i++) {
        first += c->nvlink_to[i];
        if (link < first)
            return (int)i;
    }
    return -2;
}

/* Checks the link number: a card without NVLink does not support the question at all. */
static nvmlReturn_t link_ok(const struct simgpu_card *c, unsigned link)
{
    if (c->nvlinks == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    return link < c->nvlinks ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

#define LINK_OR_RETURN(link)                      \
    do {                                          \
        nvmlReturn_t link_rc_ = link_ok(c, link); \
        if (link_rc_ != NVML_SUCCESS)             \
            return link_rc_;                      \
    } while (0)

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active)
{
    CARD_OR_RETURN(device, active);
    LINK_OR_RETURN(link);
    *active = remote_card(s, c, link) == -2 ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version)
{
    CARD_OR_RETURN(device, version);
    LINK_OR_RETURN(link);
    *version = c->nvlink_version;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                                  nvmlNvLinkCapability_t capability, unsigned int *result)
{
    CARD_OR_RETURN(device, result);
    LINK_OR_RETURN(link);
    if ((unsigned)capability >= NVML_NVLINK_CAP_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *result = capability != NVML_NVLINK_CAP_SLI_BRIDGE && remote_card(s, c, link) != -2;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                        nvmlIntNvLinkDeviceType_t *type)
{
    CARD_OR_RETURN(device, type);
    LINK_OR_RETURN(link);
    int remote = remote_card(s, c, link);
    *type = remote == -1  ? NVML_NVLINK_DEVICE_TYPE_SWITCH
            : remote >= 0 ? NVML_NVLINK_DEVICE_TYPE_GPU
                          : NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
    return NVML_SUCCESS;
}

/* A switch gets bus numbers of its own, which no card of a preset has (bus 0x05 of a domain of its
 * own). */
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    CARD_OR_RETURN(device, pci);
    LINK_OR_RETURN(link);
    int remote = remote_card(s, c, link);
    if (remote == -2)
        return NVML_ERROR_NOT_SUPPORTED;
    if (remote >= 0) {
        nvml_fill_pci(sim_card(s, (uint32_t)remote), pci);
        return NVML_SUCCESS;
    }
    struct simgpu_card bridge = {.pci_domain = 0xfffe, .pci_bus = 5, .pci_device = link % 4};
    bridge.pci_device_id = 0x1af110deu;
    nvml_fill_pci(&bridge, pci);
    return NVML_SUCCESS;
}

static nvmlReturn_t fill_mask(unsigned int words, unsigned long *out, const uint64_t *mask, unsigned mask_words)
{
    if (words == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < words; i++)
        out[i] = i < mask_words ? (unsigned long)mask[i] : 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words, unsigned long *cpus,
                                                        unsigned int scope)
{
    CARD_OR_RETURN(device, cpus);
    if (scope > NVML_AFFINITY_SCOPE_SOCKET)
        return NVML_ERROR_INVALID_ARGUMENT;
    return fill_mask(words, cpus, c->cpu_mask, SIMGPU_CPU_WORDS);
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *cpus)
{
    return nvmlDeviceGetCpuAffinityWithinScope(device, words, cpus, NVML_AFFINITY_SCOPE_NODE);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *nodes,
                                                unsigned int scope)
{
    CARD_OR_RETURN(device, nodes);
    if (scope > NVML_AFFINITY_SCOPE_SOCKET)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (c->numa_node < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    uint64_t mask[1] = {c->numa_node < 64 ? (uint64_t)1 << c->numa_node : 0};
    return fill_mask(words, nodes, mask, 1);
}

EXPORT nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count, nvmlDevice_t *devices)
{
    const struct sim_state *s = nvml_state();
    if (!s)
        return NVML_ERROR_UNINITIALIZED;
    if (!count || cpu >= SIMGPU_CPU_WORDS * 64)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned n = 0, room = *count;
    for (uint32_t i = 0; i < s->header->cards_len; i++) {
        if (!(sim_card(s, i)->cpu_mask[cpu / 64] >> (cpu % 64) & 1))
            continue;
        if (devices && n < room)
            devices[n] = nvml_handle(s, i);
        n++;
    }
    *count = devices && n > room ? room : n;
    return NVML_SUCCESS;
}
