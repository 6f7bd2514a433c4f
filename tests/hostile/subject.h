/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: what single formats need to be damaged well.
 */
#ifndef LAYOUTFS_TEST_HOSTILE_SUBJECT_H
#define LAYOUTFS_TEST_HOSTILE_SUBJECT_H

#include <stdint.h>

struct volume;

/* Seals every structure of the image that can still be found, whatever it says now. */
void ext_repair(uint8_t *image, uint64_t size);
void nilfs_repair(uint8_t *image, uint64_t size);
void reiser4_repair(uint8_t *image, uint64_t size);

/* A place in the block, and how many bytes of the same structure are there; NULL: none is known. */
uint8_t *reiser4_place(uint8_t *block, uint64_t *random, uint32_t *room);
/* Puts into the sound volume what the file API alone does not make. */
void reiser4_fill(struct volume *volume);
/* The image, whose newest transaction is in place, says that it is in the log only. */
void reiser4_leave_log(uint8_t *image);

#endif
