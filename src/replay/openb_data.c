/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/openb_data.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "replay/csv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU_MAX     10000000u
#define MEM_MAX     (1u << 30)
#define PODS_MAX    1000000u
#define COVERED_PPM 950000
#define GPU_MEM_MIB 16384 /* the trace says nothing about the memory of cards, and no task asks for any */

void openb_data_done(struct openb_data *d)
{
    mem_free(d->nodes);
    mem_free(d->ranks);
    mem_free(d->pods);
    mem_free(d->arrivals);
    intern_done(&d->specs);
    *d = (struct openb_data){0};
}

static int no_memory(struct err *e)
{
    return err_set(e, -ENOMEM, "out of memory");
}

/* A text field that has to fit into `size` bytes and, unless `may_be_empty`, say something. */
static int text_field(const struct csv *c, int column, size_t size, bool may_be_empty, char *ret, struct err *e)
{
    const char *text = c->fields[column];
    size_t len = strlen(text);
    if (len >= size || (len == 0 && !may_be_empty))
        return err_set(e, -EINVAL, "%s:%u: column %s is '%.40s', allowed are %d to %zu bytes", c->path, c->line,
                       c->names[column], text, !may_be_empty, size - 1);
    memcpy(ret, text, len + 1);
    return 0;
}

/* Numbers of the named columns; the first missing one is the error. */
static int columns(const struct csv *c, const char *const *names, size_t len, int *ret, struct err *e)
{
    for (size_t i = 0; i < len; i++) {
        ret[i] = csv_column(c, names[i], e);
        if (ret[i] < 0)
            return -EINVAL;
    }
    return 0;
}

static int read_node(struct openb_data *d, const struct csv *c, const int col[5], struct err *e)
{
    struct node_desc n = {0};
    uint32_t mem = 0;
    char model[GPU_MODEL_SIZE] = {0};
    if (text_field(c, col[0], sizeof n.name, false, n.name, e) < 0 ||
        csv_u32(c, col[1], CPU_MAX, &n.cpu_milli, e) < 0 || csv_u32(c, col[2], MEM_MAX, &mem, e) < 0 ||
        csv_u32(c, col[3], NODE_GPUS_MAX, &n.gpus_len, e) < 0 ||
        text_field(c, col[4], sizeof model, n.gpus_len == 0, model, e) < 0)
        return -EINVAL;
    n.mem_mib = mem;
    memset(n.link, LINK_UNKNOWN, sizeof n.link);
    for (uint32_t i = 0; i < n.gpus_len; i++) {
        snprintf(n.gpus[i].uuid, sizeof n.gpus[i].uuid, "GPU-%u-%u", d->nodes_len, i);
        memcpy(n.gpus[i].model, model, sizeof model);
        n.gpus[i].mem_mib = GPU_MEM_MIB;
        n.gpus[i].island = (uint8_t)i;
        n.gpus[i].healthy = true;
        n.link[i][i] = LINK_SELF;
    }
    if (mem_grow(&d->nodes, &d->nodes_cap, (size_t)d->nodes_len + 1, sizeof *d->nodes) < 0)
        return no_memory(e);
    d->nodes[d->nodes_len++] = n;
    return 0;
}

static int read_nodes(struct openb_data *d, struct csv *c, struct err *e)
{
    static const char *const names[] = {"sn", "cpu_milli", "memory_mib", "gpu", "model"};
    int col[5];
    int r = columns(c, names, 5, col, e);
    if (r < 0)
        return r;
    while ((r = csv_next(c, e)) > 0) {
        r = read_node(d, c, col, e);
        if (r < 0)
            return r;
    }
    if (r == 0 && d->nodes_len == 0)
        return err_set(e, -EINVAL, "%s: no nodes", c->path);
    return r;
}

