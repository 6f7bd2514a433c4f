/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over fs/layout.h and fs/block_set.h. The contract's `reserve` for layouts that only
 * count what a program writes, and find places when it is stored.
 *
 * A block whose new contents are in the page cache alone is *pending*. A pending block has its
 * promise already; each other one of the range gets one, from the start on, as far as there is
 * room.
 */
#ifndef LAYOUTFS_RESERVE_H
#define LAYOUTFS_RESERVE_H

#include "fs/block_set.h"
#include "fs/layout.h"

struct reserve_rules { /* a layout's; called under the locks of `reserve` */
    /* The file's pending blocks. */
    const struct block_set *(*pending)(struct inode *inode);
    /* Is there room for `count` > 0 more, in a row? Where there is, there is for fewer. */
    bool (*has_room)(struct inode *inode, uint64_t count);
    /* [from, to), none of which is pending, are from now on. */
    int (*add)(struct inode *inode, uint64_t from, uint64_t to);
};

/* As layout->reserve; blocks of 1 << block_bits bytes. -ENOMEM and what `add` answers, too. */
int64_t reserve_pending(struct inode *inode, const struct reserve_rules *rules, uint32_t block_bits,
                        uint64_t offset, uint64_t length);

#endif
