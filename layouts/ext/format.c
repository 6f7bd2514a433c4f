/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over geometry.c. Makes an empty volume (mkfs).
 *
 * Three steps: wishes (format_options), a plan (pure arithmetic, format_plan), then the writes. The
 * sizes
 * follow mke2fs(8) so that its volumes and ours are equal in all but UUID, time and hash seed:
 * inode tables filled to whole blocks, a last group too short to be worth it dropped, descriptors
 * reserved for a thousandfold growth.
 *
 * Invariants:
 *  1. Memory is bounded by the descriptors (64 bytes a group at most), the runs of blocks
 *     in use and a few blocks, whatever the size.
 *  2. Nothing is written before the plan is known to fit.
 *  3. The first super block is written last: a format cut short leaves no volume to mistake for
 * one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/bitmap.h"
#include "layouts/ext/mkfs.h"

#define EXTRA_INODE_SIZE     32u
#define DEFAULT_MOUNT_OPTS   0xCu         /* user_xattr and acl */
#define SIGNATURE_AREA       (128u << 10) /* where other filesystems keep their magic */
#define MAX_MOUNTS_UNLIMITED 0xFFFFu

/* --- the writes ------------------------------------------------------------------------------- */

static int write_blocks(struct format *format, uint64_t block, const void *data, uint32_t count,
                        enum purpose purpose) {
    uint32_t bits = format->geometry.block_bits;
    return device_write(format->device, block << bits, data, count << bits, purpose);
}

static int zero_blocks(struct format *format, uint64_t block, uint64_t count) {
    uint32_t bits = format->geometry.block_bits;
    return count ? device_zero(format->device, block << bits, count << bits) : 0;
}

/* Old signatures, ours and others', at both ends of the device. */
static int wipe_signatures(struct format *format) {
    uint64_t size = format->device->size;
    uint64_t area = size < SIGNATURE_AREA ? size : SIGNATURE_AREA;
    int error = device_zero(format->device, 0, area);
    return error ? error : device_zero(format->device, size - area, area);
}

/* A block number in a descriptor; `high` lies past a short one. */
static uint64_t descriptor_number(const struct format *format, le32 low, const le32 *high) {
    bool wide = format->geometry.descriptor_size > EXT_GROUP_SIZE_SHORT;
    return le32_load(low) | (wide ? (uint64_t)le32_load(*high) << 32 : 0);
}

static uint64_t group_inode_table(const struct format *format, uint32_t group) {
    const struct ext_disk_group *descriptor = format_descriptor(format, group);
    return descriptor_number(format, descriptor->bg_inode_table, &descriptor->bg_inode_table_hi);
}

static void checksum_note(const struct format *format, uint32_t checksum, le16 *low, le16 *high) {
    le16_store(low, (uint16_t)checksum);
    if (format->geometry.descriptor_size > EXT_GROUP_SIZE_SHORT)
        le16_store(high, (uint16_t)(checksum >> 16));
}

/* Fills the bitmap and notes its checksum. Bits past the group are set: never free. */
static void block_bitmap_make(const struct format *format, uint32_t group, uint8_t *bitmap) {
    const struct ext_geometry *geometry = &format->geometry;
    struct ext_disk_group *descriptor = format_descriptor(format, group);
    uint32_t blocks = ext_group_block_count(geometry, group);
    uint32_t index = format_used_first(format, group), bit, count;
    memset(bitmap, 0, geometry->block_size);
    bitmap_set(bitmap, 0, ext_group_overhead(geometry, group));
    while (format_used_next(format, group, &index, &bit, &count))
        bitmap_set(bitmap, bit, count);
    bitmap_set(bitmap, blocks, geometry->block_size * 8 - blocks);
    checksum_note(format, ext_block_bitmap_checksum(geometry, bitmap),
                  &descriptor->bg_block_bitmap_csum, &descriptor->bg_block_bitmap_csum_hi);
}

