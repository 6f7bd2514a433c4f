/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (no dependencies). Cyclic redundancy checks that several formats have, as plain
 * continuations: no inversion before or after, so that crc(crc(start, a), b) is that of a and b in
 * one piece.
 */
#ifndef LAYOUTFS_CRC_H
#define LAYOUTFS_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Castagnoli's polynomial, bit-reversed 0x82F63B78 (RFC 3720 appendix B.4). */
uint32_t crc32c(uint32_t crc, const void *data, size_t length);
/* The same without the processor's instruction, for the test that both agree. */
uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t length);
/* IEEE 802.3's polynomial 0x04C11DB7, highest bit first ("CRC-32/BZIP2" before its last
 * inversion). */
uint32_t crc32_be(uint32_t crc, const void *data, size_t length);

#endif
