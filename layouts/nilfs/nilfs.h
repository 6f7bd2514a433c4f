/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, the centre: the mounted volume, which all files of the folder share.
 *
 * NILFS2 as a layout, from the bottom up:
 *
 *     format.h     structures on disk        crc, super, format (mkfs)
 *     file         a file's blocks: clean ones in the buffer cache, changed ones in core (changes)
 *     bmap, btree  where a file's blocks are: offset -> pointer
 *     palloc       numbered entries in a file: the DAT's and the ifile's
 *     dat          virtual block -> disk block, and in which checkpoints it is alive
 *     ifile, cpfile, sufile    inodes; checkpoints; segments
 *     log          a log under construction, log_read: one on disk
 *     checkpoint   what makes a checkpoint out of all that has changed; commit: its parts
 *     space        what may be changed, so that the next checkpoint has room
 *     recovery     the newest checkpoint, and what was written after it; leftovers of a crash
 *     inode, dir, data         the contract's files; layout: the contract itself
 *     history, cleaner, check, describe
 *
 * Invariants of the volume in core:
 *  1. Nothing on disk that the newest checkpoint, a snapshot, or a checkpoint younger than the
 *     cleaner's protection reaches is ever overwritten; new blocks go behind the newest log, or
 *     into segments that were clean in the newest durable checkpoint.
 *  2. A changed block of a file (data of metadata files and directories, and nodes) is in core, in
 *     its file's tree of changed blocks, from the first change until the next checkpoint has given
 *     it its place on disk. It gets a new pointer with the first change (dat.h; a stand-in in the
 *     DAT, file.h), and the nodes above it, up to the root, are changed blocks, too.
 *  3. Data of regular files pass through the page cache: `store` gives each block a new pointer and
 *     puts it in the open log at once (log.h), so that it has its place on disk; it is no changed
 *     block.
 *  4. `cno` is the number of the checkpoint under construction; all that is ended or begun in the
 *     DAT is so with this number.
 *
 * Locking: as the contract; changes happen under the volume's exclusive lock, and commit_write
 * touches only struct nilfs_commit. An error in the middle of a change (memory, an unreadable node)
 * leaves the volume in core inconsistent: nilfs_fail, after which no checkpoint is made.
 */
#ifndef LAYOUTFS_NILFS_NILFS_H
#define LAYOUTFS_NILFS_NILFS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uthash.h>

#include "fs/arena.h"
#include "fs/slab.h"
#include "fs/volume.h"
#include "layouts/nilfs/format.h"

struct nilfs_file;
struct nilfs_changes;
struct nilfs_dir_index;
struct nilfs_log;
struct nilfs_cleaner;
struct nilfs_history;

struct nilfs_geometry { /* of the volume, validated */
    uint32_t block_bits, block_size;
    uint32_t sectors_per_block; /* 512-byte units */
    uint64_t blocks;            /* of the device, whole ones */
    uint64_t segments;
    uint32_t segment_blocks;
    uint64_t first_data_block; /* where segment 0 starts */
    uint32_t reserved_percent;
    uint32_t crc_seed;
    uint32_t inode_size, dat_entry_size, checkpoint_size, usage_size; /* bytes on disk */
    uint32_t node_children; /* most in a B-tree node other than a root */
};

static inline uint64_t nilfs_segment_start(const struct nilfs_geometry *g, uint64_t segment) {
    return segment == 0 ? g->first_data_block : segment * g->segment_blocks;
}
static inline uint64_t nilfs_segment_end(const struct nilfs_geometry *g, uint64_t segment) {
    return (segment + 1) * g->segment_blocks; /* the block behind it */
}
/* Of a valid block. */
static inline uint64_t nilfs_segment_of(const struct nilfs_geometry *g, uint64_t block) {
    return block / g->segment_blocks;
}
static inline bool nilfs_block_valid(const struct nilfs_geometry *g, uint64_t block) {
    return block >= g->first_data_block && block / g->segment_blocks < g->segments;
}
/* Segments that only the cleaner, deletions and checkpoints may use up:
 * max(8, ceil(segments * percent / 100)). */
