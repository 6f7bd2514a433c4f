/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over geometry.c. Makes an empty volume (mkfs).
 *
 * Two steps: a plan (pure arithmetic, format_plan), then the writes (format_write). The sizes
 * follow mke2fs(8) so that its volumes and ours are equal in all but UUID, time and hash seed:
 * inode tables filled to whole blocks, a last group too short to be worth it dropped, descriptors
 * reserved for a thousandfold growth.
 *
 * Invariants:
 *  1. Memory is bounded by the descriptors (32 bytes a group) and a few blocks, whatever the size.
 *  2. Nothing is written before the plan is known to fit.
 *  3. The first super block is written last: a format cut short leaves no volume to mistake for
 * one.
 */
#include "layouts/ext/ext.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <uuid/uuid.h>

#include "layouts/ext/bitmap.h"

#define LOST_FOUND_INO       11u
#define LOST_FOUND_BYTES     (16u << 10)
#define LAST_GROUP_MIN_DATA  50u /* a last group with fewer data blocks is dropped */
#define EXTRA_INODE_SIZE     32u
#define RESERVED_DECIMALS    4
#define DEFAULT_MOUNT_OPTS   0xCu         /* user_xattr and acl */
#define SIGNATURE_AREA       (128u << 10) /* where other filesystems keep their magic */
#define MAX_MOUNTS_UNLIMITED 0xFFFFu

struct format {
    struct device *device;
    const struct log *log;
    struct ext_geometry geometry;
    uint32_t inodes_wanted;  /* 0: one block's worth of bytes each */
    uint32_t reserved_parts; /* ten-thousandths of a percent */
    uint32_t lost_found_blocks;
    uint64_t data_block;  /* the first block after group 0's metadata */
    uint32_t data_blocks; /* in use from there on: the root, lost+found, the resize inode's map */
    uint64_t free_blocks;
    uint32_t errors, hash_version;
    char label[16];
    uint8_t uuid[16];
    uint32_t hash_seed[4];
    uint32_t now;
    void *descriptors; /* owned; descriptor_blocks whole blocks */
    uint8_t *block;    /* owned; two blocks of scratch */
};

static uint64_t divide_up(uint64_t number, uint64_t by) {
    return (number + by - 1) / by;
}

static int refuse(const struct format *format, const char *sentence) {
    log_error(format->log, "%s: mkfs: %s", format->device->name, sentence);
    return -EINVAL;
}

/* --- options ---------------------------------------------------------------------------------- */

static const struct feature {
    const char *name;
    uint32_t compat, incompat, ro_compat;
} features[] = {
    {.name = "ext_attr", .compat = EXT_COMPAT_EXT_ATTR},
    {.name = "resize_inode", .compat = EXT_COMPAT_RESIZE_INODE},
    {.name = "dir_index", .compat = EXT_COMPAT_DIR_INDEX},
    {.name = "filetype", .incompat = EXT_INCOMPAT_FILETYPE},
    {.name = "sparse_super", .ro_compat = EXT_RO_COMPAT_SPARSE_SUPER},
    {.name = "large_file", .ro_compat = EXT_RO_COMPAT_LARGE_FILE},
};
#define FEATURE_COUNT (sizeof(features) / sizeof(features[0]))

static void feature_set(struct ext_geometry *geometry, const struct feature *feature, bool on) {
    geometry->compat =
        on ? geometry->compat | feature->compat : geometry->compat & ~feature->compat;
    geometry->incompat =
        on ? geometry->incompat | feature->incompat : geometry->incompat & ~feature->incompat;
    geometry->ro_compat =
        on ? geometry->ro_compat | feature->ro_compat : geometry->ro_compat & ~feature->ro_compat;
}

/* One word of the list; `length` bytes at `word`. */
static int feature_parse(struct format *format, const char *word, size_t length) {
    bool on = word[0] != '^';
    const char *name = on ? word : word + 1;
    size_t name_length = on ? length : length - 1;
    bool none = on && name_length == 4 && strncmp(name, "none", 4) == 0;
    bool found = none;
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        bool match = strlen(features[i].name) == name_length &&
                     strncmp(features[i].name, name, name_length) == 0;
        if (match || none)
            feature_set(&format->geometry, &features[i], on && !none);
        found |= match;
    }
    if (found)
        return 0;
    log_error(format->log,
              "%s: mkfs: feature \"%.*s\" is not one of ext_attr, resize_inode, dir_index, "
              "filetype, sparse_super, large_file, none",
              format->device->name, (int)name_length, name);
    return -EINVAL;
}

