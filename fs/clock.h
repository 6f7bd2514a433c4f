/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over fs/machine.h.
 * Time, as every other part of layoutfs sees it.
 *
 * Wall mode: the system's clock; charging CPU costs does nothing.
 * Virtual mode: time stands still until somebody advances it: CPU work by its modelled cost, a wait
 * for a device by the modelled completion. A run is then a deterministic simulation. All times are
 * integer nanoseconds: no floating point takes part, so that every compiler gives the same figures.
 *
 * Invariants of virtual mode:
 *  1. now_ns never decreases.
 *  2. cpu_ns <= now_ns: the CPU is busy for cpu_ns of the now_ns that have passed.
 * Locking: a virtual clock belongs to one thread; a wall clock is read from any.
 */
#ifndef LAYOUTFS_CLOCK_H
#define LAYOUTFS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/machine.h"

#define NS_PER_US  INT64_C(1000)
#define NS_PER_MS  INT64_C(1000000)
#define NS_PER_SEC INT64_C(1000000000)

/* A point in time since 1970-01-01 UTC; seconds may be negative; 0 <= nanoseconds < 10^9. */
struct __attribute__((packed, aligned(4))) timestamp { /* four are in every in-core inode */
    int64_t seconds;
    uint32_t nanoseconds;
};

struct task;

enum clock_mode { CLOCK_WALL, CLOCK_VIRTUAL };

struct clock {
    enum clock_mode mode;
    int64_t now_ns;                /* virtual mode: since the start of the run */
    int64_t cpu_ns;                /* virtual mode: CPU time charged so far */
    struct timestamp epoch;        /* virtual mode: calendar time at now_ns == 0 */
    const struct machine *machine; /* borrowed; cost table of virtual mode, NULL: CPU is free */
    /* virtual mode: whose turn it is, if it gives way where it would wait (fs/task.h), else NULL */
    struct task *task;
};

void clock_init_wall(struct clock *clock);
/* Starts at now_ns == 0 and the fixed calendar time 2002-11-05 00:00:00 UTC. */
void clock_init_virtual(struct clock *clock, const struct machine *machine);

static inline bool clock_is_virtual(const struct clock *clock) {
    return clock->mode == CLOCK_VIRTUAL;
}

/* Nanoseconds since an arbitrary start; monotonic. */
int64_t clock_now(const struct clock *clock);
/* Calendar time, for inode time stamps. */
struct timestamp clock_calendar(const struct clock *clock);

/* Charges `count` units of `cost`. Free in wall mode. */
static inline void clock_charge(struct clock *clock, enum cost cost, int64_t count) {
    if (clock->machine && clock->mode == CLOCK_VIRTUAL) {
        int64_t ns = clock->machine->cost_ns[cost] * count;
        clock->now_ns += ns;
        clock->cpu_ns += ns;
    }
}
/* Charges CPU time that a scenario states in nanoseconds (a decompressor's, say). */
void clock_charge_ns(struct clock *clock, int64_t ns);

/* Virtual mode: idles until `when_ns`; nothing if that has passed. Wall mode: nothing, since a real
 * device has made the caller wait already. */
void clock_wait_until(struct clock *clock, int64_t when_ns);

#endif
