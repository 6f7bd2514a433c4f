/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. One line on a terminal that says what every running row is at. Rows report from
 * their threads; the line is redrawn at most ten times a second.
 */
#ifndef LAYOUTFS_BENCH_PROGRESS_H
#define LAYOUTFS_BENCH_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/scenario.h"

struct progress {
    pthread_mutex_t mutex;
    bool enabled;
    int64_t drawn_ns;
    const struct scenario *scenario;
    struct progress_row {
        struct progress *progress;
        const char *label;
        const char *step; /* NULL: not running */
        unsigned percent;
    } rows[SCENARIO_ROWS_MAX];
    unsigned count;
};

/* `enabled` is taken back when standard error is no terminal. */
void progress_start(struct progress *progress, const struct scenario *scenario, bool enabled);
/* A struct workload_run's progress function; context is a struct progress_row. */
void progress_report(void *context, const char *step, uint64_t done, uint64_t total);
void progress_row_done(struct progress_row *row);
/* Wipes the line. */
void progress_stop(struct progress *progress);

#endif
