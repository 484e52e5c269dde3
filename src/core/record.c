/* SPDX-License-Identifier: Apache-2.0 */
#include "core/record.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

const char *record_kind_name(enum record_kind kind)
{
    switch (kind) {
#define X(symbol, number, name) \
    case symbol:                \
        return name;
        RECORD_KINDS(X)
#undef X
    }
    return NULL;
}

const char *cause_name(enum cause cause)
{
    switch (cause) {
    case CAUSE_NONE:
        return "none";
    case CAUSE_EXIT:
        return "exit";
    case CAUSE_CANCEL:
        return "cancelled";
    case CAUSE_TIME_LIMIT:
        return "time-limit";
    case CAUSE_WORKER_FAILED:
        return "worker-failed";
    case CAUSE_LAUNCH_FAILED:
        return "launch-failed";
    case CAUSE_LOST:
        return "lost";
    case CAUSE_OOM:
        return "out-of-memory";
    case CAUSE_NODE_GONE:
        return "node-gone";
    case CAUSE_REQUEUE:
        return "requeued";
    case CAUSE_DEPENDENCY:
        return "dependency";
    }
    return "unknown";
}

void record_done(struct record *r)
{
    if (r->config != NULL) {
        config_done(r->config);
        mem_free(r->config);
    }
    if (r->spec != NULL) {
        job_spec_done(r->spec);
        mem_free(r->spec);
    }
    mem_free(r->text);
    mem_free(r->node);
    mem_free(r->grants);
    *r = (struct record){0};
}
