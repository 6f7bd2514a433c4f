/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. A node's format, look-up and validation. Interface:
 * layouts/reiser4/node.h.
 */
#include "layouts/reiser4/node.h"

#include <inttypes.h>

#include "fs/crc.h"
#include "layouts/reiser4/item.h"
#include "layouts/reiser4/reiser4.h"

static const struct reiser4_node_format formats[] = {
    {REISER4_NODE40, REISER4_NODE40_MAGIC, sizeof(struct reiser4_disk_node), false},
    {REISER4_NODE41, REISER4_NODE41_MAGIC, sizeof(struct reiser4_disk_node41), true},
};

const struct reiser4_node_format *reiser4_node_format_of(uint32_t plugin) {
    return plugin < sizeof(formats) / sizeof(*formats) ? &formats[plugin] : NULL;
}

/* --- look-up -----------------------------------------------------------------------------------
 */

/* Items whose key compares < limit. */
static uint32_t count_below(struct reiser4_node node, const struct reiser4_key *key, int limit) {
    uint32_t low = 0, high = reiser4_node_items(node);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct reiser4_key found = reiser4_node_key(node, middle);
        if (reiser4_key_compare(&found, key) < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t reiser4_node_lower(struct reiser4_node node, const struct reiser4_key *key) {
    return count_below(node, key, 0);
}

uint32_t reiser4_node_upper(struct reiser4_node node, const struct reiser4_key *key) {
    return count_below(node, key, 1);
}

/* --- checksum ----------------------------------------------------------------------------------
 */

static uint32_t checksum(struct reiser4_node node) {
    uint32_t after = node.format->header_size;
    uint32_t crc = crc32c(UINT32_MAX, node.bytes, sizeof(struct reiser4_disk_node));

    return crc32c(crc, node.bytes + after, REISER4_BLOCK_SIZE - after);
}

void reiser4_node_seal(struct reiser4_node node) {
    if (node.format->checksum)
        le32_store(&((struct reiser4_disk_node41 *)node.bytes)->crc, checksum(node));
}

/* --- validation --------------------------------------------------------------------------------
 */

/* Invariants 1 and 3: NULL, or what is wrong. */
static const char *check_header(struct reiser4_node node, uint32_t level, uint32_t mkfs_id) {
    const struct reiser4_disk_node *header = reiser4_node_header(node);
    uint32_t headers = reiser4_node_items(node) * (uint32_t)sizeof(struct reiser4_disk_item);

    if (le16_load(header->plugin) != node.format->plugin ||
        le32_load(header->magic) != node.format->magic)
        return "is no node: its plugin or magic is wrong";
    if (node.format->checksum &&
        le32_load(((const struct reiser4_disk_node41 *)node.bytes)->crc) != checksum(node))
        return "has a wrong checksum";
    if (le32_load(header->mkfs_id) != mkfs_id)
        return "is a node of another volume";
    if (header->level == 0 || header->level > REISER4_HEIGHT_MAX)
        return "has a level that cannot be";
    if (level && header->level != level)
        return "has another level than its parent says";
    if (reiser4_node_items(node) == 0)
        return "has no items";
    if ((uint32_t)le16_load(header->free_start) + le16_load(header->free_space) + headers !=
        REISER4_BLOCK_SIZE)
        return "has item headers, bodies and free space that are not a block together";
    return NULL;
}

/* Invariants 2, 4 and 5 of item i, whose header is in the block. */
static const char *check_item(struct reiser4_node node, uint32_t i) {
    uint32_t start = reiser4_node_offset(node, i), end = reiser4_node_offset(node, i + 1);
    uint32_t headers_end =
        REISER4_BLOCK_SIZE - reiser4_node_items(node) * (uint32_t)sizeof(struct reiser4_disk_item);

    if (i == 0 && start != node.format->header_size)
        return "does not start behind the node's header";
    if (start >= end || end > headers_end)
        return "has a body that is not in its place";
    if (!reiser4_item_at_level(reiser4_node_id(node, i), reiser4_node_level(node)))
        return "is of a kind that is not at this level";
    if (i == 0)
        return NULL;
    struct reiser4_key before = reiser4_node_key(node, i - 1), key = reiser4_node_key(node, i);
    int order = reiser4_key_compare(&before, &key);
    if (order > 0 || (order == 0 && reiser4_key_type(&key) != REISER4_KEY_NAME))
        return "has a key that is not above that of the item before it";
    return NULL;
}

int reiser4_node_check(const struct volume *volume, struct reiser4_node node, uint64_t block,
                       uint32_t level, uint32_t mkfs_id) {
    const char *wrong = check_header(node, level, mkfs_id);

    if (wrong)
        return reiser4_corrupt(volume, "block %" PRIu64 " %s", block, wrong);
    for (uint32_t i = 0; i < reiser4_node_items(node); i++) {
        wrong = check_item(node, i);
        if (wrong)
            return reiser4_corrupt(volume, "node at block %" PRIu64 ": item %u %s", block, i,
                                   wrong);
    }
    return 0;
}
