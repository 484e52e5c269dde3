/* SPDX-License-Identifier: Apache-2.0 */
/* See topo.h. Reading saved output is in topo_parse.c. */
#include "gpu/topo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const class_names[] = {
    [TOPO_SELF] = "X",  [TOPO_NVLINK] = "NV", [TOPO_PIX] = "PIX", [TOPO_PXB] = "PXB",
    [TOPO_PHB] = "PHB", [TOPO_NODE] = "NODE", [TOPO_SYS] = "SYS", [TOPO_UNKNOWN] = "?",
};

void topo_init(struct topo *t, uint32_t gpus, uint32_t nics)
{
    memset(t, 0, sizeof(*t));
    t->gpus_len = gpus;
    t->devices_len = gpus + nics;
    t->has_cpus = t->has_numa = t->has_gpu_numa = true;
    for (uint32_t i = 0; i < t->devices_len; i++) {
        if (i < gpus)
            snprintf(t->dev[i].name, sizeof(t->dev[i].name), "GPU%u", i);
        else
            snprintf(t->dev[i].name, sizeof(t->dev[i].name), "NIC%u", i - gpus);
        for (uint32_t j = 0; j < t->devices_len; j++)
            t->link[i][j].cls = i == j ? TOPO_SELF : TOPO_UNKNOWN;
    }
}

void topo_link_format(struct topo_link link, char out[8])
{
    if (link.cls == TOPO_NVLINK)
        snprintf(out, 8, "NV%u", (unsigned)link.nvlinks);
    else
        snprintf(out, 8, "%s", class_names[link.cls <= TOPO_UNKNOWN ? link.cls : TOPO_UNKNOWN]);
}

int topo_link_parse(const char *text, struct topo_link *ret)
{
    if (strncmp(text, "NV", 2) == 0) {
        unsigned n = 0;
        size_t digits = strspn(text + 2, "0123456789");
        if (digits < 1 || digits > 2 || text[2 + digits] || text[2] == '0')
            return -EINVAL;
        for (size_t i = 0; i < digits; i++)
            n = n * 10 + (unsigned)(text[2 + i] - '0');
        *ret = (struct topo_link){TOPO_NVLINK, (uint8_t)n};
        return 0;
    }
    if (strcmp(text, "SOC") == 0)
        text = "SYS";
    for (uint8_t c = TOPO_SELF; c < TOPO_UNKNOWN; c++) {
        if (c != TOPO_NVLINK && strcmp(text, class_names[c]) == 0) {
            *ret = (struct topo_link){c, 0};
            return 0;
        }
    }
    return -EINVAL;
}

void topo_set(struct topo *t, uint32_t a, uint32_t b, struct topo_link link)
{
    t->link[a][b] = t->link[b][a] = link;
}

uint32_t topo_islands(const struct topo *t, uint8_t ret_island[TOPO_GPUS_MAX])
{
    uint32_t islands = 0;
    for (uint32_t i = 0; i < t->gpus_len; i++) {
        uint32_t k = 0;
        for (; k < islands; k++) {
            bool all = true;
            for (uint32_t j = 0; j < i; j++)
                all = all && (ret_island[j] != k || t->link[i][j].cls == TOPO_NVLINK);
            if (all)
                break;
        }
        ret_island[i] = (uint8_t)k;
        if (k == islands)
            islands++;
    }
    return islands;
}

static void format_header(const struct topo *t, struct strbuf *out)
{
    for (uint32_t i = 0; i < t->devices_len; i++) {
        strbuf_putc(out, '\t');
        strbuf_puts(out, t->dev[i].name);
    }
    if (t->has_cpus)
        strbuf_puts(out, "\tCPU Affinity");
    if (t->has_numa)
        strbuf_puts(out, "\tNUMA Affinity");
    if (t->has_gpu_numa)
        strbuf_puts(out, "\tGPU NUMA ID");
    strbuf_putc(out, '\n');
}

static const char *or_na(const char *text)
{
    return *text ? text : "N/A";
}

