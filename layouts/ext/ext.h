/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, shared by its files; nothing outside this folder includes it.
 *
 *   layout.c    the table of functions and options that the core sees
 *   super.c     the super block: load, validate, store; errors=
 *   descriptors.c   the group descriptors, likewise; where the groups' own metadata lies
 *   features.c  features by name, and which are supported
 *   checksum.c, crc.c   checksums of every structure
 *   format.c    mkfs                           geometry.c  where things lie by arithmetic alone
 *   group.c     bitmaps, block and inode allocation   placement.c  the strategies
 *   hold.c      blocks kept in core for those who will ask for them
 *   mballoc.c   many blocks in one piece       buddy.c  which pieces of a group are free
 *   journal.c   the one way to change metadata; the running transaction
 *   journal_log.c, journal_commit.c, journal_checkpoint.c, journal_replay.c, journal_mount.c
 *   orphan.c    inodes to be freed or cut even if the system fails
 *   inode.c     inodes: load, store, create, free
 *   data.c      where an inode's blocks are: map, truncate, punch, however it maps them
 *   store.c     from the page cache to blocks: reserve, store, delayed allocation
 *   indirect.c  the block map
 *   extent.c    extent trees: finding the way    extent_edit.c   changing them
 *   extent_file.c  what a file does with its tree: allocation, conversion, removal
 *   extent_shift.c  collapse and insert
 *   dir.c       directories, linear            htree.c, hash.c  hash-indexed ones
 *   symlink.c   xattr.c     xattr_inode.c   attribute values that have an inode of their own
 *   inline.c    contents that lie in the inode
 *   check.c     describe.c                     read-only inspection
 *
 * Invariants:
 *  1. Every block and inode number that came from the disk is checked (ext_block_valid,
 *     ext_inode_number_valid) before it is used.
 *  2. In-core group counts and the bitmaps in the buffer cache always agree; they reach the
 *     descriptor blocks and the super block in ext_super_store, at sync.
 *  3. A block is marked used in its bitmap before anything points at it, and freed after nothing
 *     does.
 */
#ifndef LAYOUTFS_EXT_H
#define LAYOUTFS_EXT_H

#include "fs/block_set.h"
#include "fs/volume.h"
#include "layouts/ext/format.h"
#include "layouts/ext/hold.h"

/* --- geometry.c: arithmetic on a super block, also used by mkfs and check -----------------------
 */

struct ext_geometry {
    uint32_t block_size, block_bits;
    uint64_t blocks_count;
    uint32_t first_data_block; /* 1 with 1 KiB blocks, else 0 */
    uint32_t blocks_per_group, inodes_per_group;
    uint32_t groups;
    uint32_t inodes_count;
    uint32_t inode_size;
    uint32_t first_ino;
    uint32_t inode_table_blocks; /* a group */
    uint32_t descriptor_size;    /* bytes */
    uint32_t descriptor_blocks;  /* blocks that hold all descriptors */
    uint32_t reserved_descriptor_blocks;
    uint32_t first_meta_bg; /* blocks of descriptors kept together; meta_bg: then by their groups */
    uint32_t backup_groups[2]; /* sparse_super2: the groups with copies, 0: none */
    uint32_t flex_groups;      /* so many groups have their bitmaps and tables side by side */
    uint32_t compat, incompat, ro_compat;
    uint32_t checksum_seed; /* metadata_csum: what every checksum starts from */
    uint16_t uuid_crc16;    /* uninit_bg: likewise, for descriptors */
};

/* Validates every field that arithmetic depends on, and fills *geometry. -EUCLEAN or -ENOTSUP with
 * a sentence that starts with `name`. `device_size` in bytes. */
int ext_geometry_load(const struct ext_disk_super *super, uint64_t device_size, const char *name,
                      const struct log *log, struct ext_geometry *geometry);
/* Does `group` hold a copy of the super block and descriptors (always for 0)? */
bool ext_group_has_super(const struct ext_geometry *geometry, uint32_t group);
/* Blocks of descriptors at the group's start: the first, or copies. 0: it has none. */
uint32_t ext_group_descriptor_blocks(const struct ext_geometry *geometry, uint32_t group);
/* Blocks taken at the group's start by super block, descriptors and reserved descriptors. */
uint32_t ext_group_overhead(const struct ext_geometry *geometry, uint32_t group);
/* Where block `index` of the descriptors lies: the first copy. */
uint64_t ext_descriptor_block(const struct ext_geometry *geometry, uint32_t index);
static inline uint32_t ext_descriptors_per_block(const struct ext_geometry *geometry) {
    return geometry->block_size / geometry->descriptor_size;
}
uint64_t ext_group_first_block(const struct ext_geometry *geometry, uint32_t group);
/* The last group may be shorter. */
uint32_t ext_group_block_count(const struct ext_geometry *geometry, uint32_t group);
/* Blocks of the whole volume that can never hold a file: what statfs leaves out of the total. */
uint64_t ext_geometry_overhead(const struct ext_geometry *geometry);
/* The descriptor at `index` of a block (or a run of them) of descriptors; only descriptor_size
 * bytes of it are there. */
