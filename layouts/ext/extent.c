/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the buffer cache. Interface and invariants: layouts/ext/extent.h.
 *
 * Nodes of an extent tree as they are read: validated, and followed down to the block asked for.
 */
#include "layouts/ext/extent.h"

#include <errno.h>
#include <inttypes.h>

#include "layouts/ext/checksum.h"

uint32_t ext_extent_block_max(const struct ext_geometry *geometry) {
    return (geometry->block_size - (uint32_t)sizeof(struct ext_disk_extent_header)) /
           (uint32_t)sizeof(struct ext_disk_extent);
}

uint64_t ext_extent_index_block(const struct ext_disk_extent_index *index) {
    return le32_load(index->ei_leaf_lo) | (uint64_t)le16_load(index->ei_leaf_hi) << 32;
}

void ext_extent_decode(const struct ext_disk_extent *disk, struct ext_run *run) {
    uint32_t length = le16_load(disk->ee_len);
    bool unwritten = length > EXT_EXTENT_LENGTH;
    *run = (struct ext_run){
        .logical = le32_load(disk->ee_block),
        .count = unwritten ? length - EXT_EXTENT_LENGTH : length,
        .physical = le32_load(disk->ee_start_lo) | (uint64_t)le16_load(disk->ee_start_hi) << 32,
        .unwritten = unwritten,
    };
}

void ext_extent_encode(const struct ext_run *run, struct ext_disk_extent *disk) {
    uint32_t length = (uint32_t)run->count + (run->unwritten ? EXT_EXTENT_LENGTH : 0);
    le32_store(&disk->ee_block, (uint32_t)run->logical);
    le16_store(&disk->ee_len, (uint16_t)length);
    le16_store(&disk->ee_start_hi, (uint16_t)(run->physical >> 32));
    le32_store(&disk->ee_start_lo, (uint32_t)run->physical);
}

/* --- validation ------------------------------------------------------------------------------ */

/* Where entry `index` ends: an extent's own end, or the least that a subtree reaches to. */
static uint64_t entry_end(const struct extent_node *node, int index, uint32_t depth) {
    struct ext_run run;
    if (depth > 0)
        return (uint64_t)node_key(node, index) + 1;
    ext_extent_decode(node_extent(node, index), &run);
    return run.logical + run.count;
}

static const char *entries_wrong(const struct extent_node *node, uint32_t depth) {
    int entries = (int)node_entries(node);
    for (int i = 0; i < entries; i++) {
        uint64_t end = entry_end(node, i, depth);
        if (end == node_key(node, i))
            return "has an extent without blocks";
        if (i + 1 < entries && end > node_key(node, i + 1))
            return "has entries out of order or overlapping";
    }
    return NULL;
}

const char *ext_extent_node_wrong(const struct ext_disk_extent_header *header, uint32_t max,
                                  uint32_t depth, uint64_t first, uint64_t end, bool full) {
    const struct extent_node node = {.header = (struct ext_disk_extent_header *)(uintptr_t)header};
    uint32_t entries = node_entries(&node);
    if (le16_load(header->eh_magic) != EXT_EXTENT_MAGIC)
        return "has no valid magic number";
    if (le16_load(header->eh_depth) != depth)
        return "is of another depth than its parent leads to";
    /* libext2fs tolerates two entries less, as some old version made nodes. */
    if (node_max(&node) > max || node_max(&node) + 2 < max)
        return "does not have the room for entries that it claims";
    if (entries > node_max(&node))
        return "has more entries than room for them";
    if (entries == 0)
        return depth > 0 || end < EXTENT_LOGICAL_END || first > 0 ? "is empty" : NULL;
    if (node_key(&node, 0) < first)
        return "begins before its parent says";
    if (entry_end(&node, (int)entries - 1, depth) > end)
        return "reaches into its neighbour";
    return full ? entries_wrong(&node, depth) : NULL;
}

static int node_corrupt(const struct extent_path *path, uint64_t block, const char *wrong) {
    struct ext *ext = ext_of(path->inode->volume);
    if (block == 0)
        return ext_corrupt(ext, "inode %" PRIu64 ": the root of its extent tree %s",
                           path->inode->ino, wrong);
    return ext_corrupt(ext, "inode %" PRIu64 ": extent block %" PRIu64 " %s", path->inode->ino,
                       block, wrong);
}

static int root_open(struct extent_path *path) {
    struct extent_node *root = &path->nodes[0];
    *root = (struct extent_node){
        .header = &ext_inode_of(path->inode)->extents.header,
        .at = -1,
        .end = EXTENT_LOGICAL_END,
    };
    path->depth = le16_load(root->header->eh_depth);
    const char *wrong = path->depth > EXT_EXTENT_DEPTH_MAX ? "is deeper than a tree can be" : NULL;
    if (!wrong)
        wrong = ext_extent_node_wrong(root->header, EXT_EXTENT_ROOT_MAX, path->depth, 0, root->end,
                                      true);
    return wrong ? node_corrupt(path, 0, wrong) : 0;
}

