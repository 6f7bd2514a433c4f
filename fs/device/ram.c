/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, a bottom.
 * Sparse memory: a two-level table of 64 KiB chunks, allocated when the first byte other than zero
 * is written. The root is one calloc, whose untouched pages the system does not
 * back, so that terabytes open at once.
 *
 * Invariants:
 *  1. A chunk that is absent reads as zeros.
 *  2. A chunk is only released when a whole chunk is zeroed, and a leaf only at close: requests for
 *     ranges that do not overlap never see each other's pointers vanish.
 * Locking: reading takes none, since pointers are installed atomically; a mutex guards the making
 * and recycling of chunks. Overlapping ranges are the caller's to order.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fs/arena.h"
#include "fs/device/device.h"
#include "fs/device/stack.h"

#define CHUNK_SIZE  (64u << 10)
#define LEAF_CHUNKS 4096u
#define LEAF_SIZE   ((uint64_t)CHUNK_SIZE * LEAF_CHUNKS)

struct leaf {
    _Atomic(unsigned char *) chunks[LEAF_CHUNKS];
};

struct ram {
    struct device device;
    uint64_t leaf_count;
    _Atomic(struct leaf *) *leaves;
    pthread_mutex_t mutex;
    struct recycler chunks; /* chunks that were zeroed wait here for the next use */
};

static inline size_t smaller(uint64_t a, uint64_t b) {
    return (size_t)(a < b ? a : b);
}

/* Where the chunk of `offset` is recorded; NULL when its leaf is absent. */
static _Atomic(unsigned char *) *ram_slot(const struct ram *ram, uint64_t offset) {
    struct leaf *leaf =
        atomic_load_explicit(&ram->leaves[offset / LEAF_SIZE], memory_order_acquire);
    return leaf ? &leaf->chunks[offset % LEAF_SIZE / CHUNK_SIZE] : NULL;
}

static unsigned char *ram_chunk(const struct ram *ram, uint64_t offset) {
    _Atomic(unsigned char *) *slot = ram_slot(ram, offset);
    return slot ? atomic_load_explicit(slot, memory_order_acquire) : NULL;
}

static struct leaf *ram_leaf_make(struct ram *ram, uint64_t offset) {
    _Atomic(struct leaf *) *slot = &ram->leaves[offset / LEAF_SIZE];
    struct leaf *leaf = atomic_load_explicit(slot, memory_order_acquire);
    if (leaf)
        return leaf;
    struct leaf *made = calloc(1, sizeof(*made));
    if (made && !atomic_compare_exchange_strong(slot, &leaf, made)) {
        free(made);
        return leaf;
    }
    return made;
}

/* Makes the chunk of `offset`; zeroed unless the request at hand fills it from its start on. */
static unsigned char *ram_chunk_make(struct ram *ram, uint64_t offset, bool whole) {
    struct leaf *leaf = ram_leaf_make(ram, offset);
    if (!leaf)
        return NULL;
    _Atomic(unsigned char *) *slot = &leaf->chunks[offset % LEAF_SIZE / CHUNK_SIZE];
    pthread_mutex_lock(&ram->mutex);
    unsigned char *chunk = *slot;
    if (!chunk) {
        chunk = whole ? recycle_get_dirty(&ram->chunks) : recycle_get(&ram->chunks);
        atomic_store_explicit(slot, chunk, memory_order_release);
    }
    pthread_mutex_unlock(&ram->mutex);
    return chunk;
}

static void ram_chunk_drop(struct ram *ram, _Atomic(unsigned char *) *slot) {
    pthread_mutex_lock(&ram->mutex);
    unsigned char *chunk = atomic_exchange(slot, NULL);
    if (chunk)
        recycle_put(&ram->chunks, chunk);
    pthread_mutex_unlock(&ram->mutex);
}

