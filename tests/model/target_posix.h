/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: a directory of any mounted filesystem as a target of the model checker.
 */
#ifndef LAYOUTFS_TEST_TARGET_POSIX_H
#define LAYOUTFS_TEST_TARGET_POSIX_H

#include "tests/model/target.h"

struct posix_target {
    struct target target;
    const char *directory; /* writable; the tree of the model is a new directory in it */
    const char *remount;   /* a command that unmounts and mounts again, or NULL */
    int base;              /* the tree's root */
};

/* Removes what an earlier run has left. */
int posix_target_open(struct posix_target *t);
int posix_target_begin(struct posix_target *t); /* makes the tree's root */
int posix_target_end(struct posix_target *t);   /* removes it; it must be empty */

#endif