static int read_pod(struct openb_data *d, const struct csv *c, const int col[5], struct err *e)
{
    struct openb_pod p = {0};
    uint32_t mem = 0;
    uint32_t milli = 0;
    if (csv_u32(c, col[0], CPU_MAX, &p.req.cpu_milli, e) < 0 || csv_u32(c, col[1], MEM_MAX, &mem, e) < 0 ||
        csv_u32(c, col[2], GPUS_PER_WORKER_MAX, &p.req.gpus, e) < 0 || csv_u32(c, col[3], GPU_MILLI, &milli, e) < 0)
        return -EINVAL;
    if (col[4] >= 0 && text_field(c, col[4], sizeof p.req.gpu_model, true, p.req.gpu_model, e) < 0)
        return -EINVAL;
    bool ok = p.req.gpus == 0 ? milli == 0 : p.req.gpus == 1 ? milli > 0 : milli == GPU_MILLI;
    if (!ok)
        return err_set(e, -EINVAL, "%s:%u: num_gpu %u with gpu_milli %u; a part of a card goes with one card only",
                       c->path, c->line, p.req.gpus, milli);
    p.req.mem_mib = mem;
    if (p.req.gpus == 1 && milli < GPU_MILLI) {
        p.req.gpus = 0;
        p.req.share_milli = milli;
    }
    p.spec = intern_id(&d->specs, p.req.gpu_model);
    if (p.spec == INTERN_NONE || mem_grow(&d->pods, &d->pods_cap, (size_t)d->pods_len + 1, sizeof *d->pods) < 0)
        return no_memory(e);
    d->pods[d->pods_len++] = p;
    return 0;
}

static int read_pods(struct openb_data *d, struct csv *c, struct err *e)
{
    static const char *const names[] = {"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"};
    int col[5];
    int r = columns(c, names, 4, col, e);
    col[4] = csv_column(c, "gpu_spec", NULL);
    while (r >= 0 && (r = csv_next(c, e)) > 0) {
        if (d->pods_len == PODS_MAX)
            return err_set(e, -EINVAL, "%s: more than %u tasks", c->path, PODS_MAX);
        r = read_pod(d, c, col, e);
    }
    if (r == 0 && d->pods_len == 0)
        return err_set(e, -EINVAL, "%s: no tasks", c->path);
    return r;
}

/* One column of numbers below `below`. */
static int read_numbers(struct csv *c, const char *name, uint32_t below, uint32_t **array, size_t *cap, uint32_t *len,
                        struct err *e)
{
    int col;
    int r = columns(c, &name, 1, &col, e);
    while (r >= 0 && (r = csv_next(c, e)) > 0) {
        uint32_t value = 0;
        r = csv_u32(c, col, below - 1, &value, e);
        if (r < 0)
            return r;
        if (*len == 10 * PODS_MAX)
            return err_set(e, -EINVAL, "%s: more than %u lines", c->path, 10 * PODS_MAX);
        if (mem_grow(array, cap, (size_t)*len + 1, sizeof **array) < 0)
            return no_memory(e);
        (*array)[(*len)++] = value;
    }
    return r;
}

static int read_arrivals(struct openb_data *d, struct csv *c, struct err *e)
{
    return read_numbers(c, "pod_row", d->pods_len, &d->arrivals, &d->arrivals_cap, &d->arrivals_len, e);
}

/* Every rank once: equal ones would leave the order open. */
static int read_ranks(struct openb_data *d, struct csv *c, struct err *e)
{
    uint32_t len = 0;
    int r = read_numbers(c, "rank", d->nodes_len, &d->ranks, &d->ranks_cap, &len, e);
    if (r < 0)
        return r;
    if (len != d->nodes_len)
        return err_set(e, -EINVAL, "%s: %u ranks for %u nodes", c->path, len, d->nodes_len);
    bool *seen CLEANUP_FREE = mem_alloc(len, sizeof *seen);
    if (seen == NULL)
        return no_memory(e);
    for (uint32_t i = 0; i < len; i++) {
        if (seen[d->ranks[i]])
            return err_set(e, -EINVAL, "%s:%u: rank %u a second time", c->path, i + 2, d->ranks[i]);
        seen[d->ranks[i]] = true;
    }
    return 0;
}

static int read_file(struct openb_data *d, const char *path,
                     int (*read)(struct openb_data *, struct csv *, struct err *), struct err *e)
{
    struct csv c;
    int r = csv_open(&c, path, e);
    if (r < 0)
        return r;
    r = read(d, &c, e);
    csv_done(&c);
    return r;
}