static void inode_bitmap_make(const struct format *format, uint32_t group, uint8_t *bitmap) {
    const struct ext_geometry *geometry = &format->geometry;
    struct ext_disk_group *descriptor = format_descriptor(format, group);
    uint32_t inodes = geometry->inodes_per_group;
    memset(bitmap, 0, geometry->block_size);
    bitmap_set(bitmap, 0, inodes - le16_load(descriptor->bg_free_inodes_count));
    bitmap_set(bitmap, inodes, geometry->block_size * 8 - inodes);
    checksum_note(format, ext_inode_bitmap_checksum(geometry, bitmap),
                  &descriptor->bg_inode_bitmap_csum, &descriptor->bg_inode_bitmap_csum_hi);
}

/* Those bitmaps that its descriptor does not declare unwritten, in one write where they are
 * neighbours; then the descriptor is complete. */
static int group_write(struct format *format, uint32_t group) {
    const struct ext_geometry *geometry = &format->geometry;
    struct ext_disk_group *descriptor = format_descriptor(format, group);
    uint32_t flags = le16_load(descriptor->bg_flags);
    uint64_t blocks_at =
        descriptor_number(format, descriptor->bg_block_bitmap, &descriptor->bg_block_bitmap_hi);
    uint64_t inodes_at =
        descriptor_number(format, descriptor->bg_inode_bitmap, &descriptor->bg_inode_bitmap_hi);
    uint8_t *inode_bitmap = format->block + geometry->block_size;
    bool blocks = !(flags & EXT_GROUP_BLOCKS_UNSET), inodes = !(flags & EXT_GROUP_INODES_UNSET);
    bool together = blocks && inodes && inodes_at == blocks_at + 1;
    int error = 0;
    if (blocks)
        block_bitmap_make(format, group, format->block);
    if (inodes)
        inode_bitmap_make(format, group, inode_bitmap);
    if (blocks)
        error = write_blocks(format, blocks_at, format->block, together ? 2 : 1, PURPOSE_BITMAP);
    if (!error && inodes && !together)
        error = write_blocks(format, inodes_at, inode_bitmap, 1, PURPOSE_BITMAP);
    ext_group_checksum_set(geometry, group, descriptor);
    return error;
}

/* Empty inode tables; those that lie side by side in one request. */
static int tables_clear(struct format *format) {
    const struct ext_geometry *geometry = &format->geometry;
    uint64_t start = 0, end = 0;
    int error = 0;
    for (uint32_t group = 0; group < geometry->groups && !error; group++) {
        uint64_t table = group_inode_table(format, group);
        if (table != end) {
            error = zero_blocks(format, start, end - start);
            start = table;
        }
        end = table + geometry->inode_table_blocks;
    }
    return error ? error : zero_blocks(format, start, end - start);
}

static void dirent_put(uint8_t *at, const struct format *format, uint32_t ino, uint32_t rec_len,
                       const char *name) {
    struct ext_disk_dirent *entry = (struct ext_disk_dirent *)at;
    le32_store(&entry->inode, ino);
    le16_store(&entry->rec_len, (uint16_t)rec_len);
    entry->name_len = (uint8_t)strlen(name);
    if (ino && (format->geometry.incompat & EXT_INCOMPAT_FILETYPE))
        entry->file_type = EXT_FT_DIR;
    memcpy(entry->name, name, strlen(name));
}

/* A finished block of a directory. */
static int directory_block_write(struct format *format, uint32_t ino, uint64_t block) {
    ext_dir_tail_write(&format->geometry, format->block);
    ext_dir_checksum_set(&format->geometry, ino, 0, format->block);
    return write_blocks(format, block, format->block, 1, PURPOSE_DIR);
}

