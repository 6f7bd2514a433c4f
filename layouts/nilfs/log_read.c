/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs, over the device. Interface: layouts/nilfs/log_read.h.
 *
 * Logs are read past the buffer cache: what lies there may be of a log that is none, under block
 * numbers that the cache knows with other contents.
 */
#include "layouts/nilfs/log_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/nilfs/crc.h"

#define CHUNK      (UINT32_C(256) << 10) /* bytes read at a time for a checksum */
#define BLOCK_MAX  (1u << NILFS_BLOCK_BITS_MAX)
#define DATA_START offsetof(struct nilfs_disk_summary, ss_sumsum) /* of what ss_datasum covers */
#define SUM_START  offsetof(struct nilfs_disk_summary, ss_magic)  /* of what ss_sumsum covers */

/* --- the head --------------------------------------------------------------------------------- */

static void head_fill(const struct nilfs_geometry *g, const struct nilfs_disk_summary *summary,
                      uint64_t block, struct nilfs_log_head *head) {
    *head = (struct nilfs_log_head){
        .block = block,
        .flags = le16_load(summary->ss_flags),
        .sequence = le64_load(summary->ss_seq),
        .created = (int64_t)le64_load(summary->ss_create),
        .next_block = le64_load(summary->ss_next),
        .blocks = le32_load(summary->ss_nblocks),
        .finfos = le32_load(summary->ss_nfinfo),
        .summary_bytes = le32_load(summary->ss_sumbytes),
        .cno = le64_load(summary->ss_cno),
    };
    head->summary_blocks =
        head->summary_bytes / g->block_size + (head->summary_bytes % g->block_size != 0);
}

/* What does not hold of a log at its place, or NULL. */
static const char *head_wrong(const struct nilfs_geometry *g,
                              const struct nilfs_disk_summary *summary,
                              const struct nilfs_log_head *head) {
    uint32_t header = le16_load(summary->ss_bytes);
    uint32_t super_root = head->flags & NILFS_LOG_SUPER_ROOT ? 1 : 0;
    uint64_t room = nilfs_segment_end(g, nilfs_segment_of(g, head->block)) - head->block;

    if (le32_load(summary->ss_magic) != NILFS_LOG_MAGIC)
        return "there is no log";
    if (head->blocks == 0 || head->blocks > room)
        return "the log does not end in its segment";
    if (header < sizeof(*summary) || header > g->block_size || header > head->summary_bytes)
        return "the size of the log's header cannot be";
    if (head->summary_blocks > head->blocks - super_root)
        return "the log's summary is longer than the log";
    if (!nilfs_block_valid(g, head->next_block))
        return "the log names no segment to follow";
    return NULL;
}

/* The checksum of the log's `bytes` bytes from byte `from` on. */
static int checksum(struct device *device, const struct nilfs_geometry *g, uint64_t block,
                    uint32_t from, uint64_t bytes, uint32_t *crc) {
    uint64_t at = block << g->block_bits, end = at + from + bytes;
    uint64_t reach = (end + g->block_size - 1) & ~(uint64_t)(g->block_size - 1);
    uint64_t most = reach - at < CHUNK ? reach - at : CHUNK;
    uint8_t *chunk = malloc(most);
    int error = chunk ? 0 : -ENOMEM;

    *crc = g->crc_seed;
    for (; at < end && !error; at += most, from = 0) {
        uint32_t length = (uint32_t)(reach - at < most ? reach - at : most);
        uint64_t covered = end - at < length ? end - at : length;
        error = device_read(device, at, chunk, length, PURPOSE_JOURNAL);
        if (!error)
            *crc = nilfs_crc(*crc, chunk + from, covered - from);
    }
    free(chunk);
    return error;
}

/* *reason: NULL, or which checksum it is that does not hold. */
static int check_sums(struct device *device, const struct nilfs_geometry *g,
                      const struct nilfs_disk_summary *summary, const struct nilfs_log_head *head,
                      unsigned checks, const char **reason) {
    uint32_t crc;
    int error = 0;

    *reason = NULL;
    if (checks & NILFS_CHECK_SUMMARY) {
        error = checksum(device, g, head->block, SUM_START, head->summary_bytes - SUM_START, &crc);
        if (!error && crc != le32_load(summary->ss_sumsum))
            *reason = "the summary's checksum does not hold";
    }
    if (!error && !*reason && checks & NILFS_CHECK_DATA) {
        uint64_t bytes = (uint64_t)head->blocks << g->block_bits;
        error = checksum(device, g, head->block, DATA_START, bytes - DATA_START, &crc);
        if (!error && crc != le32_load(summary->ss_datasum))
            *reason = "the log's checksum does not hold";
    }
    return error;
}

int nilfs_log_read(struct device *device, const struct nilfs_geometry *g, uint64_t block,
                   unsigned checks, struct nilfs_log_head *head, bool *valid, const char **reason) {
    uint8_t raw[BLOCK_MAX];
    const struct nilfs_disk_summary *summary = (const struct nilfs_disk_summary *)raw;

    *valid = false;
    if (!nilfs_block_valid(g, block)) {
        *reason = "the block is in no segment";
        return 0;
    }
    int error = device_read(device, block << g->block_bits, raw, g->block_size, PURPOSE_JOURNAL);
    if (error)
        return error;
    head_fill(g, summary, block, head);
    *reason = head_wrong(g, summary, head);
    if (!*reason)
        error = check_sums(device, g, summary, head, checks, reason);
    *valid = !error && !*reason;
    return error;
}

