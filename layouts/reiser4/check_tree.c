/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Every node and item, in the order of keys. Interface:
 * layouts/reiser4/check.h.
 *
 * Nodes are read through jnode.h, which tells what is wrong in a node itself. Here they are
 * compared with their parents and neighbours.
 */
#include <inttypes.h>
#include <stdio.h>

#include "layouts/reiser4/check.h"
#include "layouts/reiser4/ctail.h"
#include "layouts/reiser4/entries.h"
#include "layouts/reiser4/safelink.h"

struct walk {
    struct reiser4_check *check;
    struct reiser4_key last; /* key of the unit before */
    bool any;                /* there was one */
};

/* --- items ------------------------------------------------------------------------------------ */

static int check_stat(struct reiser4_check *check, const struct reiser4_item *item) {
    const struct reiser4 *r4 = check->r4;
    struct reiser4_object object;
    struct reiser4_stat stat;

    reiser4_object_of_key(&item->key, &object);
    reiser4_stat_decode(item, &stat);
    struct reiser4_check_object *seen = reiser4_check_object_of(check, object.oid);
    if (!seen)
        return -ENOMEM;
    if (seen->stat) {
        reiser4_check_wrong(check, "object %" PRIu64 ": there are two with this number",
                            object.oid);
        return 0;
    }
    seen->object = object;
    seen->stat = true;
    seen->mode = stat.mode;
    seen->links = stat.nlink;
    seen->size = stat.size;
    seen->disk_bytes = stat.rdev_or_bytes;
    reiser4_plugins_of(&r4->plugins, &stat.plugins, stat.mode, &seen->plugins);
    if (object.oid > check->largest_oid)
        check->largest_oid = object.oid;
    check->stats++;
    return 0;
}

static int check_safelink(struct reiser4_check *check, const struct reiser4_item *item) {
    struct reiser4_safelink link;

    reiser4_safelink_load(item, &link);
    struct reiser4_check_object *seen = reiser4_check_object_of(check, link.object.oid);
    if (!seen)
        return -ENOMEM;
    seen->leaving |= link.kind == REISER4_SAFELINK_UNLINK;
    reiser4_check_note(check, "object %" PRIu64 ": the next mount for writing has to %s",
                       link.object.oid,
                       link.kind == REISER4_SAFELINK_UNLINK     ? "delete it"
                       : link.kind == REISER4_SAFELINK_TRUNCATE ? "cut it"
                                                                : "finish its conversion");
    return 0;
}

static int hold_extents(struct reiser4_check *check, const struct reiser4_item *item,
                        uint64_t *bytes) {
    const struct reiser4 *r4 = check->r4;
    int error = 0;

    for (uint32_t i = 0; i < reiser4_item_units(item) && !error; i++) {
        struct reiser4_extent extent = reiser4_extent_load(item, i);
        char what[64];
        if (!reiser4_extent_is_allocated(&extent))
            continue;
        *bytes += extent.width * REISER4_BLOCK_SIZE;
        snprintf(what, sizeof(what), "object %" PRIu64, item->key.word[REISER4_OBJECTID]);
        if (extent.start >= r4->super.blocks || extent.width > r4->super.blocks - extent.start)
            reiser4_check_wrong(check,
                                "%s has blocks that cannot be, %" PRIu64 " and %" PRIu64 " more",
                                what, extent.start, extent.width - 1);
        else
            error = reiser4_check_hold(check, extent.start, extent.width, what);
    }
    return error;
}

/* Bytes of the file that the item stands for. */
static uint64_t body_length(const struct reiser4_item *item) {
    if (item->id == REISER4_ITEM_TAIL)
        return item->length;
    struct reiser4_extent last = reiser4_extent_load(item, reiser4_item_units(item) - 1);
    return last.offset + last.width * REISER4_BLOCK_SIZE - item->key.word[REISER4_OFFSET];
}

/* Of a cluster only its first item makes it exist. */
static void add_ctail(struct reiser4_check_object *seen, const struct reiser4_item *item) {
    uint64_t size = UINT64_C(1) << reiser4_ctail_shift(item);
    uint64_t offset = item->key.word[REISER4_OFFSET], cluster = offset & ~(size - 1);

    if (offset == cluster)
        seen->bytes += size;
    else if (offset != seen->end)
        seen->gap = true;
    seen->end = offset + reiser4_ctail_bytes(item);
}

