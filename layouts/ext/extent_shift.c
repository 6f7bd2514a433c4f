/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over extent_edit.c. Parts of a file taken out of it, or made room for
 * (FALLOC_FL_COLLAPSE_RANGE and INSERT_RANGE): the extents behind get other logical blocks, and
 * their blocks stay where they are.
 *
 * Invariant: extents move one leaf after the other into room that is free already (from the left
 * when they move down, from the right when they move up), so that the tree is in order after each.
 */
#include <errno.h>

#include "layouts/ext/extent.h"

static bool has_extents(const struct inode *inode) {
    return inode->flags & EXT_INODE_EXTENTS;
}

/* Moves the leaf's extents that begin in [from, end). */
static void leaf_shift(struct extent_path *path, uint64_t from, int64_t by) {
    struct extent_node *leaf = path_leaf(path);
    for (uint32_t i = 0; i < node_entries(leaf); i++) {
        uint32_t key = node_key(leaf, (int)i);
        if (key >= from)
            le32_store(&node_extent(leaf, (int)i)->ee_block, (uint32_t)(key + by));
    }
    ext_extent_changed(path);
}

/* All extents from `from` on, whose place is free `by` blocks lower. */
static int shift_down(struct inode *inode, uint64_t from, uint64_t by) {
    while (from < EXTENT_LOGICAL_END) {
        struct extent_path path;
        int rc = ext_extent_find(inode, from, &path);
        if (rc < 0)
            return rc;
        uint64_t end = path_leaf(&path)->end;
        leaf_shift(&path, from, -(int64_t)by);
        ext_extent_release(&path);
        from = end;
    }
    return 0;
}

/* Does the path lead to the leftmost leaf? */
static bool path_is_first(const struct extent_path *path) {
    for (uint32_t level = 0; level < path->depth; level++)
        if (path->nodes[level].at > 0)
            return false;
    return true;
}

/* All extents from `from` on; the last of them ends `by` blocks before the end of what can be. */
static int shift_up(struct inode *inode, uint64_t from, uint64_t by) {
    uint64_t last = EXTENT_LOGICAL_END - 1;
    for (;;) {
        struct extent_path path;
        int rc = ext_extent_find(inode, last, &path);
        if (rc < 0)
            return rc;
        const struct extent_node *leaf = path_leaf(&path);
        uint64_t first = node_entries(leaf) > 0 ? node_key(leaf, 0) : 0;
        bool done = first <= from || path_is_first(&path);
        leaf_shift(&path, from, (int64_t)by);
        ext_extent_release(&path);
        if (done)
            return 0;
        last = first - 1;
    }
}

/* Extents move in one transaction, since a crash between two would leave a file that is neither the
 * old one nor the new one: is there room for all leaves from `from` on? -EOPNOTSUPP. */
static int shift_fits(struct inode *inode, uint64_t from) {
    const uint32_t share = ext_journal_share(ext_of(inode->volume));
    for (uint32_t leaves = 0; from < EXTENT_LOGICAL_END; leaves++) {
        struct extent_path path;
        if (leaves == share)
            return -EOPNOTSUPP;
        int rc = ext_extent_find(inode, from, &path);
        if (rc < 0)
            return rc;
        from = path_leaf(&path)->end;
        ext_extent_release(&path);
    }
    return 0;
}

/* The extent that `at` lies inside of becomes two. */
static int split_at(struct inode *inode, uint64_t at) {
    struct extent_path path;
    struct ext_run run;
    int rc = ext_extent_find(inode, at, &path);
    if (rc < 0)
        return rc;
    int entry = path_leaf(&path)->at;
    if (entry >= 0)
        rc = ext_extent_at(&path, entry, &run);
    if (rc == 0 && entry >= 0 && run.logical < at && at < run.logical + run.count)
        rc = ext_extent_divide(&path, (uint32_t)entry, at);
    ext_extent_release(&path);
    return rc;
}

/* Where the last extent ends. */
static int tree_end(struct inode *inode, uint64_t *end) {
    struct extent_path path;
    struct ext_run run = {0};
    int rc = ext_extent_find(inode, EXTENT_LOGICAL_END - 1, &path);
    if (rc < 0)
        return rc;
    if (path_leaf(&path)->at >= 0)
        rc = ext_extent_at(&path, path_leaf(&path)->at, &run);
    *end = run.logical + run.count;
    ext_extent_release(&path);
    return rc;
}

int ext_collapse(struct inode *inode, uint64_t offset, uint64_t length) {
    uint32_t bits = ext_of(inode->volume)->geometry.block_bits;
    uint64_t from = offset >> bits, by = length >> bits;
    if (!has_extents(inode))
        return -EOPNOTSUPP;
    int rc = shift_fits(inode, from + by);
    if (rc == 0)
        rc = ext_store_forget(inode, from, EXTENT_LOGICAL_END);
    if (rc == 0)
        rc = ext_extent_remove(inode, from, from + by);
    ext_note_change(inode, true);
    return rc == 0 ? shift_down(inode, from + by, by) : rc;
}

int ext_insert(struct inode *inode, uint64_t offset, uint64_t length) {
    uint32_t bits = ext_of(inode->volume)->geometry.block_bits;
    uint64_t from = offset >> bits, by = length >> bits, end;
    if (!has_extents(inode))
        return -EOPNOTSUPP;
    int rc = tree_end(inode, &end);
    if (rc == 0 && end > from && by > EXTENT_LOGICAL_END - 1 - end)
        rc = -EFBIG;
    if (rc == 0)
        rc = shift_fits(inode, from);
    if (rc == 0)
        rc = ext_store_forget(inode, from, EXTENT_LOGICAL_END);
    if (rc == 0)
        rc = split_at(inode, from);
    ext_writer_forget_end(inode);
    ext_note_change(inode, true);
    return rc < 0 ? rc : shift_up(inode, from, by);
}
