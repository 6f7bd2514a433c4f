/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over group.c and placement.c, under data.c.
 *
 * The block map: twelve block numbers in the inode, then a single, a double and a triple indirect
 * block, which are arrays of block numbers one, two and three steps away from the data.
 *
 *   slot 0..11   data
 *   slot 12      -> [ data ... ]
 *   slot 13      -> [ -> [ data ... ] ... ]
 *   slot 14      -> [ -> [ -> [ data ... ] ... ] ... ]
 *
 * The array that holds the numbers of data blocks (the inode's own slots, or an indirect block of
 * level 1) is called the leaf here.
 *
 * Invariants:
 *  1. A number from the map is checked before it is used: inside the volume, not metadata. No walk
 *     goes deeper than three levels, whatever the map says.
 *  2. A block is in its bitmap before it is in the map, and out of the map before it is out of the
 *     bitmap; an error on the way leaves a map that is whole, if short.
 *  3. inode->sectors counts data blocks and indirect blocks.
 *  4. No indirect block is kept that maps nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "layouts/ext/ext.h"

#define LEVELS_MAX 3u

static uint32_t map_bits(const struct ext_geometry *geometry) {
    return geometry->block_bits - 2; /* numbers are 4 bytes */
}

static uint32_t block_sectors(const struct ext *ext) {
    return ext->geometry.block_size / 512;
}

/* --- finding the way ------------------------------------------------------------------------- */

struct map_path {
    uint32_t levels;                /* of indirect blocks before the data */
    uint32_t index[1 + LEVELS_MAX]; /* inode slot, then the place in each indirect block */
};

/* -EFBIG: beyond what the map can hold. */
static int path_find(const struct ext_geometry *geometry, uint64_t logical, struct map_path *path) {
    uint32_t bits = map_bits(geometry);
    if (logical < EXT_DIRECT_BLOCKS) {
        path->levels = 0;
        path->index[0] = (uint32_t)logical;
        return 0;
    }
    logical -= EXT_DIRECT_BLOCKS;
    for (uint32_t levels = 1; levels <= LEVELS_MAX; levels++) {
        uint64_t span = UINT64_C(1) << bits * levels;
        if (logical < span) {
            path->levels = levels;
            path->index[0] = EXT_IND + levels - 1;
            for (uint32_t i = levels; i > 0; i--, logical >>= bits)
                path->index[i] = (uint32_t)(logical & ((UINT64_C(1) << bits) - 1));
            return 0;
        }
        logical -= span;
    }
    return -EFBIG;
}

static int pointer_corrupt(struct inode *inode, uint64_t block, uint32_t level, uint64_t logical) {
    return ext_corrupt(ext_of(inode->volume),
                       "inode %" PRIu64 ": the %s for logical block %" PRIu64
                       " (level %u) is %" PRIu64
                       ", which lies outside the volume or in a group's metadata",
                       inode->ino, level ? "indirect block" : "data block", logical, level, block);
}

/* An indirect block, `level` steps from the data, on the way to `logical`. */
static int indirect_get(struct inode *inode, uint32_t block, uint32_t level, uint64_t logical,
                        struct buffer **buffer) {
    struct ext *ext = ext_of(inode->volume);
    if (!ext_blocks_are_data(ext, block, 1))
        return pointer_corrupt(inode, block, level, logical);
    return buffer_get(ext->buffers, block, PURPOSE_MAP, buffer);
}

static uint32_t entry_get(const struct buffer *buffer, uint32_t index) {
    return le32_load(((const le32 *)buffer_data(buffer))[index]);
}

static void entry_set(const struct buffer *buffer, uint32_t index, uint32_t block) {
    le32_store(&((le32 *)buffer_data(buffer))[index], block);
}

struct leaf {
    struct inode *inode;
    struct buffer *buffer; /* NULL: the inode's own slots */
    uint32_t index, limit; /* where the logical block asked for is, and the array's end */
};

static uint32_t leaf_get(const struct leaf *leaf, uint32_t index) {
    return leaf->buffer ? entry_get(leaf->buffer, index) : ext_inode_of(leaf->inode)->block[index];
}

/* Entries from `index` to `end` that go on as the first does: a hole, or consecutive blocks. */
static uint32_t leaf_run(const struct leaf *leaf, uint32_t index, uint32_t end) {
    uint32_t first = leaf_get(leaf, index), step = first ? 1 : 0, count = 1;
    while (index + count < end && leaf_get(leaf, index + count) == first + count * step)
        count++;
    return count;
}

