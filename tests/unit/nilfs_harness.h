/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests of layouts/nilfs below the checkpoint: the four metadata files of a fresh volume over a
 * memory device, without super blocks, logs and a mounted volume. A checkpoint here only gives each
 * changed block its place, one after the other, and writes it.
 */
#ifndef LAYOUTFS_TEST_NILFS_HARNESS_H
#define LAYOUTFS_TEST_NILFS_HARNESS_H

#include "layouts/nilfs/cpfile.h"
#include "layouts/nilfs/dat.h"
#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/sufile.h"
#include "tests/unit/fixture.h"

struct nilfs_harness {
    struct clock clock;
    struct log log;
    struct volume volume;
    struct nilfs nilfs;
    uint64_t next_block; /* the next one that gets its place gets this */
};

/* `segments` of 2048 blocks; entry sizes as mkfs has them. All are clean; the checkpoint under
 * construction is 1. Asserts that all goes well, as all of these do. */
void harness_open(struct nilfs_harness *h, uint32_t block_bits, uint64_t segments);
void harness_close(struct nilfs_harness *h);
/* All changed blocks of user files on nilfs->dirty_files and of the metadata files get their places
 * and are written; the next checkpoint begins. */
void harness_checkpoint(struct nilfs_harness *h);
/* The one file's changed blocks get their places and are written; that of a virtual one's blocks is
 * left in the DAT as it is in core. */
void harness_settle(struct nilfs_harness *h, struct nilfs_file *file);
/* After a checkpoint: nothing is in core but the metadata files' maps. */
void harness_forget(struct nilfs_harness *h);
/* How many the file has, by its map. */
uint64_t harness_data_blocks(struct nilfs_file *file);

#endif
