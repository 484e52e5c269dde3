/* SPDX-License-Identifier: Apache-2.0 */
/* Saved output of `nvidia-smi topo -m`: what is read is printed and read as the same. */
#include "fuzz.h"
#include "gpu/topo.h"

#include <assert.h>
#include <string.h>

static struct topo first, second; /* large */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct err e = {0};
    int rc = topo_parse((const char *)bytes, len, &first, &e);
    if (rc < 0) {
        assert(e.code == rc && e.text[0] != '\0');
        return 0;
    }
    assert(first.gpus_len <= TOPO_GPUS_MAX && first.gpus_len <= first.devices_len &&
           first.devices_len <= TOPO_DEVICES_MAX);
    uint8_t island[TOPO_GPUS_MAX];
    assert(topo_islands(&first, island) <= first.gpus_len);
    struct strbuf out = {0};
    topo_format(&first, &out);
    rc = topo_parse(strbuf_str(&out), out.len, &second, &e);
    assert(rc == 0 && second.devices_len == first.devices_len);
    for (uint32_t i = 0; i < first.devices_len; i++)
        assert(memcmp(first.link[i], second.link[i], first.devices_len * sizeof first.link[i][0]) == 0);
    strbuf_done(&out);
    return 0;
}
