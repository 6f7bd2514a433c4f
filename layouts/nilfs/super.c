/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over the device. Interface: layouts/nilfs/super.h.
 *
 * There are two super blocks, one at the device's start and one at its end. Updates alternate
 * between them, so that one is whole whatever happens, and the older one keeps naming an older log;
 * from either, recovery finds its way to the newest (recovery.h).
 *
 * Invariants:
 *  1. copy[0] is the current one: the last that was written, and what a mount would choose.
 *  2. What a super block names is durable before it is written.
 */
#include "layouts/nilfs/super.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "layouts/nilfs/crc.h"

#define CHECKED_MIN         (offsetof(struct nilfs_disk_super, s_log_block_size))
#define SECOND_UNIT         12 /* bits: the second one lies at a multiple of 4 KiB, whatever the blocks */
#define WRITE_AGAIN         (10 * NS_PER_SEC) /* least time between two, unless in a sync */
#define CHECKPOINT_SIZE_MIN (sizeof(struct nilfs_disk_checkpoint) + sizeof(struct nilfs_disk_inode))

uint64_t nilfs_super_second_offset(uint64_t device_bytes) {
    uint64_t units = device_bytes >> SECOND_UNIT;

    return units < 2 ? 0 : (units - 1) << SECOND_UNIT;
}

/* --- checksum --------------------------------------------------------------------------------- */

static uint32_t checksum(const uint8_t *raw, uint32_t bytes, uint32_t seed) {
    const size_t at = offsetof(struct nilfs_disk_super, s_sum), after = at + sizeof(le32);
    const le32 zero = {0};
    uint32_t crc = nilfs_crc(seed, raw, at);

    crc = nilfs_crc(crc, &zero, sizeof(zero));
    return nilfs_crc(crc, raw + after, bytes - after);
}

bool nilfs_super_valid(const struct nilfs_disk_super *super, const uint8_t raw[NILFS_SUPER_SIZE]) {
    uint32_t bytes = le16_load(super->s_bytes);

    return le16_load(super->s_magic) == NILFS_MAGIC && bytes >= CHECKED_MIN &&
           bytes <= NILFS_SUPER_SIZE &&
           checksum(raw, bytes, le32_load(super->s_crc_seed)) == le32_load(super->s_sum);
}

