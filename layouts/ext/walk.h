/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, private to describe.c and check*.c: looking at a volume without believing it.
 * Unlike indirect.c, which serves a mounted volume and treats damage as an error, this walk leaves
 * judgement to its visitor and changes nothing.
 */
#ifndef LAYOUTFS_EXT_WALK_H
#define LAYOUTFS_EXT_WALK_H

#include "layouts/ext/ext.h"

/* One pointer of a block map, or one entry of an extent tree. */
struct ext_walk_step {
    uint64_t block;    /* not 0; not validated */
    uint64_t logical;  /* the first block of the file that it leads to */
    uint32_t level;    /* 0: data; else a block of the map, so many steps above the data */
    uint32_t count;    /* consecutive blocks; 1 but for an extent */
    bool unwritten;    /* an extent that reads as zeros */
    const char *wrong; /* NULL, or what is wrong with the node of an extent tree in this block (0:
                          its root), which is not entered */
};
enum { EXT_WALK_SKIP, EXT_WALK_ENTER };
/* EXT_WALK_ENTER: an indirect block is read and followed (so it must have been validated).
 * EXT_WALK_SKIP: not followed. Negative: ends the walk with this value. */
typedef int (*ext_walk_visit)(void *context, const struct ext_walk_step *step);

/* Visits every pointer or entry of inode number `ino`'s map in file order. 0, what visit ended it
 * with, or a read error. */
int ext_walk_map(struct ext *ext, uint64_t ino, const struct ext_disk_inode *record,
                 ext_walk_visit visit, void *context);
/* Has the record a block map (rather than a device number, a short symlink's target, nothing)? */
bool ext_walk_has_map(const struct ext *ext, const struct ext_disk_inode *record);
/* Calls visit for every inode that the group's bitmap shows as in use, with its record, until it
 * returns non-zero, which is returned. */
int ext_walk_inodes(struct ext *ext, uint32_t group,
                    int (*visit)(void *context, uint64_t ino, const struct ext_disk_inode *record),
                    void *context);

#endif
