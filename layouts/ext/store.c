/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, over data.c's mapping and group.c; the core's reserve, preallocate and store.
 *
 * When blocks are chosen, and when the map says that they hold data.
 *
 *   delalloc=off, block map   `reserve` allocates; `store` only writes. (ext2 and ext3; with
 *                             journal=data extents, too, and journal_data.c writes.)
 *   delalloc=off, extents     `reserve` allocates unwritten extents; `store` writes, then converts.
 *   delalloc=on               `reserve` only counts; `store` allocates whole runs, writes,
 * converts.
 *
 * In the last two cases a block whose contents are in the page cache alone is *pending*. What may
 * be needed to store the pending blocks is *promised* to their inode: a block for each that is a
 * hole still, and the most that the map may take. Others are refused what has been promised.
 *
 * Invariants:
 *  1. Only pages in the cache hold what is pending: every pending block lies in a dirty page,
 * unless the write failed in between.
 *  2. ext->promised_blocks is the sum of the inodes' promises, and at most what is free now: blocks
 *     that are free only after the next commit are promised to nobody, since nobody could store
 *     anything in them before.
 *  3. Nothing stale can be read, after a crash either: an extent is written only when the write of
 *     its blocks has been submitted, and commits wait for submitted writes.
 *  4. While blocks are pending, i_size on disk covers no more than what has been stored, so that
 *     after a crash a file ends where its data do.
 *  5. inode->sectors counts promised data blocks, as Linux shows them to stat; i_blocks does not.
 */
#include <errno.h>
#include <sys/stat.h>

#include "layouts/ext/extent.h"

/* A run is allocated so far ahead of the range that is being stored. */
#define AHEAD_BLOCKS 8192u

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static bool has_extents(const struct inode *inode) {
    return inode->flags & EXT_INODE_EXTENTS;
}

bool ext_stores_later(struct inode *inode) {
    const struct ext *ext = ext_of(inode->volume);
    return S_ISREG(inode->mode) && !ext_is_inline(inode) && inode->volume->store_changes &&
           !ext_journals_data(ext) && (has_extents(inode) || ext->delayed);
}

/* --- promises -------------------------------------------------------------------------------- */

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

/* The most that an extent tree can take to hold what is pending. Each run of blocks may split every
 * node on its way once, and the root; its blocks may each become an extent, and those around them
 * be cut; of split nodes each has taken half a node's entries since. */
static uint64_t tree_worst(struct inode *inode) {
    const struct block_set *pending = &ext_writer_look(inode)->pending;
    const struct ext_disk_extent_header *root = &ext_inode_of(inode)->extents.header;
    uint32_t depth = le16_load(root->eh_depth), used = le16_load(root->eh_entries);
    uint32_t half = ext_extent_block_max(&ext_of(inode->volume)->geometry) / 2;
    uint64_t entries = pending->blocks + 2 * pending->runs;
    if (depth == 0 && (used == 0 ? pending->blocks : used + entries) <= EXT_EXTENT_ROOT_MAX)
        return 0;
    return pending->runs * (depth + 1) + 2 * divide_up(entries, half);
}

/* Likewise for a block map: on both sides of a run there can be a border of each level. */
static uint64_t map_worst(struct inode *inode) {
    const struct block_set *pending = &ext_writer_look(inode)->pending;
    uint32_t entries = ext_of(inode->volume)->geometry.block_size / 4;
    if (!pending->chunks && pending->end <= EXT_DIRECT_BLOCKS)
        return 0;
    return pending->runs * 6 + 2 * divide_up(pending->blocks, entries);
}

static uint64_t promise_worst(struct inode *inode) {
    if (ext_writer_look(inode)->pending.blocks == 0)
        return 0;
    return has_extents(inode) ? tree_worst(inode) : map_worst(inode);
}

/* Without a writer nothing has been promised, and nothing is to be. */
static void promise_set(struct inode *inode, uint64_t data, uint64_t map) {
    struct ext *ext = ext_of(inode->volume);
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    uint32_t sectors = ext->geometry.block_size / 512;
    if (!writer)
        return;
    ext->promised_blocks -= writer->promised_data + writer->promised_map;
    ext->promised_blocks += data + map;
    inode->sectors += data * sectors;
    inode->sectors -= writer->promised_data * sectors;
    writer->promised_data = data;
    writer->promised_map = map;
    inode->volume->store_frees = ext->promised_blocks > 0;
}

/* Makes [at, at + count) pending and promises what that takes; holes need blocks of data. Returns
 * how many blocks from `at` on there is room for. -ENOSPC, -ENOMEM. */
static int64_t promise_blocks(struct inode *inode, uint64_t at, uint64_t count, bool hole) {
    struct ext_writer *writer = ext_writer_take(inode);
    uint64_t available = ext_blocks_available(ext_of(inode->volume));
    if (!writer)
        return -ENOMEM;
    while (count > 0) {
        uint64_t data = hole ? count : 0;
        int rc = block_set_add(&writer->pending, at, at + count);
        if (rc < 0)
            return rc;
        uint64_t map = promise_worst(inode), wanted = data + map;
        if (wanted <= available + writer->promised_map) {
            promise_set(inode, writer->promised_data + data, map);
            return (int64_t)count;
        }
        uint64_t over = wanted - available - writer->promised_map;
        rc = block_set_remove(&writer->pending, at, at + count);
        if (rc < 0)
            return rc;
        count -= smaller(over, count);
    }
    return -ENOSPC;
}

