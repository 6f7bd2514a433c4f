/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs/device. Interface: fs/device/flash.h.
 *
 * Invariants:
 *  1. A place holds valid data exactly if its owner's place is this one; block->valid counts them,
 *     die->valid those of all its blocks.
 *  2. A block is free (erased), open (one for new data and one for moved data a die), full, or in
 * the midst of a step of cleaning empty. die->free counts the free ones.
 *  3. A die takes new data only while RESERVE blocks of it would be without valid data; and a block
 *     for new data only while another is free. So the full block with the least valid data always
 *     has fewer than it has room for, and cleaning makes room.
 *  4. A block that is `initial` holds what the disk held at the start, in the order of the disk,
 *     page by page over all dies: neither map nor owners say so.
 *  5. Memory that has not been used is zero and takes no room: tables hold numbers plus one.
 */
#include "fs/device/flash.h"

#include <errno.h>
#include <stdlib.h>

#define RESERVE 4u
/* With fewer free blocks, each page of new data is accompanied by some cleaning. */
#define LOW 3u
/* Of the blocks to spare, so many are kept free by cleaning beforehand. */
#define AHEAD_SHARE 4u

/* Blocks that one step of cleaning may empty. */
#define EMPTIED_MAX 4u

#define FORGOTTEN UINT32_MAX
#define NO_BLOCK  UINT32_MAX

enum block_state { BLOCK_FREE, BLOCK_OPEN, BLOCK_FULL, BLOCK_EMPTY /* to be erased */ };

struct block {
    uint32_t valid;
    uint16_t written; /* pages */
    uint8_t state;
    bool initial;
};

struct die {
    uint32_t free, valid;
    uint32_t open[2];   /* blocks for new and for moved data, or NO_BLOCK */
    uint32_t next;      /* where to look for a free block */
    uint32_t victim;    /* being cleaned, or NO_BLOCK */
    uint32_t victim_at; /* its next place to look at, counted from its first */
    uint32_t pace;      /* steps of cleaning for each page of new data */
    bool wanting;
};

struct flash {
    struct flash_shape shape;
    uint32_t block_units, room; /* units of a block; that a die may hold */
    uint32_t ahead;             /* free blocks that cleaning beforehand aims at */
    uint32_t initial_blocks;    /* of each die */
    uint64_t initial_units;
    uint32_t wanting;
    uint32_t *map;    /* of units: place + 1, 0: as at the start, FORGOTTEN */
    uint32_t *owners; /* of places */
    struct block *blocks;
    struct die *dies;
};

/* --- places ------------------------------------------------------------------------------------
 */

static struct block *block_at(const struct flash *flash, uint32_t die, uint32_t block) {
    return &flash->blocks[(uint64_t)die * flash->shape.blocks + block];
}

static uint32_t first_place(const struct flash *flash, uint32_t die, uint32_t block,
                            uint32_t page) {
    return ((die * flash->shape.blocks + block) * flash->shape.pages + page) * flash->shape.units;
}

/* Where the unit lies at the start. */
static uint32_t initial_place(const struct flash *flash, uint32_t unit) {
    uint32_t stripe = unit / flash->shape.units;
    uint32_t row = stripe / flash->shape.dies;

    return first_place(flash, stripe % flash->shape.dies, row / flash->shape.pages,
                       row % flash->shape.pages) +
           unit % flash->shape.units;
}

static uint32_t initial_owner(const struct flash *flash, uint32_t die, uint32_t block,
                              uint32_t page, uint32_t slot) {
    uint32_t row = block * flash->shape.pages + page;

    return (row * flash->shape.dies + die) * flash->shape.units + slot;
}

uint32_t flash_find(const struct flash *flash, uint32_t unit) {
    uint32_t entry = flash->map[unit];

    if (entry == 0 && unit < flash->initial_units)
        return initial_place(flash, unit);
    return entry == 0 || entry == FORGOTTEN ? FLASH_NONE : entry - 1;
}

/* --- what is valid -----------------------------------------------------------------------------
 */

static void invalidate(struct flash *flash, uint32_t unit) {
    uint32_t place = flash_find(flash, unit);

    if (place == FLASH_NONE)
        return;
    uint32_t block = place / flash->block_units;
    flash->blocks[block].valid--;
    flash->dies[block / flash->shape.blocks].valid--;
}

static void validate(struct flash *flash, uint32_t die, uint32_t block, uint32_t place,
                     uint32_t unit) {
    invalidate(flash, unit);
    flash->map[unit] = place + 1;
    flash->owners[place] = unit + 1;
    block_at(flash, die, block)->valid++;
    flash->dies[die].valid++;
}

