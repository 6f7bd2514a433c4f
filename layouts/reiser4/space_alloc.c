/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/space.h. Room, allocation, release; what of it
 * a commit makes durable.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fs/bitmap.h"
#include "layouts/reiser4/reiser4.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* --- lists of runs -----------------------------------------------------------------------------
 */

static int runs_add(struct reiser4_runs *runs, uint64_t block, uint64_t count) {
    struct reiser4_run *last = runs->count ? &runs->run[runs->count - 1] : NULL;

    runs->blocks += count;
    if (last && last->block + last->count == block) {
        last->count += count;
        return 0;
    }
    if (runs->count == runs->room) {
        size_t room = runs->room ? runs->room * 2 : 64;
        struct reiser4_run *larger = reallocarray(runs->run, room, sizeof(*larger));
        if (!larger) {
            runs->blocks -= count;
            return -ENOMEM;
        }
        runs->run = larger;
        runs->room = room;
    }
    runs->run[runs->count++] = (struct reiser4_run){block, count};
    return 0;
}

static void runs_clear(struct reiser4_runs *runs) {
    runs->count = 0;
    runs->blocks = 0;
}

/* --- regions -----------------------------------------------------------------------------------
 */

static struct reiser4_region *region_of(const struct reiser4 *r4, uint64_t block) {
    return &r4->space.regions[block / REISER4_REGION];
}

static uint8_t *image_bits(const struct reiser4_region *region) {
    return ((struct reiser4_disk_bitmap *)region->image)->bits;
}

/* The working bitmap as a bit array of its own, a whole number of words; what is behind the last
 * bit is set. */
static int region_open(struct reiser4 *r4, uint64_t number, struct reiser4_region **region) {
    struct reiser4_region *opened = &r4->space.regions[number];
    int error = reiser4_space_load(r4, number);

    *region = opened;
    if (error || opened->working)
        return error;
    opened->working = malloc(REISER4_BLOCK_SIZE);
    if (!opened->working)
        return -ENOMEM;
    memset(opened->working, 0xFF, REISER4_BLOCK_SIZE);
    memcpy(opened->working, image_bits(opened), REISER4_REGION / 8);
    return 0;
}

/* Of one region. */
static void working_fill(struct reiser4 *r4, uint64_t block, uint64_t count, bool used) {
    struct reiser4_region *region = region_of(r4, block);

    bitmap_fill(region->working, (uint32_t)(block % REISER4_REGION), (uint32_t)count, used);
    region->free += (uint32_t)(used ? -count : count);
    r4->space.free += used ? -count : count;
}

/* Blocks are free from now on, of any regions. */
static void make_free(struct reiser4 *r4, uint64_t block, uint64_t count) {
    while (count > 0) {
        uint64_t here = smaller(count, REISER4_REGION - block % REISER4_REGION);
        working_fill(r4, block, here, false);
        block += here;
        count -= here;
    }
}

/* --- asking ------------------------------------------------------------------------------------
 */

/* Blocks that the next commit may need for what has been done: each changed node may move, or be
 * written twice, and so may the nodes above it, which its move changes. */
static uint64_t uncommitted(const struct reiser4 *r4) {
    const struct reiser4_jnodes *jnodes = &r4->jnodes;
    uint64_t nodes = jnodes->unplaced_nodes + jnodes->old_nodes;

    return 2 * nodes + r4->atom.pending_blocks + r4->atom.kept.count +
           r4->atom.pending_items * REISER4_TREE_NODES(&r4->tree);
}

int reiser4_space_ask(struct reiser4 *r4, struct reiser4_need need, bool removal) {
    uint64_t reserve = REISER4_SPACE_RESERVE(r4->super.blocks);
    uint64_t wanted =
        uncommitted(r4) + need.nodes + need.blocks + (removal ? reserve / 2 : reserve);

    return r4->space.free >= wanted ? 0 : -ENOSPC;
}

