/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface and invariants: fs/commit.h.
 */
#include "fs/commit.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/volume_internal.h"

void commit_init(struct commit *commit) {
    pthread_mutex_init(&commit->mutex, NULL);
    pthread_cond_init(&commit->changed, NULL);
}

void commit_destroy(struct commit *commit) {
    free(commit->held);
    pthread_cond_destroy(&commit->changed);
    pthread_mutex_destroy(&commit->mutex);
}

/* --- step 1: data ----------------------------------------------------------------------------- */

/* Makes room for one more reference. */
static int held_grow(struct commit *commit) {
    size_t size = commit->held_size ? commit->held_size * 2 : 64;
    struct inode **held;

    if (commit->held_count < commit->held_size)
        return 0;
    held = realloc(commit->held, size * sizeof(struct inode *));
    if (!held)
        return -ENOMEM;
    commit->held = held;
    commit->held_size = size;
    return 0;
}

struct held {
    struct inode **inodes;
    size_t count;
};

/* Takes over what a commit that is over has held. The mutex is held. */
static struct held held_take(struct commit *commit) {
    const struct held held = {commit->held, commit->held_count};

    commit->held = NULL;
    commit->held_count = commit->held_size = 0;
    return held;
}

/* Gives it back. Holding no lock. */
static void held_put(struct held held) {
    for (size_t i = 0; i < held.count; i++)
        volume_put(held.inodes[i], 1);
    free(held.inodes);
}

/* What a commit is to make durable: the one inode (data_only: as fdatasync), or NULL: everything.
 */
struct subject {
    struct inode *inode;
    enum commit_cause cause;
    bool stored; /* data, for which the commit waits before it is written */
};

/* Takes the next inode off the layout's list and holds it. *inode NULL: the list is empty.
 * Exclusive lock. */
static int data_next(struct volume *volume, const struct subject *subject, struct inode **inode) {
    struct commit *commit = &volume->commit;
    int error;

    *inode = NULL;
    if (!volume->layout->commit_data)
        return 0;
    error = held_grow(commit);
    if (error)
        return error;
    do {
        *inode = volume->layout->commit_data(volume, subject->inode, subject->cause);
        /* A deleted one is in no table any more, and its data do not matter. */
        if (*inode)
            commit->held[commit->held_count] = inode_cache_grab(volume, (*inode)->ino);
    } while (*inode && !commit->held[commit->held_count]);
    if (*inode)
        commit->held_count++;
    return 0;
}

/* Stores the inode's dirty pages and takes the next one. */
static int data_store(struct volume *volume, struct subject *subject, struct inode **inode) {
    int error, second;

    subject->stored = true;
    pthread_rwlock_wrlock(inode_data_lock(*inode));
    error = page_cache_flush(*inode, false);
    pthread_rwlock_unlock(inode_data_lock(*inode));
    pthread_rwlock_wrlock(&volume->lock);
    second = data_next(volume, subject, inode);
    pthread_rwlock_unlock(&volume->lock);
    return error ? error : second;
}

/* Whether a commit in the background lets others go on where it waits: while it holds no lock. */
static void give_way(struct commit *commit, bool yes) {
    if (commit->task.active)
        task_may_wait(&commit->task, yes);
}

/* As the kernel's own threads do, a commit in the background does not fill the disk's queue: who
 * submits to a full one waits, whatever he holds. Holding no lock. */
static void data_pause(struct volume *volume) {
    if (!volume->commit.task.active || device_poll(volume->device) != DEVICE_CONGESTED)
        return;
    give_way(&volume->commit, true);
    writeback_wait_half(volume);
    give_way(&volume->commit, false);
}

/* Holds the inode until the commit is over, unless it is what was held last. NULL in *inode: it is
 * deleted, and its data do not matter. */
static int held_by_number(struct volume *volume, uint64_t ino, struct inode **inode) {
    struct commit *commit = &volume->commit;

    *inode = commit->held_count ? commit->held[commit->held_count - 1] : NULL;
    if (*inode && (*inode)->ino == ino)
        return 0;
    int error = held_grow(commit);
    *inode = error ? NULL : inode_cache_grab(volume, ino);
    if (*inode)
        commit->held[commit->held_count++] = *inode;
    return error;
}

/* Stores the pages that are dirty now, in the order in which they became it. Where the disk's queue
 * is full, whoever waits for room in it gets some in turn: so a commit in the background and the
 * write-back beside it take turns of the same size. Holding no lock. */
