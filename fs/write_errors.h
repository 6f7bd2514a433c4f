/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: fs (no dependencies). Used by the page cache.
 *
 * Writes that failed after they were submitted, when nobody was waiting for them. Their pages count
 * as written, so that this is all that is left of them: the next fsync of the file answers with the
 * error, once, and so does the next sync or the unmount, once. (Linux does the same with errseq_t,
 * there once for each open file.)
 *
 * Invariants:
 *  1. A failure is forgotten by one kind of asker only when that kind has been told.
 *  2. No failure is lost for want of memory: it then counts as one of an unknown file.
 *
 * Locking: the caller's.
 */
#ifndef LAYOUTFS_WRITE_ERRORS_H
#define LAYOUTFS_WRITE_ERRORS_H

#include <stddef.h>
#include <stdint.h>

struct write_errors {
    int volume;  /* for the next sync; 0: none */
    int unknown; /* of no known file, as of metadata: for whichever fsync comes next */
    struct write_error *files; /* owned */
    size_t count, room;
};

/* A zeroed struct is empty and valid. */
void write_errors_free(struct write_errors *errors);
/* A write of file `ino` (0: not of one) has failed with `error`. */
void write_errors_note(struct write_errors *errors, uint64_t ino, int error);
/* What an fsync of the file is to answer, and whether one would: 0 or negative errno. */
int write_errors_take(struct write_errors *errors, uint64_t ino);
int write_errors_peek(const struct write_errors *errors, uint64_t ino);
/* What a sync is to answer. */
int write_errors_take_volume(struct write_errors *errors);

#endif
