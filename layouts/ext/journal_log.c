/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the block map; under the other journal*.c. The log as an array of
 * blocks: where they lie, its super block, its checksums. What the blocks mean is not known here.
 *
 * Invariants:
 *  1. Every block of the ring is mapped to a block of the volume that may hold data; this was
 *     checked when the log was opened.
 *  2. The super block in memory is what the device was last told.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/ext/crc.h"
#include "layouts/ext/journal.h"

#define REQUEST_BLOCKS 256u

#define INCOMPAT_SUPPORTED                                                                         \
    (EXT_JOURNAL_INCOMPAT_REVOKE | EXT_JOURNAL_INCOMPAT_64BIT |                                    \
     EXT_JOURNAL_INCOMPAT_ASYNC_COMMIT | EXT_JOURNAL_INCOMPAT_CSUM_V2 |                            \
     EXT_JOURNAL_INCOMPAT_CSUM_V3 | EXT_JOURNAL_INCOMPAT_FAST_COMMIT)

/* A journal that cannot be used: the mount is refused, and nothing is changed. -EUCLEAN. */
__attribute__((format(printf, 2, 3))) static int log_wrong(const struct ext *ext,
                                                           const char *format, ...) {
    char sentence[256];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    log_error(ext->volume->log, "%s: %s; run e2fsck -f", ext->volume->name, sentence);
    return -EUCLEAN;
}

/* --- where the blocks lie --------------------------------------------------------------------- */

static int log_add_run(struct ext_log *log, uint32_t logical, uint64_t physical, uint32_t count) {
    struct ext_log_run *runs;

    if (log->run_count > 0) {
        struct ext_log_run *last = &log->runs[log->run_count - 1];

        if (last->physical + last->count == physical) {
            last->count += count;
            return 0;
        }
    }
    if ((log->run_count & (log->run_count - 1)) == 0) { /* doubled whenever it is full */
        runs = realloc(log->runs, (log->run_count ? log->run_count * 2 : 1) * sizeof(*runs));
        if (!runs)
            return -ENOMEM;
        log->runs = runs;
    }
    log->runs[log->run_count++] = (struct ext_log_run){logical, count, physical};
    return 0;
}

/* Maps the first `blocks` blocks of the journal's file. */
static int log_map(struct ext *ext, struct inode *inode, struct ext_log *log, uint32_t blocks) {
    uint32_t logical = 0;

    while (logical < blocks) {
        uint64_t physical, count;
        int rc = ext_bmap(inode, logical, &physical, &count);

        if (rc < 0)
            return rc;
        if (count > blocks - logical)
            count = blocks - logical;
        if (physical == 0 || count == 0 || !ext_blocks_are_data(ext, physical, count))
            return log_wrong(ext,
                             "journal (inode %" PRIu64
                             "): block %u is a hole, or lies where no file's data can",
                             inode->ino, logical);
        rc = log_add_run(log, logical, physical, (uint32_t)count);
        if (rc < 0)
            return rc;
        logical += (uint32_t)count;
    }
    return 0;
}

/* The run that holds a block of the file. */
static const struct ext_log_run *log_run_of(const struct ext_log *log, uint32_t block) {
    uint32_t low = 0, high = log->run_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (log->runs[middle].logical <= block)
            low = middle;
        else
            high = middle;
    }
    return &log->runs[low];
}

uint32_t ext_log_step(const struct ext_log *log, uint32_t block, uint32_t count) {
    uint32_t size = log->end - log->first;

    return log->first + (block - log->first + count) % size;
}

/* --- reading and writing ---------------------------------------------------------------------- */

int ext_log_read(const struct ext_log *log, uint32_t block, void *data) {
    const struct ext_log_run *run = log_run_of(log, block);
    uint64_t physical = run->physical + (block - run->logical);

    return device_read(log->device, physical * log->block_size, data, log->block_size,
                       PURPOSE_JOURNAL);
}

