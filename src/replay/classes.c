/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/classes.h"

#include "base/mem.h"

#include <errno.h>

int classes_init(struct classes *c, const struct trace *t, struct err *e)
{
    *c = (struct classes){0};
    uint32_t most = 0;
    for (uint32_t i = 0; i < t->len; i++)
        if (t->jobs[i].gpus > most)
            most = t->jobs[i].gpus;
    CLEANUP_FREE uint32_t *count = mem_alloc((size_t)most + 1, sizeof count[0]); /* by cards, then the class + 1 */
    c->of = mem_alloc(t->len, sizeof c->of[0]);
    if (!count || !c->of)
        return err_set(e, -ENOMEM, "no memory for the classes of %u jobs", t->len);
    for (uint32_t i = 0; i < t->len; i++)
        count[t->jobs[i].gpus]++;
    uint32_t classes = 0;
    for (uint32_t g = 0; g <= most; g++)
        classes += count[g] > 0;
    c->gpus = mem_alloc(classes, sizeof c->gpus[0]);
    c->size = mem_alloc(classes, sizeof c->size[0]);
    if (!c->gpus || !c->size)
        return err_set(e, -ENOMEM, "no memory for the classes of %u jobs", t->len);
    for (uint32_t g = 0; g <= most; g++) {
        if (count[g] == 0)
            continue;
        c->gpus[c->len] = g;
        c->size[c->len] = count[g];
        count[g] = ++c->len;
    }
    for (uint32_t i = 0; i < t->len; i++)
        c->of[i] = count[t->jobs[i].gpus] - 1;
    return 0;
}

void classes_done(struct classes *c)
{
    mem_free(c->gpus);
    mem_free(c->size);
    mem_free(c->of);
    *c = (struct classes){0};
}

uint32_t classes_within(const struct classes *c, uint32_t gpus)
{
    uint32_t low = 0, high = c->len;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c->gpus[mid] <= gpus)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}
