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
 * super root there for a checkpoint; so that log waits for those in the segments before it.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/layout.h"
#include "layouts/nilfs/checkpoint.h"
#include "layouts/nilfs/cleaner.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/log_internal.h"
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
 * logs of their own, or in the open one. */
static enum data_only data_only_possible(const struct nilfs *nilfs, struct inode *inode,
                                         bool data_only) {
    const struct nilfs_file *file = inode ? nilfs_inode_of(inode)->file : NULL;

    if (!data_only || !file || nilfs->options.strict || nilfs->segment_open ||
        nilfs->chain_broken || file->data_only_unsafe || file->changed_data > 0)
        return DATA_ONLY_NOT;
    if (!nilfs->log)
        return DATA_ONLY_NOTHING;
    return nilfs->log->ino == file->ino ? DATA_ONLY_LOG : DATA_ONLY_NOT;
}

/* A checkpoint has everybody's data, a data-only log no others than the file's. */
struct inode *nilfs_commit_data(struct volume *volume, struct inode *inode, bool data_only) {
    struct nilfs *nilfs = nilfs_of(volume);

    if (data_only_possible(nilfs, inode, data_only) != DATA_ONLY_NOT)
        return NULL;
    return nilfs_data_pending(nilfs);
}

static int begin_data_only(struct nilfs *nilfs) {
    struct nilfs_commit *commit = nilfs->commit;
    int error;

    commit->collecting = true;
    error = nilfs_log_close(nilfs, NILFS_LOG_BEGIN | NILFS_LOG_END | NILFS_LOG_DATA_ONLY, NULL);
    commit->collecting = false;
    commit->data_only = true;
    commit->ordered = commit->super_due = false;
    return error;
}

/* What changes from here on is the next checkpoint's. */
static int begin_checkpoint(struct nilfs *nilfs) {
    struct nilfs_commit *commit = nilfs->commit;
    int error = nilfs_checkpoint_collect(nilfs);

    if (error)
        return error;
    commit->cno = nilfs->cno++;
    commit->clean_segments = nilfs->clean_segments;
    commit->written_count = 0;
    commit->data_only = false;
    commit->ordered = nilfs->options.barrier && commit->begun != commit->sequence &&
                      nilfs->options.fault != NILFS_FAULT_NO_ORDER;
    commit->super_due = nilfs_super_wanted(nilfs, false);
    nilfs->logged_blocks = 0;
    nilfs->user_changes = false;
    return 0;
}

int nilfs_commit_begin(struct volume *volume, struct inode *inode, bool data_only, bool *needed) {
    struct nilfs *nilfs = nilfs_of(volume);
    enum data_only kind = data_only_possible(nilfs, inode, data_only);
    int error;

    *needed = false;
    if (nilfs->failed)
        return -EROFS;
    error = kind == DATA_ONLY_NOT ? nilfs_cleaner_make_room(nilfs) : 0;
    if (error)
        return error;
    if (!anything_changed(nilfs) || kind == DATA_ONLY_NOTHING)
        return 0;
    error = nilfs_commit_ready(nilfs);
    if (error)
        return error;
    error = kind == DATA_ONLY_LOG ? begin_data_only(nilfs) : begin_checkpoint(nilfs);
    if (error)
        return nilfs_fail(nilfs, error);
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
    if (!nilfs->options.barrier || nilfs->options.fault == NILFS_FAULT_NO_FLUSH)
        return 0;
    return device_flush(volume->device);
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
    if (commit->data_only)
        return 0;
    nilfs->newest = commit->cno;
    nilfs_super_logged(nilfs, commit->cno, commit->log_block, commit->sequence);
    if (commit->super_due)
        nilfs->chain_broken = false;
    nilfs_sufile_release_freed(nilfs, commit->cno);
    return 0;
}

int nilfs_checkpoint_now(struct nilfs *nilfs) {
    bool needed;
    int error;

    if (nilfs_commit_busy(nilfs))
        return -EBUSY;
    volume_wait_writes(nilfs->volume); /* of data in logs that the checkpoint rests on */
    error = nilfs_commit_begin(nilfs->volume, NULL, false, &needed);
    if (error || !needed)
        return error;
    return nilfs_commit_end(nilfs->volume, nilfs_commit_write(nilfs->volume));
}
