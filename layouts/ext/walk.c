/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the buffer cache. Interface: layouts/ext/walk.h.
 *
 * Invariant: a walk ends. It goes at most three levels deep, in an extent tree five; a visitor that
 * refuses blocks it has seen (or counts its steps) bounds its width.
 */
#include "layouts/ext/walk.h"

#include <sys/stat.h>

#include "fs/bitmap.h"
#include "layouts/ext/checksum.h"
#include "layouts/ext/extent.h"

struct map_walk {
    struct ext *ext;
    ext_walk_visit visit;
    void *context;
    uint32_t entries; /* numbers in an indirect block, or what fits into an extent block */
    uint64_t ino;
    uint32_t generation; /* of the inode, which its extent blocks are bound to */
};

/* --- block maps ------------------------------------------------------------------------------- */

/* Blocks of the file that one pointer of this level leads to. */
static uint64_t level_span(const struct map_walk *walk, uint32_t level) {
    uint64_t span = 1;
    while (level-- > 0)
        span *= walk->entries;
    return span;
}

static int walk_pointer(const struct map_walk *walk, const struct ext_walk_step *step) {
    int rc = walk->visit(walk->context, step);
    if (rc < 0 || rc == EXT_WALK_SKIP || step->level == 0)
        return rc < 0 ? rc : 0;
    struct buffer *buffer;
    rc = buffer_get(walk->ext->buffers, step->block, PURPOSE_MAP, &buffer);
    if (rc < 0)
        return rc;
    const le32 *pointers = buffer_data(buffer);
    uint64_t span = level_span(walk, step->level - 1);
    for (uint32_t i = 0; i < walk->entries && rc >= 0; i++) {
        uint32_t block = le32_load(pointers[i]);
        if (block == 0) /* most are, where the map is that of the blocks kept for resizing */
            continue;
        struct ext_walk_step next = {.block = block,
                                     .logical = step->logical + i * span,
                                     .level = step->level - 1,
                                     .count = 1};
        rc = walk_pointer(walk, &next);
    }
    buffer_put(buffer);
    return rc;
}

static int walk_slots(const struct map_walk *walk, const struct ext_disk_inode *record) {
    uint64_t logical = 0;
    int rc = 0;
    for (uint32_t slot = 0; slot < EXT_BLOCK_SLOTS && rc >= 0; slot++) {
        uint32_t level = slot < EXT_IND ? 0 : slot - EXT_IND + 1;
        struct ext_walk_step step = {.block = le32_load(record->i_block[slot]),
                                     .logical = logical,
                                     .level = level,
                                     .count = 1};
        if (step.block)
            rc = walk_pointer(walk, &step);
        logical += level_span(walk, level);
    }
    return rc;
}

/* --- extent trees ----------------------------------------------------------------------------- */

/* A node and its place in the tree. */
struct node_place {
    uint64_t block;      /* 0: the root */
    uint64_t first, end; /* logical blocks below it */
    uint32_t depth;
};

static int walk_node(const struct map_walk *walk, const struct extent_node *node,
                     const struct node_place *place);

static const char *block_wrong(const struct map_walk *walk, const struct extent_node *node,
                               const struct node_place *place) {
    const char *wrong = ext_extent_node_wrong(node->header, walk->entries, place->depth,
                                              place->first, place->end, true);
    if (!wrong && node_key(node, 0) != place->first)
        wrong = "does not begin where its parent says";
    if (!wrong && !ext_extent_block_checksum_valid(&walk->ext->geometry, walk->ino,
                                                   walk->generation, node->header))
        wrong = "does not match its checksum";
    return wrong;
}

/* The node below an index entry. */
static int walk_child(const struct map_walk *walk, const struct node_place *place) {
    struct ext_walk_step step = {
        .block = place->block, .logical = place->first, .level = place->depth + 1, .count = 1};
    int rc = walk->visit(walk->context, &step);
    if (rc < 0 || rc == EXT_WALK_SKIP)
        return rc < 0 ? rc : 0;
    struct buffer *buffer;
    rc = buffer_get(walk->ext->buffers, place->block, PURPOSE_MAP, &buffer);
    if (rc < 0)
        return rc;
    const struct extent_node node = {.header = buffer_data(buffer)};
    step.wrong = block_wrong(walk, &node, place);
    rc = step.wrong ? walk->visit(walk->context, &step) : walk_node(walk, &node, place);
    buffer_put(buffer);
    return rc;
}

