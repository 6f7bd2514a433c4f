/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over fs/pool.h and fs/device. Used by layouts for metadata blocks.
 *
 * A buffer is the in-memory copy of one metadata block, found by block number. The layout changes
 * its bytes and calls buffer_dirty; the core writes dirty buffers back in block order, by age,
 * under memory pressure, and at sync.
 *
 * Invariants:
 *  1. At most one buffer exists for a block number.
 *  2. A buffer with references, or dirty, or pinned, is never evicted.
 *  3. A dirty buffer's bytes are written only while nobody changes them: bytes are changed under
 *     the volume's exclusive lock, written under its shared (or exclusive) lock.
 *  4. The block size is fixed for the life of the cache.
 *  5. A block belongs to the buffer cache (metadata) or to a file's pages (data), never to both: a
 *     layout calls buffer_forget before it lets a metadata block be reused.
 */
#ifndef LAYOUTFS_BUFFER_H
#define LAYOUTFS_BUFFER_H

#include "fs/device/device.h"
#include "fs/pool.h"

struct buffer_cache;
struct inflight;

struct buffer {
    struct frame frame; /* first; frame.data is the block */
    struct buffer_cache *cache;
    uint64_t block;
    int64_t dirty_since_ns; /* clock time of the first change since the last write */
    _Atomic uint32_t references;
    uint16_t purpose; /* enum purpose */
    bool loading;     /* the core's: somebody is reading it in */
    bool dirty;
    bool pinned;           /* the layout's: not to be written or evicted yet (a journal's, say) */
    _Atomic bool checked;  /* the layout's: contents were validated since they were read */
    bool changed;          /* the layout's journal: in the running transaction */
    uint64_t logged;       /* the layout's journal: the last transaction that has it, 0: none */
    struct inflight *read; /* the core's: the prefetch it arrives with, or NULL */
    struct buffer *hash_next;
    TAILQ_ENTRY(buffer) dirty_link;
    TAILQ_ENTRY(buffer) change_link; /* the layout's journal: while `changed` */
};

static inline void *buffer_data(const struct buffer *buffer) {
    return buffer->frame.data;
}

/* `block_size` 512..65536, a power of two. The device is borrowed, the pool too. */
int buffer_cache_create(struct device *device, struct pool *pool, struct clock *clock,
                        uint32_t block_size, struct buffer_cache **cache);
/* A block that could not be read (other than ahead) or written. */
struct buffer_failure {
    enum device_operation operation;
    enum purpose purpose;
    uint64_t block;
    uint32_t
        count; /* of blocks; 0: some of those that were written lately, it is not known which */
    int error;
};
/* `failed` is told of every failure, beside who asked, so that the layout can do what its format
 * provides for; it uses no buffers, and the volume's lock may be held in any way. A buffer whose
 * write was accepted and failed later is clean: its block is not what it should be, and only this
 * call says so. */
void buffer_cache_on_failure(struct buffer_cache *cache,
                             void (*failed)(void *context, const struct buffer_failure *failure),
                             void *context);
/* For the core: requests of buffer_write_back have failed after their submission. */
void buffer_writes_failed(struct buffer_cache *cache, int error);
/* Drops everything, dirty or not; call buffer_sync first to keep it. Asserts no references. */
void buffer_cache_destroy(struct buffer_cache *cache);

/* The block's buffer with its contents, referenced. Reads if need be (one device read), waiting for
 * a prefetch in flight. -EIO: beyond the device or unreadable; -ENOMEM. */
int buffer_get(struct buffer_cache *cache, uint64_t block, enum purpose purpose,
               struct buffer **buffer);
/* The same without reading: zero-filled, for a block about to be written whole. The caller calls
 * buffer_dirty. If the block is cached its bytes are zeroed. */
int buffer_get_zeroed(struct buffer_cache *cache, uint64_t block, enum purpose purpose,
                      struct buffer **buffer);
/* The block's buffer, referenced, if it is cached and no prefetch is in flight for it; else NULL.
 * Does not count as a use. */
struct buffer *buffer_peek(struct buffer_cache *cache, uint64_t block);
/* One more reference to a referenced buffer. */
void buffer_hold(struct buffer *buffer);
/* Gives a reference back. NULL is allowed. */
void buffer_put(struct buffer *buffer);
/* The bytes have changed. The caller holds a reference and the volume's exclusive lock. */
void buffer_dirty(struct buffer *buffer);
/* `count` blocks from `block` on are free now: their buffers are dropped, changes included.
 * Nobody holds references to them. */
void buffer_forget(struct buffer_cache *cache, uint64_t block, uint64_t count);
/* Starts reading up to `count` consecutive blocks that are not cached, without waiting; blocks
 * beyond the device are skipped. Errors surface at buffer_get. */
void buffer_prefetch(struct buffer_cache *cache, uint64_t block, uint32_t count,
                     enum purpose purpose);

/* Submits all dirty, unpinned buffers dirty since `before_ns` or earlier (INT64_MAX: all), merging
 * neighbours, at most `limit_bytes` of them; requests join `batch` (may be NULL). Returns the bytes
 * submitted or negative errno; a buffer whose write failed stays dirty. */
int64_t buffer_write_back(struct buffer_cache *cache, int64_t before_ns, uint64_t limit_bytes,
                          struct device_batch *batch);
/* Writes the one buffer and waits for it (not for durability). */
int buffer_write_now(struct buffer *buffer);
/* Writes all dirty, unpinned buffers and waits; does not flush the device. */
int buffer_sync(struct buffer_cache *cache);
uint64_t buffer_dirty_bytes(const struct buffer_cache *cache);
uint32_t buffer_block_size(const struct buffer_cache *cache);

#endif
