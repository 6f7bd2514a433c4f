/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, between dir.c and dir_index.c: blocks of entries, and the index over them.
 *
 * The format's directories are linear. The index is in core only, made when a directory of more
 * than a few blocks is first searched, and lives as long as its file does; it says where the
 * entries are that a name may be in, and which block is the first with so much room.
 */
#ifndef LAYOUTFS_NILFS_DIR_H
#define LAYOUTFS_NILFS_DIR_H

#include "layouts/nilfs/file.h"

/* --- blocks (dir.c) --- */

/* The entry at `offset`, or NULL at the end of the block, which is validated. */
static inline const struct nilfs_disk_dir_entry *
nilfs_dir_entry_at(const uint8_t *block, uint32_t block_size, uint32_t offset) {
    return offset < block_size ? (const struct nilfs_disk_dir_entry *)(block + offset) : NULL;
}
static inline const char *nilfs_dir_entry_name(const struct nilfs_disk_dir_entry *entry) {
    return (const char *)(entry + 1);
}
/* Bytes behind what the entry itself takes. */
uint32_t nilfs_dir_entry_room(const struct nilfs_disk_dir_entry *entry);
/* A block of the directory, validated. -EUCLEAN: also when it is a hole. Shared. */
int nilfs_dir_block_read(struct inode *dir, uint64_t block, struct nilfs_view *view);

/* --- the index (dir_index.c) --- */

struct nilfs_dir_probe { /* of one name, to be started with nilfs_dir_index_start */
    uint32_t tag, slot;
};

/* The directory's index, made if need be; NULL: it is too small to have one (or too large: 32 GiB).
 * Shared. */
int nilfs_dir_index_get(struct inode *dir, struct nilfs_dir_index **index);
/* The positions, in bytes of the directory, of the entries that the name may be in. Shared. */
void nilfs_dir_index_start(const struct nilfs_dir_index *index, const char *name, uint32_t length,
                           struct nilfs_dir_probe *probe);
bool nilfs_dir_index_next(const struct nilfs_dir_index *index, struct nilfs_dir_probe *probe,
                          uint64_t *position);
/* The first block with an entry that has `bytes` of room. False: there is none. */
bool nilfs_dir_index_roomy(const struct nilfs_dir_index *index, uint32_t bytes, uint64_t *block);
/* Memory for one entry and one block more, so that the changes below cannot fail. -ENOMEM. */
int nilfs_dir_index_reserve(struct nilfs_dir_index *index);
void nilfs_dir_index_add(struct nilfs_dir_index *index, const char *name, uint32_t length,
                         uint64_t position);
void nilfs_dir_index_remove(struct nilfs_dir_index *index, const char *name, uint32_t length,
                            uint64_t position);
/* The largest room that an entry of the block has. */
void nilfs_dir_index_set_room(struct nilfs_dir_index *index, uint64_t block, uint32_t bytes);

#endif
