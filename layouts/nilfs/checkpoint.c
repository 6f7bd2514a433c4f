/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/checkpoint.h, nilfs_checkpoint_collect. What goes
 * into the logs of a checkpoint, and in which order; commit.c says when they are written.
 *
 * The metadata files describe each other: writing the sufile gives its blocks new entries in the
 * DAT, and the number of the DAT's blocks decides how many segments are written, which the sufile
 * tells. So all that changes a map happens before anything of cpfile, sufile and DAT gets its place
 * (stage 3); from then on only contents of blocks that are in the set are filled in.
 */
#include "layouts/nilfs/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/nilfs/bmap.h"
#include "layouts/nilfs/cpfile.h"
#include "layouts/nilfs/crc.h"
#include "layouts/nilfs/dat.h"
#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/log_internal.h"
#include "layouts/nilfs/sufile.h"

/* Of the inodes that have no owner, size or times: those of metadata files. */
#define METADATA_MODE 0x8000u

/* --- a file's changed blocks ------------------------------------------------------------------
 */

static uint64_t node_first_key(const struct nilfs_block *node) {
    return le64_load(((const le64 *)node->data)[2]); /* behind header and padding */
}

/* The DAT's map has disk blocks: the stand-in becomes one. All others' have the DAT. */
static int block_place(struct nilfs *nilfs, struct nilfs_block *changed, uint64_t key,
                       uint64_t block) {
    int error;

    if (changed->file->pointers != NILFS_PHYSICAL)
        return nilfs_dat_place(nilfs, changed->pointer, block);
    error = nilfs_bmap_place(changed->file, key, changed->level, block);
    if (!error && changed->level > 0)
        nilfs_node_rename(changed, block);
    return error;
}

static int block_collect(struct nilfs *nilfs, struct nilfs_block *changed) {
    const struct nilfs_log_item item = {
        .ino = changed->file->ino,
        .cno = changed->file->pointers == NILFS_MULTI ? nilfs->cno : 0,
        .level = changed->level,
        .vblock = changed->pointer,
        .offset = changed->level > 0 ? node_first_key(changed) : changed->key,
    };
    uint64_t block;
    int error = nilfs_log_changed(nilfs, &item, changed, &block);

    return error ? error : block_place(nilfs, changed, item.offset, block);
}

static int node_order(const void *left, const void *right) {
    const struct nilfs_block *a = *(struct nilfs_block *const *)left;
    const struct nilfs_block *b = *(struct nilfs_block *const *)right;

    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    uint64_t key_a = node_first_key(a), key_b = node_first_key(b);
    return key_a < key_b ? -1 : key_a > key_b;
}

/* Bottom up, and each level in the file's order. */
static int nodes_collect(struct nilfs *nilfs, struct nilfs_file *file) {
    struct nilfs_block **nodes, *node;
    uint64_t count = 0;
    int error = 0;

    if (file->changes->changed_nodes == 0)
        return 0;
    nodes = calloc(file->changes->changed_nodes, sizeof(struct nilfs_block *));
    if (!nodes)
        return -ENOMEM;
    RB_FOREACH(node, nilfs_block_tree, &file->changes->nodes) nodes[count++] = node;
    qsort(nodes, count, sizeof(struct nilfs_block *), node_order);
    for (uint64_t i = 0; i < count && !error; i++)
        error = block_collect(nilfs, nodes[i]);
    free(nodes);
    return error;
}

static int file_collect(struct nilfs *nilfs, struct nilfs_file *file) {
    struct nilfs_block *block;
    int error = 0;

    RB_FOREACH(block, nilfs_block_tree, &file->changes->data) {
        error = block_collect(nilfs, block);
        if (error)
            return error;
    }
    return nodes_collect(nilfs, file);
}

/* --- stages 1 and 2: files and their inodes ---------------------------------------------------
 */

/* The inode's record gets the map as it is now. */
static int file_record(struct nilfs *nilfs, const struct nilfs_file *file) {
    struct nilfs_disk_inode *inode;
    int error = nilfs_ifile_change(nilfs, file->ino, &inode);

    if (error)
        return error;
    inode->i_bmap = file->bmap; /* or a device's code */
    le64_store(&inode->i_blocks, file->sectors);
    return 0;
}

static int files_collect(struct nilfs *nilfs) {
    const struct nilfs_changes *changes;
    int error = 0;

    TAILQ_FOREACH (changes, &nilfs->dirty_files, link) {
        error = file_collect(nilfs, changes->file);
        if (!error)
            error = file_record(nilfs, changes->file);
        if (error)
            return error;
    }
    return file_collect(nilfs, nilfs->ifile);
}

/* --- stage 3: how many segments ---------------------------------------------------------------
 */

static uint64_t metadata_changed(const struct nilfs *nilfs) {
    return nilfs_file_changed(nilfs->cpfile) + nilfs_file_changed(nilfs->sufile) +
           nilfs_file_changed(nilfs->dat);
}

