/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, part of check. Every inode record: is it in use, does it make sense, which
 * blocks does it hold, and does anybody else hold them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/ext/check.h"
#include "layouts/ext/checksum.h"

#define TABLE_CHUNK       (64u << 10)
#define POINTERS_REPORTED 4u /* bad ones of one inode that are told one by one */

/* One inode under examination. */
struct subject {
    struct check *check;
    uint64_t ino;
    const struct ext_disk_inode *record;
    uint64_t blocks;      /* held: data, the map's, attributes */
    uint64_t data_blocks; /* of which data */
    uint64_t end;         /* last data block that is written + 1 */
    uint32_t bad_pointers;
};

static uint64_t record_size(const struct ext *ext, const struct ext_disk_inode *record) {
    uint64_t size = le32_load(record->i_size);
    if (S_ISREG(le16_load(record->i_mode)) || ext->geometry.incompat & EXT_INCOMPAT_LARGEDIR)
        size |= (uint64_t)le32_load(record->i_size_high) << 32;
    return size;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void pointer_wrong(struct subject *subject, const struct ext_walk_step *step,
                          const char *why) {
    if (subject->bad_pointers++ >= POINTERS_REPORTED)
        return;
    if (step->wrong && step->block == 0) {
        check_wrong(subject->check, "inode %" PRIu64 ": the root of its extent tree %s; run e2fsck",
                    subject->ino, why);
        return;
    }
    check_wrong(subject->check,
                "inode %" PRIu64 ": %s %" PRIu64 " for logical block %" PRIu64 " %s; run e2fsck",
                subject->ino, step->level ? "map block" : "block", step->block, step->logical, why);
}

/* Is the block one of those set aside for descriptors, in the first group or in the others? */
static bool reserved_for_descriptors(const struct ext_geometry *geometry, uint64_t block,
                                     bool first_group) {
    if (!ext_block_valid(geometry, block))
        return false;
    uint32_t group = ext_group_of_block(geometry, block);
    uint64_t offset = block - ext_group_first_block(geometry, group);
    return (group == 0) == first_group && offset > geometry->descriptor_blocks &&
           offset < ext_group_overhead(geometry, group);
}

/* The resize inode's map leads through reserved descriptor blocks of group 0 to their copies. */
static int visit_resize(struct subject *subject, const struct ext_walk_step *step) {
    const struct ext_geometry *geometry = &subject->check->ext.geometry;
    if (!reserved_for_descriptors(geometry, step->block, step->level == 1)) {
        pointer_wrong(subject, step, "is not reserved for descriptors");
        return EXT_WALK_SKIP;
    }
    subject->blocks++;
    return EXT_WALK_ENTER;
}

/* Claims the step's blocks. 1: done; 0: somebody has one of them; or an error. */
static int claim_blocks(struct subject *subject, const struct ext_walk_step *step) {
    for (uint32_t i = 0; i < step->count; i++) {
        int rc = check_claim(subject->check, step->block + i);
        if (rc <= 0)
            return rc;
    }
    return 1;
}

static int visit_pointer(void *context, const struct ext_walk_step *step) {
    struct subject *subject = context;
    struct check *check = subject->check;
    if (step->wrong) {
        pointer_wrong(subject, step, step->wrong);
        return EXT_WALK_SKIP;
    }
    if (subject->ino == EXT_RESIZE_INO && step->level < 2)
        return visit_resize(subject, step);
    if (!ext_blocks_are_data(&check->ext, step->block, step->count)) {
        pointer_wrong(subject, step, "lies outside the volume or in a group's metadata");
        return EXT_WALK_SKIP;
    }
    int rc = claim_blocks(subject, step);
    if (rc < 0)
        return rc;
    if (rc == 0) {
        pointer_wrong(subject, step, "is held by something else, too");
        return EXT_WALK_SKIP;
    }
    subject->blocks += step->count;
    if (step->level == 0) {
        subject->data_blocks += step->count;
        /* What is preallocated may lie behind the end of the file. */
        if (!step->unwritten)
            subject->end = step->logical + step->count;
    }
    return EXT_WALK_ENTER;
}

/* Values of attributes in other inodes count as the owner's blocks. */
static int count_values(struct subject *subject, uint64_t block) {
    struct ext *ext = &subject->check->ext;
    struct buffer *buffer = NULL;
    int rc = block ? buffer_get(ext->buffers, block, PURPOSE_XATTR, &buffer) : 0;
    if (rc < 0)
        return rc;
    subject->blocks += ext_xattr_inode_blocks(&ext->geometry, subject->record,
                                              buffer ? buffer_data(buffer) : NULL);
    buffer_put(buffer);
    return 0;
}

static int note_attributes(struct subject *subject) {
    struct check *check = subject->check;
    uint64_t block = ext_record_file_acl(&check->ext, subject->record);
    bool values = check->ext.geometry.incompat & EXT_INCOMPAT_EA_INODE;
    if (block == 0)
        return values ? count_values(subject, 0) : 0;
    if (!ext_blocks_are_data(&check->ext, block, 1)) {
        check_wrong(check,
                    "inode %" PRIu64 ": attribute block %" PRIu64
                    " lies outside the volume or in a group's metadata; run e2fsck",
                    subject->ino, block);
        return 0;
    }
    subject->blocks++;
    int rc = check_grow((void **)&check->attribute_blocks, check->attribute_count,
                        &check->attribute_room, sizeof(*check->attribute_blocks));
    if (rc == 0)
        check->attribute_blocks[check->attribute_count++] = block;
    return rc == 0 && values ? count_values(subject, block) : rc;
}

/* --- one inode -------------------------------------------------------------------------------- */

static bool known_type(uint32_t mode) {
    return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) || S_ISCHR(mode) || S_ISBLK(mode) ||
           S_ISFIFO(mode) || S_ISSOCK(mode);
}

