/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over the buffer cache and bmap.h (which is over this, too, for nodes).
 *
 * A file as the format knows it: a block map and blocks. Clean blocks are in the buffer cache under
 * their place on disk and are never changed there; changed ones are in core:
 *
 *  1. A block is in the tree of changed data blocks (by offset) or of changed nodes (by pointer)
 *     exactly if it has been changed, or made, since the last checkpoint.
 *  2. A changed block's pointer is new since the last checkpoint: a virtual block that is not
 *     written yet, or, in the DAT, a stand-in (NILFS_STAND_IN and a number nobody else has) that
 *     the checkpoint replaces by the disk block.
 *  3. The block map has a changed block under its new pointer, so every node above it is changed.
 *  4. A file with changed blocks, or whose map's root has changed, is `dirty`, on
 *     nilfs->dirty_files and in nilfs->files (user files of the live tree only), and stays in core.
 *
 * A file of a checkpoint (cno != 0) is never changed.
 */
#ifndef LAYOUTFS_NILFS_FILE_H
#define LAYOUTFS_NILFS_FILE_H

#include <assert.h>
#include <bsd/sys/tree.h>

#include "fs/block_set.h"
#include "layouts/nilfs/nilfs.h"

#define NILFS_STAND_IN (UINT64_C(1) << 63)

enum nilfs_pointers {
    NILFS_PHYSICAL, /* disk blocks: the DAT's */
    NILFS_SINGLE,   /* virtual; a replaced block's life is over at once: cpfile, sufile */
    NILFS_MULTI,    /* virtual; a replaced block lives on in earlier checkpoints */
};

struct nilfs_palloc_cursor;

struct nilfs_block { /* a changed one */
    RB_ENTRY(nilfs_block) link;
    struct nilfs_file *file;
    uint64_t key;     /* data: the offset; node: the pointer */
    uint64_t pointer; /* node: == key */
    uint32_t level;   /* 0: data */
    uint8_t *data;    /* block_size bytes, owned */
};
RB_HEAD(nilfs_block_tree, nilfs_block);

#define NILFS_RECENT_BLOCKS 4u /* a power of two */

/* Short cuts, which the look-up structures would lead to, too. Set under the exclusive lock only;
 * whoever has the shared one may follow them. */
struct nilfs_hints {
    struct nilfs_block *recent[NILFS_RECENT_BLOCKS]; /* changed data, by the offset's low bits */
    /* The changed level 1 node where the keys from its first one to `limit` (not included) belong;
     * NULL: none. So are all nodes above it changed. */
    struct nilfs_block *leaf;
    uint64_t limit;
    uint64_t key, pointer; /* of the last data block that got a new pointer; pointer 0: none did */
};

/* What a file has that changes, or did so lately; changed under the exclusive lock. */
struct nilfs_changes {
    struct nilfs_file *file;
    TAILQ_ENTRY(nilfs_changes) link; /* nilfs->dirty_files or ->idle_changes */
    UT_hash_handle hh;               /* nilfs->files */
    struct nilfs_block_tree data, nodes;
    uint64_t changed_data, changed_nodes; /* in these trees */
    struct nilfs_hints hints;
    struct nilfs_pending {   /* data.c's */
        struct inode *inode; /* while on nilfs->pending_files, else NULL */
        TAILQ_ENTRY(nilfs_changes) link;
        struct block_set blocks;  /* reserved, not stored */
        uint64_t holes;           /* of these the ones that are not in the map yet */
        uint32_t nodes, replaced; /* the file's part of what nilfs->promise has */
    } pending;
    uint64_t uncut; /* bytes: a truncation that is not over has blocks to free up to here; so long
                       is the file on disk until then, lest it ever grows over them */
    /* --- of metadata files --- */
    /* Grows whenever a changed data block goes (settled, freed): pointers to contents of before are
     * not to be used any more. */
    uint64_t generation;
    struct nilfs_palloc_cursor *cursor; /* palloc.c: owned (plain memory), or NULL */
    uint64_t stand_ins;                 /* the DAT's: handed out */
};

/* There may be millions, one with each inode: every byte counts. */
struct nilfs_file {
    struct nilfs *nilfs;
    uint64_t ino;
    uint64_t cno;                  /* 0: of the live tree; else the checkpoint it belongs to */
    struct nilfs_disk_bmap bmap;   /* the root, as on disk */
    uint64_t sectors;              /* i_blocks: as found, plus and minus what was made and freed */
    struct nilfs_changes *changes; /* owned, or NULL: changes.c */
    struct nilfs_dir_index *_Atomic index; /* dir_index.c: owned, or NULL */
    uint32_t references; /* the in-core inode's, one while dirty, others' views; files_mutex */
    enum nilfs_pointers pointers : 8;
    bool dirty;
    bool data_only_unsafe; /* changed in a way that no data-only log tells: size, being new */
    bool device;           /* i_bmap is a device's code, not a map */
};

static_assert(sizeof(struct nilfs_file) <= 112, "what a million clean files take in core");

static inline bool nilfs_file_is_users(const struct nilfs_file *file) {
    return file->ino < NILFS_DAT_INO || file->ino > NILFS_IFILE_INO;
}

/* A new file structure, with one reference, clean. `map`: the bmap, i_blocks and what
 * the mode says of a device are taken from there; NULL: an empty map. -EUCLEAN: the map's root
 * cannot be. */
int nilfs_file_new(struct nilfs *nilfs, uint64_t ino, uint64_t cno, enum nilfs_pointers pointers,
                   const struct nilfs_disk_inode *map, struct nilfs_file **file);
