/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, under the page cache.
 *
 * The cached pages of one file: a radix tree with 64 slots a node that grows in height with the
 * largest index. Each node has one bit a slot for "something there" and one for "something dirty
 * there", so that the next page, or the next dirty one, is found without visiting the others. A
 * file whose only page is its first has no node at all.
 *
 * Invariants:
 *  1. root is NULL (no pages), the page with index 0 (height 0), or a node of that height.
 *  2. A slot's present bit is set exactly if it is not NULL; its dirty bit exactly if the page in
 *     it, or a page under the node in it, is dirty.
 *  3. No node but an empty tree's is without present slots.
 *  4. count and dirty are the numbers of pages and dirty pages.
 * Locking: the pool's mutex.
 */
#ifndef LAYOUTFS_PAGE_TREE_H
#define LAYOUTFS_PAGE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/arena.h"
#include "fs/inflight.h"
#include "fs/pool.h"

struct inode;

struct page {
    struct frame frame; /* first; frame.data is the page */
    struct inode *inode;
    uint64_t index;            /* offset in the file / PAGE_SIZE_BYTES */
    struct inflight *inflight; /* the request that brings or writes it, while that may be pending */
    TAILQ_ENTRY(page) dirtied; /* while dirty: on the page cache's list */
    uint16_t pins;             /* readers copying from it */
    bool dirty;
    bool loading;  /* somebody is reading it in: it has no contents yet */
    bool arriving; /* `inflight` brings it: to be waited for before use */
};

struct page_tree {
    struct inode *inode; /* whose pages these are */
    void *root;
    uint64_t count, dirty;
    uint64_t ahead;  /* read-ahead has gone up to this page index */
    uint64_t stored; /* write-back goes on at this page index */
    uint8_t height;
    bool listed;                      /* on the page cache's write-back list */
    TAILQ_ENTRY(page_tree) writeback; /* while listed */
    int64_t dirty_since_ns;           /* of the oldest dirty page */
};

struct page_node; /* allocated by a recycler of page_node_size bytes */
extern const size_t page_node_size;

struct page *page_tree_find(const struct page_tree *tree, uint64_t index);
/* Adds a clean page at page->index, where there is none. 0, -ENOMEM. */
int page_tree_insert(struct page_tree *tree, struct recycler *nodes, struct page *page);
/* Takes the page out. */
void page_tree_remove(struct page_tree *tree, struct recycler *nodes, struct page *page);
/* Sets page->dirty and what depends on it. */
void page_tree_set_dirty(struct page_tree *tree, struct page *page, bool dirty);
/* The first page, or dirty page, with an index of at least `index`, or NULL. */
struct page *page_tree_next(const struct page_tree *tree, uint64_t index, bool dirty);

#endif
