/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, private to the disk.
 * Where a sector lies, and how long the arm needs between cylinders. docs/disk-model.md derives the
 * formulas.
 *
 * Invariants:
 *  1. Sectors are numbered track by track, heads of a cylinder first, cylinders from the outside.
 *  2. A track is skewed against the one before by exactly the time its switch takes, so that a
 *     transfer that runs on never waits for the platter.
 *  3. The mean of seek_ns over random pairs of different cylinders is the data sheet's average.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fs/device/hdd_geometry.h"

#define CYLINDERS_MIN 16
#define SHARE_BITS    20 /* fixed point of the curve's shares between 0 and 1 */

static int geometry_fail(const struct disk_preset *preset, const char *reason,
                         const struct log *log) {
    log_error(log, "disk \"%s\": %s", preset->name, reason);
    return -EINVAL;
}

static int geometry_validate(const struct disk_preset *preset, const struct log *log) {
    if (preset->rpm == 0 || preset->rpm > 100000)
        return geometry_fail(preset, "rpm is out of range", log);
    if (preset->heads == 0 || preset->heads > 255)
        return geometry_fail(preset, "there must be 1 to 255 heads", log);
    if (preset->zones == 0 || preset->zones > DISK_ZONES_MAX)
        return geometry_fail(preset, "there must be 1 to 32 zones", log);
    if (preset->cylinders < CYLINDERS_MIN || preset->cylinders < preset->zones ||
        preset->cylinders > (1u << 24))
        return geometry_fail(preset, "the number of cylinders is out of range", log);
    for (uint32_t i = 0; i < preset->zones; i++) {
        if (preset->zone_sectors[i] == 0 || preset->zone_sectors[i] > (1u << 20))
            return geometry_fail(preset, "a zone's sectors are out of range", log);
    }
    if (preset->seek_track_ns < 0 || preset->seek_average_ns < preset->seek_track_ns ||
        preset->seek_full_ns < preset->seek_average_ns || preset->seek_full_ns > NS_PER_SEC)
        return geometry_fail(preset, "seek times must rise from track over average to full", log);
    if (preset->head_switch_ns < 0 || preset->head_switch_ns > NS_PER_SEC ||
        preset->write_settle_ns < 0 || preset->overhead_ns < 0)
        return geometry_fail(preset, "a time is out of range", log);
    return 0;
}

static void geometry_init_zones(struct hdd_geometry *geometry, const struct disk_preset *preset) {
    geometry->zone_count = preset->zones;
    geometry->sectors = 0;
    for (uint32_t i = 0; i < preset->zones; i++) {
        uint32_t first = (uint32_t)((uint64_t)preset->cylinders * i / preset->zones);
        uint32_t end = (uint32_t)((uint64_t)preset->cylinders * (i + 1) / preset->zones);
        geometry->zones[i] = (struct hdd_zone){.first_lba = geometry->sectors,
                                               .first_cylinder = first,
                                               .sectors = preset->zone_sectors[i]};
        geometry->sectors += (uint64_t)(end - first) * preset->heads * preset->zone_sectors[i];
    }
}

/* The share of the way from the shortest to the knee's seek time after `distance` cylinders:
 * the square root of distance. `share` is the result for the distance before. */
static uint64_t root_share(uint64_t distance, uint64_t knee, uint64_t share) {
    uint64_t square = ((distance - 1) << (2 * SHARE_BITS)) / (knee - 1);
    while ((share + 1) * (share + 1) <= square)
        share++;
    return share;
}

static uint64_t line_share(uint64_t distance, uint64_t knee, uint64_t longest) {
    return ((distance - knee) << SHARE_BITS) / (longest - knee);
}

/* The seek time at the knee, so that the mean over random pairs is the data sheet's: the mean is
 * linear in it. There are cylinders - distance pairs of each distance. */
