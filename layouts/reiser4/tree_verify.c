/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. The tree's invariants, for tests and debug builds. Interface:
 * layouts/reiser4/tree.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "layouts/reiser4/reiser4.h"
#include "layouts/reiser4/tree.h"

struct verify {
    struct reiser4_tree *tree;
    bool any;                /* an item has been seen: */
    struct reiser4_key last; /* the key of its last unit */
    bool last_same_keys;
    uint64_t leaves;
    const char *wrong; /* NULL: nothing yet; else what, in the node: */
    uint64_t block;
    uint32_t item;
};

static void found(struct verify *verify, const char *what, uint64_t block, uint32_t item) {
    if (verify->wrong)
        return;
    verify->wrong = what;
    verify->block = block;
    verify->item = item;
}

/* Invariants 4 and 7 of an item that is no pointer. */
static void look_at_item(struct verify *verify, const struct reiser4_view *view, uint32_t i) {
    struct reiser4_item item = reiser4_item_of(view->node, i);
    uint32_t units = reiser4_item_units(&item);
    bool same = reiser4_item_kind(item.id)->same_keys;

    for (uint32_t unit = 0; unit < units; unit++) {
        struct reiser4_key key = reiser4_item_unit_key(&item, unit);
        int order = verify->any ? reiser4_key_compare(&verify->last, &key) : -1;
        if (order > 0 || (order == 0 && !(same && verify->last_same_keys)))
            found(verify, "a unit's key is not above that of the one before", view->block, i);
        verify->last = key;
        verify->any = true;
        verify->last_same_keys = same;
    }
    if (i == 0)
        return;
    struct reiser4_item before = reiser4_item_of(view->node, i - 1);
    if (reiser4_item_mergeable(&before, &item))
        found(verify, "two neighbouring items are mergeable", view->block, i);
}

static int walk(struct verify *verify, uint64_t block, uint32_t level,
                const struct reiser4_key *wanted);

/* Invariants 3 and 5: what is behind the pointer. */
static int follow(struct verify *verify, const struct reiser4_view *view, uint32_t i,
                  uint32_t level) {
    struct reiser4_key key = reiser4_node_key(view->node, i);

    if (verify->any && reiser4_key_compare(&verify->last, &key) > 0)
        found(verify, "a unit's key is above the delimiting key behind it", view->block, i);
    return walk(verify, reiser4_node_pointer(view->node, i), level - 1, &key);
}

static int walk(struct verify *verify, uint64_t block, uint32_t level,
                const struct reiser4_key *wanted) {
    struct reiser4_view view;
    int error = reiser4_node_get(verify->tree->jnodes, block, level, &view);

    if (error)
        return error;
    if (reiser4_node_items(view.node) == 0) {
        found(verify, "the node is empty", block, 0);
    } else if (wanted) {
        struct reiser4_key first = reiser4_node_key(view.node, 0);
        if (reiser4_key_compare(&first, wanted) != 0)
            found(verify, "the first key is not the pointer's", block, 0);
    } else if (level > REISER4_TWIG && reiser4_node_items(view.node) < 2) {
        found(verify, "the root has one item only", block, 0);
    }
    verify->leaves += level == REISER4_LEAF;
    for (uint32_t i = 0; i < reiser4_node_items(view.node) && !error && !verify->wrong; i++) {
        if (reiser4_node_id(view.node, i) == REISER4_ITEM_POINTER)
            error = follow(verify, &view, i, level);
        else
            look_at_item(verify, &view, i);
    }
    reiser4_view_put(&view);
    return error;
}

const char *reiser4_tree_verify(struct reiser4_tree *tree, char *text, size_t size) {
    struct verify verify = {.tree = tree};
    int error = tree->height < REISER4_TWIG || tree->height > REISER4_HEIGHT_MAX
                    ? -EUCLEAN
                    : walk(&verify, tree->root, tree->height, NULL);

    if (verify.wrong)
        snprintf(text, size, "node at block %" PRIu64 ", item %u: %s", verify.block, verify.item,
                 verify.wrong);
    else if (error)
        snprintf(text, size, "the tree cannot be read: error %d", error);
    else if (verify.leaves == 0)
        snprintf(text, size, "the tree has no leaf");
    else
        return NULL;
    return text;
}
