/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. The wandering log as a commit writes it. Interface:
 * layouts/reiser4/journal.h, invariant 1.
 *
 *     relocate set, wandered copies, records, head; flush; header; flush;
 *     overwrite set in place; flush; footer; flush
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/reiser4/reiser4.h"

/* Blocks in one request. */
#define REQUEST_BLOCKS 256u

/* --- places and contents -----------------------------------------------------------------------
 */

/* Hands out blocks for the log, one by one, as near behind one another as there is room. */
struct supply {
    struct reiser4 *r4;
    uint64_t wanted; /* blocks, still */
    struct reiser4_run run;
};

static int supply_next(struct supply *supply, uint64_t *block) {
    if (supply->run.count == 0) {
        int error =
            reiser4_space_allocate_log(supply->r4, supply->run.block, supply->wanted, &supply->run);
        if (error)
            return error;
    }
    *block = supply->run.block++;
    supply->run.count--;
    supply->wanted--;
    return 0;
}

static int place_log(struct reiser4 *r4, struct reiser4_commit *commit) {
    struct supply supply = {r4, commit->overwrite.count + commit->log_count, {0}};
    int error = 0;

    for (size_t i = 0; i < commit->overwrite.count && !error; i++)
        error = supply_next(&supply, &commit->overwrite.write[i].wandered);
    for (uint32_t i = 0; i < commit->log_count && !error; i++)
        error = supply_next(&supply, &commit->log_block[i]);
    /* A head where the last one was could not be told from it: header and footer would be equal
     * before anything is in place. There is always a record, whose block will do. */
    if (!error && commit->log_block[0] == commit->previous) {
        commit->log_block[0] = commit->log_block[1];
        commit->log_block[1] = commit->previous;
    }
    return error;
}

static uint8_t *log_bytes(const struct reiser4_commit *commit, uint32_t i) {
    return commit->log + (size_t)i * REISER4_BLOCK_SIZE;
}

/* Block 0 of the log is the head, the others are records. */
static void fill_head(struct reiser4_commit *commit) {
    struct reiser4_disk_head *head = (struct reiser4_disk_head *)log_bytes(commit, 0);

    memcpy(head->magic, REISER4_HEAD_MAGIC, sizeof(head->magic));
    le32_store(&head->records, commit->log_count);
    le64_store(&head->previous, commit->previous);
    le64_store(&head->first_record, commit->log_block[1]);
    reiser4_counters_store(&head->counters, &commit->counters);
}

static void fill_record(struct reiser4_commit *commit, uint32_t number) {
    struct reiser4_disk_record *record = (struct reiser4_disk_record *)log_bytes(commit, number);
    size_t from = (size_t)(number - 1) * REISER4_RECORD_ENTRIES;

    memcpy(record->magic, REISER4_RECORD_MAGIC, sizeof(record->magic));
    le32_store(&record->records, commit->log_count);
    le32_store(&record->serial, number);
    le64_store(&record->next, commit->log_block[number + 1 < commit->log_count ? number + 1 : 0]);
    for (size_t i = 0; i < REISER4_RECORD_ENTRIES && from + i < commit->overwrite.count; i++) {
        const struct reiser4_write *write = &commit->overwrite.write[from + i];
        le64_store(&record->entry[i].original, write->block);
        le64_store(&record->entry[i].wandered, write->wandered);
    }
}

int reiser4_journal_prepare(struct reiser4 *r4, struct reiser4_commit *commit) {
    size_t records =
        (commit->overwrite.count + REISER4_RECORD_ENTRIES - 1) / REISER4_RECORD_ENTRIES;

    commit->log_count = (uint32_t)records + 1;
    commit->previous = r4->journal.last_committed;
    commit->log = calloc(commit->log_count, REISER4_BLOCK_SIZE);
    commit->log_block = calloc(commit->log_count, sizeof(*commit->log_block));
    if (!commit->log || !commit->log_block)
        return -ENOMEM;
    int error = place_log(r4, commit);
    if (error)
        return error;
    commit->head = commit->log_block[0];
    fill_head(commit);
    for (uint32_t i = 1; i < commit->log_count; i++)
        fill_record(commit, i);
    return 0;
}

/* --- writing -----------------------------------------------------------------------------------
 */

struct piece {
    uint64_t block;
    uint8_t *bytes;
    enum purpose purpose;
};

struct pieces {
    struct piece *piece; /* owned */
    size_t count;
};

static int by_block(const void *a, const void *b) {
    const struct piece *x = a, *y = b;

    return x->block < y->block ? -1 : x->block > y->block;
}

static void add(struct pieces *pieces, uint64_t block, uint8_t *bytes, enum purpose purpose) {
    pieces->piece[pieces->count++] = (struct piece){block, bytes, purpose};
}

