/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over file.h, bmap.h, dat.h and log.h. Interface: layouts/nilfs/layout.h.
 *
 * Data of regular files. `reserve` only counts: a block whose new contents are in the page cache
 * alone is *pending*. `store` gives each pending block a new virtual block and a place in the open
 * log, so that what was there before stays for earlier checkpoints, and overwriting takes as much
 * room as appending.
 *
 * Invariants:
 *  1. nilfs->pending_blocks is the sum of the files' pending blocks, and a file with such is on
 *     nilfs->pending_files, unless a commit has taken it from there to store it.
 *  2. Of a dirty page only the pending blocks are stored: the others are as they are on disk, or
 *     holes. So a block that is zeroed in part (truncate, punch) becomes pending.
 *  3. The part of a file's last block past its end is zero on disk, since it is in the page cache.
 *  4. What a data-only log does not tell (a new size, blocks that are gone) makes the file
 *     data_only_unsafe, until the next checkpoint.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/reserve.h"
#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/dat.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/log.h"

/* Blocks that one step frees, at most. */
#define FREE_STEP 16384u
/* A run of so many pending blocks is written from the caller's pages, without a copy. */
#define DIRECT_BLOCKS 16u
/* Pieces of memory in one request; a longer run takes several. */
#define DIRECT_PIECES 256
/* The longest extent that map answers with, so that a look-up in the middle of a long one does not
 * cost as much as all of it. */
#define MAP_BLOCKS 128u

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static struct nilfs_file *file_of(struct inode *inode) {
    return nilfs_inode_of(inode)->file;
}

/* Blocks that hold `bytes` from the start of a file. */
static uint64_t blocks_of(const struct nilfs *nilfs, uint64_t bytes) {
    return (bytes >> nilfs->geometry.block_bits) +
           ((bytes & (nilfs->geometry.block_size - 1)) != 0);
}

static int mark_unsafe(struct nilfs_file *file) {
    int error = nilfs_file_mark_dirty(file);

    if (!error)
        file->data_only_unsafe = true;
    return error;
}

/* --- pending blocks -------------------------------------------------------------------------- */

/* The file's, for looking at. */
static const struct nilfs_pending *pending_of(struct inode *inode) {
    static const struct nilfs_pending none;
    const struct nilfs_changes *changes = file_of(inode)->changes;

    return changes ? &changes->pending : &none;
}

static void pending_list(struct inode *inode, struct nilfs_changes *changes, bool pending) {
    struct nilfs *nilfs = nilfs_of(inode->volume);

    if ((changes->pending.inode != NULL) == pending)
        return;
    changes->pending.inode = pending ? inode : NULL;
    if (pending)
        TAILQ_INSERT_TAIL(&nilfs->pending_files, changes, pending.link);
    else
        TAILQ_REMOVE(&nilfs->pending_files, changes, pending.link);
}

static void sectors_set(struct inode *inode) {
    const struct nilfs_geometry *g = &nilfs_of(inode->volume)->geometry;

    inode->sectors = file_of(inode)->sectors + pending_of(inode)->holes * g->sectors_per_block;
}

/* What is known of a range of blocks, or of all pending ones. */
struct extent_count {
    uint64_t blocks, runs;
    uint64_t holes;    /* not in the file's map */
    uint64_t replaced; /* blocks of the DAT with the entries of the others, at most */
};

static uint32_t entries_per_block(const struct nilfs *nilfs) {
    return nilfs->geometry.block_size / nilfs->geometry.dat_entry_size;
}

static struct extent_count pending_count(struct inode *inode) {
    const struct nilfs_pending *pending = pending_of(inode);

    return (struct extent_count){pending->blocks.blocks, pending->blocks.runs, pending->holes,
                                 pending->replaced};
}

/* Adds a file's part to the promise, or (times -1) takes it away. Sums are modulo 2^64. */
static void promise_add(struct nilfs *nilfs, const struct extent_count *count, uint64_t times) {
    struct nilfs_promise *promise = &nilfs->promise;
    uint64_t in_row = count->blocks / entries_per_block(nilfs);

    promise->entry_blocks += times * smaller(count->blocks, 2 * count->runs + in_row);
    promise->replaced += times * count->replaced;
    promise->files += times * (count->blocks > 0);
}

