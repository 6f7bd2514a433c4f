/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, private to fs/device/hdd.c: where sectors lie on the platters, and how long the
 * arm takes between them. docs/disk-model.md has the formulas.
 */
#ifndef LAYOUTFS_HDD_GEOMETRY_H
#define LAYOUTFS_HDD_GEOMETRY_H

#include <stdint.h>

#include "fs/device/disk.h"
#include "fs/device/drive.h"

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

/* -EINVAL: the preset contradicts itself, and the log says how. */
int hdd_geometry_init(struct hdd_geometry *geometry, const struct disk_preset *preset,
                      const struct log *log);
void hdd_geometry_destroy(struct hdd_geometry *geometry);
struct hdd_place hdd_geometry_locate(const struct hdd_geometry *geometry, uint64_t lba);

#endif