static bool all_zero(const unsigned char *bytes, size_t length) {
    return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

static void ram_read(const struct ram *ram, uint64_t offset, unsigned char *bytes, size_t length) {
    while (length > 0) {
        size_t within = offset % CHUNK_SIZE;
        size_t piece = smaller(length, CHUNK_SIZE - within);
        const unsigned char *chunk = ram_chunk(ram, offset);
        if (chunk)
            memcpy(bytes, chunk + within, piece);
        else
            memset(bytes, 0, piece);
        offset += piece;
        bytes += piece;
        length -= piece;
    }
}

/* Does the request cover the whole chunk that holds `offset`? */
static bool ram_covers(const struct device_request *request, uint64_t offset) {
    uint64_t start = offset - offset % CHUNK_SIZE;
    return start >= request->offset && start + CHUNK_SIZE <= request->offset + request->length;
}

/* Writes one piece of the request. */
static int ram_write(struct ram *ram, const struct device_request *request, uint64_t offset,
                     const unsigned char *bytes, size_t length) {
    while (length > 0) {
        size_t within = offset % CHUNK_SIZE;
        size_t piece = smaller(length, CHUNK_SIZE - within);
        unsigned char *chunk = ram_chunk(ram, offset);
        if (!chunk && !all_zero(bytes, piece)) {
            chunk = ram_chunk_make(ram, offset, within == 0 && ram_covers(request, offset));
            if (!chunk)
                return -ENOSPC;
        }
        if (chunk)
            memcpy(chunk + within, bytes, piece);
        offset += piece;
        bytes += piece;
        length -= piece;
    }
    return 0;
}

static int ram_submit(struct device *device, const struct device_request *request) {
    struct ram *ram = (struct ram *)device;
    uint64_t offset = request->offset;
    int error = 0;
    for (int i = 0; i < request->vector_count && !error; i++) {
        const struct iovec *piece = &request->vector[i];
        if (request->operation == DEVICE_READ)
            ram_read(ram, offset, piece->iov_base, piece->iov_len);
        else
            error = ram_write(ram, request, offset, piece->iov_base, piece->iov_len);
        offset += piece->iov_len;
    }
    if (error)
        log_error(device->log, "%s: no memory left for what is written", device->name);
    return error;
}

static int ram_zero(struct device *device, uint64_t offset, uint64_t length) {
    struct ram *ram = (struct ram *)device;
    while (length > 0) {
        size_t within = offset % CHUNK_SIZE;
        uint64_t piece = smaller(length, CHUNK_SIZE - within);
        _Atomic(unsigned char *) *slot = ram_slot(ram, offset);
        if (!slot)
            piece = smaller(length, LEAF_SIZE - offset % LEAF_SIZE);
        else if (piece == CHUNK_SIZE)
            ram_chunk_drop(ram, slot);
        else if (atomic_load_explicit(slot, memory_order_acquire))
            memset(atomic_load_explicit(slot, memory_order_acquire) + within, 0, piece);
        offset += piece;
        length -= piece;
    }
    return 0;
}

static void ram_close(struct device *device) {
    struct ram *ram = (struct ram *)device;
    for (uint64_t i = 0; i < ram->leaf_count; i++)
        free(ram->leaves[i]);
    recycle_drain(&ram->chunks);
    pthread_mutex_destroy(&ram->mutex);
    free(ram->leaves);
    free(ram);
}

static const struct device_operations ram_operations = {
    .name = "ram",
    .submit = ram_submit,
    .zero = ram_zero,
    .discard = ram_zero,
    .close = ram_close,
};

int device_open_ram(uint64_t size, struct clock *clock, const struct log *log,
                    struct device **device) {
    struct ram *ram = calloc(1, sizeof(*ram));
    if (!ram)
        return -ENOMEM;
    ram->device.operations = &ram_operations;
    ram->device.clock = clock;
    ram->device.log = log;
    ram->device.size = size - size % DEVICE_SECTOR;
    snprintf(ram->device.name, sizeof(ram->device.name), "ram");
    ram->leaf_count = size / LEAF_SIZE + 1;
    ram->leaves = calloc(ram->leaf_count, sizeof(*ram->leaves));
    if (!ram->leaves) {
        free(ram);
        return -ENOMEM;
    }
    pthread_mutex_init(&ram->mutex, NULL);
    ram->chunks.size = CHUNK_SIZE;
    *device = &ram->device;
    return 0;
}