/* In the order of blocks, neighbours of one purpose in one request; waits for all. */
static int write_pieces(struct device *device, struct pieces *pieces) {
    struct iovec vector[REQUEST_BLOCKS];
    struct device_batch batch = {0};
    int error = 0;

    if (pieces->count > 1)
        qsort(pieces->piece, pieces->count, sizeof(*pieces->piece), by_block);
    for (size_t i = 0, run; i < pieces->count && !error; i += run) {
        const struct piece *first = &pieces->piece[i];
        for (run = 0;
             run < REQUEST_BLOCKS && i + run < pieces->count &&
             first[run].block == first->block + run && first[run].purpose == first->purpose;
             run++)
            vector[run] = (struct iovec){first[run].bytes, REISER4_BLOCK_SIZE};
        struct device_request request = {.operation = DEVICE_WRITE,
                                         .purpose = first->purpose,
                                         .offset = first->block * REISER4_BLOCK_SIZE,
                                         .length = (uint32_t)run * REISER4_BLOCK_SIZE,
                                         .vector = vector,
                                         .vector_count = (int)run,
                                         .batch = &batch};
        error = device_submit(device, &request);
    }
    int waited = device_wait(device, &batch);
    return error ? error : waited;
}

static int flush(const struct reiser4 *r4) {
    return r4->options.barrier && r4->options.fault != REISER4_FAULT_NO_FLUSH
               ? device_flush(r4->volume->device)
               : 0;
}

/* Relocate set, wandered copies, log. */
static int write_log(const struct reiser4 *r4, const struct reiser4_commit *commit) {
    struct pieces pieces = {0};

    pieces.piece = calloc(commit->relocate.count + commit->overwrite.count + commit->log_count,
                          sizeof(*pieces.piece));
    if (!pieces.piece)
        return -ENOMEM;
    for (size_t i = 0; i < commit->relocate.count; i++) {
        const struct reiser4_write *write = &commit->relocate.write[i];
        add(&pieces, write->block, write->bytes, write->purpose);
    }
    for (size_t i = 0; i < commit->overwrite.count; i++) {
        const struct reiser4_write *write = &commit->overwrite.write[i];
        add(&pieces, write->wandered, write->bytes, PURPOSE_JOURNAL);
    }
    for (uint32_t i = 0; i < commit->log_count; i++)
        add(&pieces, commit->log_block[i], log_bytes(commit, i), PURPOSE_JOURNAL);
    int error = write_pieces(r4->volume->device, &pieces);
    free(pieces.piece);
    return error ? error : flush(r4);
}

static int write_in_place(const struct reiser4 *r4, const struct reiser4_commit *commit) {
    struct pieces pieces = {.piece = calloc(commit->overwrite.count, sizeof(*pieces.piece))};

    if (!pieces.piece)
        return -ENOMEM;
    for (size_t i = 0; i < commit->overwrite.count; i++) {
        const struct reiser4_write *write = &commit->overwrite.write[i];
        add(&pieces, write->block, write->bytes, write->purpose);
    }
    int error = write_pieces(r4->volume->device, &pieces);
    free(pieces.piece);
    return error ? error : flush(r4);
}

static int write_block(const struct reiser4 *r4, uint64_t at, const void *contents, size_t length) {
    uint8_t block[REISER4_BLOCK_SIZE] = {0};

    memcpy(block, contents, length);
    int error = device_write(r4->volume->device, at * REISER4_BLOCK_SIZE, block, sizeof(block),
                             PURPOSE_JOURNAL);
    return error ? error : flush(r4);
}

static int write_header(const struct reiser4 *r4, const struct reiser4_commit *commit) {
    struct reiser4_disk_journal_header header;

    le64_store(&header.last_committed, commit->head);
    return write_block(r4, REISER4_JOURNAL_HEADER, &header, sizeof(header));
}

static int write_footer(const struct reiser4 *r4, const struct reiser4_commit *commit) {
    struct reiser4_disk_journal_footer footer;

    le64_store(&footer.last_flushed, commit->head);
    reiser4_counters_store(&footer.counters, &commit->counters);
    return write_block(r4, REISER4_JOURNAL_FOOTER, &footer, sizeof(footer));
}

int reiser4_journal_commit(struct reiser4 *r4, struct reiser4_commit *commit) {
    int (*step[])(const struct reiser4 *, const struct reiser4_commit *) = {
        write_log, write_header, write_in_place, write_footer};
    int error = 0;

    /* Wrong on purpose, for tests: */
    if (r4->options.fault == REISER4_FAULT_HEADER_FIRST) {
        step[0] = write_header;
        step[1] = write_log;
    } else if (r4->options.fault == REISER4_FAULT_IN_PLACE_FIRST) {
        step[0] = write_in_place;
        step[1] = write_log;
        step[2] = write_header;
    }
    for (size_t i = 0; i < sizeof(step) / sizeof(*step) && !error; i++)
        error = step[i](r4, commit);
    return error;
}
