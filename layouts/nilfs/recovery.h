/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over log_read.h. What mount finds: the newest log with a super root, and
 * data-only logs behind it.
 */
#ifndef LAYOUTFS_NILFS_RECOVERY_H
#define LAYOUTFS_NILFS_RECOVERY_H

#include "layouts/nilfs/log_read.h"

struct nilfs_found {
    struct nilfs_log_head newest; /* has a super root */
    uint64_t cno;
    /* Data-only logs behind it: from pending_start to pending_end; 0: none. */
    uint64_t pending_start, pending_start_sequence, pending_end;
    uint64_t last_sequence; /* of the last valid log seen */
    uint64_t last_next;     /* its next_block */
};

/* From the current super block's cursor on; `clean`: only the log it names. -EUCLEAN: that log is
 * not valid, or has no super root. */
int nilfs_recovery_find(struct nilfs *nilfs, bool clean, struct nilfs_found *found);
/* Reads the super root and sets up nilfs->dat, cpfile, sufile, ifile (of options.checkpoint, if
 * set), cno, counts and position. */
int nilfs_recovery_open(struct nilfs *nilfs, const struct nilfs_found *found);
/* Applies the data-only logs. Read-only volumes: in core only. Else writes a checkpoint into a
 * fresh segment and the super block (docs/nilfs2-format.md, "mount and recovery"). */
int nilfs_recovery_roll_forward(struct nilfs *nilfs, const struct nilfs_found *found);
/* After a crash, where nothing was rolled forward: the next log goes into a fresh segment with a
 * sequence of its own. Behind the newest checkpoint there may be logs that the failed system wrote
 * and whose predecessors never arrived: a new log that happens to end where such a one begins would
 * make it part of the chain. In core; without clean segments to spare nothing changes. */
int nilfs_recovery_start_afresh(struct nilfs *nilfs, const struct nilfs_found *found);

/* --- leftovers (leftovers.c): inodes that had lost their last name and were in use when the system
 * failed. The format has no list of them, and the driver never frees them. --- */

/* Frees those of the newest checkpoint, in core, if they are found and freed quickly; a volume of
 * many files, and large leftovers, are left to `layoutfs check --repair`. */
int nilfs_leftovers_free(struct nilfs *nilfs);
/* Frees the inode if it has no name. */
int nilfs_leftover_free(struct nilfs *nilfs, uint64_t ino);

#endif
