/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over journal_log.c. The parts of a commit (fs/commit.h).
 *
 * In the log a transaction is written as: revoke blocks, descriptors each followed by its blocks,
 * a flush, the commit block, a flush. The first flush makes durable what the commit block vouches
 * for: the blocks in the log, ordered data, and homes that were written since the last flush, which
 * is why the tail may move between the two. The second is what fsync waits for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/ext/journal.h"

/* --- sizes --------------------------------------------------------------------------------------
 */

static uint32_t tail_size(const struct ext_log *log) {
    return log->checksums ? (uint32_t)sizeof(struct ext_disk_journal_tail) : 0;
}

/* Only the first tag has the UUID behind it. */
static uint32_t tags_per_block(const struct ext_log *log) {
    uint32_t header = sizeof(struct ext_disk_journal_header) + sizeof(log->super.s_uuid);

    return (log->block_size - header - tail_size(log)) / log->tag_size;
}

static uint32_t revoke_width(const struct ext_log *log) {
    return log->incompat & EXT_JOURNAL_INCOMPAT_64BIT ? 8 : 4;
}

static uint32_t revokes_per_block(const struct ext_log *log) {
    return (log->block_size - (uint32_t)sizeof(struct ext_disk_journal_revoke) - tail_size(log)) /
           revoke_width(log);
}

static uint64_t revoked_blocks(const struct ext_transaction *transaction) {
    uint64_t count = 0;

    for (size_t i = 0; i < transaction->revoked.count; i++)
        count += transaction->revoked.ranges[i].count;
    return count;
}

/* Blocks beside those that are logged: revoke blocks, descriptors, the commit block. */
static uint32_t control_blocks(const struct ext_log *log,
                               const struct ext_transaction *transaction) {
    uint64_t tags = tags_per_block(log), revokes = revokes_per_block(log);
    uint64_t blocks = (transaction->count + tags - 1) / tags +
                      (revoked_blocks(transaction) + revokes - 1) / revokes + 1;

    return blocks > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)blocks;
}

uint32_t ext_transaction_cost(const struct ext_journal *journal,
                              const struct ext_transaction *transaction) {
    return transaction->count + control_blocks(&journal->log, transaction);
}

/* --- begin: freezing
 * ------------------------------------------------------------------------------ */

/* Room for the copies and the control blocks, and for one vector entry each. */
static int frozen_reserve(struct ext_journal *journal, uint32_t blocks) {
    size_t bytes = (size_t)blocks * journal->log.block_size;
    void *memory;

    if (bytes <= journal->frozen_room)
        return 0;
    memory = realloc(journal->frozen, bytes);
    if (!memory)
        return -ENOMEM;
    journal->frozen = memory;
    memory = realloc(journal->image, blocks * sizeof(struct iovec));
    if (!memory)
        return -ENOMEM;
    journal->image = memory;
    journal->frozen_room = bytes;
    return 0;
}

/* Room in the log: at home what can be, when it is short. */
static int log_reserve(struct ext_journal *journal, uint32_t cost) {
    int error = 0;

    if (journal->used > 0 && ext_journal_room(journal) < cost + journal->share)
        error = ext_journal_checkpoint(journal, cost);
    if (!error && ext_journal_room(journal) < cost)
        error = -ENOSPC;
    return error;
}

/* Where the tail will be once this commit's first flush has been: worth a write when the log is no
 * longer nearly empty. */
static int tail_plan(struct ext_journal *journal) {
    uint32_t size = journal->log.end - journal->log.first;
    int error;

    journal->tail_next = 0;
    if (journal->used < size / 4)
        return 0;
    error = ext_journal_homes_wait(journal);
    if (error)
        return error;
    ext_journal_advance(journal, &journal->tail_next, &journal->tail_next_sequence,
                        &journal->tail_next_used);
    if (journal->tail_next == journal->tail)
        journal->tail_next = 0;
    return 0;
}

