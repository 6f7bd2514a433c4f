/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: a volume in this process as a target of the model checker, under a virtual clock.
 */
#ifndef LAYOUTFS_TEST_TARGET_VOLUME_H
#define LAYOUTFS_TEST_TARGET_VOLUME_H

#include "fs/volume.h"
#include "tests/model/target.h"

struct volume_target {
    struct target target;
    struct volume *volume;
    struct clock clock;
    struct log log;
    /* how it is opened again */
    const char *type, *options, *image; /* image NULL: it has no device */
};

/* Opens the volume. The tree of the model is a directory of its own in the root. */
int volume_target_open(struct volume_target *t);
int volume_target_begin(struct volume_target *t); /* makes that directory */
int volume_target_end(struct volume_target *t);   /* removes it; it must be empty */
int volume_target_close(struct volume_target *t);

#endif
