/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/entries.h.
 */
#include "layouts/reiser4/entries.h"

#include <string.h>

#define HEADER ((uint32_t)sizeof(struct reiser4_disk_entry))
#define OBJECT ((uint32_t)sizeof(struct reiser4_disk_object))
#define COUNT  ((uint32_t)sizeof(struct reiser4_disk_entries))

static struct reiser4_disk_entries *entries_of(const struct reiser4_item *item) {
    return (struct reiser4_disk_entries *)item->body;
}

static uint32_t entries_units(const struct reiser4_item *item) {
    return le16_load(entries_of(item)->count);
}

static struct reiser4_key entries_unit_key(const struct reiser4_item *item, uint32_t unit) {
    const struct reiser4_disk_entry *entry = &entries_of(item)->entry[unit];

    return (struct reiser4_key){{item->key.word[REISER4_LOCALITY], le64_load(entry->ordering),
                                 le64_load(entry->objectid), le64_load(entry->offset)}};
}

/* Where a unit's body starts; of the unit behind the last one: where the item ends. */
static uint32_t body_offset(const struct reiser4_item *item, uint32_t unit) {
    return unit < entries_units(item) ? le16_load(entries_of(item)->entry[unit].body)
                                      : item->length;
}

/* --- validation --------------------------------------------------------------------------------
 */

static const char *check_name(const struct reiser4_key *key, const uint8_t *name, uint32_t length) {
    char short_name[REISER4_NAME_IN_KEY];

    if (!reiser4_key_is_hashed(key)) {
        if (length > 0)
            return "has an entry with bytes behind its object";
        return reiser4_name_of_key(key, short_name) > 0 ? NULL
                                                        : "has an entry whose key is no name";
    }
    if (length < REISER4_NAME_IN_KEY + 2 || length > REISER4_NAME_MAX + 1)
        return "has an entry with a name of a length that cannot be";
    if (memchr(name, '\0', length) != name + length - 1 || memchr(name, '/', length))
        return "has an entry with a name that cannot be";
    return NULL;
}

static const char *check_unit(const struct reiser4_item *item, uint32_t unit) {
    uint32_t start = body_offset(item, unit), end = body_offset(item, unit + 1);
    struct reiser4_key key = entries_unit_key(item, unit);
    struct reiser4_object object;

    if (end > item->length || start > end || end - start < OBJECT)
        return "has entries that are not in their places";
    if (unit > 0) {
        struct reiser4_key before = entries_unit_key(item, unit - 1);
        if (reiser4_key_compare(&before, &key) > 0)
            return "has entries that are not in the order of their keys";
    }
    if (!reiser4_object_load((const struct reiser4_disk_object *)(item->body + start), &object))
        return "has an entry that means no object";
    return check_name(&key, item->body + start + OBJECT, end - start - OBJECT);
}

static const char *entries_check(const struct reiser4_item *item) {
    if (reiser4_key_type(&item->key) != REISER4_KEY_NAME)
        return "has directory entries, but not the key of such";
    if (item->length < COUNT + HEADER + OBJECT || entries_units(item) == 0)
        return "has no directory entries";
    if (COUNT + entries_units(item) * HEADER > item->length ||
        body_offset(item, 0) != COUNT + entries_units(item) * HEADER)
        return "has entries that are not in their places";
    struct reiser4_key first = entries_unit_key(item, 0);
    if (reiser4_key_compare(&first, &item->key) != 0)
        return "has another key than its first entry";
    for (uint32_t i = 0; i < entries_units(item); i++) {
        const char *wrong = check_unit(item, i);
        if (wrong)
            return wrong;
    }
    return NULL;
}

/* --- parts -------------------------------------------------------------------------------------
 */

/* Headers and bodies of [from, to). */
static uint32_t part_length(const struct reiser4_item *item, uint32_t from, uint32_t to) {
    return COUNT + (to - from) * HEADER + body_offset(item, to) - body_offset(item, from);
}

static uint32_t entries_head_length(const struct reiser4_item *item, uint32_t units) {
    return part_length(item, 0, units);
}

static uint32_t entries_tail_length(const struct reiser4_item *item, uint32_t unit) {
    return part_length(item, unit, entries_units(item));
}

/* The bodies of `count` headers lie `down` bytes further down in the item than they say, or up. */
static void move_bodies(struct reiser4_disk_entry *entry, uint32_t count, int32_t down) {
    for (uint32_t i = 0; i < count; i++)
        le16_store(&entry[i].body, (uint16_t)(le16_load(entry[i].body) - down));
}

static uint32_t entries_part(const struct reiser4_item *item, uint32_t from, uint32_t to,
                             uint8_t *body) {
    struct reiser4_disk_entries *target = (struct reiser4_disk_entries *)body;
    uint32_t start = body_offset(item, from), bodies = body_offset(item, to) - start;
    uint32_t count = to - from, headers = COUNT + count * HEADER;

    memmove(target->entry, entries_of(item)->entry + from, count * HEADER);
    memmove(body + headers, item->body + start, bodies);
    le16_store(&target->count, (uint16_t)count);
    move_bodies(target->entry, count, (int32_t)(start - headers));
    return headers + bodies;
}