static int data_store_written(struct volume *volume, struct subject *subject) {
    int64_t left = (int64_t)page_cache_dirty_bytes(volume), stored = 0, turn = 0;
    struct inode *inode;
    uint64_t ino;

    for (; left > 0 && page_cache_oldest(volume, &ino); left -= stored) {
        int error = held_by_number(volume, ino, &inode);
        if (error)
            return error;
        stored = PAGE_SIZE_BYTES;
        if (!inode) {
            page_cache_skip_oldest(volume, ino);
            continue;
        }
        if (turn >= (int64_t)WRITEBACK_TURN_BYTES) {
            turn = 0;
            data_pause(volume);
        }
        subject->stored = true;
        pthread_rwlock_wrlock(inode_data_lock(inode));
        stored = page_cache_store_oldest(inode);
        turn += stored;
        pthread_rwlock_unlock(inode_data_lock(inode));
        if (stored < 0)
            return (int)stored;
    }
    return 0;
}

static void gate_open(struct commit *commit) {
    if (!commit->gate_shut)
        return;
    pthread_mutex_lock(&commit->mutex);
    commit->gate_shut = false;
    pthread_cond_broadcast(&commit->changed);
    pthread_mutex_unlock(&commit->mutex);
}

/* Stores what must be stored first, without waiting for it. Returns with the exclusive lock, under
 * which the layout's list is empty, unless there was an error. */
static int data_settle(struct volume *volume, struct subject *subject) {
    struct inode *inode;
    int error = 0;

    if (volume->commit_stores_written && (!subject->inode || subject->inode->dirty))
        error = data_store_written(volume, subject);
    pthread_rwlock_wrlock(&volume->lock);
    if (!error)
        error = data_next(volume, subject, &inode);
    for (unsigned round = 0; !error && inode; round++) {
        pthread_rwlock_unlock(&volume->lock);
        if (round > 0)
            volume->commit.gate_shut = true;
        while (inode && !error) {
            if (round == 0)
                data_pause(volume);
            error = data_store(volume, subject, &inode);
        }
        pthread_rwlock_wrlock(&volume->lock);
        if (!error)
            error = data_next(volume, subject, &inode);
    }
    return error;
}

/* --- steps 2 to 4 ------------------------------------------------------------------------------
 */

/* Dirty inodes go to the layout, as part of what is committed. Exclusive lock. */
static int store_inodes(struct volume *volume) {
    int error = volume_step_begin(volume);

    return error ? error : volume_step_end(volume, inode_cache_store_dirty(volume));
}

/* From here on, who asks waits for the next commit. false: not yet, as others wait for this one
 * (*shared), and it is not one of `all`. Exclusive lock. */
static bool commit_number(struct commit *commit, bool all, bool *shared) {
    pthread_mutex_lock(&commit->mutex);
    *shared = commit->waiting > 0;
    bool numbered = all || !*shared;
    commit->begun += numbered;
    pthread_mutex_unlock(&commit->mutex);
    return numbered;
}

/* Stores data, and gives the commit its number; *subject becomes everything if others share it.
 * Returns with the exclusive lock. */
static int commit_settle(struct volume *volume, struct subject *subject) {
    int error = data_settle(volume, subject);
    bool shared;

    if (!commit_number(&volume->commit, error || !subject->inode, &shared)) {
        *subject = (struct subject){.cause = COMMIT_SYNC, .stored = subject->stored};
        pthread_rwlock_unlock(&volume->lock);
        error = data_settle(volume, subject);
        (void)commit_number(&volume->commit, true, &shared);
    }
    if (shared) /* those who wait may want more than the leader */
        subject->cause = COMMIT_SYNC;
    return error;
}

/* Exclusive lock. */
static int commit_begin(struct volume *volume, const struct subject *subject, bool *needed) {
    int error = volume_writable(volume);

    *needed = false;
    if (!error)
        error = writeback_tell_layout(volume);
    if (!error)
        error = store_inodes(volume);
    volume->commit.wanted = false;
    if (subject->cause != COMMIT_FDATASYNC)
        volume_note_commit(volume);
    if (error || !volume->layout->commit_begin)
        return error;
    return volume->layout->commit_begin(volume, subject->inode, subject->cause, needed);
}

/* What was stored, or allocated, has to be on the disk before a commit makes it count. */
static int data_wait(struct volume *volume, const struct subject *subject) {
    if (!subject->stored && !volume->store_changes)
        return 0;
    give_way(&volume->commit, true);
    (void)writeback_wait(volume); /* whoever is concerned is told */
    give_way(&volume->commit, false);
    pthread_rwlock_wrlock(&volume->lock);
    int error = writeback_tell_layout(volume);
    pthread_rwlock_unlock(&volume->lock);
    return error;
}

static int commit_write(struct volume *volume, const struct subject *subject) {
    const struct layout *layout = volume->layout;
    int error = data_wait(volume, subject);

    if (error || !layout->commit_write)
        return error;
    give_way(&volume->commit, true);
    error = layout->commit_write(volume);
    give_way(&volume->commit, false);
    return error;
}

