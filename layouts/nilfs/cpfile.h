/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over file.h. The checkpoints: slot cno of the file is checkpoint cno.
 */
#ifndef LAYOUTFS_NILFS_CPFILE_H
#define LAYOUTFS_NILFS_CPFILE_H

#include "layouts/nilfs/file.h"

struct nilfs_checkpoint {
    uint64_t cno;
    uint32_t flags;  /* enum nilfs_checkpoint_flags */
    int64_t created; /* seconds */
    uint64_t increment, inodes, blocks;
    uint64_t snapshot_next, snapshot_previous;
    struct nilfs_disk_inode ifile;
};

/* -ENOENT: there is no such checkpoint (any more). Shared. */
int nilfs_cpfile_read(struct nilfs *nilfs, uint64_t cno, struct nilfs_checkpoint *checkpoint);
/* The valid checkpoint with the lowest number >= from; with `snapshots`, the lowest snapshot.
 * -ENOENT. Shared. */
int nilfs_cpfile_next(struct nilfs *nilfs, uint64_t from, bool snapshots,
                      struct nilfs_checkpoint *checkpoint);
/* The block that has checkpoint `cno`: its own count of valid ones (the first has none), and the
 * first checkpoint that is behind it. -ENOENT: it is a hole. For check. Shared. */
#define NILFS_CPFILE_UNCOUNTED UINT32_MAX
int nilfs_cpfile_block(struct nilfs *nilfs, uint64_t cno, uint32_t *counted, uint64_t *end);
int nilfs_cpfile_counts(struct nilfs *nilfs, uint64_t *checkpoints, uint64_t *snapshots);
/* Makes the slot of nilfs->cno, or finds that it is made; its block is a changed one. */
int nilfs_cpfile_create(struct nilfs *nilfs);
/* Fills the slot of checkpoint->cno, made before (its list fields stay). Changes nothing else. */
int nilfs_cpfile_fill(struct nilfs *nilfs, const struct nilfs_checkpoint *checkpoint);
/* Deletes the plain checkpoints of [from, to); blocks without valid ones become holes (not the
 * first). -EBUSY: a snapshot is among them, and nothing was deleted. */
int nilfs_cpfile_delete(struct nilfs *nilfs, uint64_t from, uint64_t to);
/* Makes the checkpoint a snapshot, or a plain one again. -ENOENT. */
int nilfs_cpfile_keep(struct nilfs *nilfs, uint64_t cno, bool keep);
/* Where the valid checkpoints of [from, to) lie: blocks [*first, *last] of the file; only the first
 * and the last of these may have others, too. False: there are none. */
bool nilfs_cpfile_extent(struct nilfs *nilfs, uint64_t from, uint64_t to, uint64_t *first,
                         uint64_t *last);

#endif
