/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs/log.c and log_write.c: what is put into logs is what log_read.c finds on the
 * device, where it was said to be; logs end where they have to, and not before.
 */
#include "layouts/nilfs/log_internal.h"
#include "layouts/nilfs/log_read.h"
#include "tests/unit/fixture.h"

#define SEGMENTS 64u
#define SUMS     (NILFS_CHECK_SUMMARY | NILFS_CHECK_DATA)

struct writer { /* a volume that has nothing but a place to write logs to */
    struct clock clock;
    struct log log;
    struct volume volume;
    struct nilfs nilfs;
    uint64_t spares[SEGMENTS];
};

static void writer_open(struct writer *w, uint32_t block_bits, uint32_t segment_blocks) {
    struct nilfs_geometry *g = &w->nilfs.geometry;

    memset(w, 0, sizeof(*w));
    clock_init_virtual(&w->clock, NULL);
    w->log = log_to_stderr("test", LOG_LEVEL_WARNING);
    *g = (struct nilfs_geometry){.block_bits = block_bits,
                                 .block_size = 1u << block_bits,
                                 .segments = SEGMENTS,
                                 .segment_blocks = segment_blocks,
                                 .first_data_block = block_bits == 12 ? 1 : 4096u >> block_bits,
                                 .crc_seed = 0x5eed};
    ck_assert_int_eq(device_open_ram((uint64_t)SEGMENTS * segment_blocks << block_bits, &w->clock,
                                     &w->log, &w->volume.device),
                     0);
    w->volume.clock = &w->clock;
    w->volume.log = &w->log;
    w->nilfs.volume = &w->volume;
    w->nilfs.block_memory.size = g->block_size;
    w->nilfs.cno = 7;
    w->nilfs.position = (struct nilfs_position){
        .segment = 0, .next = 1, .sequence = 100, .block = g->first_data_block};
    w->nilfs.spares = w->spares;
    for (uint64_t i = 2; i < SEGMENTS; i++)
        w->spares[w->nilfs.spare_count++] = i;
}

static void writer_close(struct writer *w) {
    nilfs_log_free(&w->nilfs, w->nilfs.log);
    if (w->nilfs.commit)
        free(w->nilfs.commit->written);
    free(w->nilfs.commit);
    recycle_drain(&w->nilfs.block_memory);
    device_close(w->volume.device);
}

/* --- what was added, and whether it is found -------------------------------------------------- */

struct added {
    struct nilfs_log_item item;
    uint64_t block;
    uint8_t fill;
};

static uint32_t item_bytes(const struct nilfs_log_item *item) {
    return (item->ino == NILFS_DAT_INO) == (item->level > 0) ? 16 : item->level ? 8 : 16;
}

struct reading {
    struct writer *w;
    const struct added *added;
    size_t next, count;
};

static int visit(void *context, const struct nilfs_log_item *item, uint64_t block) {
    struct reading *r = context;
    const struct added *a = &r->added[r->next++];
    uint32_t block_size = r->w->nilfs.geometry.block_size;
    uint8_t bytes[4096];

    ck_assert_uint_le(r->next, r->count);
    ck_assert_uint_eq(item->ino, a->item.ino);
    ck_assert_uint_eq(item->cno, a->item.cno);
    ck_assert_uint_eq(block, a->block);
    ck_assert_uint_eq(item->level > 0, a->item.level > 0);
    if (item->ino == NILFS_DAT_INO)
        ck_assert_uint_eq(item->level, a->item.level);
    else
        ck_assert_uint_eq(item->vblock, a->item.vblock);
    if (item->level == 0 || item->ino == NILFS_DAT_INO)
        ck_assert_uint_eq(item->offset, a->item.offset);
    ck_assert_int_eq(
        device_read(r->w->volume.device, block * block_size, bytes, block_size, PURPOSE_DATA), 0);
    for (uint32_t i = 0; i < block_size; i++)
        ck_assert_uint_eq(bytes[i], (uint8_t)(a->fill + i));
    return 0;
}

/* A log that ended by itself had no room for what came next. */
static void check_full(const struct reading *r, const struct nilfs_log_head *head) {
    const struct nilfs_geometry *g = &r->w->nilfs.geometry;
    const struct nilfs_log_item *last = &r->added[r->next - 1].item,
                                *following = &r->added[r->next].item;
    uint64_t end = nilfs_segment_end(g, nilfs_segment_of(g, head->block));
    bool goes_on = last->ino == following->ino && last->cno == following->cno &&
                   (following->level > 0 || last->level == 0);
    uint32_t size = item_bytes(following) + (goes_on ? 0 : 24);

    if (head->block + head->blocks < end)
        ck_assert_uint_gt(head->summary_bytes + size, g->block_size);
}

