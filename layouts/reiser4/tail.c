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

static int missing(const struct inode *inode, uint64_t offset) {
    return reiser4_corrupt(inode->volume,
                           "object %" PRIu64 ": byte %" PRIu64 " of the file is not in the tree",
                           inode->ino, offset);
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
            return missing(inode, offset);
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
    return error != -ENOENT ? error : missing(inode, offset);
}

/* --- changes -----------------------------------------------------------------------------------
 */

/* As many of the bytes as the item with the byte at `offset`, which is there, has. */
static int overwrite(struct inode *inode, uint64_t offset, uint64_t length, const uint8_t *bytes,
                     uint64_t *done) {
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_key key = reiser4_key_of_body(&object, offset);
    struct reiser4_cursor cursor;
    uint8_t *body;
    int error = reiser4_tree_floor(&reiser4_of(inode->volume)->tree, &key, &cursor);

    if (error)
        return error == -ENOENT ? missing(inode, offset) : error;
    struct reiser4_item item = reiser4_cursor_item(&cursor);
    uint64_t within = offset - item.key.word[REISER4_OFFSET];
    bool here = item.id == REISER4_ITEM_TAIL && reiser4_key_same_object(&item.key, &key) &&
                within < item.length;
    if (here)
        error = reiser4_cursor_change(&cursor, &body);
    if (here && !error) {
        *done = smaller(item.length - within, length);
        if (bytes)
            memcpy(body + within, bytes, *done);
        else
            memset(body + within, 0, *done);
    }
    reiser4_cursor_release(&cursor);
    return here ? error : missing(inode, offset);
}

/* Behind the last byte. */
static int append(struct inode *inode, uint64_t length, const uint8_t *bytes) {
    static const uint8_t zeros[REISER4_BLOCK_SIZE];
    struct reiser4_inode *private = reiser4_inode_of(inode);
    const struct reiser4_object object = reiser4_object_of(inode);
    int error = 0;

    while (length > 0 && !error) {
        uint64_t most = bytes ? REISER4_INSERT_MAX - 1 : sizeof(zeros);
        struct reiser4_item item = {
            .key = reiser4_key_of_body(&object, private->bytes),
            .id = REISER4_ITEM_TAIL,
            .length = (uint32_t)smaller(length, most),
            .body = (uint8_t *)(uintptr_t)(bytes ? bytes : zeros),
        };
        error = reiser4_tree_insert(&reiser4_of(inode->volume)->tree, &item);
        private->bytes += item.length;
        length -= item.length;
        bytes = bytes ? bytes + item.length : NULL;
    }
    private->form = REISER4_FORM_TAILS;
    return error;
}

int reiser4_tail_write(struct inode *inode, uint64_t offset, uint64_t length,
                       const uint8_t *bytes) {
    const struct reiser4_inode *private = reiser4_inode_of(inode);
    uint64_t done = 0;
    int error = offset > private->bytes ? append(inode, offset - private->bytes, NULL) : 0;

    while (!error && length > 0 && offset < private->bytes) {
        error = overwrite(inode, offset, smaller(length, private->bytes - offset), bytes, &done);
        offset += done;
        length -= done;
        bytes = bytes ? bytes + done : NULL;
    }
    return error || length == 0 ? error : append(inode, length, bytes);
}

int reiser4_tail_cut(struct inode *inode, uint64_t size) {
    struct reiser4_inode *private = reiser4_inode_of(inode);
    const struct reiser4_object object = reiser4_object_of(inode);
    struct reiser4_key from = reiser4_key_of_body(&object, size);
    struct reiser4_key to = reiser4_key_of_body(&object, UINT64_MAX);
    bool done = size >= private->bytes;
    int error = 0;

    if (done)
        return 0;
    while (!done && !error)
        error = reiser4_tree_cut(&reiser4_of(inode->volume)->tree, &from, &to, UINT32_MAX, NULL,
                                 NULL, &done);
    private->bytes = size;
    if (size == 0)
    private->form = REISER4_FORM_EMPTY;
    return error;
}
