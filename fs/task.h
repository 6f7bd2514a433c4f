/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs, beside fs/clock.h.
 *
 * A task is what goes on beside the program in a simulation: under a virtual clock one thread does
 * everything, and a task stands for a thread of the modelled kernel. It has the turn until it would
 * wait for the disk; then the main thread goes on, at the same virtual time, and gives it the turn
 * again once that wait is over. Both share one clock and one CPU: what either charges passes for
 * both.
 *
 * Invariants:
 *  1. Exactly one of the two runs, whose turn it is; so there is one order of events, the same in
 *     every run.
 *  2. The turn changes only in the calls below, and in those of a task only where it holds no lock
 *     that the main thread may want: where it has said so (clock->task, see task_may_wait).
 *
 * Locking: the main thread calls task_start and task_go_on, the task task_wait. A task is
 * implemented by a system thread, so that checkers of races and stacks know what it is.
 */
#ifndef LAYOUTFS_TASK_H
#define LAYOUTFS_TASK_H

#include <pthread.h>

#include "fs/clock.h"

struct device_batch;

struct task { /* zero-initialise */
    struct clock *clock;
    void (*run)(void *context);
    void *context;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool active;                    /* from task_start until its end */
    bool has_turn;                  /* guarded by the mutex */
    bool over;                      /* `run` has returned */
    struct device_batch *waits_for; /* while it has not the turn */
};

/* Calls `run` as a task, up to its first wait or its end (then it is not active any more). -EAGAIN:
 * the system has no thread for it, and nothing has happened. */
int task_start(struct task *task, struct clock *clock, void (*run)(void *context), void *context);
/* What an active task waits for is done: it goes on up to the next wait, or its end. */
void task_go_on(struct task *task);

/* For the task itself: whether it gives way where it waits for a device, from now on. */
static inline void task_may_wait(struct task *task, bool yes) {
    task->clock->task = yes ? task : NULL;
}
/* For the device layer, of clock->task: gives way until the batch is done. */
void task_wait(struct task *task, struct device_batch *batch);

#endif
