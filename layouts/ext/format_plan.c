/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, part of mkfs, over geometry.c. The plan: how large everything is and where it
 * lies. See layouts/ext/mkfs.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "layouts/ext/mkfs.h"

#define LOST_FOUND_BYTES    (16u << 10)
#define LAST_GROUP_MIN_DATA 50u /* a last group with fewer data blocks is dropped */

/* --- the plan --------------------------------------------------------------------------------- */

static int plan_too_small(const struct format *format, uint64_t needed) {
    log_error(format->log,
              "%s: mkfs: the device is too small: %" PRIu64 " blocks of %" PRIu32
              " bytes, and metadata and lost+found need %" PRIu64,
              format->device->name, format->geometry.blocks_count, format->geometry.block_size,
              needed);
    return -ENOSPC;
}

/* With room for the device, in blocks; a page is the least unit, as for mke2fs. */
static int plan_blocks(struct format *format, const struct options *options) {
    struct ext_geometry *geometry = &format->geometry;
    geometry->block_size = (uint32_t)options_number(options, "block_size");
    geometry->block_bits = (uint32_t)__builtin_ctz(geometry->block_size);
    geometry->first_data_block = geometry->block_size == 1024;
    geometry->blocks_per_group = geometry->block_size * 8;
    if (options_given(options, "blocks_per_group")) {
        int64_t given = options_number(options, "blocks_per_group");
        if (given % 8 != 0 || given > geometry->blocks_per_group)
            return format_refuse(format,
                                 "blocks_per_group: expected a multiple of 8, at most 8 for each "
                                 "byte of a block");
        geometry->blocks_per_group = (uint32_t)given;
    }
    uint64_t bytes = format->device->size & ~(uint64_t)(PAGE_SIZE_BYTES - 1);
    geometry->blocks_count = bytes >> geometry->block_bits;
    if (geometry->blocks_count < LAST_GROUP_MIN_DATA)
        return plan_too_small(format, LAST_GROUP_MIN_DATA);
    if (geometry->incompat & EXT_INCOMPAT_64BIT) {
        if (geometry->blocks_count > UINT32_MAX) /* its map has 32 bits */
            geometry->compat &= ~(uint32_t)EXT_COMPAT_RESIZE_INODE;
        return 0;
    }
    if (geometry->blocks_count == UINT64_C(1) << 32)
        geometry->blocks_count--; /* the last block of 16 TiB is out of 32 bits' reach */
    if (geometry->blocks_count > UINT32_MAX)
        return format_refuse(
            format, "the device is too large: without the feature 64bit blocks are counted "
                    "in 32 bits, so 4 KiB blocks reach 16 TiB, 1 KiB blocks 4 TiB");
    return 0;
}

static int plan_wishes(struct format *format, const struct options *options) {
    struct ext_geometry *geometry = &format->geometry;
    geometry->inode_size = (uint32_t)options_number(options, "inode_size");
    geometry->first_ino = EXT_FIRST_INO_REV0;
    geometry->descriptor_size = geometry->incompat & EXT_INCOMPAT_64BIT
                                    ? (uint32_t)sizeof(struct ext_disk_group)
                                    : EXT_GROUP_SIZE_SHORT;
    geometry->flex_groups = 1;
    if (geometry->incompat & EXT_INCOMPAT_FLEX_BG)
        geometry->flex_groups = (uint32_t)options_number(options, "flex_bg_size");
    uint64_t bytes = geometry->blocks_count << geometry->block_bits;
    uint64_t inodes = options_given(options, "inodes")
                          ? (uint64_t)options_number(options, "inodes")
                          : bytes / (uint64_t)options_number(options, "inode_ratio");
    if (inodes > UINT32_MAX)
        return format_refuse(format, "more than 2^32 inodes: give a larger inode_ratio");
    if (inodes * geometry->inode_size >= bytes)
        return format_refuse(format,
                             "that many inodes fill the whole device: give a larger inode_ratio "
                             "or fewer inodes");
    format->inodes_wanted = (uint32_t)inodes;
    return format_percentage(format, options_text(options, "reserved"), &format->reserved_parts);
}

