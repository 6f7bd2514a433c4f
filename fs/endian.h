/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (no dependencies).
 * Little-endian integers as they lie on disk. A field of an on-disk structure has one of these
 * types, so that it has no alignment and cannot be used as a number without saying so.
 */
#ifndef LAYOUTFS_ENDIAN_H
#define LAYOUTFS_ENDIAN_H

#include <stdint.h>

typedef struct {
    uint8_t byte[2];
} le16;
typedef struct {
    uint8_t byte[4];
} le32;
typedef struct {
    uint8_t byte[8];
} le64;

static inline uint16_t le16_load(le16 v) {
    return (uint16_t)(v.byte[0] | v.byte[1] << 8);
}

static inline uint32_t le32_load(le32 v) {
    return (uint32_t)v.byte[0] | (uint32_t)v.byte[1] << 8 | (uint32_t)v.byte[2] << 16 |
           (uint32_t)v.byte[3] << 24;
}

static inline uint64_t le64_load(le64 v) {
    uint64_t low = (uint32_t)v.byte[0] | (uint32_t)v.byte[1] << 8 | (uint32_t)v.byte[2] << 16 |
                   (uint32_t)v.byte[3] << 24;
    uint64_t high = (uint32_t)v.byte[4] | (uint32_t)v.byte[5] << 8 | (uint32_t)v.byte[6] << 16 |
                    (uint32_t)v.byte[7] << 24;
    return low | high << 32;
}

static inline void le16_store(le16 *p, uint16_t v) {
    p->byte[0] = (uint8_t)v;
    p->byte[1] = (uint8_t)(v >> 8);
}

static inline void le32_store(le32 *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p->byte[i] = (uint8_t)(v >> (8 * i));
}

static inline void le64_store(le64 *p, uint64_t v) {
    for (int i = 0; i < 8; i++)
        p->byte[i] = (uint8_t)(v >> (8 * i));
}

/* Big-endian, as a journal has it. */
typedef struct {
    uint8_t byte[2];
} be16;
typedef struct {
    uint8_t byte[4];
} be32;
typedef struct {
    uint8_t byte[8];
} be64;

static inline uint16_t be16_load(be16 v) {
    return (uint16_t)(v.byte[0] << 8 | v.byte[1]);
}

static inline uint32_t be32_load(be32 v) {
    return (uint32_t)v.byte[0] << 24 | (uint32_t)v.byte[1] << 16 | (uint32_t)v.byte[2] << 8 |
           (uint32_t)v.byte[3];
}

static inline uint64_t be64_load(be64 v) {
    uint64_t high = be32_load((be32){{v.byte[0], v.byte[1], v.byte[2], v.byte[3]}});
    return high << 32 | be32_load((be32){{v.byte[4], v.byte[5], v.byte[6], v.byte[7]}});
}

static inline void be16_store(be16 *p, uint16_t v) {
    p->byte[0] = (uint8_t)(v >> 8);
    p->byte[1] = (uint8_t)v;
}

static inline void be32_store(be32 *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p->byte[i] = (uint8_t)(v >> (24 - 8 * i));
}

static inline void be64_store(be64 *p, uint64_t v) {
    for (int i = 0; i < 8; i++)
        p->byte[i] = (uint8_t)(v >> (56 - 8 * i));
}

#endif
