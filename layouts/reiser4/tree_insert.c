/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Insertion into the tree, and the carry that makes room (tree.h, "Room").
 * Interface: layouts/reiser4/tree.h.
 *
 * An item goes in piece by piece: as many units as its place takes. Each piece is one descent to
 * its place, and one `carry` there:
 *
 *     put, if there is room
 *     else move units before the place to the left neighbour, and put
 *     else move units behind it to the right neighbour, and put
 *     else make a new node to the right for the units behind it, and put where there is room: here,
 *          or in the new node; the new node's pointer is carried into the level above
 *
 * If that last step found no room either (a large item between large ones), the next descent finds
 * the place at the end of a node, where the new node takes the item alone: so each piece takes two
 * rounds at most.
 */
#include <errno.h>
#include <inttypes.h>

#include "layouts/reiser4/reiser4.h"
#include "layouts/reiser4/tree_path.h"
#include "layouts/reiser4/units.h"

struct carry {
    struct reiser4_cursor *cursor;
    uint32_t level;
    struct reiser4_position place; /* in the path's node of that level */
    const struct reiser4_item *item;
    uint32_t put; /* units of it */
};

static struct reiser4_view *view_of(const struct carry *carry) {
    return &carry->cursor->step[carry->level].view;
}

/* --- neighbours --------------------------------------------------------------------------------
 */

/* The pointer beside the node's own in its parent; false: there is none. */
static bool beside(const struct carry *carry, int side, uint32_t *at) {
    if (carry->level == carry->cursor->top)
        return false;
    const struct reiser4_step *parent = &carry->cursor->step[carry->level + 1];
    if (side < 0 ? parent->at == 0 : parent->at + 1 >= reiser4_node_items(parent->view.node))
        return false;
    *at = parent->at + (uint32_t)side;
    return reiser4_node_id(parent->view.node, *at) == REISER4_ITEM_POINTER;
}

/* The node that the parent's pointer `at` leads to, to be changed. */
static int open_beside(const struct carry *carry, uint32_t at, struct reiser4_view *view) {
    struct reiser4_jnodes *jnodes = carry->cursor->tree->jnodes;
    struct reiser4_node parent = carry->cursor->step[carry->level + 1].view.node;
    int error = reiser4_node_get(jnodes, reiser4_node_pointer(parent, at), carry->level, view);

    if (error)
        return error;
    error = reiser4_node_change(jnodes, view);
    if (error)
        reiser4_view_put(view);
    return error;
}

/* The node behind the parent's pointer `at`, which is not the first, has another first key. */
static int rekey_beside(const struct carry *carry, uint32_t at, struct reiser4_node node) {
    struct reiser4_view *parent = &carry->cursor->step[carry->level + 1].view;
    struct reiser4_key key = reiser4_node_key(node, 0);
    int error = reiser4_node_change(carry->cursor->tree->jnodes, parent);

    if (!error)
        reiser4_node_set_key(parent->node, at, &key);
    return error;
}

/* --- putting -----------------------------------------------------------------------------------
 */

/* In the path's node. */
static int put(struct carry *carry) {
    carry->put = reiser4_units_put(view_of(carry)->node, carry->place, carry->item);
    if (carry->put > 0 && carry->place.item == 0 && carry->place.unit == 0)
        return reiser4_path_rekey(carry->cursor, carry->level);
    return 0;
}

static int use_left(struct carry *carry) {
    struct reiser4_view left;
    uint32_t at;

    if (!beside(carry, -1, &at))
        return 0;
    int error = open_beside(carry, at, &left);
    if (error)
        return error;
    struct reiser4_node node = view_of(carry)->node;
    bool moved = reiser4_units_move_left(node, left.node, &carry->place);
    bool front = carry->place.item == 0 && carry->place.unit == 0;
    bool empty = reiser4_node_items(node) == 0;
    if (front && !empty)
        carry->put = reiser4_units_put(left.node, reiser4_position_end(left.node), carry->item);
    if (moved && !empty)
        error = reiser4_path_rekey(carry->cursor, carry->level);
    reiser4_view_put(&left);
    return error || carry->put > 0 || !moved ? error : put(carry);
}

static int use_right(struct carry *carry) {
    struct reiser4_view right;
    uint32_t at;

    if (!beside(carry, 1, &at))
        return 0;
    int error = open_beside(carry, at, &right);
    if (error)
        return error;
    struct reiser4_node node = view_of(carry)->node;
    bool moved = reiser4_units_move_right(node, right.node, &carry->place);
    if (moved)
        error = put(carry);
    bool last = carry->place.item == reiser4_node_items(node);
    if (!error && carry->put == 0 && last)
        carry->put = reiser4_units_put(right.node, (struct reiser4_position){0}, carry->item);
    if (!error && (moved || carry->put > 0))
        error = rekey_beside(carry, at, right.node);
    reiser4_view_put(&right);
    return error;
}

