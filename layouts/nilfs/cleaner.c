/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/layout.h, cleaner.h. When the cleaner works.
 *
 * A log needs clean segments to go on. The cleaner makes some: it copies what is alive in a few
 * segments to the log's end, and frees them. As Linux' daemon does, it rests until clean segments
 * are fewer than min_clean_segments (and the reserve), then makes steps until they are more than
 * max_clean_segments. A step is some segments, chosen together (cleaner_policy.c), and is made last
 * by a commit, which it asks for.
 *
 * Invariants:
 *  1. One call of nilfs_idle cleans one segment at most: so long does the volume stay locked.
 *  2. Nothing is done between a commit's begin and its end, whose logs and super block are being
 *     written then.
 *  3. A segment is freed only if its sequence is older than what both super blocks name: the chain
 *     of logs from either to the newest is never cut. When that is all that stands in the way, the
 *     super blocks are written.
 *  4. What a step frees may be allocated when a checkpoint without it is durable (sufile.h).
 *  5. All state is a matter of the clock and of what was changed, so that the same happens in the
 *     same virtual time.
 *  6. With nothing to be done, a mount sleeps until something changes.
 *  7. What cleaning takes has room beside what is promised to others (space.h). Where space is so
 *     tight that it would come out of what is left for removing and the cleaner itself, a step is
 * made only if it wins more than it takes, its checkpoint included; it then is of the emptiest
 * segments, and of as many as it takes to win.
 *
 * With the option `wait`, a commit that finds space short cleans first; who found no space asks for
 * such commits as long as they win segments (nilfs_cleaner_make_room).
 */
#include "layouts/nilfs/cleaner.h"

#include <errno.h>
#include <stdlib.h>

#include "layouts/nilfs/checkpoint.h"
#include "layouts/nilfs/space.h"
#include "layouts/nilfs/super.h"

#define BUSY_NS     (20 * INT64_C(1000000)) /* until a commit under way may be over */
#define STALLED_MAX 8u /* commits that win nothing, until waiting is given up */

int nilfs_cleaner_new(struct nilfs *nilfs) {
    nilfs->cleaner = calloc(1, sizeof(*nilfs->cleaner));
    if (!nilfs->cleaner)
        return -ENOMEM;
    return 0;
}

void nilfs_cleaner_free(struct nilfs *nilfs) {
    nilfs_cleaner_forget(nilfs);
    free(nilfs->cleaner);
    nilfs->cleaner = NULL;
}

/* --- how much is clean ------------------------------------------------------------------------ */

/* Clean segments are more than so many percent of all, beside the reserve. */
static bool cleaner_than(const struct nilfs *nilfs, uint32_t percent) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t part = g->segments / 100 * percent + (g->segments % 100 * percent + 99) / 100;

    return nilfs->clean_segments > part + nilfs_reserved_segments(g);
}

/* Index of the options that hold: are clean segments short? */
static int few(const struct nilfs *nilfs) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint32_t percent = nilfs->options.cleaner.min_clean;
    uint64_t part = g->segments / 100 * percent + (g->segments % 100 * percent + 99) / 100;

    return nilfs->clean_segments < part + nilfs_reserved_segments(g);
}

/* --- a step ----------------------------------------------------------------------------------- */

/* Both super blocks name the newest checkpoint, so that older segments may go. Sometimes the same
 * one is written twice in a row. */
static int advance_supers(struct nilfs *nilfs) {
    const struct nilfs_cursor *newest = &nilfs->supers.newest;
    int error = 0;

    for (int i = 0; i < 3 && !error && nilfs_super_protected_sequence(nilfs) < newest->sequence;
         i++)
        error = nilfs_super_write(nilfs, newest->cno, newest->block, newest->sequence,
                                  nilfs->clean_segments);
    return nilfs_fail(nilfs, error);
}

static void add_up(struct clean_report *total, const struct clean_report *report) {
    total->count += report->count;
    total->moved += report->moved;
    total->checkpoints += report->checkpoints;
    total->read_bytes += report->read_bytes;
    total->write_bytes += report->write_bytes;
}

