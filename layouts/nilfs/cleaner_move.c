/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/cleaner.h. Cleans one segment.
 *
 * The logs of the segment say what each of its blocks was written as; the DAT says what has become
 * of it (docs/nilfs2-format.md, "cleaner").
 *
 * Invariants:
 *  1. A segment is moved as a whole or not at all, within one checkpoint: other cleaners take it
 *     for granted that a virtual block in a log of a segment in use lies there.
 *  2. A block that moves keeps its virtual number and the checkpoint it was written in, so no file
 *     and no node changes, whatever number of checkpoints have it.
 *  3. A virtual block is the segment's only if its entry in the DAT says so: another one may have
 *     got the number since.
 *  4. What dies takes the plain checkpoints that have it along. None is a snapshot, or within the
 *     protection period, or the newest.
 *  5. Moved blocks are on their way to the disk before anything is read again that may be among
 *     them: the open log is closed before anything but the DAT is looked at.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/bitmap.h"
#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/cleaner.h"
#include "layouts/nilfs/cpfile.h"
#include "layouts/nilfs/dat.h"
#include "layouts/nilfs/log_internal.h"
#include "layouts/nilfs/log_read.h"
#include "layouts/nilfs/palloc.h"
#include "layouts/nilfs/space.h"
#include "layouts/nilfs/sufile.h"
#include "layouts/nilfs/super.h"

/* Live blocks that are in core at a time. */
#define BATCH_BYTES (UINT32_C(8) << 20)

struct range { /* of checkpoints: [start, end) */
    uint64_t start, end;
};

struct segment_work {
    struct nilfs *nilfs;
    struct nilfs_liveness liveness;
    uint64_t segment, sequence;
    struct nilfs_found_block *live; /* owned */
    uint32_t live_count;
    uint32_t dat_count;            /* blocks of the DAT that are live: changed, not moved */
    struct nilfs_found_block *dat; /* owned */
    uint64_t *dead;                /* owned: virtual blocks */
    uint32_t dead_count;
    struct range *ended; /* owned: of those dead ones that were of a checkpoint */
    uint32_t ended_count;
    uint32_t blocks, gone; /* in logs; of them those that somebody else freed, or moved */
    uint8_t *data;         /* owned: a batch of blocks */
    struct clean_report *report;
};

/* --- what is alive ---------------------------------------------------------------------------- */

/* The oldest checkpoint of the protection period; not above the newest, which a crash leads back
 * to. */
static int protected_from(struct nilfs *nilfs, uint64_t *cno) {
    int64_t since = nilfs_now(nilfs) - nilfs->options.cleaner.protection;
    uint64_t low = 1, high = nilfs->newest;
    struct nilfs_checkpoint found;

    /* Their times ascend: the first one in [low, high) that is young enough is looked for; many may
     * have been deleted. */
    *cno = nilfs->newest;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int error = nilfs_cpfile_next(nilfs, middle, false, &found);
        if (error && error != -ENOENT)
            return error;
        bool there = !error && found.cno < high;
        if (there && found.created <= since) {
            low = found.cno + 1;
            continue;
        }
        if (there)
            *cno = found.cno;
        high = middle;
    }
    return 0;
}

