/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: what is accepted can be copied, and an error has a text that begins with the name. */
#include "base/mem.h"
#include "config/config_file.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct config c = {0}, copy = {0};
    struct err e = {0};
    int rc = config_parse((const char *)bytes, len, "fuzz", &c, &e);
    if (rc < 0) {
        assert(e.code == rc && strncmp(e.text, "fuzz", 4) == 0);
        return 0;
    }
    assert(c.queues_len > 0 && name_ok(c.default_queue));
    if (config_copy(&copy, &c) == 0)
        config_done(&copy);
    config_done(&c);
    return 0;
}
