/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the buffer cache and journal_replay.c. Freeing the log: what it holds is
 * brought home, then its tail moves.
 *
 * Most of the time there is nothing to do but to look: write-back brings blocks home in its own
 * time, and the next commit moves the tail (journal_commit.c). When the log is short of room after
 * a commit, all dirty buffers are written in block order. What cannot be written because it changed
 * again holds back only the few transactions that have it last. When even they are too much, their
 * blocks are taken from the log itself, as after a crash: this always succeeds, so that the log
 * never locks up.
 */
#include <errno.h>

#include "layouts/ext/journal.h"

/* Is every block at home, or in a later transaction, which is then the one that needs it? */
static bool transaction_home(const struct ext_journal *journal,
                             const struct ext_transaction *transaction) {
    for (uint32_t i = 0; i < transaction->count; i++) {
        struct buffer *buffer = buffer_peek(journal->ext->buffers, transaction->homes[i]);
        bool home = !buffer || !buffer->dirty || buffer->logged != transaction->number;

        buffer_put(buffer);
        if (!home)
            return false;
    }
    return true;
}

int ext_journal_homes_wait(struct ext_journal *journal) {
    volume_wait_writes(journal->ext->volume);
    return journal->aborted ? -EIO : 0;
}

static void committed_drop_first(struct ext_journal *journal) {
    struct ext_transaction *transaction = STAILQ_FIRST(&journal->committed);

    STAILQ_REMOVE_HEAD(&journal->committed, link);
    ext_transaction_free(transaction);
}

void ext_journal_advance(struct ext_journal *journal, uint32_t *tail, uint32_t *sequence,
                         uint32_t *used) {
    struct ext_transaction *transaction;
    bool blind = journal->faults & EXT_JOURNAL_FAULT_STALE_TAIL;

    while ((transaction = STAILQ_FIRST(&journal->committed)) &&
           (blind || (transaction->number < journal->running->hold &&
                      transaction_home(journal, transaction))))
        committed_drop_first(journal);
    *used = 0;
    STAILQ_FOREACH (transaction, &journal->committed, link)
        *used += transaction->log_count;
    transaction = STAILQ_FIRST(&journal->committed);
    *tail = transaction ? transaction->log_start : journal->head;
    *sequence = (uint32_t)(transaction ? transaction->number : journal->running->number);
}

/* The device is told where the tail is; the room before it may be used after the flush. */
static int tail_store(struct ext_journal *journal, uint32_t tail, uint32_t sequence,
                      uint32_t used) {
    int error = ext_log_super_write(&journal->log, used > 0 ? tail : 0, sequence);

    if (!error)
        error = device_flush(journal->log.device);
    if (error)
        return error;
    journal->tail = tail;
    journal->tail_sequence = sequence;
    journal->used = used;
    return 0;
}

static int home_write(void *context, uint64_t block, const void *data) {
    const struct ext_log *log = context;

    return device_write(log->device, block * log->block_size, data, log->block_size, PURPOSE_OTHER);
}

/* Replays the log onto the live volume (invariant 2 of journal.h). */
static int home_from_log(struct ext_journal *journal) {
    const struct ext_geometry *geometry = &journal->ext->geometry;
    struct ext_replay replay = {
        .log = &journal->log,
        .blocks_count = geometry->blocks_count,
        .apply = home_write,
        .context = &journal->log,
    };
    int error = ext_journal_replay(&replay);

    if (!error && replay.end_sequence != (uint32_t)journal->running->number)
        error = -EIO; /* it ends before its end */
    if (!error)
        error = device_flush(journal->log.device);
    while (!error && !STAILQ_EMPTY(&journal->committed))
        committed_drop_first(journal);
    return error;
}

/* What is wholly at home leaves the log, which is told. */
static int tail_advance(struct ext_journal *journal) {
    uint32_t tail, sequence, used;

    ext_journal_advance(journal, &tail, &sequence, &used);
    return tail_store(journal, tail, sequence, used);
}

int ext_journal_checkpoint(struct ext_journal *journal, uint32_t room) {
    int error = buffer_sync(journal->ext->buffers);

    if (!error)
        error = ext_journal_homes_wait(journal);
    if (!error)
        error = device_flush(journal->log.device);
    if (!error)
        error = tail_advance(journal);
    if (error || journal->used == 0 || ext_journal_room(journal) >= room)
        return error;
    error = home_from_log(journal);
    return error ? error : tail_advance(journal);
}
