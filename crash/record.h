/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. The volume that all workloads start from, and the recording of one workload.
 */
#ifndef LAYOUTFS_CRASH_RECORD_H
#define LAYOUTFS_CRASH_RECORD_H

#include "crash/expect.h"
#include "crash/perform.h"
#include "crash/snapshot.h"
#include "fs/device/record.h"

/* A new volume with poison in its free space, on memory. */
#define OPTIONS_MAX 512 /* bytes of mount options */

struct base {
    const struct layout *layout;
    const char *type;
    const char *mount_options;
    const char *disk; /* as in struct crash_config */
    struct clock clock;
    struct device *device;
};

/* 0 or negative errno after a sentence. */
int base_make(const struct crash_config *config, const struct type_promise *promise,
              const struct log *log, struct base *base);
void base_free(struct base *base);

/* Mounts a device that outlives the volume. */
int mount_borrowed(const struct base *base, struct device *device, struct clock *clock,
                   const struct log *log, bool read_only, struct volume **volume);

/* Marks in the log: operation n has begun, or has ended. */
#define MARK_BEGIN(n)  ((uint64_t)(n)*2)
#define MARK_END(n)    ((uint64_t)(n)*2 + 1)
#define MARK_NUMBER(m) ((unsigned)((m) / 2))
#define MARK_IS_END(m) ((m) % 2 == 1)
/* The volume was unmounted: this "operation" makes everything durable. */
#define UNMOUNT(workload) ((workload)->count)

/* Snapshots: tree 0 is what is there from the start, durable; each operation that may change
 * something adds one. */
struct recording {
    const struct workload *workload;
    int64_t operation_ns; /* between operations */
    struct write_log log;
    size_t start; /* records before it belong to the start */
    struct snapshot trees[OPS_MAX + 1];
    unsigned tree_count;
    unsigned tree_after[OPS_MAX + 1]; /* by operation */
    int result[OPS_MAX + 1];          /* by operation: 0 or negative errno */
};

/* Runs the workload on a fork of the base. `recording` is reused from run to run, zeroed at first.
 * 0 or negative errno; `why` then says what failed. */
int recording_make(const struct base *base, const struct workload *workload,
                   struct recording *recording, char *why, size_t size);
void recording_free(struct recording *recording);

#endif