static int features_parse(struct format *format, const char *list) {
    for (size_t i = 0; i < FEATURE_COUNT; i++)
        feature_set(&format->geometry, &features[i], true);
    while (list && *list) {
        size_t length = strcspn(list, ":,");
        int error = length ? feature_parse(format, list, length) : 0;
        if (error)
            return error;
        list += length + (list[length] != '\0');
    }
    const struct ext_geometry *geometry = &format->geometry;
    if ((geometry->compat & EXT_COMPAT_RESIZE_INODE) &&
        !(geometry->ro_compat & EXT_RO_COMPAT_SPARSE_SUPER))
        return refuse(format, "feature resize_inode needs sparse_super; add ^resize_inode");
    return 0;
}

/* "5", "0.5", "12.0625" percent into ten-thousandths of a percent. */
static int reserved_parse(const struct format *format, const char *text, uint32_t *parts) {
    uint32_t value = 0;
    int decimals = -1; /* digits after the point so far; -1: no point yet */
    bool digits = false;
    for (const char *p = text; *p; p++) {
        if (*p == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (*p < '0' || *p > '9' || decimals == RESERVED_DECIMALS || value > 1000000)
            return refuse(format, "reserved: expected a percentage from 0 to 50, like 5 or 0.5");
        value = value * 10 + (uint32_t)(*p - '0');
        decimals += decimals >= 0;
        digits = true;
    }
    for (int i = decimals < 0 ? 0 : decimals; i < RESERVED_DECIMALS; i++)
        value = value > 1000000 ? value : value * 10;
    if (!digits || value > 50 * 10000)
        return refuse(format, "reserved: expected a percentage from 0 to 50, like 5 or 0.5");
    *parts = value;
    return 0;
}

/* Scrambles 64 bits (the finaliser of SplitMix64, public domain), so that a UUID's neighbours get
 * unrelated hash seeds. */
static uint64_t scramble(uint64_t x) {
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static void seed_from_bytes(const uint8_t bytes[16], uint32_t seed[4]) {
    for (int i = 0; i < 4; i++) {
        uint64_t x = (uint64_t)i + 1;
        for (int j = 0; j < 16; j++)
            x = scramble(x ^ bytes[j]);
        seed[i] = (uint32_t)x;
    }
}

/* A given UUID decides the hash seed too, so that two runs make equal volumes; so does virtual
 * time, where nothing may be random. */
static int identity_parse(struct format *format, const struct options *options) {
    const char *text = options_text(options, "uuid");
    const char *label = options_text(options, "label");
    if (label) {
        if (strlen(label) > sizeof(format->label))
            return refuse(format, "label: at most 16 bytes fit");
        memcpy(format->label, label, strlen(label));
    }
    uint8_t random_seed[16];
    if (text && strcasecmp(text, "random") != 0) {
        if (strcasecmp(text, "clear") == 0)
            uuid_clear(format->uuid);
        else if (uuid_parse(text, format->uuid) != 0)
            return refuse(format, "uuid: expected 8-4-4-4-12 hexadecimal digits, random or clear");
        memcpy(random_seed, format->uuid, sizeof(random_seed));
    } else if (clock_is_virtual(format->device->clock)) {
        memset(format->uuid, 0x11, sizeof(format->uuid));
        memcpy(random_seed, format->uuid, sizeof(random_seed));
    } else {
        uuid_generate(format->uuid);
        uuid_generate(random_seed);
    }
    seed_from_bytes(random_seed, format->hash_seed);
    return 0;
}

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
            return refuse(format, "blocks_per_group: expected a multiple of 8, at most 8 for each "
                                  "byte of a block");
        geometry->blocks_per_group = (uint32_t)given;
    }
    uint64_t bytes = format->device->size & ~(uint64_t)(PAGE_SIZE_BYTES - 1);
    geometry->blocks_count = bytes >> geometry->block_bits;
    if (geometry->blocks_count < LAST_GROUP_MIN_DATA)
        return plan_too_small(format, LAST_GROUP_MIN_DATA);
    if (geometry->blocks_count == UINT64_C(1) << 32)
        geometry->blocks_count--; /* the last block of 16 TiB is out of 32 bits' reach */
    if (geometry->blocks_count > UINT32_MAX)
        return refuse(format, "the device is too large: ext2 counts blocks in 32 bits, so 4 KiB "
                              "blocks reach 16 TiB, 1 KiB blocks 4 TiB");
    return 0;
}

