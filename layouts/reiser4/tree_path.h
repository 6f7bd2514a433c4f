/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, private to tree*.c: the path of a cursor, from the root down, and what
 * every change has to do along it.
 *
 *   tree.c       start, down, descend
 *   tree_cut.c   rekey, shrunk
 *   tree_pack.c  refresh
 */
#ifndef LAYOUTFS_REISER4_TREE_PATH_H
#define LAYOUTFS_REISER4_TREE_PATH_H

#include "layouts/reiser4/tree.h"

static inline bool reiser4_step_is_pointer(const struct reiser4_step *step) {
    return reiser4_node_id(step->view.node, step->at) == REISER4_ITEM_POINTER;
}

/* The path is the root. After an error the cursor is released. */
int reiser4_path_start(struct reiser4_tree *tree, struct reiser4_cursor *cursor);
/* From the pointer that the cursor stands on to its node; there, `at` is 0. After an error the
 * cursor is released. */
int reiser4_path_down(struct reiser4_cursor *cursor);
/* Down as far as pointers lead towards the key, to `level` at most: at each level to the last item
 * whose key is <= the key, or the first item of all. After an error the cursor is released. */
int reiser4_path_descend(struct reiser4_tree *tree, const struct reiser4_key *key, uint32_t level,
                         struct reiser4_cursor *cursor);

/* The path's node of that level has `key` as its first key from now on: the pointers above say so.
 */
int reiser4_path_rekey(struct reiser4_cursor *cursor, uint32_t level);
/* The path's node of that level has lost units: an empty one goes, its pointer too, and so on
 * upward, and a root with one pointer; else, if `front` is set, its first key is another one. The
 * path above `level` is right afterwards only if nothing went. */
int reiser4_path_shrunk(struct reiser4_cursor *cursor, uint32_t level, bool front);
/* Nodes of the path have been changed, or the root, by somebody else: it shows them as they are.
 * The path's nodes are still in the tree, but for a root that has gone, and their items, up to
 * those of the path, are where they were. */
int reiser4_path_refresh(struct reiser4_cursor *cursor);

#endif
