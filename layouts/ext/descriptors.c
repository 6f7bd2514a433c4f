/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over geometry.c and the buffer cache. The group descriptors: taken up at
 * mount, stored at sync; and from them the zones, where the groups' own metadata lies.
 *
 * Without flex_bg each group's bitmaps and inode table lie in it; with it, those of several groups
 * lie side by side, which is why the question "is this block metadata?" is asked of a list of zones
 * and not of a group.
 *
 * Invariants:
 *  1. Zones are ascending and neither touch nor overlap; blocks that two structures claim make a
 *     volume that is not mounted.
 *  2. group->dirty exactly when the group is in the list of dirty groups.
 *  3. A bitmap's checksum is worked out when the descriptor is stored, not with each change. Until
 *     then *_bitmap_changed says that the recorded one is void.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fs/bitmap.h"
#include "layouts/ext/checksum.h"

#define ZONES_EACH 4u /* of a group, before they are merged: its start, two bitmaps, a table */

/* --- one descriptor --------------------------------------------------------------------------- */

/* `high` lies past a short descriptor. */
static uint64_t wide_load(const struct ext_geometry *geometry, le32 low, const le32 *high) {
    bool wide = geometry->descriptor_size > EXT_GROUP_SIZE_SHORT;
    return le32_load(low) | (wide ? (uint64_t)le32_load(*high) << 32 : 0);
}

static uint32_t count_load(const struct ext_geometry *geometry, le16 low, const le16 *high) {
    bool wide = geometry->descriptor_size > EXT_GROUP_SIZE_SHORT;
    return le16_load(low) | (wide ? (uint32_t)le16_load(*high) << 16 : 0);
}

static void count_store(const struct ext_geometry *geometry, le16 *low, le16 *high,
                        uint32_t value) {
    le16_store(low, (uint16_t)value);
    if (geometry->descriptor_size > EXT_GROUP_SIZE_SHORT)
        le16_store(high, (uint16_t)(value >> 16));
}

static void group_decode(const struct ext_geometry *g, const struct ext_disk_group *disk,
                         struct ext_group *group) {
    *group = (struct ext_group){
        .block_bitmap = wide_load(g, disk->bg_block_bitmap, &disk->bg_block_bitmap_hi),
        .inode_bitmap = wide_load(g, disk->bg_inode_bitmap, &disk->bg_inode_bitmap_hi),
        .inode_table = wide_load(g, disk->bg_inode_table, &disk->bg_inode_table_hi),
        .free_blocks = count_load(g, disk->bg_free_blocks_count, &disk->bg_free_blocks_count_hi),
        .free_inodes = count_load(g, disk->bg_free_inodes_count, &disk->bg_free_inodes_count_hi),
        .used_dirs = count_load(g, disk->bg_used_dirs_count, &disk->bg_used_dirs_count_hi),
    };
    if (!ext_has_group_checksums(g))
        return;
    group->flags = le16_load(disk->bg_flags);
    group->unused_inodes = count_load(g, disk->bg_itable_unused, &disk->bg_itable_unused_hi);
    if (!ext_has_checksums(g)) /* the fields may be left from when it had */
        return;
    group->block_bitmap_checksum =
        count_load(g, disk->bg_block_bitmap_csum, &disk->bg_block_bitmap_csum_hi);
    group->inode_bitmap_checksum =
        count_load(g, disk->bg_inode_bitmap_csum, &disk->bg_inode_bitmap_csum_hi);
}

static void group_encode(const struct ext_geometry *g, const struct ext_group *group,
                         struct ext_disk_group *disk) {
    count_store(g, &disk->bg_free_blocks_count, &disk->bg_free_blocks_count_hi, group->free_blocks);
    count_store(g, &disk->bg_free_inodes_count, &disk->bg_free_inodes_count_hi, group->free_inodes);
    count_store(g, &disk->bg_used_dirs_count, &disk->bg_used_dirs_count_hi, group->used_dirs);
    if (!ext_has_group_checksums(g))
        return;
    le16_store(&disk->bg_flags, group->flags);
    count_store(g, &disk->bg_itable_unused, &disk->bg_itable_unused_hi, group->unused_inodes);
    if (!ext_has_checksums(g))
        return;
    count_store(g, &disk->bg_block_bitmap_csum, &disk->bg_block_bitmap_csum_hi,
                group->block_bitmap_checksum);
    count_store(g, &disk->bg_inode_bitmap_csum, &disk->bg_inode_bitmap_csum_hi,
                group->inode_bitmap_checksum);
}

/* Is [block, block + count) where the group may have it: in the volume, and without flex_bg in the
 * group itself? */
static bool placed_well(const struct ext_geometry *geometry, uint32_t group, uint64_t block,
                        uint32_t count) {
    uint64_t first = geometry->first_data_block, end = geometry->blocks_count;
    if (!(geometry->incompat & EXT_INCOMPAT_FLEX_BG)) {
        first = ext_group_first_block(geometry, group);
        end = first + ext_group_block_count(geometry, group);
    }
    return block >= first && block < end && count <= end - block;
}

