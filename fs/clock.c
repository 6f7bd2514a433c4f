/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. See fs/clock.h for the interface and the invariants of virtual mode.
 */
#include "fs/clock.h"

#include <string.h>
#include <time.h>

/* 2002-11-05 00:00:00 UTC: 11,996 days after the epoch. */
#define VIRTUAL_EPOCH_SECONDS INT64_C(1036454400)

void clock_init_wall(struct clock *clock) {
    memset(clock, 0, sizeof(*clock));
    clock->mode = CLOCK_WALL;
}

void clock_init_virtual(struct clock *clock, const struct machine *machine) {
    memset(clock, 0, sizeof(*clock));
    clock->mode = CLOCK_VIRTUAL;
    clock->epoch.seconds = VIRTUAL_EPOCH_SECONDS;
    clock->machine = machine;
}

int64_t clock_now(const struct clock *clock) {
    if (clock_is_virtual(clock))
        return clock->now_ns;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

struct timestamp clock_calendar(const struct clock *clock) {
    if (clock_is_virtual(clock)) {
        int64_t nanoseconds = clock->epoch.nanoseconds + clock->now_ns % NS_PER_SEC;
        return (struct timestamp){.seconds = clock->epoch.seconds + clock->now_ns / NS_PER_SEC +
                                             nanoseconds / NS_PER_SEC,
                                  .nanoseconds = (uint32_t)(nanoseconds % NS_PER_SEC)};
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (struct timestamp){.seconds = now.tv_sec, .nanoseconds = (uint32_t)now.tv_nsec};
}

void clock_charge_ns(struct clock *clock, int64_t ns) {
    if (clock_is_virtual(clock)) {
        clock->now_ns += ns;
        clock->cpu_ns += ns;
    }
}

void clock_wait_until(struct clock *clock, int64_t when_ns) {
    if (clock_is_virtual(clock) && when_ns > clock->now_ns)
        clock->now_ns = when_ns;
}