/* The running transaction's blocks as they are now, and a new running transaction. */
static int freeze(struct ext_journal *journal) {
    struct ext_transaction *running = journal->running;
    uint32_t size = journal->log.block_size, cost = ext_transaction_cost(journal, running), i = 0;
    int error = frozen_reserve(journal, cost);
    struct ext_transaction *next;
    struct buffer *buffer;

    if (error)
        return error;
    next = ext_transaction_new(running->number + 1);
    running->homes = malloc(((size_t)running->count + 1) * sizeof(uint64_t));
    if (!next || !running->homes) {
        ext_transaction_free(next);
        return -ENOMEM;
    }
    TAILQ_FOREACH (buffer, &running->buffers, change_link) {
        memcpy(journal->frozen + (size_t)i * size, buffer_data(buffer), size);
        running->homes[i++] = buffer->block;
        buffer->changed = false; /* it stays pinned */
        buffer->logged = running->number;
    }
    TAILQ_INIT(&running->buffers);
    running->log_start = journal->head;
    running->log_count = cost;
    journal->committing = running;
    journal->running = next;
    return 0;
}

static bool transaction_empty(const struct ext_transaction *transaction) {
    return transaction->count == 0 && transaction->revoked.count == 0;
}

static int journal_begin(struct ext_journal *journal, struct inode *inode, bool data_only) {
    int error = journal->error;

    if (!error && (transaction_empty(journal->running) ||
                   (inode && ext_inode_committed(journal, inode, data_only))))
        return 0; /* but what was written in place is to be made durable */
    if (!error)
        error = ext_super_store(journal->ext);
    if (!error)
        error = log_reserve(journal, ext_transaction_cost(journal, journal->running));
    if (!error)
        error = tail_plan(journal);
    if (!error)
        error = freeze(journal);
    if (error)
        ext_journal_abort(journal, error);
    return error;
}

int ext_commit_begin(struct volume *volume, struct inode *inode, enum commit_cause cause,
                     bool *needed) {
    struct ext *ext = ext_of(volume);
    int error;

    *needed = true;
    if (ext->journal) {
        if (ext->journal->aborted)
            return -EROFS;
        return journal_begin(ext->journal, inode, cause == COMMIT_FDATASYNC);
    }
    error = ext_super_store(ext);
    return error ? error : buffer_sync(ext->buffers);
}

/* --- write
 * ---------------------------------------------------------------------------------------- */

/* Puts the transaction's blocks, in the order of the log, into journal->image. */
struct composer {
    struct ext_journal *journal;
    const struct ext_transaction *transaction;
    uint32_t blocks;  /* in the image so far */
    uint32_t control; /* blocks of control used so far; they lie behind the copies */
};

static void *compose(struct composer *composer, void *block) {
    struct ext_journal *journal = composer->journal;

    journal->image[composer->blocks++] = (struct iovec){block, journal->log.block_size};
    return block;
}

static void *compose_control(struct composer *composer, enum ext_journal_block_type type) {
    struct ext_journal *journal = composer->journal;
    size_t index = (size_t)composer->transaction->count + composer->control++;
    struct ext_disk_journal_header *header =
        (void *)(journal->frozen + index * journal->log.block_size);

    memset((void *)header, 0, journal->log.block_size);
    be32_store(&header->h_magic, EXT_JOURNAL_MAGIC);
    be32_store(&header->h_blocktype, type);
    be32_store(&header->h_sequence, (uint32_t)composer->transaction->number);
    return compose(composer, header);
}

static void seal(const struct ext_log *log, void *block) {
    if (log->checksums)
        be32_store(&ext_log_tail(log, block)->t_checksum, ext_log_tail_checksum(log, block));
}

static void compose_revokes(struct composer *composer) {
    const struct ext_log *log = &composer->journal->log;
    const struct ext_range_list *list = &composer->transaction->revoked;
    uint32_t width = revoke_width(log), at = 0;
    uint32_t end = sizeof(struct ext_disk_journal_revoke) + revokes_per_block(log) * width;
    struct ext_disk_journal_revoke *header = NULL;

    for (size_t i = 0; i < list->count; i++) {
        for (uint32_t j = 0; j < list->ranges[i].count; j++) {
            if (header && at == end) {
                seal(log, header);
                header = NULL;
            }
            if (!header) {
                header = compose_control(composer, EXT_JOURNAL_REVOKE);
                at = sizeof(*header);
            }
            if (width == 8)
                be64_store((be64 *)(void *)((char *)header + at), list->ranges[i].block + j);
            else
                be32_store((be32 *)(void *)((char *)header + at),
                           (uint32_t)(list->ranges[i].block + j));
            at += width;
            be32_store(&header->r_count, at);
        }
    }
    if (header)
        seal(log, header);
}

