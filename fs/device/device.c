/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device.
 * The device contract's common half: validation, the way down the stack, and the helpers built from
 * the operations.
 *
 * Invariant: no implementation ever sees a request outside its device, misaligned, or writing to a
 * read-only device.
 */
#include "fs/device/device.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "fs/device/stack.h"
#include "fs/task.h"

#define ZERO_PIECE  (64u << 10)
#define ZERO_PIECES 16u /* one request writes 1 MiB */

const char *purpose_name(enum purpose purpose) {
    static const char *const names[PURPOSE_COUNT] = {
        [PURPOSE_DATA] = "data",   [PURPOSE_SUPER] = "super",     [PURPOSE_BITMAP] = "bitmap",
        [PURPOSE_INODE] = "inode", [PURPOSE_DIR] = "dir",         [PURPOSE_MAP] = "map",
        [PURPOSE_XATTR] = "xattr", [PURPOSE_JOURNAL] = "journal", [PURPOSE_OTHER] = "other",
    };
    return (unsigned)purpose < PURPOSE_COUNT ? names[purpose] : "unknown";
}

static int check_range(const struct device *device, const char *what, uint64_t offset,
                       uint64_t length) {
    if (offset % DEVICE_SECTOR || length % DEVICE_SECTOR) {
        log_error(device->log,
                  "%s: %s of %" PRIu64 " bytes at %" PRIu64 " is not in whole %u-byte sectors",
                  device->name, what, length, offset, DEVICE_SECTOR);
        return -EINVAL;
    }
    if (offset > device->size || length > device->size - offset) {
        log_error(device->log,
                  "%s: %s of %" PRIu64 " bytes at %" PRIu64 " is outside the device of %" PRIu64
                  " bytes",
                  device->name, what, length, offset, device->size);
        return -EIO;
    }
    return 0;
}

static int check_vector(const struct device *device, const struct device_request *request) {
    uint64_t sum = 0;
    for (int i = 0; i < request->vector_count; i++) {
        /* Stopping at the first excess keeps the sum from overflowing. */
        if (request->vector[i].iov_len > request->length - sum)
            return -EINVAL;
        sum += request->vector[i].iov_len;
    }
    return sum == request->length ? 0 : -EINVAL;
}

int device_submit(struct device *device, const struct device_request *request) {
    bool write = request->operation == DEVICE_WRITE;
    int error = check_range(device, write ? "write" : "read", request->offset, request->length);
    if (error)
        return error;
    if (check_vector(device, request)) {
        log_error(device->log,
                  "%s: request of %" PRIu32 " bytes at %" PRIu64 " has a vector of another length",
                  device->name, request->length, request->offset);
        return -EINVAL;
    }
    if (write && device->read_only)
        return -EROFS;
    if (request->length == 0)
        return 0;
    return device_pass(device, request);
}

int device_wait(struct device *device, struct device_batch *batch) {
    if (batch->pending > 0 && device->clock->task)
        task_wait(device->clock->task, batch);
    for (; device; device = device->lower)
        if (device->operations->wait)
            return device->operations->wait(device, batch);
    return batch->error;
}

static int transfer(struct device *device, enum device_operation operation, uint64_t offset,
                    const struct iovec *vector, uint32_t length, enum purpose purpose) {
    struct device_batch batch = {0};
    struct device_request request = {.operation = operation,
                                     .purpose = purpose,
                                     .offset = offset,
                                     .length = length,
                                     .vector = vector,
                                     .vector_count = 1,
                                     .batch = &batch};
    int error = device_submit(device, &request);
    return error ? error : device_wait(device, &batch);
}

int device_read(struct device *device, uint64_t offset, void *buffer, uint32_t length,
                enum purpose purpose) {
    struct iovec vector = {.iov_base = buffer, .iov_len = length};
    return transfer(device, DEVICE_READ, offset, &vector, length, purpose);
}

int device_write(struct device *device, uint64_t offset, const void *buffer, uint32_t length,
                 enum purpose purpose) {
    /* struct iovec has no const form; a write only reads through it. */
    struct iovec vector = {.iov_base = (void *)(uintptr_t)buffer, .iov_len = length};
    return transfer(device, DEVICE_WRITE, offset, &vector, length, purpose);
}

/* Of a layer that can: without keeping anybody else from using it meanwhile. */
static int flush_and_give_way(struct device *device) {
    struct device_batch batch = {0};
    int error = device->operations->flush_submit(device, &batch);

    return error ? error : device_wait(device, &batch);
}

int device_flush(struct device *device) {
    for (; device; device = device->lower) {
        if (device->operations->flush_submit && device->clock->task)
            return flush_and_give_way(device);
        if (device->operations->flush)
            return device->operations->flush(device);
    }
    return 0;
}

int device_drain(struct device *device) {
    for (; device; device = device->lower)
        if (device->operations->drain)
            return device->operations->drain(device);
    return 0;
}

enum device_state device_poll(struct device *device) {
    for (; device; device = device->lower)
        if (device->operations->poll)
            return device->operations->poll(device);
    return DEVICE_IMMEDIATE;
}

static int write_zeros(struct device *device, uint64_t offset, uint64_t length) {
    static const unsigned char zeros[ZERO_PIECE];
    struct device_batch batch = {0};
    int error = 0;
    while (length > 0 && !error) {
        struct iovec vector[ZERO_PIECES];
        struct device_request request = {.operation = DEVICE_WRITE,
                                         .purpose = PURPOSE_OTHER,
                                         .offset = offset,
                                         .vector = vector,
                                         .batch = &batch};
        while (request.vector_count < (int)ZERO_PIECES && request.length < length) {
            uint64_t rest = length - request.length;
            struct iovec *piece = &vector[request.vector_count++];
            piece->iov_base = (void *)(uintptr_t)zeros;
            piece->iov_len = rest < ZERO_PIECE ? rest : ZERO_PIECE;
            request.length += (uint32_t)piece->iov_len;
        }
        error = device_submit(device, &request);
        offset += request.length;
        length -= request.length;
    }
    /* Invariant 3 of the contract: the batch is on this stack, so wait even after a failure. */
    int wait_error = device_wait(device, &batch);
    return error ? error : wait_error;
}

int device_zero(struct device *device, uint64_t offset, uint64_t length) {
    int error = check_range(device, "zeroing", offset, length);
    if (error)
        return error;
    if (device->read_only)
        return -EROFS;
    if (length == 0)
        return 0;
    error = -EOPNOTSUPP;
    for (struct device *layer = device; layer; layer = layer->lower) {
        if (layer->operations->zero) {
            error = layer->operations->zero(layer, offset, length);
            break;
        }
    }
    return error == -EOPNOTSUPP ? write_zeros(device, offset, length) : error;
}

int device_discard(struct device *device, uint64_t offset, uint64_t length) {
    int error = check_range(device, "discarding", offset, length);
    if (error)
        return error;
    if (device->read_only)
        return -EROFS;
    for (; length > 0 && device; device = device->lower) {
        if (device->operations->discard)
            error = device->operations->discard(device, offset, length);
        if (device->operations->discard || device->operations->zero)
            break;
    }
    return error == -EOPNOTSUPP ? 0 : error;
}

void device_stats(struct device *device, struct device_stats *stats) {
    memset(stats, 0, sizeof(*stats));
    for (; device; device = device->lower) {
        if (device->operations->stats) {
            device->operations->stats(device, stats);
            return;
        }
    }
}

void device_close(struct device *device) {
    while (device) {
        struct device *lower = device->lower;
        device->operations->close(device);
        device = lower;
    }
}
