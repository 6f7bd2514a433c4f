/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, private to format*.c.
 *
 *   format_options.c   what is wished for
 *   format_plan.c      how large everything is and where it lies: arithmetic, nothing is written
 *   format.c           the writes
 */
#ifndef LAYOUTFS_EXT_MKFS_H
#define LAYOUTFS_EXT_MKFS_H

#include "layouts/ext/checksum.h"

#define LOST_FOUND_INO 11u

struct format {
    struct device *device;
    const struct log *log;
    struct ext_geometry geometry;
    uint32_t inodes_wanted;  /* 0: one block's worth of bytes each */
    uint32_t reserved_parts; /* ten-thousandths of a percent */
    uint32_t lost_found_blocks;
    uint64_t data_block; /* the root's, then those of lost+found */
    uint64_t resize_map; /* the resize inode's double indirect block */
    /* What is in use, beside that at the groups' starts; ascending once the plan is made. */
    struct ext_zone *used; /* owned */
    uint32_t used_count, used_room;
    uint64_t free_blocks;
    bool journal;
    uint32_t errors, hash_version;
    char label[16];
    uint32_t root_uid, root_gid;
    uint8_t uuid[16];
    uint32_t hash_seed[4];
    uint32_t now;
    void *descriptors; /* owned; descriptor_blocks whole blocks */
    uint8_t *block;    /* owned; two blocks of scratch */
};

/* -EINVAL, with the sentence. */
int format_refuse(const struct format *format, const char *sentence);
static inline uint64_t divide_up(uint64_t number, uint64_t by) {
    return (number + by - 1) / by;
}

/* Features, UUID, hash seed, label. */
int format_options(struct format *format, const struct options *options);
/* "5", "0.5", "12.0625" percent into ten-thousandths of a percent. */
int format_percentage(const struct format *format, const char *text, uint32_t *parts);

/* Everything but what is written: geometry, descriptors (without checksums), what is in use. */
int format_plan(struct format *format, const struct options *options);
/* The resize inode's nominal size: all that a double indirect map reaches. */
uint64_t format_resize_inode_size(const struct ext_geometry *geometry);
static inline struct ext_disk_group *format_descriptor(const struct format *format,
                                                       uint32_t group) {
    return ext_descriptor_at(&format->geometry, format->descriptors, group);
}
/* The parts of the group's blocks that are in use, beside those at its start, one after the other:
 * *index starts with format_used_first. False: no more. */
uint32_t format_used_first(const struct format *format, uint32_t group);
bool format_used_next(const struct format *format, uint32_t group, uint32_t *index, uint32_t *bit,
                      uint32_t *count);

#endif