/* What `blocks` blocks up to a segment's end have room for, in logs of `capacity` blocks each. A
 * last block that has no room for a log of its own counts as a summary. */
static uint64_t payload_of(uint64_t blocks, uint32_t capacity) {
    return blocks - (blocks + capacity) / (capacity + 1);
}

/* Blocks that the segments ahead lack: the first one of all begins late. */
static uint64_t segments_lack(const struct nilfs *nilfs) {
    bool first = nilfs->position.next == 0;

    for (uint32_t i = 0; i < nilfs->spare_count; i++)
        first |= nilfs->spares[i] == 0;
    return first ? nilfs->geometry.first_data_block : 0;
}

/* Segments to be entered for what is left, at most: room is estimated for the largest items. */
static uint64_t segments_needed(const struct nilfs *nilfs) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t left = metadata_changed(nilfs) + 1; /* the super root */
    uint32_t room = nilfs_log_room(nilfs), capacity = nilfs_log_capacity(g);
    uint64_t open = nilfs->log ? nilfs->log->blocks + (uint64_t)room : 0;
    uint64_t end = nilfs_segment_end(g, nilfs->position.segment);
    uint64_t here = room + payload_of(end - nilfs->position.block - open, capacity);
    uint64_t each = payload_of(g->segment_blocks, capacity);

    return left <= here ? 0 : (left - here + segments_lack(nilfs) + each - 1) / each;
}

static int spares_allocate(struct nilfs *nilfs, uint64_t count) {
    int error;

    if (count > nilfs->spare_room) {
        uint32_t room = (uint32_t)(count + 8);
        uint64_t *spares = realloc(nilfs->spares, room * sizeof(*spares));

        if (!spares)
            return -ENOMEM;
        nilfs->spares = spares;
        nilfs->spare_room = room;
    }
    while (nilfs->spare_count < count) {
        error = nilfs_sufile_allocate(nilfs, &nilfs->spares[nilfs->spare_count]);
        if (error)
            return error;
        nilfs->spare_count++;
    }
    return 0;
}

/* The sufile's blocks of all segments that have, or will have, logs since the last checkpoint. */
static int segments_touch(struct nilfs *nilfs, uint64_t entered) {
    const struct nilfs_commit *commit = nilfs->commit;
    int error = nilfs_sufile_touch(nilfs, nilfs->position.segment);

    for (uint32_t i = 0; i < commit->written_count && !error; i++)
        error = nilfs_sufile_touch(nilfs, commit->written[i].segment);
    if (entered > 0 && !error)
        error = nilfs_sufile_touch(nilfs, nilfs->position.next);
    for (uint64_t i = 0; i + 1 < entered && !error; i++)
        error = nilfs_sufile_touch(nilfs, nilfs->spares[i]);
    return error;
}

/* Each round may change more blocks, and more blocks may need more segments; both only grow, and
 * soon stop to. */
static int segments_settle(struct nilfs *nilfs) {
    uint64_t changed, segments;
    int error = nilfs_cpfile_create(nilfs);

    if (error)
        return error;
    do {
        changed = metadata_changed(nilfs);
        segments = segments_needed(nilfs);
        error = spares_allocate(nilfs, segments);
        if (!error)
            error = segments_touch(nilfs, segments);
    } while (!error && (changed != metadata_changed(nilfs) || segments != segments_needed(nilfs)));
    return error;
}

/* --- stages 4 and 5 ---------------------------------------------------------------------------
 */

static int metadata_collect(struct nilfs *nilfs) {
    int error = file_collect(nilfs, nilfs->cpfile);

    if (!error)
        error = file_collect(nilfs, nilfs->sufile);
    return error ? error : file_collect(nilfs, nilfs->dat);
}

static void metadata_inode(const struct nilfs_file *file, struct nilfs_disk_inode *inode) {
    memset(inode, 0, sizeof(*inode));
    le64_store(&inode->i_blocks, file->sectors);
    le16_store(&inode->i_mode, METADATA_MODE);
    le16_store(&inode->i_links_count, 1);
    inode->i_bmap = file->bmap;
}

static int checkpoint_fill(struct nilfs *nilfs, int64_t now) {
    struct nilfs_checkpoint checkpoint = {
        .cno = nilfs->cno,
        .flags = nilfs->user_changes ? 0 : NILFS_CP_MINOR,
        .created = now,
        .increment = nilfs->logged_blocks,
        .inodes = nilfs->inodes_count,
        .blocks = nilfs->blocks_count,
    };

    metadata_inode(nilfs->ifile, &checkpoint.ifile);
    return nilfs_cpfile_fill(nilfs, &checkpoint);
}

