/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over extent.c and group.c. Interface and invariants: layouts/ext/extent.h.
 *
 * Every change of a tree is one edit: some entries of one leaf give way to others. Blocks that the
 * edit needs are allocated before anything changes, so that an edit happens as a whole or not.
 *
 *   room     A full leaf is split, and so are the full nodes above it; a full root moves into a
 *            block and becomes an index of one entry (the tree grows by a level). A node that is
 *            appended to is not halved: the new one begins with the new entry, so that a file
 *            written in order has full nodes.
 *   merging  Neighbours that continue each other become one extent, within a leaf.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "layouts/ext/checksum.h"
#include "layouts/ext/extent.h"

#define PIECES_MAX 3u

static void entries_set(struct extent_node *node, uint32_t entries) {
    le16_store(&node->header->eh_entries, (uint16_t)entries);
}

static void node_dirty(const struct inode *inode, struct buffer *buffer) {
    struct ext *ext = ext_of(inode->volume);
    ext_extent_block_checksum_set(&ext->geometry, inode->ino, inode->generation,
                                  buffer_data(buffer));
    ext_dirty(ext, buffer);
}

/* The node's bytes have changed. Those of the root reach the disk with the inode. */
static void path_dirty(const struct extent_path *path, uint32_t level) {
    /* No level is deeper than the tree. */
    /* cppcheck-suppress arrayIndexOutOfBoundsCond */
    struct buffer *buffer = path->nodes[level].buffer;
    if (buffer)
        node_dirty(path->inode, buffer);
}

/* Moves the entries from `from` on to `to`, and counts them anew. */
static void node_shift(struct extent_node *node, uint32_t from, uint32_t to) {
    uint32_t entries = node_entries(node);
    memmove(node_extent(node, (int)to), node_extent(node, (int)from),
            (entries - from) * sizeof(struct ext_disk_extent));
    entries_set(node, entries - from + to);
}

static void index_insert(struct extent_node *node, uint32_t position, uint64_t key,
                         uint64_t block) {
    node_shift(node, position, position + 1);
    struct ext_disk_extent_index *index = node_index(node, (int)position);
    le32_store(&index->ei_block, (uint32_t)key);
    le32_store(&index->ei_leaf_lo, (uint32_t)block);
    le16_store(&index->ei_leaf_hi, (uint16_t)(block >> 32));
    le16_store(&index->ei_unused, 0);
}

/* The first key of the node at `level` may have changed: what leads to it follows. */
static void keys_correct(struct extent_path *path, uint32_t level) {
    /* cppcheck-suppress arrayIndexOutOfBoundsCond */
    for (; level > 0 && node_entries(&path->nodes[level]) > 0; level--) {
        uint32_t key = node_key(&path->nodes[level], 0);
        struct extent_node *parent = &path->nodes[level - 1];
        if (node_key(parent, parent->at) == key)
            return;
        le32_store(&node_index(parent, parent->at)->ei_block, key);
        path_dirty(path, level - 1);
        if (parent->at > 0)
            return;
    }
}

/* --- making room ----------------------------------------------------------------------------- */

struct room {
    struct buffer *spare[EXT_EXTENT_DEPTH_MAX + 1]; /* cleared blocks for new nodes */
    uint32_t spares;
    bool append;  /* the new entry goes behind all of the leaf's */
    uint64_t key; /* its first block */
};

static void spares_return(struct ext *ext, struct room *room) {
    while (room->spares > 0) {
        uint64_t block = room->spare[--room->spares]->block;
        buffer_put(room->spare[room->spares]);
        /* The error to report is the one that ended the allocation. */
        (void)ext_blocks_free(ext, block, 1, true);
    }
}

