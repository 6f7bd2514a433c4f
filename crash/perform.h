/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash, over fs/volume.h. Doing a workload's operations to a volume.
 */
#ifndef LAYOUTFS_CRASH_PERFORM_H
#define LAYOUTFS_CRASH_PERFORM_H

#include "crash/sequence.h"
#include "fs/volume.h"

/* Free blocks of the volume that all start from hold this byte; nothing writes it to a file. */
#define POISON 0xA5

/* The byte at `offset` of what operation `number` writes: printable. */
unsigned char pattern_byte(unsigned number, uint64_t offset);
/* Does operation `number`. 0, or the negative errno that a program would get. */
int perform(struct volume *volume, const struct op *op, unsigned number);
/* Makes what is there from the start. */
int perform_setup(struct volume *volume, const struct workload *workload);
/* Makes a file with `length` bytes of operation `number`'s pattern at `path`. */
int perform_make_file(struct volume *volume, const char *path, uint32_t length, unsigned number);
/* Writes poison to all free space, and frees it again. */
int perform_poison(struct volume *volume);

#endif
