/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: damaged images whose checksums are right again, one function a format.
 */
#ifndef LAYOUTFS_TEST_HOSTILE_REPAIR_H
#define LAYOUTFS_TEST_HOSTILE_REPAIR_H

#include <stdint.h>

/* Seals every structure of the image that can still be found, whatever it says now. */
void ext_repair(uint8_t *image, uint64_t size);
void nilfs_repair(uint8_t *image, uint64_t size);

#endif
