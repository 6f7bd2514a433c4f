/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, part of check. What the cpfile and the sufile count; and the logs of each
 * segment in use, which must say of every block that is held what the maps say, since the cleaner
 * believes them.
 */
#include <inttypes.h>
#include <string.h>

#include "layouts/nilfs/check.h"
#include "layouts/nilfs/log_read.h"
#include "layouts/nilfs/sufile.h"

/* --- checkpoints ------------------------------------------------------------------------------ */

static void check_count(struct nilfs_check *check, const char *what, uint64_t found,
                        uint64_t expected) {
    if (found != expected)
        nilfs_check_wrong(check, "%s: %" PRIu64 ", expected %" PRIu64, what, found, expected);
}

/* The list of snapshots has `listed`; each is known to be one, and to be above the one before. */
static int check_list(struct nilfs_check *check, uint64_t snapshots) {
    struct nilfs_checkpoint snapshot = {.cno = 0};
    uint64_t listed = 0, previous = 0;
    int error;

    while (!(error = nilfs_cpfile_next(check->nilfs, previous + 1, true, &snapshot))) {
        if (snapshot.snapshot_previous != previous)
            nilfs_check_wrong(check,
                              "cpfile: snapshot %" PRIu64 " is listed behind %" PRIu64
                              ", but says %" PRIu64,
                              snapshot.cno, previous, snapshot.snapshot_previous);
        previous = snapshot.cno;
        listed++;
    }
    if (error != -ENOENT)
        return error;
    check_count(check, "cpfile: snapshots in the list", listed, snapshots);
    return 0;
}

/* The counts of the cpfile's blocks. `valid`: checkpoints found in the block of `cno`. */
static int check_block_count(struct nilfs_check *check, uint64_t cno, uint64_t valid) {
    uint32_t counted;
    uint64_t end;
    int error = nilfs_cpfile_block(check->nilfs, cno, &counted, &end);

    if (!error && counted != NILFS_CPFILE_UNCOUNTED && counted != valid)
        nilfs_check_wrong(check,
                          "cpfile: the block of checkpoint %" PRIu64 " counts %" PRIu32
                          " checkpoints, expected %" PRIu64,
                          cno, counted, valid);
    return error;
}

int nilfs_check_checkpoints(struct nilfs_check *check) {
    struct nilfs *nilfs = check->nilfs;
    struct nilfs_checkpoint checkpoint = {.cno = 0};
    uint64_t checkpoints = 0, snapshots = 0, in_block = 0, end = 0, last = 0;
    uint64_t counted_checkpoints, counted_snapshots;
    uint32_t counted;
    int error = 0;

    for (;;) {
        error = nilfs_cpfile_next(nilfs, last + 1, false, &checkpoint);
        if ((error || checkpoint.cno >= end) && in_block > 0) {
            int rc = check_block_count(check, last, in_block);
            in_block = 0;
            error = error ? error : rc;
        }
        if (!error)
            error = nilfs_cpfile_block(nilfs, checkpoint.cno, &counted, &end);
        if (error)
            break;
        if (checkpoint.cno > nilfs->newest)
            nilfs_check_wrong(check,
                              "cpfile: it has checkpoint %" PRIu64 ", but the newest is %" PRIu64,
                              checkpoint.cno, nilfs->newest);
        last = checkpoint.cno;
        checkpoints++;
        in_block++;
        snapshots += (checkpoint.flags & NILFS_CP_SNAPSHOT) != 0;
    }
    if (error != -ENOENT)
        return nilfs_check_go_on(error);
    error = nilfs_cpfile_counts(nilfs, &counted_checkpoints, &counted_snapshots);
    if (error)
        return nilfs_check_go_on(error);
    check_count(check, "cpfile: checkpoints", counted_checkpoints, checkpoints);
    check_count(check, "cpfile: snapshots", counted_snapshots, snapshots);
    return nilfs_check_go_on(check_list(check, snapshots));
}

/* --- logs ------------------------------------------------------------------------------------- */

struct logs { /* of one segment */
    struct nilfs_check *check;
    uint32_t *held; /* by block of the segment, or NULL */
};

/* Blocks that are held and in no log remain in the table. */
static int visit(void *context, const struct nilfs_log_item *item, uint64_t block) {
    const struct logs *logs = context;
    const struct nilfs_geometry *g = &logs->check->nilfs->geometry;
    uint32_t *holder = logs->held ? &logs->held[block % g->segment_blocks] : NULL;

    if (!holder || !*holder)
        return 0;
    if (*holder != nilfs_check_identity(item))
        nilfs_check_wrong(logs->check,
                          "disk block %" PRIu64 ": its log says that it is of inode %" PRIu64
                          ", virtual block %" PRIu64 ", block %" PRIu64
                          ", but something else has it",
                          block, item->ino, item->vblock, item->offset);
    *holder = 0;
    return 0;
}

