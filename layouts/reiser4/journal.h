/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4, over the device and super.h. The wandering log: a transaction is a head,
 * records, and copies of the blocks that it overwrites, in any blocks that were free. Facts:
 * docs/reiser4-format.md, "journal".
 *
 *   journal.c         what is found at mount: replay; the overlay
 *   journal_write.c   what a commit writes
 *
 * A transaction is committed when the journal header names its head, and flushed (in place) when
 * the footer does. Between the two lies the only time in which a mount has something to do.
 *
 * Invariants:
 *  1. The header is written when everything that the transaction says is durable; blocks in place
 *     when the header is; the footer when they are.
 *  2. Replay writes blocks in place, flushes, then the footer, for each transaction from the oldest
 *     on: cut at any point it can be done again.
 *  3. A read-only mount writes nothing: blocks of committed transactions are read from where they
 *     wandered (the overlay). So it shows what a replay would have made.
 *  4. A transaction's head is never where the last one's was: header and footer, when they are
 * equal, mean that there is nothing to do.
 *  5. Nothing is read through caches before the replay is over.
 */
#ifndef LAYOUTFS_REISER4_JOURNAL_H
#define LAYOUTFS_REISER4_JOURNAL_H

#include "fs/volume.h"
#include "layouts/reiser4/super.h"

struct reiser4;
struct reiser4_commit;

/* Where blocks are to be read from, on a read-only mount of a volume with a log. */
struct reiser4_overlay {
    struct reiser4_overlay_entry {
        uint64_t original, wandered;
    } * entry; /* owned, ascending by `original` */
    size_t count;
};

struct reiser4_journal {
    uint64_t last_committed, last_flushed; /* as header and footer say */
    bool counters_known;                   /* the footer has counters, which override the super's */
    struct reiser4_counters counters;
    struct reiser4_overlay overlay;
    uint64_t replayed; /* transactions, or those in the overlay */
};

/* Reads header and footer and the log between them, if there is one, and replays it; on a read-only
 * volume makes the overlay. `blocks` of the volume. -EUCLEAN: the log is damaged, which was said.
 */
int reiser4_journal_open(struct volume *volume, uint64_t blocks, struct reiser4_journal *journal);
void reiser4_journal_close(struct reiser4_journal *journal);
/* Where the block's contents are. Shared; a few instructions where there is no overlay. */
uint64_t reiser4_overlay_find(const struct reiser4_overlay *overlay, uint64_t block);
static inline uint64_t reiser4_overlay_at(const struct reiser4_overlay *overlay, uint64_t block) {
    return overlay && overlay->count ? reiser4_overlay_find(overlay, block) : block;
}

/* --- writing (journal_write.c) -----------------------------------------------------------------
 */

/* Finds places for the commit's wandered copies and its log (reiser4_space_allocate_log), and makes
 * head and records. In commit_begin, exclusive. */
int reiser4_journal_prepare(struct reiser4 *r4, struct reiser4_commit *commit);
/* Writes wandered copies and the log, flushes, writes the header, flushes: it is committed. Then
 * everything in place, flushes, the footer, flushes. No lock; touches the commit only. A commit
 * whose overwrite set is empty is not one: there is always the super block or a node. */
int reiser4_journal_commit(struct reiser4 *r4, struct reiser4_commit *commit);

#endif
