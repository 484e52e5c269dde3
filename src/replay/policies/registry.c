/* SPDX-License-Identifier: Apache-2.0 */
/* The policies by name. */
#include "replay/sim.h"

#include <string.h>

static const struct policy *const policies[] = {
    &policy_fifo, &policy_fjf,      &policy_sjf, &policy_srtf, &policy_srsf,
    &policy_dlas, &policy_dlas_gpu, &policy_las, &policy_easy, &policy_conservative,
};

const struct policy *policy_at(size_t i)
{
    return i < sizeof policies / sizeof policies[0] ? policies[i] : NULL;
}

const struct policy *policy_find(const char *name)
{
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++)
        if (strcmp(name, policies[i]->name) == 0 || (policies[i]->alias && strcmp(name, policies[i]->alias) == 0))
            return policies[i];
    return NULL;
}