/* The step's next segment. */
static int step_go_on(struct nilfs *nilfs, struct clean_report *report) {
    struct nilfs_cleaner *cleaner = nilfs->cleaner;
    uint32_t min_reclaimable = nilfs->options.cleaner.min_reclaimable[few(nilfs)];
    struct clean_report one = {.count = 0};
    uint64_t segment = cleaner->step[0];
    int error = nilfs_cleaner_segment(nilfs, segment, min_reclaimable, &one);

    if (error)
        return error;
    cleaner->cursor = segment + 1;
    cleaner->step_count--;
    for (unsigned i = 0; i < cleaner->step_count; i++)
        cleaner->step[i] = cleaner->step[i + 1];
    if (one.count > 0 && one.segment[0].fate == CLEAN_PROTECTED)
        cleaner->step_protected++;
    else if (one.count > 0)
        cleaner->step_done++;
    if (one.count > 0 && report->count < CLEAN_SEGMENTS_MAX)
        report->segment[report->count] = one.segment[0];
    add_up(report, &one);
    add_up(&cleaner->total, &one);
    return 0;
}

/* Would cleaning so many full segments take of what is left for removing and the cleaner? */
static bool is_tight(const struct nilfs *nilfs, unsigned segments) {
    uint64_t blocks = (uint64_t)segments * nilfs->geometry.segment_blocks;
    const struct nilfs_demand demand = {.entries = blocks, .logged = blocks, .segments = segments};

    return !nilfs_space_fits(nilfs, NILFS_CLAIM_WRITE, &demand);
}

static int weigh(struct nilfs *nilfs, uint64_t segment, struct nilfs_weight *weight) {
    int error = nilfs_cleaner_weigh(nilfs, segment, weight);

    if (error == -EBUSY && advance_supers(nilfs) == 0)
        error = nilfs_cleaner_weigh(nilfs, segment, weight);
    return error;
}

/* Of the first `count` segments of the step, how many to clean so that the most is won; 0: nothing
 * would be. What cannot be weighed is left out. */
static unsigned weigh_all(struct nilfs *nilfs, unsigned count, struct nilfs_weight *weight) {
    uint64_t *step = nilfs->cleaner->step;
    uint64_t each = nilfs_space_segment(&nilfs->geometry), anyway = 0;
    uint64_t most = each - 1; /* less than a segment is not worth it */
    unsigned kept = 0, best = 0;

    if (nilfs->dirty_blocks + nilfs->pending_blocks > 0)
        anyway = nilfs_space_promised(nilfs, &weight->demand);
    for (unsigned i = 0; i < count; i++) {
        if (weigh(nilfs, step[i], weight))
            continue;
        if (!nilfs_space_fits(nilfs, NILFS_CLAIM_FINISH, &weight->demand))
            break;
        uint64_t takes = nilfs_space_promised(nilfs, &weight->demand) - anyway;
        step[kept++] = step[i];
        if (kept * each > takes + most) {
            most = kept * each - takes;
            best = kept;
        }
    }
    return best;
}

static int worthwhile(struct nilfs *nilfs, unsigned count) {
    struct nilfs_weight weight;
    int error = nilfs_weight_begin(nilfs, &weight);
    unsigned best = error ? 0 : weigh_all(nilfs, count, &weight);

    nilfs_weight_end(&weight);
    return error ? error : (int)best;
}

/* How many segments it has; 0: none can be cleaned now. */
static int step_begin(struct nilfs *nilfs, bool any_time, int64_t *wake) {
    struct nilfs_cleaner *cleaner = nilfs->cleaner;
    unsigned room = nilfs->options.cleaner.segments_per_step[few(nilfs)];
    bool tight = is_tight(nilfs, room);
    int count = nilfs_cleaner_select(nilfs, tight, any_time, cleaner->step,
                                     tight ? CLEAN_SEGMENTS_MAX : room, wake);

    if (tight && count > 0)
        count = worthwhile(nilfs, (unsigned)count);
    cleaner->step_count = count > 0 ? (unsigned)count : 0;
    cleaner->step_done = cleaner->step_protected = 0;
    return count;
}

/* Makes it last. */
static int step_end(struct nilfs *nilfs) {
    struct nilfs_cleaner *cleaner = nilfs->cleaner;

    cleaner->step_count = 0;
    if (cleaner->step_done > 0)
        nilfs->volume->commit.wanted = true;
    return cleaner->step_done == 0 && cleaner->step_protected > 0 ? advance_supers(nilfs) : 0;
}

