/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, private to check*.c.
 *
 *   check.c          the order of things; the table of objects
 *   check_super.c    blocks at fixed places, backups; bitmaps against what is in use
 *   check_tree.c     every node and item, and what items say of objects and blocks
 *   check_objects.c  stat data against names, bodies and counts; orphans
 *
 * The volume is taken up as a read-only mount does, so that a log that was not replayed counts.
 *
 * Invariants:
 *  1. Nothing from the volume is believed before it was compared with something else.
 *  2. Damage, which is told where it is found, and unreadable blocks end the examination of what
 *     hangs below them, and of nothing else. Nothing is then told to be missing (`complete`).
 *  3. What fsck.reiser4 does not look at is looked at here: link counts, orphans, the number of
 *     objects, entries of one name, items side by side that the driver does not survive.
 */
#ifndef LAYOUTFS_REISER4_CHECK_H
#define LAYOUTFS_REISER4_CHECK_H

#include <errno.h>

#include "layouts/reiser4/layout.h"

struct reiser4_check_object { /* of an oid that was seen anywhere; oid 0: a free slot */
    struct reiser4_object object;
    bool stat;           /* its stat data was found... */
    uint16_t mode;       /* ...and says this */
    uint32_t links;      /* likewise */
    uint64_t size;       /* likewise */
    uint64_t disk_bytes; /* likewise, but of devices */
    struct reiser4_plugins plugins;
    uint32_t names;   /* entries that mean it, but "." and ".." */
    uint32_t subdirs; /* of a directory */
    uint64_t parent;  /* of a directory: that of its last name; 0: none */
    bool leaving;     /* a safe-link says that it is to be deleted */
    unsigned forms;   /* bits of enum reiser4_form: of its body's items */
    uint64_t end;     /* bytes of the file that the body's items reach to */
    uint64_t bytes;   /* what its items, or entries, count for */
    uint64_t entries; /* in it */
    bool gap;         /* its body has one */
};

struct reiser4_check {
    struct volume volume; /* a stand-in: device, clock, log, name, pool; r4 when taken up */
    struct reiser4 *r4;
    struct check_report *report;
    uint8_t **used; /* owned: by region, a bit for each block that something holds; NULL: none */
    struct reiser4_check_object *object; /* owned: an open table by oid */
    size_t count, room;                  /* room: 0 or a power of two */
    uint64_t largest_oid, stats;         /* of stat data: the largest number, and how many */
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
/* The object of that number, entered if it is not there. NULL: no memory. Valid until the next
 * call. */
struct reiser4_check_object *reiser4_check_object_of(struct reiser4_check *check, uint64_t oid);
/* NULL: it has not been entered. */
struct reiser4_check_object *reiser4_check_object_find(const struct reiser4_check *check,
                                                       uint64_t oid);

/* Notes that `count` blocks (in the volume) are held by what is called `what`; those that are held
 * already are findings. */
int reiser4_check_hold(struct reiser4_check *check, uint64_t block, uint64_t count,
                       const char *what);

int reiser4_check_supers(struct reiser4_check *check);
int reiser4_check_tree(struct reiser4_check *check);
int reiser4_check_objects(struct reiser4_check *check);
/* After the tree: bitmaps. */
int reiser4_check_space(struct reiser4_check *check);

#endif
