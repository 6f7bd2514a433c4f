/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: nilfs_recovery_roll_forward in layouts/nilfs/recovery.h. What
 * fdatasync wrote behind the newest checkpoint becomes part of the files again.
 *
 * The logs' own blocks are not taken over, but copied: nothing in the DAT, the maps or the sufile
 * of the newest checkpoint says that they are in use. For the same reason the segments they lie in
 * are not to be written before the copies are durable: the new checkpoint goes into a fresh one,
 * with a sequence number that no log on the device goes on with, and the super block names it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/layout.h"
#include "layouts/nilfs/checkpoint.h"
#include "layouts/nilfs/dat.h"
#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/recovery.h"
#include "layouts/nilfs/sufile.h"

/* What a start in a fresh segment needs: that, the next one, and two for the checkpoint. */
#define SEGMENTS_AFRESH 4u

struct replayed_block {
    uint64_t ino, offset, block;
};

struct replay {
    struct nilfs *nilfs;
    const struct nilfs_found *found;
    struct replayed_block *blocks; /* of the series of logs being read, owned */
    size_t count, room;
    bool in_series;
    uint64_t applied; /* blocks */
    struct nilfs_log_head last;
};

/* --- a file's blocks --------------------------------------------------------------------------
 */

/* Bytes of the block that are part of the file; what is behind its end is to be zero. */
static uint32_t bytes_inside(const struct nilfs_geometry *g, const struct nilfs_disk_inode *inode,
                             uint64_t offset) {
    uint64_t size = le64_load(inode->i_size);

    if (offset >= size >> g->block_bits)
        return offset > size >> g->block_bits ? 0 : (uint32_t)(size & (g->block_size - 1));
    return g->block_size;
}

static int block_copy(struct nilfs *nilfs, struct nilfs_file *file,
                      const struct replayed_block *from, uint32_t bytes) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint8_t *data;
    int error = nilfs_file_make(file, from->offset, &data, NULL);

    if (!error)
        error = device_read(nilfs->volume->device, from->block << g->block_bits, data,
                            g->block_size, PURPOSE_DATA);
    if (!error)
        memset(data + bytes, 0, g->block_size - bytes);
    return error;
}

/* For a volume that is only read: the file has the log's own block. */
static int block_show(struct nilfs *nilfs, struct nilfs_file *file,
                      const struct replayed_block *from) {
    uint64_t pointer;
    int error = nilfs_file_renew(file, from->offset, &pointer);

    return error ? error : nilfs_dat_place(nilfs, pointer, from->block);
}

/* A file that is not there, or not as long any more, is none of what fdatasync promised. */
static int block_apply(struct replay *replay, const struct replayed_block *from) {
    struct nilfs *nilfs = replay->nilfs;
    struct nilfs_disk_inode inode;
    struct nilfs_file *file;
    int error = nilfs_ifile_read(nilfs->ifile, from->ino, &inode);
    uint32_t bytes = error ? 0 : bytes_inside(&nilfs->geometry, &inode, from->offset);

    if ((error && error != -ESTALE))
        return error;
    if (bytes == 0 || !S_ISREG(le16_load(inode.i_mode))) {
        log_warning(nilfs->volume->log,
                    "%s: nilfs: the data-only log with block %llu has block %llu of inode %llu, "
                    "which is in no file; it is left out",
                    nilfs->volume->name, (unsigned long long)from->block,
                    (unsigned long long)from->offset, (unsigned long long)from->ino);
        return 0;
    }
    error = nilfs_file_open(nilfs, from->ino, &file);
    if (error)
        return error;
    if (nilfs->volume->read_only)
        error = block_show(nilfs, file, from);
    else
        error = block_copy(nilfs, file, from, bytes);
    nilfs_file_put(file);
    replay->applied++;
    return error;
}

/* --- reading the logs -------------------------------------------------------------------------
 */

static int item_note(void *context, const struct nilfs_log_item *item, uint64_t block) {
    struct replay *replay = context;

    if (item->level > 0)
        return 0;
    if (replay->count == replay->room) {
        size_t room = replay->room ? replay->room * 2 : 256;
        struct replayed_block *blocks = realloc(replay->blocks, room * sizeof(*blocks));

        if (!blocks)
            return -ENOMEM;
        replay->blocks = blocks;
        replay->room = room;
    }
    replay->blocks[replay->count++] =
        (struct replayed_block){.ino = item->ino, .offset = item->offset, .block = block};
    return 0;
}

static int series_apply(struct replay *replay) {
    int error = 0;

    for (size_t i = 0; i < replay->count && !error; i++)
        error = block_apply(replay, &replay->blocks[i]);
    replay->count = 0;
    replay->in_series = false;
    return error;
}

/* A series that is not ended was not written whole, and is dropped. */
static int log_replay(struct replay *replay, const struct nilfs_log_head *head) {
    struct nilfs *nilfs = replay->nilfs;
    int error;

    if (head->flags & NILFS_LOG_SUPER_ROOT)
        return nilfs_corrupt(nilfs, "log at block %llu: there is a checkpoint behind the newest",
                             (unsigned long long)head->block);
    if (head->flags & NILFS_LOG_BEGIN || !(head->flags & NILFS_LOG_DATA_ONLY)) {
        replay->count = 0;
        replay->in_series = head->flags & NILFS_LOG_DATA_ONLY;
    }
    if (!replay->in_series)
        return 0;
    error = nilfs_log_items(nilfs->volume->device, &nilfs->geometry, head, item_note, replay);
    if (!error && head->flags & NILFS_LOG_END)
        error = series_apply(replay);
    return error;
}

