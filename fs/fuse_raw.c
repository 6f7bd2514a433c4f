/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, the FUSE front end's handlers of requests that libfuse 3.14 does not know, or knows in
 * an older form only: they read the kernel's request and build the answer themselves. Interface:
 * fs/fuse_server.h; the protocol: <linux/fuse.h> and fs/fuse_protocol.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "fs/fuse_protocol.h"
#include "fs/fuse_server.h"

/* Copied for one request: the program can be interrupted in between, and asks for the rest. */
#define COPY_MAX (UINT64_C(64) << 20)

struct raw_request {
    struct fuse_server *server;
    const struct fuse_in_header *header;
    const void *argument; /* `length` bytes */
    size_t length;
};

static int answer(const struct raw_request *request, const void *value, size_t size) {
    return fuse_server_answer(request->server, request->header->unique, 0, value, size);
}

static void answer_error(const struct raw_request *request, int error) {
    fuse_server_answer(request->server, request->header->unique, error, NULL, 0);
}

/* As fuse_server_inode. */
static struct inode *inode_of(const struct raw_request *request, uint64_t node) {
    struct inode *inode;
    int error = fuse_server_find(request->server->volume, node, &inode);
    if (error)
        answer_error(request, error);
    return error ? NULL : inode;
}

/* --- STATX ------------------------------------------------------------------------------------ */

static struct statx_timestamp statx_time(struct timestamp time) {
    return (struct statx_timestamp){.tv_sec = time.seconds, .tv_nsec = time.nanoseconds};
}

static void statx_of(const struct attributes *a, struct statx *statx) {
    *statx = (struct statx){
        .stx_mask = STATX_BASIC_STATS,
        .stx_blksize = a->block_size,
        .stx_nlink = a->nlink,
        .stx_uid = a->uid,
        .stx_gid = a->gid,
        .stx_mode = (uint16_t)a->mode,
        .stx_ino = a->ino,
        .stx_size = a->size,
        .stx_blocks = a->sectors,
        .stx_atime = statx_time(a->atime),
        .stx_btime = statx_time(a->btime),
        .stx_ctime = statx_time(a->ctime),
        .stx_mtime = statx_time(a->mtime),
        .stx_rdev_major = a->rdev >> 20,
        .stx_rdev_minor = a->rdev & 0xfffff,
    };
    if (a->btime.seconds != 0 || a->btime.nanoseconds != 0)
        statx->stx_mask |= STATX_BTIME;
}

/* Comes only when a program asks for the time of birth, and once for each inode. */
static void raw_statx(const struct raw_request *request) {
    struct inode *inode = inode_of(request, request->header->nodeid);
    if (!inode)
        return;
    struct protocol_statx_out out = {.attr_valid = FUSE_VALID_SECONDS};
    struct attributes attributes;
    volume_getattr(inode, &attributes);
    statx_of(&attributes, &out.stat);
    answer(request, &out, sizeof out);
    volume_put(inode, 1);
}

/* --- TMPFILE ---------------------------------------------------------------------------------- */

static struct fuse_attr attr_of(const struct attributes *a) {
    return (struct fuse_attr){
        .ino = a->ino,
        .size = a->size,
        .blocks = a->sectors,
        .atime = (uint64_t)a->atime.seconds,
        .mtime = (uint64_t)a->mtime.seconds,
        .ctime = (uint64_t)a->ctime.seconds,
        .atimensec = a->atime.nanoseconds,
        .mtimensec = a->mtime.nanoseconds,
        .ctimensec = a->ctime.nanoseconds,
        .mode = a->mode,
        .nlink = a->nlink,
        .uid = a->uid,
        .gid = a->gid,
        .blksize = a->block_size,
    };
}

/* The answer opens the file, too. Nothing is kept of that; once the kernel knows that OPEN need not
 * be sent it sends no RELEASE either. */
static void tmpfile_answer(const struct raw_request *request, struct inode *inode) {
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out = {.open = {.open_flags = FOPEN_KEEP_CACHE | FOPEN_NOFLUSH}};
    struct attributes attributes;

    volume_getattr(inode, &attributes);
    out.entry = (struct fuse_entry_out){
        .nodeid = fuse_server_swap_root(inode->volume, attributes.ino),
        .generation = attributes.generation,
        .entry_valid = FUSE_VALID_SECONDS,
        .attr_valid = FUSE_VALID_SECONDS,
        .attr = attr_of(&attributes),
    };
    if (answer(request, &out, sizeof out) < 0)
        volume_put(inode, 1);
}

