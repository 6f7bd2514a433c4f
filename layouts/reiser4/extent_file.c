/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Bodies whose blocks lie beside the tree. Interface:
 * layouts/reiser4/body.h.
 */
#include <errno.h>
#include <inttypes.h>

#include "layouts/reiser4/body.h"

/* The places are those of blocks in the volume. */
static int extent_check(struct inode *inode, const struct reiser4_extent *extent) {
    const struct reiser4 *r4 = reiser4_of(inode->volume);

    if (!reiser4_extent_is_allocated(extent))
        return 0;
    if (extent->start < REISER4_FIRST_FREE || extent->start >= r4->super.blocks ||
        extent->width > r4->super.blocks - extent->start)
        return reiser4_corrupt(inode->volume,
                               "object %" PRIu64 ": the extent at byte %" PRIu64
                               " lies at blocks that cannot be, %" PRIu64 " and %" PRIu64 " more",
                               inode->ino, extent->offset, extent->start, extent->width - 1);
    return 0;
}

int reiser4_extent_find(struct inode *inode, uint64_t offset, struct reiser4_extent *extent) {
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_key key = reiser4_key_of_body(&object, offset);
    struct reiser4_cursor cursor;
    int error = reiser4_tree_floor(&reiser4_of(inode->volume)->tree, &key, &cursor);

    if (error)
        return error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    bool here = item.id == REISER4_ITEM_EXTENT && reiser4_key_same_object(&item.key, &key);
    if (here)
        *extent = reiser4_extent_load(&item, cursor.unit);
    reiser4_cursor_release(&cursor);
    if (!here || (offset - extent->offset) / REISER4_BLOCK_SIZE >= extent->width)
        return -ENOENT;
    return extent_check(inode, extent);
}

int reiser4_extent_covered(struct inode *inode, uint64_t *blocks) {
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_key key = reiser4_key_of_body(&object, UINT64_MAX);
    struct reiser4_cursor cursor;
    int error = reiser4_tree_floor(&reiser4_of(inode->volume)->tree, &key, &cursor);

    *blocks = 0;
    if (error)
        return error == -ENOENT ? 0 : error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    if (item.id == REISER4_ITEM_EXTENT && reiser4_key_same_object(&item.key, &key)) {
        struct reiser4_extent last = reiser4_extent_load(&item, reiser4_item_units(&item) - 1);
        *blocks = last.offset / REISER4_BLOCK_SIZE + last.width;
    }
    reiser4_cursor_release(&cursor);
    return 0;
}

/* --- changes -----------------------------------------------------------------------------------
 */

struct change {
    struct inode *inode;
    uint64_t from, to; /* blocks of the file */
};

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Blocks of the file are not the file's any more. */
static int let_go(struct inode *inode, uint64_t block, uint64_t count) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    int error = 0;

    reiser4_inode_of(inode)->bytes -= count * REISER4_BLOCK_SIZE;
    reiser4_kept_drop(&r4->atom.kept, block, count);
    while (count > 0 && !error) {
        bool new = reiser4_space_is_new(r4, block);
        uint64_t run = 1;
        while (run < count && reiser4_space_is_new(r4, block + run) == new)
            run++;
        if (new)
            reiser4_space_give_back(r4, block, run);
        else
            error = reiser4_space_release(r4, block, run);
        block += run;
        count -= run;
    }
    return error;
}

/* reiser4_cut_visit: what lies in the change's range is let go. */
static int visit_units(void *context, const struct reiser4_item *item, uint32_t from, uint32_t to) {
    const struct change *change = context;
    int error = 0;

    for (uint32_t unit = from; unit < to && !error; unit++) {
        struct reiser4_extent extent = reiser4_extent_load(item, unit);
        uint64_t first = extent.offset / REISER4_BLOCK_SIZE, end = first + extent.width;
        uint64_t start = first > change->from ? first : change->from;
        end = smaller(end, change->to);
        if (!reiser4_extent_is_allocated(&extent) || start >= end)
            continue;
        error = extent_check(change->inode, &extent);
        if (!error)
            error = let_go(change->inode, extent.start + (start - first), end - start);
    }
    return error;
}

/* Units that are put in, one behind the other. */
struct units {
    uint64_t at; /* block of the file, of the first unit */
    uint32_t count;
    uint64_t blocks; /* of all units */
    uint8_t body[4 * sizeof(struct reiser4_disk_extent)];
};