/* A segment that recovery has walked through, or would: it is dirty, with nothing in it. */
static int segment_scrap(struct replay *replay, uint64_t block) {
    const struct nilfs_geometry *g = &replay->nilfs->geometry;
    const struct nilfs_usage usage = {.flags = NILFS_SU_DIRTY};
    uint64_t segment = nilfs_segment_of(g, block);

    if (replay->nilfs->volume->read_only ||
        segment == nilfs_segment_of(g, replay->found->newest.block))
        return 0;
    return nilfs_sufile_write(replay->nilfs, segment, &usage);
}

/* From pending_start to pending_end, as nilfs_recovery_find went. */
static int logs_walk(struct replay *replay) {
    struct nilfs *nilfs = replay->nilfs;
    const struct nilfs_geometry *g = &nilfs->geometry;
    uint64_t block = replay->found->pending_start;
    uint64_t sequence = replay->found->pending_start_sequence;
    struct nilfs_log_head head;
    const char *reason;
    bool valid;

    for (;;) {
        int error = nilfs_log_read(nilfs->volume->device, g, block, NILFS_CHECK_DATA, &head, &valid,
                                   &reason);
        if (error)
            return error;
        valid = valid && head.sequence == sequence;
        if (valid) {
            replay->last = head;
            error = log_replay(replay, &head);
            if (!error)
                error = segment_scrap(replay, block);
            if (error || block == replay->found->pending_end)
                return error;
            block += head.blocks;
        }
        if (valid && block + 1 < nilfs_segment_end(g, nilfs_segment_of(g, head.block)))
            continue;
        if (sequence > replay->last.sequence) /* the second one without a log */
            return nilfs_corrupt(nilfs, "log at block %llu cannot be found again",
                                 (unsigned long long)replay->found->pending_end);
        block = replay->last.next_block;
        sequence++;
    }
}

/* --- the checkpoint of what was applied -------------------------------------------------------
 */

/* A number that no log behind the newest checkpoint has: neither what the failed system had begun,
 * nor an attempt after it that failed before it was durable (each mount for writing is counted). */
static uint64_t sequence_afresh(const struct nilfs *nilfs, const struct nilfs_found *found) {
    return found->last_sequence + 2 + le16_load(nilfs->supers.copy[0].s_mnt_count);
}

static int position_afresh(struct replay *replay) {
    struct nilfs *nilfs = replay->nilfs;
    struct nilfs_position position = {.sequence = sequence_afresh(nilfs, replay->found)};
    int error = segment_scrap(replay, replay->found->newest.next_block);

    if (!error && replay->last.next_block)
        error = segment_scrap(replay, replay->last.next_block);
    if (!error)
        error = segment_scrap(replay, replay->found->last_next);
    if (!error)
        error = nilfs_sufile_allocate(nilfs, &position.segment);
    if (!error)
        error = nilfs_sufile_allocate(nilfs, &position.next);
    if (error)
        return error;
    position.block = nilfs_segment_start(&nilfs->geometry, position.segment);
    nilfs->position = position;
    nilfs->chain_broken = true;
    return 0;
}

int nilfs_recovery_start_afresh(struct nilfs *nilfs, const struct nilfs_found *found) {
    struct replay replay = {.nilfs = nilfs, .found = found};

    if (nilfs->clean_segments <= SEGMENTS_AFRESH)
        return 0;
    return position_afresh(&replay);
}

/* So that no later scan, from an older super block, finds the logs again behind newer contents. */
static int pending_erase(struct replay *replay) {
    struct nilfs *nilfs = replay->nilfs;
    const struct nilfs_geometry *g = &nilfs->geometry;
    const uint8_t zeros[1u << NILFS_BLOCK_BITS_MAX] = {0};
    uint64_t block = replay->found->pending_start;

    if (nilfs_segment_of(g, block) != nilfs_segment_of(g, replay->found->newest.block))
        return 0;
    return device_write(nilfs->volume->device, block << g->block_bits, zeros, g->block_size,
                        PURPOSE_JOURNAL);
}

static int replay_commit(struct replay *replay) {
    struct nilfs *nilfs = replay->nilfs;
    int error = position_afresh(replay);

    nilfs->user_changes = true;
    if (!error)
        error = nilfs_checkpoint_now(nilfs);
    if (error == -ENOSPC) /* not with ours: space.c, invariant 3 */
        log_error(nilfs->volume->log,
                  "%s: nilfs: there is no room for the %llu blocks that fdatasync has written "
                  "since checkpoint %llu; mounted read-only it shows them",
                  nilfs->volume->name, (unsigned long long)replay->applied,
                  (unsigned long long)replay->found->cno);
    return error ? error : pending_erase(replay);
}

int nilfs_recovery_roll_forward(struct nilfs *nilfs, const struct nilfs_found *found) {
    struct replay replay = {.nilfs = nilfs, .found = found};
    int error;

    if (!found->pending_start || !found->pending_end ||
        nilfs->options.fault == NILFS_FAULT_NO_REPLAY)
        return 0;
    error = logs_walk(&replay);
    free(replay.blocks);
    if (!error && replay.applied > 0 && !nilfs->volume->read_only)
        error = replay_commit(&replay);
    if (!error)
        log_info(nilfs->volume->log,
                 "%s: nilfs: %llu blocks written since checkpoint %llu recovered",
                 nilfs->volume->name, (unsigned long long)replay.applied,
                 (unsigned long long)found->cno);
    return error;
}
