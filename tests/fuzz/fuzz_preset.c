/* SPDX-License-Identifier: Apache-2.0 */
/* Presets of machines: what is accepted is within the bounds of the state file. */
#include "fuzz.h"
#include "gpu/preset.h"

#include <assert.h>

static struct preset preset; /* large */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct err e = {0};
    int rc = preset_parse((const char *)bytes, len, &preset, &e);
    assert(rc == 0 || (e.code == rc && e.text[0] != '\0'));
    if (rc == 0)
        assert(preset.gpus_len <= SIMGPU_CARDS_MAX && preset.models_len <= PRESET_MODELS_MAX);
    return 0;
}
