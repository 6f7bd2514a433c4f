/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over fs/volume.h. Serves a volume through libfuse's low-level API.
 * Used by tools/mount.c and, for the wall-time half of a benchmark, by bench/.
 *
 * Order of things for a mount in the background: fork; in the child fuse_block_signals,
 * volume_open, fuse_mount_serve, volume_close. A volume has a write-back thread of its own, which a
 * fork after volume_open would lose.
 */
#ifndef LAYOUTFS_FUSE_H
#define LAYOUTFS_FUSE_H

#include "fs/volume.h"

struct fuse_mount_config {
    struct volume *volume;    /* borrowed: the caller closes it afterwards */
    const char *mount_point;  /* an existing directory; absolute if the process changes its own */
    const char *fuse_options; /* passed to the kernel: "allow_other,default_permissions,nosuid" */
    const char *source;       /* what /proc/mounts shows, the image's path */
    void (*mounted)(void *context); /* called once the mount answers; may be NULL */
    void *context;
    /* The kernel holds written data back before the volume sees it: faster for small writes, but a
     * full disk is noticed only at close or fsync. See docs/fuse.md. */
    bool delayed_writes;
    /* Has the kernel offer io_uring to this mount where only root's word is missing; where it
     * offers it anyway, it is used. See fs/fuse_ring.h. */
    bool io_uring;
    unsigned threads; /* that read requests; 0: as many as suit the machine */
};

/* Mounts, serves until unmounted or a signal (SIGINT, SIGTERM, SIGHUP) arrives, and unmounts. The
 * volume is synced but not closed; no inode is held any more. 0 or negative errno, with a sentence
 * in the volume's log; -ECANCELED: it could not be mounted there. */
int fuse_mount_serve(const struct fuse_mount_config *config);

/* Keeps the signals above for fuse_mount_serve. Called before the process starts any thread. */
void fuse_block_signals(void);

/* Unmounts, with fusermount3's help when not root. -EBUSY, -EINVAL (nothing is mounted there)...;
 * an unprivileged failure is always -EBUSY, and fusermount3 has said why. `lazy`: the name goes
 * now, the filesystem when its last file is closed. */
int fuse_unmount(const char *mount_point, bool lazy);

#endif
