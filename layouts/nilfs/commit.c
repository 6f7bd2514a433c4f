/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/checkpoint.h. The contract's parts of a commit.
 *
 * Between its begin and its end new logs may be opened behind it, and even written before it is:
 * whoever reads the chain of logs comes through the commit's own first, so that they do not exist
 * as long as those do not.
 *
 * Logs need no order among themselves within a segment: where one is not whole, the scan for the
 * newest checkpoint leaves the segment. But it goes on in the next one, and takes a log with a
 * super root there for a checkpoint; so that log waits for those in the segments before it, the
 * earlier commits' that nobody has waited for, and that are in the disk's cache, included.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/layout.h"
#include "layouts/nilfs/checkpoint.h"
#include "layouts/nilfs/cleaner.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/log_internal.h"
#include "layouts/nilfs/space.h"
#include "layouts/nilfs/sufile.h"
#include "layouts/nilfs/super.h"

bool nilfs_commit_busy(const struct nilfs *nilfs) {
    return nilfs->commit && nilfs->commit->busy;
}

static void logs_free(struct nilfs *nilfs) {
    struct nilfs_log *log;

    while ((log = STAILQ_FIRST(&nilfs->commit->logs))) {
        STAILQ_REMOVE_HEAD(&nilfs->commit->logs, link);
        nilfs_log_free(nilfs, log);
    }
}

void nilfs_commit_free(struct nilfs *nilfs) {
    if (nilfs->commit) {
        logs_free(nilfs);
        free(nilfs->commit->written);
        free(nilfs->commit);
        nilfs->commit = NULL;
    }
    nilfs_log_free(nilfs, nilfs->log);
    nilfs->log = NULL;
    free(nilfs->spares);
    nilfs->spares = NULL;
    nilfs->spare_count = nilfs->spare_room = 0;
}

/* --- begin ------------------------------------------------------------------------------------
 */

static bool anything_changed(const struct nilfs *nilfs) {
    return nilfs->user_changes || nilfs->dirty_blocks > 0 || nilfs->log || nilfs->segment_open ||
           nilfs->chain_broken || !TAILQ_EMPTY(&nilfs->dirty_files);
}

enum data_only { DATA_ONLY_NOTHING, DATA_ONLY_LOG, DATA_ONLY_NOT };

/* May a log of the file's data alone make it durable? All its data since the last checkpoint are in
 * logs of their own, or in the open one, and a recovery has room for them. */
static enum data_only data_only_possible(const struct nilfs *nilfs, struct inode *inode,
                                         enum commit_cause cause) {
    const struct nilfs_file *file = inode ? nilfs_inode_of(inode)->file : NULL;

    if (cause != COMMIT_FDATASYNC || !file || nilfs->options.strict || nilfs->segment_open ||
        nilfs->chain_broken || file->data_only_unsafe ||
        (file->changes && file->changes->changed_data > 0))
        return DATA_ONLY_NOT;
    if (!nilfs->log)
        return DATA_ONLY_NOTHING;
    return nilfs->log->ino == file->ino && nilfs_space_recovers(nilfs, nilfs->log->blocks)
               ? DATA_ONLY_LOG
               : DATA_ONLY_NOT;
}

/* A checkpoint has everybody's data, a data-only log no others than the file's. */
struct inode *nilfs_commit_data(struct volume *volume, struct inode *inode,
                                enum commit_cause cause) {
    struct nilfs *nilfs = nilfs_of(volume);

    if (data_only_possible(nilfs, inode, cause) != DATA_ONLY_NOT)
        return NULL;
    return nilfs_data_pending(nilfs);
}

/* Are logs in the disk's cache that belong into segments before the last log's? `begun`: the
 * sequence of the first one that the commit writes. */
static bool needs_order(const struct nilfs *nilfs, uint64_t begun, uint64_t last) {
    return nilfs->options.barrier && nilfs->options.fault != NILFS_FAULT_NO_ORDER &&
           (nilfs->unflushed ? nilfs->unflushed_sequence : begun) != last;
}

