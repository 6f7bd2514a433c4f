/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, the lowest. Over it: the buffer cache, the page cache and the layouts.
 *
 * A device is an array of bytes in 512-byte sectors. Devices stack: each implements this contract
 * and may pass requests to a `lower` one.
 *
 *     trace -> elevator (with a modelled drive: hdd or ssd) -> image | ram
 *
 * Others are for tests and the crash explorer: a disk that fails (fs/device/fault.h), one that
 * writes down what it is told (fs/device/record.h), a cheap writable copy (fs/device/fork.h).
 *
 * The one rule to understand: *data moves at submission, time passes until completion.* When
 * device_submit returns 0, a read has filled the caller's memory and a write has taken its bytes,
 * so that memory may be reused. In wall mode the request is then over. Over a modelled disk it is
 * still queued: its batch stays pending until the model has served it, and the caller waits with
 * device_wait before it acts as if the data had arrived (or been stored).
 *
 * Invariants:
 *  1. offset and length of every request are multiples of DEVICE_SECTOR and lie inside the device;
 *     device_submit checks this and answers -EINVAL (alignment) or -EIO (range) and logs it.
 *  2. A write is durable once a later device_flush has returned 0.
 *  3. A batch outlives its requests; batch->pending reaches 0 exactly when all are complete.
 *
 * Locking: image and ram accept calls from any thread; elevator, hdd and trace are used by one
 * thread at a time (they exist under a virtual clock).
 */
#ifndef LAYOUTFS_DEVICE_H
#define LAYOUTFS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "fs/clock.h"
#include "fs/log.h"

#define DEVICE_SECTOR 512u

enum device_operation { DEVICE_READ, DEVICE_WRITE };

/* What a request is for; accounting only. */
enum purpose {
    PURPOSE_DATA,
    PURPOSE_SUPER,   /* super blocks and group descriptors */
    PURPOSE_BITMAP,  /* block and inode bitmaps */
    PURPOSE_INODE,   /* inode tables */
    PURPOSE_DIR,     /* directory blocks */
    PURPOSE_MAP,     /* indirect blocks, extent and B-tree nodes */
    PURPOSE_XATTR,   /* extended attribute blocks */
    PURPOSE_JOURNAL, /* journal, log summaries */
    PURPOSE_OTHER,
    PURPOSE_COUNT
};
const char *purpose_name(enum purpose purpose); /* "data", "super", ...; never NULL */

/* Requests that are waited for together. Zero-initialise before use. */
struct device_batch {
    uint32_t pending;
    int error; /* first failure as negative errno, or 0 */
};

struct device_request {
    enum device_operation operation;
    enum purpose purpose;
    uint64_t offset;            /* bytes */
    uint32_t length;            /* bytes, the sum of the vector's lengths */
    const struct iovec *vector; /* borrowed for the call; its count below */
    int vector_count;
    struct device_batch *batch; /* may be NULL: nobody waits for this request alone */
};

/* What a modelled disk has done since it was made. */
struct device_stats {
    uint64_t requests[2];             /* by device_operation, after merging */
    uint64_t bytes[2][PURPOSE_COUNT]; /* by operation and purpose */
    uint64_t seeks;                   /* requests that did not follow the previous one */
    uint64_t seek_bytes;              /* sum of their distances in bytes */
    int64_t seek_ns, rotation_ns, transfer_ns, overhead_ns; /* where the disk's time went */
    int64_t busy_ns;                                        /* sum of the four */
    uint64_t cache_hits; /* reads answered from the on-board buffer */
    uint64_t flushes;
    uint64_t flash_programmed; /* bytes, with those that cleaning has moved */
    uint64_t flash_moved;      /* bytes */
    uint64_t flash_erases;     /* blocks */
};

struct device;

enum device_state {
    DEVICE_IMMEDIATE, /* no request is pending after its submission */
    DEVICE_FREE,
    DEVICE_CONGESTED, /* who submits many more writes will be kept waiting */
};

