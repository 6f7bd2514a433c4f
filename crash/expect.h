/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. What each type promises after a crash, and who else may judge its images.
 */
#ifndef LAYOUTFS_CRASH_EXPECT_H
#define LAYOUTFS_CRASH_EXPECT_H

#include "crash/crash.h"

struct type_promise {
    const char *type;          /* NULL: any other */
    const char *mount_options; /* only with this among them; NULL: with any */
    enum expectation expectation;
    const char *mkfs_options; /* for a volume small enough to be copied thousands of times */
    uint64_t size;            /* bytes */
    bool poison_bare;         /* the disk is poisoned before it gets the volume, since one that has
                                 been filled and emptied would have no room for a while */
    const char *fsck;         /* ends with 0 when nothing is wrong; NULL: nobody else knows it */
    const char *fsck_repair;  /* mends; ends with 0 or 1 */
};

const struct type_promise *type_promise_find(const char *type, const char *mount_options);
/* Is a volume to stop, read-only or shut down, once metadata could not be written? With a log it
 * is, else errors= says so. */
bool type_stops(const struct type_promise *promise, const char *mount_options);

#endif