int ext_log_write(const struct ext_log *log, uint32_t block, uint32_t count,
                  const struct iovec *blocks, struct device_batch *batch) {
    while (count > 0) {
        const struct ext_log_run *run = log_run_of(log, block);
        uint32_t rest = run->count - (block - run->logical);
        uint32_t length = count < rest ? count : rest;
        int error;

        if (length > log->end - block)
            length = log->end - block;
        if (length > REQUEST_BLOCKS)
            length = REQUEST_BLOCKS;
        error = device_submit(
            log->device, &(struct device_request){
                             .operation = DEVICE_WRITE,
                             .purpose = PURPOSE_JOURNAL,
                             .offset = (run->physical + (block - run->logical)) * log->block_size,
                             .length = length * log->block_size,
                             .vector = blocks,
                             .vector_count = (int)length,
                             .batch = batch,
                         });
        if (error)
            return error;
        block = ext_log_step(log, block, length);
        blocks += length;
        count -= length;
    }
    return 0;
}

/* --- checksums -------------------------------------------------------------------------------- */

static uint32_t super_checksum(const struct ext_disk_journal_super *super) {
    struct ext_disk_journal_super copy = *super;

    be32_store(&copy.s_checksum, 0);
    return crc32c(EXT_CRC_START, &copy, sizeof(copy));
}

struct ext_disk_journal_tail *ext_log_tail(const struct ext_log *log, void *block) {
    return (void *)((char *)block + log->block_size - sizeof(struct ext_disk_journal_tail));
}

uint32_t ext_log_tail_checksum(const struct ext_log *log, const void *block) {
    const struct ext_disk_journal_tail zero = {0};
    uint32_t crc = crc32c(log->seed, block, log->block_size - sizeof(zero));

    return crc32c(crc, &zero, sizeof(zero));
}

uint32_t ext_log_commit_checksum(const struct ext_log *log, const void *block) {
    const struct ext_disk_journal_commit *commit = block;
    const be32 zero = {0};
    size_t field = offsetof(struct ext_disk_journal_commit, h_chksum);
    uint32_t crc = crc32c(log->seed, commit, field);

    crc = crc32c(crc, &zero, sizeof(zero));
    return crc32c(crc, &commit->h_chksum[1], log->block_size - field - sizeof(zero));
}

uint32_t ext_log_data_checksum(const struct ext_log *log, uint32_t sequence, const void *block) {
    be32 number;

    be32_store(&number, sequence);
    return crc32c(crc32c(log->seed, &number, sizeof(number)), block, log->block_size);
}

/* --- the super block -------------------------------------------------------------------------- */

static int super_bad(struct ext *ext, const char *field, uint32_t value, const char *expected) {
    return log_wrong(ext, "journal super block: %s is %u, expected %s", field, value, expected);
}

/* How tags lie in descriptors, by the features. */
static void log_set_format(struct ext_log *log) {
    log->compat = be32_load(log->super.s_feature_compat);
    log->incompat = be32_load(log->super.s_feature_incompat);
    log->checksums = log->incompat & (EXT_JOURNAL_INCOMPAT_CSUM_V2 | EXT_JOURNAL_INCOMPAT_CSUM_V3);
    log->sums = !log->checksums && log->compat & EXT_JOURNAL_COMPAT_CHECKSUM;
    log->seed = crc32c(EXT_CRC_START, log->super.s_uuid, sizeof(log->super.s_uuid));
    if (log->incompat & EXT_JOURNAL_INCOMPAT_CSUM_V3)
        log->tag_size = sizeof(struct ext_disk_journal_tag3);
    else
        log->tag_size = 8 + (log->incompat & EXT_JOURNAL_INCOMPAT_64BIT ? 4 : 0) +
                        (log->incompat & EXT_JOURNAL_INCOMPAT_CSUM_V2 ? 2 : 0);
}

void ext_log_set_features(struct ext_log *log, uint32_t incompat) {
    be32_store(&log->super.s_feature_incompat, incompat);
    if (incompat & (EXT_JOURNAL_INCOMPAT_CSUM_V2 | EXT_JOURNAL_INCOMPAT_CSUM_V3)) {
        be32_store(&log->super.s_feature_compat,
                   log->compat & ~(uint32_t)EXT_JOURNAL_COMPAT_CHECKSUM);
        log->super.s_checksum_type = EXT_JOURNAL_CHECKSUM_CRC32C;
    }
    log_set_format(log);
}

