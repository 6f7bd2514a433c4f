/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext. Examines an unmounted volume: takes it up as mount would, lets the walks find
 * what is in use, and compares that with bitmaps and counts. See layouts/ext/check.h.
 *
 * Repair mends what follows from the rest: bitmaps, free counts, link counts. What needs a decision
 * (who keeps a block that two files claim) is left to e2fsck.
 */
#include "layouts/ext/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/bitmap.h"
#include "layouts/ext/checksum.h"
#include "layouts/ext/journal.h"

#define CHECK_CACHE_BYTES (32u << 20)

/* --- findings --------------------------------------------------------------------------------- */

static void emit_wrong(struct check *check, const char *text) {
    check->report->wrong++;
    if (check->report->finding)
        check->report->finding(check->report->context, CHECK_WRONG, text);
}

void check_wrong(struct check *check, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    emit_wrong(check, text);
}

static void note(struct check *check, const char *text) {
    if (check->report->finding)
        check->report->finding(check->report->context, CHECK_NOTE, text);
}

/* Mending stops at the first finding that stays: what follows from damage is damage, too. */
bool check_repair(struct check *check) {
    struct check_report *report = check->report;
    if (!report->repair || report->wrong - report->repaired > 1)
        return false;
    report->repaired++;
    return true;
}

/* What validation would have logged at mount is a finding here. */
static void log_to_finding(void *context, enum log_level level, const char *text) {
    struct check *check = context;
    if (level == LOG_LEVEL_ERROR)
        emit_wrong(check, text);
    else
        note(check, text);
}

/* --- tables ----------------------------------------------------------------------------------- */

int check_grow(void **array, size_t count, size_t *room, size_t element) {
    if (count < *room)
        return 0;
    size_t wanted = *room ? *room * 2 : 64;
    void *larger = reallocarray(*array, wanted, element);
    if (!larger)
        return -ENOMEM;
    *array = larger;
    *room = wanted;
    return 0;
}

int check_claim(struct check *check, uint64_t block) {
    const struct ext_geometry *geometry = &check->ext.geometry;
    uint32_t number = ext_group_of_block(geometry, block);
    struct check_group *group = &check->groups[number];
    uint32_t bit = (uint32_t)(block - ext_group_first_block(geometry, number));
    if (!group->blocks)
        group->blocks = calloc(1, geometry->block_size);
    if (!group->blocks)
        return -ENOMEM;
    if (bitmap_test(group->blocks, bit))
        return 0;
    bitmap_set(group->blocks, bit, 1);
    return 1;
}

struct check_inode *check_inode_find(struct check *check, uint64_t ino) {
    const struct ext_geometry *geometry = &check->ext.geometry;
    if (ino == 0 || ino > geometry->inodes_count)
        return NULL;
    struct check_group *group = &check->groups[ext_group_of_inode(geometry, ino)];
    if (!group->inodes)
        return NULL;
    struct check_inode *inode = &group->inodes[(ino - 1) % geometry->inodes_per_group];
    return inode->type ? inode : NULL;
}

/* --- bitmaps and counts ----------------------------------------------------------------------- */

static void expect_blocks(const struct check *check, uint32_t number, uint8_t *bitmap) {
    const struct ext_geometry *geometry = &check->ext.geometry;
    uint32_t count = ext_group_block_count(geometry, number);
    if (check->groups[number].blocks)
        memcpy(bitmap, check->groups[number].blocks, geometry->block_size);
    else
        memset(bitmap, 0, geometry->block_size);
    ext_zones_mark(&check->ext, number, bitmap);
    bitmap_set(bitmap, count, geometry->block_size * 8 - count);
}

