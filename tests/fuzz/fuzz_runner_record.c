/* SPDX-License-Identifier: Apache-2.0 */
/* Exit lines, status files and cgroup places: what is accepted is written and read as the same. */
#include "base/mem.h"
#include "base/strbuf.h"
#include "fuzz.h"
#include "runner/cgroup.h"
#include "runner/record.h"

#include <assert.h>
#include <string.h>

static void check_exit(const char *text)
{
    struct runner_exit x, again;
    if (runner_exit_parse(text, &x) < 0)
        return;
    struct strbuf line = {0};
    runner_exit_write(&x, &line);
    assert(!line.failed && line.data[line.len - 1] == '\n');
    line.data[line.len - 1] = '\0';
    assert(strchr(line.data, '\n') == NULL && runner_exit_parse(line.data, &again) == 0);
    assert(again.rank == x.rank && again.code == x.code && again.cause == x.cause && again.time_ms == x.time_ms);
    strbuf_done(&line);
}

static void check_status(const char *text)
{
    struct runner_status s, again;
    struct err e = {0};
    if (runner_status_parse(text, &s, &e) < 0) {
        assert(e.text[0] != '\0');
        return;
    }
    struct strbuf out = {0};
    runner_status_write(&s, &out);
    assert(!out.failed && runner_status_parse(out.data, &again, &e) == 0);
    assert(again.pid == s.pid && again.workers_len == s.workers_len);
    strbuf_done(&out);
    runner_status_done(&again);
    runner_status_done(&s);
}

static void check_plan(const char *text)
{
    struct cgroup_plan p, again;
    struct err e = {0};
    if (cgroup_plan_parse(text, &p, &e) < 0) {
        assert(e.text[0] != '\0');
        return;
    }
    struct strbuf out = {0};
    cgroup_plan_write(&p, &out);
    assert(!out.failed && cgroup_plan_parse(out.data, &again, &e) == 0);
    assert(memcmp(&p.role, &again.role, sizeof p.role) == 0);
    strbuf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = mem_strndup((const char *)bytes, len);
    if (text == NULL)
        return 0;
    check_exit(text);
    check_status(text);
    check_plan(text);
    mem_free(text);
    return 0;
}