static int check_body(struct reiser4_check *check, const struct reiser4_item *item) {
    uint64_t bytes = item->id == REISER4_ITEM_TAIL ? item->length : 0;
    int error = item->id == REISER4_ITEM_EXTENT ? hold_extents(check, item, &bytes) : 0;

    if (error)
        return error;
    struct reiser4_check_object *seen =
        reiser4_check_object_of(check, item->key.word[REISER4_OBJECTID]);
    if (!seen)
        return -ENOMEM;
    seen->forms |= 1u << (item->id == REISER4_ITEM_TAIL     ? REISER4_FORM_TAILS
                          : item->id == REISER4_ITEM_EXTENT ? REISER4_FORM_EXTENTS
                                                            : REISER4_FORM_CLUSTERS);
    if (item->id == REISER4_ITEM_CTAIL) {
        add_ctail(seen, item);
        return 0;
    }
    seen->gap |= item->key.word[REISER4_OFFSET] != seen->end;
    seen->end = item->key.word[REISER4_OFFSET] + body_length(item);
    seen->bytes += bytes;
    return 0;
}

/* Entries are examined with their directories; here they show that there must be one. */
static int check_entries(struct reiser4_check *check, const struct reiser4_item *item) {
    struct reiser4_check_object *seen =
        reiser4_check_object_of(check, reiser4_key_locality(&item->key));

    if (!seen)
        return -ENOMEM;
    seen->entries += reiser4_item_units(item);
    seen->bytes += item->length - sizeof(struct reiser4_disk_entries);
    return 0;
}

static int check_item(struct reiser4_check *check, const struct reiser4_item *item) {
    switch (item->id) {
    case REISER4_ITEM_STAT:
        return check_stat(check, item);
    case REISER4_ITEM_ENTRIES:
        return check_entries(check, item);
    case REISER4_ITEM_SAFELINK:
        return check_safelink(check, item);
    default:
        return check_body(check, item);
    }
}

/* Invariant 1 of item.h. Of extents and entries side by side nothing comes. */
static void check_neighbours(struct reiser4_check *check, struct reiser4_node node, uint32_t i,
                             uint64_t block) {
    struct reiser4_item left = reiser4_item_of(node, i - 1), right = reiser4_item_of(node, i);

    if (reiser4_item_mergeable(&left, &right) &&
        (right.id == REISER4_ITEM_TAIL || right.id == REISER4_ITEM_CTAIL))
        reiser4_check_wrong(check,
                            "node at block %" PRIu64
                            ": items %u and %u (%s) should be one: the driver fails on them",
                            block, i - 1, i, reiser4_item_kind(right.id)->name);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* The item comes after all before it. */
static void check_order(struct walk *walk, const struct reiser4_item *item, uint64_t block) {
    struct reiser4_key last = reiser4_item_unit_key(item, reiser4_item_units(item) - 1);
    int order = walk->any ? reiser4_key_compare(&walk->last, &item->key) : -1;

    if (order > 0 || (order == 0 && item->id != REISER4_ITEM_ENTRIES))
        reiser4_check_wrong(
            walk->check,
            "node at block %" PRIu64 ": its keys are not above those of the node before it", block);
    walk->last = last;
    walk->any = true;
}

static int walk_node(struct walk *walk, uint64_t block, uint32_t level,
                     const struct reiser4_key *first);

static int walk_item(struct walk *walk, const struct reiser4_view *view, uint32_t i) {
    struct reiser4_item item = reiser4_item_of(view->node, i);
    uint32_t level = reiser4_node_level(view->node);

    if (i > 0)
        check_neighbours(walk->check, view->node, i, view->block);
    if (item.id == REISER4_ITEM_POINTER)
        return walk_node(walk, reiser4_node_pointer(view->node, i), level - 1, &item.key);
    check_order(walk, &item, view->block);
    return check_item(walk->check, &item);
}

/* `first`: its first key, as the parent has it; NULL: the root. */
static int walk_node(struct walk *walk, uint64_t block, uint32_t level,
                     const struct reiser4_key *first) {
    struct reiser4_check *check = walk->check;
    struct reiser4_view view;
    int error = reiser4_node_get(&check->r4->jnodes, block, level, &view);

    if (error) {
        check->complete = false;
        return reiser4_check_go_on(error);
    }
    struct reiser4_key found = reiser4_node_key(view.node, 0);
    if (first && reiser4_key_compare(first, &found) != 0)
        reiser4_check_wrong(check,
                            "node at block %" PRIu64
                            ": its first key is not the one that its parent has for it",
                            block);
    error = reiser4_check_hold(check, block, 1, "the tree");
    for (uint32_t i = 0; i < reiser4_node_items(view.node) && !error; i++)
        error = walk_item(walk, &view, i);
    reiser4_view_put(&view);
    return error;
}

int reiser4_check_tree(struct reiser4_check *check) {
    struct walk walk = {.check = check};

    return walk_node(&walk, check->r4->tree.root, check->r4->tree.height, NULL);
}