static int directories_write(struct format *format) {
    uint32_t size = format->geometry.block_size;
    uint32_t room = ext_dir_block_room(&format->geometry);
    uint8_t *block = format->block;
    memset(block, 0, size);
    dirent_put(block, format, EXT_ROOT_INO, 12, ".");
    dirent_put(block + 12, format, EXT_ROOT_INO, 12, "..");
    dirent_put(block + 24, format, LOST_FOUND_INO, room - 24, "lost+found");
    int error = directory_block_write(format, EXT_ROOT_INO, format->data_block);
    if (error)
        return error;
    memset(block, 0, size);
    dirent_put(block, format, LOST_FOUND_INO, 12, ".");
    dirent_put(block + 12, format, EXT_ROOT_INO, room - 12, "..");
    error = directory_block_write(format, LOST_FOUND_INO, format->data_block + 1);
    memset(block, 0, size);
    dirent_put(block, format, 0, room, "");
    for (uint32_t i = 1; i < format->lost_found_blocks && !error; i++)
        error = directory_block_write(format, LOST_FOUND_INO, format->data_block + 1 + i);
    return error;
}

/* A record shares its block with others, which are kept. */
static int inode_write(struct format *format, uint32_t ino, const struct ext_disk_inode *inode) {
    const struct ext_geometry *geometry = &format->geometry;
    uint32_t group = ext_group_of_inode(geometry, ino);
    uint64_t offset = (uint64_t)((ino - 1) % geometry->inodes_per_group) * geometry->inode_size;
    uint64_t block = group_inode_table(format, group) + (offset >> geometry->block_bits);
    uint32_t bytes = geometry->inode_size < sizeof(*inode) ? geometry->inode_size : sizeof(*inode);
    uint8_t *record = format->block + (offset & (geometry->block_size - 1));
    int error = device_read(format->device, block << geometry->block_bits, format->block,
                            geometry->block_size, PURPOSE_INODE);
    if (error)
        return error;
    memcpy(record, inode, bytes);
    ext_inode_checksum_set(geometry, ino, (struct ext_disk_inode *)record);
    return write_blocks(format, block, format->block, 1, PURPOSE_INODE);
}

static struct ext_disk_inode inode_make(const struct format *format, uint32_t mode, uint32_t links,
                                        uint64_t size, uint64_t blocks) {
    struct ext_disk_inode inode = {0};
    le16_store(&inode.i_mode, (uint16_t)mode);
    le16_store(&inode.i_links_count, (uint16_t)links);
    le32_store(&inode.i_size, (uint32_t)size);
    le32_store(&inode.i_size_high, (uint32_t)(size >> 32));
    le32_store(&inode.i_blocks, (uint32_t)(blocks * (format->geometry.block_size / 512)));
    le32_store(&inode.i_atime, format->now);
    le32_store(&inode.i_ctime, format->now);
    le32_store(&inode.i_mtime, format->now);
    if (mode && format->geometry.inode_size > EXT_INODE_BASE_SIZE) {
        le16_store(&inode.i_extra_isize, EXTRA_INODE_SIZE);
        le32_store(&inode.i_crtime, format->now);
    }
    return inode;
}

/* The inode's map, of one run of few blocks. */
static void map_make(const struct format *format, struct ext_disk_inode *inode, uint64_t block,
                     uint32_t count) {
    if (!(format->geometry.incompat & EXT_INCOMPAT_EXTENTS)) {
        for (uint32_t i = 0; i < count; i++)
            le32_store(&inode->i_block[i], (uint32_t)block + i);
        return;
    }
    struct ext_disk_extent_root root = {0};
    le16_store(&root.header.eh_magic, EXT_EXTENT_MAGIC);
    le16_store(&root.header.eh_entries, 1);
    le16_store(&root.header.eh_max, EXT_EXTENT_ROOT_MAX);
    le16_store(&root.entries[0].ee_len, (uint16_t)count);
    le32_store(&root.entries[0].ee_start_lo, (uint32_t)block);
    le16_store(&root.entries[0].ee_start_hi, (uint16_t)(block >> 32));
    memcpy(inode->i_block, &root, sizeof(root));
    le32_store(&inode->i_flags, EXT_INODE_EXTENTS);
}