static int spares_take(struct extent_path *path, struct room *room, uint32_t wanted) {
    struct ext *ext = ext_of(path->inode->volume);
    int rc = 0;
    while (room->spares < wanted && rc == 0) {
        /* Near the inode, out of the way of its data. */
        uint32_t count = 1;
        uint64_t block;
        rc = ext_blocks_allocate(ext, path->inode, 0, &count, &block);
        if (rc < 0)
            break;
        rc = buffer_get_zeroed(ext->buffers, block, PURPOSE_MAP, &room->spare[room->spares]);
        if (rc < 0)
            (void)ext_blocks_free(ext, block, 1, false);
        else
            room->spares++;
    }
    if (rc < 0)
        spares_return(ext, room);
    return rc;
}

/* A spare block as an empty node. */
static struct extent_node node_create(struct extent_path *path, struct room *room, uint32_t depth) {
    const struct ext *ext = ext_of(path->inode->volume);
    struct buffer *buffer = room->spare[--room->spares];
    struct extent_node node = {.buffer = buffer, .header = buffer_data(buffer), .at = -1};
    le16_store(&node.header->eh_magic, EXT_EXTENT_MAGIC);
    le16_store(&node.header->eh_max, (uint16_t)ext_extent_block_max(&ext->geometry));
    le16_store(&node.header->eh_depth, (uint16_t)depth);
    path->inode->sectors += ext->geometry.block_size / 512;
    return node;
}

/* The root's entries move into a block below it. */
static void tree_grow(struct extent_path *path, struct room *room) {
    struct extent_node *root = &path->nodes[0], node = node_create(path, room, path->depth);
    uint32_t entries = node_entries(root);
    node.at = root->at;
    node.end = root->end;
    memcpy(node_extent(&node, 0), node_extent(root, 0), entries * sizeof(struct ext_disk_extent));
    entries_set(&node, entries);
    entries_set(root, 0);
    index_insert(root, 0, node_key(&node, 0), node.buffer->block);
    root->at = 0;
    le16_store(&root->header->eh_depth, (uint16_t)(path->depth + 1));
    memmove(&path->nodes[2], &path->nodes[1], path->depth * sizeof path->nodes[0]);
    path->nodes[1] = node;
    path->depth++;
    path_dirty(path, 1);
}

/* Half of a full node's entries move to a new right neighbour; none when it is appended to. The
 * way goes on in the half that holds `at`. The parent has room. */
static void node_split(struct extent_path *path, uint32_t level, struct room *room) {
    struct extent_node *node = &path->nodes[level], *parent = node - 1;
    struct extent_node right = node_create(path, room, path->depth - level);
    uint32_t entries = node_entries(node);
    bool append = room->append && node->at + 1 == (int)entries;
    uint32_t kept = append ? entries : entries / 2;
    uint64_t key = append ? room->key : node_key(node, (int)kept);

    memcpy(node_extent(&right, 0), node_extent(node, (int)kept),
           (entries - kept) * sizeof(struct ext_disk_extent));
    entries_set(&right, entries - kept);
    entries_set(node, kept);
    right.end = node->end;
    node->end = key;
    index_insert(parent, (uint32_t)parent->at + 1, key, right.buffer->block);
    path_dirty(path, level - 1);
    path_dirty(path, level);
    if (append || node->at >= (int)kept) {
        right.at = node->at - (int)kept;
        buffer_put(node->buffer);
        *node = right;
        parent->at++;
        path_dirty(path, level);
    } else {
        node_dirty(path->inode, right.buffer);
        buffer_put(right.buffer);
    }
}

/* Nodes on the way that have to be split, or to move, before the leaf can take `need` entries. */
static uint32_t nodes_full(const struct extent_path *path, uint32_t need) {
    uint32_t full = 0;
    for (uint32_t level = path->depth;; level--, need = 1, full++) {
        const struct extent_node *node = &path->nodes[level];
        if (node_entries(node) + need <= node_max(node))
            return full;
        if (level == 0)
            return full + 1;
    }
}

/* Is the way through the `full` lowest nodes that of their last entries? Only then do new nodes
 * begin with the new entry: one above that was not halved must not lead to one that was. */
