/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over extent_edit.c, group.c and placement.c. What data.c asks of an inode
 * that is mapped by extents.
 *
 * Invariants:
 *  1. A block is in its bitmap before it is in the tree, and out of the tree before it is out of
 *     the bitmap; an error on the way leaves a tree that is whole, if short.
 *  2. inode->sectors counts data blocks and the tree's blocks.
 *  3. A step of allocation or removal changes one leaf and what is above it, so that a long
 *     operation can be cut between any two.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/ext/extent.h"

void ext_extent_initialise(struct ext_inode *private) {
    struct ext_disk_extent_header *header = &private->extents.header;
    memset((void *)&private->extents, 0, sizeof private->extents);
    le16_store(&header->eh_magic, EXT_EXTENT_MAGIC);
    le16_store(&header->eh_max, EXT_EXTENT_ROOT_MAX);
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* --- allocation ------------------------------------------------------------------------------ */

/* Blocks for the hole at `logical`, which lies behind `left` (count 0: the first extent). */
static int hole_fill(struct extent_path *path, uint64_t logical, uint64_t count, bool unwritten,
                     const struct ext_run *left, uint64_t *filled) {
    struct inode *inode = path->inode;
    struct ext *ext = ext_of(inode->volume);
    struct ext_run piece = {.logical = logical, .unwritten = unwritten};
    bool sequential = ext_writer_goes_on(inode, logical);
    uint64_t goal =
        ext_place_block(ext, inode, logical, left->count ? left->physical + left->count - 1 : 0);
    uint32_t got = (uint32_t)smaller(count, EXT_EXTENT_LENGTH - (unwritten ? 1 : 0));

    int rc = ext_blocks_allocate(ext, inode, goal, &got, &piece.physical);
    if (rc < 0)
        return rc;
    piece.count = got;
    rc = ext_extent_replace(path, (uint32_t)(path_leaf(path)->at + 1), 0, &piece, 1);
    if (rc < 0) {
        (void)ext_blocks_free(ext, piece.physical, got, false);
        return rc;
    }
    inode->sectors += (uint64_t)got * (ext->geometry.block_size / 512);
    if (!unwritten)
        ext_order_data(inode);
    ext_place_note(ext, inode, logical, piece.physical, got, sequential && piece.physical == goal);
    *filled = got;
    return 0;
}

/* The part of the unwritten extent `run`, entry `at` of the leaf, that lies in [logical,
 * logical + count) becomes written. */
static int run_convert(struct extent_path *path, const struct ext_run *run, uint64_t logical,
                       uint64_t count, uint64_t *converted) {
    uint64_t end = run->logical + run->count;
    struct ext_run pieces[3];
    uint32_t n = 0;
    if (count > end - logical)
        count = end - logical;
    if (logical > run->logical) {
        pieces[n] = *run;
        pieces[n++].count = logical - run->logical;
    }
    pieces[n++] = (struct ext_run){
        .logical = logical,
        .physical = run->physical + (logical - run->logical),
        .count = count,
    };
    if (logical + count < end) {
        pieces[n++] = (struct ext_run){
            .logical = logical + count,
            .physical = run->physical + (logical + count - run->logical),
            .count = end - logical - count,
            .unwritten = true,
        };
    }
    *converted = count;
    ext_order_data(path->inode);
    ext_note_change(path->inode, true);
    return ext_extent_replace(path, (uint32_t)path_leaf(path)->at, 1, pieces, n);
}

/* One step of allocation: what is at `logical`, as far as it goes on alike. */
static int allocate_step(struct inode *inode, uint64_t logical, uint64_t count, bool unwritten,
                         uint64_t *done) {
    struct extent_path path;
    struct ext_run run = {0};
    if (logical >= EXTENT_LOGICAL_END - 1)
        return -EFBIG;
    int rc = ext_extent_find(inode, logical, &path);
    if (rc < 0)
        return rc;
    const struct extent_node *leaf = path_leaf(&path);
    if (leaf->at >= 0)
        rc = ext_extent_at(&path, leaf->at, &run);
    uint64_t run_end = run.logical + run.count;
    if (rc == 0 && run.count > 0 && logical < run_end) {
        *done = smaller(count, run_end - logical);
        if (run.unwritten && !unwritten)
            rc = run_convert(&path, &run, logical, count, done);
    } else if (rc == 0) {
        uint64_t end =
            leaf->at + 1 < (int)node_entries(leaf) ? node_key(leaf, leaf->at + 1) : leaf->end;
        end = smaller(end, EXTENT_LOGICAL_END - 1);
        rc = hole_fill(&path, logical, smaller(count, end - logical), unwritten, &run, done);
    }
    ext_extent_release(&path);
    return rc;
}

int ext_extent_allocate(struct inode *inode, uint64_t logical, uint64_t count, bool unwritten,
                        uint64_t *done) {
    int rc = 0;
    *done = 0;
    while (rc == 0 && *done < count && (*done == 0 || !ext_journal_full(ext_of(inode->volume)))) {
        uint64_t step = 0;
        rc = allocate_step(inode, logical + *done, count - *done, unwritten, &step);
        if (rc == 0)
            *done += step;
    }
    return *done > 0 ? 0 : rc;
}

/* --- removal --------------------------------------------------------------------------------- */

static int data_free(struct inode *inode, uint64_t physical, uint64_t count) {
    struct ext *ext = ext_of(inode->volume);
    uint64_t sectors = count * (ext->geometry.block_size / 512);
    inode->sectors -= sectors < inode->sectors ? sectors : inode->sectors;
    /* Contents of directories and symlinks are in the buffer cache, those of files are not. */
    return ext_blocks_free(ext, physical, count, !S_ISREG(inode->mode));
}

/* An extent of which something stays: [from, to) is cut out of it. */
static int run_cut(struct extent_path *path, uint32_t position, const struct ext_run *run,
                   uint64_t from, uint64_t to) {
    uint64_t end = run->logical + run->count;
    struct ext_run pieces[2];
    uint32_t n = 0;
    if (from < run->logical)
        from = run->logical;
    if (to > end)
        to = end;
    uint64_t physical = run->physical + (from - run->logical);
    if (from > run->logical) {
        pieces[n] = *run;
        pieces[n++].count = from - run->logical;
    }
    if (to < end) {
        pieces[n] = *run;
        pieces[n].logical = to;
        pieces[n].physical = run->physical + (to - run->logical);
        pieces[n++].count = end - to;
    }
    int rc = ext_extent_replace(path, position, 1, pieces, n);
    return rc < 0 ? rc : data_free(path->inode, physical, to - from);
}

/* Removes the extents of the leaf that lie inside [from, to), from entry `first` on, the last one
 * first: a leaf that loses its tail is not moved about. LAYOUT_AGAIN: the transaction is full, as
 * each run can lie in groups of its own, with bitmaps of their own. */
static int whole_runs_remove(struct extent_path *path, uint32_t first, uint64_t to) {
    const struct extent_node *leaf = path_leaf(path);
    uint32_t last = first;
    struct ext_run run;
    int rc = 0;
    for (; last < node_entries(leaf); last++) {
        ext_extent_decode(node_extent(leaf, (int)last), &run);
        if (run.logical + run.count > to)
            break;
    }
    while (last > first && rc == 0) {
        rc = ext_extent_at(path, (int)--last, &run);
        if (rc < 0)
            break;
        ext_extent_erase(path, last, 1);
        rc = data_free(path->inode, run.physical, run.count);
        if (rc == 0 && last > first && ext_journal_full(ext_of(path->inode->volume)))
            rc = LAYOUT_AGAIN;
    }
    return rc;
}

/* One step of removal: what lies in [*from, to) and in the leaf for *from. *from: where to go on.
 */
static int remove_step(struct inode *inode, uint64_t *from, uint64_t to) {
    struct extent_path path;
    struct ext_run run = {0};
    int rc = ext_extent_find(inode, *from, &path);
    if (rc < 0)
        return rc;
    uint32_t next = (uint32_t)(path_leaf(&path)->at + 1);
    uint64_t start = *from;
    *from = path_leaf(&path)->end;
    if (next > 0)
        rc = ext_extent_at(&path, (int)next - 1, &run);
    uint64_t run_end = run.logical + run.count;
    if (rc == 0 && run_end > start && run.logical < start) {
        /* What is left of it may have been merged with its neighbour: the leaf is another now. */
        rc = run_cut(&path, next - 1, &run, start, to);
        ext_extent_release(&path);
        *from = smaller(run_end, to);
        return rc;
    }
    if (run_end > start)
        next--;
    if (rc == 0)
        rc = whole_runs_remove(&path, next, to);
    if (rc == 0 && next < node_entries(path_leaf(&path))) {
        rc = ext_extent_at(&path, (int)next, &run);
        if (rc == 0 && run.logical < to)
            rc = run_cut(&path, next, &run, start, to);
    }
    if (rc < 0 && node_entries(path_leaf(&path)) > 0) {
        ext_extent_release(&path);
        return rc;
    }
    int pruned = ext_extent_prune(&path);
    return rc < 0 || pruned == 0 ? rc : pruned;
}

int ext_extent_remove(struct inode *inode, uint64_t from, uint64_t to) {
    const uint64_t sectors = inode->sectors;
    int rc = 0;
    to = smaller(to, EXTENT_LOGICAL_END);
    while (from < to && rc == 0) {
        rc = remove_step(inode, &from, to);
        /* Where nothing has been removed yet the caller would come back to the same. */
        if (rc == 0 && from < to && inode->sectors != sectors &&
            ext_journal_full(ext_of(inode->volume)))
            rc = LAYOUT_AGAIN;
    }
    ext_writer_forget_end(inode);
    return rc;
}
