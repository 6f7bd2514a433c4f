/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, inside the FUSE front end (fs/fuse*.c); nobody else includes it.
 *
 *   fuse_ring.c  serving through io_uring
 *   fuse.c       mounting, the serving threads, signals, unmounting
 *   fuse_ops.c   names and attributes: one handler a request
 *   fuse_data.c  file data, extended attributes
 *   fuse_listing.c directory listings
 *   fuse_ioctl.c ioctls
 *   fuse_raw.c   requests that libfuse does not know
 *
 * Every handler takes the node the kernel names, turns it into a referenced inode, makes one call
 * into the volume, and replies exactly once. All decisions about a filesystem's behaviour are the
 * volume's.
 *
 * Invariants:
 *  1. A node id is the inode's number, except that the root is 1, as the protocol demands, and an
 *     inode whose number is 1 takes the root's: a swap, so nothing needs to be remembered.
 *  2. The kernel's lookup count of a node equals the references the volume counts for it. A reply
 *     that hands out a node hands over one reference; FORGET gives them back.
 *
 * Locking: handlers run in any of the serving threads and lean on the volume's own locks.
 */
#ifndef LAYOUTFS_FUSE_SERVER_H
#define LAYOUTFS_FUSE_SERVER_H

#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "fs/volume.h"

/* The largest READ, WRITE and READDIR; 256 pages are the protocol's limit. */
#define FUSE_TRANSFER_MAX (1u << 20)
/* Opcodes are small numbers; see enum fuse_opcode of <linux/fuse.h>. */
#define FUSE_OPCODES 64u

/* How long the kernel may keep names and attributes: only the owner of the image changes it. */
#define FUSE_VALID_SECONDS 86400u

/* Where a listing that is being read stands. */
struct fuse_listing_mark {
    uint64_t node, cookie; /* of the last entry that was sent */
    uint64_t end;          /* bytes that the kernel's copy has with it */
};
#define FUSE_LISTING_MARKS 64u /* a power of two */

/* Memory for one reply. */
union fuse_reply {
    union fuse_reply *next; /* while in the pool */
    char data[FUSE_TRANSFER_MAX];
};

struct fuse_server {
    struct volume *volume;
    const struct log *log;
    struct fuse_session *session;
    const char *mount_point;
    pthread_t *threads; /* that serve; set up before the signal thread starts */
    unsigned thread_count;
    sem_t ended;           /* posted by each of them at its end */
    bool delayed_writes;   /* as in struct fuse_mount_config */
    bool initialised;      /* INIT has been answered */
    bool rings_offered;    /* see fs/fuse_ring.h */
    uint32_t kernel_flags; /* what the kernel offered in INIT... */
    unsigned capable;      /* ...and the part that libfuse has names for */
    _Atomic uint64_t requests[FUSE_OPCODES];
    /* A pool as large as the number of handlers that ever needed one at a time. */
    pthread_mutex_t buffers_lock;
    union fuse_reply *buffers;
    pthread_mutex_t listing_lock;
    struct fuse_listing_mark listing_marks[FUSE_LISTING_MARKS];
};

/* NULL: no memory. */
union fuse_reply *fuse_server_buffer_take(struct fuse_server *server);
void fuse_server_buffer_give(struct fuse_server *server, union fuse_reply *buffer);

/* The inode, referenced, and memory for the reply; or replies the error and returns NULL. */
struct inode *fuse_server_inode_and_buffer(fuse_req_t request, fuse_ino_t node,
                                           union fuse_reply **buffer);
/* Replies `result` bytes of the buffer, or a negative errno, and gives the buffer back. */
void fuse_server_reply_buffer(fuse_req_t request, union fuse_reply *buffer, int64_t result);

static inline struct fuse_server *fuse_server_of(fuse_req_t request) {
    return fuse_req_userdata(request);
}

static inline uint64_t fuse_server_swap_root(const struct volume *volume, uint64_t number) {
    if (number == volume->root_ino)
        return FUSE_ROOT_ID;
    return number == FUSE_ROOT_ID ? volume->root_ino : number;
}

/* The inode of a node, with a reference of the handler's own. */
int fuse_server_find(struct volume *volume, uint64_t node, struct inode **inode);
/* The same; or replies the error and returns
 * NULL. */
struct inode *fuse_server_inode(fuse_req_t request, fuse_ino_t node);
/* Replies 0 or a negative errno of ours. */
static inline void fuse_server_reply_error(fuse_req_t request, int error) {
    fuse_reply_err(request, -error);
}
/* What the kernel is told of an inode. */
void fuse_server_entry(struct inode *inode, struct fuse_entry_param *entry);

/* fuse_ops.c */
extern const struct fuse_lowlevel_ops fuse_server_operations;

/* fuse.c: the argument (of <linux/fuse.h>) of the request that this thread handles, as the kernel
 * sent it, for what libfuse 3.14 does not pass on. */
const void *fuse_server_argument(void);

/* Answers a request that libfuse does not: 0 with a value, or a negative errno alone. Negative: the
 * kernel has not taken the answer. */
int fuse_server_answer(struct fuse_server *server, uint64_t unique, int error, const void *value,
                       size_t size);

/* Counts one request of the kernel's and handles it. */
void fuse_server_handle(struct fuse_server *server, const struct fuse_buf *request);

/* fuse_raw.c: false when the request is libfuse's to handle. */
bool fuse_raw_handle(struct fuse_server *server, const struct fuse_in_header *header);

/* fuse_ioctl.c */
void fuse_server_ioctl(fuse_req_t request, fuse_ino_t node, unsigned int command, void *argument,
                       struct fuse_file_info *file, unsigned options, const void *input,
                       size_t input_size, size_t output_size);

/* fuse_data.c. The file's set-id bits go; most have none. */
int fuse_server_clear_setid(struct inode *inode);
/* As fuse_lowlevel_ops documents each: */
void fuse_server_read(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                      struct fuse_file_info *file);
void fuse_server_write(fuse_req_t request, fuse_ino_t node, const char *data, size_t size,
                       off_t offset, struct fuse_file_info *file);
void fuse_server_fsync(fuse_req_t request, fuse_ino_t node, int data_only,
                       struct fuse_file_info *file);
void fuse_server_fallocate(fuse_req_t request, fuse_ino_t node, int mode, off_t offset,
                           off_t length, struct fuse_file_info *file);
void fuse_server_lseek(fuse_req_t request, fuse_ino_t node, off_t offset, int whence,
                       struct fuse_file_info *file);
void fuse_server_getxattr(fuse_req_t request, fuse_ino_t node, const char *name, size_t size);
void fuse_server_removexattr(fuse_req_t request, fuse_ino_t node, const char *name);
void fuse_server_listxattr(fuse_req_t request, fuse_ino_t node, size_t size);

/* fuse_listing.c */
void fuse_server_readdir(fuse_req_t request, fuse_ino_t node, size_t size, off_t cookie,
                         struct fuse_file_info *file);
void fuse_server_readdirplus(fuse_req_t request, fuse_ino_t node, size_t size, off_t cookie,
                             struct fuse_file_info *file);

#endif
