/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench, over fs/device. A device that is a part of another, as a partition of a disk.
 */
#ifndef LAYOUTFS_BENCH_PARTITION_H
#define LAYOUTFS_BENCH_PARTITION_H

#include "fs/device/device.h"

/* `size` bytes of `lower` from `start` on, both multiples of DEVICE_SECTOR. Takes ownership of
 * `lower` on success. -EINVAL with a sentence: it does not fit. */
int partition_open(struct device *lower, uint64_t start, uint64_t size, struct device **device);

#endif