void nilfs_super_seal(struct nilfs_disk_super *super) {
    le16_store(&super->s_bytes, NILFS_SUPER_CHECKED);
    le32_store(&super->s_sum,
               checksum((const uint8_t *)super, sizeof(*super), le32_load(super->s_crc_seed)));
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_one(struct device *device, uint64_t offset, struct nilfs_disk_super *super,
                    bool *valid) {
    uint8_t raw[NILFS_SUPER_SIZE];
    int error = device_read(device, offset, raw, sizeof(raw), PURPOSE_SUPER);

    *valid = false;
    if (error)
        return error;
    memcpy(super, raw, sizeof(*super));
    *valid = nilfs_super_valid(super, raw);
    return 0;
}

/* Does what the super block calls its segments reach over the place of the second one? */
static bool inside_segments(const struct nilfs_disk_super *super, uint64_t offset) {
    uint32_t bits = le32_load(super->s_log_block_size);
    uint64_t segment_blocks = le32_load(super->s_blocks_per_segment);

    if (bits > NILFS_BLOCK_BITS_MAX - NILFS_BLOCK_BITS_MIN || segment_blocks == 0)
        return true;
    return (offset >> (bits + NILFS_BLOCK_BITS_MIN)) / segment_blocks <
           le64_load(super->s_nsegments);
}

static void swap(struct nilfs_supers *supers) {
    struct nilfs_disk_super copy = supers->copy[0];
    uint64_t offset = supers->offset[0];
    bool present = supers->present[0];

    supers->copy[0] = supers->copy[1];
    supers->offset[0] = supers->offset[1];
    supers->present[0] = supers->present[1];
    supers->copy[1] = copy;
    supers->offset[1] = offset;
    supers->present[1] = present;
}

int nilfs_super_read(struct device *device, struct nilfs_supers *supers) {
    *supers = (struct nilfs_supers){0};
    supers->offset[0] = NILFS_SUPER_OFFSET;
    supers->offset[1] = nilfs_super_second_offset(device->size);
    if (supers->offset[1] == 0)
        return -ENODEV;
    int first = read_one(device, supers->offset[0], &supers->copy[0], &supers->present[0]);
    int second = read_one(device, supers->offset[1], &supers->copy[1], &supers->present[1]);
    if (supers->present[1] && inside_segments(&supers->copy[1], supers->offset[1]))
        supers->present[1] = false;
    if (!supers->present[0] && !supers->present[1])
        return first ? first : second ? second : -ENODEV;
    if (!supers->present[0] || (supers->present[1] && le64_load(supers->copy[1].s_last_cno) >
                                                          le64_load(supers->copy[0].s_last_cno)))
        swap(supers);
    return 0;
}

int nilfs_super_fall_back(struct nilfs_supers *supers) {
    if (!supers->present[1])
        return -EUCLEAN;
    swap(supers);
    return 0;
}

/* --- geometry --------------------------------------------------------------------------------- */

static const char *sizes_wrong(const struct nilfs_geometry *g) {
    uint32_t super_root = (uint32_t)sizeof(struct nilfs_disk_super_root) + 3 * g->inode_size;

    if (g->inode_size < sizeof(struct nilfs_disk_inode) || super_root > g->block_size)
        return "the size of its inodes cannot be";
    if (g->dat_entry_size < sizeof(struct nilfs_disk_dat_entry) ||
        g->dat_entry_size > g->block_size)
        return "the size of its DAT entries cannot be";
    if (g->checkpoint_size <
            CHECKPOINT_SIZE_MIN + g->inode_size - sizeof(struct nilfs_disk_inode) ||
        g->checkpoint_size > g->block_size)
        return "the size of its checkpoints cannot be";
    if (g->usage_size < sizeof(struct nilfs_disk_segment_usage) || g->usage_size > g->block_size)
        return "the size of its segment usages cannot be";
    return NULL;
}

static const char *segments_wrong(const struct nilfs_geometry *g) {
    uint64_t blocks;

    if (g->segment_blocks < NILFS_SEGMENT_MIN)
        return "its segments have fewer than 16 blocks";
    if (g->first_data_block << g->block_bits < NILFS_SUPER_OFFSET + NILFS_SUPER_SIZE ||
        g->first_data_block > g->segment_blocks - 2)
        return "its first data block cannot be";
    if (g->segments == 0 || __builtin_mul_overflow(g->segments, g->segment_blocks, &blocks))
        return "its number of segments cannot be";
    if (blocks > g->blocks)
        return "its segments reach past the end of the device; is the image cut short?";
    if (g->reserved_percent < 1 || g->reserved_percent > 99)
        return "its part of reserved segments is not 1 to 99 percent";
    return NULL;
}

static void geometry_fill(const struct nilfs_disk_super *super, uint64_t device_bytes,
                          struct nilfs_geometry *g) {
    *g = (struct nilfs_geometry){
        .block_bits = NILFS_BLOCK_BITS_MIN + le32_load(super->s_log_block_size),
        .segments = le64_load(super->s_nsegments),
        .segment_blocks = le32_load(super->s_blocks_per_segment),
        .first_data_block = le64_load(super->s_first_data_block),
        .reserved_percent = le32_load(super->s_r_segments_percentage),
        .crc_seed = le32_load(super->s_crc_seed),
        .inode_size = le16_load(super->s_inode_size),
        .dat_entry_size = le16_load(super->s_dat_entry_size),
        .checkpoint_size = le16_load(super->s_checkpoint_size),
        .usage_size = le16_load(super->s_segment_usage_size),
    };
    g->block_size = 1u << g->block_bits;
    g->sectors_per_block = g->block_size / 512;
    g->blocks = device_bytes >> g->block_bits;
    g->node_children = (g->block_size - 16) / 16;
}

int nilfs_super_geometry(const struct nilfs_supers *supers, struct device *device,
                         const struct log *log, struct nilfs_geometry *geometry) {
    const struct nilfs_disk_super *super = &supers->copy[0];
    uint64_t offset = supers->offset[0], incompatible = le64_load(super->s_feature_incompat);
    uint32_t bits = le32_load(super->s_log_block_size);

    if (le32_load(super->s_rev_level) < NILFS_REVISION || incompatible) {
        log_error(log,
                  "%s: nilfs: super block at byte %" PRIu64 ": revision %" PRIu32
                  ", incompatible features 0x%" PRIx64 "; revision 2 without such are known here",
                  device->name, offset, le32_load(super->s_rev_level), incompatible);
        return -ENOTSUP;
    }
    if (bits > NILFS_BLOCK_BITS_MAX - NILFS_BLOCK_BITS_MIN) {
        log_error(log,
                  "%s: nilfs: super block at byte %" PRIu64 ": blocks of 2^%" PRIu64
                  " bytes; at most 4096 bytes are supported",
                  device->name, offset, (uint64_t)bits + NILFS_BLOCK_BITS_MIN);
        return -ENOTSUP;
    }
    geometry_fill(super, device->size, geometry);
    const char *wrong = sizes_wrong(geometry);
    if (!wrong)
        wrong = segments_wrong(geometry);
    if (!wrong)
        return 0;
    log_error(log, "%s: nilfs: super block at byte %" PRIu64 ": %s", device->name, offset, wrong);
    return -EUCLEAN;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int flush(const struct nilfs *nilfs) {
    return nilfs->options.barrier ? device_flush(nilfs->volume->device) : 0;
}

static int write_one(struct nilfs *nilfs, int which) {
    struct nilfs_supers *supers = &nilfs->supers;
    uint8_t raw[NILFS_SUPER_SIZE] = {0};

    nilfs_super_seal(&supers->copy[which]);
    memcpy(raw, &supers->copy[which], sizeof(supers->copy[which]));
    int error =
        device_write(nilfs->volume->device, supers->offset[which], raw, sizeof(raw), PURPOSE_SUPER);
    if (error)
        return error;
    supers->present[which] = true;
    supers->writes++;
    supers->written_ns = clock_now(nilfs->volume->clock);
    return flush(nilfs);
}

/* One that was not valid is mended, but not where the segments are. */
static bool has_second(const struct nilfs *nilfs) {
    const struct nilfs_supers *supers = &nilfs->supers;

    return supers->present[1] ||
           !inside_segments(&supers->copy[0],
                            nilfs_super_second_offset(nilfs->volume->device->size));
}

static int write_both(struct nilfs *nilfs) {
    int error = write_one(nilfs, 0);

    return error || !has_second(nilfs) ? error : write_one(nilfs, 1);
}

static void set_cursor(struct nilfs *nilfs, const struct nilfs_cursor *cursor,
                       uint64_t clean_segments) {
    struct nilfs_supers *supers = &nilfs->supers;
    struct nilfs_disk_super *super = &supers->copy[0];

    le64_store(&super->s_last_cno, cursor->cno);
    le64_store(&super->s_last_pseg, cursor->block);
    le64_store(&super->s_last_seq, cursor->sequence);
    le64_store(&super->s_free_blocks_count, clean_segments * nilfs->geometry.segment_blocks);
    le64_store(&super->s_wtime, (uint64_t)nilfs_now(nilfs));
    supers->written_seq = cursor->sequence;
    supers->due = false;
}

int nilfs_super_mounted(struct nilfs *nilfs) {
    struct nilfs_disk_super *super = &nilfs->supers.copy[0];
    uint16_t state = le16_load(super->s_state);

    le16_store(&super->s_mnt_count, (uint16_t)(le16_load(super->s_mnt_count) + 1));
    le64_store(&super->s_mtime, (uint64_t)nilfs_now(nilfs));
    le16_store(&super->s_state, state & (uint16_t)~NILFS_STATE_CLEAN);
    nilfs->supers.copy[1] = *super;
    nilfs->supers.mounted = true;
    int error = flush(nilfs);
    return error ? error : write_both(nilfs);
}

/* Twice in sixteen times the same one is written again, as Linux has it. */
static bool stays(const struct nilfs_supers *supers) {
    unsigned turn = supers->writes & 15;

    return !supers->present[1] || turn == 8 || turn == 15;
}

int nilfs_super_write(struct nilfs *nilfs, uint64_t cno, uint64_t block, uint64_t sequence,
                      uint64_t clean_segments) {
    const struct nilfs_cursor cursor = {.cno = cno, .block = block, .sequence = sequence};

    if (!stays(&nilfs->supers))
        swap(&nilfs->supers);
    set_cursor(nilfs, &cursor, clean_segments);
    int error = flush(nilfs);
    return error ? error : write_one(nilfs, 0);
}

void nilfs_super_logged(struct nilfs *nilfs, uint64_t cno, uint64_t block, uint64_t sequence) {
    struct nilfs_supers *supers = &nilfs->supers;

    supers->newest = (struct nilfs_cursor){.cno = cno, .block = block, .sequence = sequence};
    supers->due = sequence != supers->written_seq;
}

bool nilfs_super_wanted(const struct nilfs *nilfs, bool sync) {
    const struct nilfs_supers *supers = &nilfs->supers;

    if (nilfs->chain_broken)
        return true;
    return supers->due &&
           (sync || clock_now(nilfs->volume->clock) - supers->written_ns >= WRITE_AGAIN);
}

int nilfs_super_note_error(struct nilfs *nilfs) {
    for (int i = 0; i < 2; i++) {
        struct nilfs_disk_super *super = &nilfs->supers.copy[i];
        le16_store(&super->s_state, le16_load(super->s_state) | NILFS_STATE_ERROR);
    }
    int error = write_one(nilfs, 0);
    return error || !nilfs->supers.present[1] ? error : write_one(nilfs, 1);
}

/* The other one follows only where it names the same log: else it keeps an older one. */
int nilfs_super_unmounted(struct nilfs *nilfs, uint64_t clean_segments) {
    struct nilfs_supers *supers = &nilfs->supers;
    struct nilfs_disk_super *super = &supers->copy[0];

    set_cursor(nilfs, &supers->newest, clean_segments);
    le16_store(&super->s_state, le16_load(super->s_state) | NILFS_STATE_CLEAN);
    int error = flush(nilfs);
    if (error)
        return error;
    if (!supers->present[1] ||
        le64_load(supers->copy[1].s_last_cno) != le64_load(super->s_last_cno))
        return write_one(nilfs, 0);
    supers->copy[1] = *super;
    return write_both(nilfs);
}

uint64_t nilfs_super_protected_sequence(const struct nilfs *nilfs) {
    const struct nilfs_supers *supers = &nilfs->supers;
    uint64_t current = le64_load(supers->copy[0].s_last_seq);
    uint64_t other = le64_load(supers->copy[1].s_last_seq);

    return supers->present[1] && other < current ? other : current;
}
