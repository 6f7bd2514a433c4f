/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over item.h and plugin.h. stat40: the item that an object is found by.
 * Facts: docs/reiser4-format.md, "stat data".
 *
 * Invariant: decoding what was encoded gives the same, and encoding what was decoded gives the same
 * bytes, but for a second mask word of 0, which is dropped, and for slots that were stored in
 * another order than the ascending one.
 */
#ifndef LAYOUTFS_REISER4_STAT_H
#define LAYOUTFS_REISER4_STAT_H

#include "fs/clock.h"
#include "layouts/reiser4/item.h"
#include "layouts/reiser4/plugin.h"

#define REISER4_STAT_HAS(extension) (1u << (extension))
/* What a new object has, beside what its kind needs. */
#define REISER4_STAT_NEW                                                                           \
    (REISER4_STAT_HAS(REISER4_SD_LIGHT_WEIGHT) | REISER4_STAT_HAS(REISER4_SD_UNIX) |               \
     REISER4_STAT_HAS(REISER4_SD_LARGE_TIMES))
/* Symlinks whose stat data fit an item of either node format. */
#define REISER4_SYMLINK_MAX 3960u
/* S_IFREG and these bits: a file whose conversion was interrupted, and may have tails and extents.
 */
#define REISER4_MODE_MIXED 0110000u

struct reiser4_stat {
    uint16_t mask; /* extensions that are there: REISER4_STAT_HAS */
    uint16_t mode; /* as on disk, REISER4_MODE_MIXED included */
    uint32_t nlink, uid, gid;
    uint64_t size;
    uint64_t rdev_or_bytes;
    struct timestamp atime, mtime, ctime;
    const char *target; /* symlinks: borrowed, `size` bytes, not terminated; else NULL */
    uint32_t target_length;
    struct reiser4_slots plugins, heirs;
    uint32_t flags;
};

/* NULL, or what is wrong. target points into the item. */
const char *reiser4_stat_decode(const struct reiser4_item *item, struct reiser4_stat *stat);
/* Bytes that reiser4_stat_encode writes. A set without slots is left out, whatever the mask says.
 */
uint32_t reiser4_stat_length(const struct reiser4_stat *stat);
void reiser4_stat_encode(const struct reiser4_stat *stat, uint8_t *body);

#endif