static void expect_inodes(const struct check *check, uint32_t number, uint8_t *bitmap) {
    const struct ext_geometry *geometry = &check->ext.geometry;
    const struct check_inode *inodes = check->groups[number].inodes;
    uint64_t before = (uint64_t)number * geometry->inodes_per_group;
    memset(bitmap, 0, geometry->block_size);
    for (uint32_t bit = 0; bit < geometry->inodes_per_group; bit++) {
        if (before + bit + 1 < geometry->first_ino || (inodes && inodes[bit].type))
            bitmap_set(bitmap, bit, 1);
    }
    bitmap_set(bitmap, geometry->inodes_per_group,
               geometry->block_size * 8 - geometry->inodes_per_group);
}

/* Compares `count` bits of the bitmap on disk with what should be there. `first`: what bit 0 stands
 * for. */
static int compare_bitmap(struct check *check, uint32_t number, const char *what, uint64_t block,
                          const uint8_t *expected, uint32_t count, uint64_t first, bool *mended) {
    struct buffer *buffer;
    int rc = buffer_get(check->ext.buffers, block, PURPOSE_BITMAP, &buffer);
    if (rc < 0)
        return rc;
    const uint8_t *found = buffer_data(buffer);
    uint32_t free_but_used = 0, used_but_free = 0, example = count, same = 0;
    if (memcmp(found, expected, count / 8) == 0) /* as nearly always: then bit by bit the rest */
        same = count / 8 * 8;
    for (uint32_t bit = same; bit < count; bit++) {
        bool is = bitmap_test(found, bit), should_be = bitmap_test(expected, bit);
        free_but_used += should_be && !is;
        used_but_free += is && !should_be;
        if (is != should_be && example == count)
            example = bit;
    }
    if (example < count) {
        check_wrong(check,
                    "group %" PRIu32 ": %s bitmap (block %" PRIu64 "): %" PRIu32
                    " in use but marked free, %" PRIu32 " marked in use but free; the first is "
                    "%s %" PRIu64,
                    number, what, block, free_but_used, used_but_free, what, first + example);
        if (check_repair(check)) {
            memcpy(buffer_data(buffer), expected, check->ext.geometry.block_size);
            buffer_dirty(buffer);
            ext_group_changed(&check->ext, number);
            *mended = true;
        }
    }
    buffer_put(buffer);
    return 0;
}

static void compare_count(struct check *check, uint32_t number, const char *field, uint32_t *found,
                          uint32_t expected) {
    if (*found == expected)
        return;
    check_wrong(check, "group %" PRIu32 " descriptor: %s is %" PRIu32 ", expected %" PRIu32, number,
                field, *found, expected);
    if (check_repair(check)) {
        *found = expected;
        ext_group_changed(&check->ext, number);
    }
}

/* The checksum of a bitmap, which its descriptor has. Mended when the descriptor is stored. */
static int check_bitmap_checksum(struct check *check, uint32_t number, const char *what,
                                 uint64_t block, uint32_t recorded,
                                 uint32_t (*checksum)(const struct ext_geometry *, const void *),
                                 bool *changed) {
    struct buffer *buffer;
    int rc = buffer_get(check->ext.buffers, block, PURPOSE_BITMAP, &buffer);
    if (rc < 0)
        return rc;
    bool valid = recorded == checksum(&check->ext.geometry, buffer_data(buffer));
    buffer_put(buffer);
    if (valid)
        return 0;
    check_wrong(check, "group %" PRIu32 ": %s bitmap (block %" PRIu64 "): its checksum is wrong",
                number, what, block);
    if (check_repair(check)) {
        *changed = true;
        ext_group_changed(&check->ext, number);
    }
    return 0;
}

static int check_block_bitmap(struct check *check, uint32_t number, const uint8_t *expected) {
    const struct ext_geometry *geometry = &check->ext.geometry;
    struct ext_group *group = &check->ext.groups[number];
    if (group->flags & EXT_GROUP_BLOCKS_UNSET)
        return 0;
    int rc = check_bitmap_checksum(check, number, "block", group->block_bitmap,
                                   group->block_bitmap_checksum, ext_block_bitmap_checksum,
                                   &group->block_bitmap_changed);
    if (rc < 0)
        return rc;
    return compare_bitmap(check, number, "block", group->block_bitmap, expected,
                          ext_group_block_count(geometry, number),
                          ext_group_first_block(geometry, number), &group->block_bitmap_changed);
}