static int commit_lead(struct volume *volume, struct subject subject) {
    const struct layout *layout = volume->layout;
    bool needed = false;
    int error = commit_settle(volume, &subject);

    if (!error)
        error = commit_begin(volume, &subject, &needed);
    pthread_rwlock_unlock(&volume->lock);
    gate_open(&volume->commit);
    if (error || !needed)
        return error;
    error = commit_write(volume, &subject);
    if (layout->commit_end) {
        pthread_rwlock_wrlock(&volume->lock);
        error = layout->commit_end(volume, error);
        pthread_rwlock_unlock(&volume->lock);
    }
    pthread_mutex_lock(&volume->commit.mutex);
    volume->commit.made++;
    pthread_mutex_unlock(&volume->commit.mutex);
    return error;
}

/* Leads a commit, whatever becomes of it. The mutex is held, but not meanwhile. */
static void lead(struct volume *volume, struct subject subject) {
    struct commit *commit = &volume->commit;

    commit->led = true;
    pthread_mutex_unlock(&commit->mutex);
    int error = commit_lead(volume, subject);
    pthread_mutex_lock(&commit->mutex);
    commit->led = false;
    commit->ended = commit->begun;
    if (error) {
        commit->failed = commit->ended;
        commit->error = error;
    }
    pthread_cond_broadcast(&commit->changed);
}

/* --- under a virtual clock ----------------------------------------------------------------------
 */

static void background_run(void *context) {
    struct volume *volume = context;

    pthread_mutex_lock(&volume->commit.mutex);
    volume->commit.asked++;
    lead(volume, (struct subject){.cause = COMMIT_AGE});
    pthread_mutex_unlock(&volume->commit.mutex);
}

/* The task has had a turn. */
static void background_turned(struct volume *volume) {
    struct commit *commit = &volume->commit;

    if (commit->task.active)
        return;
    pthread_mutex_lock(&commit->mutex);
    const struct held held = held_take(commit);
    pthread_mutex_unlock(&commit->mutex);
    held_put(held);
}

/* A commit that nobody waits for, beside the program. False: it has to be made by who asks. */
static bool background_start(struct volume *volume) {
    struct commit *commit = &volume->commit;

    if (!clock_is_virtual(volume->clock) || !volume->device ||
        device_poll(volume->device) == DEVICE_IMMEDIATE)
        return false;
    commit_finish(volume);
    commit->wanted = false; /* who asks for another one before this has begun, needs it now */
    if (task_start(&commit->task, volume->clock, background_run, volume))
        return false;
    background_turned(volume);
    return true;
}

bool commit_progress(struct volume *volume) {
    struct task *task = &volume->commit.task;

    if (!task->active)
        return false;
    device_poll(volume->device);
    if (task->waits_for->pending == 0) {
        task_go_on(task);
        background_turned(volume);
    }
    return task->active;
}

void commit_finish(struct volume *volume) {
    struct task *task = &volume->commit.task;

    while (task->active) {
        (void)device_wait(volume->device, task->waits_for);
        task_go_on(task);
        background_turned(volume);
    }
}

/* --- asking for one -----------------------------------------------------------------------------
 */

int commit_wait(struct volume *volume, struct inode *inode, enum commit_cause cause) {
    struct commit *commit = &volume->commit;
    struct held held = {NULL, 0};
    uint64_t target;
    int error;

    commit_finish(volume);
    pthread_mutex_lock(&commit->mutex);
    commit->asked++;
    target = commit->begun + 1;
    while (commit->ended < target) {
        if (commit->led) {
            commit->waiting++;
            pthread_cond_wait(&commit->changed, &commit->mutex);
            commit->waiting--;
        } else {
            lead(volume, (struct subject){.inode = inode, .cause = cause});
            held = held_take(commit);
        }
    }
    error = commit->failed >= target ? commit->error : 0;
    pthread_mutex_unlock(&commit->mutex);
    held_put(held);
    return error;
}

void commit_point(struct volume *volume) {
    struct commit *commit = &volume->commit;

    if (commit->gate_shut) {
        pthread_mutex_lock(&commit->mutex);
        while (commit->gate_shut)
            pthread_cond_wait(&commit->changed, &commit->mutex);
        pthread_mutex_unlock(&commit->mutex);
    }
    if (commit->wanted && !volume_writable(volume) && !background_start(volume))
        (void)commit_wait(volume, NULL, COMMIT_AGE);
}

bool commit_for_space(struct volume *volume, int64_t result, bool *tried) {
    if (result != -ENOSPC || *tried || !(volume->commit_frees || volume->store_frees))
        return false;
    *tried = true;
    if (volume->store_frees && writeback_all(volume))
        return false;
    if (volume->commit_frees && commit_wait(volume, NULL, COMMIT_SYNC) != 0)
        return false;
    *tried = !volume->commit_goes_on;
    return true;
}
