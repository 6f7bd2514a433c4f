/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext. The hashes that order the names of an indexed directory.
 *
 * Sources: RFC 1320 for MD4's round functions F, G, H, its constants and its starting state;
 * Wheeler and Needham, "TEA, a Tiny Encryption Algorithm"; the Linux kernel's
 * Documentation/filesystems/ext4/directory.rst for which of them a directory uses. "Half" MD4 takes
 * 8 words instead of 16, so each round has 8 steps.
 *
 * Invariants:
 *  1. The low bit of a major hash is clear: in an index it means "continues the block before".
 *  2. The largest major hash is never given out: to Linux it stands for the end of a directory.
 */
#include <stdbool.h>

#include "layouts/ext/ext.h"

#define HASH_WORDS_MAX 8u
#define HASH_END       0xFFFFFFFEu

static inline uint32_t hash_rotate(uint32_t value, unsigned bits) {
    return value << bits | value >> (32 - bits);
}

/* A byte of a name, widened as the machine that made the volume did it. */
static inline uint32_t hash_byte(char c, bool is_unsigned) {
    return is_unsigned ? (uint32_t)(unsigned char)c : (uint32_t)(int32_t)(signed char)c;
}

/* Packs the next 4 * count bytes of a name into words, first byte highest. What the name does not
 * fill holds its remaining length in every byte. */
static inline void hash_load_words(const char *name, uint32_t length, bool is_unsigned,
                                   uint32_t *words, uint32_t count) {
    uint32_t padding = length * 0x01010101u;
    uint32_t used = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = padding;
        for (uint32_t end = used + 4; used < end && used < length; used++)
            word = (word << 8) + hash_byte(name[used], is_unsigned);
        words[i] = word;
    }
}

static void hash_half_md4_block(uint32_t state[4], const uint32_t in[HASH_WORDS_MAX]) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];

#define F(x, y, z)                         ((z) ^ ((x) & ((y) ^ (z))))
#define G(x, y, z)                         (((x) & (y)) | ((z) & ((x) | (y))))
#define H(x, y, z)                         ((x) ^ (y) ^ (z))
#define STEP(f, w, x, y, z, word, k, bits) w = hash_rotate(w + f(x, y, z) + (word) + (k), bits)
/* Four steps, after which a, b, c, d have each been replaced once. */
#define STEPS(f, w1, w2, w3, w4, k, s1, s2, s3, s4)                                                \
    do {                                                                                           \
        STEP(f, a, b, c, d, w1, k, s1);                                                            \
        STEP(f, d, a, b, c, w2, k, s2);                                                            \
        STEP(f, c, d, a, b, w3, k, s3);                                                            \
        STEP(f, b, c, d, a, w4, k, s4);                                                            \
    } while (0)

    STEPS(F, in[0], in[1], in[2], in[3], 0, 3, 7, 11, 19);
    STEPS(F, in[4], in[5], in[6], in[7], 0, 3, 7, 11, 19);
    STEPS(G, in[1], in[3], in[5], in[7], 0x5A827999u, 3, 5, 9, 13);
    STEPS(G, in[0], in[2], in[4], in[6], 0x5A827999u, 3, 5, 9, 13);
    STEPS(H, in[3], in[7], in[2], in[6], 0x6ED9EBA1u, 3, 9, 11, 15);
    STEPS(H, in[1], in[5], in[0], in[4], 0x6ED9EBA1u, 3, 9, 11, 15);
#undef STEPS
#undef STEP
#undef H
#undef G
#undef F

    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

static void hash_tea_block(uint32_t state[4], const uint32_t in[HASH_WORDS_MAX]) {
    uint32_t x = state[0], y = state[1];
    uint32_t sum = 0;

    for (int round = 0; round < 16; round++) {
        sum += 0x9E3779B9u;
        x += ((y << 4) + in[0]) ^ (y + sum) ^ ((y >> 5) + in[1]);
        y += ((x << 4) + in[2]) ^ (x + sum) ^ ((x >> 5) + in[3]);
    }
    state[0] += x;
    state[1] += y;
}

static uint32_t hash_legacy(const char *name, uint32_t length, bool is_unsigned) {
    uint32_t last = 0x12A3FE2Du, before = 0x37ABE8F9u;

    for (uint32_t i = 0; i < length; i++) {
        uint32_t hash = before + (last ^ (hash_byte(name[i], is_unsigned) * 7152373u));
        if (hash & 0x80000000u)
            hash -= 0x7FFFFFFFu;
        before = last;
        last = hash;
    }
    return last << 1;
}

/* Runs `mix` over the name, `count` words at a time. */
static inline void hash_mix(const char *name, uint32_t length, bool is_unsigned, uint32_t count,
                            void (*mix)(uint32_t *, const uint32_t *), uint32_t state[4]) {
    uint32_t words[HASH_WORDS_MAX];

    for (uint32_t done = 0; done < length; done += count * 4) {
        hash_load_words(name + done, length - done, is_unsigned, words, count);
        mix(state, words);
    }
}

void ext_hash_name(const char *name, uint32_t length, enum ext_hash_version version,
                   const uint32_t seed[4], uint32_t *major, uint32_t *minor) {
    uint32_t state[4] = {0x67452301u, 0xEFCDAB89u, 0x98BADCFEu, 0x10325476u};
    bool is_unsigned = version >= EXT_HASH_LEGACY_UNSIGNED;

    if (seed[0] | seed[1] | seed[2] | seed[3])
        for (int i = 0; i < 4; i++)
            state[i] = seed[i];

    switch (version) {
    case EXT_HASH_HALF_MD4:
    case EXT_HASH_HALF_MD4_UNSIGNED:
        hash_mix(name, length, is_unsigned, 8, hash_half_md4_block, state);
        *major = state[1];
        *minor = state[2];
        break;
    case EXT_HASH_TEA:
    case EXT_HASH_TEA_UNSIGNED:
        hash_mix(name, length, is_unsigned, 4, hash_tea_block, state);
        *major = state[0];
        *minor = state[1];
        break;
    case EXT_HASH_LEGACY:
    case EXT_HASH_LEGACY_UNSIGNED:
        *major = hash_legacy(name, length, is_unsigned);
        *minor = 0;
        break;
    }
    *major &= ~1u;
    if (*major == HASH_END)
        *major -= 2;
}
