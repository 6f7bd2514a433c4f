/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device. Interface: fs/device/drive.h.
 * A flash disk: how long commands take. A controller and an interface, each one command at a time;
 * channels, each one transfer at a time; dies, each one operation at a time; a write cache in front
 * of them. Where data lie, and what cleaning costs, is in flash.c. docs/disk-model.md explains it.
 *
 * The simulation is lazy: what dies do on their own is worked out only up to the moment that a
 * command arrives.
 *
 * Invariants:
 *  1. A die's busy_ns is when it has done all that it has begun; it never decreases.
 *  2. A unit in the cache is in `filling` or in a page that a die has queued or is programming;
 *     cached counts them, and is at most cache_units. A page that is not programmed yet has its bit
 *     in `unwritten`: it is read from the cache.
 *  3. A die begins what is queued in order, each as soon as it is free and the data are there; a
 *     read goes before what is queued.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "fs/bitmap.h"
#include "fs/device/drive.h"
#include "fs/device/flash.h"

#define UNIT_SECTORS (FLASH_UNIT / DEVICE_SECTOR)

struct flash_page {
    STAILQ_ENTRY(flash_page) link;
    uint32_t number; /* place / units of a page */
    uint32_t count;  /* units */
    int64_t ready_ns;
    struct flash_work work; /* cleaning that comes with it */
};
STAILQ_HEAD(page_list, flash_page);

struct die {
    int64_t busy_ns;
    struct page_list queue;
    struct flash_page *current; /* being programmed until busy_ns at the latest */
    int64_t current_ns;         /* until when */
};

struct ssd {
    struct drive drive;
    struct device_stats *stats; /* borrowed */
    struct flash *flash;
    struct disk_preset preset;
    uint32_t page_units, die_count;
    uint64_t page_bytes;
    struct die *dies;
    int64_t *channel_ns; /* when each is free */
    int64_t controller_ns, interface_ns, counted_ns;
    uint32_t next_die;

    uint32_t filling[FLASH_PAGE_UNITS_MAX]; /* units of the page that is not full yet */
    uint32_t filled;
    int64_t filling_ns; /* when the last of them came */
    uint32_t cached, cache_units;
    unsigned char *unwritten;
    struct flash_page *page_room;
    struct page_list page_free;

    struct drive_command *done; /* by complete_ns */
};

static inline struct ssd *ssd_of(struct drive *drive) {
    return (struct ssd *)drive;
}

static inline int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Counts time in which something works, once however many do. */
static void count_busy(struct ssd *ssd, int64_t start, int64_t end) {
    start = later(start, ssd->counted_ns);
    if (end <= start)
        return;
    ssd->stats->transfer_ns += end - start;
    ssd->counted_ns = end;
}

/* A transfer over a path that others share, asked for at `asked` of data that are there at `ready`.
 * Who asks later may be ready sooner and goes first then; so the path is not taken for a certain
 * time, but for as long as the transfer takes, from when it was asked for. Returns its end. */
static int64_t transfer(int64_t *path_ns, int64_t asked, int64_t ready, uint64_t bytes,
                        uint64_t rate) {
    int64_t ns = (int64_t)(bytes * NS_PER_SEC / rate);

    *path_ns = later(*path_ns, asked) + ns;
    return later(ready + ns, *path_ns);
}

static int64_t interface_transfer(struct ssd *ssd, int64_t asked, int64_t ready, uint64_t bytes) {
    return transfer(&ssd->interface_ns, asked, ready, bytes, ssd->preset.interface_rate);
}

static int64_t channel_transfer(struct ssd *ssd, uint32_t die, int64_t asked, int64_t ready,
                                uint64_t bytes) {
    return transfer(&ssd->channel_ns[die % ssd->preset.channels], asked, ready, bytes,
                    ssd->preset.channel_rate);
}

/* --- dies --------------------------------------------------------------------------------------
 */

