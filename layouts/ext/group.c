/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the buffer cache; under inode.c, indirect.c and xattr.c.
 *
 * Block groups: which blocks and inodes are in use. The bitmaps live in the buffer cache; the free
 * counts of struct ext_group are kept beside them and reach the disk in ext_super_store.
 *
 * Invariants:
 *  1. A bitmap is compared with its group's counts and metadata once per reading, before use.
 *  2. The counts of the groups add up to those of struct ext.
 *  3. No block below a group's block_hint is free, no inode below its inode_hint; likewise
 *     ext->scan_start and ext->scan_group for the volume. Hints make scans short, never wrong.
 *  4. A block of a group's own metadata is never handed out and never freed.
 *  5. With a journal, a block is handed out only after the transaction that freed it: searches look
 *     at a group's shadow, where there is one.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "fs/bitmap.h"
#include "layouts/ext/checksum.h"
#include "layouts/ext/mballoc.h"

/* A goal that is taken is looked for this far ahead (up to the next multiple) before a whole free
 * byte is preferred, as ext2 did. */
#define NEAR_GOAL_BITS 64u

/* --- bitmaps --------------------------------------------------------------------------------- */

bool ext_blocks_are_data(const struct ext *ext, uint64_t block, uint64_t count) {
    const struct ext_geometry *geometry = &ext->geometry;
    return ext_block_valid(geometry, block) && count > 0 &&
           count <= geometry->blocks_count - block && !ext_zones_meet(ext, block, count);
}

/* A count that differs from its bitmap: the bitmap is what allocation goes by, so with
 * errors=continue the counts follow it. */
static int count_differs(struct ext *ext, uint32_t group, const char *what, uint32_t counted,
                         uint32_t recorded) {
    int rc = ext_corrupt(ext, "group %u: the %s bitmap has %u free, but its descriptor says %u",
                         group, what, counted, recorded);
    return ext->errors == EXT_ERRORS_CONTINUE ? 0 : rc;
}

static int checksum_differs(struct ext *ext, uint32_t group, const char *what, uint64_t block) {
    return ext_corrupt(ext, "group %u: %s bitmap (block %" PRIu64 "): its checksum is wrong", group,
                       what, block);
}

static int block_bitmap_check(struct ext *ext, uint32_t group, const void *bitmap) {
    const struct ext_geometry *geometry = &ext->geometry;
    struct ext_group *g = &ext->groups[group];

    if (!g->block_bitmap_changed &&
        g->block_bitmap_checksum != ext_block_bitmap_checksum(geometry, bitmap))
        return checksum_differs(ext, group, "block", g->block_bitmap);
    if (!ext_zones_marked(ext, group, bitmap))
        return ext_corrupt(ext,
                           "group %u: block bitmap (block %" PRIu64
                           ") shows blocks of the groups' own metadata as free",
                           group, g->block_bitmap);
    uint32_t clear = bitmap_count_clear(bitmap, ext_group_block_count(geometry, group));
    if (clear == g->free_blocks)
        return 0;
    int rc = count_differs(ext, group, "block", clear, g->free_blocks);
    if (rc == 0) {
        ext->free_blocks = ext->free_blocks - g->free_blocks + clear;
        g->free_blocks = clear;
        ext_group_changed(ext, group);
    }
    return rc;
}

static int inode_bitmap_check(struct ext *ext, uint32_t group, const void *bitmap) {
    const struct ext_geometry *geometry = &ext->geometry;
    struct ext_group *g = &ext->groups[group];
    uint32_t reserved = geometry->first_ino - 1;

    if (!g->inode_bitmap_changed &&
        g->inode_bitmap_checksum != ext_inode_bitmap_checksum(geometry, bitmap))
        return checksum_differs(ext, group, "inode", g->inode_bitmap);
    if (reserved > geometry->inodes_per_group)
        reserved = geometry->inodes_per_group;
    if (group == 0 && bitmap_find_clear(bitmap, 0, reserved) < reserved)
        return ext_corrupt(
            ext, "group 0: inode bitmap (block %" PRIu64 ") shows reserved inodes as free",
            g->inode_bitmap);
    uint32_t clear = bitmap_count_clear(bitmap, geometry->inodes_per_group);
    if (clear == g->free_inodes)
        return 0;
    int rc = count_differs(ext, group, "inode", clear, g->free_inodes);
    if (rc == 0) {
        ext->free_inodes = ext->free_inodes - g->free_inodes + clear;
        g->free_inodes = clear;
        ext_group_changed(ext, group);
    }
    return rc;
}

