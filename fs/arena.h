/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (no dependencies). Used by the pool, the caches and the memory device.
 *
 * Memory taken from the system in big pieces and given back all at once. The caches live from
 * millions of small objects of few sizes that they recycle themselves; taking them one by one from
 * malloc costs a page fault every 4 KiB, which is more than all the rest of making a file. Big
 * pieces are aligned for, and advised as, huge pages.
 *
 * Under AddressSanitizer a red zone follows every object.
 *
 * Locking: the caller's.
 */
#ifndef LAYOUTFS_ARENA_H
#define LAYOUTFS_ARENA_H

#include <stddef.h>
#include <string.h>

struct arena {
    struct arena_piece *pieces; /* owned */
    char *next, *end;           /* what is left of the newest */
    size_t piece_size;          /* of the next one; grows from 64 KiB to 2 MiB */
};

/* A zeroed struct arena is empty and valid. */

/* `size` bytes, aligned to 64 where size is a multiple of 64, else to 16; contents undefined.
 * NULL: no memory. */
void *arena_take(struct arena *arena, size_t size);
/* Gives everything back; the arena is empty again. */
void arena_release(struct arena *arena);

/* Objects of one size that come and go, kept when they go. */
struct recycler {
    size_t size; /* bytes of an object, at least a pointer's */
    void *free;  /* chained through the first word */
    struct arena arena;
};

/* An object with undefined contents, or NULL. */
static inline void *recycle_get_dirty(struct recycler *recycler) {
    void **object = recycler->free;

    if (!object)
        return arena_take(&recycler->arena, recycler->size);
    recycler->free = *object;
    return object;
}

/* A zeroed object, or NULL. */
static inline void *recycle_get(struct recycler *recycler) {
    void *object = recycle_get_dirty(recycler);

    return object ? memset(object, 0, recycler->size) : NULL;
}

static inline void recycle_put(struct recycler *recycler, void *object) {
    *(void **)object = recycler->free;
    recycler->free = object;
}

/* All objects go, whether they were put back or not. */
static inline void recycle_drain(struct recycler *recycler) {
    recycler->free = NULL;
    arena_release(&recycler->arena);
}

#endif
