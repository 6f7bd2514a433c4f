/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, the FUSE front end's handlers for file data and extended attributes. Interface:
 * fs/fuse_server.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/limits.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/fuse_ring.h"
#include "fs/fuse_server.h"

union fuse_reply *fuse_server_buffer_take(struct fuse_server *server) {
    union fuse_reply *buffer = fuse_ring_payload();
    if (buffer)
        return buffer;
    pthread_mutex_lock(&server->buffers_lock);
    buffer = server->buffers;
    if (buffer)
        server->buffers = buffer->next;
    pthread_mutex_unlock(&server->buffers_lock);
    return buffer ? buffer : malloc(sizeof *buffer);
}

void fuse_server_buffer_give(struct fuse_server *server, union fuse_reply *buffer) {
    if (buffer == fuse_ring_payload())
        return;
    pthread_mutex_lock(&server->buffers_lock);
    buffer->next = server->buffers;
    server->buffers = buffer;
    pthread_mutex_unlock(&server->buffers_lock);
}

/* The inode of `node` and a buffer to answer with; or replies the error and returns NULL. */
struct inode *fuse_server_inode_and_buffer(fuse_req_t request, fuse_ino_t node,
                                           union fuse_reply **buffer) {
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return NULL;
    *buffer = fuse_server_buffer_take(fuse_server_of(request));
    if (!*buffer) {
        volume_put(inode, 1);
        fuse_server_reply_error(request, -ENOMEM);
        return NULL;
    }
    return inode;
}

void fuse_server_reply_buffer(fuse_req_t request, union fuse_reply *buffer, int64_t result) {
    struct fuse_server *server = fuse_server_of(request); /* the reply frees `request` */
    if (result < 0)
        fuse_server_reply_error(request, (int)result);
    else
        fuse_reply_buf(request, buffer->data, (size_t)result);
    fuse_server_buffer_give(server, buffer);
}

static size_t at_most(size_t size, size_t limit) {
    return size < limit ? size : limit;
}

/* --- file data ------------------------------------------------------------------------------- */

int fuse_server_clear_setid(struct inode *inode) {
    struct attributes attributes;
    volume_getattr(inode, &attributes);
    return attributes.mode & (S_ISUID | S_ISGID)
               ? volume_setattr(inode, SETATTR_KILL_SUID_SGID, &attributes)
               : 0;
}

void fuse_server_read(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                      struct fuse_file_info *file) {
    union fuse_reply *buffer;
    struct inode *inode = fuse_server_inode_and_buffer(request, node, &buffer);
    if (!inode)
        return;
    size = at_most(size, sizeof buffer->data);
    int64_t count = file->flags & O_NOATIME
                        ? volume_read_noatime(inode, buffer->data, size, (uint64_t)offset)
                        : volume_read(inode, buffer->data, size, (uint64_t)offset);
    volume_put(inode, 1);
    fuse_server_reply_buffer(request, buffer, count);
}

void fuse_server_write(fuse_req_t request, fuse_ino_t node, const char *data, size_t size,
                       off_t offset, struct fuse_file_info *file) {
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return;
    const struct fuse_write_in *raw = fuse_server_argument();
    int64_t count = raw->write_flags & FUSE_WRITE_KILL_SUIDGID ? fuse_server_clear_setid(inode) : 0;
    if (!count)
        count = volume_write(inode, data, size, (uint64_t)offset);
    volume_put(inode, 1);
    /* Nobody looks at the count of a write that comes from the kernel's cache. */
    if (file->writepage && count >= 0 && (size_t)count < size)
        count = -ENOSPC;
    if (count < 0)
        fuse_server_reply_error(request, (int)count);
    else
        fuse_reply_write(request, (size_t)count);
}

/* The kernel hands no syncfs(2) down: fsync of the root stands for the whole volume. */
void fuse_server_fsync(fuse_req_t request, fuse_ino_t node, int data_only,
                       struct fuse_file_info *file) {
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return;
    int error = node == FUSE_ROOT_ID ? volume_sync(fuse_server_of(request)->volume)
                                     : volume_fsync(inode, data_only);
    volume_put(inode, 1);
    fuse_server_reply_error(request, error);
}

