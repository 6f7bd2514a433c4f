/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Interface: layouts/reiser4/space.h. The bitmaps are taken up.
 */
#include "layouts/reiser4/space.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fs/bitmap.h"
#include "layouts/reiser4/reiser4.h"

uint64_t reiser4_bitmap_block(uint64_t region) {
    return region == 0 ? REISER4_BITMAP_FIRST : region * REISER4_REGION;
}

static int region_check(const struct reiser4 *r4, uint64_t region, const uint8_t *image) {
    const struct reiser4_disk_bitmap *bitmap = (const struct reiser4_disk_bitmap *)image;
    uint32_t adler = (uint32_t)adler32(1, bitmap->bits, sizeof(bitmap->bits));

    if (le32_load(bitmap->adler) != adler)
        return reiser4_corrupt(r4->volume,
                               "bitmap at block %" PRIu64
                               ": its checksum is wrong; 'layoutfs check' tells what else is, "
                               "fsck.reiser4 mends it",
                               reiser4_bitmap_block(region));
    return 0;
}

/* Bits have 4092 bytes, no whole number of 64-bit words: the last four come apart. */
static uint32_t count_clear(const struct reiser4_disk_bitmap *bitmap) {
    const uint32_t tail = 32, whole = REISER4_REGION - tail;
    le32 last;

    memcpy(&last, bitmap->bits + whole / 8, sizeof(last));
    return bitmap_count_clear(bitmap->bits, whole) + tail -
           (uint32_t)__builtin_popcount(le32_load(last));
}

int reiser4_space_load(struct reiser4 *r4, uint64_t region) {
    struct reiser4_region *loaded = &r4->space.regions[region];
    uint64_t block = reiser4_overlay_at(&r4->journal.overlay, reiser4_bitmap_block(region));

    if (loaded->image)
        return 0;
    uint8_t *image = malloc(REISER4_BLOCK_SIZE);
    int error = image ? device_read(r4->volume->device, block * REISER4_BLOCK_SIZE, image,
                                    REISER4_BLOCK_SIZE, PURPOSE_BITMAP)
                      : -ENOMEM;
    if (!error)
        error = region_check(r4, region, image);
    if (error) {
        free(image);
        return error;
    }
    loaded->image = image;
    loaded->free = count_clear((const struct reiser4_disk_bitmap *)image);
    return 0;
}

int reiser4_space_open(struct reiser4 *r4) {
    struct reiser4_space *space = &r4->space;
    int error = 0;

    *space = (struct reiser4_space){
        .region_count = (r4->super.blocks + REISER4_REGION - 1) / REISER4_REGION,
        .free = r4->counters.free_blocks,
    };
    space->regions = calloc(space->region_count, sizeof(*space->regions));
    if (!space->regions)
        return -ENOMEM;
    for (uint64_t i = 0; i < space->region_count && !error && r4->options.load_bitmaps; i++)
        error = reiser4_space_load(r4, i);
    if (error)
        reiser4_space_close(r4);
    return error;
}

void reiser4_space_close(struct reiser4 *r4) {
    struct reiser4_space *space = &r4->space;

    for (uint64_t i = 0; space->regions && i < space->region_count; i++) {
        free(space->regions[i].image);
        free(space->regions[i].working);
    }
    free(space->regions);
    free(space->released.run);
    free(space->frozen.run);
    free(space->logged.run);
    *space = (struct reiser4_space){0};
}

uint64_t reiser4_space_usage(const struct reiser4 *r4, uint64_t *available) {
    const struct reiser4_space *space = &r4->space;
    uint64_t reserve = REISER4_SPACE_RESERVE(r4->super.blocks);
    uint64_t free =
        space->free + space->released.blocks + space->frozen.blocks + space->logged.blocks;

    *available = free > reserve ? free - reserve : 0;
    return free;
}
