/* SPDX-License-Identifier: Apache-2.0 */
/* The file of simulated nodes: every node that comes out has a name, and an error has a text. */
#include "config/cluster_file.h"
#include "fuzz.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct cluster_file c = {0};
    struct err e = {0};
    int rc = cluster_file_parse((const char *)bytes, len, "fuzz", &c, &e);
    if (rc < 0) {
        assert(e.code == rc && e.text[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < c.len; i++)
        assert(name_ok(c.nodes[i].name) && c.nodes[i].gpus <= GPUS_PER_WORKER_MAX);
    cluster_file_done(&c);
    return 0;
}
