/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext. Interface and invariants: layouts/ext/pending.h.
 */
#include "layouts/ext/pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/ext/bitmap.h"

#define CHUNK_BITS 4096u

struct pending_chunk {
    uint64_t number; /* its first block / CHUNK_BITS */
    uint32_t count;  /* of bits that are set */
    uint64_t bits[CHUNK_BITS / 64];
};

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* --- chunks ----------------------------------------------------------------------------------- */

/* The place of the first chunk of this number or a higher one. */
static uint32_t chunk_place(const struct ext_pending *pending, uint64_t number) {
    uint32_t low = 0, high = pending->chunk_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (pending->chunks[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool chunk_is(const struct ext_pending *pending, uint32_t place, uint64_t number) {
    return place < pending->chunk_count && pending->chunks[place]->number == number;
}

static int chunk_insert(struct ext_pending *pending, uint32_t place, uint64_t number) {
    if (pending->chunk_count == pending->chunk_room) {
        uint32_t room = pending->chunk_room ? pending->chunk_room * 2 : 4;
        struct pending_chunk **chunks =
            reallocarray((void *)pending->chunks, room, sizeof(struct pending_chunk *));
        if (!chunks)
            return -ENOMEM;
        pending->chunks = chunks;
        pending->chunk_room = room;
    }
    struct pending_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return -ENOMEM;
    chunk->number = number;
    struct pending_chunk **at = pending->chunks + place;
    memmove((void *)(at + 1), (const void *)at,
            (pending->chunk_count++ - place) * sizeof(struct pending_chunk *));
    *at = chunk;
    return 0;
}

static void chunk_drop(struct ext_pending *pending, uint32_t place) {
    struct pending_chunk **at = pending->chunks + place;
    free(*at);
    memmove((void *)at, (const void *)(at + 1),
            (--pending->chunk_count - place) * sizeof(struct pending_chunk *));
}

static void chunks_free(struct ext_pending *pending) {
    while (pending->chunk_count > 0)
        chunk_drop(pending, pending->chunk_count - 1);
    free((void *)pending->chunks);
    pending->chunks = NULL;
    pending->chunk_room = 0;
}

/* Chunks for all of [start, end). */
static int chunks_make(struct ext_pending *pending, uint64_t start, uint64_t end) {
    for (uint64_t number = start / CHUNK_BITS; number <= (end - 1) / CHUNK_BITS; number++) {
        uint32_t place = chunk_place(pending, number);
        int rc = chunk_is(pending, place, number) ? 0 : chunk_insert(pending, place, number);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void chunks_drop_empty(struct ext_pending *pending) {
    for (uint32_t place = pending->chunk_count; place-- > 0;)
        if (pending->chunks[place]->count == 0)
            chunk_drop(pending, place);
    if (pending->chunk_count == 0)
        chunks_free(pending);
}

/* Sets or clears [start, end) in the chunks that are there. */
static void chunks_fill(struct ext_pending *pending, uint64_t start, uint64_t end, bool value) {
    bool emptied = false;
    for (uint32_t place = chunk_place(pending, start / CHUNK_BITS); place < pending->chunk_count;
         place++) {
        struct pending_chunk *chunk = pending->chunks[place];
        uint64_t first = chunk->number * CHUNK_BITS;
        if (first >= end)
            break;
        uint32_t from = start > first ? (uint32_t)(start - first) : 0;
        uint32_t to = (uint32_t)smaller(end - first, CHUNK_BITS);
        bitmap_fill(chunk->bits, from, to - from, value);
        chunk->count = CHUNK_BITS - bitmap_count_clear(chunk->bits, CHUNK_BITS);
        emptied = emptied || chunk->count == 0;
    }
    if (emptied)
        chunks_drop_empty(pending);
}

static bool chunks_next(const struct ext_pending *pending, uint64_t from, uint64_t *start,
                        uint64_t *end) {
    uint32_t place = chunk_place(pending, from / CHUNK_BITS), bit = CHUNK_BITS;
    for (; place < pending->chunk_count; place++) {
        uint64_t first = pending->chunks[place]->number * CHUNK_BITS;
        bit = bitmap_find_set(pending->chunks[place]->bits,
                              from > first ? (uint32_t)(from - first) : 0, CHUNK_BITS);
        if (bit < CHUNK_BITS)
            break;
    }
    if (place == pending->chunk_count)
        return false;
    uint64_t number = pending->chunks[place]->number;
    *start = number * CHUNK_BITS + bit;
    bit = bitmap_find_clear(pending->chunks[place]->bits, bit, CHUNK_BITS);
    *end = number * CHUNK_BITS + bit;
    while (bit == CHUNK_BITS && chunk_is(pending, ++place, ++number)) {
        bit = bitmap_find_clear(pending->chunks[place]->bits, 0, CHUNK_BITS);
        *end += bit;
    }
    return true;
}

/* --- the set ---------------------------------------------------------------------------------- */

bool ext_pending_next(const struct ext_pending *pending, uint64_t from, uint64_t *start,
                      uint64_t *end) {
    if (pending->chunks)
        return chunks_next(pending, from, start, end);
    *start = from > pending->start ? from : pending->start;
    *end = pending->end;
    return *start < *end;
}

static bool set_holds(const struct ext_pending *pending, uint64_t block) {
    uint64_t start, end;
    return ext_pending_next(pending, block, &start, &end) && start == block;
}

/* Blocks and runs of the set that lie in [from, to); a run reaching out of it counts, too. */
static uint64_t set_count(const struct ext_pending *pending, uint64_t from, uint64_t to,
                          uint64_t *runs) {
    uint64_t start, end, blocks = 0;
    *runs = 0;
    while (from < to && ext_pending_next(pending, from, &start, &end) && start < to) {
        end = smaller(end, to);
        blocks += end - start;
        (*runs)++;
        from = end;
    }
    return blocks;
}

/* From one run to bits. */
static int set_scatter(struct ext_pending *pending) {
    uint64_t start = pending->start, end = pending->end;
    if (pending->chunks || start == end)
        return 0;
    int rc = chunks_make(pending, start, end);
    if (rc < 0) {
        chunks_free(pending);
        return rc;
    }
    chunks_fill(pending, start, end, true);
    pending->start = pending->end = 0;
    return 0;
}

int ext_pending_add(struct ext_pending *pending, uint64_t start, uint64_t end) {
    uint64_t runs;
    if (!pending->chunks && pending->start == pending->end)
        pending->start = pending->end = start;
    if (!pending->chunks && start <= pending->end && end >= pending->start) {
        pending->start = smaller(pending->start, start);
        pending->end = end > pending->end ? end : pending->end;
        pending->blocks = pending->end - pending->start;
        pending->runs = 1;
        return 0;
    }
    int rc = set_scatter(pending);
    if (rc == 0)
        rc = chunks_make(pending, start, end);
    if (rc < 0) {
        if (pending->chunks)
            chunks_drop_empty(pending);
        return rc;
    }
    uint64_t present = set_count(pending, start, end, &runs);
    /* Runs that touch the new one, from either side, become one with it. */
    uint64_t before = start > 0 && set_holds(pending, start - 1) ? start - 1 : start;
    (void)set_count(pending, before, end + 1, &runs);
    pending->blocks += end - start - present;
    pending->runs = pending->runs + 1 - runs;
    chunks_fill(pending, start, end, true);
    return 0;
}

int ext_pending_remove(struct ext_pending *pending, uint64_t start, uint64_t end) {
    uint64_t runs, present = set_count(pending, start, end, &runs);
    if (present == 0)
        return 0;
    bool left = start > 0 && set_holds(pending, start - 1) && set_holds(pending, start);
    bool right = set_holds(pending, end - 1) && set_holds(pending, end);
    if (!pending->chunks && left && right) {
        int rc = set_scatter(pending);
        if (rc < 0)
            return rc;
    }
    pending->blocks -= present;
    pending->runs = pending->runs - runs + left + right;
    if (pending->chunks)
        chunks_fill(pending, start, end, false);
    else if (left)
        pending->end = start;
    else
        pending->start = smaller(end, pending->end);
    return 0;
}

void ext_pending_clear(struct ext_pending *pending) {
    chunks_free(pending);
    *pending = (struct ext_pending){0};
}