/* A block that begins with the magic would look like one of control. */
static uint32_t escape(void *block) {
    be32 *magic = block;

    if (be32_load(*magic) != EXT_JOURNAL_MAGIC)
        return 0;
    be32_store(magic, 0);
    return EXT_JOURNAL_TAG_ESCAPED;
}

static void tag_write(const struct ext_log *log, void *at, uint64_t home, uint32_t flags,
                      uint32_t checksum) {
    if (log->incompat & EXT_JOURNAL_INCOMPAT_CSUM_V3) {
        struct ext_disk_journal_tag3 *tag = at;

        be32_store(&tag->t_blocknr, (uint32_t)home);
        be32_store(&tag->t_blocknr_high, (uint32_t)(home >> 32));
        be32_store(&tag->t_flags, flags);
        be32_store(&tag->t_checksum, checksum);
    } else {
        struct ext_disk_journal_tag *tag = at;

        be32_store(&tag->t_blocknr, (uint32_t)home);
        be16_store(&tag->t_flags, (uint16_t)flags);
        if (log->incompat & EXT_JOURNAL_INCOMPAT_CSUM_V2)
            be16_store(&tag->t_checksum, (uint16_t)checksum);
        if (log->incompat & EXT_JOURNAL_INCOMPAT_64BIT)
            be32_store(&tag->t_blocknr_high, (uint32_t)(home >> 32));
    }
}

/* One descriptor and up to a blockful of blocks from `first` on. */
static void compose_blocks(struct composer *composer, uint32_t first, uint32_t count) {
    struct ext_journal *journal = composer->journal;
    const struct ext_log *log = &journal->log;
    char *descriptor = compose_control(composer, EXT_JOURNAL_DESCRIPTOR);
    char *at = descriptor + sizeof(struct ext_disk_journal_header);

    for (uint32_t i = 0; i < count; i++) {
        void *block = compose(composer, journal->frozen + (size_t)(first + i) * log->block_size);
        uint32_t flags = escape(block), checksum = 0;

        if (i > 0)
            flags |= EXT_JOURNAL_TAG_SAME_UUID;
        if (i == count - 1)
            flags |= EXT_JOURNAL_TAG_LAST;
        if (log->checksums)
            checksum = ext_log_data_checksum(log, (uint32_t)composer->transaction->number, block);
        tag_write(log, at, composer->transaction->homes[first + i], flags, checksum);
        at += log->tag_size;
        if (i == 0) {
            memcpy(at, log->super.s_uuid, sizeof(log->super.s_uuid));
            at += sizeof(log->super.s_uuid);
        }
    }
    seal(log, descriptor);
}

static void compose_commit(struct composer *composer) {
    const struct ext_journal *journal = composer->journal;
    struct timestamp now = clock_calendar(journal->ext->volume->clock);
    struct ext_disk_journal_commit *commit = compose_control(composer, EXT_JOURNAL_COMMIT);

    be64_store(&commit->h_commit_sec, (uint64_t)now.seconds);
    be32_store(&commit->h_commit_nsec, now.nanoseconds);
    if (journal->log.checksums)
        be32_store(&commit->h_chksum[0], ext_log_commit_checksum(&journal->log, commit));
}

static void compose_transaction(struct ext_journal *journal,
                                const struct ext_transaction *transaction) {
    struct composer composer = {.journal = journal, .transaction = transaction};
    uint32_t limit = tags_per_block(&journal->log);

    compose_revokes(&composer);
    for (uint32_t i = 0; i < transaction->count; i += limit)
        compose_blocks(&composer, i,
                       transaction->count - i < limit ? transaction->count - i : limit);
    compose_commit(&composer);
}

