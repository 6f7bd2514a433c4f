/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, private to check*.c.
 *
 *   check.c        takes up the volume; after the walks: bitmaps, counts, repair
 *   check_inodes.c every inode in use, and which blocks it holds
 *   check_dirs.c   every directory, names against inodes, the tree
 *
 * Invariants:
 *  1. Nothing from the volume is believed before it was compared with something else.
 *  2. Memory grows with what is in use: tables exist for groups that have inodes or data.
 *  3. A block of a map is entered only by the first that claims it, so every walk ends.
 */
#ifndef LAYOUTFS_EXT_CHECK_H
#define LAYOUTFS_EXT_CHECK_H

#include "layouts/ext/walk.h"

struct check_inode {
    uint16_t links; /* i_links_count */
    uint16_t names; /* entries that were found; stops at the largest */
    uint8_t type;   /* i_mode >> 12; 0: not in use */
};

struct check_dir {
    uint32_t ino;
    uint32_t parent; /* the directory with its name, 0: none found */
    uint32_t dotdot; /* what its ".." says */
    uint32_t mark;   /* walk to the root in which it was last met; 0: none */
};

struct check_group {
    uint8_t *blocks;            /* bitmap of blocks that inodes hold; NULL: none */
    struct check_inode *inodes; /* NULL: none in use */
    uint32_t directories;
};

struct check {
    struct volume volume; /* a stand-in: device, clock, log, name and pool */
    struct ext ext;
    struct check_report *report;
    struct check_group *groups; /* one a group */
    struct check_dir *dirs;     /* ascending inode numbers */
    size_t dir_count, dir_room;
    uint64_t *attribute_blocks; /* one for each inode that refers to it */
    size_t attribute_count, attribute_room;
};

/* A finding of CHECK_WRONG. */
void check_wrong(struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The last finding can be mended: is it to be? Counts it as repaired. */
bool check_repair(struct check *check);
/* Notes that an inode holds the (valid) block. 1: nobody did before; 0: somebody does; -ENOMEM. */
int check_claim(struct check *check, uint64_t block);
/* NULL: the number is out of range or not in use. */
struct check_inode *check_inode_find(struct check *check, uint64_t ino);
/* Grows an array to hold one more element. */
int check_grow(void **array, size_t count, size_t *room, size_t element);

int check_inodes(struct check *check);
int check_directories(struct check *check);

#endif
