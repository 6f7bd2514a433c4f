/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/space.h. How much the next checkpoint writes.
 *
 * In a log nothing is changed in its place: whoever changes a byte takes new blocks for it, for the
 * nodes above it, for the entries of the DAT that say where these lie, for what describes the
 * segments that all this fills; and even what frees space takes some first. So an operation may
 * change something only when the checkpoint that will make it last has room.
 *
 * Invariants, P being nilfs_space_promised and L nilfs_space_left, both in blocks of payload:
 *  1. P is no less than what storing all pending data and a checkpoint will take from L. What it is
 *     made of: the changed blocks there are; pending data, with the nodes above them; the inodes'
 *     records; the checkpoint's slot; the usage of all segments that are entered; the blocks of the
 *     DAT with the entries of all these, old and new, and the nodes above them; the super root;
 *     logs that an fdatasync or the cleaner closes early. Summaries, and blocks at a segment's end
 *     that have no room for a log, are taken off L.
 *  2. P <= L, between any two operations: so a commit never lacks space. Each operation asks,
 *     before it changes anything, with the most that it may add to P (nilfs_space_claim). What
 *     storing and committing do to the state in core makes P smaller by no less than L.
 *  3. A recovery finds room for what data-only logs have and for its checkpoint, in clean segments
 *     alone: else there is a checkpoint instead of the log (nilfs_space_recovers).
 *  4. Who writes leaves room for checkpoints with remove_demand, so that a full volume can be
 *     emptied, and for one behind a step of the cleaner; who removes leaves the latter. Nobody
 * above ever takes of what is left for those below.
 *
 * Where the exact number would have to be looked up on the disk, it is bounded in two ways, of
 * which the smaller counts: by the number of blocks that are touched, each of which may lie apart
 * from the others; and by the size of the file that they lie in.
 */
#include "layouts/nilfs/space.h"

#include <errno.h>

#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/btree.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/log_internal.h"
#include "layouts/nilfs/palloc.h"

/* Pointers of neighbours keep the distance of these, up to this much (file.c): so many entries of
 * the DAT may be passed over for one that is used. */
#define ENTRIES_APART 8u
/* Places in the DAT where files begin, in the first group (dat.c), and its bitmap and descriptor,
 * twice. */
#define DAT_BEGINNINGS 16u
/* Logs that are closed early lack a summary, and leave one block at the segment's end. */
#define EARLY_LOG 2u
/* Clean segments that a recovery cannot fill. */
#define RECOVERY_SEGMENTS 2u
/* Larger demands are refused, so that sums of a few cannot overflow. */
#define SPACE_MAX (UINT64_C(1) << 56)

/* What is left for removing: commits, at most, with a few names, a piece of a file, and the records
 * that change. */
#define REMOVE_TIMES 3u
static const struct nilfs_demand remove_demand = {.blocks = 24, .entries = 32};

/* What is left for the cleaner: to move a segment's worth of blocks, and to free as many segments
 * as a step may have. Their entries may be all over the DAT, so that it takes many of them to win
 * more than is written. The blocks are those of the cpfile. */
