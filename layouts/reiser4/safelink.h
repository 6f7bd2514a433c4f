/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over tree.h. Safe-links: items that say which objects a crash would leave
 * half done. Facts: docs/reiser4-format.md, "safe-links".
 *
 *     unlink     the last name is gone, somebody uses the object: delete it
 *     truncate   a cut that takes several commits: cut to the size
 *     to-tail, to-extent    a conversion that takes several commits: finish it
 *
 * Invariant: an object has at most one link of each kind; what a link asks for may be done twice.
 */
#ifndef LAYOUTFS_REISER4_SAFELINK_H
#define LAYOUTFS_REISER4_SAFELINK_H

#include "layouts/reiser4/item.h"

struct reiser4;

enum reiser4_safelink_kind {
    REISER4_SAFELINK_UNLINK,
    REISER4_SAFELINK_TRUNCATE,
    REISER4_SAFELINK_TO_TAIL,
    REISER4_SAFELINK_TO_EXTENT,
};

struct reiser4_safelink {
    enum reiser4_safelink_kind kind;
    struct reiser4_object object;
    uint64_t size; /* of a truncation */
};

/* NULL, or what is wrong. */
const char *reiser4_safelink_load(const struct reiser4_item *item, struct reiser4_safelink *link);
/* Adds the link, or gives the one that is there another size. -ENOSPC. */
int reiser4_safelink_add(struct reiser4 *r4, const struct reiser4_safelink *link);
/* 0 also when there is none. */
int reiser4_safelink_remove(struct reiser4 *r4, uint64_t oid, enum reiser4_safelink_kind kind);
/* Does what all of them ask for, in steps, with commits where an atom becomes large. For a mount
 * for writing, after which none are left; a link to an object that is not there is dropped with a
 * warning. */
int reiser4_safelinks_process(struct reiser4 *r4);
/* The first one of an object whose number is >= `oid`; -ENOENT. Shared. */
int reiser4_safelink_next(struct reiser4 *r4, uint64_t oid, struct reiser4_safelink *link);

#endif
