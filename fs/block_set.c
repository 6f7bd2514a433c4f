/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface and invariants: fs/block_set.h.
 */
#include "fs/block_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/bitmap.h"

#define CHUNK_BITS 4096u

struct block_set_chunk {
    uint64_t number; /* its first block / CHUNK_BITS */
    uint32_t count;  /* of bits that are set */
    uint64_t bits[CHUNK_BITS / 64];
};

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* --- chunks ----------------------------------------------------------------------------------- */

/* The place of the first chunk of this number or a higher one. */
static uint32_t chunk_place(const struct block_set *set, uint64_t number) {
    uint32_t low = 0, high = set->chunk_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (set->chunks[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool chunk_is(const struct block_set *set, uint32_t place, uint64_t number) {
    return place < set->chunk_count && set->chunks[place]->number == number;
}

static int chunk_insert(struct block_set *set, uint32_t place, uint64_t number) {
    if (set->chunk_count == set->chunk_room) {
        uint32_t room = set->chunk_room ? set->chunk_room * 2 : 4;
        struct block_set_chunk **chunks =
            reallocarray((void *)set->chunks, room, sizeof(struct block_set_chunk *));
        if (!chunks)
            return -ENOMEM;
        set->chunks = chunks;
        set->chunk_room = room;
    }
    struct block_set_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return -ENOMEM;
    chunk->number = number;
    struct block_set_chunk **at = set->chunks + place;
    memmove((void *)(at + 1), (const void *)at,
            (set->chunk_count++ - place) * sizeof(struct block_set_chunk *));
    *at = chunk;
    return 0;
}

static void chunk_drop(struct block_set *set, uint32_t place) {
    struct block_set_chunk **at = set->chunks + place;
    free(*at);
    memmove((void *)at, (const void *)(at + 1),
            (--set->chunk_count - place) * sizeof(struct block_set_chunk *));
}

static void chunks_free(struct block_set *set) {
    while (set->chunk_count > 0)
        chunk_drop(set, set->chunk_count - 1);
    free((void *)set->chunks);
    set->chunks = NULL;
    set->chunk_room = 0;
}

/* Chunks for all of [start, end). */
static int chunks_make(struct block_set *set, uint64_t start, uint64_t end) {
    for (uint64_t number = start / CHUNK_BITS; number <= (end - 1) / CHUNK_BITS; number++) {
        uint32_t place = chunk_place(set, number);
        int rc = chunk_is(set, place, number) ? 0 : chunk_insert(set, place, number);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void chunks_drop_empty(struct block_set *set) {
    for (uint32_t place = set->chunk_count; place-- > 0;)
        if (set->chunks[place]->count == 0)
            chunk_drop(set, place);
    if (set->chunk_count == 0)
        chunks_free(set);
}

/* Sets or clears [start, end) in the chunks that are there. */
static void chunks_fill(struct block_set *set, uint64_t start, uint64_t end, bool value) {
    bool emptied = false;
    for (uint32_t place = chunk_place(set, start / CHUNK_BITS); place < set->chunk_count; place++) {
        struct block_set_chunk *chunk = set->chunks[place];
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
        chunks_drop_empty(set);
}

static bool chunks_next(const struct block_set *set, uint64_t from, uint64_t *start,
                        uint64_t *end) {
    uint32_t place = chunk_place(set, from / CHUNK_BITS), bit = CHUNK_BITS;
    for (; place < set->chunk_count; place++) {
        uint64_t first = set->chunks[place]->number * CHUNK_BITS;
        bit = bitmap_find_set(set->chunks[place]->bits, from > first ? (uint32_t)(from - first) : 0,
                              CHUNK_BITS);
        if (bit < CHUNK_BITS)
            break;
    }
    if (place == set->chunk_count)
        return false;
    uint64_t number = set->chunks[place]->number;
    *start = number * CHUNK_BITS + bit;
    bit = bitmap_find_clear(set->chunks[place]->bits, bit, CHUNK_BITS);
    *end = number * CHUNK_BITS + bit;
    while (bit == CHUNK_BITS && chunk_is(set, ++place, ++number)) {
        bit = bitmap_find_clear(set->chunks[place]->bits, 0, CHUNK_BITS);
        *end += bit;
    }
    return true;
}

/* --- the set ---------------------------------------------------------------------------------- */

bool block_set_next(const struct block_set *set, uint64_t from, uint64_t *start, uint64_t *end) {
    if (set->chunks)
        return chunks_next(set, from, start, end);
    *start = from > set->start ? from : set->start;
    *end = set->end;
    return *start < *end;
}

static bool set_holds(const struct block_set *set, uint64_t block) {
    uint64_t start, end;
    return block_set_next(set, block, &start, &end) && start == block;
}

/* Blocks and runs of the set that lie in [from, to); a run reaching out of it counts, too. */
static uint64_t set_count(const struct block_set *set, uint64_t from, uint64_t to, uint64_t *runs) {
    uint64_t start, end, blocks = 0;
    *runs = 0;
    while (from < to && block_set_next(set, from, &start, &end) && start < to) {
        end = smaller(end, to);
        blocks += end - start;
        (*runs)++;
        from = end;
    }
    return blocks;
}

/* From one run to bits. */
static int set_scatter(struct block_set *set) {
    uint64_t start = set->start, end = set->end;
    if (set->chunks || start == end)
        return 0;
    int rc = chunks_make(set, start, end);
    if (rc < 0) {
        chunks_free(set);
        return rc;
    }
    chunks_fill(set, start, end, true);
    set->start = set->end = 0;
    return 0;
}

int block_set_add(struct block_set *set, uint64_t start, uint64_t end) {
    uint64_t runs;
    if (!set->chunks && set->start == set->end)
        set->start = set->end = start;
    if (!set->chunks && start <= set->end && end >= set->start) {
        set->start = smaller(set->start, start);
        set->end = end > set->end ? end : set->end;
        set->blocks = set->end - set->start;
        set->runs = 1;
        return 0;
    }
    int rc = set_scatter(set);
    if (rc == 0)
        rc = chunks_make(set, start, end);
    if (rc < 0) {
        if (set->chunks)
            chunks_drop_empty(set);
        return rc;
    }
    uint64_t present = set_count(set, start, end, &runs);
    /* Runs that touch the new one, from either side, become one with it. */
    uint64_t before = start > 0 && set_holds(set, start - 1) ? start - 1 : start;
    (void)set_count(set, before, end + 1, &runs);
    set->blocks += end - start - present;
    set->runs = set->runs + 1 - runs;
    chunks_fill(set, start, end, true);
    return 0;
}

int block_set_remove(struct block_set *set, uint64_t start, uint64_t end) {
    uint64_t runs, present = set_count(set, start, end, &runs);
    if (present == 0)
        return 0;
    bool left = start > 0 && set_holds(set, start - 1) && set_holds(set, start);
    bool right = set_holds(set, end - 1) && set_holds(set, end);
    if (!set->chunks && left && right) {
        int rc = set_scatter(set);
        if (rc < 0)
            return rc;
    }
    set->blocks -= present;
    set->runs = set->runs - runs + left + right;
    if (set->chunks)
        chunks_fill(set, start, end, false);
    else if (left)
        set->end = start;
    else
        set->start = smaller(end, set->end);
    return 0;
}

void block_set_clear(struct block_set *set) {
    chunks_free(set);
    *set = (struct block_set){0};
}