static int segments_fill(struct nilfs *nilfs) {
    const struct nilfs_commit *commit = nilfs->commit;
    int error = 0;

    for (uint32_t i = 0; i < commit->written_count && !error; i++) {
        const struct nilfs_written *written = &commit->written[i];
        const struct nilfs_usage usage = {
            .modified = written->time, .blocks = written->blocks, .flags = NILFS_SU_DIRTY};

        error = nilfs_sufile_write(nilfs, written->segment, &usage);
    }
    return error;
}

static int super_root_fill(struct nilfs *nilfs, uint64_t block, struct nilfs_payload *payload) {
    const struct nilfs_file *const files[] = {nilfs->dat, nilfs->cpfile, nilfs->sufile};
    const uint32_t before = offsetof(struct nilfs_disk_super_root, sr_bytes);
    uint32_t bytes = sizeof(struct nilfs_disk_super_root);
    struct buffer *buffer;
    int error = buffer_get_zeroed(nilfs->buffers, block, PURPOSE_SUPER, &buffer);

    if (error)
        return error;
    buffer->pinned = true;
    payload->u.buffer = buffer;
    uint8_t *data = buffer_data(buffer);
    struct nilfs_disk_super_root *root = buffer_data(buffer);
    for (unsigned i = 0; i < 3; i++) {
        metadata_inode(files[i], (struct nilfs_disk_inode *)(data + bytes));
        bytes += nilfs->geometry.inode_size;
    }
    le16_store(&root->sr_bytes, (uint16_t)bytes);
    le64_store(&root->sr_nongc_ctime, (uint64_t)nilfs->nongc_time);
    le32_store(&root->sr_sum, nilfs_crc(nilfs->geometry.crc_seed, data + before, bytes - before));
    return 0;
}

/* All blocks have their places: what they hold goes from the files to the buffer cache. */
static int logs_settle(struct nilfs *nilfs) {
    struct nilfs_log *log;

    STAILQ_FOREACH (log, &nilfs->commit->logs, link) {
        for (uint32_t i = 0; i + 1 < log->blocks; i++) {
            struct nilfs_payload *payload = &log->payload[i];
            struct buffer *buffer;
            int error;

            if (payload->state != NILFS_PAYLOAD_CHANGED)
                continue;
            error = nilfs_block_settle(payload->u.changed, log->block + 1 + i, &buffer);
            if (error)
                return error;
            *payload = (struct nilfs_payload){.state = NILFS_PAYLOAD_SETTLED, .u.buffer = buffer};
        }
    }
    return 0;
}

/* A block that changed after its file was collected would be lost. */
static int all_settled(const struct nilfs *nilfs) {
    if (nilfs->dirty_blocks == 0)
        return 0;
    log_error(nilfs->volume->log, "%s: nilfs: checkpoint %llu: %llu changed blocks got no place",
              nilfs->volume->name, (unsigned long long)nilfs->cno,
              (unsigned long long)nilfs->dirty_blocks);
    return -EIO;
}

static void files_clean(struct nilfs *nilfs) {
    struct nilfs_file *const metadata[] = {nilfs->ifile, nilfs->cpfile, nilfs->sufile, nilfs->dat};
    const struct nilfs_changes *changes;

    while ((changes = TAILQ_FIRST(&nilfs->dirty_files)))
        nilfs_file_mark_clean(changes->file);
    for (unsigned i = 0; i < sizeof(metadata) / sizeof(*metadata); i++)
        nilfs_file_mark_clean(metadata[i]);
}

static int checkpoint_finish(struct nilfs *nilfs) {
    struct nilfs_payload *payload;
    uint64_t block;
    int64_t now = nilfs_now(nilfs);
    int error = nilfs_log_super_root(nilfs, &block, &payload);

    if (error)
        return error;
    nilfs->commit->log_block = nilfs->log->block;
    nilfs->commit->sequence = nilfs->log->sequence;
    error = nilfs_log_close(nilfs, NILFS_LOG_END | NILFS_LOG_SUPER_ROOT, NULL);
    if (!error)
        error = checkpoint_fill(nilfs, now);
    if (!error)
        error = segments_fill(nilfs);
    if (!error)
        error = super_root_fill(nilfs, block, payload);
    if (!error)
        error = logs_settle(nilfs);
    return error ? error : all_settled(nilfs);
}

int nilfs_checkpoint_collect(struct nilfs *nilfs) {
    struct nilfs_commit *commit = nilfs->commit;
    int error;

    if (nilfs->user_changes)
        nilfs->nongc_time = nilfs_now(nilfs);
    commit->collecting = true;
    error = files_collect(nilfs);
    if (!error)
        error = segments_settle(nilfs);
    if (!error) {
        commit->counted = true;
        error = metadata_collect(nilfs);
    }
    if (!error)
        error = checkpoint_finish(nilfs);
    commit->collecting = commit->counted = false;
    if (!error)
        files_clean(nilfs);
    return error;
}