static int walk_extent(const struct map_walk *walk, const struct ext_disk_extent *extent) {
    struct ext_run run;
    ext_extent_decode(extent, &run);
    const struct ext_walk_step step = {
        .block = run.physical,
        .logical = run.logical,
        .count = (uint32_t)run.count,
        .unwritten = run.unwritten,
    };
    return walk->visit(walk->context, &step);
}

static int walk_node(const struct map_walk *walk, const struct extent_node *node,
                     const struct node_place *place) {
    int entries = (int)node_entries(node), rc = 0;
    for (int i = 0; i < entries && rc >= 0; i++) {
        if (place->depth == 0) {
            rc = walk_extent(walk, node_extent(node, i));
            continue;
        }
        const struct node_place child = {
            .block = ext_extent_index_block(node_index(node, i)),
            .first = node_key(node, i),
            .end = i + 1 < entries ? node_key(node, i + 1) : place->end,
            .depth = place->depth - 1,
        };
        rc = walk_child(walk, &child);
    }
    return rc;
}

static int walk_tree(const struct map_walk *walk, const struct ext_disk_inode *record) {
    union { /* the same bytes, for a pointer that may change nothing */
        const le32 *slots;
        struct ext_disk_extent_header *header;
    } root = {.slots = record->i_block};
    const struct extent_node node = {.header = root.header};
    const struct node_place place = {.end = EXTENT_LOGICAL_END,
                                     .depth = le16_load(root.header->eh_depth)};
    struct ext_walk_step step = {.level = place.depth};
    if (place.depth > EXT_EXTENT_DEPTH_MAX)
        step.wrong = "is deeper than a tree can be";
    else
        step.wrong = ext_extent_node_wrong(root.header, EXT_EXTENT_ROOT_MAX, place.depth, 0,
                                           place.end, true);
    return step.wrong ? walk->visit(walk->context, &step) : walk_node(walk, &node, &place);
}

/* --- either ----------------------------------------------------------------------------------- */

int ext_walk_map(struct ext *ext, uint64_t ino, const struct ext_disk_inode *record,
                 ext_walk_visit visit, void *context) {
    const struct ext_geometry *geometry = &ext->geometry;
    bool extents =
        le32_load(record->i_flags) & EXT_INODE_EXTENTS && geometry->incompat & EXT_INCOMPAT_EXTENTS;
    const struct map_walk walk = {
        .ext = ext,
        .visit = visit,
        .context = context,
        .entries = extents ? ext_extent_block_max(geometry) : geometry->block_size / 4,
        .ino = ino,
        .generation = le32_load(record->i_generation),
    };
    int rc = extents ? walk_tree(&walk, record) : walk_slots(&walk, record);
    return rc < 0 ? rc : 0;
}

bool ext_walk_has_map(const struct ext *ext, const struct ext_disk_inode *record) {
    uint32_t mode = le16_load(record->i_mode);
    if (le32_load(record->i_flags) & EXT_INODE_INLINE_DATA)
        return false;
    if (S_ISREG(mode) || S_ISDIR(mode))
        return true;
    if (!S_ISLNK(mode))
        return false;
    if (ext->geometry.incompat & EXT_INCOMPAT_EA_INODE)
        return le32_load(record->i_size) >= sizeof(record->i_block);
    uint32_t attributes = ext_record_file_acl(ext, record) ? ext->geometry.block_size / 512 : 0;
    return ext_record_sectors(ext, record) > attributes;
}

int ext_walk_inodes(struct ext *ext, uint32_t group,
                    int (*visit)(void *context, uint64_t ino, const struct ext_disk_inode *record),
                    void *context) {
    const struct ext_geometry *geometry = &ext->geometry;
    struct buffer *bitmap;
    if (ext->groups[group].flags & EXT_GROUP_INODES_UNSET)
        return 0;
    int rc = buffer_get(ext->buffers, ext->groups[group].inode_bitmap, PURPOSE_BITMAP, &bitmap);
    if (rc < 0)
        return rc;
    uint32_t end = geometry->inodes_per_group;
    for (uint32_t bit = bitmap_find_set(buffer_data(bitmap), 0, end); bit < end && rc == 0;
         bit = bitmap_find_set(buffer_data(bitmap), bit + 1, end)) {
        uint64_t ino = (uint64_t)group * geometry->inodes_per_group + bit + 1;
        struct buffer *buffer;
        struct ext_disk_inode *record;
        rc = ext_inode_record(ext, ino, &buffer, &record);
        if (rc == 0) {
            rc = visit(context, ino, record);
            buffer_put(buffer);
        }
    }
    buffer_put(bitmap);
    return rc;
}
