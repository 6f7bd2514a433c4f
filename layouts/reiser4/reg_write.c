/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. The object plugin reg40 changes bodies. Interface:
 * layouts/reiser4/body.h.
 *
 * Where the file has blocks already, the newest commit has those. Data that is stored goes to new
 * ones; or it is kept for the commit, which then writes it twice (kept.h): with txmod=journal, and
 * with hybrid if the run is short. Blocks that were allocated since the last commit began are
 * written again.
 */
#include <errno.h>
#include <inttypes.h>

#include "fs/reserve.h"
#include "layouts/reiser4/body.h"

/* Pieces of memory in one request. */
#define PIECES 128

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t blocks_of(uint64_t bytes) {
    return bytes / REISER4_BLOCK_SIZE + (bytes % REISER4_BLOCK_SIZE != 0);
}

/* --- room --------------------------------------------------------------------------------------
 */

static int ask(const struct inode *inode, uint64_t blocks, bool removal) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    struct reiser4_need need = {
        .nodes = (uint32_t)smaller(
            REISER4_TREE_NODES(&r4->tree) * (2 + blocks / REISER4_INSERTION_BLOCKS), UINT32_MAX),
        .blocks = blocks};

    return reiser4_space_ask(r4, need, removal);
}

static const struct block_set *pending_blocks(struct inode *inode) {
    return &reiser4_inode_of(inode)->pending_blocks;
}

static bool has_room(struct inode *inode, uint64_t count) {
    return ask(inode, count, false) == 0;
}

static const struct reserve_rules reserve_rules = {pending_blocks, has_room, reiser4_pending_add};

int64_t reiser4_reg_reserve(struct inode *inode, uint64_t offset, uint64_t length) {
    return reserve_pending(inode, &reserve_rules, REISER4_BLOCK_BITS, offset, length);
}

/* --- the form ----------------------------------------------------------------------------------
 */

/* The form in which a body of `size` bytes is to go on: one of tails that becomes too long is
 * converted. */
static int form_for(struct inode *inode, uint64_t size, enum reiser4_form *form) {
    int error = reiser4_body_form(inode, form);

    if (error)
        return error;
    if (*form == REISER4_FORM_EMPTY)
        *form = reiser4_body_wants_tails(inode, size) ? REISER4_FORM_TAILS : REISER4_FORM_EXTENTS;
    else if (*form == REISER4_FORM_TAILS && !reiser4_body_wants_tails(inode, size))
        error = reiser4_convert_to_extents(inode);
    else if (*form == REISER4_FORM_MIXED)
        error = reiser4_corrupt(
            inode->volume, "object %" PRIu64 " was converted by half, and no safe-link says so",
            inode->ino);
    if (!error && reiser4_inode_of(inode)->form == REISER4_FORM_EXTENTS)
        *form = REISER4_FORM_EXTENTS;
    return error;
}

/* The body covers `size` bytes, if nothing is pending (body.h, invariant 2). */
static int cover(struct inode *inode, uint64_t size) {
    enum reiser4_form form;
    uint64_t covered;

    if (reiser4_inode_of(inode)->pending_blocks.blocks > 0 || size == 0)
        return 0;
    int error = form_for(inode, size, &form);
    if (error || form == REISER4_FORM_TAILS)
        return error ? error : reiser4_tail_write(inode, size, 0, NULL);
    error = reiser4_extent_covered(inode, &covered);
    return error || covered >= blocks_of(size)
               ? error
               : reiser4_extent_set(inode, covered, blocks_of(size), REISER4_EXTENT_HOLE);
}

/* --- storing -----------------------------------------------------------------------------------
 */

/* The memory from `offset` on, as far as it is one piece, and not beyond `end`. */
static struct iovec piece_at(struct data_cursor *cursor, uint64_t offset, uint64_t end) {
    struct iovec piece = data_cursor_at(cursor, offset);

    piece.iov_len = smaller(piece.iov_len, end - offset);
    return piece;
}

static int store_bytes(struct inode *inode, struct data_cursor *cursor, uint64_t offset,
                       uint64_t end) {
    int error = 0;

    end = smaller(end, inode->size);
    while (offset < end && !error) {
        struct iovec piece = piece_at(cursor, offset, end);
        error = reiser4_tail_write(inode, offset, piece.iov_len, piece.iov_base);
        offset += piece.iov_len;
    }
    return error;
}

/* Where block `at` of the file is best put: behind the one before it. 0: anywhere. */
static uint64_t hint_for(struct inode *inode, uint64_t at) {
    struct reiser4_extent before;

    if (at == 0 || reiser4_extent_find(inode, (at - 1) * REISER4_BLOCK_SIZE, &before) != 0 ||
        !reiser4_extent_is_allocated(&before))
        return 0;
    return before.start + (at - before.offset / REISER4_BLOCK_SIZE);
}