/* --- items ------------------------------------------------------------------------------------ */

struct reader { /* of a summary's items */
    struct device *device;
    const struct nilfs_geometry *g;
    const struct nilfs_log_head *head;
    uint64_t at;     /* bytes from the log's start: the next item */
    uint32_t loaded; /* the summary block in `raw`, counted from 1; 0: none */
    uint8_t raw[BLOCK_MAX];
    uint64_t payload; /* the next payload block's place */
};

static int contradiction(const struct reader *r, const char *what) {
    log_error(r->device->log, "%s: nilfs: log at block %" PRIu64 ": %s", r->device->name,
              r->head->block, what);
    return -EUCLEAN;
}

/* No item straddles two blocks: one that does not fit starts in the next. */
static int next_item(struct reader *r, uint32_t size, const void **item) {
    uint32_t block_size = r->g->block_size;
    uint32_t left = block_size - (uint32_t)(r->at % block_size);

    if (left < size)
        r->at += left;
    if (r->at > r->head->summary_bytes || r->head->summary_bytes - r->at < size)
        return contradiction(r, "its summary ends before its items do");
    uint32_t block = (uint32_t)(r->at / block_size);
    if (r->loaded != block + 1) {
        int error = device_read(r->device, (r->head->block + block) << r->g->block_bits, r->raw,
                                block_size, PURPOSE_JOURNAL);
        if (error)
            return error;
        r->loaded = block + 1;
    }
    *item = r->raw + r->at % block_size;
    r->at += size;
    return 0;
}

static int data_item(struct reader *r, struct nilfs_log_item *item) {
    const void *raw;
    int error;

    item->level = 0;
    if (item->ino == NILFS_DAT_INO) {
        error = next_item(r, sizeof(struct nilfs_disk_binfo_dat_data), &raw);
        if (!error)
            item->offset = le64_load(((const struct nilfs_disk_binfo_dat_data *)raw)->offset);
        return error;
    }
    error = next_item(r, sizeof(struct nilfs_disk_binfo_data), &raw);
    if (!error) {
        const struct nilfs_disk_binfo_data *data = raw;
        item->vblock = le64_load(data->vblocknr);
        item->offset = le64_load(data->offset);
    }
    return error;
}

static int node_item(struct reader *r, struct nilfs_log_item *item) {
    const void *raw;
    int error;

    item->level = 1;
    item->offset = 0;
    if (item->ino != NILFS_DAT_INO) {
        error = next_item(r, sizeof(struct nilfs_disk_binfo_node), &raw);
        if (!error)
            item->vblock = le64_load(((const struct nilfs_disk_binfo_node *)raw)->vblocknr);
        return error;
    }
    error = next_item(r, sizeof(struct nilfs_disk_binfo_dat_node), &raw);
    if (!error) {
        const struct nilfs_disk_binfo_dat_node *node = raw;
        item->offset = le64_load(node->offset);
        item->level = node->level;
        if (item->level == 0)
            return contradiction(r, "it has a node of level 0");
    }
    return error;
}

static int file_items(struct reader *r, uint64_t end, nilfs_item_visit visit, void *context) {
    const void *raw;
    int error = next_item(r, sizeof(struct nilfs_disk_finfo), &raw);
    if (error)
        return error;
    const struct nilfs_disk_finfo *file = raw;
    struct nilfs_log_item item = {.ino = le64_load(file->fi_ino), .cno = le64_load(file->fi_cno)};
    uint32_t blocks = le32_load(file->fi_nblocks), data = le32_load(file->fi_ndatablk);
    if (data > blocks || blocks > end - r->payload)
        return contradiction(r, "its files have more blocks than it has");
    for (uint32_t i = 0; i < blocks && !error; i++) {
        error = i < data ? data_item(r, &item) : node_item(r, &item);
        if (!error)
            error = visit(context, &item, r->payload++);
    }
    return error;
}

int nilfs_log_items(struct device *device, const struct nilfs_geometry *g,
                    const struct nilfs_log_head *head, nilfs_item_visit visit, void *context) {
    struct reader r = {.device = device, .g = g, .head = head};
    uint64_t end = head->block + head->blocks - (head->flags & NILFS_LOG_SUPER_ROOT ? 1 : 0);
    const void *raw;
    int error = next_item(&r, sizeof(struct nilfs_disk_summary), &raw);

    if (error)
        return error;
    r.at = le16_load(((const struct nilfs_disk_summary *)raw)->ss_bytes);
    r.payload = head->block + head->summary_blocks;
    for (uint32_t i = 0; i < head->finfos && !error; i++)
        error = file_items(&r, end, visit, context);
    if (!error && r.payload != end)
        error = contradiction(&r, "it has blocks that belong to no file");
    return error;
}