uint64_t format_resize_inode_size(const struct ext_geometry *geometry) {
    uint64_t entries = geometry->block_size / 4;
    return (entries * entries + entries + EXT_DIRECT_BLOCKS) << geometry->block_bits;
}

/* Descriptor blocks to set aside so that the volume can grow to 1024 times its size. */
static uint32_t plan_reserved_descriptors(const struct ext_geometry *geometry) {
    if (!(geometry->compat & EXT_COMPAT_RESIZE_INODE))
        return 0;
    uint64_t blocks = geometry->blocks_count * 1024;
    if (blocks > UINT32_MAX)
        blocks = UINT32_MAX;
    uint64_t groups = divide_up(blocks - geometry->first_data_block, geometry->blocks_per_group);
    uint64_t needed = divide_up(groups, geometry->block_size / geometry->descriptor_size) -
                      geometry->descriptor_blocks;
    uint32_t most = geometry->block_size / 4; /* what the resize inode's map can list */
    return needed < most ? (uint32_t)needed : most;
}

/* Spreads the inodes: whole blocks of inode table, a multiple of 8. -ERANGE: they do not fit. */
static int plan_inodes(struct format *format) {
    struct ext_geometry *geometry = &format->geometry;
    uint32_t per_block = geometry->block_size / geometry->inode_size;
    uint32_t wanted = format->inodes_wanted;
    if (wanted < geometry->first_ino + 1)
        wanted = geometry->first_ino + 1;
    uint64_t each = divide_up(wanted, geometry->groups);
    if (each > geometry->block_size * 8)
        return -ERANGE;
    if (each > 65536 - per_block)
        each = 65536 - per_block;
    each = divide_up(each, per_block) * per_block;
    each = each < 8 ? 8 : each & ~UINT64_C(7);
    while (each * geometry->groups < geometry->first_ino)
        each += 8;
    while (each * geometry->groups > UINT32_MAX)
        each = (each - 8) / per_block * per_block;
    geometry->inodes_per_group = (uint32_t)each;
    geometry->inode_table_blocks = (uint32_t)divide_up(each, per_block);
    geometry->inodes_count = geometry->inodes_per_group * geometry->groups;
    return 0;
}

/* sparse_super2: copies in the first group after this one, and in the last. */
static void plan_backups(struct ext_geometry *geometry) {
    if (!(geometry->compat & EXT_COMPAT_SPARSE_SUPER2))
        return;
    geometry->backup_groups[0] = geometry->groups > 1 ? 1 : 0;
    geometry->backup_groups[1] = geometry->groups > 2 ? geometry->groups - 1 : 0;
}

/* Groups, descriptors and inodes for blocks_count, which shrinks when the last group is too short
 * to hold its own metadata and some data. */
static int plan_groups(struct format *format) {
    struct ext_geometry *geometry = &format->geometry;
    const uint64_t all_blocks = geometry->blocks_count;
    for (;;) {
        uint64_t blocks = geometry->blocks_count - geometry->first_data_block;
        geometry->groups = (uint32_t)divide_up(blocks, geometry->blocks_per_group);
        geometry->descriptor_blocks =
            (uint32_t)divide_up(geometry->groups, geometry->block_size / geometry->descriptor_size);
        if (plan_inodes(format) == -ERANGE) {
            if (geometry->blocks_per_group <= 256)
                return format_refuse(format, "too many inodes for so few groups: give a larger "
                                             "inode_ratio or fewer inodes");
            geometry->blocks_per_group -= 8; /* more groups, more inode tables */
            geometry->blocks_count = all_blocks;
            continue;
        }
        geometry->reserved_descriptor_blocks = plan_reserved_descriptors(geometry);
        plan_backups(geometry);
        uint32_t last = geometry->groups - 1;
        uint64_t fixed =
            (uint64_t)ext_group_overhead(geometry, last) + 2 + geometry->inode_table_blocks;
        uint64_t left = blocks % geometry->blocks_per_group;
        if (left == 0 || left >= fixed + LAST_GROUP_MIN_DATA)
            return 0;
        if (geometry->groups == 1)
            return plan_too_small(format, fixed + LAST_GROUP_MIN_DATA);
        geometry->blocks_count -= left;
    }
}

