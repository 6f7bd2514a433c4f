/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/log.h. Where the next log begins and when it ends,
 * and what its summary says; log_write.c makes bytes on the device of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/nilfs/crc.h"
#include "layouts/nilfs/log_internal.h"
#include "layouts/nilfs/sufile.h"

/* The smallest log: a summary and a block. */
#define LOG_BLOCKS_MIN 2u

int nilfs_commit_ready(struct nilfs *nilfs) {
    if (nilfs->commit)
        return 0;
    nilfs->commit = calloc(1, sizeof(*nilfs->commit));
    if (!nilfs->commit)
        return -ENOMEM;
    STAILQ_INIT(&nilfs->commit->logs);
    return 0;
}

/* --- segments ---------------------------------------------------------------------------------
 */

/* The segment to be filled after the next one. */
static int segment_ahead(struct nilfs *nilfs, uint64_t *segment) {
    if (nilfs->spare_count > 0) {
        *segment = nilfs->spares[0];
        nilfs->spare_count--;
        memmove(nilfs->spares, nilfs->spares + 1, nilfs->spare_count * sizeof(*nilfs->spares));
        return 0;
    }
    if (!nilfs->commit->counted)
        return nilfs_sufile_allocate(nilfs, segment);
    log_error(nilfs->volume->log,
              "%s: nilfs: checkpoint %llu needs more segments than were counted for it",
              nilfs->volume->name, (unsigned long long)nilfs->cno);
    return -EIO;
}

static int segment_enter_next(struct nilfs *nilfs) {
    struct nilfs_position *position = &nilfs->position;
    uint64_t ahead;
    int error = segment_ahead(nilfs, &ahead);

    if (error)
        return error;
    position->segment = position->next;
    position->next = ahead;
    position->sequence++;
    position->block = nilfs_segment_start(&nilfs->geometry, position->segment);
    return 0;
}

static struct nilfs_written *written_last(const struct nilfs_commit *commit) {
    return commit->written_count ? &commit->written[commit->written_count - 1] : NULL;
}

/* Makes the note of the current segment, so that closing a log needs no memory. */
static int written_open(struct nilfs *nilfs) {
    struct nilfs_commit *commit = nilfs->commit;
    const struct nilfs_position *position = &nilfs->position;
    const struct nilfs_written *last = written_last(commit);

    if (last && last->segment == position->segment)
        return 0;
    if (commit->written_count == commit->written_room) {
        uint32_t room = commit->written_room ? commit->written_room * 2 : 8;
        struct nilfs_written *written = realloc(commit->written, room * sizeof(*written));

        if (!written)
            return -ENOMEM;
        commit->written = written;
        commit->written_room = room;
    }
    uint64_t start = nilfs_segment_start(&nilfs->geometry, position->segment);
    commit->written[commit->written_count++] =
        (struct nilfs_written){.segment = position->segment,
                               .blocks = (uint32_t)(position->block - start),
                               .time = nilfs_now(nilfs)};
    return 0;
}

bool nilfs_log_uses(const struct nilfs *nilfs, uint64_t segment) {
    const struct nilfs_commit *commit = nilfs->commit;

    if (segment == nilfs->position.segment || segment == nilfs->position.next)
        return true;
    for (uint32_t i = 0; i < nilfs->spare_count; i++)
        if (nilfs->spares[i] == segment)
            return true;
    for (uint32_t i = 0; commit && i < commit->written_count; i++)
        if (commit->written[i].segment == segment)
            return true;
    return false;
}

/* --- opening and closing ----------------------------------------------------------------------
 */

/* The most blocks that one summary block can tell of: all in one finfo, with the smallest items. */
static uint32_t payload_max(const struct nilfs_geometry *g) {
    return (g->block_size - (uint32_t)sizeof(struct nilfs_disk_summary) -
            (uint32_t)sizeof(struct nilfs_disk_finfo)) /
               (uint32_t)sizeof(struct nilfs_disk_binfo_node) +
           1; /* the super root has none */
}