static inline struct ext_disk_group *ext_descriptor_at(const struct ext_geometry *g, void *block,
                                                       uint32_t index) {
    return (struct ext_disk_group *)((char *)block + (size_t)index * g->descriptor_size);
}
/* A count of blocks in the super block, whose high half means something only with 64bit. */
static inline uint64_t ext_blocks_load(const struct ext_disk_super *super, le32 low, le32 high) {
    bool wide = le32_load(super->s_rev_level) > 0 &&
                le32_load(super->s_feature_incompat) & EXT_INCOMPAT_64BIT;
    return le32_load(low) | (wide ? (uint64_t)le32_load(high) << 32 : 0);
}
static inline void ext_blocks_store(le32 *low, le32 *high, uint64_t count) {
    le32_store(low, (uint32_t)count);
    le32_store(high, (uint32_t)(count >> 32));
}
static inline uint32_t ext_group_of_block(const struct ext_geometry *g, uint64_t block) {
    return (uint32_t)((block - g->first_data_block) / g->blocks_per_group);
}
static inline uint32_t ext_group_of_inode(const struct ext_geometry *g, uint64_t ino) {
    return (uint32_t)((ino - 1) / g->inodes_per_group);
}
static inline bool ext_block_valid(const struct ext_geometry *g, uint64_t block) {
    return block > g->first_data_block && block < g->blocks_count;
}
static inline bool ext_inode_number_valid(const struct ext_geometry *g, uint64_t ino) {
    return ino == EXT_ROOT_INO || (ino >= g->first_ino && ino <= g->inodes_count);
}

/* --- the mounted volume ------------------------------------------------------------------------
 */

struct ext_group {                                    /* in core */
    uint64_t block_bitmap, inode_bitmap, inode_table; /* validated at mount */
    uint32_t free_blocks, free_inodes, used_dirs;
    uint32_t unused_inodes; /* at the table's end, never in use: their records are not to be read */
    /* As the descriptor has them; not true of a bitmap that has changed since it was stored. */
    uint32_t block_bitmap_checksum, inode_bitmap_checksum;
    uint16_t flags; /* enum ext_group_flags; 0 on volumes without descriptor checksums */
    uint16_t debt;  /* Orlov: directories minus files, lately created here */
    bool dirty;     /* descriptor block must be rewritten; in the list of those */
    bool block_bitmap_changed, inode_bitmap_changed; /* since its checksum was worked out */
    uint32_t dirty_next;                             /* in ext->dirty_groups */
    uint32_t zone; /* the first of ext->zones that ends behind the group's first block */
    /* Look-up hints of group.c: bits below these are all set. Zero is always true. */
    uint32_t block_hint, inode_hint;
    /* The block bitmap as allocation sees it, with the `pending` blocks that are free only once the
     * transaction that freed them is committed as used. Owned; NULL: the bitmap itself. */
    uint8_t *shadow;
    uint32_t pending;
};

/* A run of blocks that belong to the groups themselves. */
struct ext_zone {
    uint64_t start, end; /* [start, end) */
};

/* Goal placement: blocks that a growing file will ask for next. Nothing on disk knows of it: other
 * files' allocations step over a window as long as there is room elsewhere. */
struct ext_window {
    uint64_t ino, block;
    uint32_t count; /* 0: not in use */
};
#define EXT_WINDOWS    8u
#define EXT_GROUP_NONE UINT32_MAX

enum ext_journal_mode {
    EXT_JOURNAL_NONE,
    EXT_JOURNAL_WRITEBACK,
    EXT_JOURNAL_ORDERED,
    EXT_JOURNAL_DATA,
};

/* Ways in which a journal can be wrong, for tests that are to find each of them. */
enum ext_journal_fault {
    EXT_JOURNAL_FAULT_COMMIT_FIRST = 1, /* the commit block before what it vouches for */
    EXT_JOURNAL_FAULT_NO_FLUSH = 2,     /* a commit counts as durable without a flush */
    EXT_JOURNAL_FAULT_NO_REVOKE = 4,    /* freed metadata is not revoked */
    EXT_JOURNAL_FAULT_STALE_TAIL = 8,   /* the log's tail moves before blocks are at home */
};

