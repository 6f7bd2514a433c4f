/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, shared by the volume's own files (volume*.c, inode_cache.c, pagecache.c, writeback.c).
 * Layouts, tools and the bench do not include it.
 *
 * The inode cache. Invariants:
 *  1. At most one in-core inode exists for an inode number that is in use.
 *  2. references > 0, or the inode is on the LRU list, or it is being taken away by one thread that
 *     has already removed it from the hash table.
 *  3. An inode that is dirty or has dirty pages is not taken away, unless it was deleted.
 *  4. Only who holds the volume's exclusive lock takes inodes away.
 * Locking: the cache's mutex guards the table, the lists and `references`. The pool's mutex may be
 * taken while it is held, never the other way round.
 */
#ifndef LAYOUTFS_VOLUME_INTERNAL_H
#define LAYOUTFS_VOLUME_INTERNAL_H

#include "fs/acl.h"
#include "fs/pagecache.h"
#include "fs/volume.h"

int inode_cache_create(struct volume *volume, struct inode_cache **cache);
void inode_cache_destroy(struct inode_cache *cache);
/* A new in-core inode, not yet in the table, with one reference and all else zero. */
struct inode *inode_cache_new(struct volume *volume);
/* Enters an inode made by inode_cache_new once it has its number. -EUCLEAN: another inode in use
 * has that number, so the volume's record of free ones is damaged. */
int inode_cache_insert(struct inode *inode);
/* Gives up an inode made by inode_cache_new that was never inserted. */
void inode_cache_abandon(struct inode *inode);
/* The cached inode with one more reference, or NULL. This is how write-back, which finds an inode
 * through the page cache's list, gets a safe hold on it: note its number under the pool's mutex,
 * release the mutex, grab it here, and give it back with volume_put while holding no lock. */
struct inode *inode_cache_grab(struct volume *volume, uint64_t ino);
/* Grabs or loads. Volume lock held, shared or exclusive. */
int inode_cache_get(struct volume *volume, uint64_t ino, struct inode **inode);
/* Puts the attributes of all dirty inodes into their blocks. Exclusive lock. */
int inode_cache_store_dirty(struct volume *volume);
/* Takes unreferenced clean inodes away until at most `keep` of them are left. Exclusive lock. */
void inode_cache_trim(struct volume *volume, uint32_t keep);
/* Takes all of them away, at unmount: what is still dirty could not be stored, which sync has
 * reported. Exclusive lock. */
void inode_cache_purge(struct volume *volume);
/* Trims the cache if it holds clearly more unreferenced inodes than its memory allows. Holding no
 * lock. */
void inode_cache_tidy(struct volume *volume);

/* Something changes that write-back, a commit or the layout's idle work will have to do with: every
 * step, inode made dirty and first dirty page says so. Wakes the flusher, which sleeps for good
 * while nothing happens. Any lock may be held. */
static inline void volume_note_change(struct volume *volume) {
    if (atomic_load_explicit(&volume->changed, memory_order_relaxed) != CHANGED_ALL) {
        volume->changed = CHANGED_ALL;
        flusher_rouse(volume);
    }
}

/* A commit of everything that has changed so far begins. Exclusive lock. */
static inline void volume_note_commit(struct volume *volume) {
    atomic_fetch_and(&volume->changed, ~(unsigned)CHANGED_SINCE_COMMIT);
    volume->commit_due_ns = INT64_MAX;
}

/* Attributes have changed and must reach the layout. Exclusive lock. */
void inode_mark_dirty(struct inode *inode);
/* Calls layout->inode_store now. Exclusive lock. */
int inode_store(struct inode *inode);
int inode_store_if_dirty(struct inode *inode);

/* The calendar time as the layout can keep it. */
struct timestamp volume_now(struct volume *volume);
struct timestamp volume_clamp_time(const struct volume *volume, struct timestamp time);
/* 0, -EROFS, or -EIO after a shutdown. */
int volume_writable(const struct volume *volume);
/* May a sync succeed? -EROFS or -EIO where writing has failed for good. 0 with *nothing_to_do on a
 * volume that was mounted read-only. */
int volume_sync_possible(const struct volume *volume, bool *nothing_to_do);
int volume_readable(const struct volume *volume);
/* The same for one inode: -EROFS where it is of the past. */
static inline int inode_writable(const struct inode *inode) {
    int error = volume_writable(inode->volume);
    return error ? error : inode->past ? -EROFS : 0;
}
/* layout->step_begin/step_end where the layout has them. Exclusive lock. */
int volume_step_begin(struct volume *volume);
int volume_step_end(struct volume *volume, int error);
/* A change as most operations make it: takes the exclusive lock and begins a step of a volume that
 * can be written. On failure nothing is held. volume_change_end ends the step, releases the lock
 * and returns `error`, or what ending the step gave. */
int volume_change_begin(struct volume *volume);
int volume_change_end(struct volume *volume, int error);
/* Access control lists: fs/volume_acl.c. Exclusive lock. */
/* Gives a new inode of that directory the lists and the mode that it inherits; `umask` counts where
 * it inherits none. */
int volume_acl_create(struct inode *dir, struct inode *inode, uint32_t umask);
/* Before the inode gets `mode`. */
int volume_acl_chmod(struct inode *inode, uint32_t mode);
/* Sets one list, and with the one for access the mode. `value` NULL: takes it away. */
int volume_acl_set(struct inode *inode, enum acl_kind kind, const void *value, size_t size);

/* Whether reading changes the access time now; the lock is held, shared or exclusive. Changes it,
 * if so; no lock is held. */
bool inode_atime_due(const struct inode *inode);
void inode_atime_update(struct inode *inode);
/* --- file data (fs/volume_data.c), for volume_fallocate.c and volume_copy.c --- */
/* Takes the data lock of an inode about to change, exclusive, once no cut is left over. 0 with the
 * lock; or an error without it. */
int data_lock(struct inode *inode);
void data_unlock(struct inode *inode);
/* Whether bytes from `offset` on may change, before anything is done. Data lock held. */
int data_may_change(struct inode *inode, uint64_t offset);
/* The file's contents change now: time stamps, and no set-id program with new contents. Exclusive
 * volume->lock. */
void data_modified(struct inode *inode);
/* Sets the file's size. Data lock exclusive, volume->lock not held. */
int data_truncate(struct inode *inode, uint64_t size);
/* Writes piece by piece, zeros where buffer is NULL. The bytes written, fewer when space runs out,
 * or an error. Holding no lock. */
int64_t data_write_pieces(struct inode *inode, const char *buffer, uint64_t size, uint64_t offset);

/* As when a plain user changes a file's contents. Exclusive lock. */
void inode_clear_setid(struct inode *inode);
pthread_rwlock_t *inode_data_lock(struct inode *inode);
/* Under a virtual clock, ends every public operation: volume_tick if it is due. Holding no lock. */
void volume_end_operation(struct volume *volume);

#endif