static bool path_is_last(const struct extent_path *path, uint32_t full) {
    for (uint32_t level = path->depth + 1 - full; level <= path->depth; level++)
        if (path->nodes[level].at + 1 < (int)node_entries(&path->nodes[level]))
            return false;
    return true;
}

/* Splits from the topmost full node down to the leaf. */
static int leaf_make_room(struct extent_path *path, uint32_t need, bool append, uint64_t key) {
    uint32_t full = nodes_full(path, need);
    bool grow = full == path->depth + 1;
    struct room room = {.append = append && path_is_last(path, full), .key = key};
    if (grow && path->depth >= EXT_EXTENT_DEPTH_MAX)
        return -EFBIG;
    int rc = spares_take(path, &room, full);
    if (rc < 0)
        return rc;
    if (grow) {
        tree_grow(path, &room);
        full--;
    }
    /* What the root has moved into has room: a block holds more. */
    for (uint32_t level = path->depth - full + 1; level <= path->depth; level++)
        node_split(path, level, &room);
    return 0;
}

/* --- the edit -------------------------------------------------------------------------------- */

static bool runs_merge(const struct ext_run *left, const struct ext_run *right) {
    return left->logical + left->count == right->logical &&
           left->physical + left->count == right->physical && left->unwritten == right->unwritten &&
           left->count + right->count <= EXT_EXTENT_LENGTH - (left->unwritten ? 1 : 0);
}

struct edit {
    struct ext_run runs[PIECES_MAX + 2]; /* what the leaf is to hold */
    uint32_t count;
    uint32_t position, old; /* in place of these entries */
};

static void edit_add(struct edit *edit, const struct ext_run *run) {
    if (edit->count > 0 && runs_merge(&edit->runs[edit->count - 1], run))
        edit->runs[edit->count - 1].count += run->count;
    else
        edit->runs[edit->count++] = *run;
}

/* The pieces with the leaf's neighbours on both sides, merged where they can be. */
static void edit_gather(struct edit *edit, const struct extent_node *leaf, uint32_t position,
                        uint32_t old, const struct ext_run *pieces, uint32_t count) {
    struct ext_run neighbour;
    *edit = (struct edit){.position = position, .old = old};
    if (position > 0) {
        ext_extent_decode(node_extent(leaf, (int)--edit->position), &neighbour);
        edit->old++;
        edit_add(edit, &neighbour);
    }
    for (uint32_t i = 0; i < count; i++)
        edit_add(edit, &pieces[i]);
    if (position + old < node_entries(leaf)) {
        ext_extent_decode(node_extent(leaf, (int)(position + old)), &neighbour);
        edit->old++;
        edit_add(edit, &neighbour);
    }
}

static void edit_apply(const struct edit *edit, struct extent_path *path) {
    struct extent_node *leaf = path_leaf(path);
    node_shift(leaf, edit->position + edit->old, edit->position + edit->count);
    for (uint32_t i = 0; i < edit->count; i++)
        ext_extent_encode(&edit->runs[i], node_extent(leaf, (int)(edit->position + i)));
    path_dirty(path, path->depth);
    if (edit->position == 0)
        keys_correct(path, path->depth);
}

int ext_extent_replace(struct extent_path *path, uint32_t position, uint32_t old,
                       const struct ext_run *pieces, uint32_t count) {
    struct edit edit;
    struct extent_node *leaf = path_leaf(path);
    edit_gather(&edit, leaf, position, old, pieces, count);
    uint32_t need = edit.count > edit.old ? edit.count - edit.old : 0;
    if (node_entries(leaf) + need > node_max(leaf)) {
        /* `at` is the entry to be replaced, or the one to be inserted behind. */
        leaf->at = (int)(position + old) - 1;
        bool append = old == 0 && position == node_entries(leaf);
        int rc = leaf_make_room(path, need, append, pieces[0].logical);
        if (rc < 0)
            return rc;
        leaf = path_leaf(path);
        edit_gather(&edit, leaf, (uint32_t)(leaf->at + 1) - old, old, pieces, count);
    }
    edit_apply(&edit, path);
    return 0;
}

