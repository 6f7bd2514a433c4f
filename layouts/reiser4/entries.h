/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over item.h. cde40: an item of directory entries, its units. Facts:
 * docs/reiser4-format.md, "directory items".
 *
 * Invariants of a sound item (reiser4_entries_kind.check):
 *  1. count > 0; headers first, then bodies in the same order, without gaps, to the item's end.
 *  2. Keys ascend, or are equal; the first one is the item's.
 *  3. A body is an object and, if and only if the key is hashed (H), a name of more than
 *     REISER4_NAME_IN_KEY and at most REISER4_NAME_MAX bytes and a NUL that ends it, and none
 * before.
 *  4. A key without H is that of a name: reiser4_name_of_key gives one.
 */
#ifndef LAYOUTFS_REISER4_ENTRIES_H
#define LAYOUTFS_REISER4_ENTRIES_H

#include "layouts/reiser4/item.h"

/* What a directory's stat data counts of an entry as `bytes`: header and body. */
#define REISER4_ENTRY_BYTES                                                                        \
    ((uint32_t)(sizeof(struct reiser4_disk_entry) + sizeof(struct reiser4_disk_object)))

struct reiser4_entry {
    struct reiser4_key key;
    struct reiser4_object object;
    const char *name; /* in the item, not terminated; or in `short_name`: do not copy the struct */
    uint32_t name_length;
    char short_name[REISER4_NAME_IN_KEY];
};

/* Decodes entry `unit` of a sound item. False: its object's number cannot be. */
bool reiser4_entry_load(const struct reiser4_item *item, uint32_t unit,
                        struct reiser4_entry *entry);
/* Has the entry that name? */
bool reiser4_entry_is(const struct reiser4_item *item, uint32_t unit, const char *name,
                      uint32_t length);
/* Bytes that the entry of a name counts for in its directory: with its header and body, and the
 * name if that is stored. */
uint32_t reiser4_entry_bytes(const struct reiser4_key *key, uint32_t name_length);
/* An item of one entry in `body`, which has room for 2 + reiser4_entry_bytes; *item is it. */
void reiser4_entry_make(const struct reiser4_key *key, const struct reiser4_object *object,
                        const char *name, uint32_t length, uint8_t *body,
                        struct reiser4_item *item);
/* In a changed node (reiser4_cursor_change): the entry means another object from now on. */
void reiser4_entry_set(uint8_t *body, uint32_t unit, const struct reiser4_object *object);

#endif
