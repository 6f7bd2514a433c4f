/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over item.h. extent40: where blocks of a file lie. A unit is a run of
 * blocks, which lie in a row on the device, or are a hole, or (in core only) are still to be
 * placed.
 *
 * Invariants of a sound item (reiser4_extent_kind.check):
 *  1. The key is a body's, its offset a multiple of the block size.
 *  2. The length is a multiple of 16; the widths' sum, in bytes, added to the offset stays below
 *     2^64.
 *  3. On disk no unit is unallocated. (What is in a jnode has not come from a disk: there they are
 *     allowed, until flush has placed them.)
 * Whether blocks lie in the volume is for who follows them to see (reiser4_block_valid).
 */
#ifndef LAYOUTFS_REISER4_EXTENT_H
#define LAYOUTFS_REISER4_EXTENT_H

#include "layouts/reiser4/item.h"

struct reiser4_extent {
    uint64_t offset; /* bytes in the file */
    uint64_t start;  /* block, REISER4_EXTENT_HOLE or REISER4_EXTENT_UNALLOCATED */
    uint64_t width;  /* blocks */
};

static inline bool reiser4_extent_is_allocated(const struct reiser4_extent *extent) {
    return extent->start > REISER4_EXTENT_UNALLOCATED;
}
/* The unit's extent; costs a pass over the units before it. */
struct reiser4_extent reiser4_extent_load(const struct reiser4_item *item, uint32_t unit);
void reiser4_extent_store(uint8_t *body, uint32_t unit, uint64_t start, uint64_t width);
/* Can `right`, which follows in the file, be one unit with `left`? */
bool reiser4_extent_continues(const struct reiser4_extent *left,
                              const struct reiser4_extent *right);

#endif