int reiser4_space_ask_changes(struct reiser4 *r4, uint32_t changes, bool removal) {
    struct reiser4_need need = {.nodes = changes * REISER4_TREE_NODES(&r4->tree)};

    return reiser4_space_ask(r4, need, removal);
}

/* --- allocating --------------------------------------------------------------------------------
 */

/* The first free run of bits [from, to) of a region; false: there is none. */
static bool find_run(struct reiser4 *r4, uint64_t number, uint32_t from, uint32_t to,
                     uint64_t wanted, struct reiser4_run *run) {
    const struct reiser4_region *region = &r4->space.regions[number];
    uint32_t start = bitmap_find_clear(region->working, from, to);

    if (start >= to)
        return false;
    uint32_t end =
        bitmap_find_set(region->working, start, (uint32_t)smaller(REISER4_REGION, start + wanted));
    *run = (struct reiser4_run){number * REISER4_REGION + start, end - start};
    working_fill(r4, run->block, run->count, true);
    r4->space.cursor = run->block + run->count;
    return true;
}

/* Regions from the hint's on, and at last what of that lies before the hint. */
static int allocate(struct reiser4 *r4, uint64_t hint, uint64_t wanted, struct reiser4_run *run) {
    struct reiser4_space *space = &r4->space;
    struct reiser4_region *region;

    if (hint == 0)
        hint = space->cursor;
    if (hint >= r4->super.blocks)
        hint = 0;
    uint64_t first = hint / REISER4_REGION;
    for (uint64_t i = 0; i <= space->region_count; i++) {
        uint64_t number = (first + i) % space->region_count;
        uint32_t from = i == 0 ? (uint32_t)(hint % REISER4_REGION) : 0;
        uint32_t to = i == space->region_count ? (uint32_t)(hint % REISER4_REGION) : REISER4_REGION;
        if (space->regions[number].image && space->regions[number].free == 0)
            continue;
        int error = region_open(r4, number, &region);
        if (error)
            return error;
        if (find_run(r4, number, from, to, wanted, run))
            return 0;
    }
    return -ENOSPC;
}

int reiser4_space_allocate(struct reiser4 *r4, uint64_t hint, uint64_t wanted,
                           struct reiser4_run *run) {
    int error = allocate(r4, hint, wanted, run);

    if (!error)
        region_of(r4, run->block)->changed = true;
    return error;
}

int reiser4_space_allocate_near(struct reiser4 *r4, uint64_t hint, uint64_t distance,
                                uint64_t *block) {
    uint64_t number = hint / REISER4_REGION;
    uint32_t at = (uint32_t)(hint % REISER4_REGION), found;
    uint32_t end = (uint32_t)smaller(at + distance, REISER4_REGION);
    uint32_t start = at > distance ? at - (uint32_t)distance + 1 : 0;
    struct reiser4_region *region;

    if (hint >= r4->super.blocks || distance == 0)
        return -ENOENT;
    int error = region_open(r4, number, &region);
    if (error)
        return error;
    found = bitmap_find_clear(region->working, at, end);
    if (found >= end) { /* the last one before it */
        for (found = at; found > start && bitmap_test(region->working, found - 1);)
            found--;
        if (found == start)
            return -ENOENT;
        found--;
    }
    *block = number * REISER4_REGION + found;
    working_fill(r4, *block, 1, true);
    region->changed = true;
    r4->space.cursor = *block + 1;
    return 0;
}

int reiser4_space_allocate_log(struct reiser4 *r4, uint64_t hint, uint64_t wanted,
                               struct reiser4_run *run) {
    int error = allocate(r4, hint, wanted, run);

    if (error)
        return error;
    error = runs_add(&r4->space.logged, run->block, run->count);
    if (error)
        make_free(r4, run->block, run->count);
    return error;
}

/* --- freeing -----------------------------------------------------------------------------------
 */

