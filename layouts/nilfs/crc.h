/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the bottom. The format's checksum: CRC-32 with the reflected polynomial
 * 0xEDB88320, the start as it is, without a final inversion.
 */
#ifndef LAYOUTFS_NILFS_CRC_H
#define LAYOUTFS_NILFS_CRC_H

#include <stddef.h>
#include <stdint.h>

/* crc(crc(start, a), b) is that of a and b in one piece. */
uint32_t nilfs_crc(uint32_t start, const void *data, size_t length);
/* That of a and b in one piece, from that of `a` with its start and that of `b` with start 0. */
uint32_t nilfs_crc_join(uint32_t a, uint32_t b, uint64_t length_b);

#endif
