/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the checksums of a damaged ext image, so that what is behind them is reached: super block,
 * descriptors, bitmaps, inodes, directories, extent and attribute blocks, and the journal with the
 * blocks that it holds. Structures are found as far as the damage lets them be.
 *
 * Invariant: nothing outside the image is touched, and every walk ends, whatever the bytes say.
 */
#include <sys/stat.h>

#include "layouts/ext/checksum.h"
#include "layouts/ext/crc.h"
#include "layouts/ext/journal.h"
#include "tests/hostile/subject.h"

#define NODES_MAX   4096u /* of one inode's tree */
#define JOURNAL_MAX 8192u /* blocks */

struct repair {
    uint8_t *image; /* borrowed */
    uint64_t size;
    struct ext_geometry geometry;
};

struct owner { /* the inode whose tree is walked */
    struct repair *repair;
    uint64_t ino;
    uint32_t generation;
    bool directory;
    uint32_t nodes;    /* met so far */
    uint64_t *journal; /* blocks of the journal in order, or NULL */
    uint32_t journal_count;
};

/* The block, or NULL: it lies outside. */
static void *block_at(const struct repair *repair, uint64_t block) {
    uint32_t size = repair->geometry.block_size;
    return block < repair->size / size ? repair->image + block * size : NULL;
}

/* --- extent trees and what they lead to ------------------------------------------------------- */

static void repair_extent(struct owner *owner, const struct ext_disk_extent *extent) {
    const struct repair *repair = owner->repair;
    uint64_t first = le32_load(extent->ee_start_lo) | (uint64_t)le16_load(extent->ee_start_hi)
                                                          << 32;
    uint32_t length = le16_load(extent->ee_len);
    for (uint32_t i = 0; i < length; i++) {
        void *block = block_at(repair, first + i);
        if (!block)
            return;
        if (owner->directory)
            ext_dir_checksum_set(&repair->geometry, owner->ino, owner->generation, block);
        if (owner->journal && owner->journal_count < JOURNAL_MAX)
            owner->journal[owner->journal_count++] = first + i;
    }
}

static void repair_node(struct owner *owner, struct ext_disk_extent_header *header, uint32_t size,
                        uint32_t depth) {
    const struct repair *repair = owner->repair;
    uint32_t count = le16_load(header->eh_entries);
    uint32_t room = (size - (uint32_t)sizeof(*header)) / (uint32_t)sizeof(struct ext_disk_extent);
    for (uint32_t i = 0; i < count && i < room && owner->nodes < NODES_MAX; i++) {
        const struct ext_disk_extent *extent = (struct ext_disk_extent *)(header + 1) + i;
        const struct ext_disk_extent_index *index =
            (struct ext_disk_extent_index *)(header + 1) + i;
        if (depth == 0) {
            repair_extent(owner, extent);
            continue;
        }
        struct ext_disk_extent_header *child = block_at(
            repair, le32_load(index->ei_leaf_lo) | (uint64_t)le16_load(index->ei_leaf_hi) << 32);
        owner->nodes++;
        if (!child)
            continue;
        repair_node(owner, child, repair->geometry.block_size, depth - 1);
        if (le16_load(child->eh_max) < repair->geometry.block_size / sizeof(*extent))
            ext_extent_block_checksum_set(&repair->geometry, owner->ino, owner->generation, child);
    }
}

/* --- the journal ------------------------------------------------------------------------------ */

/* The tags' checksums of the blocks that follow block `at`, and the descriptor's own. */
static void repair_descriptor(const struct owner *owner, const struct ext_log *log, uint32_t at,
                              uint8_t *block) {
    const struct ext_disk_journal_header *header = (const void *)block;
    uint32_t sequence = be32_load(header->h_sequence), flags = 0;
    uint32_t end = log->block_size - (uint32_t)sizeof(struct ext_disk_journal_tail);
    uint32_t offset = sizeof(*header);
    while (!(flags & EXT_JOURNAL_TAG_LAST) &&
           offset + sizeof(struct ext_disk_journal_tag3) <= end) {
        struct ext_disk_journal_tag3 *tag = (void *)(block + offset);
        at = ext_log_step(log, at, 1);
        const void *data = block_at(owner->repair, owner->journal[at]);
        be32_store(&tag->t_checksum, ext_log_data_checksum(log, sequence, data));
        flags = be32_load(tag->t_flags);
        offset += (uint32_t)sizeof(*tag) + (flags & EXT_JOURNAL_TAG_SAME_UUID ? 0 : 16);
    }
}

static void repair_control(const struct owner *owner, const struct ext_log *log, uint32_t at) {
    uint8_t *block = block_at(owner->repair, owner->journal[at]);
    const struct ext_disk_journal_header *header = (const void *)block;
    if (be32_load(header->h_magic) != EXT_JOURNAL_MAGIC)
        return;
    switch (be32_load(header->h_blocktype)) {
    case EXT_JOURNAL_DESCRIPTOR:
        repair_descriptor(owner, log, at, block);
        /* fall through */
    case EXT_JOURNAL_REVOKE:
        be32_store(&ext_log_tail(log, block)->t_checksum, ext_log_tail_checksum(log, block));
        break;
    case EXT_JOURNAL_COMMIT: {
        struct ext_disk_journal_commit *commit = (void *)block;
        be32_store(&commit->h_chksum[0], ext_log_commit_checksum(log, block));
        break;
    }
    default:
        break;
    }
}

