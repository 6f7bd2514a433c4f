/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext. Giving a volume a journal, and taking it away: for mkfs and for conversion.
 * Both work on a volume that is not mounted (ext_edit).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layouts/ext/journal.h"

/* As mke2fs(8) chooses it, by the number of blocks, whatever their size. 0: too small for one. */
static uint64_t default_blocks(uint64_t volume_blocks) {
    static const struct {
        uint64_t below, blocks;
    } steps[] = {
        {2048, 0},         {32768, 1024},      {262144, 4096},
        {524288, 8192},    {4194304, 16384},   {8388608, 32768},
        {16777216, 65536}, {33554432, 131072}, {UINT64_MAX, 262144},
    };
    size_t i = 0;

    while (volume_blocks >= steps[i].below)
        i++;
    return steps[i].blocks;
}

static int refuse(const struct ext *ext, const char *sentence) {
    log_error(ext->volume->log, "%s: journal: %s", ext->volume->name, sentence);
    return -EINVAL;
}

/* --- making one ---------------------------------------------------------------------------------
 */

/* As mke2fs: in the middle of an ext4 volume, where the way to it is short; else at the start. */
static uint64_t journal_goal(const struct ext *ext) {
    bool middle = ext->geometry.incompat & EXT_INCOMPAT_EXTENTS;

    return ext_group_first_block(&ext->geometry, middle ? ext->geometry.groups / 2 : 0);
}

static int journal_allocate(struct inode *inode, uint64_t blocks) {
    struct ext *ext = ext_of(inode->volume);
    struct timestamp now = clock_calendar(ext->volume->clock);
    uint64_t done = 0;
    int rc = 0;

    now.nanoseconds = 0;
    inode->mode = S_IFREG | 0600;
    inode->nlink = 1;
    inode->atime = inode->mtime = inode->ctime = now;
    ext_inode_of(inode)->extra_size = ext_extra_size(ext);
    ext_map_initialise(inode);
    struct ext_writer *writer = ext_writer_take(inode);
    if (!writer)
        return -ENOMEM;
    writer->next_physical = journal_goal(ext);
    while (rc == 0 && done < blocks) {
        uint64_t step;

        rc = ext_bmap_allocate(inode, done, blocks - done, &step);
        if (rc == 0)
            done += step;
    }
    inode->size = blocks << ext->geometry.block_bits;
    return rc < 0 ? rc : ext_inode_store(inode);
}

/* Old bytes must not look like transactions. */
static int journal_zero(struct inode *inode, uint64_t blocks) {
    struct ext *ext = ext_of(inode->volume);
    uint32_t bits = ext->geometry.block_bits;
    int rc = 0;

    for (uint64_t logical = 0, count = 0; rc == 0 && logical < blocks; logical += count) {
        uint64_t physical;

        rc = ext_bmap(inode, logical, &physical, &count);
        if (rc == 0 && count > blocks - logical)
            count = blocks - logical;
        if (rc == 0)
            rc = device_zero(ext->volume->device, physical << bits, count << bits);
    }
    return rc;
}

static int journal_super_write(struct inode *inode, uint64_t blocks) {
    struct ext *ext = ext_of(inode->volume);
    struct ext_disk_journal_super super = {0};
    uint64_t physical, count;
    int rc = ext_bmap(inode, 0, &physical, &count);

    be32_store(&super.s_header.h_magic, EXT_JOURNAL_MAGIC);
    be32_store(&super.s_header.h_blocktype, EXT_JOURNAL_SUPER_V2);
    be32_store(&super.s_blocksize, ext->geometry.block_size);
    be32_store(&super.s_maxlen, (uint32_t)blocks);
    be32_store(&super.s_first, 1);
    be32_store(&super.s_sequence, 1);
    be32_store(&super.s_nr_users, 1);
    memcpy(super.s_uuid, ext->super.s_uuid, sizeof(super.s_uuid));
    if (rc == 0)
        rc = device_write(ext->volume->device, physical << ext->geometry.block_bits, &super,
                          sizeof(super), PURPOSE_JOURNAL);
    return rc;
}

