/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Changes to a node. Interface: layouts/reiser4/node.h.
 */
#include "layouts/reiser4/node.h"

#include <assert.h>

#define HEADER ((uint32_t)sizeof(struct reiser4_disk_item))

static void set_items(struct reiser4_node node, uint32_t items) {
    le16_store(&reiser4_node_header(node)->items, (uint16_t)items);
}

/* Bodies end at `start`, and this is what is left. */
static void set_free(struct reiser4_node node, uint32_t start) {
    uint32_t headers = reiser4_node_items(node) * HEADER;

    le16_store(&reiser4_node_header(node)->free_start, (uint16_t)start);
    le16_store(&reiser4_node_header(node)->free_space,
               (uint16_t)(REISER4_BLOCK_SIZE - headers - start));
}

void reiser4_node_init(struct reiser4_node node, uint32_t level, uint32_t mkfs_id) {
    struct reiser4_disk_node *header = reiser4_node_header(node);

    memset(node.bytes, 0, REISER4_BLOCK_SIZE);
    le16_store(&header->plugin, node.format->plugin);
    le32_store(&header->magic, node.format->magic);
    le32_store(&header->mkfs_id, mkfs_id);
    header->level = (uint8_t)level;
    set_free(node, node.format->header_size);
}

/* Bytes from body offset `from` (in the node) on move by `count`, up or down, and so do the offsets
 * of items from `item` on. */
static void shift_bodies(struct reiser4_node node, uint32_t item, uint32_t from, int32_t count) {
    uint32_t end = reiser4_node_offset(node, reiser4_node_items(node));

    memmove(node.bytes + from + count, node.bytes + from, end - from);
    for (uint32_t i = item; i < reiser4_node_items(node); i++) {
        le16 *offset = &reiser4_node_item(node, i)->offset;
        le16_store(offset, (uint16_t)(le16_load(*offset) + count));
    }
    set_free(node, end + (uint32_t)count);
}

/* Room for a header before that of item `at`; it is undefined. */
static void open_header(struct reiser4_node node, uint32_t at) {
    uint32_t items = reiser4_node_items(node);

    if (at < items)
        memmove(reiser4_node_item(node, items), reiser4_node_item(node, items - 1),
                (items - at) * HEADER);
    set_items(node, items + 1);
}

uint8_t *reiser4_node_insert(struct reiser4_node node, uint32_t at, const struct reiser4_key *key,
                             uint16_t id, uint32_t length) {
    uint32_t offset = reiser4_node_offset(node, at);
    uint32_t end = reiser4_node_offset(node, reiser4_node_items(node));

    assert(length > 0 && length + HEADER <= reiser4_node_free(node));
    memmove(node.bytes + offset + length, node.bytes + offset, end - offset);
    open_header(node, at);
    struct reiser4_disk_item *item = reiser4_node_item(node, at);
    memset(item, 0, sizeof(*item));
    reiser4_key_store(&item->key, key);
    le16_store(&item->offset, (uint16_t)offset);
    le16_store(&item->plugin, id);
    for (uint32_t i = at + 1; i < reiser4_node_items(node); i++) {
        le16 *other = &reiser4_node_item(node, i)->offset;
        le16_store(other, (uint16_t)(le16_load(*other) + length));
    }
    set_free(node, end + length);
    return node.bytes + offset;
}

uint8_t *reiser4_node_open(struct reiser4_node node, uint32_t i, uint32_t offset, uint32_t count) {
    uint32_t from = reiser4_node_offset(node, i) + offset;

    assert(count <= reiser4_node_free(node));
    shift_bodies(node, i + 1, from, (int32_t)count);
    return node.bytes + from;
}

void reiser4_node_close(struct reiser4_node node, uint32_t i, uint32_t offset, uint32_t count) {
    assert(offset + count <= reiser4_node_length(node, i));
    shift_bodies(node, i + 1, reiser4_node_offset(node, i) + offset + count, -(int32_t)count);
}

void reiser4_node_remove(struct reiser4_node node, uint32_t at, uint32_t count) {
    uint32_t items = reiser4_node_items(node), start = reiser4_node_offset(node, at);
    uint32_t behind = reiser4_node_offset(node, at + count);

    assert(at + count <= items);
    if (count == 0)
        return;
    shift_bodies(node, at + count, behind, -(int32_t)(behind - start));
    uint32_t end = reiser4_node_offset(node, items);
    memmove(reiser4_node_item(node, items - count - 1), reiser4_node_item(node, items - 1),
            (items - at - count) * HEADER);
    set_items(node, items - count);
    set_free(node, end);
}
