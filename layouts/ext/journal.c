/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the buffer cache; under everything that changes metadata. The running
 * transaction: what changes, what is freed, which data must be stored first. Invariants of the
 * journal: journal.h.
 *
 * Without a journal, ext_dirty and ext_forget are no more than their buffer_ counterparts.
 */
#include "layouts/ext/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/bitmap.h"
#include "layouts/ext/mballoc.h"

/* --- transactions ------------------------------------------------------------------------------
 */

struct ext_transaction *ext_transaction_new(uint64_t number) {
    struct ext_transaction *transaction = calloc(1, sizeof(*transaction));

    if (!transaction)
        return NULL;
    transaction->number = number;
    transaction->hold = UINT64_MAX;
    TAILQ_INIT(&transaction->buffers);
    return transaction;
}

void ext_transaction_free(struct ext_transaction *transaction) {
    if (!transaction)
        return;
    free(transaction->revoked.ranges);
    free(transaction->freed.ranges);
    free(transaction->homes);
    free(transaction);
}

static int range_list_add(struct ext_range_list *list, uint64_t block, uint32_t count) {
    struct ext_range *last = list->count > 0 ? &list->ranges[list->count - 1] : NULL;

    if (last && last->block + last->count == block && last->count <= UINT32_MAX - count) {
        last->count += count;
        return 0;
    }
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 16;
        struct ext_range *ranges = realloc(list->ranges, room * sizeof(*ranges));

        if (!ranges)
            return -ENOMEM;
        list->ranges = ranges;
        list->room = room;
    }
    list->ranges[list->count++] = (struct ext_range){block, count};
    return 0;
}

void ext_journal_abort(struct ext_journal *journal, int error) {
    struct ext *ext = journal->ext;

    if (journal->aborted)
        return;
    journal->aborted = true;
    log_error(ext->volume->log,
              "%s: journal: given up after an error (%s): nothing more is written; what "
              "was committed before is recovered by the next mount",
              ext->volume->name, strerror(-error));
    ext_fail(ext);
}

/* --- what changes ------------------------------------------------------------------------------
 */

void ext_dirty(struct ext *ext, struct buffer *buffer) {
    struct ext_journal *journal = ext->journal;

    if (journal && !buffer->changed) {
        struct ext_transaction *running = journal->running;

        if (!buffer->dirty) /* what earlier transactions have of it is at home */
            buffer->logged = 0;
        buffer->pinned = true;
        buffer->changed = true;
        TAILQ_INSERT_TAIL(&running->buffers, buffer, change_link);
        if (++running->count >= journal->share)
            ext->volume->commit.wanted = true;
    }
    buffer_dirty(buffer);
}

/* A buffer is about to be dropped since its block is free. */
static void journal_forget(struct ext_journal *journal, struct buffer *buffer) {
    struct ext_transaction *running = journal->running;

    if (buffer->changed) {
        TAILQ_REMOVE(&running->buffers, buffer, change_link);
        buffer->changed = false;
        running->count--;
    }
    if (buffer->dirty && buffer->logged != 0 && buffer->logged < running->hold)
        running->hold = buffer->logged;
}

void ext_forget(struct ext *ext, uint64_t block, uint32_t count) {
    struct ext_journal *journal = ext->journal;

    if (journal) {
        for (uint32_t i = 0; i < count; i++) {
            struct buffer *buffer = buffer_peek(ext->buffers, block + i);

            if (buffer)
                journal_forget(journal, buffer);
            buffer_put(buffer);
        }
        if (!(journal->faults & EXT_JOURNAL_FAULT_NO_REVOKE) &&
            range_list_add(&journal->running->revoked, block, count))
            journal->error = -ENOMEM;
    }
    buffer_forget(ext->buffers, block, count);
}

bool ext_journals_data(const struct ext *ext) {
    return ext->journal && ext->journal->mode == EXT_JOURNAL_DATA;
}

uint32_t ext_journal_share(const struct ext *ext) {
    return ext->journal ? ext->journal->share : UINT32_MAX;
}

bool ext_journal_full(const struct ext *ext) {
    return ext->journal && ext->journal->running->count >= ext->journal->share;
}

/* --- what is freed -----------------------------------------------------------------------------
 */