static int64_t knee_time(const struct disk_preset *preset, uint64_t knee) {
    const uint64_t one = UINT64_C(1) << SHARE_BITS;
    uint64_t longest = preset->cylinders - 1;
    uint64_t short_pairs = 0, short_shares = 0, long_pairs = 0, long_shares = 0, share = 0;
    for (uint64_t distance = 1; distance <= longest; distance++) {
        uint64_t pairs = preset->cylinders - distance;
        if (distance <= knee) {
            share = root_share(distance, knee, share);
            short_pairs += pairs;
            short_shares += pairs * share;
        } else {
            long_pairs += pairs;
            long_shares += pairs * line_share(distance, knee, longest);
        }
    }
    __int128 total = (__int128)(short_pairs + long_pairs) * preset->seek_average_ns * one;
    total -= (__int128)(short_pairs * one - short_shares) * preset->seek_track_ns;
    total -= (__int128)long_shares * preset->seek_full_ns;
    return (int64_t)(total / (__int128)(short_shares + long_pairs * one - long_shares));
}

static int geometry_init_seeks(struct hdd_geometry *geometry, const struct disk_preset *preset,
                               const struct log *log) {
    uint64_t longest = preset->cylinders - 1;
    uint64_t knee = longest / 3;
    int64_t at_knee = knee_time(preset, knee);
    if (at_knee < preset->seek_track_ns || at_knee > preset->seek_full_ns)
        return geometry_fail(preset, "no seek curve has these three times", log);
    geometry->seek_ns = calloc(preset->cylinders, sizeof(*geometry->seek_ns));
    if (!geometry->seek_ns)
        return -ENOMEM;
    int64_t rise = at_knee - preset->seek_track_ns;
    int64_t slope = preset->seek_full_ns - at_knee;
    uint64_t share = 0;
    for (uint64_t distance = 1; distance <= longest; distance++) {
        int64_t ns;
        if (distance <= knee) {
            share = root_share(distance, knee, share);
            ns = preset->seek_track_ns + ((rise * (int64_t)share) >> SHARE_BITS);
        } else {
            ns = at_knee + ((slope * (int64_t)line_share(distance, knee, longest)) >> SHARE_BITS);
        }
        geometry->seek_ns[distance] = (uint32_t)ns;
    }
    return 0;
}

int hdd_geometry_init(struct hdd_geometry *geometry, const struct disk_preset *preset,
                      const struct log *log) {
    memset(geometry, 0, sizeof(*geometry));
    int error = geometry_validate(preset, log);
    if (error)
        return error;
    geometry_init_zones(geometry, preset);
    if (geometry->sectors < preset->capacity / DEVICE_SECTOR)
        return geometry_fail(preset, "the zones hold less than the capacity", log);
    geometry->heads = preset->heads;
    geometry->cylinders = preset->cylinders;
    geometry->revolution_ns = 60 * NS_PER_SEC / preset->rpm;
    geometry->head_switch_ns = preset->head_switch_ns;
    geometry->cylinder_switch_ns = preset->seek_track_ns > preset->head_switch_ns
                                       ? preset->seek_track_ns
                                       : preset->head_switch_ns;
    geometry->cylinder_skew_ns =
        ((geometry->heads - 1) * geometry->head_switch_ns + geometry->cylinder_switch_ns) %
        geometry->revolution_ns;
    return geometry_init_seeks(geometry, preset, log);
}

void hdd_geometry_destroy(struct hdd_geometry *geometry) {
    free(geometry->seek_ns);
}

struct hdd_place hdd_geometry_locate(const struct hdd_geometry *geometry, uint64_t lba) {
    uint32_t low = 0, high = geometry->zone_count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (geometry->zones[middle].first_lba <= lba)
            low = middle;
        else
            high = middle;
    }
    const struct hdd_zone *zone = &geometry->zones[low];
    uint64_t track = (lba - zone->first_lba) / zone->sectors;
    struct hdd_place place = {.sectors = zone->sectors};
    place.sector = (uint32_t)(lba - zone->first_lba - track * zone->sectors);
    place.cylinder = zone->first_cylinder + (uint32_t)(track / geometry->heads);
    place.head = (uint32_t)(track % geometry->heads);
    place.angle_ns =
        (place.cylinder * geometry->cylinder_skew_ns + place.head * geometry->head_switch_ns +
         place.sector * geometry->revolution_ns / place.sectors) %
        geometry->revolution_ns;
    return place;
}