static int super_check_features(struct ext *ext, const struct ext_log *log) {
    uint32_t unknown = log->incompat & ~INCOMPAT_SUPPORTED;

    if (!unknown && be32_load(log->super.s_feature_ro_compat) == 0)
        return 0;
    log_error(ext->volume->log,
              "%s: journal super block: features incompat 0x%x, ro_compat 0x%x are not known; "
              "mount the volume with Linux",
              ext->volume->name, unknown, be32_load(log->super.s_feature_ro_compat));
    return -ENOTSUP;
}

static int super_check(struct ext *ext, struct ext_log *log, uint64_t file_blocks) {
    const struct ext_disk_journal_super *super = &log->super;
    uint32_t type = be32_load(super->s_header.h_blocktype);
    uint32_t length = be32_load(super->s_maxlen), first = be32_load(super->s_first);
    uint32_t start = be32_load(super->s_start), fast = 0;

    if (be32_load(super->s_header.h_magic) != EXT_JOURNAL_MAGIC)
        return super_bad(ext, "h_magic", be32_load(super->s_header.h_magic), "JBD2's");
    if (type != EXT_JOURNAL_SUPER_V1 && type != EXT_JOURNAL_SUPER_V2)
        return super_bad(ext, "h_blocktype", type, "3 or 4");
    if (be32_load(super->s_blocksize) != log->block_size)
        return super_bad(ext, "s_blocksize", be32_load(super->s_blocksize), "the volume's");
    if (type == EXT_JOURNAL_SUPER_V1) /* what lies behind its fields means nothing */
        memset((char *)&log->super + offsetof(struct ext_disk_journal_super, s_feature_compat), 0,
               sizeof(*super) - offsetof(struct ext_disk_journal_super, s_feature_compat));
    log_set_format(log);
    int rc = super_check_features(ext, log);
    if (rc < 0)
        return rc;
    if (log->checksums && super->s_checksum_type != EXT_JOURNAL_CHECKSUM_CRC32C)
        return super_bad(ext, "s_checksum_type", super->s_checksum_type, "4 (crc32c)");
    if (log->checksums && be32_load(super->s_checksum) != super_checksum(super))
        return super_bad(ext, "s_checksum", be32_load(super->s_checksum), "that of the block");
    if (log->incompat & EXT_JOURNAL_INCOMPAT_FAST_COMMIT)
        fast = be32_load(super->s_num_fc_blks) ? be32_load(super->s_num_fc_blks) : 256;
    if (length > file_blocks)
        return super_bad(ext, "s_maxlen", length, "at most the file's blocks");
    if (first == 0 || first >= length || fast >= length - first || length - first - fast < 16)
        return super_bad(ext, "s_first", first, "1, with a ring behind it");
    if (start != 0 && (start < first || start >= length - fast))
        return super_bad(ext, "s_start", start, "0, or a block of the ring");
    log->first = first;
    log->end = length - fast;
    return 0;
}

int ext_log_super_write(struct ext_log *log, uint32_t start, uint32_t sequence) {
    const struct ext_log_run *run = &log->runs[0];

    be32_store(&log->super.s_start, start);
    be32_store(&log->super.s_sequence, sequence);
    if (log->checksums)
        be32_store(&log->super.s_checksum, super_checksum(&log->super));
    return device_write(log->device, run->physical * log->block_size, &log->super,
                        sizeof(log->super), PURPOSE_JOURNAL);
}

/* --- life ------------------------------------------------------------------------------------- */

static int log_inode_load(struct ext *ext, struct inode *inode) {
    int rc = ext_inode_load_any(inode);
    uint64_t blocks = inode->size >> ext->geometry.block_bits;

    if (rc == -ESTALE)
        return log_wrong(ext, "journal (inode %" PRIu64 "): the inode is not in use", inode->ino);
    if (rc == 0 && (!S_ISREG(inode->mode) || blocks < 2 || blocks > UINT32_MAX))
        return log_wrong(ext,
                         "journal (inode %" PRIu64 "): mode 0%o, %" PRIu64
                         " blocks; expected a regular file of 2 blocks or more",
                         inode->ino, inode->mode, blocks);
    return rc;
}

