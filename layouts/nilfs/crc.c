/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/crc.h.
 *
 * The polynomial is that of zlib's CRC-32, which inverts the register before and after.
 */
#include "layouts/nilfs/crc.h"

#include <libdeflate.h>
#include <zlib.h>

uint32_t nilfs_crc(uint32_t start, const void *data, size_t length) {
    return ~libdeflate_crc32(~start, data, length);
}

/* What `a` is worth after length_b more bytes of zeros, and what b alone is worth, add up; the
 * inversions of zlib cancel each other out in that. */
uint32_t nilfs_crc_join(uint32_t a, uint32_t b, uint64_t length_b) {
    return (uint32_t)crc32_combine(a, b, (z_off_t)length_b);
}
