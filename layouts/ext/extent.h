/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, private to extent*.c: a way through an extent tree, and the edits of it.
 * Source of the format: Documentation/filesystems/ext4/ifork.rst ("Extent Tree").
 *
 *   extent.c       nodes: validation, finding the way, walking
 *   extent_edit.c  one leaf's entries replaced by others: merging, splitting, growing, shrinking
 *   extent_file.c  allocation, conversion and removal of ranges of a file
 *   extent_shift.c what lies behind a range moves down or up
 *
 * Invariants:
 *  1. No node is used before its header, the order of its keys and its place under its parent have
 *     been compared (-EUCLEAN); no block that an entry names before it is known to be data.
 *  2. A node's first key is its index entry's key. (Linux and e2fsck insist.)
 *  3. Extents never overlap and never reach over the next one's start.
 *  4. No node but the root is empty between two calls from outside these files.
 *  5. Depth falls by one with each step down, so that every way ends.
 */
#ifndef LAYOUTFS_EXT_EXTENT_H
#define LAYOUTFS_EXT_EXTENT_H

#include "layouts/ext/ext.h"

#define EXTENT_LOGICAL_END (UINT64_C(1) << 32) /* first logical block that does not exist */

struct extent_node {
    struct buffer *buffer; /* referenced; NULL: the root, in the inode */
    struct ext_disk_extent_header *header;
    int at;       /* the entry on the way: the last that begins at or before the block, or -1 */
    uint64_t end; /* logical blocks below the node are less than this */
};

struct extent_path {
    struct inode *inode;
    uint32_t depth; /* of the tree; nodes[depth] is the leaf */
    struct extent_node nodes[EXT_EXTENT_DEPTH_MAX + 1];
};

/* --- nodes and entries (extent.c) --- */

static inline uint32_t node_entries(const struct extent_node *node) {
    return le16_load(node->header->eh_entries);
}

static inline uint32_t node_max(const struct extent_node *node) {
    return le16_load(node->header->eh_max);
}

/* Both kinds of entries have this size, and begin with the first logical block. */
static inline struct ext_disk_extent *node_extent(const struct extent_node *node, int index) {
    return (struct ext_disk_extent *)(node->header + 1) + index;
}

static inline struct ext_disk_extent_index *node_index(const struct extent_node *node, int index) {
    return (struct ext_disk_extent_index *)(node->header + 1) + index;
}

static inline uint32_t node_key(const struct extent_node *node, int index) {
    return le32_load(node_extent(node, index)->ee_block);
}

static inline struct extent_node *path_leaf(struct extent_path *path) {
    return &path->nodes[path->depth];
}

/* Entries that fit into a block, with a checksum or without: the tail takes what is left over. */
uint32_t ext_extent_block_max(const struct ext_geometry *geometry);
uint64_t ext_extent_index_block(const struct ext_disk_extent_index *index);
void ext_extent_decode(const struct ext_disk_extent *disk, struct ext_run *run);
void ext_extent_encode(const struct ext_run *run, struct ext_disk_extent *disk);
/* What is wrong with a node of this depth whose place in the tree is [first, end), or NULL.
 * `full`: its entries' order, too. */
const char *ext_extent_node_wrong(const struct ext_disk_extent_header *header, uint32_t max,
                                  uint32_t depth, uint64_t first, uint64_t end, bool full);
/* The extent that node entry describes, known to lie in the data area. */
int ext_extent_at(struct extent_path *path, int index, struct ext_run *run);

/* The way to `logical`. On success the caller releases it. Shared. */
int ext_extent_find(struct inode *inode, uint64_t logical, struct extent_path *path);
void ext_extent_release(struct extent_path *path);

/* --- edits (extent_edit.c): exclusive lock --- */

/* Replaces `old` (0 or 1) entries of the leaf from `position` on by `count` (1 to 3) runs in order
 * that lie between the neighbours, and merges what can be merged. -ENOSPC, -EFBIG and -ENOMEM leave
 * the tree as it was. The path stays sound, but for its leaf's `at`. */
int ext_extent_replace(struct extent_path *path, uint32_t position, uint32_t old,
                       const struct ext_run *pieces, uint32_t count);
/* Cuts an extent in two at a block inside of it, which merging would undo; the pieces are to part.
 */
int ext_extent_divide(struct extent_path *path, uint32_t position, uint64_t at);
/* The leaf's entries have got other logical blocks. */
void ext_extent_changed(struct extent_path *path);
/* Takes `count` entries out of the leaf from `position` on. It may be empty then: the caller calls
 * ext_extent_prune next. */
void ext_extent_erase(struct extent_path *path, uint32_t position, uint32_t count);
/* Removes an empty leaf and what is empty above it, lowers a tree that fits into fewer levels, and
 * releases the path. */
int ext_extent_prune(struct extent_path *path);

#endif
