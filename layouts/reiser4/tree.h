/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over jnode.h and item.h. The dancing tree, an engine of its own: it knows
 * nodes, items and units, and neither files nor space on the device. Tested apart from the rest.
 *
 *   tree.c         search, cursors
 *   units.c        units of items in one node, and between two
 *   tree_insert.c  insertion, and the carry that makes room
 *   tree_cut.c     removal
 *   tree_pack.c    squeezing at flush; places of nodes
 *   tree_verify.c  the invariants
 *
 * Leaves (level 1) hold all items but extents and pointers. Twigs (level 2) hold pointers to leaves
 * and extent items, in the order of keys; the nodes above hold pointers. So "the items of the tree"
 * in order are those of the leaves and, between the leaves, the twigs' extents.
 *
 * It is called dancing because nothing keeps it balanced while it is changed in core: a change
 * makes room where it must, and no more; an emptied node goes, one that is only half empty stays.
 * Nodes are packed once, at flush, just before they are written.
 *
 * Invariants, between calls:
 *  1. height >= 2; the root is at level `height`, and there is at least one leaf.
 *  2. No node is empty. Every path from the root to a leaf has a node at each level.
 *  3. The key of a pointer is exactly that of the first item of the node that it points at.
 *  4. Over all items in order, units' keys ascend; equal ones only among directory entries.
 *  5. No unit's key is greater than the delimiting key of what follows its node in the parent.
 *  6. A root above level 2 has more than one item.
 *  7. No two neighbouring items of one node are mergeable (reiser4_item_mergeable), if what was
 * read from the device was so.
 *  8. Invariants of jnode.h: whatever was changed is a jnode.
 *
 * reiser4_tree_verify checks them all.
 *
 * Room. Where an insertion finds no room in its node, it takes these ways, one after the other, and
 * at each level: units before the place move to the left neighbour; units behind it to the right
 * neighbour; a new node to the right takes the units behind the place; a second new node takes what
 * is inserted. Neighbours are used only if they are children of the same parent or jnodes already,
 * so that a change does not read and dirty nodes far away for the sake of a few bytes. A new node
 * costs an insertion of a pointer one level up; a root that is split gets a new root above it.
 *
 * Errors. -EUCLEAN and -EIO: a node on the way is unreadable or wrong, which was said. -ENOMEM.
 * What a change needs is read before anything is changed as far as possible, but after an error of
 * a change the tree in core may be inconsistent, and the volume must not be written any more
 * (reiser4_fail). Space is no concern of the engine: who changes the tree has asked for
 * REISER4_TREE_NODES(tree) nodes for each insertion before (space.h).
 *
 * Locking: searches under the shared lock, changes under the exclusive one. A change makes all
 * cursors invalid but the one that it was given.
 */
#ifndef LAYOUTFS_REISER4_TREE_H
#define LAYOUTFS_REISER4_TREE_H

#include "layouts/reiser4/jnode.h"

struct reiser4_tree {
    struct reiser4_jnodes *jnodes; /* borrowed */
    uint64_t root;                 /* block, or a stand-in */
    uint32_t height;               /* level of the root */
};

/* The most nodes that one insertion makes or changes: two new ones and two neighbours a level, and
 * a new root. One removal changes at most half of that. */
#define REISER4_TREE_NODES(tree) (4u * (tree)->height + 1)

struct reiser4_step {
    struct reiser4_view view;
    uint32_t at; /* the item on the path; in the lowest node: where the cursor stands */
};

/* A place in the tree: a unit of an item, and the path to it. */
struct reiser4_cursor {
    struct reiser4_tree *tree;
    uint32_t top, bottom; /* levels: of the root; of the node that the cursor stands in, 1 or 2 */
    uint32_t unit;
    struct reiser4_step step[REISER4_HEIGHT_MAX + 1]; /* by level */
};

/* --- search: shared lock -----------------------------------------------------------------------
 */
/* After 0 the cursor must be released; after an error it is. */

/* The first unit whose key is >= `key`. -ENOENT: there is none. */
int reiser4_tree_seek(struct reiser4_tree *tree, const struct reiser4_key *key,
                      struct reiser4_cursor *cursor);
/* The last unit whose key is <= `key`. -ENOENT: there is none. */
int reiser4_tree_floor(struct reiser4_tree *tree, const struct reiser4_key *key,
                       struct reiser4_cursor *cursor);
/* The first unit with exactly that key, for what is one unit of one key (stat data, say). -ENOENT.
 */
