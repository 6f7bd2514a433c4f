/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over journal_log.c. Reading the log: what is committed goes home.
 *
 * Three passes over the same blocks:
 *   scan    finds the end: the first transaction without a valid commit block
 *   revoke  notes the last transaction in which each revoked block was revoked
 *   replay  applies the blocks that were not revoked in their own transaction or a later one
 *
 * Invariants:
 *  1. A pass reads at most as many blocks as the ring has, whatever these say.
 *  2. Nothing is applied before the scan has found every descriptor of the committed part sound.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/ext/crc.h"
#include "layouts/ext/journal.h"

enum pass { PASS_SCAN, PASS_REVOKE, PASS_REPLAY };

struct revoked {
    uint64_t block;
    uint32_t sequence;
};

struct reading {
    struct ext_replay *replay;
    const struct ext_log *log;
    enum pass pass;
    uint32_t block, sequence; /* where it is */
    uint32_t left;            /* blocks that may still be read */
    uint32_t end_sequence;    /* the scan's answer */
    uint32_t sum;             /* of the transaction so far, where the log has such */
    const char *doubt;        /* what is wrong with the transaction, which may be unfinished */
    char *control, *data;     /* owned: a block each */
    struct revoked *table;    /* owned: open addressing, sequence of the last; block 0: free */
    uint32_t table_bits, table_count;
};

static int reading_bad(const struct reading *reading, const char *what) {
    log_error(reading->log->messages,
              "%s: journal block %u (transaction %u): %s; run e2fsck, which may have to drop it",
              reading->log->name, reading->block, reading->sequence, what);
    return -EUCLEAN;
}

/* --- the revoke table --------------------------------------------------------------------------
 */