static void check_fields(struct subject *subject) {
    struct check *check = subject->check;
    const struct ext_geometry *geometry = &check->ext.geometry;
    const struct ext_disk_inode *record = subject->record;
    uint32_t flags = le32_load(record->i_flags);
    if (le32_load(record->i_dtime) != 0)
        check_wrong(check, "inode %" PRIu64 ": in use, but i_dtime says that it was deleted",
                    subject->ino);
    if (flags & ext_inode_flags_unknown(geometry))
        check_wrong(check,
                    "inode %" PRIu64 ": i_flags 0x%" PRIx32
                    " ask for a feature that the super block does not announce; run e2fsck",
                    subject->ino, flags);
    if (flags & EXT_INODE_EXTENTS && flags & EXT_INODE_INLINE_DATA)
        check_wrong(check, "inode %" PRIu64 ": has both extents and contents inside; run e2fsck",
                    subject->ino);
    if ((flags & EXT_INODE_INDEX) && !S_ISDIR(le16_load(record->i_mode)))
        check_wrong(check, "inode %" PRIu64 ": has an index, but is no directory; run e2fsck",
                    subject->ino);
    if (geometry->inode_size > EXT_INODE_BASE_SIZE) {
        uint32_t extra = le16_load(record->i_extra_isize);
        if (extra % 4 != 0 || extra > geometry->inode_size - EXT_INODE_BASE_SIZE)
            check_wrong(check,
                        "inode %" PRIu64 ": i_extra_isize is %" PRIu32
                        ", expected a multiple of 4 of at most %" PRIu32 "; run e2fsck",
                        subject->ino, extra, geometry->inode_size - EXT_INODE_BASE_SIZE);
    }
}

static void check_symlink_size(struct subject *subject, uint64_t size) {
    const struct ext_disk_inode *record = subject->record;
    const char *target = (const char *)record->i_block;
    bool fast = !ext_walk_has_map(&subject->check->ext, record);
    bool fits = fast ? size > 0 && size < sizeof(record->i_block) &&
                           strnlen(target, sizeof(record->i_block)) == size
                     : size < subject->check->ext.geometry.block_size && subject->end == 1;
    if (!fits)
        check_wrong(subject->check,
                    "inode %" PRIu64 ": symbolic link: i_size %" PRIu64
                    " does not match its target; run e2fsck",
                    subject->ino, size);
}

/* Contents in the inode: a directory fills its place, others may. */
static void check_inline_size(struct subject *subject, uint64_t size) {
    int64_t room = ext_inline_read(&subject->check->ext, subject->record, NULL);
    bool directory = S_ISDIR(le16_load(subject->record->i_mode));
    if (room < 0)
        check_wrong(subject->check,
                    "inode %" PRIu64 ": its contents are to lie in the inode, whose attribute "
                    "system.data is missing or makes no sense; run e2fsck",
                    subject->ino);
    else if (directory ? size != (uint64_t)room : size > (uint64_t)room)
        check_wrong(subject->check,
                    "inode %" PRIu64 ": i_size is %" PRIu64 ", but the inode has room for %" PRId64
                    " bytes; run e2fsck",
                    subject->ino, size, room);
}

