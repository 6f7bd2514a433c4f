/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, private to dir.c, htree.c and htree_split.c.
 *
 * Every block of a directory, indexed or not, is a chain of directory entries: index data hides in
 * the unused space of an entry. So one kind of validation (ext_dir_block_get) covers them all, and
 * a linear walk finds everything even where the index is damaged.
 *
 * Invariants:
 *  1. ext_dirent_at gives nothing that reaches beyond the block, whatever the bytes say: a damaged
 *     volume may let another structure share the block and change it after it was validated.
 *  2. An entry that is not removed does not move in a linear directory; in an indexed one it moves
 *     only to where its hash says.
 */
#ifndef LAYOUTFS_EXT_DIR_H
#define LAYOUTFS_EXT_DIR_H

#include "layouts/ext/checksum.h"

#define EXT_DIRENT_MIN 12u /* bytes of an entry with a name of 1..4 bytes */
/* How many entries a block can hold, for arrays. */
#define EXT_DIRENTS_MAX (PAGE_SIZE_BYTES / EXT_DIRENT_MIN)

/* Where an entry lies. */
struct ext_dir_slot {
    struct buffer *buffer; /* referenced */
    uint64_t logical;      /* block of the directory */
    uint32_t offset;       /* of the entry in the block */
    uint32_t previous;     /* of the entry before it; the same as offset: it is the first */
};

/* What is to be inserted. */
struct ext_dir_name {
    const char *name;
    uint32_t length;
    uint32_t ino;
    uint8_t type; /* enum ext_file_type */
};

static inline uint64_t ext_dir_blocks(const struct inode *dir) {
    return dir->size >> ext_of(dir->volume)->geometry.block_bits;
}

/* The entry at `offset`, or NULL at the end of the block (or of what makes sense in it). */
static inline struct ext_disk_dirent *ext_dirent_at(void *block, uint32_t block_size,
                                                    uint32_t offset) {
    if (offset + EXT_DIRENT_MIN > block_size)
        return NULL;
    struct ext_disk_dirent *entry = (struct ext_disk_dirent *)((char *)block + offset);
    uint32_t size = le16_load(entry->rec_len);
    if (size < ext_dirent_size(entry->name_len) || size > block_size - offset)
        return NULL;
    return entry;
}

/* Is it "." or ".."? */
static inline bool ext_name_is_dot(const char *name, uint32_t length) {
    return name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.'));
}

/* --- dir.c --- */

/* A directory whose entries lie in the inode, as the block that they would fill, validated. */
int ext_dir_inline_get(struct inode *dir, char *block);
/* The directory's block, validated. */
int ext_dir_block_get(struct inode *dir, uint64_t logical, struct buffer **buffer);
/* Adds `count` (1 to EXT_HTREE_LEVELS) blocks at the directory's end, each one empty entry,
 * referenced and dirty. *logical: the first. All or nothing. */
int ext_dir_grow(struct inode *dir, uint32_t count, uint64_t *logical, struct buffer **buffers);
/* The block's bytes have been changed: seals and dirties it. */
void ext_dir_block_changed(struct inode *dir, struct buffer *buffer);
/* One empty entry that fills the block. */
void ext_dir_block_clear(struct ext *ext, void *block);
/* Looks for the name in one block and fills slot->offset and previous. */
bool ext_dir_block_find(struct ext *ext, void *block, const char *name, uint32_t length,
                        struct ext_dir_slot *slot);
/* Puts the name into the first hole that is large enough. False: there is none. */
bool ext_dir_block_insert(struct ext *ext, void *block, const struct ext_dir_name *name);
/* Writes "." and "..", the latter over the rest of the `room` bytes. */
void ext_dir_block_dots(struct ext *ext, void *block, uint32_t room, uint64_t ino,
                        uint64_t parent_ino);
/* Hands one entry to `visit`. */
bool ext_dir_emit(const struct ext_disk_dirent *entry, uint64_t cookie, dir_visit visit,
                  void *context);

/* --- htree.c --- */

/* Returned instead of an errno: the index makes no sense (a warning was logged); the directory is
 * to be treated as a linear one. */
#define EXT_HTREE_UNUSABLE 1

struct ext_htree_frame {
    struct buffer *buffer;
    struct ext_disk_dx_entry *entries;
    uint32_t count, limit;
    uint32_t at; /* the entry followed */
};

#define EXT_HTREE_LEVELS 3u /* with large_dir; else 2 */

struct ext_htree_path {
    struct ext_htree_frame frame[EXT_HTREE_LEVELS]; /* root first */
    uint32_t depth;                                 /* frames in use */
    enum ext_hash_version version;                  /* signedness resolved */
};

/* Has the directory an index that is to be believed? */
bool ext_htree_indexed(const struct inode *dir);
/* Takes up the root. 0, EXT_HTREE_UNUSABLE or negative errno; a path that was not taken up needs
 * no close. */
int ext_htree_open(struct inode *dir, struct ext_htree_path *path);
void ext_htree_close(struct ext_htree_path *path);
/* Follows the index down to the first leaf that may hold `hash`. Returns as open. */
int ext_htree_seek(struct inode *dir, struct ext_htree_path *path, uint32_t hash);
/* The leaf that the path has led to. */
int ext_htree_leaf(struct inode *dir, const struct ext_htree_path *path, uint64_t *logical,
                   struct buffer **buffer);
int ext_htree_find(struct inode *dir, const char *name, uint32_t length, struct ext_dir_slot *slot);
int ext_htree_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context);
/* How many levels the volume allows. */
static inline uint32_t ext_htree_levels(const struct ext *ext) {
    return ext->geometry.incompat & EXT_INCOMPAT_LARGEDIR ? EXT_HTREE_LEVELS : EXT_HTREE_LEVELS - 1;
}
/* The major hash, charged to the clock. */
uint32_t ext_htree_hash(struct ext *ext, enum ext_hash_version version, const char *name,
                        uint32_t length);

/* --- htree_split.c --- */

/* 0, EXT_HTREE_UNUSABLE, -ENOSPC (also: the index is full), ... */
int ext_htree_insert(struct inode *dir, const struct ext_dir_name *name);
/* The index is no longer kept: all its blocks become blocks of entries. */
int ext_htree_drop(struct inode *dir);
/* Makes a directory of one full block an indexed one of three, and inserts the name. */
int ext_htree_convert(struct inode *dir, const struct ext_dir_name *name);

#endif
