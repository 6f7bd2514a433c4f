/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, over fs/device. Used by the two caches.
 *
 * Requests under way on behalf of frames: read ahead, or being written. Over a modelled disk a
 * request is pending for a while after its submission; the frames it serves share one `struct
 * inflight` and look at its batch when somebody needs them. Where requests complete at submission
 * (wall mode) nothing is ever left in flight, and the list stays empty.
 *
 * Invariants:
 *  1. An inflight lives while it has users: each frame that points to it is one, and the list.
 *  2. It leaves the list once its batch is no longer pending, so that a batch outlives its requests
 *     whatever becomes of the frames.
 *  3. list->bytes is the sum of the bytes of the inflights on it.
 *
 * Locking: the pool's mutex in every call; inflight_wait releases it while waiting.
 */
#ifndef LAYOUTFS_INFLIGHT_H
#define LAYOUTFS_INFLIGHT_H

#include <sys/queue.h>

#include "fs/arena.h"
#include "fs/device/device.h"
#include "fs/pool.h"

struct inflight {
    struct device_batch batch;
    uint32_t users;
    uint64_t bytes;
    uint64_t ino; /* the caller's: the file that is written, 0: none */
    STAILQ_ENTRY(inflight) link;
};

struct inflight_list {
    STAILQ_HEAD(, inflight) queue; /* in order of submission */
    uint64_t bytes;
    uint64_t entered, left; /* how many have been put on the list, and taken off */
    struct recycler recycler;
    /* Told of each inflight that has failed, when it leaves the list; may be NULL. */
    void (*failed)(void *context, const struct inflight *inflight);
    void *context;
};

void inflight_init(struct inflight_list *list);
/* Nothing may be in flight. */
void inflight_destroy(struct inflight_list *list);

/* An inflight for requests about to be submitted; its one user is the caller. NULL: no memory. */
struct inflight *inflight_begin(struct inflight_list *list);
/* All requests are submitted, for `bytes` bytes. Puts the inflight on the list in the caller's
 * stead and returns true if any are pending; else gives it up and returns false. Its error, if
 * known yet, is in *error. */
bool inflight_end(struct inflight_list *list, struct inflight *inflight, uint64_t bytes,
                  int *error);
void inflight_hold(struct inflight *inflight);
void inflight_put(struct inflight_list *list, struct inflight *inflight);
static inline bool inflight_pending(const struct inflight *inflight) {
    return inflight->batch.pending > 0;
}
/* Takes what has completed off the list. The first error, or 0. */
int inflight_reap(struct inflight_list *list);
/* Waits for the one inflight (the caller or a frame is a user). Its error, or 0. */
int inflight_wait(struct inflight *inflight, struct pool *pool, struct device *device);
/* Waits until no more than `bytes` are on the list, or all that are on it now have left it: others
 * may go on while this waits. The first error that it has seen, or 0. */
int inflight_drain(struct inflight_list *list, uint64_t bytes, struct pool *pool,
                   struct device *device);

#endif
