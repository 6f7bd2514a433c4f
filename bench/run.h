/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: bench, over the scenario, the workloads and the drivers. Runs a scenario's rows and keeps
 * what was measured; bench/report.h prints it.
 *
 * Two ways: run_modelled puts each row on its own modelled disk under its own virtual clock,
 * several rows at a time, since they share nothing but the read-only source; run_mounted
 * (bench/mounted.c) runs rows one after the other through real mounts, in wall time.
 */
#ifndef LAYOUTFS_BENCH_RUN_H
#define LAYOUTFS_BENCH_RUN_H

#include "bench/scenario.h"

#define MESSAGE_MAX     256
#define WALL_ROUNDS_MAX 99

enum row_status { ROW_DONE, ROW_NOT_EMULATED, ROW_FAILED };

struct row_result {
    const struct scenario_row *row;
    enum row_status status;
    char message[MESSAGE_MAX]; /* of ROW_FAILED: the first error's sentence */
    struct step steps[STEPS_MAX];
    unsigned step_count;
    bool warm;
};

struct run_config {
    const struct scenario *scenario;
    const struct source *source; /* NULL when the workload needs none */
    unsigned threads;            /* rows at a time; at least 1 */
    bool progress;               /* a progress line on standard error */
    const struct log *log;
};

/* Fills results[0 .. scenario->row_count - 1], in the scenario's order. A row that fails does not
 * stop the others; the first failure is returned when all are done. */
int run_modelled(const struct run_config *config, struct row_result *results);

/* --- wall time, bench/mounted.c --------------------------------------------------------------- */

struct wall_step {
    const char *name;
    bool timed;
    uint64_t files, bytes;
    int64_t ns[WALL_ROUNDS_MAX]; /* one a round, then sorted */
    struct latency latency[WALL_ROUNDS_MAX];
};

struct wall_result {
    char label[64];
    char peer[24]; /* "fuse2fs", or "" for our own mount */
    bool floor;    /* ours without a disk: what the mount itself costs */
    enum row_status status;
    char message[MESSAGE_MAX];
    struct wall_step steps[STEPS_MAX];
    unsigned step_count, rounds;
    bool warm;
};

struct mounted_config {
    const struct run_config *run;
    bool peers;
    const char *program; /* path of layoutfs itself */
};

/* Why mounts cannot be used here, as a sentence, or NULL. */
const char *mounted_obstacle(void);
/* Fills at most `capacity` results; *count says how many. Targets take turns, round by round. */
int run_mounted(const struct mounted_config *config, struct wall_result *results, unsigned capacity,
                unsigned *count);
/* The median over the rounds. */
int64_t wall_median(const struct wall_step *step, unsigned rounds);
/* The medians of p50 and p99, and the maximum of all rounds. */
struct latency wall_latency(const struct wall_step *step, unsigned rounds);

#endif
