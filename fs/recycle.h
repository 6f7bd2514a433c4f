/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (no dependencies). Used by the two caches.
 *
 * Objects of one size that come and go often are kept when they go, so that a warm cache allocates
 * nothing. Locking: the caller's.
 */
#ifndef LAYOUTFS_RECYCLE_H
#define LAYOUTFS_RECYCLE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct recycler {
    size_t size; /* bytes of an object, at least a pointer's */
    void *free;  /* chained through the first word */
};

/* A zeroed object, or NULL. */
static inline void *recycle_get(struct recycler *recycler) {
    void **object = recycler->free;

    if (!object)
        return calloc(1, recycler->size);
    recycler->free = *object;
    return memset(object, 0, recycler->size);
}

static inline void recycle_put(struct recycler *recycler, void *object) {
    *(void **)object = recycler->free;
    recycler->free = object;
}

static inline void recycle_drain(struct recycler *recycler) {
    while (recycler->free) {
        void **object = recycler->free;

        recycler->free = *object;
        free(object);
    }
}

#endif
