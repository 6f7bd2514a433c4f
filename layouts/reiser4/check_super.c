/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. Blocks at fixed places, and bitmaps. Interface: layouts/reiser4/check.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fs/bitmap.h"
#include "layouts/reiser4/check.h"

/* --- what is held ----------------------------------------------------------------------------- */

static int region_hold(struct reiser4_check *check, uint64_t region, uint32_t from, uint32_t count,
                       const char *what) {
    uint8_t **used = &check->used[region];

    if (!*used)
        *used = calloc(1, REISER4_BLOCK_SIZE); /* whole words, as bitmap.h wants */
    if (!*used)
        return -ENOMEM;
    uint32_t taken = bitmap_find_set(*used, from, from + count);
    if (taken < from + count)
        reiser4_check_wrong(check, "%s holds block %" PRIu64 ", which something else holds, too",
                            what, region * REISER4_REGION + taken);
    bitmap_set(*used, from, count);
    return 0;
}

int reiser4_check_hold(struct reiser4_check *check, uint64_t block, uint64_t count,
                       const char *what) {
    int error = 0;

    while (count > 0 && !error) {
        uint32_t from = (uint32_t)(block % REISER4_REGION);
        uint32_t part = REISER4_REGION - from;
        if (part > count)
            part = (uint32_t)count;
        error = region_hold(check, block / REISER4_REGION, from, part, what);
        block += part;
        count -= part;
    }
    return error;
}

/* --- super blocks ----------------------------------------------------------------------------- */

static int check_backup(struct reiser4_check *check, uint64_t block) {
    uint8_t wanted[REISER4_BLOCK_SIZE], found[REISER4_BLOCK_SIZE];
    int error = device_read(check->volume.device, block * REISER4_BLOCK_SIZE, found, sizeof(found),
                            PURPOSE_SUPER);

    if (error)
        return error;
    reiser4_backup_encode(&check->r4->super, &check->r4->plugins, wanted);
    if (memcmp(wanted, found, sizeof(struct reiser4_disk_backup)) != 0)
        reiser4_check_wrong(check,
                            "backup of the super block at block %" PRIu64
                            ": it differs from the super block and the root directory",
                            block);
    return reiser4_check_hold(check, block, 1, "a backup of the super block");
}

int reiser4_check_supers(struct reiser4_check *check) {
    const struct reiser4 *r4 = check->r4;
    int error = reiser4_check_hold(check, 0, REISER4_BACKUP_FIRST, "the start of the volume");

    for (uint64_t region = 1; region < r4->space.region_count && !error; region++)
        error = reiser4_check_hold(check, reiser4_bitmap_block(region), 1, "a bitmap");
    for (uint64_t block = reiser4_backup_next(r4->super.blocks, 0); block && !error;
         block = reiser4_backup_next(r4->super.blocks, block))
        error = reiser4_check_go_on(check_backup(check, block));
    if (r4->journal.replayed > 0)
        reiser4_check_note(check,
                           "journal: the volume was not unmounted: the log of %" PRIu64
                           " transactions is yet to be replayed",
                           r4->journal.replayed);
    return error;
}

/* --- bitmaps ---------------------------------------------------------------------------------- */

static uint64_t region_blocks(const struct reiser4 *r4, uint64_t region) {
    uint64_t left = r4->super.blocks - region * REISER4_REGION;

    return left < REISER4_REGION ? left : REISER4_REGION;
}

/* Tells runs of [0, blocks) in which the first map has bits that the second lacks. */
static void tell_difference(struct reiser4_check *check, uint64_t region, const uint8_t *has,
                            const uint8_t *lacks, uint32_t blocks, const char *what) {
    uint32_t at = 0;

    while (at < blocks) {
        uint32_t from = at;
        while (from < blocks && (!bitmap_test(has, from) || bitmap_test(lacks, from)))
            from++;
        uint32_t to = from;
        while (to < blocks && bitmap_test(has, to) && !bitmap_test(lacks, to))
            to++;
        if (to > from)
            reiser4_check_wrong(check,
                                "bitmap at block %" PRIu64 ": blocks %" PRIu64 " to %" PRIu64 " %s",
                                reiser4_bitmap_block(region), region * REISER4_REGION + from,
                                region * REISER4_REGION + to - 1, what);
        at = to;
    }
}

static int check_region(struct reiser4_check *check, uint64_t region, uint64_t *free) {
    static const uint8_t nothing[REISER4_BLOCK_SIZE];
    struct reiser4 *r4 = check->r4;
    const uint8_t *used = check->used[region] ? check->used[region] : nothing;
    uint32_t blocks = (uint32_t)region_blocks(r4, region);
    uint8_t bits[REISER4_BLOCK_SIZE] = {0};
    int error = reiser4_space_load(r4, region);

    if (error)
        return error;
    memcpy(bits, r4->space.regions[region].image + sizeof(le32), REISER4_REGION / 8);
    *free += bitmap_count_clear(bits, blocks);
    if (bitmap_find_clear(bits, blocks, REISER4_REGION) < REISER4_REGION)
        reiser4_check_wrong(check, "bitmap at block %" PRIu64 ": blocks past the end are free",
                            reiser4_bitmap_block(region));
    if (memcmp(bits, used, REISER4_REGION / 8) == 0)
        return 0;
    tell_difference(check, region, used, bits, blocks, "are free there, but in use");
    if (check->complete)
        tell_difference(check, region, bits, used, blocks,
                        "are in use there, but nothing holds them");
    return 0;
}

int reiser4_check_space(struct reiser4_check *check) {
    const struct reiser4 *r4 = check->r4;
    uint64_t free = 0, wrong = check->report->wrong;
    int error = 0;

    for (uint64_t region = 0; region < r4->space.region_count && !error; region++)
        error = reiser4_check_go_on(check_region(check, region, &free));
    if (!error && check->report->wrong == wrong && free != r4->counters.free_blocks)
        reiser4_check_wrong(check,
                            "super block: free_blocks is %" PRIu64 ", by the bitmaps %" PRIu64,
                            r4->counters.free_blocks, free);
    return error;
}
