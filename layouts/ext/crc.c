/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, the bottom. Interface: layouts/ext/crc.h.
 */
#include "layouts/ext/crc.h"

/* Only group descriptors have it, some 60 bytes each: bit by bit will do. */
uint16_t ext_crc16(uint16_t crc, const void *data, size_t length) {
    const uint8_t *bytes = data;

    for (; length > 0; bytes++, length--) {
        crc ^= *bytes;
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc >> 1 ^ (crc & 1 ? 0xA001u : 0u));
    }
    return crc;
}
