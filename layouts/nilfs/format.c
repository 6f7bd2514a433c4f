/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over super.h and palloc.h's arithmetic. Makes an empty volume (mkfs), as
 * mkfs.nilfs2 since 2.3 does but for one thing: its inodes count their blocks in 512-byte units
 * from the start, as the driver does later. And recognises one (probe).
 *
 * An empty volume is one log at the start of segment 0, checkpoint 1, and two super blocks. All its
 * files have few blocks, with direct maps:
 *
 *     summary | root directory | ifile | cpfile | sufile | DAT | super root
 *
 * Invariants:
 *  1. Nothing is written before everything is known to fit.
 *  2. The first super block is written last: a format cut short leaves no volume to mistake for
 *     one.
 *  3. No log that was on the device before is valid with the new volume: its checksums have another
 *     seed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/volume_uuid.h"
#include "layouts/nilfs/crc.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/palloc.h"
#include "layouts/nilfs/super.h"

#define SIGNATURE_AREA     (UINT64_C(128) << 10) /* where other filesystems keep their magic */
#define SPARE_SEGMENTS_MIN 8u                    /* beyond the reserved ones */
#define CHECK_INTERVAL     (180u * 24 * 3600)    /* seconds; nobody acts on it */
#define MAX_MOUNTS         50u
#define ERRORS_CONTINUE    1u
#define DIR_ENTRY_SIZE     16u /* of "." and ".." */

struct format_file { /* one of the log's files; its blocks are consecutive */
    uint64_t first;  /* disk block */
    uint32_t blocks;
    uint64_t vblock; /* of the first block; the DAT has none */
};

struct format {
    struct device *device;
    const struct log *log;
    struct nilfs_geometry geometry;
    uint64_t now;
    uint8_t uuid[16];
    char label[sizeof(((struct nilfs_disk_super *)0)->s_volume_name)];
    uint32_t interval, block_max;
    struct nilfs_palloc inodes, dat_entries;
    struct format_file root, ifile, cpfile, sufile, dat;
    uint64_t start;  /* of the log: its first block */
    uint32_t blocks; /* of the log */
    uint8_t *image;  /* owned: the log */
};

static int refuse(const struct format *f, const char *sentence) {
    log_error(f->log, "%s: mkfs: %s", f->device->name, sentence);
    return -EINVAL;
}

/* --- wishes ----------------------------------------------------------------------------------- */

static int identity_parse(struct format *f, const struct options *options) {
    const char *text = options_text(options, "uuid"), *label = options_text(options, "label");
    bool random;

    if (label && strlen(label) > sizeof(f->label))
        return refuse(f, "label: at most 80 bytes fit");
    if (label)
        memcpy(f->label, label, strlen(label));
    return volume_uuid_choose(text, f->device->clock, f->uuid, &random) == 0
               ? 0
               : refuse(f, VOLUME_UUID_EXPECTED);
}

