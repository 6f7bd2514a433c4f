/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/units.h.
 */
#include "layouts/reiser4/units.h"

#include <assert.h>

#define HEADER ((uint32_t)sizeof(struct reiser4_disk_item))

struct reiser4_position reiser4_position_behind(struct reiser4_node node,
                                                const struct reiser4_key *key) {
    struct reiser4_position place = {.item = reiser4_node_upper(node, key)};

    if (place.item == 0)
        return place;
    struct reiser4_item item = reiser4_item_of(node, place.item - 1);
    uint32_t unit = reiser4_item_upper(&item, key);
    if (unit < reiser4_item_units(&item))
        place = (struct reiser4_position){place.item - 1, unit};
    return place;
}

bool reiser4_position_is_possible(struct reiser4_node node, struct reiser4_position place,
                                  const struct reiser4_item *item) {
    return place.unit == 0 || (reiser4_node_id(node, place.item) == item->id &&
                               reiser4_item_kind(item->id)->same_keys);
}

/* --- lengths -----------------------------------------------------------------------------------
 */

/* What the two together need less than each for itself. */
static uint32_t saved(const struct reiser4_item *left, const struct reiser4_item *right) {
    return left->length + right->length - reiser4_item_kind(left->id)->merged_length(left, right);
}

/* The item before the place, or the one that the place is in: can units be put behind its own? */
static bool joins_left(struct reiser4_node node, struct reiser4_position place,
                       const struct reiser4_item *item, struct reiser4_item *left) {
    if (place.unit == 0 && place.item == 0)
        return false;
    *left = reiser4_item_of(node, place.unit > 0 ? place.item : place.item - 1);
    return reiser4_item_mergeable(left, item) ||
           (place.unit > 0 && left->id == item->id); /* reiser4_position_is_possible */
}

static bool joins_right(struct reiser4_node node, struct reiser4_position place,
                        const struct reiser4_item *item, struct reiser4_item *right) {
    if (place.unit > 0 || place.item >= reiser4_node_items(node))
        return false;
    *right = reiser4_item_of(node, place.item);
    return reiser4_item_mergeable(item, right);
}

/* --- putting -----------------------------------------------------------------------------------
 */

/* The units go behind those of item i. */
static void append(struct reiser4_node node, uint32_t i, const struct reiser4_item *item) {
    struct reiser4_item left = reiser4_item_of(node, i);
    uint32_t grows = item->length - saved(&left, item);

    if (grows > 0)
        reiser4_node_open(node, i, left.length, grows);
    reiser4_item_kind(left.id)->merge(&left, item);
}

/* The units go before those of item i. */
static void prepend(struct reiser4_node node, uint32_t i, const struct reiser4_item *item) {
    uint8_t copy[REISER4_BLOCK_SIZE];
    struct reiser4_item right = reiser4_item_of(node, i), left = *item;

    memcpy(copy, right.body, right.length);
    if (item->length > saved(item, &right))
        reiser4_node_open(node, i, right.length, item->length - saved(item, &right));
    left.body = right.body;
    memcpy(left.body, item->body, item->length);
    right.body = copy;
    reiser4_item_kind(left.id)->merge(&left, &right);
    reiser4_node_set_key(node, i, &item->key);
}

/* Item i is to have its first `units` units only. */
static void truncate_item(struct reiser4_node node, uint32_t i, uint32_t units) {
    struct reiser4_item item = reiser4_item_of(node, i);
    uint32_t length = reiser4_item_kind(item.id)->part(&item, 0, units, item.body);

    reiser4_node_close(node, i, length, item.length - length);
}

/* A part of an item as an item, in `body`. */
static struct reiser4_item part_of(const struct reiser4_item *item, uint32_t from, uint32_t to,
                                   uint8_t *body) {
    struct reiser4_item part = {.key = reiser4_item_unit_key(item, from), .id = item->id};

    part.body = body;
    if (reiser4_item_kind(item->id)->divisible) {
        part.length = reiser4_item_kind(item->id)->part(item, from, to, body);
    } else {
        memcpy(body, item->body, item->length);
        part.length = item->length;
    }
    return part;
}

/* Items i - 1 and i become one, if they can. */
static void heal(struct reiser4_node node, uint32_t i) {
    uint8_t copy[REISER4_BLOCK_SIZE];

    if (i == 0 || i >= reiser4_node_items(node))
        return;
    struct reiser4_item left = reiser4_item_of(node, i - 1), right = reiser4_item_of(node, i);
    if (!reiser4_item_mergeable(&left, &right))
        return;
    memcpy(copy, right.body, right.length);
    right.body = copy;
    reiser4_node_remove(node, i, 1);
    append(node, i - 1, &right);
}

/* In between units of an item. */
static void put_inside(struct reiser4_node node, struct reiser4_position place,
                       const struct reiser4_item *item) {
    uint8_t copy[REISER4_BLOCK_SIZE];
    struct reiser4_item whole = reiser4_item_of(node, place.item);
    struct reiser4_item behind = part_of(&whole, place.unit, reiser4_item_units(&whole), copy);

    truncate_item(node, place.item, place.unit);
    append(node, place.item, item);
    append(node, place.item, &behind);
}

/* There is room: on one side at least, where it joins two items. */
static void put_all(struct reiser4_node node, struct reiser4_position place,
                    const struct reiser4_item *item) {
    struct reiser4_item left, right;

    if (place.unit > 0) {
        put_inside(node, place, item);
    } else if (joins_left(node, place, item, &left) &&
               item->length <= reiser4_node_free(node) + saved(&left, item)) {
        append(node, place.item - 1, item);
        heal(node, place.item);
    } else if (joins_right(node, place, item, &right)) {
        prepend(node, place.item, item);
        heal(node, place.item);
    } else {
        memcpy(reiser4_node_insert(node, place.item, &item->key, item->id, item->length),
               item->body, item->length);
    }
}

