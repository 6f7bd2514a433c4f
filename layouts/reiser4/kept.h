/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, under body.h and atom.h. File data that is written again and keeps its
 * place (txmod=journal; hybrid, short runs): it waits here for the commit, whose overwrite set it
 * belongs to, since what lies in its place is the newest commit's until then.
 *
 * Invariant: a block is in a set once, with the data stored last. A set is the running atom's, or
 * belongs to the commit under way, until its data are in place.
 * Locking: the volume's lock, exclusive for changes.
 */
#ifndef LAYOUTFS_REISER4_KEPT_H
#define LAYOUTFS_REISER4_KEPT_H

#include <bsd/sys/tree.h>
#include <stdint.h>

struct reiser4_kept;
RB_HEAD(reiser4_kept_tree, reiser4_kept);

struct reiser4_kept_set {          /* RB_INIT the tree */
    struct reiser4_kept_tree tree; /* by block */
    uint64_t count;
};

/* Copies a block's data in, in place of what is there. 0, -ENOMEM. */
int reiser4_kept_put(struct reiser4_kept_set *set, uint64_t block, const uint8_t *data);
/* The block's data, or NULL; until the set changes. */
const uint8_t *reiser4_kept_find(const struct reiser4_kept_set *set, uint64_t block);
/* Blocks [block, block + count) are not the file's any more. */
void reiser4_kept_drop(struct reiser4_kept_set *set, uint64_t block, uint64_t count);
/* Calls visit for every block, in their order, until it answers non-zero, which is returned. */
int reiser4_kept_each(struct reiser4_kept_set *set,
                      int (*visit)(void *context, uint64_t block, uint8_t *data), void *context);
/* All of `from`, whose blocks are not in `to`. */
void reiser4_kept_move(struct reiser4_kept_set *to, struct reiser4_kept_set *from);
void reiser4_kept_clear(struct reiser4_kept_set *set);

#endif
