/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over file.h. Numbered entries of one size in a file, in groups with a
 * bitmap each: the "persistent object allocator" of the DAT and the ifile.
 *
 * A descriptor block has the number of free entries of each of its groups, which follow it; a group
 * is its bitmap's block (bit set: in use) and the blocks of its entries. Blocks are made when they
 * are first needed; where there is no bitmap, all of the group are free.
 *
 * In core a file that changes has a cursor (made with the first change, file->cursor):
 *  1. It remembers a run of numbers that are all in use, so that a search does not look at them
 *     again: allocation costs what its result is away from the goal, once.
 *  2. It remembers where changed blocks' contents are, so that most calls search no tree.
 */
#ifndef LAYOUTFS_NILFS_PALLOC_H
#define LAYOUTFS_NILFS_PALLOC_H

#include "layouts/nilfs/bmap.h"

/* No number is as large: far beyond what a volume has room for, and arithmetic cannot overflow. */
#define NILFS_PALLOC_LIMIT (UINT64_C(1) << 56)

struct nilfs_palloc { /* the arithmetic; docs/nilfs2-format.md, "persistent object allocator" */
    uint32_t entry_size;
    uint32_t entries_per_block;
    uint32_t entries_per_group;
    uint64_t blocks_per_group; /* bitmap block and entry blocks */
    uint32_t groups_per_descriptor;
    uint64_t blocks_per_descriptor; /* the descriptor block and its groups */
};
struct nilfs_palloc nilfs_palloc_layout(const struct nilfs_geometry *g, uint32_t entry_size);
/* Of the DAT's or an ifile's entries. */
struct nilfs_palloc nilfs_palloc_of(const struct nilfs_file *file);
/* Offsets in the file of the group's blocks. */
uint64_t nilfs_palloc_descriptor(const struct nilfs_palloc *palloc, uint64_t group);
uint64_t nilfs_palloc_bitmap(const struct nilfs_palloc *palloc, uint64_t group);
/* Where entry `number` lies: block offset in the file, byte in the block. */
void nilfs_palloc_locate(const struct nilfs_palloc *palloc, uint64_t number, uint64_t *offset,
                         uint32_t *byte);

/* Is the number in use? 0 or 1, negative errno. Shared. */
int nilfs_palloc_used(struct nilfs_file *file, uint64_t number);
/* The first number in use at or after `from`: -ENOENT. Shared. */
int nilfs_palloc_next(struct nilfs_file *file, uint64_t from, uint64_t *number);
/* The entry, as long as `view` lasts; -ENOENT: it has no block; -EUCLEAN. Shared. */
int nilfs_palloc_read(struct nilfs_file *file, uint64_t number, enum purpose purpose,
                      struct nilfs_view *view, const uint8_t **entry);
/* f_files: entries that the descriptor blocks there are have room for. Shared. */
int nilfs_palloc_capacity(struct nilfs_file *file, uint64_t *entries);

/* The file's blocks are below this offset, and so are all it has had since the mount. UINT64_MAX /
 * 16 when that cannot be found out. */
uint64_t nilfs_palloc_span(struct nilfs_file *file);

/* Takes the first free number from `goal` on (wrap: then from 0 on), and makes its entry's block.
 * The entry has what it had. -ENOSPC: there is no such number. */
int nilfs_palloc_allocate(struct nilfs_file *file, uint64_t goal, bool wrap, uint64_t *number,
                          uint8_t **entry);
/* Gives the number back. `punch`: entry blocks without used entries and bitmaps of empty groups
 * become holes, as the cleaner has it. -EUCLEAN: it was free. */
int nilfs_palloc_free(struct nilfs_file *file, uint64_t number, bool punch);
/* The entry for changing, as nilfs_file_change. */
int nilfs_palloc_change(struct nilfs_file *file, uint64_t number, uint8_t **entry);
/* The same if its block is a changed one; else NULL, and nothing is done. */
uint8_t *nilfs_palloc_changed(struct nilfs_file *file, uint64_t number);

#endif
