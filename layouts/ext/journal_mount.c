/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the other journal*.c; under super.c. The journal at mount and unmount.
 *
 * What keeps an old log from being replayed again: before the volume is used, everything that was
 * replayed is at home and durable, and then the log's super block says, durably, that there is
 * nothing to read and that numbers go on behind those in the log.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/ext/journal.h"

/* --- recovery -----------------------------------------------------------------------------------
 */

static int home_on_device(void *context, uint64_t block, const void *data) {
    const struct ext *ext = context;
    uint32_t size = ext->geometry.block_size;

    return device_write(ext->volume->device, block * size, data, size, PURPOSE_OTHER);
}

/* A read-only mount changes no byte of the device: the blocks stay in the cache as they would be,
 * pinned, and nothing is ever written back. */
static int home_in_cache(void *context, uint64_t block, const void *data) {
    struct ext *ext = context;
    struct buffer *buffer;
    int rc = buffer_get_zeroed(ext->buffers, block, PURPOSE_OTHER, &buffer);

    if (rc < 0)
        return rc;
    memcpy(buffer_data(buffer), data, ext->geometry.block_size);
    buffer->checked = false;
    buffer->pinned = true;
    buffer_put(buffer);
    ext->overlay = true;
    return 0;
}

/* After the replay: the log is behind us, for good. */
static int log_empty(struct ext *ext, struct ext_log *log, uint32_t sequence) {
    int rc = device_flush(ext->volume->device);

    be32_store(&log->super.s_errno, 0);
    if (rc == 0)
        rc = ext_log_super_write(log, 0, sequence);
    return rc < 0 ? rc : device_flush(ext->volume->device);
}

static int recover(struct ext *ext, struct ext_log *log, bool *replayed) {
    struct volume *volume = ext->volume;
    struct ext_replay replay = {
        .log = log,
        .blocks_count = ext->geometry.blocks_count,
        .apply = volume->read_only ? home_in_cache : home_on_device,
        .context = ext,
    };
    bool errors = be32_load(log->super.s_errno) != 0;
    int rc = ext_journal_replay(&replay);

    if (rc < 0)
        return rc;
    *replayed = replay.transactions > 0;
    log_info(volume->log, "%s: journal: %u transactions recovered, %u blocks, %u revoked%s",
             volume->name, replay.transactions, replay.blocks, replay.revoked,
             volume->read_only ? ", in memory only" : "");
    if (errors)
        log_warning(volume->log, "%s: journal: it was given up after an error; run e2fsck -f",
                    volume->name);
    if (volume->read_only)
        return 0;
    if (errors) /* kept where it is not lost with the log */
        rc = ext_super_note_error(ext);
    /* Numbers in the log are below the one that was expected next. */
    return rc < 0 ? rc : log_empty(ext, log, replay.end_sequence + 1);
}

/* Nobody asks for what the log holds: it must not be found later. No more transactions are in it
 * than blocks. */
static int drop(struct ext *ext, struct ext_log *log) {
    log_warning(ext->volume->log,
                "%s: journal: it is not empty, but the super block does not ask for recovery: what "
                "it holds is dropped, as Linux does",
                ext->volume->name);
    return log_empty(ext, log, be32_load(log->super.s_sequence) + log->end);
}

int ext_journal_recover(struct ext *ext, bool *replayed) {
    struct ext_log log;
    int rc;

    *replayed = false;
    if (!(ext->geometry.compat & EXT_COMPAT_HAS_JOURNAL))
        return 0;
    rc = ext_log_open(ext, &log);
    if (rc < 0)
        return rc;
    ext->journal_blocks = be32_load(log.super.s_maxlen);
    if (ext->geometry.incompat & EXT_INCOMPAT_RECOVER)
        rc = recover(ext, &log, replayed);
    else if (be32_load(log.super.s_start) != 0 && !ext->volume->read_only)
        rc = drop(ext, &log);
    ext_log_close(&log);
    return rc;
}

/* --- start --------------------------------------------------------------------------------------
 */