static int bitmap_get(struct ext *ext, uint32_t group, uint64_t block,
                      int (*check)(struct ext *, uint32_t, const void *), struct buffer **buffer) {
    int rc = buffer_get(ext->buffers, block, PURPOSE_BITMAP, buffer);
    if (rc < 0 || (*buffer)->checked)
        return rc;
    rc = check(ext, group, buffer_data(*buffer));
    if (rc < 0) {
        buffer_put(*buffer);
        *buffer = NULL;
        return rc;
    }
    (*buffer)->checked = true;
    return 0;
}

/* A bitmap that was never written: what it would hold if it had been. The bits behind the group's
 * end, which never become free, are set. */
static int bitmap_make_up(struct ext *ext, uint64_t block, uint32_t bits, struct buffer **buffer) {
    uint32_t room = ext->geometry.block_size * 8;
    int rc = buffer_get_zeroed(ext->buffers, block, PURPOSE_BITMAP, buffer);
    if (rc < 0)
        return rc;
    bitmap_set(buffer_data(*buffer), bits, room - bits);
    return 0;
}

int ext_block_bitmap_get(struct ext *ext, uint32_t group, struct buffer **buffer) {
    struct ext_group *g = &ext->groups[group];
    if (!(g->flags & EXT_GROUP_BLOCKS_UNSET))
        return bitmap_get(ext, group, g->block_bitmap, block_bitmap_check, buffer);
    int rc =
        bitmap_make_up(ext, g->block_bitmap, ext_group_block_count(&ext->geometry, group), buffer);
    if (rc < 0)
        return rc;
    ext_zones_mark(ext, group, buffer_data(*buffer));
    (*buffer)->checked = true;
    return 0;
}

int ext_inode_bitmap_get(struct ext *ext, uint32_t group, struct buffer **buffer) {
    struct ext_group *g = &ext->groups[group];
    if (!(g->flags & EXT_GROUP_INODES_UNSET))
        return bitmap_get(ext, group, g->inode_bitmap, inode_bitmap_check, buffer);
    int rc = bitmap_make_up(ext, g->inode_bitmap, ext->geometry.inodes_per_group, buffer);
    if (rc == 0)
        (*buffer)->checked = true;
    return rc;
}

/* A bitmap's bits have changed, which also makes one of one that was never written. */
static void block_bitmap_changed(struct ext *ext, uint32_t group, struct buffer *bitmap) {
    struct ext_group *g = &ext->groups[group];
    g->flags &= (uint16_t)~EXT_GROUP_BLOCKS_UNSET;
    g->block_bitmap_changed = true;
    ext_dirty(ext, bitmap);
    ext_group_changed(ext, group);
}

static void inode_bitmap_changed(struct ext *ext, uint32_t group, struct buffer *bitmap) {
    struct ext_group *g = &ext->groups[group];
    g->flags &= (uint16_t)~EXT_GROUP_INODES_UNSET;
    g->inode_bitmap_changed = true;
    ext_dirty(ext, bitmap);
    ext_group_changed(ext, group);
}

/* What the modelled kernel pays for looking at so many bits, to the nearest KB. */
static void charge_scan(struct ext *ext, uint32_t bits) {
    clock_charge(ext->volume->clock, COST_BITMAP_KB, (bits + 4096) / 8192);
}

/* --- finding free blocks --------------------------------------------------------------------- */

struct search {
    struct ext *ext;
    struct inode *inode; /* whose window does not count */
    uint32_t wanted;     /* blocks */
    uint32_t group;      /* being looked at */
    const void *bits;    /* its bitmap */
    uint32_t bit_end;    /* blocks in the group */
    uint32_t bit, got;   /* the answer */
};

/* From `from` on, the first free bit that begins a roomy run: an all-free byte, stepping back over
 * the free bits right before it; failing that any free bit. */
static uint32_t find_roomy(const struct search *search, uint32_t from) {
    uint32_t bit = bitmap_find_clear_byte(search->bits, from, search->bit_end);
    if (bit == search->bit_end)
        return bitmap_find_clear(search->bits, from, search->bit_end);
    for (uint32_t back = 0; back < 7 && bit > from && !bitmap_test(search->bits, bit - 1); back++)
        bit--;
    return bit;
}

static uint32_t find_near(const struct search *search, uint32_t goal) {
    if (!bitmap_test(search->bits, goal))
        return goal;
    uint32_t near_end = (goal + NEAR_GOAL_BITS) / NEAR_GOAL_BITS * NEAR_GOAL_BITS;
    if (near_end > search->bit_end)
        near_end = search->bit_end;
    uint32_t bit = bitmap_find_clear(search->bits, goal, near_end);
    return bit < near_end ? bit : find_roomy(search, near_end);
}

