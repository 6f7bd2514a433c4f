/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over tree.h and space.h. What happens to changed nodes before they are
 * written: they are squeezed, and given their places. Facts and numbers: docs/reiser4-format.md,
 * "flush and allocation"; the table of decisions is there.
 *
 *   flush.c    order, squeezing, parent-first walk
 *   place.c    relocate or overwrite: the strategies of txmod
 *
 * A *slum* is a run of neighbouring jnodes of one level. A flush first goes over the jnodes of each
 * level, from the leaves up, in the order of keys:
 *   1. squeeze: units move left until each node but the last one of a slum is full; emptied nodes
 * go (reiser4_cursor_pack). Only jnodes are packed into and from. and then over those of all
 * levels, parents before their first child:
 *   2. places: each as near behind the *preceder* (the block that was placed last) as there is
 * room, so that a branch lies on the disk as it is read. A node that moves changes its parent,
 * which has its turn, if it was clean before, in another round. Blocks of files were given their
 * places before, when they were stored, in the order of the same keys.
 *
 * Invariants:
 *  1. After reiser4_flush every jnode is `placed`, and no pointer in the tree is a stand-in.
 *  2. A node that is moved has its parent's pointer changed with it.
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

/* Squeezes and places everything that is not yet, in commit_begin. */
int reiser4_flush(struct reiser4 *r4);
/* --- place.c: pure decisions, but for the allocation itself ------------------------------------
 */

enum reiser4_decision { REISER4_OVERWRITE, REISER4_RELOCATE };

struct reiser4_candidate { /* a changed node */
    uint64_t block;        /* where it is; 0: nowhere yet */
    uint32_t level;
    bool root;
    bool leaf_relocate; /* its slum has options.relocate_from adjacent dirty leaves */
};

/* By options.txmod. A nearer place may have been allocated already: then *block is it, else 0. */
int reiser4_place_decide(struct reiser4 *r4, const struct reiser4_candidate *candidate,
                         uint64_t preceder, enum reiser4_decision *decision, uint64_t *block);

#endif
