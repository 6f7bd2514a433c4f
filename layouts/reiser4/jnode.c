/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/jnode.h.
 */
#include "layouts/reiser4/jnode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/reiser4/reiser4.h"

#define BUCKETS_MIN 256u

int reiser4_jnodes_init(struct reiser4_jnodes *jnodes) {
    jnodes->records.size = sizeof(struct reiser4_jnode);
    jnodes->memory.size = REISER4_BLOCK_SIZE;
    TAILQ_INIT(&jnodes->list);
    jnodes->buckets = calloc(BUCKETS_MIN, sizeof(*jnodes->buckets));
    jnodes->bucket_count = jnodes->buckets ? BUCKETS_MIN : 0;
    return jnodes->buckets ? 0 : -ENOMEM;
}

void reiser4_jnodes_destroy(struct reiser4_jnodes *jnodes) {
    free(jnodes->buckets);
    recycle_drain(&jnodes->records);
    recycle_drain(&jnodes->memory);
    jnodes->buckets = NULL;
    jnodes->bucket_count = 0;
}

/* --- the table ---------------------------------------------------------------------------------
 */

static struct reiser4_jnode **bucket_of(const struct reiser4_jnodes *jnodes, uint64_t block) {
    uint64_t hash = block * UINT64_C(0x9E3779B97F4A7C15); /* Fibonacci hashing */

    return &jnodes->buckets[(hash >> 32) & (jnodes->bucket_count - 1)];
}

struct reiser4_jnode *reiser4_jnode_find(const struct reiser4_jnodes *jnodes, uint64_t block) {
    if (TAILQ_EMPTY(&jnodes->list))
        return NULL;
    struct reiser4_jnode *jnode = *bucket_of(jnodes, block);
    while (jnode && jnode->block != block)
        jnode = jnode->hash_next;
    return jnode;
}

static void link_in(struct reiser4_jnodes *jnodes, struct reiser4_jnode *jnode) {
    struct reiser4_jnode **bucket = bucket_of(jnodes, jnode->block);

    jnode->hash_next = *bucket;
    *bucket = jnode;
}

static void unlink_from(struct reiser4_jnodes *jnodes, struct reiser4_jnode *jnode) {
    struct reiser4_jnode **link = bucket_of(jnodes, jnode->block);

    while (*link != jnode)
        link = &(*link)->hash_next;
    *link = jnode->hash_next;
}

/* A table that cannot grow only gets slower. */
static void grow(struct reiser4_jnodes *jnodes) {
    struct reiser4_jnode **larger = calloc((size_t)jnodes->bucket_count * 2, sizeof(*larger));
    struct reiser4_jnode *jnode;

    if (!larger)
        return;
    free(jnodes->buckets);
    jnodes->buckets = larger;
    jnodes->bucket_count *= 2;
    TAILQ_FOREACH (jnode, &jnodes->list, link)
        link_in(jnodes, jnode);
}

/* `sign`: +1 the jnode is counted from now on, -1 no longer. */
static void count(struct reiser4_jnodes *jnodes, const struct reiser4_jnode *jnode, int sign) {
    uint64_t change = (uint64_t)(int64_t)sign;

    jnodes->nodes += change;
    if (jnode->block & REISER4_STAND_IN)
        jnodes->unplaced_nodes += change;
    if (!jnode->fresh)
        jnodes->old_nodes += change;
}

/* A jnode that is in no list yet; its data is undefined. NULL: no memory. */
static struct reiser4_jnode *jnode_new(struct reiser4_jnodes *jnodes) {
    struct reiser4_jnode *jnode = recycle_get(&jnodes->records);

    if (!jnode)
        return NULL;
    jnode->data = recycle_get_dirty(&jnodes->memory);
    if (jnode->data)
        return jnode;
    recycle_put(&jnodes->records, jnode);
    return NULL;
}

static void jnode_enter(struct reiser4_jnodes *jnodes, struct reiser4_jnode *jnode) {
    if (jnodes->nodes >= jnodes->bucket_count)
        grow(jnodes);
    TAILQ_INSERT_TAIL(&jnodes->list, jnode, link);
    link_in(jnodes, jnode);
    count(jnodes, jnode, 1);
}

void reiser4_jnode_forget(struct reiser4_jnodes *jnodes, struct reiser4_jnode *jnode) {
    count(jnodes, jnode, -1);
    unlink_from(jnodes, jnode);
    TAILQ_REMOVE(&jnodes->list, jnode, link);
    recycle_put(&jnodes->memory, jnode->data);
    recycle_put(&jnodes->records, jnode);
}

/* --- reading -----------------------------------------------------------------------------------
 */

/* What node.h does not look at: the items themselves, and that their units do not overlap. */
static int check_items(const struct reiser4_jnodes *jnodes, const struct reiser4_view *view) {
    struct reiser4_node node = view->node;

    for (uint32_t i = 0; i < reiser4_node_items(node); i++) {
        struct reiser4_item item = reiser4_item_of(node, i);
        const char *wrong = reiser4_item_kind(item.id)->check(&item);
        if (!wrong && i + 1 < reiser4_node_items(node)) {
            struct reiser4_key last = reiser4_item_unit_key(&item, reiser4_item_units(&item) - 1);
            struct reiser4_key next = reiser4_node_key(node, i + 1);
            int order = reiser4_key_compare(&last, &next);
            if (order > 0 || (order == 0 && reiser4_key_type(&next) != REISER4_KEY_NAME))
                wrong = "reaches beyond the key of the item behind it";
        }
        if (wrong)
            return reiser4_corrupt(jnodes->volume, "node at block %" PRIu64 ": item %u (%s) %s",
                                   view->block, i, reiser4_item_kind(item.id)->name, wrong);
    }
    return 0;
}