/* Scrambles 64 bits (the finaliser of SplitMix64, public domain). */
static uint64_t scramble(uint64_t x) {
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* The seed of all checksums: random; under a virtual clock it follows from the UUID. In any case
 * from that of a volume that was there before, so that it is another one. */
static int seed_choose(struct format *f) {
    struct nilfs_supers old;
    uint8_t random[16];
    uint64_t x = 0;
    int error = nilfs_super_read(f->device, &old);

    if (error && error != -ENODEV)
        return error;
    volume_uuid_bytes(f->device->clock, f->uuid, random);
    for (unsigned i = 0; i < sizeof(random); i++)
        x = scramble(x ^ random[i]);
    for (int i = 0; i < 2 && !error; i++)
        x = scramble(x ^ le32_load(old.copy[i].s_crc_seed));
    f->geometry.crc_seed = (uint32_t)x;
    return 0;
}

static void geometry_wish(struct format *f, const struct options *options) {
    struct nilfs_geometry *g = &f->geometry;

    g->block_size = (uint32_t)options_number(options, "block_size");
    g->block_bits = (uint32_t)__builtin_ctz(g->block_size);
    g->sectors_per_block = g->block_size / 512;
    g->segment_blocks = (uint32_t)options_number(options, "blocks_per_segment");
    g->reserved_percent = (uint32_t)options_number(options, "reserved");
    g->blocks = f->device->size >> g->block_bits;
    g->first_data_block = (4096 + g->block_size - 1) / g->block_size;
    g->segments = nilfs_super_second_offset(f->device->size) / g->block_size / g->segment_blocks;
    g->inode_size = sizeof(struct nilfs_disk_inode);
    g->dat_entry_size = sizeof(struct nilfs_disk_dat_entry);
    g->checkpoint_size = sizeof(struct nilfs_disk_checkpoint) + sizeof(struct nilfs_disk_inode);
    g->usage_size = sizeof(struct nilfs_disk_segment_usage);
}

static uint64_t segments_needed(const struct format *f, uint64_t segments) {
    struct nilfs_geometry g = f->geometry;

    g.segments = segments;
    return nilfs_reserved_segments(&g) + SPARE_SEGMENTS_MIN;
}

/* Which depends on the number itself, by the percentage: the smallest that is enough. */
static int segments_check(const struct format *f) {
    const struct nilfs_geometry *g = &f->geometry;
    uint64_t segment_bytes = (uint64_t)g->segment_blocks << g->block_bits, enough = 1;

    if (g->segments >= segments_needed(f, g->segments))
        return 0;
    while (enough < segments_needed(f, enough))
        enough++;
    log_error(f->log,
              "%s: mkfs: %" PRIu64 " bytes have room for %" PRIu64 " segments of %" PRIu64
              " bytes; at least %" PRIu64 " are needed, that is %" PRIu64
              " bytes; a smaller blocks_per_segment makes smaller ones",
              f->device->name, f->device->size, g->segments, segment_bytes, enough,
              enough * segment_bytes + 4096);
    return -EINVAL;
}

/* --- the plan --------------------------------------------------------------------------------- */

static void file_place(struct format *f, struct format_file *file, uint32_t blocks,
                       uint64_t *vblock) {
    file->first = f->start + f->blocks;
    file->blocks = blocks;
    f->blocks += blocks;
    if (vblock) {
        file->vblock = *vblock;
        *vblock += blocks;
    }
}

/* Blocks of a palloc file with `entries` entries in its first group. */
static uint32_t palloc_blocks(const struct nilfs_palloc *palloc, uint64_t entries) {
    return 2 + (uint32_t)((entries + palloc->entries_per_block - 1) / palloc->entries_per_block);
}

static void plan(struct format *f) {
    const struct nilfs_geometry *g = &f->geometry;
    uint64_t vblock = 1; /* entry 0 of the DAT is nobody's */

    f->inodes = nilfs_palloc_layout(g, g->inode_size);
    f->dat_entries = nilfs_palloc_layout(g, g->dat_entry_size);
    f->start = g->first_data_block;
    f->blocks = 1; /* the summary */
    file_place(f, &f->root, 1, &vblock);
    file_place(f, &f->ifile, palloc_blocks(&f->inodes, NILFS_FIRST_INO), &vblock);
    file_place(f, &f->cpfile, 1, &vblock);
    file_place(f, &f->sufile, 1, &vblock);
    file_place(f, &f->dat, palloc_blocks(&f->dat_entries, vblock), NULL);
    f->blocks++; /* the super root */
}

/* --- the log's contents ----------------------------------------------------------------------- */

static uint8_t *block_at(const struct format *f, uint64_t block) {
    return f->image + ((block - f->start) << f->geometry.block_bits);
}

static void root_fill(struct format *f) {
    uint8_t *block = block_at(f, f->root.first);

    for (uint32_t dots = 1; dots <= 2; dots++) {
        struct nilfs_disk_dir_entry *entry = (void *)(block + (size_t)(dots - 1) * DIR_ENTRY_SIZE);
        uint32_t length = dots == 1 ? DIR_ENTRY_SIZE : f->geometry.block_size - DIR_ENTRY_SIZE;
        le64_store(&entry->inode, NILFS_ROOT_INO);
        le16_store(&entry->rec_len, (uint16_t)length);
        entry->name_len = (uint8_t)dots;
        entry->file_type = NILFS_FT_DIRECTORY;
        memset(entry + 1, '.', dots);
    }
}

static void inode_fill(const struct format *f, struct nilfs_disk_inode *inode, uint32_t mode,
                       uint32_t links, const struct format_file *file) {
    le64_store(&inode->i_ctime, f->now);
    le64_store(&inode->i_mtime, f->now);
    le16_store(&inode->i_mode, (uint16_t)mode);
    le16_store(&inode->i_links_count, (uint16_t)links);
    if (!file)
        return;
    le64_store(&inode->i_blocks, (uint64_t)file->blocks * f->geometry.sectors_per_block);
    for (uint32_t i = 0; i < file->blocks; i++)
        le64_store(&inode->i_bmap.u.direct[i], (file->vblock ? file->vblock : file->first) + i);
}

/* The descriptors and the bitmap of a palloc file whose first `used` entries are in use. */
static void palloc_fill(const struct format *f, const struct nilfs_palloc *palloc,
                        const struct format_file *file, uint64_t used) {
    le32 *descriptor = (void *)block_at(f, file->first);
    uint8_t *bitmap = block_at(f, file->first + 1);

    for (uint32_t i = 0; i < palloc->groups_per_descriptor; i++)
        le32_store(&descriptor[i], (uint32_t)(palloc->entries_per_group - (i == 0 ? used : 0)));
    for (uint64_t i = 0; i < used; i++)
        bitmap[i / 8] |= (uint8_t)(1u << i % 8);
}

static void *palloc_entry(const struct format *f, const struct nilfs_palloc *palloc,
                          const struct format_file *file, uint64_t number) {
    uint64_t offset;
    uint32_t byte;

    nilfs_palloc_locate(palloc, number, &offset, &byte);
    return block_at(f, file->first + offset) + byte;
}

/* Numbers that mkfs.nilfs2 gives an empty file, for uses that never came. */
static bool reserved(uint64_t ino) {
    return ino != 0 && (ino < NILFS_ROOT_INO || ino > NILFS_IFILE_INO);
}

static void ifile_fill(const struct format *f) {
    struct nilfs_disk_inode *root = palloc_entry(f, &f->inodes, &f->ifile, NILFS_ROOT_INO);

    palloc_fill(f, &f->inodes, &f->ifile, NILFS_FIRST_INO);
    inode_fill(f, root, S_IFDIR | 0755, 2, &f->root);
    le64_store(&root->i_size, f->geometry.block_size);
    for (uint64_t ino = 0; ino < NILFS_FIRST_INO; ino++)
        if (reserved(ino))
            inode_fill(f, palloc_entry(f, &f->inodes, &f->ifile, ino), S_IFREG, 1, NULL);
}

static void cpfile_fill(const struct format *f) {
    uint8_t *block = block_at(f, f->cpfile.first);
    uint32_t size = f->geometry.checkpoint_size, slots = f->geometry.block_size / size;
    struct nilfs_disk_cpfile_header *header = (void *)block;

    le64_store(&header->ch_ncheckpoints, 1);
    for (uint32_t cno = 1; cno < slots; cno++) { /* slot 0 is the header's */
        struct nilfs_disk_checkpoint *unused = (void *)(block + (size_t)cno * size);
        le32_store(&unused->cp_flags, cno == 1 ? 0 : NILFS_CP_INVALID);
        le64_store(&unused->cp_cno, cno);
    }
    struct nilfs_disk_checkpoint *first = (void *)(block + size);
    le64_store(&first->cp_create, f->now);
    le64_store(&first->cp_nblk_inc, f->blocks);
    le64_store(&first->cp_inodes_count, 1);
    le64_store(&first->cp_blocks_count, f->root.blocks + f->ifile.blocks);
    inode_fill(f, (void *)(first + 1), S_IFREG, 1, &f->ifile);
}

/* Segments 0, which has the log, and 1, which is to follow it. */
static void sufile_fill(const struct format *f) {
    uint8_t *block = block_at(f, f->sufile.first);
    struct nilfs_disk_sufile_header *header = (void *)block;
    struct nilfs_disk_segment_usage *usage = (void *)block;
    size_t first = (sizeof(*header) + sizeof(*usage) - 1) / sizeof(*usage);

    le64_store(&header->sh_ncleansegs, f->geometry.segments - 2);
    le64_store(&header->sh_ndirtysegs, 2);
    le64_store(&header->sh_last_alloc, f->geometry.segments - 1);
    le64_store(&usage[first].su_lastmod, f->now);
    le32_store(&usage[first].su_nblocks, f->blocks);
    for (size_t i = first; i < first + 2; i++)
        le32_store(&usage[i].su_flags, NILFS_SU_ACTIVE | NILFS_SU_DIRTY);
}

static void dat_fill(const struct format *f) {
    uint64_t entries = f->sufile.vblock + f->sufile.blocks;

    palloc_fill(f, &f->dat_entries, &f->dat, entries);
    for (uint64_t v = f->root.vblock; v < entries; v++) {
        struct nilfs_disk_dat_entry *entry = palloc_entry(f, &f->dat_entries, &f->dat, v);
        le64_store(&entry->de_blocknr, f->root.first + v - f->root.vblock);
        le64_store(&entry->de_start, 1);
        le64_store(&entry->de_end, NILFS_CNO_MAX);
    }
}

static void super_root_fill(const struct format *f) {
    uint32_t bytes =
        (uint32_t)(sizeof(struct nilfs_disk_super_root) + 3 * sizeof(struct nilfs_disk_inode));
    struct nilfs_disk_super_root *root = (void *)block_at(f, f->start + f->blocks - 1);
    struct nilfs_disk_inode *inodes = (void *)(root + 1);

    le16_store(&root->sr_bytes, (uint16_t)bytes);
    le64_store(&root->sr_nongc_ctime, f->now);
    inode_fill(f, &inodes[0], S_IFREG, 1, &f->dat);
    inode_fill(f, &inodes[1], S_IFREG, 1, &f->cpfile);
    inode_fill(f, &inodes[2], S_IFREG, 1, &f->sufile);
    le32_store(&root->sr_sum, nilfs_crc(f->geometry.crc_seed, &root->sr_bytes, bytes - 4));
}

/* The finfo and the items of one file; what follows them. */
static uint8_t *summary_file(uint8_t *at, uint64_t ino, const struct format_file *file) {
    struct nilfs_disk_finfo *info = (void *)at;

    le64_store(&info->fi_ino, ino);
    le64_store(&info->fi_cno, 1);
    le32_store(&info->fi_nblocks, file->blocks);
    le32_store(&info->fi_ndatablk, file->blocks);
    at += sizeof(*info);
    for (uint32_t i = 0; i < file->blocks; i++) {
        if (file->vblock) {
            le64_store((le64 *)at, file->vblock + i);
            at += sizeof(le64);
        }
        le64_store((le64 *)at, i);
        at += sizeof(le64);
    }
    return at;
}

static void summary_fill(const struct format *f) {
    const struct nilfs_geometry *g = &f->geometry;
    struct nilfs_disk_summary *summary = (void *)f->image;
    uint8_t *end = (uint8_t *)(summary + 1);

    end = summary_file(end, NILFS_ROOT_INO, &f->root);
    end = summary_file(end, NILFS_IFILE_INO, &f->ifile);
    end = summary_file(end, NILFS_CPFILE_INO, &f->cpfile);
    end = summary_file(end, NILFS_SUFILE_INO, &f->sufile);
    end = summary_file(end, NILFS_DAT_INO, &f->dat);
    uint32_t bytes = (uint32_t)(end - f->image);
    le32_store(&summary->ss_magic, NILFS_LOG_MAGIC);
    le16_store(&summary->ss_bytes, sizeof(*summary));
    le16_store(&summary->ss_flags, NILFS_LOG_BEGIN | NILFS_LOG_END | NILFS_LOG_SUPER_ROOT);
    le64_store(&summary->ss_create, f->now);
    le64_store(&summary->ss_next, nilfs_segment_start(g, 1));
    le32_store(&summary->ss_nblocks, f->blocks);
    le32_store(&summary->ss_nfinfo, 5);
    le32_store(&summary->ss_sumbytes, bytes);
    le64_store(&summary->ss_cno, 1);
    le32_store(&summary->ss_sumsum, nilfs_crc(g->crc_seed, f->image + 8, bytes - 8));
    le32_store(&summary->ss_datasum,
               nilfs_crc(g->crc_seed, f->image + 4, ((size_t)f->blocks << g->block_bits) - 4));
}

static void super_fill(const struct format *f, struct nilfs_disk_super *super) {
    const struct nilfs_geometry *g = &f->geometry;

    le32_store(&super->s_rev_level, NILFS_REVISION);
    le16_store(&super->s_magic, NILFS_MAGIC);
    le32_store(&super->s_crc_seed, g->crc_seed);
    le32_store(&super->s_log_block_size, g->block_bits - NILFS_BLOCK_BITS_MIN);
    le64_store(&super->s_nsegments, g->segments);
    le64_store(&super->s_dev_size, f->device->size);
    le64_store(&super->s_first_data_block, g->first_data_block);
    le32_store(&super->s_blocks_per_segment, g->segment_blocks);
    le32_store(&super->s_r_segments_percentage, g->reserved_percent);
    le64_store(&super->s_last_cno, 1);
    le64_store(&super->s_last_pseg, f->start);
    le64_store(&super->s_free_blocks_count, (g->segments - 2) * g->segment_blocks);
    le64_store(&super->s_ctime, f->now);
    le64_store(&super->s_wtime, f->now);
    le64_store(&super->s_lastcheck, f->now);
    le16_store(&super->s_max_mnt_count, MAX_MOUNTS);
    le16_store(&super->s_state, NILFS_STATE_CLEAN);
    le16_store(&super->s_errors, ERRORS_CONTINUE);
    le32_store(&super->s_checkinterval, CHECK_INTERVAL);
    le32_store(&super->s_first_ino, NILFS_FIRST_INO);
    le16_store(&super->s_inode_size, (uint16_t)g->inode_size);
    le16_store(&super->s_dat_entry_size, (uint16_t)g->dat_entry_size);
    le16_store(&super->s_checkpoint_size, (uint16_t)g->checkpoint_size);
    le16_store(&super->s_segment_usage_size, (uint16_t)g->usage_size);
    memcpy(super->s_uuid, f->uuid, sizeof(f->uuid));
    memcpy(super->s_volume_name, f->label, sizeof(f->label));
    le32_store(&super->s_c_interval, f->interval);
    le32_store(&super->s_c_block_max, f->block_max);
    le64_store(&super->s_feature_compat_ro, NILFS_COMPAT_RO_BLOCK_COUNT);
    nilfs_super_seal(super);
}

/* --- the writes ------------------------------------------------------------------------------- */

static int supers_write(const struct format *f) {
    struct nilfs_disk_super super = {0};
    uint8_t raw[NILFS_SUPER_SIZE] = {0};

    super_fill(f, &super);
    memcpy(raw, &super, sizeof(super));
    int error = device_write(f->device, nilfs_super_second_offset(f->device->size), raw,
                             sizeof(raw), PURPOSE_SUPER);
    return error ? error
                 : device_write(f->device, NILFS_SUPER_OFFSET, raw, sizeof(raw), PURPOSE_SUPER);
}

/* Old signatures, ours and others', at both ends of the device; then the new. */
static int format_write(const struct format *f) {
    uint64_t size = f->device->size, area = size < SIGNATURE_AREA ? size : SIGNATURE_AREA;
    int error = device_zero(f->device, 0, area);

    if (!error)
        error = device_zero(f->device, size - area, area);
    if (!error)
        error = device_write(f->device, f->start << f->geometry.block_bits, f->image,
                             f->blocks << f->geometry.block_bits, PURPOSE_JOURNAL);
    return error ? error : supers_write(f);
}

static int format_make(struct format *f) {
    plan(f);
    if (f->start + f->blocks > f->geometry.segment_blocks)
        return refuse(f, "the first segment has no room for an empty volume; give more "
                         "blocks_per_segment");
    f->image = calloc(f->blocks, f->geometry.block_size);
    if (!f->image)
        return -ENOMEM;
    root_fill(f);
    ifile_fill(f);
    cpfile_fill(f);
    sufile_fill(f);
    dat_fill(f);
    super_root_fill(f);
    summary_fill(f);
    int error = format_write(f);
    if (error)
        log_error(f->log, "%s: mkfs: writing failed: %s", f->device->name, strerror(-error));
    free(f->image);
    return error;
}

int nilfs_format(struct device *device, const struct options *options) {
    struct format f = {.device = device, .log = options->log};

    f.now = (uint64_t)clock_calendar(device->clock).seconds;
    f.interval = (uint32_t)options_number(options, "interval");
    f.block_max = (uint32_t)options_number(options, "block_max");
    geometry_wish(&f, options);
    if (f.geometry.segment_blocks & (f.geometry.segment_blocks - 1))
        return refuse(&f, "blocks_per_segment: expected a power of two");
    int error = segments_check(&f);
    if (!error)
        error = identity_parse(&f, options);
    if (!error)
        error = seed_choose(&f);
    return error ? error : format_make(&f);
}

/* --- probe ------------------------------------------------------------------------------------ */

int nilfs_probe(struct device *device, struct probe_result *result) {
    struct nilfs_supers supers;
    struct nilfs_geometry geometry;
    const struct nilfs_disk_super *super = &supers.copy[0];

    *result = (struct probe_result){0};
    int error = nilfs_super_read(device, &supers);
    if (error)
        return error == -ENODEV ? 0 : error;
    bool sound = nilfs_super_geometry(&supers, device, NULL, &geometry) == 0;
    /* With the first one gone, something else may be there by now. */
    bool first = supers.offset[0] == NILFS_SUPER_OFFSET || supers.present[1];
    result->type = "nilfs2";
    result->confidence = sound && first ? 100 : 30;
    const char *label = super->s_volume_name;
    snprintf(result->description, sizeof(result->description),
             "nilfs2, %u-byte blocks, segments of %" PRIu32 "%s%.60s%s",
             1024u << (le32_load(super->s_log_block_size) & 7),
             le32_load(super->s_blocks_per_segment), *label ? ", label \"" : "", label,
             *label ? "\"" : "");
    return 0;
}
