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

/* Gives back what a commit that is over has held. Holding no lock. */
static void held_put(struct inode **held, size_t count) {
    for (size_t i = 0; i < count; i++)
        volume_put(held[i], 1);
    free(held);
}

/* What a commit is to make durable: the one inode (data_only: as fdatasync), or NULL: everything.
 */
struct subject {
    struct inode *inode;
    enum commit_cause cause;
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
static int data_store(struct volume *volume, const struct subject *subject, struct inode **inode) {
    int error, second;

    pthread_rwlock_wrlock(inode_data_lock(*inode));
    error = page_cache_flush(*inode, false);
    pthread_rwlock_unlock(inode_data_lock(*inode));
    pthread_rwlock_wrlock(&volume->lock);
    second = data_next(volume, subject, inode);
    pthread_rwlock_unlock(&volume->lock);
    return error ? error : second;
}

static void gate_open(struct commit *commit) {
    if (!commit->gate_shut)
        return;
    pthread_mutex_lock(&commit->mutex);
    commit->gate_shut = false;
    pthread_cond_broadcast(&commit->changed);
    pthread_mutex_unlock(&commit->mutex);
}

/* Stores what must be stored first. Returns with the exclusive lock, under which the layout's list
 * is empty, unless there was an error. */
static int data_settle(struct volume *volume, const struct subject *subject) {
    struct inode *inode;
    int error;

    pthread_rwlock_wrlock(&volume->lock);
    error = data_next(volume, subject, &inode);
    for (unsigned round = 0; inode && !error; round++) {
        pthread_rwlock_unlock(&volume->lock);
        if (round > 0)
            volume->commit.gate_shut = true;
        while (inode && !error)
            error = data_store(volume, subject, &inode);
        if (!error)
            error = writeback_wait(volume);
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
        *subject = (struct subject){.cause = COMMIT_SYNC};
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
    if (!error && volume->store_changes) /* what is allocated has been written before it counts */
        error = writeback_settle_stores(volume);
    if (!error)
        error = store_inodes(volume);
    volume->commit.wanted = false;
    if (subject->cause != COMMIT_FDATASYNC)
        volume_note_commit(volume);
    if (error || !volume->layout->commit_begin)
        return error;
    return volume->layout->commit_begin(volume, subject->inode, subject->cause, needed);
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
    error = layout->commit_write ? layout->commit_write(volume) : 0;
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

int commit_wait(struct volume *volume, struct inode *inode, enum commit_cause cause) {
    struct commit *commit = &volume->commit;
    struct inode **held = NULL;
    size_t held_count = 0;
    uint64_t target;
    int error;

    pthread_mutex_lock(&commit->mutex);
    commit->asked++;
    target = commit->begun + 1;
    while (commit->ended < target) {
        if (commit->led) {
            commit->waiting++;
            pthread_cond_wait(&commit->changed, &commit->mutex);
            commit->waiting--;
            continue;
        }
        commit->led = true;
        pthread_mutex_unlock(&commit->mutex);
        error = commit_lead(volume, (struct subject){inode, cause});
        pthread_mutex_lock(&commit->mutex);
        commit->led = false;
        commit->ended = commit->begun;
        if (error) {
            commit->failed = commit->ended;
            commit->error = error;
        }
        pthread_cond_broadcast(&commit->changed);
        held = commit->held;
        held_count = commit->held_count;
        commit->held = NULL;
        commit->held_count = commit->held_size = 0;
    }
    error = commit->failed >= target ? commit->error : 0;
    pthread_mutex_unlock(&commit->mutex);
    held_put(held, held_count);
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
    if (commit->wanted && !volume_writable(volume))
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
