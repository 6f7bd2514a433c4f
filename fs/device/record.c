/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device. Interface: fs/device/record.h.
 */
#include "fs/device/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/device/stack.h"

struct recorder {
    struct device device;
    struct write_log *log; /* borrowed */
};

/* --- the log ---------------------------------------------------------------------------------- */

static struct record *log_append(struct write_log *log) {
    if (log->count == log->room) {
        size_t room = log->room ? log->room * 2 : 256;
        struct record *records = reallocarray(log->records, room, sizeof(*records));

        if (!records)
            return NULL;
        log->records = records;
        log->room = room;
    }
    return &log->records[log->count++];
}

/* Room for `length` more bytes; NULL: no memory. */
static unsigned char *log_bytes(struct write_log *log, size_t length) {
    if (log->bytes_room - log->bytes_used < length) {
        size_t room = (log->bytes_used + length) * 2;
        unsigned char *bytes = realloc(log->bytes, room);

        if (!bytes)
            return NULL;
        log->bytes = bytes;
        log->bytes_room = room;
    }
    return log->bytes + log->bytes_used;
}

int write_log_mark(struct write_log *log, uint64_t value) {
    struct record *record = log_append(log);

    if (!record)
        return -ENOMEM;
    *record = (struct record){.kind = RECORD_MARK, .offset = value};
    return 0;
}

void write_log_clear(struct write_log *log) {
    log->count = 0;
    log->bytes_used = 0;
}

void write_log_free(struct write_log *log) {
    free(log->records);
    free(log->bytes);
    *log = (struct write_log){0};
}

int write_log_apply(const struct write_log *log, const struct record *record, uint32_t length,
                    struct device *device) {
    if (length == 0)
        return 0;
    return device_write(device, record->offset, log->bytes + record->bytes, length,
                        record->purpose);
}

/* --- the layer -------------------------------------------------------------------------------- */

static int log_write(struct write_log *log, const struct device_request *request) {
    unsigned char *bytes = log_bytes(log, request->length);
    struct record *record = bytes ? log_append(log) : NULL;

    if (!record)
        return -ENOMEM;
    *record = (struct record){.kind = RECORD_WRITE,
                              .purpose = request->purpose,
                              .length = request->length,
                              .offset = request->offset,
                              .bytes = log->bytes_used};
    for (int i = 0; i < request->vector_count; i++) {
        memcpy(bytes, request->vector[i].iov_base, request->vector[i].iov_len);
        bytes += request->vector[i].iov_len;
    }
    log->bytes_used += request->length;
    return 0;
}

static int record_submit(struct device *device, const struct device_request *request) {
    struct write_log *log = ((struct recorder *)device)->log;
    bool write = request->operation == DEVICE_WRITE;
    int error = write ? log_write(log, request) : 0;

    if (error)
        return error;
    error = device_pass(device->lower, request);
    if (error && write) {
        log->count--;
        log->bytes_used -= request->length;
    }
    return error;
}

static int record_flush(struct device *device) {
    struct write_log *log = ((struct recorder *)device)->log;
    struct record *record = log_append(log);
    size_t number = log->count - 1;

    if (!record)
        return -ENOMEM;
    /* Now: it does not cover what others write while a task waits for it. */
    *record = (struct record){.kind = RECORD_FLUSH};
    int error = device_flush(device->lower);
    if (error) /* a write of nothing */
        log->records[number] = (struct record){.kind = RECORD_WRITE};
    return error;
}

static int record_zero(struct device *device, uint64_t offset, uint64_t length) {
    return -EOPNOTSUPP; /* device_zero then writes zeros, which are recorded */
}

/* What is discarded is gone at once: nothing is worse for who needs it still. */
static int record_discard(struct device *device, uint64_t offset, uint64_t length) {
    return device_zero(device, offset, length);
}

static void record_close(struct device *device) {
    free(device);
}

static const struct device_operations record_operations = {
    .name = "record",
    .submit = record_submit,
    .flush = record_flush,
    .zero = record_zero,
    .discard = record_discard,
    .close = record_close,
};

int device_open_record(struct device *lower, struct write_log *log, struct device **out) {
    struct recorder *recorder = calloc(1, sizeof(*recorder));

    if (!recorder)
        return -ENOMEM;
    device_layer_init(&recorder->device, &record_operations, lower);
    recorder->log = log;
    *out = &recorder->device;
    return 0;
}
