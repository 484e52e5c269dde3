/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads cluster files. A group says what one node has and how many there are; names are patterns in
 * which "%d" (or
 * "%03d") stands for a running number, so that
 *
 *     racks:
 *       - {name: r%d, count: 2, nodes: [{name: n%02d, count: 3, preset: dgx-a100}]}
 *
 * gives n01..n03 in r1 and n04..n06 in r2: the number of a group runs on from rack to rack.
 */
#include "config/cluster_file.h"

#include "base/intern.h"
#include "base/mem.h"
#include "base/units.h"
#include "config/suggest.h"
#include "config/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CPUS_MAX_MILLI 4096000u
#define MEM_MAX_MIB    ((uint64_t)64 << 20)

/*
 * Machines people know, by the names of the presets for one machine (presets/; a unit test holds these figures against
 * those files, which this layer does not read).
 */
static const struct preset {
    const char *name;
    struct cluster_node node;
} presets[] = {
    {"dgx-a100",
     {.cpu_milli = 256000,
      .mem_mib = 2097152,
      .gpus = 8,
      .gpu_model = "A100-80GB",
      .gpu_mem_mib = 81920,
      .links = CLUSTER_LINKS_NVLINK,
      .nvlinks = 12}},
    {"dgx-h100",
     {.cpu_milli = 224000,
      .mem_mib = 2097152,
      .gpus = 8,
      .gpu_model = "H100-80GB",
      .gpu_mem_mib = 81559,
      .links = CLUSTER_LINKS_NVLINK,
      .nvlinks = 18}},
    {"hgx-h200",
     {.cpu_milli = 192000,
      .mem_mib = 2097152,
      .gpus = 8,
      .gpu_model = "H200",
      .gpu_mem_mib = 143771,
      .links = CLUSTER_LINKS_NVLINK,
      .nvlinks = 18}},
    {"hgx-b200",
     {.cpu_milli = 224000,
      .mem_mib = 2097152,
      .gpus = 8,
      .gpu_model = "B200",
      .gpu_mem_mib = 183359,
      .links = CLUSTER_LINKS_NVLINK,
      .nvlinks = 18}},
    {"4xl40s",
     {.cpu_milli = 128000,
      .mem_mib = 524288,
      .gpus = 4,
      .gpu_model = "L40S",
      .gpu_mem_mib = 46068,
      .links = CLUSTER_LINKS_PCIE}},
    {"2xt4",
     {.cpu_milli = 64000,
      .mem_mib = 262144,
      .gpus = 2,
      .gpu_model = "T4",
      .gpu_mem_mib = 15360,
      .links = CLUSTER_LINKS_PCIE}},
};

/* State of one parse. */
struct reading {
    struct yaml_doc doc;
    struct cluster_file *out;
    struct intern names; /* of nodes so far */
    struct err *e;
};

static int check_keys(struct reading *r, const json_t *object, const char *what, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        const char *best = NULL;
        bool found = false;
        for (size_t i = 0; known[i] != NULL; i++) {
            found = found || strcmp(known[i], key) == 0;
            suggest_offer(key, known[i], &best);
        }
        if (!found)
            return yaml_err_key(&r->doc, r->e, object, key, "%s has no key \"%s\"%s%s%s", what, key,
                                best == NULL ? "" : "; did you mean \"", best == NULL ? "" : best,
                                best == NULL ? "" : "\"?");
    }
    return 0;
}

static int get_uint(struct reading *r, const json_t *object, const char *key, uint64_t min, uint64_t max, uint64_t *ret)
{
    const json_t *v = json_object_get(object, key);
    if (v == NULL)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < (json_int_t)min || json_integer_value(v) > (json_int_t)max)
        return yaml_err_key(&r->doc, r->e, object, key, "%s: a whole number from %llu to %llu is wanted", key,
                            (unsigned long long)min, (unsigned long long)max);
    *ret = (uint64_t)json_integer_value(v);
    return 0;
}

static int get_text(struct reading *r, const json_t *object, const char *key, const char **ret)
{
    const json_t *v = json_object_get(object, key);
    if (v == NULL)
        return 0;
    if (!json_is_string(v))
        return yaml_err_key(&r->doc, r->e, object, key, "%s: text is wanted", key);
    *ret = json_string_value(v);
    return 0;
}

/* The text of a scalar that may be a number or a text, for the parsers of units. False when it is
 * neither. */