struct ext_journal_settings {
    enum ext_journal_mode mode;
    bool barrier;
    bool ordered_written; /* journal=ordered: all data, in the order of the writes */
    int64_t interval_ns;  /* of commits */
    unsigned faults;      /* enum ext_journal_fault */
};

enum ext_dir_order { EXT_ORDER_HASH, EXT_ORDER_STORED };
enum ext_dir_placement { EXT_DIR_OLD, EXT_DIR_ORLOV, EXT_DIR_SEQUENTIAL };
enum ext_block_placement {
    EXT_ALLOC_GOAL,
    EXT_ALLOC_FIRST_FIT,
    EXT_ALLOC_RESERVATION,
    EXT_ALLOC_MBALLOC,
};

struct ext {
    struct ext_geometry geometry;
    struct volume *volume;
    struct buffer_cache *buffers;
    struct ext_disk_super super; /* as last read, with our changes */
    struct ext_group *groups;    /* owned */
    struct ext_zone *zones;      /* owned; ascending, apart from each other */
    uint32_t zone_count;
    uint32_t dirty_groups; /* a list through dirty_next; EXT_GROUP_NONE ends it */
    uint64_t free_blocks, reserved_blocks;
    uint32_t reserved_uid, reserved_gid; /* who may use these, beside the privileged */
    uint64_t overhead_blocks;            /* see ext_geometry_overhead; and the journal's */
    uint32_t journal_blocks;
    uint32_t free_inodes, used_dirs;
    uint16_t mount_state; /* s_state as found */
    uint32_t hash_seed[4];
    enum ext_hash_version hash_version; /* for new directories, signedness resolved */
    bool hash_unsigned;
    enum ext_dir_order dir_order; /* of directories that are not indexed yet */
    enum ext_dir_placement dir_placement;
    enum ext_block_placement block_placement;
    uint32_t prealloc_blocks; /* goal placement: how far ahead a growing file claims blocks */
    enum ext_errors errors;
    uint64_t scan_start; /* first-fit: no free block below this one */
    uint32_t scan_group; /* sequential: no free inode in groups below this one */
    struct ext_window windows[EXT_WINDOWS];
    uint32_t window_next; /* the next to be replaced */
    uint32_t windows_used;
    struct ext_holds holds; /* alloc=reservation, alloc=mballoc */
    TAILQ_HEAD(ext_writers, ext_writer) writers;
    uint32_t writer_count;
    struct ext_mballoc *mballoc; /* owned; NULL: not in use */
    uint32_t generation;         /* next inode generation */
    bool super_dirty;
    bool overlay; /* read-only: the cache holds what the journal would have brought home */
    struct ext_journal *journal; /* owned; NULL: none is in use */
    struct ext_journal_settings journal_settings;
    TAILQ_HEAD(ext_orphan_list, ext_inode)
    orphans;                  /* as the list on disk, which begins in s_last_orphan */
    bool delayed;             /* delalloc: blocks are chosen by store, not by reserve */
    uint64_t promised_blocks; /* of the free ones; see store.c */
    uint64_t freed_blocks;    /* likewise: the groups' `pending`, for no one yet */
};

struct ext_inode { /* struct inode's private part */
    union {
        uint32_t block[EXT_BLOCK_SLOTS];     /* host order; of a fast symlink: bytes as stored */
        struct ext_disk_extent_root extents; /* with EXT_INODE_EXTENTS, as stored */
    };
    uint64_t file_acl;         /* block of attributes, 0: none */
    uint32_t extra_size;       /* i_extra_isize */
    uint32_t group;            /* of the inode, or where Orlov placed the directory */
    struct ext_writer *writer; /* owned; NULL: the file was not written lately */
    /* the journal's: transactions that changed the inode, and in a way that fdatasync keeps */
    uint64_t changed, data_changed;
    TAILQ_ENTRY(ext_inode) ordered_link; /* while `ordered`: on the journal's list */
    TAILQ_ENTRY(ext_inode) orphan_link;  /* while `orphan` */
    uint32_t orphan_next;                /* the list on disk goes on with this inode; as i_dtime */
    bool ordered, orphan;
    /* directories */
    bool index_unusable;  /* EXT_INODE_INDEX is set, but the index makes no sense */
    uint32_t insert_hint; /* linear: logical block where the last insertion found room */
};