static int check_inode_bitmap(struct check *check, uint32_t number, const uint8_t *expected) {
    const struct ext_geometry *geometry = &check->ext.geometry;
    struct ext_group *group = &check->ext.groups[number];
    if (group->flags & EXT_GROUP_INODES_UNSET)
        return 0;
    int rc = check_bitmap_checksum(check, number, "inode", group->inode_bitmap,
                                   group->inode_bitmap_checksum, ext_inode_bitmap_checksum,
                                   &group->inode_bitmap_changed);
    if (rc < 0)
        return rc;
    return compare_bitmap(
        check, number, "inode", group->inode_bitmap, expected, geometry->inodes_per_group,
        (uint64_t)number * geometry->inodes_per_group + 1, &group->inode_bitmap_changed);
}

static int check_group_bitmaps(struct check *check, uint32_t number, uint8_t *expected) {
    const struct ext_geometry *geometry = &check->ext.geometry;
    struct ext_group *group = &check->ext.groups[number];
    expect_blocks(check, number, expected);
    uint32_t free_blocks = bitmap_count_clear(expected, ext_group_block_count(geometry, number));
    int rc = check_block_bitmap(check, number, expected);
    if (rc < 0)
        return rc;
    expect_inodes(check, number, expected);
    uint32_t free_inodes = bitmap_count_clear(expected, geometry->inodes_per_group);
    rc = check_inode_bitmap(check, number, expected);
    if (rc < 0)
        return rc;
    compare_count(check, number, "bg_free_blocks_count", &group->free_blocks, free_blocks);
    compare_count(check, number, "bg_free_inodes_count", &group->free_inodes, free_inodes);
    compare_count(check, number, "bg_used_dirs_count", &group->used_dirs,
                  check->groups[number].directories);
    check->ext.free_blocks += free_blocks;
    check->ext.free_inodes += free_inodes;
    return 0;
}

static void compare_total(struct check *check, const char *field, uint64_t found,
                          uint64_t expected) {
    if (found == expected)
        return;
    check_wrong(check, "super block: %s is %" PRIu64 ", expected %" PRIu64, field, found, expected);
    if (check_repair(check))
        check->ext.super_dirty = true;
}

static uint64_t super_free_blocks(const struct check *check) {
    const struct ext_disk_super *super = &check->ext.super;
    return ext_blocks_load(super, super->s_free_blocks_count, super->s_free_blocks_count_hi);
}

static int check_space(struct check *check) {
    uint8_t *expected = malloc(check->ext.geometry.block_size);
    if (!expected)
        return -ENOMEM;
    int rc = 0;
    check->ext.free_blocks = check->ext.free_inodes = 0; /* summed up anew */
    for (uint32_t group = 0; group < check->ext.geometry.groups && rc == 0; group++)
        rc = check_group_bitmaps(check, group, expected);
    free(expected);
    if (rc < 0)
        return rc;
    compare_total(check, "s_free_blocks_count", super_free_blocks(check), check->ext.free_blocks);
    compare_total(check, "s_free_inodes_count", le32_load(check->ext.super.s_free_inodes_count),
                  check->ext.free_inodes);
    return 0;
}

/* --- the journal ------------------------------------------------------------------------------ */

/* Its file is found as a mount finds it. What a mount would complain of is a finding, and stays
 * one: nothing is mended that rests on it. */
static int check_journal(struct check *check) {
    struct ext *ext = &check->ext;
    struct ext_log log;
    if (!(ext->geometry.compat & EXT_COMPAT_HAS_JOURNAL) ||
        le32_load(ext->super.s_journal_inum) == 0)
        return 0;
    int rc = ext_log_open(ext, &log);
    if (rc == 0)
        ext_log_close(&log);
    return rc == -EUCLEAN || rc == -ENOTSUP ? 0 : rc;
}

/* --- life ------------------------------------------------------------------------------------- */