static uint32_t find_lowest(const struct search *search, uint32_t from) {
    return bitmap_find_clear(search->bits, from, search->bit_end);
}

/* Looks in one group from bit `from` on with `find`, stepping over other files' windows. */
static int search_group(struct search *search, uint32_t group, uint32_t from,
                        uint32_t (*find)(const struct search *, uint32_t), struct buffer **bitmap) {
    struct ext *ext = search->ext;
    uint64_t first = ext_group_first_block(&ext->geometry, group);
    int rc = ext_block_bitmap_get(ext, group, bitmap);
    if (rc < 0)
        return rc;

    const struct ext_group *g = &ext->groups[group];
    search->group = group;
    search->bits = g->shadow ? (const void *)g->shadow : buffer_data(*bitmap);
    search->bit_end = ext_group_block_count(&ext->geometry, group);
    uint32_t start = from;
    if (from < g->block_hint)
        from = g->block_hint;
    while (from < search->bit_end) {
        uint32_t bit = find(search, from);
        if (bit >= search->bit_end)
            break;
        uint32_t limit =
            search->wanted < search->bit_end - bit ? search->wanted : search->bit_end - bit;
        uint64_t window_end;
        limit = ext_window_clip(ext, search->inode, first + bit, limit, &window_end);
        if (limit > 0) {
            search->bit = bit;
            search->got = bitmap_find_set(search->bits, bit, bit + limit) - bit;
            charge_scan(ext, bit - (start < bit ? start : bit));
            return 0;
        }
        from = (uint32_t)(window_end - first);
    }
    charge_scan(ext, search->bit_end - start);
    buffer_put(*bitmap);
    *bitmap = NULL;
    return -ENOSPC;
}

/* The goal's group from the goal on, then the other groups in order, the goal's own last. */
static int search_from_goal(struct search *search, uint64_t goal, struct buffer **bitmap) {
    const struct ext *ext = search->ext;
    uint32_t groups = ext->geometry.groups;
    uint32_t group = ext_group_of_block(&ext->geometry, goal);

    if (ext->groups[group].free_blocks > 0) {
        uint64_t bit = goal - ext_group_first_block(&ext->geometry, group);
        int rc = search_group(search, group, (uint32_t)bit, find_near, bitmap);
        if (rc != -ENOSPC)
            return rc;
    }
    for (uint32_t i = 1; i <= groups; i++) {
        uint32_t other = (group + i) % groups;
        if (ext->groups[other].free_blocks == 0)
            continue;
        int rc = search_group(search, other, 0, find_roomy, bitmap);
        if (rc != -ENOSPC)
            return rc;
    }
    return -ENOSPC;
}

static int search_first_fit(struct search *search, struct buffer **bitmap) {
    const struct ext *ext = search->ext;
    uint64_t start = ext->scan_start;
    if (start < ext->geometry.first_data_block)
        start = ext->geometry.first_data_block;
    if (start >= ext->geometry.blocks_count)
        return -ENOSPC;

    uint32_t group = ext_group_of_block(&ext->geometry, start);
    uint32_t bit = (uint32_t)(start - ext_group_first_block(&ext->geometry, group));
    for (; group < ext->geometry.groups; group++, bit = 0) {
        if (ext->groups[group].free_blocks == 0)
            continue;
        int rc = search_group(search, group, bit, find_lowest, bitmap);
        if (rc != -ENOSPC)
            return rc;
    }
    return -ENOSPC;
}

static int search_mballoc(struct search *search, uint64_t goal, struct buffer **bitmap) {
    struct ext_found found;
    int rc = ext_mballoc_find(search->ext, search->inode, goal, search->wanted, &found);
    if (rc < 0)
        return rc;
    search->group = found.group;
    search->bit = found.bit;
    search->got = found.count;
    *bitmap = found.bitmap;
    return 0;
}

static int search_blocks(struct search *search, uint64_t goal, struct buffer **bitmap) {
    if (search->ext->mballoc)
        return search_mballoc(search, goal, bitmap);
    if (search->ext->block_placement == EXT_ALLOC_FIRST_FIT)
        return search_first_fit(search, bitmap);
    return search_from_goal(search, goal, bitmap);
}

/* --- blocks ---------------------------------------------------------------------------------- */

uint64_t ext_blocks_available(const struct ext *ext) {
    bool all = credentials_may_use_reserved(ext->reserved_uid, ext->reserved_gid);
    uint64_t kept = ext->promised_blocks + ext->freed_blocks + (all ? 0 : ext->reserved_blocks);
    return ext->free_blocks > kept ? ext->free_blocks - kept : 0;
}

