/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the buffer cache. Interface: layouts/ext/walk.h.
 *
 * Invariant: a walk ends. It goes at most three levels deep; a visitor that refuses blocks it has
 * seen (or counts its steps) bounds its width.
 */
#include "layouts/ext/walk.h"

#include <sys/stat.h>

#include "layouts/ext/bitmap.h"

struct map_walk {
    struct ext *ext;
    ext_walk_visit visit;
    void *context;
    uint32_t entries; /* numbers in an indirect block */
};

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
        struct ext_walk_step next = {le32_load(pointers[i]), step->logical + i * span,
                                     step->level - 1};
        if (next.block)
            rc = walk_pointer(walk, &next);
    }
    buffer_put(buffer);
    return rc;
}

int ext_walk_map(struct ext *ext, const struct ext_disk_inode *record, ext_walk_visit visit,
                 void *context) {
    const struct map_walk walk = {ext, visit, context, ext->geometry.block_size / 4};
    uint64_t logical = 0;
    int rc = 0;
    for (uint32_t slot = 0; slot < EXT_BLOCK_SLOTS && rc >= 0; slot++) {
        uint32_t level = slot < EXT_IND ? 0 : slot - EXT_IND + 1;
        struct ext_walk_step step = {le32_load(record->i_block[slot]), logical, level};
        if (step.block)
            rc = walk_pointer(&walk, &step);
        logical += level_span(&walk, level);
    }
    return rc < 0 ? rc : 0;
}

bool ext_walk_has_map(const struct ext *ext, const struct ext_disk_inode *record) {
    uint32_t mode = le16_load(record->i_mode);
    if (S_ISREG(mode) || S_ISDIR(mode))
        return true;
    if (!S_ISLNK(mode))
        return false;
    uint32_t attributes = le32_load(record->i_file_acl) ? ext->geometry.block_size / 512 : 0;
    return le32_load(record->i_blocks) > attributes;
}

int ext_walk_inodes(struct ext *ext, uint32_t group,
                    int (*visit)(void *context, uint64_t ino, const struct ext_disk_inode *record),
                    void *context) {
    const struct ext_geometry *geometry = &ext->geometry;
    struct buffer *bitmap;
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
