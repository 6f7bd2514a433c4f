/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over file.h. Numbered entries of one size in a file, in groups with a
 * bitmap each: the "persistent object allocator" of the DAT and the ifile.
 */
#ifndef LAYOUTFS_NILFS_PALLOC_H
#define LAYOUTFS_NILFS_PALLOC_H

#include "layouts/nilfs/file.h"

struct nilfs_palloc { /* the arithmetic; docs/nilfs2-format.md, "persistent object allocator" */
    uint32_t entry_size;
    uint32_t entries_per_block;
    uint64_t entries_per_group;
    uint64_t blocks_per_group; /* bitmap block and entry blocks */
    uint64_t groups_per_descriptor;
    uint64_t blocks_per_descriptor; /* the descriptor block and its groups */
};
void nilfs_palloc_init(struct nilfs_palloc *palloc, const struct nilfs_geometry *g,
                       uint32_t entry_size);
/* Where entry `number` lies: block offset in the file, byte in the block. */
void nilfs_palloc_locate(const struct nilfs_palloc *palloc, uint64_t number, uint64_t *offset,
                         uint32_t *byte);
/* Is the number in use? Shared. 0 or 1, negative errno. */
int nilfs_palloc_used(struct nilfs_file *file, const struct nilfs_palloc *palloc, uint64_t number);
/* Takes the first free number from `goal` on (wrap: then from 0 on), and makes its entry's block.
 */
int nilfs_palloc_allocate(struct nilfs_file *file, const struct nilfs_palloc *palloc, uint64_t goal,
                          bool wrap, uint64_t *number);
/* Gives the number back. `punch`: entry blocks without used entries and bitmaps of empty groups
 * become holes, as the cleaner has it. -EUCLEAN: it was free. */
int nilfs_palloc_free(struct nilfs_file *file, const struct nilfs_palloc *palloc, uint64_t number,
                      bool punch);
/* f_files: entries that the descriptor blocks there are have room for. Shared. */
int nilfs_palloc_capacity(struct nilfs_file *file, const struct nilfs_palloc *palloc,
                          uint64_t *entries);

#endif