int ext_extent_divide(struct extent_path *path, uint32_t position, uint64_t at) {
    struct extent_node *leaf = path_leaf(path);
    struct ext_run left, right;
    if (node_entries(leaf) == node_max(leaf)) {
        leaf->at = (int)position;
        int rc = leaf_make_room(path, 1, false, at);
        if (rc < 0)
            return rc;
        leaf = path_leaf(path);
        position = (uint32_t)leaf->at;
    }
    ext_extent_decode(node_extent(leaf, (int)position), &left);
    right = left;
    left.count = at - left.logical;
    right.logical = at;
    right.physical += left.count;
    right.count -= left.count;
    node_shift(leaf, position + 1, position + 2);
    ext_extent_encode(&left, node_extent(leaf, (int)position));
    ext_extent_encode(&right, node_extent(leaf, (int)position + 1));
    path_dirty(path, path->depth);
    return 0;
}

void ext_extent_changed(struct extent_path *path) {
    path_dirty(path, path->depth);
    keys_correct(path, path->depth);
}

/* --- removal --------------------------------------------------------------------------------- */

void ext_extent_erase(struct extent_path *path, uint32_t position, uint32_t count) {
    node_shift(path_leaf(path), position + count, position);
    path_dirty(path, path->depth);
    if (position == 0)
        keys_correct(path, path->depth);
}

/* The block of a node that nothing leads to any more. */
static int node_free(struct extent_path *path, struct extent_node *node) {
    struct ext *ext = ext_of(path->inode->volume);
    uint64_t block = node->buffer->block, sectors = ext->geometry.block_size / 512;
    buffer_put(node->buffer);
    node->buffer = NULL;
    path->inode->sectors -= sectors < path->inode->sectors ? sectors : path->inode->sectors;
    return ext_blocks_free(ext, block, 1, true);
}

/* Entries of a root's only child come up into the root while they fit there. */
static int tree_lower(struct inode *inode) {
    struct extent_path path;
    int rc = ext_extent_find(inode, 0, &path);
    if (rc < 0)
        return rc;
    struct extent_node *root = &path.nodes[0], *child = root + 1;
    while (rc == 0 && path.depth > 0 && node_entries(root) == 1 &&
           node_entries(child) <= node_max(root)) {
        memcpy(node_extent(root, 0), node_extent(child, 0),
               node_entries(child) * sizeof(struct ext_disk_extent));
        entries_set(root, node_entries(child));
        rc = node_free(&path, child);
        path.depth--;
        le16_store(&root->header->eh_depth, (uint16_t)path.depth);
        memmove(child, child + 1, path.depth * sizeof *child);
    }
    ext_extent_release(&path);
    return rc;
}

int ext_extent_prune(struct extent_path *path) {
    int rc = 0;
    for (uint32_t level = path->depth; level > 0 && rc == 0; level--) {
        struct extent_node *node = &path->nodes[level], *parent = node - 1;
        if (node_entries(node) > 0)
            break;
        node_shift(parent, (uint32_t)parent->at + 1, (uint32_t)parent->at);
        path_dirty(path, level - 1);
        if (parent->at == 0)
            keys_correct(path, level - 1);
        rc = node_free(path, node);
    }
    if (node_entries(&path->nodes[0]) == 0) {
        ext_extent_release(path); /* those freed are NULL */
        ext_extent_initialise(ext_inode_of(path->inode));
        return rc;
    }
    bool single = path->depth > 0 && node_entries(&path->nodes[0]) == 1;
    ext_extent_release(path);
    return rc == 0 && single ? tree_lower(path->inode) : rc;
}
