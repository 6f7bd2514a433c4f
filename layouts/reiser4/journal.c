/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Layer: layouts/reiser4. What is found in the journal at mount. Interface:
 * layouts/reiser4/journal.h.
 *
 * The whole log is read and checked before a block is written. On disk a transaction is found from
 * the newest one back; here they are put into order.
 */
#include "layouts/reiser4/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layouts/reiser4/reiser4.h"

/* Transactions in a log, and blocks in one: more are taken for damage. */
#define TRANSACTIONS_MAX 4096u
#define RECORDS_MAX      (1u << 20)

struct transaction {
    uint64_t head, previous;
    struct reiser4_disk_counters counters;
    struct reiser4_overlay_entry *entry; /* owned */
    size_t count, room;
};

struct chain {
    struct volume *volume;
    uint64_t blocks;
    uint8_t *block;                  /* owned: what was read last */
    struct transaction *transaction; /* owned, newest first */
    size_t count, room;
};

static int grow(void **array, size_t count, size_t *room, size_t element) {
    if (count < *room)
        return 0;
    size_t wanted = *room ? *room * 2 : 16;
    void *larger = reallocarray(*array, wanted, element);
    if (!larger)
        return -ENOMEM;
    *array = larger;
    *room = wanted;
    return 0;
}

static int block_read(const struct chain *chain, uint64_t block) {
    return device_read(chain->volume->device, block * REISER4_BLOCK_SIZE, chain->block,
                       REISER4_BLOCK_SIZE, PURPOSE_JOURNAL);
}

/* Can a log block, or a wandered one, lie there? */
static bool place_is_possible(const struct chain *chain, uint64_t block) {
    return block >= REISER4_FIRST_FREE && block < chain->blocks && block % REISER4_REGION != 0;
}

/* Can a transaction overwrite the block? */
static bool target_is_possible(const struct chain *chain, uint64_t block) {
    return block < chain->blocks &&
           (block == REISER4_SUPER || block == REISER4_BITMAP_FIRST || block >= REISER4_FIRST_FREE);
}

/* --- one transaction ---------------------------------------------------------------------------
 */

static int records_wrong(const struct chain *chain, uint64_t block, const char *what) {
    return reiser4_corrupt(chain->volume, "journal: log record at block %" PRIu64 " %s", block,
                           what);
}

static int record_take(struct chain *chain, struct transaction *transaction, uint64_t block) {
    const struct reiser4_disk_record *record = (const struct reiser4_disk_record *)chain->block;

    for (uint32_t i = 0; i < REISER4_RECORD_ENTRIES; i++) {
        struct reiser4_overlay_entry entry = {le64_load(record->entry[i].original),
                                              le64_load(record->entry[i].wandered)};
        if (entry.wandered == 0)
            break;
        if (!target_is_possible(chain, entry.original) || !place_is_possible(chain, entry.wandered))
            return records_wrong(chain, block,
                                 "names blocks that cannot be overwritten, or wander");
        int error = grow((void **)&transaction->entry, transaction->count, &transaction->room,
                         sizeof(entry));
        if (error)
            return error;
        transaction->entry[transaction->count++] = entry;
    }
    return 0;
}

static int records_read(struct chain *chain, struct transaction *transaction, uint64_t first,
                        uint32_t total) {
    const struct reiser4_disk_record *record = (const struct reiser4_disk_record *)chain->block;
    uint64_t block = first;

    for (uint32_t serial = 1; serial < total; serial++) {
        if (!place_is_possible(chain, block))
            return records_wrong(chain, block, "cannot lie there");
        int error = block_read(chain, block);
        if (error)
            return error;
        if (memcmp(record->magic, REISER4_RECORD_MAGIC, sizeof(record->magic)) != 0 ||
            le32_load(record->records) != total || le32_load(record->serial) != serial)
            return records_wrong(chain, block, "is none, or not the one that is expected there");
        error = record_take(chain, transaction, block);
        if (error)
            return error;
        block = le64_load(record->next);
    }
    return block == transaction->head
               ? 0
               : records_wrong(chain, block, "is where the log does not lead back to its head");
}

static int transaction_read(struct chain *chain, uint64_t block, struct transaction *transaction) {
    const struct reiser4_disk_head *head = (const struct reiser4_disk_head *)chain->block;

    if (!place_is_possible(chain, block))
        return reiser4_corrupt(chain->volume,
                               "journal: a transaction's head cannot lie at block %" PRIu64, block);
    int error = block_read(chain, block);
    if (error)
        return error;
    uint32_t total = le32_load(head->records);
    if (memcmp(head->magic, REISER4_HEAD_MAGIC, sizeof(head->magic)) != 0 || total == 0 ||
        total > RECORDS_MAX)
        return reiser4_corrupt(chain->volume, "journal: block %" PRIu64 " is no transaction's head",
                               block);
    transaction->head = block;
    transaction->previous = le64_load(head->previous);
    transaction->counters = head->counters;
    return records_read(chain, transaction, le64_load(head->first_record), total);
}

/* All that are committed and not flushed. */
static int log_read(struct chain *chain, const struct reiser4_journal *journal) {
    uint64_t block = journal->last_committed;

    while (block != journal->last_flushed) {
        if (block == 0 || chain->count == TRANSACTIONS_MAX)
            return reiser4_corrupt(chain->volume,
                                   "journal: the chain of transactions from block %" PRIu64
                                   " does not lead to the one at block %" PRIu64
                                   " that was flushed last",
                                   journal->last_committed, journal->last_flushed);
        int error = grow((void **)&chain->transaction, chain->count, &chain->room,
                         sizeof(*chain->transaction));
        if (error)
            return error;
        struct transaction *transaction = &chain->transaction[chain->count++];
        memset(transaction, 0, sizeof(*transaction));
        error = transaction_read(chain, block, transaction);
        if (error)
            return error;
        block = transaction->previous;
    }
    return 0;
}

