/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Which trees are allowed after a power cut.
 *
 * The trees that programs saw while the workload ran are the oracle; no model of a filesystem takes
 * part. With journaled metadata (EXPECT_WRITEBACK and _STRICT) a recovered tree must be, but for
 * files' sizes and contents, exactly one of the trees between the last one that is durable and the
 * newest one that an operation had begun to make. So a rename is seen done or not done, never half,
 * and operations become durable in order. Contents are judged byte by byte: each byte must have
 * been there, in this file, since the file was last made durable; zero is allowed where the file
 * was shorter in the meantime.
 *
 * With EXPECT_REPAIR a file must be there if it was durable, by sync or its own fsync, and neither
 * it nor a directory above it has been touched by any later operation.
 *
 * Invariants:
 *  1. floor <= newest: both are numbers of trees.
 *  2. Nothing that happened at or behind `position` in the log is taken into account.
 */
#ifndef LAYOUTFS_CRASH_ORACLE_H
#define LAYOUTFS_CRASH_ORACLE_H

#include "crash/record.h"

#define ORACLE_INODES 64u

struct oracle {
    const struct recording *recording;
    size_t position;
    unsigned floor;      /* metadata is at least as in this tree */
    unsigned newest;     /* the last one that an operation has begun to make */
    unsigned data_floor; /* all files' contents are at least as in this one: the last sync */
    bool unmounted;      /* everything is in order and durable */
    struct {
        uint64_t ino;
        unsigned tree;  /* contents of this one: at least as there */
        unsigned names; /* its names are those of this one: an fdatasync leaves out newer ones */
    } durable[ORACLE_INODES];
    unsigned durable_count;
};

void oracle_start(struct oracle *oracle, const struct recording *recording);
/* Takes into account what was recorded before `position`. */
void oracle_advance(struct oracle *oracle, size_t position);
/* Operation `number` has begun, or has ended well. */
void oracle_begun(struct oracle *oracle, unsigned number);
void oracle_ended(struct oracle *oracle, unsigned number);
/* Is the tree allowed? False: `why` says what is wrong. */
bool oracle_allows(const struct oracle *oracle, enum expectation expectation,
                   const struct snapshot *found, char *why, size_t size);

#endif
