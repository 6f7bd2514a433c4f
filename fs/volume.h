/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over the page cache and the layout contract. Over it: the FUSE front end, the tools
 * and the bench.
 *
 * The file API, by inode. Names are (pointer, length) and need no terminator. Permissions are the
 * caller's business (under FUSE the kernel checks them); everything else that POSIX asks of a
 * filesystem is done here, once, for every layout.
 *
 * Lifetime: an `struct inode *` handed out carries one reference, given back with volume_put. An
 * inode whose last name is gone lives until its last reference.
 *
 * Locking, in this order:
 *  1. the right to lead a commit (fs/commit.h), which is asked for and waited for with no lock
 * held.
 *  2. the inode's data lock (read-write, striped by inode number): contents of its pages, and size
 *     against readers; see fs/volume_data.c.
 *  3. volume->lock (read-write): the namespace, attributes, and every call into the layout (but
 *     commit_write, which has no lock).
 *  4. the inode cache's mutex, the commit's, and the pool's: look-up structures. Leaves, but for
 *     the pool's, which may be taken under the first.
 * All functions may be called from any thread in wall mode; under a virtual clock from one.
 *
 * Under a virtual clock nothing runs by itself: every call ends with volume_tick's work when its
 * time has come, so that write-back goes on as it would in the modelled kernel.
 */
#ifndef LAYOUTFS_VOLUME_H
#define LAYOUTFS_VOLUME_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/commit.h"
#include "fs/credentials.h"
#include "fs/layout.h"
#include "fs/machine.h"

#define VOLUME_DATA_LOCKS 64u

struct inode_cache;
struct page_cache;

enum volume_changed {
    CHANGED_SINCE_TICK = 1,
    CHANGED_SINCE_COMMIT = 2, /* and no commit has begun since, either */
    CHANGED_ALL = 3,
};

struct volume {
    const struct layout *layout;
    struct device *device;  /* owned; NULL for a volatile layout */
    struct clock *clock;    /* borrowed */
    const struct log *log;  /* borrowed */
    char name[256];         /* for messages */
    bool read_only;         /* may become true after an error (volume_fail) */
    _Atomic bool shut_down; /* every operation answers -EIO */
    bool failed;            /* by volume_fail: what was not durable then never will be */
    /* set by layout->mount */
    void *layout_data;
    struct buffer_cache *buffers;
    uint64_t root_ino;
    struct layout_limits limits;
    bool store_changes; /* the layout's: `store` changes metadata (it allocates, or journals data):
                           it gets the exclusive lock and a step, and dirty data may lie in holes */
    bool store_sweeps;  /* the layout's: what is stored in turn lies side by side, wherever it is in
                           the file: write-back takes all dirty pages of a file in their order */
    bool commit_stores_written; /* the layout's: before a commit all dirty pages are stored, in the
                                   order in which they became dirty; if not, or if that is not
                                   enough, those that layout->commit_data names */
    bool commit_frees;          /* the layout's: a commit would make blocks free that are not yet */
    bool commit_goes_on; /* the layout's: the last commit has made blocks free, and the next one
                            may, too: who finds no space may ask again and again */
    bool store_frees;    /* likewise: so would storing all dirty pages */
    /* the core's, but for commit.wanted */
    struct commit commit;
    struct machine machine; /* cache size, dirty limits and write-back times, in both modes */
    struct pool pool;
    struct page_cache *page_cache;
    struct inode_cache *inode_cache;
    pthread_rwlock_t lock;
    pthread_rwlock_t data_locks[VOLUME_DATA_LOCKS];
    uint32_t direct_read_bytes, direct_write_bytes; /* as in struct volume_config */
    bool setid_by_caller;                           /* likewise */
    int64_t writeback_next_ns;
    int64_t idle_next_ns;
    /* See volume_note_change: what has changed since the last tick; the tick that last saw some. */
    _Atomic unsigned changed; /* enum volume_changed */
    int64_t changed_ns;
    /* When the first change since the last commit will be old enough; INT64_MAX: there is none. */
    _Atomic int64_t commit_due_ns;
    enum atime_policy { ATIME_RELATIME, ATIME_NONE, ATIME_STRICT } atime_policy;
    bool diratime;           /* directories, too, have access times that change */
    struct flusher *flusher; /* wall mode: the write-back thread, NULL under a virtual clock */
};

struct volume_config {
    const char *type;      /* "ext2"; NULL: probe the device */
    struct device *device; /* taken over on success only; NULL only for a volatile layout */
    struct clock *clock;
    const struct log *log;
    const char *options; /* mount options, "a=b,c"; NULL: defaults */
    bool read_only;
    /* Cache size and write-back behaviour; NULL: wall-mode defaults (512 MiB, 10 %, 40 %, 30 s,
     * 5 s). Borrowed for the call. */
    const struct machine *machine;
    /* Reads, and writes, of whole pages and at least so many bytes go past the page cache, for a
     * front end whose caller caches as well (the kernel, over a mount). 0: none do. */
    uint32_t direct_read_bytes, direct_write_bytes;
    /* Changed contents leave set-id bits as they are, for a front end that knows whether who writes
     * may keep them, and else says SETATTR_KILL_SUID_SGID. */
    bool setid_by_caller;
};

