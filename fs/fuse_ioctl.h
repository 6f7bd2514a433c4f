/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, between a mount and the commands: the ioctls of its own that the FUSE front end
 * answers on any file or directory of the mount (fs/fuse_ioctl.c). Everybody may list; to keep,
 * release and delete is root's and the server's owner's: -EPERM. -ENOTTY: no mount of layoutfs;
 * -ENOTSUP: its format keeps no checkpoints.
 */
#ifndef LAYOUTFS_FUSE_IOCTL_H
#define LAYOUTFS_FUSE_IOCTL_H

#include <linux/ioctl.h>

#include "fs/layout.h"

#define CHECKPOINT_PAGE 128u
struct checkpoint_page {
    uint64_t from;  /* in: the lowest number wanted */
    uint64_t count; /* out: entries; fewer than CHECKPOINT_PAGE: there are no more */
    struct checkpoint list[CHECKPOINT_PAGE];
};

#define LAYOUTFS_IOC_CHECKPOINT_LIST    _IOWR('L', 1, struct checkpoint_page)
#define LAYOUTFS_IOC_CHECKPOINT_CREATE  _IOR('L', 2, uint64_t) /* out: its number */
#define LAYOUTFS_IOC_CHECKPOINT_KEEP    _IOW('L', 3, uint64_t)
#define LAYOUTFS_IOC_CHECKPOINT_RELEASE _IOW('L', 4, uint64_t)
#define LAYOUTFS_IOC_CHECKPOINT_DELETE  _IOW('L', 5, uint64_t)

#endif