static void check_size(struct subject *subject) {
    struct check *check = subject->check;
    const struct ext_geometry *geometry = &check->ext.geometry;
    uint32_t mode = le16_load(subject->record->i_mode);
    uint64_t size = record_size(&check->ext, subject->record);
    if (le32_load(subject->record->i_flags) & EXT_INODE_INLINE_DATA) {
        check_inline_size(subject, size);
        return;
    }
    uint64_t end = subject->end << geometry->block_bits;
    if (S_ISLNK(mode))
        check_symlink_size(subject, size);
    else if (S_ISDIR(mode) && (size != end || subject->data_blocks != subject->end || size == 0))
        check_wrong(check,
                    "inode %" PRIu64 ": directory: i_size is %" PRIu64 ", but %" PRIu64
                    " blocks lie below byte %" PRIu64 "; run e2fsck",
                    subject->ino, size, subject->data_blocks, end);
    else if (S_ISREG(mode) && end > 0 && end - geometry->block_size >= size)
        check_wrong(check,
                    "inode %" PRIu64 ": i_size is %" PRIu64
                    ", but it holds blocks up to byte %" PRIu64 "; run e2fsck",
                    subject->ino, size, end);
    if (S_ISREG(mode) && size > INT32_MAX && !(geometry->ro_compat & EXT_RO_COMPAT_LARGE_FILE))
        check_wrong(check,
                    "inode %" PRIu64 ": i_size is %" PRIu64
                    ", but the super block lacks the feature large_file; run e2fsck",
                    subject->ino, size);
}

static int check_map(struct subject *subject) {
    struct check *check = subject->check;
    int rc = note_attributes(subject);
    if (rc == 0 && ext_walk_has_map(&check->ext, subject->record))
        rc = ext_walk_map(&check->ext, subject->ino, subject->record, visit_pointer, subject);
    if (rc < 0)
        return rc;
    if (subject->bad_pointers > POINTERS_REPORTED)
        check_wrong(check, "inode %" PRIu64 ": %" PRIu32 " bad block numbers in all", subject->ino,
                    subject->bad_pointers);
    if (subject->bad_pointers > 0)
        return 0; /* size and count cannot be right */
    uint64_t sectors = subject->blocks * (check->ext.geometry.block_size / 512);
    if (ext_record_sectors(&check->ext, subject->record) != sectors)
        check_wrong(check,
                    "inode %" PRIu64 ": i_blocks is %" PRIu64 ", expected %" PRIu64 "; run e2fsck",
                    subject->ino, ext_record_sectors(&check->ext, subject->record), sectors);
    if (subject->ino != EXT_RESIZE_INO)
        check_size(subject);
    return 0;
}

static int note_directory(struct check *check, uint64_t ino, struct check_group *group) {
    group->directories++;
    int rc =
        check_grow((void **)&check->dirs, check->dir_count, &check->dir_room, sizeof(*check->dirs));
    if (rc == 0)
        check->dirs[check->dir_count++] = (struct check_dir){.ino = (uint32_t)ino};
    return rc;
}

static int note_in_use(struct subject *subject) {
    struct check *check = subject->check;
    const struct ext_geometry *geometry = &check->ext.geometry;
    struct check_group *group = &check->groups[ext_group_of_inode(geometry, subject->ino)];
    uint32_t mode = le16_load(subject->record->i_mode);
    if (!group->inodes)
        group->inodes = calloc(geometry->inodes_per_group, sizeof(*group->inodes));
    if (!group->inodes)
        return -ENOMEM;
    struct check_inode *inode = &group->inodes[(subject->ino - 1) % geometry->inodes_per_group];
    inode->type = (uint8_t)(mode >> 12);
    inode->links = le16_load(subject->record->i_links_count);
    if (le32_load(subject->record->i_flags) &
        EXT_INODE_EA_INODE) /* entries of attributes name it */
        inode->names = inode->links;
    return S_ISDIR(mode) ? note_directory(check, subject->ino, group) : 0;
}

static int check_record(struct check *check, uint64_t ino, const struct ext_disk_inode *record) {
    struct subject subject = {.check = check, .ino = ino, .record = record};
    if (ino == EXT_BAD_BLOCKS_INO) /* has blocks, but no type, name or links */
        return ext_walk_map(&check->ext, ino, record, visit_pointer, &subject);
    if (le16_load(record->i_links_count) == 0)
        return 0;
    if (!ext_inode_checksum_valid(&check->ext.geometry, ino, record))
        check_wrong(check, "inode %" PRIu64 ": its checksum is wrong; run e2fsck", ino);
    if (!known_type(le16_load(record->i_mode))) {
        check_wrong(check, "inode %" PRIu64 ": i_mode 0%o has no known type; run e2fsck", ino,
                    le16_load(record->i_mode));
        return 0;
    }
    check_fields(&subject);
    int rc = note_in_use(&subject);
    return rc < 0 ? rc : check_map(&subject);
}

