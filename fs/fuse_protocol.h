/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, inside the FUSE front end. What the kernel's FUSE protocol has and <linux/fuse.h> of
 * Linux 6.1 (7.38, Debian 12) has not. Source: Linux, include/uapi/linux/fuse.h: 7.39 for STATX,
 * 7.45 for COPY_FILE_RANGE_64. A newer header has the same under names without the prefix.
 */
#ifndef LAYOUTFS_FUSE_PROTOCOL_H
#define LAYOUTFS_FUSE_PROTOCOL_H

#include <linux/fuse.h>
#include <linux/stat.h>

enum {
    PROTOCOL_STATX = 52,
    PROTOCOL_COPY_FILE_RANGE_64 = 53, /* argument as COPY_FILE_RANGE's */
};

struct protocol_statx_out {
    uint64_t attr_valid; /* seconds, and nanoseconds */
    uint32_t attr_valid_nsec;
    uint32_t flags;
    uint64_t spare[2];
    struct statx stat; /* fuse_statx has the form of the system call's */
};

struct protocol_copy_file_range_out {
    uint64_t bytes_copied;
};

#endif