static struct revoked *revoke_slot(const struct reading *reading, uint64_t block) {
    uint32_t mask = (1u << reading->table_bits) - 1;
    uint32_t at = (uint32_t)((block * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;

    while (reading->table[at].block != 0 && reading->table[at].block != block)
        at = (at + 1) & mask;
    return &reading->table[at];
}

static int revoke_grow(struct reading *reading) {
    uint32_t old_size = reading->table ? 1u << reading->table_bits : 0;
    struct revoked *old = reading->table;

    if (reading->table_count < old_size / 2)
        return 0;
    reading->table_bits = old ? reading->table_bits + 1 : 8;
    reading->table = calloc((size_t)1 << reading->table_bits, sizeof(struct revoked));
    if (!reading->table) {
        reading->table = old;
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].block != 0)
            *revoke_slot(reading, old[i].block) = old[i];
    free(old);
    return 0;
}

static int revoke_note(struct reading *reading, uint64_t block) {
    int rc = block == 0 ? 0 : revoke_grow(reading);
    struct revoked *slot;

    if (rc < 0 || block == 0) /* block 0 is no file's */
        return rc;
    slot = revoke_slot(reading, block);
    if (slot->block == 0) {
        *slot = (struct revoked){block, reading->sequence};
        reading->table_count++;
    } else if (ext_sequence_after(reading->sequence, slot->sequence)) {
        slot->sequence = reading->sequence;
    }
    return 0;
}

static bool revoke_covers(const struct reading *reading, uint64_t block) {
    const struct revoked *slot;

    if (!reading->table)
        return false;
    slot = revoke_slot(reading, block);
    return slot->block == block && !ext_sequence_after(reading->sequence, slot->sequence);
}

static int revoke_block(struct reading *reading) {
    const struct ext_disk_journal_revoke *header = (const void *)reading->control;
    uint32_t width = reading->log->incompat & EXT_JOURNAL_INCOMPAT_64BIT ? 8 : 4;
    uint32_t used = be32_load(header->r_count), at = sizeof(*header);
    uint32_t room = reading->log->block_size -
                    (reading->log->checksums ? sizeof(struct ext_disk_journal_tail) : 0);

    if (used < at || used > room)
        return reading_bad(reading, "r_count of a revoke block does not fit in it");
    for (; at + width <= used; at += width) {
        const char *entry = reading->control + at;
        int rc = revoke_note(reading, width == 8 ? be64_load(*(const be64 *)(const void *)entry)
                                                 : be32_load(*(const be32 *)(const void *)entry));

        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- descriptors -------------------------------------------------------------------------------
 */

struct tag {
    uint64_t home;
    uint32_t flags, checksum;
};

/* Decodes the tag at *at, which goes on to the next. False: there is no room for one. */
static bool tag_next(const struct reading *reading, uint32_t *at, struct tag *tag) {
    const struct ext_log *log = reading->log;
    const char *bytes = reading->control + *at;
    uint32_t end =
        log->block_size - (log->checksums ? (uint32_t)sizeof(struct ext_disk_journal_tail) : 0);

    if (*at + log->tag_size > end)
        return false;
    if (log->incompat & EXT_JOURNAL_INCOMPAT_CSUM_V3) {
        const struct ext_disk_journal_tag3 *disk = (const void *)bytes;

        tag->flags = be32_load(disk->t_flags);
        tag->checksum = be32_load(disk->t_checksum);
        tag->home = be32_load(disk->t_blocknr);
        if (log->incompat & EXT_JOURNAL_INCOMPAT_64BIT)
            tag->home |= (uint64_t)be32_load(disk->t_blocknr_high) << 32;
    } else {
        const struct ext_disk_journal_tag *disk = (const void *)bytes;

        tag->flags = be16_load(disk->t_flags);
        tag->checksum = be16_load(disk->t_checksum);
        tag->home = be32_load(disk->t_blocknr);
        if (log->incompat & EXT_JOURNAL_INCOMPAT_64BIT)
            tag->home |= (uint64_t)be32_load(disk->t_blocknr_high) << 32;
    }
    *at += log->tag_size + (tag->flags & EXT_JOURNAL_TAG_SAME_UUID ? 0 : 16);
    return true;
}

static bool data_checksum_valid(const struct reading *reading, const struct tag *tag) {
    uint32_t crc;

    if (!reading->log->checksums)
        return true;
    crc = ext_log_data_checksum(reading->log, reading->sequence, reading->data);
    if (!(reading->log->incompat & EXT_JOURNAL_INCOMPAT_CSUM_V3))
        crc &= 0xFFFF;
    return crc == tag->checksum;
}

static void sum_add(struct reading *reading, const char *block) {
    if (reading->pass == PASS_SCAN && reading->log->sums)
        reading->sum = crc32_be(reading->sum, block, reading->log->block_size);
}

/* The commit block's sum over its transaction, which Linux writes, or leaves out. */
static bool sum_valid(const struct reading *reading) {
    const struct ext_disk_journal_commit *commit = (const void *)reading->control;
    uint32_t sum = be32_load(commit->h_chksum[0]);

    if (commit->h_chksum_type == 0 && commit->h_chksum_size == 0 && sum == 0)
        return true;
    return commit->h_chksum_type == EXT_JOURNAL_CHECKSUM_CRC32 &&
           commit->h_chksum_size == sizeof(sum) && sum == reading->sum;
}

/* What speaks against applying the block of the log that the tag describes is only in doubt: the
 * transaction may turn out to be one that a crash has cut off. */
static int tag_check(struct reading *reading, const struct tag *tag) {
    const struct ext_replay *replay = reading->replay;

    if (tag->home < replay->first_block || tag->home >= replay->blocks_count)
        reading->doubt = "a block of it is to go home outside the volume";
    if (!reading->log->checksums && !reading->log->sums)
        return 0;
    int rc = ext_log_read(reading->log, reading->block, reading->data);
    if (rc == 0 && !data_checksum_valid(reading, tag))
        reading->doubt = "a block of it differs from its checksum";
    if (rc == 0)
        sum_add(reading, reading->data);
    return rc;
}

static int tag_apply(struct reading *reading, const struct tag *tag) {
    struct ext_replay *replay = reading->replay;
    int rc;

    if (tag->flags & EXT_JOURNAL_TAG_DELETED)
        return 0;
    if (revoke_covers(reading, tag->home)) {
        replay->revoked++;
        return 0;
    }
    rc = ext_log_read(reading->log, reading->block, reading->data);
    if (rc < 0)
        return rc;
    if (tag->flags & EXT_JOURNAL_TAG_ESCAPED)
        be32_store((be32 *)(void *)reading->data, EXT_JOURNAL_MAGIC);
    replay->blocks++;
    return replay->apply(replay->context, tag->home, reading->data);
}

/* Goes over the descriptor's blocks; reading->block is then the last of them. 1: go on; 0: the log
 * ends here. */
static int descriptor(struct reading *reading) {
    uint32_t at = sizeof(struct ext_disk_journal_header);
    struct tag tag = {0};
    int rc = 1;

    sum_add(reading, reading->control);
    while (rc == 1 && !(tag.flags & EXT_JOURNAL_TAG_LAST) && tag_next(reading, &at, &tag)) {
        if (reading->left == 0)
            return reading->pass == PASS_SCAN ? 0 : -EUCLEAN;
        reading->left--;
        reading->block = ext_log_step(reading->log, reading->block, 1);
        if (reading->pass == PASS_SCAN)
            rc = tag_check(reading, &tag);
        else if (reading->pass == PASS_REPLAY)
            rc = tag_apply(reading, &tag);
        if (rc == 0)
            rc = 1;
    }
    return rc;
}

/* --- passes -------------------------------------------------------------------------------------
 */

/* Is the block that was read one that this transaction can have, and whole? */
static bool control_valid(const struct reading *reading, uint32_t *type) {
    const struct ext_disk_journal_header *header = (const void *)reading->control;
    const struct ext_log *log = reading->log;

    *type = be32_load(header->h_blocktype);
    if (be32_load(header->h_magic) != EXT_JOURNAL_MAGIC ||
        be32_load(header->h_sequence) != reading->sequence)
        return false;
    if (*type == EXT_JOURNAL_COMMIT) {
        const struct ext_disk_journal_commit *commit = (const void *)header;

        return !log->checksums ||
               be32_load(commit->h_chksum[0]) == ext_log_commit_checksum(log, commit);
    }
    if (*type != EXT_JOURNAL_DESCRIPTOR && *type != EXT_JOURNAL_REVOKE)
        return false;
    return !log->checksums || be32_load(ext_log_tail(log, reading->control)->t_checksum) ==
                                  ext_log_tail_checksum(log, reading->control);
}

/* A commit block. With asynchronous commits it says nothing about the blocks before it, which their
 * checksums must; else these were durable before it was written. */
static int transaction_end(struct reading *reading) {
    if (reading->pass == PASS_SCAN && reading->log->sums && !sum_valid(reading))
        reading->doubt = "its blocks differ from the checksum in its commit block";
    if (reading->doubt && reading->log->incompat & EXT_JOURNAL_INCOMPAT_ASYNC_COMMIT)
        return 0;
    if (reading->doubt)
        return reading_bad(reading, reading->doubt);
    reading->sequence++;
    reading->sum = EXT_CRC_START;
    return 1;
}

/* Reads one block of control and what belongs to it. 1: go on; 0: the log ends here. */
static int pass_step(struct reading *reading) {
    uint32_t type;
    int rc;

    if (reading->left == 0 ||
        (reading->pass != PASS_SCAN && reading->sequence == reading->end_sequence))
        return 0;
    reading->left--;
    rc = ext_log_read(reading->log, reading->block, reading->control);
    if (rc < 0)
        return rc;
    if (!control_valid(reading, &type))
        return reading->pass == PASS_SCAN ? 0 : reading_bad(reading, "it has changed meanwhile");
    rc = 1;
    if (type == EXT_JOURNAL_DESCRIPTOR)
        rc = descriptor(reading);
    else if (type == EXT_JOURNAL_COMMIT)
        rc = transaction_end(reading);
    else if (reading->pass == PASS_REVOKE)
        rc = revoke_block(reading) < 0 ? -EUCLEAN : 1;
    reading->block = ext_log_step(reading->log, reading->block, 1);
    return rc;
}

static int run_pass(struct reading *reading, enum pass pass) {
    const struct ext_log *log = reading->log;
    int rc;

    reading->pass = pass;
    reading->sum = EXT_CRC_START;
    reading->doubt = NULL; /* the scan's was about the transaction at which the log ends */
    reading->block = be32_load(log->super.s_start);
    reading->sequence = be32_load(log->super.s_sequence);
    reading->left = log->end - log->first;
    do
        rc = pass_step(reading);
    while (rc == 1);
    return rc;
}

/* Fast commits lie behind the ring, in a format of their own, and go on where the log ends. The
 * first begins with a tag of type 9, which has features and the number of that transaction
 * (Documentation/filesystems/ext4/journal.rst, "Fast commits"). */
static int fast_commits_refuse(struct reading *reading) {
    struct head {
        le16 tag, length;
        le32 features, tid;
    };
    const struct head *head = (const void *)reading->data;
    const struct ext_log *log = reading->log;
    int rc;

    if (!(log->incompat & EXT_JOURNAL_INCOMPAT_FAST_COMMIT))
        return 0;
    rc = ext_log_read(log, log->end, reading->data);
    if (rc < 0 || le16_load(head->tag) != 9 || le32_load(head->tid) != reading->end_sequence)
        return rc;
    log_error(log->messages,
              "%s: journal: it holds fast commits (feature \"fast_commit\"), which are not "
              "supported; mount the volume once with Linux, or run e2fsck",
              log->name);
    return -ENOTSUP;
}

static int scan(struct reading *reading) {
    const struct ext_log *log = reading->log;
    int rc;

    if (log->incompat & EXT_JOURNAL_INCOMPAT_ASYNC_COMMIT && !log->checksums && !log->sums) {
        log_error(log->messages,
                  "%s: journal: feature \"async_commit\" without checksums: what is committed "
                  "cannot be told; run e2fsck",
                  log->name);
        return -ENOTSUP;
    }
    rc = run_pass(reading, PASS_SCAN);
    reading->end_sequence = reading->sequence;
    return rc < 0 ? rc : fast_commits_refuse(reading);
}

int ext_journal_replay(struct ext_replay *replay) {
    const struct ext_log *log = replay->log;
    struct reading reading = {.replay = replay, .log = log};
    uint32_t start = be32_load(log->super.s_start);
    int rc = 0;

    replay->transactions = replay->blocks = replay->revoked = 0;
    replay->end_sequence = reading.end_sequence = be32_load(log->super.s_sequence);
    reading.control = malloc(log->block_size);
    reading.data = malloc(log->block_size);
    if (!reading.control || !reading.data)
        rc = -ENOMEM;
    if (rc == 0 && start == 0)
        rc = fast_commits_refuse(&reading);
    else if (rc == 0)
        rc = scan(&reading);
    if (rc == 0 && start != 0)
        rc = run_pass(&reading, PASS_REVOKE);
    if (rc == 0 && start != 0)
        rc = run_pass(&reading, PASS_REPLAY);
    replay->end_sequence = reading.end_sequence;
    replay->transactions = reading.end_sequence - be32_load(log->super.s_sequence);
    free(reading.control);
    free(reading.data);
    free(reading.table);
    return rc;
}