static void descriptor_wrong(void *context, uint32_t group, uint64_t block, const char *why) {
    check_wrong(context, "group %" PRIu32 " descriptor (block %" PRIu64 "): %s; run e2fsck", group,
                block, why);
}

static int check_open(struct check *check) {
    struct ext *ext = &check->ext;
    struct volume *volume = &check->volume;
    ext->volume = volume;
    volume->layout_data = ext;
    ext->errors = EXT_ERRORS_CONTINUE;
    int rc = ext_super_read(volume->device, volume->log, &ext->super);
    if (rc == 0 && le16_load(ext->super.s_magic) == EXT_MAGIC)
        rc = ext_features_check(&ext->super, !check->report->repair, volume->name, volume->log);
    if (rc == 0)
        rc = ext_geometry_load(&ext->super, volume->device->size, volume->name, volume->log,
                               &ext->geometry);
    if (rc == 0)
        rc = buffer_cache_create(volume->device, &volume->pool, volume->clock,
                                 ext->geometry.block_size, &volume->buffers);
    if (rc < 0)
        return rc;
    ext->buffers = volume->buffers;
    volume->limits.file_size_max = ext_file_size_max(ext);
    check->groups = calloc(ext->geometry.groups, sizeof(*check->groups));
    if (!check->groups)
        return -ENOMEM;
    return ext_groups_load(ext, descriptor_wrong, check);
}

static int check_volume(struct check *check) {
    uint16_t state = le16_load(check->ext.super.s_state);
    if (state & EXT_STATE_ERROR)
        note(check, "super block: damage was found while the volume was mounted");
    else if (!(state & EXT_STATE_VALID))
        note(check, "super block: the volume was not unmounted");
    if (check->ext.geometry.incompat & EXT_INCOMPAT_RECOVER)
        note(check, "super block: the journal is to be replayed first; mount the volume once");
    int rc = check_journal(check);
    if (rc == 0)
        rc = check_inodes(check);
    if (rc == 0)
        rc = check_directories(check);
    if (rc == 0)
        rc = check_space(check);
    if (rc < 0 || !check->report->repair)
        return rc;
    struct ext *ext = &check->ext;
    if (check->report->wrong == check->report->repaired) {
        state = (uint16_t)((state | EXT_STATE_VALID) & ~EXT_STATE_ERROR);
        ext->super_dirty |= state != le16_load(ext->super.s_state);
        le16_store(&ext->super.s_state, state);
    } else { /* the totals come last, so they were not mended: keep them as they are */
        ext->free_blocks = super_free_blocks(check);
        ext->free_inodes = le32_load(ext->super.s_free_inodes_count);
    }
    rc = ext_super_store(ext);
    return rc < 0 ? rc : buffer_sync(ext->buffers);
}

static void check_close(struct check *check) {
    for (uint32_t group = 0; check->groups && group < check->ext.geometry.groups; group++) {
        free(check->groups[group].blocks);
        free(check->groups[group].inodes);
    }
    free(check->groups);
    ext_groups_release(&check->ext);
    free(check->dirs);
    free(check->attribute_blocks);
    volume_destroy_bare(&check->volume);
    free(check);
}

int ext_check(struct device *device, const struct log *log, struct check_report *report) {
    struct check *check = calloc(1, sizeof(*check));
    if (!check)
        return -ENOMEM;
    const struct log findings = {log_to_finding, check, log ? log->threshold : LOG_LEVEL_WARNING};
    check->report = report;
    check->volume.read_only = !report->repair;
    int rc = volume_init_bare(&check->volume, device, &findings, CHECK_CACHE_BYTES);
    if (rc < 0) {
        free(check);
        return rc;
    }
    rc = check_open(check);
    if (rc == 0)
        rc = check_volume(check);
    check_close(check);
    /* Damage that ended the examination has been reported as a finding. */
    return report->wrong > 0 && (rc == -EUCLEAN || rc == -ENOTSUP) ? 0 : rc;
}
