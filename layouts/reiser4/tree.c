/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Search and cursors. Interface: layouts/reiser4/tree.h.
 *
 * A step down is the one place where a child's first key is compared with its pointer's, so that
 * what is found by keys is where it belongs, whatever the device says.
 */
#include "layouts/reiser4/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "layouts/reiser4/reiser4.h"
#include "layouts/reiser4/tree_path.h"

/* Leaves that are read ahead at once. */
#define AHEAD_MAX 32u

void reiser4_cursor_release(struct reiser4_cursor *cursor) {
    for (uint32_t level = cursor->bottom; level <= cursor->top; level++)
        reiser4_view_put(&cursor->step[level].view);
    cursor->top = 0;
    cursor->bottom = 1;
}

/* --- one step ----------------------------------------------------------------------------------
 */

static struct reiser4_step *bottom_of(struct reiser4_cursor *cursor) {
    return &cursor->step[cursor->bottom];
}

int reiser4_path_start(struct reiser4_tree *tree, struct reiser4_cursor *cursor) {
    cursor->tree = tree;
    cursor->unit = 0;
    cursor->top = tree->height;
    cursor->bottom = tree->height + 1; /* nothing to release yet */
    int error =
        reiser4_node_get(tree->jnodes, tree->root, tree->height, &cursor->step[tree->height].view);
    if (error) {
        reiser4_cursor_release(cursor);
        return error;
    }
    cursor->bottom = tree->height;
    return 0;
}

int reiser4_path_down(struct reiser4_cursor *cursor) {
    struct reiser4_jnodes *jnodes = cursor->tree->jnodes;
    const struct reiser4_step *parent = bottom_of(cursor);
    struct reiser4_step *child = &cursor->step[cursor->bottom - 1];
    struct reiser4_key wanted = reiser4_node_key(parent->view.node, parent->at);
    int error = reiser4_node_get(jnodes, reiser4_node_pointer(parent->view.node, parent->at),
                                 cursor->bottom - 1, &child->view);

    if (!error) {
        cursor->bottom--;
        child->at = 0;
        struct reiser4_key first = reiser4_node_key(child->view.node, 0);
        if (reiser4_key_compare(&wanted, &first) != 0)
            error = reiser4_corrupt(jnodes->volume,
                                    "node at block %" PRIu64
                                    ": its first key is not the one that its parent, at block "
                                    "%" PRIu64 ", has for it",
                                    child->view.block, parent->view.block);
    }
    if (error)
        reiser4_cursor_release(cursor);
    return error;
}

/* Down to a leaf or an extent, where the first key leads. */
static int descend_first(struct reiser4_cursor *cursor) {
    while (cursor->bottom > REISER4_LEAF && reiser4_step_is_pointer(bottom_of(cursor))) {
        int error = reiser4_path_down(cursor);
        if (error)
            return error;
    }
    cursor->unit = 0;
    return 0;
}

/* --- search ------------------------------------------------------------------------------------
 */

int reiser4_tree_seek(struct reiser4_tree *tree, const struct reiser4_key *key,
                      struct reiser4_cursor *cursor) {
    int error = reiser4_path_start(tree, cursor);

    for (;;) {
        if (error)
            return error;
        struct reiser4_step *step = bottom_of(cursor);
        uint32_t below = reiser4_node_lower(step->view.node, key);
        step->at = below > 0 ? below - 1 : 0;
        if (cursor->bottom == REISER4_LEAF || !reiser4_step_is_pointer(step))
            break;
        error = reiser4_path_down(cursor);
    }
    struct reiser4_item item = reiser4_cursor_item(cursor);
    cursor->unit = reiser4_item_lower(&item, key);
    if (cursor->unit < reiser4_item_units(&item))
        return 0;
    error = reiser4_cursor_next_item(cursor);
    if (error == -ENOENT)
        reiser4_cursor_release(cursor);
    return error;
}

int reiser4_path_descend(struct reiser4_tree *tree, const struct reiser4_key *key, uint32_t level,
                         struct reiser4_cursor *cursor) {
    int error = reiser4_path_start(tree, cursor);

    while (!error) {
        struct reiser4_step *step = bottom_of(cursor);
        uint32_t upper = reiser4_node_upper(step->view.node, key);
        step->at = upper > 0 ? upper - 1 : 0;
        if (cursor->bottom == level || !reiser4_step_is_pointer(step))
            break;
        error = reiser4_path_down(cursor);
    }
    return error;
}