uint64_t nilfs_reserved_segments(const struct nilfs_geometry *g);

/* Where the next log goes. */
struct nilfs_position {
    uint64_t segment;  /* being filled */
    uint64_t next;     /* to be filled after it: already marked dirty in the sufile */
    uint64_t sequence; /* of the segment's logs */
    uint64_t block;    /* the next log's first block; segment's end: it is full */
};

/* The two super blocks; see super.h. */
struct nilfs_supers {
    struct nilfs_disk_super copy[2]; /* [0]: the current one */
    uint64_t offset[2];              /* bytes: where each lies */
    bool present[2];
    uint64_t writes;      /* of super blocks since mount */
    uint64_t written_seq; /* sequence that the current one names */
    int64_t written_ns;   /* clock time of the last write */
    bool mounted;         /* they say so: nilfs_super_mounted */
    bool due;             /* a log with a super root is in another segment than written_seq's */
    struct nilfs_cursor { /* the newest log with a super root that is written */
        uint64_t cno, block, sequence;
    } newest;
};

enum nilfs_errors { /* errors=: what to do when damage is found */
                    NILFS_ERRORS_RO,
                    NILFS_ERRORS_CONTINUE,
};

enum nilfs_policy { /* cleaner=: which segments are cleaned first; see cleaner_policy.c */
                    NILFS_POLICY_OFF,
                    NILFS_POLICY_TIMESTAMP,
                    NILFS_POLICY_GREEDY,
                    NILFS_POLICY_COST_BENEFIT,
};

/* When the cleaner works, and how much; see cleaner.c. [1] is what counts while clean segments are
 * short, [0] else. */
struct nilfs_cleaner_options {
    enum nilfs_policy policy;
    int64_t protection;            /* seconds */
    uint32_t min_clean, max_clean; /* percent of the segments, beside the reserve */
    int64_t check_ns;              /* between looks at whether there is something to do */
    int64_t interval_ns[2];        /* between steps */
    uint32_t segments_per_step[2];
    uint32_t min_reclaimable[2]; /* percent of a segment's blocks */
    bool wait;                   /* for space: commits clean when it is short */
};

/* log_fault=, for tests: what is wrong on purpose, so that it is found. */
enum nilfs_fault {
    NILFS_FAULT_SUPER_FIRST = 1, /* the super blocks name a log before it is durable */
    NILFS_FAULT_NO_ORDER,        /* a checkpoint's last log does not wait for those before it */
    NILFS_FAULT_NO_FLUSH,        /* a commit counts as durable without a flush */
    NILFS_FAULT_UNCHECKED,       /* recovery takes logs whose checksums do not hold */
    NILFS_FAULT_NO_REPLAY,       /* recovery drops data-only logs */
};

struct nilfs_options {
    uint64_t checkpoint; /* cp=: 0, or the one to show read-only */
    bool barrier, strict, discard, recover, history;
    enum nilfs_errors errors;
    enum nilfs_fault fault; /* 0: none */
    int64_t interval_ns;    /* 0: as the super block says */
    struct nilfs_cleaner_options cleaner;
};

struct nilfs {
    struct volume *volume;
    struct buffer_cache *buffers;
    struct nilfs_geometry geometry;
    struct nilfs_options options;
    struct nilfs_supers supers; /* mounted: commit_write's, without the volume's lock */
    uint8_t uuid[16];           /* as in the super blocks when it was mounted, as is: */
    char label[81];