static int add_snapshot(struct nilfs_liveness *liveness, size_t *room, uint64_t cno) {
    if (liveness->count == *room) {
        size_t more = *room ? *room * 2 : 16;
        uint64_t *grown = realloc(liveness->snapshots, more * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        liveness->snapshots = grown;
        *room = more;
    }
    liveness->snapshots[liveness->count++] = cno;
    return 0;
}

int nilfs_liveness_load(struct nilfs *nilfs, struct nilfs_liveness *liveness) {
    struct nilfs_checkpoint snapshot = {.cno = 0};
    size_t room = 0;

    *liveness = (struct nilfs_liveness){0};
    int error = protected_from(nilfs, &liveness->protected_cno);
    while (!error) {
        error = nilfs_cpfile_next(nilfs, snapshot.cno + 1, true, &snapshot);
        if (!error)
            error = add_snapshot(liveness, &room, snapshot.cno);
    }
    if (error == -ENOENT)
        return 0;
    nilfs_liveness_free(liveness);
    return error;
}

void nilfs_liveness_free(struct nilfs_liveness *liveness) {
    free(liveness->snapshots);
    liveness->snapshots = NULL;
    liveness->count = 0;
}

bool nilfs_liveness_held(const struct nilfs_liveness *liveness, uint64_t start, uint64_t end) {
    size_t low = 0, high = liveness->count;

    if (start >= end)
        return false;
    if (end > liveness->protected_cno)
        return true;
    while (low < high) { /* the first snapshot that is not below the start */
        size_t middle = low + (high - low) / 2;
        if (liveness->snapshots[middle] < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < liveness->count && liveness->snapshots[low] < end;
}

/* --- looking at the segment ------------------------------------------------------------------- */

static int found_dat(struct segment_work *work, const struct nilfs_log_item *item, uint64_t block) {
    bool yes;
    int error = nilfs_bmap_points_at(work->nilfs->dat, item->offset, item->level, block, &yes);

    if (error == -ENOENT || (!error && !yes)) {
        work->gone++;
        return 0;
    }
    if (!error)
        work->dat[work->dat_count++] = (struct nilfs_found_block){*item, block};
    return error;
}

static void found_dead(struct segment_work *work, const struct nilfs_log_item *item,
                       const struct nilfs_life *life) {
    work->dead[work->dead_count++] = item->vblock;
    if (item->cno != 0 && life->start < life->end) /* else of none: cpfile's and sufile's */
        work->ended[work->ended_count++] = (struct range){life->start, life->end};
}

/* The format's rule. A life that ends in the checkpoint it began in is of none. */
static bool is_alive(const struct segment_work *work, const struct nilfs_log_item *item,
                     const struct nilfs_life *life) {
    if (life->end == NILFS_CNO_MAX)
        return true;
    return item->cno != 0 && nilfs_liveness_held(&work->liveness, life->start, life->end);
}

static int visit(void *context, const struct nilfs_log_item *item, uint64_t block) {
    struct segment_work *work = context;
    struct nilfs *nilfs = work->nilfs;
    struct nilfs_life life = {0};

    work->blocks++;
    if (item->ino == NILFS_DAT_INO)
        return found_dat(work, item, block);
    int used = nilfs_palloc_used(nilfs->dat, item->vblock);
    if (used < 0)
        return used;
    int error = used ? nilfs_dat_life(nilfs, item->vblock, &life) : 0;
    if (error)
        return error;
    if (!used || life.block != block)
        work->gone++;
    else if (is_alive(work, item, &life))
        work->live[work->live_count++] = (struct nilfs_found_block){*item, block};
    else
        found_dead(work, item, &life);
    return 0;
}

/* All logs up to `blocks` blocks from the segment's start. -EUCLEAN: they are not what is expected
 * there. */
static int read_logs(struct segment_work *work, uint32_t blocks) {
    struct nilfs *nilfs = work->nilfs;
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t at = nilfs_segment_start(g, work->segment), end = at + blocks;

    for (bool first = true; at < end; first = false) {
        struct nilfs_log_head head;
        const char *reason;
        bool valid;
        int error = nilfs_log_read(nilfs->volume->device, g, at, NILFS_CHECK_SUMMARY, &head, &valid,
                                   &reason);
        if (error)
            return error;
        if (valid && !first && head.sequence != work->sequence) {
            valid = false;
            reason = "it is of another sequence than the first one";
        }
        if (!valid) {
            log_warning(nilfs->volume->log,
                        "%s: nilfs: segment %llu is not cleaned: log at block %llu: %s; see "
                        "'layoutfs check'",
                        nilfs->volume->name, (unsigned long long)work->segment,
                        (unsigned long long)at, reason);
            return -EUCLEAN;
        }
        work->sequence = head.sequence;
        if (head.sequence >= nilfs_super_protected_sequence(nilfs))
            return 0;
        /* The head, the summary for its checksum, the summary for the items. */
        work->report->read_bytes += (1 + 2 * (uint64_t)head.summary_blocks) << g->block_bits;
        error = nilfs_log_items(nilfs->volume->device, g, &head, visit, work);
        if (error)
            return error;
        at += head.blocks;
    }
    return 0;
}

/* --- moving ----------------------------------------------------------------------------------- */

/* A file's blocks of one checkpoint together, data in the file's order before nodes. */
static int log_order(const void *left, const void *right) {
    const struct nilfs_found_block *a = left, *b = right;

    if (a->item.ino != b->item.ino)
        return a->item.ino < b->item.ino ? -1 : 1;
    if (a->item.cno != b->item.cno)
        return a->item.cno < b->item.cno ? -1 : 1;
    if (a->item.level != b->item.level)
        return a->item.level < b->item.level ? -1 : 1;
    if (a->item.offset != b->item.offset)
        return a->item.offset < b->item.offset ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

/* Blocks of the batch that lie behind one another on the disk, in the same order, in one request.
 * On a disk that sorts its requests the rest needs no order. */
static uint32_t run_length(const struct nilfs_found_block *found, uint32_t count) {
    uint32_t run = 1;

    while (run < count && found[run].block == found[0].block + run)
        run++;
    return run;
}

static int read_batch(struct segment_work *work, const struct nilfs_found_block *found,
                      uint32_t count) {
    struct device *device = work->nilfs->volume->device;
    const struct nilfs_geometry *g = &work->nilfs->geometry;
    struct device_batch batch = {0};
    int error = 0;

    for (uint32_t i = 0; i < count && !error;) {
        uint32_t run = run_length(found + i, count - i);
        struct iovec vector = {work->data + ((size_t)i << g->block_bits),
                               (size_t)run << g->block_bits};
        const struct device_request request = {
            .operation = DEVICE_READ,
            .purpose = PURPOSE_OTHER,
            .offset = found[i].block << g->block_bits,
            .length = (uint32_t)vector.iov_len,
            .vector = &vector,
            .vector_count = 1,
            .batch = &batch,
        };
        error = device_submit(device, &request);
        i += run;
    }
    int waited = device_wait(device, &batch);
    work->report->read_bytes += (uint64_t)count << g->block_bits;
    return error ? error : waited;
}

static int move_batch(struct segment_work *work, const struct nilfs_found_block *found,
                      uint32_t count, struct device_batch *batch) {
    struct nilfs *nilfs = work->nilfs;
    uint32_t bits = nilfs->geometry.block_bits;
    int error = 0;

    for (uint32_t i = 0; i < count && !error; i++) {
        uint64_t block;
        error =
            nilfs_log_data(nilfs, &found[i].item, work->data + ((size_t)i << bits), &block, batch);
        if (!error)
            error = nilfs_dat_move(nilfs, found[i].item.vblock, block);
    }
    work->report->moved += count;
    work->report->write_bytes += (uint64_t)count << bits;
    return nilfs_fail(nilfs, error);
}

/* Reads and moves all, a batch at a time. Of a usual segment nothing is moved before all of it
 * could be read; *moving: something has been. */
static int move_live(struct segment_work *work, bool *moving) {
    struct nilfs *nilfs = work->nilfs;
    uint32_t most = BATCH_BYTES >> nilfs->geometry.block_bits;
    struct device_batch batch = {0};
    int error = 0;

    if (work->live_count == 0)
        return 0;
    qsort(work->live, work->live_count, sizeof(*work->live), log_order);
    if (most > work->live_count)
        most = work->live_count;
    work->data = malloc((size_t)most << nilfs->geometry.block_bits);
    if (!work->data)
        return -ENOMEM;
    for (uint32_t i = 0, count; i < work->live_count && !error; i += count) {
        count = work->live_count - i < most ? work->live_count - i : most;
        error = read_batch(work, work->live + i, count);
        if (error)
            break;
        *moving = true;
        error = move_batch(work, work->live + i, count, &batch);
    }
    int closed = *moving ? nilfs_fail(nilfs, nilfs_log_close(nilfs, 0, &batch)) : 0;
    int waited = device_wait(nilfs->volume->device, &batch);
    if (!closed)
        closed = nilfs_fail(nilfs, waited);
    return error ? error : closed;
}

/* The next checkpoint writes them anew: all nodes on the way to where they are become changed ones,
 * the block at the end, too, if it is data. */
static int change_dat(struct segment_work *work) {
    struct nilfs_file *dat = work->nilfs->dat;
    int error = 0;

    for (uint32_t i = 0; i < work->dat_count && !error; i++) {
        uint64_t offset = work->dat[i].item.offset, pointer;
        if (work->dat[i].item.level == 0) {
            error = nilfs_file_touch(dat, offset);
        } else {
            error = nilfs_bmap_lookup(dat, offset, &pointer);
            if (!error)
                error = nilfs_bmap_set(dat, offset, pointer);
        }
        if (error == -ENOENT) /* it has become a hole, or lost its first key */
            error = 0;
    }
    return error;
}

/* --- freeing ---------------------------------------------------------------------------------- */

static int range_order(const void *left, const void *right) {
    const struct range *a = left, *b = right;

    return (a->start > b->start) - (a->start < b->start);
}

/* Ranges that meet become one. */
static void ended_join(struct segment_work *work) {
    uint32_t count = 0;

    qsort(work->ended, work->ended_count, sizeof(*work->ended), range_order);
    for (uint32_t i = 0; i < work->ended_count; i++) {
        struct range *last = count > 0 ? &work->ended[count - 1] : NULL;
        if (!last || work->ended[i].start > last->end)
            work->ended[count++] = work->ended[i];
        else if (work->ended[i].end > last->end)
            last->end = work->ended[i].end;
    }
    work->ended_count = count;
}

/* The checkpoints that had what is dead. */
static int delete_checkpoints(struct segment_work *work) {
    struct nilfs *nilfs = work->nilfs;
    uint64_t before, after, snapshots;
    int error = nilfs_cpfile_counts(nilfs, &before, &snapshots);

    ended_join(work);
    for (uint32_t i = 0; i < work->ended_count && !error; i++)
        error = nilfs_cpfile_delete(nilfs, work->ended[i].start, work->ended[i].end);
    if (!error)
        error = nilfs_cpfile_counts(nilfs, &after, &snapshots);
    if (!error)
        work->report->checkpoints += before - after;
    return error;
}

static int free_dead(struct segment_work *work) {
    int error = 0;

    for (uint32_t i = 0; i < work->dead_count && !error; i++)
        error = nilfs_dat_free(work->nilfs, work->dead[i]);
    return error ? error : delete_checkpoints(work);
}

static int free_segment(struct segment_work *work) {
    struct nilfs *nilfs = work->nilfs;
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t start = nilfs_segment_start(g, work->segment);
    int error = change_dat(work);

    if (!error)
        error = free_dead(work);
    if (!error)
        error = nilfs_sufile_free(nilfs, work->segment);
    if (!error) {
        buffer_forget(nilfs->buffers, start, nilfs_segment_end(g, work->segment) - start);
        nilfs_cleaner_counted(nilfs, work->segment, 0);
    }
    return nilfs_fail(nilfs, error);
}

/* --- one segment ------------------------------------------------------------------------------ */

static int work_begin(struct segment_work *work) {
    size_t blocks = work->nilfs->geometry.segment_blocks;
    int error = nilfs_liveness_load(work->nilfs, &work->liveness);

    if (error)
        return error;
    work->live = malloc(blocks * sizeof(*work->live));
    work->dat = malloc(blocks * sizeof(*work->dat));
    work->dead = malloc(blocks * sizeof(*work->dead));
    work->ended = malloc(blocks * sizeof(*work->ended));
    return work->live && work->dat && work->dead && work->ended ? 0 : -ENOMEM;
}

static void work_end(struct segment_work *work) {
    nilfs_liveness_free(&work->liveness);
    free(work->live);
    free(work->dat);
    free(work->dead);
    free(work->ended);
    free(work->data);
}

/* So that it is not looked at again for a while. */
static int put_off(struct segment_work *work, struct nilfs_usage usage) {
    const struct nilfs_demand demand = {.segments = 1};

    if (nilfs_space_claim(work->nilfs, NILFS_CLAIM_FINISH, &demand))
        return 0;
    usage.modified = nilfs_now(work->nilfs);
    return nilfs_fail(work->nilfs, nilfs_sufile_write(work->nilfs, work->segment, &usage));
}

/* --- what it takes ---------------------------------------------------------------------------- */

int nilfs_weight_begin(struct nilfs *nilfs, struct nilfs_weight *weight) {
    *weight = (struct nilfs_weight){
        .span = nilfs_palloc_span(nilfs->dat),
        .slots = UINT64_MAX,
        .demand = {.blocks = nilfs_space_change(nilfs->cpfile)}, /* of nodes, mostly */
    };
    weight->seen = calloc(weight->span / 8 + 1, 1);
    return weight->seen ? 0 : -ENOMEM;
}

void nilfs_weight_end(struct nilfs_weight *weight) {
    free(weight->seen);
}

/* A block of the DAT changes, if it has not yet. */
static void weigh_entry(const struct segment_work *work, uint64_t vblock,
                        struct nilfs_weight *weight) {
    struct nilfs_file *dat = work->nilfs->dat;
    const struct nilfs_palloc layout = nilfs_palloc_of(dat);
    uint64_t offset;
    uint32_t byte;

    nilfs_palloc_locate(&layout, vblock, &offset, &byte);
    if (offset >= weight->span || nilfs_palloc_changed(dat, vblock) ||
        bitmap_test(weight->seen, (uint32_t)offset))
        return;
    bitmap_set(weight->seen, (uint32_t)offset, 1);
    weight->demand.entries++;
}

/* Deleted checkpoints: blocks of the cpfile change where others stay, else they are freed. */
static void weigh_slots(struct segment_work *work, const struct range *range,
                        struct nilfs_weight *weight) {
    struct nilfs_file *cpfile = work->nilfs->cpfile;
    uint64_t offset, last, vblock;

    if (!nilfs_cpfile_extent(work->nilfs, range->start, range->end, &offset, &last))
        return;
    /* The checkpoints of one segment often begin where those of another end. */
    weight->demand.blocks += (offset != weight->slots) + (last != offset);
    weight->slots = last;
    while (offset <= last && nilfs_bmap_seek(cpfile, offset, &offset) == 0 && offset <= last) {
        if (nilfs_bmap_lookup(cpfile, offset, &vblock) == 0)
            weigh_entry(work, vblock, weight);
        offset++;
    }
}

static void weigh(struct segment_work *work, struct nilfs_weight *weight) {
    for (uint32_t i = 0; i < work->live_count; i++)
        weigh_entry(work, work->live[i].item.vblock, weight);
    for (uint32_t i = 0; i < work->dead_count; i++)
        weigh_entry(work, work->dead[i], weight);
    ended_join(work);
    for (uint32_t i = 0; i < work->ended_count; i++)
        weigh_slots(work, &work->ended[i], weight);
    weight->demand.entries += work->dat_count;
    if (work->live_count > 0)
        weight->demand.logged += work->live_count + 2; /* the log that is open is closed early */
    weight->demand.segments++;
}

int nilfs_cleaner_weigh(struct nilfs *nilfs, uint64_t segment, struct nilfs_weight *weight) {
    struct clean_report unused = {.count = 0};
    struct segment_work work = {.nilfs = nilfs, .segment = segment, .report = &unused};
    struct nilfs_usage usage;
    int error = nilfs_sufile_read(nilfs, segment, &usage);

    if (!error)
        error = work_begin(&work);
    if (!error)
        error = read_logs(&work, usage.blocks);
    if (!error && usage.blocks > 0 && work.sequence >= nilfs_super_protected_sequence(nilfs))
        error = -EBUSY;
    if (!error)
        weigh(&work, weight);
    work_end(&work);
    return error;
}

static int claim(struct segment_work *work) {
    struct nilfs_weight weight;
    int error = nilfs_weight_begin(work->nilfs, &weight);

    if (!error)
        weigh(work, &weight);
    if (!error)
        error = nilfs_space_claim(work->nilfs, NILFS_CLAIM_FINISH, &weight.demand);
    nilfs_weight_end(&weight);
    return error;
}

/* --- one segment ------------------------------------------------------------------------------ */

static int clean(struct segment_work *work, enum clean_fate *fate) {
    bool moving = false;
    int error = claim(work);

    if (!error)
        error = move_live(work, &moving);
    if (error == -EIO && !moving) { /* told by the device; nothing has changed */
        *fate = CLEAN_DAMAGED;
        return 0;
    }
    if (error)
        return error;
    *fate = CLEAN_FREED;
    return free_segment(work);
}

static int examine(struct segment_work *work, const struct nilfs_usage *usage,
                   uint32_t min_reclaimable, enum clean_fate *fate) {
    const struct nilfs *nilfs = work->nilfs;
    uint64_t blocks = nilfs->geometry.segment_blocks;
    int error = read_logs(work, usage->blocks);
    uint64_t live = work->live_count + work->dat_count;

    if (error == -EUCLEAN || error == -EIO) {
        *fate = CLEAN_DAMAGED;
        return 0;
    }
    if (error)
        return error;
    if (usage->blocks > 0 && work->sequence >= nilfs_super_protected_sequence(nilfs)) {
        *fate = CLEAN_PROTECTED;
        return 0;
    }
    if ((blocks - live) * 100 < blocks * min_reclaimable) {
        *fate = CLEAN_PUT_OFF;
        return 0;
    }
    return clean(work, fate);
}

static void report(struct segment_work *work, enum clean_fate fate) {
    struct clean_report *r = work->report;

    if (r->count == CLEAN_SEGMENTS_MAX)
        return;
    r->segment[r->count].number = work->segment;
    r->segment[r->count].live = work->live_count + work->dat_count;
    r->segment[r->count].dead = work->dead_count + work->gone;
    r->segment[r->count++].fate = fate;
}

int nilfs_cleaner_segment(struct nilfs *nilfs, uint64_t segment, uint32_t min_reclaimable,
                          struct clean_report *r) {
    struct segment_work work = {.nilfs = nilfs, .segment = segment, .report = r};
    enum clean_fate fate = CLEAN_DAMAGED;
    struct nilfs_usage usage;
    int error = nilfs_sufile_read(nilfs, segment, &usage);

    if (error || usage.flags != NILFS_SU_DIRTY || nilfs_log_uses(nilfs, segment))
        return error; /* it has become another one since it was chosen */
    error = work_begin(&work);
    if (!error)
        error = examine(&work, &usage, min_reclaimable, &fate);
    if (!error && (fate == CLEAN_PUT_OFF || fate == CLEAN_DAMAGED))
        error = put_off(&work, usage);
    if (!error && fate == CLEAN_PUT_OFF) /* of the others not all has been looked at */
        nilfs_cleaner_counted(nilfs, segment, work.live_count);
    if (!error)
        report(&work, fate);
    work_end(&work);
    return error;
}
