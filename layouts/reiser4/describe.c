/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over everything else here, read-only. Structures as JSON: fields under
 * their names in format.h, followed by what the numbers mean. Interface: layouts/reiser4/layout.h.
 */
#include "fs/describe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fs/bitmap.h"
#include "layouts/reiser4/ctail.h"
#include "layouts/reiser4/describe.h"
#include "layouts/reiser4/entries.h"
#include "layouts/reiser4/safelink.h"

#define SUPER_FIELD(member) DESCRIBE_FIELD(reiser4_disk_super, member)

static const struct describe_field super_fields[] = {
    SUPER_FIELD(block_count),
    SUPER_FIELD(free_blocks),
    SUPER_FIELD(root_block),
    SUPER_FIELD(next_oid),
    SUPER_FIELD(file_count),
    SUPER_FIELD(flushes),
    SUPER_FIELD(mkfs_id),
    SUPER_FIELD(tree_height),
    SUPER_FIELD(formatting),
    SUPER_FIELD(flags),
    SUPER_FIELD(version),
    SUPER_FIELD(node_plugin),
    {0},
};

/* --- keys and items --------------------------------------------------------------------------- */

void reiser4_describe_key(json_t *object, const char *name, const struct reiser4_key *key) {
    char text[96];

    snprintf(text, sizeof(text), "%" PRIx64 ":%u:%" PRIx64 ":%" PRIx64 ":%" PRIx64,
             reiser4_key_locality(key), reiser4_key_type(key), key->word[REISER4_ORDERING],
             key->word[REISER4_OBJECTID], key->word[REISER4_OFFSET]);
    describe_text(object, name, text);
}

static void put_stat(json_t *object, const struct reiser4_item *item) {
    struct reiser4_stat stat;

    if (reiser4_stat_decode(item, &stat))
        return;
    describe_text(object, "type", describe_type(stat.mode));
    describe_number(object, "mode", stat.mode);
    describe_number(object, "nlink", stat.nlink);
    describe_number(object, "size", stat.size);
    describe_number(object, "rdev_or_bytes", stat.rdev_or_bytes);
    describe_number(object, "extensions", stat.mask);
    describe_time(object, "modified", stat.mtime.seconds);
    for (unsigned i = 0; i < REISER4_PLUGIN_MEMBERS; i++)
        if (stat.plugins.present & 1u << i)
            describe_text(object, reiser4_member_name(i),
                          reiser4_plugin_name(i, stat.plugins.id[i]));
    if (stat.target)
        describe_name(object, "target", stat.target, stat.target_length);
}

static void put_entries(json_t *object, const struct reiser4_item *item) {
    json_t *list = json_array();

    for (uint32_t i = 0; i < reiser4_item_units(item); i++) {
        struct reiser4_entry entry;
        json_t *row = json_object();
        reiser4_entry_load(item, i, &entry);
        describe_name(row, "name", entry.name, entry.name_length);
        describe_number(row, "object", entry.object.oid);
        describe_number(row, "locality", entry.object.locality);
        json_array_append_new(list, row);
    }
    json_object_set_new(object, "entries", list);
}

static void put_extents(json_t *object, const struct reiser4_item *item) {
    json_t *list = json_array();

    for (uint32_t i = 0; i < reiser4_item_units(item); i++) {
        struct reiser4_extent extent = reiser4_extent_load(item, i);
        json_t *row = json_object();
        describe_number(row, "offset", extent.offset);
        describe_number(row, "block", extent.start);
        describe_number(row, "blocks", extent.width);
        json_array_append_new(list, row);
    }
    json_object_set_new(object, "extents", list);
}

static void put_safelink(json_t *object, const struct reiser4_item *item) {
    static const char *const kinds[] = {"unlink", "truncate", "to tails", "to extents"};
    struct reiser4_safelink link;

    if (reiser4_safelink_load(item, &link))
        return;
    describe_text(object, "asks_for", kinds[link.kind]);
    describe_number(object, "object", link.object.oid);
    describe_number(object, "size", link.size);
}

void reiser4_describe_item(json_t *object, const struct reiser4_item *item) {
    describe_text(object, "item", reiser4_item_kind(item->id)->name);
    reiser4_describe_key(object, "key", &item->key);
    describe_number(object, "bytes", item->length);
    switch (item->id) {
    case REISER4_ITEM_STAT:
        put_stat(object, item);
        break;
    case REISER4_ITEM_ENTRIES:
        put_entries(object, item);
        break;
    case REISER4_ITEM_POINTER:
        describe_number(object, "child",
                        le64_load(((const struct reiser4_disk_pointer *)item->body)->block));
        break;
    case REISER4_ITEM_EXTENT:
        put_extents(object, item);
        break;
    case REISER4_ITEM_CTAIL:
        describe_number(object, "cluster_size", UINT64_C(1) << reiser4_ctail_shift(item));
        break;
    case REISER4_ITEM_SAFELINK:
        put_safelink(object, item);
        break;
    default:
        break;
    }
}

