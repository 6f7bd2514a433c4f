/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over data.c and the buffer cache. File data that goes through the journal
 * (journal=data), and data that a journal replayed in memory only (a read-only mount).
 *
 * Invariant: where a block of data has a buffer, its bytes are the newest. Blocks get buffers when
 * they are stored, keep them as long as the cache likes, and lose them when they are freed
 * (ext_forget), which revokes them as well.
 */
#include <string.h>

#include "layouts/ext/ext.h"

/* Copies between the block at `offset` of the range and `block`. */
static void range_copy(const struct data_range *range, uint32_t offset, uint32_t size, char *block,
                       bool to_block) {
    const struct iovec *piece = range->vector;

    for (; offset >= piece->iov_len; piece++)
        offset -= (uint32_t)piece->iov_len;
    while (size > 0) {
        char *memory = (char *)piece->iov_base + offset;
        uint32_t part = (uint32_t)piece->iov_len - offset;

        if (part > size)
            part = size;
        if (to_block)
            memcpy(block, memory, part);
        else
            memcpy(memory, block, part);
        block += part;
        size -= part;
        offset = 0;
        piece++;
    }
}

/* The next block of the range that is mapped, from *offset on; *offset goes past it. 1, or 0: no
 * more, or an error. */
static int range_block(struct inode *inode, const struct data_range *range, uint32_t *offset,
                       uint64_t *block) {
    uint32_t bits = ext_of(inode->volume)->geometry.block_bits;
    uint64_t count;

    while (*offset < range->length && range->offset + *offset < inode->size) {
        uint64_t left = range->length - *offset;
        int rc = ext_bmap(inode, (range->offset + *offset) >> bits, block, &count);

        if (rc < 0)
            return rc;
        if (*block != 0) {
            *offset += 1u << bits;
            return 1;
        }
        *offset = count << bits < left ? *offset + (uint32_t)(count << bits) : range->length;
    }
    return 0;
}

static int store_through_journal(struct inode *inode, const struct data_range *range) {
    struct ext *ext = ext_of(inode->volume);
    uint32_t size = ext->geometry.block_size, offset = 0;
    uint64_t block;
    int rc;

    while ((rc = range_block(inode, range, &offset, &block)) == 1) {
        struct buffer *buffer;

        rc = buffer_get_zeroed(ext->buffers, block, PURPOSE_DATA, &buffer);
        if (rc < 0)
            break;
        range_copy(range, offset - size, size, buffer_data(buffer), true);
        ext_dirty(ext, buffer);
        buffer_put(buffer);
    }
    ext_note_change(inode, true);
    return rc;
}

int ext_store(struct inode *inode, const struct data_range *range, struct device_batch *batch) {
    if (ext_is_inline(inode))
        return ext_inline_store(inode, range);
    if (ext_journals_data(ext_of(inode->volume)))
        return store_through_journal(inode, range);
    return ext_store_pages(inode, range, batch);
}

int ext_load(struct inode *inode, const struct data_range *range, struct device_batch *batch) {
    struct ext *ext = ext_of(inode->volume);
    uint32_t size = ext->geometry.block_size, offset = 0;
    uint64_t block;
    int rc =
        ext_is_inline(inode) ? ext_inline_load(inode, range) : mapped_load(inode, range, batch);

    if (rc < 0 || ext_is_inline(inode) || !(ext->overlay || ext_journals_data(ext)))
        return rc;
    while ((rc = range_block(inode, range, &offset, &block)) == 1) {
        struct buffer *buffer = buffer_peek(ext->buffers, block);

        if (buffer)
            range_copy(range, offset - size, size, buffer_data(buffer), false);
        buffer_put(buffer);
    }
    return rc;
}