#define CLEAN_BLOCKS 16u
#define CLEAN_MOVING 8u /* segments that these blocks come from */

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t beyond(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* --- block maps ------------------------------------------------------------------------------- */

/* Levels of nodes that are blocks. */
static uint32_t levels_of(const struct nilfs_file *file) {
    if (file->device || !nilfs_bmap_is_tree(file) || file->bmap.head.node.level == 0)
        return 0;
    return file->bmap.head.node.level - 1u;
}

/* A node that is no root is half full at least, and a full one first shares with a sibling. Level
 * by level: `touched` nodes are on the way to what changes, `more` children are added. Of all nodes
 * there are then, `known` are counted already. */
static uint64_t nodes_changed(const struct nilfs_file *file, uint64_t runs, uint64_t blocks,
                              uint64_t holes, uint64_t known) {
    uint32_t half = (file->nilfs->geometry.node_children - 1) / 2 + 1;
    uint32_t levels = levels_of(file), level = 0;
    uint64_t there = nilfs_space_blocks(file), touched = blocks, more = holes;
    uint64_t changed = 0, all = 0;

    if (blocks == 0)
        return 0;
    while (level < levels || more > 0) {
        all += (there + more) / half + 1;
        there = there / half + 1;
        touched = level < levels ? smaller(smaller(touched, 2 * runs + touched / half), there) : 0;
        uint64_t split = smaller(more, touched + more / half + 1);
        changed += touched + smaller(more, 2 * touched + split);
        if (level++ >= levels && more <= 1) /* a root that grew */
            break;
        more = split;
    }
    return smaller(changed, beyond(all, known));
}

uint64_t nilfs_space_nodes(const struct nilfs_file *file, uint64_t runs, uint64_t blocks,
                           uint64_t holes) {
    return nodes_changed(file, runs, blocks, holes, 0);
}

uint64_t nilfs_space_change(const struct nilfs_file *file) {
    return 1 + nilfs_space_nodes(file, 1, 1, 1);
}

/* --- what there is room for ------------------------------------------------------------------- */

/* Blocks that one summary can tell of, each of another file. */
static uint32_t log_capacity(const struct nilfs_geometry *g) {
    return (g->block_size - (uint32_t)sizeof(struct nilfs_disk_summary)) /
           (uint32_t)(sizeof(struct nilfs_disk_finfo) + sizeof(struct nilfs_disk_binfo_data));
}

/* What `blocks` up to a segment's end have room for. */
static uint64_t payload_of(const struct nilfs_geometry *g, uint64_t blocks) {
    uint32_t capacity = log_capacity(g);

    return blocks - (blocks + capacity) / (capacity + 1);
}

/* In the segment that is being filled. */
static uint64_t payload_here(const struct nilfs *nilfs) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t end = nilfs_segment_end(g, nilfs->position.segment);
    uint64_t used = nilfs->position.block + (nilfs->log ? nilfs->log->blocks : 0);

    return payload_of(g, beyond(end, used));
}

/* Each segment that is entered needs another one to be named as its successor. */
static uint64_t segments_left(const struct nilfs *nilfs) {
    return beyond(nilfs->clean_segments, nilfs->freed_count) + nilfs->spare_count;
}

uint64_t nilfs_space_segment(const struct nilfs_geometry *g) {
    return payload_of(g, g->segment_blocks);
}

uint64_t nilfs_space_left(const struct nilfs *nilfs) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t ahead = segments_left(nilfs) * payload_of(g, g->segment_blocks);

    /* The first segment of all begins late, and may be among them. */
    return payload_here(nilfs) + beyond(ahead, g->first_data_block);
}

/* --- what is promised ------------------------------------------------------------------------- */

/* Data blocks of a metadata file that change, and the nodes above them. */
static uint64_t with_nodes(const struct nilfs_file *file, uint64_t blocks, uint64_t made) {
    return blocks + nilfs_space_nodes(file, blocks, blocks, made);
}

/* What a promise is made of, beside the volume's geometry and the sizes of its metadata files. */
struct state {
    uint64_t changed;       /* blocks, of all files */
    uint64_t changed_dat;   /* data blocks of the DAT among them */
    uint64_t changed_nodes; /* the DAT's nodes */
    uint64_t changed_usage; /* data blocks of the sufile */
    uint64_t changed_ifile; /* blocks of the ifile */
    uint64_t segments;      /* whose usage changes in any case */
    uint64_t files;         /* whose maps change */
    uint64_t pending;       /* blocks */
    struct nilfs_promise promise;
};

static struct state state_now(const struct nilfs *nilfs) {
    const struct nilfs_file *ifile = nilfs->ifile;

    return (struct state){
        .changed = nilfs->dirty_blocks,
        .changed_dat = nilfs->dat->changes->changed_data,
        .changed_nodes = nilfs->dat->changes->changed_nodes,
        .changed_usage = nilfs->sufile->changes->changed_data,
        .changed_ifile = nilfs_file_changed(ifile),
        .segments = nilfs->spare_count + (nilfs->commit ? nilfs->commit->written_count : 0),
        .files = nilfs->dirty_file_count + nilfs->promise.files,
        .pending = nilfs->pending_blocks,
        .promise = nilfs->promise,
    };
}

/* The records of inodes whose maps change. */
static uint64_t records_promised(const struct nilfs *nilfs, const struct state *state) {
    uint64_t there = beyond(nilfs_space_blocks(nilfs->ifile), state->changed_ifile);

    return smaller(with_nodes(nilfs->ifile, state->files, 0), there);
}

