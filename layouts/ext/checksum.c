/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over crc.h. Interface: layouts/ext/checksum.h.
 *
 * A structure's own checksum counts as zeros, or ends it and is left out.
 */
#include "layouts/ext/checksum.h"

#include <string.h>

#include "layouts/ext/crc.h"

#define DOT_SIZE               12u /* of the entry "." */
#define MMP_CHECKSUM_OFFSET    1020u
#define EXTENT_HEADER_SIZE     12u
#define EXTENT_ENTRY_SIZE      12u
#define EXTENT_MAX_OFFSET      4u /* of eh_max in the header */
#define INODE_HIGH_EXTRA_LEAST 4u /* i_extra_isize that covers i_checksum_hi */

static uint32_t crc_le32(uint32_t crc, uint32_t value) {
    le32 bytes;
    le32_store(&bytes, value);
    return crc32c(crc, &bytes, sizeof(bytes));
}

static uint32_t crc_le64(uint32_t crc, uint64_t value) {
    le64 bytes;
    le64_store(&bytes, value);
    return crc32c(crc, &bytes, sizeof(bytes));
}

/* The bytes [0, size), with those of the field at `offset` taken for zeros. */
static uint32_t crc_without(uint32_t crc, const void *data, size_t size, size_t offset,
                            size_t field_size) {
    static const uint8_t zeros[8];
    const uint8_t *bytes = data;
    size_t rest = offset + field_size;
    crc = crc32c(crc, bytes, offset);
    crc = crc32c(crc, zeros, field_size);
    return crc32c(crc, bytes + rest, size - rest);
}

static uint32_t owner_seed(const struct ext_geometry *geometry, uint64_t ino, uint32_t generation) {
    return crc_le32(crc_le32(geometry->checksum_seed, (uint32_t)ino), generation);
}

void ext_checksum_identify(const struct ext_disk_super *super, struct ext_geometry *geometry) {
    if (geometry->incompat & EXT_INCOMPAT_CSUM_SEED)
        geometry->checksum_seed = le32_load(super->s_checksum_seed);
    else
        geometry->checksum_seed = crc32c(EXT_CRC_START, super->s_uuid, sizeof(super->s_uuid));
    geometry->uuid_crc16 = ext_crc16(UINT16_MAX, super->s_uuid, sizeof(super->s_uuid));
}

/* --- super block ------------------------------------------------------------------------------ */

static bool super_has_checksum(const struct ext_disk_super *super) {
    return le32_load(super->s_rev_level) > 0 &&
           le32_load(super->s_feature_ro_compat) & EXT_RO_COMPAT_METADATA_CSUM;
}

static uint32_t super_checksum(const struct ext_disk_super *super) {
    return crc32c(EXT_CRC_START, super, offsetof(struct ext_disk_super, s_checksum));
}

void ext_super_checksum_set(struct ext_disk_super *super) {
    if (super_has_checksum(super))
        le32_store(&super->s_checksum, super_checksum(super));
}

bool ext_super_checksum_valid(const struct ext_disk_super *super) {
    return !super_has_checksum(super) || (super->s_checksum_type == EXT_CHECKSUM_CRC32C &&
                                          le32_load(super->s_checksum) == super_checksum(super));
}

/* --- groups ----------------------------------------------------------------------------------- */

/* CRC-16 leaves its own field out instead of counting zeros. */
static uint16_t group_checksum_16(const struct ext_geometry *geometry, uint32_t group,
                                  const struct ext_disk_group *descriptor) {
    const size_t offset = offsetof(struct ext_disk_group, bg_checksum);
    const size_t rest = offset + sizeof(descriptor->bg_checksum);
    le32 number;
    le32_store(&number, group);
    uint16_t crc = ext_crc16(geometry->uuid_crc16, &number, sizeof(number));
    crc = ext_crc16(crc, descriptor, offset);
    return ext_crc16(crc, (const uint8_t *)descriptor + rest, geometry->descriptor_size - rest);
}

