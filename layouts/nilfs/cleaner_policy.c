/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/cleaner.h. Which segments are cleaned first.
 *
 *   timestamp     the one written longest ago. Every segment has its turn, however full it is: the
 *                 cost is that of the average segment. It needs to know nothing of the blocks.
 *   greedy        the one with the fewest live blocks: cheapest now. But segments with cold data
 *                 lose their last dead blocks slowly and hold these for long.
 *   cost-benefit  the one with the largest benefit for its cost: what is won, the share (1 - u) of
 *                 the segment, lasts the longer the older its data are; the cost is to read all of
 *                 it and to write u of it: (1 - u) * age / (1 + u). So cold segments are cleaned at
 *                 a higher u than hot ones.
 *
 * The last two are Rosenblum's and Ousterhout's ("The Design and Implementation of a Log-Structured
 * File System", ACM TOCS 10(1), 1992, sections 3.4 to 3.6). They need each segment's number of live
 * blocks, which the format does not keep: it is counted once from the whole DAT, and then follows
 * what happens to entries of the DAT (the DAT's own blocks are left out). What ends in the middle
 * of the protection period counts as dead too early, but for what ends in the checkpoint under
 * construction, and would have to be moved; the cleaner itself decides by nilfs_liveness.
 */
#include "layouts/nilfs/cleaner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/nilfs/dat.h"
#include "layouts/nilfs/sufile.h"

/* --- counting --------------------------------------------------------------------------------- */

void nilfs_cleaner_forget(struct nilfs *nilfs) {
    if (!nilfs->cleaner)
        return;
    free(nilfs->cleaner->live);
    nilfs->cleaner->live = NULL;
}

void nilfs_cleaner_counted(struct nilfs *nilfs, uint64_t segment, uint32_t live) {
    if (nilfs->cleaner->live)
        nilfs->cleaner->live[segment] = (struct nilfs_live){.alive = live};
}

static int count_entries(struct nilfs *nilfs, const struct nilfs_liveness *liveness) {
    uint64_t vblock = 0;
    int error;

    while (!(error = nilfs_palloc_next(nilfs->dat, vblock + 1, &vblock))) {
        struct nilfs_life life;
        error = nilfs_dat_life(nilfs, vblock, &life);
        if (error)
            return error;
        if (life.end == NILFS_CNO_MAX || nilfs_liveness_held(liveness, life.start, life.end))
            nilfs_cleaner_note(nilfs, life.block, true);
    }
    return error == -ENOENT ? 0 : error;
}

static int count_live(struct nilfs *nilfs) {
    struct nilfs_cleaner *cleaner = nilfs->cleaner;
    struct nilfs_liveness liveness;
    int error = nilfs_liveness_load(nilfs, &liveness);

    if (error)
        return error;
    cleaner->newest_snapshot = liveness.count ? liveness.snapshots[liveness.count - 1] : 0;
    cleaner->live = calloc(nilfs->geometry.segments, sizeof(*cleaner->live));
    error = cleaner->live ? count_entries(nilfs, &liveness) : -ENOMEM;
    nilfs_liveness_free(&liveness);
    if (error)
        nilfs_cleaner_forget(nilfs);
    return error;
}

/* --- ranking ---------------------------------------------------------------------------------- */

struct candidate {
    uint64_t segment;
    double rank; /* the lower, the better */
};

struct selection {
    struct candidate best[CLEAN_SEGMENTS_MAX]; /* ascending */
    unsigned count, room;
};

static double rank(const struct nilfs *nilfs, enum nilfs_policy policy, uint64_t segment,
                   const struct nilfs_usage *usage, int64_t now) {
    const struct nilfs_cleaner *cleaner = nilfs->cleaner;
    double age = usage->modified < now ? (double)(now - usage->modified) : 0;

    if (policy != NILFS_POLICY_GREEDY && policy != NILFS_POLICY_COST_BENEFIT)
        return -age;
    const struct nilfs_live *live = &cleaner->live[segment];
    uint32_t dying = live->cno > nilfs->newest ? live->dying : 0;
    double used = (double)(live->alive + dying) / nilfs->geometry.segment_blocks;
    if (policy == NILFS_POLICY_GREEDY)
        return used;
    return -(1 - used) * (age + 1) / (1 + used); /* even a new one is better the emptier it is */
}

/* Of equal ones the first that comes stays in front. */
static void select_one(struct selection *selection, struct candidate candidate) {
    struct candidate *best = selection->best;
    unsigned at = selection->count;

    while (at > 0 && candidate.rank < best[at - 1].rank)
        at--;
    if (at == selection->room)
        return;
    if (selection->count < selection->room)
        selection->count++;
    memmove(&best[at + 1], &best[at], (selection->count - 1 - at) * sizeof(*best));
    best[at] = candidate;
}

static bool cleanable(const struct nilfs *nilfs, uint64_t segment,
                      const struct nilfs_usage *usage) {
    return usage->flags == NILFS_SU_DIRTY && !nilfs_log_uses(nilfs, segment);
}

int nilfs_cleaner_select(struct nilfs *nilfs, bool emptiest, bool any_time, uint64_t *segments,
                         unsigned room, int64_t *wake) {
    enum nilfs_policy policy = emptiest ? NILFS_POLICY_GREEDY : nilfs->options.cleaner.policy;
    struct selection selection = {.room = room};
    uint64_t all = nilfs->geometry.segments;
    int64_t now = nilfs_now(nilfs), protection = nilfs->options.cleaner.protection;
    int64_t limit =
        any_time || now - protection < nilfs->nongc_time ? now - protection : nilfs->nongc_time - 1;
    bool counted = policy == NILFS_POLICY_GREEDY || policy == NILFS_POLICY_COST_BENEFIT;
    int error = counted && !nilfs->cleaner->live ? count_live(nilfs) : 0;

    *wake = INT64_MAX;
    for (uint64_t i = 0; i < all && !error; i++) {
        uint64_t segment = (nilfs->cleaner->cursor + i) % all;
        struct nilfs_usage usage;
        error = nilfs_sufile_read(nilfs, segment, &usage);
        if (error || !cleanable(nilfs, segment, &usage))
            continue;
        if (usage.modified > now) /* the clock was wrong, then or now */
            usage.modified = limit;
        if (usage.modified <= limit)
            select_one(&selection,
                       (struct candidate){segment, rank(nilfs, policy, segment, &usage, now)});
        else if (usage.modified < nilfs->nongc_time && usage.modified < *wake - protection)
            *wake = usage.modified + protection;
    }
    for (unsigned i = 0; i < selection.count; i++)
        segments[i] = selection.best[i].segment;
    return error ? error : (int)selection.count;
}