/* The usage of all segments that have logs, or will have. */
static uint64_t usage_promised(const struct nilfs *nilfs, const struct state *state, uint64_t known,
                               uint64_t blocks) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t entered = blocks / payload_of(g, g->segment_blocks);
    uint64_t slots = g->segments + sizeof(struct nilfs_disk_sufile_header) / g->usage_size + 1;
    uint64_t all = slots / (g->block_size / g->usage_size) + 1;
    uint64_t changed =
        smaller(4 + entered + entered / 8 + known, beyond(all, state->changed_usage));

    return with_nodes(nilfs->sufile, changed,
                      nilfs_space_blocks(nilfs->sufile) < all ? changed : 0);
}

struct pointers {
    uint64_t made;        /* new ones */
    uint64_t made_blocks; /* blocks of the DAT they are in */
    uint64_t ended;       /* likewise, of those that they replace, and others */
};

/* Blocks of the DAT that change beside those that have. */
static uint64_t dat_promised(const struct nilfs *nilfs, const struct state *state,
                             const struct pointers *p) {
    struct nilfs_file *dat = nilfs->dat;
    const struct nilfs_palloc layout = nilfs_palloc_of(dat);
    uint64_t span = nilfs_palloc_span(dat), touched = p->made_blocks + p->ended;
    uint64_t groups = span / layout.blocks_per_group + 2;
    uint64_t made = smaller(p->made_blocks,
                            DAT_BEGINNINGS + p->made * ENTRIES_APART / layout.entries_per_block);

    if (touched == 0)
        return 0;
    touched += 2 * smaller(touched, groups); /* bitmaps and descriptors */
    touched = smaller(touched, beyond(span, state->changed_dat) + made);
    /* Each of them may be made, or taken away. */
    return touched + nodes_changed(dat, touched, touched, touched, state->changed_nodes);
}

/* With `usage` blocks of the sufile, and of the nodes above them. */
static uint64_t promised_with(const struct nilfs *nilfs, const struct state *state,
                              const struct nilfs_demand *more, uint64_t usage) {
    const struct nilfs_promise *pending = &state->promise;
    uint64_t changed =
        more->blocks + records_promised(nilfs, state) + with_nodes(nilfs->cpfile, 2, 1) + usage;
    uint64_t stored = state->pending + pending->nodes;
    const struct pointers pointers = {
        .made = stored + changed,
        .made_blocks = pending->entry_blocks + pending->nodes + changed,
        .ended = pending->replaced + pending->nodes + changed + more->entries,
    };

    return state->changed + stored + changed + more->logged +
           dat_promised(nilfs, state, &pointers) + EARLY_LOG * (pending->files + 1) +
           1 /* the super root */;
}

static uint64_t promised(const struct nilfs *nilfs, const struct state *state,
                         const struct nilfs_demand *more) {
    uint64_t first = promised_with(nilfs, state, more, 0);

    return promised_with(nilfs, state, more,
                         usage_promised(nilfs, state, state->segments + more->segments, first));
}

uint64_t nilfs_space_promised(const struct nilfs *nilfs, const struct nilfs_demand *more) {
    const struct state now = state_now(nilfs);

    return promised(nilfs, &now, more);
}

/* --- claims ----------------------------------------------------------------------------------- */

void nilfs_space_add(struct nilfs_demand *demand, const struct nilfs_demand *more) {
    demand->blocks += more->blocks;
    demand->entries += more->entries;
    demand->logged += more->logged;
    demand->segments += more->segments;
}

/* What the claim leaves: room for checkpoints of their own. */
static uint64_t left_for_others(const struct nilfs *nilfs, enum nilfs_claim claim) {
    static const struct state nothing;
    uint64_t segment = nilfs->geometry.segment_blocks, left = 0;
    const struct nilfs_demand clean = {
        .blocks = CLEAN_BLOCKS,
        .entries = CLEAN_SEGMENTS_MAX * segment,
        .logged = segment + EARLY_LOG * CLEAN_MOVING,
        .segments = CLEAN_SEGMENTS_MAX,
    };

    if (claim <= NILFS_CLAIM_REMOVE)
        left += promised(nilfs, &nothing, &clean);
    if (claim <= NILFS_CLAIM_WRITE)
        left += REMOVE_TIMES * promised(nilfs, &nothing, &remove_demand);
    return left;
}