/* Logs with checksums of version 3, as this layout writes them. */
static void repair_journal(const struct owner *owner) {
    if (owner->journal_count < 2)
        return;
    struct ext_disk_journal_super *super = block_at(owner->repair, owner->journal[0]);
    if (!(be32_load(super->s_feature_incompat) & EXT_JOURNAL_INCOMPAT_CSUM_V3))
        return;
    be32_store(&super->s_checksum, 0);
    be32_store(&super->s_checksum, crc32c(EXT_CRC_START, super, sizeof(*super)));
    const struct ext_log log = {
        .block_size = owner->repair->geometry.block_size,
        .first = 1,
        .end = owner->journal_count,
        .incompat = be32_load(super->s_feature_incompat),
        .checksums = true,
        .seed = crc32c(EXT_CRC_START, super->s_uuid, sizeof(super->s_uuid)),
    };
    for (uint32_t at = 1; at < owner->journal_count; at++)
        repair_control(owner, &log, at);
}

/* --- inodes ----------------------------------------------------------------------------------- */

static void repair_inode(struct repair *repair, uint64_t ino, struct ext_disk_inode *record) {
    static uint64_t journal[JOURNAL_MAX];
    struct owner owner = {
        .repair = repair,
        .ino = ino,
        .generation = le32_load(record->i_generation),
        .directory = S_ISDIR(le16_load(record->i_mode)),
        .journal = ino == EXT_JOURNAL_INO ? journal : NULL,
    };
    struct ext_disk_extent_header *root = (void *)record->i_block;
    uint64_t number = le32_load(record->i_file_acl) | (uint64_t)le16_load(record->i_file_acl_high)
                                                          << 32;
    void *attributes = number ? block_at(repair, number) : NULL;
    if (attributes)
        ext_xattr_checksum_set(&repair->geometry, number, attributes);
    if (le32_load(record->i_flags) & EXT_INODE_EXTENTS &&
        le16_load(root->eh_depth) <= EXT_EXTENT_DEPTH_MAX)
        repair_node(&owner, root, sizeof(record->i_block), le16_load(root->eh_depth));
    if (owner.journal)
        repair_journal(&owner);
    ext_inode_checksum_set(&repair->geometry, ino, record);
}

static void repair_table(struct repair *repair, uint32_t group, uint64_t table) {
    const struct ext_geometry *g = &repair->geometry;
    uint64_t start = table * g->block_size;
    for (uint32_t i = 0; i < g->inodes_per_group; i++) {
        uint64_t offset = start + (uint64_t)i * g->inode_size;
        if (table >= g->blocks_count || offset + g->inode_size > repair->size)
            return;
        struct ext_disk_inode *record = (void *)(repair->image + offset);
        if (le16_load(record->i_mode) != 0)
            repair_inode(repair, (uint64_t)group * g->inodes_per_group + i + 1, record);
    }
}

/* --- groups ----------------------------------------------------------------------------------- */

static uint64_t halves(const struct ext_geometry *geometry, le32 low, const le32 *high) {
    bool wide = geometry->descriptor_size > EXT_GROUP_SIZE_SHORT;
    return le32_load(low) | (wide ? (uint64_t)le32_load(*high) << 32 : 0);
}

static void bitmap_checksum_store(const struct ext_geometry *geometry, uint32_t checksum, le16 *low,
                                  le16 *high) {
    le16_store(low, (uint16_t)checksum);
    if (geometry->descriptor_size > EXT_GROUP_SIZE_SHORT)
        le16_store(high, (uint16_t)(checksum >> 16));
}

static void repair_group(struct repair *repair, uint32_t group, struct ext_disk_group *disk) {
    const struct ext_geometry *g = &repair->geometry;
    const void *blocks =
        block_at(repair, halves(g, disk->bg_block_bitmap, &disk->bg_block_bitmap_hi));
    const void *inodes =
        block_at(repair, halves(g, disk->bg_inode_bitmap, &disk->bg_inode_bitmap_hi));
    repair_table(repair, group, halves(g, disk->bg_inode_table, &disk->bg_inode_table_hi));
    if (blocks && ext_has_checksums(g))
        bitmap_checksum_store(g, ext_block_bitmap_checksum(g, blocks), &disk->bg_block_bitmap_csum,
                              &disk->bg_block_bitmap_csum_hi);
    if (inodes && ext_has_checksums(g))
        bitmap_checksum_store(g, ext_inode_bitmap_checksum(g, inodes), &disk->bg_inode_bitmap_csum,
                              &disk->bg_inode_bitmap_csum_hi);
    ext_group_checksum_set(g, group, disk);
}

void ext_repair(uint8_t *image, uint64_t size) {
    struct repair repair = {.image = image, .size = size};
    struct ext_geometry *g = &repair.geometry;
    struct ext_disk_super *super = (void *)(image + EXT_SUPER_OFFSET);
    if (size < EXT_SUPER_OFFSET + sizeof(*super))
        return;
    ext_super_checksum_set(super);
    if (ext_geometry_load(super, size, "image", NULL, g) < 0 || !ext_has_group_checksums(g))
        return;
    ext_checksum_identify(super, g);
    uint32_t per_block = ext_descriptors_per_block(g);
    for (uint32_t group = 0; group < g->groups; group++) {
        void *block = block_at(&repair, ext_descriptor_block(g, group / per_block));
        if (block)
            repair_group(&repair, group, ext_descriptor_at(g, block, group % per_block));
    }
}