void nilfs_file_hold(struct nilfs_file *file);
/* The last reference frees it, its changes with what they have, and its index. NULL ok. Any lock,
 * as nilfs_file_hold; a user's file with changes: the exclusive one. */
void nilfs_file_put(struct nilfs_file *file);
/* The user's file of the live tree, while no inode of it is in core: the dirty one, or made from
 * its record. Referenced. -ESTALE: the number is not in use. Any lock. (inode.c) */
int nilfs_file_open(struct nilfs *nilfs, uint64_t ino, struct nilfs_file **file);

/* --- changes: exclusive lock, but where other is said (changes.c) --- */
/* The file's, made if it has none. They stay while it is dirty, or something is pending or uncut,
 * and a while after. NULL: no memory. */
struct nilfs_changes *nilfs_changes_take(struct nilfs_file *file);
/* For nilfs_file_put, without changed blocks. */
void nilfs_changes_release(struct nilfs_file *file);
/* The user's dirty file of the live tree, referenced, or NULL. Any lock. */
struct nilfs_file *nilfs_file_find_dirty(struct nilfs *nilfs, uint64_t ino);
/* Before the file is changed: on the list, with a reference, if it is a user's. -ENOMEM. */
int nilfs_file_mark_dirty(struct nilfs_file *file);
/* For checkpoint.c and inode.c: off the list again; its changed blocks have been taken, or it has
 * none any more. Puts the reference; clears data_only_unsafe. */
void nilfs_file_mark_clean(struct nilfs_file *file);
/* For looking at; shared lock. */
static inline uint64_t nilfs_file_uncut(const struct nilfs_file *file) {
    return file->changes ? file->changes->uncut : 0;
}
/* Changed blocks. */
static inline uint64_t nilfs_file_changed(const struct nilfs_file *file) {
    return file->changes ? file->changes->changed_data + file->changes->changed_nodes : 0;
}

/* --- reading: shared lock --- */
struct nilfs_view { /* of one block, until nilfs_view_put or the next change to the file */
    const uint8_t *data;
    struct buffer *buffer;       /* NULL: a changed block... */
    struct nilfs_block *changed; /* ...which is this */
};
static inline void nilfs_view_put(struct nilfs_view *view) {
    buffer_put(view->buffer); /* NULL is allowed */
    view->buffer = NULL;
}
/* -ENOENT: a hole; -EUCLEAN, -EIO. */
int nilfs_file_read(struct nilfs_file *file, uint64_t offset, enum purpose purpose,
                    struct nilfs_view *view);
/* The disk block of what `pointer` says (never of a changed block): -EUCLEAN. */
int nilfs_file_address(struct nilfs_file *file, uint64_t pointer, uint64_t *block);

/* --- changing: exclusive lock. Errors are for nilfs_fail where something has changed already ---
 */
/* The block for changing, copied or found; *data is valid until the block is deleted or the next
 * checkpoint. -ENOENT: a hole. */
int nilfs_file_change(struct nilfs_file *file, uint64_t offset, uint8_t **data);
/* As nilfs_file_change; a hole becomes a block of zeros (*made true). made may be NULL. */
int nilfs_file_make(struct nilfs_file *file, uint64_t offset, uint8_t **data, bool *made);
/* Frees [from, to): data blocks, changed or not, their pointers ended. Holes are passed over. */
int nilfs_file_free(struct nilfs_file *file, uint64_t from, uint64_t to);
/* For data that do not become a changed block (invariant 3 of nilfs.h): gives the block at `offset`
 * a new pointer, ending the old one's life, or makes it. */
int nilfs_file_renew(struct nilfs_file *file, uint64_t offset, uint64_t *pointer);
/* For the cleaner and the DAT: makes the block at `offset` a changed one if it is not (data). */
static inline int nilfs_file_touch(struct nilfs_file *file, uint64_t offset) {
    uint8_t *data;
    return nilfs_file_change(file, offset, &data);
}
/* After its place is known: the block is clean, its contents are in the buffer cache under `block`,
 * pinned (the caller unpins when written). The nilfs_block is gone. *buffer is referenced. */
int nilfs_block_settle(struct nilfs_block *changed, uint64_t block, struct buffer **buffer);

/* --- nodes: for btree*.c --- */
/* The node, validated (level, count, order): -EUCLEAN. A buffer's `checked` says that it has been
 * validated as a node: nobody else uses that flag. */
int nilfs_node_read(struct nilfs_file *file, uint64_t pointer, uint32_t level,
                    struct nilfs_view *view);
/* The node under a new pointer for changing; or as it is when it is a changed one. The caller puts
 * (*node)->pointer into the parent. */
int nilfs_node_change(struct nilfs_file *file, uint64_t pointer, uint32_t level,
                      struct nilfs_block **node);
/* A new, zeroed node. `goal`: a pointer to be near. */
int nilfs_node_make(struct nilfs_file *file, uint32_t level, uint64_t goal,
                    struct nilfs_block **node);
/* The node is no longer part of the map: pointer ended, block dropped. */
int nilfs_node_free(struct nilfs_file *file, uint64_t pointer);
/* For checkpoint.c on the DAT: the changed node's stand-in becomes `pointer`. */
void nilfs_node_rename(struct nilfs_block *node, uint64_t pointer);

int nilfs_block_compare(const struct nilfs_block *a, const struct nilfs_block *b);
RB_PROTOTYPE(nilfs_block_tree, nilfs_block, link, nilfs_block_compare)

#endif
