/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. Other filesystems to measure beside ours: programs that serve a mount of an image,
 * and the kernel's own drivers. Adding one is a line in peer.c.
 */
#ifndef LAYOUTFS_BENCH_PEER_H
#define LAYOUTFS_BENCH_PEER_H

#include <stdbool.h>
#include <sys/types.h>

struct peer {
    const char *name;
    const char *needs[3]; /* programs that must be installed; ended by NULL */
    bool root;            /* only root can mount it */
    /* The image is made by our mkfs of the scenario's first row of a type that begins so; NULL: by
     * `mkfs`. */
    const char *format;
    /* Commands, ended by NULL, in which "IMAGE" and "MOUNT" stand for the image's path and the
     * mount point. `mount` stays in the foreground when it serves the mount itself. */
    const char *mkfs[8], *mount[8], *unmount[4];
    bool serves; /* `mount` runs until unmounted; else it ends when the kernel has mounted */
};

extern const struct peer peers[]; /* ended by one without a name */

/* Can it be run here, by this user? */
bool peer_usable(const struct peer *peer);
/* 0 or negative errno, from here on. */
int peer_make_image(const struct peer *peer, const char *image);
/* *server: the process that serves the mount, 0 for the kernel's. */
int peer_mount(const struct peer *peer, const char *image, const char *mount_point, pid_t *server);
/* Returns when the image is complete. */
int peer_unmount(const struct peer *peer, const char *mount_point, pid_t server);

#endif
