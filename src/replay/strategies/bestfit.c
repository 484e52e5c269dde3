/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bestfit: the node that is left with the least, as published with FGD.
 *
 * Overview: score = floor(100 (1 - 0.5 (c - CPU) / 128000 - 0.5 (R - k s) / 8000)), c and R being
 * free CPU and the sum of free shares; a share goes to the tightest card. The published program
 * then stretches the scores of all candidates to 0..100 by an integer division; as there are at
 * most 101 different scores, a stretch by at least 1 keeps different ones different and in order,
 * so it changes no choice and is left out. Example: c - CPU = 32000 and R - k s = 2400: 100 - 12.5
 * - 15 = 72.5, score 72.
 *
 * Typical use: comparison. Production ready? No: see `binpack`.
 */
#include "replay/strategies/strategies.h"

static int64_t score(const struct score_in *in, uint32_t *ret_mask)
{
    *ret_mask = openb_cards(in);
    int64_t cpu = in->node->free_cpu_milli - in->req->cpu_milli;
    int64_t gpu = in->node->gpus_milli_free - openb_asked_milli(in->req);
    /* over the common denominator 2 * 128000 */
    int64_t whole = 2 * OPENB_CPU_MILLI;
    return (100 * (whole - cpu - gpu * (OPENB_CPU_MILLI / OPENB_GPU_MILLI))) / whole;
}

const struct strategy replay_bestfit = {
    .name = "bestfit",
    .summary = "least left over",
    .score = score,
};
