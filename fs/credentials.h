/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs. Who the calling thread acts for. The core checks no permissions; what this decides is
 * who may use space that a format keeps back (ext's reserved blocks).
 *
 * A thread begins as the privileged user (uid 0): so tools and the bench act. A front end that
 * serves others sets their credentials for each request that it hands on. Whatever thread stores
 * data, it does so as the privileged user: that there is room was the answer to the write.
 */
#ifndef LAYOUTFS_CREDENTIALS_H
#define LAYOUTFS_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

struct credentials {
    uint32_t uid, gid; /* uid 0 is privileged; gid is the effective group alone */
};

/* Of the calling thread, until the next call. Returns those before. */
struct credentials credentials_set(struct credentials who);
/* May the thread's user take from what is kept for the privileged, for user `uid` and for group
 * `gid` (0: for no group)? */
bool credentials_may_use_reserved(uint32_t uid, uint32_t gid);

#endif