/* Pending blocks of [from, to) that are holes still. */
static int pending_holes(struct inode *inode, uint64_t from, uint64_t to, uint64_t *holes) {
    const struct block_set *pending = &ext_writer_look(inode)->pending;
    uint64_t start, end;
    *holes = 0;
    while (block_set_next(pending, from, &start, &end) && start < to) {
        end = smaller(end, to);
        for (from = start; from < end;) {
            struct ext_run run;
            int rc = ext_lookup(inode, from, &run);
            if (rc < 0)
                return rc;
            uint64_t count = smaller(run.count, end - from);
            *holes += run.physical ? 0 : count;
            from += count;
        }
    }
    return 0;
}

int ext_store_forget(struct inode *inode, uint64_t from, uint64_t to) {
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    uint64_t holes;
    if (!writer || writer->pending.blocks == 0)
        return 0;
    int rc = pending_holes(inode, from, to, &holes);
    if (rc == 0)
        rc = block_set_remove(&writer->pending, from, to);
    if (rc == 0)
        promise_set(inode, writer->promised_data - holes, promise_worst(inode));
    return rc;
}

void ext_store_release(struct inode *inode) {
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    if (!writer)
        return;
    block_set_clear(&writer->pending);
    promise_set(inode, 0, 0);
}

uint64_t ext_store_size(struct inode *inode) {
    const struct ext_writer *writer = ext_writer_look(inode);
    return writer->pending.blocks > 0 ? smaller(inode->size, writer->stored_size) : inode->size;
}

/* --- reserve --------------------------------------------------------------------------------- */

/* How many of the holes [at, at + count) can be filled so that there is still room for the map: a
 * block that is freed again is of no use before the next commit. -ENOSPC: none. */
static int64_t room_for(struct inode *inode, uint64_t at, uint64_t count) {
    int64_t room = promise_blocks(inode, at, count, true);
    if (room < 0)
        return room;
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    int rc = block_set_remove(&writer->pending, at, at + (uint64_t)room);
    promise_set(inode, writer->promised_data - (uint64_t)room, promise_worst(inode));
    return rc < 0 ? rc : room;
}

/* A piece of the file that is alike and not pending. */
static int64_t reserve_piece(struct inode *inode, const struct ext_run *run, uint64_t count) {
    bool hole = run->physical == 0;
    uint64_t done = count;
    if (!hole && !run->unwritten)
        return (int64_t)count;
    if (!hole || ext_of(inode->volume)->delayed)
        return promise_blocks(inode, run->logical, count, hole);
    int64_t room = room_for(inode, run->logical, count);
    if (room < 0)
        return room;
    int rc = ext_extent_allocate(inode, run->logical, (uint64_t)room, true, &done);
    if (rc < 0)
        return rc;
    int64_t promised = promise_blocks(inode, run->logical, done, false);
    if (promised < (int64_t)done) /* what will not be stored shall not stay */
        rc = ext_extent_remove(inode, run->logical + (uint64_t)(promised > 0 ? promised : 0),
                               run->logical + done);
    return rc < 0 ? rc : promised;
}

static int reserve_pending(struct inode *inode, uint64_t first, uint64_t end, uint64_t *done) {
    uint64_t at = first;
    int64_t got = 0;
    while (at < end && got >= 0) {
        uint64_t pending, pending_end;
        struct ext_run run;
        if (!block_set_next(&ext_writer_look(inode)->pending, at, &pending, &pending_end))
            pending = end;
        if (pending == at) {
            at = pending_end;
            continue;
        }
        got = ext_lookup(inode, at, &run);
        if (got == 0)
            got = reserve_piece(inode, &run, smaller(run.count, smaller(pending, end) - at));
        if (got > 0)
            at += (uint64_t)got;
    }
    *done = smaller(at, end) - first;
    return *done > 0 ? 0 : (int)got;
}

/* The whole blocks that hold [offset, offset + length), as far as a file can be long. */
static int blocks_of(const struct inode *inode, uint64_t offset, uint64_t *length, uint64_t *first,
                     uint64_t *end) {
    const struct ext_geometry *geometry = &ext_of(inode->volume)->geometry;
    uint64_t max = inode->volume->limits.file_size_max;
    if (offset >= max)
        return -EFBIG;
    *length = smaller(*length, max - offset);
    *first = offset >> geometry->block_bits;
    *end = ((offset + *length - 1) >> geometry->block_bits) + 1;
    return 0;
}

/* Of `length` bytes from `offset` on, those in the first `done` blocks. */
static int64_t bytes_of(const struct inode *inode, uint64_t offset, uint64_t length, uint64_t first,
                        uint64_t done) {
    uint64_t end = (first + done) << ext_of(inode->volume)->geometry.block_bits;
    return (int64_t)smaller(end - offset, length);
}

