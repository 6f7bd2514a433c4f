/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over key.h. One node of the tree as bytes: item bodies packed from the
 * header up, item headers from the end down, free space between. Knows nothing of what is in an
 * item (item.h) nor of other nodes (tree.h).
 *
 * node40 and node41 differ in the header's size, the magic and a checksum, which struct
 * reiser4_node_format tells.
 *
 *   node.c       format, validation, look-up
 *   node_edit.c  changes
 *
 * Invariants of a valid node of n items (reiser4_node_check holds them against bytes from a disk;
 * every function of node_edit.c keeps them, but for 5, which its caller does):
 *  1. header size + bodies + free space + n * 38 is the block size.
 *  2. Body 0 starts behind the header, offsets ascend, body i ends where body i + 1 starts, the
 * last one at free_start. No body is empty.
 *  3. Plugin, magic, mkfs id and level are what they have to be.
 *  4. Every item's plugin is one that may stand at the level (reiser4_item_at_level).
 *  5. Keys ascend; equal ones only among directory items.
 *  6. n > 0, but of a node that is being made or about to be freed.
 *
 * Of item headers' flags, the flush id and the node's flags nothing is read, and 0 is written.
 */
#ifndef LAYOUTFS_REISER4_NODE_H
#define LAYOUTFS_REISER4_NODE_H

#include <string.h>

#include "layouts/reiser4/key.h"

struct volume;

struct reiser4_node_format { /* of a volume's nodes */
    uint16_t plugin;         /* REISER4_NODE40, REISER4_NODE41 */
    uint32_t magic;
    uint32_t header_size; /* bytes */
    bool checksum;        /* sealed before a node is written, verified when it is read */
};

/* By the super block's node plugin; NULL: none has that id. */
const struct reiser4_node_format *reiser4_node_format_of(uint32_t plugin);

/* A node's bytes, with what is needed to understand them. Passed by value. The bytes are changed
 * only in a changed block (nodes.h). */
struct reiser4_node {
    const struct reiser4_node_format *format;
    uint8_t *bytes; /* REISER4_BLOCK_SIZE */
};

static inline struct reiser4_disk_node *reiser4_node_header(struct reiser4_node node) {
    return (struct reiser4_disk_node *)node.bytes;
}
static inline struct reiser4_disk_item *reiser4_node_item(struct reiser4_node node, uint32_t i) {
    return (struct reiser4_disk_item *)(node.bytes + REISER4_BLOCK_SIZE) - 1 - i;
}
static inline uint32_t reiser4_node_items(struct reiser4_node node) {
    return le16_load(reiser4_node_header(node)->items);
}
static inline uint32_t reiser4_node_level(struct reiser4_node node) {
    return reiser4_node_header(node)->level;
}
static inline uint32_t reiser4_node_free(struct reiser4_node node) {
    return le16_load(reiser4_node_header(node)->free_space);
}
static inline struct reiser4_key reiser4_node_key(struct reiser4_node node, uint32_t i) {
    return reiser4_key_load(&reiser4_node_item(node, i)->key);
}
static inline uint16_t reiser4_node_id(struct reiser4_node node, uint32_t i) {
    return le16_load(reiser4_node_item(node, i)->plugin);
}
static inline uint32_t reiser4_node_offset(struct reiser4_node node, uint32_t i) {
    return i < reiser4_node_items(node) ? le16_load(reiser4_node_item(node, i)->offset)
                                        : le16_load(reiser4_node_header(node)->free_start);
}
static inline uint32_t reiser4_node_length(struct reiser4_node node, uint32_t i) {
    return reiser4_node_offset(node, i + 1) - reiser4_node_offset(node, i);
}
static inline uint8_t *reiser4_node_body(struct reiser4_node node, uint32_t i) {
    return node.bytes + reiser4_node_offset(node, i);
}
/* The block that a nodeptr item points at. */
static inline uint64_t reiser4_node_pointer(struct reiser4_node node, uint32_t i) {
    return le64_load(((struct reiser4_disk_pointer *)reiser4_node_body(node, i))->block);
}

/* --- look-up -----------------------------------------------------------------------------------
 */

/* Number of items whose key is < `key` (lower), or <= it (upper). */
uint32_t reiser4_node_lower(struct reiser4_node node, const struct reiser4_key *key);
uint32_t reiser4_node_upper(struct reiser4_node node, const struct reiser4_key *key);

/* --- validation --------------------------------------------------------------------------------
 */

/* Invariants 1 to 6 for bytes that were read from `block`, checksum included; `level` 0: any.
 * -EUCLEAN, with a sentence (volume's name and log). What is in the items is item.h's to check. */
int reiser4_node_check(const struct volume *volume, struct reiser4_node node, uint64_t block,
                       uint32_t level, uint32_t mkfs_id);

/* --- changes (node_edit.c) ---------------------------------------------------------------------
 */

/* An empty node. */
void reiser4_node_init(struct reiser4_node node, uint32_t level, uint32_t mkfs_id);
/* A new item number `at` with a body of `length` bytes, which the caller fills. Length and header
 * fit into the free space. */
uint8_t *reiser4_node_insert(struct reiser4_node node, uint32_t at, const struct reiser4_key *key,
                             uint16_t id, uint32_t length);
/* Opens `count` bytes at byte `offset` of item i's body (which fit) and returns them; or takes
 * `count` bytes out there. What follows in the node moves. */
uint8_t *reiser4_node_open(struct reiser4_node node, uint32_t i, uint32_t offset, uint32_t count);
void reiser4_node_close(struct reiser4_node node, uint32_t i, uint32_t offset, uint32_t count);
/* Takes items [at, at + count) out. */
void reiser4_node_remove(struct reiser4_node node, uint32_t at, uint32_t count);
/* Does not look at the neighbours. */
static inline void reiser4_node_set_key(struct reiser4_node node, uint32_t i,
                                        const struct reiser4_key *key) {
    reiser4_key_store(&reiser4_node_item(node, i)->key, key);
}
/* Makes the checksum right, where the format has one: last, before it is written. */
void reiser4_node_seal(struct reiser4_node node);

#endif
