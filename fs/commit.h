/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over layout->commit_*. Used by the volume's own files.
 *
 * Group commit, once for all layouts. A commit makes durable what has changed up to its beginning:
 *
 *   1. data:  dirty pages that must be stored before the change to the metadata that points at them
 *             (layout->commit_data names the inodes, of all or for the one that the commit is
 *             for; before them, all in the order in which they became dirty, if the layout sets
 *             volume->commit_stores_written), while everything else goes on; they are waited for
 *             before step 3;
 *   2. begin: under the volume's exclusive lock, in memory: the layout freezes what has changed,
 *             so that later changes belong to the next commit;
 *   3. write: no lock at all: the disk works, readers and writers go on;
 *   4. end:   under the exclusive lock, in memory: the layout takes note.
 *
 * Invariants:
 *  1. At most one commit is under way; the thread that runs it is its leader.
 *  2. Commits have numbers. Who asks waits for the first commit that begins (step 2) after that:
 *     whoever asked while the one before was being written shares it, and one of them leads it. A
 *     commit that is shared is one of everything, whatever its leader asked for.
 *  3. Who asks, or passes a commit point, holds no lock: step 1 takes inodes' data locks.
 *  4. The gate is shut only in the last round of step 1: what would dirty more data then waits at
 *     its commit point, so that step 1 comes to an end whatever the writers do.
 *
 *  5. A leader gives no reference to an inode back: the last one would delete it, which is a change
 *     with commit points of its own.
 *
 * Under a virtual clock there is one thread, which always leads. But over a modelled disk a commit
 * that nobody waits for is a task (fs/task.h), which the program goes on beside while the disk
 * works at steps 3 and the data of step 1: as the journal's and the segment constructor's threads
 * do. Who needs a commit lets that one end first, and so does the next one.
 */
#ifndef LAYOUTFS_COMMIT_H
#define LAYOUTFS_COMMIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/layout.h"
#include "fs/task.h"

struct commit { /* guarded by its mutex, a leaf, but for the two atomics */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t begun, ended; /* numbers of the latest commits to begin and to end */
    uint64_t failed;       /* the latest one that failed, with `error` */
    int error;
    bool led;            /* somebody leads a commit */
    uint32_t waiting;    /* for the next commit to be led */
    struct inode **held; /* the leader's: references to give back when it leads no more */
    size_t held_count, held_size;
    uint64_t asked, made; /* see struct commit_counts */
    _Atomic bool wanted;  /* the layout's: somebody make a commit soon */
    _Atomic bool gate_shut;
    struct task task; /* a commit in the background */
};

struct commit_counts {
    uint64_t asked; /* by fsync, sync, or for room in the log or by age */
    uint64_t made;  /* commits that wrote something */
};

void commit_init(struct commit *commit);
void commit_destroy(struct commit *commit);

/* Makes the inode's state durable (NULL: all of the volume's), as far as the cause asks for it, or
 * finds that it is. Holding no lock. Dirty inodes are given to the layout first; dirty pages only
 * as far as the layout asks for it. */
int commit_wait(struct volume *volume, struct inode *inode, enum commit_cause cause);
/* Where an operation that changes something begins or goes on, holding no lock: waits at the gate,
 * and makes the commit that the layout wants. An error is told to who needs the commit. */
void commit_point(struct volume *volume);
/* Under a virtual clock: lets a commit in the background get on, as far as it can without anybody
 * waiting. True: one is still under way. Holding no lock. */
bool commit_progress(struct volume *volume);
/* Likewise, but waits until it is over. */
void commit_finish(struct volume *volume);
/* For an operation that found no space: true after a commit that may have made some, but for the
 * same *tried only once, or as long as volume->commit_goes_on. Holding no lock. */
bool commit_for_space(struct volume *volume, int64_t result, bool *tried);

#endif
