/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/nilfs. Interface: layouts/nilfs/log_internal.h. A closed log's header, checksums
 * and requests.
 */
#include "layouts/nilfs/crc.h"
#include "layouts/nilfs/log_internal.h"

#define RUN_PIECES_MAX 256 /* blocks of one request */

/* The block's bytes; NULL: they are not in core. */
static uint8_t *payload_bytes(const struct nilfs_payload *payload) {
    if (payload->state == NILFS_PAYLOAD_COPY)
        return payload->u.copy;
    return payload->state == NILFS_PAYLOAD_SETTLED ? buffer_data(payload->u.buffer) : NULL;
}

static void fill_header(struct nilfs_log *log) {
    struct nilfs_disk_summary *summary = (struct nilfs_disk_summary *)log->summary;

    le32_store(&summary->ss_magic, NILFS_LOG_MAGIC);
    le16_store(&summary->ss_bytes, sizeof(*summary));
    le16_store(&summary->ss_flags, (uint16_t)log->flags);
    le64_store(&summary->ss_seq, log->sequence);
    le64_store(&summary->ss_create, (uint64_t)log->created);
    le64_store(&summary->ss_next, log->next_block);
    le32_store(&summary->ss_nblocks, log->blocks);
    le32_store(&summary->ss_nfinfo, log->finfos);
    le32_store(&summary->ss_sumbytes, log->used);
    le64_store(&summary->ss_cno, log->cno);
}

void nilfs_log_seal(const struct nilfs_geometry *g, struct nilfs_log *log) {
    struct nilfs_disk_summary *summary = (struct nilfs_disk_summary *)log->summary;
    const uint32_t before_sums = offsetof(struct nilfs_disk_summary, ss_sumsum);
    const uint32_t after_sums = offsetof(struct nilfs_disk_summary, ss_magic);
    uint32_t sum;

    for (; log->summed + 1 < log->blocks; log->summed++)
        log->crc = nilfs_crc(log->crc, payload_bytes(&log->payload[log->summed]), g->block_size);
    fill_header(log);
    sum = nilfs_crc(g->crc_seed, log->summary + after_sums, log->used - after_sums);
    le32_store(&summary->ss_sumsum, sum);
    sum = nilfs_crc(g->crc_seed, log->summary + before_sums, g->block_size - before_sums);
    sum = nilfs_crc_join(sum, log->crc, (uint64_t)(log->blocks - 1) * g->block_size);
    le32_store(&summary->ss_datasum, sum);
}

struct run { /* of blocks in a row that are in core */
    uint64_t block;
    int count;
    bool data; /* some of them are a file's data */
    struct iovec pieces[RUN_PIECES_MAX];
};

static int run_write(struct device *device, const struct nilfs_geometry *g, struct run *run,
                     struct device_batch *batch) {
    struct device_request request = {
        .operation = DEVICE_WRITE,
        .purpose = run->data ? PURPOSE_DATA : PURPOSE_JOURNAL,
        .offset = run->block << g->block_bits,
        .length = (uint32_t)run->count << g->block_bits,
        .vector = run->pieces,
        .vector_count = run->count,
        .batch = batch,
    };

    if (run->count == 0)
        return 0;
    run->count = 0;
    run->data = false;
    return device_submit(device, &request);
}

static void run_add(struct run *run, const struct nilfs_geometry *g, uint64_t block,
                    uint8_t *bytes) {
    if (run->count == 0)
        run->block = block;
    run->pieces[run->count++] = (struct iovec){.iov_base = bytes, .iov_len = g->block_size};
}

int nilfs_log_write(struct device *device, const struct nilfs_geometry *g,
                    const struct nilfs_log *log, struct device_batch *batch) {
    struct run run = {.count = 0};
    int error = 0;

    run_add(&run, g, log->block, log->summary);
    for (uint32_t i = 0; i + 1 < log->blocks && !error; i++) {
        uint8_t *bytes = payload_bytes(&log->payload[i]);

        if (!bytes || run.count == RUN_PIECES_MAX)
            error = run_write(device, g, &run, batch);
        if (!bytes || error)
            continue;
        run_add(&run, g, log->block + 1 + i, bytes);
        run.data |= log->payload[i].state == NILFS_PAYLOAD_COPY;
    }
    return error ? error : run_write(device, g, &run, batch);
}
