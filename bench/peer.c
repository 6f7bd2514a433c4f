/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. See peer.h.
 */
#include "bench/peer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bench/process.h"

#define ARGUMENTS_MAX 8

const struct peer peers[] = {
    {.name = "fuse2fs",
     .needs = {"fuse2fs", "fusermount3"},
     .format = "ext",
     .mount = {"fuse2fs", "-f", "-o", "fakeroot", "IMAGE", "MOUNT"},
     .unmount = {"fusermount3", "-u", "MOUNT"},
     .serves = true},
    {.name = "ntfs-3g",
     .needs = {"ntfs-3g", "mkntfs"},
     .root = true,
     .mkfs = {"mkntfs", "-F", "-Q", "-q", "IMAGE"},
     .mount = {"ntfs-3g", "-o", "no_detach,big_writes", "IMAGE", "MOUNT"},
     .unmount = {"umount", "MOUNT"},
     .serves = true},
    {.name = "kernel ext4",
     .needs = {"mkfs.ext4", "mount"},
     .root = true,
     .mkfs = {"mkfs.ext4", "-q", "-F", "IMAGE"},
     .mount = {"mount", "-t", "ext4", "-o", "loop", "IMAGE", "MOUNT"},
     .unmount = {"umount", "MOUNT"}},
    {0},
};

bool peer_usable(const struct peer *peer) {
    if (peer->root && geteuid() != 0)
        return false;
    for (unsigned i = 0; peer->needs[i]; i++)
        if (!process_exists(peer->needs[i]))
            return false;
    return true;
}

static void fill_in(const char *const *command, const char *image, const char *mount_point,
                    const char *filled[ARGUMENTS_MAX + 1]) {
    unsigned i = 0;

    for (; i < ARGUMENTS_MAX && command[i]; i++)
        filled[i] = strcmp(command[i], "IMAGE") == 0   ? image
                    : strcmp(command[i], "MOUNT") == 0 ? mount_point
                                                       : command[i];
    filled[i] = NULL;
}

int peer_make_image(const struct peer *peer, const char *image) {
    const char *command[ARGUMENTS_MAX + 1];

    fill_in(peer->mkfs, image, NULL, command);
    return process_run(command);
}

int peer_mount(const struct peer *peer, const char *image, const char *mount_point, pid_t *server) {
    const char *command[ARGUMENTS_MAX + 1];

    *server = 0;
    fill_in(peer->mount, image, mount_point, command);
    if (!peer->serves)
        return process_run(command);
    int error = process_start(command, server);
    return error ? error : process_await_mount(*server, mount_point);
}

int peer_unmount(const struct peer *peer, const char *mount_point, pid_t server) {
    const char *command[ARGUMENTS_MAX + 1];

    fill_in(peer->unmount, NULL, mount_point, command);
    int error = process_run(command);
    return error || !server ? error : process_finish(server);
}