static void format_row(const struct topo *t, uint32_t i, struct strbuf *out)
{
    const struct topo_device *d = &t->dev[i];
    strbuf_puts(out, d->name);
    for (uint32_t j = 0; j < t->devices_len; j++) {
        char cell[8];
        topo_link_format(t->link[i][j], cell);
        strbuf_putc(out, '\t');
        strbuf_puts(out, i == j ? " X " : cell);
    }
    if (i < t->gpus_len) {
        if (t->has_cpus)
            strbuf_printf(out, "\t%s", or_na(d->cpus));
        if (t->has_numa)
            strbuf_printf(out, "\t%s", or_na(d->numa));
        if (t->has_gpu_numa)
            strbuf_printf(out, "\t\t%s", or_na(d->gpu_numa));
    } else if (t->has_cpus) {
        strbuf_puts(out, t->has_gpu_numa ? "\t\t\t\t" : "\t\t");
    }
    strbuf_putc(out, '\n');
}

static void format_legend(const struct topo *t, struct strbuf *out)
{
    strbuf_puts(out, "\nLegend:\n\n"
                     "  X    = Self\n"
                     "  SYS  = Through PCIe and the link between NUMA nodes (such as UPI or xGMI)\n"
                     "  NODE = Through PCIe and the link between host bridges of one NUMA node\n"
                     "  PHB  = Through PCIe and one host bridge (usually the CPU)\n"
                     "  PXB  = Through several PCIe bridges, no host bridge\n"
                     "  PIX  = Through at most one PCIe bridge\n"
                     "  NV#  = Through # bonded NVLinks\n");
    bool any = false;
    for (uint32_t i = t->gpus_len; i < t->devices_len; i++) {
        if (!*t->dev[i].nic)
            continue;
        if (!any)
            strbuf_puts(out, "\nNIC Legend:\n\n");
        any = true;
        strbuf_printf(out, "  %s: %s\n", t->dev[i].name, t->dev[i].nic);
    }
}

void topo_format(const struct topo *t, struct strbuf *out)
{
    format_header(t, out);
    for (uint32_t i = 0; i < t->devices_len; i++)
        format_row(t, i, out);
    format_legend(t, out);
}

/* One "a" or "a-b"; moves *p behind it. */
static int parse_range(const char **p, uint32_t *low, uint32_t *high)
{
    uint32_t v[2] = {0, 0};
    int n = 0;
    for (; n < 2; n++) {
        size_t digits = strspn(*p, "0123456789");
        if (digits < 1 || digits > 6)
            return -EINVAL;
        for (size_t i = 0; i < digits; i++)
            v[n] = v[n] * 10 + (uint32_t)((*p)[i] - '0');
        *p += digits;
        if (n == 1 || **p != '-')
            break;
        (*p)++;
    }
    *low = v[0];
    *high = n == 0 ? v[0] : v[1];
    return *low <= *high ? 0 : -EINVAL;
}

int topo_cpus_parse(const char *text, uint64_t *bits, uint32_t words)
{
    memset(bits, 0, words * sizeof(*bits));
    const char *p = text;
    while (*p) {
        uint32_t low, high;
        if (parse_range(&p, &low, &high) != 0)
            return -EINVAL;
        if (high >= words * 64)
            return -ERANGE;
        for (uint32_t i = low; i <= high; i++)
            bits[i / 64] |= (uint64_t)1 << (i % 64);
        if (*p == ',' && p[1])
            p++;
        else if (*p)
            return -EINVAL;
    }
    return 0;
}

void topo_cpus_format(const uint64_t *bits, uint32_t words, char *out, size_t size)
{
    size_t len = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < words * 64; i++) {
        if (!(bits[i / 64] >> (i % 64) & 1))
            continue;
        uint32_t last = i;
        while (last + 1 < words * 64 && (bits[(last + 1) / 64] >> ((last + 1) % 64) & 1))
            last++;
        char part[32];
        int n = last > i ? snprintf(part, sizeof(part), "%s%u-%u", len ? "," : "", i, last)
                         : snprintf(part, sizeof(part), "%s%u", len ? "," : "", i);
        if (len + (size_t)n + 4 > size) {
            if (len + 4 <= size)
                memcpy(out + len, "...", 4);
            return;
        }
        memcpy(out + len, part, (size_t)n + 1);
        len += (size_t)n;
        i = last;
    }
}
