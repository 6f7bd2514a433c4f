/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over the device. A log on disk: validation and its items. Used by recovery,
 * the cleaner, check and describe. Trusts nothing.
 */
#ifndef LAYOUTFS_NILFS_LOG_READ_H
#define LAYOUTFS_NILFS_LOG_READ_H

#include "layouts/nilfs/log.h"

struct nilfs_log_head { /* of a valid log */
    uint64_t block;     /* its first */
    uint32_t flags;     /* enum nilfs_log_flags */
    uint64_t sequence;
    int64_t created;
    uint64_t next_block; /* first of the next segment */
    uint32_t blocks;
    uint32_t finfos;
    uint32_t summary_bytes, summary_blocks;
    uint64_t cno;
};

enum nilfs_log_checks { NILFS_CHECK_SUMMARY = 1, NILFS_CHECK_DATA = 2 };

/* Reads the head at `block`. *valid false: there is no valid log (why: *reason, static). -EIO and
 * the like as errors. `checks`: which checksums. */
int nilfs_log_read(struct device *device, const struct nilfs_geometry *g, uint64_t block,
                   unsigned checks, struct nilfs_log_head *head, bool *valid, const char **reason);
/* Calls visit for every payload block but the super root, in order, with its place. Stops when it
 * answers other than 0, and returns that. -EUCLEAN, with a sentence: items and header contradict
 * each other. Of a node of a file other than the DAT the log tells neither level nor key: its item
 * has level 1 and offset 0. */
typedef int (*nilfs_item_visit)(void *context, const struct nilfs_log_item *item, uint64_t block);
int nilfs_log_items(struct device *device, const struct nilfs_geometry *g,
                    const struct nilfs_log_head *head, nilfs_item_visit visit, void *context);

#endif
