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