/* What cleaning takes; data that are moved cross the channel twice. */
static int64_t clean_until(struct ssd *ssd, uint32_t die, int64_t start,
                           const struct flash_work *work) {
    int64_t ns = start;

    for (uint32_t i = 0; i < work->reads; i++)
        ns = channel_transfer(ssd, die, start, ns + ssd->preset.flash_read_ns, ssd->page_bytes);
    for (uint32_t i = 0; i < work->programs; i++)
        ns = channel_transfer(ssd, die, start, ns, ssd->page_bytes) + ssd->preset.flash_program_ns;
    ssd->stats->flash_moved += work->programs * ssd->page_bytes;
    ssd->stats->flash_programmed += work->programs * ssd->page_bytes;
    ssd->stats->flash_erases += work->erases;
    return ns + work->erases * ssd->preset.flash_erase_ns;
}

static void page_begin(struct ssd *ssd, uint32_t index, int64_t start) {
    struct die *die = &ssd->dies[index];
    struct flash_page *page = die->current = STAILQ_FIRST(&die->queue);

    STAILQ_REMOVE_HEAD(&die->queue, link);
    int64_t ns = clean_until(ssd, index, start, &page->work);
    ns = channel_transfer(ssd, index, start, ns, ssd->page_bytes) + ssd->preset.flash_program_ns;
    ssd->stats->flash_programmed += ssd->page_bytes;
    count_busy(ssd, start, ns);
    die->busy_ns = die->current_ns = ns;
}

static void page_end(struct ssd *ssd, struct die *die) {
    struct flash_page *page = die->current;

    ssd->cached -= page->count;
    bitmap_clear(ssd->unwritten, page->number, 1);
    STAILQ_INSERT_HEAD(&ssd->page_free, page, link);
    die->current = NULL;
}

/* What the die ends by `until`, and begins before. */
static void die_advance(struct ssd *ssd, uint32_t index, int64_t until) {
    struct die *die = &ssd->dies[index];

    for (;;) {
        if (die->current && die->current_ns > until)
            return;
        if (die->current)
            page_end(ssd, die);
        if (STAILQ_EMPTY(&die->queue))
            return;
        int64_t start = later(die->busy_ns, STAILQ_FIRST(&die->queue)->ready_ns);
        if (start >= until)
            return;
        page_begin(ssd, index, start);
    }
}

/* Dies with nothing to do clean, as long as there is something to gain. */
static void clean_ahead(struct ssd *ssd, int64_t until) {
    if (flash_wanting(ssd->flash) == 0)
        return;
    for (uint32_t i = 0; i < ssd->die_count; i++) {
        struct die *die = &ssd->dies[i];
        struct flash_work work = {0};
        while (!die->current && STAILQ_EMPTY(&die->queue) && die->busy_ns < until &&
               flash_clean(ssd->flash, i, &work)) {
            int64_t start = die->busy_ns;
            die->busy_ns = clean_until(ssd, i, start, &work);
            count_busy(ssd, start, die->busy_ns);
            work = (struct flash_work){0};
        }
    }
}

static void advance(struct ssd *ssd, int64_t until) {
    for (uint32_t i = 0; i < ssd->die_count; i++)
        if (ssd->dies[i].current || !STAILQ_EMPTY(&ssd->dies[i].queue))
            die_advance(ssd, i, until);
    clean_ahead(ssd, until);
}

/* Lets the die that ends first end what it programs; returns when that is. There is one. */
static int64_t end_one(struct ssd *ssd) {
    uint32_t first = 0;
    int64_t ns = INT64_MAX;

    for (uint32_t i = 0; i < ssd->die_count; i++) {
        struct die *die = &ssd->dies[i];
        if (!die->current && !STAILQ_EMPTY(&die->queue))
            page_begin(ssd, i, later(die->busy_ns, STAILQ_FIRST(&die->queue)->ready_ns));
        if (die->current && die->current_ns < ns) {
            first = i;
            ns = die->current_ns;
        }
    }
    page_end(ssd, &ssd->dies[first]);
    return ns;
}

/* --- the write cache ---------------------------------------------------------------------------
 */

static uint32_t choose_die(struct ssd *ssd) {
    uint32_t die = ssd->next_die;

    while (!flash_has_room(ssd->flash, die))
        die = die + 1 < ssd->die_count ? die + 1 : 0;
    ssd->next_die = die + 1 < ssd->die_count ? die + 1 : 0;
    return die;
}