/* --- super block, region ---------------------------------------------------------------------- */

static void describe_super(const struct reiser4 *r4, json_t *object) {
    const struct reiser4_super *super = &r4->super;

    describe_fields(object, super_fields, &super->disk);
    describe_uuid(object, "uuid", super->master.uuid);
    describe_name(object, "label", super->master.label,
                  strnlen(super->master.label, sizeof(super->master.label)));
    describe_number(object, "status", r4->status);
    describe_number(object, "last_committed", r4->journal.last_committed);
    describe_number(object, "last_flushed", r4->journal.last_flushed);
    describe_number(object, "transactions_replayed", r4->journal.replayed);
    describe_number(object, "free_blocks_now", r4->counters.free_blocks);
    describe_number(object, "next_oid_now", r4->counters.next_oid);
    describe_number(object, "file_count_now", r4->counters.file_count);
    for (unsigned i = REISER4_PLUGIN_PERMISSION; i < REISER4_PLUGIN_MEMBERS; i++)
        describe_text(object, reiser4_member_name(i), reiser4_plugin_name(i, r4->plugins.id[i]));
}

static int describe_region(struct reiser4 *r4, uint64_t region, json_t *object) {
    if (region >= r4->space.region_count)
        return -EINVAL;
    uint64_t start = region * REISER4_REGION, end = start + REISER4_REGION;
    uint64_t bitmap = reiser4_bitmap_block(region);
    uint8_t image[REISER4_BLOCK_SIZE];
    int error = device_read(r4->volume->device,
                            reiser4_overlay_at(&r4->journal.overlay, bitmap) * REISER4_BLOCK_SIZE,
                            image, sizeof(image), PURPOSE_BITMAP);
    if (error)
        return error;
    uint8_t bits[REISER4_BLOCK_SIZE] = {0};
    memcpy(bits, image + sizeof(le32), REISER4_REGION / 8);
    describe_number(object, "region", region);
    describe_number(object, "first_block", start);
    describe_number(object, "end_block", end < r4->super.blocks ? end : r4->super.blocks);
    describe_number(object, "bitmap_block", bitmap);
    describe_number(object, "checksum", le32_load(*(const le32 *)image));
    describe_number(object, "free_blocks", bitmap_count_clear(bits, REISER4_REGION));
    json_t *used = json_array();
    json_object_set_new(object, "used", used);
    for (uint32_t at = 0; at < REISER4_REGION;) {
        uint32_t from = bitmap_find_set(bits, at, REISER4_REGION);
        uint32_t to = bitmap_find_clear(bits, from, REISER4_REGION);
        if (from < REISER4_REGION)
            json_array_append_new(used, json_pack("{s:I, s:I}", "block", (json_int_t)(start + from),
                                                  "blocks", (json_int_t)(to - from)));
        at = to;
    }
    return 0;
}

/* --- a block ---------------------------------------------------------------------------------- */

static const char *fixed_name(const struct reiser4 *r4, uint64_t block) {
    static const char *const names[] = {[REISER4_MASTER] = "master super block",
                                        [REISER4_SUPER] = "format40 super block",
                                        [REISER4_BITMAP_FIRST] = "bitmap",
                                        [REISER4_JOURNAL_HEADER] = "journal header",
                                        [REISER4_JOURNAL_FOOTER] = "journal footer",
                                        [REISER4_STATUS] = "status",
                                        [REISER4_BACKUP_FIRST] = "backup of the super block"};

    if (block < REISER4_FIRST_FREE)
        return names[block] ? names[block] : "boot code";
    if (!reiser4_block_is_fixed(r4->super.blocks, block))
        return NULL;
    return block % REISER4_REGION == 0 ? "bitmap" : "backup of the super block";
}

/* Bytes that look like a node of this volume; whether they are in the tree, only a walk shows. */
static bool looks_like_node(const struct reiser4 *r4, const uint8_t *bytes) {
    const struct reiser4_disk_node *header = (const struct reiser4_disk_node *)bytes;

    return le32_load(header->magic) == r4->super.node_format->magic &&
           le32_load(header->mkfs_id) == r4->super.mkfs_id && header->level > 0 &&
           header->level <= REISER4_HEIGHT_MAX;
}

static int describe_node(struct reiser4 *r4, uint64_t block, uint32_t level, json_t *object) {
    struct reiser4_view view;
    int error = reiser4_node_get(&r4->jnodes, block, level, &view);

    if (error)
        return error;
    json_t *items = json_array();
    describe_number(object, "level", level);
    describe_number(object, "free_bytes", reiser4_node_free(view.node));
    json_object_set_new(object, "items", items);
    for (uint32_t i = 0; i < reiser4_node_items(view.node); i++) {
        struct reiser4_item item = reiser4_item_of(view.node, i);
        json_t *row = json_object();
        reiser4_describe_item(row, &item);
        json_array_append_new(items, row);
    }
    reiser4_view_put(&view);
    return 0;
}

