/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over the buffer cache and node.h. The tree's nodes in core: as they are
 * on disk, and as the running transaction has changed them.
 *
 * What the newest commit has is in the buffer cache and is never changed there. A block that has
 * been changed since is a *jnode*: a copy of its own, found by the block's number, until a commit
 * settles it. A node that has no place yet has a stand-in for a number (REISER4_STAND_IN and a
 * number that nobody else has), which is also what its parent's pointer says in core.
 *
 * Invariants:
 *  1. A block has a jnode exactly if it was changed, or made, since the last commit began. A reader
 *     who finds one reads it; else the buffer cache has what counts.
 *  2. `fresh` jnodes are at places that no commit knows of (stand-ins; blocks that were allocated
 *     since the last commit began): they are written once, and can be freed at once. The others are
 *     at the place where the newest commit has an older state of them.
 *  3. That a node becomes a jnode changes neither its number nor its parent. Its number changes
 *     when flush gives it another place (reiser4_cursor_renumber, tree.h), which makes the parent a
 *     jnode.
 *  4. Every pointer in core to a stand-in is in a jnode, and has a jnode behind it.
 *  5. A settled buffer is pinned, and its bytes stay, until the commit that it belongs to has
 * ended: who changes the block again makes a new jnode.
 *
 * Locking: the contract's. Under the shared lock nothing here changes but the buffer cache.
 */
#ifndef LAYOUTFS_REISER4_JNODE_H
#define LAYOUTFS_REISER4_JNODE_H

#include <sys/queue.h>

#include "fs/arena.h"
#include "fs/buffer.h"
#include "layouts/reiser4/item.h"

struct volume;
struct reiser4_overlay;

#define REISER4_STAND_IN (UINT64_C(1) << 63)

struct reiser4_jnode {
    uint64_t block;
    uint32_t level;
    bool fresh;
    bool placed;   /* flush has decided where it goes with the next commit: `block` is that */
    uint8_t *data; /* owned */
    struct reiser4_jnode *hash_next;
    TAILQ_ENTRY(reiser4_jnode) link; /* of jnodes->list */
};
TAILQ_HEAD(reiser4_jnode_list, reiser4_jnode);

struct reiser4_jnodes {
    const struct volume *volume; /* device, name and log */
    struct buffer_cache *buffers;
    const struct reiser4_node_format *format;
    const struct reiser4_overlay *overlay; /* journal.h: where blocks are to be read; NULL: there */
    uint64_t blocks;                       /* of the volume */
    uint32_t mkfs_id;
    /* A block that is not fresh is not part of the tree any more: space.h, or a test. */
    int (*release)(void *context, uint64_t block);
    /* A fresh one that has a place is not. */
    void (*give_back)(void *context, uint64_t block);
    void *context; /* of these two */

    struct reiser4_jnode **buckets; /* owned */
    uint32_t bucket_count;          /* a power of two */
    struct reiser4_jnode_list list; /* all, in the order they were made */
    uint64_t nodes, unplaced_nodes; /* all; those with stand-ins */
    uint64_t old_nodes;             /* those that are not fresh */
    uint64_t stand_ins;             /* handed out */
    struct recycler records, memory;
};

/* volume, buffers, format, blocks, mkfs_id and the functions are set in a zeroed structure. */
int reiser4_jnodes_init(struct reiser4_jnodes *jnodes);
/* All jnodes go, written or not. */
void reiser4_jnodes_destroy(struct reiser4_jnodes *jnodes);

/* May the number be that of a node or of data, on disk? */
static inline bool reiser4_block_valid(const struct reiser4_jnodes *jnodes, uint64_t block) {
    return block >= REISER4_FIRST_FREE && block < jnodes->blocks && block % REISER4_REGION != 0;
}

/* The jnode of that block; NULL: it has none. Shared. */
struct reiser4_jnode *reiser4_jnode_find(const struct reiser4_jnodes *jnodes, uint64_t block);

/* --- nodes -------------------------------------------------------------------------------------
 */

/* A node, to be read until reiser4_view_put or the next change of that node. */
struct reiser4_view {
    struct reiser4_node node;
    uint64_t block;
    struct buffer *buffer;       /* referenced, or NULL: it has a jnode... */
    struct reiser4_jnode *jnode; /* ...which is this */
};

/* The node, validated with all its items when it was read (buffer->checked): -EUCLEAN, -EIO,
 * -ENOMEM. Shared. */
int reiser4_node_get(struct reiser4_jnodes *jnodes, uint64_t block, uint32_t level,
                     struct reiser4_view *view);
static inline void reiser4_view_put(struct reiser4_view *view) {
    buffer_put(view->buffer); /* NULL is allowed */
    view->buffer = NULL;
}
/* Starts to read nodes that will be wanted. Shared. */
void reiser4_node_prefetch(struct reiser4_jnodes *jnodes, uint64_t block, uint32_t count);
/* The node is to be changed: the view becomes that of its jnode, made if need be. -ENOMEM: nothing
 * has changed. */
int reiser4_node_change(struct reiser4_jnodes *jnodes, struct reiser4_view *view);
/* A new node without items, under a stand-in. */
int reiser4_node_make(struct reiser4_jnodes *jnodes, uint32_t level, struct reiser4_view *view);
/* The node is not part of the tree any more: its jnode goes, its place is released or given back.
 * The view is put. */
int reiser4_node_drop(struct reiser4_jnodes *jnodes, struct reiser4_view *view);

/* --- for flush and commit ----------------------------------------------------------------
 */

/* The jnode lies at `block` now, which was just allocated; it is fresh. Where it was, is released
 * (given back, if it was fresh). Its parent's pointer is the caller's business. */
int reiser4_jnode_move(struct reiser4_jnodes *jnodes, struct reiser4_jnode *jnode, uint64_t block);
/* The jnode goes, and nothing else happens. */
void reiser4_jnode_forget(struct reiser4_jnodes *jnodes, struct reiser4_jnode *jnode);
/* The jnode goes; its contents, sealed, are in a referenced and pinned buffer under
 * its number, which a reader finds from now on. */
int reiser4_jnode_settle(struct reiser4_jnodes *jnodes, struct reiser4_jnode *jnode,
                         struct buffer **buffer);

#endif