static bool scalar_text(const json_t *v, char *out, size_t size)
{
    int len = -1;
    if (json_is_string(v))
        len = snprintf(out, size, "%s", json_string_value(v));
    else if (json_is_integer(v))
        len = snprintf(out, size, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        len = snprintf(out, size, "%.3f", json_real_value(v));
    return len > 0 && (size_t)len < size;
}

static int get_mib(struct reading *r, const json_t *object, const char *key, uint64_t max, uint64_t *ret)
{
    const json_t *v = json_object_get(object, key);
    char text[64];
    struct err why = {0};
    uint64_t mib = 0;
    if (v == NULL)
        return 0;
    if (!scalar_text(v, text, sizeof(text)))
        return yaml_err_key(&r->doc, r->e, object, key, "%s: a size such as 80GiB is wanted", key);
    if (units_parse_mib(text, &mib, &why) != 0)
        return yaml_err_key(&r->doc, r->e, object, key, "%s: %s", key, why.text);
    if (mib == 0 || mib > max)
        return yaml_err_key(&r->doc, r->e, object, key, "%s: %s is not allowed; from 1 MiB to %llu MiB", key, text,
                            (unsigned long long)max);
    *ret = mib;
    return 0;
}

static int get_cpus(struct reading *r, const json_t *object, uint32_t *ret_milli)
{
    const json_t *v = json_object_get(object, "cpus");
    char text[64];
    struct err why = {0};
    uint64_t milli = 0;
    if (v == NULL)
        return 0;
    if (!scalar_text(v, text, sizeof(text)))
        return yaml_err_key(&r->doc, r->e, object, "cpus", "cpus: a number such as 64 is wanted");
    if (units_parse_milli(text, CPUS_MAX_MILLI, &milli, &why) != 0)
        return yaml_err_key(&r->doc, r->e, object, "cpus", "cpus: %s", why.text);
    *ret_milli = (uint32_t)milli;
    return 0;
}

static int get_preset(struct reading *r, const json_t *group, struct cluster_node *node)
{
    const char *name = NULL;
    int rc = get_text(r, group, "preset", &name);
    if (rc != 0 || name == NULL)
        return rc;
    char known[160] = "";
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
        if (strcmp(presets[i].name, name) == 0) {
            *node = presets[i].node;
            return 0;
        }
        size_t len = strlen(known);
        snprintf(known + len, sizeof(known) - len, "%s%s", i == 0 ? "" : ", ", presets[i].name);
    }
    return yaml_err_key(&r->doc, r->e, group, "preset", "preset: there is no \"%s\"; allowed: %s", name, known);
}

static int get_links(struct reading *r, const json_t *group, struct cluster_node *node)
{
    const char *text = NULL;
    int rc = get_text(r, group, "links", &text);
    if (rc != 0 || text == NULL)
        return rc;
    if (strcmp(text, "pcie") == 0)
        node->links = CLUSTER_LINKS_PCIE;
    else if (strcmp(text, "nvlink") == 0)
        node->links = CLUSTER_LINKS_NVLINK;
    else if (strcmp(text, "nvlink-pairs") == 0)
        node->links = CLUSTER_LINKS_NVLINK_PAIRS;
    else
        return yaml_err_key(&r->doc, r->e, group, "links",
                            "links: \"%s\" is not known; allowed: pcie, nvlink, nvlink-pairs", text);
    if (node->nvlinks == 0)
        node->nvlinks = 12;
    return 0;
}

static int get_cards(struct reading *r, const json_t *group, struct cluster_node *node)
{
    const char *model = NULL;
    uint64_t gpus = node->gpus;
    uint64_t mem = node->gpu_mem_mib;
    int rc = get_uint(r, group, "gpus", 0, GPUS_PER_WORKER_MAX, &gpus);
    if (rc == 0)
        rc = get_text(r, group, "gpu_model", &model);
    if (rc == 0)
        rc = get_mib(r, group, "gpu_mem", 4u << 20, &mem);
    if (rc == 0)
        rc = get_links(r, group, node);
    if (rc != 0)
        return rc;
    if (model != NULL && (model[0] == '\0' || strlen(model) >= GPU_MODEL_SIZE || strpbrk(model, "|\"\\\t\n ") != NULL))
        return yaml_err_key(&r->doc, r->e, group, "gpu_model",
                            "gpu_model: 1 to %d bytes without blanks, quotes and '|' are wanted", GPU_MODEL_SIZE - 1);
    node->gpus = (uint32_t)gpus;
    node->gpu_mem_mib = (uint32_t)mem;
    if (model != NULL)
        snprintf(node->gpu_model, sizeof(node->gpu_model), "%s", model);
    if (gpus > 0 && (node->gpu_model[0] == '\0' || mem == 0))
        return yaml_err_key(&r->doc, r->e, group, "gpus",
                            "gpus: cards need gpu_model and gpu_mem, or a preset that brings them");
    return 0;
}

