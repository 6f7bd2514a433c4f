/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device. See fs/device/disk.h; the presets are in fs/device/disks.ini.
 */
#include "fs/device/disk.h"

#include <stddef.h>

#include "fs/preset.h"

extern const char embedded_disks_ini[];

static const char *const elevator_names[] = {
    [ELEVATOR_NONE] = "none", [ELEVATOR_CLOOK] = "c-look", NULL};

#define FIELD(key, kind, member)                                                                   \
    { key, kind, offsetof(struct disk_preset, member), 0, 0, NULL }

static const struct preset_field disk_fields[] = {
    {"description", PRESET_TEXT, offsetof(struct disk_preset, description),
     sizeof(((struct disk_preset *)0)->description), 0, NULL},
    FIELD("capacity", PRESET_SIZE, capacity),
    FIELD("rpm", PRESET_COUNT, rpm),
    FIELD("heads", PRESET_COUNT, heads),
    FIELD("cylinders", PRESET_COUNT, cylinders),
    {"zone_sectors", PRESET_LIST, offsetof(struct disk_preset, zone_sectors), DISK_ZONES_MAX,
     offsetof(struct disk_preset, zones), NULL},
    FIELD("seek_track", PRESET_TIME, seek_track_ns),
    FIELD("seek_average", PRESET_TIME, seek_average_ns),
    FIELD("seek_full", PRESET_TIME, seek_full_ns),
    FIELD("write_settle", PRESET_TIME, write_settle_ns),
    FIELD("head_switch", PRESET_TIME, head_switch_ns),
    FIELD("overhead", PRESET_TIME, overhead_ns),
    FIELD("interface_rate", PRESET_SIZE, interface_rate),
    FIELD("buffer", PRESET_SIZE32, buffer_bytes),
    FIELD("buffer_segments", PRESET_COUNT, buffer_segments),
    FIELD("write_cache", PRESET_SIZE32, write_cache_bytes),
    {"elevator", PRESET_CHOICE, offsetof(struct disk_preset, elevator), 0, 0, elevator_names},
    FIELD("queue_requests", PRESET_COUNT, queue_requests),
    FIELD("queue_depth", PRESET_COUNT, queue_depth),
    FIELD("merge", PRESET_SIZE32, merge_bytes),
};

static const struct preset_schema disk_schema = {
    .file = "disks.ini",
    .what = "disk",
    .text = embedded_disks_ini,
    .record_size = sizeof(struct disk_preset),
    .name_offset = offsetof(struct disk_preset, name),
    .fields = disk_fields,
    .field_count = sizeof(disk_fields) / sizeof(disk_fields[0]),
};

int disk_preset_find(const char *name, struct disk_preset *preset, const struct log *log) {
    return preset_find(&disk_schema, name, preset, log);
}

struct visit {
    int (*visit)(void *context, const struct disk_preset *preset);
    void *context;
};

static int visit_disk(void *context, const void *record) {
    const struct visit *visit = context;
    return visit->visit(visit->context, record);
}

int disk_each_preset(int (*visit)(void *context, const struct disk_preset *preset), void *context) {
    struct disk_preset preset;
    struct visit caller = {.visit = visit, .context = context};
    return preset_each(&disk_schema, &preset, visit_disk, &caller, NULL);
}