/* --- new nodes ---------------------------------------------------------------------------------
 */

static int carry_on(struct carry *carry);

/* The tree gets a root above its root. */
static int raise_root(struct reiser4_cursor *cursor) {
    struct reiser4_tree *tree = cursor->tree;
    struct reiser4_step *root = &cursor->step[cursor->top];

    if (tree->height >= REISER4_HEIGHT_MAX)
        return -EFBIG;
    struct reiser4_step *above = root + 1;
    int error = reiser4_node_make(tree->jnodes, tree->height + 1, &above->view);
    if (error)
        return error;
    struct reiser4_key key = reiser4_node_key(root->view.node, 0);
    struct reiser4_disk_pointer *pointer = (struct reiser4_disk_pointer *)reiser4_node_insert(
        above->view.node, 0, &key, REISER4_ITEM_POINTER, sizeof(*pointer));
    le64_store(&pointer->block, root->view.block);
    above->at = 0;
    cursor->top = ++tree->height;
    tree->root = above->view.block;
    return 0;
}

/* A pointer to `child`, of the level below, goes into the path's node of `level` before item `at`.
 * The path from `level` up is not right afterwards. */
static int insert_pointer(struct reiser4_cursor *cursor, uint32_t level, uint32_t at,
                          const struct reiser4_view *child) {
    struct reiser4_disk_pointer body;
    const struct reiser4_item item = {.key = reiser4_node_key(child->node, 0),
                                      .id = REISER4_ITEM_POINTER,
                                      .length = sizeof(body),
                                      .body = (uint8_t *)&body};
    struct carry carry = {.cursor = cursor, .level = level, .place = {.item = at}, .item = &item};

    le64_store(&body.block, child->block);
    return carry_on(&carry);
}

static int use_new(struct carry *carry) {
    struct reiser4_cursor *cursor = carry->cursor;
    struct reiser4_node node = view_of(carry)->node;
    struct reiser4_view new;
    int error = carry->level == cursor->top ? raise_root(cursor) : 0;

    if (error)
        return error;
    error = reiser4_node_make(cursor->tree->jnodes, carry->level, &new);
    if (error)
        return error;
    reiser4_units_move_right(node, new.node, &carry->place);
    if (reiser4_node_items(new.node) > 0)
        error = put(carry);
    if (!error && carry->put == 0)
        carry->put = reiser4_units_put(new.node, (struct reiser4_position){0}, carry->item);
    if (!error)
        error =
            insert_pointer(cursor, carry->level + 1, cursor->step[carry->level + 1].at + 1, &new);
    reiser4_view_put(&new);
    return error;
}

static int carry_on(struct carry *carry) {
    struct reiser4_cursor *cursor = carry->cursor;
    int error = reiser4_node_change(cursor->tree->jnodes, view_of(carry));

    if (!error)
        error = put(carry);
    if (!error && carry->put == 0)
        error = use_left(carry);
    if (!error && carry->put == 0)
        error = use_right(carry);
    return error || carry->put > 0 ? error : use_new(carry);
}

/* --- the place ---------------------------------------------------------------------------------
 */

/* The path's lowest node is a leaf: the place there. */
static int find_place(struct reiser4_cursor *cursor, const struct reiser4_item *item,
                      struct reiser4_position *place) {
    const struct reiser4_view *view = &cursor->step[cursor->bottom].view;

    *place = reiser4_position_behind(view->node, &item->key);
    if (!reiser4_position_is_possible(view->node, *place, item))
        return reiser4_corrupt(cursor->tree->jnodes->volume,
                               "node at block %" PRIu64 ": item %u covers a key that it has not",
                               view->block, place->item);
    return 0;
}

static bool is_there(struct reiser4_node node, const struct reiser4_item *item) {
    uint32_t upper = reiser4_node_upper(node, &item->key);

    if (upper == 0 || reiser4_item_kind(item->id)->same_keys)
        return false;
    struct reiser4_item before = reiser4_item_of(node, upper - 1);
    uint32_t unit = reiser4_item_upper(&before, &item->key);
    struct reiser4_key key = reiser4_item_unit_key(&before, unit - 1);
    return reiser4_key_compare(&key, &item->key) == 0;
}

/* --- leaves ------------------------------------------------------------------------------------
 */

/* The path ends at a twig, before whose item `at` the item needs a leaf of its own. */
static int insert_leaf(struct reiser4_cursor *cursor, uint32_t at, const struct reiser4_item *item,
                       uint32_t *units) {
    struct reiser4_view leaf;
    int error = reiser4_node_make(cursor->tree->jnodes, REISER4_LEAF, &leaf);

    if (error)
        return error;
    *units = reiser4_units_put(leaf.node, (struct reiser4_position){0}, item);
    error = insert_pointer(cursor, REISER4_TWIG, at, &leaf);
    reiser4_view_put(&leaf);
    return error;
}

