/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, private to describe.c and check*.c: looking at a volume without believing it.
 * Unlike indirect.c, which serves a mounted volume and treats damage as an error, this walk leaves
 * judgement to its visitor and changes nothing.
 */
#ifndef LAYOUTFS_EXT_WALK_H
#define LAYOUTFS_EXT_WALK_H

#include "layouts/ext/ext.h"

/* One pointer of a block map. */
struct ext_walk_step {
    uint32_t block;   /* not 0; not validated */
    uint64_t logical; /* the first block of the file that it leads to */
    uint32_t level;   /* 0: data; 1 to 3: an indirect block of that level */
};
enum { EXT_WALK_SKIP, EXT_WALK_ENTER };
/* EXT_WALK_ENTER: an indirect block is read and followed (so it must have been validated).
 * EXT_WALK_SKIP: not followed. Negative: ends the walk with this value. */
typedef int (*ext_walk_visit)(void *context, const struct ext_walk_step *step);

/* Visits every pointer of the record's block map in file order. 0, what visit ended it with, or a
 * read error. */
int ext_walk_map(struct ext *ext, const struct ext_disk_inode *record, ext_walk_visit visit,
                 void *context);
/* Has the record a block map (rather than a device number, a short symlink's target, nothing)? */
bool ext_walk_has_map(const struct ext *ext, const struct ext_disk_inode *record);
/* Calls visit for every inode that the group's bitmap shows as in use, with its record, until it
 * returns non-zero, which is returned. */
int ext_walk_inodes(struct ext *ext, uint32_t group,
                    int (*visit)(void *context, uint64_t ino, const struct ext_disk_inode *record),
                    void *context);

#endif
