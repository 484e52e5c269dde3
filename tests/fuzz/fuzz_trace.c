/* SPDX-License-Identifier: Apache-2.0 */
/* Job traces: whatever they hold, a trace within its bounds and in queue order, or an error that names the file. */
#include "fuzz.h"
#include "replay/trace.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct trace t = {0};
    struct err e = {0};
    int rc = trace_parse("fuzz.csv", bytes, len, &t, &e);
    if (rc < 0) {
        assert(e.code == rc && strncmp(e.text, "fuzz.csv", 8) == 0);
        return 0;
    }
    for (uint32_t i = 0; i < t.len; i++) {
        const struct trace_job *j = &t.jobs[i];
        assert(j->gpus >= 1 && j->gpus <= TRACE_GPUS_MAX && j->duration_s >= 0 && j->duration_s <= TRACE_DURATION_MAX);
        assert(j->submit_s >= (i == 0 ? 0 : t.jobs[i - 1].submit_s) && j->id_at < t.ids_len);
    }
    trace_done(&t);
    return 0;
}
