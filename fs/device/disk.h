/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device.
 * Data-sheet parameters of modelled disks. Presets and their sources are in fs/device/disks.ini
 * (with platters) and fs/device/flash.ini, embedded at build time. docs/disk-model.md explains the
 * model.
 */
#ifndef LAYOUTFS_DISK_H
#define LAYOUTFS_DISK_H

#include <stdint.h>

#include "fs/log.h"

enum disk_kind { DISK_HDD, DISK_SSD };
enum elevator { ELEVATOR_NONE, ELEVATOR_CLOOK };
enum trim { TRIM_NO, TRIM_YES };
enum power_loss { POWER_LOSS_UNPROTECTED, POWER_LOSS_PROTECTED };

#define DISK_ZONES_MAX 32

struct disk_preset {
    char name[32];
    char description[128];
    enum disk_kind kind;
    uint64_t capacity;          /* bytes */
    int64_t overhead_ns;        /* command processing per request */
    uint64_t interface_rate;    /* bytes per second from the on-board buffer */
    uint32_t write_cache_bytes; /* HDD: 0: writes complete on the platter */
    enum elevator elevator;     /* the host's request queue */
    uint32_t queue_requests;    /* requests the host queues before a submitter waits */
    uint32_t queue_depth;       /* requests the disk itself holds and may reorder (1: none) */
    uint32_t merge_bytes;       /* largest merged request */

    /* DISK_HDD */
    uint32_t rpm;
    uint32_t heads; /* recording surfaces */
    uint32_t cylinders;
    uint32_t zones;                        /* 1..DISK_ZONES_MAX */
    uint32_t zone_sectors[DISK_ZONES_MAX]; /* sectors per track, outermost first */
    int64_t seek_track_ns;                 /* to the next cylinder, read */
    int64_t seek_average_ns;               /* mean over random pairs, read */
    int64_t seek_full_ns;                  /* from first to last cylinder, read */
    int64_t write_settle_ns;               /* added to a seek before a write */
    int64_t head_switch_ns;
    uint32_t buffer_bytes;    /* on-board memory, with the write cache */
    uint32_t buffer_segments; /* read-ahead streams it is cut into */

    /* DISK_SSD */
    uint32_t channels, channel_dies; /* dies on each channel */
    uint32_t planes;                 /* pages that a die reads or programs at once */
    uint32_t page_bytes;
    uint32_t block_pages, blocks; /* pages of a block, blocks of a plane */
    int64_t flash_read_ns, flash_program_ns, flash_erase_ns;
    uint64_t channel_rate;      /* bytes per second */
    enum power_loss power_loss; /* whether a flush has to program what is in the write cache */
    enum trim trim;             /* whether it can forget */
    uint32_t occupied_percent;  /* of the disk, from its start, that held data before */
};

/* -ENOENT: no such preset (the known ones are logged). */
int disk_preset_find(const char *name, struct disk_preset *preset, const struct log *log);
int disk_each_preset(int (*visit)(void *context, const struct disk_preset *preset), void *context);

#endif
