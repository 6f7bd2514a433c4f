/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, the bottom. The cyclic redundancy checks of the format, as plain
 * continuations: those of fs/crc.h, and one of 16 bits. The format starts with all ones.
 */
#ifndef LAYOUTFS_EXT_CRC_H
#define LAYOUTFS_EXT_CRC_H

#include "fs/crc.h"

#define EXT_CRC_START UINT32_MAX

/* x^16 + x^15 + x^2 + 1, bit-reversed 0xA001 ("CRC-16/ARC"). */
uint16_t ext_crc16(uint16_t crc, const void *data, size_t length);

#endif