static void units_add(struct units *units, uint64_t start, uint64_t width) {
    if (width == 0)
        return;
    if (units->count > 0) { /* one unit with the one before it? */
        struct reiser4_item item = {.length = units->count * sizeof(struct reiser4_disk_extent),
                                    .body = units->body};
        struct reiser4_extent last = reiser4_extent_load(&item, units->count - 1);
        struct reiser4_extent next = {.start = start, .width = width};
        if (reiser4_extent_continues(&last, &next)) {
            reiser4_extent_store(units->body, units->count - 1, last.start, last.width + width);
            return;
        }
    }
    reiser4_extent_store(units->body, units->count++, start, width);
}

static int units_insert(struct inode *inode, struct units *units) {
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_item item = {.key = reiser4_key_of_body(&object, units->at * REISER4_BLOCK_SIZE),
                                .id = REISER4_ITEM_EXTENT,
                                .length =
                                    units->count * (uint32_t)sizeof(struct reiser4_disk_extent),
                                .body = units->body};

    reiser4_inode_of(inode)->form = REISER4_FORM_EXTENTS;
    return units->count ? reiser4_tree_insert(&reiser4_of(inode->volume)->tree, &item) : 0;
}

/* The start of the part of an extent from block `at` of the file on. */
static uint64_t start_at(const struct reiser4_extent *extent, uint64_t at) {
    return reiser4_extent_is_allocated(extent)
               ? extent->start + (at - extent->offset / REISER4_BLOCK_SIZE)
               : extent->start;
}

/* Takes out the units that have blocks of the range, as a whole. */
static int cut_units(const struct change *change) {
    const struct reiser4_object object = reiser4_object_of(change->inode);
    struct reiser4_extent first;
    bool done = false;
    int error = reiser4_extent_find(change->inode, change->from * REISER4_BLOCK_SIZE, &first);

    if (error)
        return error == -ENOENT ? 0 : error;
    struct reiser4_key from = reiser4_key_of_body(&object, first.offset);
    struct reiser4_key to = reiser4_key_of_body(
        &object, change->to == UINT64_MAX ? UINT64_MAX : change->to * REISER4_BLOCK_SIZE - 1);
    while (!done && !error)
        error = reiser4_tree_cut(&reiser4_of(change->inode->volume)->tree, &from, &to, UINT32_MAX,
                                 visit_units, (void *)(uintptr_t)change, &done);
    return error;
}

int reiser4_extent_set(struct inode *inode, uint64_t from, uint64_t to, uint64_t start) {
    struct change change = {inode, from, to};
    struct units units = {.at = from};
    struct reiser4_extent left = {0}, right = {0};
    uint64_t covered, right_end = to;
    int error = reiser4_extent_covered(inode, &covered);

    if (!error && covered < from) {
        units.at = covered;
        units_add(&units, REISER4_EXTENT_HOLE, from - covered);
    } else if (!error && covered > from) {
        error = reiser4_extent_find(inode, from * REISER4_BLOCK_SIZE, &left);
        units.at = left.offset / REISER4_BLOCK_SIZE;
        units_add(&units, left.start, from - units.at);
        if (!error && covered > to) {
            error = reiser4_extent_find(inode, (to - 1) * REISER4_BLOCK_SIZE, &right);
            right_end = right.offset / REISER4_BLOCK_SIZE + right.width;
        }
    }
    if (!error && covered > from)
        error = cut_units(&change);
    if (error)
        return error;
    units_add(&units, start, to - from);
    if (right_end > to)
        units_add(&units, start_at(&right, to), right_end - to);
    if (start != REISER4_EXTENT_HOLE)
        reiser4_inode_of(inode)->bytes += (to - from) * REISER4_BLOCK_SIZE;
    return units_insert(inode, &units);
}

int reiser4_extent_cut(struct inode *inode, uint64_t from) {
    struct change change = {inode, from, UINT64_MAX};
    struct units units = {0};
    struct reiser4_extent left;
    int error = reiser4_extent_find(inode, from * REISER4_BLOCK_SIZE, &left);

    if (error)
        return error == -ENOENT ? 0 : error;
    units.at = left.offset / REISER4_BLOCK_SIZE;
    units_add(&units, left.start, from - units.at);
    error = cut_units(&change);
    if (!error)
        error = units_insert(inode, &units);
    if (!error && from == 0)
        reiser4_inode_of(inode)->form = REISER4_FORM_EMPTY;
    return error;
}
