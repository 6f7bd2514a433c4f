/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (no dependencies). The one source of chance: splitmix64 (Steele, Lea, Flood 2014),
 * a counter passed through a mixing function, so that a seed gives the same numbers everywhere.
 */
#ifndef LAYOUTFS_RANDOM_H
#define LAYOUTFS_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *random) {
    uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Evenly from 0 to bound - 1; bound up to 2^32. */
static inline uint32_t random_below(struct random *random, uint32_t bound) {
    return (uint32_t)((random_next(random) >> 32) * bound >> 32);
}

#endif
