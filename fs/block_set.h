/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (over fs/bitmap.h only): a set of logical blocks of one file. Used by layouts that only
 * promise blocks when a program writes.
 *
 * Most files are written from one end to the other, so most sets are one run, kept in the structure
 * itself; anything else is kept as bits, in chunks that exist only where there are blocks.
 *
 * Invariants:
 *  1. chunks NULL: the set is [start, end), empty when they are equal; else start and end are 0.
 *  2. Chunks ascend by number, and none is empty.
 *  3. blocks and runs (maximal ones) are those of the set at all times.
 */
#ifndef LAYOUTFS_BLOCK_SET_H
#define LAYOUTFS_BLOCK_SET_H

#include <stdbool.h>
#include <stdint.h>

struct block_set_chunk;

struct block_set {
    uint64_t start, end;
    uint64_t blocks, runs;
    struct block_set_chunk **chunks; /* owned */
    uint32_t chunk_count, chunk_room;
};

/* Adds or takes away [start, end), start < end, whatever of it is in the set. -ENOMEM: nothing has
 * changed but, when adding, blocks of [start, end) that may be in the set already. */
int block_set_add(struct block_set *set, uint64_t start, uint64_t end);
int block_set_remove(struct block_set *set, uint64_t start, uint64_t end);
/* The first run at or after `from`, cut to what lies there. False: there is none. */
bool block_set_next(const struct block_set *set, uint64_t from, uint64_t *start, uint64_t *end);
/* Empties the set. */
void block_set_clear(struct block_set *set);

#endif