static int begin_data_only(struct nilfs *nilfs) {
    struct nilfs_commit *commit = nilfs->commit;
    uint64_t sequence = nilfs->log->sequence;
    int error;

    nilfs->data_only_blocks += nilfs->log->blocks;
    commit->collecting = true;
    error = nilfs_log_close(nilfs, NILFS_LOG_BEGIN | NILFS_LOG_END | NILFS_LOG_DATA_ONLY, NULL);
    commit->collecting = false;
    commit->data_only = true;
    commit->ordered = needs_order(nilfs, sequence, sequence);
    commit->super_due = false;
    commit->flush = nilfs->options.barrier;
    return error;
}

/* Invariants 1 and 2 of space.c. */
static int collect_within_promise(struct nilfs *nilfs) {
    static const struct nilfs_demand none;
    uint64_t promised = nilfs_space_promised(nilfs, &none), left = nilfs_space_left(nilfs);
    int error = nilfs_checkpoint_collect(nilfs);
    uint64_t now = nilfs_space_left(nilfs);

    if (promised > left || (left > now && left - now > promised))
        nilfs->overdrafts++;
    return error;
}

/* What changes from here on is the next checkpoint's. */
static int begin_checkpoint(struct nilfs *nilfs, enum commit_cause cause) {
    struct nilfs_commit *commit = nilfs->commit;
    int error = collect_within_promise(nilfs);

    if (error)
        return error;
    commit->cno = nilfs->cno++;
    commit->clean_segments = nilfs->clean_segments;
    commit->written_count = 0;
    commit->data_only = false;
    commit->ordered = needs_order(nilfs, commit->begun, commit->sequence);
    commit->super_due = nilfs_super_wanted(nilfs, false) ||
                        (cause == COMMIT_SYNC && commit->sequence != nilfs->supers.written_seq);
    /* Freed segments wait for it, too. */
    commit->flush = nilfs->options.barrier && (cause != COMMIT_AGE || nilfs->freed_count > 0);
    nilfs->logged_blocks = nilfs->data_only_blocks = 0;
    nilfs->user_changes = false;
    return 0;
}

/* Nothing has changed since the newest checkpoint, which nobody waited for. */
static void begin_flush(struct nilfs *nilfs, enum commit_cause cause) {
    struct nilfs_commit *commit = nilfs->commit;
    const struct nilfs_cursor *newest = &nilfs->supers.newest;

    commit->cno = newest->cno;
    commit->log_block = newest->block;
    commit->begun = commit->sequence = newest->sequence;
    commit->clean_segments = nilfs->clean_segments;
    commit->data_only = commit->ordered = false;
    commit->super_due = nilfs_super_wanted(nilfs, cause == COMMIT_SYNC);
    commit->flush = true;
}

static int begin(struct nilfs *nilfs, enum data_only kind, enum commit_cause cause) {
    if (!anything_changed(nilfs) || kind == DATA_ONLY_NOTHING) {
        begin_flush(nilfs, cause);
        return 0;
    }
    return nilfs_fail(nilfs, kind == DATA_ONLY_LOG ? begin_data_only(nilfs)
                                                   : begin_checkpoint(nilfs, cause));
}

int nilfs_commit_begin(struct volume *volume, struct inode *inode, enum commit_cause cause,
                       bool *needed) {
    struct nilfs *nilfs = nilfs_of(volume);
    enum data_only kind = data_only_possible(nilfs, inode, cause);
    int error;

    *needed = false;
    if (nilfs->failed)
        return -EROFS;
    error = kind == DATA_ONLY_NOT ? nilfs_cleaner_make_room(nilfs) : 0;
    if (error)
        return error;
    if ((!anything_changed(nilfs) || kind == DATA_ONLY_NOTHING) &&
        (!nilfs->unflushed || cause == COMMIT_AGE))
        return 0;
    error = nilfs_commit_ready(nilfs);
    if (!error)
        error = begin(nilfs, kind, cause);
    if (error)
        return error;
    nilfs->commit->busy = true;
    *needed = true;
    return 0;
}

