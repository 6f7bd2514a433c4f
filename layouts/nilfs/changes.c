/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, below file.c. Interface: layouts/nilfs/file.h ("changes").
 *
 * Most files in core are only looked at, and there may be millions: what a file needs while it
 * changes is apart, made with the first change, and not kept for long after the last one.
 *
 * Invariants:
 *  1. A user's file with changes is on nilfs->dirty_files if it is dirty, else on
 *     nilfs->idle_changes, the one that was dirty last at the tail.
 *  2. Exactly the dirty user files of the live tree are in nilfs->files, by number. A clean one is
 *     as its record in the ifile says, so that any number of them may be made from that; nobody
 *     changes one while there is another (inode.c).
 *  3. Metadata files have their changes from the first moment to the last.
 *
 * What is lost with idle ones is a hint: which virtual block the file's last data got.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "layouts/nilfs/file.h"

/* More files than are written to in turns, and less memory than anyone minds. */
#define IDLE_MAX 4096u
/* So many of the oldest are looked at for one that may go. */
#define IDLE_LOOK 4u

/* --- life ------------------------------------------------------------------------------------- */

static void idle_remove(struct nilfs *nilfs, struct nilfs_changes *changes) {
    TAILQ_REMOVE(&nilfs->idle_changes, changes, link);
    nilfs->idle_count--;
}

static void idle_add(struct nilfs *nilfs, struct nilfs_changes *changes) {
    TAILQ_INSERT_TAIL(&nilfs->idle_changes, changes, link);
    nilfs->idle_count++;
}

struct nilfs_changes *nilfs_changes_take(struct nilfs_file *file) {
    struct nilfs *nilfs = file->nilfs;

    if (file->changes)
        return file->changes;
    pthread_mutex_lock(&nilfs->files_mutex);
    struct nilfs_changes *changes = slab_take(&nilfs->changes_memory);
    pthread_mutex_unlock(&nilfs->files_mutex);
    if (!changes)
        return NULL;
    changes->file = file;
    RB_INIT(&changes->data);
    RB_INIT(&changes->nodes);
    if (nilfs_file_is_users(file))
        idle_add(nilfs, changes);
    file->changes = changes;
    return changes;
}

void nilfs_changes_release(struct nilfs_file *file) {
    struct nilfs_changes *changes = file->changes;
    struct nilfs *nilfs = file->nilfs;

    if (!changes)
        return;
    assert(changes->changed_data == 0 && changes->changed_nodes == 0);
    if (nilfs_file_is_users(file))
        idle_remove(nilfs, changes);
    block_set_clear(&changes->pending.blocks);
    free(changes->cursor);
    pthread_mutex_lock(&nilfs->files_mutex);
    slab_give(&nilfs->changes_memory, changes);
    pthread_mutex_unlock(&nilfs->files_mutex);
    file->changes = NULL;
}

/* Those that are not to go stand behind the others then, so that the next look finds new ones. */
static void idle_trim(struct nilfs *nilfs) {
    for (unsigned i = 0; i < IDLE_LOOK && nilfs->idle_count > IDLE_MAX; i++) {
        struct nilfs_changes *oldest = TAILQ_FIRST(&nilfs->idle_changes);
        if (oldest->pending.blocks.blocks == 0 && oldest->uncut == 0) {
            nilfs_changes_release(oldest->file);
        } else {
            idle_remove(nilfs, oldest);
            idle_add(nilfs, oldest);
        }
    }
}

/* --- dirty files ------------------------------------------------------------------------------ */

static void files_enter(struct nilfs *nilfs, struct nilfs_changes *changes) {
    const uint64_t *ino = &changes->file->ino;

    pthread_mutex_lock(&nilfs->files_mutex);
    HASH_ADD_KEYPTR(hh, nilfs->files, ino, sizeof *ino, changes);
    changes->file->references++;
    pthread_mutex_unlock(&nilfs->files_mutex);
}

static void files_leave(struct nilfs *nilfs, struct nilfs_changes *changes) {
    pthread_mutex_lock(&nilfs->files_mutex);
    HASH_DELETE(hh, nilfs->files, changes);
    pthread_mutex_unlock(&nilfs->files_mutex);
}

struct nilfs_file *nilfs_file_find_dirty(struct nilfs *nilfs, uint64_t ino) {
    struct nilfs_changes *changes;

    pthread_mutex_lock(&nilfs->files_mutex);
    HASH_FIND(hh, nilfs->files, &ino, sizeof ino, changes);
    if (changes)
        changes->file->references++;
    pthread_mutex_unlock(&nilfs->files_mutex);
    return changes ? changes->file : NULL;
}

int nilfs_file_mark_dirty(struct nilfs_file *file) {
    struct nilfs *nilfs = file->nilfs;

    assert(file->cno == 0);
    if (file->dirty)
        return 0;
    struct nilfs_changes *changes = nilfs_changes_take(file);
    if (!changes)
        return -ENOMEM;
    file->dirty = true;
    if (nilfs_file_is_users(file)) {
        idle_remove(nilfs, changes);
        TAILQ_INSERT_TAIL(&nilfs->dirty_files, changes, link);
        nilfs->dirty_file_count++;
        files_enter(nilfs, changes);
    }
    if (nilfs_file_is_users(file) || file->ino == NILFS_IFILE_INO)
        nilfs->user_changes = true;
    return 0;
}

void nilfs_file_mark_clean(struct nilfs_file *file) {
    struct nilfs *nilfs = file->nilfs;

    if (!file->dirty)
        return;
    file->dirty = false;
    file->data_only_unsafe = false;
    if (!nilfs_file_is_users(file))
        return;
    files_leave(nilfs, file->changes);
    TAILQ_REMOVE(&nilfs->dirty_files, file->changes, link);
    nilfs->dirty_file_count--;
    idle_add(nilfs, file->changes);
    idle_trim(nilfs);
    nilfs_file_put(file);
}
