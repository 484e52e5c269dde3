/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See preset.h. Three steps: lines are read into the structure by tables of keys; the rows of the
 * matrix are kept as text until all is known, then parsed; at last the whole is checked (nothing
 * missing, references resolved, matrix symmetric, links no more than the cards have).
 *
 * LIMITATIONS. No quoting, no lists, no anchors, no nesting deeper than one; comments stand on
 * lines of their own.
 */
#include "gpu/preset.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/sys/file.h"
#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRESET_LINE_MAX 1024

enum section { SEC_TOP, SEC_HOST, SEC_MODEL, SEC_GPU, SEC_NIC, SEC_LINKS, SEC_PCIE };

/* How a value is read. */
enum kind { KIND_TEXT, KIND_U32, KIND_BOOL, KIND_SIZE_MIB, KIND_VERSION, KIND_HEX, KIND_SPECIAL };

struct key {
    enum section section;
    const char *name;
    enum kind kind;
    size_t offset; /* into the section's structure */
    size_t size;   /* of a text */
    int64_t low;
    int64_t high;
    bool required;
};

#define P(f) offsetof(struct preset, f), sizeof(((struct preset *)0)->f)
#define M(f) offsetof(struct preset_model, f), sizeof(((struct preset_model *)0)->f)

static const struct key keys[] = {
    {SEC_TOP, "format", KIND_SPECIAL, 0, 0, 1, 1, true},
    {SEC_TOP, "name", KIND_TEXT, P(name), 0, 0, true},
    {SEC_TOP, "title", KIND_TEXT, P(title), 0, 0, true},
    {SEC_TOP, "driver", KIND_TEXT, P(driver), 0, 0, true},
    {SEC_TOP, "cuda", KIND_VERSION, P(cuda_version), 0, 0, true},
    {SEC_HOST, "cpus", KIND_U32, P(host_cpus), 1, SIMGPU_CPU_WORDS * 64, true},
    {SEC_HOST, "memory", KIND_SIZE_MIB, P(host_mem_mib), 1, INT64_MAX, true},
    {SEC_MODEL, "name", KIND_TEXT, M(name), 0, 0, true},
    {SEC_MODEL, "memory-mib", KIND_U32, M(mem_mib), 1024, 4194304, true},
    {SEC_MODEL, "reserved-mib", KIND_U32, M(reserved_mib), 0, 65536, true},
    {SEC_MODEL, "context-mib", KIND_U32, M(context_mib), 0, 65536, true},
    {SEC_MODEL, "sms", KIND_U32, M(sm_count), 1, 4096, true},
    {SEC_MODEL, "capability", KIND_SPECIAL, 0, 0, 0, 0, true},
    {SEC_MODEL, "power-limit-w", KIND_U32, M(power_limit_w), 1, 10000, true},
    {SEC_MODEL, "power-idle-w", KIND_U32, M(power_idle_w), 0, 10000, true},
    {SEC_MODEL, "sm-clock-mhz", KIND_U32, M(sm_clock_mhz), 1, 100000, true},
    {SEC_MODEL, "memory-clock-mhz", KIND_U32, M(mem_clock_mhz), 1, 100000, true},
    {SEC_MODEL, "memory-bus-bits", KIND_U32, M(mem_bus_bits), 1, 65536, true},
    {SEC_MODEL, "pcie-generation", KIND_U32, M(pcie_gen), 1, 10, true},
    {SEC_MODEL, "pcie-width", KIND_U32, M(pcie_width), 1, 32, true},
    {SEC_MODEL, "pci-id", KIND_HEX, M(pci_id), 1, 0xffff, true},
    {SEC_MODEL, "nvlink-version", KIND_U32, M(nvlink_version), 0, 10, false},
    {SEC_MODEL, "nvlinks", KIND_U32, M(nvlinks), 0, 18, false},
    {SEC_MODEL, "nvlink-switched", KIND_BOOL, M(nvlink_switched), 0, 0, false},
    {SEC_MODEL, "mig", KIND_BOOL, M(mig), 0, 0, false},
    {SEC_MODEL, "ecc", KIND_BOOL, M(ecc), 0, 0, false},
    {SEC_GPU, "model", KIND_SPECIAL, 0, 0, 0, 0, true},
    {SEC_GPU, "bus", KIND_SPECIAL, 0, 0, 0, 0, true},
    {SEC_GPU, "numa", KIND_SPECIAL, 0, 0, 0, 63, false},
    {SEC_GPU, "cpus", KIND_SPECIAL, 0, 0, 0, 0, false},
    {SEC_NIC, "name", KIND_SPECIAL, 0, 0, 0, 0, true},
};
#define KEYS_LEN (sizeof(keys) / sizeof(keys[0]))
_Static_assert(KEYS_LEN <= 64, "seen is a bit mask");