/* Marks what the search found as used. */
static uint64_t search_claim(struct search *search, struct buffer *bitmap) {
    struct ext *ext = search->ext;
    struct ext_group *g = &ext->groups[search->group];
    uint64_t block = ext_group_first_block(&ext->geometry, search->group) + search->bit;

    bitmap_set(buffer_data(bitmap), search->bit, search->got);
    if (g->shadow)
        bitmap_set(g->shadow, search->bit, search->got);
    block_bitmap_changed(ext, search->group, bitmap);
    buffer_put(bitmap);
    g->free_blocks -= search->got;
    ext->free_blocks -= search->got;
    if (search->bit <= g->block_hint)
        g->block_hint = search->bit + search->got;
    if (ext->block_placement == EXT_ALLOC_FIRST_FIT)
        ext->scan_start = block + search->got;
    clock_charge(ext->volume->clock, COST_BLOCK_ALLOC, search->got);
    return block;
}

int ext_blocks_allocate(struct ext *ext, struct inode *inode, uint64_t goal, uint32_t *count,
                        uint64_t *block) {
    uint64_t available = ext_blocks_available(ext);
    struct search search = {.ext = ext, .inode = inode, .wanted = *count};
    struct buffer *bitmap;

    if (available == 0)
        return -ENOSPC;
    if (search.wanted > available)
        search.wanted = (uint32_t)available;

    if (!ext_block_valid(&ext->geometry, goal))
        goal = ext_group_first_block(&ext->geometry, ext_inode_of(inode)->group);
    int rc = search_blocks(&search, goal, &bitmap);
    if (rc == -ENOSPC && ext_windows_discard(ext))
        rc = search_blocks(&search, goal, &bitmap);
    if (rc < 0)
        return rc;
    *block = search_claim(&search, bitmap);
    *count = search.got;
    return 0;
}

static int group_blocks_free(struct ext *ext, uint32_t group, uint64_t block, uint32_t count) {
    struct ext_group *g = &ext->groups[group];
    uint32_t bit = (uint32_t)(block - ext_group_first_block(&ext->geometry, group));
    struct buffer *bitmap;
    int rc = ext_block_bitmap_get(ext, group, &bitmap);
    if (rc < 0)
        return rc;

    uint32_t clear = bitmap_find_clear(buffer_data(bitmap), bit, bit + count);
    if (clear < bit + count) {
        buffer_put(bitmap);
        return ext_corrupt(ext,
                           "group %u: block %" PRIu64
                           " is to be freed, but the block bitmap says that it is not in use",
                           group, block + (clear - bit));
    }
    bitmap_clear(buffer_data(bitmap), bit, count);
    block_bitmap_changed(ext, group, bitmap);
    ext_free_later(ext, group, block, count, buffer_data(bitmap));
    buffer_put(bitmap);
    g->free_blocks += count;
    ext->free_blocks += count;
    if (bit < g->block_hint)
        g->block_hint = bit;
    if (block < ext->scan_start)
        ext->scan_start = block;
    if (ext->mballoc && !ext->journal)
        ext_mballoc_freed(ext, group, bit, count);
    clock_charge(ext->volume->clock, COST_BLOCK_ALLOC, count);
    return 0;
}

int ext_blocks_free(struct ext *ext, uint64_t block, uint64_t count, bool metadata) {
    if (!ext_blocks_are_data(ext, block, count))
        return ext_corrupt(ext,
                           "blocks %" PRIu64 " to %" PRIu64
                           " are to be freed, but lie outside the volume or in a group's metadata",
                           block, block + count - 1);
    while (count > 0) {
        uint32_t group = ext_group_of_block(&ext->geometry, block);
        uint64_t end = ext_group_first_block(&ext->geometry, group) +
                       ext_group_block_count(&ext->geometry, group);
        uint32_t part = (uint32_t)(count < end - block ? count : end - block);
        int rc = group_blocks_free(ext, group, block, part);
        if (rc < 0)
            return rc;
        if (metadata || ext_journals_data(ext))
            ext_forget(ext, block, part);
        block += part;
        count -= part;
    }
    return 0;
}

/* --- inode numbers --------------------------------------------------------------------------- */

/* The inode at `bit` of the group comes into use. When it is the first so far down the table, the
 * blocks up to it, of which nobody knows what they hold, become empty records. */