/* --- attribute blocks ------------------------------------------------------------------------- */

static int compare_blocks(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int check_attribute_block(struct check *check, uint64_t block, size_t references) {
    int rc = check_claim(check, block);
    if (rc < 0)
        return rc;
    if (rc == 0)
        check_wrong(check, "attribute block %" PRIu64 " is held by a file, too; run e2fsck", block);
    struct buffer *buffer;
    rc = buffer_get(check->ext.buffers, block, PURPOSE_XATTR, &buffer);
    if (rc < 0)
        return rc;
    struct ext_disk_xattr_header *header = buffer_data(buffer);
    uint32_t recorded = le32_load(header->h_refcount);
    if (le32_load(header->h_magic) != EXT_XATTR_MAGIC || le32_load(header->h_blocks) != 1) {
        check_wrong(check, "attribute block %" PRIu64 ": it has no valid header; run e2fsck",
                    block);
    } else if (!ext_xattr_checksum_valid(&check->ext.geometry, block, header)) {
        check_wrong(check, "attribute block %" PRIu64 ": its checksum is wrong; run e2fsck", block);
    } else if (recorded != references) {
        check_wrong(check,
                    "attribute block %" PRIu64 ": h_refcount is %" PRIu32 ", but %zu inodes use it",
                    block, recorded, references);
        if (check_repair(check)) {
            le32_store(&header->h_refcount, (uint32_t)references);
            ext_xattr_checksum_set(&check->ext.geometry, block, header);
            buffer_dirty(buffer);
        }
    }
    buffer_put(buffer);
    return 0;
}

/* Inodes may share a block of attributes. */
static int check_attribute_blocks(struct check *check) {
    const uint64_t *blocks = check->attribute_blocks;
    size_t count;
    if (check->attribute_count == 0)
        return 0;
    qsort(check->attribute_blocks, check->attribute_count, sizeof(*blocks), compare_blocks);
    for (size_t i = 0; i < check->attribute_count; i += count) {
        for (count = 1; i + count < check->attribute_count && blocks[i + count] == blocks[i];)
            count++;
        int rc = check_attribute_block(check, blocks[i], count);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* The whole table is read, past the bitmap, which may be what is wrong. */
static int check_table(struct check *check, uint32_t group, uint8_t *chunk) {
    const struct ext_geometry *geometry = &check->ext.geometry;
    uint64_t start = check->ext.groups[group].inode_table << geometry->block_bits;
    uint64_t end = (uint64_t)geometry->inode_table_blocks << geometry->block_bits;
    uint64_t ino = (uint64_t)group * geometry->inodes_per_group;
    uint64_t last = ino + geometry->inodes_per_group - check->ext.groups[group].unused_inodes;
    if (check->ext.groups[group].flags & EXT_GROUP_INODES_UNSET)
        return 0;
    for (uint64_t offset = 0; offset < end && ino < last; offset += TABLE_CHUNK) {
        uint32_t length = end - offset < TABLE_CHUNK ? (uint32_t)(end - offset) : TABLE_CHUNK;
        int rc = device_read(check->volume.device, start + offset, chunk, length, PURPOSE_INODE);
        for (uint32_t at = 0; rc == 0 && at < length && ino < last; at += geometry->inode_size)
            rc = check_record(check, ++ino, (const struct ext_disk_inode *)(chunk + at));
        if (rc < 0)
            return rc;
    }
    return 0;
}

int check_inodes(struct check *check) {
    uint32_t groups = check->ext.geometry.groups;
    /* A record of 128 bytes is shorter than the structure: room for reading past the last one. */
    uint8_t *chunk = calloc(1, TABLE_CHUNK + sizeof(struct ext_disk_inode));
    int rc = chunk ? 0 : -ENOMEM;
    for (uint32_t group = 0; group < groups && rc == 0; group++) {
        rc = check_table(check, group, chunk);
        if (check->report->progress)
            check->report->progress(check->report->context, group + 1, groups);
    }
    free(chunk);
    return rc < 0 ? rc : check_attribute_blocks(check);
}
