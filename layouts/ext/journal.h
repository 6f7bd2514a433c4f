/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/ext, shared by journal*.c, and by super.c for mounting. The rest of the layout
 * knows of the journal only what ext.h says.
 *
 * Write-ahead logging as JBD2 does it. What changes between two commits is a transaction:
 *
 *   running     ext_dirty adds buffers; they are pinned: nothing of it reaches its home
 *   committing  its blocks are copied (frozen); the copies are written to the log
 *   committed   the log has it; buffers that did not change again may be written home
 *   (gone)      all of it is home, or in a later transaction: its part of the log is free
 *
 * Invariants:
 *  1. A block that changed since the last commit is not written home: its buffer is pinned from
 *     ext_dirty until the commit that has the last change is in the log.
 *  2. The log from `tail` to `head` holds every committed transaction that is not wholly at home.
 *     Replaying it is always right: at any moment, and any number of times.
 *  3. The log's super block names a tail only after everything before it is at home, durably.
 *  4. A block that was freed is not allocated again before the transaction that freed it is
 *     committed; until then a crash would bring its old owner back.
 *  5. A block of metadata that was freed is revoked, so that an older copy in the log does not
 *     overwrite what it is used for next; and the transactions before, which may be the only ones
 *     that hold its bytes, stay in the log until the one that freed it is committed.
 *  6. Freezing and taking note happen under the volume's exclusive lock, writing without it.
 */
#ifndef LAYOUTFS_EXT_JOURNAL_H
#define LAYOUTFS_EXT_JOURNAL_H

#include "layouts/ext/ext.h"
#include "layouts/ext/journal_format.h"

/* --- journal_log.c: the log as an array of blocks ----------------------------------------------
 */

struct ext_log_run { /* where a piece of the journal file lies */
    uint32_t logical, count;
    uint64_t physical;
};

struct ext_log {
    struct device *device;
    const struct log *messages;
    const char *name; /* of the volume */
    uint32_t block_size;
    struct ext_log_run *runs; /* owned, by logical block */
    uint32_t run_count;
    uint32_t first, end; /* the ring, in blocks of the file */
    struct ext_disk_journal_super super;
    uint32_t compat, incompat;
    bool checksums; /* CSUM_V2 or V3: one a block */
    bool sums;      /* without them, COMPAT_CHECKSUM: one a transaction, in its commit block */
    uint32_t seed;  /* what their checksums start from */
    uint32_t tag_size;
};

/* Maps the journal file and takes up its super block. -EUCLEAN, -ENOTSUP with a sentence. */
int ext_log_open(struct ext *ext, struct ext_log *log);
void ext_log_close(struct ext_log *log);
/* The block `count` after `block` in the ring. */
uint32_t ext_log_step(const struct ext_log *log, uint32_t block, uint32_t count);
int ext_log_read(const struct ext_log *log, uint32_t block, void *data);
/* Writes `count` blocks from `block` on, around the ring's end if need be, in as few requests as
 * can be; they join the batch. */
int ext_log_write(const struct ext_log *log, uint32_t block, uint32_t count,
                  const struct iovec *blocks, struct device_batch *batch);
/* Sets s_start and s_sequence, and writes the super block; it is not durable yet. */
int ext_log_super_write(struct ext_log *log, uint32_t start, uint32_t sequence);
/* The checksum of a descriptor or revoke block, whose tail counts as zero. */
uint32_t ext_log_tail_checksum(const struct ext_log *log, const void *block);
struct ext_disk_journal_tail *ext_log_tail(const struct ext_log *log, void *block);
/* Of a commit block, with its own field as zero. */
uint32_t ext_log_commit_checksum(const struct ext_log *log, const void *block);
/* Of a logged block, as it stands in the log. */
uint32_t ext_log_data_checksum(const struct ext_log *log, uint32_t sequence, const void *block);
/* Is `a` later than `b`? Numbers wrap. */
static inline bool ext_sequence_after(uint32_t a, uint32_t b) {
    return (int32_t)(a - b) > 0;
}

/* Switches incompatible features on or off, in memory. */
void ext_log_set_features(struct ext_log *log, uint32_t incompat);

/* --- journal_replay.c
 * ---------------------------------------------------------------------------*/