static inline struct ext *ext_of(const struct volume *volume) {
    return volume->layout_data;
}
static inline struct ext_inode *ext_inode_of(struct inode *inode) {
    return inode_private(inode);
}

/* --- writer.c: what only a file that is being written needs. There may be millions of inodes in
 * core, of which few are. -- */

struct ext_writer {
    TAILQ_ENTRY(ext_writer) link; /* in ext->writers: the least recently used first */
    struct ext_inode *inode;      /* whose it is */
    /* store.c: blocks whose contents are in the page cache alone, and what is kept for them */
    struct block_set pending;
    uint64_t promised_data, promised_map; /* blocks */
    uint64_t stored_size;                 /* while there are any: the file on disk ends here */
    /* goal placement: the last allocation's end; next_physical 0: not known */
    uint64_t next_logical, next_physical;
    struct ext_hold hold; /* alloc=reservation: its window; alloc=mballoc: its preallocation */
};

/* The inode's, made if need be, and the most recently used from now on. NULL: no memory. One of
 * another inode that is idle (nothing pending or held) may go. */
struct ext_writer *ext_writer_take(struct inode *inode);
/* For reading: the inode's, or an idle one. Never NULL. */
const struct ext_writer *ext_writer_look(struct inode *inode);
/* The in-core inode goes away; nothing is pending or held. */
void ext_writer_release(struct inode *inode);
/* Does `logical` go on where the last allocation ended? */
static inline bool ext_writer_goes_on(struct inode *inode, uint64_t logical) {
    const struct ext_writer *writer = ext_writer_look(inode);
    return writer->next_physical != 0 && writer->next_logical == logical;
}
/* Where the last allocation ended does not matter any more. */
static inline void ext_writer_forget_end(struct inode *inode) {
    struct ext_writer *writer = ext_inode_of(inode)->writer;
    if (writer)
        writer->next_physical = 0;
}

/* --- super.c ------------------------------------------------------------------------------------
 */

extern const struct option_spec ext_options[];

int ext_probe(struct device *device, struct probe_result *result);
int ext_mount(struct volume *volume, const struct options *options);
int ext_unmount(struct volume *volume);
/* Opens a volume that is not mounted, without a journal or a strategy, calls `edit`, and writes
 * what has changed. The device is borrowed; the caller flushes. */
int ext_edit(struct device *device, const struct log *log,
             int (*edit)(struct ext *ext, const void *context), const void *context);
int ext_statfs(struct volume *volume, struct volume_usage *usage);
/* A feature comes into use while mounted (the first large file, the first attribute): other systems
 * must be told. `known` and `stored` are the in-core and the super block's word of features. */
void ext_feature_announce(struct ext *ext, uint32_t *known, le32 *stored, uint32_t feature);
/* Counts and dirty descriptors into their buffers. */
int ext_super_store(struct ext *ext);
/* Damage was found: logs "NAME: <sentence>", marks the volume as having errors and does what its
 * errors= says. Returns -EUCLEAN. */