void flash_forget(struct flash *flash, uint32_t unit) {
    invalidate(flash, unit);
    flash->map[unit] = FORGOTTEN;
}

bool flash_has_room(const struct flash *flash, uint32_t die) {
    return flash->dies[die].valid + flash->shape.units <= flash->room;
}

/* --- blocks ------------------------------------------------------------------------------------
 */

static void note_free(struct flash *flash, struct die *die) {
    bool wanting = die->free < flash->ahead;

    flash->wanting += wanting - die->wanting;
    die->wanting = wanting;
}

uint32_t flash_wanting(const struct flash *flash) {
    return flash->wanting;
}

static void block_erase(struct flash *flash, uint32_t die, uint32_t number) {
    *block_at(flash, die, number) = (struct block){.state = BLOCK_FREE};
    flash->dies[die].free++;
    note_free(flash, &flash->dies[die]);
}

/* Takes the next free block, round the die. There is one. */
static uint32_t block_take(struct flash *flash, uint32_t number) {
    struct die *die = &flash->dies[number];
    uint32_t block = die->next;

    while (block_at(flash, number, block)->state != BLOCK_FREE)
        block = block + 1 < flash->shape.blocks ? block + 1 : 0;
    die->next = block;
    die->free--;
    note_free(flash, die);
    block_at(flash, number, block)->state = BLOCK_OPEN;
    return block;
}

enum stream { NEW_DATA, MOVED_DATA };

/* Programs the next page of the die's open block. The page's first place. */
static uint32_t program(struct flash *flash, uint32_t number, enum stream stream,
                        const uint32_t *units, uint32_t count) {
    struct die *die = &flash->dies[number];

    if (die->open[stream] == NO_BLOCK)
        die->open[stream] = block_take(flash, number);
    uint32_t index = die->open[stream];
    struct block *block = block_at(flash, number, index);
    uint32_t place = first_place(flash, number, index, block->written);
    for (uint32_t i = 0; i < flash->shape.units; i++) {
        if (i < count)
            validate(flash, number, index, place + i, units[i]);
        else
            flash->owners[place + i] = 0;
    }
    if (++block->written == flash->shape.pages) {
        block->state = BLOCK_FULL;
        die->open[stream] = NO_BLOCK;
    }
    return place;
}

/* --- cleaning ----------------------------------------------------------------------------------
 */

/* The full block with the least valid data. */
static void choose_victim(struct flash *flash, uint32_t number) {
    struct die *die = &flash->dies[number];
    uint32_t least = flash->block_units;

    die->victim_at = 0;
    for (uint32_t i = 0; i < flash->shape.blocks && least > 0; i++) {
        const struct block *block = block_at(flash, number, i);
        if (block->state == BLOCK_FULL && block->valid < least) {
            least = block->valid;
            die->victim = i;
        }
    }
    uint32_t gained = flash->block_units - least;
    die->pace = gained ? (least + gained - 1) / gained + 1 : 1;
}

/* The valid unit at a place of a full block, or FLASH_NONE. */
static uint32_t valid_unit(const struct flash *flash, uint32_t die, uint32_t block, uint32_t at) {
    const uint32_t page = at / flash->shape.units, slot = at % flash->shape.units;
    uint32_t place = first_place(flash, die, block, page) + slot, unit;

    if (block_at(flash, die, block)->initial)
        unit = initial_owner(flash, die, block, page, slot);
    else if (flash->owners[place] != 0)
        unit = flash->owners[place] - 1;
    else
        return FLASH_NONE;
    return flash_find(flash, unit) == place ? unit : FLASH_NONE;
}

/* Collects valid units of the victim, until there is a page of them or it has no more. */
static uint32_t collect(struct flash *flash, uint32_t number, uint32_t *units, uint32_t count,
                        struct flash_work *work) {
    struct die *die = &flash->dies[number];
    uint32_t page_read = NO_BLOCK;

    for (; die->victim_at < flash->block_units && count < flash->shape.units; die->victim_at++) {
        uint32_t unit = valid_unit(flash, number, die->victim, die->victim_at);
        if (unit == FLASH_NONE)
            continue;
        units[count++] = unit;
        work->reads += die->victim_at / flash->shape.units != page_read;
        page_read = die->victim_at / flash->shape.units;
    }
    return count;
}