/* Far more than is promised fits, which is seen without a division: each block that changes takes
 * less than two others along, but for the metadata files, which cannot be more than they are. */
static bool plenty(const struct nilfs *nilfs, const struct nilfs_demand *demand) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t blocks = nilfs->dirty_blocks + nilfs->pending_blocks + nilfs->promise.nodes +
                      demand->blocks + demand->logged + 2 * nilfs->promise.files +
                      2 * nilfs_space_blocks(nilfs->ifile) + 2 * (uint64_t)g->segment_blocks + 256;
    uint64_t metadata = 9 * nilfs_palloc_span(nilfs->dat) + g->segments;

    return 4 * blocks + metadata < segments_left(nilfs) * (g->segment_blocks / 2);
}

bool nilfs_space_fits(const struct nilfs *nilfs, enum nilfs_claim claim,
                      const struct nilfs_demand *demand) {
    if (demand->blocks >= SPACE_MAX || demand->entries >= SPACE_MAX || demand->logged >= SPACE_MAX)
        return false;
    return plenty(nilfs, demand) ||
           nilfs_space_promised(nilfs, demand) + left_for_others(nilfs, claim) <=
               nilfs_space_left(nilfs);
}

/* The segments that a recovery leaves, or goes through, are of no use to it. Of those that are
 * clean it takes one to be the next, and gives up the one that the last log of all names. */
bool nilfs_space_recovers(const struct nilfs *nilfs, uint64_t blocks) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    const struct nilfs_demand again = {.blocks = nilfs->data_only_blocks + blocks};
    uint64_t clean = beyond(nilfs->clean_segments, nilfs->freed_count + RECOVERY_SEGMENTS);

    if (plenty(nilfs, &again))
        return true;
    return clean > nilfs_reserved_segments(g) + again.blocks / g->segment_blocks + 1 &&
           nilfs_space_promised(nilfs, &again) + left_for_others(nilfs, NILFS_CLAIM_WRITE) <=
               beyond(clean * payload_of(g, g->segment_blocks), g->first_data_block);
}

static int refuse(struct nilfs *nilfs, enum nilfs_claim claim) {
    nilfs->claimed = false;
    nilfs->volume->commit_frees =
        nilfs->options.cleaner.wait || (claim > NILFS_CLAIM_WRITE && nilfs->dirty_blocks > 0);
    return -ENOSPC;
}

int nilfs_space_claim(struct nilfs *nilfs, enum nilfs_claim claim,
                      const struct nilfs_demand *demand) {
    if (!nilfs_space_fits(nilfs, claim, demand))
        return refuse(nilfs, claim);
    nilfs->claimed = true;
    return 0;
}

uint64_t nilfs_space_free(struct nilfs *nilfs, enum nilfs_claim claim,
                          const struct nilfs_file *file, uint64_t most) {
    for (;; most = most / 8 + 1) {
        struct nilfs_demand demand = {
            .blocks = 4 * nilfs_space_change(file) + nilfs_space_change(nilfs->ifile),
            .entries = most + nilfs_space_nodes(file, 1, most, 0),
        };
        if (most <= 2)
            return nilfs_space_claim(nilfs, claim, &demand) ? 0 : most;
        if (nilfs_space_fits(nilfs, claim, &demand)) {
            nilfs->claimed = true;
            return most;
        }
    }
}

int nilfs_space(struct nilfs *nilfs, uint64_t more) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    const struct nilfs_demand demand = {.blocks = more};
    uint64_t changed = nilfs->dirty_blocks + nilfs->pending_blocks;
    uint64_t needed;

    if (__builtin_add_overflow(changed, more, &changed) ||
        __builtin_add_overflow(changed / g->segment_blocks + 1, nilfs_reserved_segments(g),
                               &needed))
        return refuse(nilfs, NILFS_CLAIM_WRITE);
    /* Those that were just freed will do only after a checkpoint. */
    if (nilfs->clean_segments <= needed + nilfs->freed_count)
        return refuse(nilfs, NILFS_CLAIM_WRITE);
    return nilfs_space_claim(nilfs, NILFS_CLAIM_WRITE, &demand);
}

int nilfs_step_begin(struct volume *volume) {
    nilfs_of(volume)->claimed = false;
    return 0;
}

int nilfs_step_end(struct volume *volume) {
    (void)volume;
    return 0;
}
