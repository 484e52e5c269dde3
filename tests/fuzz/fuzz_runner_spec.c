/* SPDX-License-Identifier: Apache-2.0 */
/* A runner's spec: what is accepted is complete, and is read as the same when it is written again. */
#include "base/mem.h"
#include "base/strbuf.h"
#include "fuzz.h"
#include "runner/spec.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct runner_spec s, again;
    struct err e = {0};
    if (runner_spec_parse((const char *)bytes, len, &s, &e) < 0) {
        assert(e.text[0] != '\0');
        return 0;
    }
    assert(s.job > 0 && s.attempt > 0 && s.workers_len > 0 && s.cwd[0] == '/');
    assert(s.script != NULL || s.argv[0][0] != '\0');
    for (size_t i = 0; i < s.workers_len; i++)
        assert(s.workers[i].rank < s.world);
    struct strbuf first = {0}, second = {0};
    runner_spec_write(&s, &first);
    assert(!first.failed && runner_spec_parse(first.data, first.len, &again, &e) == 0);
    runner_spec_write(&again, &second);
    assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    strbuf_done(&first);
    strbuf_done(&second);
    runner_spec_done(&again);
    runner_spec_done(&s);
    return 0;
}