static int barrier(const struct ext_journal *journal) {
    return journal->barrier ? device_flush(journal->log.device) : 0;
}

/* Blocks [first, end) of the image, and waits. */
static int write_image(struct ext_journal *journal, uint32_t first, uint32_t end) {
    const struct ext_log *log = &journal->log;
    struct device_batch batch = {0};
    int error = ext_log_write(log, ext_log_step(log, journal->committing->log_start, first),
                              end - first, journal->image + first, &batch);
    int late = device_wait(log->device, &batch);

    return error ? error : late;
}

/* The log's super block must name this transaction, or one before it, by the time that its commit
 * block is there. */
static int write_tail(struct ext_journal *journal) {
    const struct ext_transaction *committing = journal->committing;

    if (journal->used == 0)
        return ext_log_super_write(&journal->log, committing->log_start,
                                   (uint32_t)committing->number);
    return 0;
}

static int write_transaction(struct ext_journal *journal) {
    uint32_t last = journal->committing->log_count - 1;
    bool early = journal->faults & EXT_JOURNAL_FAULT_COMMIT_FIRST;
    int error = write_tail(journal);

    if (!error)
        error = early ? write_image(journal, last, last + 1) : write_image(journal, 0, last);
    if (!error && !early)
        error = barrier(journal);
    if (!error && journal->tail_next)
        error = ext_log_super_write(&journal->log, journal->tail_next, journal->tail_next_sequence);
    if (!error)
        error = early ? write_image(journal, 0, last) : write_image(journal, last, last + 1);
    if (!error && !(journal->faults & EXT_JOURNAL_FAULT_NO_FLUSH))
        error = barrier(journal);
    return error;
}

int ext_commit_write(struct volume *volume) {
    struct ext_journal *journal = ext_of(volume)->journal;

    if (!journal)
        return device_flush(volume->device);
    if (!journal->committing)
        return barrier(journal);
    compose_transaction(journal, journal->committing);
    return write_transaction(journal);
}

/* --- end
 * ------------------------------------------------------------------------------------------ */

/* Buffers that did not change again may go home. */
static void unpin(struct ext_journal *journal, const struct ext_transaction *transaction) {
    for (uint32_t i = 0; i < transaction->count; i++) {
        struct buffer *buffer = buffer_peek(journal->ext->buffers, transaction->homes[i]);

        if (buffer && !buffer->changed)
            buffer->pinned = false;
        buffer_put(buffer);
    }
}

int ext_commit_end(struct volume *volume, int error) {
    struct ext_journal *journal = ext_of(volume)->journal;
    struct ext_transaction *transaction = journal ? journal->committing : NULL;

    if (!transaction)
        return error;
    if (error) {
        ext_journal_abort(journal, error);
        return error;
    }
    journal->committing = NULL;
    if (journal->used == 0) {
        journal->tail = transaction->log_start;
        journal->tail_sequence = (uint32_t)transaction->number;
    } else if (journal->tail_next) {
        journal->tail = journal->tail_next;
        journal->tail_sequence = journal->tail_next_sequence;
        journal->used = journal->tail_next_used;
    }
    journal->used += transaction->log_count;
    journal->head = ext_log_step(&journal->log, journal->head, transaction->log_count);
    unpin(journal, transaction);
    ext_freed_committed(journal->ext, &transaction->freed);
    STAILQ_INSERT_TAIL(&journal->committed, transaction, link);
    /* The best moment: hardly anything has changed again. */
    if (ext_journal_room(journal) < 2 * journal->share)
        error = ext_journal_checkpoint(journal, 0);
    if (error)
        ext_journal_abort(journal, error);
    return error;
}

int ext_journal_commit_now(struct ext_journal *journal) {
    struct volume *volume = journal->ext->volume;
    bool needed;
    int error = ext_commit_begin(volume, NULL, COMMIT_SYNC, &needed);

    return error ? error : ext_commit_end(volume, ext_commit_write(volume));
}