struct ext_replay {
    struct ext_log *log;
    uint64_t blocks_count; /* of the volume: homes must lie below */
    uint64_t first_block;  /* homes are at least this */
    /* Takes a block home. */
    int (*apply)(void *context, uint64_t block, const void *data);
    void *context;
    /* out */
    uint32_t transactions, blocks, revoked; /* how many */
    uint32_t end_sequence;                  /* of the transaction that is not there */
};
/* Reads the log from its s_start on and applies what is committed. It changes nothing in the log.
 * -EUCLEAN with a sentence when a committed transaction makes no sense. */
int ext_journal_replay(struct ext_replay *replay);

/* --- journal.c, journal_commit.c, journal_checkpoint.c ------------------------------------------
 */

struct ext_range { /* of blocks */
    uint64_t block;
    uint32_t count;
};
struct ext_range_list {       /* grows at the end */
    struct ext_range *ranges; /* owned */
    size_t count, room;
};

struct ext_transaction {
    uint64_t number;                             /* its lower half is the sequence in the log */
    TAILQ_HEAD(ext_change_list, buffer) buffers; /* running: those that changed */
    uint32_t count;                              /* of blocks */
    struct ext_range_list revoked, freed;
    uint64_t hold; /* invariant 5: the oldest transaction that must stay until this is committed */
    /* from freezing on */
    uint64_t *homes;                    /* owned: block numbers */
    uint32_t log_start, log_count;      /* what it takes in the log */
    STAILQ_ENTRY(ext_transaction) link; /* committed, oldest first */
};

struct ext_journal {
    struct ext *ext;
    struct ext_log log;
    enum ext_journal_mode mode;
    bool barrier;
    unsigned faults;     /* enum ext_journal_fault: test only */
    uint32_t share;      /* blocks that a transaction should not outgrow */
    uint32_t head, tail; /* blocks in the log; equal when it is empty */
    uint32_t used;       /* blocks from tail to head */
    uint32_t tail_sequence;
    _Atomic bool aborted; /* set under any lock; what is in the log by then stays there */
    int error;            /* of something that could not be noted: the next commit fails with it */
    struct ext_transaction *running; /* never NULL */
    struct ext_transaction *committing;
    STAILQ_HEAD(ext_committed_list, ext_transaction) committed;
    TAILQ_HEAD(ext_ordered_list, ext_inode)
    ordered;             /* have data to be stored before the running one commits */
    uint8_t *frozen;     /* owned: copies of the committing one's blocks */
    size_t frozen_room;  /* bytes */
    struct iovec *image; /* owned: its blocks in the order of the log */
    /* The tail that the commit being written makes durable on its way; 0 in tail_next: none. */
    uint32_t tail_next, tail_next_sequence, tail_next_used;
};

static inline uint32_t ext_journal_room(const struct ext_journal *journal) {
    return journal->log.end - journal->log.first - journal->used - 1;
}
struct ext_transaction *ext_transaction_new(uint64_t number);
void ext_transaction_free(struct ext_transaction *transaction);
/* Blocks of the log that the transaction takes, descriptors and commit block included. */
uint32_t ext_transaction_cost(const struct ext_journal *journal,
                              const struct ext_transaction *transaction);
/* A transaction that freed these is committed: they may be allocated. */
void ext_freed_committed(struct ext *ext, const struct ext_range_list *freed);
/* No more transactions; errors= decides about the volume. */
void ext_journal_abort(struct ext_journal *journal, int error);
/* Waits for the writes that bring blocks home; when one has failed, now or earlier, the log must
 * stay as it is (-EIO). */
int ext_journal_homes_wait(struct ext_journal *journal);
/* Forgets committed transactions that are wholly at home, oldest first, and says where the tail is
 * then; the log itself does not know yet. */
void ext_journal_advance(struct ext_journal *journal, uint32_t *tail, uint32_t *sequence,
                         uint32_t *used);
/* Brings home what is committed and frees its part of the log. What changed again since stays
 * there, unless the log has not room for `room` blocks otherwise (UINT32_MAX: nothing is to stay).
 * Exclusive lock. */
int ext_journal_checkpoint(struct ext_journal *journal, uint32_t room);
/* The whole of a commit at once, at mount and unmount. Exclusive lock. */
int ext_journal_commit_now(struct ext_journal *journal);

#endif