/* The units collected, a page of them or fewer, go to the next die. */
static void page_queue(struct ssd *ssd) {
    uint32_t die = choose_die(ssd);
    struct flash_page *page = STAILQ_FIRST(&ssd->page_free);

    STAILQ_REMOVE_HEAD(&ssd->page_free, link);
    *page = (struct flash_page){.count = ssd->filled, .ready_ns = ssd->filling_ns};
    page->number =
        flash_program(ssd->flash, die, ssd->filling, ssd->filled, &page->work) / ssd->page_units;
    bitmap_set(ssd->unwritten, page->number, 1);
    STAILQ_INSERT_TAIL(&ssd->dies[die].queue, page, link);
    ssd->filled = 0;
}

static bool is_filling(const struct ssd *ssd, uint32_t unit) {
    for (uint32_t i = 0; i < ssd->filled; i++)
        if (ssd->filling[i] == unit)
            return true;
    return false;
}

/* Takes a unit whose data come at `arrival`. Returns when there was room for it. */
static int64_t cache_unit(struct ssd *ssd, uint32_t unit, int64_t arrival) {
    int64_t ns = arrival;

    if (is_filling(ssd, unit))
        return ns;
    while (ssd->cached == ssd->cache_units)
        ns = later(ns, end_one(ssd));
    ssd->cached++;
    ssd->filling[ssd->filled++] = unit;
    ssd->filling_ns = later(ssd->filling_ns, ns);
    if (ssd->filled == ssd->page_units)
        page_queue(ssd);
    return ns;
}

/* --- commands ----------------------------------------------------------------------------------
 */

/* The controller looks at one command after the other. */
static int64_t controller_begin(struct ssd *ssd, int64_t now) {
    int64_t start = later(now, ssd->controller_ns);

    ssd->controller_ns = start + ssd->preset.overhead_ns;
    count_busy(ssd, start, ssd->controller_ns);
    return ssd->controller_ns;
}

/* Reads `bytes` of one page. */
static int64_t die_read(struct ssd *ssd, uint32_t number, int64_t asked, uint64_t bytes) {
    uint32_t index = (uint32_t)(number / ((uint64_t)ssd->preset.block_pages * ssd->preset.blocks));
    struct die *die = &ssd->dies[index];

    die_advance(ssd, index, asked);
    int64_t start = later(asked, die->busy_ns);
    die->busy_ns = channel_transfer(ssd, index, asked, start + ssd->preset.flash_read_ns, bytes);
    count_busy(ssd, start, die->busy_ns);
    return die->busy_ns;
}

/* The page that the unit has to be read from, or FLASH_NONE. */
static uint32_t page_of(const struct ssd *ssd, uint32_t unit) {
    uint32_t place = flash_find(ssd->flash, unit);

    if (place == FLASH_NONE || is_filling(ssd, unit))
        return FLASH_NONE;
    return bitmap_test(ssd->unwritten, place / ssd->page_units) ? FLASH_NONE
                                                                : place / ssd->page_units;
}

/* Reads units, those in one page at once. Returns when the last is there. */
static int64_t read_units(struct ssd *ssd, uint32_t first, uint32_t end, int64_t start) {
    int64_t done = start;

    for (uint32_t unit = first, next; unit < end; unit = next) {
        uint32_t page = page_of(ssd, unit);
        for (next = unit + 1; next < end && page_of(ssd, next) == page;)
            next++;
        if (page == FLASH_NONE)
            ssd->stats->cache_hits += unit == first && next == end;
        else
            done = later(done, die_read(ssd, page, start, (uint64_t)(next - unit) * FLASH_UNIT));
    }
    return done;
}

static void accept_read(struct ssd *ssd, struct drive_command *command, int64_t start) {
    uint64_t end = command->lba + command->sectors;
    int64_t ns = read_units(ssd, (uint32_t)(command->lba / UNIT_SECTORS),
                            (uint32_t)((end + UNIT_SECTORS - 1) / UNIT_SECTORS), start);

    ns = interface_transfer(ssd, start, ns, (uint64_t)command->sectors * DEVICE_SECTOR);
    drive_finish(&ssd->done, command, ns);
}