/* --- look-up --------------------------------------------------------------------------------- */

/* Blocks from the path's own to the end of the subtree that hangs off its entry in `level`. */
static uint64_t subtree_rest(const struct ext_geometry *geometry, const struct map_path *path,
                             uint32_t level) {
    uint32_t bits = map_bits(geometry);
    uint64_t before = 0;
    for (uint32_t i = level + 1; i <= path->levels; i++)
        before = before << bits | path->index[i];
    return (UINT64_C(1) << bits * (path->levels - level)) - before;
}

int ext_indirect_bmap(struct inode *inode, uint64_t logical, uint64_t *physical, uint64_t *count) {
    struct ext *ext = ext_of(inode->volume);
    struct map_path path;
    int rc = path_find(&ext->geometry, logical, &path);
    if (rc < 0)
        return rc;
    clock_charge(ext->volume->clock, COST_BLOCK_ALLOC, 1);

    struct leaf leaf = {inode, NULL, path.index[0], EXT_DIRECT_BLOCKS};
    uint32_t block = ext_inode_of(inode)->block[path.index[0]];
    for (uint32_t level = 0; level < path.levels; level++) {
        struct buffer *buffer;
        if (block == 0) {
            buffer_put(leaf.buffer);
            *physical = 0;
            *count = subtree_rest(&ext->geometry, &path, level);
            return 0;
        }
        rc = indirect_get(inode, block, path.levels - level, logical, &buffer);
        buffer_put(leaf.buffer);
        if (rc < 0)
            return rc;
        leaf = (struct leaf){inode, buffer, path.index[level + 1], 1u << map_bits(&ext->geometry)};
        block = entry_get(buffer, leaf.index);
    }
    *physical = block;
    *count = leaf_run(&leaf, leaf.index, leaf.limit);
    buffer_put(leaf.buffer);
    if (block != 0 && !ext_blocks_are_data(ext, block, *count))
        return pointer_corrupt(inode, block, 0, logical);
    return 0;
}

/* A map has 32 bits for a block number: on larger volumes blocks beyond are none for it. */
static int reachable_blocks_allocate(struct ext *ext, struct inode *inode, uint64_t goal,
                                     uint32_t *count, uint64_t *block) {
    int rc = ext_blocks_allocate(ext, inode, goal, count, block);
    if (rc < 0 || *block + *count - 1 <= UINT32_MAX)
        return rc;
    rc = ext_blocks_free(ext, *block, *count, false);
    return rc < 0 ? rc : -ENOSPC;
}

/* --- allocation ------------------------------------------------------------------------------ */

/* Allocates an indirect block on the way to `logical` and clears it. */
static int indirect_create(struct inode *inode, uint64_t logical, uint64_t previous,
                           struct buffer **buffer) {
    struct ext *ext = ext_of(inode->volume);
    bool sequential = ext_writer_goes_on(inode, logical);
    uint64_t goal = ext_place_block(ext, inode, logical, previous), block;
    uint32_t count = 1;
    int rc = reachable_blocks_allocate(ext, inode, goal, &count, &block);
    if (rc < 0)
        return rc;
    rc = buffer_get_zeroed(ext->buffers, block, PURPOSE_MAP, buffer);
    if (rc < 0) {
        (void)ext_blocks_free(ext, block, 1, false);
        return rc;
    }
    ext_dirty(ext, *buffer);
    inode->sectors += block_sectors(ext);
    /* The data that it maps shall follow it. A file that was growing keeps its window. */
    ext_place_note(ext, inode, logical, block, 1, sequential && block == goal);
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    if (writer)
        writer->next_logical = logical;
    return 0;
}

/* Finds the leaf for `logical`, making the indirect blocks that are missing on the way. The caller
 * puts leaf->buffer. -ENOSPC: there is not room for these and a block of data; nothing changed. */