static int log_open(struct nilfs *nilfs) {
    const struct nilfs_geometry *g = &nilfs->geometry;
    struct nilfs_position *position = &nilfs->position;
    int error = nilfs_commit_ready(nilfs);

    if (!error && position->block + LOG_BLOCKS_MIN > nilfs_segment_end(g, position->segment))
        error = segment_enter_next(nilfs);
    if (!error)
        error = written_open(nilfs);
    if (error)
        return error;
    struct nilfs_log *log = malloc(sizeof(*log) + payload_max(g) * sizeof(struct nilfs_payload));
    uint8_t *summary = recycle_get(&nilfs->block_memory);
    if (!log || !summary) {
        free(log);
        if (summary)
            recycle_put(&nilfs->block_memory, summary);
        return -ENOMEM;
    }
    *log = (struct nilfs_log){
        .block = position->block,
        .sequence = position->sequence,
        .next_block = nilfs_segment_start(g, position->next),
        .cno = nilfs->cno,
        .created = nilfs_now(nilfs),
        .limit = (uint32_t)(nilfs_segment_end(g, position->segment) - position->block),
        .blocks = 1,
        .used = sizeof(struct nilfs_disk_summary),
        .summary = summary,
    };
    nilfs->log = log;
    return 0;
}

/* The position and the notes for the checkpoint follow. */
static void log_account(struct nilfs *nilfs, struct nilfs_log *log) {
    struct nilfs_written *written = written_last(nilfs->commit);
    uint64_t start = nilfs_segment_start(&nilfs->geometry, nilfs->position.segment);

    nilfs->position.block += log->blocks;
    written->blocks = (uint32_t)(nilfs->position.block - start);
    written->time = log->created;
    if (log->flags & NILFS_LOG_DATA_ONLY) /* a logical segment of its own, of no checkpoint */
        return;
    if (!nilfs->segment_open) {
        log->flags |= NILFS_LOG_BEGIN;
        nilfs->commit->begun = log->sequence;
    }
    nilfs->segment_open = !(log->flags & NILFS_LOG_END);
    nilfs->logged_blocks += log->blocks;
}

int nilfs_log_close(struct nilfs *nilfs, unsigned flags, struct device_batch *batch) {
    struct nilfs_log *log = nilfs->log;
    int error;

    if (!log)
        return 0;
    log->flags |= flags;
    log_account(nilfs, log);
    nilfs->log = NULL;
    if (nilfs->commit->collecting) {
        STAILQ_INSERT_TAIL(&nilfs->commit->logs, log, link);
        return 0;
    }
    nilfs_log_seal(&nilfs->geometry, log);
    error = nilfs_log_write(nilfs->volume->device, &nilfs->geometry, log, batch);
    nilfs_log_free(nilfs, log);
    return error;
}

void nilfs_log_free(struct nilfs *nilfs, struct nilfs_log *log) {
    if (!log)
        return;
    for (uint32_t i = 0; i + 1 < log->blocks; i++) {
        struct nilfs_payload *payload = &log->payload[i];

        if (payload->state == NILFS_PAYLOAD_COPY)
            recycle_put(&nilfs->block_memory, payload->u.copy);
        if (payload->state == NILFS_PAYLOAD_SETTLED && payload->u.buffer) {
            payload->u.buffer->pinned = false;
            buffer_put(payload->u.buffer);
        }
    }
    recycle_put(&nilfs->block_memory, log->summary);
    free(log);
}

/* --- what the summary says --------------------------------------------------------------------
 */

static uint32_t item_size(const struct nilfs_log_item *item) {
    if (item->ino == NILFS_DAT_INO)
        return item->level ? sizeof(struct nilfs_disk_binfo_dat_node)
                           : sizeof(struct nilfs_disk_binfo_dat_data);
    return item->level ? sizeof(struct nilfs_disk_binfo_node)
                       : sizeof(struct nilfs_disk_binfo_data);
}

