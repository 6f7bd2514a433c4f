/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, under mballoc.c; knows nothing but bits.
 *
 * A buddy map: which blocks of a group are free, as chunks of 2^order blocks that begin at a
 * multiple of their size. It answers at once whether there is a chunk of some size, and where.
 *
 * Invariants:
 *  1. The chunks are disjoint, and together they are the blocks whose bit in `used` is clear.
 *  2. No two chunks are buddies, which would be one chunk of the next order, but in the highest.
 *  3. free[order] counts the chunks of an order.
 */
#ifndef LAYOUTFS_EXT_BUDDY_H
#define LAYOUTFS_EXT_BUDDY_H

#include <stdint.h>

#define BUDDY_ORDERS 14u /* 8192 blocks, the most that are worth being in one piece */

struct buddy {
    uint32_t bits;                 /* blocks in the group */
    uint32_t free[BUDDY_ORDERS];   /* chunks */
    uint8_t *chunks[BUDDY_ORDERS]; /* owned; bit n: there is one at n << order */
    uint8_t *used;                 /* owned */
};

/* Memory for groups of up to `bits_max` blocks, a multiple of 64; all in use. -ENOMEM. */
int buddy_init(struct buddy *buddy, uint32_t bits_max);
void buddy_release(struct buddy *buddy);
/* From a bitmap of `bits` blocks, bits_max at most. */
void buddy_build(struct buddy *buddy, const void *bitmap, uint32_t bits);
/* [from, from + count) is free and comes into use; is in use and becomes free. */
void buddy_take(struct buddy *buddy, uint32_t from, uint32_t count);
void buddy_give(struct buddy *buddy, uint32_t from, uint32_t count);
/* A chunk of the smallest order, `order` or above, that there is: the first from `from` on, else
 * the first. Its first block, or buddy->bits: none. */
uint32_t buddy_find(const struct buddy *buddy, uint32_t order, uint32_t from);
/* Free blocks from `from` on, `limit` at most. */
uint32_t buddy_run(const struct buddy *buddy, uint32_t from, uint32_t limit);
/* The highest order of which there is a chunk, or -1. */
int buddy_largest(const struct buddy *buddy);

/* The order of the largest chunk that fits into `blocks`, and of the smallest that holds them, both
 * below BUDDY_ORDERS. blocks > 0. */
uint32_t buddy_order_within(uint64_t blocks);
uint32_t buddy_order_around(uint64_t blocks);

#endif
