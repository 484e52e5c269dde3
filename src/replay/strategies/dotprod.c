/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotprod: the node whose free amounts are least in line with the request, as published with FGD.
 *
 * Overview: score = floor(100 (1 - (c CPU / 128000^2 + R k s / 8000^2) / 2)); a share goes to the
 * tightest card. Example: c = 64000, CPU = 8000, R = 2000, one card: 0.03125 and 0.03125, score
 * floor(96.875) = 96.
 *
 * Typical use: comparison. Production ready? No.
 */
#include "replay/strategies/strategies.h"

static int64_t score(const struct score_in *in, uint32_t *ret_mask)
{
    *ret_mask = openb_cards(in);
    /* over the common denominator 2 * 128000^2 = 2 * 16^2 * 8000^2 */
    int64_t ratio = OPENB_CPU_MILLI / OPENB_GPU_MILLI;
    int64_t whole = INT64_C(2) * OPENB_CPU_MILLI * OPENB_CPU_MILLI;
    int64_t cpu = (int64_t)in->node->free_cpu_milli * in->req->cpu_milli;
    int64_t gpu = (int64_t)in->node->gpus_milli_free * openb_asked_milli(in->req) * ratio * ratio;
    return (100 * (whole - cpu - gpu)) / whole;
}

const struct strategy replay_dotprod = {
    .name = "dotprod",
    .summary = "smallest product of free and asked",
    .score = score,
};
