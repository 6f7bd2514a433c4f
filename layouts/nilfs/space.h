/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over file.h. The promise: what an operation has changed, or said that it
 * will store, finds room in the log, whatever the next checkpoint takes with it.
 *
 * All under the exclusive lock.
 */
#ifndef LAYOUTFS_NILFS_SPACE_H
#define LAYOUTFS_NILFS_SPACE_H

#include "layouts/nilfs/file.h"

/* Who asks. Each leaves room for all below it: see space.c. */
enum nilfs_claim {
    NILFS_CLAIM_WRITE,  /* whatever adds blocks: as the driver, leaves the reserved segments, too */
    NILFS_CLAIM_REMOVE, /* removing, truncating, renaming over, snapshots: leaves the cleaner's */
    NILFS_CLAIM_FINISH, /* what must follow an operation; the cleaner's step: leaves nothing */
};

/* What somebody is about to change, at most. */
struct nilfs_demand {
    uint64_t blocks;  /* data and nodes, of any file but the DAT, that get a new pointer */
    uint64_t entries; /* blocks of the DAT, beside those that `blocks` change: with entries that are
                         ended, freed or moved */
    uint64_t logged;  /* blocks that go to the log as they are, and summaries of early logs */
    uint64_t segments; /* whose usage changes */
};

/* Is there room, with what the claim leaves for others? */
bool nilfs_space_fits(const struct nilfs *nilfs, enum nilfs_claim claim,
                      const struct nilfs_demand *demand);
void nilfs_space_add(struct nilfs_demand *demand, const struct nilfs_demand *more);
/* 0, or -ENOSPC: nothing has changed. volume->commit_frees then says whether to try again after a
 * commit: with the option `wait`, since commits clean; else for removing alone, if that has made P
 * large. (Who writes fails at once, as with the driver.) */
int nilfs_space_claim(struct nilfs *nilfs, enum nilfs_claim claim,
                      const struct nilfs_demand *demand);
/* How many blocks of a file, up to `most`, in a row, may be freed now; 0: none. Claims that, the
 * block at either end, which is stored anew, and the inode's record. */
uint64_t nilfs_space_free(struct nilfs *nilfs, enum nilfs_claim claim,
                          const struct nilfs_file *file, uint64_t most);
/* For `more` blocks of NILFS_CLAIM_WRITE, and the driver's condition: clean segments > reserved +
 * changed / segment_blocks + 1. Asked by whatever adds blocks, before it changes anything. */
int nilfs_space(struct nilfs *nilfs, uint64_t more);
/* Blocks that one data block of the file, changed, made or taken away, changes at most: itself, the
 * nodes above it and their siblings. */
uint64_t nilfs_space_change(const struct nilfs_file *file);
/* Nodes that change when `blocks` blocks of the file, in so many runs, get new pointers, `holes` of
 * which have none yet. */
uint64_t nilfs_space_nodes(const struct nilfs_file *file, uint64_t runs, uint64_t blocks,
                           uint64_t holes);
/* Blocks of a file, as it counts them. */
static inline uint64_t nilfs_space_blocks(const struct nilfs_file *file) {
    return file->sectors / file->nilfs->geometry.sectors_per_block;
}

/* --- for commit.c, recovery and the cleaner --- */
/* After a crash behind a data-only log of `blocks` more blocks, a recovery has room to write all
 * such logs since the newest checkpoint anew; with what NILFS_CLAIM_WRITE leaves for others, and
 * the driver's condition. */
bool nilfs_space_recovers(const struct nilfs *nilfs, uint64_t blocks);
/* Blocks that the next checkpoint writes at most; that the log has room for. */
uint64_t nilfs_space_promised(const struct nilfs *nilfs, const struct nilfs_demand *more);
uint64_t nilfs_space_left(const struct nilfs *nilfs);
/* What a clean segment adds to that. */
uint64_t nilfs_space_segment(const struct nilfs_geometry *geometry);

#endif
