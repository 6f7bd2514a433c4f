/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, private to check*.c.
 *
 *   check.c          the order of things; mending
 *   check_super.c    blocks at fixed places, backups, bitmaps against what is in use
 *   check_tree.c     every node and item, against its parent and its neighbours
 *   check_objects.c  stat data against names, bodies and counts; orphans
 *
 * The volume is taken up as a read-only mount does, so that a log that was not replayed counts.
 *
 * Invariants:
 *  1. Nothing from the volume is believed before it was compared with something else.
 *  2. Damage, which is told where it is found, and unreadable blocks end the examination of what
 *     hangs below them, and of nothing else.
 *  3. What fsck.reiser4 does not look at is looked at here: link counts, orphans, the number of
 *     objects, entries of one name, items side by side that the driver does not survive.
 */
#ifndef LAYOUTFS_REISER4_CHECK_H
#define LAYOUTFS_REISER4_CHECK_H

#include <errno.h>

#include "layouts/reiser4/layout.h"

struct reiser4_check_object { /* by oid */
    struct reiser4_object object;
    uint32_t links; /* of the stat data */
    uint32_t names; /* entries that were found, but "." and ".." */
    uint32_t subdirs;
    uint16_t mode;
    bool stat;                        /* its stat data was found */
    bool mixed;                       /* bodies of more than one form were found */
    uint64_t size, bytes;             /* of the stat data */
    uint64_t found_size, found_bytes; /* by what is in the tree */
};

struct reiser4_check {
    struct volume volume; /* a stand-in: device, clock, log, name, pool; r4 when taken up */
    struct reiser4 *r4;
    struct check_report *report;
    uint8_t *used;                        /* owned: a bit for each block that something holds */
    struct reiser4_check_object *objects; /* owned; ascending by oid when all are there */
    size_t count, room;
    uint64_t largest_oid;
    bool complete; /* every node of the tree could be read: only then can things be missing */
};

/* A finding of CHECK_WRONG; and one that needs no mending. */
void reiser4_check_wrong(struct reiser4_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void reiser4_check_note(struct reiser4_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Invariant 2: 0 for damage and unreadable blocks, which are findings already. */
static inline int reiser4_check_go_on(int error) {
    return error == -EUCLEAN || error == -EIO ? 0 : error;
}
/* Notes that `count` valid blocks are held by what is called `what`; those that are held already
 * are findings. */
void reiser4_check_hold(struct reiser4_check *check, uint64_t block, uint64_t count,
                        const char *what);

int reiser4_check_supers(struct reiser4_check *check);
int reiser4_check_tree(struct reiser4_check *check);
int reiser4_check_objects(struct reiser4_check *check);
/* After the tree: bitmaps. */
int reiser4_check_space(struct reiser4_check *check);

#endif
