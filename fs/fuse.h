/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over fs/volume.h. Serves a volume through libfuse's low-level API.
 * Used by tools/mount.c and, for the wall-time half of a benchmark, by bench/.
 */
#ifndef LAYOUTFS_FUSE_H
#define LAYOUTFS_FUSE_H

#include "fs/volume.h"

struct fuse_mount_config {
    struct volume *volume;    /* borrowed: the caller closes it afterwards */
    const char *mount_point;  /* an existing directory */
    const char *fuse_options; /* passed to the kernel: "allow_other,default_permissions,nosuid" */
    const char *source;       /* what /proc/mounts shows, the image's path */
    bool foreground;          /* false: go to the background once mounted */
    unsigned threads;         /* 0: as many as libfuse wants */
};

/* Mounts, serves until unmounted or a signal (SIGINT, SIGTERM, SIGHUP) arrives, and unmounts. The
 * volume is synced but not closed. 0 or negative errno, with a sentence in the volume's log. */
int fuse_mount_serve(const struct fuse_mount_config *config);

#endif
