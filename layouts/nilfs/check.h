/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, private to check*.c.
 *
 *   check.c          takes up the volume as mount does; the order of things; mending
 *   check_map.c      one file's block map: nodes, lifetimes, and who holds which disk block
 *   check_entries.c  bitmaps and counts of the DAT and the ifiles; the DAT's entries
 *   check_tree.c     the inodes of one checkpoint, against their maps, names and counts
 *   check_dirs.c     its directories
 *   check_segments.c checkpoints, segments, and what the logs say of the blocks that are held
 *
 * What is examined are the newest checkpoint and the snapshots: blocks of other checkpoints may
 * have been taken by the cleaner, which deletes these first, and are only examined as the DAT's
 * entries.
 *
 * Invariants:
 *  1. Nothing from the volume is believed before it was compared with something else.
 *  2. Memory grows with what is in use: tables of blocks exist for segments that hold some.
 *  3. Damage (-EUCLEAN), which has been told where it was found, and unreadable blocks end the
 *     examination of the structure they are in, and of nothing else.
 */
#ifndef LAYOUTFS_NILFS_CHECK_H
#define LAYOUTFS_NILFS_CHECK_H

#include <errno.h>

#include "layouts/nilfs/cpfile.h"
#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/log.h"

struct nilfs_check_window { /* the DAT's block that was asked for last */
    uint64_t offset;
    struct nilfs_view view; /* data NULL: none was */
};

struct nilfs_check {
    struct volume volume; /* a stand-in: device, clock, log, name, pool; nilfs when taken up */
    struct nilfs *nilfs;
    struct check_report *report;
    uint32_t **held; /* by segment: what holds each of its blocks (see nilfs_check_hold), 0:
                        nothing;     NULL: none are held */
    struct nilfs_check_window bitmap, entries; /* of the DAT: neighbours ask for the same ones */
    uint64_t alive;                            /* virtual blocks that the newest state points at */
    uint64_t *leftovers; /* inodes of the newest checkpoint without a name, freed by nobody */
    size_t leftover_count, leftover_room;
};

struct nilfs_check_inode {
    uint64_t ino;
    uint32_t links; /* i_links_count */
    uint32_t names; /* entries that were found; stops at the largest */
    uint8_t type;   /* i_mode >> 12 */
    /* directories */
    uint64_t blocks; /* of i_size */
    uint64_t parent; /* the directory with its name, 0: none found */
    uint64_t dotdot; /* what its ".." says */
    uint64_t mark;   /* walk to the root in which it was last met; 0: none */
};

struct nilfs_check_tree { /* of one checkpoint */
    struct nilfs_check *check;
    struct nilfs_file *ifile;
    uint64_t cno;                     /* 0: the newest; else a snapshot */
    char name[40];                    /* for messages: "", or "checkpoint 7: " */
    struct nilfs_check_inode *inodes; /* ascending */
    size_t count, room;
    uint64_t blocks; /* data and nodes of the ifile and all files */
};

/* A finding of CHECK_WRONG; and one that needs no mending. */
void nilfs_check_wrong(struct nilfs_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void nilfs_check_note(struct nilfs_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Invariant 3: 0 for damage and unreadable blocks, which are findings already. */
static inline int nilfs_check_go_on(int error) {
    return error == -EUCLEAN || error == -EIO ? 0 : error;
}
int nilfs_check_grow(void **array, size_t count, size_t *room, size_t element);

/* Notes what holds the (valid) disk block. The same may hold it in several checkpoints; something
 * else is a finding. */
int nilfs_check_hold(struct nilfs_check *check, const struct nilfs_log_item *item, uint64_t block);
/* What is kept of an item: never 0. */
uint32_t nilfs_check_identity(const struct nilfs_log_item *item);

/* The map of a file; `cno` 0: of the newest state, else of that checkpoint. *blocks: data and
 * nodes. */
int nilfs_check_map(struct nilfs_check *check, struct nilfs_file *file, uint64_t cno,
                    uint64_t *blocks);
/* Gives the blocks of the DAT back that were held for its entries. */
void nilfs_check_map_end(struct nilfs_check *check);
/* Bitmaps against counts; entries in use have a block. The DAT's are examined, too, and *alive is
 * how many have no end (NULL for other files). */
int nilfs_check_entries(struct nilfs_check *check, struct nilfs_file *file, const char *name,
                        uint64_t *alive);
int nilfs_check_tree(struct nilfs_check *check, uint64_t cno);
struct nilfs_check_inode *nilfs_check_inode_find(struct nilfs_check_tree *tree, uint64_t ino);
int nilfs_check_dirs(struct nilfs_check_tree *tree);
int nilfs_check_checkpoints(struct nilfs_check *check);
int nilfs_check_segments(struct nilfs_check *check);

#endif