int64_t ext_reserve(struct inode *inode, uint64_t offset, uint64_t length) {
    uint64_t first, end, done;
    if (length == 0)
        return 0;
    if (ext_is_inline(inode)) {
        int room = ext_inline_reserve(inode, offset, length);
        if (room != 0)
            return room < 0 ? room : (int64_t)length;
    }
    int rc = blocks_of(inode, offset, &length, &first, &end);
    if (rc == 0 && ext_stores_later(inode)) {
        struct ext_writer *writer = ext_writer_take(inode);
        if (!writer)
            return -ENOMEM;
        if (writer->pending.blocks == 0)
            writer->stored_size = inode->size;
        rc = reserve_pending(inode, first, end, &done);
    } else if (rc == 0) {
        rc = ext_bmap_allocate(inode, first, end - first, &done);
    }
    return rc < 0 ? rc : bytes_of(inode, offset, length, first, done);
}

int64_t ext_preallocate(struct inode *inode, uint64_t offset, uint64_t length) {
    uint64_t first, end, done, before, after;
    int rc = ext_inline_convert(inode);
    if (rc < 0 || !has_extents(inode))
        return rc < 0 ? rc : -EOPNOTSUPP;
    rc = blocks_of(inode, offset, &length, &first, &end);
    if (rc == 0)
        rc = pending_holes(inode, first, end, &before);
    if (rc == 0)
        rc = ext_extent_allocate(inode, first, end - first, true, &done);
    if (rc < 0)
        return rc;
    rc = pending_holes(inode, first, end, &after);
    if (rc < 0)
        return rc;
    promise_set(inode, ext_writer_look(inode)->promised_data - (before - after),
                promise_worst(inode));
    ext_writer_forget_end(inode);
    return bytes_of(inode, offset, length, first, done);
}

/* --- store ----------------------------------------------------------------------------------- */

struct store {
    struct inode *inode;
    uint64_t first, end; /* blocks being stored */
    uint64_t holes;      /* pending ones of the file that are holes still */
    bool unwritten;      /* some of those being stored are */
};

/* Gives blocks to the holes of [at, end), which is pending. */
static int store_allocate(struct store *store, uint64_t at, uint64_t end) {
    /* What is not written in the same breath must not look as if it were. */
    bool unwritten = end > store->end;
    int rc = 0;
    while (at < end && rc == 0) {
        struct ext_run run;
        uint64_t count;
        rc = ext_lookup(store->inode, at, &run);
        if (rc < 0)
            break;
        count = smaller(run.count, end - at);
        if (run.physical) {
            store->unwritten = store->unwritten || run.unwritten;
        } else {
            rc = has_extents(store->inode)
                     ? ext_extent_allocate(store->inode, at, count, unwritten, &count)
                     : ext_indirect_allocate(store->inode, at, count, &count);
            store->holes -= rc == 0 ? count : 0;
            store->unwritten = store->unwritten || unwritten;
        }
        at += count;
    }
    return rc;
}

/* Each pending run that begins in the range, whole, so that it can lie in one piece. */
static int store_allocate_runs(struct store *store) {
    const struct block_set *pending = &ext_writer_look(store->inode)->pending;
    uint64_t at = store->first, start, end;
    int rc = 0;
    while (rc == 0 && block_set_next(pending, at, &start, &end) && start < store->end) {
        at = end;
        end = smaller(end, has_extents(store->inode) ? store->end + AHEAD_BLOCKS : store->end);
        rc = store_allocate(store, start, end);
    }
    return rc;
}

/* What has been written becomes readable. */
static int store_convert(const struct store *store) {
    const struct block_set *pending = &ext_writer_look(store->inode)->pending;
    uint64_t at = store->first, start, end, done;
    int rc = 0;
    while (rc == 0 && block_set_next(pending, at, &start, &end) && start < store->end) {
        at = smaller(end, store->end);
        for (; start < at && rc == 0; start += done)
            rc = ext_extent_allocate(store->inode, start, at - start, false, &done);
    }
    return rc;
}

int ext_store_pages(struct inode *inode, const struct data_range *range,
                    struct device_batch *batch) {
    const struct ext_geometry *geometry = &ext_of(inode->volume)->geometry;
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    struct store store = {.inode = inode, .holes = writer ? writer->promised_data : 0};
    uint64_t end = smaller(range->offset + range->length, inode->size);
    if (!writer || writer->pending.blocks == 0 || range->offset >= end)
        return mapped_store(inode, range, batch);
    store.first = range->offset >> geometry->block_bits;
    store.end = ((end - 1) >> geometry->block_bits) + 1;

    promise_set(inode, 0, 0); /* it is being kept */
    int rc = store_allocate_runs(&store);
    if (rc == 0)
        rc = mapped_store(inode, range, batch);
    if (rc == 0 && store.unwritten)
        rc = store_convert(&store);
    if (rc == 0)
        rc = block_set_remove(&writer->pending, store.first, store.end);
    if (rc == 0)
        writer->stored_size = larger(writer->stored_size, end);
    promise_set(inode, store.holes, promise_worst(inode));
    return rc;
}
