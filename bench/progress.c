/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. See progress.h.
 */
#include "bench/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_NS  (100 * NS_PER_MS)
#define LINE_BYTES 512

static int64_t wall_ns(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

void progress_start(struct progress *progress, const struct scenario *scenario, bool enabled) {
    memset(progress, 0, sizeof(*progress));
    pthread_mutex_init(&progress->mutex, NULL);
    progress->enabled = enabled && isatty(STDERR_FILENO);
    progress->scenario = scenario;
    progress->count = scenario->row_count;
    for (unsigned i = 0; i < scenario->row_count; i++)
        progress->rows[i] =
            (struct progress_row){.progress = progress, .label = scenario->rows[i].id};
}

static void draw(const struct progress *progress) {
    char line[LINE_BYTES];
    int length = snprintf(line, sizeof(line), "%s:", progress->scenario->name);

    for (unsigned i = 0; i < progress->count && length < (int)sizeof(line); i++) {
        const struct progress_row *row = &progress->rows[i];
        if (row->step)
            length += snprintf(line + length, sizeof(line) - (size_t)length, "  %s %s %u %%",
                               row->label, row->step, row->percent);
    }
    fprintf(stderr, "\r\033[K%.100s", line);
    fflush(stderr);
}

void progress_report(void *context, const char *step, uint64_t done, uint64_t total) {
    struct progress_row *row = context;
    struct progress *progress = row->progress;

    if (!progress->enabled)
        return;
    pthread_mutex_lock(&progress->mutex);
    row->step = step;
    row->percent = total ? (unsigned)(done * 100 / total) : 0;
    if (wall_ns() - progress->drawn_ns >= REDRAW_NS) {
        draw(progress);
        progress->drawn_ns = wall_ns();
    }
    pthread_mutex_unlock(&progress->mutex);
}

void progress_row_done(struct progress_row *row) {
    pthread_mutex_lock(&row->progress->mutex);
    row->step = NULL;
    pthread_mutex_unlock(&row->progress->mutex);
}

void progress_stop(struct progress *progress) {
    if (progress->enabled)
        fputs("\r\033[K", stderr);
    pthread_mutex_destroy(&progress->mutex);
}
