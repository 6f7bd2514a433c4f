/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. The workload of a recording on a device whose n-th call fails.
 *
 * What is asked: either the failure has no effect, and then everything is on the disk; or an error
 * reaches the caller, and then what was durable before is there, after a repair. And where the type
 * or errors= says so, a volume that could not write metadata writes no more.
 */
#ifndef LAYOUTFS_CRASH_ERRORS_H
#define LAYOUTFS_CRASH_ERRORS_H

#include "crash/examine.h"

/* How a call fails: alone or with all that follow; at submission or when it is waited for. */
#define ERROR_WAYS 4u
extern const char error_way_letters[ERROR_WAYS + 1];
/* "17.o": the 17th call fails, alone. */
void errors_text(uint64_t call, unsigned way, char text[STATE_TEXT_SIZE]);

struct error_outcome {
    bool reached;       /* the call was made, and failed */
    bool reported;      /* an operation, or mount or unmount, answered with an error */
    unsigned at;        /* the operation at which it was; UNMOUNT + 1: mount or the start's files */
    bool stopped;       /* the volume became read-only, or answered nothing any more */
    bool metadata_lost; /* a write of metadata failed before the unmount */
};

/* Runs the recording's workload with call `call` failing in one of the ways. True: all is well;
 * false: `why` (WHY_SIZE) is a finding. */
bool errors_run(struct examiner *examiner, const struct recording *recording, uint64_t call,
                unsigned way, bool others, struct error_outcome *outcome, char *why);

#endif
