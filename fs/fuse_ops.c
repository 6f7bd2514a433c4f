/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, the FUSE front end's handlers for names and attributes. Interface: fs/fuse_server.h.
 *
 * Only the owner of the image changes it, so names (also absent ones) and attributes are handed to
 * the kernel for a day: it asks again only after it changed something itself.
 */
#include <errno.h>
#include <limits.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fs/fuse_server.h"

int fuse_server_find(struct volume *volume, uint64_t node, struct inode **inode) {
    return volume_get(volume, fuse_server_swap_root(volume, node), inode);
}

struct inode *fuse_server_inode(fuse_req_t request, fuse_ino_t node) {
    struct inode *inode;
    int error = fuse_server_find(fuse_server_of(request)->volume, node, &inode);
    if (error) {
        fuse_server_reply_error(request, error);
        return NULL;
    }
    return inode;
}

static struct timespec timespec_of(struct timestamp time) {
    return (struct timespec){.tv_sec = time.seconds, .tv_nsec = time.nanoseconds};
}

static struct timestamp timestamp_of(struct timespec time) {
    return (struct timestamp){.seconds = time.tv_sec, .nanoseconds = (uint32_t)time.tv_nsec};
}

static void stat_of(const struct attributes *attributes, struct stat *stat) {
    *stat = (struct stat){
        .st_ino = attributes->ino,
        .st_mode = attributes->mode,
        .st_nlink = attributes->nlink,
        .st_uid = attributes->uid,
        .st_gid = attributes->gid,
        .st_rdev = makedev(attributes->rdev >> 20, attributes->rdev & 0xfffff),
        .st_size = (off_t)attributes->size,
        .st_blksize = attributes->block_size,
        .st_blocks = (blkcnt_t)attributes->sectors,
        .st_atim = timespec_of(attributes->atime),
        .st_mtim = timespec_of(attributes->mtime),
        .st_ctim = timespec_of(attributes->ctime),
    };
}

void fuse_server_entry(struct inode *inode, struct fuse_entry_param *entry) {
    struct attributes attributes;
    volume_getattr(inode, &attributes);
    *entry = (struct fuse_entry_param){
        .ino = fuse_server_swap_root(inode->volume, attributes.ino),
        .generation = attributes.generation,
        .attr_timeout = FUSE_VALID_SECONDS,
        .entry_timeout = FUSE_VALID_SECONDS,
    };
    stat_of(&attributes, &entry->attr);
}

/* Hands the caller's reference to `inode` over to the kernel. */
static void reply_entry(fuse_req_t request, struct inode *inode) {
    struct fuse_entry_param entry;
    fuse_server_entry(inode, &entry);
    if (fuse_reply_entry(request, &entry) != 0)
        volume_put(inode, 1);
}

static void reply_attributes(fuse_req_t request, struct inode *inode) {
    struct attributes attributes;
    struct stat stat;
    volume_getattr(inode, &attributes);
    stat_of(&attributes, &stat);
    fuse_reply_attr(request, &stat, FUSE_VALID_SECONDS);
}

/* --- names ----------------------------------------------------------------------------------- */

/* "." of any node is how a file handle becomes an inode that the kernel does not have in its cache.
 * One without a name is then gone for the kernel; only its FORGET is still on the way. */
static void reply_handle(fuse_req_t request, struct inode *inode) {
    struct attributes attributes;
    volume_getattr(inode, &attributes);
    if (attributes.nlink > 0) {
        reply_entry(request, inode);
        return;
    }
    volume_put(inode, 1);
    fuse_server_reply_error(request, -ESTALE);
}

static void op_lookup(fuse_req_t request, fuse_ino_t parent, const char *name) {
    struct inode *dir = fuse_server_inode(request, parent);
    if (!dir)
        return;
    if (strcmp(name, ".") == 0) {
        reply_handle(request, dir);
        return;
    }
    struct inode *inode;
    int error = volume_lookup(dir, name, (uint32_t)strlen(name), &inode);
    volume_put(dir, 1);
    if (error == -ENOENT) {
        const struct fuse_entry_param absent = {.entry_timeout = FUSE_VALID_SECONDS};
        fuse_reply_entry(request, &absent);
    } else if (error) {
        fuse_server_reply_error(request, error);
    } else {
        reply_entry(request, inode);
    }
}

static void forget(struct volume *volume, fuse_ino_t node, uint64_t count) {
    struct inode *inode;
    if (fuse_server_find(volume, node, &inode) != 0)
        return;
    for (count++; count > UINT32_MAX; count -= UINT32_MAX)
        volume_put(inode, UINT32_MAX);
    volume_put(inode, (uint32_t)count);
}

static void op_forget(fuse_req_t request, fuse_ino_t node, uint64_t count) {
    forget(fuse_server_of(request)->volume, node, count);
    fuse_reply_none(request);
}

