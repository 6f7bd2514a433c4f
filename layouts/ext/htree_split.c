/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over htree.c. Growing hash-indexed directories.
 *
 * A full leaf is split where half its bytes lie on either side in hash order. That takes an index
 * entry; full index nodes are split first, from the top down, and a full root becomes the second
 * level. All blocks that a step needs are allocated before anything changes.
 *
 * Invariants:
 *  1. Names with a hash of at least an index entry's (and less than the next one's) are in its
 * leaf; an entry whose first hash is also the last of the leaf before has its low bit set.
 *  2. A tree has at most ext_htree_levels index levels, all its leaves at the same depth. Beyond
 *     that the directory is full: -ENOSPC, as in Linux.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/ext/dir.h"

/* --- leaves ---------------------------------------------------------------------------------- */

/* An entry of a leaf under division: hash, then offset and size in the block; sorts as a number. */
typedef uint64_t leaf_item;

static inline leaf_item leaf_item_of(uint32_t hash, uint32_t offset, uint32_t size) {
    return (uint64_t)hash << 32 | offset << 16 | size;
}
static inline uint32_t leaf_item_hash(leaf_item item) {
    return (uint32_t)(item >> 32);
}
static inline uint32_t leaf_item_offset(leaf_item item) {
    return (uint32_t)item >> 16;
}
static inline uint32_t leaf_item_size(leaf_item item) {
    return (uint32_t)item & 0xFFFF;
}

static int leaf_item_compare(const void *a, const void *b) {
    leaf_item x = *(const leaf_item *)a, y = *(const leaf_item *)b;

    return x < y ? -1 : x > y;
}

/* Lists the block's entries (not "." and "..") in hash order; returns their number. */
static uint32_t leaf_items(struct ext *ext, enum ext_hash_version version, char *block,
                           leaf_item items[EXT_DIRENTS_MAX]) {
    const struct ext_disk_dirent *entry;
    uint32_t offset = 0, count = 0;

    while (count < EXT_DIRENTS_MAX &&
           (entry = ext_dirent_at(block, ext->geometry.block_size, offset)) != NULL) {
        if (le32_load(entry->inode) != 0 && !ext_name_is_dot(entry->name, entry->name_len))
            items[count++] =
                leaf_item_of(ext_htree_hash(ext, version, entry->name, entry->name_len), offset,
                             ext_dirent_size(entry->name_len));
        offset += le16_load(entry->rec_len);
    }
    qsort(items, count, sizeof(items[0]), leaf_item_compare);
    return count;
}

/* How many items stay, so that those that go fill about half a block. At least 1 goes, 1 stays. */
static uint32_t leaf_middle(const leaf_item *items, uint32_t count, uint32_t block_size) {
    uint32_t stay = count - 1;
    uint32_t moved = leaf_item_size(items[stay]);

    while (stay > 1 && moved + leaf_item_size(items[stay - 1]) / 2 <= block_size / 2)
        moved += leaf_item_size(items[--stay]);
    return stay;
}

/* Fills `target` with entries of `source`, which is another block's copy. */
static void leaf_write(struct ext *ext, char *target, const char *source, const leaf_item *items,
                       uint32_t count) {
    struct ext_disk_dirent *entry = NULL;
    uint32_t offset = 0;

    ext_dir_block_clear(ext, target);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t size = leaf_item_size(items[i]);
        entry = (struct ext_disk_dirent *)(target + offset);
        memcpy(entry, source + leaf_item_offset(items[i]), size);
        le16_store(&entry->rec_len, (uint16_t)size);
        offset += size;
    }
    if (entry)
        le16_store(&entry->rec_len, (uint16_t)(le16_load(entry->rec_len) +
                                               ext_dir_block_room(&ext->geometry) - offset));
}

/* A leaf's division, worked out before anything is changed. */
struct leaf_division {
    char source[PAGE_SIZE_BYTES]; /* the block as it was */
    leaf_item items[EXT_DIRENTS_MAX];
    uint32_t count, stay;
    uint32_t hash; /* of the upper leaf's index entry */
};

