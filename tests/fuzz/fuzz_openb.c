/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The openb data as a user may hand it over: the input is cut at blank lines into node list, task
 * list, order and ranks. Whatever it is, the result is data that a run can use, or an error with a
 * reason.
 */
#include "fuzz.h"

#include "base/sys/file.h"
#include "replay/openb.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char dir[] = "/tmp/remuda-fuzz-openb-XXXXXX";

static void remove_dir(void)
{
    dir_remove_tree(dir, NULL);
}

static void make_dir(void)
{
    static bool made;
    char path[128];
    if (made)
        return;
    if (mkdtemp(dir) == NULL)
        abort();
    snprintf(path, sizeof path, "%s/orders", dir);
    if (dir_make(path, 0700, NULL) < 0)
        abort();
    atexit(remove_dir);
    made = true;
}

/* The end of the part that starts at `at`: a blank line, or the end. */
static const char *part_end(const char *at, const char *end)
{
    for (; at + 1 < end; at++) {
        if (at[0] == '\n' && at[1] == '\n')
            return at + 1;
    }
    return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const files[] = {"openb_node_list_gpu_node.csv", "openb_pod_list_default.csv",
                                        "orders/default_seed1_pods.csv", "orders/default_seed1_noderank.csv"};
    static const char *const policies[] = {"fgd", "remuda", "bestfit", "packing", "clustering", "dotprod", "random"};
    const char *at = (const char *)bytes;
    const char *end = at + len;
    if (len == 0 || len > 4096)
        return 0;
    make_dir();
    for (size_t i = 0; i < 4; i++) {
        char path[256];
        const char *stop = part_end(at, end);
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        if (file_write_atomic(path, at, (size_t)(stop - at), 0600, FILE_SYNC_NO, NULL) < 0)
            abort();
        at = stop < end ? stop + 1 : end;
    }
    struct openb_data d;
    struct err e = {0};
    if (openb_read(&d, dir, "default", 1, &e) < 0) {
        assert(e.text[0] != '\0');
        return 0;
    }
    struct openb_result res;
    int rc = openb_run(&d, openb_strategy(policies[len % 7]), 1, &res, NULL, &e);
    assert(rc == 0 || e.text[0] != '\0');
    assert(rc < 0 || (res.unscheduled_pods <= res.arrived_pods && res.alloc_pct <= 10000));
    openb_data_done(&d);
    return 0;
}