struct parser {
    struct preset *p;
    unsigned line;
    enum section section;
    uint32_t index;                                  /* of the model, card or network card */
    uint64_t seen[7];                                /* by section: keys of it that were set */
    uint32_t once;                                   /* sections that may come once and did */
    char rows[2][TOPO_DEVICES_MAX][PRESET_LINE_MAX]; /* of links and pcie, as text; "" when missing */
};

static int bad(const struct parser *s, struct err *e, const char *key, const char *value, const char *allowed)
{
    return err_set(e, -EINVAL, "line %u: %s: \"%.40s\": %s", s->line, key, value, allowed);
}

static bool text_ok(const char *v, size_t size)
{
    for (const char *p = v; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
            return false;
    return *v && strlen(v) < size;
}

static bool name_ok(const char *v, size_t size)
{
    size_t n = strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    return n > 0 && !v[n] && n < size;
}

/* "8.0" into two numbers below 1,000. */
static int parse_dotted(const char *v, uint32_t *a, uint32_t *b)
{
    size_t n = strspn(v, "0123456789"), m = v[n] == '.' ? strspn(v + n + 1, "0123456789") : 0;
    if (n < 1 || n > 3 || m < 1 || m > 3 || v[n + 1 + m])
        return -EINVAL;
    *a = (uint32_t)strtoul(v, NULL, 10);
    *b = (uint32_t)strtoul(v + n + 1, NULL, 10);
    return 0;
}

static int set_number(struct parser *s, const struct key *k, void *base, const char *v, struct err *e)
{
    struct err why = {0};
    int64_t n = 0;
    uint64_t mib = 0;
    uint32_t a, b;
    if (k->kind == KIND_SIZE_MIB) {
        if (units_parse_mib(v, &mib, &why) != 0 || mib < 1)
            return bad(s, e, k->name, v, why.code ? why.text : "more than 0 is needed");
        *(uint64_t *)(void *)((char *)base + k->offset) = mib;
        return 0;
    }
    if (k->kind == KIND_VERSION) {
        if (parse_dotted(v, &a, &b) != 0 || b > 99)
            return bad(s, e, k->name, v, "a version such as 12.4 is needed");
        n = (int64_t)a * 1000 + b * 10;
    } else if (k->kind == KIND_HEX) {
        size_t digits = strspn(v, "0123456789abcdef");
        if (digits < 1 || digits > 4 || v[digits])
            return bad(s, e, k->name, v, "up to four lower-case hexadecimal digits are needed");
        n = (int64_t)strtoul(v, NULL, 16);
    } else if (units_parse_int(v, k->low, k->high, &n, &why) != 0) {
        return bad(s, e, k->name, v, why.text);
    }
    *(uint32_t *)(void *)((char *)base + k->offset) = (uint32_t)n;
    return 0;
}

static int parse_bus(const char *v, struct preset_gpu *g)
{
    unsigned domain, bus, device;
    int end = 0;
    if (strlen(v) != 16 || strspn(v, "0123456789abcdefABCDEF:.") != 16 ||
        sscanf(v, "%8x:%2x:%2x.0%n", &domain, &bus, &device, &end) != 3 || end != 16 || device > 31)
        return -EINVAL;
    g->domain = domain;
    g->bus = bus;
    g->device = device;
    return 0;
}

static int set_gpu_key(struct parser *s, const struct key *k, const char *v, struct err *e)
{
    struct preset_gpu *g = &s->p->gpus[s->index];
    if (strcmp(k->name, "model") == 0) {
        for (uint32_t i = 0; i < s->p->models_len; i++) {
            if (strcmp(s->p->models[i].id, v) == 0) {
                g->model = i;
                return 0;
            }
        }
        return bad(s, e, k->name, v, "no such model stands above");
    }
    if (strcmp(k->name, "bus") == 0)
        return parse_bus(v, g) == 0 ? 0 : bad(s, e, k->name, v, "a bus id such as 00000000:07:00.0 is needed");
    if (strcmp(k->name, "cpus") == 0)
        return topo_cpus_parse(v, g->cpus, SIMGPU_CPU_WORDS) == 0
                   ? 0
                   : bad(s, e, k->name, v, "a list such as 0-15,32-47 below 1024 is needed");
    int64_t n;
    struct err why;
    if (units_parse_int(v, k->low, k->high, &n, &why) != 0)
        return bad(s, e, k->name, v, why.text);
    g->numa = (int32_t)n;
    return 0;
}

static int set_special(struct parser *s, const struct key *k, const char *v, struct err *e)
{
    if (k->section == SEC_GPU)
        return set_gpu_key(s, k, v, e);
    if (k->section == SEC_TOP)
        return strcmp(v, "1") == 0 ? 0 : bad(s, e, k->name, v, "this version reads format 1");
    if (k->section == SEC_MODEL) {
        struct preset_model *m = &s->p->models[s->index];
        return parse_dotted(v, &m->cc_major, &m->cc_minor) == 0
                   ? 0
                   : bad(s, e, k->name, v, "a compute capability such as 8.0 is needed");
    }
    if (!name_ok(v, TOPO_NAME_SIZE))
        return bad(s, e, k->name, v, "1 to 31 letters, digits, '_', '.', '-' are allowed");
    memcpy(s->p->nics[s->index], v, strlen(v) + 1);
    return 0;
}

static int set_value(struct parser *s, const struct key *k, const char *v, struct err *e)
{
    void *base = k->section == SEC_MODEL ? (void *)&s->p->models[s->index] : (void *)s->p;
    char *field = (char *)base + k->offset;
    switch (k->kind) {
    case KIND_TEXT: {
        bool plain = k->section == SEC_MODEL || strcmp(k->name, "title") == 0;
        if (plain ? !text_ok(v, k->size) : !name_ok(v, k->size))
            return err_set(e, -EINVAL, "line %u: %s: \"%.40s\": 1 to %zu %s are allowed", s->line, k->name, v,
                           k->size - 1, plain ? "printable characters" : "letters, digits, '_', '.', '-'");
        memcpy(field, v, strlen(v) + 1);
        return 0;
    }
    case KIND_BOOL:
        if (strcmp(v, "yes") != 0 && strcmp(v, "no") != 0)
            return bad(s, e, k->name, v, "yes or no is needed");
        *(bool *)(void *)field = *v == 'y';
        return 0;
    case KIND_SPECIAL:
        return set_special(s, k, v, e);
    default:
        return set_number(s, k, base, v, e);
    }
}

/* "GPU3" or "NIC0" as an index into the matrix of the cards and network cards that stand above; -1.
 */
static int device_index(const struct preset *p, const char *name)
{
    for (uint32_t i = 0; i < p->gpus_len + p->nics_len; i++) {
        char expected[16];
        bool gpu = i < p->gpus_len;
        snprintf(expected, sizeof(expected), "%s%u", gpu ? "GPU" : "NIC", gpu ? i : i - p->gpus_len);
        if (strcmp(expected, name) == 0)
            return (int)i;
    }
    return -1;
}

static int matrix_row(struct parser *s, const char *key, const char *v, struct err *e)
{
    int i = device_index(s->p, key);
    char *row = i >= 0 ? s->rows[s->section == SEC_PCIE][i] : NULL;
    if (!row || (s->section == SEC_PCIE && (uint32_t)i >= s->p->gpus_len))
        return err_set(e, -EINVAL, "line %u: \"%.40s\" is no device that stands above", s->line, key);
    if (*row)
        return err_set(e, -EINVAL, "line %u: the row of %s stands there twice", s->line, key);
    snprintf(row, PRESET_LINE_MAX, "%s", v);
    return 0;
}

static int handle_pair(struct parser *s, const char *key, const char *v, struct err *e)
{
    if (s->section == SEC_LINKS || s->section == SEC_PCIE)
        return matrix_row(s, key, v, e);
    for (size_t i = 0; i < KEYS_LEN; i++) {
        if (keys[i].section != s->section || strcmp(keys[i].name, key) != 0)
            continue;
        uint64_t bit = (uint64_t)1 << i;
        if (s->seen[s->section] & bit)
            return err_set(e, -EINVAL, "line %u: %s stands there twice", s->line, key);
        s->seen[s->section] |= bit;
        return set_value(s, &keys[i], v, e);
    }
    return err_set(e, -EINVAL, "line %u: unknown key \"%.40s\"", s->line, key);
}

/* All required keys of the section that ends here are there. */
static int end_section(struct parser *s, struct err *e)
{
    for (size_t i = 0; i < KEYS_LEN; i++) {
        if (keys[i].section == s->section && keys[i].required && !(s->seen[s->section] >> i & 1))
            return err_set(e, -EINVAL, "the section that ends before line %u lacks the key \"%s\"", s->line,
                           keys[i].name);
    }
    return 0;
}

/* "gpu 3" must be the next number. */
static int numbered(struct parser *s, const char *text, uint32_t *len, uint32_t max, struct err *e)
{
    char expected[16];
    snprintf(expected, sizeof(expected), "%u", *len);
    if (*len == max)
        return err_set(e, -EINVAL, "line %u: more than %u of these are not supported", s->line, max);
    if (strcmp(text, expected) != 0)
        return err_set(e, -EINVAL, "line %u: number \"%.20s\": they count from 0 up; %s is next", s->line, text,
                       expected);
    s->index = (*len)++;
    return 0;
}

static int begin_model(struct parser *s, const char *id, struct err *e)
{
    struct preset *p = s->p;
    if (p->models_len == PRESET_MODELS_MAX)
        return err_set(e, -EINVAL, "line %u: more than %u models are not supported", s->line, PRESET_MODELS_MAX);
    if (!name_ok(id, TOPO_NAME_SIZE))
        return bad(s, e, "model", id, "1 to 31 letters, digits, '_', '.', '-' are allowed");
    for (uint32_t i = 0; i < p->models_len; i++)
        if (strcmp(p->models[i].id, id) == 0)
            return bad(s, e, "model", id, "stands there twice");
    s->index = p->models_len++;
    memcpy(p->models[s->index].id, id, strlen(id) + 1);
    return 0;
}

static int begin_section(struct parser *s, char *head, struct err *e)
{
    static const char *const once_names[] = {[SEC_HOST] = "host", [SEC_LINKS] = "links", [SEC_PCIE] = "pcie"};
    int rc = end_section(s, e);
    if (rc != 0)
        return rc;
    char *space = strchr(head, ' ');
    const char *word = space ? space + 1 : "";
    size_t n = space ? (size_t)(space - head) : strlen(head);
    for (enum section c = SEC_HOST; c <= SEC_PCIE; c++) {
        if (!once_names[c] || space || strcmp(head, once_names[c]) != 0)
            continue;
        if (s->once >> c & 1)
            return err_set(e, -EINVAL, "line %u: section %s stands there twice", s->line, head);
        s->once |= 1u << c;
        s->section = c;
        return 0;
    }
    if (s->once >> SEC_LINKS & 1)
        return err_set(e, -EINVAL, "line %u: only pcie may come after links", s->line);
    s->section = SEC_TOP;
    if (n == 5 && strncmp(head, "model", n) == 0) {
        s->section = SEC_MODEL;
        rc = begin_model(s, word, e);
    } else if (n == 3 && strncmp(head, "gpu", n) == 0) {
        s->section = SEC_GPU;
        rc = numbered(s, word, &s->p->gpus_len, SIMGPU_CARDS_MAX, e);
        if (rc == 0)
            s->p->gpus[s->index].numa = -1;
    } else if (n == 3 && strncmp(head, "nic", n) == 0) {
        s->section = SEC_NIC;
        rc = numbered(s, word, &s->p->nics_len, SIMGPU_NICS_MAX, e);
    } else {
        return err_set(e, -EINVAL, "line %u: unknown section \"%.40s\"", s->line, head);
    }
    s->seen[s->section] = 0;
    return rc;
}

/* One line, terminated, without its end. */
static int handle_line(struct parser *s, char *line, struct err *e)
{
    size_t n = strlen(line), indent = strspn(line, " ");
    if (n == 0 || line[indent] == '#')
        return 0;
    if (strchr(line, '\t'))
        return err_set(e, -EINVAL, "line %u: a tab; only spaces are allowed", s->line);
    if (indent == n || line[n - 1] == ' ')
        return err_set(e, -EINVAL, "line %u: white space at the end", s->line);
    if (indent != 0 && (indent != 2 || s->section == SEC_TOP))
        return err_set(e, -EINVAL, "line %u: indented by %zu; keys of a section stand two spaces in", s->line, indent);
    if (indent == 0 && line[n - 1] == ':') {
        line[n - 1] = 0;
        return begin_section(s, line, e);
    }
    if (indent == 0 && s->section != SEC_TOP)
        return err_set(e, -EINVAL, "line %u: keys of the machine stand before all sections", s->line);
    char *colon = strstr(line, ": ");
    if (!colon)
        return err_set(e, -EINVAL, "line %u: \"key: value\" or \"section:\" is needed", s->line);
    *colon = 0;
    const char *value = colon + 2 + strspn(colon + 2, " ");
    return handle_pair(s, line + indent, value, e);
}

/* Splits the row of device `i` into `n` cells and stores them. */
static int parse_cells(const struct parser *s, uint32_t i, uint32_t n, bool pcie, struct topo_link *out, struct err *e)
{
    char text[PRESET_LINE_MAX], *save = NULL;
    const char *section = pcie ? "pcie" : "links", *name = s->p->topo.dev[i].name;
    memcpy(text, s->rows[pcie][i], sizeof(text));
    uint32_t len = 0;
    for (char *cell = strtok_r(text, " ", &save); cell; cell = strtok_r(NULL, " ", &save), len++) {
        if (len == n || topo_link_parse(cell, &out[len]) != 0 || (pcie && out[len].cls == TOPO_NVLINK))
            return err_set(e, -EINVAL, "%s: %s: \"%.16s\": %u cells of X, %sPIX, PXB, PHB, NODE, SYS are needed",
                           section, name, cell, n, pcie ? "" : "NV1..NV18, ");
        if ((out[len].cls == TOPO_SELF) != (len == i))
            return err_set(e, -EINVAL, "%s: %s: X must stand on the diagonal and nowhere else", section, name);
    }
    if (len != n)
        return err_set(e, -EINVAL, "%s: %s: %u cells instead of %u", section, name, len, n);
    return 0;
}

static int symmetric(const struct topo *t, uint32_t i, uint32_t j)
{
    return t->link[i][j].cls == t->link[j][i].cls && t->link[i][j].nvlinks == t->link[j][i].nvlinks;
}

static int build_links(const struct parser *s, struct err *e)
{
    struct preset *p = s->p;
    struct topo *t = &p->topo;
    topo_init(t, p->gpus_len, p->nics_len);
    for (uint32_t i = 0; i < t->devices_len; i++) {
        if (!*s->rows[0][i])
            return err_set(e, -EINVAL, "links: the row of %s is missing", t->dev[i].name);
        int rc = parse_cells(s, i, t->devices_len, false, t->link[i], e);
        if (rc != 0)
            return rc;
        for (uint32_t j = 0; j < i; j++) {
            if (!symmetric(t, i, j))
                return err_set(e, -EINVAL, "links: %s and %s say different things of each other", t->dev[i].name,
                               t->dev[j].name);
            if (t->link[i][j].cls == TOPO_NVLINK && i >= p->gpus_len)
                return err_set(e, -EINVAL, "links: %s: a network card has no NVLink", t->dev[i].name);
        }
    }
    return 0;
}

/* The path without NVLink: as given, else from the matrix, else from the NUMA nodes. */
static int build_pcie(const struct parser *s, struct err *e)
{
    struct preset *p = s->p;
    bool given = s->once >> SEC_PCIE & 1;
    struct topo_link row[SIMGPU_CARDS_MAX];
    for (uint32_t i = 0; i < p->gpus_len; i++) {
        if (given) {
            int rc = parse_cells(s, i, p->gpus_len, true, row, e);
            if (rc != 0)
                return rc;
        }
        for (uint32_t j = 0; j < p->gpus_len; j++) {
            uint8_t cls = p->topo.link[i][j].cls;
            uint8_t numa = p->gpus[i].numa == p->gpus[j].numa ? TOPO_NODE : TOPO_SYS;
            p->pcie[i][j] = given ? row[j].cls : cls == TOPO_NVLINK ? numa : cls;
            if (given && cls != TOPO_NVLINK && cls != row[j].cls)
                return err_set(e, -EINVAL, "pcie: GPU%u, GPU%u: links says something else", i, j);
            if (j < i && p->pcie[i][j] != p->pcie[j][i])
                return err_set(e, -EINVAL, "pcie: GPU%u and GPU%u say different things of each other", i, j);
        }
    }
    return 0;
}

/* No card may have more links than its model, and a switch gives all of them to every pair. */
static int check_nvlinks(const struct preset *p, struct err *e)
{
    for (uint32_t i = 0; i < p->gpus_len; i++) {
        const struct preset_model *m = &p->models[p->gpus[i].model];
        uint32_t sum = 0;
        for (uint32_t j = 0; j < p->gpus_len; j++) {
            struct topo_link l = p->topo.link[i][j];
            bool other = p->models[p->gpus[j].model].nvlink_switched;
            bool wrong = m->nvlink_switched && i != j && other && (l.cls != TOPO_NVLINK || l.nvlinks != m->nvlinks);
            wrong = wrong || (m->nvlink_switched != other && l.cls == TOPO_NVLINK);
            if (wrong)
                return err_set(e, -EINVAL, "links: GPU%u, GPU%u: with nvlink-switched it must be NV%u", i, j,
                               m->nvlinks);
            sum += l.nvlinks;
        }
        if (!m->nvlink_switched && sum > m->nvlinks)
            return err_set(e, -EINVAL, "links: GPU%u: %u NVLinks, but the model %s has %u", i, sum, m->id, m->nvlinks);
    }
    return 0;
}

static int check_cards(const struct preset *p, struct err *e)
{
    for (uint32_t i = 0; i < p->models_len; i++) {
        const struct preset_model *m = &p->models[i];
        if (m->reserved_mib + (uint64_t)m->context_mib >= m->mem_mib)
            return err_set(e, -EINVAL, "model %s: reserved-mib and context-mib leave nothing of memory-mib", m->id);
        if (m->power_idle_w > m->power_limit_w)
            return err_set(e, -EINVAL, "model %s: power-idle-w is above power-limit-w", m->id);
        if (m->nvlink_switched && (m->nvlinks == 0 || m->nvlink_version == 0))
            return err_set(e, -EINVAL, "model %s: nvlink-switched needs nvlinks and nvlink-version", m->id);
    }
    for (uint32_t i = 0; i < p->gpus_len; i++)
        for (uint32_t j = 0; j < i; j++)
            if (p->gpus[i].domain == p->gpus[j].domain && p->gpus[i].bus == p->gpus[j].bus &&
                p->gpus[i].device == p->gpus[j].device)
                return err_set(e, -EINVAL, "gpu %u and gpu %u have the same bus", j, i);
    return 0;
}

static void fill_columns(struct preset *p)
{
    for (uint32_t i = 0; i < p->gpus_len; i++) {
        struct topo_device *d = &p->topo.dev[i];
        topo_cpus_format(p->gpus[i].cpus, SIMGPU_CPU_WORDS, d->cpus, sizeof(d->cpus));
        if (p->gpus[i].numa >= 0)
            snprintf(d->numa, sizeof(d->numa), "%d", p->gpus[i].numa);
        snprintf(d->gpu_numa, sizeof(d->gpu_numa), "N/A");
    }
    for (uint32_t i = 0; i < p->nics_len; i++)
        memcpy(p->topo.dev[p->gpus_len + i].nic, p->nics[i], TOPO_NAME_SIZE);
}

static int finish(struct parser *s, struct err *e)
{
    struct preset *p = s->p;
    int rc = end_section(s, e);
    if (rc == 0 && s->seen[SEC_HOST] == 0)
        rc = err_set(e, -EINVAL, "the section host is missing");
    if (rc == 0 && p->gpus_len == 0)
        rc = err_set(e, -EINVAL, "no card: at least \"gpu 0\" is needed");
    if (rc == 0)
        rc = check_cards(p, e);
    if (rc == 0)
        rc = build_links(s, e);
    if (rc == 0)
        rc = build_pcie(s, e);
    if (rc == 0)
        rc = check_nvlinks(p, e);
    if (rc == 0)
        fill_columns(p);
    return rc;
}

int preset_parse(const char *text, size_t len, struct preset *ret, struct err *e)
{
    if (len > PRESET_FILE_MAX)
        return err_set(e, -EINVAL, "a preset of more than 256 KiB");
    CLEANUP_FREE struct parser *s = mem_alloc(1, sizeof(*s));
    CLEANUP_FREE struct preset *p = mem_alloc(1, sizeof(*p));
    if (!s || !p)
        return err_set(e, -ENOMEM, "no memory");
    s->p = p;
    int rc = 0;
    for (size_t at = 0; at < len && rc == 0;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        char line[PRESET_LINE_MAX];
        s->line++;
        if (n >= sizeof(line) || memchr(text + at, 0, n))
            return err_set(e, -EINVAL, "line %u: not text, or more than %d bytes", s->line, PRESET_LINE_MAX - 1);
        memcpy(line, text + at, n);
        line[n] = 0;
        rc = handle_line(s, line, e);
        at += n + 1;
    }
    s->line++;
    if (rc == 0)
        rc = finish(s, e);
    if (rc == 0)
        *ret = *p;
    return rc;
}

int preset_load(const char *path, struct preset *ret, struct err *e)
{
    CLEANUP_FREE char *text = NULL;
    size_t len = 0;
    int rc = file_read(path, PRESET_FILE_MAX, &text, &len, e);
    if (rc != 0)
        return rc;
    rc = preset_parse(text, len, ret, e);
    return rc == 0 ? 0 : err_prefix(e, "%s", path);
}

/* The name of the first preset in the folder that comes after `last`, without ".yaml"; false at the
 * end. */
static bool next_name(DIR *dir, const char *last, char out[256])
{
    bool found = false;
    rewinddir(dir);
    for (const struct dirent *d; (d = readdir(dir)) != NULL;) {
        size_t n = strlen(d->d_name);
        if (n <= 5 || n >= 256 || strcmp(d->d_name + n - 5, ".yaml") != 0)
            continue;
        char name[256];
        memcpy(name, d->d_name, n - 5);
        name[n - 5] = 0;
        if (strcmp(name, last) > 0 && (!found || strcmp(name, out) < 0)) {
            memcpy(out, name, n - 4);
            found = true;
        }
    }
    return found;
}

static int not_found(const char *text, const char *folder, struct err *e)
{
    struct strbuf names = {0};
    DIR *dir = opendir(folder);
    char last[256] = "", name[256];
    while (dir && next_name(dir, last, name)) {
        strbuf_printf(&names, "%s%s", names.len ? ", " : "", name);
        memcpy(last, name, sizeof(last));
    }
    if (dir)
        closedir(dir);
    int rc = err_set(e, -ENOENT, "no preset \"%.40s\"; %s%s", text, names.len ? "there are " : "none is installed in ",
                     names.len ? strbuf_str(&names) : folder);
    strbuf_done(&names);
    return rc;
}

int preset_find(const char *text, const char *folder, char **ret, struct err *e)
{
    struct strbuf path = {0};
    bool is_path = strchr(text, '/') != NULL;
    if (is_path)
        strbuf_puts(&path, text);
    else
        strbuf_printf(&path, "%s/%s.yaml", folder, text);
    if (path.failed)
        return err_set(e, -ENOMEM, "no memory");
    if (access(strbuf_str(&path), F_OK) != 0) {
        int rc = is_path ? err_set(e, -errno, "%s: %s", text, strerror(errno)) : not_found(text, folder, e);
        strbuf_done(&path);
        return rc;
    }
    *ret = strbuf_take(&path);
    return 0;
}

/* FNV-1a over the name seeds the generator; version and variant bits as a random UUID has them. */
void preset_uuid(const char *preset_name, uint32_t index, char out[48])
{
    uint64_t seed = 0xcbf29ce484222325u;
    for (const char *p = preset_name; *p; p++)
        seed = (seed ^ (unsigned char)*p) * 0x100000001b3u;
    struct rng r;
    rng_init(&r, seed + index);
    uint64_t a = rng_next(&r), b = rng_next(&r);
    snprintf(out, 48, "GPU-%08x-%04x-4%03x-%04x-%04x%08x", (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
             (unsigned)(a & 0xfff), (unsigned)(0x8000 | (b >> 48 & 0x3fff)), (unsigned)(b >> 32 & 0xffff), (unsigned)b);
}
