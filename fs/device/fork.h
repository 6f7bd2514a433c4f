/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device. Devices that leave what they stand on as it is.
 *
 * A fork is a cheap writable copy: it keeps what was written to it, in chunks, and reads the rest
 * from its origin. Forks may stand on forks; the origin must not change where a fork has not
 * written, unless the fork is meant to see it. Resetting costs time for the chunks that were
 * written, not for the device's size.
 *
 * A borrowed device passes everything to a device that outlives it: volume_close closes what it was
 * given, and thus only the borrowed one.
 *
 * Durability: none; a fork lives in memory. Locking: one thread.
 */
#ifndef LAYOUTFS_DEVICE_FORK_H
#define LAYOUTFS_DEVICE_FORK_H

#include "fs/device/device.h"

#define FORK_CHUNK 4096u /* bytes copied at the first write to them */

/* `origin` is borrowed, and closed by its owner after the fork. */
int device_open_fork(struct device *origin, struct device **fork);
/* The fork is as its origin again. */
void device_fork_reset(struct device *fork);

/* `target` is borrowed. */
int device_open_borrowed(struct device *target, struct device **device);

#endif