/* Moves a page of valid data, from one victim after the other, and erases those that are empty. */
static void clean_step(struct flash *flash, uint32_t number, struct flash_work *work) {
    struct die *die = &flash->dies[number];
    uint32_t units[FLASH_PAGE_UNITS_MAX], emptied[EMPTIED_MAX], count = 0, empty = 0;

    while (count < flash->shape.units && empty < EMPTIED_MAX) {
        if (die->victim == NO_BLOCK)
            choose_victim(flash, number);
        if (die->victim == NO_BLOCK)
            break;
        count = collect(flash, number, units, count, work);
        if (die->victim_at < flash->block_units)
            continue;
        block_at(flash, number, die->victim)->state = BLOCK_EMPTY;
        emptied[empty++] = die->victim;
        die->victim = NO_BLOCK;
    }
    if (count > 0)
        program(flash, number, MOVED_DATA, units, count);
    work->programs += count > 0;
    for (uint32_t i = 0; i < empty; i++)
        block_erase(flash, number, emptied[i]);
    work->erases += empty;
}

bool flash_clean(struct flash *flash, uint32_t die, struct flash_work *work) {
    if (!flash->dies[die].wanting)
        return false;
    const struct flash_work before = *work;
    clean_step(flash, die, work);
    return work->programs > before.programs || work->erases > before.erases;
}

uint32_t flash_program(struct flash *flash, uint32_t number, const uint32_t *units, uint32_t count,
                       struct flash_work *work) {
    struct die *die = &flash->dies[number];

    for (uint32_t i = 0; die->free < LOW && i < (die->victim == NO_BLOCK ? 1 : die->pace); i++)
        clean_step(flash, number, work);
    while (die->open[NEW_DATA] == NO_BLOCK && die->free < 2)
        clean_step(flash, number, work);
    return program(flash, number, NEW_DATA, units, count);
}

/* --- life --------------------------------------------------------------------------------------
 */

static void init_blocks(struct flash *flash) {
    for (uint32_t i = 0; i < flash->shape.dies; i++) {
        struct die *die = &flash->dies[i];
        *die = (struct die){.free = flash->shape.blocks - flash->initial_blocks,
                            .valid = flash->initial_blocks * flash->block_units,
                            .open = {NO_BLOCK, NO_BLOCK},
                            .victim = NO_BLOCK};
        for (uint32_t b = 0; b < flash->initial_blocks; b++)
            *block_at(flash, i, b) = (struct block){.valid = flash->block_units,
                                                    .written = (uint16_t)flash->shape.pages,
                                                    .state = BLOCK_FULL,
                                                    .initial = true};
        note_free(flash, die);
    }
}

/* The numbers of places fit, and what the disk holds leaves every die its reserve. */
static bool shape_is_valid(const struct flash_shape *shape, uint64_t units) {
    uint64_t row = (uint64_t)shape->dies * shape->pages * shape->units;

    return shape->units >= 1 && shape->units <= FLASH_PAGE_UNITS_MAX && shape->pages >= 1 &&
           shape->pages <= UINT16_MAX && shape->dies >= 1 && shape->blocks > RESERVE + 1 &&
           row < UINT32_MAX / shape->blocks && units <= row * (shape->blocks - RESERVE - 1);
}

int flash_open(const struct flash_shape *shape, uint64_t units, uint64_t occupied,
               struct flash **result) {
    if (!shape_is_valid(shape, units))
        return -EINVAL;
    struct flash *flash = calloc(1, sizeof(*flash));
    if (!flash)
        return -ENOMEM;
    uint64_t row = (uint64_t)shape->dies * shape->pages * shape->units;
    flash->shape = *shape;
    flash->block_units = shape->pages * shape->units;
    flash->room = (shape->blocks - RESERVE) * flash->block_units;
    flash->initial_blocks = (uint32_t)((occupied < units ? occupied : units) / row);
    flash->initial_units = flash->initial_blocks * row;
    flash->ahead = LOW + (uint32_t)(shape->blocks - units / row) / AHEAD_SHARE;
    flash->map = calloc(units, sizeof(*flash->map));
    flash->owners = calloc(row * shape->blocks, sizeof(*flash->owners));
    flash->blocks = calloc((size_t)shape->dies * shape->blocks, sizeof(*flash->blocks));
    flash->dies = calloc(shape->dies, sizeof(*flash->dies));
    if (!flash->map || !flash->owners || !flash->blocks || !flash->dies) {
        flash_close(flash);
        return -ENOMEM;
    }
    init_blocks(flash);
    *result = flash;
    return 0;
}

void flash_close(struct flash *flash) {
    if (!flash)
        return;
    free(flash->map);
    free(flash->owners);
    free(flash->blocks);
    free(flash->dies);
    free(flash);
}