void ext_free_later(struct ext *ext, uint32_t number, uint64_t block, uint32_t count,
                    const void *bitmap) {
    struct ext_group *group = &ext->groups[number];
    struct ext_journal *journal = ext->journal;
    uint32_t bit = (uint32_t)(block - ext_group_first_block(&ext->geometry, number));

    if (!journal)
        return;
    if (!group->shadow) {
        group->shadow = malloc(ext->geometry.block_size);
        if (group->shadow)
            memcpy(group->shadow, bitmap, ext->geometry.block_size);
    }
    if (!group->shadow || range_list_add(&journal->running->freed, block, count)) {
        journal->error = -ENOMEM;
        return;
    }
    bitmap_set(group->shadow, bit, count);
    group->pending += count;
    ext->freed_blocks += count;
    ext->volume->commit_frees = true;
}

/* The run, which may span groups that were freed in a row, can be allocated again. */
static void free_now(struct ext *ext, uint64_t block, uint32_t count) {
    while (count > 0) {
        uint32_t number = ext_group_of_block(&ext->geometry, block);
        struct ext_group *group = &ext->groups[number];
        uint64_t first = ext_group_first_block(&ext->geometry, number);
        uint64_t rest = first + ext_group_block_count(&ext->geometry, number) - block;
        uint32_t part = count < rest ? count : (uint32_t)rest;

        uint32_t bit = (uint32_t)(block - first);

        bitmap_clear(group->shadow, bit, part);
        if (bit < group->block_hint)
            group->block_hint = bit;
        if (block < ext->scan_start)
            ext->scan_start = block;
        if (ext->mballoc)
            ext_mballoc_freed(ext, number, bit, part);
        group->pending -= part;
        ext->freed_blocks -= part;
        if (group->pending == 0) {
            free(group->shadow);
            group->shadow = NULL;
        }
        block += part;
        count -= part;
    }
}

void ext_freed_committed(struct ext *ext, const struct ext_range_list *freed) {
    for (size_t i = 0; i < freed->count; i++)
        free_now(ext, freed->ranges[i].block, freed->ranges[i].count);
    ext->volume->commit_frees = ext->journal->running->freed.count > 0;
}

/* --- data
 * ----------------------------------------------------------------------------------------*/

void ext_order_data(struct inode *inode) {
    struct ext_inode *private = ext_inode_of(inode);
    struct ext_journal *journal = ext_of(inode->volume)->journal;

    if (!journal || journal->mode == EXT_JOURNAL_WRITEBACK || private->ordered ||
        !S_ISREG(inode->mode) || ext_stores_later(inode))
        return;
    private->ordered = true;
    TAILQ_INSERT_TAIL(&journal->ordered, private, ordered_link);
}

void ext_order_drop(struct inode *inode) {
    struct ext_inode *private = ext_inode_of(inode);
    struct ext *ext = ext_of(inode->volume);

    if (!private->ordered)
        return;
    private->ordered = false;
    TAILQ_REMOVE(&ext->journal->ordered, private, ordered_link);
}

bool ext_inode_committed(const struct ext_journal *journal, struct inode *inode, bool data_only) {
    const struct ext_inode *private = ext_inode_of(inode);

    return (data_only ? private->data_changed : private->changed) < journal->running->number;
}

struct inode *ext_commit_data(struct volume *volume, struct inode *inode, enum commit_cause cause) {
    const struct ext_journal *journal = ext_of(volume)->journal;

    /* A dirty one will have changed when it is stored. */
    if (!journal ||
        (inode && !inode->dirty && ext_inode_committed(journal, inode, cause == COMMIT_FDATASYNC)))
        return NULL;
    struct ext_inode *entry = TAILQ_FIRST(&journal->ordered);
    if (!entry)
        return NULL;
    struct inode *ordered = (struct inode *)(void *)entry - 1;
    ext_order_drop(ordered);
    return ordered;
}

void ext_note_change(struct inode *inode, bool data) {
    struct ext_inode *private = ext_inode_of(inode);
    const struct ext_journal *journal = ext_of(inode->volume)->journal;

    if (!journal)
        return;
    private->changed = journal->running->number;
    if (data)
        ext_inode_of(inode)->data_changed = private->changed;
}
