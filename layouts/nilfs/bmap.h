/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. A file's block map: keys (block offsets) to pointers. Over file.h's nodes.
 * bmap.c: the interface and direct maps; btree.c: search; btree_edit.c: insertion and deletion.
 *
 * Invariants of a map (docs/nilfs2-format.md, "bmap"):
 *  1. Direct: keys 0 to 5; pointer 0 is a hole. B-tree: keys ascend, without duplicates.
 *  2. A parent's key i is exactly the first key of child i, in all changed nodes and in the root.
 *  3. A node other than the root has from (N-1)/2+1 to N children; deletion restores this.
 *  4. Before a node is changed, the nodes above it are (file.h, invariant 3).
 *
 * Changes: exclusive lock. A change reads all nodes that it may need before it changes the first
 * one, as far as that is possible.
 */
#ifndef LAYOUTFS_NILFS_BMAP_H
#define LAYOUTFS_NILFS_BMAP_H

#include "layouts/nilfs/file.h"

/* -EUCLEAN: what a root says cannot be. For maps from the disk. */
int nilfs_bmap_check(const struct nilfs_file *file);
/* The pointer at `key`: -ENOENT a hole. Shared. */
int nilfs_bmap_lookup(struct nilfs_file *file, uint64_t key, uint64_t *pointer);
/* As lookup for up to `room` keys from `key` on, as far as there are keys in a row and they are in
 * one leaf: pointers[0..n), returns n > 0; -ENOENT: a hole at `key`, and *next is the first key
 * above it that exists, or UINT64_MAX. Shared. */
int nilfs_bmap_lookup_run(struct nilfs_file *file, uint64_t key, uint64_t *pointers, uint32_t room,
                          uint64_t *next);
/* The first key >= `from`, the last one < `to`: -ENOENT: none. The last key; -ENOENT: the map is
 * empty. Shared. */
int nilfs_bmap_seek(struct nilfs_file *file, uint64_t from, uint64_t *key);
int nilfs_bmap_before(struct nilfs_file *file, uint64_t to, uint64_t *key);
int nilfs_bmap_last(struct nilfs_file *file, uint64_t *key);
/* Adds a key that is not there (-EEXIST), where -ENOENT of the two below says that it is not. */
int nilfs_bmap_insert(struct nilfs_file *file, uint64_t key, uint64_t pointer);
/* Gives a key that is there another pointer; all nodes to it become changed ones. */
int nilfs_bmap_set(struct nilfs_file *file, uint64_t key, uint64_t pointer);
/* Takes a key that is there out; its pointer's life is the caller's business. */
int nilfs_bmap_delete(struct nilfs_file *file, uint64_t key);
/* Calls visit for each key with its pointer and each node (level > 0, key: its first, pointer: its
 * own), parents first. Stops when it answers other than 0, and returns that. Shared. */
typedef int (*nilfs_bmap_visit)(void *context, uint32_t level, uint64_t key, uint64_t pointer);
int nilfs_bmap_each(struct nilfs_file *file, nilfs_bmap_visit visit, void *context);
/* For checkpoint.c on the DAT: in the parent of the changed node (or data block, level 0) that has
 * first key `key` and is at `level`, the pointer becomes `pointer`. All nodes above are changed
 * ones already: nothing is made or read. */
int nilfs_bmap_place(struct nilfs_file *file, uint64_t key, uint32_t level, uint64_t pointer);
/* Is the DAT's block of that key and level (0: data) at `block`? For liveness. Shared. */
int nilfs_bmap_points_at(struct nilfs_file *file, uint64_t key, uint32_t level, uint64_t block,
                         bool *yes);

#endif
