/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over the device and super.h. Which blocks are used: the bitmaps, the
 * allocator, blocks that are free only after the next commit, and the answer to "is there room?".
 *
 * Each region (32,736 blocks, with one bitmap block) has two bitmaps in core. The *image* is the
 * bitmap block as the newest commit has it, and as the next one changes it. The *working* bitmap
 * says what may not be allocated, and has more bits set:
 *
 *                                       image             working
 *   allocated since the last commit     with the next     1
 *   released since the last commit      0 with the next   1 until that commit is durable
 *   blocks of a log, wandered blocks    never             1 until everything is in place
 *
 * so that nothing that the newest durable commit has, or needs for its replay, is ever overwritten.
 *
 * Invariants:
 *  1. free = clear bits of all working bitmaps; deferred = blocks released and not yet free;
 *     free + deferred + logged = clear bits of the images as the next commit would make them.
 *  2. What was granted (reiser4_space_ask) can be carried out, and committed, without -ENOSPC:
 *     the need of all that is uncommitted is at most `free`, and REISER4_SPACE_RESERVE beside it is
 *     for commits alone.
 *  3. A bitmap block is read, and its checksum verified, before anything is allocated or freed in
 * its region: at mount, or when it is first needed (dont_load_bitmap).
 *
 * Locking: exclusive, but for reiser4_space_usage.
 */
#ifndef LAYOUTFS_REISER4_SPACE_H
#define LAYOUTFS_REISER4_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layouts/reiser4/format.h"

struct reiser4;
struct reiser4_commit;

struct reiser4_run {
    uint64_t block, count;
};
struct reiser4_runs {        /* a list that grows */
    struct reiser4_run *run; /* owned */
    size_t count, room;
    uint64_t blocks; /* of all runs */
};

struct reiser4_region {
    uint8_t *image;   /* owned, the whole bitmap block; NULL: not read yet */
    uint8_t *working; /* owned, bits only; NULL: as the image */
    uint32_t free;    /* clear bits of the working bitmap */
    bool changed;     /* allocated or released in, since the last commit began */
};

struct reiser4_space {
    struct reiser4_region *regions; /* owned */
    uint64_t region_count;
    uint64_t free;                /* see invariant 1; as the super block says until all are read */
    struct reiser4_runs released; /* since the last commit began */
    struct reiser4_runs frozen;   /* those of the commit that is being written */
    struct reiser4_runs logged;   /* its log and wandered blocks */
    uint64_t cursor;              /* where the last allocation ended: the default hint */
};

/* Blocks that only commits may use: 5 %, as the driver keeps. */
#define REISER4_SPACE_RESERVE(blocks) ((blocks) / 1024 * 51 + (blocks) % 1024 * 51 / 1024)

/* Takes up the bitmaps of r4->super; reads all of them, unless the options say otherwise. -EUCLEAN,
 * -EIO: one is wrong or unreadable. */
int reiser4_space_open(struct reiser4 *r4);
void reiser4_space_close(struct reiser4 *r4);
/* Where a region's bitmap lies; and it is read, if that has not been done. Exclusive. */
uint64_t reiser4_bitmap_block(uint64_t region);
int reiser4_space_load(struct reiser4 *r4, uint64_t region);

/* --- asking ------------------------------------------------------------------------------------
 */

/* What an operation adds to what the next commit has to write. Whoever changes the tree asks first,
 * with the worst case; nothing is booked, since from then on what the operation has made is counted
 * itself (jnodes, pending data). */
struct reiser4_need {
    uint32_t nodes;  /* tree nodes made or changed: REISER4_TREE_NODES for each insertion */
    uint64_t blocks; /* of file data, that are not on the device yet or are to be written twice */
};
/* 0 or -ENOSPC. Removals ask with `removal`: they may use half of the reserve, so that a full
 * volume can be emptied. */
int reiser4_space_ask(struct reiser4 *r4, struct reiser4_need need, bool removal);
/* The same for so many insertions into the tree, or removals. */
int reiser4_space_ask_changes(struct reiser4 *r4, uint32_t changes, bool removal);
/* For statfs. Shared. */
uint64_t reiser4_space_usage(const struct reiser4 *r4, uint64_t *available);

/* --- allocating and freeing --------------------------------------------------------------------
 */

/* The first free run at or behind `hint` (0: the cursor), once around, of at most `wanted` blocks,
 * as long as it is there: run->count > 0. -ENOSPC; -EIO, -EUCLEAN, -ENOMEM. */
int reiser4_space_allocate(struct reiser4 *r4, uint64_t hint, uint64_t wanted,
                           struct reiser4_run *run);
/* A free block nearer to `hint` than `distance` blocks, on either side, those behind it first;
 * -ENOENT: there is none. */
int reiser4_space_allocate_near(struct reiser4 *r4, uint64_t hint, uint64_t distance,
                                uint64_t *block);
/* Blocks for a commit's log and for wandered copies: never in an image. As the first one. */
int reiser4_space_allocate_log(struct reiser4 *r4, uint64_t hint, uint64_t wanted,
                               struct reiser4_run *run);
/* Blocks that the newest commit has, or may have: free after the next one. */
int reiser4_space_release(struct reiser4 *r4, uint64_t block, uint64_t count);
/* Was the block, which is used, allocated since the last commit began? */
bool reiser4_space_is_new(const struct reiser4 *r4, uint64_t block);
/* Blocks that were allocated since the last commit began: free at once. */
void reiser4_space_give_back(struct reiser4 *r4, uint64_t block, uint64_t count);

/* --- commit ------------------------------------------------------------------------------------
 */

/* From here on, changes are the next commit's: images get their new bits and checksums; each that
 * has changed goes, in a pinned buffer, to the commit's overwrite set (reiser4_commit_overwrite).
 * *free_blocks is what the super block has to say. */
int reiser4_space_freeze(struct reiser4 *r4, struct reiser4_commit *commit, uint64_t *free_blocks);
/* The commit is in place and its footer durable: what was released in it, and its log, are free;
 * their buffers are forgotten. */
void reiser4_space_committed(struct reiser4 *r4);

#endif
