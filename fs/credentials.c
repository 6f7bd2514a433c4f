/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Interface: fs/credentials.h.
 *
 * A variable of the thread and not an argument, since it would pass through every call of the
 * volume and of the contract to reach the one place that asks: where blocks are allocated.
 */
#include "fs/credentials.h"

static _Thread_local struct credentials current;

struct credentials credentials_set(struct credentials who) {
    struct credentials before = current;

    current = who;
    return before;
}

bool credentials_may_use_reserved(uint32_t uid, uint32_t gid) {
    return current.uid == 0 || current.uid == uid || (gid != 0 && current.gid == gid);
}