static int inodes_write(struct format *format) {
    uint32_t size = format->geometry.block_size;
    uint32_t lost_found = format->lost_found_blocks;
    struct ext_disk_inode bad = inode_make(format, 0, 0, 0, 0);
    struct ext_disk_inode root = inode_make(format, S_IFDIR | 0755, 3, size, 1);
    le16_store(&root.i_uid, (uint16_t)format->root_uid);
    le16_store(&root.i_uid_high, (uint16_t)(format->root_uid >> 16));
    le16_store(&root.i_gid, (uint16_t)format->root_gid);
    le16_store(&root.i_gid_high, (uint16_t)(format->root_gid >> 16));
    struct ext_disk_inode lost =
        inode_make(format, S_IFDIR | 0700, 2, (uint64_t)lost_found * size, lost_found);
    map_make(format, &root, format->data_block, 1);
    map_make(format, &lost, format->data_block + 1, lost_found);
    int error = inode_write(format, EXT_BAD_BLOCKS_INO, &bad);
    if (!error)
        error = inode_write(format, EXT_ROOT_INO, &root);
    if (!error)
        error = inode_write(format, LOST_FOUND_INO, &lost);
    return error;
}

/* A reserved descriptor block of group 0 doubles as an indirect block of the resize inode: it lists
 * its own copies in the groups with a backup. */
static int reserved_descriptor_write(struct format *format, uint64_t block, uint32_t *copies) {
    const struct ext_geometry *geometry = &format->geometry;
    le32 *list = (le32 *)format->block;
    memset(list, 0, geometry->block_size);
    *copies = 0;
    for (uint32_t group = 1; group < geometry->groups; group++) {
        if (ext_group_has_super(geometry, group))
            le32_store(&list[(*copies)++],
                       (uint32_t)(block + (uint64_t)group * geometry->blocks_per_group));
    }
    return write_blocks(format, block, list, 1, PURPOSE_MAP);
}

/* The resize inode owns the reserved descriptor blocks: its double indirect block has one entry for
 * each, at the place (modulo the block's entries) the descriptor block would have in the table. */
static int resize_inode_write(struct format *format) {
    const struct ext_geometry *geometry = &format->geometry;
    if (!(geometry->compat & EXT_COMPAT_RESIZE_INODE))
        return 0;
    uint32_t entries = geometry->block_size / 4;
    uint64_t first = ext_group_first_block(geometry, 0) + 1 + geometry->descriptor_blocks;
    uint64_t map_block = format->resize_map;
    le32 *map = calloc(1, geometry->block_size);
    if (!map)
        return -ENOMEM;
    uint64_t blocks = 1;
    int error = 0;
    for (uint32_t i = 0; i < geometry->reserved_descriptor_blocks && !error; i++) {
        uint32_t copies;
        le32_store(&map[(geometry->descriptor_blocks + i) % entries], (uint32_t)(first + i));
        error = reserved_descriptor_write(format, first + i, &copies);
        blocks += 1 + copies;
    }
    if (!error)
        error = write_blocks(format, map_block, map, 1, PURPOSE_MAP);
    free(map);
    if (error)
        return error;
    struct ext_disk_inode inode =
        inode_make(format, S_IFREG | 0600, 1, format_resize_inode_size(geometry), blocks);
    le32_store(&inode.i_block[EXT_IND + 1], (uint32_t)map_block);
    return inode_write(format, EXT_RESIZE_INO, &inode);
}