/* Takes up the journal in the file that the inode describes. */
static int log_take_up(struct ext *ext, struct inode *inode, struct ext_log *log) {
    int rc = log_map(ext, inode, log, 1);

    if (rc == 0)
        rc = device_read(log->device, log->runs[0].physical * log->block_size, &log->super,
                         sizeof(log->super), PURPOSE_JOURNAL);
    if (rc == 0)
        rc = super_check(ext, log, inode->size >> ext->geometry.block_bits);
    log->run_count = 0;
    if (rc == 0)
        rc = log_map(ext, inode, log, be32_load(log->super.s_maxlen));
    return rc;
}

/* Describes the journal's file by the copy that the super block has of the inode's map and size.
 * False: there is none, or it says what the inode does. */
static bool log_inode_restore(struct ext *ext, struct inode *inode) {
    const struct ext_disk_super *super = &ext->super;
    struct ext_inode *file = ext_inode_of(inode);
    uint64_t size = (uint64_t)le32_load(super->s_jnl_blocks[15]) << 32;
    uint32_t block[EXT_BLOCK_SLOTS];
    bool extents =
        le16_load(((const struct ext_disk_extent_header *)super->s_jnl_blocks)->eh_magic) ==
        EXT_EXTENT_MAGIC;

    size |= le32_load(super->s_jnl_blocks[16]);
    for (int i = 0; i < EXT_BLOCK_SLOTS; i++)
        block[i] = le32_load(super->s_jnl_blocks[i]);
    if (extents)
        memcpy(block, super->s_jnl_blocks, sizeof(block));
    if (inode->ino != EXT_JOURNAL_INO || super->s_jnl_backup_type != EXT_JOURNAL_BACKUP_BLOCKS ||
        size >> ext->geometry.block_bits < 2 || size >> ext->geometry.block_bits > UINT32_MAX ||
        (S_ISREG(inode->mode) && inode->size == size &&
         extents == ((inode->flags & EXT_INODE_EXTENTS) != 0) &&
         memcmp(file->block, block, sizeof(block)) == 0))
        return false;
    ext_inode_evict(inode);
    inode->mode = S_IFREG | 0600;
    inode->flags = extents ? EXT_INODE_EXTENTS : 0;
    inode->size = size;
    memcpy(file->block, block, sizeof(block));
    return true;
}

static int log_load(struct ext *ext, struct inode *inode, struct ext_log *log) {
    int rc = log_inode_load(ext, inode);

    if (rc == 0)
        rc = log_take_up(ext, inode, log);
    if (rc != -EUCLEAN || !log_inode_restore(ext, inode))
        return rc;
    (void)ext_corrupt(ext,
                      "journal (inode %" PRIu64 "): the copy of its map in the super block is used "
                      "instead; run e2fsck -f",
                      inode->ino);
    log->run_count = 0;
    return log_take_up(ext, inode, log);
}

int ext_log_open(struct ext *ext, struct ext_log *log) {
    struct inode *inode;
    uint32_t ino = le32_load(ext->super.s_journal_inum);
    int rc;

    *log = (struct ext_log){.device = ext->volume->device,
                            .messages = ext->volume->log,
                            .name = ext->volume->name,
                            .block_size = ext->geometry.block_size};
    if (ino == 0) {
        log_error(ext->volume->log,
                  "%s: super block: the journal is on another device (s_journal_dev 0x%x), which "
                  "is not supported; mount it with Linux",
                  ext->volume->name, le32_load(ext->super.s_journal_dev));
        return -ENOTSUP;
    }
    inode = calloc(1, sizeof(*inode) + sizeof(struct ext_inode));
    if (!inode)
        return -ENOMEM;
    inode->volume = ext->volume;
    inode->ino = ino;
    rc = log_load(ext, inode, log);
    ext_inode_evict(inode);
    free(inode);
    if (rc < 0)
        ext_log_close(log);
    return rc;
}

void ext_log_close(struct ext_log *log) {
    free(log->runs);
    log->runs = NULL;
    log->run_count = 0;
}
