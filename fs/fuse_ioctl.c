/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, the FUSE front end's ioctls: flags, project ids, generation, label. Interface:
 * fs/fuse_server.h. The kernel answers some by itself (FIGETBSZ, FS_IOC_GETFSUUID), and checks who
 * may change flags before it hands the change down.
 */
#include <errno.h>
#include <linux/fs.h>
#include <string.h>

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
    } else {
        fuse_server_reply_error(request, -ENOTTY);
    }
    volume_put(inode, 1);
}