/* What is wrong with a decoded descriptor, or NULL. Overlaps are found with the zones. */
static const char *group_fault(const struct ext_geometry *geometry, uint32_t number,
                               const struct ext_group *group) {
    if (!placed_well(geometry, number, group->block_bitmap, 1))
        return "bg_block_bitmap is not in the group's data area";
    if (!placed_well(geometry, number, group->inode_bitmap, 1))
        return "bg_inode_bitmap is not in the group's data area";
    if (!placed_well(geometry, number, group->inode_table, geometry->inode_table_blocks))
        return "bg_inode_table is not in the group's data area";
    if (group->free_blocks > ext_group_block_count(geometry, number))
        return "bg_free_blocks_count is more than the group has";
    if (group->free_inodes > geometry->inodes_per_group)
        return "bg_free_inodes_count is more than the group has";
    if (group->unused_inodes > geometry->inodes_per_group)
        return "bg_itable_unused is more than the group has";
    return NULL;
}

/* --- zones ------------------------------------------------------------------------------------ */

static int zone_compare(const void *a, const void *b) {
    const struct ext_zone *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Everything that the groups' descriptors and arithmetic claim, in no order. */
static uint32_t zones_gather(struct ext *ext) {
    const struct ext_geometry *geometry = &ext->geometry;
    uint32_t count = 0;
    for (uint32_t number = 0; number < geometry->groups; number++) {
        const struct ext_group *group = &ext->groups[number];
        uint64_t first = ext_group_first_block(geometry, number);
        uint32_t overhead = ext_group_overhead(geometry, number);
        if (overhead > 0)
            ext->zones[count++] = (struct ext_zone){first, first + overhead};
        ext->zones[count++] = (struct ext_zone){group->block_bitmap, group->block_bitmap + 1};
        ext->zones[count++] = (struct ext_zone){group->inode_bitmap, group->inode_bitmap + 1};
        ext->zones[count++] = (struct ext_zone){group->inode_table,
                                                group->inode_table + geometry->inode_table_blocks};
    }
    return count;
}

/* Joins neighbours. False: two claim one block, *block. */
static bool zones_merge(struct ext *ext, uint32_t count, uint64_t *block) {
    uint32_t last = 0;
    for (uint32_t i = 1; i < count; i++) {
        struct ext_zone zone = ext->zones[i];
        *block = zone.start;
        if (zone.start < ext->zones[last].end)
            return false;
        if (zone.start == ext->zones[last].end)
            ext->zones[last].end = zone.end;
        else
            ext->zones[++last] = zone;
    }
    ext->zone_count = last + 1;
    return true;
}

static int zones_build(struct ext *ext,
                       void (*wrong)(void *context, uint32_t group, uint64_t block,
                                     const char *why),
                       void *context) {
    const struct ext_geometry *geometry = &ext->geometry;
    uint64_t block;
    ext->zones = calloc(geometry->groups, ZONES_EACH * sizeof(*ext->zones));
    if (!ext->zones)
        return -ENOMEM;
    uint32_t count = zones_gather(ext);
    qsort(ext->zones, count, sizeof(*ext->zones), zone_compare);
    if (!zones_merge(ext, count, &block)) {
        wrong(context, ext_group_of_block(geometry, block), block,
              "bitmaps and inode table overlap with each other or with descriptors");
        return -EUCLEAN;
    }
    struct ext_zone *fitting = reallocarray(ext->zones, ext->zone_count, sizeof(*ext->zones));
    if (fitting)
        ext->zones = fitting;
    for (uint32_t number = 0, zone = 0; number < geometry->groups; number++) {
        while (zone < ext->zone_count &&
               ext->zones[zone].end <= ext_group_first_block(geometry, number))
            zone++;
        ext->groups[number].zone = zone;
    }
    return 0;
}

bool ext_zones_meet(const struct ext *ext, uint64_t block, uint64_t count) {
    uint32_t zone = ext->groups[ext_group_of_block(&ext->geometry, block)].zone;
    while (zone < ext->zone_count && ext->zones[zone].end <= block)
        zone++;
    return zone < ext->zone_count && ext->zones[zone].start < block + count;
}

/* The next part of the group's blocks that is metadata, as bits from *bit on. False: none. */
static bool zone_next(const struct ext *ext, uint32_t group, uint32_t *zone, uint32_t *bit,
                      uint32_t *count) {
    uint64_t first = ext_group_first_block(&ext->geometry, group);
    uint64_t end = first + ext_group_block_count(&ext->geometry, group);
    if (*zone >= ext->zone_count || ext->zones[*zone].start >= end)
        return false;
    uint64_t from = ext->zones[*zone].start > first ? ext->zones[*zone].start : first;
    uint64_t to = ext->zones[*zone].end < end ? ext->zones[*zone].end : end;
    *bit = (uint32_t)(from - first);
    *count = (uint32_t)(to - from);
    ++*zone;
    return true;
}

void ext_zones_mark(const struct ext *ext, uint32_t group, void *bitmap) {
    uint32_t zone = ext->groups[group].zone, bit, count;
    while (zone_next(ext, group, &zone, &bit, &count))
        bitmap_set(bitmap, bit, count);
}

bool ext_zones_marked(const struct ext *ext, uint32_t group, const void *bitmap) {
    uint32_t zone = ext->groups[group].zone, bit, count;
    while (zone_next(ext, group, &zone, &bit, &count))
        if (bitmap_find_clear(bitmap, bit, bit + count) < bit + count)
            return false;
    return true;
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool group_load(struct ext *ext, uint32_t number, const struct ext_disk_group *disk,
                       const char **fault) {
    struct ext_group *group = &ext->groups[number];
    group_decode(&ext->geometry, disk, group);
    *fault = group_fault(&ext->geometry, number, group);
    if (!*fault && !ext_group_checksum_valid(&ext->geometry, number, disk))
        *fault = "its checksum is wrong";
    ext->free_blocks += group->free_blocks;
    ext->free_inodes += group->free_inodes;
    ext->used_dirs += group->used_dirs;
    return !*fault;
}

int ext_groups_load(struct ext *ext,
                    void (*wrong)(void *context, uint32_t group, uint64_t block, const char *why),
                    void *context) {
    const struct ext_geometry *geometry = &ext->geometry;
    const uint32_t per_block = ext_descriptors_per_block(geometry);
    bool sound = true;
    ext->dirty_groups = EXT_GROUP_NONE;
    ext->groups = calloc(geometry->groups, sizeof(*ext->groups));
    if (!ext->groups)
        return -ENOMEM;
    buffer_prefetch(ext->buffers, ext_descriptor_block(geometry, 0), geometry->descriptor_blocks,
                    PURPOSE_SUPER);
    for (uint32_t index = 0; index < geometry->descriptor_blocks; index++) {
        uint64_t block = ext_descriptor_block(geometry, index);
        uint32_t group = index * per_block;
        struct buffer *buffer;
        int rc = buffer_get(ext->buffers, block, PURPOSE_SUPER, &buffer);
        if (rc < 0)
            return rc;
        for (uint32_t i = 0; i < per_block && group + i < geometry->groups; i++) {
            const char *fault;
            if (group_load(ext, group + i, ext_descriptor_at(geometry, buffer_data(buffer), i),
                           &fault))
                continue;
            wrong(context, group + i, block, fault);
            sound = false;
        }
        buffer_put(buffer);
    }
    return sound ? zones_build(ext, wrong, context) : -EUCLEAN;
}

void ext_groups_release(struct ext *ext) {
    free(ext->groups);
    free(ext->zones);
    ext->groups = NULL;
    ext->zones = NULL;
}

void ext_group_changed(struct ext *ext, uint32_t number) {
    struct ext_group *group = &ext->groups[number];
    ext->super_dirty = true;
    if (group->dirty)
        return;
    group->dirty = true;
    group->dirty_next = ext->dirty_groups;
    ext->dirty_groups = number;
}

/* Works out the checksums of changed bitmaps. */
static int group_seal(struct ext *ext, uint32_t number) {
    struct ext_group *group = &ext->groups[number];
    struct buffer *bitmap;
    if (group->block_bitmap_changed) {
        int rc = ext_block_bitmap_get(ext, number, &bitmap);
        if (rc < 0)
            return rc;
        group->block_bitmap_checksum =
            ext_block_bitmap_checksum(&ext->geometry, buffer_data(bitmap));
        group->block_bitmap_changed = false;
        buffer_put(bitmap);
    }
    if (group->inode_bitmap_changed) {
        int rc = ext_inode_bitmap_get(ext, number, &bitmap);
        if (rc < 0)
            return rc;
        group->inode_bitmap_checksum =
            ext_inode_bitmap_checksum(&ext->geometry, buffer_data(bitmap));
        group->inode_bitmap_changed = false;
        buffer_put(bitmap);
    }
    return 0;
}

static int group_store(struct ext *ext, uint32_t number) {
    const struct ext_geometry *geometry = &ext->geometry;
    const uint32_t per_block = ext_descriptors_per_block(geometry);
    struct buffer *buffer;
    int rc = ext_has_checksums(geometry) ? group_seal(ext, number) : 0;
    if (rc == 0)
        rc = buffer_get(ext->buffers, ext_descriptor_block(geometry, number / per_block),
                        PURPOSE_SUPER, &buffer);
    if (rc < 0)
        return rc;
    struct ext_disk_group *disk =
        ext_descriptor_at(geometry, buffer_data(buffer), number % per_block);
    group_encode(geometry, &ext->groups[number], disk);
    ext_group_checksum_set(geometry, number, disk);
    ext_dirty(ext, buffer);
    buffer_put(buffer);
    return 0;
}

int ext_groups_store(struct ext *ext) {
    while (ext->dirty_groups != EXT_GROUP_NONE) {
        struct ext_group *group = &ext->groups[ext->dirty_groups];
        int rc = group_store(ext, ext->dirty_groups);
        if (rc < 0)
            return rc;
        ext->dirty_groups = group->dirty_next;
        group->dirty = false;
    }
    return 0;
}