/* An extent is before the place: the item goes to the front of the leaf behind it, if there is one.
 */
static int insert_behind_extent(struct reiser4_cursor *cursor, const struct reiser4_item *item,
                                uint32_t *units) {
    struct reiser4_step *twig = &cursor->step[REISER4_TWIG];
    struct reiser4_key first = reiser4_node_key(twig->view.node, twig->at);
    bool before_all = reiser4_key_compare(&item->key, &first) < 0;
    struct carry carry = {.cursor = cursor, .level = REISER4_LEAF, .item = item};

    if (before_all)
        return insert_leaf(cursor, twig->at, item, units);
    twig->at++;
    if (twig->at == reiser4_node_items(twig->view.node) || !reiser4_step_is_pointer(twig))
        return insert_leaf(cursor, twig->at, item, units);
    int error = reiser4_path_down(cursor);
    if (!error)
        error = carry_on(&carry);
    *units = carry.put;
    return error;
}

/* One piece of a leaf's item. */
static int insert_in_leaf(struct reiser4_cursor *cursor, const struct reiser4_item *item,
                          uint32_t *units) {
    struct carry carry = {.cursor = cursor, .level = REISER4_LEAF, .item = item};

    *units = 0;
    if (is_there(cursor->step[cursor->bottom].view.node, item))
        return -EEXIST;
    if (cursor->bottom == REISER4_TWIG)
        return insert_behind_extent(cursor, item, units);
    int error = find_place(cursor, item, &carry.place);
    if (!error)
        error = carry_on(&carry);
    *units = carry.put;
    return error;
}

/* --- extents -----------------------------------------------------------------------------------
 */

/* The path ends at a leaf with units behind `place`: they get a leaf of their own, so that an
 * extent can stand between the two. */
static int split_leaf(struct reiser4_cursor *cursor, struct reiser4_position place) {
    struct reiser4_jnodes *jnodes = cursor->tree->jnodes;
    struct reiser4_step *step = &cursor->step[REISER4_LEAF];
    struct reiser4_view right;
    int error = reiser4_node_change(jnodes, &step->view);

    if (!error)
        error = reiser4_node_make(jnodes, REISER4_LEAF, &right);
    if (error)
        return error;
    reiser4_units_move_right(step->view.node, right.node, &place);
    error = insert_pointer(cursor, REISER4_TWIG, cursor->step[REISER4_TWIG].at + 1, &right);
    reiser4_view_put(&right);
    return error;
}

/* One piece of an extent item. *units 0: a leaf was split, and the place is to be looked for again.
 */
static int insert_in_twig(struct reiser4_cursor *cursor, const struct reiser4_item *item,
                          uint32_t *units) {
    struct reiser4_step *twig = &cursor->step[REISER4_TWIG];
    struct carry carry = {.cursor = cursor, .level = REISER4_TWIG, .item = item};
    struct reiser4_position place;
    int error;

    *units = 0;
    if (is_there(cursor->step[cursor->bottom].view.node, item))
        return -EEXIST;
    if (cursor->bottom == REISER4_LEAF) {
        error = find_place(cursor, item, &place);
        if (error)
            return error;
        bool front = place.item == 0 && place.unit == 0; /* before everything in the tree */
        if (!front && place.item < reiser4_node_items(cursor->step[REISER4_LEAF].view.node))
            return split_leaf(cursor, place);
        carry.place.item = twig->at + !front;
    } else {
        carry.place = reiser4_position_behind(twig->view.node, &item->key);
        if (!reiser4_position_is_possible(twig->view.node, carry.place, item))
            return find_place(cursor, item, &carry.place); /* which says what is wrong */
    }
    error = carry_on(&carry);
    *units = carry.put;
    return error;
}

/* --- the whole ---------------------------------------------------------------------------------
 */

int reiser4_tree_insert(struct reiser4_tree *tree, const struct reiser4_item *item) {
    const struct reiser4_item_kind *kind = reiser4_item_kind(item->id);
    uint8_t body[REISER4_INSERT_MAX];
    struct reiser4_item rest = *item;
    uint32_t total = reiser4_item_units(item), done = 0, units;

    while (done < total) {
        struct reiser4_cursor cursor;
        int error = reiser4_path_descend(tree, &rest.key, REISER4_LEAF, &cursor);
        if (error)
            return error;
        error = kind->twig ? insert_in_twig(&cursor, &rest, &units)
                           : insert_in_leaf(&cursor, &rest, &units);
        reiser4_cursor_release(&cursor);
        if (error)
            return error;
        done += units;
        if (done == total || units == 0)
            continue;
        rest.key = reiser4_item_unit_key(item, done);
        rest.body = body;
        rest.length = kind->part(item, done, total, body);
    }
    return 0;
}