static struct nilfs_disk_finfo *log_finfo(const struct nilfs_log *log) {
    return log->finfo ? (struct nilfs_disk_finfo *)(log->summary + log->finfo) : NULL;
}

/* May the item follow those of the newest finfo? Data come before nodes in one. */
static bool finfo_continues(const struct nilfs_log *log, const struct nilfs_log_item *item) {
    const struct nilfs_disk_finfo *finfo = log_finfo(log);

    return finfo && le64_load(finfo->fi_ino) == item->ino &&
           le64_load(finfo->fi_cno) == item->cno &&
           (item->level > 0 || le32_load(finfo->fi_nblocks) == le32_load(finfo->fi_ndatablk));
}

static bool log_fits(const struct nilfs_geometry *g, const struct nilfs_log *log,
                     const struct nilfs_log_item *item) {
    uint32_t size = item_size(item);

    if (!finfo_continues(log, item))
        size += (uint32_t)sizeof(struct nilfs_disk_finfo);
    return log->blocks < log->limit && log->used + size <= g->block_size;
}

static struct nilfs_disk_finfo *finfo_begin(struct nilfs_log *log,
                                            const struct nilfs_log_item *item) {
    /* What the cleaner moves is no news of its file. */
    log->ino = log->finfos == 0 && item->cno == log->cno ? item->ino : 0;
    log->finfo = log->used;
    log->used += (uint32_t)sizeof(struct nilfs_disk_finfo);
    log->finfos++;

    struct nilfs_disk_finfo *finfo = log_finfo(log);
    le64_store(&finfo->fi_ino, item->ino);
    le64_store(&finfo->fi_cno, item->cno);
    return finfo; /* the counts are zero, as all of the summary was */
}

static void log_tell(struct nilfs_log *log, const struct nilfs_log_item *item) {
    struct nilfs_disk_finfo *finfo =
        finfo_continues(log, item) ? log_finfo(log) : finfo_begin(log, item);
    uint8_t *at = log->summary + log->used;

    le32_store(&finfo->fi_nblocks, le32_load(finfo->fi_nblocks) + 1);
    if (item->level == 0)
        le32_store(&finfo->fi_ndatablk, le32_load(finfo->fi_ndatablk) + 1);
    if (item->ino != NILFS_DAT_INO) {
        le64_store((le64 *)at, item->vblock);
        at += sizeof(le64);
    }
    if (item->level == 0 || item->ino == NILFS_DAT_INO) {
        le64_store((le64 *)at, item->offset);
        at += sizeof(le64);
    }
    if (item->level > 0 && item->ino == NILFS_DAT_INO)
        *at = (uint8_t)item->level;
    log->used += item_size(item);
}

/* --- adding -----------------------------------------------------------------------------------
 */

static struct nilfs_payload *log_take(struct nilfs_log *log, uint64_t *block) {
    *block = log->block + log->blocks;
    return &log->payload[log->blocks++ - 1];
}

static int log_add(struct nilfs *nilfs, const struct nilfs_log_item *item,
                   struct device_batch *batch, uint64_t *block, struct nilfs_payload **payload) {
    int error = 0;

    if (nilfs->log && !log_fits(&nilfs->geometry, nilfs->log, item))
        error = nilfs_log_close(nilfs, 0, batch);
    if (!error && !nilfs->log)
        error = log_open(nilfs);
    if (error)
        return error;
    log_tell(nilfs->log, item);
    *payload = log_take(nilfs->log, block);
    return 0;
}

static void log_sum(const struct nilfs *nilfs, const uint8_t *data) {
    struct nilfs_log *log = nilfs->log;

    log->crc = nilfs_crc(log->crc, data, nilfs->geometry.block_size);
    log->summed++;
}