/* Core options, understood by every layout's mount (atime=, cache=): see volume_options. */
extern const struct option_spec volume_options[];

/* Would a mount of that type (a layout's name, too) accept the options? -EINVAL with a sentence,
 * -ENOENT: no such type, -ENOMEM. */
int volume_options_check(const char *type, const char *options, const struct log *log);
/* Mounts. -ENODEV, -EUCLEAN, -EROFS, -EINVAL, -ENOTSUP..., each with a sentence. */
int volume_open(const struct volume_config *config, struct volume **volume);
/* Syncs, unmounts, closes the device. All inodes must have been put. The first error is returned
 * (that of volume_sync, too); everything is freed all the same. */
int volume_close(struct volume *volume);
/* A layout found the volume damaged or a write failed for good: no more writes, and every fsync,
 * sync and the unmount answer -EROFS (or -EIO, if it is shut down), as ext4's do. Any thread. */
void volume_fail(struct volume *volume, bool shut_down);

/* For those who examine or change a volume that is not mounted, by the functions of its layout:
 * what these need of a volume. In a zeroed structure sets device, clock, log (borrowed) and name,
 * and makes the pool for buffers, of `cache_bytes`. -ENOMEM. */
int volume_init_bare(struct volume *volume, struct device *device, const struct log *log,
                     uint64_t cache_bytes);
/* Destroys the pool, and before it the buffers, if there are any. */
void volume_destroy_bare(struct volume *volume);
/* For layouts: waits until every write that the core has submitted is done. Only then is it known
 * that none has failed (buffer_cache_on_failure, layout->store_failed), and may a log be shortened
 * by what it held, or a checkpoint be made over it. Under any lock; the exclusive one where the
 * layout has store_failed. */
void volume_wait_writes(struct volume *volume);

/* --- inodes --- */
int volume_get(struct volume *volume, uint64_t ino, struct inode **inode); /* -ESTALE, -EUCLEAN */
int volume_root(struct volume *volume, struct inode **inode);
void volume_hold(struct inode *inode, uint32_t count);
/* Gives `count` references back; frees an unlinked inode with the last one. */
void volume_put(struct inode *inode, uint32_t count);
/* Drops every reference to every inode, for a front end that goes away without giving them back
 * one by one (an unmounted FUSE session). */
void volume_put_all(struct volume *volume);

/* --- namespace --- */
int volume_lookup(struct inode *dir, const char *name, uint32_t length, struct inode **inode);

struct create_request {
    uint32_t mode;     /* type and permissions */
    uint32_t umask;    /* taken from the mode, unless the directory has a default list (acl(5)) */
    uint32_t uid, gid; /* gid and set-gid are inherited from a set-gid directory */
    uint32_t rdev;
    const char *target; /* symlinks: terminated */
};
/* -EEXIST, -ENOSPC, -EMLINK, -ENAMETOOLONG, -EROFS, ... *inode (may be NULL) is referenced. */
int volume_create(struct inode *dir, const char *name, uint32_t length,
                  const struct create_request *request, struct inode **inode);
/* As open(2)'s O_TMPFILE: a regular file without a name, near `dir`. It is freed with its last
 * reference, unless volume_link gives it a name. *inode is referenced. */
int volume_create_nameless(struct inode *dir, const struct create_request *request,
                           struct inode **inode);
/* -ENOENT: the inode has lost its last name. */
int volume_link(struct inode *inode, struct inode *dir, const char *name, uint32_t length);
int volume_unlink(struct inode *dir, const char *name, uint32_t length); /* not directories */
int volume_rmdir(struct inode *dir, const char *name, uint32_t length);
/* flags: RENAME_NOREPLACE, RENAME_EXCHANGE and RENAME_WHITEOUT of renameat2(2). A whiteout belongs
 * to the owner of what was renamed. */
int volume_rename(struct inode *dir, const char *name, uint32_t length, struct inode *new_dir,
                  const char *new_name, uint32_t new_length, unsigned flags);
int volume_readdir(struct inode *dir, uint64_t cookie, dir_visit visit, void *context);
/* readlink: fills `target` (size bytes, terminated); -EINVAL when it is no symlink. */
int volume_readlink(struct inode *inode, char *target, size_t size);
/* Walks an absolute or relative path from the root, following symlinks in all but the last
 * component (there too with follow). */
int volume_resolve(struct volume *volume, const char *path, bool follow, struct inode **inode);

