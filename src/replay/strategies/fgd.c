/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fgd: fragmentation gradient descent as published (Weng et al., USENIX ATC 2023).
 *
 * Overview: the score of a node is floor(100 / (1 + exp(-d))), d being how much the expected
 * unusable part of its cards (fragmentation.h, in cards) falls by the placement. For a share every
 * card with room is tried and the first with the best truncated score taken; whole cards are the
 * lowest-numbered idle ones. The truncation to 0..100 is a part of the rule: it makes many nodes
 * equal, and the tie-break by rank then fills low-ranked nodes one after another. Without it the
 * published result can not be reached.
 *
 * The sigmoid needs no floating point: the score is at least t if and only if d >= ln(t / (100 -
 * t)), and there are just 99 such thresholds. Example: d = 0 gives 50 (threshold 0), d = -0.3 gives
 * 42: the threshold of 42 is -0.3228, that of 43 is -0.2819.
 *
 * Typical use: comparison. Production ready? No: `remuda` is what grew out of it.
 */
#include "replay/strategies/strategies.h"

/* ln(t / (100 - t)) for t = 1..99 in billionths, rounded up. */
static const int64_t thresholds[99] = {
    -4595119850, -3891820298, -3476098689, -3178053830, -2944438979, -2751535313, -2586689344, -2442347035, -2313634929,
    -2197224577, -2090741096, -1992430164, -1900958761, -1815289966, -1734601055, -1658228076, -1585627263, -1516347489,
    -1450010175, -1386294361, -1324925414, -1265666373, -1208311205, -1152679509, -1098612288, -1045968555, -994622575,
    -944461608,  -895384047,  -847297860,  -800119300,  -753771802,  -708185057,  -663294217,  -619039208,  -575364144,
    -532216813,  -489548225,  -447312218,  -405465108,  -363965377,  -322773392,  -281851152,  -241162056,  -200670695,
    -160342650,  -120144311,  -80042707,   -40005334,   0,           40005335,    80042708,    120144312,   160342651,
    200670696,   241162057,   281851153,   322773393,   363965378,   405465109,   447312219,   489548226,   532216814,
    575364145,   619039209,   663294218,   708185058,   753771803,   800119301,   847297861,   895384048,   944461609,
    994622576,   1045968556,  1098612289,  1152679510,  1208311206,  1265666374,  1324925415,  1386294362,  1450010176,
    1516347490,  1585627264,  1658228077,  1734601056,  1815289967,  1900958762,  1992430165,  2090741097,  2197224578,
    2313634930,  2442347036,  2586689345,  2751535314,  2944438980,  3178053831,  3476098690,  3891820299,  4595119851,
};

/* floor(100 / (1 + exp(-d))) for d = gain / (weight x 1000). */
static int64_t sigmoid(int64_t gain, int64_t weight)
{
    int low = 0; /* the score is at least low and below high */
    int high = 100;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (gain * 1000000 >= thresholds[middle - 1] * weight)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int64_t score(const struct score_in *in, uint32_t *ret_mask)
{
    struct frag_state now;
    frag_state_of(&now, in->node);
    int64_t before = mix_fragmentation(in->mix, &now);
    int64_t weight = mix_weight(in->mix);
    *ret_mask = 0;
    if (in->req->share_milli == 0) {
        *ret_mask = openb_cards(in);
        return sigmoid(before - mix_fragmentation_after(in->mix, &now, in->node, in->req, *ret_mask), weight);
    }
    int64_t best = -1;
    uint32_t last_free = 0;
    for (uint32_t rest = in->cards; rest != 0; rest &= rest - 1) {
        uint32_t bit = rest & -rest;
        uint32_t free = in->node->gpus[__builtin_ctz(bit)].free_milli;
        if (best >= 0 && free == last_free)
            continue; /* the same card once more */
        last_free = free;
        int64_t s = sigmoid(before - mix_fragmentation_after(in->mix, &now, in->node, in->req, bit), weight);
        if (s > best) {
            best = s;
            *ret_mask = bit;
        }
    }
    return best;
}

const struct strategy replay_fgd = {
    .name = "fgd",
    .summary = "fragmentation gradient descent as published",
    .uses_mix = true,
    .score = score,
};