static int plan_wishes(struct format *format, const struct options *options) {
    struct ext_geometry *geometry = &format->geometry;
    geometry->inode_size = (uint32_t)options_number(options, "inode_size");
    geometry->first_ino = EXT_FIRST_INO_REV0;
    geometry->descriptor_size = EXT_GROUP_SIZE_SHORT;
    uint64_t bytes = geometry->blocks_count << geometry->block_bits;
    uint64_t inodes = options_given(options, "inodes")
                          ? (uint64_t)options_number(options, "inodes")
                          : bytes / (uint64_t)options_number(options, "inode_ratio");
    if (inodes > UINT32_MAX)
        return refuse(format, "more than 2^32 inodes: give a larger inode_ratio");
    if (inodes * geometry->inode_size >= bytes)
        return refuse(format, "that many inodes fill the whole device: give a larger inode_ratio "
                              "or fewer inodes");
    format->inodes_wanted = (uint32_t)inodes;
    return reserved_parse(format, options_text(options, "reserved"), &format->reserved_parts);
}

/* The resize inode's nominal size: all that a double indirect map reaches. */
static uint64_t resize_inode_size(const struct ext_geometry *geometry) {
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
                return refuse(format, "too many inodes for so few groups: give a larger "
                                      "inode_ratio or fewer inodes");
            geometry->blocks_per_group -= 8; /* more groups, more inode tables */
            geometry->blocks_count = all_blocks;
            continue;
        }
        geometry->reserved_descriptor_blocks = plan_reserved_descriptors(geometry);
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

static int plan_data(struct format *format) {
    struct ext_geometry *geometry = &format->geometry;
    uint32_t fixed = ext_group_overhead(geometry, 0) + 2 + geometry->inode_table_blocks;
    uint32_t lost_found = LOST_FOUND_BYTES / geometry->block_size;
    format->lost_found_blocks = lost_found < EXT_DIRECT_BLOCKS ? lost_found : EXT_DIRECT_BLOCKS;
    format->data_block = ext_group_first_block(geometry, 0) + fixed;
    format->data_blocks = 1 + format->lost_found_blocks;
    if (geometry->compat & EXT_COMPAT_RESIZE_INODE) {
        format->data_blocks++;
        if (resize_inode_size(geometry) > INT32_MAX)
            geometry->ro_compat |= EXT_RO_COMPAT_LARGE_FILE;
    }
    uint64_t needed = (uint64_t)fixed + format->data_blocks;
    if (needed > ext_group_block_count(geometry, 0))
        return refuse(format, "a group has no room for the descriptors and its inode table: give "
                              "larger blocks, larger groups or fewer inodes");
    format->free_blocks =
        geometry->blocks_count - ext_geometry_overhead(geometry) - format->data_blocks;
    return 0;
}

static int format_plan(struct format *format, const struct options *options) {
    int error = features_parse(format, options_text(options, "features"));
    if (!error)
        error = identity_parse(format, options);
    if (!error)
        error = plan_blocks(format, options);
    if (!error)
        error = plan_wishes(format, options);
    if (!error)
        error = plan_groups(format);
    if (!error)
        error = plan_data(format);
    format->errors = options_given(options, "errors") ? (uint32_t)options_number(options, "errors")
                                                      : EXT_ERRORS_CONTINUE;
    format->hash_version = (uint32_t)options_number(options, "hash");
    return error;
}

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

/* How many of the reserved inodes (and lost+found) are in the group. */
static uint32_t group_used_inodes(const struct ext_geometry *geometry, uint32_t group) {
    uint64_t before = (uint64_t)group * geometry->inodes_per_group;
    if (before >= LOST_FOUND_INO)
        return 0;
    uint64_t left = LOST_FOUND_INO - before;
    return left < geometry->inodes_per_group ? (uint32_t)left : geometry->inodes_per_group;
}

