/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/ctail.h. Every part of an item begins with the
 * shift, which is no unit.
 */
#include "layouts/reiser4/ctail.h"

#include <string.h>

static uint64_t place_in_cluster(const struct reiser4_item *item) {
    return item->key.word[REISER4_OFFSET] & ((UINT64_C(1) << reiser4_ctail_shift(item)) - 1);
}

static const char *ctail_check(const struct reiser4_item *item) {
    if (reiser4_key_type(&item->key) != REISER4_KEY_BODY)
        return "has bytes of a cluster, but not the key of such";
    if (item->length < 2)
        return "has no bytes of a cluster";
    if (reiser4_ctail_shift(item) < REISER4_CLUSTER_SHIFT_MIN ||
        reiser4_ctail_shift(item) > REISER4_CLUSTER_SHIFT_MAX)
        return "has bytes of a cluster of a size that cannot be";
    if (place_in_cluster(item) + reiser4_ctail_bytes(item) > UINT64_C(1)
                                                                 << reiser4_ctail_shift(item))
        return "has bytes of more than one cluster";
    return NULL;
}

static uint32_t ctail_units(const struct reiser4_item *item) {
    return reiser4_ctail_bytes(item);
}

static struct reiser4_key ctail_unit_key(const struct reiser4_item *item, uint32_t unit) {
    struct reiser4_key key = item->key;

    key.word[REISER4_OFFSET] += unit;
    return key;
}

static uint32_t ctail_head_length(const struct reiser4_item *item, uint32_t units) {
    (void)item;
    return units + 1;
}

static uint32_t ctail_tail_length(const struct reiser4_item *item, uint32_t unit) {
    return item->length - unit;
}

static uint32_t ctail_part(const struct reiser4_item *item, uint32_t from, uint32_t to,
                           uint8_t *body) {
    uint8_t shift = item->body[0];

    memmove(body + 1, item->body + 1 + from, to - from);
    body[0] = shift;
    return to - from + 1;
}

static bool ctail_mergeable(const struct reiser4_item *left, const struct reiser4_item *right) {
    return left->body[0] == right->body[0] && reiser4_key_same_object(&left->key, &right->key) &&
           place_in_cluster(right) != 0 &&
           left->key.word[REISER4_OFFSET] + reiser4_ctail_bytes(left) ==
               right->key.word[REISER4_OFFSET];
}

static uint32_t ctail_merged_length(const struct reiser4_item *left,
                                    const struct reiser4_item *right) {
    return left->length + right->length - 1;
}

static void ctail_merge(struct reiser4_item *left, const struct reiser4_item *right) {
    memcpy(left->body + left->length, right->body + 1, right->length - 1);
    left->length += right->length - 1;
}

const struct reiser4_item_kind reiser4_ctail_kind = {
    .name = "ctail40",
    .divisible = true,
    .check = ctail_check,
    .units = ctail_units,
    .unit_key = ctail_unit_key,
    .head_length = ctail_head_length,
    .tail_length = ctail_tail_length,
    .part = ctail_part,
    .mergeable = ctail_mergeable,
    .merged_length = ctail_merged_length,
    .merge = ctail_merge,
};
