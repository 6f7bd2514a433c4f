/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: tools. Mounting and unmounting as mount.c and umount.c do it, for these commands and for
 * the mount helpers (mount_helper.c). Exit codes and sentences are those of tools/tool.h.
 */
#ifndef LAYOUTFS_TOOLS_MOUNT_H
#define LAYOUTFS_TOOLS_MOUNT_H

#include "tools/mount_options.h"

struct mount_request {
    const char *image, *directory;
    const char *type;              /* NULL: what the image says */
    struct mount_options *options; /* borrowed; changed */
    bool foreground;               /* return when the mount is over; else as soon as it is there */
    bool verbose;
    bool sloppy;  /* options that are not known are dropped */
    bool pretend; /* look whether it would work, without mounting or changing anything */
};
int mount_image(const struct mount_request *request);

struct unmount_request {
    const char *directory;
    bool lazy; /* only the name goes now; what is in use goes on, and nobody waits */
};
/* Returns when the image is complete. */
int unmount_image(const struct unmount_request *request);

/* The absolute path, at most PATH_MAX bytes. -ENOTCONN, with the path all the same: something is
 * mounted there whose server died. */
int mount_point_resolve(const char *directory, char *resolved);
/* Takes away what is mounted there and dead. Negative errno: it is none of ours, or may not. */
int mount_point_detach(const char *directory);

#endif