/* The file's set was changed, and was as `before`; `change` has gone, or come. */
static void pending_changed(struct inode *inode, const struct extent_count *before,
                            const struct extent_count *change) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    struct nilfs_changes *changes = file_of(inode)->changes;
    struct nilfs_pending *pending = &changes->pending;
    uint64_t blocks = pending->blocks.blocks;
    bool more = blocks > before->blocks;

    pending->holes += more ? change->holes : -change->holes;
    /* What is left of them are as many at most. */
    pending->replaced =
        (uint32_t)smaller(smaller(before->replaced + (more ? change->replaced : 0), UINT32_MAX),
                          blocks - pending->holes);
    const struct extent_count after = pending_count(inode);
    uint64_t nodes = nilfs_space_nodes(file_of(inode), after.runs, after.blocks, after.holes);
    nodes = smaller(nodes, UINT32_MAX);
    nilfs->promise.nodes += nodes - pending->nodes;
    pending->nodes = (uint32_t)nodes;
    nilfs->pending_blocks += blocks - before->blocks;
    promise_add(nilfs, before, UINT64_MAX);
    promise_add(nilfs, &after, 1);
    pending_list(inode, changes, blocks > 0);
    sectors_set(inode);
}

/* Counts [from, to), a piece of a file, in addition. */
static int range_count(struct nilfs_file *file, uint64_t from, uint64_t to,
                       struct extent_count *count) {
    uint32_t per_block = entries_per_block(file->nilfs);
    uint64_t pointers[MAP_BLOCKS], next, place = UINT64_MAX;

    while (from < to) {
        int found = nilfs_bmap_lookup_run(file, from, pointers,
                                          (uint32_t)smaller(to - from, MAP_BLOCKS), &next);
        if (found < 0 && found != -ENOENT)
            return found;
        next = smaller(found == -ENOENT ? next : from + (uint64_t)found, to);
        count->holes += found == -ENOENT ? next - from : 0;
        for (int i = 0; i < found; i++) {
            count->replaced += pointers[i] / per_block != place;
            place = pointers[i] / per_block;
        }
        from = next;
    }
    return 0;
}

/* None of [from, to) is pending yet. */
static int pending_add(struct inode *inode, uint64_t from, uint64_t to) {
    struct nilfs_file *file = file_of(inode);
    struct nilfs_changes *changes = nilfs_changes_take(file);
    const struct extent_count before = pending_count(inode);
    struct extent_count change = {0};
    int error = changes ? range_count(file, from, to, &change) : -ENOMEM;

    if (!error)
        error = block_set_add(&changes->pending.blocks, from, to);
    if (!error)
        pending_changed(inode, &before, &change);
    return error;
}

/* Those of [from, to) that are pending. */
static int pending_remove(struct inode *inode, uint64_t from, uint64_t to) {
    struct nilfs_file *file = file_of(inode);
    const struct extent_count before = pending_count(inode);
    struct extent_count change = {0};
    uint64_t at = from, start, stop;
    int error = 0;

    if (before.blocks == 0)
        return 0;
    struct block_set *blocks = &file->changes->pending.blocks;
    while (at < to && !error && block_set_next(blocks, at, &start, &stop) && start < to) {
        at = smaller(stop, to);
        error = range_count(file, start, at, &change);
    }
    if (!error && from < to)
        error = block_set_remove(blocks, from, to);
    if (!error)
        pending_changed(inode, &before, &change);
    return error;
}

void nilfs_data_forget(struct inode *inode) {
    const struct nilfs_file *file = file_of(inode);
    struct nilfs_pending *pending = file && file->changes ? &file->changes->pending : NULL;

    if (!pending || (!pending->inode && pending->blocks.blocks == 0))
        return;
    const struct extent_count all = pending_count(inode);
    block_set_clear(&pending->blocks);
    pending_changed(inode, &all, &all);
}

struct inode *nilfs_data_pending(struct nilfs *nilfs) {
    struct nilfs_changes *changes = TAILQ_FIRST(&nilfs->pending_files);

    if (!changes)
        return NULL;
    struct inode *inode = changes->pending.inode;
    pending_list(inode, changes, false);
    return inode;
}

/* --- reserve --------------------------------------------------------------------------------- */

static const struct block_set *pending_blocks(struct inode *inode) {
    return &pending_of(inode)->blocks;
}

/* Is there space for `count` more pending blocks, in a row, of the file, and its record? */
static bool has_room(struct inode *inode, uint64_t count) {
    const struct nilfs_file *file = file_of(inode);
    struct nilfs *nilfs = file->nilfs;

    return nilfs_space(nilfs, count + nilfs_space_nodes(file, 1, count, count) +
                                  nilfs_space_change(nilfs->ifile)) == 0;
}

