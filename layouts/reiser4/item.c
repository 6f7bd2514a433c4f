/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. The table of item kinds, what works for all of them, and the kinds that
 * are nothing but bytes or a number. Interface: layouts/reiser4/item.h.
 */
#include "layouts/reiser4/item.h"

static const struct reiser4_item_kind *const kinds[REISER4_ITEM_COUNT] = {
    [REISER4_ITEM_STAT] = &reiser4_stat_kind,
    [REISER4_ITEM_ENTRIES] = &reiser4_entries_kind,
    [REISER4_ITEM_POINTER] = &reiser4_pointer_kind,
    [REISER4_ITEM_EXTENT] = &reiser4_extent_kind,
    [REISER4_ITEM_TAIL] = &reiser4_tail_kind,
    [REISER4_ITEM_CTAIL] = &reiser4_ctail_kind,
    [REISER4_ITEM_SAFELINK] = &reiser4_safelink_kind,
};

const struct reiser4_item_kind *reiser4_item_kind(uint32_t id) {
    return id < REISER4_ITEM_COUNT ? kinds[id] : NULL;
}

bool reiser4_item_at_level(uint32_t id, uint32_t level) {
    const struct reiser4_item_kind *kind = reiser4_item_kind(id);

    if (!kind)
        return false;
    if (id == REISER4_ITEM_POINTER)
        return level >= REISER4_TWIG;
    return level == (kind->twig ? REISER4_TWIG : REISER4_LEAF);
}

/* --- units -------------------------------------------------------------------------------------
 */

static const struct reiser4_item_kind *kind_of(const struct reiser4_item *item) {
    return kinds[item->id];
}

uint32_t reiser4_item_units(const struct reiser4_item *item) {
    return kind_of(item)->divisible ? kind_of(item)->units(item) : 1;
}

struct reiser4_key reiser4_item_unit_key(const struct reiser4_item *item, uint32_t unit) {
    return unit > 0 ? kind_of(item)->unit_key(item, unit) : item->key;
}

static uint32_t units_below(const struct reiser4_item *item, const struct reiser4_key *key,
                            int limit) {
    uint32_t low = 0, high = reiser4_item_units(item);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct reiser4_key found = reiser4_item_unit_key(item, middle);
        if (reiser4_key_compare(&found, key) < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t reiser4_item_lower(const struct reiser4_item *item, const struct reiser4_key *key) {
    return units_below(item, key, 0);
}

uint32_t reiser4_item_upper(const struct reiser4_item *item, const struct reiser4_key *key) {
    return units_below(item, key, 1);
}

bool reiser4_item_mergeable(const struct reiser4_item *left, const struct reiser4_item *right) {
    return left->id == right->id && kind_of(left)->divisible &&
           kind_of(left)->mergeable(left, right);
}

uint32_t reiser4_item_fit_head(const struct reiser4_item *item, uint32_t room) {
    uint32_t low = 0, high = reiser4_item_units(item);

    if (item->length <= room)
        return high;
    if (!kind_of(item)->divisible)
        return 0;
    /* low units fit, high do not. */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (kind_of(item)->head_length(item, middle) <= room)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint32_t reiser4_item_fit_tail(const struct reiser4_item *item, uint32_t room) {
    uint32_t units = reiser4_item_units(item), low = 0, high = units;

    if (item->length <= room)
        return high;
    if (!kind_of(item)->divisible)
        return 0;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (kind_of(item)->tail_length(item, units - middle) <= room)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* --- nodeptr40 ---------------------------------------------------------------------------------
 */

static const char *pointer_check(const struct reiser4_item *item) {
    return item->length == sizeof(struct reiser4_disk_pointer)
               ? NULL
               : "is no pointer: its length is wrong";
}

const struct reiser4_item_kind reiser4_pointer_kind = {
    .name = "nodeptr40",
    .twig = true,
    .check = pointer_check,
};

/* --- plain40: a unit is a byte ------------------------------------------------------------------
 */

static const char *tail_check(const struct reiser4_item *item) {
    if (reiser4_key_type(&item->key) != REISER4_KEY_BODY)
        return "has bytes of a file, but not the key of such";
    return item->key.word[REISER4_OFFSET] <= UINT64_MAX - item->length
               ? NULL
               : "has bytes behind the largest offset";
}

static uint32_t tail_units(const struct reiser4_item *item) {
    return item->length;
}

static struct reiser4_key tail_unit_key(const struct reiser4_item *item, uint32_t unit) {
    struct reiser4_key key = item->key;

    key.word[REISER4_OFFSET] += unit;
    return key;
}

static uint32_t tail_head_length(const struct reiser4_item *item, uint32_t units) {
    (void)item;
    return units;
}

static uint32_t tail_tail_length(const struct reiser4_item *item, uint32_t unit) {
    return item->length - unit;
}

static uint32_t tail_part(const struct reiser4_item *item, uint32_t from, uint32_t to,
                          uint8_t *body) {
    memmove(body, item->body + from, to - from);
    return to - from;
}

static bool tail_mergeable(const struct reiser4_item *left, const struct reiser4_item *right) {
    return reiser4_key_same_object(&left->key, &right->key) &&
           left->key.word[REISER4_OFFSET] + left->length == right->key.word[REISER4_OFFSET];
}

static uint32_t tail_merged_length(const struct reiser4_item *left,
                                   const struct reiser4_item *right) {
    return left->length + right->length;
}

static void tail_merge(struct reiser4_item *left, const struct reiser4_item *right) {
    memcpy(left->body + left->length, right->body, right->length);
    left->length += right->length;
}

const struct reiser4_item_kind reiser4_tail_kind = {
    .name = "plain40",
    .divisible = true,
    .check = tail_check,
    .units = tail_units,
    .unit_key = tail_unit_key,
    .head_length = tail_head_length,
    .tail_length = tail_tail_length,
    .part = tail_part,
    .mergeable = tail_mergeable,
    .merged_length = tail_merged_length,
    .merge = tail_merge,
};
