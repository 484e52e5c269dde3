/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration as data: its defaults, copy and end. */
#include "config/types.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

int config_defaults(struct config *c)
{
    struct config fresh = {
        .default_queue = "batch",
        .default_tenant = "default",
        .strategy = "remuda",
        .grace_ms = 30 * 1000,
        .sim_duration_ms = 60 * 1000,
        .reservation_depth = 1,
        .finished_jobs_kept = 10000,
        .log_bytes_max = (uint64_t)64 << 20,
        .log_files_kept = 3,
    };
    fresh.queues = mem_alloc(1, sizeof *fresh.queues);
    if (fresh.queues == NULL)
        return -ENOMEM;
    fresh.queues[0] = (struct config_queue){.name = "batch", .caps = {NO_CAP, NO_CAP}};
    fresh.queues_len = 1;
    *c = fresh;
    return 0;
}

void config_done(struct config *c)
{
    if (c == NULL)
        return;
    mem_free(c->tenants);
    mem_free(c->users);
    mem_free(c->queues);
    for (size_t i = 0; i < c->racks_len; i++)
        mem_free(c->racks[i].nodes);
    mem_free(c->racks);
    *c = (struct config){0};
}

static int array_copy(void *ret, const void *from, size_t len, size_t size)
{
    void *copy = NULL;
    if (from != NULL) {
        copy = mem_alloc(len, size);
        if (copy == NULL)
            return -ENOMEM;
        memcpy(copy, from, len * size);
    }
    memcpy(ret, &copy, sizeof copy);
    return 0;
}

static int racks_copy(struct config *dst, const struct config *src)
{
    if (src->racks == NULL)
        return 0;
    dst->racks = mem_alloc(src->racks_len, sizeof *dst->racks);
    if (dst->racks == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < src->racks_len; i++) {
        const struct config_rack *from = &src->racks[i];
        struct config_rack *to = &dst->racks[i];
        memcpy(to->name, from->name, sizeof to->name);
        dst->racks_len = i + 1;
        if (array_copy(&to->nodes, from->nodes, from->nodes_len, sizeof *from->nodes) < 0)
            return -ENOMEM;
        to->nodes_len = from->nodes_len;
    }
    return 0;
}

int config_copy(struct config *dst, const struct config *src)
{
    struct config copy = *src;
    copy.tenants = NULL;
    copy.users = NULL;
    copy.queues = NULL;
    copy.racks = NULL;
    copy.racks_len = 0;
    if (array_copy(&copy.tenants, src->tenants, src->tenants_len, sizeof *src->tenants) < 0 ||
        array_copy(&copy.users, src->users, src->users_len, sizeof *src->users) < 0 ||
        array_copy(&copy.queues, src->queues, src->queues_len, sizeof *src->queues) < 0 || racks_copy(&copy, src) < 0) {
        config_done(&copy);
        return -ENOMEM;
    }
    *dst = copy;
    return 0;
}
