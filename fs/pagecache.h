/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over fs/pool.h and layout->load/store. Used by fs/volume_data.c only.
 *
 * File data in pages of PAGE_SIZE_BYTES, found by (inode, page index). Dirty pages are written per
 * file in file order, by age and when there are too many, as the modelled kernel does.
 *
 * Invariants:
 *  1. A page's bytes past the end of the file are zero.
 *  2. Only reserved (or already stored) parts of a page are ever non-zero and dirty.
 *  3. A dirty page, or one whose batch is pending, is never evicted.
 *  4. dirty_bytes is PAGE_SIZE_BYTES times the number of dirty pages of all inodes.
 *
 * Locking: callers hold the inode's data lock (shared to read pages, exclusive to change them or
 * write them back). Look-up structures are guarded by the pool's mutex.
 */
#ifndef LAYOUTFS_PAGECACHE_H
#define LAYOUTFS_PAGECACHE_H

#include "fs/volume.h"

/* Stored under one hold of an inode's data lock, and in one turn of those who store in turn. */
#define WRITEBACK_TURN_BYTES (4u << 20)

int page_cache_create(struct volume *volume, struct page_cache **cache);
void page_cache_destroy(struct page_cache *cache);

/* Copies cached or loaded bytes out; [offset, offset + size) lies inside the file. Reads ahead.
 * `buffer` has `room` bytes, at least size, of which those behind the end of the file may be
 * changed: what is read past the cache is whole pages. 0 or negative errno. Called with the data
 * lock (shared or exclusive) and without volume->lock. */
int page_cache_read(struct inode *inode, void *buffer, size_t room, size_t size, uint64_t offset);
/* Makes sure that the pages partly covered by [offset, offset + size) are present and stay, so that
 * a following page_cache_write changes only what it should; and the last page, if the write leaves
 * a hole after it. Before `reserve`, since freshly reserved blocks hold old bytes. On a writable
 * volume only. Data lock exclusive; volume->lock is not held. */
int page_cache_prepare(struct inode *inode, size_t size, uint64_t offset);
/* Copies bytes in (zeros where buffer is NULL) and marks the pages dirty. After page_cache_prepare
 * and `reserve`. */
int page_cache_write(struct inode *inode, const void *buffer, size_t size, uint64_t offset);
/* Does a write of `size` bytes at `offset` go past the cache (direct_write_bytes)? Then
 * page_cache_write_direct takes its whole pages, after `reserve`: what is cached of them is dropped
 * and they are stored at once. Data lock exclusive, volume->lock not held. */
bool page_cache_is_direct(const struct inode *inode, size_t size, uint64_t offset);
int page_cache_write_direct(struct inode *inode, const void *buffer, size_t size, uint64_t offset);
/* Zeroes cached bytes in [offset, offset + length) and drops whole pages inside it, dirty or not;
 * a partly covered page that is stored on disk is loaded, zeroed and made dirty. Data lock
 * exclusive, volume->lock not held. */
int page_cache_zero(struct inode *inode, uint64_t offset, uint64_t length);
/* Drops every page from the page holding `offset` rounded up on. Data lock exclusive. */
void page_cache_truncate(struct inode *inode, uint64_t offset);
/* Writes the inode's dirty pages. With `wait` until they are written; writes of this file that have
 * failed in flight, now or earlier, are an error then, too. Data lock exclusive. */
int page_cache_flush(struct inode *inode, bool wait);
/* What an fsync of the inode, or a sync of the volume, has to answer: the error of writes that have
 * failed in flight since the last one. */
int page_cache_take_error(struct inode *inode);
int page_cache_take_volume_error(struct volume *volume);
/* Drops all pages of an inode that is going away. */
void page_cache_forget(struct inode *inode);
bool page_cache_has_dirty(const struct inode *inode);
/* Where the first dirty byte at or after `offset` is, in whole pages, or UINT64_MAX. Where the
 * layout delays allocation, such bytes are data although they are in a hole yet. Data lock held. */
uint64_t page_cache_next_dirty(struct inode *inode, uint64_t offset);

/* --- write-back (fs/writeback.c) --- */
/* How many bytes are dirty. */
uint64_t page_cache_dirty_bytes(const struct volume *volume);
/* Whose page became dirty first, for those who store pages in that order; false: none is dirty. */
bool page_cache_oldest(struct volume *volume, uint64_t *ino);
/* Stores, without waiting, the pages that became dirty first, as far as they lie in a row in this
 * inode. The bytes stored (0: another's became dirty first) or negative errno. Data lock
 * exclusive. */
int64_t page_cache_store_oldest(struct inode *inode);
/* Lets the page that became dirty first be the last, if it is this inode's still. */
void page_cache_skip_oldest(struct volume *volume, uint64_t ino);
/* Waits for all writes in flight now. The error of the first of them that failed; who is to be told
 * of it later is told all the same. */
int writeback_wait(struct volume *volume);
/* Waits for about half of the writes in flight. */
void writeback_wait_half(struct volume *volume);
/* Tells the layout of data that are known not to have arrived since it was last told
 * (layout->store_failed); the error of them, if it wants to know. Exclusive lock. */
int writeback_tell_layout(struct volume *volume);
/* Both. Exclusive lock, where the layout wants to know. */
int writeback_settle_stores(struct volume *volume);
/* Writes all dirty data of the volume and waits. No locks held. */
int writeback_all(struct volume *volume);
/* Writes dirty data older than the expiry, and down to the background limit when over it, without
 * waiting. No locks held. */
int writeback_periodic(struct volume *volume);
/* A writer that has dirtied pages: starts write-back above the background limit, waits for it above
 * the hard one. No locks held. */
int writeback_throttle(struct volume *volume);
/* Wall mode: the thread that calls volume_tick when it is due or when writers ask. Once nothing is
 * dirty and nothing has happened for a while it sleeps until it is roused: an idle mount uses no
 * CPU time. */
int flusher_start(struct volume *volume);
void flusher_stop(struct volume *volume);
/* Write-back is to begin now. */
void flusher_wake(struct volume *volume);
/* Something has changed, so there will be something to do. A few instructions when it is awake. */
void flusher_rouse(struct volume *volume);

#endif
