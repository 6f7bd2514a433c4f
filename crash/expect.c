/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: crash. Interface: crash/expect.h.
 */
#include "crash/expect.h"

#include <errno.h>
#include <string.h>

const char *const crash_mode_names[CRASH_MODES] = {"seq-1", "seq-2", "seq-3", "random", "errors"};
const char *const expectation_names[EXPECT_LEVELS] = {"repair", "writeback", "strict"};

int crash_mode_find(const char *name, enum crash_mode *mode) {
    for (*mode = 0; *mode < CRASH_MODES; (*mode)++)
        if (strcmp(crash_mode_names[*mode], name) == 0)
            return 0;
    return -EINVAL;
}

#define MIB       (UINT64_C(1) << 20)
#define EXT_MKFS  "block_size=1024,inodes=128,blocks_per_group=2048"
#define EXT_CHECK "e2fsck -fn"
#define EXT_MEND  "e2fsck -fy"
/* Small blocks have deep maps, small segments are often left. */
#define NILFS_MKFS "block_size=1024,blocks_per_segment=64"

/* The first row that fits counts. */
static const struct type_promise promises[] = {
    {"ext2", NULL, EXPECT_REPAIR, EXT_MKFS, 4 * MIB, false, EXT_CHECK, EXT_MEND},
    {"ext3", "journal=none", EXPECT_REPAIR, EXT_MKFS, 4 * MIB, false, EXT_CHECK, EXT_MEND},
    {"ext3", "journal=writeback", EXPECT_WRITEBACK, EXT_MKFS, 4 * MIB, false, EXT_CHECK, EXT_MEND},
    {"ext3", "data=writeback", EXPECT_WRITEBACK, EXT_MKFS, 4 * MIB, false, EXT_CHECK, EXT_MEND},
    {"ext3", NULL, EXPECT_STRICT, EXT_MKFS, 4 * MIB, false, EXT_CHECK, EXT_MEND},
    {"ext4", "journal=none", EXPECT_REPAIR, EXT_MKFS, 4 * MIB, false, EXT_CHECK, EXT_MEND},
    {"ext4", "journal=writeback", EXPECT_WRITEBACK, EXT_MKFS, 4 * MIB, false, EXT_CHECK, EXT_MEND},
    {"ext4", "data=writeback", EXPECT_WRITEBACK, EXT_MKFS, 4 * MIB, false, EXT_CHECK, EXT_MEND},
    {"ext4", NULL, EXPECT_STRICT, EXT_MKFS, 4 * MIB, false, EXT_CHECK, EXT_MEND},
    {"nilfs2", NULL, EXPECT_STRICT, NILFS_MKFS, 8 * MIB, true, NULL, NULL},
    {"reiser4", NULL, EXPECT_STRICT, "", 8 * MIB, false, "fsck.reiser4 --check -y", NULL},
    {NULL, NULL, EXPECT_STRICT, "", 8 * MIB, false, NULL, NULL},
};

const struct type_promise *type_promise_find(const char *type, const char *mount_options) {
    const struct type_promise *promise = promises;

    while (promise->type && (strcmp(promise->type, type) != 0 ||
                             (promise->mount_options &&
                              (!mount_options || !strstr(mount_options, promise->mount_options)))))
        promise++;
    return promise;
}

bool type_stops(const struct type_promise *promise, const char *mount_options) {
    return promise->expectation != EXPECT_REPAIR ||
           (mount_options &&
            (strstr(mount_options, "errors=remount-ro") || strstr(mount_options, "errors=panic")));
}