static int leaf_open(struct inode *inode, uint64_t logical, struct leaf *leaf) {
    struct ext *ext = ext_of(inode->volume);
    struct ext_inode *private = ext_inode_of(inode);
    struct map_path path;
    int rc = path_find(&ext->geometry, logical, &path);
    if (rc < 0)
        return rc;

    *leaf = (struct leaf){inode, NULL, path.index[0], EXT_DIRECT_BLOCKS};
    uint32_t block = private->block[path.index[0]], parent_block = 0;
    for (uint32_t level = 0; level < path.levels; level++) {
        struct buffer *buffer = NULL;
        if (block != 0) {
            rc = indirect_get(inode, block, path.levels - level, logical, &buffer);
        } else if (ext_blocks_available(ext) < path.levels - level + 1) {
            rc = -ENOSPC;
        } else {
            rc = indirect_create(inode, logical, parent_block, &buffer);
            if (rc == 0 && leaf->buffer) {
                entry_set(leaf->buffer, leaf->index, (uint32_t)buffer->block);
                ext_dirty(ext, leaf->buffer);
            } else if (rc == 0) {
                private->block[leaf->index] = (uint32_t)buffer->block;
            }
        }
        buffer_put(leaf->buffer);
        if (rc < 0)
            return rc;
        *leaf = (struct leaf){inode, buffer, path.index[level + 1], 1u << map_bits(&ext->geometry)};
        parent_block = (uint32_t)buffer->block;
        block = entry_get(buffer, leaf->index);
    }
    return 0;
}

/* The block before entry `index` in the leaf or, with none, the leaf's own block. */
static uint64_t leaf_previous(const struct leaf *leaf, uint32_t index) {
    while (index > 0) {
        uint32_t block = leaf_get(leaf, --index);
        if (block != 0)
            return block;
    }
    return leaf->buffer ? leaf->buffer->block : 0;
}

static void leaf_set_run(const struct leaf *leaf, uint32_t index, uint32_t block, uint32_t count) {
    struct ext_inode *private = ext_inode_of(leaf->inode);
    for (uint32_t i = 0; i < count; i++)
        if (leaf->buffer)
            entry_set(leaf->buffer, index + i, block + i);
        else
    private->block[index + i] = block + i;
    if (leaf->buffer)
        ext_dirty(ext_of(leaf->inode->volume), leaf->buffer);
}

/* Gives blocks to the holes among the leaf's next `count` entries; *filled: how many of these are
 * mapped from the start. */
static int leaf_fill(struct leaf *leaf, uint64_t logical, uint32_t count, uint32_t *filled) {
    struct inode *inode = leaf->inode;
    struct ext *ext = ext_of(inode->volume);
    uint32_t end = leaf->index + count, index = leaf->index;
    int rc = 0;

    while (index < end) {
        if (leaf_get(leaf, index) != 0) {
            index++;
            continue;
        }
        uint64_t at = logical + (index - leaf->index), block;
        uint32_t run = leaf_run(leaf, index, end);
        bool sequential = ext_writer_goes_on(inode, at);
        uint64_t goal = ext_place_block(ext, inode, at, leaf_previous(leaf, index));
        rc = reachable_blocks_allocate(ext, inode, goal, &run, &block);
        if (rc < 0)
            break;
        leaf_set_run(leaf, index, (uint32_t)block, run);
        inode->sectors += (uint64_t)run * block_sectors(ext);
        ext_order_data(inode);
        ext_place_note(ext, inode, at, block, run, sequential && block == goal);
        index += run;
    }
    *filled = index - leaf->index;
    return rc;
}

int ext_indirect_allocate(struct inode *inode, uint64_t logical, uint64_t count, uint64_t *done) {
    int rc = 0;
    *done = 0;
    while (rc == 0 && *done < count) {
        struct leaf leaf;
        uint32_t filled;
        rc = leaf_open(inode, logical + *done, &leaf);
        if (rc < 0)
            break;
        uint64_t want = count - *done;
        if (want > leaf.limit - leaf.index)
            want = leaf.limit - leaf.index;
        rc = leaf_fill(&leaf, logical + *done, (uint32_t)want, &filled);
        buffer_put(leaf.buffer);
        *done += filled;
    }
    return *done > 0 ? 0 : rc;
}

/* --- removal --------------------------------------------------------------------------------- */

/* Blocks leave the map one by one, and the bitmaps in runs: a run is freed when the next block
 * does not continue it. */
struct removal {
    struct inode *inode;
    uint64_t from, to; /* logical blocks */
    uint64_t run_block, run_count, run_logical;
    uint32_t run_level;        /* 0: data */
    uint32_t held[LEVELS_MAX]; /* indirect blocks whose buffers are in use, by level - 1 */
};