struct device_operations {
    const char *name;
    int (*submit)(struct device *device, const struct device_request *request);
    /* NULL in the five below: passed to `lower`, or nothing to do when there is none. */
    int (*wait)(struct device *device, struct device_batch *batch);
    int (*flush)(struct device *device);
    int (*drain)(struct device *device);
    /* Only where requests stay pending. What `flush` does without waiting: `batch` is pending until
     * all that was submitted before is complete and durable. */
    int (*flush_submit)(struct device *device, struct device_batch *batch);
    /* See device_poll. */
    enum device_state (*poll)(struct device *device);
    /* Makes a range read as zeros without storing them if it can. NULL: passed down; -EOPNOTSUPP
     * at the bottom makes device_zero write zeros. */
    int (*zero)(struct device *device, uint64_t offset, uint64_t length);
    /* What a range holds is not needed any more, and it may read as anything. Errors need not
     * matter to who asks. NULL: passed down by a layer without `zero`, and else nothing happens. */
    int (*discard)(struct device *device, uint64_t offset, uint64_t length);
    /* Adds this device's figures to *stats. NULL: passed to `lower`. */
    void (*stats)(struct device *device, struct device_stats *stats);
    /* Releases the device itself; `lower` is closed by device_close. */
    void (*close)(struct device *device);
};

/* Embedded first in each implementation's own structure. */
struct device {
    const struct device_operations *operations;
    struct device *lower;  /* owned; NULL at the bottom */
    struct clock *clock;   /* borrowed */
    const struct log *log; /* borrowed, may be NULL */
    uint64_t size;         /* bytes, a multiple of DEVICE_SECTOR */
    bool read_only;        /* writes answer -EROFS */
    char name[256];        /* for messages: the image's path, "ram", ... */
};

/* --- using a device ------------------------------------------------------------------------- */

/* Starts one request; see the rule at the top. 0 or negative errno (-EINVAL, -EIO, -EROFS, -ENOSPC
 * when a sparse image's host is full). */
int device_submit(struct device *device, const struct device_request *request);
/* Returns once batch->pending is 0; its value is batch->error. Advances a virtual clock; or, in a
 * task (fs/task.h), gives way, as device_flush does. */
int device_wait(struct device *device, struct device_batch *batch);
/* Submit and wait for one contiguous buffer. */
int device_read(struct device *device, uint64_t offset, void *buffer, uint32_t length,
                enum purpose purpose);
int device_write(struct device *device, uint64_t offset, const void *buffer, uint32_t length,
                 enum purpose purpose);
/* Waits until everything submitted is complete and durable. */
int device_flush(struct device *device);
/* Waits until everything submitted is complete, durable or not. */
int device_drain(struct device *device);
/* Brings all batches' pending up to the clock's time, without waiting. */
enum device_state device_poll(struct device *device);
/* Makes [offset, offset + length) read as zeros, by unmapping where the bottom can. */
int device_zero(struct device *device, uint64_t offset, uint64_t length);
/* Tells the device that what [offset, offset + length) holds is not needed any more: a file gives
 * the room back, a flash disk has less to move. It may read as anything then. 0, also where that
 * means nothing to the device; or negative errno. */
int device_discard(struct device *device, uint64_t offset, uint64_t length);
/* Zeroes *stats and fills it; all zero where nothing below keeps figures. */
void device_stats(struct device *device, struct device_stats *stats);
/* Flushes nothing; closes the device and all below it. NULL is allowed. */
void device_close(struct device *device);

/* --- bottoms -------------------------------------------------------------------------------- */

enum device_open_flags {
    DEVICE_READ_ONLY = 1,
    DEVICE_CREATE = 2,  /* make the file, or empty an existing one, with size `size` */
    DEVICE_NO_LOCK = 4, /* do not take the exclusive lock (a shared one when read-only) */
};
/* Opens an image file or block device. Takes an advisory lock (flock and, for a block device,
 * O_EXCL) held until close, so that one image is never mounted twice: -EBUSY, with a sentence.
 * `size` only with DEVICE_CREATE. */
int device_open_image(const char *path, unsigned flags, uint64_t size, struct clock *clock,
                      const struct log *log, struct device **device);
/* Sparse memory: unwritten sectors read as zeros and take no room. */
int device_open_ram(uint64_t size, struct clock *clock, const struct log *log,
                    struct device **device);

/* --- layers: each takes ownership of `lower` on success --------------------------------------- */

struct disk_preset;
/* A disk by its data-sheet preset; `lower` holds the bytes. See fs/device/disk.h. */
int device_open_disk(const struct disk_preset *preset, struct device *lower,
                     struct device **device);

struct trace_record {
    int64_t submit_ns;
    uint64_t offset;
    uint32_t length;
    enum device_operation operation;
    enum purpose purpose;
};
/* Calls `record` for every request submitted. */
int device_open_trace(struct device *lower, void (*record)(void *, const struct trace_record *),
                      void *context, struct device **device);

#endif
