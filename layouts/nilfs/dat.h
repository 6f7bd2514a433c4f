/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over palloc.h. The DAT: where each virtual block lies, and in which
 * checkpoints it is alive: start <= cno < end.
 *
 *     allocated                          block 0, start 1,  end none
 *     placed, building checkpoint c      block b, start c,  end none
 *     replaced or deleted, building c    kept,    kept,     end c      (single: end = start)
 *     the same, never placed             freed at once
 *     moved by the cleaner               block b', the rest kept
 */
#ifndef LAYOUTFS_NILFS_DAT_H
#define LAYOUTFS_NILFS_DAT_H

#include "layouts/nilfs/palloc.h"

struct nilfs_life {
    uint64_t block; /* on disk; 0: never written */
    uint64_t start, end;
};

/* -EUCLEAN when the number is free, out of range or has no entry. Shared. */
int nilfs_dat_life(struct nilfs *nilfs, uint64_t vblock, struct nilfs_life *life);
/* The disk block; -EUCLEAN also when there is none, or it is outside the segments. Shared. */
int nilfs_dat_lookup(struct nilfs *nilfs, uint64_t vblock, uint64_t *block);
/* The disk block of the first of `count` of them, and how many, from the first one on, lie behind
 * one another from there. Each part of the DAT is asked for once. */
int nilfs_dat_lookup_run(struct nilfs *nilfs, const uint64_t *vblocks, uint32_t count,
                         uint64_t *block);
/* `goal`: a virtual block to be near; 0: by the file's number. */
int nilfs_dat_allocate(struct nilfs *nilfs, uint64_t ino, uint64_t goal, uint64_t *vblock);
/* The end of its life in the checkpoint under construction. */
int nilfs_dat_end(struct nilfs *nilfs, uint64_t vblock, bool single);
/* It is written at `block` for the checkpoint under construction, in which it was allocated: no
 * block of the DAT becomes a changed one. */
int nilfs_dat_place(struct nilfs *nilfs, uint64_t vblock, uint64_t block);
/* The cleaner has copied it to `block`; its DAT block becomes a changed one. */
int nilfs_dat_move(struct nilfs *nilfs, uint64_t vblock, uint64_t block);
/* The cleaner frees a dead one. */
int nilfs_dat_free(struct nilfs *nilfs, uint64_t vblock);

#endif
