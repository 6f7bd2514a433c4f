/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over format.h only.
 * Where things lie on a volume, by arithmetic on its super block. Used by mount, mkfs and check.
 *
 * Invariants of a geometry that ext_geometry_load accepted:
 *  1. block_size is 1024, 2048 or 4096; blocks_count * block_size <= the device's size, and
 *     blocks_count < 2^48.
 *  2. groups >= 1 and every group has at least one block; groups * inodes_per_group is
 *     inodes_count, which fits in 32 bits.
 *  3. A group's bitmaps fit in one block each; what lies at a group's start fits in every group.
 *     Without flex_bg, bitmaps and inode table fit in a full group, too.
 */
#include "layouts/ext/checksum.h"

#include <errno.h>
#include <inttypes.h>

#define BLOCKS_END   (UINT64_C(1) << 48) /* what an extent reaches */
#define LOG_FLEX_MAX 31u

/* --- arithmetic ------------------------------------------------------------------------------- */

static bool is_power_of(uint32_t number, uint32_t base) {
    while (number > 1 && number % base == 0)
        number /= base;
    return number == 1;
}

bool ext_group_has_super(const struct ext_geometry *geometry, uint32_t group) {
    if (group == 0)
        return true;
    if (geometry->compat & EXT_COMPAT_SPARSE_SUPER2)
        return group == geometry->backup_groups[0] || group == geometry->backup_groups[1];
    if (group == 1 || !(geometry->ro_compat & EXT_RO_COMPAT_SPARSE_SUPER))
        return true;
    return group % 2 != 0 &&
           (is_power_of(group, 3) || is_power_of(group, 5) || is_power_of(group, 7));
}

/* meta_bg: as many groups as one block has descriptors are a meta group, which keeps that block in
 * its first group and copies in its second and last. */
static bool in_meta_group(const struct ext_geometry *geometry, uint32_t group) {
    return geometry->incompat & EXT_INCOMPAT_META_BG &&
           group / ext_descriptors_per_block(geometry) >= geometry->first_meta_bg;
}

uint32_t ext_group_descriptor_blocks(const struct ext_geometry *geometry, uint32_t group) {
    if (in_meta_group(geometry, group)) {
        uint32_t per_block = ext_descriptors_per_block(geometry), place = group % per_block;
        return place <= 1 || place == per_block - 1;
    }
    if (!ext_group_has_super(geometry, group))
        return 0;
    return geometry->incompat & EXT_INCOMPAT_META_BG ? geometry->first_meta_bg
                                                     : geometry->descriptor_blocks;
}

uint32_t ext_group_overhead(const struct ext_geometry *geometry, uint32_t group) {
    bool super = ext_group_has_super(geometry, group);
    uint32_t blocks = super + ext_group_descriptor_blocks(geometry, group);
    if (super && !in_meta_group(geometry, group))
        blocks += geometry->reserved_descriptor_blocks;
    return blocks;
}

uint64_t ext_descriptor_block(const struct ext_geometry *geometry, uint32_t index) {
    uint32_t group = index * ext_descriptors_per_block(geometry);
    if (!in_meta_group(geometry, group))
        return geometry->first_data_block + 1 + (uint64_t)index;
    return ext_group_first_block(geometry, group) + ext_group_has_super(geometry, group);
}

uint64_t ext_group_first_block(const struct ext_geometry *geometry, uint32_t group) {
    return geometry->first_data_block + (uint64_t)group * geometry->blocks_per_group;
}

uint32_t ext_group_block_count(const struct ext_geometry *geometry, uint32_t group) {
    uint64_t left = geometry->blocks_count - ext_group_first_block(geometry, group);
    return left < geometry->blocks_per_group ? (uint32_t)left : geometry->blocks_per_group;
}

uint64_t ext_geometry_overhead(const struct ext_geometry *geometry) {
    uint64_t blocks = geometry->first_data_block +
                      (uint64_t)geometry->groups * (2 + geometry->inode_table_blocks);
    for (uint32_t group = 0; group < geometry->groups; group++)
        blocks += ext_group_overhead(geometry, group);
    return blocks;
}

/* --- validation ------------------------------------------------------------------------------- */

struct load {
    const char *name;
    const struct log *log;
};

static int corrupt(const struct load *load, const char *field, uint64_t value,
                   const char *expected) {
    log_error(load->log, "%s: super block: %s is %" PRIu64 ", expected %s", load->name, field,
              value, expected);
    return -EUCLEAN;
}