static void raw_tmpfile(const struct raw_request *request) {
    const struct fuse_create_in *in = request->argument;
    struct inode *dir = inode_of(request, request->header->nodeid);
    if (!dir)
        return;
    const struct create_request wanted = {
        .mode = S_IFREG | (in->mode & 07777),
        .umask = in->umask,
        .uid = request->header->uid,
        .gid = request->header->gid,
    };
    struct inode *inode;
    int error = volume_create_nameless(dir, &wanted, &inode);
    volume_put(dir, 1);
    if (error)
        answer_error(request, error);
    else
        tmpfile_answer(request, inode);
}

/* --- SETXATTR --------------------------------------------------------------------------------- */

static void raw_setxattr(const struct raw_request *request) {
    const struct fuse_setxattr_in *in = request->argument;
    bool extended = request->server->kernel_flags & FUSE_SETXATTR_EXT;
    size_t fixed = extended ? sizeof *in : FUSE_COMPAT_SETXATTR_IN_SIZE;
    const char *name = (const char *)request->argument + fixed;
    size_t left = request->length - fixed, name_size = strnlen(name, left) + 1;
    /* Said once: the kernel then never asks again. */
    if (!request->server->volume->layout->xattr_set) {
        answer_error(request, -ENOSYS);
        return;
    }
    if (name_size > left || in->size > left - name_size) {
        answer_error(request, -EINVAL);
        return;
    }
    struct inode *inode = inode_of(request, request->header->nodeid);
    if (!inode)
        return;
    int flags = (int)in->flags;
    if (extended && in->setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID)
        flags |= SETXATTR_KILL_SGID;
    int error = volume_setxattr(inode, name, name + name_size, in->size, flags);
    volume_put(inode, 1);
    answer_error(request, error);
}

/* --- COPY_FILE_RANGE -------------------------------------------------------------------------- */

static int64_t copy(const struct raw_request *request, struct inode *source, struct inode *target) {
    const struct fuse_copy_file_range_in *in = request->argument;

    /* The kernel leaves it to us without a word about who may keep them. */
    int error = request->header->uid != 0 ? fuse_server_clear_setid(target) : 0;
    return error ? error
                 : volume_copy(source, in->off_in, target, in->off_out,
                               in->len < COPY_MAX ? in->len : COPY_MAX);
}

static void raw_copy_file_range(const struct raw_request *request) {
    const struct fuse_copy_file_range_in *in = request->argument;
    struct inode *source = inode_of(request, request->header->nodeid);
    if (!source)
        return;
    struct inode *target = inode_of(request, in->nodeid_out);
    if (!target) {
        volume_put(source, 1);
        return;
    }
    int64_t copied = copy(request, source, target);
    volume_put(source, 1);
    volume_put(target, 1);
    if (copied < 0) {
        answer_error(request, (int)copied);
    } else if (request->header->opcode == FUSE_COPY_FILE_RANGE) {
        const struct fuse_write_out out = {.size = (uint32_t)copied};
        answer(request, &out, sizeof out);
    } else {
        const struct protocol_copy_file_range_out out = {.bytes_copied = (uint64_t)copied};
        answer(request, &out, sizeof out);
    }
}

/* ---------------------------------------------------------------------------------------------- */

static const struct {
    uint32_t opcode;
    size_t argument; /* bytes, at least */
    void (*handle)(const struct raw_request *request);
} handlers[] = {
    {FUSE_SETXATTR, sizeof(struct fuse_setxattr_in), raw_setxattr},
    {FUSE_COPY_FILE_RANGE, sizeof(struct fuse_copy_file_range_in), raw_copy_file_range},
    {FUSE_TMPFILE, sizeof(struct fuse_create_in), raw_tmpfile},
    {PROTOCOL_STATX, sizeof(struct fuse_getattr_in), raw_statx},
    {PROTOCOL_COPY_FILE_RANGE_64, sizeof(struct fuse_copy_file_range_in), raw_copy_file_range},
};

bool fuse_raw_handle(struct fuse_server *server, const struct fuse_in_header *header) {
    const struct raw_request request = {server, header, header + 1, header->len - sizeof *header};

    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        if (handlers[i].opcode != header->opcode)
            continue;
        if (request.length < handlers[i].argument)
            answer_error(&request, -EINVAL);
        else
            handlers[i].handle(&request);
        return true;
    }
    return false;
}