/* Units of which only a part is written are read first. */
static int64_t read_edges(struct ssd *ssd, uint64_t lba, uint64_t end, int64_t start) {
    int64_t ns = start;

    if (lba % UNIT_SECTORS)
        ns = read_units(ssd, (uint32_t)(lba / UNIT_SECTORS), (uint32_t)(lba / UNIT_SECTORS) + 1,
                        start);
    if (end % UNIT_SECTORS && (end / UNIT_SECTORS != lba / UNIT_SECTORS || !(lba % UNIT_SECTORS)))
        ns = later(ns, read_units(ssd, (uint32_t)(end / UNIT_SECTORS),
                                  (uint32_t)(end / UNIT_SECTORS) + 1, start));
    return ns;
}

static void accept_write(struct ssd *ssd, struct drive_command *command, int64_t start) {
    uint64_t end = command->lba + command->sectors;
    int64_t ns = interface_transfer(ssd, start, start, (uint64_t)command->sectors * DEVICE_SECTOR);

    int64_t ready = later(ns, read_edges(ssd, command->lba, end, start));
    for (uint64_t unit = command->lba / UNIT_SECTORS; unit * UNIT_SECTORS < end; unit++)
        ready = later(ready, cache_unit(ssd, (uint32_t)unit, ready));
    drive_finish(&ssd->done, command, ready);
}

static void ssd_accept(struct drive *drive, struct drive_command *command, int64_t now) {
    struct ssd *ssd = ssd_of(drive);

    advance(ssd, now);
    command->arrival_ns = now;
    int64_t start = controller_begin(ssd, now);
    if (command->operation == DEVICE_READ)
        accept_read(ssd, command, start);
    else
        accept_write(ssd, command, start);
}

/* Every die begins on its own. */
static void ssd_start(struct drive *drive, int64_t now) {
    (void)drive;
    (void)now;
}

static int64_t ssd_next_completion(const struct drive *drive) {
    const struct ssd *ssd = (const struct ssd *)drive;

    return ssd->done ? ssd->done->complete_ns : INT64_MAX;
}

static struct drive_command *ssd_complete(struct drive *drive) {
    struct ssd *ssd = ssd_of(drive);
    struct drive_command *command = ssd->done;

    ssd->done = command->next;
    return command;
}

static int64_t ssd_flush(struct drive *drive, int64_t now) {
    struct ssd *ssd = ssd_of(drive);

    advance(ssd, now);
    int64_t ns = controller_begin(ssd, now);
    if (ssd->preset.power_loss == POWER_LOSS_PROTECTED)
        return ns;
    if (ssd->filled > 0)
        page_queue(ssd);
    while (ssd->cached > 0)
        ns = later(ns, end_one(ssd));
    return ns;
}

/* Whole units only, as disks round what they are told. */
static int64_t ssd_trim(struct drive *drive, uint64_t lba, uint64_t sectors, int64_t now) {
    struct ssd *ssd = ssd_of(drive);
    uint64_t end = (lba + sectors) / UNIT_SECTORS;

    advance(ssd, now);
    for (uint64_t unit = (lba + UNIT_SECTORS - 1) / UNIT_SECTORS; unit < end; unit++)
        if (!is_filling(ssd, (uint32_t)unit))
            flash_forget(ssd->flash, (uint32_t)unit);
    return controller_begin(ssd, now);
}

/* --- life --------------------------------------------------------------------------------------
 */

static void ssd_close(struct drive *drive) {
    struct ssd *ssd = ssd_of(drive);

    flash_close(ssd->flash);
    free(ssd->dies);
    free(ssd->channel_ns);
    free(ssd->unwritten);
    free(ssd->page_room);
    free(ssd);
}

static const struct drive_operations ssd_operations = {
    .accept = ssd_accept,
    .start = ssd_start,
    .next_completion = ssd_next_completion,
    .complete = ssd_complete,
    .flush = ssd_flush,
    .trim = ssd_trim,
    .close = ssd_close,
};

