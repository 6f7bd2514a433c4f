/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over the in-core group counts alone; asked by group.c and indirect.c.
 *
 * The strategies: in which group a new inode goes, and near which block a file grows. They decide
 * from counts; finding an actual free bit is group.c's.
 *
 * Directories (dir_placement):
 *   old         Linux ext2 before 2.5.46: every new directory goes to the group with most free
 *               blocks among those with at least the average of free inodes. It spreads directories
 *               evenly over the disk, which lets each grow in place and makes walking a tree seek
 *               over all of it.
 *   orlov       Grigoriy Orlov's allocator of OpenBSD, as described when Linux ext2 took it over in
 *               2.5.46 (November 2002): directories at the top are spread, since they have nothing
 *               to do with each other; all others stay near their parent unless its group is worse
 *               than average, or has had so many directories lately that their files would not fit.
 *   sequential  The first group with a free inode: no placement at all, for comparison.
 * Other inodes go to their directory's group, else to a group found by a quadratic hash of it (so
 * that the files of one directory overflow together, those of different ones apart), else anywhere.
 *
 * Blocks (block_placement):
 *   goal        After the file's previous block, else at the start of the inode's group. A file
 *               seen growing gets a window: the blocks next in line, which other files avoid. ext2
 *               did it by marking up to 8 blocks used until the file was closed; a window needs no
 *               bit on disk, so that a crash leaks nothing.
 *   reservation As goal, but every file has a window from its first block on, as ext3 had it: small
 *               at first, twice as large each time it is used up. Windows are looked up in order.
 *   mballoc     Many blocks in one piece: mballoc.c finds them, here are only the goals.
 *   first-fit   The lowest free block of the volume, whatever it is for.
 */
#include <errno.h>
#include <sys/stat.h>

#include "layouts/ext/mballoc.h"

/* Orlov's estimates of what a directory will need at least, in inodes and in blocks. */
#define ORLOV_INODES_PER_DIR 64u
#define ORLOV_BLOCKS_PER_DIR 256u

/* Blocks in a file's first window, and in the largest. */
#define RESERVE_MIN 8u
#define RESERVE_MAX 1024u
/* Inodes are made before a file that has been seen growing counts as done with. */
#define RESERVE_IDLE 2u

/* The price of having looked at so many group descriptors, to the nearest KB. */
static void charge_groups(struct ext *ext, uint32_t groups) {
    int64_t bytes = (int64_t)groups * ext->geometry.descriptor_size;
    clock_charge(ext->volume->clock, COST_BITMAP_KB, (bytes + 512) / 1024);
}

/* --- directories ----------------------------------------------------------------------------- */

static int place_directory_old(struct ext *ext, uint32_t *group) {
    uint32_t average = ext->free_inodes / ext->geometry.groups;
    const struct ext_group *best = NULL;

    for (uint32_t i = 0; i < ext->geometry.groups; i++) {
        const struct ext_group *g = &ext->groups[i];
        if (g->free_inodes == 0 || g->free_inodes < average)
            continue;
        if (!best || g->free_blocks > best->free_blocks)
            best = g;
    }
    charge_groups(ext, ext->geometry.groups);
    if (!best)
        return -ENOSPC;
    *group = (uint32_t)(best - ext->groups);
    return 0;
}

/* A number without pattern that is the same in every run: the volume's own hash seed, stirred with
 * the count of inodes made so far (multipliers from the MurmurHash3 finaliser). */
