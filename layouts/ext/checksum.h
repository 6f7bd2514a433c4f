/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over geometry and crc.h. The checksums of every structure, to set and to
 * check. Nothing is read, kept or logged here: mount, mkfs, check and tests share it.
 *
 * With metadata_csum every structure has one, CRC-32C from a seed that depends on the volume, so
 * that another volume's block is not taken for this one's. Without it, but with uninit_bg, group
 * descriptors have a CRC-16. Where the volume has no checksums, setting does nothing and everything
 * is valid.
 *
 * Source of the facts: the Linux kernel's Documentation/filesystems/ext4/checksums.rst, and the
 * pages on the structures beside it.
 */
#ifndef LAYOUTFS_EXT_CHECKSUM_H
#define LAYOUTFS_EXT_CHECKSUM_H

#include "layouts/ext/ext.h"

/* Fills the geometry's checksum_seed and uuid_crc16 from the super block. */
void ext_checksum_identify(const struct ext_disk_super *super, struct ext_geometry *geometry);

static inline bool ext_has_checksums(const struct ext_geometry *geometry) {
    return geometry->ro_compat & EXT_RO_COMPAT_METADATA_CSUM;
}
/* Do group descriptors have checksums, of either kind? Only then do their flags mean something. */
static inline bool ext_has_group_checksums(const struct ext_geometry *geometry) {
    return geometry->ro_compat & (EXT_RO_COMPAT_METADATA_CSUM | EXT_RO_COMPAT_GDT_CSUM);
}

/* The super block goes by its own features. */
void ext_super_checksum_set(struct ext_disk_super *super);
bool ext_super_checksum_valid(const struct ext_disk_super *super);

/* The descriptor is geometry->descriptor_size bytes. Set last of its fields. */
void ext_group_checksum_set(const struct ext_geometry *geometry, uint32_t group,
                            struct ext_disk_group *descriptor);
bool ext_group_checksum_valid(const struct ext_geometry *geometry, uint32_t group,
                              const struct ext_disk_group *descriptor);

/* What the group's descriptor should say of its bitmaps: 0 without checksums, 16 bits of it in a
 * short descriptor. */
uint32_t ext_block_bitmap_checksum(const struct ext_geometry *geometry, const void *bitmap);
uint32_t ext_inode_bitmap_checksum(const struct ext_geometry *geometry, const void *bitmap);

/* The record is geometry->inode_size bytes. */
void ext_inode_checksum_set(const struct ext_geometry *geometry, uint64_t ino,
                            struct ext_disk_inode *record);
bool ext_inode_checksum_valid(const struct ext_geometry *geometry, uint64_t ino,
                              const struct ext_disk_inode *record);

/* Blocks that belong to an inode are bound to it and to its generation. */

/* A block of a directory: of entries, with the tail in place, or of its index; which of the two,
 * its first entries say. One whose tail (or index header) makes no sense is not valid; setting then
 * does nothing. */
void ext_dir_checksum_set(const struct ext_geometry *geometry, uint64_t ino, uint32_t generation,
                          void *block);
bool ext_dir_checksum_valid(const struct ext_geometry *geometry, uint64_t ino, uint32_t generation,
                            const void *block);
/* EXT_DX_ROOT_ENTRIES or EXT_DX_NODE_ENTRIES when the block's entries cover an index (on a volume
 * with checksums: entries proper end before the tail), else 0. */
uint32_t ext_dir_index_offset(const struct ext_geometry *geometry, const void *block);
/* Writes the tail, whose checksum is not set yet. Entries end before it. */
void ext_dir_tail_write(const struct ext_geometry *geometry, void *block);
/* Bytes that entries may fill. */
static inline uint32_t ext_dir_block_room(const struct ext_geometry *geometry) {
    return geometry->block_size -
           (ext_has_checksums(geometry) ? (uint32_t)sizeof(struct ext_disk_dir_tail) : 0);
}
/* Entries of an index block; the tail takes one's place. */
static inline uint32_t ext_dx_limit(const struct ext_geometry *geometry, uint32_t entries_offset) {
    return (geometry->block_size - entries_offset) / (uint32_t)sizeof(struct ext_disk_dx_entry) -
           (ext_has_checksums(geometry) ? 1 : 0);
}

/* A block of a file's extent tree (not its root in the inode). The place follows from eh_max, which
 * must have been compared with the block's size. */
void ext_extent_block_checksum_set(const struct ext_geometry *geometry, uint64_t ino,
                                   uint32_t generation, void *block);
bool ext_extent_block_checksum_valid(const struct ext_geometry *geometry, uint64_t ino,
                                     uint32_t generation, const void *block);

/* A block of attributes is bound to its number: inodes share it. */
void ext_xattr_checksum_set(const struct ext_geometry *geometry, uint64_t number, void *block);
bool ext_xattr_checksum_valid(const struct ext_geometry *geometry, uint64_t number,
                              const void *block);

/* A block of the orphan file: inode numbers, then a tail; bound to the file and the number. */
void ext_orphan_checksum_set(const struct ext_geometry *geometry, uint64_t ino, uint32_t generation,
                             uint64_t number, void *block);
bool ext_orphan_checksum_valid(const struct ext_geometry *geometry, uint64_t ino,
                               uint32_t generation, uint64_t number, const void *block);

bool ext_mmp_checksum_valid(const struct ext_geometry *geometry, const void *block);

#endif