static void super_fill(const struct format *format, struct ext_disk_super *super) {
    const struct ext_geometry *geometry = &format->geometry;
    le32_store(&super->s_inodes_count, geometry->inodes_count);
    ext_blocks_store(&super->s_blocks_count, &super->s_blocks_count_hi, geometry->blocks_count);
    uint64_t reserved = geometry->blocks_count * format->reserved_parts / (100 * 10000);
    ext_blocks_store(&super->s_r_blocks_count, &super->s_r_blocks_count_hi, reserved);
    ext_blocks_store(&super->s_free_blocks_count, &super->s_free_blocks_count_hi,
                     format->free_blocks);
    le32_store(&super->s_free_inodes_count, geometry->inodes_count - LOST_FOUND_INO);
    le32_store(&super->s_first_data_block, geometry->first_data_block);
    le32_store(&super->s_log_block_size, geometry->block_bits - 10);
    le32_store(&super->s_log_cluster_size, geometry->block_bits - 10);
    le32_store(&super->s_blocks_per_group, geometry->blocks_per_group);
    le32_store(&super->s_clusters_per_group, geometry->blocks_per_group);
    le32_store(&super->s_inodes_per_group, geometry->inodes_per_group);
    le32_store(&super->s_wtime, format->now);
    le32_store(&super->s_lastcheck, format->now);
    le32_store(&super->s_mkfs_time, format->now);
    le16_store(&super->s_max_mnt_count, MAX_MOUNTS_UNLIMITED);
    le16_store(&super->s_magic, EXT_MAGIC);
    le16_store(&super->s_errors, (uint16_t)format->errors);
    le32_store(&super->s_rev_level, 1);
    le32_store(&super->s_first_ino, geometry->first_ino);
    le16_store(&super->s_inode_size, (uint16_t)geometry->inode_size);
    le32_store(&super->s_feature_compat, geometry->compat);
    le32_store(&super->s_feature_incompat, geometry->incompat);
    le32_store(&super->s_feature_ro_compat, geometry->ro_compat);
    memcpy(super->s_uuid, format->uuid, sizeof(super->s_uuid));
    memcpy(super->s_volume_name, format->label, sizeof(super->s_volume_name));
    le16_store(&super->s_reserved_gdt_blocks, (uint16_t)geometry->reserved_descriptor_blocks);
    for (int i = 0; i < 4; i++)
        le32_store(&super->s_hash_seed[i], format->hash_seed[i]);
    super->s_def_hash_version = (uint8_t)format->hash_version;
    le32_store(&super->s_default_mount_opts, DEFAULT_MOUNT_OPTS);
    if (geometry->inode_size > EXT_INODE_BASE_SIZE) {
        le16_store(&super->s_min_extra_isize, EXTRA_INODE_SIZE);
        le16_store(&super->s_want_extra_isize, EXTRA_INODE_SIZE);
    }
    le32_store(&super->s_flags, EXT_FLAGS_SIGNED_HASH);
    le32_store(&super->s_overhead_clusters, (uint32_t)ext_geometry_overhead(geometry));
}

/* What only some features have fields for. */
static void super_fill_features(const struct format *format, struct ext_disk_super *super) {
    const struct ext_geometry *geometry = &format->geometry;
    if (geometry->incompat & EXT_INCOMPAT_64BIT)
        le16_store(&super->s_desc_size, (uint16_t)geometry->descriptor_size);
    if (geometry->incompat & EXT_INCOMPAT_FLEX_BG)
        super->s_log_groups_per_flex = (uint8_t)__builtin_ctz(geometry->flex_groups);
    if (geometry->compat & EXT_COMPAT_SPARSE_SUPER2)
        for (int i = 0; i < 2; i++)
            le32_store(&super->s_backup_bgs[i], geometry->backup_groups[i]);
    if (ext_has_checksums(geometry))
        super->s_checksum_type = EXT_CHECKSUM_CRC32C;
    if (geometry->incompat & EXT_INCOMPAT_CSUM_SEED)
        le32_store(&super->s_checksum_seed, geometry->checksum_seed);
}

