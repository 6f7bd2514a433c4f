/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device, private to the elevator.
 * The disk: mechanism, on-board buffer with read-ahead, write cache, and the queue of commands that
 * it may reorder. docs/disk-model.md explains the model; the geometry is in hdd_geometry.c.
 *
 * The simulation is lazy: what the mechanism does on its own (reading ahead, writing out its cache)
 * is worked out only up to the moment that a command arrives.
 *
 * Invariants:
 *  1. arm.ns is when the mechanism has done all it has been told: it is busy while that lies ahead.
 *     It never decreases.
 *  2. A command is in exactly one of: waiting, active (at most one), done.
 *  3. While stream is set, the arm reads ahead into it, and stream->end == arm.lba; anything else
 * the arm does clears it.
 *  4. A segment holds [start, end), at most segment_sectors long, never anything written since.
 *  5. Extents of the write cache neither overlap nor touch; cached is the sum of their lengths and
 *     at most cache_sectors.
 */
#include "fs/device/drive.h"

#include <bsd/sys/tree.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/device/hdd_geometry.h"

/* A command older than this in the disk's own queue goes first, whatever its place. */
#define COMMAND_AGE_NS (500 * NS_PER_MS)
/* How much of the write cache is written before a waiting command gets its turn. */
#define DESTAGE_SECTORS 1024u
/* The write cache's directory has room for extents of this mean length. */
#define EXTENT_SECTORS 8u

struct segment {
    uint64_t start, end; /* sectors; empty when equal */
    uint64_t used;       /* for replacement: higher is more recent */
};

struct extent {
    RB_ENTRY(extent) node;
    struct extent *next_free;
    uint64_t start, end;
    int64_t ready_ns; /* when its first bytes have arrived; the arm never overtakes the host */
};
RB_HEAD(extents, extent);

struct arm {
    uint32_t cylinder, head;
    uint64_t lba; /* the sector after the last one passed */
    int64_t ns;
};

struct hdd {
    struct drive drive;
    struct hdd_geometry geometry;
    struct device_stats *stats; /* borrowed */
    int64_t overhead_ns, write_settle_ns;
    uint64_t interface_rate;
    struct arm arm;

    struct segment *segments;
    uint32_t segment_count;
    uint64_t segment_sectors;
    uint64_t segment_clock;
    struct segment *stream;
    uint64_t stream_limit; /* the arm stops reading ahead here */

    struct extents extents;
    struct extent *extent_room; /* all nodes; the unused ones are chained */
    struct extent *extent_free;
    uint64_t cached, cache_sectors;

    struct drive_command **waiting; /* in order of arrival */
    uint32_t waiting_count;
    struct drive_command *active;
    struct drive_command *done; /* by complete_ns */
};

static int extent_compare(const struct extent *a, const struct extent *b) {
    return a->start < b->start ? -1 : a->start > b->start;
}

RB_GENERATE_INTERNAL(extents, extent, node, extent_compare, __attribute__((unused)) static)

