/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Blocks of bodies that are reserved and not stored. Interface:
 * layouts/reiser4/body.h, invariant 5; layouts/reiser4/layout.h.
 */
#include <errno.h>

#include "layouts/reiser4/body.h"

#define SECTOR_BYTES 512u

int reiser4_pending_compare(const struct reiser4_inode *a, const struct reiser4_inode *b) {
    const struct inode *x = (const struct inode *)(const void *)a - 1;
    const struct inode *y = (const struct inode *)(const void *)b - 1;

    if (a->locality != b->locality)
        return a->locality < b->locality ? -1 : 1;
    if (a->ordering != b->ordering)
        return a->ordering < b->ordering ? -1 : 1;
    return x->ino < y->ino ? -1 : x->ino > y->ino;
}

RB_GENERATE(reiser4_pending_tree, reiser4_inode, pending_link, reiser4_pending_compare)

static uint64_t insertions(const struct block_set *set) {
    return set->runs + set->blocks / REISER4_INSERTION_BLOCKS;
}

/* Pending blocks may be of those that are there already; but a file of one run has no more blocks
 * than reach to its end. */
void reiser4_sectors_set(struct inode *inode) {
    const struct reiser4_inode *private = reiser4_inode_of(inode);
    const struct block_set *set = &private->pending_blocks;
    uint64_t blocks = inode->size / REISER4_BLOCK_SIZE + (inode->size % REISER4_BLOCK_SIZE != 0);
    uint64_t bytes = private->bytes + set->blocks * REISER4_BLOCK_SIZE;

    if (!set->chunks && set->end > blocks)
        blocks = set->end;
    if (set->blocks > 0 && !set->chunks && bytes > blocks * REISER4_BLOCK_SIZE)
        bytes = blocks * REISER4_BLOCK_SIZE;
    inode->sectors = bytes / SECTOR_BYTES + (bytes % SECTOR_BYTES != 0);
}

/* The inode's set was changed; before, it had so many blocks and took so many insertions. */
static void changed(struct inode *inode, uint64_t blocks, uint64_t items) {
    struct reiser4_inode *private = reiser4_inode_of(inode);
    struct reiser4_atom *atom = &reiser4_of(inode->volume)->atom;
    bool pending = private->pending_blocks.blocks > 0;

    atom->pending_blocks += private->pending_blocks.blocks - blocks;
    atom->pending_items += insertions(&private->pending_blocks) - items;
    inode->volume->store_frees = atom->pending_blocks > 0;
    if (pending && !private->pending)
        RB_INSERT(reiser4_pending_tree, &atom->pending, private);
    else if (!pending && private->pending)
        RB_REMOVE(reiser4_pending_tree, &atom->pending, private);
    private->pending = pending;
    reiser4_sectors_set(inode);
}

int reiser4_pending_add(struct inode *inode, uint64_t from, uint64_t to) {
    struct block_set *set = &reiser4_inode_of(inode)->pending_blocks;
    uint64_t blocks = set->blocks, items = insertions(set);
    int error = from < to ? block_set_add(set, from, to) : 0;

    changed(inode, blocks, items);
    return error;
}

int reiser4_pending_remove(struct inode *inode, uint64_t from, uint64_t to) {
    struct block_set *set = &reiser4_inode_of(inode)->pending_blocks;
    uint64_t blocks = set->blocks, items = insertions(set);
    int error = from < to && blocks > 0 ? block_set_remove(set, from, to) : 0;

    changed(inode, blocks, items);
    return error;
}

void reiser4_body_forget(struct inode *inode) {
    struct block_set *set = &reiser4_inode_of(inode)->pending_blocks;
    uint64_t blocks = set->blocks, items = insertions(set);

    block_set_clear(set);
    changed(inode, blocks, items);
}