/* The descriptors that lie in the group: all, or with meta_bg the block of its meta group. */
static int descriptors_write(struct format *format, uint32_t group) {
    const struct ext_geometry *geometry = &format->geometry;
    uint32_t count = ext_group_descriptor_blocks(geometry, group);
    uint32_t index =
        geometry->incompat & EXT_INCOMPAT_META_BG ? group / ext_descriptors_per_block(geometry) : 0;
    const uint8_t *data =
        (const uint8_t *)format->descriptors + (size_t)index * geometry->block_size;
    uint64_t block = ext_group_first_block(geometry, group) + ext_group_has_super(geometry, group);
    return count ? write_blocks(format, block, data, count, PURPOSE_SUPER) : 0;
}

/* The super block of one group; copies are not marked clean, as mke2fs's. */
static int super_write(struct format *format, uint32_t group) {
    const struct ext_geometry *geometry = &format->geometry;
    struct ext_disk_super super = {0};
    super_fill(format, &super);
    super_fill_features(format, &super);
    le16_store(&super.s_block_group_nr, (uint16_t)group);
    uint64_t offset = ext_group_first_block(geometry, group) << geometry->block_bits;
    if (group == 0) {
        le16_store(&super.s_state, EXT_STATE_VALID);
        offset = EXT_SUPER_OFFSET;
    }
    ext_super_checksum_set(&super);
    return device_write(format->device, offset, &super, sizeof(super), PURPOSE_SUPER);
}

/* What lies at the group's start. */
static int group_start_write(struct format *format, uint32_t group) {
    const struct ext_geometry *geometry = &format->geometry;
    uint64_t reserved = ext_group_first_block(geometry, group) + 1 + geometry->descriptor_blocks;
    int error = descriptors_write(format, group);
    if (error || !ext_group_has_super(geometry, group))
        return error;
    if (group > 0)
        error = zero_blocks(format, reserved, geometry->reserved_descriptor_blocks);
    return error ? error : super_write(format, group);
}

static int format_write(struct format *format) {
    const struct ext_geometry *geometry = &format->geometry;
    format->block = calloc(2, geometry->block_size);
    if (!format->block)
        return -ENOMEM;
    int error = wipe_signatures(format);
    for (uint32_t group = 0; group < geometry->groups && !error; group++)
        error = group_write(format, group);
    if (!error)
        error = tables_clear(format);
    if (!error)
        error = directories_write(format);
    if (!error)
        error = inodes_write(format);
    if (!error)
        error = resize_inode_write(format);
    for (uint32_t group = geometry->groups; group-- > 0 && !error;)
        error = group_start_write(format, group);
    return error;
}

/* Checksums start from the UUID, even where a seed of its own then keeps them from depending on it.
 */
static void checksums_prepare(struct format *format) {
    struct ext_disk_super super = {0};
    memcpy(super.s_uuid, format->uuid, sizeof(super.s_uuid));
    struct ext_geometry of_uuid = {0};
    ext_checksum_identify(&super, &of_uuid);
    format->geometry.checksum_seed = of_uuid.checksum_seed;
    format->geometry.uuid_crc16 = of_uuid.uuid_crc16;
}

static int journal_add(struct ext *ext, const void *options) {
    return ext_journal_add(ext, options_given(options, "journal_size")
                                    ? (uint64_t)options_number(options, "journal_size")
                                    : 0);
}

int ext_format(struct device *device, const struct options *options) {
    struct format format = {.device = device, .log = options->log};
    format.now = (uint32_t)clock_calendar(device->clock).seconds;
    format.errors = options_given(options, "errors") ? (uint32_t)options_number(options, "errors")
                                                     : EXT_ERRORS_CONTINUE;
    format.hash_version = (uint32_t)options_number(options, "hash");
    int error = format_options(&format, options);
    if (!error)
        error = format_plan(&format, options);
    if (!error) {
        checksums_prepare(&format);
        error = format_write(&format);
        if (error && error != -ENOMEM)
            log_error(format.log, "%s: mkfs: writing failed: %s", device->name, strerror(-error));
    }
    if (!error && format.journal)
        error = ext_edit(device, options->log, journal_add, options);
    free(format.descriptors);
    free(format.used);
    free(format.block);
    return error;
}
