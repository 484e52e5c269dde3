/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/cards.h"

#include "abi/simgpu.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/sys/file.h"
#include "gpu/inventory.h"
#include "gpu/preset.h"
#include "gpu/sim_setup.h"
#include "gpu/telemetry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(ENGINE_UUID_SIZE == INVENTORY_UUID_SIZE, "uuids are copied whole");

struct cards {
    struct nvml nvml;
    struct gpu_inventory inventory;
    struct telemetry telemetry;
    struct engine_gpu_sample samples[TOPO_GPUS_MAX];
    bool lost[TOPO_GPUS_MAX];
    uint32_t cpu_milli; /* of the simulated machine; 0: not stated */
    char *state_file;   /* of simulated cards; NULL: real */
    char *topology;
};

static int read_preset(struct cards *c, const char *preset, struct err *e)
{
    struct preset *p = mem_alloc(1, sizeof *p);
    if (p == NULL)
        return err_set(e, -ENOMEM, "no memory for the preset");
    int r = preset_load(preset, p, e);
    if (r == 0)
        c->cpu_milli = p->host_cpus * 1000;
    mem_free(p);
    return r;
}

static int open_simulated(struct cards *c, const char *preset, const char *state_dir, const char *simgpu_dir,
                          struct err *e)
{
    struct strbuf dir = {0}, file = {0}, library = {0};
    strbuf_printf(&dir, "%s/simgpu", state_dir);
    strbuf_printf(&file, "%s/%s", strbuf_str(&dir), SIMGPU_FILE);
    strbuf_printf(&library, "%s/libnvidia-ml.so.1", simgpu_dir != NULL ? simgpu_dir : ".");
    int r = dir.failed || file.failed || library.failed ? err_set(e, -ENOMEM, "no memory for simulated cards") : 0;
    if (r == 0)
        r = read_preset(c, preset, e);
    if (r == 0)
        r = dir_make(dir.data, 0755, e);
    if (r == 0)
        r = sim_setup_create(preset, dir.data, e);
    if (r == 0 && setenv(SIMGPU_ENV, file.data, 1) < 0)
        r = err_set(e, -errno, SIMGPU_ENV ": %s", strerror(errno));
    if (r == 0)
        r = nvml_open(library.data, &c->nvml, e);
    if (r == 0)
        c->state_file = strbuf_take(&file);
    strbuf_done(&dir);
    strbuf_done(&file);
    strbuf_done(&library);
    return r;
}

static int read_all(struct cards *c, struct err *e)
{
    int r = inventory_read(&c->nvml, &c->inventory, e);
    if (r < 0)
        return r;
    struct strbuf text = {0};
    topo_format(&c->inventory.topo, &text);
    c->topology = strbuf_take(&text);
    return c->topology != NULL ? 0 : err_set(e, -ENOMEM, "no memory for the topology");
}

int cards_open(const char *preset, const char *state_dir, const char *simgpu_dir, struct cards **ret, struct err *e)
{
    struct cards *c = mem_alloc(1, sizeof *c);
    if (c == NULL)
        return err_set(e, -ENOMEM, "no memory for the cards");
    int r;
    if (preset != NULL) {
        r = open_simulated(c, preset, state_dir, simgpu_dir, e);
        if (r == 0)
            r = read_all(c, e);
    } else {
        r = nvml_open(NULL, &c->nvml, e);
        if (r == 0)
            r = read_all(c, e);
        if (r < 0 && r != -EIO && r != -E2BIG && r != -ENOMEM)
            r = 0; /* no driver or no card: a node without cards */
    }
    if (r < 0) {
        cards_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void cards_free(struct cards *c)
{
    if (c == NULL)
        return;
    telemetry_done(&c->telemetry);
    nvml_close(&c->nvml);
    mem_free(c->state_file);
    mem_free(c->topology);
    mem_free(c);
}

const char *cards_simulated(const struct cards *c)
{
    return c->state_file;
}

void cards_describe(const struct cards *c, struct engine_node *node)
{
    const struct gpu_inventory *inv = &c->inventory;
    node->simulated = c->state_file != NULL || inv->simulated;
    node->gpus_len = inv->gpus_len;
    node->topology = c->topology;
    if (c->cpu_milli > node->cpu_milli)
        node->cpu_milli = c->cpu_milli; /* CPU time can be shared out thinner than asked; memory can't */
    for (uint32_t i = 0; i < inv->gpus_len; i++) {
        const struct inventory_gpu *from = &inv->gpus[i];
        struct engine_gpu *to = &node->gpus[i];
        (void)snprintf(to->uuid, sizeof to->uuid, "%s", from->uuid);
        (void)snprintf(to->model, sizeof to->model, "%s", from->model);
        to->mem_mib = from->mem_mib;
        to->island = from->island;
        to->healthy = !c->lost[i];
        for (uint32_t k = 0; k < inv->gpus_len; k++)
            node->link[i][k] = inv->topo.link[i][k].cls;
    }
}

bool cards_sample(struct cards *c, const struct engine_gpu_sample **ret, uint32_t *ret_len, const char **ret_source)
{
    bool changed = false;
    *ret = c->samples;
    *ret_len = 0;
    *ret_source = "";
    if (c->inventory.gpus_len == 0 || telemetry_sample(&c->nvml, &c->inventory, &c->telemetry, NULL) < 0)
        return false;
    const struct telemetry *t = &c->telemetry;
    for (uint32_t i = 0; i < t->gpus_len; i++) {
        struct engine_gpu_sample *s = &c->samples[i];
        const struct telemetry_gpu *g = &t->gpus[i];
        memcpy(s->uuid, c->inventory.gpus[i].uuid, sizeof s->uuid);
        s->util_pct = g->lost ? -1 : g->util_pct;
        s->mem_used_mib = g->lost ? -1 : g->mem_used_mib;
        s->power_w = g->lost ? -1 : g->power_w;
        s->temp_c = g->lost ? -1 : g->temp_c;
        changed = changed || c->lost[i] != g->lost;
        c->lost[i] = g->lost;
    }
    *ret_len = t->gpus_len;
    *ret_source = t->source;
    return changed;
}