static void op_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets) {
    struct volume *volume = fuse_server_of(request)->volume;
    for (size_t i = 0; i < count; i++)
        forget(volume, forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(request);
}

/* Replies nothing on success. */
static struct inode *create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
                            dev_t device, const char *target) {
    struct inode *dir = fuse_server_inode(request, parent);
    if (!dir)
        return NULL;
    const struct fuse_ctx *caller = fuse_req_ctx(request);
    const struct create_request wanted = {
        .mode = mode,
        .umask = caller->umask,
        .uid = caller->uid,
        .gid = caller->gid,
        .rdev = (uint32_t)(major(device) << 20 | minor(device)),
        .target = target,
    };
    struct inode *inode;
    int error = volume_create(dir, name, (uint32_t)strlen(name), &wanted, &inode);
    volume_put(dir, 1);
    if (error) {
        fuse_server_reply_error(request, error);
        return NULL;
    }
    return inode;
}

static void op_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
                     dev_t device) {
    struct inode *inode = create(request, parent, name, mode, device, NULL);
    if (inode)
        reply_entry(request, inode);
}

static void op_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode) {
    op_mknod(request, parent, name, S_IFDIR | mode, 0);
}

static void op_symlink(fuse_req_t request, const char *target, fuse_ino_t parent,
                       const char *name) {
    struct inode *inode = create(request, parent, name, S_IFLNK | 0777, 0, target);
    if (inode)
        reply_entry(request, inode);
}

static void remove_name(fuse_req_t request, fuse_ino_t parent, const char *name,
                        int (*remove)(struct inode *, const char *, uint32_t)) {
    struct inode *dir = fuse_server_inode(request, parent);
    if (!dir)
        return;
    int error = remove(dir, name, (uint32_t)strlen(name));
    volume_put(dir, 1);
    fuse_server_reply_error(request, error);
}

static void op_unlink(fuse_req_t request, fuse_ino_t parent, const char *name) {
    remove_name(request, parent, name, volume_unlink);
}

static void op_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name) {
    remove_name(request, parent, name, volume_rmdir);
}

static void op_rename(fuse_req_t request, fuse_ino_t parent, const char *name,
                      fuse_ino_t new_parent, const char *new_name, unsigned int flags) {
    struct inode *dir = fuse_server_inode(request, parent);
    if (!dir)
        return;
    struct inode *new_dir = fuse_server_inode(request, new_parent);
    if (new_dir) {
        int error = volume_rename(dir, name, (uint32_t)strlen(name), new_dir, new_name,
                                  (uint32_t)strlen(new_name), flags);
        volume_put(new_dir, 1);
        fuse_server_reply_error(request, error);
    }
    volume_put(dir, 1);
}

static void op_link(fuse_req_t request, fuse_ino_t node, fuse_ino_t new_parent,
                    const char *new_name) {
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return;
    struct inode *dir = fuse_server_inode(request, new_parent);
    if (!dir) {
        volume_put(inode, 1);
        return;
    }
    int error = volume_link(inode, dir, new_name, (uint32_t)strlen(new_name));
    volume_put(dir, 1);
    if (error) {
        volume_put(inode, 1);
        fuse_server_reply_error(request, error);
    } else {
        reply_entry(request, inode);
    }
}

static void op_readlink(fuse_req_t request, fuse_ino_t node) {
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return;
    char target[PATH_MAX + 1];
    int error = volume_readlink(inode, target, sizeof target);
    volume_put(inode, 1);
    if (error)
        fuse_server_reply_error(request, error);
    else
        fuse_reply_readlink(request, target);
}

/* --- attributes ------------------------------------------------------------------------------ */

static void op_getattr(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *file) {
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return;
    reply_attributes(request, inode);
    volume_put(inode, 1);
}

static unsigned setattr_mask(int wanted) {
    static const struct {
        int fuse;
        unsigned ours;
    } pairs[] = {
        {FUSE_SET_ATTR_MODE, SETATTR_MODE},
        {FUSE_SET_ATTR_UID, SETATTR_UID},
        {FUSE_SET_ATTR_GID, SETATTR_GID},
        {FUSE_SET_ATTR_SIZE, SETATTR_SIZE},
        {FUSE_SET_ATTR_ATIME, SETATTR_ATIME},
        {FUSE_SET_ATTR_MTIME, SETATTR_MTIME},
        {FUSE_SET_ATTR_ATIME_NOW, SETATTR_ATIME_NOW},
        {FUSE_SET_ATTR_MTIME_NOW, SETATTR_MTIME_NOW},
        {FUSE_SET_ATTR_CTIME, SETATTR_CTIME},
    };
    unsigned mask = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (wanted & pairs[i].fuse)
            mask |= pairs[i].ours;
    if (mask & SETATTR_ATIME_NOW) /* the kernel then says both, and the time counts for nothing */
        mask &= ~(unsigned)SETATTR_ATIME;
    if (mask & SETATTR_MTIME_NOW)
        mask &= ~(unsigned)SETATTR_MTIME;
    const struct fuse_setattr_in *raw = fuse_server_argument();
    return raw->valid & FATTR_KILL_SUIDGID ? mask | SETATTR_KILL_SUID_SGID : mask;
}