/* --- write and end ----------------------------------------------------------------------------
 */

static int log_submit(struct nilfs *nilfs, struct nilfs_log *log, struct device_batch *batch) {
    struct device *device = nilfs->volume->device;
    int error = 0;

    if (nilfs->commit->ordered && !STAILQ_NEXT(log, link)) {
        error = device_wait(device, batch);
        if (!error)
            error = device_flush(device);
    }
    if (error)
        return error;
    nilfs_log_seal(&nilfs->geometry, log);
    return nilfs_log_write(device, &nilfs->geometry, log, batch);
}

static int logs_write(struct nilfs *nilfs) {
    struct device_batch batch = {0};
    struct nilfs_log *log;
    int error = 0, waited;

    STAILQ_FOREACH (log, &nilfs->commit->logs, link) {
        error = log_submit(nilfs, log, &batch);
        if (error)
            break;
    }
    waited = device_wait(nilfs->volume->device, &batch);
    return error ? error : waited;
}

/* Flushes before and after. */
static int super_write(struct nilfs *nilfs) {
    const struct nilfs_commit *commit = nilfs->commit;

    return nilfs_super_write(nilfs, commit->cno, commit->log_block, commit->sequence,
                             commit->clean_segments);
}

/* Once for each of the two: one that names what is not there is harmless beside a good one. */
static int fault_super_first(struct nilfs *nilfs) {
    int error = super_write(nilfs);

    return error ? error : super_write(nilfs);
}

int nilfs_commit_write(struct volume *volume) {
    struct nilfs *nilfs = nilfs_of(volume);
    bool super_due = nilfs->commit->super_due;
    int error = 0;

    if (super_due && nilfs->options.fault == NILFS_FAULT_SUPER_FIRST) {
        error = fault_super_first(nilfs);
        super_due = false;
    }
    if (!error)
        error = logs_write(nilfs);
    if (error)
        return error;
    if (super_due)
        return super_write(nilfs);
    if (!nilfs->commit->flush || nilfs->options.fault == NILFS_FAULT_NO_FLUSH)
        return 0;
    return device_flush(volume->device);
}

/* All that was in the disk's cache is durable, or the commit's logs are in it. */
static void note_flush(struct nilfs *nilfs) {
    const struct nilfs_commit *commit = nilfs->commit;
    bool unflushed = nilfs->options.barrier && !commit->flush && !commit->super_due;

    if (commit->ordered || !nilfs->unflushed)
        nilfs->unflushed_sequence = commit->ordered ? commit->sequence : commit->begun;
    nilfs->unflushed = unflushed;
}

int nilfs_commit_end(struct volume *volume, int error) {
    struct nilfs *nilfs = nilfs_of(volume);
    struct nilfs_commit *commit = nilfs->commit;

    logs_free(nilfs);
    commit->busy = false;
    if (error) {
        log_error(volume->log, "%s: nilfs: checkpoint %llu could not be written", volume->name,
                  (unsigned long long)(commit->data_only ? nilfs->cno : commit->cno));
        return nilfs_fail(nilfs, error);
    }
    note_flush(nilfs);
    if (commit->data_only)
        return 0;
    nilfs->newest = commit->cno;
    nilfs_super_logged(nilfs, commit->cno, commit->log_block, commit->sequence);
    if (commit->super_due)
        nilfs->chain_broken = false;
    if (!nilfs->unflushed)
        nilfs_sufile_release_freed(nilfs, commit->cno);
    return 0;
}

int nilfs_checkpoint_now(struct nilfs *nilfs) {
    bool needed;
    int error;

    if (nilfs_commit_busy(nilfs))
        return -EBUSY;
    volume_wait_writes(nilfs->volume); /* of data in logs that the checkpoint rests on */
    error = nilfs_commit_begin(nilfs->volume, NULL, COMMIT_FSYNC, &needed);
    if (error || !needed)
        return error;
    return nilfs_commit_end(nilfs->volume, nilfs_commit_write(nilfs->volume));
}