/* --- attributes --- */
struct attributes { /* a consistent copy */
    uint64_t ino, size, sectors;
    struct timestamp atime, mtime, ctime, btime;
    uint32_t generation, mode, uid, gid, nlink, rdev, flags, project, block_size;
};
void volume_getattr(struct inode *inode, struct attributes *attributes);

enum setattr_mask {
    SETATTR_MODE = 1,
    SETATTR_UID = 2,
    SETATTR_GID = 4,
    SETATTR_SIZE = 8,
    SETATTR_ATIME = 16,
    SETATTR_MTIME = 32,
    SETATTR_ATIME_NOW = 64,
    SETATTR_MTIME_NOW = 128,
    SETATTR_FLAGS = 256, /* the format's own stay; -EOPNOTSUPP if one is new that cannot be kept */
    SETATTR_CTIME = 512, /* the caller's value (write-back caching hands it down) */
    SETATTR_KILL_SUID_SGID = 1024,
    SETATTR_PROJECT = 2048, /* -EOPNOTSUPP, unless 0, where the format has no project ids */
};
/* Changes the attributes in `mask`, taken from *attributes; ctime is set unless given. A file that
 * gets a new owner or group, and no mode with it, loses its set-id bits. */
int volume_setattr(struct inode *inode, unsigned mask, const struct attributes *attributes);

/* --- data: fs/volume_data.c --- */
/* Bytes read (0 at the end), or negative errno. */
int64_t volume_read(struct inode *inode, void *buffer, size_t size, uint64_t offset);
/* As open(2)'s O_NOATIME. */
int64_t volume_read_noatime(struct inode *inode, void *buffer, size_t size, uint64_t offset);
/* Bytes written (fewer when space ran out), or negative errno. A byte counted here is never lost to
 * lack of space later. Sets mtime and ctime, and clears set-id bits as the kernel does when a plain
 * user writes (but see setid_by_caller). */
int64_t volume_write(struct inode *inode, const void *buffer, size_t size, uint64_t offset);
int volume_truncate(struct inode *inode, uint64_t size);
/* fallocate(2), mode: FALLOC_FL_*: fs/volume_fallocate.c. -EOPNOTSUPP: the format cannot. */
int volume_fallocate(struct inode *inode, int mode, uint64_t offset, uint64_t length);
/* copy_file_range(2), between two files of one volume or within one: fs/volume_copy.c. Holes become
 * holes. Bytes copied, fewer when the source ends or space runs out, or negative errno; -EINVAL:
 * the ranges overlap. Times and set-id bits as volume_read's and volume_write's. */
int64_t volume_copy(struct inode *source, uint64_t source_offset, struct inode *target,
                    uint64_t target_offset, uint64_t length);
/* whence: SEEK_DATA or SEEK_HOLE; the offset or -ENXIO. */
int64_t volume_seek(struct inode *inode, uint64_t offset, int whence);
int volume_map(struct inode *inode, uint64_t offset, struct extent *extent);
int volume_fsync(struct inode *inode, bool data_only);

/* --- extended attributes: as the layout's, with names of user, trusted and security only; access
 * control lists show in the mode (acl(5)) --- */
int64_t volume_getxattr(struct inode *inode, const char *name, void *value, size_t size);
#define SETXATTR_KILL_SGID 0x100 /* a flag beside the layout's: S_ISGID goes, too */
int volume_setxattr(struct inode *inode, const char *name, const void *value, size_t size,
                    int flags);
int volume_removexattr(struct inode *inode, const char *name);
int64_t volume_listxattr(struct inode *inode, char *list, size_t size);

/* --- the whole volume --- */
int volume_sync(struct volume *volume);
void volume_commit_counts(struct volume *volume, struct commit_counts *counts);
int volume_statfs(struct volume *volume, struct volume_usage *usage);
/* Syncs and forgets all cached data, metadata and unreferenced inodes: the next access is cold. */
int volume_drop_caches(struct volume *volume);
/* Does the periodic work that is due: write-back by age and limit, the layout's idle work. */
int volume_tick(struct volume *volume);
/* --- checkpoints, as the layout's; -ENOTSUP: the format keeps none. What changes is durable --- */
int64_t volume_checkpoint_list(struct volume *volume, uint64_t from, struct checkpoint *list,
                               size_t room);
/* Makes a checkpoint of what there is now, if anything changed since the newest, and keeps it. */
int volume_checkpoint_create(struct volume *volume, uint64_t *number);
int volume_checkpoint_keep(struct volume *volume, uint64_t number, bool keep);
int volume_checkpoint_delete(struct volume *volume, uint64_t number);

/* A step of the layout's cleaning, made durable. -ENOTSUP: the format needs none. */
int volume_clean(struct volume *volume, struct clean_report *report);

int volume_describe(struct volume *volume, enum describe_kind kind, uint64_t number,
                    json_t **object);
int volume_explain(struct inode *inode, json_t **object);

#endif
