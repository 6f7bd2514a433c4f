/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over layout->map and fs/device. Interface: fs/layout.h.
 *
 * File data that lies on the device as it is: a range of the file is cut along its extents, and
 * extents that follow each other on the device too become one request.
 *
 * Invariant: the cursor stands at the memory of the byte of the file that is next, since both are
 * walked in the same direction, once.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "fs/volume.h"

/* Pieces of memory in one request; a longer run takes several. */
#define MAPPED_PIECES 257

struct mapped {
    struct inode *inode;
    enum device_operation operation;
    struct device_batch *batch;
    const struct iovec *piece; /* the cursor: */
    size_t piece_done;         /* bytes of *piece before it */
    uint64_t device_offset;    /* the request being built */
    uint32_t length;
    struct iovec vector[MAPPED_PIECES];
    int vector_count;
};

/* Takes up to `length` bytes of memory, as far as they are in one piece. */
static struct iovec mapped_memory(struct mapped *mapped, uint64_t length) {
    struct iovec memory = {(char *)mapped->piece->iov_base + mapped->piece_done,
                           mapped->piece->iov_len - mapped->piece_done};

    if (memory.iov_len > length)
        memory.iov_len = length;
    mapped->piece_done += memory.iov_len;
    if (mapped->piece_done == mapped->piece->iov_len) {
        mapped->piece++;
        mapped->piece_done = 0;
    }
    return memory;
}

static int mapped_submit(struct mapped *mapped) {
    struct device_request request = {
        .operation = mapped->operation,
        .purpose = PURPOSE_DATA,
        .offset = mapped->device_offset,
        .length = mapped->length,
        .vector = mapped->vector,
        .vector_count = mapped->vector_count,
        .batch = mapped->batch,
    };

    if (mapped->length == 0)
        return 0;
    mapped->length = 0;
    mapped->vector_count = 0;
    return device_submit(mapped->inode->volume->device, &request);
}

/* Adds stored bytes to the request, after submitting it where they do not follow it. */
static int mapped_add(struct mapped *mapped, uint64_t device_offset, uint64_t length) {
    while (length > 0) {
        struct iovec *last = &mapped->vector[mapped->vector_count];

        if (mapped->vector_count == MAPPED_PIECES ||
            device_offset != mapped->device_offset + mapped->length) {
            int error = mapped_submit(mapped);

            if (error)
                return error;
            last = mapped->vector;
        }
        if (mapped->length == 0)
            mapped->device_offset = device_offset;
        *last = mapped_memory(mapped, length);
        mapped->vector_count++;
        mapped->length += (uint32_t)last->iov_len;
        device_offset += last->iov_len;
        length -= last->iov_len;
    }
    return 0;
}

/* Bytes that are not stored: they read as zeros, and are zero already when written. */
static void mapped_skip(struct mapped *mapped, uint64_t length) {
    while (length > 0) {
        struct iovec memory = mapped_memory(mapped, length);

        if (mapped->operation == DEVICE_READ)
            memset(memory.iov_base, 0, memory.iov_len);
        length -= memory.iov_len;
    }
}

/* The extent at `offset`, with offset and length cut to what lies from there on. */
static int mapped_extent(struct inode *inode, uint64_t offset, struct extent *extent) {
    const struct volume *volume = inode->volume;
    int error = volume->layout->map(inode, offset, extent);
    uint64_t before = offset - extent->offset;

    if (error)
        return error;
    if (extent->offset > offset || extent->length <= before || extent->flags & EXTENT_ENCODED) {
        log_error(volume->log,
                  "%s: inode %" PRIu64 ": no plain extent at byte %" PRIu64 " of the file",
                  volume->name, inode->ino, offset);
        return -EUCLEAN;
    }
    extent->offset = offset;
    extent->length -= before;
    extent->device_offset += before;
    return 0;
}

/* Where the block ends that holds the file's last byte. */
static uint64_t mapped_file_end(const struct inode *inode) {
    const struct volume *volume = inode->volume;
    uint64_t block = volume->buffers ? buffer_block_size(volume->buffers) : PAGE_SIZE_BYTES;

    return (inode->size + block - 1) / block * block;
}

static int mapped_transfer(struct inode *inode, const struct data_range *range,
                           enum device_operation operation, struct device_batch *batch) {
    struct mapped mapped; /* not initialised as a whole: the vector is large */
    uint64_t offset = range->offset, end = range->offset + range->length;
    uint64_t stored_end = mapped_file_end(inode);
    unsigned unstored = EXTENT_HOLE | (operation == DEVICE_READ ? EXTENT_UNWRITTEN : 0);
    int error = 0;

    mapped.inode = inode;
    mapped.operation = operation;
    mapped.batch = batch;
    mapped.piece = range->vector;
    mapped.piece_done = 0;
    mapped.device_offset = 0;
    mapped.length = 0;
    mapped.vector_count = 0;
    if (stored_end > end)
        stored_end = end;
    while (offset < stored_end && !error) {
        struct extent extent;

        error = mapped_extent(inode, offset, &extent);
        if (error)
            break;
        if (extent.length > stored_end - offset)
            extent.length = stored_end - offset;
        if (extent.flags & unstored)
            mapped_skip(&mapped, extent.length);
        else
            error = mapped_add(&mapped, extent.device_offset, extent.length);
        offset += extent.length;
    }
    if (!error)
        error = mapped_submit(&mapped);
    if (!error && offset < end)
        mapped_skip(&mapped, end - offset);
    return error;
}

/* Zeroes what was read from the last block behind the end of the file. */
static void mapped_clear_tail(const struct inode *inode, const struct data_range *range) {
    uint64_t offset = range->offset;

    for (int i = 0; i < range->vector_count; i++) {
        const struct iovec *piece = &range->vector[i];
        uint64_t kept = inode->size > offset ? inode->size - offset : 0;

        if (kept < piece->iov_len)
            memset((char *)piece->iov_base + kept, 0, piece->iov_len - kept);
        offset += piece->iov_len;
    }
}

int mapped_load(struct inode *inode, const struct data_range *range, struct device_batch *batch) {
    int error = mapped_transfer(inode, range, DEVICE_READ, batch);

    if (!error && range->offset + range->length > inode->size)
        mapped_clear_tail(inode, range);
    return error;
}

int mapped_store(struct inode *inode, const struct data_range *range, struct device_batch *batch) {
    return mapped_transfer(inode, range, DEVICE_WRITE, batch);
}