int reiser4_tree_find(struct reiser4_tree *tree, const struct reiser4_key *key,
                      struct reiser4_cursor *cursor);
/* The node at `level` whose first item has exactly that key; the cursor stands on its first item.
 * -ENOENT. For flush. */
int reiser4_tree_find_node(struct reiser4_tree *tree, const struct reiser4_key *key, uint32_t level,
                           struct reiser4_cursor *cursor);
void reiser4_cursor_release(struct reiser4_cursor *cursor);

/* The item that the cursor stands in. */
static inline struct reiser4_item reiser4_cursor_item(const struct reiser4_cursor *cursor) {
    const struct reiser4_step *step = &cursor->step[cursor->bottom];
    return reiser4_item_of(step->view.node, step->at);
}
static inline struct reiser4_key reiser4_cursor_key(const struct reiser4_cursor *cursor) {
    struct reiser4_item item = reiser4_cursor_item(cursor);
    return reiser4_item_unit_key(&item, cursor->unit);
}
/* To the next unit; to the first unit of the next item. -ENOENT: there is none, and the cursor
 * stands where it stood. After another error it is released. */
int reiser4_cursor_next(struct reiser4_cursor *cursor);
int reiser4_cursor_next_item(struct reiser4_cursor *cursor);
/* The leaves that follow the cursor's in its twig and hold keys <= `stop`, and as many more as lie
 * there in a row on the device: starts to read them. */
void reiser4_cursor_read_ahead(struct reiser4_cursor *cursor, const struct reiser4_key *stop);

/* --- changes: exclusive lock -------------------------------------------------------------------
 */

/* Puts the units of `item` (sound by its kind's check, its body not in the tree) where they belong
 * by the key of its first unit: behind all units whose key is <= it, before all others; the caller
 * knows that all its units belong there (-EEXIST: a unit with that key is there already, unless the
 * kind has same_keys). They become units of an item that is there, where they can (mergeable), or
 * an item, or several items in several nodes (divisible kinds). An item that is not divisible fits
 * into an empty node, any other has at most REISER4_INSERT_MAX bytes. */
#define REISER4_INSERT_MAX 65537u
int reiser4_tree_insert(struct reiser4_tree *tree, const struct reiser4_item *item);

/* The cursor's item may be changed in place, so that length and keys of units stay: its body. The
 * cursor stays valid. */
int reiser4_cursor_change(struct reiser4_cursor *cursor, uint8_t **body);
/* The cursor's item, which is not divisible, gets another body. The cursor is released. */
int reiser4_cursor_replace(struct reiser4_cursor *cursor, const uint8_t *body, uint32_t length);
/* Takes `count` units out of the cursor's item, from the cursor's on. The cursor is released. */
int reiser4_cursor_remove(struct reiser4_cursor *cursor, uint32_t count);

/* Told of units [from, to) of an item that are about to go. An error ends the cut before they do.
 */
typedef int (*reiser4_cut_visit)(void *context, const struct reiser4_item *item, uint32_t from,
                                 uint32_t to);
/* Takes out all units with from <= key <= to, from the last one back to the first; a unit that
 * covers more than its key (an extent) goes as a whole. At most `items` pieces of items, so that a
 * step stays bounded: *done false: there is more. */
int reiser4_tree_cut(struct reiser4_tree *tree, const struct reiser4_key *from,
                     const struct reiser4_key *to, uint32_t items, reiser4_cut_visit visit,
                     void *context, bool *done);

/* --- for flush (tree_pack.c) -------------------------------------------------------------------
 */

/* Fills the node that the cursor stands in, at any level, with units from its right neighbour, if
 * that is a jnode: *moved says whether any were. A neighbour that has become empty is dropped. The
 * cursor stays valid, and stands on the node's first item. */
int reiser4_cursor_pack(struct reiser4_cursor *cursor, bool *moved);
/* To the first item of the node to the right at the same level. -ENOENT: there is none, and the
 * cursor stands where it stood. */
int reiser4_cursor_right(struct reiser4_cursor *cursor);
/* The cursor's node, a jnode, lies at `block` from now on, which was allocated for it: its parent's
 * pointer, or the tree's root, says so. */
int reiser4_cursor_renumber(struct reiser4_cursor *cursor, uint64_t block);

/* --- invariants --------------------------------------------------------------------------------
 */

/* Walks the whole tree. NULL: all of them hold. Else which does not, and where, in `text`. */
const char *reiser4_tree_verify(struct reiser4_tree *tree, char *text, size_t size);

#endif
