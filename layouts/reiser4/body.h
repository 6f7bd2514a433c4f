/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over tree.h, extent.h and flush.h. Bodies of regular files. Interface to
 * the contract: layout.h.
 *
 *   body.c      the contract's functions, which ask the object's plugin
 *   pending.c   what is reserved and not stored
 *   reg.c       reg40: reading
 *   reg_write.c     the policy, storing, truncation
 *   tail.c      bytes in the tree
 *   extent_file.c   blocks beside it
 *   convert.c   from the one to the other
 *   (ccreg40, compressed clusters, has a plugin of its own; until then its files cannot be read)
 *
 * What has been written is in the page cache, and *pending*, until the core stores it: by age, or
 * because of a commit (atom.h). `reserve` only counts: the blocks of file data, and the insertions
 * into the tree that storing them may take, whichever form the body takes. `store`
 *   - of a body that is, or by the policy becomes, tails: puts the bytes into the tree, as units of
 *     plain40 items;
 *   - of extents: gives the blocks new places, or leaves them those that they got since the last
 *     commit began, and writes the pages there.
 * The form is decided when it is known how large the file becomes: the policy sees inode->size. A
 * body of tails that becomes too long is converted; one of extents stays so.
 *
 * Invariants:
 *  1. A body is only tails or only extents, but for an interrupted conversion (REISER4_MODE_MIXED
 *     and a safe-link).
 *  2. Tails cover every byte from 0 to the size; extents, with explicit holes, every block from 0
 * to the one that holds the last byte (as far as nothing is pending).
 *  3. The bytes of the last block behind the file's end are zero.
 *  4. private->bytes is what the stat data has to say: bytes of tails, or blocks that are not
 * holes.
 *  5. atom.pending_blocks is the sum of the files' pending blocks, and an inode with such is in
 *     atom.pending.
 */
#ifndef LAYOUTFS_REISER4_BODY_H
#define LAYOUTFS_REISER4_BODY_H

#include "layouts/reiser4/layout.h"

/* What an object plugin for regular files does. The contract's promises hold; NULL: -EOPNOTSUPP. */
struct reiser4_body_plugin {
    const char *name; /* "reg40" */
    int64_t (*reserve)(struct inode *inode, uint64_t offset, uint64_t length);
    int (*load)(struct inode *inode, const struct data_range *range, struct device_batch *batch);
    int (*store)(struct inode *inode, const struct data_range *range, struct device_batch *batch);
    int (*truncate)(struct inode *inode, uint64_t size);
    int (*punch)(struct inode *inode, uint64_t offset, uint64_t length);
    int (*map)(struct inode *inode, uint64_t offset, struct extent *extent);
};

extern const struct reiser4_body_plugin reiser4_reg40;
/* Of it, in reg_write.c: */
int64_t reiser4_reg_reserve(struct inode *inode, uint64_t offset, uint64_t length);
int reiser4_reg_store(struct inode *inode, const struct data_range *range,
                      struct device_batch *batch);
int reiser4_reg_truncate(struct inode *inode, uint64_t size);
int reiser4_reg_punch(struct inode *inode, uint64_t offset, uint64_t length);
/* NULL: no regular file, or of a kind that cannot be read or written yet. */
const struct reiser4_body_plugin *reiser4_body_plugin_of(struct inode *inode);

/* The form that the tree shows: the item with the body's first byte. An empty body has none. Kept
 * in private->form. Shared. */
int reiser4_body_form(struct inode *inode, enum reiser4_form *form);
/* Shall a body of `size` bytes be tails, by the object's formatting? */
bool reiser4_body_wants_tails(struct inode *inode, uint64_t size);

/* tail.c: [offset, offset + length) of a body of tails; a gap is -EUCLEAN. Shared. */
int reiser4_tail_read(struct inode *inode, uint64_t offset, uint64_t length, uint8_t *bytes);
/* Exclusive: overwrites what is there and appends what is not; `bytes` NULL: zeros. Where the body
 * ends before `offset`, zeros come first. */
int reiser4_tail_write(struct inode *inode, uint64_t offset, uint64_t length, const uint8_t *bytes);
/* Exclusive: takes out all bytes from `size` on. */
int reiser4_tail_cut(struct inode *inode, uint64_t size);
/* extent_file.c: the extent that holds the offset, as in the tree; -ENOENT: behind the last one.
 * Shared. */
int reiser4_extent_find(struct inode *inode, uint64_t offset, struct reiser4_extent *extent);
/* Makes [from, to) of the body, in blocks, extents of `start` (0: holes; 1: unallocated; a block),
 * in place of what is there; blocks that were there are released. Exclusive. */
int reiser4_extent_set(struct inode *inode, uint64_t from, uint64_t to, uint64_t start);
/* Blocks that the body's extents cover, from the first on, holes included. Shared. */
int reiser4_extent_covered(struct inode *inode, uint64_t *blocks);
/* Takes out all extents from block `from` on, or parts of them. Exclusive. */
int reiser4_extent_cut(struct inode *inode, uint64_t from);
/* Blocks of a run that one insertion into the tree may have to be made for. */
#define REISER4_INSERTION_BLOCKS 64u
/* pending.c: blocks [from, to) are pending, or are so no longer. Exclusive. */
int reiser4_pending_add(struct inode *inode, uint64_t from, uint64_t to);
int reiser4_pending_remove(struct inode *inode, uint64_t from, uint64_t to);
/* convert.c: in the same atom; the pages of the body are in the page cache or will be read from the
 * tree. */
int reiser4_convert_to_extents(struct inode *inode);

#endif
