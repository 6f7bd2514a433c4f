/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext. Interface and invariants: layouts/ext/hold.h.
 */
#include "layouts/ext/hold.h"

#include <stddef.h>

static int hold_compare(const struct ext_hold *a, const struct ext_hold *b) {
    return (a->block > b->block) - (a->block < b->block);
}

RB_GENERATE_INTERNAL(ext_hold_tree, ext_hold, link, hold_compare, static __attribute__((unused)))

void ext_holds_init(struct ext_holds *holds) {
    RB_INIT(&holds->tree);
    TAILQ_INIT(&holds->by_time);
    holds->count = 0;
}

void ext_hold_set(struct ext_holds *holds, struct ext_hold *hold, uint64_t block, uint32_t count) {
    hold->block = block;
    hold->count = count;
    RB_INSERT(ext_hold_tree, &holds->tree, hold);
    TAILQ_INSERT_TAIL(&holds->by_time, hold, by_time);
    holds->count++;
}

void ext_hold_drop(struct ext_holds *holds, struct ext_hold *hold) {
    if (hold->count == 0)
        return;
    RB_REMOVE(ext_hold_tree, &holds->tree, hold);
    TAILQ_REMOVE(&holds->by_time, hold, by_time);
    hold->count = 0;
    holds->count--;
}

void ext_hold_advance(struct ext_holds *holds, struct ext_hold *hold, uint64_t block) {
    uint64_t end = hold->block + hold->count;
    if (block == end) {
        ext_hold_drop(holds, hold);
        return;
    }
    hold->block = block; /* its place among the others, which are disjoint, is the same */
    hold->count = (uint32_t)(end - block);
}

struct ext_hold *ext_holds_from(struct ext_holds *holds, uint64_t block) {
    struct ext_hold key = {.block = block};
    struct ext_hold *next = RB_NFIND(ext_hold_tree, &holds->tree, &key);
    struct ext_hold *before =
        next ? RB_PREV(ext_hold_tree, &holds->tree, next) : RB_MAX(ext_hold_tree, &holds->tree);
    return before && before->block + before->count > block ? before : next;
}

struct ext_hold *ext_holds_next(struct ext_hold *hold) {
    return RB_NEXT(ext_hold_tree, NULL, hold);
}

uint32_t ext_holds_clip(struct ext_holds *holds, const struct ext_hold *own, uint64_t block,
                        uint32_t count, uint64_t *end) {
    struct ext_hold *hold = ext_holds_from(holds, block);
    if (hold && hold == own)
        hold = ext_holds_next(hold);
    if (!hold || hold->block >= block + count)
        return count;
    if (hold->block > block)
        return (uint32_t)(hold->block - block);
    *end = hold->block + hold->count;
    return 0;
}