static uint32_t scattered_number(const struct ext *ext) {
    uint32_t x = ext->hash_seed[0] ^ ext->generation;
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

/* A top directory: from a scattered start, the group with the fewest directories that is no worse
 * than average. -ENOSPC: none is. */
static int orlov_spread(struct ext *ext, uint32_t *group) {
    uint32_t groups = ext->geometry.groups;
    uint32_t average_inodes = ext->free_inodes / groups;
    uint64_t average_blocks = ext->free_blocks / groups;
    uint32_t start = scattered_number(ext) % groups;
    uint32_t fewest = ext->geometry.inodes_per_group;
    int rc = -ENOSPC;

    for (uint32_t i = 0; i < groups; i++) {
        uint32_t candidate = (start + i) % groups;
        const struct ext_group *g = &ext->groups[candidate];
        if (g->free_inodes == 0 || g->free_inodes < average_inodes ||
            g->free_blocks < average_blocks || g->used_dirs >= fewest)
            continue;
        fewest = g->used_dirs;
        *group = candidate;
        rc = 0;
    }
    charge_groups(ext, groups);
    return rc;
}

struct orlov_limits { /* of a group that may take one more directory */
    uint32_t directories, debt;
    int64_t inodes, blocks;
};

static struct orlov_limits orlov_limits(const struct ext *ext) {
    const struct ext_geometry *geometry = &ext->geometry;
    uint32_t directories = ext->used_dirs > 0 ? ext->used_dirs : 1;
    uint64_t blocks_per_dir = (geometry->blocks_count - ext->free_blocks) / directories;
    if (blocks_per_dir < ORLOV_BLOCKS_PER_DIR)
        blocks_per_dir = ORLOV_BLOCKS_PER_DIR;

    /* The debt is what a group owes: directories whose files have not come yet. As many may be
     * outstanding as would fill its blocks, or its inodes. */
    uint64_t debt = geometry->blocks_per_group / blocks_per_dir;
    if (debt > geometry->inodes_per_group / ORLOV_INODES_PER_DIR)
        debt = geometry->inodes_per_group / ORLOV_INODES_PER_DIR;
    if (debt > UINT8_MAX)
        debt = UINT8_MAX;
    if (debt == 0)
        debt = 1;
    return (struct orlov_limits){
        .directories = directories / geometry->groups + geometry->inodes_per_group / 16,
        .debt = (uint32_t)debt,
        .inodes = (int64_t)(ext->free_inodes / geometry->groups) - geometry->inodes_per_group / 4,
        .blocks = (int64_t)(ext->free_blocks / geometry->groups) - geometry->blocks_per_group / 4,
    };
}

/* A directory below: the parent's group or the next one that is within the limits. */
static int orlov_near(struct ext *ext, uint32_t parent_group, uint32_t *group) {
    uint32_t groups = ext->geometry.groups;
    struct orlov_limits limits = orlov_limits(ext);

    for (uint32_t i = 0; i < groups; i++) {
        uint32_t candidate = (parent_group + i) % groups;
        const struct ext_group *g = &ext->groups[candidate];
        if (g->free_inodes == 0 || g->debt >= limits.debt || g->used_dirs >= limits.directories ||
            g->free_inodes < limits.inodes || g->free_blocks < limits.blocks)
            continue;
        charge_groups(ext, i + 1);
        *group = candidate;
        return 0;
    }
    charge_groups(ext, groups);
    return -ENOSPC;
}

/* No group is good: from the parent on, the first with an average share of free inodes. */
static int orlov_anywhere(struct ext *ext, uint32_t parent_group, uint32_t *group) {
    uint32_t groups = ext->geometry.groups;
    uint32_t average = ext->free_inodes / groups;

    for (uint32_t i = 0; i < groups; i++) {
        uint32_t candidate = (parent_group + i) % groups;
        uint32_t free_inodes = ext->groups[candidate].free_inodes;
        if (free_inodes > 0 && free_inodes >= average) {
            *group = candidate;
            return 0;
        }
    }
    return -ENOSPC;
}

static int place_directory_orlov(struct ext *ext, struct inode *dir, uint32_t *group) {
    uint32_t parent_group = ext_inode_of(dir)->group;
    bool top = dir->ino == EXT_ROOT_INO || (dir->flags & EXT_INODE_TOPDIR);
    int rc = top ? orlov_spread(ext, group) : orlov_near(ext, parent_group, group);
    return rc == -ENOSPC ? orlov_anywhere(ext, parent_group, group) : rc;
}

static int place_sequential(struct ext *ext, uint32_t *group) {
    while (ext->scan_group < ext->geometry.groups) {
        if (ext->groups[ext->scan_group].free_inodes > 0) {
            *group = ext->scan_group;
            return 0;
        }
        ext->scan_group++;
    }
    return -ENOSPC;
}

int ext_place_directory(struct ext *ext, struct inode *dir, uint32_t *group) {
    switch (ext->dir_placement) {
    case EXT_DIR_OLD:
        return place_directory_old(ext, group);
    case EXT_DIR_ORLOV:
        return place_directory_orlov(ext, dir, group);
    case EXT_DIR_SEQUENTIAL:
        return place_sequential(ext, group);
    }
    return -EINVAL;
}

/* --- other inodes ---------------------------------------------------------------------------- */

int ext_place_inode(struct ext *ext, struct inode *dir, uint32_t *group) {
    if (ext->dir_placement == EXT_DIR_SEQUENTIAL)
        return place_sequential(ext, group);

    uint32_t groups = ext->geometry.groups;
    uint32_t parent_group = ext_inode_of(dir)->group;
    uint32_t candidate = parent_group;
    const struct ext_group *g = &ext->groups[candidate];
    if (g->free_inodes > 0 && g->free_blocks > 0) {
        *group = candidate;
        return 0;
    }
    candidate = (uint32_t)((parent_group + dir->ino) % groups);
    for (uint32_t step = 1; step < groups; step <<= 1) {
        candidate = (candidate + step) % groups;
        g = &ext->groups[candidate];
        if (g->free_inodes > 0 && g->free_blocks > 0) {
            *group = candidate;
            return 0;
        }
    }
    for (uint32_t i = 0; i < groups; i++) {
        candidate = (parent_group + i) % groups;
        if (ext->groups[candidate].free_inodes > 0) {
            *group = candidate;
            return 0;
        }
    }
    charge_groups(ext, groups);
    return -ENOSPC;
}

/* --- blocks ---------------------------------------------------------------------------------- */

uint64_t ext_place_block(struct ext *ext, struct inode *inode, uint64_t logical,
                         uint64_t previous_physical) {
    const struct ext_writer *writer = ext_writer_look(inode);
    if (ext->block_placement == EXT_ALLOC_FIRST_FIT)
        return 0;
    bool sequential = ext_writer_goes_on(inode, logical);
    if (sequential && writer->hold.count > 0)
        return writer->hold.block;
    if (sequential)
        return writer->next_physical;
    if (previous_physical != 0)
        return previous_physical + 1;
    return ext_group_first_block(&ext->geometry, ext_inode_of(inode)->group);
}

static void window_set(struct ext *ext, uint64_t ino, uint64_t block, uint32_t count) {
    struct ext_window *window = NULL;
    for (uint32_t i = 0; i < ext->windows_used; i++)
        if (ext->windows[i].ino == ino)
            window = &ext->windows[i];
    if (!window) {
        window = &ext->windows[ext->window_next];
        ext->window_next = (ext->window_next + 1) % EXT_WINDOWS;
        if (ext->windows_used < EXT_WINDOWS)
            ext->windows_used++;
    }
    *window = (struct ext_window){.ino = ino, .block = block, .count = count};
}

/* The first gap of `size` blocks between windows from `block` on. */
static uint64_t reserve_gap(struct ext *ext, uint64_t block, uint32_t size) {
    const struct ext_hold *hold = ext_holds_from(&ext->holds, block);
    while (hold && hold->block < block + size) {
        block = hold->block + hold->count;
        hold = ext_holds_from(&ext->holds, block);
    }
    return block;
}

/* The window of a file that has got [block, end): what is left of it; a file that has used it up
 * gets one twice as large. */
static void reserve_ahead(struct ext *ext, struct ext_hold *hold, uint64_t block, uint64_t end) {
    uint64_t hold_end = hold->block + hold->count;
    bool inside = hold->count > 0 && block >= hold->block && block < hold_end;
    hold->idle = 0;
    if (inside && end < hold_end) {
        ext_hold_advance(&ext->holds, hold, end);
        return;
    }
    if (hold->size == 0)
        hold->size = RESERVE_MIN;
    else if (inside && hold->size < RESERVE_MAX)
        hold->size *= 2;
    ext_hold_drop(&ext->holds, hold);
    end = reserve_gap(ext, end, hold->size);
    if (end >= ext->geometry.blocks_count)
        return;
    if (ext->holds.count == EXT_HOLDS_MAX)
        ext_hold_drop(&ext->holds, TAILQ_FIRST(&ext->holds.by_time));
    ext_hold_set(&ext->holds, hold, end, hold->size);
}

void ext_place_note(struct ext *ext, struct inode *inode, uint64_t logical, uint64_t block,
                    uint32_t count, bool sequential) {
    struct ext_writer *writer = ext_writer_take(inode);
    if (!writer)
        return; /* these are but hints */
    bool grows = writer->next_physical != 0;
    writer->next_logical = logical + count;
    writer->next_physical = block + count;
    /* A long run needs no window: whoever asks for much at once gets it in one piece. */
    if (sequential && count < ext->prealloc_blocks && S_ISREG(inode->mode) &&
        ext->block_placement == EXT_ALLOC_GOAL)
        window_set(ext, inode->ino, block + count, ext->prealloc_blocks - 1);
    /* With delayed allocation a file that was written in one go has all its blocks at once. */
    if (ext->block_placement == EXT_ALLOC_RESERVATION && S_ISREG(inode->mode) &&
        (grows || !ext->delayed))
        reserve_ahead(ext, &writer->hold, block, block + count);
}

uint32_t ext_window_clip(struct ext *ext, struct inode *inode, uint64_t block, uint32_t count,
                         uint64_t *end) {
    if (ext->holds.count > 0)
        return ext_holds_clip(&ext->holds, &ext_writer_look(inode)->hold, block, count, end);
    for (uint32_t i = 0; i < ext->windows_used; i++) {
        const struct ext_window *window = &ext->windows[i];
        if (window->ino == inode->ino || window->count == 0)
            continue;
        if (block < window->block) {
            if (window->block - block < count)
                count = (uint32_t)(window->block - block);
        } else if (block < window->block + window->count) {
            *end = window->block + window->count;
            return 0;
        }
    }
    return count;
}

static void hold_release(struct ext *ext, struct ext_hold *hold) {
    if (ext->mballoc)
        ext_mballoc_drop(ext, hold);
    else
        ext_hold_drop(&ext->holds, hold);
}

bool ext_windows_discard(struct ext *ext) {
    bool any = ext->windows_used > 0 || ext->holds.count > 0;
    ext->windows_used = 0;
    ext->window_next = 0;
    while (ext->holds.count > 0)
        hold_release(ext, TAILQ_FIRST(&ext->holds.by_time));
    return any;
}

void ext_windows_retire(struct ext *ext) {
    struct ext_hold *hold, *next;
    if (ext->block_placement == EXT_ALLOC_GOAL)
        ext_windows_discard(ext);
    if (ext->block_placement != EXT_ALLOC_RESERVATION)
        return;
    for (hold = TAILQ_FIRST(&ext->holds.by_time); hold; hold = next) {
        next = TAILQ_NEXT(hold, by_time);
        if (hold->size == RESERVE_MIN || ++hold->idle == RESERVE_IDLE)
            ext_hold_drop(&ext->holds, hold);
    }
}

void ext_window_release(struct inode *inode) {
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    if (!writer)
        return;
    hold_release(ext_of(inode->volume), &writer->hold);
    writer->hold.size = 0;
}