enum place { PLACE_NONE, PLACE_NEW, PLACE_OLD /* which the newest commit has */ };

/* What places the first of the blocks [at, end) have, and how many the same; *block: the first's.
 */
static int find_places(struct inode *inode, uint64_t at, uint64_t end, enum place *place,
                       uint64_t *block, uint64_t *count) {
    const struct reiser4 *r4 = reiser4_of(inode->volume);
    struct reiser4_extent extent;
    int error = reiser4_extent_find(inode, at * REISER4_BLOCK_SIZE, &extent);

    *place = PLACE_NONE;
    *count = end - at;
    if (error)
        return error == -ENOENT ? 0 : error;
    uint64_t first = extent.offset / REISER4_BLOCK_SIZE;
    *block = extent.start + (at - first);
    *count = smaller(*count, first + extent.width - at);
    if (!reiser4_extent_is_allocated(&extent))
        return 0;
    bool new = reiser4_space_is_new(r4, *block);
    for (uint64_t i = 1; i < *count; i++)
        if (reiser4_space_is_new(r4, *block + i) != new)
            *count = i;
    *place = new ? PLACE_NEW : PLACE_OLD;
    return 0;
}

/* Whether blocks that have places keep them, of a run that is stored at once. The driver counts two
 * changed nodes beside it: 61 blocks stay with a threshold of 64, 62 move. */
static bool keeps_place(const struct reiser4 *r4, uint64_t run) {
    if (r4->options.txmod == REISER4_TXMOD_HYBRID)
        return run + 2 < r4->options.relocate_from;
    return r4->options.txmod == REISER4_TXMOD_JOURNAL;
}

/* Gives the first of the blocks [at, at + *count) new places: *count of them. */
static int place_blocks(struct inode *inode, uint64_t at, uint64_t *count) {
    struct reiser4_run run;
    int error =
        reiser4_space_allocate(reiser4_of(inode->volume), hint_for(inode, at), *count, &run);

    if (!error)
        error = reiser4_extent_set(inode, at, at + run.count, run.block);
    if (!error)
        *count = run.count;
    clock_charge(inode->volume->clock, COST_BLOCK_ALLOC, (int64_t)*count);
    return error;
}

static int keep_blocks(struct inode *inode, struct data_cursor *cursor, uint64_t at, uint64_t count,
                       uint64_t block) {
    struct reiser4_kept_set *kept = &reiser4_of(inode->volume)->atom.kept;
    int error = 0;

    for (uint64_t i = 0; i < count && !error; i++) {
        struct iovec piece = data_cursor_at(cursor, (at + i) * REISER4_BLOCK_SIZE);
        error = reiser4_kept_put(kept, block + i, piece.iov_base);
    }
    return error;
}

static int write_blocks(struct inode *inode, struct data_cursor *cursor, uint64_t offset,
                        uint64_t end, struct device_batch *batch) {
    struct iovec vector[PIECES];
    int error = 0;

    while (offset < end && !error) {
        struct data_range part = {.offset = offset, .vector = vector};
        while (offset < end && part.vector_count < PIECES) {
            struct iovec piece = piece_at(cursor, offset, end);
            vector[part.vector_count++] = piece;
            part.length += piece.iov_len;
            offset += piece.iov_len;
        }
        error = mapped_store(inode, &part, batch);
    }
    return error;
}

/* Blocks [from, to) of a body of extents. */
static int store_blocks(struct inode *inode, struct data_cursor *cursor, uint64_t from, uint64_t to,
                        struct device_batch *batch) {
    const bool keep = keeps_place(reiser4_of(inode->volume), to - from);
    uint64_t count, block;
    enum place place;
    int error = 0;

    for (uint64_t at = from; at < to && !error; at += count) {
        error = find_places(inode, at, to, &place, &block, &count);
        if (!error && place == PLACE_OLD && keep) {
            error = keep_blocks(inode, cursor, at, count, block);
            continue;
        }
        if (!error && place != PLACE_NEW)
            error = place_blocks(inode, at, &count);
        if (!error)
            error = write_blocks(inode, cursor, at * REISER4_BLOCK_SIZE,
                                 (at + count) * REISER4_BLOCK_SIZE, batch);
    }
    return error;
}

/* The pending blocks [from, to) of the body. */
static int store_run(struct inode *inode, enum reiser4_form form, struct data_cursor *cursor,
                     uint64_t from, uint64_t to, struct device_batch *batch) {
    int error = form == REISER4_FORM_TAILS
                    ? store_bytes(inode, cursor, from * REISER4_BLOCK_SIZE, to * REISER4_BLOCK_SIZE)
                    : store_blocks(inode, cursor, from, to, batch);

    return error ? error : reiser4_pending_remove(inode, from, to);
}

