/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over file.h. How each segment is used. nilfs->clean_segments follows.
 */
#ifndef LAYOUTFS_NILFS_SUFILE_H
#define LAYOUTFS_NILFS_SUFILE_H

#include "layouts/nilfs/file.h"

struct nilfs_usage {
    int64_t modified; /* seconds */
    uint32_t blocks;  /* written so far, from the segment's start */
    uint32_t flags;   /* enum nilfs_segment_flags, without NILFS_SU_ACTIVE; 0: clean */
};
struct nilfs_usage_totals {
    uint64_t clean, dirty, last_allocated;
};

int nilfs_sufile_totals(struct nilfs *nilfs, struct nilfs_usage_totals *totals); /* shared */
int nilfs_sufile_read(struct nilfs *nilfs, uint64_t segment,
                      struct nilfs_usage *usage); /* shared */
/* Makes the header's block and the segment's a changed block each, so that a later
 * nilfs_sufile_write changes no map. */
int nilfs_sufile_touch(struct nilfs *nilfs, uint64_t segment);
/* The segment's usage; it stays, or becomes, dirty; the totals follow. */
int nilfs_sufile_write(struct nilfs *nilfs, uint64_t segment, const struct nilfs_usage *usage);
/* The first clean one behind last_allocated, wrapping, becomes dirty with 0 blocks. It is none that
 * was freed since the last checkpoint (nilfs_sufile_free keeps note). -ENOSPC. */
int nilfs_sufile_allocate(struct nilfs *nilfs, uint64_t *segment);
/* It becomes clean; it may be allocated once the next checkpoint is durable. */
int nilfs_sufile_free(struct nilfs *nilfs, uint64_t segment);
/* Checkpoint `cno` is durable: what was freed while nilfs->cno was that, or less, may be allocated,
 * and is discarded before if that is wanted. */
void nilfs_sufile_release_freed(struct nilfs *nilfs, uint64_t cno);

#endif