static int leaf_divide(struct inode *dir, enum ext_hash_version version,
                       const struct buffer *buffer, struct leaf_division *division) {
    struct ext *ext = ext_of(dir->volume);
    uint32_t block_size = ext->geometry.block_size;

    memcpy(division->source, buffer_data(buffer), block_size);
    division->count = leaf_items(ext, version, division->source, division->items);
    if (division->count < 2)
        return ext_corrupt(ext,
                           "directory inode %" PRIu64 ", volume block %" PRIu64
                           ": no room among fewer than two entries",
                           dir->ino, buffer->block);
    division->stay = leaf_middle(division->items, division->count, block_size);
    division->hash = leaf_item_hash(division->items[division->stay]);
    if (division->hash == leaf_item_hash(division->items[division->stay - 1]))
        division->hash |= 1; /* the upper leaf continues the lower one's last hash */
    return 0;
}

/* Writes both halves and inserts the new name where it belongs. */
static int leaf_divided_insert(struct inode *dir, const struct leaf_division *division,
                               struct buffer *lower, struct buffer *upper, uint32_t hash,
                               const struct ext_dir_name *name) {
    struct ext *ext = ext_of(dir->volume);
    uint32_t stay = division->stay;
    struct buffer *target = hash >= (division->hash & ~1u) ? upper : lower;

    leaf_write(ext, buffer_data(lower), division->source, division->items, stay);
    leaf_write(ext, buffer_data(upper), division->source, division->items + stay,
               division->count - stay);
    bool inserted = ext_dir_block_insert(ext, buffer_data(target), name);
    ext_dir_block_changed(dir, lower);
    ext_dir_block_changed(dir, upper);
    if (inserted)
        return 0;
    return ext_corrupt(
        ext, "directory inode %" PRIu64 ", volume block %" PRIu64 ": no room in half a block",
        dir->ino, target->block);
}

/* --- index blocks ---------------------------------------------------------------------------- */

static void frame_set_count(struct inode *dir, struct ext_htree_frame *frame, uint32_t count) {
    struct ext_disk_dx_countlimit *header = (struct ext_disk_dx_countlimit *)frame->entries;

    frame->count = count;
    le16_store(&header->count, (uint16_t)count);
    le16_store(&header->limit, (uint16_t)frame->limit);
    ext_dir_block_changed(dir, frame->buffer);
}

/* Inserts an index entry after the one followed. There is room. */
static void frame_insert(struct inode *dir, struct ext_htree_frame *frame, uint32_t hash,
                         uint64_t logical) {
    struct ext_disk_dx_entry *entry = frame->entries + frame->at + 1;

    memmove(entry + 1, entry, (frame->count - frame->at - 1) * sizeof(*entry));
    le32_store(&entry->hash, hash);
    le32_store(&entry->block, (uint32_t)logical);
    frame_set_count(dir, frame, frame->count + 1);
}

/* A new node, holding a copy of `count` entries. Takes over the buffer. As a directory block, an
 * index node is one unused entry. */
static struct ext_htree_frame frame_create(struct inode *dir, struct buffer *buffer,
                                           const struct ext_disk_dx_entry *entries,
                                           uint32_t count) {
    const struct ext_geometry *geometry = &ext_of(dir->volume)->geometry;
    struct ext_disk_dirent *cover = buffer_data(buffer);
    struct ext_htree_frame frame = {
        .buffer = buffer,
        .entries = (struct ext_disk_dx_entry *)((char *)buffer_data(buffer) + EXT_DX_NODE_ENTRIES),
        .limit = ext_dx_limit(geometry, EXT_DX_NODE_ENTRIES),
    };

    memset(cover, 0, geometry->block_size);
    le16_store(&cover->rec_len, (uint16_t)geometry->block_size);
    memcpy(frame.entries, entries, count * sizeof(*entries));
    frame_set_count(dir, &frame, count);
    return frame;
}

static bool frame_full(const struct ext_htree_frame *frame) {
    return frame->count >= frame->limit;
}