static int load_revision(const struct load *load, const struct ext_disk_super *super,
                         struct ext_geometry *geometry) {
    if (le16_load(super->s_magic) != EXT_MAGIC)
        return corrupt(load, "s_magic", le16_load(super->s_magic), "61267 (0xEF53)");
    uint32_t revision = le32_load(super->s_rev_level);
    if (revision > 1) {
        log_error(load->log, "%s: super block: revision %" PRIu32 " is not supported", load->name,
                  revision);
        return -ENOTSUP;
    }
    geometry->inode_size = EXT_INODE_BASE_SIZE;
    geometry->first_ino = EXT_FIRST_INO_REV0;
    geometry->descriptor_size = EXT_GROUP_SIZE_SHORT;
    if (revision == 0)
        return 0;
    geometry->inode_size = le16_load(super->s_inode_size);
    geometry->first_ino = le32_load(super->s_first_ino);
    geometry->compat = le32_load(super->s_feature_compat);
    geometry->incompat = le32_load(super->s_feature_incompat);
    geometry->ro_compat = le32_load(super->s_feature_ro_compat);
    if (!ext_super_checksum_valid(super)) {
        log_error(load->log, "%s: super block: its checksum is wrong; run e2fsck", load->name);
        return -EUCLEAN;
    }
    geometry->backup_groups[0] = le32_load(super->s_backup_bgs[0]);
    geometry->backup_groups[1] = le32_load(super->s_backup_bgs[1]);
    return 0;
}

static int load_blocks(const struct load *load, const struct ext_disk_super *super,
                       uint64_t device_size, struct ext_geometry *geometry) {
    uint32_t shift = le32_load(super->s_log_block_size);
    if (shift > 6)
        return corrupt(load, "s_log_block_size", shift, "0 to 2");
    if (shift > 2) {
        log_error(load->log,
                  "%s: super block: blocks of %u bytes are not supported, only 1024, 2048 and 4096",
                  load->name, 1024u << shift);
        return -ENOTSUP;
    }
    if (geometry->ro_compat & EXT_RO_COMPAT_BIGALLOC) {
        log_error(load->log,
                  "%s: super block: feature \"bigalloc\" (clusters of several blocks) is not "
                  "supported",
                  load->name);
        return -ENOTSUP;
    }
    geometry->block_size = 1024u << shift;
    geometry->block_bits = 10 + shift;
    geometry->first_data_block = le32_load(super->s_first_data_block);
    if (geometry->first_data_block != (shift == 0 ? 1 : 0))
        return corrupt(load, "s_first_data_block", geometry->first_data_block,
                       shift == 0 ? "1" : "0");
    geometry->blocks_count =
        ext_blocks_load(super, super->s_blocks_count, super->s_blocks_count_hi);
    if (geometry->blocks_count <= geometry->first_data_block)
        return corrupt(load, "s_blocks_count", geometry->blocks_count, "at least one block");
    if (geometry->blocks_count > device_size >> geometry->block_bits) {
        log_error(load->log,
                  "%s: super block: s_blocks_count is %" PRIu64 ", but the device has only %" PRIu64
                  " blocks of %" PRIu32 " bytes: it is truncated",
                  load->name, geometry->blocks_count, device_size >> geometry->block_bits,
                  geometry->block_size);
        return -EUCLEAN;
    }
    if (geometry->blocks_count >= BLOCKS_END)
        return corrupt(load, "s_blocks_count", geometry->blocks_count, "less than 2^48");
    uint64_t reserved = ext_blocks_load(super, super->s_r_blocks_count, super->s_r_blocks_count_hi);
    if (reserved > geometry->blocks_count)
        return corrupt(load, "s_r_blocks_count", reserved, "at most s_blocks_count");
    return 0;
}

