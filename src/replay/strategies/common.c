/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/strategies/strategies.h"

uint8_t openb_class(const struct place_req *r)
{
    if (r->share_milli > 0)
        return 1;
    switch (r->gpus) {
    case 0:
        return 0;
    case 1:
        return 2;
    case 2:
        return 4;
    case 4:
        return 8;
    default:
        return 16;
    }
}

uint32_t openb_asked_milli(const struct place_req *r)
{
    return r->gpus > 0 ? r->gpus * GPU_MILLI : r->share_milli;
}

uint32_t openb_cards(const struct score_in *in)
{
    uint32_t mask = 0;
    uint32_t rest = in->cards;
    if (in->req->share_milli > 0) {
        mask = rest & -rest;
        for (; rest != 0; rest &= rest - 1) {
            uint32_t bit = rest & -rest;
            if (in->node->gpus[__builtin_ctz(bit)].free_milli < in->node->gpus[__builtin_ctz(mask)].free_milli)
                mask = bit;
        }
        return mask;
    }
    for (uint32_t i = 0; i < in->req->gpus; i++, rest &= rest - 1)
        mask |= rest & -rest;
    return mask;
}
