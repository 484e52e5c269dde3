/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded random numbers (xoshiro256** by Blackman and Vigna, seeded with splitmix64). The same seed gives the
 * same sequence on every machine. Not for secrets.
 */
#ifndef REMUDA_BASE_RNG_H
#define REMUDA_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t seed);
/* The next 64 random bits. */
uint64_t rng_next(struct rng *r);
/* Uniform in 0..bound-1 without modulo bias; bound must not be 0. */
uint64_t rng_below(struct rng *r, uint64_t bound);
/* Uniform in low..high, both included; low <= high. */
int64_t rng_between(struct rng *r, int64_t low, int64_t high);
/* True with a probability of `ppm` parts per million. */
int rng_chance(struct rng *r, uint32_t ppm);

#endif