static void group_describe(struct format *format, uint32_t group) {
    const struct ext_geometry *geometry = &format->geometry;
    struct ext_disk_group *descriptor = ext_descriptor_at(geometry, format->descriptors, group);
    uint32_t overhead = ext_group_overhead(geometry, group);
    uint64_t bitmap = ext_group_first_block(geometry, group) + overhead;
    uint32_t used = overhead + 2 + geometry->inode_table_blocks;
    if (group == 0)
        used += format->data_blocks;
    uint32_t directories = 0;
    directories += group == ext_group_of_inode(geometry, EXT_ROOT_INO);
    directories += group == ext_group_of_inode(geometry, LOST_FOUND_INO);
    le32_store(&descriptor->bg_block_bitmap, (uint32_t)bitmap);
    le32_store(&descriptor->bg_inode_bitmap, (uint32_t)bitmap + 1);
    le32_store(&descriptor->bg_inode_table, (uint32_t)bitmap + 2);
    le16_store(&descriptor->bg_free_blocks_count,
               (uint16_t)(ext_group_block_count(geometry, group) - used));
    le16_store(&descriptor->bg_free_inodes_count,
               (uint16_t)(geometry->inodes_per_group - group_used_inodes(geometry, group)));
    le16_store(&descriptor->bg_used_dirs_count, (uint16_t)directories);
}

