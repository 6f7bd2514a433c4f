/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device. See fs/device/disk.h.
 * The presets are in fs/device/disks.ini and fs/device/flash.ini: a table for each kind of disk.
 */
#include "fs/device/disk.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "fs/preset.h"

extern const char embedded_disks_ini[], embedded_flash_ini[];

static const char *const elevator_names[] = {
    [ELEVATOR_NONE] = "none", [ELEVATOR_CLOOK] = "c-look", NULL};
static const char *const trim_names[] = {[TRIM_NO] = "no", [TRIM_YES] = "yes", NULL};
static const char *const power_loss_names[] = {
    [POWER_LOSS_UNPROTECTED] = "unprotected", [POWER_LOSS_PROTECTED] = "protected", NULL};

#define FIELD(key, kind, member)                                                                   \
    { key, kind, offsetof(struct disk_preset, member), 0, 0, NULL }

/* What all kinds have. */
#define COMMON_FIELDS                                                                              \
    {"description",                                                                                \
     PRESET_TEXT,                                                                                  \
     offsetof(struct disk_preset, description),                                                    \
     sizeof(((struct disk_preset *)0)->description),                                               \
     0,                                                                                            \
     NULL},                                                                                        \
        FIELD("capacity", PRESET_SIZE, capacity), FIELD("overhead", PRESET_TIME, overhead_ns),     \
        FIELD("interface_rate", PRESET_SIZE, interface_rate),                                      \
        FIELD("write_cache", PRESET_SIZE32, write_cache_bytes),                                    \
        {"elevator", PRESET_CHOICE, offsetof(struct disk_preset, elevator), 0, 0, elevator_names}, \
        FIELD("queue_requests", PRESET_COUNT, queue_requests),                                     \
        FIELD("queue_depth", PRESET_COUNT, queue_depth),                                           \
        FIELD("merge", PRESET_SIZE32, merge_bytes)

static const struct preset_field hdd_fields[] = {
    COMMON_FIELDS,
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
    FIELD("buffer", PRESET_SIZE32, buffer_bytes),
    FIELD("buffer_segments", PRESET_COUNT, buffer_segments),
};

static const struct preset_field ssd_fields[] = {
    COMMON_FIELDS,
    FIELD("channels", PRESET_COUNT, channels),
    FIELD("channel_dies", PRESET_COUNT, channel_dies),
    FIELD("channel_rate", PRESET_SIZE, channel_rate),
    FIELD("planes", PRESET_COUNT, planes),
    FIELD("page", PRESET_SIZE32, page_bytes),
    FIELD("block_pages", PRESET_COUNT, block_pages),
    FIELD("blocks", PRESET_COUNT, blocks),
    FIELD("flash_read", PRESET_TIME, flash_read_ns),
    FIELD("flash_program", PRESET_TIME, flash_program_ns),
    FIELD("flash_erase", PRESET_TIME, flash_erase_ns),
    {"power_loss", PRESET_CHOICE, offsetof(struct disk_preset, power_loss), 0, 0, power_loss_names},
    {"trim", PRESET_CHOICE, offsetof(struct disk_preset, trim), 0, 0, trim_names},
    FIELD("occupied_percent", PRESET_COUNT, occupied_percent),
};

#define SCHEMA(table, embedded, fields_of)                                                         \
    {                                                                                              \
        .file = table, .what = "disk", .text = embedded,                                           \
        .record_size = sizeof(struct disk_preset),                                                 \
        .name_offset = offsetof(struct disk_preset, name), .fields = fields_of,                    \
        .field_count = sizeof(fields_of) / sizeof(*(fields_of))                                    \
    }

#define KINDS 2
static const struct preset_schema schemas[KINDS] = {
    [DISK_HDD] = SCHEMA("disks.ini", embedded_disks_ini, hdd_fields),
    [DISK_SSD] = SCHEMA("flash.ini", embedded_flash_ini, ssd_fields),
};

struct visit {
    enum disk_kind kind;
    int (*visit)(void *context, const struct disk_preset *preset);
    void *context;
};

static int visit_disk(void *context, const void *record) {
    const struct visit *visit = context;
    struct disk_preset preset = *(const struct disk_preset *)record;

    preset.kind = visit->kind;
    return visit->visit(visit->context, &preset);
}

int disk_each_preset(int (*visit)(void *context, const struct disk_preset *preset), void *context) {
    struct disk_preset preset;
    int result = 0;

    for (unsigned kind = 0; result == 0 && kind < KINDS; kind++) {
        struct visit caller = {(enum disk_kind)kind, visit, context};
        memset(&preset, 0, sizeof(preset));
        result = preset_each(&schemas[kind], &preset, visit_disk, &caller, NULL);
    }
    return result;
}

struct search {
    const char *name;
    struct disk_preset *preset;
    char known[512]; /* the names passed on the way, for the message */
};

static int compare_name(void *context, const struct disk_preset *preset) {
    struct search *search = context;
    size_t used = strlen(search->known);

    snprintf(search->known + used, sizeof(search->known) - used, "%s%s", used ? ", " : "",
             preset->name);
    if (strcmp(preset->name, search->name) != 0)
        return 0;
    *search->preset = *preset;
    return 1;
}

int disk_preset_find(const char *name, struct disk_preset *preset, const struct log *log) {
    struct search search = {.name = name, .preset = preset};
    int result = disk_each_preset(compare_name, &search);

    if (result == 0)
        log_error(log, "there is no disk \"%s\"; known: %s", name, search.known);
    return result == 0 ? -ENOENT : result < 0 ? result : 0;
}
