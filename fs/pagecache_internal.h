/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, shared by pagecache.c and writeback.c.
 *
 * Invariants:
 *  1. A page that is `loading` has no contents and is not used; who needs it waits for `arrived`
 * and looks it up anew, since it is gone if loading failed.
 *  2. An inode is on `dirty_inodes` exactly while it has dirty pages and is in the inode cache's
 *     table, in the order in which they became dirty.
 *  3. A page is on `dirty_pages` exactly while it is dirty, in the order in which they became it.
 */
#ifndef LAYOUTFS_PAGECACHE_INTERNAL_H
#define LAYOUTFS_PAGECACHE_INTERNAL_H

#include "fs/page_tree.h"
#include "fs/volume_internal.h"
#include "fs/write_errors.h"

#define PAGE_RUN_MAX 256u /* pages in one call of layout->load or store: 1 MiB */

TAILQ_HEAD(page_tree_queue, page_tree);
TAILQ_HEAD(page_queue, page);

struct page_cache {
    struct volume *volume;
    struct recycler pages, trees, nodes;
    struct inflight_list reads, writes;
    struct page_tree_queue dirty_inodes; /* by their trees */
    struct page_queue dirty_pages;
    uint64_t dirty_inode_count;
    _Atomic uint64_t dirty_bytes;
    uint64_t background_bytes, limit_bytes; /* write-back starts; writers wait */
    struct write_errors write_errors;       /* of writes that failed in flight */
    int metadata_error;                     /* likewise, and the buffer cache does not know yet */
    int store_error;                        /* of data, and the layout does not know yet */
    pthread_cond_t arrived;
};

/* Calls layout->store as it wants to be called: under volume->lock, in a step if it allocates, as
 * the privileged user. Data lock exclusive. */
int page_store_range(struct inode *inode, const struct data_range *range,
                     struct device_batch *batch);

/* The rest with the pool's mutex held. */

/* An inflight of page_cache.writes has failed. */
void writeback_failed(void *context, const struct inflight *inflight);

/* Sets or clears the page's dirty state and all that is counted from it. */
void page_set_dirty(struct page *page, bool dirty);
/* The request the page was part of does not matter to it any more. */
void page_leave_inflight(struct page *page);
/* Takes an inode off the write-back list, or puts it at its end as dirty since now. */
void page_cache_unlist(struct inode *inode);
void page_cache_enlist(struct inode *inode);

#endif
