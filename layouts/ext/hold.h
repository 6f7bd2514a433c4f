/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, under placement.c and mballoc.c; knows no inode, no bitmap and no volume.
 *
 * Holds: ranges of blocks that are kept in core for whom they are meant, while the disk shows them
 * as it did. With alloc=reservation they are the windows of growing files, which may have blocks in
 * use in them; with alloc=mballoc they are preallocations, all of whose blocks are free.
 *
 * Invariants:
 *  1. A hold is in the tree and in the list while its count is above 0.
 *  2. Holds do not overlap.
 *  3. There are at most EXT_HOLDS_MAX: whoever sets one more drops the oldest first.
 *
 * The memory of a hold is its owner's, who drops it before it goes. Callers hold the volume
 * exclusively, but for ext_holds_clip.
 */
#ifndef LAYOUTFS_EXT_HOLD_H
#define LAYOUTFS_EXT_HOLD_H

#include <bsd/sys/tree.h>
#include <stdint.h>
#include <sys/queue.h>

/* A file that nobody writes to any more keeps its hold until so many others have set one. */
#define EXT_HOLDS_MAX 64u

struct ext_hold {
    RB_ENTRY(ext_hold) link;       /* by block */
    TAILQ_ENTRY(ext_hold) by_time; /* oldest first */
    uint64_t block;
    uint32_t count; /* 0: nothing is held */
    uint32_t size;  /* alloc=reservation: of the window when it was new */
    uint32_t idle;  /* likewise: inodes made since it was last used */
};

struct ext_holds {
    RB_HEAD(ext_hold_tree, ext_hold) tree;
    TAILQ_HEAD(ext_hold_list, ext_hold) by_time;
    uint32_t count;
};

void ext_holds_init(struct ext_holds *holds);
/* The hold, which is none yet, comes to be [block, block + count); count > 0. */
void ext_hold_set(struct ext_holds *holds, struct ext_hold *hold, uint64_t block, uint32_t count);
/* Gives up what lies before `block`, which is in the hold or its end. */
void ext_hold_advance(struct ext_holds *holds, struct ext_hold *hold, uint64_t block);
/* Nothing is held any more. */
void ext_hold_drop(struct ext_holds *holds, struct ext_hold *hold);
/* The first hold that ends behind `block`, or NULL. O(log n). */
struct ext_hold *ext_holds_from(struct ext_holds *holds, uint64_t block);
struct ext_hold *ext_holds_next(struct ext_hold *hold);
/* How many of `count` blocks from `block` on lie before the next hold that is not `own`. 0: inside
 * one, which ends at *end. O(log n). */
uint32_t ext_holds_clip(struct ext_holds *holds, const struct ext_hold *own, uint64_t block,
                        uint32_t count, uint64_t *end);

#endif