/* Reads all logs from the start, each followed by the next one. Returns how many there are. */
static unsigned check_chain(struct writer *w, const struct added *added, size_t count) {
    const struct nilfs_geometry *g = &w->nilfs.geometry;
    struct reading r = {.w = w, .added = added, .count = count};
    struct nilfs_log_head head;
    uint64_t block = g->first_data_block, sequence = 100, segment = 0;
    const char *reason;
    bool valid, open = false;
    unsigned logs = 0;

    while (r.next < count) {
        ck_assert_int_eq(nilfs_log_read(w->volume.device, g, block, SUMS, &head, &valid, &reason),
                         0);
        ck_assert_msg(valid, "log %u at block %llu: %s", logs, (unsigned long long)block, reason);
        ck_assert_uint_eq(head.sequence, sequence);
        ck_assert_uint_eq(head.cno, 7);
        ck_assert_uint_eq(head.summary_blocks, 1);
        ck_assert_uint_ge(head.blocks, 2);
        ck_assert_uint_eq(head.next_block, nilfs_segment_start(g, segment + 1));
        ck_assert_uint_eq(head.flags & NILFS_LOG_BEGIN, open ? 0 : NILFS_LOG_BEGIN);
        open = !(head.flags & NILFS_LOG_END);
        ck_assert_int_eq(nilfs_log_items(w->volume.device, g, &head, visit, &r), 0);
        if (open)
            check_full(&r, &head);
        logs++;
        block += head.blocks;
        if (block + 2 > nilfs_segment_end(g, segment)) {
            block = head.next_block;
            segment++;
            sequence++;
        }
    }
    ck_assert_int_eq(nilfs_log_read(w->volume.device, g, block, SUMS, &head, &valid, &reason), 0);
    ck_assert_msg(!valid, "there is one log too many");
    return logs;
}

/* --- adding ----------------------------------------------------------------------------------- */

static void add(struct writer *w, const struct nilfs_log_item *item, uint8_t fill, bool direct,
                struct added *added) {
    uint32_t block_size = w->nilfs.geometry.block_size;
    uint8_t bytes[4096];
    struct device_batch batch = {0};

    for (uint32_t i = 0; i < block_size; i++)
        bytes[i] = (uint8_t)(fill + i);
    *added = (struct added){.item = *item, .fill = fill};
    ck_assert_int_eq(direct ? nilfs_log_data_direct(&w->nilfs, item, bytes, &added->block, &batch)
                            : nilfs_log_data(&w->nilfs, item, bytes, &added->block, &batch),
                     0);
    const uint8_t *peeked = nilfs_log_peek(&w->nilfs, added->block);
    if (direct) {
        ck_assert_ptr_null(peeked);
        ck_assert_int_eq(device_write(w->volume.device, added->block * block_size, bytes,
                                      block_size, PURPOSE_DATA),
                         0);
    } else {
        ck_assert_int_eq(memcmp(peeked, bytes, block_size), 0);
    }
}

/* Files of all kinds, in runs. */
static void next_item(uint64_t *random, struct nilfs_log_item *item) {
    if (fixture_random(random) % 8 == 0) {
        item->ino = 2 + fixture_random(random) % 4;
        item->cno = fixture_random(random) % 3;
    }
    item->level = fixture_random(random) % 16 == 0 ? !item->level : item->level;
    item->vblock = fixture_random(random);
    item->offset = fixture_random(random) >> 1;
}

START_TEST(random_logs) {
    uint64_t random = fixture_seed("random_logs");
    size_t count = 700;
    struct added *added = calloc(count, sizeof(*added));

    ck_assert_ptr_nonnull(added);
    for (unsigned round = 0; round < 12 * fixture_factor(); round++) {
        struct nilfs_log_item item = {.ino = 2, .cno = 1};
        struct writer w;
        unsigned logs, closed = 0;

        writer_open(&w, 10 + round % 3, round % 2 ? 16 : 512);
        for (size_t i = 0; i < count; i++) {
            next_item(&random, &item);
            add(&w, &item, (uint8_t)fixture_random(&random), fixture_random(&random) % 2,
                &added[i]);
            if (fixture_random(&random) % 200 == 0 && ++closed)
                ck_assert_int_eq(nilfs_log_close(&w.nilfs, NILFS_LOG_END, NULL), 0);
        }
        ck_assert_int_eq(nilfs_log_close(&w.nilfs, NILFS_LOG_END, NULL), 0);
        logs = check_chain(&w, added, count);
        ck_assert_uint_gt(logs, closed);
        writer_close(&w);
    }
    free(added);
}
END_TEST