static int removal_flush(struct removal *removal) {
    struct inode *inode = removal->inode;
    struct ext *ext = ext_of(inode->volume);
    uint64_t count = removal->run_count;
    removal->run_count = 0;
    if (count == 0)
        return 0;
    if (!ext_blocks_are_data(ext, removal->run_block, count))
        return pointer_corrupt(inode, removal->run_block, removal->run_level, removal->run_logical);

    uint64_t sectors = count * block_sectors(ext);
    inode->sectors -= sectors < inode->sectors ? sectors : inode->sectors;
    /* Contents of directories and symlinks are in the buffer cache, those of files are not. */
    bool metadata = removal->run_level > 0 || !S_ISREG(inode->mode);
    int rc = ext_blocks_free(ext, removal->run_block, count, metadata);
    return rc == 0 && ext_journal_full(ext) ? LAYOUT_AGAIN : rc;
}

/* `block`, `level` steps from the data, leaves the map. */
static int removal_add(struct removal *removal, uint32_t block, uint32_t level, uint64_t logical) {
    for (uint32_t i = 0; i < LEVELS_MAX; i++)
        if (block == removal->held[i])
            return ext_corrupt(ext_of(removal->inode->volume),
                               "inode %" PRIu64 ": block %u maps itself (logical block %" PRIu64
                               ", level %u)",
                               removal->inode->ino, block, logical, level);
    if (removal->run_count > 0 && removal->run_level == level &&
        removal->run_block + removal->run_count == block) {
        removal->run_count++;
        return 0;
    }
    int rc = removal_flush(removal);
    removal->run_block = block;
    removal->run_count = 1;
    removal->run_logical = logical;
    removal->run_level = level;
    return rc;
}

static bool indirect_empty(const struct buffer *buffer, uint32_t entries) {
    for (uint32_t i = 0; i < entries; i++)
        if (entry_get(buffer, i) != 0)
            return false;
    return true;
}

/* Removes what lies in the removal's range below the indirect block, whose first entry is for
 * logical block `first`. *emptied: nothing is left, the caller removes the block itself. */
static int subtree_remove(struct removal *removal, uint32_t block, uint32_t level, uint64_t first,
                          bool *emptied) {
    struct inode *inode = removal->inode;
    uint32_t bits = map_bits(&ext_of(inode->volume)->geometry);
    uint32_t shift = bits * (level - 1), entries = 1u << bits;
    uint64_t span = UINT64_C(1) << shift;
    uint32_t begin = removal->from > first ? (uint32_t)((removal->from - first) >> shift) : 0;
    uint32_t end = removal->to - first < span * entries
                       ? (uint32_t)((removal->to - first + span - 1) >> shift)
                       : entries;
    bool changed = false;
    struct buffer *buffer;
    int rc = indirect_get(inode, block, level, first, &buffer);
    if (rc < 0)
        return rc;

    removal->held[level - 1] = block;
    for (uint32_t i = begin; i < end && rc == 0; i++) {
        uint32_t entry = entry_get(buffer, i);
        uint64_t logical = first + i * span;
        bool gone = true;
        if (entry == 0)
            continue;
        if (level > 1)
            rc = subtree_remove(removal, entry, level - 1, logical, &gone);
        if (rc == 0 && gone) {
            entry_set(buffer, i, 0);
            changed = true;
            rc = removal_add(removal, entry, level - 1, logical);
        }
    }
    removal->held[level - 1] = 0;
    *emptied =
        rc == 0 && ((begin == 0 && end == entries) || changed) && indirect_empty(buffer, entries);
    if (changed)
        ext_dirty(ext_of(inode->volume), buffer);
    buffer_put(buffer);
    return rc;
}

static int slots_remove(struct removal *removal) {
    struct ext_inode *private = ext_inode_of(removal->inode);
    uint32_t bits = map_bits(&ext_of(removal->inode->volume)->geometry);
    uint64_t first = EXT_DIRECT_BLOCKS;
    int rc = 0;

    for (uint64_t i = removal->from; i < EXT_DIRECT_BLOCKS && i < removal->to && rc == 0; i++) {
        uint32_t block = private->block[i];
        private->block[i] = 0;
        if (block != 0)
            rc = removal_add(removal, block, 0, i);
    }
    for (uint32_t level = 1; level <= LEVELS_MAX && rc == 0; level++) {
        uint64_t span = UINT64_C(1) << bits * level;
        uint32_t block = private->block[EXT_IND + level - 1];
        bool emptied = false;
        if (block != 0 && removal->from < first + span && removal->to > first)
            rc = subtree_remove(removal, block, level, first, &emptied);
        if (rc == 0 && emptied) {
            private->block[EXT_IND + level - 1] = 0;
            rc = removal_add(removal, block, level, first);
        }
        first += span;
    }
    return rc;
}