/* --- replay ------------------------------------------------------------------------------------
 */

static int in_place(struct chain *chain, const struct transaction *transaction) {
    struct device *device = chain->volume->device;

    for (size_t i = 0; i < transaction->count; i++) {
        int error = block_read(chain, transaction->entry[i].wandered);
        if (!error)
            error = device_write(device, transaction->entry[i].original * REISER4_BLOCK_SIZE,
                                 chain->block, REISER4_BLOCK_SIZE, PURPOSE_JOURNAL);
        if (error)
            return error;
    }
    return device_flush(device);
}

static int footer_write(struct chain *chain, const struct transaction *transaction) {
    struct device *device = chain->volume->device;
    struct reiser4_disk_journal_footer *footer = (void *)chain->block;

    memset(chain->block, 0, REISER4_BLOCK_SIZE);
    le64_store(&footer->last_flushed, transaction->head);
    footer->counters = transaction->counters;
    int error = device_write(device, (uint64_t)REISER4_JOURNAL_FOOTER * REISER4_BLOCK_SIZE,
                             chain->block, REISER4_BLOCK_SIZE, PURPOSE_JOURNAL);
    return error ? error : device_flush(device);
}

static int replay(struct chain *chain) {
    for (size_t i = chain->count; i-- > 0;) {
        int error = in_place(chain, &chain->transaction[i]);
        if (!error)
            error = footer_write(chain, &chain->transaction[i]);
        if (error)
            return error;
    }
    return 0;
}

/* --- the overlay -------------------------------------------------------------------------------
 */

static int by_original(const void *a, const void *b) {
    const struct reiser4_overlay_entry *x = a, *y = b;

    return x->original < y->original ? -1 : x->original > y->original;
}

/* Index of the first entry whose original is >= block. */
static size_t overlay_lower(const struct reiser4_overlay *overlay, uint64_t block) {
    size_t low = 0, high = overlay->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (overlay->entry[middle].original < block)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t reiser4_overlay_find(const struct reiser4_overlay *overlay, uint64_t block) {
    size_t at = overlay_lower(overlay, block);

    return at < overlay->count && overlay->entry[at].original == block ? overlay->entry[at].wandered
                                                                       : block;
}

/* Of blocks that several transactions have, the newest one's counts: it comes first in the log, and
 * stays first, since each transaction's are sorted in before those of older ones. */
static int overlay_make(struct chain *chain, struct reiser4_overlay *overlay) {
    size_t total = 0;

    for (size_t i = 0; i < chain->count; i++)
        total += chain->transaction[i].count;
    overlay->entry = calloc(total ? total : 1, sizeof(*overlay->entry));
    if (!overlay->entry)
        return -ENOMEM;
    for (size_t i = 0; i < chain->count; i++) {
        const struct transaction *transaction = &chain->transaction[i];
        size_t known = overlay->count, added = 0;
        for (size_t j = 0; j < transaction->count; j++)
            if (reiser4_overlay_find(overlay, transaction->entry[j].original) ==
                transaction->entry[j].original)
                overlay->entry[known + added++] = transaction->entry[j];
        overlay->count = known + added;
        qsort(overlay->entry, overlay->count, sizeof(*overlay->entry), by_original);
    }
    return 0;
}

/* --- mount -------------------------------------------------------------------------------------
 */

static int ends_read(struct chain *chain, struct reiser4_journal *journal) {
    const struct reiser4_disk_journal_footer *footer = (const void *)chain->block;
    const struct reiser4_disk_journal_header *header = (const void *)chain->block;
    int error = block_read(chain, REISER4_JOURNAL_HEADER);

    if (error)
        return error;
    journal->last_committed = le64_load(header->last_committed);
    error = block_read(chain, REISER4_JOURNAL_FOOTER);
    if (error)
        return error;
    journal->last_flushed = le64_load(footer->last_flushed);
    journal->counters_known = journal->last_flushed != 0;
    reiser4_counters_load(&footer->counters, &journal->counters);
    return 0;
}

static int log_apply(struct chain *chain, struct reiser4_journal *journal) {
    struct volume *volume = chain->volume;
    int error = log_read(chain, journal);

    if (error || chain->count == 0)
        return error;
    error = volume->read_only ? overlay_make(chain, &journal->overlay) : replay(chain);
    if (error)
        return error;
    journal->replayed = chain->count;
    journal->last_flushed = chain->transaction[0].head;
    journal->counters_known = true;
    reiser4_counters_load(&chain->transaction[0].counters, &journal->counters);
    log_info(volume->log, "%s: reiser4: %zu transaction%s %s", volume->name, chain->count,
             chain->count == 1 ? "" : "s",
             volume->read_only ? "not replayed: they are read from the log" : "replayed");
    return 0;
}

int reiser4_journal_open(struct volume *volume, uint64_t blocks, struct reiser4_journal *journal) {
    struct chain chain = {.volume = volume, .blocks = blocks};

    memset(journal, 0, sizeof(*journal));
    chain.block = malloc(REISER4_BLOCK_SIZE);
    int error = chain.block ? ends_read(&chain, journal) : -ENOMEM;
    if (!error)
        error = log_apply(&chain, journal);
    for (size_t i = 0; i < chain.count; i++)
        free(chain.transaction[i].entry);
    free(chain.transaction);
    free(chain.block);
    if (error)
        reiser4_journal_close(journal);
    return error;
}

void reiser4_journal_close(struct reiser4_journal *journal) {
    free(journal->overlay.entry);
    journal->overlay = (struct reiser4_overlay){0};
}
