/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over palloc.h. The inodes of one checkpoint.
 */
#ifndef LAYOUTFS_NILFS_IFILE_H
#define LAYOUTFS_NILFS_IFILE_H

#include "layouts/nilfs/palloc.h"

/* The record, copied. -ESTALE: the number is not in use. Shared. `ifile`: the live one, or that of
 * a checkpoint. */
int nilfs_ifile_read(struct nilfs_file *ifile, uint64_t ino, struct nilfs_disk_inode *inode);
/* The live one's record for changing, until the next checkpoint (nilfs_file_change). */
int nilfs_ifile_change(struct nilfs *nilfs, uint64_t ino, struct nilfs_disk_inode **inode);
/* The lowest free number of users; its record is zeroed whole. */
int nilfs_ifile_allocate(struct nilfs *nilfs, uint64_t *ino);
int nilfs_ifile_free(struct nilfs *nilfs, uint64_t ino);
/* The next inode in use at or after `from`: -ENOENT. Shared. */
int nilfs_ifile_next(struct nilfs_file *ifile, uint64_t from, uint64_t *ino);
/* f_files. Shared. */
int nilfs_ifile_capacity(struct nilfs_file *ifile, uint64_t *inodes);

#endif
