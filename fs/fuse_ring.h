/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, inside the FUSE front end. Serving through io_uring (Linux 6.14 and later) instead of
 * reading and writing the session's descriptor.
 *
 * The kernel keeps a queue for each processor and hands a request to the queue of the processor
 * that asks. A thread bound to that processor serves it, so that neither the question nor the
 * answer has to wake another processor, and one system call answers a request and fetches the next.
 * FORGET, INTERRUPT and what comes before all queues are served still travel through the
 * descriptor.
 *
 * The kernel offers it where /sys/module/fuse/parameters/enable_uring says Y.
 * Source: Linux, Documentation/filesystems/fuse/fuse-io-uring.rst, include/uapi/linux/fuse.h 7.42.
 */
#ifndef LAYOUTFS_FUSE_RING_H
#define LAYOUTFS_FUSE_RING_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

struct fuse_server;
struct fuse_rings;

/* Makes the kernel offer it to mounts made from now on, or no longer; for root only.
 * *before: what it did. Negative errno: it cannot. */
int fuse_ring_offer(bool wanted, bool *before);
/* Does the kernel, in its INIT request, offer it? Accepts it in the answer. */
bool fuse_ring_offered(const struct fuse_init_in *init);
void fuse_ring_accept(struct fuse_init_out *answer);

/* Starts the threads, once INIT has been answered. Negative errno: none is left running, and the
 * descriptor goes on serving everything. */
int fuse_rings_start(struct fuse_server *server, unsigned threads_a_queue,
                     struct fuse_rings **rings);
/* Ends the threads, after or before the kernel has closed the connection. NULL is allowed. */
void fuse_rings_stop(struct fuse_rings *rings);

/* Takes an answer of libfuse when this thread handles a ring's request; false: it does not. */
bool fuse_ring_answer(const struct iovec *vector, int count);
/* Where the answer to this thread's request may be put together without being copied:
 * FUSE_TRANSFER_MAX bytes. NULL: it is no ring's request, or one that brought data, which lies
 * there. */
void *fuse_ring_payload(void);

#endif