int nilfs_log_data(struct nilfs *nilfs, const struct nilfs_log_item *item, const uint8_t *data,
                   uint64_t *block, struct device_batch *batch) {
    struct nilfs_payload *payload;
    uint8_t *copy = recycle_get_dirty(&nilfs->block_memory);
    int error = copy ? log_add(nilfs, item, batch, block, &payload) : -ENOMEM;

    if (error) {
        if (copy)
            recycle_put(&nilfs->block_memory, copy);
        return error;
    }
    memcpy(copy, data, nilfs->geometry.block_size);
    *payload = (struct nilfs_payload){.state = NILFS_PAYLOAD_COPY, .u.copy = copy};
    log_sum(nilfs, copy);
    return 0;
}

int nilfs_log_data_direct(struct nilfs *nilfs, const struct nilfs_log_item *item,
                          const uint8_t *data, uint64_t *block, struct device_batch *batch) {
    struct nilfs_payload *payload;
    int error = log_add(nilfs, item, batch, block, &payload);

    if (error)
        return error;
    *payload = (struct nilfs_payload){.state = NILFS_PAYLOAD_DIRECT};
    log_sum(nilfs, data);
    return 0;
}

int nilfs_log_changed(struct nilfs *nilfs, const struct nilfs_log_item *item,
                      struct nilfs_block *changed, uint64_t *block) {
    struct nilfs_payload *payload;
    int error = log_add(nilfs, item, NULL, block, &payload);

    if (error)
        return error;
    *payload = (struct nilfs_payload){.state = NILFS_PAYLOAD_CHANGED, .u.changed = changed};
    nilfs->log->ino = 0;
    return 0;
}

int nilfs_log_super_root(struct nilfs *nilfs, uint64_t *block, struct nilfs_payload **payload) {
    int error = 0;

    if (nilfs->log && nilfs->log->blocks == nilfs->log->limit)
        error = nilfs_log_close(nilfs, 0, NULL);
    if (!error && !nilfs->log)
        error = log_open(nilfs);
    if (error)
        return error;
    *payload = log_take(nilfs->log, block);
    **payload = (struct nilfs_payload){.state = NILFS_PAYLOAD_SETTLED};
    return 0;
}

/* --- room -------------------------------------------------------------------------------------
 */

/* Items of any kind, with the finfos of three files, that so many bytes of a summary take. */
static uint32_t items_in(uint32_t bytes) {
    const uint32_t finfos = 3 * (uint32_t)sizeof(struct nilfs_disk_finfo);

    return bytes > finfos ? (bytes - finfos) / (uint32_t)sizeof(struct nilfs_disk_binfo_data) : 0;
}

uint32_t nilfs_log_capacity(const struct nilfs_geometry *g) {
    return items_in(g->block_size - (uint32_t)sizeof(struct nilfs_disk_summary));
}

uint32_t nilfs_log_room(const struct nilfs *nilfs) {
    const struct nilfs_log *log = nilfs->log;

    if (!log)
        return 0;
    uint32_t blocks = log->limit - log->blocks;
    uint32_t items = items_in(nilfs->geometry.block_size - log->used);
    return blocks < items ? blocks : items;
}

/* --- looking ----------------------------------------------------------------------------------
 */

/* false: the block is none of this log's. */
static bool log_peek(const struct nilfs_log *log, uint64_t block, const uint8_t **data) {
    if (block <= log->block || block - log->block >= log->blocks)
        return false;
    const struct nilfs_payload *payload = &log->payload[block - log->block - 1];
    *data = payload->state == NILFS_PAYLOAD_COPY ? payload->u.copy : NULL;
    return true;
}

const uint8_t *nilfs_log_peek(const struct nilfs *nilfs, uint64_t block) {
    const struct nilfs_log *log;
    const uint8_t *data = NULL;

    if ((nilfs->log && log_peek(nilfs->log, block, &data)) || !nilfs->commit)
        return data;
    STAILQ_FOREACH (log, &nilfs->commit->logs, link)
        if (log_peek(log, block, &data))
            break;
    return data;
}
