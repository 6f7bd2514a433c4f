/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/safelink.h.
 */
#include "layouts/reiser4/safelink.h"

const char *reiser4_safelink_load(const struct reiser4_item *item, struct reiser4_safelink *link) {
    const struct reiser4_disk_safelink *disk = (const struct reiser4_disk_safelink *)item->body;
    uint64_t kind = item->key.word[REISER4_OFFSET];

    if (reiser4_key_locality(&item->key) != REISER4_SAFELINK_LOCALITY ||
        reiser4_key_type(&item->key) != REISER4_KEY_NAME || kind > REISER4_SAFELINK_TO_EXTENT)
        return "is a safe-link whose key cannot be";
    link->kind = (enum reiser4_safelink_kind)kind;
    uint32_t length = kind == REISER4_SAFELINK_TRUNCATE ? sizeof(*disk) : sizeof(disk->object);
    if (item->length != length)
        return "is a safe-link whose length is wrong";
    struct reiser4_key key = reiser4_key_load(&disk->object);
    if (!reiser4_object_of_key(&key, &link->object) ||
        link->object.oid != item->key.word[REISER4_OBJECTID])
        return "is a safe-link to no object";
    link->size = kind == REISER4_SAFELINK_TRUNCATE ? le64_load(disk->size) : 0;
    return NULL;
}

static const char *safelink_check(const struct reiser4_item *item) {
    struct reiser4_safelink link;

    return reiser4_safelink_load(item, &link);
}

const struct reiser4_item_kind reiser4_safelink_kind = {.name = "bbox40", .check = safelink_check};
