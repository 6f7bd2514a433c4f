/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, private to the elevator and the modelled drives.
 * A drive seen from its connector: commands go in, completions come out in order of time. It has no
 * clock of its own; the elevator tells it what time it is, never going back. Which kind it is, the
 * preset says: fs/device/hdd.c has arms and platters, fs/device/ssd.c has flash.
 */
#ifndef LAYOUTFS_DRIVE_H
#define LAYOUTFS_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/device/device.h"
#include "fs/device/disk.h"

struct hdd_place {
    uint32_t cylinder, head;
    uint32_t sector;  /* in the track */
    uint32_t sectors; /* of the track */
    int64_t angle_ns; /* when in a revolution the sector's start passes the head */
};

struct drive_command {
    uint64_t lba;     /* in sectors */
    uint32_t sectors; /* at least 1 */
    enum device_operation operation;
    /* The drive's own: */
    int64_t arrival_ns, complete_ns;
    struct hdd_place place; /* of one with an arm */
    struct drive_command *next;
};

struct drive;

struct drive_operations {
    /* Hands over a command; the caller keeps at most queue_depth inside. It stays valid until
     * returned by complete. */
    void (*accept)(struct drive *drive, struct drive_command *command, int64_t now);
    /* After the commands of one moment are handed over: lets an idle mechanism choose one. */
    void (*start)(struct drive *drive, int64_t now);
    /* When the next command completes; INT64_MAX: none is under way. */
    int64_t (*next_completion)(const struct drive *drive);
    /* Takes out the command of next_completion. */
    struct drive_command *(*complete)(struct drive *drive);
    /* Makes all that was written durable; no command may be inside. Returns when that is done. */
    int64_t (*flush)(struct drive *drive, int64_t now);
    /* The sectors' contents are not needed any more; no command may be inside. Returns when that is
     * done. NULL: the drive cannot forget. */
    int64_t (*trim)(struct drive *drive, uint64_t lba, uint64_t sectors, int64_t now);
    void (*close)(struct drive *drive);
};

struct drive { /* first in each drive's own structure */
    const struct drive_operations *operations;
};

/* Each adds to *stats, which is borrowed. 0, -ENOMEM, or -EINVAL: the preset contradicts itself,
 * and the log says how. */
int hdd_open(const struct disk_preset *preset, struct device_stats *stats, const struct log *log,
             struct drive **drive);
int ssd_open(const struct disk_preset *preset, struct device_stats *stats, const struct log *log,
             struct drive **drive);

/* Puts a command into a list in order of completion, behind those of the same time. */
static inline void drive_finish(struct drive_command **list, struct drive_command *command,
                                int64_t complete_ns) {
    command->complete_ns = complete_ns;
    while (*list && (*list)->complete_ns <= complete_ns)
        list = &(*list)->next;
    command->next = *list;
    *list = command;
}

#endif
