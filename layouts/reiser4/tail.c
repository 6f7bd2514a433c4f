/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Bodies whose bytes are in the tree. Interface: layouts/reiser4/body.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "layouts/reiser4/body.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

int reiser4_tail_read(struct inode *inode, uint64_t offset, uint64_t length, uint8_t *bytes) {
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_key key = reiser4_key_of_body(&object, offset);
    struct reiser4_cursor cursor;
    int error = reiser4_tree_floor(&reiser4_of(inode->volume)->tree, &key, &cursor);

    while (!error && length > 0) {
        struct reiser4_item item = reiser4_cursor_item(&cursor);
        uint64_t start = item.key.word[REISER4_OFFSET];
        bool here = item.id == REISER4_ITEM_TAIL && reiser4_key_same_object(&item.key, &key) &&
                    start <= offset && offset - start < item.length;
        uint64_t count = here ? smaller(start + item.length - offset, length) : 0;
        if (!here) {
            reiser4_cursor_release(&cursor);
            return reiser4_corrupt(inode->volume,
                                   "object %" PRIu64 ": byte %" PRIu64
                                   " of the file is not in the tree",
                                   inode->ino, offset);
        }
        memcpy(bytes, item.body + (offset - start), count);
        bytes += count;
        offset += count;
        length -= count;
        if (length > 0)
            error = reiser4_cursor_next_item(&cursor);
    }
    if (!error || error == -ENOENT)
        reiser4_cursor_release(&cursor);
    return error != -ENOENT ? error
                            : reiser4_corrupt(inode->volume,
                                              "object %" PRIu64 ": byte %" PRIu64
                                              " of the file is not in the tree",
                                              inode->ino, offset);
}