static inline int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static inline uint64_t lower_of(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static int64_t interface_ns(const struct hdd *hdd, uint32_t sectors) {
    return (int64_t)((uint64_t)sectors * DEVICE_SECTOR * NS_PER_SEC / hdd->interface_rate);
}

/* --- the mechanism --------------------------------------------------------------------------- */

/* From `now` until the sector comes round. */
static int64_t rotation_wait(const struct hdd *hdd, const struct hdd_place *place, int64_t now) {
    int64_t wait = place->angle_ns - now % hdd->geometry.revolution_ns;
    return wait < 0 ? wait + hdd->geometry.revolution_ns : wait;
}

/* The time that `count` sectors from `place` on take to pass, within one track. */
static int64_t passing_ns(const struct hdd *hdd, const struct hdd_place *place, uint64_t count) {
    int64_t revolution = hdd->geometry.revolution_ns;
    return (int64_t)(place->sector + count) * revolution / place->sectors -
           (int64_t)place->sector * revolution / place->sectors;
}

/* Moving the arm to another request's place. */
static int64_t move_ns(const struct hdd *hdd, const struct hdd_place *place, uint64_t lba,
                       enum device_operation operation) {
    const struct arm *arm = &hdd->arm;
    if (place->cylinder == arm->cylinder)
        return place->head == arm->head ? 0 : hdd->geometry.head_switch_ns;
    if (lba == arm->lba)
        return hdd->geometry.cylinder_switch_ns; /* running on: neither seek nor settling */
    uint32_t distance = place->cylinder > arm->cylinder ? place->cylinder - arm->cylinder
                                                        : arm->cylinder - place->cylinder;
    return hdd->geometry.seek_ns[distance] + (operation == DEVICE_WRITE ? hdd->write_settle_ns : 0);
}

/* Passes sectors under the head from arm.lba to `end`, or as many as have passed by `until`. */
static void arm_transfer(struct hdd *hdd, uint64_t end, int64_t until) {
    struct arm *arm = &hdd->arm;
    while (arm->lba < end && arm->ns < until) {
        struct hdd_place place = hdd_geometry_locate(&hdd->geometry, arm->lba);
        int64_t ns = arm->ns + move_ns(hdd, &place, arm->lba, DEVICE_READ);
        ns += rotation_wait(hdd, &place, ns);
        uint64_t count = lower_of(place.sectors - place.sector, end - arm->lba);
        if (ns + passing_ns(hdd, &place, count) > until) {
            if (ns >= until)
                return;
            count = (uint64_t)((until - ns) * place.sectors / hdd->geometry.revolution_ns);
            end = arm->lba + count;
        }
        if (count == 0)
            return;
        arm->cylinder = place.cylinder;
        arm->head = place.head;
        arm->lba += count;
        arm->ns = ns + passing_ns(hdd, &place, count);
    }
}

/* Seeks, waits for the sector, and transfers; the arm must be free at `start`. */
static void arm_serve(struct hdd *hdd, const struct hdd_place *place, uint64_t lba,
                      uint64_t sectors, enum device_operation operation, int64_t start) {
    int64_t move = move_ns(hdd, place, lba, operation);
    int64_t wait = rotation_wait(hdd, place, start + move);
    hdd->arm = (struct arm){
        .cylinder = place->cylinder, .head = place->head, .lba = lba, .ns = start + move + wait};
    arm_transfer(hdd, lba + sectors, INT64_MAX);
    hdd->stats->seek_ns += move;
    hdd->stats->rotation_ns += wait;
    hdd->stats->transfer_ns += hdd->arm.ns - (start + move + wait);
}

/* --- read-ahead ------------------------------------------------------------------------------ */

static void stream_settle(struct hdd *hdd) {
    struct segment *segment = hdd->stream;
    segment->end = hdd->arm.lba;
    if (segment->end - segment->start > hdd->segment_sectors)
        segment->start = segment->end - hdd->segment_sectors;
}

static void stream_advance(struct hdd *hdd, int64_t until) {
    arm_transfer(hdd, hdd->stream_limit, until);
    stream_settle(hdd);
}

/* Lets read-ahead run to a segment's length beyond `end`, which the host has now asked for. */
static void stream_extend(struct hdd *hdd, uint64_t end, int64_t now) {
    if (hdd->arm.lba == hdd->stream_limit) /* it stood still, and cannot have read meanwhile */
        hdd->arm.ns = later(hdd->arm.ns, now);
    hdd->stream_limit = lower_of(end + hdd->segment_sectors, hdd->geometry.sectors);
    hdd->stream->used = ++hdd->segment_clock;
}

static void stream_begin(struct hdd *hdd, uint64_t start) {
    struct segment *oldest = hdd->segments;
    for (uint32_t i = 1; i < hdd->segment_count; i++) {
        if (hdd->segments[i].used < oldest->used)
            oldest = &hdd->segments[i];
    }
    *oldest = (struct segment){.start = start, .used = ++hdd->segment_clock};
    hdd->stream = oldest;
    hdd->stream_limit = lower_of(hdd->arm.lba + hdd->segment_sectors, hdd->geometry.sectors);
    stream_settle(hdd);
}

/* Whether reading on reaches the command sooner than seeking: it lies in what is being read, or at
 * most a track ahead. */
static bool stream_reaches(const struct hdd *hdd, const struct drive_command *command) {
    return hdd->stream && command->operation == DEVICE_READ && command->lba >= hdd->stream->start &&
           command->lba <= hdd->arm.lba + command->place.sectors;
}

static void segments_invalidate(struct hdd *hdd, uint64_t start, uint64_t end) {
    for (uint32_t i = 0; i < hdd->segment_count; i++) {
        struct segment *segment = &hdd->segments[i];
        if (start < segment->end && end > segment->start) {
            segment->start = segment->end;
            if (hdd->stream == segment)
                hdd->stream = NULL;
        }
    }
}

/* --- write cache ----------------------------------------------------------------------------- */

static void extent_remove(struct hdd *hdd, struct extent *extent) {
    RB_REMOVE(extents, &hdd->extents, extent);
    extent->next_free = hdd->extent_free;
    hdd->extent_free = extent;
}

/* The first extent that ends at or after `start`. */
static struct extent *extent_reaching(struct hdd *hdd, uint64_t start) {
    struct extent key = {.start = start};
    struct extent *above = RB_NFIND(extents, &hdd->extents, &key);
    struct extent *below =
        above ? RB_PREV(extents, &hdd->extents, above) : RB_MAX(extents, &hdd->extents);
    return below && below->end >= start ? below : above;
}

/* Adds a range, uniting it with all that it touches. A node is free when none is touched. */
static void cache_add(struct hdd *hdd, uint64_t start, uint64_t end, int64_t ready_ns) {
    struct extent *extent;
    while ((extent = extent_reaching(hdd, start)) && extent->start <= end) {
        hdd->cached -= extent->end - extent->start;
        start = lower_of(start, extent->start);
        end = extent->end > end ? extent->end : end;
        ready_ns = ready_ns < extent->ready_ns ? ready_ns : extent->ready_ns;
        extent_remove(hdd, extent);
    }
    extent = hdd->extent_free;
    hdd->extent_free = extent->next_free;
    *extent = (struct extent){.start = start, .end = end, .ready_ns = ready_ns};
    RB_INSERT(extents, &hdd->extents, extent);
    hdd->cached += end - start;
}

/* What the mechanism would write next: upwards from where the arm stands. */
static struct extent *cache_next(struct hdd *hdd) {
    struct extent key = {.start = hdd->arm.lba};
    struct extent *extent = RB_NFIND(extents, &hdd->extents, &key);
    return extent ? extent : RB_MIN(extents, &hdd->extents);
}

static void cache_destage(struct hdd *hdd, struct extent *extent, int64_t start) {
    uint64_t lba = extent->start;
    uint64_t count = lower_of(extent->end - lba, DESTAGE_SECTORS);
    struct hdd_place place = hdd_geometry_locate(&hdd->geometry, lba);
    hdd->cached -= count;
    /* Its order in the tree stays: it starts later, but before what follows. */
    extent->start += count;
    if (extent->start == extent->end)
        extent_remove(hdd, extent);
    hdd->stream = NULL;
    arm_serve(hdd, &place, lba, count, DEVICE_WRITE, start);
}

/* What the mechanism does on its own until `until` while no command needs it. */
static void hdd_background(struct hdd *hdd, int64_t until) {
    if (hdd->waiting_count || hdd->active)
        return;
    struct extent *extent;
    while (hdd->arm.ns < until && (extent = cache_next(hdd))) {
        int64_t start = later(hdd->arm.ns, extent->ready_ns);
        if (start >= until)
            break;
        /* The arm read ahead until the data came. */
        if (hdd->stream)
            stream_advance(hdd, start);
        cache_destage(hdd, extent, later(start, hdd->arm.ns));
    }
    if (hdd->stream && hdd->arm.ns < until)
        stream_advance(hdd, until);
}

static inline struct hdd *hdd_of(struct drive *drive) {
    return (struct hdd *)drive;
}

/* --- commands -------------------------------------------------------------------------------- */

/* Served by the electronics alone. The time counts as the disk's only while the mechanism rests. */
static void hdd_finish_electronic(struct hdd *hdd, struct drive_command *command, int64_t start) {
    int64_t transfer = interface_ns(hdd, command->sectors);
    if (hdd->arm.ns <= start && !hdd->cached) {
        hdd->stats->overhead_ns += hdd->overhead_ns;
        hdd->stats->transfer_ns += transfer;
    }
    drive_finish(&hdd->done, command, start + hdd->overhead_ns + transfer);
}

static bool buffer_holds(struct hdd *hdd, uint64_t start, uint64_t end) {
    for (uint32_t i = 0; i < hdd->segment_count; i++) {
        struct segment *segment = &hdd->segments[i];
        if (start >= segment->start && end <= segment->end) {
            segment->used = ++hdd->segment_clock;
            return true;
        }
    }
    if (!hdd->cached)
        return false;
    const struct extent *extent = extent_reaching(hdd, start);
    return extent && start >= extent->start && end <= extent->end;
}

static void hdd_accept_read(struct hdd *hdd, struct drive_command *command, int64_t now) {
    uint64_t end = command->lba + command->sectors;
    if (buffer_holds(hdd, command->lba, end)) {
        if (hdd->stream && command->lba >= hdd->stream->start && end <= hdd->stream->end)
            stream_extend(hdd, end, now);
        hdd->stats->cache_hits++;
        hdd_finish_electronic(hdd, command, now);
        return;
    }
    command->place = hdd_geometry_locate(&hdd->geometry, command->lba);
    hdd->waiting[hdd->waiting_count++] = command;
}

static void hdd_accept_write(struct hdd *hdd, struct drive_command *command, int64_t now) {
    uint64_t end = command->lba + command->sectors;
    segments_invalidate(hdd, command->lba, end);
    if (command->sectors > hdd->cache_sectors) {
        command->place = hdd_geometry_locate(&hdd->geometry, command->lba);
        hdd->waiting[hdd->waiting_count++] = command;
        return;
    }
    int64_t start = now;
    while (hdd->cached + command->sectors > hdd->cache_sectors || !hdd->extent_free) {
        struct extent *extent = cache_next(hdd);
        cache_destage(hdd, extent, later(later(hdd->arm.ns, now), extent->ready_ns));
        start = hdd->arm.ns;
    }
    hdd_finish_electronic(hdd, command, start);
    cache_add(hdd, command->lba, end, command->complete_ns);
}

static void hdd_accept(struct drive *drive, struct drive_command *command, int64_t now) {
    struct hdd *hdd = hdd_of(drive);
    hdd_background(hdd, now);
    command->arrival_ns = now;
    if (command->operation == DEVICE_READ)
        hdd_accept_read(hdd, command, now);
    else
        hdd_accept_write(hdd, command, now);
}

/* The waiting command that the arm reaches first. */
static uint32_t hdd_choose(const struct hdd *hdd, int64_t now) {
    if (hdd->waiting_count == 1 || now - hdd->waiting[0]->arrival_ns > COMMAND_AGE_NS)
        return 0;
    uint32_t best = 0;
    int64_t best_ns = INT64_MAX;
    int64_t start = later(now, hdd->arm.ns);
    for (uint32_t i = 0; i < hdd->waiting_count; i++) {
        const struct drive_command *command = hdd->waiting[i];
        if (stream_reaches(hdd, command))
            return i;
        int64_t ns = move_ns(hdd, &command->place, command->lba, command->operation);
        ns += rotation_wait(hdd, &command->place, start + ns);
        if (ns < best_ns) {
            best = i;
            best_ns = ns;
        }
    }
    return best;
}

/* The stream runs on until it has passed the command. */
static int64_t hdd_serve_from_stream(struct hdd *hdd, const struct drive_command *command,
                                     int64_t start) {
    uint64_t end = command->lba + command->sectors;
    stream_extend(hdd, end, start);
    if (hdd->arm.lba < end)
        arm_transfer(hdd, end, INT64_MAX);
    stream_settle(hdd);
    int64_t done = later(hdd->arm.ns, start);
    hdd->stats->transfer_ns += done - start;
    return done;
}

static int64_t hdd_serve_from_platter(struct hdd *hdd, const struct drive_command *command,
                                      int64_t start) {
    if (hdd->stream)
        stream_advance(hdd, start);
    hdd->stream = NULL;
    arm_serve(hdd, &command->place, command->lba, command->sectors, command->operation,
              later(start, hdd->arm.ns));
    if (command->operation == DEVICE_READ && hdd->segment_sectors)
        stream_begin(hdd, command->lba);
    return hdd->arm.ns;
}

static void hdd_start(struct drive *drive, int64_t now) {
    struct hdd *hdd = hdd_of(drive);
    if (hdd->active || hdd->waiting_count == 0)
        return;
    uint32_t index = hdd_choose(hdd, now);
    struct drive_command *command = hdd->waiting[index];
    memmove(&hdd->waiting[index], &hdd->waiting[index + 1],
            (hdd->waiting_count - index - 1) * sizeof(struct drive_command *));
    hdd->waiting_count--;
    /* A command that waited in the disk was understood meanwhile; what the mechanism was busy with
     * hides the rest. */
    int64_t start = later(now, command->arrival_ns + hdd->overhead_ns);
    hdd->stats->overhead_ns += later(0, start - later(now, hdd->arm.ns));
    int64_t done = stream_reaches(hdd, command) ? hdd_serve_from_stream(hdd, command, start)
                                                : hdd_serve_from_platter(hdd, command, start);
    /* The interface runs along with the platter, a sector behind, unless it is the slower one. */
    int64_t transfer = interface_ns(hdd, command->sectors);
    int64_t complete_ns = later(done + interface_ns(hdd, 1), start + transfer);
    hdd->stats->transfer_ns += complete_ns - done;
    hdd->active = command;
    drive_finish(&hdd->done, command, complete_ns);
}

static int64_t hdd_next_completion(const struct drive *drive) {
    const struct hdd *hdd = (const struct hdd *)drive;
    return hdd->done ? hdd->done->complete_ns : INT64_MAX;
}

static struct drive_command *hdd_complete(struct drive *drive) {
    struct hdd *hdd = hdd_of(drive);
    struct drive_command *command = hdd->done;
    hdd->done = command->next;
    if (command == hdd->active)
        hdd->active = NULL;
    return command;
}

static int64_t hdd_flush(struct drive *drive, int64_t now) {
    struct hdd *hdd = hdd_of(drive);
    hdd_background(hdd, now);
    struct extent *extent;
    int64_t start = now;
    while ((extent = cache_next(hdd))) {
        start = later(later(hdd->arm.ns, start), extent->ready_ns);
        cache_destage(hdd, extent, start);
        start = hdd->arm.ns;
    }
    return hdd->stream ? start : later(start, hdd->arm.ns);
}

/* --- life ------------------------------------------------------------------------------------ */

static int hdd_init_buffer(struct hdd *hdd, const struct disk_preset *preset) {
    uint32_t read_bytes = preset->buffer_bytes - preset->write_cache_bytes;
    hdd->segment_count = preset->buffer_segments;
    hdd->segment_sectors = read_bytes / preset->buffer_segments / DEVICE_SECTOR;
    hdd->segments = calloc(hdd->segment_count, sizeof(*hdd->segments));
    hdd->cache_sectors = preset->write_cache_bytes / DEVICE_SECTOR;
    uint64_t extents = hdd->cache_sectors / EXTENT_SECTORS + 1;
    hdd->extent_room = calloc(extents, sizeof(*hdd->extent_room));
    hdd->waiting = calloc(preset->queue_depth, sizeof(*hdd->waiting));
    if (!hdd->segments || !hdd->extent_room || !hdd->waiting)
        return -ENOMEM;
    for (uint64_t i = 0; i < extents; i++) {
        hdd->extent_room[i].next_free = hdd->extent_free;
        hdd->extent_free = &hdd->extent_room[i];
    }
    return 0;
}

static void hdd_close(struct drive *drive) {
    struct hdd *hdd = hdd_of(drive);
    hdd_geometry_destroy(&hdd->geometry);
    free(hdd->segments);
    free(hdd->extent_room);
    free(hdd->waiting);
    free(hdd);
}

static const struct drive_operations hdd_operations = {
    .accept = hdd_accept,
    .start = hdd_start,
    .next_completion = hdd_next_completion,
    .complete = hdd_complete,
    .flush = hdd_flush,
    .close = hdd_close,
};

int hdd_open(const struct disk_preset *preset, struct device_stats *stats, const struct log *log,
             struct drive **drive) {
    if (preset->buffer_segments == 0 || preset->queue_depth == 0 || preset->interface_rate == 0 ||
        preset->write_cache_bytes > preset->buffer_bytes) {
        log_error(log, "disk \"%s\": the buffer, queue or interface is out of range", preset->name);
        return -EINVAL;
    }
    struct hdd *hdd = calloc(1, sizeof(*hdd));
    if (!hdd)
        return -ENOMEM;
    hdd->drive.operations = &hdd_operations;
    hdd->stats = stats;
    hdd->overhead_ns = preset->overhead_ns;
    hdd->write_settle_ns = preset->write_settle_ns;
    hdd->interface_rate = preset->interface_rate;
    RB_INIT(&hdd->extents);
    int error = hdd_geometry_init(&hdd->geometry, preset, log);
    if (!error)
        error = hdd_init_buffer(hdd, preset);
    if (error) {
        hdd_close(&hdd->drive);
        return error;
    }
    *drive = &hdd->drive;
    return 0;
}