int reiser4_reg_store(struct inode *inode, const struct data_range *range,
                      struct device_batch *batch) {
    struct reiser4_inode *private = reiser4_inode_of(inode);
    struct data_cursor cursor = data_cursor_of(range);
    uint64_t at = range->offset / REISER4_BLOCK_SIZE, start, stop;
    uint64_t end =
        smaller((range->offset + range->length) / REISER4_BLOCK_SIZE, blocks_of(inode->size));
    enum reiser4_form form;

    /* A page that was only held ready for a write that was refused is no change. */
    if (!block_set_next(&private->pending_blocks, at, &start, &stop) || start >= end)
        return 0;
    int error = form_for(inode, inode->size, &form);
    while (!error && block_set_next(&private->pending_blocks, at, &start, &stop) && start < end) {
        at = smaller(stop, end);
        error = store_run(inode, form, &cursor, start, at, batch);
    }
    if (!error)
        error = cover(inode, inode->size);
    reiser4_sectors_set(inode);
    return reiser4_fail(reiser4_of(inode->volume), error);
}

/* --- truncate and punch ------------------------------------------------------------------------
 */

/* A block that holds `offset` within it is zeroed in part by the page cache: if there is one, what
 * it is now has to be stored. */
static int edge_pending(struct inode *inode, uint64_t offset) {
    struct reiser4_extent extent;

    if (offset % REISER4_BLOCK_SIZE == 0)
        return 0;
    int error = reiser4_extent_find(inode, offset, &extent);
    if (error || !reiser4_extent_is_allocated(&extent))
        return error == -ENOENT ? 0 : error;
    return reiser4_pending_add(inode, offset / REISER4_BLOCK_SIZE, offset / REISER4_BLOCK_SIZE + 1);
}

static int shrink(struct inode *inode, enum reiser4_form form, uint64_t size) {
    if (form == REISER4_FORM_TAILS)
        return reiser4_tail_cut(inode, size);
    if (form != REISER4_FORM_EXTENTS)
        return 0;
    int error = edge_pending(inode, size);
    return error ? error : reiser4_extent_cut(inode, blocks_of(size));
}

int reiser4_reg_truncate(struct inode *inode, uint64_t size) {
    struct reiser4 *r4 = reiser4_of(inode->volume);
    bool smaller_now = size < inode->size;
    enum reiser4_form form;
    /* What grows in the tree are zeros. */
    uint64_t grows = !smaller_now && reiser4_body_wants_tails(inode, size)
                         ? blocks_of(size - inode->size) + 1
                         : 1;
    int error = ask(inode, grows, smaller_now);

    if (!error)
        error = reiser4_body_form(inode, &form);
    if (error)
        return error;
    error = reiser4_pending_remove(inode, blocks_of(size), UINT64_MAX);
    if (!error && smaller_now)
        error = shrink(inode, form, size);
    if (!error)
        error = cover(inode, size);
    reiser4_sectors_set(inode);
    reiser4_atom_mark(r4);
    return reiser4_fail(r4, error);
}

static int punch(struct inode *inode, enum reiser4_form form, uint64_t offset, uint64_t end) {
    uint64_t from = blocks_of(offset), to = end / REISER4_BLOCK_SIZE, covered = 0;
    uint64_t bytes = reiser4_inode_of(inode)->bytes;
    int error = 0;

    if (form == REISER4_FORM_TAILS) {
        end = smaller(end, bytes);
        error = offset < end ? reiser4_tail_write(inode, offset, end - offset, NULL) : 0;
    } else if (form == REISER4_FORM_EXTENTS) {
        error = edge_pending(inode, offset);
        if (!error)
            error = edge_pending(inode, end);
        if (!error)
            error = reiser4_extent_covered(inode, &covered);
        to = smaller(to, covered);
        if (!error && from < to)
            error = reiser4_extent_set(inode, from, to, REISER4_EXTENT_HOLE);
    }
    return error;
}

int reiser4_reg_punch(struct inode *inode, uint64_t offset, uint64_t length) {
    uint64_t end = length > UINT64_MAX - offset ? UINT64_MAX : offset + length;
    uint64_t from = blocks_of(offset), to = end / REISER4_BLOCK_SIZE;
    enum reiser4_form form;
    int error = ask(inode, 2, true);

    if (!error)
        error = reiser4_body_form(inode, &form);
    if (error)
        return error;
    error = from < to ? reiser4_pending_remove(inode, from, to) : 0;
    if (!error)
        error = punch(inode, form, offset, end);
    if (!error)
        error = cover(inode, inode->size);
    reiser4_sectors_set(inode);
    return reiser4_fail(reiser4_of(inode->volume), error);
}