static uint16_t group_checksum(const struct ext_geometry *geometry, uint32_t group,
                               const struct ext_disk_group *descriptor) {
    if (!ext_has_checksums(geometry))
        return group_checksum_16(geometry, group, descriptor);
    return (uint16_t)crc_without(
        crc_le32(geometry->checksum_seed, group), descriptor, geometry->descriptor_size,
        offsetof(struct ext_disk_group, bg_checksum), sizeof(descriptor->bg_checksum));
}

void ext_group_checksum_set(const struct ext_geometry *geometry, uint32_t group,
                            struct ext_disk_group *descriptor) {
    if (ext_has_group_checksums(geometry))
        le16_store(&descriptor->bg_checksum, group_checksum(geometry, group, descriptor));
}

bool ext_group_checksum_valid(const struct ext_geometry *geometry, uint32_t group,
                              const struct ext_disk_group *descriptor) {
    return !ext_has_group_checksums(geometry) ||
           le16_load(descriptor->bg_checksum) == group_checksum(geometry, group, descriptor);
}

static uint32_t bitmap_checksum(const struct ext_geometry *geometry, const void *bitmap,
                                uint32_t bits) {
    if (!ext_has_checksums(geometry))
        return 0;
    uint32_t crc = crc32c(geometry->checksum_seed, bitmap, bits / 8);
    return geometry->descriptor_size >= sizeof(struct ext_disk_group) ? crc : crc & UINT16_MAX;
}

uint32_t ext_block_bitmap_checksum(const struct ext_geometry *geometry, const void *bitmap) {
    return bitmap_checksum(geometry, bitmap, geometry->blocks_per_group);
}

uint32_t ext_inode_bitmap_checksum(const struct ext_geometry *geometry, const void *bitmap) {
    return bitmap_checksum(geometry, bitmap, geometry->inodes_per_group);
}

/* --- inodes ----------------------------------------------------------------------------------- */

static bool inode_has_high(const struct ext_geometry *geometry,
                           const struct ext_disk_inode *record) {
    return geometry->inode_size > EXT_INODE_BASE_SIZE &&
           le16_load(record->i_extra_isize) >= INODE_HIGH_EXTRA_LEAST;
}

static uint32_t inode_checksum(const struct ext_geometry *geometry, uint64_t ino,
                               const struct ext_disk_inode *record) {
    const size_t high = offsetof(struct ext_disk_inode, i_checksum_hi);
    const size_t field = sizeof(record->i_checksum_hi);
    uint32_t crc = owner_seed(geometry, ino, le32_load(record->i_generation));
    crc = crc_without(crc, record, EXT_INODE_BASE_SIZE,
                      offsetof(struct ext_disk_inode, i_checksum_lo), field);
    const uint8_t *rest = (const uint8_t *)record + EXT_INODE_BASE_SIZE;
    size_t size = geometry->inode_size - EXT_INODE_BASE_SIZE;
    if (inode_has_high(geometry, record))
        return crc_without(crc, rest, size, high - EXT_INODE_BASE_SIZE, field);
    return crc32c(crc, rest, size) & UINT16_MAX;
}

void ext_inode_checksum_set(const struct ext_geometry *geometry, uint64_t ino,
                            struct ext_disk_inode *record) {
    if (!ext_has_checksums(geometry))
        return;
    uint32_t crc = inode_checksum(geometry, ino, record);
    le16_store(&record->i_checksum_lo, (uint16_t)crc);
    if (inode_has_high(geometry, record))
        le16_store(&record->i_checksum_hi, (uint16_t)(crc >> 16));
}

bool ext_inode_checksum_valid(const struct ext_geometry *geometry, uint64_t ino,
                              const struct ext_disk_inode *record) {
    if (!ext_has_checksums(geometry))
        return true;
    uint32_t found = le16_load(record->i_checksum_lo);
    if (inode_has_high(geometry, record))
        found |= (uint32_t)le16_load(record->i_checksum_hi) << 16;
    return found == inode_checksum(geometry, ino, record);
}

/* --- directories ------------------------------------------------------------------------------ */

static uint32_t dir_tail_offset(const struct ext_geometry *geometry) {
    return geometry->block_size - (uint32_t)sizeof(struct ext_disk_dir_tail);
}

