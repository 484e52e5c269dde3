/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step function is a list of steps (time, free from there on) cut into blocks of up to 256. A
 * block knows its least and greatest value and a number to be added to all of them, so a search
 * passes over a block that can neither begin nor break a span without looking into it, and a
 * reservation that covers a block changes one number. With n steps a search and a reservation take
 * O(sqrt n) in practice; a balanced tree would be O(log n) and three times the code.
 *
 * Example, 4 cards. take(0, 10, 3): steps (0: 1) (10: 4). take(10, 5, 4): (0: 1) (10: 0) (15: 4).
 * The earliest span of 6 for 1 card from 0 on: the step at 0 can begin it, the step at 10 breaks
 * it, the step at 15 begins it for good: 15.
 */
#include "replay/profile.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define BLOCK_STEPS 256u

struct step {
    int64_t at_s;
    int64_t free; /* without the block's add */
};

struct profile_block {
    uint32_t len; /* at least 1 */
    int64_t add;
    int64_t least, most; /* of the steps' free, without add */
    struct step steps[BLOCK_STEPS];
};

static void measure(struct profile_block *b)
{
    b->least = b->most = b->steps[0].free;
    for (uint32_t i = 1; i < b->len; i++) {
        if (b->steps[i].free < b->least)
            b->least = b->steps[i].free;
        if (b->steps[i].free > b->most)
            b->most = b->steps[i].free;
    }
}

int profile_init(struct profile *p, int64_t at_s, int64_t gpus, struct err *e)
{
    *p = (struct profile){0};
    struct profile_block *b = mem_alloc(1, sizeof *b);
    if (!b || mem_grow(&p->blocks, &p->cap, 1, sizeof p->blocks[0]) < 0) {
        mem_free(b);
        return err_set(e, -ENOMEM, "no memory for a plan");
    }
    b->len = 1;
    b->steps[0] = (struct step){.at_s = at_s, .free = gpus};
    measure(b);
    p->blocks[0] = b;
    p->len = 1;
    return 0;
}

void profile_done(struct profile *p)
{
    for (size_t i = 0; i < p->len; i++)
        mem_free(p->blocks[i]);
    mem_free(p->blocks);
    *p = (struct profile){0};
}

void profile_forget(struct profile *p, int64_t now_s)
{
    size_t gone = 0;
    while (gone + 1 < p->len && p->blocks[gone + 1]->steps[0].at_s <= now_s)
        mem_free(p->blocks[gone++]);
    if (gone == 0)
        return;
    p->len -= gone;
    memmove(p->blocks, p->blocks + gone, p->len * sizeof p->blocks[0]);
}

/* The last block that begins at or before `at_s`. */
static size_t block_of(const struct profile *p, int64_t at_s)
{
    size_t low = 0, high = p->len;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (p->blocks[mid]->steps[0].at_s <= at_s)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* The last step of the block at or before `at_s`. */
static uint32_t step_of(const struct profile_block *b, int64_t at_s)
{
    uint32_t low = 0, high = b->len;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (b->steps[mid].at_s <= at_s)
            low = mid;
        else
            high = mid;
    }
    return low;
}

int64_t profile_earliest(const struct profile *p, int64_t from_s, int64_t span_s, int64_t gpus)
{
    int64_t begin_s = -1; /* the span that is being tried; -1: none */
    size_t i = block_of(p, from_s);
    uint32_t k = step_of(p->blocks[i], from_s);
    assert(p->blocks[i]->steps[k].at_s <= from_s && span_s > 0);
    for (; i < p->len; i++, k = 0) {
        const struct profile_block *b = p->blocks[i];
        if (begin_s >= 0 && b->steps[k].at_s >= begin_s + span_s)
            return begin_s;
        if (b->most + b->add < gpus) {
            begin_s = -1;
            continue;
        }
        if (begin_s >= 0 && b->least + b->add >= gpus)
            continue;
        for (; k < b->len; k++) {
            const struct step *step = &b->steps[k];
            if (begin_s >= 0 && step->at_s >= begin_s + span_s)
                return begin_s;
            if (step->free + b->add < gpus)
                begin_s = -1;
            else if (begin_s < 0)
                begin_s = step->at_s > from_s ? step->at_s : from_s;
        }
    }
    assert(begin_s >= 0); /* in the end everything is free */
    return begin_s;
}

/* Cuts a full block in two. */
static int split(struct profile *p, size_t i)
{
    struct profile_block *b = p->blocks[i], *upper = mem_alloc(1, sizeof *upper);
    if (!upper || mem_grow(&p->blocks, &p->cap, p->len + 1, sizeof p->blocks[0]) < 0) {
        mem_free(upper);
        return -ENOMEM;
    }
    upper->len = b->len / 2;
    b->len -= upper->len;
    memcpy(upper->steps, b->steps + b->len, upper->len * sizeof b->steps[0]);
    upper->add = b->add;
    measure(b);
    measure(upper);
    memmove(p->blocks + i + 2, p->blocks + i + 1, (p->len - i - 1) * sizeof p->blocks[0]);
    p->blocks[i + 1] = upper;
    p->len++;
    return 0;
}

/* Makes a step begin at `at_s`. */
static int cut_at(struct profile *p, int64_t at_s)
{
    size_t i = block_of(p, at_s);
    if (p->blocks[i]->steps[step_of(p->blocks[i], at_s)].at_s == at_s)
        return 0;
    if (p->blocks[i]->len == BLOCK_STEPS) {
        int rc = split(p, i);
        if (rc < 0)
            return rc;
        i = block_of(p, at_s);
    }
    struct profile_block *b = p->blocks[i];
    uint32_t k = step_of(b, at_s) + 1;
    memmove(b->steps + k + 1, b->steps + k, (b->len - k) * sizeof b->steps[0]);
    b->steps[k] = (struct step){.at_s = at_s, .free = b->steps[k - 1].free};
    b->len++;
    return 0;
}

int profile_take(struct profile *p, int64_t from_s, int64_t span_s, int64_t gpus)
{
    int64_t until_s = from_s + span_s;
    if (cut_at(p, from_s) < 0 || cut_at(p, until_s) < 0)
        return -ENOMEM;
    for (size_t i = block_of(p, from_s); i < p->len && p->blocks[i]->steps[0].at_s < until_s; i++) {
        struct profile_block *b = p->blocks[i];
        bool whole = b->steps[0].at_s >= from_s && b->steps[b->len - 1].at_s < until_s;
        if (whole) {
            b->add -= gpus;
        } else {
            for (uint32_t k = step_of(b, from_s); k < b->len && b->steps[k].at_s < until_s; k++)
                if (b->steps[k].at_s >= from_s)
                    b->steps[k].free -= gpus;
            measure(b);
        }
        assert(b->least + b->add >= 0);
    }
    return 0;
}