/* A whole step. *report: what it did. */
static int step(struct nilfs *nilfs, struct clean_report *report) {
    struct nilfs_cleaner *cleaner = nilfs->cleaner;
    int64_t wake;
    int error = 0;

    for (int tries = 0; tries < 2; tries++) {
        int count = step_begin(nilfs, true, &wake);
        if (count <= 0)
            return count;
        while (cleaner->step_count > 0 && !error)
            error = step_go_on(nilfs, report);
        bool again = cleaner->step_done == 0 && cleaner->step_protected > 0;
        int second = step_end(nilfs);
        if (error || second || !again)
            return error == -ENOSPC && cleaner->step_done > 0 ? second : error ? error : second;
        report->count = 0; /* they were protected, and are no more */
    }
    return 0;
}

int nilfs_clean(struct volume *volume, struct clean_report *report) {
    struct nilfs *nilfs = nilfs_of(volume);

    if (nilfs->failed)
        return -EROFS;
    if (nilfs_commit_busy(nilfs))
        return -EBUSY;
    int error = step(nilfs, report);
    report->clean_segments = nilfs->clean_segments;
    report->segments = nilfs->geometry.segments;
    return error;
}

/* --- on the clock ----------------------------------------------------------------------------- */

/* Rests, or goes on? */
static void decide(struct nilfs *nilfs) {
    const struct nilfs_cleaner_options *options = &nilfs->options.cleaner;
    struct nilfs_cleaner *cleaner = nilfs->cleaner;

    if (options->min_clean == 0)
        cleaner->running = true;
    else if (cleaner->running)
        cleaner->running = !cleaner_than(nilfs, options->max_clean);
    else
        cleaner->running = few(nilfs);
}

/* Nothing can be cleaned before `wake`, in seconds, unless something changes. */
static int64_t sleep_until(struct nilfs *nilfs, int64_t now_ns, int64_t wake) {
    const struct nilfs_cleaner_options *options = &nilfs->options.cleaner;
    int64_t now = nilfs_now(nilfs);

    nilfs->cleaner->due_ns = now_ns + options->check_ns;
    if (wake == INT64_MAX)
        return INT64_MAX;
    int64_t seconds = wake > now ? wake - now : 1;
    return seconds < INT32_MAX ? now_ns + seconds * NS_PER_SEC : INT64_MAX;
}

/* Returns when to be called next. */
static int64_t work(struct nilfs *nilfs, int64_t now_ns) {
    struct nilfs_cleaner *cleaner = nilfs->cleaner;
    struct clean_report report = {.count = 0};
    int64_t wake;

    if (cleaner->step_count == 0) {
        decide(nilfs);
        if (!cleaner->running || step_begin(nilfs, false, &wake) <= 0)
            return sleep_until(nilfs, now_ns, cleaner->running ? wake : INT64_MAX);
    }
    int error = step_go_on(nilfs, &report);
    if (!error && cleaner->step_count > 0)
        return now_ns;
    (void)step_end(nilfs); /* a failure has been told, and is the volume's */
    cleaner->due_ns = now_ns + nilfs->options.cleaner.interval_ns[few(nilfs)];
    return cleaner->due_ns;
}

int nilfs_idle(struct volume *volume, int64_t now_ns, int64_t *next_ns) {
    struct nilfs *nilfs = nilfs_of(volume);
    struct nilfs_cleaner *cleaner = nilfs->cleaner;

    *next_ns = INT64_MAX;
    if (!cleaner || nilfs->failed || nilfs->options.cleaner.policy == NILFS_POLICY_OFF)
        return 0;
    if (now_ns < cleaner->due_ns)
        *next_ns = cleaner->due_ns;
    else if (nilfs_commit_busy(nilfs))
        *next_ns = now_ns + BUSY_NS;
    else
        *next_ns = work(nilfs, now_ns);
    return 0;
}

/* --- for who waits ---------------------------------------------------------------------------- */

int nilfs_cleaner_make_room(struct nilfs *nilfs) {
    struct nilfs_cleaner *cleaner = nilfs->cleaner;
    struct clean_report report = {.count = 0};
    uint64_t before = nilfs->clean_segments;
    int error = 0;

    if (!cleaner || !nilfs->options.cleaner.wait)
        return 0;
    nilfs->volume->commit_goes_on = false;
    if (nilfs_space(nilfs, nilfs->geometry.segment_blocks) == 0)
        return 0;
    error = step(nilfs, &report);
    nilfs->volume->commit.wanted = false; /* it is being made */
    if (error == -ENOSPC || error == -ENOMEM)
        error = 0; /* what was freed before needs this commit; else who waits is told */
    cleaner->stalled = nilfs->clean_segments > before ? 0 : cleaner->stalled + 1;
    nilfs->volume->commit_goes_on = report.count > 0 && cleaner->stalled < STALLED_MAX;
    return error;
}
