/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the top, over cpfile.h, dir.h, inode.c and data.c. With -o history: the
 * root of the live tree has a directory NILFS_HISTORY_NAME, which no listing of the root shows; in
 * it each checkpoint is a directory, named by its time (UTC) and number,
 * "2026-11-30T23:12:20.cp42", or ".ss42" if it is a snapshot: the tree as it was.
 *
 * Invariants:
 *  1. The inodes of checkpoint `cno` have the numbers of the format plus cno << NILFS_INO_BITS, and
 *     are `past`: the core changes nothing of them.
 *  2. Whatever is asked about them is answered only while the checkpoint exists, under the same
 *     hold of the volume's lock: with the checkpoint its blocks may go. Else: -ESTALE.
 *
 * These are the contract's functions (fs/layout.h) for files of the live tree, too.
 */
#ifndef LAYOUTFS_NILFS_HISTORY_H
#define LAYOUTFS_NILFS_HISTORY_H

#include "layouts/nilfs/nilfs.h"

#define NILFS_HISTORY_NAME ".checkpoints"
/* Checkpoints of this number and later are not shown: their inodes have no numbers. */
#define NILFS_HISTORY_END (UINT64_MAX >> NILFS_INO_BITS)
#define NILFS_HISTORY_INO (NILFS_HISTORY_END << NILFS_INO_BITS | NILFS_ROOT_INO)

/* nilfs->history. */
int nilfs_history_new(struct nilfs *nilfs);
void nilfs_history_free(struct nilfs *nilfs); /* or nothing, where there is none */

int nilfs_history_inode_load(struct inode *inode);
int nilfs_history_symlink_read(struct inode *inode, char *target);
int nilfs_history_dir_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino);
int nilfs_history_dir_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context);
int nilfs_history_dir_empty(struct inode *dir);
int nilfs_history_load(struct inode *inode, const struct data_range *range,
                       struct device_batch *batch);
int nilfs_history_map(struct inode *inode, uint64_t offset, struct extent *extent);
int nilfs_history_explain(struct inode *inode, json_t **object);

#endif