static const struct reserve_rules reserve_rules = {pending_blocks, has_room, pending_add};

int64_t nilfs_reserve(struct inode *inode, uint64_t offset, uint64_t length) {
    uint32_t bits = nilfs_of(inode->volume)->geometry.block_bits;
    int64_t reserved = reserve_pending(inode, &reserve_rules, bits, offset, length);

    if (reserved <= 0)
        return reserved;
    int error = offset + (uint64_t)reserved > inode->size ? mark_unsafe(file_of(inode)) : 0;
    return error ? error : reserved;
}

/* --- store ----------------------------------------------------------------------------------- */

struct store {
    struct inode *inode;
    struct device_batch *batch;
    struct data_cursor cursor;
    /* The request that is being built, of blocks in a row: */
    uint64_t block;  /* its first */
    uint32_t length; /* bytes */
    struct iovec vector[DIRECT_PIECES];
    int vector_count;
};

static int direct_submit(struct store *store) {
    struct volume *volume = store->inode->volume;
    struct device_request request = {
        .operation = DEVICE_WRITE,
        .purpose = PURPOSE_DATA,
        .offset = store->block << nilfs_of(volume)->geometry.block_bits,
        .length = store->length,
        .vector = store->vector,
        .vector_count = store->vector_count,
        .batch = store->batch,
    };

    if (store->length == 0)
        return 0;
    store->length = 0;
    store->vector_count = 0;
    return device_submit(volume->device, &request);
}

static int direct_add(struct store *store, uint64_t block, uint8_t *data) {
    const struct nilfs_geometry *g = &nilfs_of(store->inode->volume)->geometry;
    struct iovec *next = &store->vector[store->vector_count];

    if (store->length > 0 && block == store->block + (store->length >> g->block_bits)) {
        if ((uint8_t *)next[-1].iov_base + next[-1].iov_len == data) {
            next[-1].iov_len += g->block_size;
            store->length += g->block_size;
            return 0;
        }
        if (store->vector_count < DIRECT_PIECES) {
            *next = (struct iovec){data, g->block_size};
            store->vector_count++;
            store->length += g->block_size;
            return 0;
        }
    }
    int error = direct_submit(store);
    store->block = block;
    store->vector[0] = (struct iovec){data, g->block_size};
    store->vector_count = 1;
    store->length = g->block_size;
    return error;
}

static int store_block(struct store *store, uint64_t offset, bool direct) {
    struct nilfs *nilfs = nilfs_of(store->inode->volume);
    struct nilfs_file *file = file_of(store->inode);
    struct nilfs_log_item item = {.ino = file->ino, .cno = nilfs->cno, .offset = offset};
    /* A block lies in one piece. */
    uint8_t *data = data_cursor_at(&store->cursor, offset << nilfs->geometry.block_bits).iov_base;
    uint64_t block;

    int error = nilfs_file_renew(file, offset, &item.vblock);
    if (!error)
        error = (direct ? nilfs_log_data_direct : nilfs_log_data)(nilfs, &item, data, &block,
                                                                  store->batch);
    if (!error)
        error = nilfs_dat_place(nilfs, item.vblock, block);
    return error || !direct ? error : direct_add(store, block, data);
}

static int store_run(struct store *store, uint64_t from, uint64_t to) {
    struct nilfs *nilfs = nilfs_of(store->inode->volume);
    bool direct = to - from >= DIRECT_BLOCKS;
    /* First, while the map still says which of them were holes. */
    int error = pending_remove(store->inode, from, to);

    clock_charge(nilfs->volume->clock, COST_BLOCK_ALLOC, (uint32_t)(to - from));
    for (uint64_t offset = from; offset < to && !error; offset++)
        error = store_block(store, offset, direct);
    if (!error)
        error = direct_submit(store);
    sectors_set(store->inode);
    return nilfs_fail(nilfs, error);
}

int nilfs_store(struct inode *inode, const struct data_range *range, struct device_batch *batch) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    uint32_t bits = nilfs->geometry.block_bits;
    uint64_t at = range->offset >> bits, start, stop;
    uint64_t end = smaller((range->offset + range->length) >> bits, blocks_of(nilfs, inode->size));
    struct store store; /* not initialised as a whole: the vector is large */
    int error = 0;

    store.inode = inode;
    store.batch = batch;
    store.cursor = data_cursor_of(range);
    store.length = 0;
    store.vector_count = 0;
    while (!error && block_set_next(&pending_of(inode)->blocks, at, &start, &stop) && start < end) {
        at = smaller(stop, end);
        /* A page that was only held ready for a write that was refused is no change. */
        nilfs->user_changes = true;
        error = store_run(&store, start, at);
    }
    return error;
}

