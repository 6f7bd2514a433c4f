/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over log.h and the metadata files. Makes a checkpoint (the format's
 * "segment construction"), in the contract's parts.
 *
 * Stages of nilfs_commit_begin, under the exclusive lock:
 *   1. files: changed blocks of user files, in the order they were dirtied, go to the log (data by
 *      offset, then nodes by level); their maps into the ifile's records;
 *   2. the ifile's changed blocks; closed logs so far are written as they are;
 *   3. cpfile: the checkpoint's slot; sufile: all segments this needs; repeated until the number of
 *      blocks, and with it that of segments, no longer grows;
 *   4. cpfile, sufile, DAT to the log; the DAT's pointers placed, bottom up;
 *   5. super root; contents filled in and settled.
 * nilfs_commit_write seals and writes what is left in core and flushes; then the super block if it
 * is due. nilfs_commit_end: the new checkpoint is the newest. What changes after nilfs_commit_begin
 * is the next checkpoint's, so nilfs->cno is advanced there already.
 *
 * A data-only commit (fdatasync) of a file whose data are all that the open log has: that log is
 * closed as a logical segment of its own, and nothing else happens.
 */
#ifndef LAYOUTFS_NILFS_CHECKPOINT_H
#define LAYOUTFS_NILFS_CHECKPOINT_H

#include "layouts/nilfs/log.h"

struct inode *nilfs_commit_data(struct volume *volume, struct inode *inode,
                                enum commit_cause cause);
int nilfs_commit_begin(struct volume *volume, struct inode *inode, enum commit_cause cause,
                       bool *needed);
int nilfs_commit_write(struct volume *volume);
int nilfs_commit_end(struct volume *volume, int error);
/* For recovery, the cleaner's single steps and unmount: all parts at once, under the exclusive
 * lock. -EBUSY: a commit is between its begin and its end. */
int nilfs_checkpoint_now(struct nilfs *nilfs);
bool nilfs_commit_busy(const struct nilfs *nilfs);
/* Frees nilfs->commit, the open log and the spares, written or not; for unmount, and a mount that
 * fails. */
void nilfs_commit_free(struct nilfs *nilfs);

#endif
