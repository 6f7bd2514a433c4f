/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device. Interface: fs/device/fork.h.
 *
 * Invariants:
 *  1. chunks[i] is NULL exactly while chunk i was not written since the last reset.
 *  2. written[0 .. written_count) are the numbers of the chunks that are not NULL.
 */
#include "fs/device/fork.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/arena.h"
#include "fs/device/stack.h"

struct fork {
    struct device device;
    struct device *origin; /* borrowed, and therefore not device.lower */
    unsigned char **chunks;
    uint32_t *written;
    uint32_t written_count;
    struct recycler memory;
};

/* Bytes from `offset` to the end of its chunk, at most `length`. */
static size_t fork_piece(uint64_t offset, size_t length) {
    size_t rest = FORK_CHUNK - offset % FORK_CHUNK;

    return length < rest ? length : rest;
}

static int fork_read(struct fork *fork, uint64_t offset, unsigned char *bytes, size_t length) {
    while (length > 0) {
        size_t piece = fork_piece(offset, length);
        const unsigned char *chunk = fork->chunks[offset / FORK_CHUNK];
        int error = 0;

        if (chunk)
            memcpy(bytes, chunk + offset % FORK_CHUNK, piece);
        else
            error = device_read(fork->origin, offset, bytes, (uint32_t)piece, PURPOSE_OTHER);
        if (error)
            return error;
        offset += piece;
        bytes += piece;
        length -= piece;
    }
    return 0;
}

/* Makes chunk `number` the fork's own, with the origin's bytes unless all are to be replaced. */
static int fork_own(struct fork *fork, uint32_t number, bool whole) {
    uint64_t offset = (uint64_t)number * FORK_CHUNK;
    uint64_t rest = fork->device.size - offset;
    unsigned char *chunk = recycle_get_dirty(&fork->memory);
    int error = 0;

    if (!chunk)
        return -ENOMEM;
    if (!whole)
        error = device_read(fork->origin, offset, chunk, rest < FORK_CHUNK ? rest : FORK_CHUNK,
                            PURPOSE_OTHER);
    if (error) {
        recycle_put(&fork->memory, chunk);
        return error;
    }
    fork->chunks[number] = chunk;
    fork->written[fork->written_count++] = number;
    return 0;
}

static int fork_write(struct fork *fork, uint64_t offset, const unsigned char *bytes,
                      size_t length) {
    while (length > 0) {
        size_t piece = fork_piece(offset, length);
        uint32_t number = (uint32_t)(offset / FORK_CHUNK);

        if (!fork->chunks[number]) {
            int error = fork_own(fork, number, piece == FORK_CHUNK);
            if (error)
                return error;
        }
        memcpy(fork->chunks[number] + offset % FORK_CHUNK, bytes, piece);
        offset += piece;
        bytes += piece;
        length -= piece;
    }
    return 0;
}

static int fork_submit(struct device *device, const struct device_request *request) {
    struct fork *fork = (struct fork *)device;
    uint64_t offset = request->offset;
    int error = 0;

    for (int i = 0; i < request->vector_count && !error; i++) {
        const struct iovec *piece = &request->vector[i];

        if (request->operation == DEVICE_READ)
            error = fork_read(fork, offset, piece->iov_base, piece->iov_len);
        else
            error = fork_write(fork, offset, piece->iov_base, piece->iov_len);
        offset += piece->iov_len;
    }
    return error;
}

static void fork_close(struct device *device) {
    struct fork *fork = (struct fork *)device;

    recycle_drain(&fork->memory);
    free(fork->chunks);
    free(fork->written);
    free(fork);
}

/* Zeros in its own memory: a fork cannot forget what it stands on. */
static int fork_discard(struct device *device, uint64_t offset, uint64_t length) {
    return device_zero(device, offset, length);
}

static const struct device_operations fork_operations = {
    .name = "fork",
    .discard = fork_discard,
    .submit = fork_submit,
    .close = fork_close,
};

int device_open_fork(struct device *origin, struct device **out) {
    uint64_t count = origin->size / FORK_CHUNK + 1;
    struct fork *fork = calloc(1, sizeof(*fork));

    if (!fork)
        return -ENOMEM;
    device_layer_init(&fork->device, &fork_operations, origin);
    fork->device.lower = NULL;
    fork->device.read_only = false;
    fork->origin = origin;
    fork->memory.size = FORK_CHUNK;
    fork->chunks = count <= UINT32_MAX ? calloc(count, sizeof(*fork->chunks)) : NULL;
    fork->written = fork->chunks ? calloc(count, sizeof(*fork->written)) : NULL;
    if (!fork->written) {
        free(fork->chunks);
        free(fork);
        return -ENOMEM;
    }
    *out = &fork->device;
    return 0;
}

void device_fork_reset(struct device *device) {
    struct fork *fork = (struct fork *)device;

    for (uint32_t i = 0; i < fork->written_count; i++) {
        uint32_t number = fork->written[i];

        recycle_put(&fork->memory, fork->chunks[number]);
        fork->chunks[number] = NULL;
    }
    fork->written_count = 0;
}
