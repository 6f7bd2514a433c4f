/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, under group.c; over hold.c and buddy.c.
 *
 * alloc=mballoc: many blocks at once, in one piece, as ext4 does it. Interface between group.c,
 * which marks in the bitmap what is found here, and mballoc.c. Callers hold the volume exclusively.
 */
#ifndef LAYOUTFS_EXT_MBALLOC_H
#define LAYOUTFS_EXT_MBALLOC_H

#include "layouts/ext/ext.h"

struct ext_found { /* free blocks */
    uint32_t group, bit, count;
    struct buffer *bitmap; /* the group's; the caller puts it */
};

/* -ENOMEM. Without alloc=mballoc none of these functions is called, but for ext_mballoc_close. */
int ext_mballoc_open(struct ext *ext);
void ext_mballoc_close(struct ext *ext);
/* Finds up to `wanted` blocks for the inode, at least 1, the first as near `goal` as can be, and
 * takes them out of the buddy map or out of what was preallocated; may preallocate more. The caller
 * marks them in the bitmap. -ENOSPC: all that is free is preallocated, or not free yet. */
int ext_mballoc_find(struct ext *ext, struct inode *inode, uint64_t goal, uint32_t wanted,
                     struct ext_found *found);
/* Blocks of the group, clear in its bitmap, may be allocated from now on. */
void ext_mballoc_freed(struct ext *ext, uint32_t group, uint32_t bit, uint32_t count);
/* A preallocation is given up; so are all. */
void ext_mballoc_drop(struct ext *ext, struct ext_hold *hold);
void ext_mballoc_drop_all(struct ext *ext);

#endif
