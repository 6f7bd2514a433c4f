/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over tree.h and space.h. What happens to changed nodes before they are
 * written: they are squeezed, and given their places. Facts and numbers: docs/reiser4-format.md,
 * "flush and allocation"; the table of decisions is there.
 *
 *   flush.c    order, squeezing, parent-first walk
 *   place.c    relocate or overwrite: the strategies of txmod
 *
 * A *slum* is a run of neighbouring jnodes of one level. A flush goes over all slums in the order
 * of keys, twig by twig. For each:
 *   1. squeeze: units move left until each node but the last one of the slum is full; emptied nodes
 *      go (reiser4_cursor_pack). Only jnodes are packed into and from.
 *   2. places, parents first: the nodes above the twig that have none, the twig, then its items
 * from left to right: leaves, and extents that are unallocated, each as near behind the *preceder*
 *      (the block that was placed last) as there is room. So a branch lies on the disk as it is
 * read.
 *
 * Invariants:
 *  1. After reiser4_flush every jnode is `placed`, no pointer in the tree is a stand-in, and no
 *     extent is unallocated.
 *  2. A node that is moved has its parent's pointer changed before the parent itself is placed.
 *  3. What a flush allocates was asked for when it was changed (space.h): it does not fail for lack
 *     of space.
 *  4. A jnode that is changed after it was placed stays where it is: a place is decided once an
 * atom.
 */
#ifndef LAYOUTFS_REISER4_FLUSH_H
#define LAYOUTFS_REISER4_FLUSH_H

#include "layouts/reiser4/extent.h"
#include "layouts/reiser4/jnode.h"

struct reiser4;

/* Squeezes and places everything that is not yet. */
int reiser4_flush(struct reiser4 *r4);
/* For `store` before its time (write-back by age): places the body's unallocated extents, and the
 * nodes on the way down to them that have no place, from `offset` on, and nothing else. */
int reiser4_flush_body(struct reiser4 *r4, const struct reiser4_object *object, uint64_t offset);

/* --- place.c: pure decisions, but for the allocation itself ------------------------------------
 */

enum reiser4_decision { REISER4_OVERWRITE, REISER4_RELOCATE };

struct reiser4_candidate { /* a jnode, or a run of file data, that is to be written */
    uint64_t block;        /* where it is; 0: nowhere yet */
    uint64_t count;        /* blocks; 1 for a node */
    uint32_t level;        /* 0: data */
    bool root;
    bool leaf_relocate; /* its slum has options.relocate_from adjacent dirty leaves */
};

/* By options.txmod. For a node (not data) a nearer place may have been allocated already: then
 * *block is it, else 0. */
int reiser4_place_decide(struct reiser4 *r4, const struct reiser4_candidate *candidate,
                         uint64_t preceder, enum reiser4_decision *decision, uint64_t *block);

#endif
