/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash, over fs/volume.h and fs/device; under tools/. docs/crash-explorer.md explains it.
 *
 * The crash explorer. A workload runs once on a recorded device; then every state in which a power
 * cut may have left the disk is made, recovered, checked, and compared with what programs were
 * promised. In the style of bounded exhaustive crash testing (Mohan, Martinez, Ponnapalli, Raju,
 * Chidambaram, "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI 2018).
 *
 *   sequence.c  what a workload does, made from a number
 *   perform.c   doing it to a volume
 *   snapshot.c  a volume's whole tree, as a program sees it
 *   record.c    the volume that all start from; a workload's writes and snapshots
 *   state.c     the crash states of a recording
 *   oracle.c    which trees are allowed after a cut
 *   expect.c    what each type promises
 *   examine.c   one state: recover, compare, check
 *   fsck.c      programs that others wrote, as judges
 *   errors.c    the same workloads on a device whose n-th call fails
 *   explore.c   all of it, on several processes
 *   report.c    findings and the summary
 *
 * Everything is a function of the configuration: the same findings whatever the number of jobs.
 */
#ifndef LAYOUTFS_CRASH_H
#define LAYOUTFS_CRASH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fs/log.h"

enum crash_mode {
    CRASH_SEQ_1, /* every sequence of one operation, */
    CRASH_SEQ_2, /* of two, */
    CRASH_SEQ_3, /* of three */
    CRASH_RANDOM,
    CRASH_ERRORS,
    CRASH_MODES
};
extern const char *const crash_mode_names[CRASH_MODES];
/* -EINVAL: there is no such mode. */
int crash_mode_find(const char *name, enum crash_mode *mode);

/* What a type promises after a crash, from least to most. */
enum expectation {
    EXPECT_REPAIR,    /* what was durable and is not being changed survives a repair */
    EXPECT_WRITEBACK, /* metadata in order; a file being written may show old blocks' contents */
    EXPECT_STRICT,    /* metadata in order, and no contents that were never the file's */
    EXPECT_LEVELS
};
extern const char *const expectation_names[EXPECT_LEVELS];

struct crash_config {
    enum crash_mode mode;
    const char *type;          /* "ext2" */
    const char *mkfs_options;  /* NULL: the type's default for small volumes */
    const char *mount_options; /* NULL: none */
    const char *disk;          /* a modelled one (fs/device/disk.h) to run the workloads on, so that
                                  commits go on beside them; NULL: all is done at once */
    uint64_t size;             /* of the volume, bytes; 0: the type's default */
    uint64_t sample;           /* workloads; 0: all (seq-1, seq-2) or a default */
    uint64_t seed;
    unsigned length;  /* operations of a random workload; 0: the default */
    unsigned subsets; /* states of one kind in one flush epoch; 0: the default */
    unsigned jobs;
    int expectation;      /* enum expectation, or -1: the type's own */
    const char *fsck;     /* a checker: "PROGRAM ARGUMENT..." that the image's name is added to;
                             NULL: the type's own, "": none */
    uint64_t fsck_states; /* how many states it is shown */
    bool progress;        /* a line on standard error while it runs */
};

struct crash_totals {
    uint64_t workloads, states, checked_by_others, findings;
    uint64_t reported, absorbed, stopped; /* errors: see crash/errors.c */
    int64_t elapsed_ns;
};

/* Explores and prints findings and a summary. 0 (findings or none: see *totals), or a negative
 * errno after a sentence; -EINVAL: the configuration is wrong. */
int crash_explore(const struct crash_config *config, FILE *out, const struct log *log,
                  struct crash_totals *totals);
/* Makes one state again and tells all about it; `save` (may be NULL) gets the image as the cut left
 * it. *found: it is a finding. 0 or negative errno after a sentence. */
int crash_replay(const struct crash_config *config, const char *id, const char *save, FILE *out,
                 const struct log *log, bool *found);

#endif