int openb_read(struct openb_data *d, const char *dir, const char *workload, uint32_t seed, struct err *e)
{
    *d = (struct openb_data){0};
    char path[4096];
    bool is_default = strcmp(workload, "default") == 0;
    if (strlen(dir) + strlen(workload) > sizeof path - 100)
        return err_set(e, -EINVAL, "openb: the folder's name is longer than %zu bytes", sizeof path - 100);
    snprintf(path, sizeof path, "%s/openb_node_list_gpu_node.csv", dir);
    int r = read_file(d, path, read_nodes, e);
    if (r >= 0) {
        snprintf(path, sizeof path, "%s/%sopenb_pod_list_%s.csv", dir, is_default ? "" : "variants/", workload);
        r = read_file(d, path, read_pods, e);
    }
    if (r >= 0) {
        snprintf(path, sizeof path, "%s/orders/%s_seed%u_pods.csv", dir, workload, seed);
        r = read_file(d, path, read_arrivals, e);
    }
    if (r >= 0) {
        snprintf(path, sizeof path, "%s/orders/%s_seed%u_noderank.csv", dir, workload, seed);
        r = read_file(d, path, read_ranks, e);
    }
    if (r < 0)
        openb_data_done(d);
    return r < 0 ? r : 0;
}

/* --- the mix --- */

struct kind {
    const struct openb_pod *pod;
    const char *spec;
    uint64_t count;
};

static int descending(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

static uint32_t milli_of(const struct request *r)
{
    return r->gpus > 0 ? GPU_MILLI : r->share_milli;
}

static uint32_t cards_of(const struct request *r)
{
    return r->share_milli > 0 ? 1 : r->gpus;
}

static int compare_requests(const struct kind *x, const struct kind *y)
{
    int r = descending(x->pod->req.cpu_milli, y->pod->req.cpu_milli);
    r = r != 0 ? r : descending(cards_of(&x->pod->req), cards_of(&y->pod->req));
    r = r != 0 ? r : descending(milli_of(&x->pod->req), milli_of(&y->pod->req));
    return r != 0 ? r : -strcmp(x->spec, y->spec);
}

static int by_request(const void *a, const void *b)
{
    return compare_requests(a, b);
}

static int by_count(const void *a, const void *b)
{
    const struct kind *x = a;
    const struct kind *y = b;
    int r = descending(x->count, y->count);
    return r != 0 ? r : compare_requests(x, y);
}

/* Distinct requests with their counts, the most frequent first; returns how many. */
static size_t count_kinds(const struct openb_data *d, struct kind *kinds)
{
    for (uint32_t i = 0; i < d->pods_len; i++)
        kinds[i] = (struct kind){.pod = &d->pods[i], .spec = intern_name(&d->specs, d->pods[i].spec), .count = 1};
    qsort(kinds, d->pods_len, sizeof *kinds, by_request);
    size_t len = 0;
    for (uint32_t i = 0; i < d->pods_len; i++) {
        if (len > 0 && compare_requests(&kinds[len - 1], &kinds[i]) == 0)
            kinds[len - 1].count++;
        else
            kinds[len++] = kinds[i];
    }
    qsort(kinds, len, sizeof *kinds, by_count);
    return len;
}

int openb_mix(const struct openb_data *d, const struct cluster *c, struct mix_item **ret, size_t *ret_len)
{
    struct kind *kinds CLEANUP_FREE = mem_alloc(d->pods_len, sizeof *kinds);
    if (kinds == NULL)
        return -ENOMEM;
    size_t len = count_kinds(d, kinds);
    struct mix_item *items = mem_alloc(len, sizeof *items);
    if (items == NULL)
        return -ENOMEM;
    uint64_t covered = 0;
    size_t kept = 0;
    for (; kept < len && covered * 1000000 < (uint64_t)d->pods_len * COVERED_PPM; kept++) {
        const struct request *r = &kinds[kept].pod->req;
        items[kept] = (struct mix_item){
            .cpu_milli = r->cpu_milli,
            .gpus = cards_of(r),
            .milli = milli_of(r),
            .model_mask = cluster_model_mask(c, r->gpu_model),
            .weight = kinds[kept].count,
        };
        covered += kinds[kept].count;
    }
    *ret = items;
    *ret_len = kept;
    return 0;
}
