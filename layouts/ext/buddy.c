/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext. Interface and invariants: layouts/ext/buddy.h.
 */
#include "layouts/ext/buddy.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/bitmap.h"

uint32_t buddy_order_within(uint64_t blocks) {
    uint32_t order = 63 - (uint32_t)__builtin_clzll(blocks);
    return order < BUDDY_ORDERS ? order : BUDDY_ORDERS - 1;
}

uint32_t buddy_order_around(uint64_t blocks) {
    uint32_t order = buddy_order_within(blocks);
    return order + 1 < BUDDY_ORDERS && blocks > UINT64_C(1) << order ? order + 1 : order;
}

/* Bytes of a map of so many bits, in whole words. */
static uint32_t map_bytes(uint32_t bits) {
    return (bits + 63) / 64 * 8;
}

int buddy_init(struct buddy *buddy, uint32_t bits_max) {
    size_t size = map_bytes(bits_max);
    *buddy = (struct buddy){0};
    for (uint32_t order = 0; order < BUDDY_ORDERS; order++)
        size += map_bytes((bits_max >> order) + 1);
    buddy->used = calloc(1, size);
    if (!buddy->used)
        return -ENOMEM;
    uint8_t *at = buddy->used + map_bytes(bits_max);
    for (uint32_t order = 0; order < BUDDY_ORDERS; order++) {
        buddy->chunks[order] = at;
        at += map_bytes((bits_max >> order) + 1);
    }
    return 0;
}

void buddy_release(struct buddy *buddy) {
    free(buddy->used);
    *buddy = (struct buddy){0};
}

/* --- chunks ---------------------------------------------------------------------------------- */

static void chunk_add(struct buddy *buddy, uint32_t order, uint32_t index) {
    bitmap_set(buddy->chunks[order], index, 1);
    buddy->free[order]++;
}

static void chunk_remove(struct buddy *buddy, uint32_t order, uint32_t index) {
    bitmap_clear(buddy->chunks[order], index, 1);
    buddy->free[order]--;
}

/* Adds a chunk, together with its buddy when that is free as well, and so on. */
static void chunk_merge(struct buddy *buddy, uint32_t order, uint32_t index) {
    while (order + 1 < BUDDY_ORDERS && bitmap_test(buddy->chunks[order], index ^ 1)) {
        chunk_remove(buddy, order, index ^ 1);
        index /= 2;
        order++;
    }
    chunk_add(buddy, order, index);
}

/* Cuts [from, to) into as few chunks as can be, and hands each to `add`. */
static void run_cut(struct buddy *buddy, uint32_t from, uint32_t to,
                    void (*add)(struct buddy *, uint32_t order, uint32_t index)) {
    while (from < to) {
        uint32_t aligned = (uint32_t)__builtin_ctz(from | 1u << (BUDDY_ORDERS - 1));
        uint32_t order = buddy_order_within(to - from);
        if (order > aligned)
            order = aligned;
        add(buddy, order, from >> order);
        from += 1u << order;
    }
}

void buddy_build(struct buddy *buddy, const void *bitmap, uint32_t bits) {
    buddy->bits = bits;
    memcpy(buddy->used, bitmap, map_bytes(bits));
    for (uint32_t order = 0; order < BUDDY_ORDERS; order++) {
        memset(buddy->chunks[order], 0, map_bytes((bits >> order) + 1));
        buddy->free[order] = 0;
    }
    for (uint32_t from = bitmap_find_clear(buddy->used, 0, bits); from < bits;) {
        uint32_t to = bitmap_find_set(buddy->used, from, bits);
        run_cut(buddy, from, to, chunk_add);
        from = bitmap_find_clear(buddy->used, to, bits);
    }
}

void buddy_give(struct buddy *buddy, uint32_t from, uint32_t count) {
    bitmap_clear(buddy->used, from, count);
    run_cut(buddy, from, from + count, chunk_merge);
}

void buddy_take(struct buddy *buddy, uint32_t from, uint32_t count) {
    uint32_t at = from, to = from + count;
    bitmap_set(buddy->used, from, count);
    while (at < to) {
        uint32_t order = 0;
        while (!bitmap_test(buddy->chunks[order], at >> order))
            order++;
        uint32_t start = at >> order << order, end = start + (1u << order);
        chunk_remove(buddy, order, at >> order);
        if (start < from)
            run_cut(buddy, start, from, chunk_add);
        if (end > to)
            run_cut(buddy, to, end, chunk_add);
        at = end;
    }
}

uint32_t buddy_find(const struct buddy *buddy, uint32_t order, uint32_t from) {
    while (order < BUDDY_ORDERS && buddy->free[order] == 0)
        order++;
    if (order == BUDDY_ORDERS)
        return buddy->bits;
    uint32_t end = (buddy->bits >> order) + 1;
    uint32_t index =
        bitmap_find_set(buddy->chunks[order], (from + (1u << order) - 1) >> order, end);
    if (index >= end)
        index = bitmap_find_set(buddy->chunks[order], 0, end);
    return index << order;
}

uint32_t buddy_run(const struct buddy *buddy, uint32_t from, uint32_t limit) {
    if (limit > buddy->bits - from)
        limit = buddy->bits - from;
    return bitmap_find_set(buddy->used, from, from + limit) - from;
}

int buddy_largest(const struct buddy *buddy) {
    int order = BUDDY_ORDERS - 1;
    while (order >= 0 && buddy->free[order] == 0)
        order--;
    return order;
}
