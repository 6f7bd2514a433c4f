/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface: fs/reserve.h.
 */
#include "fs/reserve.h"

#include <errno.h>

#include "fs/volume.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* How many of `count` more pending blocks there is room for. */
static uint64_t room_for(struct inode *inode, const struct reserve_rules *rules, uint64_t count) {
    uint64_t fits = 0, over = count + 1; /* there is room for `fits`, not for `over` */

    if (rules->has_room(inode, count))
        return count;
    while (over - fits > 1) {
        uint64_t middle = fits + (over - fits) / 2;
        if (rules->has_room(inode, middle))
            fits = middle;
        else
            over = middle;
    }
    return fits;
}

/* Makes [at, end) pending from the start on as far as there is room; up to where. */
static int64_t reserve_blocks(struct inode *inode, const struct reserve_rules *rules, uint64_t at,
                              uint64_t end) {
    while (at < end) {
        uint64_t start, stop;
        if (!block_set_next(rules->pending(inode), at, &start, &stop))
            start = stop = end;
        if (start <= at) {
            at = smaller(stop, end);
            continue;
        }
        start = smaller(start, end);
        uint64_t room = room_for(inode, rules, start - at);
        int error = room > 0 ? rules->add(inode, at, at + room) : 0;
        if (error)
            return error;
        if (room < start - at)
            return (int64_t)(at + room);
        at = start;
    }
    return (int64_t)end;
}

int64_t reserve_pending(struct inode *inode, const struct reserve_rules *rules, uint32_t block_bits,
                        uint64_t offset, uint64_t length) {
    uint64_t max = inode->volume->limits.file_size_max, first = offset >> block_bits;

    if (length == 0)
        return 0;
    if (offset >= max)
        return -EFBIG;
    length = smaller(length, max - offset);
    int64_t end = reserve_blocks(inode, rules, first, ((offset + length - 1) >> block_bits) + 1);
    if (end < 0)
        return end;
    if ((uint64_t)end <= first)
        return -ENOSPC;
    return (int64_t)smaller(length, ((uint64_t)end << block_bits) - offset);
}