void ext_dir_tail_write(const struct ext_geometry *geometry, void *block) {
    if (!ext_has_checksums(geometry))
        return;
    struct ext_disk_dir_tail *tail = (void *)((uint8_t *)block + dir_tail_offset(geometry));
    memset(tail, 0, sizeof(*tail));
    le16_store(&tail->rec_len, sizeof(*tail));
    tail->file_type = EXT_FT_CHECKSUM;
}

/* Where the tail of an index block is; 0: its count and limit make no sense. */
static size_t dx_tail_offset(const struct ext_geometry *geometry, const void *block,
                             uint32_t entries_offset) {
    const struct ext_disk_dx_countlimit *header =
        (const void *)((const uint8_t *)block + entries_offset);
    uint32_t limit = le16_load(header->limit);
    if (limit > ext_dx_limit(geometry, entries_offset) || le16_load(header->count) > limit)
        return 0;
    return entries_offset + limit * sizeof(struct ext_disk_dx_entry);
}

static uint32_t dx_checksum(const struct ext_geometry *geometry, uint32_t seed, const void *block,
                            uint32_t entries_offset, size_t tail_offset) {
    const uint8_t *bytes = block;
    const struct ext_disk_dx_countlimit *header = (const void *)(bytes + entries_offset);
    size_t used = le16_load(header->count) * sizeof(struct ext_disk_dx_entry);
    return crc_without(crc32c(seed, block, entries_offset + used), bytes + tail_offset,
                       sizeof(struct ext_disk_dx_tail),
                       offsetof(struct ext_disk_dx_tail, dt_checksum), sizeof(le32));
}

uint32_t ext_dir_index_offset(const struct ext_geometry *geometry, const void *block) {
    const struct ext_disk_dirent *first = block;
    uint32_t size = le16_load(first->rec_len);
    if (size == geometry->block_size && le32_load(first->inode) == 0)
        return EXT_DX_NODE_ENTRIES;
    const struct ext_disk_dirent *second = (const void *)((const uint8_t *)block + DOT_SIZE);
    if (size == DOT_SIZE && le16_load(second->rec_len) == geometry->block_size - DOT_SIZE)
        return EXT_DX_ROOT_ENTRIES;
    return 0;
}

/* Where the block's checksum is, and what it should be. False: the block has no place for it. */
static bool dir_checksum(const struct ext_geometry *geometry, uint64_t ino, uint32_t generation,
                         const void *block, size_t *offset, uint32_t *checksum) {
    uint32_t seed = owner_seed(geometry, ino, generation);
    uint32_t entries_offset = ext_dir_index_offset(geometry, block);
    if (entries_offset != 0) {
        size_t tail = dx_tail_offset(geometry, block, entries_offset);
        if (tail == 0)
            return false;
        *offset = tail + offsetof(struct ext_disk_dx_tail, dt_checksum);
        *checksum = dx_checksum(geometry, seed, block, entries_offset, tail);
        return true;
    }
    const struct ext_disk_dir_tail *tail =
        (const void *)((const uint8_t *)block + dir_tail_offset(geometry));
    *offset = dir_tail_offset(geometry) + offsetof(struct ext_disk_dir_tail, checksum);
    *checksum = crc32c(seed, block, dir_tail_offset(geometry));
    return le32_load(tail->inode) == 0 && le16_load(tail->rec_len) == sizeof(*tail) &&
           tail->name_len == 0 && tail->file_type == EXT_FT_CHECKSUM;
}

void ext_dir_checksum_set(const struct ext_geometry *geometry, uint64_t ino, uint32_t generation,
                          void *block) {
    size_t offset;
    uint32_t checksum;
    if (ext_has_checksums(geometry) &&
        dir_checksum(geometry, ino, generation, block, &offset, &checksum))
        le32_store((le32 *)((uint8_t *)block + offset), checksum);
}

bool ext_dir_checksum_valid(const struct ext_geometry *geometry, uint64_t ino, uint32_t generation,
                            const void *block) {
    size_t offset;
    uint32_t checksum;
    return !ext_has_checksums(geometry) ||
           (dir_checksum(geometry, ino, generation, block, &offset, &checksum) &&
            le32_load(*(const le32 *)((const uint8_t *)block + offset)) == checksum);
}

