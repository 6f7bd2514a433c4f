/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over node.h. What is in an item: a table of functions for each kind, so
 * that the tree can move, split and merge items that it does not understand.
 *
 * An item is one or more *units*. Units have keys, which ascend in the item (equal ones only among
 * directory entries); the item's key is its first unit's. Where an item may be split, it is between
 * units; either part is again a whole item, whose key is its first unit's.
 *
 *   kind       level  unit        units may be split off
 *   stat40     leaf   the item    no           stat.h
 *   cde40      leaf   an entry    yes          entries.h
 *   nodeptr40  >= 2   the item    no           tree.h
 *   extent40   2      an extent   yes          extent.h
 *   plain40    leaf   a byte      yes          (here: nothing but bytes)
 *   ctail40    leaf   a byte      yes          ctail.h
 *   bbox40     leaf   the item    no           safelink.h
 *
 * Invariants (beside each kind's own):
 *  1. In one node, what is mergeable is merged: the driver does not survive two neighbouring
 *     plain40 or ctail40 items of one body (docs/reiser4-format.md).
 *  2. Functions of the table are given only items that their `check` has accepted.
 */
#ifndef LAYOUTFS_REISER4_ITEM_H
#define LAYOUTFS_REISER4_ITEM_H

#include "layouts/reiser4/node.h"

enum reiser4_item_id {
    REISER4_ITEM_STAT = 0,
    REISER4_ITEM_ENTRIES = 2,
    REISER4_ITEM_POINTER = 3,
    REISER4_ITEM_EXTENT = 5,
    REISER4_ITEM_TAIL = 6,
    REISER4_ITEM_CTAIL = 7,
    REISER4_ITEM_SAFELINK = 8,
    REISER4_ITEM_COUNT
};

/* A view of an item: valid as long as the view of its node is and the node is not changed. */
struct reiser4_item {
    struct reiser4_key key;
    uint16_t id; /* enum reiser4_item_id */
    uint32_t length;
    uint8_t *body; /* changed only in a changed block, and so that the length stays */
};

static inline struct reiser4_item reiser4_item_of(struct reiser4_node node, uint32_t i) {
    return (struct reiser4_item){.key = reiser4_node_key(node, i),
                                 .id = reiser4_node_id(node, i),
                                 .length = reiser4_node_length(node, i),
                                 .body = reiser4_node_body(node, i)};
}

struct reiser4_item_kind {
    const char *name; /* "stat40" */
    bool divisible;   /* has units that may be split off; else the whole is one */
    bool twig;        /* stands in twigs, else in leaves */
    bool same_keys;   /* units may have equal keys: entries */

    /* NULL: sound. Else what is wrong, as the end of a sentence ("has no entries"). Bytes from a
     * disk: nothing but key, id and length (> 0) are known of the item. */
    const char *(*check)(const struct reiser4_item *item);

    /* The rest: NULL where the item is one unit. */
    uint32_t (*units)(const struct reiser4_item *item); /* > 0 */
    struct reiser4_key (*unit_key)(const struct reiser4_item *item, uint32_t unit);
    /* Bytes of an item made of the first `units` of them, 0 < units <= all; of those from `unit`
     * on, 0 <= unit < all. Both grow with the number of units in the part. */
    uint32_t (*head_length)(const struct reiser4_item *item, uint32_t units);
    uint32_t (*tail_length)(const struct reiser4_item *item, uint32_t unit);
    /* Makes an item's body of the units [from, to), from < to, in `body`, of the length that
     * head_length and tail_length tell where one of the ends is the item's. `body` may be
     * item->body. Returns the length. */
    uint32_t (*part)(const struct reiser4_item *item, uint32_t from, uint32_t to, uint8_t *body);
    /* May the units of `right`, which follows in key order, be units of `left`'s item? The two are
     * of one kind. */
    bool (*mergeable)(const struct reiser4_item *left, const struct reiser4_item *right);
    /* The length of the two as one item; and puts right's units behind left's: left's body has
     * room for that many bytes, and `right` lies elsewhere. */
    uint32_t (*merged_length)(const struct reiser4_item *left, const struct reiser4_item *right);
    void (*merge)(struct reiser4_item *left, const struct reiser4_item *right);
};

/* NULL: no such kind, or none that is ever written. */
const struct reiser4_item_kind *reiser4_item_kind(uint32_t id);
bool reiser4_item_at_level(uint32_t id, uint32_t level);

/* These work for all kinds. */
uint32_t reiser4_item_units(const struct reiser4_item *item);
struct reiser4_key reiser4_item_unit_key(const struct reiser4_item *item, uint32_t unit);
/* Number of units whose key is < `key` (lower), or <= it (upper). */
uint32_t reiser4_item_lower(const struct reiser4_item *item, const struct reiser4_key *key);
uint32_t reiser4_item_upper(const struct reiser4_item *item, const struct reiser4_key *key);
bool reiser4_item_mergeable(const struct reiser4_item *left, const struct reiser4_item *right);
/* The most units from the front whose item has at most `room` bytes; and from the back. 0: none. */
uint32_t reiser4_item_fit_head(const struct reiser4_item *item, uint32_t room);
uint32_t reiser4_item_fit_tail(const struct reiser4_item *item, uint32_t room);
/* The table; each is defined beside its functions. */
extern const struct reiser4_item_kind reiser4_stat_kind, reiser4_entries_kind, reiser4_pointer_kind,
    reiser4_extent_kind, reiser4_tail_kind, reiser4_ctail_kind, reiser4_safelink_kind;

#endif
