/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over log.h, log_read.h and the metadata files; private to cleaner*.c but
 * for what the other files tell it. Interface of the whole: layout.h (nilfs_idle, nilfs_clean).
 *
 *   cleaner.c         when to clean, and how much
 *   cleaner_policy.c  which segments
 *   cleaner_move.c    one segment: what in it is alive, where that goes, what is freed
 *
 * All under the exclusive lock, and never between a commit's begin and its end.
 */
#ifndef LAYOUTFS_NILFS_CLEANER_H
#define LAYOUTFS_NILFS_CLEANER_H

#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/log.h"
#include "layouts/nilfs/space.h"

struct nilfs_found_block { /* what a log says that lies at `block` */
    struct nilfs_log_item item;
    uint64_t block;
};

struct nilfs_live { /* blocks of a segment, about */
    uint32_t alive;
    uint32_t dying; /* not alive, but of the newest checkpoint as long as that is below... */
    uint64_t cno;   /* ...this one, in which their lives end */
};

struct nilfs_cleaner {
    /* cleaner.c */
    bool running;   /* else clean segments were not short when it was looked last */
    int64_t due_ns; /* nothing happens before */
    uint64_t step[CLEAN_SEGMENTS_MAX]; /* segments that the present step has left to do */
    unsigned step_count;
    unsigned step_done,
        step_protected; /* of it: how many have been dealt with, or had to be left */
    unsigned stalled;   /* commits for want of space, one after the other, that won no segment */
    struct clean_report total; /* since mount; its `segment` is not used */

    /* cleaner_policy.c */
    uint64_t
        cursor; /* behind the last segment that had its turn: of equal ones, the next comes first */
    struct nilfs_live *live;  /* owned: of each segment; NULL: not counted */
    uint64_t newest_snapshot; /* when they were counted */
};

int nilfs_cleaner_new(struct nilfs *nilfs);
void nilfs_cleaner_free(struct nilfs *nilfs);
/* For commit.c, before it collects: with the option `wait`, cleans when space is short. */
int nilfs_cleaner_make_room(struct nilfs *nilfs);

/* --- cleaner_policy.c --- */
/* The best candidates, at most `room`, best first; how many, or an error. Best by the policy's
 * rank, or, `emptiest`, because they have the fewest live blocks. `any_time`: also those
 * that were written since the last change by a user; else these are left alone, so that the cleaner
 * does not clean what it has just written. *wake: seconds, when the first of those that are too
 * young may be taken; INT64_MAX: there are none such. */
int nilfs_cleaner_select(struct nilfs *nilfs, bool emptiest, bool any_time, uint64_t *segments,
                         unsigned room, int64_t *wake);
/* A segment's exact count. */
void nilfs_cleaner_counted(struct nilfs *nilfs, uint64_t segment, uint32_t live);
/* For snapshots.c: what was counted does not hold any more. */
void nilfs_cleaner_forget(struct nilfs *nilfs);
/* For dat.c: a virtual block comes to lie at `block`, or does not any more. */
static inline void nilfs_cleaner_note(const struct nilfs *nilfs, uint64_t block, bool alive) {
    if (!nilfs->cleaner || !nilfs->cleaner->live || !nilfs_block_valid(&nilfs->geometry, block))
        return;
    struct nilfs_live *live = &nilfs->cleaner->live[nilfs_segment_of(&nilfs->geometry, block)];
    if (alive)
        live->alive++;
    else if (live->alive > 0)
        live->alive--;
}
/* The same for one that does so no more from the checkpoint under construction on. */
static inline void nilfs_cleaner_note_end(const struct nilfs *nilfs, uint64_t block) {
    nilfs_cleaner_note(nilfs, block, false);
    if (!nilfs->cleaner || !nilfs->cleaner->live || !nilfs_block_valid(&nilfs->geometry, block))
        return;
    struct nilfs_live *live = &nilfs->cleaner->live[nilfs_segment_of(&nilfs->geometry, block)];
    if (live->cno != nilfs->cno)
        live->dying = 0;
    live->cno = nilfs->cno;
    live->dying++;
}
/* Has a snapshot, when they were counted, what began its life in `start`? */
static inline bool nilfs_cleaner_keeps(const struct nilfs *nilfs, uint64_t start) {
    return nilfs->cleaner && start <= nilfs->cleaner->newest_snapshot;
}

/* --- cleaner_move.c --- */
/* What decides whether a block is alive, the same for all of a step. */
struct nilfs_liveness {
    uint64_t protected_cno; /* a life that ends above this is not over */
    uint64_t *snapshots;    /* owned, ascending */
    size_t count;
};
int nilfs_liveness_load(struct nilfs *nilfs, struct nilfs_liveness *liveness);
void nilfs_liveness_free(struct nilfs_liveness *liveness);
/* A life [start, end) of a multi-version block: does a state that is kept have it? */
bool nilfs_liveness_held(const struct nilfs_liveness *liveness, uint64_t start, uint64_t end);
/* What cleaning a few segments takes, at most. */
struct nilfs_weight {
    struct nilfs_demand demand;
    uint64_t span;  /* blocks of the DAT that are told apart... */
    uint8_t *seen;  /* owned: ...of which these are counted */
    uint64_t slots; /* the last block of the cpfile that is */
};
int nilfs_weight_begin(struct nilfs *nilfs, struct nilfs_weight *weight);
void nilfs_weight_end(struct nilfs_weight *weight);
/* Adds a segment. Nothing else changes. -EBUSY: a super block leads there. */
int nilfs_cleaner_weigh(struct nilfs *nilfs, uint64_t segment, struct nilfs_weight *weight);
/* Cleans one segment and adds what it did to the report. 0 also where it is left as it is (the
 * report tells why); -ENOSPC: a commit is needed first; errors before anything has changed;
 * nilfs_fail after. */
int nilfs_cleaner_segment(struct nilfs *nilfs, uint64_t segment, uint32_t min_reclaimable,
                          struct clean_report *report);

#endif
