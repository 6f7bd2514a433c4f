/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. What a flush does with nodes: it packs them, and gives them other
 * numbers. Interface: layouts/reiser4/tree.h.
 */
#include <errno.h>

#include "layouts/reiser4/reiser4.h"
#include "layouts/reiser4/tree_path.h"
#include "layouts/reiser4/units.h"

static struct reiser4_step *bottom_of(struct reiser4_cursor *cursor) {
    return &cursor->step[cursor->bottom];
}

/* --- paths -------------------------------------------------------------------------------------
 */

/* A second cursor on the same path. */
static void path_copy(const struct reiser4_cursor *cursor, struct reiser4_cursor *copy) {
    *copy = *cursor;
    for (uint32_t level = copy->bottom; level <= copy->top; level++)
        if (copy->step[level].view.buffer)
            buffer_hold(copy->step[level].view.buffer);
}

int reiser4_path_refresh(struct reiser4_cursor *cursor) {
    int error = 0;

    for (; cursor->top > cursor->tree->height; cursor->top--)
        reiser4_view_put(&cursor->step[cursor->top].view);
    for (uint32_t level = cursor->top; level >= cursor->bottom && !error; level--) {
        struct reiser4_view *view = &cursor->step[level].view;
        uint64_t block = view->block;
        reiser4_view_put(view);
        error = reiser4_node_get(cursor->tree->jnodes, block, level, view);
    }
    if (error)
        reiser4_cursor_release(cursor);
    return error;
}

/* To the node to the right at the same level, if nothing stands between the two: of leaves, no
 * extent in a twig. -ENOENT: there is none. */
static int to_neighbour(struct reiser4_cursor *cursor) {
    if (cursor->bottom != REISER4_LEAF)
        return reiser4_cursor_right(cursor);
    bottom_of(cursor)->at = reiser4_node_items(bottom_of(cursor)->view.node) - 1;
    int error = reiser4_cursor_next_item(cursor);
    return error || cursor->bottom == REISER4_LEAF ? error : -ENOENT;
}

/* --- packing -----------------------------------------------------------------------------------
 */

/* `right` stands in the node to the right of the cursor's, and is released. */
static int pack_from(struct reiser4_cursor *cursor, struct reiser4_cursor *right, bool *moved) {
    struct reiser4_view *source = &bottom_of(right)->view;
    struct reiser4_position end = reiser4_position_end(source->node);
    int error = 0;

    *moved = reiser4_units_move_left(source->node, bottom_of(cursor)->view.node, &end);
    if (*moved)
        error = reiser4_path_shrunk(right, right->bottom, true);
    reiser4_cursor_release(right);
    return error;
}

int reiser4_cursor_pack(struct reiser4_cursor *cursor, bool *moved) {
    struct reiser4_cursor right;

    *moved = false;
    path_copy(cursor, &right);
    int error = to_neighbour(&right);
    if (error == -ENOENT || (!error && !bottom_of(&right)->view.jnode)) {
        reiser4_cursor_release(&right);
        error = 0;
    } else if (!error) {
        error = pack_from(cursor, &right, moved);
    }
    if (!error && *moved)
        error = reiser4_path_refresh(cursor);
    else if (error)
        reiser4_cursor_release(cursor);
    if (!error) {
        bottom_of(cursor)->at = 0;
        cursor->unit = 0;
    }
    return error;
}

/* --- places ------------------------------------------------------------------------------------
 */

int reiser4_cursor_renumber(struct reiser4_cursor *cursor, uint64_t block) {
    struct reiser4_jnodes *jnodes = cursor->tree->jnodes;
    struct reiser4_view *view = &bottom_of(cursor)->view;

    if (cursor->bottom == cursor->top) {
        cursor->tree->root = block;
    } else {
        struct reiser4_step *parent = &cursor->step[cursor->bottom + 1];
        int error = reiser4_node_change(jnodes, &parent->view);
        if (error)
            return error;
        struct reiser4_disk_pointer *pointer =
            (struct reiser4_disk_pointer *)reiser4_node_body(parent->view.node, parent->at);
        le64_store(&pointer->block, block);
    }
    view->block = block;
    return reiser4_jnode_move(jnodes, view->jnode, block);
}
