/* SPDX-License-Identifier: Apache-2.0 */
/* A job trace: what is accepted is in order and within bounds, and a replay of it ends. */
#include "fuzz.h"
#include "replay/sim.h"

#include <assert.h>
#include <string.h>

#define RUN_JOBS_MAX 64

static void check(const struct trace *t)
{
    assert(t->len > 0 && t->jobs[0].submit_s == 0);
    for (uint32_t i = 0; i < t->len; i++) {
        const struct trace_job *j = &t->jobs[i];
        assert(j->gpus >= 1 && j->gpus <= TRACE_GPUS_MAX);
        assert(j->duration_s >= 0 && j->duration_s <= TRACE_DURATION_MAX);
        assert(j->id_at < t->ids_len && trace_id(t, i)[0] != '\0');
        assert(i == 0 || j->submit_s >= t->jobs[i - 1].submit_s);
    }
}

static void replay(const struct trace *t, size_t policy)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < t->len; i++)
        most = t->jobs[i].gpus > most ? t->jobs[i].gpus : most;
    if (most > 4096)
        return; /* valid, and slow to prepare thousands of times */
    struct sim s = {0};
    struct err e = {0};
    int rc = sim_run(&s, t, 1, most, policy_at(policy), &placement_count, true, &e);
    assert(rc == 0 && s.finished == t->len);
    for (uint32_t i = 0; i < t->len; i++) {
        assert(s.jobs[i].start_s >= t->jobs[i].submit_s);
        assert(s.jobs[i].end_s - s.jobs[i].start_s >= t->jobs[i].duration_s);
    }
    sim_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct trace t = {0};
    struct err e = {0};
    int rc = trace_parse("fuzz.csv", bytes, len, &t, &e);
    if (rc < 0) {
        assert(e.code == rc && strncmp(e.text, "fuzz.csv:", 9) == 0);
        return 0;
    }
    check(&t);
    size_t policies = 0;
    while (policy_at(policies))
        policies++;
    if (t.len <= RUN_JOBS_MAX)
        replay(&t, len % policies);
    trace_done(&t);
    return 0;
}
