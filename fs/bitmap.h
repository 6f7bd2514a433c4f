/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (no dependencies). Bit arrays as they lie on disk: bit n is bit n % 8 of byte
 * n / 8, which read as little-endian words of 64 bits is bit n % 64 of word n / 64.
 *
 * Invariant: the memory behind a bitmap is a whole number of 64-bit words (a block is), so that a
 * scan may look at the whole word that holds its last bit.
 */
#ifndef LAYOUTFS_BITMAP_H
#define LAYOUTFS_BITMAP_H

#include <stdbool.h>
#include <string.h>

#include "fs/endian.h"

static inline uint64_t bitmap_word(const void *bitmap, uint32_t word) {
    return le64_load(((const le64 *)bitmap)[word]);
}

static inline bool bitmap_test(const void *bitmap, uint32_t bit) {
    return ((const uint8_t *)bitmap)[bit / 8] >> (bit % 8) & 1;
}

/* The lowest bit in [from, to) whose word, flipped with `flip`, is set there; `to`: none. */
static inline uint32_t bitmap_scan(const void *bitmap, uint32_t from, uint32_t to, uint64_t flip) {
    if (from >= to)
        return to;
    uint32_t word = from / 64;
    uint64_t bits = (bitmap_word(bitmap, word) ^ flip) & (UINT64_MAX << (from % 64));
    while (bits == 0) {
        if (++word * 64 >= to)
            return to;
        bits = bitmap_word(bitmap, word) ^ flip;
    }
    uint32_t found = word * 64 + (uint32_t)__builtin_ctzll(bits);
    return found < to ? found : to;
}

static inline uint32_t bitmap_find_clear(const void *bitmap, uint32_t from, uint32_t to) {
    return bitmap_scan(bitmap, from, to, UINT64_MAX);
}

static inline uint32_t bitmap_find_set(const void *bitmap, uint32_t from, uint32_t to) {
    return bitmap_scan(bitmap, from, to, 0);
}

/* The first bit of the lowest all-clear byte that lies wholly in [from, to); `to`: none. */
static inline uint32_t bitmap_find_clear_byte(const void *bitmap, uint32_t from, uint32_t to) {
    const uint64_t ones = 0x0101010101010101u;
    uint32_t byte = (from + 7) / 8, end = to / 8;
    const uint8_t *bytes = bitmap;

    for (; byte < end && byte % 8 != 0; byte++)
        if (bytes[byte] == 0)
            return byte * 8;
    for (; byte < end; byte += 8) {
        uint64_t word = bitmap_word(bitmap, byte / 8);
        /* A byte's top bit comes out set where the byte is zero; the lowest one is exact, since
         * borrows run upwards only. */
        uint64_t zero = (word - ones) & ~word & ones << 7;
        if (zero != 0) {
            byte += (uint32_t)__builtin_ctzll(zero) / 8;
            return byte < end ? byte * 8 : to;
        }
    }
    return to;
}

static inline uint32_t bitmap_count_clear(const void *bitmap, uint32_t bits) {
    uint32_t clear = 0, word;
    for (word = 0; word < bits / 64; word++)
        clear += (uint32_t)__builtin_popcountll(~bitmap_word(bitmap, word));
    if (bits % 64)
        clear += (uint32_t)__builtin_popcountll(~bitmap_word(bitmap, word) &
                                                ((UINT64_C(1) << bits % 64) - 1));
    return clear;
}

static inline void bitmap_fill(void *bitmap, uint32_t from, uint32_t count, bool value) {
    uint8_t *bytes = bitmap;
    for (; count > 0 && (from % 8 != 0 || count < 8); from++, count--) {
        uint8_t mask = (uint8_t)(1u << from % 8);
        bytes[from / 8] = (uint8_t)(value ? bytes[from / 8] | mask : bytes[from / 8] & ~mask);
    }
    if (count == 0)
        return;
    memset(bytes + from / 8, value ? 0xFF : 0, count / 8);
    if (count % 8)
        bitmap_fill(bitmap, from + count / 8 * 8, count % 8, value);
}

static inline void bitmap_set(void *bitmap, uint32_t from, uint32_t count) {
    bitmap_fill(bitmap, from, count, true);
}

static inline void bitmap_clear(void *bitmap, uint32_t from, uint32_t count) {
    bitmap_fill(bitmap, from, count, false);
}

#endif