/* A log that has them is not whole, so that all behind it would never be found. */
void nilfs_store_failed(struct volume *volume, int error) {
    (void)nilfs_fail(nilfs_of(volume), error);
}

/* --- map and load ---------------------------------------------------------------------------- */

/* The run of blocks from `offset` on that lie behind one another on the disk; or the hole. At most
 * `most` blocks are looked at. */
static int map_run(struct nilfs_file *file, uint64_t offset, uint32_t most, uint64_t *block,
                   uint64_t *count) {
    uint64_t pointers[MAP_BLOCKS], next;
    int found = nilfs_bmap_lookup_run(file, offset, pointers, most, &next);

    *block = 0;
    *count = found == -ENOENT ? next - offset : 0;
    if (found <= 0)
        return found == -ENOENT ? 0 : found;
    found = nilfs_dat_lookup_run(file->nilfs, pointers, (uint32_t)found, block);
    *count = found > 0 ? (uint64_t)found : 0;
    return found < 0 ? found : 0;
}

int nilfs_map(struct inode *inode, uint64_t offset, struct extent *extent) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    uint32_t bits = nilfs->geometry.block_bits;
    uint64_t first = offset >> bits, count = 0, block = 0, next_block, next_count;
    int error = 0;

    if (S_ISREG(inode->mode) || S_ISDIR(inode->mode) || S_ISLNK(inode->mode))
        error = map_run(file_of(inode), first, MAP_BLOCKS, &block, &count);
    else
        count = 1;
    /* Over the border of a leaf. */
    while (!error && block != 0 && count < MAP_BLOCKS) {
        error = map_run(file_of(inode), first + count, MAP_BLOCKS - (uint32_t)count, &next_block,
                        &next_count);
        if (error || next_block != block + count)
            break;
        count += next_count;
    }
    if (error)
        return error;
    /* Behind the last block; bytes are counted in 63 bits. */
    count = smaller(count, (UINT64_C(1) << (63 - bits)) - first);
    clock_charge(nilfs->volume->clock, COST_BLOCK_ALLOC, 1);
    *extent = (struct extent){
        .offset = first << bits,
        .length = count << bits,
        .device_offset = block << bits,
        .flags = block == 0 ? EXTENT_HOLE : 0,
    };
    return 0;
}

/* Blocks that are in the log, which is not written yet, come from there. [at, end) of the file is
 * at `block` of the disk. */
static void overlay(const struct nilfs *nilfs, struct data_cursor *cursor, uint64_t at,
                    uint64_t end, uint64_t block) {
    const struct nilfs_geometry *g = &nilfs->geometry;

    for (; at < end; at++, block++) {
        const uint8_t *bytes = nilfs_log_peek(nilfs, block);
        if (bytes)
            memcpy(data_cursor_at(cursor, at << g->block_bits).iov_base, bytes, g->block_size);
    }
}

int nilfs_load(struct inode *inode, const struct data_range *range, struct device_batch *batch) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    uint32_t bits = nilfs->geometry.block_bits;
    uint64_t at = range->offset >> bits;
    uint64_t end = smaller((range->offset + range->length) >> bits, blocks_of(nilfs, inode->size));
    struct data_cursor cursor = data_cursor_of(range);
    int error = mapped_load(inode, range, batch);

    while (!error && at < end) {
        uint64_t block, count;
        error = map_run(file_of(inode), at, MAP_BLOCKS, &block, &count);
        if (error)
            break;
        count = smaller(count, end - at);
        if (block != 0)
            overlay(nilfs, &cursor, at, at + count, block);
        at += count;
    }
    return error;
}

/* --- truncate and punch ---------------------------------------------------------------------- */

/* A block that holds `offset` within it is zeroed in part by the page cache: if there is one, what
 * it is now has to be stored. */
static int edge_pending(struct inode *inode, uint64_t offset) {
    const struct nilfs *nilfs = nilfs_of(inode->volume);
    uint64_t block = offset >> nilfs->geometry.block_bits, pointer, start, stop;

    if ((offset & (nilfs->geometry.block_size - 1)) == 0)
        return 0;
    int error = nilfs_bmap_lookup(file_of(inode), block, &pointer);
    if (error)
        return error == -ENOENT ? 0 : error;
    if (block_set_next(&pending_of(inode)->blocks, block, &start, &stop) && start == block)
        return 0;
    return pending_add(inode, block, block + 1);
}

