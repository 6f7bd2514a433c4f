/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface: fs/crc.h.
 *
 * CRC-32C eight bytes at a time. Where the processor has an instruction for it, that; else eight
 * tables: table k says what a byte does to the register k bytes later ("slicing by 8", Kounavis and
 * Berry 2005).
 *
 * A CRC is linear: what a byte does is the sum (xor) of what its bits do, and what a bit does is
 * the register after a single 1 has been shifted on. So the compiler makes all tables from those 64
 * numbers.
 */
#include "fs/crc.h"

#include <stdbool.h>
#include <string.h>

#include "fs/endian.h"

#define BIT(n, b, value) ((n) >> (b)&1 ? (value) : 0u)
#define ENTRY(n, b0, b1, b2, b3, b4, b5, b6, b7)                                                   \
    (BIT(n, 0, b0) ^ BIT(n, 1, b1) ^ BIT(n, 2, b2) ^ BIT(n, 3, b3) ^ BIT(n, 4, b4) ^               \
     BIT(n, 5, b5) ^ BIT(n, 6, b6) ^ BIT(n, 7, b7))
#define ENTRIES_4(n, ...)                                                                          \
    ENTRY(n, __VA_ARGS__), ENTRY((n) + 1, __VA_ARGS__), ENTRY((n) + 2, __VA_ARGS__),               \
        ENTRY((n) + 3, __VA_ARGS__)
#define ENTRIES_16(n, ...)                                                                         \
    ENTRIES_4(n, __VA_ARGS__), ENTRIES_4((n) + 4, __VA_ARGS__), ENTRIES_4((n) + 8, __VA_ARGS__),   \
        ENTRIES_4((n) + 12, __VA_ARGS__)
#define ENTRIES_64(n, ...)                                                                         \
    ENTRIES_16(n, __VA_ARGS__), ENTRIES_16((n) + 16, __VA_ARGS__),                                 \
        ENTRIES_16((n) + 32, __VA_ARGS__), ENTRIES_16((n) + 48, __VA_ARGS__)
#define ROW(...)                                                                                   \
    {                                                                                              \
        ENTRIES_64(0, __VA_ARGS__), ENTRIES_64(64, __VA_ARGS__), ENTRIES_64(128, __VA_ARGS__),     \
            ENTRIES_64(192, __VA_ARGS__)                                                           \
    }

static const uint32_t crc32c_table[8][256] = {
    ROW(0xF26B8303, 0xE13B70F7, 0xC79A971F, 0x8AD958CF, 0x105EC76F, 0x20BD8EDE, 0x417B1DBC,
        0x82F63B78),
    ROW(0x13A29877, 0x274530EE, 0x4E8A61DC, 0x9D14C3B8, 0x3FC5F181, 0x7F8BE302, 0xFF17C604,
        0xFBC3FAF9),
    ROW(0xA541927E, 0x4F6F520D, 0x9EDEA41A, 0x38513EC5, 0x70A27D8A, 0xE144FB14, 0xC76580D9,
        0x8B277743),
    ROW(0xDD45AAB8, 0xBF672381, 0x7B2231F3, 0xF64463E6, 0xE964B13D, 0xD725148B, 0xABA65FE7,
        0x52A0C93F),
    ROW(0x38116FAC, 0x7022DF58, 0xE045BEB0, 0xC5670B91, 0x8F2261D3, 0x1BA8B557, 0x37516AAE,
        0x6EA2D55C),
    ROW(0xEF306B19, 0xDB8CA0C3, 0xB2F53777, 0x6006181F, 0xC00C303E, 0x85F4168D, 0x0E045BEB,
        0x1C08B7D6),
    ROW(0x68032CC8, 0xD0065990, 0xA5E0C5D1, 0x4E2DFD53, 0x9C5BFAA6, 0x3D5B83BD, 0x7AB7077A,
        0xF56E0EF4),
    ROW(0x493C7D27, 0x9278FA4E, 0x211D826D, 0x423B04DA, 0x847609B4, 0x0D006599, 0x1A00CB32,
        0x34019664),
};

static inline uint64_t word_load(const uint8_t *bytes) {
    le64 word;

    memcpy(&word, bytes, sizeof(word));
    return le64_load(word);
}

uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t length) {
    const uint8_t *bytes = data;

    for (; length >= 8; bytes += 8, length -= 8) {
        uint64_t word = word_load(bytes) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= crc32c_table[7 - i][word >> 8 * i & 0xFF];
    }
    for (; length > 0; bytes++, length--)
        crc = crc >> 8 ^ crc32c_table[0][(crc ^ *bytes) & 0xFF];
    return crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *data,
                                                               size_t length) {
    const uint8_t *bytes = data;
    uint64_t wide = crc;

    for (; length >= 8; bytes += 8, length -= 8)
        wide = __builtin_ia32_crc32di(wide, word_load(bytes));
    crc = (uint32_t)wide;
    for (; length > 0; bytes++, length--)
        crc = __builtin_ia32_crc32qi(crc, *bytes);
    return crc;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t length) {
    return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(crc, data, length)
                                            : crc32c_by_table(crc, data, length);
}

#else

uint32_t crc32c(uint32_t crc, const void *data, size_t length) {
    return crc32c_by_table(crc, data, length);
}

#endif

uint32_t crc32_be(uint32_t crc, const void *data, size_t length) {
    static const uint32_t table[256] = ROW(0x04C11DB7, 0x09823B6E, 0x130476DC, 0x2608EDB8,
                                           0x4C11DB70, 0x9823B6E0, 0x34867077, 0x690CE0EE);
    const uint8_t *bytes = data;

    for (; length > 0; bytes++, length--)
        crc = crc << 8 ^ table[crc >> 24 ^ *bytes];
    return crc;
}
