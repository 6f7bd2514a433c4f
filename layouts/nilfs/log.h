/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over sufile.h and the device. The log under construction.
 *
 * A block that is added gets its place on disk at once: every log has exactly one summary block, so
 * the payload starts at the log's second block, and a log ends when the summary or the segment is
 * full. Data are copied when they are few, or written at once to their place when they are many;
 * metadata are in pinned buffers. The summary, and with it the log's validity, is written last.
 *
 * Whoever adds data says in the DAT where they lie (nilfs_dat_place): the log does not. After an
 * error the chain of logs may be broken: it is for nilfs_fail.
 *
 * Invariants:
 *  1. The open log lies at nilfs->position.block; position moves when it is closed.
 *  2. Payload in core is written in one request a run, with the summary, when the log is closed.
 *  3. A log whose summary is not written does not exist: nothing but clean space was overwritten.
 *  4. While a checkpoint collects its metadata, closed logs are kept in core, in order, since the
 *     contents of their blocks are not final; commit_write seals and writes them.
 *  5. Data come before metadata in a log, so that their checksum is made when they are added.
 */
#ifndef LAYOUTFS_NILFS_LOG_H
#define LAYOUTFS_NILFS_LOG_H

#include "layouts/nilfs/file.h"

/* What a log says of a block. */
struct nilfs_log_item {
    uint64_t ino;
    uint64_t cno;    /* fi_cno: the one under construction; 0 for DAT, cpfile, sufile; or the
                        original one of a block that the cleaner moves */
    uint32_t level;  /* 0: data */
    uint64_t vblock; /* not of the DAT's */
    uint64_t offset; /* data: in the file; a DAT node: its first key */
};

/* Adds a block of a file's data; *block is its place. `data`, block_size bytes, is copied. */
int nilfs_log_data(struct nilfs *nilfs, const struct nilfs_log_item *item, const uint8_t *data,
                   uint64_t *block, struct device_batch *batch);
/* As nilfs_log_data for a block that will have been written to its place by the caller (a long run,
 * without copying): `data` is only read, for the checksum. */
int nilfs_log_data_direct(struct nilfs *nilfs, const struct nilfs_log_item *item,
                          const uint8_t *data, uint64_t *block, struct device_batch *batch);
/* Adds a changed block of metadata or a directory; `block` settles there (nilfs_block_settle) when
 * the checkpoint has filled it. */
int nilfs_log_changed(struct nilfs *nilfs, const struct nilfs_log_item *item,
                      struct nilfs_block *changed, uint64_t *block);
/* Is the segment being filled or about to be, or has it logs that the sufile does not know of yet?
 */
bool nilfs_log_uses(const struct nilfs *nilfs, uint64_t segment);
/* If the block is data of the open log or one being written that is only in core: its bytes, else
 * NULL. Shared. */
const uint8_t *nilfs_log_peek(const struct nilfs *nilfs, uint64_t block);

#endif
