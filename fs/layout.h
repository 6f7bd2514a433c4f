/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * THE CONTRACT between the core and every layout. The core (fs/volume.h) calls these functions; a
 * layout implements them over a device and a buffer cache, and never touches libfuse, a file
 * descriptor, wall-clock time or a thread.
 *
 * Who does what. The core: inode cache and references, POSIX rules (types, link counts, time
 * stamps, set-id bits, sticky bits are its or the kernel's), file data in the page cache, locks,
 * write-back. The layout: where things lie, the bytes on disk, and validation of all it reads.
 *
 * Locking. The core holds the volume's lock in every call: *shared* where the comment says so
 * (other shared calls may run at the same time; only the buffer cache and the layout's own look-up
 * hints may change, and these tolerate races), *exclusive* everywhere else. `load` and `store` also
 * have the inode's data lock. A layout takes no locks of its own unless it must.
 *
 * Errors. 0 or negative errno. -EUCLEAN: the structure on disk is corrupt (a sentence naming
 * structure and block was logged). -ENOTSUP: the format has no room for it. An operation that fails
 * with -ENOSPC, -EMLINK, -ENAMETOOLONG or -EEXIST has changed nothing.
 *
 * Who asks. Permissions are checked above the core. A format that keeps space for some asks
 * fs/credentials.h, wherever it allocates or promises space, whether the caller is one of them.
 *
 * Durability. Nothing is durable until a commit (commit_begin to commit_end) has succeeded. Failed
 * reads and writes of buffers are told to whom the layout names in mount (buffer_cache_on_failure),
 * which may stop the volume (volume_fail); failed writes of data to `store_failed`.
 */
#ifndef LAYOUTFS_LAYOUT_H
#define LAYOUTFS_LAYOUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fs/buffer.h"
#include "fs/clock.h"
#include "fs/device/device.h"
#include "fs/log.h"
#include "fs/options.h"

#define PAGE_SIZE_BYTES 4096u /* of the page cache; block sizes are at most this */
#define NAME_LENGTH_MAX 255u

struct volume;
struct layout;

/* --- inodes ----------------------------------------------------------------------------------- */

enum inode_flags { /* the values of FS_IOC_GETFLAGS, which are ext's */
                   INODE_SYNC = 0x8,
                   INODE_IMMUTABLE = 0x10,
                   INODE_APPEND = 0x20,
                   INODE_NODUMP = 0x40,
                   INODE_NOATIME = 0x80,
                   INODE_PROJECT_INHERIT = 0x20000000,
};

/* The in-core inode. One exists per inode number while somebody holds it (and a while after).
 * Attributes are read under the volume's lock and changed under the exclusive one. There may be
 * millions, as many as the kernel likes to remember: every byte counts. The layout's own part
 * (layout->inode_private_size bytes, zeroed) follows; see inode_private. */
struct inode {
    struct volume *volume;
    uint64_t ino;
    uint64_t size;    /* bytes; of a symlink: the target's length */
    uint64_t sectors; /* 512-byte units allocated, as st_blocks; the layout keeps it true */
    struct timestamp atime, mtime, ctime, btime; /* btime zero: the format has none */
    uint32_t generation;
    uint32_t mode; /* type and permissions */
    uint32_t uid, gid;
    uint32_t nlink;
    uint32_t rdev;    /* devices: major << 20 | minor (minor: 20 bits), the kernel's own encoding */
    uint32_t flags;   /* enum inode_flags, plus any of the format's own to be kept */
    uint32_t project; /* id, where limits.projects; else 0 */
    bool past;        /* the layout's: of a state that has been, which nothing changes: -EROFS */
    bool dirty;       /* the core's: attributes changed since inode_store */
    bool deleted;     /* the core's: freed on disk, waiting for its last reference */
    bool cut;         /* the core's: layout->truncate has more to free beyond `size` */
    bool nameless;    /* the core's: made without a name, and may still get one */
    uint8_t acls_absent; /* the core's: enum acl_kind, those known not to be there */
    /* --- the core's (fs/inode_cache.c, fs/pagecache.c); layouts leave these alone --- */
    uint32_t references;
    uint32_t read_window; /* current read-ahead window, bytes */
    uint64_t read_next;   /* where the next sequential read would start */
    struct inode *hash_next;
    TAILQ_ENTRY(inode) lru;        /* while unreferenced */
    TAILQ_ENTRY(inode) dirty_link; /* while dirty */
    struct page_tree *pages;       /* NULL until data is cached; all that only then matters */
};

static inline void *inode_private(struct inode *inode) {
    return inode + 1;
}

/* --- data ------------------------------------------------------------------------------------- */

/* A piece of a file and the memory for it. offset is a multiple of PAGE_SIZE_BYTES, length too;
 * the vector's pieces are each a whole number of pages. */
struct data_range {
    uint64_t offset; /* bytes in the file */
    uint32_t length; /* bytes */
    const struct iovec *vector;
    int vector_count;
};

/* Walks the memory of a range, in the direction of the file, once. */
struct data_cursor {
    const struct iovec *piece;
    uint64_t piece_at; /* the piece's first byte in the file */
};
static inline struct data_cursor data_cursor_of(const struct data_range *range) {
    return (struct data_cursor){range->vector, range->offset};
}
/* The memory from byte `offset` of the file on, as far as it is one piece. */
static inline struct iovec data_cursor_at(struct data_cursor *cursor, uint64_t offset) {
    while (offset >= cursor->piece_at + cursor->piece->iov_len)
        cursor->piece_at += cursor->piece++->iov_len;
    size_t within = (size_t)(offset - cursor->piece_at);
    return (struct iovec){(char *)cursor->piece->iov_base + within,
                          cursor->piece->iov_len - within};
}

enum extent_flags {
    EXTENT_HOLE = 1,      /* nothing stored: reads as zeros; device_offset is meaningless */
    EXTENT_UNWRITTEN = 2, /* allocated, reads as zeros */
    EXTENT_ENCODED = 4,   /* compressed, packed or inline: not readable at device_offset as it is */
};

struct extent {
    uint64_t offset;        /* bytes in the file, <= the offset asked for */
    uint64_t length;        /* bytes, > 0 */
    uint64_t device_offset; /* bytes on the device */
    unsigned flags;
};

/* --- directories ------------------------------------------------------------------------------ */

struct dir_entry {
    const char *name; /* borrowed for the call; not terminated */
    uint32_t name_length;
    uint64_t ino;
    uint32_t type;   /* S_IFMT bits of the mode, 0: the format does not say */
    uint64_t cookie; /* continue after this entry with this cookie; never 0, at most INT64_MAX */
};
/* Returns true to go on, false to stop *before* this entry. */
typedef bool (*dir_visit)(void *context, const struct dir_entry *entry);

enum rename_flags { RENAME_EXCHANGE_NAMES = 1 };

struct rename {
    struct inode *source_dir, *target_dir; /* may be the same */
    const char *source_name, *target_name;
    uint32_t source_length, target_length;
    struct inode *inode;    /* what source_name means */
    struct inode *victim;   /* what target_name means, or NULL; with EXCHANGE the other party */
    struct inode *whiteout; /* new, for source_name to mean; or NULL, as always with EXCHANGE */
    unsigned flags;
};

/* --- volume-wide facts ------------------------------------------------------------------------ */

struct volume_usage { /* as statfs reports it, in units of block_size */
    uint32_t block_size;
    uint64_t blocks, free, available; /* available: free for plain users */
    uint64_t inodes, inodes_free;     /* 0, 0: no fixed number */
    uint32_t name_max;
    uint8_t uuid[16];
    char label[256]; /* terminated; empty: none */
};

/* Set by layout->mount in volume->limits. */
struct layout_limits {
    uint64_t file_size_max; /* bytes; larger: -EFBIG */
    uint32_t link_max;      /* -EMLINK at this many names */
    uint32_t subdir_max;    /* -EMLINK when a directory's link count is this, unless... */
    bool subdirs_uncounted; /* the count then becomes 1 and stays: subdirectories are not counted */
    uint32_t symlink_max;   /* bytes of a target */
    uint32_t time_granularity_ns;
    int64_t commit_interval_ns; /* the core makes a commit so long after the first change since the
                                   last one; 0: only when asked */
    uint64_t dirty_data_max; /* bytes of dirty pages, about, that a commit has room for; 0: any */
    struct timestamp time_min, time_max; /* time stamps are clamped to these */
    bool projects;                       /* inodes have project ids */
};

struct probe_result {
    int confidence;        /* 0: not this layout; 100: certain */
    const char *type;      /* the preset that describes it ("ext2", "ext3"), static */
    bool recover;          /* not in order before a mount for writing has replayed its log */
    char description[128]; /* "ext2, 4096-byte blocks, label \"x\"" */
};

/* A named default for a family: `-t ext2`. */
struct layout_type {
    const char *name;         /* NULL ends the table */
    const char *mkfs_options; /* applied before the user's */
    const char *mount_options;
    const char *description; /* one line */
};

enum layout_flags {
    LAYOUT_VOLATILE = 1, /* keeps nothing on a device: no probe, format or check */
};

/* The answer of truncate, punch and inode_free when a part of the work is done, the whole is not,
 * and a commit should have a chance: the core ends the step, and calls again in another one. */
#define LAYOUT_AGAIN 1

enum check_severity { CHECK_NOTE, CHECK_WRONG };
struct check_report {
    void (*finding)(void *context, enum check_severity severity, const char *text);
    void (*progress)(void *context, uint64_t done, uint64_t total); /* may be NULL */
    void *context;
    bool repair;       /* in: mend what can be mended */
    bool contents;     /* in: files' contents, too, where the format has checksums of them */
    uint64_t wrong;    /* out: findings of CHECK_WRONG */
    uint64_t repaired; /* out: of which mended */
};

/* Why a commit is made: for whom must what be durable? */
enum commit_cause {
    COMMIT_AGE,       /* nobody waits: changes have grown old, or the layout wanted it */
    COMMIT_FDATASYNC, /* one inode's data, and what is needed to find them */
    COMMIT_FSYNC,     /* one inode */
    COMMIT_SYNC,      /* everything: sync(2), unmount, a lack of space, or several of these */
};

/* A state of the whole volume that the format keeps and can show again: a mount with the option
 * "cp=NUMBER", read-only, is of that state. */
enum checkpoint_flags {
    CHECKPOINT_KEPT = 1,  /* a snapshot: stays until it is released */
    CHECKPOINT_MINOR = 2, /* no file differs from the one before */
};
struct checkpoint { /* in an ioctl, too (fs/fuse_ioctl.h): no padding */
    uint64_t number;
    int64_t time;    /* seconds: when it was made */
    uint64_t blocks; /* of the files in it, with what describes them */
    uint64_t inodes;
    uint64_t written; /* blocks written to make it */
    uint64_t flags;   /* enum checkpoint_flags */
};

/* What a step of cleaning did: live blocks of full parts of the device were moved together, so that
 * the parts can be written again. */
enum clean_fate {
    CLEAN_FREED,     /* it may be used again */
    CLEAN_PUT_OFF,   /* too little would be won */
    CLEAN_PROTECTED, /* a super block leads there: not yet */
    CLEAN_DAMAGED,   /* it cannot be read: left as it is */
};
#define CLEAN_SEGMENTS_MAX 32
struct clean_report {
    unsigned count; /* segments that were looked at */
    struct {
        uint64_t number;
        uint64_t live, dead; /* blocks */
        enum clean_fate fate;
    } segment[CLEAN_SEGMENTS_MAX];
    uint64_t moved;                    /* blocks */
    uint64_t checkpoints;              /* that were deleted, since some of their blocks have gone */
    uint64_t read_bytes, write_bytes;  /* of the device, but for the commit */
    uint64_t clean_segments, segments; /* of the volume, now */
};

/* What layout->describe is to show, of those that the format has: else -ENOTSUP. */
enum describe_kind {
    DESCRIBE_SUPER,
    DESCRIBE_GROUP, /* or segment: what the device is divided into */
    DESCRIBE_INODE,
    DESCRIBE_BLOCK,
    DESCRIBE_LOG,        /* that begins at a block */
    DESCRIBE_CHECKPOINT, /* of that number */
    DESCRIBE_VIRTUAL,    /* block: where it lies */
    DESCRIBE_MAP,        /* of an inode's blocks, node by node */
};

struct layout {
    const char *name; /* of the folder: "ext" */
    const char *description;
    const struct layout_type *types;
    const struct option_spec *options;
    unsigned flags; /* enum layout_flags */
    uint32_t inode_private_size;

    /* -- identity and life -- */
    /* Looks at the device without changing it. 0 with result->confidence, or a read error. */
    int (*probe)(struct device *device, struct probe_result *result);
    /* Makes an empty volume that fills the device. Writes and waits; the caller flushes. -EINVAL,
     * with a sentence: the options make no sense, alone or with each other or on this device. */
    int (*format)(struct device *device, const struct options *options);
    /* Changes the format of a volume that is not mounted and keeps what is in it, by the layout's
     * options of scope OPTION_CONVERT. As `format`; -EINVAL: it cannot be so. NULL: not offered. */
    int (*convert)(struct device *device, const struct options *options);
    /* Validates and takes up the volume: creates volume->buffers (buffer_cache_create with its own
     * block size), sets volume->layout_data, volume->root_ino and volume->limits. volume->read_only
     * may already be set; a layout that can only read sets it. On failure it frees all it made but
     * the buffers, which are the core's to destroy. */
    int (*mount)(struct volume *volume, const struct options *options);
    /* After a commit of everything: marks the volume clean, frees layout_data; the core destroys
     * buffers. Called on read-only volumes too. Errors are reported, the resources freed all the
     * same. */
    int (*unmount)(struct volume *volume);
    int (*statfs)(struct volume *volume, struct volume_usage *usage); /* shared */

    /* -- inodes -- */
    /* Fills the attributes and private part of inode->ino, which may come from an old file handle.
     * -ESTALE: not a number in use, without a word in the log; -EUCLEAN. Shared. */
    int (*inode_load)(struct inode *inode);
    /* Puts the attributes where the format keeps them (in buffers). */
    int (*inode_store)(struct inode *inode);
    /* Gives the new inode (mode, uid, gid, rdev, times set; ino not) a number and generation near
     * `dir`, and for a directory makes it an empty one whose parent is `dir`. The core sets nlink
     * and calls inode_store afterwards. `name` is the one that dir_insert will give it then, of
     * `length` bytes, for formats that place an inode by it; NULL: none yet. */
    int (*inode_create)(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
    /* nlink is 0 and nobody uses the inode: frees data, attributes and the number. May answer
     * LAYOUT_AGAIN. */
    int (*inode_free)(struct inode *inode);
    /* The clean in-core inode goes away; free what the private part owns. May be NULL. */
    void (*inode_evict)(struct inode *inode);
    /* nlink is 0 while in use, because the last name went or none was given yet: remember it over a
     * crash; undone by inode_free, or by orphan_remove when it gets a (first) name. Both or none;
     * may be NULL. */
    int (*orphan_add)(struct inode *inode);
    int (*orphan_remove)(struct inode *inode);

    /* -- namespace -- */
    /* -ENOENT. `type` as dir_entry's. Shared. */
    int (*dir_find)(struct inode *dir, const char *name, uint32_t length, uint64_t *ino);
    /* The core has checked that the name is absent. -ENOSPC, -EFBIG. */
    int (*dir_insert)(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
    int (*dir_remove)(struct inode *dir, const char *name, uint32_t length, struct inode *inode);
    /* One step: target_name names inode, source_name is gone (or names the victim, or the
     * whiteout); a moved directory's ".." names target_dir. Link counts are the core's. */
    int (*dir_rename)(const struct rename *rename);
    /* Calls visit for entries after `cookie` (0: from the start), "." and ".." included. An entry
     * present throughout is visited exactly once, whatever is inserted or removed between calls.
     * Shared. */
    int (*dir_iterate)(struct inode *dir, uint64_t cookie, dir_visit visit, void *context);
    /* 0: nothing but "." and ".."; -ENOTEMPTY. Shared. */
    int (*dir_empty)(struct inode *dir);

    /* -- symlinks -- */
    int (*symlink_write)(struct inode *inode, const char *target, uint32_t length);
    /* `target` has room for inode->size bytes. Shared. */
    int (*symlink_read)(struct inode *inode, char *target);

    /* -- file data -- */
    /* Promises that [offset, offset + n) can be stored later, and returns n: 0 < n <= length, less
     * than length when space runs out in the middle. -ENOSPC, -EFBIG. */
    int64_t (*reserve)(struct inode *inode, uint64_t offset, uint64_t length);
    /* Fills the range: stored bytes, zeros in holes and beyond the end. Requests join `batch`; the
     * bytes count as arrived when the batch is done. Shared. */
    int (*load)(struct inode *inode, const struct data_range *range, struct device_batch *batch);
    /* Writes a range of reserved (or already stored) pages; parts in holes must be zero and are
     * skipped; the part past the block that holds the last byte is not written. Shared. Exclusive,
     * in a step, where mount has set volume->store_changes: then `store` may change metadata,
     * allocate what `reserve` has only counted, say; the core stores the inode afterwards, and
     * calls no commit_write before the writes that it knows of are done. */
    int (*store)(struct inode *inode, const struct data_range *range, struct device_batch *batch);
    /* Data that `store` has submitted did not arrive, and what the layout knows of their place is
     * not so. The file's fsync will answer with `error`; where that is not enough, because commits
     * rest on all that was stored, the layout makes no more of them (volume_fail). Told in the
     * fsync that reports it; or before the next commit_begin, which is then not called; or after
     * it, and then commit_write is not called, and commit_end is told of the error. Exclusive.
     * NULL: it is enough. */
    void (*store_failed)(struct volume *volume, int error);
    /* Shrinking: frees what lies past `size` (the core cleans the last page's tail). Growing:
     * nothing but what the format needs. The core sets inode->size afterwards. LAYOUT_AGAIN: what
     * is left will be freed even if the system fails; the core sets the size, stores the inode, and
     * calls again with the same size before anything else is done to the file's data. */
    int (*truncate)(struct inode *inode, uint64_t size);
    /* Frees whole blocks inside [offset, offset + length). May answer LAYOUT_AGAIN. NULL: -ENOTSUP.
     */
    int (*punch)(struct inode *inode, uint64_t offset, uint64_t length);
    /* As `reserve`, but what was a hole then reads as zeros by itself (EXTENT_UNWRITTEN) until it
     * is stored, and the range may lie past the end of the file: blocks there stay until a truncate
     * that does not grow the file, and read as zeros when it grows over them. NULL, or
     * -EOPNOTSUPP for this inode: the core preallocates by writing zeros, and nothing past the
     * end. Less than length also when a transaction is full: the core asks for the rest in another
     * step, until -ENOSPC. */
    int64_t (*preallocate)(struct inode *inode, uint64_t offset, uint64_t length);
    /* Takes [offset, offset + length), whole blocks that end before the file does, out of the file:
     * what follows moves down. Or opens a hole there: what follows moves up. The core has stored
     * the file's data from `offset` on, has none of it in the cache, and sets inode->size
     * afterwards. `collapse` may free the range in parts (LAYOUT_AGAIN: a hole, until the core has
     * called again); what moves does so in one step, or is refused before anything has changed.
     * NULL, or -EOPNOTSUPP. */
    int (*collapse)(struct inode *inode, uint64_t offset, uint64_t length);
    int (*insert)(struct inode *inode, uint64_t offset, uint64_t length);
    /* The extent at `offset`; past the last one a hole of any length. Shared. */
    int (*map)(struct inode *inode, uint64_t offset, struct extent *extent);

    /* -- extended attributes; all NULL: -ENOTSUP. `name` is whole ("user.x"), terminated. Access
     * control lists are two of them, in the form of fs/acl.h; those to be set are sound, and what
     * they mean for the mode is the core's business. -- */
    /* The value's length; copied when it fits in `size`; size 0 asks for the length only; -ERANGE,
     * -ENODATA. Shared. */
    int64_t (*xattr_get)(struct inode *inode, const char *name, void *value, size_t size);
    /* flags: XATTR_CREATE, XATTR_REPLACE. */
    int (*xattr_set)(struct inode *inode, const char *name, const void *value, size_t size,
                     int flags);
    int (*xattr_remove)(struct inode *inode, const char *name);
    /* Names, each terminated, as listxattr(2). Shared. */
    int64_t (*xattr_list)(struct inode *inode, char *list, size_t size);

    /* -- durability -- */
    /* Brackets what one operation does to metadata; NULL where the format has no transactions. */
    int (*step_begin)(struct volume *volume);
    int (*step_end)(struct volume *volume);
    /* A commit makes durable all that has changed, or at least the one inode, in parts between
     * which readers and writers go on. The core runs one at a time (fs/commit.h); all parts may be
     * NULL. A layout asks for a commit by setting volume->commit.wanted.
     *
     * Takes an inode whose dirty pages must be stored before what has changed may be committed
     * (data before the metadata that points at them) off its list, and returns it; NULL: none is
     * left, or what commit_begin would commit for these arguments, if it came at once, needs none
     * of them. The core stores the pages, and waits for them before commit_write. */
    struct inode *(*commit_data)(struct volume *volume, struct inode *inode,
                                 enum commit_cause cause);
    /* commit_data has answered NULL for the same arguments under the same lock; since then, dirty
     * inodes were stored. Freezes what has changed (all of it, or
     * what makes `inode` durable with all that is needed to find it), so that what changes from now
     * on is the next commit's. *needed false: nothing is left to do, the parts below are not
     * called. */
    int (*commit_begin)(struct volume *volume, struct inode *inode, enum commit_cause cause,
                        bool *needed);
    /* Writes what was frozen and makes it durable, device_flush included; with COMMIT_AGE the disk
     * may keep it in its cache, if a crash then leaves an older state. Called WITHOUT the volume's
     * lock: touches nothing but what commit_begin has set aside. (Under a virtual clock the program
     * goes on wherever this waits for the device: fs/task.h.) */
    int (*commit_write)(struct volume *volume);
    /* What was frozen is durable, or was not written because of `error`. Returns `error`, or what
     * else went wrong. */
    int (*commit_end)(struct volume *volume, int error);
    /* Periodic work (checkpoint, cleaner); called when the clock has reached the time that the last
     * call put in *next_ns (first: at mount). INT64_MAX: nothing to do until something changes,
     * when it is called again; so that an idle mount sleeps. NULL: none. */
    int (*idle)(struct volume *volume, int64_t now_ns, int64_t *next_ns);

    /* -- checkpoints; all NULL: the format keeps none -- */
    /* Fills the list with those numbered `from` and higher, ascending: how many, fewer than `room`
     * only at the end. Shared. */
    int64_t (*checkpoint_list)(struct volume *volume, uint64_t from, struct checkpoint *list,
                               size_t room);
    /* Keeps the checkpoint for good, or no longer. *number 0: the newest; says which. Durable with
     * the next commit. -ENOENT; -EBUSY: it may not be released now. */
    int (*checkpoint_keep)(struct volume *volume, uint64_t *number, bool keep);
    /* -ENOENT; -EBUSY: it is kept, or the newest. */
    int (*checkpoint_delete)(struct volume *volume, uint64_t number);

    /* Does one step of the cleaning that `idle` does at its time, whether that has come or not; the
     * next commit makes it last. report->count 0: there is nothing to be cleaned. NULL: nothing
     * ever needs it. */
    int (*clean)(struct volume *volume, struct clean_report *report);

    /* -- inspection; NULL: not offered -- */
    /* Examines an unmounted volume; one that is to be recovered first (probe_result.recover) as it
     * is, which a caller hardly wants. 0 also when things are wrong (see report). */
    int (*check)(struct device *device, const struct log *log, struct check_report *report);
    /* *object: a new JSON object. `number`: which group, inode, block... -EBUSY: what a commit is
     * writing. Shared. */
    int (*describe)(struct volume *volume, enum describe_kind kind, uint64_t number,
                    json_t **object);
    /* How the file lies on the disk: a new JSON object with at least "inode", "extents". Shared. */
    int (*explain)(struct inode *inode, json_t **object);
};

/* Reads or writes through layout->map for layouts whose files lie on the device as they are
 * (fs/mapped.c). Suitable as `load` and `store`. */
int mapped_load(struct inode *inode, const struct data_range *range, struct device_batch *batch);
int mapped_store(struct inode *inode, const struct data_range *range, struct device_batch *batch);

/* --- the registry (layouts/registry.c) ------------------------------------------------------- */

/* All layouts, ended by NULL. */
extern const struct layout *const layout_registry[];
/* By type ("ext2") or layout name ("memory"); *type is set when it was a type. -ENOENT. */
int layout_find(const char *name, const struct layout **layout, const struct layout_type **type);
/* The layout that recognises the device best. -ENODEV: none, with a sentence. */
int layout_probe(struct device *device, const struct layout **layout, struct probe_result *result);
/* Formats the device as `type` with the user's options (NULL: none) and flushes it. */
int layout_format(const char *type, struct device *device, struct options *options);

#endif
