/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/extent.h.
 */
#include "layouts/reiser4/extent.h"

#include <string.h>

#define UNIT ((uint32_t)sizeof(struct reiser4_disk_extent))

static struct reiser4_disk_extent *unit_of(uint8_t *body, uint32_t unit) {
    return (struct reiser4_disk_extent *)body + unit;
}

static uint32_t extent_units(const struct reiser4_item *item) {
    return item->length / UNIT;
}

static uint64_t width_of(const struct reiser4_item *item, uint32_t unit) {
    return le64_load(unit_of(item->body, unit)->width);
}

static const char *extent_check(const struct reiser4_item *item) {
    uint64_t end = item->key.word[REISER4_OFFSET], bytes;

    if (reiser4_key_type(&item->key) != REISER4_KEY_BODY || end % REISER4_BLOCK_SIZE != 0)
        return "has extents, but not the key of such";
    if (item->length % UNIT != 0)
        return "has a part of an extent";
    for (uint32_t i = 0; i < extent_units(item); i++) {
        if (le64_load(unit_of(item->body, i)->start) == REISER4_EXTENT_UNALLOCATED)
            return "has an extent without a place";
        if (__builtin_mul_overflow(width_of(item, i), REISER4_BLOCK_SIZE, &bytes) ||
            __builtin_add_overflow(end, bytes, &end))
            return "has an extent behind the largest offset";
    }
    return NULL;
}

static struct reiser4_key extent_unit_key(const struct reiser4_item *item, uint32_t unit) {
    struct reiser4_key key = item->key;

    for (uint32_t i = 0; i < unit; i++)
        key.word[REISER4_OFFSET] += width_of(item, i) * REISER4_BLOCK_SIZE;
    return key;
}

static uint32_t extent_head_length(const struct reiser4_item *item, uint32_t units) {
    (void)item;
    return units * UNIT;
}

static uint32_t extent_tail_length(const struct reiser4_item *item, uint32_t unit) {
    return item->length - unit * UNIT;
}

static uint32_t extent_part(const struct reiser4_item *item, uint32_t from, uint32_t to,
                            uint8_t *body) {
    memmove(body, item->body + from * UNIT, (to - from) * UNIT);
    return (to - from) * UNIT;
}

static bool extent_mergeable(const struct reiser4_item *left, const struct reiser4_item *right) {
    struct reiser4_key end = extent_unit_key(left, extent_units(left));

    return reiser4_key_compare(&end, &right->key) == 0;
}

/* Do the two become one unit where the items meet? */
static bool join(const struct reiser4_item *left, const struct reiser4_item *right) {
    struct reiser4_extent last = reiser4_extent_load(left, extent_units(left) - 1);
    struct reiser4_extent first = reiser4_extent_load(right, 0);

    return reiser4_extent_continues(&last, &first);
}

static uint32_t extent_merged_length(const struct reiser4_item *left,
                                     const struct reiser4_item *right) {
    return left->length + right->length - (join(left, right) ? UNIT : 0);
}

static void extent_merge(struct reiser4_item *left, const struct reiser4_item *right) {
    uint32_t joined = join(left, right), last = extent_units(left) - 1;

    if (joined)
        le64_store(&unit_of(left->body, last)->width, width_of(left, last) + width_of(right, 0));
    memcpy(left->body + left->length, right->body + joined * UNIT, right->length - joined * UNIT);
    left->length += right->length - joined * UNIT;
}

const struct reiser4_item_kind reiser4_extent_kind = {
    .name = "extent40",
    .divisible = true,
    .twig = true,
    .check = extent_check,
    .units = extent_units,
    .unit_key = extent_unit_key,
    .head_length = extent_head_length,
    .tail_length = extent_tail_length,
    .part = extent_part,
    .mergeable = extent_mergeable,
    .merged_length = extent_merged_length,
    .merge = extent_merge,
};

struct reiser4_extent reiser4_extent_load(const struct reiser4_item *item, uint32_t unit) {
    return (struct reiser4_extent){
        .offset = extent_unit_key(item, unit).word[REISER4_OFFSET],
        .start = le64_load(unit_of(item->body, unit)->start),
        .width = width_of(item, unit),
    };
}

void reiser4_extent_store(uint8_t *body, uint32_t unit, uint64_t start, uint64_t width) {
    le64_store(&unit_of(body, unit)->start, start);
    le64_store(&unit_of(body, unit)->width, width);
}

bool reiser4_extent_continues(const struct reiser4_extent *left,
                              const struct reiser4_extent *right) {
    if (!reiser4_extent_is_allocated(left))
        return left->start == right->start;
    return reiser4_extent_is_allocated(right) && left->start + left->width == right->start;
}
