/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Removal from the tree, and changes of what is in it. Interface:
 * layouts/reiser4/tree.h.
 */
#include <errno.h>
#include <string.h>

#include "layouts/reiser4/reiser4.h"
#include "layouts/reiser4/tree_path.h"
#include "layouts/reiser4/units.h"

/* --- along the path ----------------------------------------------------------------------------
 */

int reiser4_path_rekey(struct reiser4_cursor *cursor, uint32_t level) {
    struct reiser4_key key = reiser4_node_key(cursor->step[level].view.node, 0);

    while (level < cursor->top) {
        struct reiser4_step *parent = &cursor->step[++level];
        int error = reiser4_node_change(cursor->tree->jnodes, &parent->view);
        if (error)
            return error;
        reiser4_node_set_key(parent->view.node, parent->at, &key);
        if (parent->at > 0)
            break;
    }
    return 0;
}

/* A root above the twigs with nothing but one pointer is none: what it points at is. */
static int lower_root(struct reiser4_cursor *cursor) {
    struct reiser4_tree *tree = cursor->tree;

    while (tree->height > REISER4_TWIG) {
        struct reiser4_view root;
        int error = reiser4_node_get(tree->jnodes, tree->root, tree->height, &root);
        if (error)
            return error;
        if (reiser4_node_items(root.node) > 1) {
            reiser4_view_put(&root);
            return 0;
        }
        tree->root = reiser4_node_pointer(root.node, 0);
        tree->height--;
        error = reiser4_node_drop(tree->jnodes, &root);
        if (error)
            return error;
    }
    return 0;
}

/* The node of that level is empty, and goes. */
static int drop_node(struct reiser4_cursor *cursor, uint32_t level) {
    struct reiser4_tree *tree = cursor->tree;
    struct reiser4_item rest = {.length = 0}; /* a pointer is one unit */

    if (level == cursor->top)
        return reiser4_corrupt(tree->jnodes->volume, "the tree is empty");
    struct reiser4_step *parent = &cursor->step[level + 1];
    struct reiser4_position place = {.item = parent->at};
    int error = reiser4_node_change(tree->jnodes, &parent->view);
    if (!error)
        error = reiser4_node_drop(tree->jnodes, &cursor->step[level].view);
    if (error)
        return error;
    cursor->bottom = level + 1;
    reiser4_units_take(parent->view.node, place, 1, &rest);
    return reiser4_path_shrunk(cursor, level + 1, place.item == 0);
}

int reiser4_path_shrunk(struct reiser4_cursor *cursor, uint32_t level, bool front) {
    struct reiser4_node node = cursor->step[level].view.node;

    if (reiser4_node_items(node) == 0)
        return drop_node(cursor, level);
    int error = front ? reiser4_path_rekey(cursor, level) : 0;
    return error || level < cursor->top ? error : lower_root(cursor);
}

/* --- the cursor's item -------------------------------------------------------------------------
 */

int reiser4_cursor_change(struct reiser4_cursor *cursor, uint8_t **body) {
    struct reiser4_step *step = &cursor->step[cursor->bottom];
    int error = reiser4_node_change(cursor->tree->jnodes, &step->view);

    if (!error)
        *body = reiser4_node_body(step->view.node, step->at);
    return error;
}

int reiser4_cursor_remove(struct reiser4_cursor *cursor, uint32_t count) {
    uint8_t body[REISER4_BLOCK_SIZE];
    struct reiser4_item rest = {.body = body};
    struct reiser4_tree *tree = cursor->tree;
    struct reiser4_step *step = &cursor->step[cursor->bottom];
    struct reiser4_position place = {.item = step->at, .unit = cursor->unit};
    int error = reiser4_node_change(tree->jnodes, &step->view);

    if (!error) {
        reiser4_units_take(step->view.node, place, count, &rest);
        error = reiser4_path_shrunk(cursor, cursor->bottom, place.item == 0 && place.unit == 0);
    }
    reiser4_cursor_release(cursor);
    return error || rest.length == 0 ? error : reiser4_tree_insert(tree, &rest);
}

int reiser4_cursor_replace(struct reiser4_cursor *cursor, const uint8_t *body, uint32_t length) {
    struct reiser4_tree *tree = cursor->tree;
    struct reiser4_step *step = &cursor->step[cursor->bottom];
    struct reiser4_item item = reiser4_cursor_item(cursor);
    struct reiser4_node node;

    int error = reiser4_node_change(tree->jnodes, &step->view);
    node = step->view.node;
    if (error || (length > item.length && length - item.length > reiser4_node_free(node))) {
        if (!error)
            error = reiser4_cursor_remove(cursor, 1);
        reiser4_cursor_release(cursor);
        item.body = (uint8_t *)(uintptr_t)body;
        item.length = length;
        return error ? error : reiser4_tree_insert(tree, &item);
    }
    if (length > item.length)
        reiser4_node_open(node, step->at, item.length, length - item.length);
    else
        reiser4_node_close(node, step->at, length, item.length - length);
    memcpy(reiser4_node_body(node, step->at), body, length);
    reiser4_cursor_release(cursor);
    return 0;
}

/* --- ranges of keys ----------------------------------------------------------------------------
 */

struct cut {
    const struct reiser4_key *from, *to;
    reiser4_cut_visit visit;
    void *context;
};

/* The last piece in the range. *done: there was none. */
static int cut_piece(struct reiser4_tree *tree, const struct cut *cut, bool *done) {
    struct reiser4_cursor cursor;
    int error = reiser4_tree_floor(tree, cut->to, &cursor);

    *done = error == -ENOENT;
    if (error)
        return *done ? 0 : error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    uint32_t first = reiser4_item_lower(&item, cut->from), last = cursor.unit;
    *done = first > last;
    if (!*done)
        error = cut->visit ? cut->visit(cut->context, &item, first, last + 1) : 0;
    if (*done || error) {
        reiser4_cursor_release(&cursor);
        return error;
    }
    cursor.unit = first;
    return reiser4_cursor_remove(&cursor, last + 1 - first);
}

int reiser4_tree_cut(struct reiser4_tree *tree, const struct reiser4_key *from,
                     const struct reiser4_key *to, uint32_t items, reiser4_cut_visit visit,
                     void *context, bool *done) {
    const struct cut cut = {.from = from, .to = to, .visit = visit, .context = context};
    int error = 0;

    *done = false;
    for (uint32_t i = 0; i < items && !error && !*done; i++)
        error = cut_piece(tree, &cut, done);
    return error;
}