/* Switches on what this mount needs. */
static int log_upgrade(struct ext *ext, struct ext_log *log) {
    uint32_t incompat = log->incompat | EXT_JOURNAL_INCOMPAT_REVOKE;

    if (be32_load(log->super.s_header.h_blocktype) == EXT_JOURNAL_SUPER_V1) {
        log_error(ext->volume->log,
                  "%s: journal super block: version 1 has no revoke records; mount read-only (ro), "
                  "or make a new journal with tune2fs",
                  ext->volume->name);
        return -ENOTSUP;
    }
    if (ext->geometry.incompat & EXT_INCOMPAT_64BIT)
        incompat |= EXT_JOURNAL_INCOMPAT_64BIT;
    if (ext->geometry.ro_compat & EXT_RO_COMPAT_METADATA_CSUM) {
        incompat &= ~(uint32_t)EXT_JOURNAL_INCOMPAT_CSUM_V2;
        incompat |= EXT_JOURNAL_INCOMPAT_CSUM_V3;
    }
    incompat &= ~(uint32_t)EXT_JOURNAL_INCOMPAT_ASYNC_COMMIT;
    ext_log_set_features(log, incompat);
    return 0;
}

/* A transaction may take a quarter of the log, as in JBD2, and of the memory for caches a part that
 * leaves room for the rest. */
static uint32_t share_of(const struct ext *ext, const struct ext_log *log) {
    uint64_t memory = ext->volume->pool.budget_bytes / 8 / log->block_size;
    uint32_t share = (log->end - log->first) / 4;

    if (share > memory)
        share = (uint32_t)memory;
    return share < 16 ? 16 : share;
}

static void journal_free(struct ext_journal *journal) {
    struct ext_transaction *transaction;

    while ((transaction = STAILQ_FIRST(&journal->committed))) {
        STAILQ_REMOVE_HEAD(&journal->committed, link);
        ext_transaction_free(transaction);
    }
    ext_transaction_free(journal->running);
    ext_transaction_free(journal->committing);
    ext_log_close(&journal->log);
    free(journal->frozen);
    free(journal->image);
    free(journal);
}

static int journal_prepare(struct ext_journal *journal) {
    struct ext *ext = journal->ext;
    uint32_t sequence;
    int rc = ext_log_open(ext, &journal->log);

    if (rc == 0)
        rc = log_upgrade(ext, &journal->log);
    if (rc < 0)
        return rc;
    journal->share = share_of(ext, &journal->log);
    journal->head = journal->tail = journal->log.first;
    sequence = be32_load(journal->log.super.s_sequence) + 1; /* as Linux does */
    journal->tail_sequence = sequence;
    /* Numbers are never 0, and as numbers in the core they do not wrap. */
    journal->running = ext_transaction_new((UINT64_C(1) << 32) + sequence);
    if (!journal->running)
        return -ENOMEM;
    return ext_log_super_write(&journal->log, 0, sequence);
}

int ext_journal_start(struct ext *ext) {
    struct ext_journal *journal;
    int rc;

    if (ext->journal_settings.mode == EXT_JOURNAL_NONE)
        return 0;
    journal = calloc(1, sizeof(*journal));
    if (!journal)
        return -ENOMEM;
    journal->ext = ext;
    journal->mode = ext->journal_settings.mode;
    journal->barrier = ext->journal_settings.barrier;
    journal->faults = ext->journal_settings.faults;
    STAILQ_INIT(&journal->committed);
    TAILQ_INIT(&journal->ordered);
    rc = journal_prepare(journal);
    if (rc < 0) {
        journal_free(journal);
        return rc;
    }
    ext->journal = journal;
    if (journal->mode == EXT_JOURNAL_DATA) {
        ext->volume->store_changes = true;
        ext->volume->limits.dirty_data_max = (uint64_t)journal->share * journal->log.block_size / 2;
    }
    ext->volume->commit_stores_written =
        journal->mode == EXT_JOURNAL_ORDERED && ext->journal_settings.ordered_written;
    ext->volume->limits.commit_interval_ns = ext->journal_settings.interval_ns;
    return rc;
}

/* --- stop ---------------------------------------------------------------------------------------
 */

int ext_journal_stop(struct ext *ext) {
    struct ext_journal *journal = ext->journal;
    const struct volume *volume = ext->volume;
    int rc = 0;

    if (!journal)
        return 0;
    if (!journal->aborted && !volume->read_only && !volume->shut_down)
        rc = ext_journal_commit_now(journal);
    if (rc == 0 && !journal->aborted && !volume->read_only && !volume->shut_down)
        rc = ext_journal_checkpoint(journal, UINT32_MAX);
    ext->journal = NULL;
    journal_free(journal);
    return rc;
}