static int load_groups(const struct load *load, const struct ext_disk_super *super,
                       struct ext_geometry *geometry) {
    uint32_t bitmap_bits = geometry->block_size * 8;
    geometry->blocks_per_group = le32_load(super->s_blocks_per_group);
    if (geometry->blocks_per_group < 8 || geometry->blocks_per_group > bitmap_bits ||
        geometry->blocks_per_group % 8 != 0)
        return corrupt(load, "s_blocks_per_group", geometry->blocks_per_group,
                       "a multiple of 8 that one bitmap block holds");
    geometry->inodes_per_group = le32_load(super->s_inodes_per_group);
    if (geometry->inodes_per_group < 8 || geometry->inodes_per_group > bitmap_bits)
        return corrupt(load, "s_inodes_per_group", geometry->inodes_per_group,
                       "8 to what one bitmap block holds");
    uint64_t data_blocks = geometry->blocks_count - geometry->first_data_block;
    uint64_t groups = (data_blocks + geometry->blocks_per_group - 1) / geometry->blocks_per_group;
    if (groups > UINT32_MAX)
        return corrupt(load, "s_blocks_count", geometry->blocks_count, "fewer than 2^32 groups");
    geometry->groups = (uint32_t)groups;
    geometry->inodes_count = le32_load(super->s_inodes_count);
    if ((uint64_t)geometry->groups * geometry->inodes_per_group != geometry->inodes_count)
        return corrupt(load, "s_inodes_count", geometry->inodes_count,
                       "the number of groups times s_inodes_per_group");
    return 0;
}

static int load_inodes(const struct load *load, struct ext_geometry *geometry) {
    uint32_t size = geometry->inode_size;
    if (size < EXT_INODE_BASE_SIZE || size > geometry->block_size || (size & (size - 1)) != 0)
        return corrupt(load, "s_inode_size", size, "a power of two from 128 to the block size");
    if (geometry->first_ino < EXT_FIRST_INO_REV0 || geometry->first_ino > geometry->inodes_count)
        return corrupt(load, "s_first_ino", geometry->first_ino, "11 to s_inodes_count");
    uint64_t bytes = (uint64_t)geometry->inodes_per_group * size;
    geometry->inode_table_blocks =
        (uint32_t)((bytes + geometry->block_size - 1) >> geometry->block_bits);
    return 0;
}

static int load_descriptors(const struct load *load, const struct ext_disk_super *super,
                            struct ext_geometry *geometry) {
    if (geometry->incompat & EXT_INCOMPAT_64BIT) {
        uint32_t size = le16_load(super->s_desc_size);
        if (size < sizeof(struct ext_disk_group) || size > geometry->block_size ||
            (size & (size - 1)) != 0)
            return corrupt(load, "s_desc_size", size, "a power of two from 64 to the block size");
        geometry->descriptor_size = size;
    }
    uint32_t per_block = ext_descriptors_per_block(geometry);
    geometry->descriptor_blocks = (geometry->groups - 1) / per_block + 1;
    if (geometry->incompat & EXT_INCOMPAT_META_BG) {
        geometry->first_meta_bg = le32_load(super->s_first_meta_bg);
        if (geometry->first_meta_bg > geometry->descriptor_blocks)
            return corrupt(load, "s_first_meta_bg", geometry->first_meta_bg,
                           "at most the number of descriptor blocks");
    }
    geometry->flex_groups = 1;
    if (geometry->incompat & EXT_INCOMPAT_FLEX_BG) {
        if (super->s_log_groups_per_flex > LOG_FLEX_MAX)
            return corrupt(load, "s_log_groups_per_flex", super->s_log_groups_per_flex,
                           "at most 31");
        geometry->flex_groups = 1u << super->s_log_groups_per_flex;
    }
    geometry->reserved_descriptor_blocks = le16_load(super->s_reserved_gdt_blocks);
    if (geometry->reserved_descriptor_blocks > geometry->block_size / 4)
        return corrupt(load, "s_reserved_gdt_blocks", geometry->reserved_descriptor_blocks,
                       "at most a quarter of the block size");
    uint64_t fixed = ext_group_overhead(geometry, 0);
    if (!(geometry->incompat & EXT_INCOMPAT_FLEX_BG))
        fixed += 2 + (uint64_t)geometry->inode_table_blocks;
    if (fixed > ext_group_block_count(geometry, 0)) {
        log_error(load->log,
                  "%s: super block: the metadata of group 0 needs %" PRIu64
                  " blocks, but the group has %" PRIu32,
                  load->name, fixed, ext_group_block_count(geometry, 0));
        return -EUCLEAN;
    }
    return 0;
}

int ext_geometry_load(const struct ext_disk_super *super, uint64_t device_size, const char *name,
                      const struct log *log, struct ext_geometry *geometry) {
    const struct load load = {.name = name, .log = log};
    *geometry = (struct ext_geometry){0};
    int error = load_revision(&load, super, geometry);
    if (!error)
        error = load_blocks(&load, super, device_size, geometry);
    if (!error)
        error = load_groups(&load, super, geometry);
    if (!error)
        error = load_inodes(&load, geometry);
    if (!error)
        error = load_descriptors(&load, super, geometry);
    ext_checksum_identify(super, geometry);
    return error;
}