static const struct drive_operations untrimmed_operations = {
    .accept = ssd_accept,
    .start = ssd_start,
    .next_completion = ssd_next_completion,
    .complete = ssd_complete,
    .flush = ssd_flush,
    .close = ssd_close,
};

static int fail(const struct disk_preset *preset, const struct log *log, const char *reason) {
    log_error(log, "disk \"%s\": %s", preset->name, reason);
    return -EINVAL;
}

static int check_preset(const struct disk_preset *preset, const struct log *log) {
    uint64_t page_units = (uint64_t)preset->planes * preset->page_bytes / FLASH_UNIT;

    if (preset->channels == 0 || preset->channel_dies == 0 || preset->channel_rate == 0 ||
        preset->interface_rate == 0 || preset->occupied_percent > 100)
        return fail(preset, log, "channels, rates or occupied is out of range");
    if (page_units == 0 || page_units > FLASH_PAGE_UNITS_MAX ||
        (uint64_t)preset->planes * preset->page_bytes % FLASH_UNIT)
        return fail(preset, log, "the pages of all planes must be 4 KiB to 256 KiB");
    if (preset->write_cache_bytes / FLASH_UNIT < 2 * page_units)
        return fail(preset, log, "write_cache must hold the pages of two dies");
    if (preset->capacity / FLASH_UNIT >= UINT32_MAX)
        return fail(preset, log, "capacity is out of range");
    return 0;
}

static int init_flash(struct ssd *ssd, const struct log *log) {
    const struct disk_preset *preset = &ssd->preset;
    const struct flash_shape shape = {.dies = ssd->die_count,
                                      .blocks = preset->blocks,
                                      .pages = preset->block_pages,
                                      .units = ssd->page_units};
    uint64_t units = preset->capacity / FLASH_UNIT;
    int error = flash_open(&shape, units, units / 100 * preset->occupied_percent, &ssd->flash);

    if (error == -EINVAL)
        return fail(preset, log, "the flash leaves too little room to spare");
    return error;
}

static int init_pages(struct ssd *ssd) {
    uint64_t pages = (uint64_t)ssd->die_count * ssd->preset.blocks * ssd->preset.block_pages;

    ssd->dies = calloc(ssd->die_count, sizeof(*ssd->dies));
    ssd->channel_ns = calloc(ssd->preset.channels, sizeof(*ssd->channel_ns));
    ssd->unwritten = calloc(1, pages / 8 + 1);
    ssd->page_room = calloc(ssd->cache_units, sizeof(*ssd->page_room));
    if (!ssd->dies || !ssd->channel_ns || !ssd->unwritten || !ssd->page_room)
        return -ENOMEM;
    STAILQ_INIT(&ssd->page_free);
    for (uint32_t i = 0; i < ssd->cache_units; i++)
        STAILQ_INSERT_TAIL(&ssd->page_free, &ssd->page_room[i], link);
    for (uint32_t i = 0; i < ssd->die_count; i++)
        STAILQ_INIT(&ssd->dies[i].queue);
    return 0;
}

int ssd_open(const struct disk_preset *preset, struct device_stats *stats, const struct log *log,
             struct drive **drive) {
    int error = check_preset(preset, log);
    if (error)
        return error;
    struct ssd *ssd = calloc(1, sizeof(*ssd));
    if (!ssd)
        return -ENOMEM;
    ssd->drive.operations = preset->trim == TRIM_YES ? &ssd_operations : &untrimmed_operations;
    ssd->stats = stats;
    ssd->preset = *preset;
    ssd->die_count = preset->channels * preset->channel_dies;
    ssd->page_bytes = (uint64_t)preset->planes * preset->page_bytes;
    ssd->page_units = (uint32_t)(ssd->page_bytes / FLASH_UNIT);
    ssd->cache_units = preset->write_cache_bytes / FLASH_UNIT;
    error = init_flash(ssd, log);
    if (!error)
        error = init_pages(ssd);
    if (error) {
        ssd_close(&ssd->drive);
        return error;
    }
    *drive = &ssd->drive;
    return 0;
}