/* The super block says where the journal is, twice: the map is kept there as well. */
static void journal_announce(struct inode *inode) {
    struct ext *ext = ext_of(inode->volume);
    struct ext_disk_super *super = &ext->super;
    const struct ext_inode *private = ext_inode_of(inode);

    ext_feature_announce(ext, &ext->geometry.compat, &super->s_feature_compat,
                         EXT_COMPAT_HAS_JOURNAL);
    le32_store(&super->s_journal_inum, EXT_JOURNAL_INO);
    super->s_jnl_backup_type = EXT_JOURNAL_BACKUP_BLOCKS;
    if (le32_load(super->s_overhead_clusters) != 0)
        le32_store(&super->s_overhead_clusters,
                   le32_load(super->s_overhead_clusters) +
                       (uint32_t)(inode->size >> ext->geometry.block_bits));
    if (inode->flags & EXT_INODE_EXTENTS)
        memcpy((void *)super->s_jnl_blocks, private->block, sizeof(private->block));
    else
        for (int i = 0; i < EXT_BLOCK_SLOTS; i++)
            le32_store(&super->s_jnl_blocks[i], private->block[i]);
    le32_store(&super->s_jnl_blocks[15], (uint32_t)(inode->size >> 32));
    le32_store(&super->s_jnl_blocks[16], (uint32_t)inode->size);
    ext->super_dirty = true;
}

static int journal_make(struct inode *inode, uint64_t blocks) {
    int rc = journal_allocate(inode, blocks);

    if (rc == 0)
        rc = journal_zero(inode, blocks);
    if (rc == 0)
        rc = journal_super_write(inode, blocks);
    if (rc == 0)
        journal_announce(inode);
    return rc;
}

int ext_journal_add(struct ext *ext, uint64_t bytes) {
    uint64_t blocks =
        bytes ? bytes >> ext->geometry.block_bits : default_blocks(ext->geometry.blocks_count);
    struct inode *inode;
    int rc;

    if (ext->geometry.compat & EXT_COMPAT_HAS_JOURNAL)
        return refuse(ext, "the volume has one already");
    if (le32_load(ext->super.s_rev_level) == 0)
        return refuse(ext, "a volume of revision 0 has no features to announce one");
    if (blocks < EXT_JOURNAL_BLOCKS_MIN || blocks > 10240000)
        return refuse(ext, "its size is to be 1024 to 10240000 blocks");
    if (blocks > ext->free_blocks / 2)
        return refuse(ext, "it would take more than half of the free blocks");
    inode = calloc(1, sizeof(*inode) + sizeof(struct ext_inode));
    if (!inode)
        return -ENOMEM;
    inode->volume = ext->volume;
    inode->ino = EXT_JOURNAL_INO;
    rc = journal_make(inode, blocks);
    ext_inode_evict(inode);
    free(inode);
    return rc;
}

/* --- taking it away -----------------------------------------------------------------------------
 */

static int record_clear(struct ext *ext, uint64_t ino) {
    struct ext_disk_inode *record;
    struct buffer *buffer;
    int rc = ext_inode_record(ext, ino, &buffer, &record);

    if (rc < 0)
        return rc;
    memset((void *)record, 0, ext->geometry.inode_size);
    ext_dirty(ext, buffer);
    buffer_put(buffer);
    return 0;
}

static int journal_remove(struct ext *ext) {
    struct ext_disk_super *super = &ext->super;
    uint64_t ino = le32_load(super->s_journal_inum);
    struct inode *inode;
    int rc;

    if (!(ext->geometry.compat & EXT_COMPAT_HAS_JOURNAL) || ino != EXT_JOURNAL_INO)
        return refuse(ext, "the volume has none of its own");
    inode = calloc(1, sizeof(*inode) + sizeof(struct ext_inode));
    if (!inode)
        return -ENOMEM;
    inode->volume = ext->volume;
    inode->ino = ino;
    rc = ext_inode_load_any(inode);
    uint64_t blocks = inode->size >> ext->geometry.block_bits;
    uint32_t overhead = le32_load(super->s_overhead_clusters);
    if (rc == 0)
        rc = ext_truncate(inode, 0);
    ext_inode_evict(inode);
    free(inode);
    if (rc == 0)
        rc = record_clear(ext, ino);
    if (rc < 0)
        return rc;
    ext->geometry.compat &= ~(uint32_t)EXT_COMPAT_HAS_JOURNAL;
    le32_store(&super->s_feature_compat, ext->geometry.compat);
    le32_store(&super->s_journal_inum, 0);
    super->s_jnl_backup_type = 0;
    if (overhead >= blocks)
        le32_store(&super->s_overhead_clusters, overhead - (uint32_t)blocks);
    memset((void *)super->s_jnl_blocks, 0, sizeof(super->s_jnl_blocks));
    ext->super_dirty = true;
    return 0;
}

static int convert(struct ext *ext, const void *context) {
    const struct options *options = context;
    bool sized = options_given(options, "journal_size");

    if (!options_given(options, "has_journal"))
        return refuse(ext, "has_journal or nohas_journal is to say what to do");
    if (!options_number(options, "has_journal"))
        return journal_remove(ext);
    return ext_journal_add(ext, sized ? (uint64_t)options_number(options, "journal_size") : 0);
}

int ext_convert(struct device *device, const struct options *options) {
    return ext_edit(device, options->log, convert, options);
}