/* --- where everything lies -------------------------------------------------------------------- */

/* [start, end) comes into use. */
static int used_add(struct format *format, uint64_t start, uint64_t end) {
    struct ext_zone *last = format->used_count ? &format->used[format->used_count - 1] : NULL;
    if (last && last->end == start) {
        last->end = end;
        return 0;
    }
    if (format->used_count == format->used_room) {
        uint32_t room = format->used_room ? 2 * format->used_room : 64;
        struct ext_zone *used = reallocarray(format->used, room, sizeof(*used));
        if (!used)
            return -ENOMEM;
        format->used = used;
        format->used_room = room;
    }
    format->used[format->used_count++] = (struct ext_zone){start, end};
    return 0;
}

uint32_t format_used_first(const struct format *format, uint32_t group) {
    uint64_t first = ext_group_first_block(&format->geometry, group);
    uint32_t low = 0, high = format->used_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (format->used[middle].end <= first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool format_used_next(const struct format *format, uint32_t group, uint32_t *index, uint32_t *bit,
                      uint32_t *count) {
    uint64_t first = ext_group_first_block(&format->geometry, group);
    uint64_t end = first + ext_group_block_count(&format->geometry, group);
    if (*index >= format->used_count || format->used[*index].start >= end)
        return false;
    const struct ext_zone *used = &format->used[(*index)++];
    uint64_t from = used->start > first ? used->start : first;
    uint64_t to = used->end < end ? used->end : end;
    *bit = (uint32_t)(from - first);
    *count = (uint32_t)(to - from);
    return true;
}

/* `count` blocks in one piece from *cursor on, past what lies at groups' starts; *cursor then
 * stands behind them. False: none before `end`. */
static bool place(const struct format *format, uint64_t count, uint64_t end, uint64_t *cursor,
                  uint64_t *block) {
    const struct ext_geometry *geometry = &format->geometry;
    uint64_t at = *cursor;
    for (;;) {
        if (at >= end || count > end - at)
            return false;
        /* Does the start of a group lie in the way, from the one that holds `at` on? */
        uint32_t group = ext_group_of_block(geometry, at);
        uint32_t last = ext_group_of_block(geometry, at + count - 1);
        uint64_t behind = at;
        for (; group <= last && behind == at; group++) {
            uint64_t first = ext_group_first_block(geometry, group);
            uint64_t start_end = first + ext_group_overhead(geometry, group);
            if (at < start_end && first < at + count)
                behind = start_end;
        }
        if (behind == at)
            break;
        at = behind;
    }
    *block = at;
    *cursor = at + count;
    return true;
}

static void descriptor_place(const struct format *format, uint32_t group, uint64_t block_bitmap,
                             uint64_t inode_bitmap, uint64_t inode_table) {
    struct ext_disk_group *descriptor = format_descriptor(format, group);
    le32_store(&descriptor->bg_block_bitmap, (uint32_t)block_bitmap);
    le32_store(&descriptor->bg_inode_bitmap, (uint32_t)inode_bitmap);
    le32_store(&descriptor->bg_inode_table, (uint32_t)inode_table);
    if (format->geometry.descriptor_size == EXT_GROUP_SIZE_SHORT)
        return;
    le32_store(&descriptor->bg_block_bitmap_hi, (uint32_t)(block_bitmap >> 32));
    le32_store(&descriptor->bg_inode_bitmap_hi, (uint32_t)(inode_bitmap >> 32));
    le32_store(&descriptor->bg_inode_table_hi, (uint32_t)(inode_table >> 32));
}

/* Of the root and lost+found. */
static uint32_t data_blocks(const struct format *format) {
    return 1 + format->lost_found_blocks;
}

/* Bitmaps and tables of `count` groups from `group` on, from *cursor on and before `end`: all block
 * bitmaps, all inode bitmaps, all tables, each kind in one piece. -ERANGE: no room. Data then go
 * behind them, or into the gap that a single group leaves, where it is large enough: like mke2fs,
 * it keeps its bitmaps as far apart as a full number of groups would. */
static int plan_side_by_side(struct format *format, uint32_t group, uint32_t count, uint64_t end,
                             uint64_t *cursor) {
    const uint32_t table = format->geometry.inode_table_blocks;
    const uint32_t slots = count == 1 ? format->geometry.flex_groups : count;
    uint64_t at = *cursor, block_bitmaps, inode_bitmaps, tables;
    if (!place(format, slots, end, &at, &block_bitmaps) ||
        !place(format, slots, end, &at, &inode_bitmaps) ||
        !place(format, (uint64_t)count * table, end, &at, &tables))
        return -ERANGE;
    *cursor = slots - count >= data_blocks(format) ? block_bitmaps + count : at;
    if (group == 0)
        format->resize_map = at;
    for (uint32_t i = 0; i < count; i++)
        descriptor_place(format, group + i, block_bitmaps + i, inode_bitmaps + i,
                         tables + (uint64_t)i * table);
    int error = used_add(format, block_bitmaps, block_bitmaps + count);
    if (!error)
        error = used_add(format, inode_bitmaps, inode_bitmaps + count);
    return error ? error : used_add(format, tables, tables + (uint64_t)count * table);
}

/* The blocks of the root and lost+found, then that of the resize inode, which is never in a gap. */
static int plan_data(struct format *format, uint64_t *cursor) {
    struct ext_geometry *geometry = &format->geometry;
    const uint64_t end = geometry->blocks_count;
    uint64_t behind = format->resize_map;
    bool fits = place(format, data_blocks(format), end, cursor, &format->data_block);
    int error = fits ? used_add(format, format->data_block, *cursor) : 0;
    if (fits && !error && geometry->compat & EXT_COMPAT_RESIZE_INODE) {
        if (format_resize_inode_size(geometry) > INT32_MAX)
            geometry->ro_compat |= EXT_RO_COMPAT_LARGE_FILE;
        if (behind < *cursor)
            behind = *cursor;
        fits = place(format, 1, end, &behind, &format->resize_map);
        *cursor = behind;
        error = fits ? used_add(format, format->resize_map, behind) : 0;
    }
    if (fits)
        return error;
    return format_refuse(format,
                         "no room for the descriptors, the inode tables and lost+found: give "
                         "larger blocks, larger groups or fewer inodes");
}

/* The metadata of the groups that lie side by side; where they do not fit so, each group's in
 * itself, which plan_groups has made sure of. */
static int plan_flex_group(struct format *format, uint32_t group, uint32_t count,
                           uint64_t *cursor) {
    const struct ext_geometry *geometry = &format->geometry;
    uint32_t last = group + count - 1;
    uint64_t end = ext_group_first_block(geometry, last) + ext_group_block_count(geometry, last);
    uint64_t first = ext_group_first_block(geometry, group);
    if (*cursor < first)
        *cursor = first;
    int error = plan_side_by_side(format, group, count, end, cursor);
    for (uint32_t i = 0; i < count && error == -ERANGE && count > 1; i++) {
        error = plan_flex_group(format, group + i, 1, cursor);
        if (!error && i + 1 < count)
            error = -ERANGE;
    }
    return error == -ERANGE && count == 1
               ? format_refuse(format, "a group has no room for the descriptors and its inode "
                                       "table: give larger blocks, larger groups or fewer inodes")
               : error;
}

/* How many of the reserved inodes (and lost+found) are in the group. */
static uint32_t group_used_inodes(const struct ext_geometry *geometry, uint32_t group) {
    uint64_t before = (uint64_t)group * geometry->inodes_per_group;
    if (before >= LOST_FOUND_INO)
        return 0;
    uint64_t left = LOST_FOUND_INO - before;
    return left < geometry->inodes_per_group ? (uint32_t)left : geometry->inodes_per_group;
}

/* Counts, and what need not be written: a bitmap of a group that holds nothing but (its own part
 * of) the groups' metadata, except the last group's, whose end may be short. */
static void plan_group(struct format *format, uint32_t group) {
    const struct ext_geometry *geometry = &format->geometry;
    struct ext_disk_group *descriptor = format_descriptor(format, group);
    uint32_t blocks = ext_group_block_count(geometry, group);
    uint32_t used = ext_group_overhead(geometry, group),
             inodes = group_used_inodes(geometry, group);
    uint32_t index = format_used_first(format, group), bit, count, pieces = 0;
    for (; format_used_next(format, group, &index, &bit, &count); pieces++)
        used += count;
    uint32_t directories = 0;
    directories += group == ext_group_of_inode(geometry, EXT_ROOT_INO);
    directories += group == ext_group_of_inode(geometry, LOST_FOUND_INO);
    le16_store(&descriptor->bg_free_blocks_count, (uint16_t)(blocks - used));
    le16_store(&descriptor->bg_free_inodes_count, (uint16_t)(geometry->inodes_per_group - inodes));
    le16_store(&descriptor->bg_used_dirs_count, (uint16_t)directories);
    format->free_blocks += blocks - used;
    if (!ext_has_group_checksums(geometry))
        return;
    uint32_t flags = EXT_GROUP_TABLE_ZEROED;
    bool own = geometry->flex_groups == 1 && inodes == 0;
    if (group + 1 < geometry->groups && (pieces == 0 || own))
        flags |= EXT_GROUP_BLOCKS_UNSET;
    if (inodes == 0)
        flags |= EXT_GROUP_INODES_UNSET;
    le16_store(&descriptor->bg_flags, (uint16_t)flags);
    le16_store(&descriptor->bg_itable_unused, (uint16_t)(geometry->inodes_per_group - inodes));
}

static int used_compare(const void *a, const void *b) {
    const struct ext_zone *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static int plan_layout(struct format *format) {
    struct ext_geometry *geometry = &format->geometry;
    uint32_t lost_found = LOST_FOUND_BYTES / geometry->block_size;
    uint64_t cursor = 0;
    int error = 0;
    format->lost_found_blocks = lost_found < EXT_DIRECT_BLOCKS ? lost_found : EXT_DIRECT_BLOCKS;
    format->descriptors = calloc(geometry->descriptor_blocks, geometry->block_size);
    if (!format->descriptors)
        return -ENOMEM;
    for (uint32_t group = 0; group < geometry->groups && !error; group += geometry->flex_groups) {
        uint32_t left = geometry->groups - group;
        error = plan_flex_group(
            format, group, left < geometry->flex_groups ? left : geometry->flex_groups, &cursor);
        if (!error && group == 0)
            error = plan_data(format, &cursor);
    }
    if (error)
        return error;
    qsort(format->used, format->used_count, sizeof(*format->used), used_compare);
    for (uint32_t group = 0; group < geometry->groups; group++)
        plan_group(format, group);
    return 0;
}

int format_plan(struct format *format, const struct options *options) {
    int error = plan_blocks(format, options);
    if (!error)
        error = plan_wishes(format, options);
    if (!error)
        error = plan_groups(format);
    return error ? error : plan_layout(format);
}