/* Both bitmaps, which lie side by side, and an empty inode table. */
static int group_write(struct format *format, uint32_t group) {
    const struct ext_geometry *geometry = &format->geometry;
    const struct ext_disk_group *descriptor =
        ext_descriptor_at(geometry, format->descriptors, group);
    uint32_t bitmap_bits = geometry->block_size * 8;
    uint32_t blocks = ext_group_block_count(geometry, group);
    uint32_t used = blocks - le16_load(descriptor->bg_free_blocks_count);
    uint32_t inodes = geometry->inodes_per_group;
    uint8_t *inode_bitmap = format->block + geometry->block_size;
    memset(format->block, 0, 2 * (size_t)geometry->block_size);
    bitmap_set(format->block, 0, used);
    bitmap_set(format->block, blocks, bitmap_bits - blocks); /* past the group: never free */
    bitmap_set(inode_bitmap, 0, group_used_inodes(geometry, group));
    bitmap_set(inode_bitmap, inodes, bitmap_bits - inodes);
    int error = write_blocks(format, le32_load(descriptor->bg_block_bitmap), format->block, 2,
                             PURPOSE_BITMAP);
    if (!error)
        error = zero_blocks(format, le32_load(descriptor->bg_inode_table),
                            geometry->inode_table_blocks);
    return error;
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

static int directories_write(struct format *format) {
    uint32_t size = format->geometry.block_size;
    uint8_t *block = format->block;
    memset(block, 0, size);
    dirent_put(block, format, EXT_ROOT_INO, 12, ".");
    dirent_put(block + 12, format, EXT_ROOT_INO, 12, "..");
    dirent_put(block + 24, format, LOST_FOUND_INO, size - 24, "lost+found");
    int error = write_blocks(format, format->data_block, block, 1, PURPOSE_DIR);
    if (error)
        return error;
    memset(block, 0, size);
    dirent_put(block, format, LOST_FOUND_INO, 12, ".");
    dirent_put(block + 12, format, EXT_ROOT_INO, size - 12, "..");
    error = write_blocks(format, format->data_block + 1, block, 1, PURPOSE_DIR);
    memset(block, 0, size);
    dirent_put(block, format, 0, size, "");
    for (uint32_t i = 1; i < format->lost_found_blocks && !error; i++)
        error = write_blocks(format, format->data_block + 1 + i, block, 1, PURPOSE_DIR);
    return error;
}

/* A record shares its sector with others, which are kept. */
static int inode_write(struct format *format, uint32_t ino, const struct ext_disk_inode *inode) {
    const struct ext_geometry *geometry = &format->geometry;
    uint32_t group = ext_group_of_inode(geometry, ino);
    uint64_t table =
        le32_load(ext_descriptor_at(geometry, format->descriptors, group)->bg_inode_table);
    uint64_t offset = (table << geometry->block_bits) +
                      (uint64_t)((ino - 1) % geometry->inodes_per_group) * geometry->inode_size;
    uint64_t sector = offset & ~(uint64_t)(DEVICE_SECTOR - 1);
    uint32_t bytes = geometry->inode_size < sizeof(*inode) ? geometry->inode_size : sizeof(*inode);
    int error = device_read(format->device, sector, format->block, DEVICE_SECTOR, PURPOSE_INODE);
    if (error)
        return error;
    memcpy(format->block + (offset - sector), inode, bytes);
    return device_write(format->device, sector, format->block, DEVICE_SECTOR, PURPOSE_INODE);
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

static int inodes_write(struct format *format) {
    uint32_t size = format->geometry.block_size;
    uint32_t lost_found = format->lost_found_blocks;
    struct ext_disk_inode bad = inode_make(format, 0, 0, 0, 0);
    struct ext_disk_inode root = inode_make(format, S_IFDIR | 0755, 3, size, 1);
    struct ext_disk_inode lost =
        inode_make(format, S_IFDIR | 0700, 2, (uint64_t)lost_found * size, lost_found);
    le32_store(&root.i_block[0], (uint32_t)format->data_block);
    for (uint32_t i = 0; i < lost_found; i++)
        le32_store(&lost.i_block[i], (uint32_t)format->data_block + 1 + i);
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
    uint64_t map_block = format->data_block + format->data_blocks - 1;
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
        inode_make(format, S_IFREG | 0600, 1, resize_inode_size(geometry), blocks);
    le32_store(&inode.i_block[EXT_IND + 1], (uint32_t)map_block);
    return inode_write(format, EXT_RESIZE_INO, &inode);
}

static void super_fill(const struct format *format, struct ext_disk_super *super) {
    const struct ext_geometry *geometry = &format->geometry;
    le32_store(&super->s_inodes_count, geometry->inodes_count);
    le32_store(&super->s_blocks_count, (uint32_t)geometry->blocks_count);
    uint64_t reserved = geometry->blocks_count * format->reserved_parts / (100 * 10000);
    le32_store(&super->s_r_blocks_count, (uint32_t)reserved);
    le32_store(&super->s_free_blocks_count, (uint32_t)format->free_blocks);
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

/* The descriptors and the super block of one group; copies are not marked clean, as mke2fs's. */
static int super_write(struct format *format, uint32_t group) {
    const struct ext_geometry *geometry = &format->geometry;
    uint64_t first = ext_group_first_block(geometry, group);
    int error = write_blocks(format, first + 1, format->descriptors, geometry->descriptor_blocks,
                             PURPOSE_SUPER);
    if (error)
        return error;
    struct ext_disk_super super = {0};
    super_fill(format, &super);
    le16_store(&super.s_block_group_nr, (uint16_t)group);
    uint64_t offset = first << geometry->block_bits;
    if (group == 0) {
        le16_store(&super.s_state, EXT_STATE_VALID);
        offset = EXT_SUPER_OFFSET;
    }
    return device_write(format->device, offset, &super, sizeof(super), PURPOSE_SUPER);
}

static int format_write(struct format *format) {
    const struct ext_geometry *geometry = &format->geometry;
    format->descriptors = calloc(geometry->descriptor_blocks, geometry->block_size);
    format->block = calloc(2, geometry->block_size);
    if (!format->descriptors || !format->block)
        return -ENOMEM;
    int error = wipe_signatures(format);
    for (uint32_t group = 0; group < geometry->groups && !error; group++) {
        group_describe(format, group);
        error = group_write(format, group);
    }
    if (!error)
        error = directories_write(format);
    if (!error)
        error = inodes_write(format);
    if (!error)
        error = resize_inode_write(format);
    for (uint32_t group = geometry->groups; group-- > 0 && !error;) {
        if (!ext_group_has_super(geometry, group))
            continue;
        uint64_t reserved =
            ext_group_first_block(geometry, group) + 1 + geometry->descriptor_blocks;
        if (group > 0)
            error = zero_blocks(format, reserved, geometry->reserved_descriptor_blocks);
        if (!error)
            error = super_write(format, group);
    }
    return error;
}

static int journal_add(struct ext *ext, const void *options) {
    return ext_journal_add(ext, options_given(options, "journal_size")
                                    ? (uint64_t)options_number(options, "journal_size")
                                    : 0);
}

int ext_format(struct device *device, const struct options *options) {
    struct format format = {.device = device, .log = options->log};
    format.now = (uint32_t)clock_calendar(device->clock).seconds;
    int error = format_plan(&format, options);
    if (!error) {
        error = format_write(&format);
        if (error && error != -ENOMEM)
            log_error(format.log, "%s: mkfs: writing failed: %s", device->name, strerror(-error));
    }
    if (!error && options_number(options, "has_journal"))
        error = ext_edit(device, options->log, journal_add, options);
    free(format.descriptors);
    free(format.block);
    return error;
}
