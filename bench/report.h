/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench. What a run found, for people (a table) and for programs (JSON, whose schema is
 * docs/results-schema.md).
 */
#ifndef LAYOUTFS_BENCH_REPORT_H
#define LAYOUTFS_BENCH_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "bench/run.h"

struct report {
    const struct scenario *scenario;
    const struct source *source; /* or NULL */
    const struct row_result *rows;
    unsigned row_count; /* 0: nothing was modelled */
    const struct wall_result *wall;
    unsigned wall_count;     /* 0: nothing was mounted */
    const char *wall_note;   /* why nothing was mounted though asked for, or NULL */
    bool memory_fitted;      /* the memory was made smaller with the source */
    unsigned scale_permille; /* 1000: full size */
    const char *command;     /* the command line */
    bool host_cpu;           /* the table shows this machine's CPU time too */
    int64_t host_ns;         /* wall time of the whole run */
};

void report_table(FILE *file, const struct report *report);
/* Writes the file; -errno with a sentence. */
int report_json(const char *path, const struct report *report, const struct log *log);

/* Do the rows stand in the published order in this step? Fewer than two to compare: ORDER_NONE. */
enum order { ORDER_NONE, ORDER_AGREES, ORDER_DIFFERS };
enum order report_order(const struct report *report, const char *step);
/* The row's time over that of the first row that has the step, in thousandths; 0 when there is
 * none.
 */
int64_t report_ratio(const struct report *report, unsigned row, const char *step);
int64_t report_published_ratio(const struct report *report, unsigned row, const char *step);
const struct step *report_step(const struct row_result *result, const char *step);

#endif