bool reiser4_space_is_new(const struct reiser4 *r4, uint64_t block) {
    const struct reiser4_region *region = region_of(r4, block);
    uint32_t bit = (uint32_t)(block % REISER4_REGION);

    return region->working && bitmap_test(region->working, bit) &&
           !bitmap_test(image_bits(region), bit);
}

int reiser4_space_release(struct reiser4 *r4, uint64_t block, uint64_t count) {
    struct reiser4_region *region;

    for (uint64_t at = block; at < block + count; at += REISER4_REGION - at % REISER4_REGION) {
        int error = region_open(r4, at / REISER4_REGION, &region);
        if (error)
            return error;
        region->changed = true;
    }
    int error = runs_add(&r4->space.released, block, count);
    if (!error && r4->options.fault == REISER4_FAULT_REUSE)
        make_free(r4, block, count);
    return error;
}

void reiser4_space_give_back(struct reiser4 *r4, uint64_t block, uint64_t count) {
    buffer_forget(r4->buffers, block, count);
    make_free(r4, block, count);
}

/* --- commit ------------------------------------------------------------------------------------
 */

/* What was released is no part of the images any more. */
static void images_release(struct reiser4 *r4) {
    const struct reiser4_runs *released = &r4->space.released;

    for (size_t i = 0; i < released->count; i++) {
        struct reiser4_run run = released->run[i];
        while (run.count > 0) {
            uint64_t here = smaller(run.count, REISER4_REGION - run.block % REISER4_REGION);
            bitmap_fill(image_bits(region_of(r4, run.block)),
                        (uint32_t)(run.block % REISER4_REGION), (uint32_t)here, false);
            run.block += here;
            run.count -= here;
        }
    }
}

static int image_overwrite(struct reiser4 *r4, uint64_t number, struct reiser4_commit *commit) {
    struct reiser4_region *region = &r4->space.regions[number];
    struct reiser4_disk_bitmap *bitmap = (struct reiser4_disk_bitmap *)region->image;
    uint64_t block = reiser4_bitmap_block(number);
    struct buffer *buffer;

    le32_store(&bitmap->adler, (uint32_t)adler32(1, bitmap->bits, sizeof(bitmap->bits)));
    int error = buffer_get_zeroed(r4->buffers, block, PURPOSE_BITMAP, &buffer);
    if (error)
        return error;
    memcpy(buffer_data(buffer), region->image, REISER4_BLOCK_SIZE);
    region->changed = false;
    return reiser4_commit_overwrite(commit, block, buffer);
}

int reiser4_space_freeze(struct reiser4 *r4, struct reiser4_commit *commit, uint64_t *free_blocks) {
    struct reiser4_space *space = &r4->space;
    int error = 0;

    for (uint64_t i = 0; i < space->region_count; i++)
        if (space->regions[i].changed && space->regions[i].working)
            memcpy(image_bits(&space->regions[i]), space->regions[i].working, REISER4_REGION / 8);
    images_release(r4);
    for (uint64_t i = 0; i < space->region_count && !error; i++)
        if (space->regions[i].changed)
            error = image_overwrite(r4, i, commit);
    *free_blocks = space->free + space->released.blocks;
    struct reiser4_runs unused = space->frozen;
    space->frozen = space->released;
    space->released = unused;
    return error;
}

static void runs_free(struct reiser4 *r4, struct reiser4_runs *runs) {
    for (size_t i = 0; i < runs->count; i++) {
        buffer_forget(r4->buffers, runs->run[i].block, runs->run[i].count);
        make_free(r4, runs->run[i].block, runs->run[i].count);
    }
    runs_clear(runs);
}

void reiser4_space_committed(struct reiser4 *r4) {
    if (r4->options.fault == REISER4_FAULT_REUSE)
        runs_clear(&r4->space.frozen); /* are free already */
    runs_free(r4, &r4->space.frozen);
    runs_free(r4, &r4->space.logged);
}
