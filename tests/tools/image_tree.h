/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: all objects of an image, without a mount.
 */
#ifndef LAYOUTFS_TEST_IMAGE_TREE_H
#define LAYOUTFS_TEST_IMAGE_TREE_H

#include "fs/volume.h"

/* `path` is relative to the root, which is "."; an error ends the walk. */
typedef int (*image_tree_visit)(void *context, const char *path, struct inode *inode);

/* Opens the image (for writing, too, with `writable`), visits every object once for each of its
 * names, in byte order of the paths, and closes it. Errors were told. */
int image_tree_each(const char *image, bool writable, const char *options, image_tree_visit visit,
                    void *context);
/* Calls `add` for the file's bytes [from, to), piece by piece. */
int image_tree_read(struct inode *inode, uint64_t from, uint64_t to,
                    void (*add)(void *context, const void *bytes, size_t size), void *context);
/* The symlink's target, to be freed; NULL, and an error. */
char *image_tree_target(struct inode *inode, uint64_t size, int *error);

#endif
