/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (no dependencies). Used by the inode cache.
 *
 * Objects of one size that come and go, whose memory goes back to the system when they have gone.
 * (A recycler, fs/arena.h, keeps it: right where a budget bounds the number of objects. How many
 * inodes are in core is the kernel's decision, and a walk over a million files must not be felt for
 * the rest of a mount's life.)
 *
 * Memory comes in regions of 2 MiB, aligned as and advised to be huge pages, of 32 slabs each. An
 * object is found in its slab by its address. The pages of an empty slab are given back, all but a
 * few slabs' so that not every object costs page faults; the region's addresses are kept.
 *
 * Invariants:
 *  1. A slab with objects and room is on `partial`, one without objects on `empty`, a full one on
 *     neither.
 *  2. `fresh` objects of a slab have been handed out since it was empty last; the others have
 *     not been touched.
 *
 * Locking: the caller's.
 */
#ifndef LAYOUTFS_SLAB_H
#define LAYOUTFS_SLAB_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct slab;
struct slab_region;
LIST_HEAD(slab_list, slab);

struct slab_cache {
    size_t size;   /* bytes of an object */
    size_t stride; /* from one to the next */
    struct slab_list partial, empty;
    unsigned warm;               /* empty slabs that still have their pages */
    struct slab_region *regions; /* owned */
};

/* `size`: 8 to 4096 bytes. */
void slab_init(struct slab_cache *cache, size_t size);
/* A zeroed object, aligned to 16; NULL: no memory. */
void *slab_take(struct slab_cache *cache);
void slab_give(struct slab_cache *cache, void *object);
/* All objects go, whether they were given back or not. */
void slab_drain(struct slab_cache *cache);

#endif