    struct nilfs_file *dat, *cpfile, *sufile; /* owned */
    struct nilfs_file *ifile;    /* owned: of the live tree, or of options.checkpoint */
    struct nilfs_changes *files; /* uthash by ino: user files of the live tree that are dirty */
    /* Of the layout's own, since inodes are loaded and look-ups made by several threads at once,
     * under the shared lock: files_mutex guards `files`, the references of all files and the two
     * slab caches, a leaf; index_mutex the making of a directory's index (dir_index.c), which reads
     * blocks. */
    pthread_mutex_t files_mutex, index_mutex;
    struct slab_cache files_memory, changes_memory;
    /* Of user files (changes.c); the dirty ones in the order they were changed. */
    TAILQ_HEAD(nilfs_changes_list, nilfs_changes) dirty_files, idle_changes;
    uint32_t dirty_file_count, idle_count; /* on these */
    uint64_t dirty_blocks;                 /* changed blocks of all files */
    uint64_t pending_blocks;               /* reserved for data that are not stored yet */
    struct nilfs_promise {     /* what storing them changes at most; space.h, kept by data.c */
        uint64_t nodes;        /* of their files */
        uint64_t entry_blocks; /* of the DAT, where the new virtual blocks of data have entries */
        uint64_t replaced;     /* of the DAT, with entries of what gives way to them */
        uint64_t files;        /* that have such */
    } promise;
    bool claimed;        /* something was, in this step of the core's */
    uint64_t overdrafts; /* commits that took more space than was promised, or was left: none */
    struct nilfs_changes_list pending_files; /* data.c: that have such */
    struct recycler block_memory, block_records, node_marks;

    uint64_t cno;    /* see invariant 4; already the next one while a checkpoint is being written */
    uint64_t newest; /* the newest checkpoint that is written; supers.newest says where */
    uint64_t inodes_count;   /* of users, the root included */
    uint64_t blocks_count;   /* data and node blocks of user files and the ifile */
    uint64_t clean_segments; /* as the sufile in core has it */
    int64_t nongc_time;      /* seconds: sr_nongc_ctime */
    uint32_t next_generation;
    bool user_changes; /* since the newest checkpoint: else the next is minor */
    bool chain_broken; /* the super block must be written after the next checkpoint ("discontinued")
                        */
    bool failed;

    struct nilfs_position position;
    struct nilfs_freed { /* sufile.c: segments that are not to be allocated yet, ascending */
        uint64_t segment, cno;
    } * freed; /* owned */
    size_t freed_count, freed_room;
    uint64_t *spares; /* owned: segments allocated ahead for a construction */
    uint32_t spare_count, spare_room;
    struct nilfs_log *log;       /* open, or NULL */
    bool unflushed;              /* a checkpoint was written that may be in the disk's cache yet, */
    uint64_t unflushed_sequence; /* as all logs from this sequence on */
    bool segment_open;           /* logs of an unfinished logical segment have been closed */
    uint64_t logged_blocks;      /* of the logical segment's closed logs */
    uint64_t data_only_blocks;   /* of all data-only logs since the newest checkpoint */
    struct nilfs_commit *commit; /* owned; see checkpoint.h */

    struct nilfs_cleaner *cleaner; /* owned; NULL: on a read-only mount */
    struct nilfs_history *history; /* owned; NULL: not asked for */
};

static inline struct nilfs *nilfs_of(const struct volume *volume) {
    return volume->layout_data;
}

/* The in-core inode's private part. */
struct nilfs_inode {
    struct nilfs_file *file; /* referenced (nilfs_file_hold), or NULL: of a synthetic directory */
};
/* Inode numbers of the live tree are below this; those of a checkpoint that history.c shows are the
 * format's with the checkpoint's place above (the same for all of its tree). */
#define NILFS_INO_BITS 40u
#define NILFS_INO_MASK ((UINT64_C(1) << NILFS_INO_BITS) - 1)

static inline struct nilfs_inode *nilfs_inode_of(struct inode *inode) {
    return inode_private(inode);
}

/* Lists, recyclers and locks of a zeroed struct whose geometry is set; and their end, when all
 * files have been put. */
void nilfs_volume_init(struct nilfs *nilfs);
void nilfs_volume_destroy(struct nilfs *nilfs);
/* -EUCLEAN, after a sentence "VOLUME: nilfs: ..." that names structure and block; with errors=
 * remount-ro nothing more is written then. Under any lock. */
int nilfs_corrupt(const struct nilfs *nilfs, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Something failed in the middle of a change: stops the volume (volume_fail); returns `error`. */
int nilfs_fail(struct nilfs *nilfs, int error);
/* Seconds since 1970, of the volume's clock. */
int64_t nilfs_now(const struct nilfs *nilfs);

#endif