/* --- extents ---------------------------------------------------------------------------------- */

static uint32_t extent_tail_offset(const void *block) {
    const le16 *max = (const void *)((const uint8_t *)block + EXTENT_MAX_OFFSET);
    return EXTENT_HEADER_SIZE + EXTENT_ENTRY_SIZE * le16_load(*max);
}

static uint32_t extent_checksum(const struct ext_geometry *geometry, uint64_t ino,
                                uint32_t generation, const void *block) {
    return crc32c(owner_seed(geometry, ino, generation), block, extent_tail_offset(block));
}

void ext_extent_block_checksum_set(const struct ext_geometry *geometry, uint64_t ino,
                                   uint32_t generation, void *block) {
    if (!ext_has_checksums(geometry))
        return;
    le32 *tail = (void *)((uint8_t *)block + extent_tail_offset(block));
    le32_store(tail, extent_checksum(geometry, ino, generation, block));
}

bool ext_extent_block_checksum_valid(const struct ext_geometry *geometry, uint64_t ino,
                                     uint32_t generation, const void *block) {
    if (!ext_has_checksums(geometry))
        return true;
    const le32 *tail = (const void *)((const uint8_t *)block + extent_tail_offset(block));
    return extent_tail_offset(block) + sizeof(*tail) <= geometry->block_size &&
           le32_load(*tail) == extent_checksum(geometry, ino, generation, block);
}

/* --- attributes, orphans, multi-mount protection ---------------------------------------------- */

static uint32_t xattr_checksum(const struct ext_geometry *geometry, uint64_t number,
                               const struct ext_disk_xattr_header *header) {
    return crc_without(crc_le64(geometry->checksum_seed, number), header, geometry->block_size,
                       offsetof(struct ext_disk_xattr_header, h_checksum),
                       sizeof(header->h_checksum));
}

void ext_xattr_checksum_set(const struct ext_geometry *geometry, uint64_t number, void *block) {
    struct ext_disk_xattr_header *header = block;
    if (ext_has_checksums(geometry))
        le32_store(&header->h_checksum, xattr_checksum(geometry, number, header));
}

bool ext_xattr_checksum_valid(const struct ext_geometry *geometry, uint64_t number,
                              const void *block) {
    const struct ext_disk_xattr_header *header = block;
    return !ext_has_checksums(geometry) ||
           le32_load(header->h_checksum) == xattr_checksum(geometry, number, header);
}

static size_t orphan_tail_offset(const struct ext_geometry *geometry) {
    return geometry->block_size - sizeof(struct ext_disk_orphan_tail);
}

static uint32_t orphan_checksum(const struct ext_geometry *geometry, uint64_t ino,
                                uint32_t generation, uint64_t number, const void *block) {
    return crc32c(crc_le64(owner_seed(geometry, ino, generation), number), block,
                  orphan_tail_offset(geometry));
}

void ext_orphan_checksum_set(const struct ext_geometry *geometry, uint64_t ino, uint32_t generation,
                             uint64_t number, void *block) {
    if (!ext_has_checksums(geometry))
        return;
    struct ext_disk_orphan_tail *tail = (void *)((uint8_t *)block + orphan_tail_offset(geometry));
    le32_store(&tail->ob_checksum, orphan_checksum(geometry, ino, generation, number, block));
}

bool ext_orphan_checksum_valid(const struct ext_geometry *geometry, uint64_t ino,
                               uint32_t generation, uint64_t number, const void *block) {
    const struct ext_disk_orphan_tail *tail =
        (const void *)((const uint8_t *)block + orphan_tail_offset(geometry));
    return !ext_has_checksums(geometry) ||
           le32_load(tail->ob_checksum) ==
               orphan_checksum(geometry, ino, generation, number, block);
}

bool ext_mmp_checksum_valid(const struct ext_geometry *geometry, const void *block) {
    const le32 *found = (const void *)((const uint8_t *)block + MMP_CHECKSUM_OFFSET);
    return !ext_has_checksums(geometry) ||
           le32_load(*found) == crc32c(geometry->checksum_seed, block, MMP_CHECKSUM_OFFSET);
}