uint32_t reiser4_units_put(struct reiser4_node node, struct reiser4_position place,
                           const struct reiser4_item *item) {
    uint8_t copy[REISER4_BLOCK_SIZE];
    uint32_t free = reiser4_node_free(node), units = reiser4_item_units(item);
    struct reiser4_item left, right;
    bool joined = joins_left(node, place, item, &left);
    uint32_t room = joined ? free + saved(&left, item) : free > HEADER ? free - HEADER : 0;

    if (item->length <= room ||
        (joins_right(node, place, item, &right) && item->length <= free + saved(item, &right))) {
        put_all(node, place, item);
        return units;
    }
    units = reiser4_item_fit_head(item, room);
    if (units > 0) {
        struct reiser4_item part = part_of(item, 0, units, copy);
        put_all(node, place, &part);
    }
    return units;
}

/* --- taking ------------------------------------------------------------------------------------
 */

static void take_front(struct reiser4_node node, uint32_t i, uint32_t count) {
    struct reiser4_item item = reiser4_item_of(node, i);
    struct reiser4_key key = reiser4_item_unit_key(&item, count);
    uint32_t length =
        reiser4_item_kind(item.id)->part(&item, count, reiser4_item_units(&item), item.body);

    reiser4_node_close(node, i, length, item.length - length);
    reiser4_node_set_key(node, i, &key);
}

static void take_middle(struct reiser4_node node, struct reiser4_position place, uint32_t count,
                        struct reiser4_item *rest) {
    struct reiser4_item item = reiser4_item_of(node, place.item);

    *rest = part_of(&item, place.unit + count, reiser4_item_units(&item), rest->body);
    truncate_item(node, place.item, place.unit);
    item = reiser4_item_of(node, place.item);
    if (reiser4_item_mergeable(&item, rest))
        append(node, place.item, rest);
    else if (rest->length + HEADER <= reiser4_node_free(node))
        put_all(node, (struct reiser4_position){place.item + 1, 0}, rest);
    else
        return;
    rest->length = 0;
}

void reiser4_units_take(struct reiser4_node node, struct reiser4_position place, uint32_t count,
                        struct reiser4_item *rest) {
    struct reiser4_item item = reiser4_item_of(node, place.item);
    uint32_t units = reiser4_item_units(&item);

    assert(count > 0 && place.unit + count <= units);
    rest->length = 0;
    if (count == units) {
        reiser4_node_remove(node, place.item, 1);
        heal(node, place.item);
    } else if (place.unit == 0) {
        take_front(node, place.item, count);
    } else if (place.unit + count == units) {
        truncate_item(node, place.item, place.unit);
    } else {
        take_middle(node, place, count, rest);
    }
}

/* --- moving ------------------------------------------------------------------------------------
 */

/* Moves at most `most` units from the front of the first item. Returns their number. */
static uint32_t move_first(struct reiser4_node node, struct reiser4_node left, uint32_t most) {
    uint8_t body[REISER4_BLOCK_SIZE], unused[REISER4_BLOCK_SIZE];
    struct reiser4_item item = reiser4_item_of(node, 0), rest = {.body = unused};
    struct reiser4_item part = part_of(&item, 0, most, body);
    uint32_t moved = reiser4_units_put(left, reiser4_position_end(left), &part);

    if (moved > 0)
        reiser4_units_take(node, (struct reiser4_position){0}, moved, &rest);
    return moved;
}

bool reiser4_units_move_left(struct reiser4_node node, struct reiser4_node left,
                             struct reiser4_position *place) {
    bool any = false;

    while (place->item > 0 || place->unit > 0) {
        struct reiser4_item item = reiser4_item_of(node, 0);
        uint32_t units = reiser4_item_units(&item), most = place->item > 0 ? units : place->unit;
        uint32_t moved = move_first(node, left, most);

        any |= moved > 0;
        if (place->item == 0)
            place->unit -= moved;
        else if (moved == units)
            place->item--;
        if (moved < most)
            break;
    }
    return any;
}

/* Moves units from the end of the last item, none before unit `first`. Returns whether there are
 * none left from there on. */
static bool move_last(struct reiser4_node node, struct reiser4_node right, uint32_t first,
                      bool *any) {
    uint8_t body[REISER4_BLOCK_SIZE], unused[REISER4_BLOCK_SIZE];
    uint32_t last = reiser4_node_items(node) - 1, free = reiser4_node_free(right);
    struct reiser4_item item = reiser4_item_of(node, last), neighbour, rest = {.body = unused};
    bool joined = joins_right(right, (struct reiser4_position){0}, &item, &neighbour);
    uint32_t room = joined ? free + saved(&item, &neighbour) : free > HEADER ? free - HEADER : 0;
    uint32_t units = reiser4_item_units(&item), count = reiser4_item_fit_tail(&item, room);

    if (count > units - first)
        count = units - first;
    if (count == 0)
        return false;
    struct reiser4_item part = part_of(&item, units - count, units, body);
    put_all(right, (struct reiser4_position){0}, &part);
    reiser4_units_take(node, (struct reiser4_position){last, units - count}, count, &rest);
    *any = true;
    return units - count == first;
}

bool reiser4_units_move_right(struct reiser4_node node, struct reiser4_node right,
                              struct reiser4_position *place) {
    bool any = false, all = true;

    while (all && place->item < reiser4_node_items(node)) {
        bool reached = place->item + 1 == reiser4_node_items(node);
        all = move_last(node, right, reached ? place->unit : 0, &any);
        if (reached && all) {
            *place = reiser4_position_end(node);
            break;
        }
    }
    return any;
}
