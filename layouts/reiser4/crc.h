/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, the bottom. The format's checksums: CRC-32C (reflected polynomial
 * 0x82F63B78, from ~0, without a final inversion) of nodes, and Adler-32 (RFC 1950) of bitmaps.
 */
#ifndef LAYOUTFS_REISER4_CRC_H
#define LAYOUTFS_REISER4_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Start with UINT32_MAX; crc(crc(start, a), b) is that of a and b in one piece. */
uint32_t reiser4_crc32c(uint32_t start, const void *data, size_t length);
uint32_t reiser4_adler32(const void *data, size_t length);

#endif
