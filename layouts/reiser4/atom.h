/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over flush.h, journal.h and space.h. The atom: all that has changed since
 * the last commit began, and what makes it durable, in the contract's parts.
 *
 *   atom.c     what is in the atom; when it must be committed
 *   commit.c   the contract's parts
 *
 * Parts (fs/commit.h says under which locks):
 *   commit_data   names inodes with pending data, in the order of their keys: `store` puts their
 *                 bytes into the tree, or gives their blocks places and writes them, or keeps them
 *                 for the overwrite set (body.h).
 *   commit_begin  flushes the tree (flush.h): squeezed, and given its places; freezes space
 * (bitmaps) and counters, settles all jnodes into pinned buffers, sorts them into the two sets,
 * makes the log. commit_write  relocate set, wandered copies and log in long runs; flush; header;
 * flush; the overwrite set in place; flush; footer; flush. commit_end    unpins; what was released
 * is free (reiser4_space_committed).
 *
 * The *relocate set* are blocks at places that no commit knows of: written once, there. The
 * *overwrite set* are blocks that keep their place: written twice, first to where they wander. The
 * super block and the bitmaps are always of the overwrite set, if they have changed.
 *
 * Invariants:
 *  1. After commit_begin the atom is empty: no jnodes, nothing released.
 *  2. A block is in one set at most. File data are in the overwrite set or, written by `store`, in
 *     none.
 *  3. Writes of file data were submitted by `store` and are waited for by the core before
 *     commit_write; the first flush makes them durable.
 *  4. If nothing has changed there is no commit: no request is made.
 */
#ifndef LAYOUTFS_REISER4_ATOM_H
#define LAYOUTFS_REISER4_ATOM_H

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/buffer.h"
#include "fs/layout.h"
#include "layouts/reiser4/kept.h"
#include "layouts/reiser4/super.h"

struct reiser4;
struct reiser4_inode;

/* Inodes with pending data, by key: layout.h. */
RB_HEAD(reiser4_pending_tree, reiser4_inode);

struct reiser4_write { /* of a commit */
    uint64_t block;
    uint64_t wandered; /* of the overwrite set: where its copy goes */
    uint8_t *bytes;    /* of the block: the buffer's, or of commit.kept */
    enum purpose purpose;
    struct buffer *buffer; /* referenced and pinned; NULL: it is file data */
};
struct reiser4_writes {
    struct reiser4_write *write; /* owned; ascending by block, once all are there */
    size_t count, room;
};

struct reiser4_commit {
    bool busy; /* between begin and end */
    struct reiser4_writes relocate, overwrite;
    struct reiser4_kept_set kept; /* file data of the overwrite set */
    uint64_t head;                /* the log's first block */
    uint64_t *log_block;          /* owned: of the records, in order */
    uint8_t *log;                 /* owned: head and records, a block each */
    uint32_t log_count;
    uint64_t previous; /* head of the commit before */
    struct reiser4_counters counters;
};

struct reiser4_atom {
    struct reiser4_pending_tree pending;
    uint64_t pending_blocks;      /* of file data, reserved and not stored */
    struct reiser4_kept_set kept; /* file data stored again that keeps its place */
    uint64_t pending_items;       /* insertions into the tree that storing them takes, at most */
    bool changed;                 /* counters, root or height, or anything else */
    struct reiser4_commit commit;
};

void reiser4_atom_init(struct reiser4 *r4);
/* Drops everything, written or not. */
void reiser4_atom_destroy(struct reiser4 *r4);
/* Something has changed that no jnode shows. */
void reiser4_atom_mark(struct reiser4 *r4);
bool reiser4_atom_is_empty(const struct reiser4 *r4);
/* Asks for a commit (volume->commit.wanted) when the atom is as large as it may become; at the end
 * of every change. */
void reiser4_atom_look(struct reiser4 *r4);

/* For space.c: the buffer, which has the block's new contents, goes with the commit. Takes over the
 * reference, pins. */
int reiser4_commit_overwrite(struct reiser4_commit *commit, uint64_t block, struct buffer *buffer);

struct inode *reiser4_commit_data(struct volume *volume, struct inode *inode,
                                  enum commit_cause cause);
int reiser4_commit_begin(struct volume *volume, struct inode *inode, enum commit_cause cause,
                         bool *needed);
int reiser4_commit_write(struct volume *volume);
int reiser4_commit_end(struct volume *volume, int error);
/* All parts at once, under the exclusive lock, for mount (safe-links), mkfs of a tree, and check.
 * Pending data is not stored. -EBUSY: a commit is between its begin and its end. */
int reiser4_commit_now(struct reiser4 *r4);

#endif
