/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <assert.h>

static uint64_t splitmix64(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void rng_init(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix64(&seed);
}

uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t rng_below(struct rng *r, uint64_t bound)
{
    assert(bound > 0);
    uint64_t reject_below = (0 - bound) % bound;
    uint64_t x;
    do {
        x = rng_next(r);
    } while (x < reject_below);
    return x % bound;
}

int64_t rng_between(struct rng *r, int64_t low, int64_t high)
{
    assert(low <= high);
    uint64_t span = (uint64_t)high - (uint64_t)low;
    if (span == UINT64_MAX)
        return (int64_t)rng_next(r);
    return (int64_t)((uint64_t)low + rng_below(r, span + 1));
}

int rng_chance(struct rng *r, uint32_t ppm)
{
    return rng_below(r, 1000000) < ppm;
}