static bool entries_mergeable(const struct reiser4_item *left, const struct reiser4_item *right) {
    return left->key.word[REISER4_LOCALITY] == right->key.word[REISER4_LOCALITY];
}

static uint32_t entries_merged_length(const struct reiser4_item *left,
                                      const struct reiser4_item *right) {
    return left->length + right->length - COUNT;
}

static void entries_merge(struct reiser4_item *left, const struct reiser4_item *right) {
    uint32_t before = entries_units(left), added = entries_units(right);
    uint32_t bodies = body_offset(left, 0), right_bodies = body_offset(right, 0);
    struct reiser4_disk_entry *entry = entries_of(left)->entry;
    uint32_t length = entries_merged_length(left, right);

    /* The left's bodies make room for the right's headers; the right's come behind them. */
    memmove(left->body + bodies + added * HEADER, left->body + bodies, left->length - bodies);
    memcpy(left->body + left->length + added * HEADER, right->body + right_bodies,
           right->length - right_bodies);
    memcpy(entry + before, entries_of(right)->entry, added * HEADER);
    move_bodies(entry, before, -(int32_t)(added * HEADER));
    move_bodies(entry + before, added,
                (int32_t)right_bodies - (int32_t)(left->length + added * HEADER));
    le16_store(&entries_of(left)->count, (uint16_t)(before + added));
    left->length = length;
}

const struct reiser4_item_kind reiser4_entries_kind = {
    .name = "cde40",
    .divisible = true,
    .same_keys = true,
    .check = entries_check,
    .units = entries_units,
    .unit_key = entries_unit_key,
    .head_length = entries_head_length,
    .tail_length = entries_tail_length,
    .part = entries_part,
    .mergeable = entries_mergeable,
    .merged_length = entries_merged_length,
    .merge = entries_merge,
};

/* --- one entry ---------------------------------------------------------------------------------
 */

static const struct reiser4_disk_object *object_of(const struct reiser4_item *item, uint32_t unit) {
    return (const struct reiser4_disk_object *)(item->body + body_offset(item, unit));
}

bool reiser4_entry_load(const struct reiser4_item *item, uint32_t unit,
                        struct reiser4_entry *entry) {
    entry->key = entries_unit_key(item, unit);
    if (reiser4_key_is_hashed(&entry->key)) {
        entry->name = (const char *)item->body + body_offset(item, unit) + OBJECT;
        entry->name_length = body_offset(item, unit + 1) - body_offset(item, unit) - OBJECT - 1;
    } else {
        entry->name = entry->short_name;
        entry->name_length = reiser4_name_of_key(&entry->key, entry->short_name);
    }
    return reiser4_object_load(object_of(item, unit), &entry->object);
}

bool reiser4_entry_is(const struct reiser4_item *item, uint32_t unit, const char *name,
                      uint32_t length) {
    struct reiser4_entry entry;

    return reiser4_entry_load(item, unit, &entry) && entry.name_length == length &&
           memcmp(entry.name, name, length) == 0;
}

uint32_t reiser4_entry_bytes(const struct reiser4_key *key, uint32_t name_length) {
    return REISER4_ENTRY_BYTES + (reiser4_key_is_hashed(key) ? name_length + 1 : 0);
}

void reiser4_entry_make(const struct reiser4_key *key, const struct reiser4_object *object,
                        const char *name, uint32_t length, uint8_t *body,
                        struct reiser4_item *item) {
    struct reiser4_disk_entries *entries = (struct reiser4_disk_entries *)body;
    uint8_t *at = body + COUNT + HEADER;

    le16_store(&entries->count, 1);
    le64_store(&entries->entry[0].ordering, key->word[REISER4_ORDERING]);
    le64_store(&entries->entry[0].objectid, key->word[REISER4_OBJECTID]);
    le64_store(&entries->entry[0].offset, key->word[REISER4_OFFSET]);
    le16_store(&entries->entry[0].body, (uint16_t)(COUNT + HEADER));
    reiser4_object_store((struct reiser4_disk_object *)at, object);
    if (reiser4_key_is_hashed(key)) {
        memcpy(at + OBJECT, name, length);
        at[OBJECT + length] = '\0';
    }
    *item = (struct reiser4_item){.key = *key,
                                  .id = REISER4_ITEM_ENTRIES,
                                  .length = COUNT + reiser4_entry_bytes(key, length),
                                  .body = body};
}

void reiser4_entry_set(uint8_t *body, uint32_t unit, const struct reiser4_object *object) {
    const struct reiser4_disk_entries *entries = (const struct reiser4_disk_entries *)body;
    uint8_t *at = body + le16_load(entries->entry[unit].body);

    reiser4_object_store((struct reiser4_disk_object *)at, object);
}
