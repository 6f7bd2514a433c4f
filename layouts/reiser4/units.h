/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over item.h and node_edit.c. Units in one node, and from one node to
 * another: all that the tree does with items is one of these. Nothing here knows of a third node.
 *
 * Invariant: in a node in which mergeable neighbours are merged (item.h, 1), they are afterwards.
 */
#ifndef LAYOUTFS_REISER4_UNITS_H
#define LAYOUTFS_REISER4_UNITS_H

#include "layouts/reiser4/item.h"

/* A place between units of a node: before unit `unit` of item `item`. Before an item, and at the
 * node's end (item = number of items), unit is 0; it is never behind an item's last unit. */
struct reiser4_position {
    uint32_t item, unit;
};

static inline struct reiser4_position reiser4_position_end(struct reiser4_node node) {
    return (struct reiser4_position){.item = reiser4_node_items(node)};
}
/* Behind all units whose key is <= `key`. */
struct reiser4_position reiser4_position_behind(struct reiser4_node node,
                                                const struct reiser4_key *key);
/* Can the item's units be put there? Not in between units of another item, but for entries. */
bool reiser4_position_is_possible(struct reiser4_node node, struct reiser4_position place,
                                  const struct reiser4_item *item);

/* Puts as many units of `item`, from its first on, as there is room for. Its body is not in the
 * node. Returns their number; 0: nothing has changed. */
uint32_t reiser4_units_put(struct reiser4_node node, struct reiser4_position place,
                           const struct reiser4_item *item);
/* Takes `count` units out from `place` on, all of one item. Where that parts the item in two and
 * there is no room for the second one, that is in `rest` (whose body has REISER4_BLOCK_SIZE bytes),
 * which the caller has to put back; else rest->length is 0. */
void reiser4_units_take(struct reiser4_node node, struct reiser4_position place, uint32_t count,
                        struct reiser4_item *rest);

/* Moves units before *place from the front of `node` to the end of its left neighbour, or units
 * from *place on from its end to the front of its right neighbour, as many as there is room for.
 * *place is where it is in `node` then. Returns whether any were moved. */
bool reiser4_units_move_left(struct reiser4_node node, struct reiser4_node left,
                             struct reiser4_position *place);
bool reiser4_units_move_right(struct reiser4_node node, struct reiser4_node right,
                              struct reiser4_position *place);

#endif
