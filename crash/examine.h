/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. One state of the disk: recover, compare, check.
 */
#ifndef LAYOUTFS_CRASH_EXAMINE_H
#define LAYOUTFS_CRASH_EXAMINE_H

#include "crash/oracle.h"
#include "crash/state.h"

#define WHY_SIZE 512

/* What is done beyond the usual, for a sample of the states. */
enum examine_extra {
    EXAMINE_OTHERS = 1, /* programs of others check the recovered image and recover the raw one */
    EXAMINE_AGAIN = 2,  /* work goes on after the recovery, and the power goes once more */
};

struct examiner {
    const struct base *base; /* borrowed */
    enum expectation expectation;
    bool stops;                     /* see type_stops */
    const char *fsck, *fsck_repair; /* NULL: none */
    struct clock clock;
    struct device *stable, *device; /* owned forks: the base, and the state at hand on that */
    struct state_maker maker;
    struct snapshot found, again;
    struct write_log log;
    struct log errors; /* catches the first message of each step */
    char message[256];
    char image[256]; /* a file for others' programs; made when needed */
};

/* -ENOMEM. `number` tells the examiners of several processes apart. */
int examiner_open(const struct crash_config *config, const struct base *base,
                  const struct type_promise *promise, unsigned number, struct examiner *examiner);
void examiner_close(struct examiner *examiner);

/* Examines a state, for which the oracle has been advanced to its cut. True: all is as it should
 * be; false: `why` (WHY_SIZE) is a finding. */
bool examine_state(struct examiner *examiner, const struct oracle *oracle,
                   const struct state *state, unsigned extras, char *why);
/* The same for what is on examiner->device, without extras, where errors and not a power cut have
 * happened: damage is repaired first. With `others` their program has to mend it, too. */
bool examine_damaged(struct examiner *examiner, const struct oracle *oracle, bool others,
                     char *why);

#endif