/* Before blocks are freed. */
static int free_begin(struct inode *inode) {
    nilfs_of(inode->volume)->user_changes = true;
    return mark_unsafe(file_of(inode));
}

/* Frees blocks from `from` on, up to `step` of them, the last ones first. LAYOUT_AGAIN: some are
 * left, the last in front of *end. */
static int free_tail(struct nilfs_file *file, uint64_t from, uint64_t step, uint64_t *end) {
    uint64_t last;
    int error = nilfs_bmap_last(file, &last);

    if (error || last < from)
        return error == -ENOENT ? 0 : error;
    uint64_t first = last - from >= step ? last - step + 1 : from;
    clock_charge(file->nilfs->volume->clock, COST_BLOCK_ALLOC, (uint32_t)(last - first + 1));
    error = nilfs_fail(file->nilfs, nilfs_file_free(file, first, last + 1));
    if (error || first == from)
        return error;
    error = nilfs_bmap_last(file, &last);
    if (error || last < from)
        return error == -ENOENT ? 0 : error;
    *end = last + 1;
    return LAYOUT_AGAIN;
}

static int free_blocks(struct inode *inode, uint64_t from, uint64_t step) {
    struct nilfs_file *file = file_of(inode);
    const struct nilfs_geometry *g = &file->nilfs->geometry;
    uint64_t end = 0;
    int result = free_begin(inode);

    if (result)
        return result;
    if (!file->device)
        result = free_tail(file, from, step, &end);
    file->changes->uncut = end << g->block_bits;
    sectors_set(inode);
    return result;
}

/* There may be after a commit. */
static int no_room_yet(struct nilfs *nilfs) {
    if (nilfs->dirty_blocks == 0)
        return -ENOSPC;
    nilfs->volume->commit.wanted = true;
    return LAYOUT_AGAIN;
}

int nilfs_data_free(struct inode *inode) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    uint64_t step;

    nilfs_data_forget(inode);
    step = nilfs_space_free(nilfs, NILFS_CLAIM_FINISH, file_of(inode), FREE_STEP);
    return step > 0 ? free_blocks(inode, 0, step) : no_room_yet(nilfs);
}

int nilfs_truncate(struct inode *inode, uint64_t size) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    uint64_t from = blocks_of(nilfs, size);
    uint64_t step = nilfs_space_free(nilfs, NILFS_CLAIM_REMOVE, file_of(inode), FREE_STEP);

    if (step == 0)
        return nilfs_file_uncut(file_of(inode)) > 0 ? no_room_yet(nilfs) : -ENOSPC;
    int error = size < inode->size ? edge_pending(inode, size) : 0;
    if (!error)
        error = pending_remove(inode, from, UINT64_MAX);
    return error ? error : free_blocks(inode, from, step);
}

/* Frees blocks of [from, to), up to `step`, the first ones first. */
static int free_range(struct nilfs_file *file, uint64_t from, uint64_t to, uint64_t step) {
    int error = nilfs_bmap_seek(file, from, &from);

    if (error || from >= to)
        return error == -ENOENT ? 0 : error;
    uint64_t end = smaller(to, from + step);
    clock_charge(file->nilfs->volume->clock, COST_BLOCK_ALLOC, (uint32_t)(end - from));
    error = nilfs_fail(file->nilfs, nilfs_file_free(file, from, end));
    if (error)
        return error;
    error = nilfs_bmap_seek(file, end, &from);
    return error == -ENOENT ? 0 : error ? error : from < to ? LAYOUT_AGAIN : 0;
}

int nilfs_punch(struct inode *inode, uint64_t offset, uint64_t length) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    uint64_t end = length > UINT64_MAX - offset ? UINT64_MAX : offset + length;
    uint64_t from = blocks_of(nilfs, offset), to = end >> nilfs->geometry.block_bits;
    uint64_t step = nilfs_space_free(nilfs, NILFS_CLAIM_REMOVE, file_of(inode), FREE_STEP);

    if (step == 0)
        return no_room_yet(nilfs);
    int result = edge_pending(inode, offset);
    if (!result)
        result = edge_pending(inode, end);
    if (!result)
        result = pending_remove(inode, from, to);
    if (result || from >= to)
        return result;
    result = free_begin(inode);
    if (!result)
        result = free_range(file_of(inode), from, to, step);
    sectors_set(inode);
    return result;
}