int ext_indirect_remove(struct inode *inode, uint64_t from, uint64_t to) {
    struct removal removal = {.inode = inode, .from = from, .to = to};
    int rc = slots_remove(&removal);
    /* What has left the map is freed even when the walk had to stop. */
    int flushed = removal_flush(&removal);
    ext_writer_forget_end(inode);
    return flushed < 0 && rc >= 0 ? flushed : rc;
}

/* --- walking and limits ---------------------------------------------------------------------- */

struct walk {
    struct inode *inode;
    ext_run_visit visit;
    void *context;
    uint64_t visited;
};

/* No file has more blocks than the volume: a map that shows more goes in a circle. */
static int walk_visit(struct walk *walk, uint64_t block, uint64_t logical, uint32_t level) {
    struct ext *ext = ext_of(walk->inode->volume);
    if (!ext_blocks_are_data(ext, block, 1))
        return pointer_corrupt(walk->inode, block, level, logical);
    if (++walk->visited > ext->geometry.blocks_count)
        return ext_corrupt(
            ext, "inode %" PRIu64 ": the block map has more blocks than the volume (%" PRIu64 ")",
            walk->inode->ino, ext->geometry.blocks_count);
    struct ext_run run = {.logical = logical, .physical = block, .count = 1, .level = level};
    return walk->visit(walk->context, &run);
}

static int subtree_walk(struct walk *walk, uint32_t block, uint32_t level, uint64_t first) {
    uint32_t bits = map_bits(&ext_of(walk->inode->volume)->geometry);
    struct buffer *buffer;
    int rc = walk_visit(walk, block, first, level);
    if (rc != 0 || level == 0)
        return rc;
    rc = indirect_get(walk->inode, block, level, first, &buffer);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < 1u << bits && rc == 0; i++) {
        uint32_t entry = entry_get(buffer, i);
        if (entry != 0)
            rc = subtree_walk(walk, entry, level - 1, first + ((uint64_t)i << bits * (level - 1)));
    }
    buffer_put(buffer);
    return rc;
}

int ext_indirect_each(struct inode *inode, ext_run_visit visit, void *context) {
    const struct ext_inode *private = ext_inode_of(inode);
    uint32_t bits = map_bits(&ext_of(inode->volume)->geometry);
    struct walk walk = {inode, visit, context, 0};
    uint64_t first = 0;
    int rc = 0;

    for (uint32_t slot = 0; slot < EXT_BLOCK_SLOTS && rc == 0; slot++) {
        uint32_t level = slot < EXT_IND ? 0 : slot - EXT_IND + 1;
        if (private->block[slot] != 0)
            rc = subtree_walk(&walk, private->block[slot], level, first);
        first += UINT64_C(1) << bits * level;
    }
    return rc;
}

/* Blocks that a file without holes needs: its `blocks` of data and the indirect ones. */
static uint64_t blocks_with_map(uint32_t bits, uint64_t blocks) {
    uint64_t total = blocks;
    if (blocks <= EXT_DIRECT_BLOCKS)
        return total;
    blocks -= EXT_DIRECT_BLOCKS;
    for (uint32_t level = 1; level <= LEVELS_MAX && blocks > 0; level++) {
        uint64_t span = UINT64_C(1) << bits * level;
        uint64_t part = blocks < span ? blocks : span;
        for (uint32_t i = 1; i <= level; i++)
            total += (part + (UINT64_C(1) << bits * i) - 1) >> bits * i;
        blocks -= part;
    }
    return total;
}

uint64_t ext_indirect_size_max(const struct ext_geometry *geometry, bool large_file) {
    if (!large_file)
        return INT32_MAX;
    /* The map's reach, and i_blocks, which counts 512-byte sectors in 32 bits, those of the map
     * included. As the kernel does it, who reads nothing behind its own limit: the map taken off is
     * that of a file that fills i_blocks with data alone. */
    uint32_t bits = map_bits(geometry);
    uint64_t room = UINT32_MAX / (geometry->block_size / 512);
    uint64_t blocks = EXT_DIRECT_BLOCKS;
    for (uint32_t level = 1; level <= LEVELS_MAX; level++)
        blocks += UINT64_C(1) << bits * level;
    if (blocks_with_map(bits, blocks) > room)
        blocks = room - (blocks_with_map(bits, room) - room);
    return blocks << geometry->block_bits;
}
