/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, private to the elevator and the disk.
 * The disk seen from its connector: commands go in, completions come out in order of time. It has
 * no clock of its own; the elevator tells it what time it is, never going back.
 */
#ifndef LAYOUTFS_DEVICE_HDD_H
#define LAYOUTFS_DEVICE_HDD_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/device/device.h"
#include "fs/device/disk.h"

/* --- geometry: hdd_geometry.c --------------------------------------------------------------- */

struct hdd_zone {
    uint64_t first_lba;
    uint32_t first_cylinder;
    uint32_t sectors; /* per track */
};

struct hdd_geometry {
    struct hdd_zone zones[DISK_ZONES_MAX];
    uint32_t zone_count;
    uint32_t heads, cylinders;
    uint64_t sectors; /* of the whole disk */
    int64_t revolution_ns;
    int64_t head_switch_ns, cylinder_switch_ns; /* also the skews */
    int64_t cylinder_skew_ns;                   /* skew of one cylinder against the one before */
    uint32_t *seek_ns;                          /* by distance in cylinders, 0..cylinders - 1 */
};

struct hdd_place {
    uint32_t cylinder, head;
    uint32_t sector;  /* in the track */
    uint32_t sectors; /* of the track */
    int64_t angle_ns; /* when in a revolution the sector's start passes the head */
};

/* -EINVAL: the preset contradicts itself, and the log says how. */
int hdd_geometry_init(struct hdd_geometry *geometry, const struct disk_preset *preset,
                      const struct log *log);
void hdd_geometry_destroy(struct hdd_geometry *geometry);
struct hdd_place hdd_geometry_locate(const struct hdd_geometry *geometry, uint64_t lba);

/* --- the disk: hdd.c ------------------------------------------------------------------------- */

struct hdd_command {
    uint64_t lba;     /* in sectors */
    uint32_t sectors; /* at least 1 */
    enum device_operation operation;
    /* The disk's own: */
    int64_t arrival_ns, complete_ns;
    struct hdd_place place;
    struct hdd_command *next;
};

struct hdd;

/* Adds to *stats, which is borrowed. */
int hdd_open(const struct disk_preset *preset, struct device_stats *stats, const struct log *log,
             struct hdd **hdd);
void hdd_close(struct hdd *hdd);
/* Hands over a command; the caller keeps at most queue_depth inside. It stays valid until returned
 * by hdd_complete. */
void hdd_accept(struct hdd *hdd, struct hdd_command *command, int64_t now);
/* After the commands of one moment are handed over: lets an idle mechanism choose one. */
void hdd_start(struct hdd *hdd, int64_t now);
/* When the next command completes; INT64_MAX: none is under way. */
int64_t hdd_next_completion(const struct hdd *hdd);
/* Takes out the command of hdd_next_completion. */
struct hdd_command *hdd_complete(struct hdd *hdd);
/* Empties the write cache; no command may be inside. Returns when that is done. */
int64_t hdd_flush(struct hdd *hdd, int64_t now);

#endif