/* The root's entries move into a node, to which the root points. */
static void index_add_level(struct inode *dir, struct ext_htree_path *path, struct buffer *buffer,
                            uint64_t logical) {
    struct ext_htree_frame *root = &path->frame[0];
    struct ext_disk_dx_info *info = (struct ext_disk_dx_info *)(root->entries - 1);

    memmove(&path->frame[2], &path->frame[1], (path->depth - 1) * sizeof(path->frame[1]));
    path->frame[1] = frame_create(dir, buffer, root->entries, root->count);
    path->frame[1].at = root->at;
    path->depth++;
    root->at = 0;
    le32_store(&root->entries[0].block, (uint32_t)logical);
    info->indirect_levels = (uint8_t)(path->depth - 1);
    frame_set_count(dir, root, 1);
}

/* The upper half of a node's entries move into a new one; the path follows its entry. The node
 * above has room for one more. */
static void index_split_node(struct inode *dir, struct ext_htree_path *path, uint32_t level,
                             struct buffer *buffer, uint64_t logical) {
    struct ext_htree_frame *node = &path->frame[level], *above = &path->frame[level - 1];
    uint32_t stay = node->count / 2;
    uint32_t hash = le32_load(node->entries[stay].hash);
    struct ext_htree_frame upper =
        frame_create(dir, buffer, node->entries + stay, node->count - stay);

    frame_set_count(dir, node, stay);
    frame_insert(dir, above, hash, logical);
    if (node->at < stay) {
        buffer_put(upper.buffer);
        return;
    }
    upper.at = node->at - stay;
    buffer_put(node->buffer);
    above->at++;
    *node = upper;
}

/* How many nodes at the bottom of the path, one above the other, have no room for an entry. */
static uint32_t index_full_levels(const struct ext_htree_path *path) {
    uint32_t full = 0;

    while (full < path->depth && frame_full(&path->frame[path->depth - 1 - full]))
        full++;
    return full;
}

/* Makes room for one entry in the lowest node, with a new block for each of the `full` levels. */
static void index_make_room(struct inode *dir, struct ext_htree_path *path, uint32_t full,
                            struct buffer **buffers, uint64_t logical) {
    if (full == path->depth) {
        index_add_level(dir, path, *buffers++, logical++);
        full--;
    }
    for (uint32_t level = path->depth - full; level < path->depth; level++)
        index_split_node(dir, path, level, *buffers++, logical++);
}

/* --- inserting ------------------------------------------------------------------------------- */

/* Divides the leaf that the path has led to, which is full. */
static int htree_split(struct inode *dir, struct ext_htree_path *path, struct buffer *leaf,
                       uint32_t hash, const struct ext_dir_name *name) {
    struct ext *ext = ext_of(dir->volume);
    struct leaf_division division;
    struct buffer *buffers[EXT_HTREE_LEVELS];
    uint32_t full = index_full_levels(path);
    uint64_t logical;

    if (full == ext_htree_levels(ext)) {
        log_warning(dir->volume->log, "%s: directory inode %" PRIu64 ": its index is full",
                    dir->volume->name, dir->ino);
        return -ENOSPC;
    }
    int rc = leaf_divide(dir, path->version, leaf, &division);
    if (rc < 0)
        return rc;
    rc = ext_dir_grow(dir, full + 1, &logical, buffers);
    if (rc < 0)
        return rc;
    struct buffer *upper = buffers[full];
    index_make_room(dir, path, full, buffers, logical);
    frame_insert(dir, &path->frame[path->depth - 1], division.hash, logical + full);
    rc = leaf_divided_insert(dir, &division, leaf, upper, hash, name);
    buffer_put(upper);
    return rc;
}

int ext_htree_insert(struct inode *dir, const struct ext_dir_name *name) {
    struct ext *ext = ext_of(dir->volume);
    struct ext_htree_path path;
    struct buffer *leaf;
    uint64_t logical;

    int rc = ext_htree_open(dir, &path);
    if (rc != 0)
        return rc;
    uint32_t hash = ext_htree_hash(ext, path.version, name->name, name->length);
    rc = ext_htree_seek(dir, &path, hash);
    if (rc == 0)
        rc = ext_htree_leaf(dir, &path, &logical, &leaf);
    if (rc == 0) {
        if (ext_dir_block_insert(ext, buffer_data(leaf), name))
            ext_dir_block_changed(dir, leaf);
        else
            rc = htree_split(dir, &path, leaf, hash, name);
        buffer_put(leaf);
    }
    ext_htree_close(&path);
    return rc;
}

