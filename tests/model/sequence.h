/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: sequences of operations: made from a seed, run against the model, shrunk when they fail.
 */
#ifndef LAYOUTFS_TEST_SEQUENCE_H
#define LAYOUTFS_TEST_SEQUENCE_H

#include "tests/model/target.h"

struct outcome {
    unsigned failed_at; /* the operation; their number: afterwards */
    uint64_t lacks;     /* as struct target's */
    struct difference difference;
};

/* Runs a sequence on a fresh filesystem; what is wrong is left in *outcome. */
typedef void (*sequence_run)(void *context, const struct operation *ops, unsigned count,
                             struct outcome *outcome);

void sequence_make(uint64_t seed, struct operation *ops, unsigned count);
const char *sequence_kind_name(enum operation_kind kind);
/* The operations, and at the end the whole tree, also with empty caches. */
void sequence_on_target(struct target *target, const struct operation *ops, unsigned count,
                        struct outcome *outcome);
/* In a process of its own, since a wrong filesystem may also crash. When it fails, prints the
 * shortest sequence found that fails, and returns false. `outcome` is memory shared by processes.
 */
bool sequence_try(sequence_run run, void *context, uint64_t seed, unsigned count,
                  struct outcome *outcome);
/* Memory that a child process can leave its outcome in; exits when there is none. */
struct outcome *sequence_outcome(void);

#endif
