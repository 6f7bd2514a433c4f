/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, under the page cache. Interface and invariants: fs/page_tree.h.
 */
#include "fs/page_tree.h"

#include <errno.h>
#include <stddef.h>

#define SLOT_BITS  6u
#define SLOTS      (1u << SLOT_BITS)
#define HEIGHT_MAX 11u /* 64-bit indexes */

struct page_node {
    uint64_t present, dirty;
    void *slots[SLOTS];
};

const size_t page_node_size = sizeof(struct page_node);

/* The slot of `index` in a node of `height`. */
static unsigned page_slot(uint64_t index, unsigned height) {
    return (unsigned)(index >> (SLOT_BITS * (height - 1))) % SLOTS;
}

static bool page_tree_covers(const struct page_tree *tree, uint64_t index) {
    unsigned bits = SLOT_BITS * tree->height;

    return bits >= 64 || index >> bits == 0;
}

struct page *page_tree_find(const struct page_tree *tree, uint64_t index) {
    void *item = tree->root;

    if (!page_tree_covers(tree, index))
        return NULL;
    for (unsigned height = tree->height; item && height > 0; height--)
        item = ((struct page_node *)item)->slots[page_slot(index, height)];
    return item;
}

/* One more level, until the tree covers `index`. */
static int page_tree_grow(struct page_tree *tree, struct recycler *nodes, uint64_t index) {
    while (!page_tree_covers(tree, index)) {
        if (tree->root) {
            struct page_node *node = recycle_get(nodes);

            if (!node)
                return -ENOMEM;
            node->slots[0] = tree->root;
            node->present = 1;
            node->dirty = tree->dirty > 0;
            tree->root = node;
        }
        tree->height++;
    }
    return 0;
}

/* The page on top of new nodes for the heights from 1 to `height`; NULL: no memory. */
static void *page_tree_build(struct recycler *nodes, struct page *page, unsigned height) {
    void *item = page;

    for (unsigned level = 1; level <= height; level++) {
        struct page_node *node = recycle_get(nodes);
        unsigned slot = page_slot(page->index, level);

        if (!node) {
            while (--level > 0) {
                struct page_node *built = item;

                item = built->slots[page_slot(page->index, level)];
                recycle_put(nodes, built);
            }
            return NULL;
        }
        node->slots[slot] = item;
        node->present = UINT64_C(1) << slot;
        item = node;
    }
    return item;
}

int page_tree_insert(struct page_tree *tree, struct recycler *nodes, struct page *page) {
    struct page_node *parent = NULL;
    void **link = &tree->root;
    void *item;
    unsigned height;

    if (page_tree_grow(tree, nodes, page->index))
        return -ENOMEM;
    for (height = tree->height; height > 0 && *link; height--) {
        parent = *link;
        link = &parent->slots[page_slot(page->index, height)];
    }
    item = page_tree_build(nodes, page, height);
    if (!item)
        return -ENOMEM;
    *link = item;
    if (parent)
        parent->present |= UINT64_C(1) << page_slot(page->index, height + 1);
    tree->count++;
    return 0;
}

/* Fills path[1..height] with the nodes on the way to `index`, which is present. */
static void page_tree_path(const struct page_tree *tree, uint64_t index, struct page_node **path) {
    void *item = tree->root;

    for (unsigned height = tree->height; height > 0; height--) {
        path[height] = item;
        item = path[height]->slots[page_slot(index, height)];
    }
}

void page_tree_set_dirty(struct page_tree *tree, struct page *page, bool dirty) {
    struct page_node *path[HEIGHT_MAX + 1];

    if (page->dirty == dirty)
        return;
    page->dirty = dirty;
    tree->dirty += dirty ? 1 : UINT64_MAX;
    page_tree_path(tree, page->index, path);
    for (unsigned height = 1; height <= tree->height; height++) {
        uint64_t before = path[height]->dirty;
        uint64_t bit = UINT64_C(1) << page_slot(page->index, height);

        path[height]->dirty = dirty ? before | bit : before & ~bit;
        if (dirty ? before != 0 : path[height]->dirty != 0)
            return; /* nothing changes further up */
    }
}

void page_tree_remove(struct page_tree *tree, struct recycler *nodes, struct page *page) {
    struct page_node *path[HEIGHT_MAX + 1];

    page_tree_set_dirty(tree, page, false);
    page_tree_path(tree, page->index, path);
    tree->count--;
    for (unsigned height = 1; height <= tree->height; height++) {
        unsigned slot = page_slot(page->index, height);

        path[height]->slots[slot] = NULL;
        path[height]->present &= ~(UINT64_C(1) << slot);
        if (path[height]->present)
            return;
        recycle_put(nodes, path[height]);
    }
    tree->root = NULL;
    tree->height = 0;
}

/* The next page under a node whose first index is `base`. */
static struct page *page_node_next(const struct page_node *node, unsigned height, uint64_t base,
                                   uint64_t index, bool dirty) {
    unsigned shift = SLOT_BITS * (height - 1);
    uint64_t first = index > base ? (index - base) >> shift : 0;
    uint64_t bits = dirty ? node->dirty : node->present;

    if (first >= SLOTS)
        return NULL;
    for (bits &= UINT64_MAX << first; bits; bits &= bits - 1) {
        unsigned slot = (unsigned)__builtin_ctzll(bits);
        struct page *page = node->slots[slot];

        if (height > 1)
            page = page_node_next(node->slots[slot], height - 1, base + ((uint64_t)slot << shift),
                                  index, dirty);
        if (page)
            return page;
    }
    return NULL;
}

struct page *page_tree_next(const struct page_tree *tree, uint64_t index, bool dirty) {
    struct page *first;

    if (!tree->root || (dirty && tree->dirty == 0))
        return NULL;
    if (tree->height > 0)
        return page_node_next(tree->root, tree->height, 0, index, dirty);
    first = tree->root;
    return index == 0 && (!dirty || first->dirty) ? first : NULL;
}