/* How many blocks one summary tells of, by block size and kind of file. */
START_TEST(capacities) {
    static const struct {
        uint32_t block_bits;
        uint64_t ino;
        uint32_t level, blocks;
    } cases[] = {
        {10, 12, 0, 58}, {11, 12, 0, 122}, {12, 12, 0, 250}, {12, 12, 1, 501},
        {12, 3, 0, 501}, {12, 3, 1, 250},  {10, 3, 0, 117},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct nilfs_log_item item = {.ino = cases[i].ino, .level = cases[i].level};
        struct added added;
        struct writer w;

        writer_open(&w, cases[i].block_bits, 1024);
        for (uint32_t n = 0; n <= cases[i].blocks; n++) {
            ck_assert_uint_eq(w.nilfs.position.block, w.nilfs.geometry.first_data_block);
            add(&w, &item, 0, false, &added);
        }
        ck_assert_uint_eq(w.nilfs.position.block,
                          w.nilfs.geometry.first_data_block + 1 + cases[i].blocks);
        writer_close(&w);
    }
}
END_TEST

/* The next segment is entered when two blocks have no room; what was written is noted. */
START_TEST(segment_ends) {
    struct nilfs_log_item item = {.ino = 12};
    struct added added;
    struct writer w;

    writer_open(&w, 12, 16);
    for (unsigned i = 0; i < 13; i++)
        add(&w, &item, 0, false, &added);
    ck_assert_int_eq(nilfs_log_close(&w.nilfs, NILFS_LOG_END, NULL), 0);
    ck_assert_uint_eq(w.nilfs.position.block, 15);
    add(&w, &item, 0, false, &added);
    ck_assert_uint_eq(w.nilfs.position.segment, 1);
    ck_assert_uint_eq(w.nilfs.position.next, 2);
    ck_assert_uint_eq(w.nilfs.position.sequence, 101);
    ck_assert_uint_eq(added.block, 17);
    ck_assert_int_eq(nilfs_log_close(&w.nilfs, NILFS_LOG_END, NULL), 0);
    ck_assert_uint_eq(w.nilfs.commit->written_count, 2);
    ck_assert_uint_eq(w.nilfs.commit->written[0].segment, 0);
    ck_assert_uint_eq(w.nilfs.commit->written[0].blocks, 14);
    ck_assert_uint_eq(w.nilfs.commit->written[1].segment, 1);
    ck_assert_uint_eq(w.nilfs.commit->written[1].blocks, 2);
    writer_close(&w);
}
END_TEST

/* No byte of a log, its payload included, may change. */
START_TEST(every_byte_counts) {
    struct nilfs_log_item item = {.ino = 12};
    struct nilfs_log_head head;
    struct added added;
    struct writer w;
    const char *reason;
    bool valid;
    uint8_t bytes[4 * 1024];
    const uint64_t start = UINT64_C(4) << 10;

    writer_open(&w, 10, 16);
    for (unsigned i = 0; i < 3; i++)
        add(&w, &item, (uint8_t)i, i == 1, &added);
    ck_assert_int_eq(nilfs_log_close(&w.nilfs, NILFS_LOG_END, NULL), 0);
    ck_assert_int_eq(device_read(w.volume.device, start, bytes, sizeof(bytes), PURPOSE_DATA), 0);
    for (size_t i = 0; i < sizeof(bytes); i += i < 160 ? 1 : 37) {
        bytes[i] ^= 4;
        ck_assert_int_eq(device_write(w.volume.device, start, bytes, sizeof(bytes), PURPOSE_DATA),
                         0);
        ck_assert_int_eq(
            nilfs_log_read(w.volume.device, &w.nilfs.geometry, 4, SUMS, &head, &valid, &reason), 0);
        ck_assert_msg(!valid, "byte %zu does not count", i);
        bytes[i] ^= 4;
    }
    writer_close(&w);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nilfs_log");
    TCase *tests = tcase_create("log");

    tcase_add_test(tests, random_logs);
    tcase_add_test(tests, capacities);
    tcase_add_test(tests, segment_ends);
    tcase_add_test(tests, every_byte_counts);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}