/* The child that nodes[level].at leads to becomes nodes[level + 1]. */
static int child_open(struct extent_path *path, uint32_t level) {
    struct ext *ext = ext_of(path->inode->volume);
    const struct extent_node *parent = &path->nodes[level];
    struct extent_node *node = &path->nodes[level + 1];
    uint64_t block = ext_extent_index_block(node_index(parent, parent->at));
    uint64_t first = node_key(parent, parent->at);
    if (!ext_blocks_are_data(ext, block, 1))
        return node_corrupt(path, block, "lies outside the volume or in a group's metadata");
    *node = (struct extent_node){.at = -1, .end = parent->end};
    if (parent->at + 1 < (int)node_entries(parent))
        node->end = node_key(parent, parent->at + 1);
    int rc = buffer_get(ext->buffers, block, PURPOSE_MAP, &node->buffer);
    if (rc < 0)
        return rc;
    node->header = buffer_data(node->buffer);
    const char *wrong =
        ext_extent_node_wrong(node->header, ext_extent_block_max(&ext->geometry),
                              path->depth - level - 1, first, node->end, !node->buffer->checked);
    if (!wrong && node_key(node, 0) != first)
        wrong = "does not begin where its parent says";
    if (!wrong && !node->buffer->checked &&
        !ext_extent_block_checksum_valid(&ext->geometry, path->inode->ino, path->inode->generation,
                                         node->header))
        wrong = "does not match its checksum";
    if (!wrong) {
        node->buffer->checked = true;
        return 0;
    }
    buffer_put(node->buffer);
    node->buffer = NULL;
    return node_corrupt(path, block, wrong);
}

/* --- finding the way ------------------------------------------------------------------------- */

/* The last entry whose key is at most `logical`, or -1. */
static int node_search(const struct extent_node *node, uint64_t logical) {
    int low = 0, high = (int)node_entries(node);
    while (low < high) {
        int middle = (low + high) / 2;
        if (node_key(node, middle) <= logical)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

int ext_extent_find(struct inode *inode, uint64_t logical, struct extent_path *path) {
    path->inode = inode;
    int rc = root_open(path);
    if (rc < 0)
        return rc;
    for (uint32_t level = 0;; level++) {
        struct extent_node *node = &path->nodes[level];
        node->at = node_search(node, logical);
        if (level == path->depth)
            return 0;
        /* What lies before the first key belongs into the leftmost leaf. */
        if (node->at < 0)
            node->at = 0;
        rc = child_open(path, level);
        if (rc < 0) {
            path->depth = level;
            ext_extent_release(path);
            return rc;
        }
    }
}

void ext_extent_release(struct extent_path *path) {
    for (uint32_t level = 1; level <= path->depth; level++)
        buffer_put(path->nodes[level].buffer);
    path->depth = 0;
}

int ext_extent_at(struct extent_path *path, int index, struct ext_run *run) {
    ext_extent_decode(node_extent(path_leaf(path), index), run);
    if (ext_blocks_are_data(ext_of(path->inode->volume), run->physical, run->count))
        return 0;
    return ext_corrupt(ext_of(path->inode->volume),
                       "inode %" PRIu64 ": the extent for logical block %" PRIu64 " is %" PRIu64
                       " blocks from %" PRIu64
                       " on, which lie outside the volume or in a group's metadata",
                       path->inode->ino, run->logical, run->count, run->physical);
}

int ext_extent_lookup(struct inode *inode, uint64_t logical, struct ext_run *run) {
    struct extent_path path;
    if (logical >= EXTENT_LOGICAL_END)
        return -EFBIG;
    clock_charge(inode->volume->clock, COST_BLOCK_ALLOC, 1);
    int rc = ext_extent_find(inode, logical, &path);
    if (rc < 0)
        return rc;
    const struct extent_node *leaf = path_leaf(&path);
    if (leaf->at >= 0)
        rc = ext_extent_at(&path, leaf->at, run);
    if (rc == 0 && (leaf->at < 0 || logical >= run->logical + run->count)) {
        uint64_t end =
            leaf->at + 1 < (int)node_entries(leaf) ? node_key(leaf, leaf->at + 1) : leaf->end;
        *run = (struct ext_run){.logical = logical, .count = end - logical};
    } else if (rc == 0) {
        uint64_t before = logical - run->logical;
        run->logical = logical;
        run->physical += before;
        run->count -= before;
    }
    ext_extent_release(&path);
    return rc;
}

/* --- walking --------------------------------------------------------------------------------- */

struct extent_walk {
    struct extent_path path;
    ext_run_visit visit;
    void *context;
};

static int walk_node(struct extent_walk *walk, uint32_t level);

static int walk_entry(struct extent_walk *walk, uint32_t level) {
    struct extent_path *path = &walk->path;
    struct extent_node *node = &path->nodes[level];
    struct ext_run run;
    int rc;
    if (level == path->depth) {
        rc = ext_extent_at(path, node->at, &run);
        return rc < 0 ? rc : walk->visit(walk->context, &run);
    }
    rc = child_open(path, level);
    if (rc < 0)
        return rc;
    run = (struct ext_run){
        .logical = node_key(node, node->at),
        .physical = ext_extent_index_block(node_index(node, node->at)),
        .count = 1,
        .level = path->depth - level,
    };
    rc = walk->visit(walk->context, &run);
    if (rc == 0)
        rc = walk_node(walk, level + 1);
    buffer_put(node[1].buffer);
    return rc;
}

static int walk_node(struct extent_walk *walk, uint32_t level) {
    struct extent_node *node = &walk->path.nodes[level];
    int rc = 0;
    for (node->at = 0; node->at < (int)node_entries(node) && rc == 0; node->at++)
        rc = walk_entry(walk, level);
    return rc;
}

int ext_extent_each(struct inode *inode, ext_run_visit visit, void *context) {
    struct extent_walk walk = {.path.inode = inode, .visit = visit, .context = context};
    int rc = root_open(&walk.path);
    return rc < 0 ? rc : walk_node(&walk, 0);
}
