/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. The object plugin reg40. Interface: layouts/reiser4/body.h.
 */
#include <errno.h>
#include <string.h>

#include "layouts/reiser4/body.h"

/* The longest extent that map answers with of bytes in the tree. */
#define TAIL_EXTENT PAGE_SIZE_BYTES

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* --- where bytes are ---------------------------------------------------------------------------
 */

/* While a log has not been replayed, neighbouring blocks may have wandered apart. */
static void follow_overlay(const struct reiser4 *r4, uint64_t offset, struct extent *extent) {
    uint64_t within = (offset - extent->offset) / REISER4_BLOCK_SIZE;

    if (r4->journal.overlay.count == 0)
        return;
    extent->offset += within * REISER4_BLOCK_SIZE;
    extent->length = REISER4_BLOCK_SIZE;
    extent->device_offset = REISER4_BLOCK_SIZE *
                            reiser4_overlay_at(&r4->journal.overlay,
                                               extent->device_offset / REISER4_BLOCK_SIZE + within);
}

/* Where no extent is: a hole up to the end of the block. */
static int map_extent(struct inode *inode, uint64_t offset, struct extent *extent) {
    struct reiser4_extent found;
    int error = reiser4_extent_find(inode, offset, &found);

    if (error == -ENOENT) {
        *extent = (struct extent){.offset = offset - offset % REISER4_BLOCK_SIZE,
                                  .length = REISER4_BLOCK_SIZE,
                                  .flags = EXTENT_HOLE};
        return 0;
    }
    if (error)
        return error;
    *extent = (struct extent){.offset = found.offset, .length = found.width * REISER4_BLOCK_SIZE};
    if (reiser4_extent_is_allocated(&found)) {
        extent->device_offset = found.start * REISER4_BLOCK_SIZE;
        follow_overlay(reiser4_of(inode->volume), offset, extent);
    } else {
        extent->flags = EXTENT_HOLE;
    }
    return 0;
}

/* Bytes in the tree; *device_offset is where their leaf lies. */
static int map_tail(struct inode *inode, uint64_t offset, struct extent *extent) {
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_key key = reiser4_key_of_body(&object, offset);
    struct reiser4_cursor cursor;
    int error = reiser4_tree_floor(&reiser4_of(inode->volume)->tree, &key, &cursor);

    if (error)
        return error == -ENOENT ? map_extent(inode, offset, extent) : error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    uint64_t block = cursor.step[cursor.bottom].view.block;
    reiser4_cursor_release(&cursor);
    if (item.id != REISER4_ITEM_TAIL || !reiser4_key_same_object(&item.key, &key) ||
        offset - item.key.word[REISER4_OFFSET] >= item.length)
        return map_extent(inode, offset, extent);
    *extent = (struct extent){.offset = item.key.word[REISER4_OFFSET],
                              .length = item.length,
                              .device_offset = block * REISER4_BLOCK_SIZE,
                              .flags = EXTENT_ENCODED};
    return 0;
}

static int reg_map(struct inode *inode, uint64_t offset, struct extent *extent) {
    enum reiser4_form form;
    int error = reiser4_body_form(inode, &form);

    if (error)
        return error;
    if (offset >= inode->size || form == REISER4_FORM_EMPTY) {
        *extent = (struct extent){
            .offset = offset, .length = (uint64_t)INT64_MAX + 1 - offset, .flags = EXTENT_HOLE};
        return 0;
    }
    return form == REISER4_FORM_EXTENTS ? map_extent(inode, offset, extent)
                                        : map_tail(inode, offset, extent);
}

/* --- reading -----------------------------------------------------------------------------------
 */

/* A piece of memory for the bytes from `offset` on; what lies behind the end of the file is zero.
 */
static int load_tails(struct inode *inode, uint64_t offset, const struct iovec *piece) {
    const struct reiser4_inode *private = reiser4_inode_of(inode);
    /* While some of it is pending, there may be none between that and what is stored. */
    uint64_t end =
        private->pending_blocks.blocks > 0 ? smaller(private->bytes, inode->size) : inode->size;
    uint64_t stored = offset < end ? smaller(end - offset, piece->iov_len) : 0;

    memset((uint8_t *)piece->iov_base + stored, 0, piece->iov_len - stored);
    return stored > 0 ? reiser4_tail_read(inode, offset, stored, piece->iov_base) : 0;
}