static int table_extend(struct ext *ext, uint32_t group, uint32_t bit) {
    const struct ext_geometry *geometry = &ext->geometry;
    struct ext_group *g = &ext->groups[group];
    uint32_t used = geometry->inodes_per_group - g->unused_inodes;
    uint32_t per_block = geometry->block_size / geometry->inode_size;

    if (bit < used)
        return 0;
    for (uint32_t block = (used + per_block - 1) / per_block; block <= bit / per_block; block++) {
        struct buffer *buffer;
        int rc = buffer_get_zeroed(ext->buffers, g->inode_table + block, PURPOSE_INODE, &buffer);
        if (rc < 0)
            return rc;
        ext_dirty(ext, buffer);
        buffer_put(buffer);
    }
    g->unused_inodes = geometry->inodes_per_group - bit - 1;
    return 0;
}

/* The lowest free inode of the group. -ENOSPC: none. */
static int group_inode_allocate(struct ext *ext, uint32_t group, bool directory, uint64_t *ino) {
    struct ext_group *g = &ext->groups[group];
    uint32_t end = ext->geometry.inodes_per_group;
    struct buffer *bitmap;
    int rc = ext_inode_bitmap_get(ext, group, &bitmap);
    if (rc < 0)
        return rc;

    uint32_t bit = bitmap_find_clear(buffer_data(bitmap), g->inode_hint, end);
    charge_scan(ext, bit);
    if (bit == end) {
        buffer_put(bitmap);
        return -ENOSPC;
    }
    rc = table_extend(ext, group, bit);
    if (rc < 0) {
        buffer_put(bitmap);
        return rc;
    }
    bitmap_set(buffer_data(bitmap), bit, 1);
    inode_bitmap_changed(ext, group, bitmap);
    buffer_put(bitmap);
    g->inode_hint = bit + 1;
    g->free_inodes--;
    ext->free_inodes--;
    if (directory) {
        g->used_dirs++;
        ext->used_dirs++;
        if (g->debt < UINT8_MAX)
            g->debt++;
    } else if (g->debt > 0) {
        g->debt--;
    }
    *ino = (uint64_t)group * end + bit + 1;
    return 0;
}

int ext_inode_number_allocate(struct ext *ext, struct inode *dir, uint32_t mode, uint64_t *ino) {
    bool directory = S_ISDIR(mode);
    uint32_t group;
    int rc = directory ? ext_place_directory(ext, dir, &group) : ext_place_inode(ext, dir, &group);
    if (rc < 0)
        return rc;

    /* Placement went by the counts; where a bitmap has turned out to hold less (and the counts were
     * set right), the next group serves. */
    uint32_t groups = ext->geometry.groups;
    for (uint32_t i = 0; i < groups; i++) {
        uint32_t candidate = (group + i) % groups;
        if (ext->groups[candidate].free_inodes == 0)
            continue;
        rc = group_inode_allocate(ext, candidate, directory, ino);
        if (rc != -ENOSPC)
            return rc;
    }
    return -ENOSPC;
}

int ext_inode_number_free(struct ext *ext, uint64_t ino, bool directory) {
    uint32_t group = ext_group_of_inode(&ext->geometry, ino);
    struct ext_group *g = &ext->groups[group];
    uint32_t bit = (uint32_t)((ino - 1) % ext->geometry.inodes_per_group);
    struct buffer *bitmap;
    int rc = ext_inode_bitmap_get(ext, group, &bitmap);
    if (rc < 0)
        return rc;

    if (!bitmap_test(buffer_data(bitmap), bit)) {
        buffer_put(bitmap);
        return ext_corrupt(ext,
                           "group %u: inode %" PRIu64
                           " is to be freed, but the inode bitmap says that it is not in use",
                           group, ino);
    }
    bitmap_clear(buffer_data(bitmap), bit, 1);
    inode_bitmap_changed(ext, group, bitmap);
    buffer_put(bitmap);
    g->free_inodes++;
    ext->free_inodes++;
    if (directory && g->used_dirs > 0) {
        g->used_dirs--;
        ext->used_dirs--;
    }
    if (bit < g->inode_hint)
        g->inode_hint = bit;
    if (group < ext->scan_group)
        ext->scan_group = group;
    return 0;
}

int ext_inode_number_used(struct ext *ext, uint64_t ino) {
    uint32_t group = ext_group_of_inode(&ext->geometry, ino);
    struct buffer *bitmap;
    if (ext->groups[group].flags & EXT_GROUP_INODES_UNSET)
        return 0;
    int rc = ext_inode_bitmap_get(ext, group, &bitmap);
    if (rc < 0)
        return rc;
    bool used =
        bitmap_test(buffer_data(bitmap), (uint32_t)((ino - 1) % ext->geometry.inodes_per_group));
    buffer_put(bitmap);
    return used;
}