static void op_setattr(fuse_req_t request, fuse_ino_t node, struct stat *stat, int wanted,
                       struct fuse_file_info *file) {
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return;
    const struct attributes attributes = {
        .mode = stat->st_mode,
        .uid = stat->st_uid,
        .gid = stat->st_gid,
        .size = (uint64_t)stat->st_size,
        .atime = timestamp_of(stat->st_atim),
        .mtime = timestamp_of(stat->st_mtim),
        .ctime = timestamp_of(stat->st_ctim),
    };
    int error = volume_setattr(inode, setattr_mask(wanted), &attributes);
    if (error)
        fuse_server_reply_error(request, error);
    else
        reply_attributes(request, inode);
    volume_put(inode, 1);
}

static void op_statfs(fuse_req_t request, fuse_ino_t node) {
    struct volume_usage usage;
    int error = volume_statfs(fuse_server_of(request)->volume, &usage);
    if (error) {
        fuse_server_reply_error(request, error);
        return;
    }
    const struct statvfs statvfs = {
        .f_bsize = usage.block_size,
        .f_frsize = usage.block_size,
        .f_blocks = usage.blocks,
        .f_bfree = usage.free,
        .f_bavail = usage.available,
        .f_files = usage.inodes,
        .f_ffree = usage.inodes_free,
        .f_favail = usage.inodes_free,
        .f_namemax = usage.name_max,
    };
    fuse_reply_statfs(request, &statvfs);
}

/* --- the session ----------------------------------------------------------------------------- */

/* Nothing is kept of an open file or directory, so there is nothing to do here, nor at a release:
 * ENOSYS tells the kernel to do both by itself from now on, if it is one that can. */
static void op_open(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *file) {
    file->keep_cache = 1;
    if (fuse_server_of(request)->capable & FUSE_CAP_NO_OPEN_SUPPORT)
        fuse_server_reply_error(request, -ENOSYS);
    else
        fuse_reply_open(request, file);
}

static void op_opendir(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *file) {
    file->keep_cache = 1;
    file->cache_readdir = 1;
    if (fuse_server_of(request)->capable & FUSE_CAP_NO_OPENDIR_SUPPORT)
        fuse_server_reply_error(request, -ENOSYS);
    else
        fuse_reply_open(request, file);
}

static void op_init(void *userdata, struct fuse_conn_info *connection) {
    struct fuse_server *server = userdata;
    unsigned wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS |
                      FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_CACHE_SYMLINKS |
                      FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT |
                      FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_IOCTL_DIR;
    if (server->delayed_writes)
        wanted |= FUSE_CAP_WRITEBACK_CACHE;
    if (server->volume->layout->xattr_get)
        wanted |= FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK;
    server->capable = connection->capable;
    connection->want = wanted & connection->capable;
    connection->max_write = FUSE_TRANSFER_MAX;
    connection->max_read = FUSE_TRANSFER_MAX;
    connection->max_background = 64;
    connection->congestion_threshold = 48;
    /* Where the kernel keeps times itself, it must show what the format will have kept of them. */
    connection->time_gran = server->volume->limits.time_granularity_ns;
}

/* What is missing is missing on purpose: libfuse answers ENOSYS, once, and the kernel then does
 * without. create: MKNOD does it in as many requests, and the open that follows costs none, nor a
 * release. flush: a close promises nothing. access: the mount has default_permissions. locks: local
 * ones are right, for no other machine sees the image. Others are in fuse_raw.c. */
const struct fuse_lowlevel_ops fuse_server_operations = {
    .init = op_init,
    .lookup = op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .symlink = op_symlink,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .rename = op_rename,
    .link = op_link,
    .readlink = op_readlink,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .statfs = op_statfs,
    .ioctl = fuse_server_ioctl,
    .open = op_open,
    .opendir = op_opendir,
    .read = fuse_server_read,
    .write = fuse_server_write,
    .fsync = fuse_server_fsync,
    .fsyncdir = fuse_server_fsync,
    .fallocate = fuse_server_fallocate,
    .lseek = fuse_server_lseek,
    .readdir = fuse_server_readdir,
    .readdirplus = fuse_server_readdirplus,
    .getxattr = fuse_server_getxattr,
    .removexattr = fuse_server_removexattr,
    .listxattr = fuse_server_listxattr,
};
