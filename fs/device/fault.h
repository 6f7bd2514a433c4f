/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, a layer over any device.
 * A disk that fails, in ways that real ones do, as a plan says. A plan of zeros has no faults. All
 * chance comes from the plan's seed: the same calls meet the same faults.
 *
 * Power cut. During the n-th write the power goes. What had been written since the last flush was
 * in the disk's own cache, and `unsynced` says what becomes of it; the n-th write may be torn. From
 * then on every call answers -EIO, and what is below is what the disk holds when power returns.
 *
 * Locking: one thread.
 */
#ifndef LAYOUTFS_DEVICE_FAULT_H
#define LAYOUTFS_DEVICE_FAULT_H

#include "fs/device/device.h"

enum fault_unsynced {
    FAULT_KEEP,    /* all of it is stored */
    FAULT_DROP,    /* none of it is */
    FAULT_REORDER, /* a part of it, in any order */
};

/* A damaged place: requests that touch it fail. */
struct fault_area {
    uint64_t offset, length; /* bytes */
    bool fails_read, fails_write;
};

struct fault_plan {
    uint64_t seed;

    uint64_t cut_at_write; /* the power goes during this one, counted from 1; 0: never */
    enum fault_unsynced unsynced;
    bool tear;    /* of the last write only some first sectors are stored */
    bool garbage; /* and the sector behind them holds neither old nor new bytes */

    int error;                      /* what failing calls answer, negative; 0: -EIO */
    uint64_t fail_call;             /* this call fails, counted from 1; 0: none */
    bool fail_onwards;              /* and all that follow it */
    bool fail_late;                 /* the error of a request shows when its batch is waited for */
    const struct fault_area *areas; /* borrowed for the device's life */
    unsigned area_count;
    uint32_t fail_per_million[2]; /* by device_operation: requests that fail, by chance */

    uint64_t room; /* bytes that may be written to for the first time, then -ENOSPC; 0: no limit */
    uint32_t flips_per_million; /* reads in which one bit is wrong */
    uint32_t slow_per_million;  /* requests that take slow_ns longer (under a virtual clock) */
    int64_t slow_ns;
};

/* The plan is copied. -ENOMEM. */
int device_open_fault(struct device *lower, const struct fault_plan *plan, struct device **device);
/* Calls so far: reads, writes and flushes. */
uint64_t device_fault_calls(const struct device *device);
/* Calls that have failed by plan so far. */
uint64_t device_fault_failures(const struct device *device);
/* Those of them that were to write something other than file data. */
uint64_t device_fault_metadata_lost(const struct device *device);

#endif