/* Puts `number` in the place of "%d" or "%0Nd"; *ret_numbered says whether there was one. False:
 * not a pattern. */
static bool expand(const char *pattern, uint64_t number, char *out, size_t size, bool *ret_numbered)
{
    const char *mark = strchr(pattern, '%');
    *ret_numbered = mark != NULL;
    if (mark == NULL)
        return (size_t)snprintf(out, size, "%s", pattern) < size;
    int width = 0;
    const char *p = mark + 1;
    if (p[0] == '0' && p[1] >= '1' && p[1] <= '9') {
        width = p[1] - '0';
        p += 2;
    }
    if (*p != 'd' || strchr(p, '%') != NULL)
        return false;
    int len =
        snprintf(out, size, "%.*s%0*llu%s", (int)(mark - pattern), pattern, width, (unsigned long long)number, p + 1);
    return len > 0 && (size_t)len < size;
}

static bool plain_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return name[0] != '\0' && strspn(name, letters) == strlen(name);
}

static int name_of(struct reading *r, const json_t *object, uint64_t number, uint64_t count, char out[NAME_SIZE])
{
    const char *pattern = NULL;
    bool numbered = false;
    int rc = get_text(r, object, "name", &pattern);
    if (rc != 0)
        return rc;
    if (pattern == NULL)
        return yaml_err_key(&r->doc, r->e, object, "name", "name is missing");
    if (!expand(pattern, number, out, NAME_SIZE, &numbered) || !plain_name(out))
        return yaml_err_key(&r->doc, r->e, object, "name",
                            "name: \"%s\" is not allowed; at most %d letters, digits, '.', '_', "
                            "'-' and one %%d or %%03d",
                            pattern, NAME_SIZE - 1);
    if (count > 1 && !numbered)
        return yaml_err_key(&r->doc, r->e, object, "name",
                            "name: \"%s\" would be given %llu times; put %%d where the number goes", pattern,
                            (unsigned long long)count);
    return 0;
}

static int add_node(struct reading *r, const json_t *group, const struct cluster_node *node)
{
    struct cluster_file *out = r->out;
    if (intern_find(&r->names, node->name) != INTERN_NONE)
        return yaml_err_key(&r->doc, r->e, group, "name", "name: there are two nodes \"%s\"", node->name);
    if (out->len >= CLUSTER_FILE_NODES_MAX)
        return yaml_err_key(&r->doc, r->e, group, "count", "more than %d nodes are not allowed",
                            CLUSTER_FILE_NODES_MAX);
    if (intern_id(&r->names, node->name) == INTERN_NONE ||
        mem_grow(&out->nodes, &out->cap, out->len + 1, sizeof(*out->nodes)) != 0)
        return err_set(r->e, -ENOMEM, "%s: out of memory", r->doc.name);
    out->nodes[out->len++] = *node;
    return 0;
}

/* One group of equal nodes in the rack number `rack_index` (from 0) of its rack entry. */
static int read_group(struct reading *r, const json_t *group, const char *rack, uint64_t rack_index)
{
    static const char *const known[] = {"name", "count",     "first",   "preset", "cpus", "mem",
                                        "gpus", "gpu_model", "gpu_mem", "links",  NULL};
    struct cluster_node node = {0};
    uint64_t count = 1;
    uint64_t first = 1;
    int rc = check_keys(r, group, "a group of nodes", known);
    if (rc == 0)
        rc = get_uint(r, group, "count", 1, CLUSTER_FILE_NODES_MAX, &count);
    if (rc == 0)
        rc = get_uint(r, group, "first", 0, 1000000, &first);
    if (rc == 0)
        rc = get_preset(r, group, &node);
    if (rc == 0)
        rc = get_cpus(r, group, &node.cpu_milli);
    if (rc == 0)
        rc = get_mib(r, group, "mem", MEM_MAX_MIB, &node.mem_mib);
    if (rc == 0)
        rc = get_cards(r, group, &node);
    if (rc == 0 && (node.cpu_milli == 0 || node.mem_mib == 0))
        rc = yaml_err_key(&r->doc, r->e, group, "name", "a group of nodes needs cpus and mem, or a preset");
    snprintf(node.rack, sizeof(node.rack), "%s", rack);
    for (uint64_t i = 0; rc == 0 && i < count; i++) {
        rc = name_of(r, group, first + rack_index * count + i, count, node.name);
        if (rc == 0)
            rc = add_node(r, group, &node);
    }
    return rc;
}

