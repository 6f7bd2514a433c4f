/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over bmap.h, dat.h and cpfile.h, read-only: how a file lies on the disk and
 * in time. Interface: layouts/nilfs/layout.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "fs/describe.h"
#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/cpfile.h"
#include "layouts/nilfs/dat.h"
#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/layout.h"

struct run { /* blocks that follow each other in the file, on the disk and in the DAT */
    uint64_t offset, block, virtual, from, count;
};

struct explanation {
    struct nilfs_file *file;
    json_t *extents, *nodes;
    uint32_t *in_segment; /* owned: blocks in each */
    struct run run;       /* the extent being gathered; count 0: none yet */
    uint64_t data_blocks, waiting, fragments, gap_blocks;
};

/* --- blocks ------------------------------------------------------------------------------------
 */

static int list_segments(const struct explanation *e, json_t *list) {
    for (uint64_t i = 0; i < e->file->nilfs->geometry.segments; i++)
        if (e->in_segment[i] > 0 &&
            json_array_append_new(list, json_pack("{s:I, s:I}", "segment", (json_int_t)i, "blocks",
                                                  (json_int_t)e->in_segment[i])))
            return -ENOMEM;
    return 0;
}

static void run_finish(struct explanation *e) {
    const struct run *run = &e->run;

    if (run->count > 0)
        json_array_append_new(
            e->extents,
            json_pack("{s:I, s:I, s:I, s:I, s:I}", "offset", (json_int_t)run->offset, "blocks",
                      (json_int_t)run->count, "block", (json_int_t)run->block, "virtual",
                      (json_int_t)run->virtual, "from_checkpoint", (json_int_t)run->from));
    e->run.count = 0;
}

static void add_data(struct explanation *e, uint64_t key, uint64_t pointer,
                     const struct nilfs_life *life) {
    struct run *run = &e->run;
    uint64_t end = run->block + run->count;

    e->data_blocks++;
    if (run->count > 0 && key == run->offset + run->count && life->block == end &&
        pointer == run->virtual + run->count && life->start == run->from) {
        run->count++;
        return;
    }
    if (e->data_blocks > e->waiting + 1 && life->block != end) {
        e->fragments++;
        e->gap_blocks += life->block > end ? life->block - end : end - life->block;
    }
    run_finish(e);
    *run = (struct run){key, life->block, pointer, life->start, 1};
}

static int add_block(void *context, uint32_t level, uint64_t key, uint64_t pointer) {
    struct explanation *e = context;
    struct nilfs_life life;
    int error = nilfs_dat_life(e->file->nilfs, pointer, &life);

    if (error)
        return error;
    if (!nilfs_block_valid(&e->file->nilfs->geometry,
                           life.block)) { /* changed since the newest checkpoint */
        e->data_blocks += level == 0;
        e->waiting++;
        return 0;
    }
    e->in_segment[nilfs_segment_of(&e->file->nilfs->geometry, life.block)]++;
    if (level == 0)
        add_data(e, key, pointer, &life);
    else
        json_array_append_new(
            e->nodes, json_pack("{s:i, s:I, s:I, s:I, s:I}", "level", (int)level, "key",
                                (json_int_t)key, "block", (json_int_t)life.block, "virtual",
                                (json_int_t)pointer, "from_checkpoint", (json_int_t)life.start));
    return 0;
}

/* --- checkpoints -------------------------------------------------------------------------------
 */

/* Is the file (not another one of the same number) in the checkpoint? 0 or 1, negative errno. */
static int is_in(struct nilfs *nilfs, const struct nilfs_checkpoint *checkpoint,
                 const struct inode *inode) {
    struct nilfs_disk_inode record;
    struct nilfs_file *ifile;
    int error = nilfs_file_new(nilfs, NILFS_IFILE_INO, checkpoint->cno, NILFS_MULTI,
                               &checkpoint->ifile, &ifile);

    if (error)
        return error;
    error = nilfs_ifile_read(ifile, inode->ino, &record);
    nilfs_file_put(ifile);
    if (error)
        return error == -ESTALE ? 0 : error;
    return le32_load(record.i_generation) == inode->generation;
}

static void add_checkpoints(json_t *list, uint64_t from, uint64_t to, uint64_t snapshots) {
    if (from > 0)
        json_array_append_new(list, json_pack("{s:I, s:I, s:I}", "from", (json_int_t)from, "to",
                                              (json_int_t)to, "snapshots", (json_int_t)snapshots));
}

/* Runs of existing checkpoints that hold the file. */
static int list_checkpoints(const struct inode *inode, json_t *list) {
    struct nilfs *nilfs = nilfs_of(inode->volume);
    uint64_t from = 0, to = 0, snapshots = 0;
    struct nilfs_checkpoint checkpoint;
    int rc = 0;

    for (uint64_t next = 1; rc >= 0; next = checkpoint.cno + 1) {
        int error = nilfs_cpfile_next(nilfs, next, false, &checkpoint);
        if (error == -ENOENT || (!error && checkpoint.cno > nilfs->newest))
            break;
        rc = error ? error : is_in(nilfs, &checkpoint, inode);
        if (rc == 0) {
            add_checkpoints(list, from, to, snapshots);
            from = snapshots = 0;
        } else if (rc > 0) {
            from = from ? from : checkpoint.cno;
            to = checkpoint.cno;
            snapshots += (checkpoint.flags & NILFS_CP_SNAPSHOT) != 0;
        }
    }
    add_checkpoints(list, from, to, snapshots);
    return rc < 0 ? rc : 0;
}

/* --- the whole ---------------------------------------------------------------------------------
 */

static void put_counts(json_t *object, const struct inode *inode, const struct explanation *e) {
    uint32_t block_size = e->file->nilfs->geometry.block_size;
    bool any = e->data_blocks > e->waiting;

    describe_number(object, "inode", inode->ino);
    describe_text(object, "type", describe_type(inode->mode));
    describe_number(object, "size", inode->size);
    describe_number(object, "block_size", block_size);
    describe_number(object, "data_blocks", e->data_blocks);
    describe_number(object, "unwritten_blocks", e->waiting);
    describe_number(object, "fragments", any ? e->fragments + 1 : 0);
    describe_number(object, "mean_gap_bytes",
                    e->fragments ? e->gap_blocks * block_size / e->fragments : 0);
}

int nilfs_explain(struct inode *inode, json_t **object) {
    struct explanation e = {
        .file = nilfs_inode_of(inode)->file,
        .extents = json_array(),
        .nodes = json_array(),
    };
    json_t *segments = json_array(), *checkpoints = json_array();
    int error = e.file ? 0 : -ENOTSUP;

    if (!error) {
        e.in_segment = calloc(e.file->nilfs->geometry.segments, sizeof(*e.in_segment));
        error = e.in_segment ? 0 : -ENOMEM;
    }
    if (!error && !e.file->device)
        error = nilfs_bmap_each(e.file, add_block, &e);
    run_finish(&e);
    if (!error)
        error = list_segments(&e, segments);
    free(e.in_segment);
    if (!error)
        error = list_checkpoints(inode, checkpoints);
    *object = json_object();
    if (!error)
        put_counts(*object, inode, &e);
    json_object_set_new(*object, "extents", e.extents);
    json_object_set_new(*object, "nodes", e.nodes);
    json_object_set_new(*object, "segments", segments);
    json_object_set_new(*object, "checkpoints", checkpoints);
    if (error) {
        json_decref(*object);
        *object = NULL;
    }
    return error;
}
