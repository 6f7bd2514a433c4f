/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface and invariants: fs/pool.h.
 *
 * Memory of a frame that went away is kept on a free list of its size class for the next one. A
 * volume uses at most two sizes (its blocks and pages), so that what is kept is little more than
 * the most that was ever used.
 */
#include "fs/pool.h"

#include <assert.h>
#include <errno.h>

#define FRAME_SIZE_MIN 512u
#define FRAME_CLASSES  8u /* 512 bytes to 64 KiB */

/* Frames looked at for one new frame. Where a long run of dirty frames lies at the tail, the budget
 * is exceeded for a moment instead of walking all of them for every page. */
#define RECLAIM_SCAN_MAX 64u

static unsigned pool_class(uint32_t size) {
    unsigned index = (unsigned)__builtin_ctz(size) - (unsigned)__builtin_ctz(FRAME_SIZE_MIN);

    assert((size & (size - 1)) == 0 && index < FRAME_CLASSES);
    return index;
}

int pool_init(struct pool *pool, uint64_t budget_bytes) {
    *pool = (struct pool){.budget_bytes = budget_bytes};
    TAILQ_INIT(&pool->active);
    TAILQ_INIT(&pool->inactive);
    return -pthread_mutex_init(&pool->mutex, NULL);
}

static void *pool_pop_free(struct pool *pool, unsigned index) {
    void **data = pool->free_data[index];

    if (!data)
        return NULL;
    pool->free_data[index] = *data;
    return data;
}

void pool_destroy(struct pool *pool) {
    assert(pool->used_bytes == 0);
    arena_release(&pool->arena);
    pthread_mutex_destroy(&pool->mutex);
}

static struct frame_list *pool_list(struct pool *pool, const struct frame *frame) {
    return frame->active ? &pool->active : &pool->inactive;
}

static void pool_remove(struct pool *pool, struct frame *frame) {
    TAILQ_REMOVE(pool_list(pool, frame), frame, lru);
    if (frame->active)
        pool->active_bytes -= frame->size;
}

static void pool_insert(struct pool *pool, struct frame *frame, bool active) {
    frame->active = active;
    frame->referenced = false;
    if (active)
        pool->active_bytes += frame->size;
    TAILQ_INSERT_HEAD(pool_list(pool, frame), frame, lru);
}

/* Trims the active list to two thirds of all, and so that there is something to reclaim. */
static void pool_balance(struct pool *pool) {
    while (pool->active_bytes > pool->used_bytes / 3 * 2 || TAILQ_EMPTY(&pool->inactive)) {
        struct frame *frame = TAILQ_LAST(&pool->active, frame_list);

        if (!frame)
            return;
        pool_remove(pool, frame);
        pool_insert(pool, frame, false);
    }
}

static void pool_reclaim(struct pool *pool, uint64_t target_bytes) {
    for (unsigned scanned = 0; pool->used_bytes > target_bytes && scanned < RECLAIM_SCAN_MAX;
         scanned++) {
        struct frame *frame;

        pool_balance(pool);
        frame = TAILQ_LAST(&pool->inactive, frame_list);
        if (!frame)
            return;
        if (!frame->evict(frame)) { /* out of the way of the next scan */
            pool_remove(pool, frame);
            pool_insert(pool, frame, false);
        }
    }
}

static void *pool_take_memory(struct pool *pool, uint32_t size) {
    void *data = pool_pop_free(pool, pool_class(size));

    return data ? data : arena_take(&pool->arena, size);
}

int pool_attach(struct pool *pool, struct frame *frame, uint32_t size, frame_evict evict) {
    uint64_t room = pool->budget_bytes > size ? pool->budget_bytes - size : 0;

    if (pool->used_bytes > room)
        pool_reclaim(pool, room);
    frame->data = pool_take_memory(pool, size);
    if (!frame->data)
        return -ENOMEM;
    frame->size = size;
    frame->evict = evict;
    pool->used_bytes += size;
    pool_insert(pool, frame, false);
    return 0;
}

void pool_detach(struct pool *pool, struct frame *frame) {
    unsigned index = pool_class(frame->size);
    void **data = frame->data;

    pool_remove(pool, frame);
    frame->data = NULL;
    pool->used_bytes -= frame->size;
    *data = pool->free_data[index];
    pool->free_data[index] = data;
}

void pool_touch(struct pool *pool, struct frame *frame) {
    if (!frame->referenced) {
        frame->referenced = true;
    } else if (!frame->active) {
        pool_remove(pool, frame);
        pool_insert(pool, frame, true);
    }
}

static void pool_shrink_list(struct pool *pool, struct frame_list *list, uint64_t target_bytes) {
    struct frame *frame = TAILQ_LAST(list, frame_list);

    while (frame && pool->used_bytes > target_bytes) {
        struct frame *previous = TAILQ_PREV(frame, frame_list, lru);

        frame->evict(frame);
        frame = previous;
    }
}

void pool_shrink(struct pool *pool, uint64_t target_bytes) {
    pool_shrink_list(pool, &pool->inactive, target_bytes);
    pool_shrink_list(pool, &pool->active, target_bytes);
}