/* Several threads may find the same: the flag only ever becomes true. */
static int check_once(const struct reiser4_jnodes *jnodes, const struct reiser4_view *view,
                      uint32_t level) {
    if (view->buffer->checked)
        return reiser4_node_level(view->node) == level
                   ? 0
                   : reiser4_corrupt(jnodes->volume,
                                     "node at block %" PRIu64 ": it has level %u, expected %u",
                                     view->block, reiser4_node_level(view->node), level);
    int error = reiser4_node_check(jnodes->volume, view->node, view->block, level, jnodes->mkfs_id);
    if (!error)
        error = check_items(jnodes, view);
    if (!error)
        view->buffer->checked = true;
    return error;
}

static enum purpose purpose_of(uint32_t level) {
    return level == REISER4_LEAF ? PURPOSE_INODE : PURPOSE_MAP;
}

int reiser4_node_get(struct reiser4_jnodes *jnodes, uint64_t block, uint32_t level,
                     struct reiser4_view *view) {
    struct reiser4_jnode *jnode = reiser4_jnode_find(jnodes, block);

    *view = (struct reiser4_view){.block = block, .jnode = jnode};
    view->node.format = jnodes->format;
    if (jnode) {
        view->node.bytes = jnode->data;
        return jnode->level == level
                   ? 0
                   : reiser4_corrupt(jnodes->volume,
                                     "block %" PRIu64 " is in the tree at two levels, %u and %u",
                                     block, jnode->level, level);
    }
    if (!reiser4_block_valid(jnodes, block))
        return reiser4_corrupt(jnodes->volume,
                               "block %" PRIu64 " cannot be a node of level %u, as the tree says",
                               block, level);
    int error = buffer_get(jnodes->buffers, reiser4_overlay_at(jnodes->overlay, block),
                           purpose_of(level), &view->buffer);
    if (error)
        return error;
    view->node.bytes = buffer_data(view->buffer);
    error = check_once(jnodes, view, level);
    if (error)
        reiser4_view_put(view);
    return error;
}

void reiser4_node_prefetch(struct reiser4_jnodes *jnodes, uint64_t block, uint32_t count) {
    if (block & REISER4_STAND_IN || (jnodes->overlay && jnodes->overlay->count))
        return;
    buffer_prefetch(jnodes->buffers, block, count, purpose_of(REISER4_LEAF));
}

/* --- changing ----------------------------------------------------------------------------------
 */

int reiser4_node_change(struct reiser4_jnodes *jnodes, struct reiser4_view *view) {
    if (view->jnode)
        return 0;
    struct reiser4_jnode *jnode = jnode_new(jnodes);
    if (!jnode)
        return -ENOMEM;
    jnode->block = view->block;
    jnode->level = reiser4_node_level(view->node);
    memcpy(jnode->data, view->node.bytes, REISER4_BLOCK_SIZE);
    jnode_enter(jnodes, jnode);
    reiser4_view_put(view);
    view->jnode = jnode;
    view->node.bytes = jnode->data;
    return 0;
}

int reiser4_node_make(struct reiser4_jnodes *jnodes, uint32_t level, struct reiser4_view *view) {
    struct reiser4_jnode *jnode = jnode_new(jnodes);

    if (!jnode)
        return -ENOMEM;
    jnode->block = REISER4_STAND_IN | ++jnodes->stand_ins;
    jnode->level = level;
    jnode->fresh = true;
    jnode_enter(jnodes, jnode);
    *view = (struct reiser4_view){
        .node = {jnodes->format, jnode->data}, .block = jnode->block, .jnode = jnode};
    reiser4_node_init(view->node, level, jnodes->mkfs_id);
    return 0;
}

/* The place where a jnode lay is not its any more. */
static int leave(struct reiser4_jnodes *jnodes, uint64_t block, bool fresh) {
    if (block & REISER4_STAND_IN)
        return 0;
    if (!fresh)
        return jnodes->release(jnodes->context, block);
    jnodes->give_back(jnodes->context, block);
    return 0;
}

int reiser4_node_drop(struct reiser4_jnodes *jnodes, struct reiser4_view *view) {
    struct reiser4_jnode *jnode = view->jnode;
    int error = leave(jnodes, view->block, jnode && jnode->fresh);

    if (jnode)
        reiser4_jnode_forget(jnodes, jnode);
    reiser4_view_put(view);
    view->jnode = NULL;
    return error;
}

/* --- for flush and commit ----------------------------------------------------------------
 */

int reiser4_jnode_move(struct reiser4_jnodes *jnodes, struct reiser4_jnode *jnode, uint64_t block) {
    int error = leave(jnodes, jnode->block, jnode->fresh);

    if (error)
        return error;
    count(jnodes, jnode, -1);
    unlink_from(jnodes, jnode);
    jnode->block = block;
    jnode->fresh = true;
    link_in(jnodes, jnode);
    count(jnodes, jnode, 1);
    return 0;
}

int reiser4_jnode_settle(struct reiser4_jnodes *jnodes, struct reiser4_jnode *jnode,
                         struct buffer **buffer) {
    int error = buffer_get_zeroed(jnodes->buffers, jnode->block, purpose_of(jnode->level), buffer);

    if (error)
        return error;
    reiser4_node_seal((struct reiser4_node){jnodes->format, jnode->data});
    memcpy(buffer_data(*buffer), jnode->data, REISER4_BLOCK_SIZE);
    (*buffer)->checked = true;
    (*buffer)->pinned = true;
    reiser4_jnode_forget(jnodes, jnode);
    return 0;
}