static int describe_block(struct reiser4 *r4, uint64_t block, json_t *object) {
    if (block >= r4->super.blocks)
        return -EINVAL;
    const char *fixed = fixed_name(r4, block);
    uint64_t place = reiser4_overlay_at(&r4->journal.overlay, block);
    uint8_t bytes[REISER4_BLOCK_SIZE];

    describe_number(object, "block", block);
    if (place != block)
        describe_number(object, "wandered_to", place);
    if (fixed) {
        describe_text(object, "kind", fixed);
        return 0;
    }
    int error = device_read(r4->volume->device, place * REISER4_BLOCK_SIZE, bytes, sizeof(bytes),
                            PURPOSE_OTHER);
    if (error)
        return error;
    bool node = looks_like_node(r4, bytes);
    describe_text(object, "kind", node ? "node" : "data, or free");
    return node ? describe_node(r4, block, ((const struct reiser4_disk_node *)bytes)->level, object)
                : 0;
}

/* --- objects ---------------------------------------------------------------------------------- */

/* Where no entry of the object has been seen: all stat data is looked through. */
static int search_object(struct reiser4 *r4, uint64_t oid, struct reiser4_object *object) {
    const struct reiser4_key first = {{0, 0, 0, 0}};
    struct reiser4_cursor cursor;
    int error = reiser4_tree_seek(&r4->tree, &first, &cursor);

    while (!error) {
        struct reiser4_item item = reiser4_cursor_item(&cursor);
        if (item.id == REISER4_ITEM_STAT && item.key.word[REISER4_OBJECTID] == oid)
            break;
        error = reiser4_cursor_next_item(&cursor);
    }
    if (!error) {
        struct reiser4_key key = reiser4_cursor_key(&cursor);
        reiser4_object_of_key(&key, object);
    }
    if (!error || error == -ENOENT)
        reiser4_cursor_release(&cursor);
    return error;
}

static int find_object(struct reiser4 *r4, uint64_t oid, struct reiser4_object *object) {
    return reiser4_objects_find(&r4->objects, oid, object) == 0 ? 0
                                                                : search_object(r4, oid, object);
}

static int describe_inode(struct reiser4 *r4, uint64_t ino, json_t *object) {
    struct reiser4_object found;
    struct reiser4_cursor cursor;
    int error = find_object(r4, ino, &found);

    if (error)
        return error;
    struct reiser4_key key = reiser4_key_of_stat(&found);
    error = reiser4_tree_find(&r4->tree, &key, &cursor);
    if (error)
        return error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    describe_number(object, "inode", ino);
    describe_number(object, "block", cursor.step[cursor.bottom].view.block);
    reiser4_describe_item(object, &item);
    reiser4_cursor_release(&cursor);
    return 0;
}

int reiser4_describe_body(struct reiser4 *r4, const struct reiser4_object *object, json_t *rows) {
    struct reiser4_key key = reiser4_key_of_body(object, 0);
    struct reiser4_cursor cursor;
    int error = reiser4_tree_seek(&r4->tree, &key, &cursor);

    while (!error) {
        struct reiser4_item item = reiser4_cursor_item(&cursor);
        json_t *row = json_object();
        if (!reiser4_key_same_object(&item.key, &key)) {
            json_decref(row);
            break;
        }
        describe_number(row, "node", cursor.step[cursor.bottom].view.block);
        reiser4_describe_item(row, &item);
        json_array_append_new(rows, row);
        error = reiser4_cursor_next_item(&cursor);
    }
    if (!error || error == -ENOENT)
        reiser4_cursor_release(&cursor);
    return error == -ENOENT ? 0 : error;
}

static int describe_map(struct reiser4 *r4, uint64_t ino, json_t *object) {
    struct reiser4_object found;
    int error = find_object(r4, ino, &found);

    if (error)
        return error;
    json_t *items = json_array();
    describe_number(object, "inode", ino);
    json_object_set_new(object, "items", items);
    return reiser4_describe_body(r4, &found, items);
}

int reiser4_describe(struct volume *volume, enum describe_kind kind, uint64_t number,
                     json_t **object) {
    struct reiser4 *r4 = reiser4_of(volume);
    int error = 0;

    *object = json_object();
    if (!*object)
        return -ENOMEM;
    switch (kind) {
    case DESCRIBE_SUPER:
        describe_super(r4, *object);
        break;
    case DESCRIBE_GROUP:
        error = describe_region(r4, number, *object);
        break;
    case DESCRIBE_INODE:
        error = describe_inode(r4, number, *object);
        break;
    case DESCRIBE_BLOCK:
        error = describe_block(r4, number, *object);
        break;
    case DESCRIBE_MAP:
        error = describe_map(r4, number, *object);
        break;
    default:
        error = -ENOTSUP;
    }
    if (error) {
        json_decref(*object);
        *object = NULL;
    }
    return error;
}