int ext_corrupt(struct ext *ext, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The first super block as it is on the device. -EUCLEAN: the device is too small for one. */
int ext_super_read(struct device *device, const struct log *log, struct ext_disk_super *super);

/* --- descriptors.c ------------------------------------------------------------------------------
 */

/* All descriptors, into ext->groups and ext->zones, which the caller frees (ext_groups_release)
 * also on failure; sums up the free counts. Calls `wrong` for each that does not make sense, and
 * goes on; the answer is then -EUCLEAN. */
int ext_groups_load(struct ext *ext,
                    void (*wrong)(void *context, uint32_t group, uint64_t block, const char *why),
                    void *context);
void ext_groups_release(struct ext *ext);
/* The group's counts, flags or bitmaps have changed: its descriptor is to be stored. */
void ext_group_changed(struct ext *ext, uint32_t group);
/* The changed descriptors into their buffers, sealed with checksums. */
int ext_groups_store(struct ext *ext);
/* Is any of the blocks one of a group's own metadata? The run lies within the volume. */
bool ext_zones_meet(const struct ext *ext, uint64_t block, uint64_t count);
/* Sets the bits of a group's bitmap that stand for groups' own metadata. */
void ext_zones_mark(const struct ext *ext, uint32_t group, void *bitmap);
/* Are they all set? */
bool ext_zones_marked(const struct ext *ext, uint32_t group, const void *bitmap);

/* Nothing more can be written safely: notes it in the super block and does what errors= says, but
 * at least makes the volume read-only. */
void ext_fail(struct ext *ext);
/* A block of metadata could not be read or written (buffer_cache_on_failure). A failed write ends
 * the journal, which has not forgotten it yet; else errors= decides, as about damage. */
void ext_io_failed(void *context, const struct buffer_failure *failure);
/* Notes on the device that the volume has errors, before it is taken up. */
int ext_super_note_error(struct ext *ext);

/* --- journal*.c: how metadata changes ------------------------------------------------------------
 */

/* The buffer's bytes have been changed, as metadata that must reach the disk with the other changes
 * of this operation. Every change of metadata ends here, none calls buffer_dirty itself. The caller
 * holds a reference and the exclusive lock. Cannot fail. */
void ext_dirty(struct ext *ext, struct buffer *buffer);
/* `count` blocks from `block` on held metadata and are free from now on: what the cache and the
 * journal know of them is void. Called by ext_blocks_free; nobody holds references to them. */
void ext_forget(struct ext *ext, uint64_t block, uint32_t count);
/* Blocks of the group, cleared in its bitmap, may be allocated once this transaction is committed.
 * At once, without a journal. */
void ext_free_later(struct ext *ext, uint32_t group, uint64_t block, uint32_t count,
                    const void *bitmap);
/* The inode got blocks: with journal=ordered (or data) what its pages hold must be stored before
 * this transaction is committed. */
void ext_order_data(struct inode *inode);
/* The inode goes away, or has been stored. */
void ext_order_drop(struct inode *inode);
/* The inode changed in this transaction; `data`: in a way that fdatasync must not lose. */
void ext_note_change(struct inode *inode, bool data);
/* Do files' data go through the journal, too? */
bool ext_journals_data(const struct ext *ext);
/* Blocks that a step may change, at most; UINT32_MAX without a journal. */
uint32_t ext_journal_share(const struct ext *ext);
/* Should the step come to an end, so that a commit can follow? */
bool ext_journal_full(const struct ext *ext);
/* commit_data, commit_begin, commit_write, commit_end; without a journal, too. */
struct inode *ext_commit_data(struct volume *volume, struct inode *inode, enum commit_cause cause);
/* Is what the inode needs committed already? */
bool ext_inode_committed(const struct ext_journal *journal, struct inode *inode, bool data_only);
int ext_commit_begin(struct volume *volume, struct inode *inode, enum commit_cause cause,
                     bool *needed);
int ext_commit_write(struct volume *volume);
int ext_commit_end(struct volume *volume, int error);

/* Mount: what the log holds goes home (read-only: into the cache, where it stays). *replayed: it
 * held something, so that what was read before is stale. */
int ext_journal_recover(struct ext *ext, bool *replayed);
/* From here on changes are journalled. The log is empty, as ext_journal_recover left it. */
int ext_journal_start(struct ext *ext);
/* Unmount: commits, brings everything home, empties the log and frees the journal. */
int ext_journal_stop(struct ext *ext);

/* --- journal_data.c --- */

int ext_load(struct inode *inode, const struct data_range *range, struct device_batch *batch);
int ext_store(struct inode *inode, const struct data_range *range, struct device_batch *batch);

/* --- journal_create.c: on a volume that is not mounted -------------------------------------------
 */

/* `bytes` 0: as mke2fs would. -EINVAL with a sentence, -ENOSPC. */
int ext_journal_add(struct ext *ext, uint64_t bytes);
/* layout->convert: has_journal, journal_size. -EINVAL with a sentence, -ENOSPC. */
int ext_convert(struct device *device, const struct options *options);

/* --- orphan.c -----------------------------------------------------------------------------------
 */

int ext_orphan_add(struct inode *inode);
/* The inode has a name again, or is about to be freed, or the cut is done. */
int ext_orphan_remove(struct inode *inode);
/* Mount: frees and cuts what the list on disk holds. */
int ext_orphans_clean(struct ext *ext);

/* --- features.c ----------------------------------------------------------------------------------
 */

enum ext_feature_set { EXT_FEATURES_COMPAT, EXT_FEATURES_INCOMPAT, EXT_FEATURES_RO_COMPAT };
/* mke2fs's name of one bit, or NULL. */
const char *ext_feature_name(enum ext_feature_set set, uint32_t bit);
/* -ENOTSUP, with a sentence for each feature in the way, when the volume has features that forbid
 * this layout to mount it (or to write to it, unless read_only). */
int ext_features_check(const struct ext_disk_super *super, bool read_only, const char *name,
                       const struct log *log);

/* --- format.c ------------------------------------------------------------------------------------
 */

/* Whose features a new volume has by default. */
enum ext_base { EXT_BASE_EXT2, EXT_BASE_EXT3, EXT_BASE_EXT4, EXT_BASE_NONE };
int ext_format(struct device *device, const struct options *options);

/* --- group.c: bitmaps ------------------------------------------------------------------------ */

/* Free blocks that the calling thread's user may have: without the reserved ones, unless they are
 * kept for him. */
uint64_t ext_blocks_available(const struct ext *ext);
/* Allocates up to *count contiguous blocks, at least 1, the first as near `goal` as can be (0: no
 * goal, the inode's group), at most ext_blocks_available. *count: how many were got. -ENOSPC.
 * Charges COST_BLOCK_ALLOC. Does not touch inode->sectors. */
int ext_blocks_allocate(struct ext *ext, struct inode *inode, uint64_t goal, uint32_t *count,
                        uint64_t *block);
/* Frees a run (validated here, -EUCLEAN when it covers metadata or is not in use) and forgets its
 * buffers when `metadata`. */
int ext_blocks_free(struct ext *ext, uint64_t block, uint64_t count, bool metadata);
int ext_inode_number_allocate(struct ext *ext, struct inode *dir, uint32_t mode, uint64_t *ino);
int ext_inode_number_free(struct ext *ext, uint64_t ino, bool directory);
/* Is the run inside the volume and clear of every group's own metadata? */
bool ext_blocks_are_data(const struct ext *ext, uint64_t block, uint64_t count);
/* Is the number marked in use? 1, 0 or negative errno. Shared. */
int ext_inode_number_used(struct ext *ext, uint64_t ino);
/* The bitmap's buffer, validated once (its own metadata bits are set, padding tolerated). One that
 * was never written is made up: exclusive, and only to change it, or to look for what is free. */
int ext_block_bitmap_get(struct ext *ext, uint32_t group, struct buffer **buffer);
int ext_inode_bitmap_get(struct ext *ext, uint32_t group, struct buffer **buffer);

/* --- placement.c: strategies ----------------------------------------------------------------- */

/* The group for a new directory under `dir`, or for another new inode in it. -ENOSPC. */
int ext_place_directory(struct ext *ext, struct inode *dir, uint32_t *group);
int ext_place_inode(struct ext *ext, struct inode *dir, uint32_t *group);
/* Where the inode's logical block should go, given what lies before it. 0: no preference. */
uint64_t ext_place_block(struct ext *ext, struct inode *inode, uint64_t logical,
                         uint64_t previous_physical);
/* Remembers that [logical, logical + count) of the inode now lies at `block`, `sequential` when
 * that continued the previous allocation, which earns a regular file a window. */
void ext_place_note(struct ext *ext, struct inode *inode, uint64_t logical, uint64_t block,
                    uint32_t count, bool sequential);
/* How many of `count` blocks from `block` on lie before the next window of another inode. 0: inside
 * one, which ends at *end. */
uint32_t ext_window_clip(struct ext *ext, struct inode *inode, uint64_t block, uint32_t count,
                         uint64_t *end);
/* Space runs out: all windows and preallocations are given up. False: there were none. */
bool ext_windows_discard(struct ext *ext);
/* A new inode is made, which is a sign that files before it are done with. */
void ext_windows_retire(struct ext *ext);
/* The inode is cut, or leaves the core: its window or preallocation is given up. */
void ext_window_release(struct inode *inode);

/* --- inode.c --------------------------------------------------------------------------------- */

int ext_inode_load(struct inode *inode);
/* i_extra_isize of a new inode. */
uint32_t ext_extra_size(const struct ext *ext);
/* The same for a reserved inode, and for one without names: an orphan. */
int ext_inode_load_any(struct inode *inode);
int ext_inode_store(struct inode *inode);
int ext_inode_create(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int ext_inode_free(struct inode *inode);
void ext_inode_evict(struct inode *inode);
/* Of EXT_INODE_EXTENTS and the like, those whose feature the volume lacks. */
uint32_t ext_inode_flags_unknown(const struct ext_geometry *geometry);
/* The buffer that holds the inode's record, and the record in it (inode_size bytes). */
int ext_inode_record(struct ext *ext, uint64_t ino, struct buffer **buffer,
                     struct ext_disk_inode **record);
/* The record has been changed: seals and dirties it. */
void ext_inode_record_changed(struct ext *ext, uint64_t ino, struct buffer *buffer,
                              struct ext_disk_inode *record);
/* What a record says: its block of attributes, and its size in units of 512 bytes. */
uint64_t ext_record_file_acl(const struct ext *ext, const struct ext_disk_inode *record);
uint64_t ext_record_sectors(const struct ext *ext, const struct ext_disk_inode *record);
/* Has the number's record ever been written? Others hold what somebody else left there. */
static inline bool ext_inode_record_exists(const struct ext *ext, uint64_t ino) {
    const struct ext_geometry *g = &ext->geometry;
    const struct ext_group *group = &ext->groups[ext_group_of_inode(g, ino)];
    return (ino - 1) % g->inodes_per_group < g->inodes_per_group - group->unused_inodes;
}

/* --- data.c: where an inode's blocks are, however it maps them ---------------------------------
 */

struct ext_run { /* consecutive blocks of an inode */
    uint64_t logical, count;
    uint64_t physical; /* 0: a hole */
    uint32_t level;    /* 0: data; else a block of the map itself, so many steps above the data */
    bool unwritten;    /* allocated, reads as zeros */
};
/* Stops the walk with a non-zero return. */
typedef int (*ext_run_visit)(void *context, const struct ext_run *run);

/* Has the inode blocks of its own (a regular file, a directory, a slow symlink)? */
bool ext_has_block_map(struct inode *inode);
/* A new inode's way to map, as the volume's features say. */
void ext_map_initialise(struct inode *inode);
/* The run from `logical` on. -EFBIG: beyond what the inode can map. Shared. */
int ext_lookup(struct inode *inode, uint64_t logical, struct ext_run *run);
/* For directories and symlinks, which have no unwritten blocks: *physical 0 for a hole. Shared. */
int ext_bmap(struct inode *inode, uint64_t logical, uint64_t *physical, uint64_t *count);
/* Allocates what is missing of [logical, logical + count), and makes unwritten blocks in it written
 * ones; *done: how many from the start are mapped now (at least 1 unless an error is returned).
 * Keeps inode->sectors. */
int ext_bmap_allocate(struct inode *inode, uint64_t logical, uint64_t count, uint64_t *done);
int ext_truncate(struct inode *inode, uint64_t size);
int ext_punch(struct inode *inode, uint64_t offset, uint64_t length);
int ext_map(struct inode *inode, uint64_t offset, struct extent *extent);
/* Bytes: the largest file that the volume can hold. */
uint64_t ext_file_size_max(const struct ext *ext);
/* Calls visit for every run of the file and every block of its map, in file order, a map's block
 * before what it leads to. Used by check, explain and truncate's tests. Shared. */
int ext_blocks_each(struct inode *inode, ext_run_visit visit, void *context);

/* --- store.c: from the page cache to blocks ----------------------------------------------------
 */

int64_t ext_reserve(struct inode *inode, uint64_t offset, uint64_t length);
int64_t ext_preallocate(struct inode *inode, uint64_t offset, uint64_t length);
/* `store`, but for data that go through the journal. */
int ext_store_pages(struct inode *inode, const struct data_range *range,
                    struct device_batch *batch);
/* Does the map show what `reserve` has accepted only when `store` has written it? */
bool ext_stores_later(struct inode *inode);
/* Blocks of [from, to) will not be stored: what was promised for them is free. */
int ext_store_forget(struct inode *inode, uint64_t from, uint64_t to);
/* The in-core inode goes away. */
void ext_store_release(struct inode *inode);
/* What i_size is to say. */
uint64_t ext_store_size(struct inode *inode);

/* --- extent_shift.c ----------------------------------------------------------------------------
 */

int ext_collapse(struct inode *inode, uint64_t offset, uint64_t length);
int ext_insert(struct inode *inode, uint64_t offset, uint64_t length);

/* --- indirect.c, extent*.c: the two ways to map, behind data.c -------------------------------- */

int ext_indirect_bmap(struct inode *inode, uint64_t logical, uint64_t *physical, uint64_t *count);
int ext_indirect_allocate(struct inode *inode, uint64_t logical, uint64_t count, uint64_t *done);
/* Frees the blocks of [from, to), whatever part of it is mapped, and map blocks left empty. */
int ext_indirect_remove(struct inode *inode, uint64_t from, uint64_t to);
int ext_indirect_each(struct inode *inode, ext_run_visit visit, void *context);
/* Bytes: what a block map can hold. */
uint64_t ext_indirect_size_max(const struct ext_geometry *geometry, bool large_file);

/* A new inode's empty root. */
void ext_extent_initialise(struct ext_inode *private);
int ext_extent_lookup(struct inode *inode, uint64_t logical, struct ext_run *run);
/* `unwritten`: what is allocated stays so, and unwritten blocks are left as they are. */
int ext_extent_allocate(struct inode *inode, uint64_t logical, uint64_t count, bool unwritten,
                        uint64_t *done);
int ext_extent_remove(struct inode *inode, uint64_t from, uint64_t to);
int ext_extent_each(struct inode *inode, ext_run_visit visit, void *context);

/* --- dir.c, htree.c, hash.c ------------------------------------------------------------------ */

int ext_dir_find(struct inode *dir, const char *name, uint32_t length, uint64_t *ino);
int ext_dir_insert(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int ext_dir_remove(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
int ext_dir_rename(const struct rename *rename);
int ext_dir_iterate(struct inode *dir, uint64_t cookie, dir_visit visit, void *context);
int ext_dir_empty(struct inode *dir);
/* Writes the first block of a new directory: "." and "..". Used by inode_create. */
int ext_dir_initialise(struct inode *dir, uint64_t parent_ino);
/* Major and minor hash of a name. `version` as stored in the directory, signedness resolved. */
void ext_hash_name(const char *name, uint32_t length, enum ext_hash_version version,
                   const uint32_t seed[4], uint32_t *major, uint32_t *minor);

/* --- symlink.c ------------------------------------------------------------------------------- */

int ext_symlink_write(struct inode *inode, const char *target, uint32_t length);
int ext_symlink_read(struct inode *inode, char *target);
/* A symlink whose target lies in the inode's block slots. */
bool ext_symlink_is_fast(struct inode *inode);

/* --- xattr.c --------------------------------------------------------------------------------- */

int64_t ext_xattr_get(struct inode *inode, const char *name, void *value, size_t size);
int ext_xattr_set(struct inode *inode, const char *name, const void *value, size_t size, int flags);
int ext_xattr_remove(struct inode *inode, const char *name);
int64_t ext_xattr_list(struct inode *inode, char *list, size_t size);
/* The inode is being freed: drops its share of the attribute block. */
int ext_xattr_free(struct inode *inode);

/* system.data, which holds contents, is to go: inline.c's. */
int ext_xattr_contents_remove(struct inode *inode);

/* --- xattr_inode.c --------------------------------------------------------------------------- */

/* The value of `size` bytes, which lies in inode `ino`, of an attribute of `owner`. Shared. */
int ext_xattr_inode_read(struct inode *owner, uint32_t ino, void *value, uint32_t size);
/* Blocks of values in other inodes that the record's i_blocks counts, shared or not. `block`: its
 * block of attributes, or NULL. */
uint64_t ext_xattr_inode_blocks(const struct ext_geometry *geometry,
                                const struct ext_disk_inode *record, const void *block);

/* --- inline.c: contents in the inode (inline_data) -------------------------------------------- */

static inline bool ext_is_inline(const struct inode *inode) {
    return inode->flags & EXT_INODE_INLINE_DATA;
}
/* How many bytes the record has a place for, and (data not NULL: PAGE_SIZE_BYTES) these. -EUCLEAN,
 * without a word: its attribute makes no sense. */
int64_t ext_inline_read(const struct ext *ext, const struct ext_disk_inode *record, char *data);
/* The inode's contents, and zeros up to PAGE_SIZE_BYTES. Shared. */
int ext_inline_contents(struct inode *inode, char *data);
int ext_inline_load(struct inode *inode, const struct data_range *range);
int ext_inline_store(struct inode *inode, const struct data_range *range);
/* 1: the inode has room for the range; 0: it has blocks now. -ENOSPC. */
int ext_inline_reserve(struct inode *inode, uint64_t offset, uint64_t length);
/* `truncate`: in the inode, if it has room for the new size, else it has blocks afterwards. */
int ext_inline_truncate(struct inode *inode, uint64_t size);
/* The directory as a block. What is wrong with it, or NULL; its entries are not validated. */
const char *ext_inline_dir_block(struct ext *ext, uint64_t ino, const struct ext_disk_inode *record,
                                 char *block);
/* Before a change: gives the inode blocks, if it has its contents inside, and stores it. -ENOSPC.
 */
int ext_inline_convert(struct inode *inode);

/* --- check.c, describe.c --------------------------------------------------------------------- */

int ext_check(struct device *device, const struct log *log, struct check_report *report);
int ext_describe(struct volume *volume, enum describe_kind kind, uint64_t number, json_t **object);
int ext_explain(struct inode *inode, json_t **object);

#endif