void fuse_server_fallocate(fuse_req_t request, fuse_ino_t node, int mode, off_t offset,
                           off_t length, struct fuse_file_info *file) {
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return;
    /* The kernel leaves it to us without a word about who may keep them. */
    int error = fuse_req_ctx(request)->uid != 0 ? fuse_server_clear_setid(inode) : 0;
    if (!error)
        error = volume_fallocate(inode, mode, (uint64_t)offset, (uint64_t)length);
    volume_put(inode, 1);
    fuse_server_reply_error(request, error);
}

void fuse_server_lseek(fuse_req_t request, fuse_ino_t node, off_t offset, int whence,
                       struct fuse_file_info *file) {
    /* Only the kernel knows where data is that it holds back. Without us it takes the whole file
     * for data, which is never wrong. */
    if (fuse_server_of(request)->delayed_writes) {
        fuse_server_reply_error(request, -ENOSYS);
        return;
    }
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return;
    int64_t found = volume_seek(inode, (uint64_t)offset, whence);
    volume_put(inode, 1);
    if (found < 0)
        fuse_server_reply_error(request, (int)found);
    else
        fuse_reply_lseek(request, found);
}

/* --- extended attributes --------------------------------------------------------------------- */

/* A format without them says so once: the kernel then never asks again, which saves a request for
 * security.capability with the first write to each file. */
static bool has_xattrs(fuse_req_t request) {
    if (fuse_server_of(request)->volume->layout->xattr_get)
        return true;
    fuse_server_reply_error(request, -ENOSYS);
    return false;
}

/* Answers as the kernel asks: the length for size 0, the value when it fits. */
static void reply_xattr(fuse_req_t request, union fuse_reply *buffer, int64_t length, size_t size) {
    if (length >= 0 && size == 0) {
        struct fuse_server *server = fuse_server_of(request);
        fuse_reply_xattr(request, (size_t)length);
        fuse_server_buffer_give(server, buffer);
        return;
    }
    if (length >= 0 && (size_t)length > size)
        length = -ERANGE;
    fuse_server_reply_buffer(request, buffer, length);
}

void fuse_server_getxattr(fuse_req_t request, fuse_ino_t node, const char *name, size_t size) {
    if (!has_xattrs(request))
        return;
    union fuse_reply *buffer;
    struct inode *inode = fuse_server_inode_and_buffer(request, node, &buffer);
    if (!inode)
        return;
    int64_t length = volume_getxattr(inode, name, buffer->data, at_most(size, sizeof buffer->data));
    volume_put(inode, 1);
    reply_xattr(request, buffer, length, size);
}

void fuse_server_removexattr(fuse_req_t request, fuse_ino_t node, const char *name) {
    if (!has_xattrs(request))
        return;
    struct inode *inode = fuse_server_inode(request, node);
    if (!inode)
        return;
    int error = volume_removexattr(inode, name);
    volume_put(inode, 1);
    fuse_server_reply_error(request, error);
}

/* Takes the names that only an administrator may know out of a list; its new length. */
static int64_t hide_trusted(char *names, int64_t length) {
    static const char prefix[] = "trusted.";
    int64_t kept = 0;
    for (int64_t position = 0; position < length;) {
        int64_t next = position + (int64_t)strlen(names + position) + 1;
        if (strncmp(names + position, prefix, sizeof prefix - 1) != 0) {
            memmove(names + kept, names + position, (size_t)(next - position));
            kept += next - position;
        }
        position = next;
    }
    return kept;
}

void fuse_server_listxattr(fuse_req_t request, fuse_ino_t node, size_t size) {
    union fuse_reply *buffer;
    struct inode *inode = fuse_server_inode_and_buffer(request, node, &buffer);
    if (!inode)
        return;
    int64_t length = volume_listxattr(inode, buffer->data, XATTR_LIST_MAX);
    volume_put(inode, 1);
    if (length > 0 && fuse_req_ctx(request)->uid != 0)
        length = hide_trusted(buffer->data, length);
    reply_xattr(request, buffer, length, size);
}