static void check_unlogged(struct nilfs_check *check, uint64_t segment, const uint32_t *held) {
    uint32_t blocks = check->nilfs->geometry.segment_blocks, first = 0, count = 0;

    for (uint32_t i = blocks; held && i-- > 0;)
        if (held[i]) {
            first = i;
            count++;
        }
    if (count)
        nilfs_check_wrong(check,
                          "segment %" PRIu64 ": %" PRIu32
                          " blocks in use are in no log; the first is disk block %" PRIu64,
                          segment, count, segment * blocks + first);
}

/* A log is written once and stays as it is while its segment is in use. */
static int check_contents(struct nilfs_check *check, const struct nilfs_log_head *head,
                          uint64_t segment) {
    struct nilfs_log_head again;
    const char *reason;
    bool valid;
    int error = nilfs_log_read(check->volume.device, &check->nilfs->geometry, head->block,
                               NILFS_CHECK_DATA, &again, &valid, &reason);

    if (!error && !valid)
        nilfs_check_wrong(check, "segment %" PRIu64 ": the log at block %" PRIu64 ": %s", segment,
                          head->block, reason);
    return error;
}

/* The logs of a segment that has `blocks` written. */
static int check_logs(struct nilfs_check *check, uint64_t segment, uint32_t blocks) {
    const struct nilfs_geometry *g = &check->nilfs->geometry;
    struct logs logs = {.check = check, .held = check->held[segment]};
    uint64_t block = nilfs_segment_start(g, segment), end = block + blocks, sequence = 0;
    const char *reason;
    bool valid;
    int error = 0;

    if (end > nilfs_segment_end(g, segment)) {
        nilfs_check_wrong(check,
                          "sufile: segment %" PRIu64 " has %" PRIu32 " blocks, which cannot be",
                          segment, blocks);
        return 0;
    }
    for (bool first = true; block < end && !error; first = false) {
        struct nilfs_log_head head;
        error = nilfs_log_read(check->volume.device, g, block, NILFS_CHECK_SUMMARY, &head, &valid,
                               &reason);
        if (error)
            break;
        if (valid && !first && head.sequence != sequence) {
            valid = false;
            reason = "its sequence is not that of the log before";
        }
        if (!valid || head.blocks > end - block) {
            nilfs_check_wrong(check, "segment %" PRIu64 ": the log at block %" PRIu64 ": %s",
                              segment, block, valid ? "it is longer than the sufile says" : reason);
            break;
        }
        error = check->report->contents ? check_contents(check, &head, segment) : 0;
        if (!error)
            error = nilfs_log_items(check->volume.device, g, &head, visit, &logs);
        sequence = head.sequence;
        block += head.blocks;
    }
    check_unlogged(check, segment, logs.held);
    return nilfs_check_go_on(error);
}

/* --- segments --------------------------------------------------------------------------------- */

static int check_segment(struct nilfs_check *check, uint64_t segment, bool *clean) {
    const struct nilfs_position *position = &check->nilfs->position;
    struct nilfs_usage usage;
    int error = nilfs_sufile_read(check->nilfs, segment, &usage);

    if (error)
        return nilfs_check_go_on(error);
    *clean = usage.flags == 0;
    if (*clean && (segment == position->segment || segment == position->next))
        nilfs_check_wrong(check, "sufile: segment %" PRIu64 " is being filled, but marked clean",
                          segment);
    if (*clean && check->held[segment])
        nilfs_check_wrong(
            check, "sufile: segment %" PRIu64 " is marked clean, but holds blocks in use", segment);
    if (segment == position->segment &&
        usage.blocks != position->block - nilfs_segment_start(&check->nilfs->geometry, segment))
        nilfs_check_wrong(check,
                          "sufile: segment %" PRIu64 " has %" PRIu32
                          " blocks, but its last log ends at disk block %" PRIu64,
                          segment, usage.blocks, position->block);
    if (*clean || usage.flags & NILFS_SU_ERROR)
        return 0;
    return check_logs(check, segment, usage.blocks);
}

int nilfs_check_segments(struct nilfs_check *check) {
    uint64_t segments = check->nilfs->geometry.segments, clean = 0;
    const struct check_report *report = check->report;
    struct nilfs_usage_totals totals;
    int error = nilfs_sufile_totals(check->nilfs, &totals);

    for (uint64_t i = 0; i < segments && !error; i++) {
        bool is_clean = false;
        error = check_segment(check, i, &is_clean);
        clean += is_clean;
        if (report->progress)
            report->progress(report->context, i + 1, segments);
    }
    if (error)
        return nilfs_check_go_on(error);
    check_count(check, "sufile: clean segments", totals.clean, clean);
    check_count(check, "sufile: dirty segments", totals.dirty, segments - clean);
    return 0;
}
