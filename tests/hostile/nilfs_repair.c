/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the checksums of a damaged NILFS2 image, so that what is behind them is reached: both
 * super blocks, and of every log that can still be found its super root, its summary and its whole.
 * What lies in a log's payload has no checksum of its own.
 *
 * Invariant: nothing outside the image is touched, and every walk ends, whatever the bytes say.
 */
#include <string.h>

#include "layouts/nilfs/crc.h"
#include "layouts/nilfs/super.h"
#include "tests/hostile/subject.h"

struct repair {
    uint8_t *image; /* borrowed */
    struct nilfs_geometry geometry;
};

static void repair_super(uint8_t *image, uint64_t size, uint64_t offset) {
    if (offset > 0 && offset + sizeof(struct nilfs_disk_super) <= size)
        nilfs_super_seal((struct nilfs_disk_super *)(image + offset));
}

/* From the first of the super blocks that makes sense. */
static bool find_geometry(struct repair *repair, uint64_t size) {
    const uint64_t offsets[] = {NILFS_SUPER_OFFSET, nilfs_super_second_offset(size)};
    struct device device = {.size = size, .name = "image"};

    for (unsigned i = 0; i < 2; i++) {
        struct nilfs_supers supers = {.offset = {offsets[i]}};

        if (offsets[i] == 0 || offsets[i] + sizeof(supers.copy[0]) > size)
            continue;
        memcpy(&supers.copy[0], repair->image + offsets[i], sizeof(supers.copy[0]));
        if (nilfs_super_geometry(&supers, &device, NULL, &repair->geometry) == 0)
            return true;
    }
    return false;
}

static uint32_t sum(const struct repair *repair, const uint8_t *bytes, uint64_t from, uint64_t to) {
    return nilfs_crc(repair->geometry.crc_seed, bytes + from, to - from);
}

static void repair_super_root(const struct repair *repair, uint8_t *block) {
    struct nilfs_disk_super_root *root = (struct nilfs_disk_super_root *)block;
    const size_t from = offsetof(struct nilfs_disk_super_root, sr_bytes);
    uint32_t bytes = le16_load(root->sr_bytes);

    if (bytes >= from && bytes <= repair->geometry.block_size)
        le32_store(&root->sr_sum, sum(repair, block, from, bytes));
}

/* The log's blocks; 0: there is none that could be one. */
static uint64_t repair_log(const struct repair *repair, uint64_t block, uint64_t end) {
    const struct nilfs_geometry *g = &repair->geometry;
    uint8_t *bytes = repair->image + (block << g->block_bits);
    struct nilfs_disk_summary *summary = (struct nilfs_disk_summary *)bytes;
    const size_t after_datasum = offsetof(struct nilfs_disk_summary, ss_sumsum);
    const size_t after_sums = offsetof(struct nilfs_disk_summary, ss_magic);
    uint64_t blocks = le32_load(summary->ss_nblocks), length = blocks << g->block_bits;
    uint32_t covered = le32_load(summary->ss_sumbytes);

    if (le32_load(summary->ss_magic) != NILFS_LOG_MAGIC || blocks == 0 || blocks > end - block ||
        covered < after_sums || covered > length)
        return 0;
    if (le16_load(summary->ss_flags) & NILFS_LOG_SUPER_ROOT)
        repair_super_root(repair, bytes + length - g->block_size);
    le32_store(&summary->ss_sumsum, sum(repair, bytes, after_sums, covered));
    le32_store(&summary->ss_datasum, sum(repair, bytes, after_datasum, length));
    return blocks;
}

void nilfs_repair(uint8_t *image, uint64_t size) {
    struct repair repair = {.image = image};
    const struct nilfs_geometry *g = &repair.geometry;

    repair_super(image, size, NILFS_SUPER_OFFSET);
    repair_super(image, size, nilfs_super_second_offset(size));
    if (!find_geometry(&repair, size))
        return;
    for (uint64_t segment = 0; segment < g->segments; segment++) {
        uint64_t end = nilfs_segment_end(g, segment), at = nilfs_segment_start(g, segment);
        while (at < end) {
            uint64_t blocks = repair_log(&repair, at, end);
            at += blocks ? blocks : 1;
        }
    }
}