/* -ENOENT: all keys are greater. */
static int descend_floor(struct reiser4_tree *tree, const struct reiser4_key *key, uint32_t level,
                         struct reiser4_cursor *cursor) {
    int error = reiser4_path_descend(tree, key, level, cursor);

    if (error || reiser4_node_upper(bottom_of(cursor)->view.node, key) > 0)
        return error;
    reiser4_cursor_release(cursor);
    return -ENOENT;
}

int reiser4_tree_floor(struct reiser4_tree *tree, const struct reiser4_key *key,
                       struct reiser4_cursor *cursor) {
    int error = descend_floor(tree, key, REISER4_LEAF, cursor);

    if (error)
        return error;
    struct reiser4_item item = reiser4_cursor_item(cursor);
    cursor->unit = reiser4_item_upper(&item, key) - 1;
    return 0;
}

int reiser4_tree_find(struct reiser4_tree *tree, const struct reiser4_key *key,
                      struct reiser4_cursor *cursor) {
    int error = reiser4_tree_seek(tree, key, cursor);

    if (error)
        return error;
    struct reiser4_key found = reiser4_cursor_key(cursor);
    if (reiser4_key_compare(&found, key) == 0)
        return 0;
    reiser4_cursor_release(cursor);
    return -ENOENT;
}

int reiser4_tree_find_node(struct reiser4_tree *tree, const struct reiser4_key *key, uint32_t level,
                           struct reiser4_cursor *cursor) {
    int error = descend_floor(tree, key, level, cursor);

    if (error)
        return error;
    struct reiser4_step *step = bottom_of(cursor);
    struct reiser4_key first = reiser4_node_key(step->view.node, 0);
    step->at = 0;
    if (cursor->bottom == level && reiser4_key_compare(&first, key) == 0)
        return 0;
    reiser4_cursor_release(cursor);
    return -ENOENT;
}

/* --- neighbours --------------------------------------------------------------------------------
 */

/* The lowest level, from `level` up, at which the path can go one item on; 0: none. */
static uint32_t turning_level(const struct reiser4_cursor *cursor, uint32_t level) {
    for (; level <= cursor->top; level++) {
        const struct reiser4_step *step = &cursor->step[level];
        if (step->at + 1 < reiser4_node_items(step->view.node))
            return level;
    }
    return 0;
}

/* The path ends at `level`, and goes one item on there. */
static void turn(struct reiser4_cursor *cursor, uint32_t level) {
    for (; cursor->bottom < level; cursor->bottom++)
        reiser4_view_put(&bottom_of(cursor)->view);
    bottom_of(cursor)->at++;
}

int reiser4_cursor_next_item(struct reiser4_cursor *cursor) {
    uint32_t level = turning_level(cursor, cursor->bottom);

    if (level == 0)
        return -ENOENT;
    turn(cursor, level);
    return descend_first(cursor);
}

int reiser4_cursor_next(struct reiser4_cursor *cursor) {
    struct reiser4_item item = reiser4_cursor_item(cursor);

    if (cursor->unit + 1 < reiser4_item_units(&item)) {
        cursor->unit++;
        return 0;
    }
    return reiser4_cursor_next_item(cursor);
}

int reiser4_cursor_right(struct reiser4_cursor *cursor) {
    uint32_t level = cursor->bottom, above = turning_level(cursor, level + 1);

    while (above > 0) {
        turn(cursor, above);
        while (cursor->bottom > level && reiser4_step_is_pointer(bottom_of(cursor))) {
            int error = reiser4_path_down(cursor);
            if (error)
                return error;
        }
        if (cursor->bottom == level)
            return 0;
        above = turning_level(cursor, cursor->bottom); /* over an extent */
    }
    return -ENOENT;
}

void reiser4_cursor_read_ahead(struct reiser4_cursor *cursor, const struct reiser4_key *stop) {
    const struct reiser4_step *twig = &cursor->step[REISER4_TWIG];
    uint64_t run = 0;
    uint32_t count = 0;

    if (cursor->bottom != REISER4_LEAF)
        return;
    for (uint32_t i = twig->at + 1, seen = 0;
         i < reiser4_node_items(twig->view.node) && seen < AHEAD_MAX; i++) {
        struct reiser4_key key = reiser4_node_key(twig->view.node, i);
        if (reiser4_key_compare(&key, stop) > 0)
            break;
        if (reiser4_node_id(twig->view.node, i) != REISER4_ITEM_POINTER)
            continue;
        uint64_t block = reiser4_node_pointer(twig->view.node, i);
        if (count > 0 && block != run + count) {
            reiser4_node_prefetch(cursor->tree->jnodes, run, count);
            count = 0;
        }
        run = count ? run : block;
        count++;
        seen++;
    }
    if (count > 0)
        reiser4_node_prefetch(cursor->tree->jnodes, run, count);
}