/* Of a body of both forms, pages are of one form each. */
static int load_page(struct inode *inode, uint64_t offset, const struct iovec *page,
                     struct device_batch *batch) {
    struct data_range range = {offset, PAGE_SIZE_BYTES, page, 1};
    struct extent extent;
    int error = offset < inode->size ? map_tail(inode, offset, &extent) : 0;

    if (error)
        return error;
    return offset < inode->size && extent.flags & EXTENT_ENCODED
               ? load_tails(inode, offset, page)
               : mapped_load(inode, &range, batch);
}

static int load_mixed(struct inode *inode, uint64_t offset, const struct iovec *piece,
                      struct device_batch *batch) {
    int error = 0;

    for (size_t done = 0; done < piece->iov_len && !error; done += PAGE_SIZE_BYTES) {
        struct iovec page = {(uint8_t *)piece->iov_base + done, PAGE_SIZE_BYTES};
        error = load_page(inode, offset + done, &page, batch);
    }
    return error;
}

/* The block's data, if they wait for a commit; NULL: they are on the disk. */
static const uint8_t *kept_at(const struct reiser4 *r4, uint64_t block) {
    const uint8_t *data = reiser4_kept_find(&r4->atom.kept, block);

    return data ? data : reiser4_kept_find(&r4->atom.commit.kept, block);
}

/* Of what was read from the disk, the blocks for which newer data are kept. */
static int load_kept(struct inode *inode, const struct data_range *range) {
    const struct reiser4 *r4 = reiser4_of(inode->volume);
    struct data_cursor cursor = data_cursor_of(range);
    struct reiser4_extent extent = {0};
    int error = 0;

    if (r4->atom.kept.count == 0 && r4->atom.commit.kept.count == 0)
        return 0;
    for (uint64_t done = 0; done < range->length && !error; done += REISER4_BLOCK_SIZE) {
        uint64_t offset = range->offset + done, within;
        if (offset >= inode->size)
            break;
        within = (offset - extent.offset) / REISER4_BLOCK_SIZE;
        if (offset < extent.offset || within >= extent.width) {
            error = reiser4_extent_find(inode, offset, &extent);
            within = (offset - extent.offset) / REISER4_BLOCK_SIZE;
        }
        const uint8_t *data = error || !reiser4_extent_is_allocated(&extent)
                                  ? NULL
                                  : kept_at(r4, extent.start + within);
        if (data)
            memcpy(data_cursor_at(&cursor, offset).iov_base, data, REISER4_BLOCK_SIZE);
    }
    return error == -ENOENT ? 0 : error;
}

static int load_extents(struct inode *inode, const struct data_range *range,
                        struct device_batch *batch) {
    int error = mapped_load(inode, range, batch);

    return error ? error : load_kept(inode, range);
}

static int reg_load(struct inode *inode, const struct data_range *range,
                    struct device_batch *batch) {
    uint64_t offset = range->offset;
    enum reiser4_form form;
    int error = reiser4_body_form(inode, &form);

    if (error || form == REISER4_FORM_EXTENTS || form == REISER4_FORM_EMPTY)
        return error ? error : load_extents(inode, range, batch);
    for (int i = 0; i < range->vector_count && !error; i++) {
        const struct iovec *piece = &range->vector[i];
        error = form == REISER4_FORM_MIXED ? load_mixed(inode, offset, piece, batch)
                                           : load_tails(inode, offset, piece);
        offset += piece->iov_len;
    }
    return error;
}

const struct reiser4_body_plugin reiser4_reg40 = {
    .name = "reg40",
    .reserve = reiser4_reg_reserve,
    .load = reg_load,
    .store = reiser4_reg_store,
    .truncate = reiser4_reg_truncate,
    .punch = reiser4_reg_punch,
    .map = reg_map,
};
