/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Findings and the summary, as text.
 */
#ifndef LAYOUTFS_CRASH_REPORT_H
#define LAYOUTFS_CRASH_REPORT_H

#include "crash/examine.h"

struct finding {
    uint64_t number;             /* of the workload */
    char state[STATE_TEXT_SIZE]; /* "57.d3"; of errors: "12.o"; "-": the workload as such */
    char why[WHY_SIZE];
};

#define FINDINGS_SHOWN 40u

/* One line: what reproduces it, and what it is. */
void report_finding(FILE *out, const struct crash_config *config, const struct finding *finding);
void report_summary(FILE *out, const struct crash_config *config,
                    const struct crash_totals *totals);
/* The operations of a workload and how they ended; the log's records up to the cut are told, too,
 * when `log` is given. */
void report_workload(FILE *out, const struct recording *recording);
void report_epoch(FILE *out, const struct write_log *log, const struct state *state);

#endif
