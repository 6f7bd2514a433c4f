/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, the bottom: the journal as it lies on disk (JBD2), nothing else. All numbers
 * are big-endian.
 * Sources of the facts: the Linux kernel's Documentation/filesystems/ext4/journal.rst, and logs
 * written by the kernel's driver and by debugfs.
 *
 * The log is a file of the volume, used as a ring from block s_first to the end. A transaction is
 *
 *   [revoke]... [descriptor][block][block]... [descriptor][block]... [commit]
 *
 * where a descriptor's tags say where the blocks after it belong. It counts once its commit block
 * is there. The log is read from s_start on, whose transaction has number s_sequence; it ends where
 * a block does not carry the number expected. s_start 0: there is nothing to read.
 */
#ifndef LAYOUTFS_EXT_JOURNAL_FORMAT_H
#define LAYOUTFS_EXT_JOURNAL_FORMAT_H

#include <assert.h>
#include <stddef.h>

#include "fs/endian.h"

#define EXT_JOURNAL_MAGIC      0xC03B3998u
#define EXT_JOURNAL_BLOCKS_MIN 1024u

enum ext_journal_block_type {
    EXT_JOURNAL_DESCRIPTOR = 1,
    EXT_JOURNAL_COMMIT = 2,
    EXT_JOURNAL_SUPER_V1 = 3,
    EXT_JOURNAL_SUPER_V2 = 4,
    EXT_JOURNAL_REVOKE = 5,
};

struct ext_disk_journal_header {
    be32 h_magic;
    be32 h_blocktype; /* enum ext_journal_block_type */
    be32 h_sequence;  /* of the transaction */
};

enum ext_journal_compat { EXT_JOURNAL_COMPAT_CHECKSUM = 0x1 };
enum ext_journal_incompat {
    EXT_JOURNAL_INCOMPAT_REVOKE = 0x1,
    EXT_JOURNAL_INCOMPAT_64BIT = 0x2,
    EXT_JOURNAL_INCOMPAT_ASYNC_COMMIT = 0x4,
    EXT_JOURNAL_INCOMPAT_CSUM_V2 = 0x8,
    EXT_JOURNAL_INCOMPAT_CSUM_V3 = 0x10,
    EXT_JOURNAL_INCOMPAT_FAST_COMMIT = 0x20,
};
#define EXT_JOURNAL_CHECKSUM_CRC32  1u /* h_chksum_type of COMPAT_CHECKSUM, h_chksum_size 4 */
#define EXT_JOURNAL_CHECKSUM_CRC32C 4u /* s_checksum_type */

struct ext_disk_journal_super {
    struct ext_disk_journal_header s_header;
    be32 s_blocksize;
    be32 s_maxlen; /* blocks in the journal file */
    be32 s_first;  /* of the ring */
    be32 s_sequence;
    be32 s_start;
    be32 s_errno; /* of an aborted journal, negative */
    /* From here on only in version 2. */
    be32 s_feature_compat;
    be32 s_feature_incompat;
    be32 s_feature_ro_compat;
    uint8_t s_uuid[16];
    be32 s_nr_users;
    be32 s_dynsuper;
    be32 s_max_transaction;
    be32 s_max_trans_data;
    uint8_t s_checksum_type;
    uint8_t s_padding2[3];
    be32 s_num_fc_blks; /* at the end of the file, for fast commits */
    be32 s_head;
    uint8_t s_padding[160];
    be32 s_checksum;
    uint8_t s_users[768];
};

enum ext_journal_tag_flags {
    EXT_JOURNAL_TAG_ESCAPED = 1,   /* the block began with the magic, which the log has as 0 */
    EXT_JOURNAL_TAG_SAME_UUID = 2, /* no UUID follows the tag */
    EXT_JOURNAL_TAG_DELETED = 4,
    EXT_JOURNAL_TAG_LAST = 8,
};

/* With CSUM_V3. */
struct ext_disk_journal_tag3 {
    be32 t_blocknr;
    be32 t_flags;
    be32 t_blocknr_high;
    be32 t_checksum;
};

/* Else. Bytes in use: 8, with 64BIT 12; with CSUM_V2 two more. */
struct ext_disk_journal_tag {
    be32 t_blocknr;
    be16 t_checksum; /* CSUM_V2: the lower half */
    be16 t_flags;
    be32 t_blocknr_high; /* 64BIT */
};

/* With CSUM_V2 or V3, the last four bytes of descriptor and revoke blocks. */
struct ext_disk_journal_tail {
    be32 t_checksum;
};

struct ext_disk_journal_revoke {
    struct ext_disk_journal_header r_header;
    be32 r_count; /* bytes used, this header's included; then block numbers of 4 or (64BIT) 8 */
};

struct ext_disk_journal_commit {
    struct ext_disk_journal_header h_header;
    uint8_t h_chksum_type;
    uint8_t h_chksum_size;
    uint8_t h_padding[2];
    be32 h_chksum[8]; /* [0]: with CSUM_V2 or V3 of this block (crc32c). Else, when type and size
                         are not 0: of the transaction's descriptors and logged blocks, as they
                         stand in the log, revoke blocks not included (crc32, highest bit first) */
    be64 h_commit_sec;
    be32 h_commit_nsec;
};

static_assert(sizeof(struct ext_disk_journal_super) == 1024, "journal super block");
static_assert(offsetof(struct ext_disk_journal_super, s_feature_compat) == 0x24, "features");
static_assert(offsetof(struct ext_disk_journal_super, s_uuid) == 0x30, "s_uuid");
static_assert(offsetof(struct ext_disk_journal_super, s_checksum_type) == 0x50, "s_checksum_type");
static_assert(offsetof(struct ext_disk_journal_super, s_num_fc_blks) == 0x54, "s_num_fc_blks");
static_assert(offsetof(struct ext_disk_journal_super, s_checksum) == 0xFC, "s_checksum");
static_assert(sizeof(struct ext_disk_journal_tag3) == 16, "tag, version 3");
static_assert(sizeof(struct ext_disk_journal_commit) == 60, "commit block");

#endif
