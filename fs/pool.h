/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Over it: the buffer cache (metadata blocks) and the page cache (file data).
 *
 * One memory budget for both caches. A frame is a piece of memory of one block or page, chained on
 * one of two LRU lists. A frame is born inactive and becomes active at its second use, so that a
 * long stream of data used once cannot push out metadata used again and again (as in Linux's page
 * cache). Reclaim takes from the inactive tail; the active list is trimmed to at most two thirds.
 *
 * Invariants:
 *  1. used_bytes is the sum of the sizes of all frames.
 *  2. A frame on a list is on exactly one of the two.
 *  3. The pool never evicts by itself a frame whose owner says it is busy, dirty or pinned.
 *
 * Locking: the pool has one mutex (pool_lock/unlock), which also guards the look-up structures of
 * both caches and the state of every frame. The bytes of a frame are guarded by their owner's
 * rules. No device call is made under the mutex.
 */
#ifndef LAYOUTFS_POOL_H
#define LAYOUTFS_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "fs/arena.h"

struct frame;

/* Called under the mutex for a frame that is to be taken away: the owner unlinks it from its
 * look-up structure, calls pool_detach, frees it, and returns true; or refuses (pinned, dirty, in
 * flight) and returns false. It touches no other frame. */
typedef bool (*frame_evict)(struct frame *frame);

struct frame {
    TAILQ_ENTRY(frame) lru;
    frame_evict evict; /* set by the owner */
    void *data;        /* owned by the pool */
    uint32_t size;     /* bytes: a power of two from 512 to 65536 */
    bool active;
    bool referenced; /* used since it was put on its list */
};

TAILQ_HEAD(frame_list, frame);

struct pool {
    pthread_mutex_t mutex;
    uint64_t budget_bytes;
    uint64_t used_bytes;
    uint64_t active_bytes;
    struct frame_list active, inactive;
    void *free_data[8]; /* recycled memory by size class, chained through its first word */
    struct arena arena;
};

int pool_init(struct pool *pool, uint64_t budget_bytes);
/* All frames must have been freed. */
void pool_destroy(struct pool *pool);

static inline void pool_lock(struct pool *pool) {
    pthread_mutex_lock(&pool->mutex);
}
static inline void pool_unlock(struct pool *pool) {
    pthread_mutex_unlock(&pool->mutex);
}

/* The four below are called with the mutex held. */

/* Gives `frame` memory of `size` bytes (contents undefined) and puts it on the inactive list,
 * evicting others to stay in budget. When nothing can be evicted the budget is exceeded rather
 * than the call failing: write-back, not the allocator, is what bounds dirty memory. 0, -ENOMEM. */
int pool_attach(struct pool *pool, struct frame *frame, uint32_t size, frame_evict evict);
/* Takes the memory back; the frame is then the owner's to free. */
void pool_detach(struct pool *pool, struct frame *frame);
/* Notes a use. */
void pool_touch(struct pool *pool, struct frame *frame);
/* Evicts until used_bytes <= target or nothing more can be. */
void pool_shrink(struct pool *pool, uint64_t target_bytes);

#endif
