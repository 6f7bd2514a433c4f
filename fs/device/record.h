/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, a layer over any device.
 * Writes down what reaches a disk: every write with its bytes, every flush, and marks that the user
 * puts between them ("operation 3 has begun"). From the log any state can be made in which a power
 * cut may have left the disk.
 *
 * Locking: one thread. Reads are passed on and not recorded; zeroing arrives as writes of zeros.
 */
#ifndef LAYOUTFS_DEVICE_RECORD_H
#define LAYOUTFS_DEVICE_RECORD_H

#include "fs/device/device.h"

enum record_kind { RECORD_WRITE, RECORD_FLUSH, RECORD_MARK };

struct record {
    enum record_kind kind;
    enum purpose purpose; /* of a write */
    uint32_t length;      /* of a write, bytes */
    uint64_t offset;      /* of a write, bytes on the device; of a mark: its value */
    size_t bytes;         /* of a write: where its bytes begin in the log's */
};

/* Zeroed, it is empty and valid. */
struct write_log {
    struct record *records; /* owned, in order */
    size_t count, room;
    unsigned char *bytes; /* owned */
    size_t bytes_used, bytes_room;
};

/* 0 or -ENOMEM. */
int write_log_mark(struct write_log *log, uint64_t value);
/* Empties it and keeps its memory. */
void write_log_clear(struct write_log *log);
void write_log_free(struct write_log *log);
/* Writes the first `length` bytes of a recorded write to a device. */
int write_log_apply(const struct write_log *log, const struct record *record, uint32_t length,
                    struct device *device);

/* `log` is borrowed. A write that cannot be recorded fails with -ENOMEM and is not passed on; one
 * that fails below is not recorded; a flush that fails, as a write of no bytes. */
int device_open_record(struct device *lower, struct write_log *log, struct device **device);

#endif
