/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, the FUSE front end's ioctls: flags, project ids, generation, label, checkpoints.
 * Interface: fs/fuse_server.h, fs/fuse_ioctl.h. The kernel answers some by itself (FIGETBSZ,
 * FS_IOC_GETFSUUID), and checks who may change flags before it hands the change down.
 */
#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/fuse_ioctl.h"
#include "fs/fuse_server.h"

/* The flags of lsattr and chattr have two encodings; to change either the kernel first asks for the
 * second. */
static const struct {
    unsigned flag, xflag;
} flag_pairs[] = {
    {INODE_IMMUTABLE, FS_XFLAG_IMMUTABLE}, {INODE_APPEND, FS_XFLAG_APPEND},
    {INODE_SYNC, FS_XFLAG_SYNC},           {INODE_NOATIME, FS_XFLAG_NOATIME},
    {INODE_NODUMP, FS_XFLAG_NODUMP},       {INODE_PROJECT_INHERIT, FS_XFLAG_PROJINHERIT},
};
#define FLAG_PAIRS (sizeof flag_pairs / sizeof *flag_pairs)

static struct fsxattr fsxattr_of(const struct attributes *attributes) {
    struct fsxattr result = {.fsx_projid = attributes->project};
    for (size_t i = 0; i < FLAG_PAIRS; i++)
        if (attributes->flags & flag_pairs[i].flag)
            result.fsx_xflags |= flag_pairs[i].xflag;
    return result;
}

/* `flags` with those that *wanted can express taken from it. */
static unsigned flags_of(const struct fsxattr *wanted, unsigned flags) {
    for (size_t i = 0; i < FLAG_PAIRS; i++) {
        flags &= ~flag_pairs[i].flag;
        if (wanted->fsx_xflags & flag_pairs[i].xflag)
            flags |= flag_pairs[i].flag;
    }
    return flags;
}

static void reply_value(fuse_req_t request, const void *value, size_t size, size_t room) {
    fuse_reply_ioctl(request, 0, value, size < room ? size : room);
}

static void change(fuse_req_t request, struct inode *inode, unsigned mask,
                   const struct attributes *attributes) {
    int error = volume_setattr(inode, mask, attributes);
    if (error)
        fuse_server_reply_error(request, error);
    else
        fuse_reply_ioctl(request, 0, NULL, 0);
}

static void get_label(fuse_req_t request, struct volume *volume, size_t room) {
    struct volume_usage usage;
    int error = volume_statfs(volume, &usage);
    if (error)
        fuse_server_reply_error(request, error);
    else
        reply_value(request, usage.label, sizeof usage.label, room);
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static void list_checkpoints(fuse_req_t request, struct volume *volume, const void *input) {
    struct checkpoint_page *page = malloc(sizeof(*page));
    int64_t count = -ENOMEM;
    if (page) {
        memcpy(page, input, sizeof(*page));
        count = volume_checkpoint_list(volume, page->from, page->list, CHECKPOINT_PAGE);
    }
    if (count < 0) {
        fuse_server_reply_error(request, (int)count);
    } else {
        page->count = (uint64_t)count;
        fuse_reply_ioctl(request, 0, page, sizeof(*page));
    }
    free(page);
}

static void change_checkpoint(fuse_req_t request, struct volume *volume, unsigned command,
                              uint64_t number) {
    uid_t user = fuse_req_ctx(request)->uid;
    int error = user == 0 || user == geteuid() ? 0 : -EPERM;
    if (!error && command == LAYOUTFS_IOC_CHECKPOINT_CREATE)
        error = volume_checkpoint_create(volume, &number);
    else if (!error && command == LAYOUTFS_IOC_CHECKPOINT_DELETE)
        error = volume_checkpoint_delete(volume, number);
    else if (!error)
        error = volume_checkpoint_keep(volume, number, command == LAYOUTFS_IOC_CHECKPOINT_KEEP);
    if (error)
        fuse_server_reply_error(request, error);
    else if (command == LAYOUTFS_IOC_CHECKPOINT_CREATE)
        fuse_reply_ioctl(request, 0, &number, sizeof(number));
    else
        fuse_reply_ioctl(request, 0, NULL, 0);
}

/* False: it is none of these, and nothing was replied. */
static bool checkpoint_ioctl(fuse_req_t request, struct volume *volume, unsigned command,
                             const void *input, size_t input_size, size_t output_size) {
    uint64_t number = 0;
    switch (command) {
    case LAYOUTFS_IOC_CHECKPOINT_LIST:
        if (input_size < sizeof(struct checkpoint_page) ||
            output_size < sizeof(struct checkpoint_page))
            return false;
        list_checkpoints(request, volume, input);
        return true;
    case LAYOUTFS_IOC_CHECKPOINT_KEEP:
    case LAYOUTFS_IOC_CHECKPOINT_RELEASE:
    case LAYOUTFS_IOC_CHECKPOINT_DELETE:
        if (input_size < sizeof(number))
            return false;
        memcpy(&number, input, sizeof(number));
        break;
    case LAYOUTFS_IOC_CHECKPOINT_CREATE:
        if (output_size < sizeof(number))
            return false;
        break;
    default:
        return false;
    }
    change_checkpoint(request, volume, command, number);
    return true;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* FS_IOC_GETFLAGS and its like are defined with a long and carry an int. */
void fuse_server_ioctl(fuse_req_t request, fuse_ino_t node, unsigned int command, void *argument,
                       struct fuse_file_info *file, unsigned options, const void *input,
                       size_t input_size, size_t output_size) {
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return;
    struct attributes attributes;
    struct fsxattr extended;
    volume_getattr(inode, &attributes);
    if (command == FS_IOC_GETFLAGS) {
        reply_value(request, &attributes.flags, sizeof attributes.flags, output_size);
    } else if (command == FS_IOC_GETVERSION) {
        reply_value(request, &attributes.generation, sizeof attributes.generation, output_size);
    } else if (command == FS_IOC_FSGETXATTR) {
        extended = fsxattr_of(&attributes);
        reply_value(request, &extended, sizeof extended, output_size);
    } else if (command == FS_IOC_GETFSLABEL) {
        get_label(request, inode->volume, output_size);
    } else if (command == FS_IOC_SETFLAGS && input_size >= sizeof attributes.flags) {
        memcpy(&attributes.flags, input, sizeof attributes.flags);
        change(request, inode, SETATTR_FLAGS, &attributes);
    } else if (command == FS_IOC_FSSETXATTR && input_size >= sizeof extended) {
        memcpy(&extended, input, sizeof extended);
        attributes.flags = flags_of(&extended, attributes.flags);
        attributes.project = extended.fsx_projid;
        change(request, inode, SETATTR_FLAGS | SETATTR_PROJECT, &attributes);
    } else if (command == FITRIM) {
        fuse_server_reply_error(request, -EOPNOTSUPP); /* as of a disk that cannot discard */
    } else if (!checkpoint_ioctl(request, inode->volume, command, input, input_size, output_size)) {
        fuse_server_reply_error(request, -ENOTTY);
    }
    volume_put(inode, 1);
}