/* Writes the root over what was an ordinary first block. */
static void htree_root_write(struct ext *ext, struct inode *dir, struct buffer *buffer,
                             uint64_t parent_ino, uint32_t hash) {
    char *block = buffer_data(buffer);
    struct ext_htree_frame root = {
        .buffer = buffer,
        .entries = (struct ext_disk_dx_entry *)(block + EXT_DX_ROOT_ENTRIES),
        .limit = ext_dx_limit(&ext->geometry, EXT_DX_ROOT_ENTRIES),
    };
    struct ext_disk_dx_info *info = (struct ext_disk_dx_info *)(root.entries - 1);

    memset(block, 0, ext->geometry.block_size);
    ext_dir_block_dots(ext, block, ext->geometry.block_size, dir->ino, parent_ino);
    /* Only the algorithm is stored; whether bytes are signed is the volume's matter. */
    info->hash_version = (uint8_t)(ext->hash_version % EXT_HASH_LEGACY_UNSIGNED);
    info->info_length = sizeof(*info);
    le32_store(&root.entries[0].block, 1);
    frame_set_count(dir, &root, 1);
    frame_insert(dir, &root, hash, 2);
}

int ext_htree_convert(struct inode *dir, const struct ext_dir_name *name) {
    struct ext *ext = ext_of(dir->volume);
    struct leaf_division division;
    struct ext_dir_slot dotdot;
    struct buffer *root, *leaves[2];
    uint64_t logical;

    int rc = ext_dir_block_get(dir, 0, &root);
    if (rc < 0)
        return rc;
    rc = leaf_divide(dir, ext->hash_version, root, &division);
    if (rc == 0)
        rc = ext_dir_grow(dir, 2, &logical, leaves);
    if (rc < 0) {
        buffer_put(root);
        return rc;
    }
    ext_dir_block_find(ext, division.source, "..", 2, &dotdot);
    const struct ext_disk_dirent *parent =
        (struct ext_disk_dirent *)(division.source + dotdot.offset);
    htree_root_write(ext, dir, root, le32_load(parent->inode), division.hash);
    uint32_t hash = ext_htree_hash(ext, ext->hash_version, name->name, name->length);
    rc = leaf_divided_insert(dir, &division, leaves[0], leaves[1], hash, name);
    dir->flags |= EXT_INODE_INDEX;
    ext_inode_of(dir)->index_unusable = false;
    buffer_put(leaves[0]);
    buffer_put(leaves[1]);
    buffer_put(root);
    return rc;
}

/* Index data lies where entries need not be but may: without checksums such a block is one of
 * entries as it is. With them it has to get a tail. */
int ext_htree_drop(struct inode *dir) {
    struct ext *ext = ext_of(dir->volume);
    uint64_t blocks = ext_has_checksums(&ext->geometry) ? ext_dir_blocks(dir) : 0;

    if (!(dir->flags & EXT_INODE_INDEX))
        return 0;
    for (uint64_t logical = 0; logical < blocks; logical++) {
        struct buffer *buffer;
        int rc = ext_dir_block_get(dir, logical, &buffer);
        if (rc < 0)
            return rc;
        uint32_t cover = 0; /* byte offset of the entry that covers the index */
        uint32_t index = ext_dir_index_offset(&ext->geometry, buffer_data(buffer));
        if (index == EXT_DX_ROOT_ENTRIES)
            cover = EXT_DIRENT_MIN;
        if (index != 0) {
            struct ext_disk_dirent *entry =
                (struct ext_disk_dirent *)((char *)buffer_data(buffer) + cover);
            le16_store(&entry->rec_len, (uint16_t)(ext_dir_block_room(&ext->geometry) - cover));
            ext_dir_tail_write(&ext->geometry, buffer_data(buffer));
            ext_dir_block_changed(dir, buffer);
        }
        buffer_put(buffer);
    }
    dir->flags &= ~(uint32_t)EXT_INODE_INDEX;
    return 0;
}
