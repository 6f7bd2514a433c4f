/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface and invariants: fs/task.h.
 */
#include "fs/task.h"

#include <errno.h>

/* Hands the turn over and waits until it comes back, or, for the main thread, the task is over. */
static void turn_give(struct task *task, bool to_task) {
    pthread_mutex_lock(&task->mutex);
    task->has_turn = to_task;
    pthread_cond_signal(&task->changed);
    while (task->has_turn == to_task)
        pthread_cond_wait(&task->changed, &task->mutex);
    pthread_mutex_unlock(&task->mutex);
}

static void *task_run(void *argument) {
    struct task *task = argument;

    pthread_mutex_lock(&task->mutex);
    while (!task->has_turn)
        pthread_cond_wait(&task->changed, &task->mutex);
    pthread_mutex_unlock(&task->mutex);
    task->run(task->context);
    pthread_mutex_lock(&task->mutex);
    task->over = true;
    task->has_turn = false;
    pthread_cond_signal(&task->changed);
    pthread_mutex_unlock(&task->mutex);
    return NULL;
}

static void task_end(struct task *task) {
    pthread_join(task->thread, NULL);
    pthread_cond_destroy(&task->changed);
    pthread_mutex_destroy(&task->mutex);
    task->active = false;
}

int task_start(struct task *task, struct clock *clock, void (*run)(void *context), void *context) {
    *task = (struct task){.clock = clock, .run = run, .context = context, .active = true};
    pthread_mutex_init(&task->mutex, NULL);
    pthread_cond_init(&task->changed, NULL);
    if (pthread_create(&task->thread, NULL, task_run, task) != 0) {
        pthread_cond_destroy(&task->changed);
        pthread_mutex_destroy(&task->mutex);
        task->active = false;
        return -EAGAIN;
    }
    task_go_on(task);
    return 0;
}

void task_go_on(struct task *task) {
    turn_give(task, true);
    if (task->over)
        task_end(task);
}

void task_wait(struct task *task, struct device_batch *batch) {
    task_may_wait(task, false);
    task->waits_for = batch;
    turn_give(task, false);
    task->waits_for = NULL;
    task_may_wait(task, true);
}