static int read_groups(struct reading *r, const json_t *parent, const char *rack, uint64_t rack_index)
{
    const json_t *groups = json_object_get(parent, "nodes");
    if (!json_is_array(groups) || json_array_size(groups) == 0)
        return yaml_err_key(&r->doc, r->e, parent, "nodes", "nodes: a list of groups of nodes is wanted");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        if (!json_is_object(group))
            return yaml_err_item(&r->doc, r->e, groups, i, "a group of nodes is wanted, with name, count and so on");
        int rc = read_group(r, group, rack, rack_index);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int read_rack(struct reading *r, const json_t *rack)
{
    static const char *const known[] = {"name", "count", "first", "nodes", NULL};
    uint64_t count = 1;
    uint64_t first = 1;
    int rc = check_keys(r, rack, "a rack", known);
    if (rc == 0)
        rc = get_uint(r, rack, "count", 1, CLUSTER_FILE_NODES_MAX, &count);
    if (rc == 0)
        rc = get_uint(r, rack, "first", 0, 1000000, &first);
    for (uint64_t i = 0; rc == 0 && i < count; i++) {
        char name[NAME_SIZE];
        rc = name_of(r, rack, first + i, count, name);
        if (rc == 0)
            rc = read_groups(r, rack, name, i);
    }
    return rc;
}

static int read_file(struct reading *r)
{
    static const char *const known[] = {"racks", "nodes", NULL};
    const json_t *root = r->doc.root;
    if (!json_is_object(root))
        return err_set(r->e, -EINVAL, "%s: a cluster file is a mapping with the key racks or nodes", r->doc.name);
    int rc = check_keys(r, root, "a cluster file", known);
    const json_t *racks = json_object_get(root, "racks");
    if (rc == 0 && racks != NULL && !json_is_array(racks))
        rc = yaml_err_key(&r->doc, r->e, root, "racks", "racks: a list is wanted");
    for (size_t i = 0; rc == 0 && i < json_array_size(racks); i++) {
        const json_t *rack = json_array_get(racks, i);
        rc = json_is_object(rack) ? read_rack(r, rack)
                                  : yaml_err_item(&r->doc, r->e, racks, i, "a rack with name and nodes is wanted");
    }
    if (rc == 0 && json_object_get(root, "nodes") != NULL)
        rc = read_groups(r, root, "", 0);
    if (rc == 0 && r->out->len == 0)
        rc = err_set(r->e, -EINVAL, "%s: there is no node in it; put groups under racks or nodes", r->doc.name);
    return rc;
}

/* Takes over r->doc. */
static int finish(struct reading *r, struct cluster_file *ret)
{
    struct cluster_file out = {0};
    r->out = &out;
    intern_init(&r->names);
    int rc = read_file(r);
    intern_done(&r->names);
    yaml_done(&r->doc);
    if (rc != 0)
        cluster_file_done(&out);
    else
        *ret = out;
    return rc;
}

int cluster_file_parse(const char *text, size_t len, const char *name, struct cluster_file *ret, struct err *e)
{
    struct reading r = {.e = e};
    int rc = yaml_parse(text, len, name, &r.doc, e);
    return rc == 0 ? finish(&r, ret) : rc;
}

int cluster_file_load(const char *path, struct cluster_file *ret, struct err *e)
{
    struct reading r = {.e = e};
    int rc = yaml_load_file(path, &r.doc, e);
    return rc == 0 ? finish(&r, ret) : rc;
}

void cluster_file_done(struct cluster_file *c)
{
    if (c == NULL)
        return;
    mem_free(c->nodes);
    *c = (struct cluster_file){0};
}
