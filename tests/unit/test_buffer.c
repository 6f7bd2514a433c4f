/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests of fs/buffer.c over a device in memory, with every request on record.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/buffer.h"

#define BLOCK  1024u
#define BLOCKS 8192u
#define BUDGET (256u * BLOCK)

static struct clock test_clock;
static struct device *device;
static struct pool pool;
static struct buffer_cache *cache;
static struct trace_record records[1024];
static unsigned record_count;

static void record(void *context, const struct trace_record *entry) {
    if (record_count < 1024)
        records[record_count++] = *entry;
}

static void setup(void) {
    struct device *ram;

    clock_init_virtual(&test_clock, NULL);
    ck_assert_int_eq(device_open_ram(BLOCKS * BLOCK, &test_clock, NULL, &ram), 0);
    ck_assert_int_eq(device_open_trace(ram, record, NULL, &device), 0);
    ck_assert_int_eq(pool_init(&pool, BUDGET), 0);
    ck_assert_int_eq(buffer_cache_create(device, &pool, &test_clock, BLOCK, &cache), 0);
    record_count = 0;
}

static void teardown(void) {
    buffer_cache_destroy(cache);
    ck_assert_uint_eq(pool.used_bytes, 0);
    pool_destroy(&pool);
    device_close(device);
}

static bool all_bytes(const struct buffer *buffer, int value) {
    const unsigned char *bytes = buffer_data(buffer);

    return bytes[0] == value && memcmp(bytes, bytes + 1, BLOCK - 1) == 0;
}

static struct buffer *get(uint64_t block) {
    struct buffer *buffer;

    ck_assert_int_eq(buffer_get(cache, block, PURPOSE_INODE, &buffer), 0);
    ck_assert_uint_eq(buffer->block, block);
    return buffer;
}

/* Makes a block dirty, full of `value`. */
static void fill(uint64_t block, int value) {
    struct buffer *buffer;

    ck_assert_int_eq(buffer_get_zeroed(cache, block, PURPOSE_INODE, &buffer), 0);
    ck_assert(all_bytes(buffer, 0));
    memset(buffer_data(buffer), value, BLOCK);
    buffer_dirty(buffer);
    buffer_put(buffer);
}

static void expect(uint64_t block, int value) {
    struct buffer *buffer = get(block);

    ck_assert(all_bytes(buffer, value));
    buffer_put(buffer);
}

static void drop_clean(void) {
    pool_lock(&pool);
    pool_shrink(&pool, 0);
    pool_unlock(&pool);
}

START_TEST(test_one_read_per_block) {
    struct buffer *first = get(7), *second = get(7);

    ck_assert_ptr_eq(first, second);
    ck_assert_uint_eq(record_count, 1);
    ck_assert_uint_eq(records[0].offset, 7 * BLOCK);
    ck_assert_uint_eq(records[0].length, BLOCK);
    ck_assert_int_eq(records[0].purpose, PURPOSE_INODE);
    buffer_put(first);
    drop_clean(); /* one reference is left */
    ck_assert_uint_eq(pool.used_bytes, BLOCK);
    buffer_put(second);
    buffer_put(NULL);
    drop_clean();
    ck_assert_uint_eq(pool.used_bytes, 0);
}
END_TEST

START_TEST(test_beyond_the_device) {
    struct buffer *buffer;

    ck_assert_int_eq(buffer_get(cache, BLOCKS, PURPOSE_MAP, &buffer), -EIO);
    ck_assert_int_eq(buffer_get(cache, UINT64_MAX, PURPOSE_MAP, &buffer), -EIO);
    ck_assert_int_eq(buffer_get_zeroed(cache, BLOCKS, PURPOSE_MAP, &buffer), -EIO);
    buffer_prefetch(cache, UINT64_MAX - 1, 8, PURPOSE_MAP);
    ck_assert_uint_eq(record_count, 0);
    buffer_put(get(BLOCKS - 1));
}
END_TEST

START_TEST(test_writes_are_sorted_and_merged) {
    static const uint64_t blocks[] = {90, 12, 11, 50, 10, 13, 91};

    for (unsigned i = 0; i < 7; i++)
        fill(blocks[i], (int)blocks[i]);
    ck_assert_uint_eq(record_count, 0);
    ck_assert_uint_eq(buffer_dirty_bytes(cache), 7 * BLOCK);
    ck_assert_int_eq(buffer_sync(cache), 0);
    ck_assert_uint_eq(buffer_dirty_bytes(cache), 0);
    ck_assert_uint_eq(record_count, 3);
    ck_assert_uint_eq(records[0].offset, 10 * BLOCK);
    ck_assert_uint_eq(records[0].length, 4 * BLOCK);
    ck_assert_uint_eq(records[1].offset, 50 * BLOCK);
    ck_assert_uint_eq(records[2].offset, 90 * BLOCK);
    ck_assert_uint_eq(records[2].length, 2 * BLOCK);
    drop_clean();
    for (unsigned i = 0; i < 7; i++)
        expect(blocks[i], (int)blocks[i]);
}
END_TEST

START_TEST(test_age_and_limit) {
    fill(100, 1);
    test_clock.now_ns += NS_PER_SEC;
    fill(50, 2);
    fill(100, 3); /* its age counts from the first change */
    ck_assert_int_eq(buffer_write_back(cache, NS_PER_SEC / 2, UINT64_MAX, NULL), BLOCK);
    ck_assert_uint_eq(record_count, 1);
    ck_assert_uint_eq(records[0].offset, 100 * BLOCK);
    fill(10, 4);
    ck_assert_int_eq(buffer_write_back(cache, INT64_MAX, BLOCK, NULL), BLOCK);
    ck_assert_uint_eq(records[1].offset, 50 * BLOCK); /* the oldest */
    ck_assert_int_eq(buffer_write_back(cache, INT64_MAX, BLOCK - 1, NULL), 0);
    ck_assert_uint_eq(buffer_dirty_bytes(cache), BLOCK);
}
END_TEST

START_TEST(test_pinned_and_dirty_stay) {
    struct buffer *pinned = get(3);

    memset(buffer_data(pinned), 3, BLOCK);
    buffer_dirty(pinned);
    pinned->pinned = true;
    buffer_put(pinned);
    fill(4, 4);
    drop_clean();
    ck_assert_uint_eq(pool.used_bytes, 2 * BLOCK);
    ck_assert_int_eq(buffer_sync(cache), 0);
    ck_assert_uint_eq(buffer_dirty_bytes(cache), BLOCK);
    pinned->pinned = false;
    ck_assert_int_eq(buffer_write_now(pinned), 0);
    ck_assert_uint_eq(buffer_dirty_bytes(cache), 0);
    drop_clean();
    ck_assert_uint_eq(pool.used_bytes, 0);
    expect(3, 3);
}
END_TEST

START_TEST(test_forget) {
    fill(20, 1);
    fill(21, 1);
    fill(23, 1);
    buffer_forget(cache, 20, 3);
    ck_assert_uint_eq(buffer_dirty_bytes(cache), BLOCK);
    expect(20, 0); /* read anew: the change is gone */
    buffer_forget(cache, 0, UINT64_MAX);
    ck_assert_uint_eq(buffer_dirty_bytes(cache), 0);
    ck_assert_uint_eq(pool.used_bytes, 0);
}
END_TEST

START_TEST(test_prefetch) {
    for (unsigned block = 30; block < 40; block++)
        fill(block, (int)block);
    ck_assert_int_eq(buffer_sync(cache), 0);
    drop_clean();
    buffer_put(get(34));
    record_count = 0;
    buffer_prefetch(cache, 30, 10, PURPOSE_INODE);
    ck_assert_uint_eq(record_count, 2); /* around the one that was there */
    ck_assert_uint_eq(records[0].length, 4 * BLOCK);
    ck_assert_uint_eq(records[1].length, 5 * BLOCK);
    for (unsigned block = 30; block < 40; block++)
        expect(block, (int)block);
    ck_assert_uint_eq(record_count, 2);
    buffer_prefetch(cache, BLOCKS - 2, 100, PURPOSE_INODE);
    ck_assert_uint_eq(records[2].length, 2 * BLOCK);
}
END_TEST

START_TEST(test_failed_write_stays_dirty) {
    fill(5, 5);
    device->read_only = true;
    ck_assert_int_eq(buffer_sync(cache), -EROFS);
    ck_assert_uint_eq(buffer_dirty_bytes(cache), BLOCK);
    device->read_only = false;
    ck_assert_int_eq(buffer_sync(cache), 0);
    ck_assert_uint_eq(buffer_dirty_bytes(cache), 0);
}
END_TEST

START_TEST(test_stays_in_budget_and_keeps_contents) {
    /* The table grows, buffers come and go, contents stay. */
    for (unsigned block = 0; block < 4096; block++) {
        fill(block, (int)(block % 251));
        if (block % 64 == 0)
            ck_assert_int_eq(buffer_sync(cache), 0);
        ck_assert_uint_le(pool.used_bytes, BUDGET);
    }
    ck_assert_int_eq(buffer_sync(cache), 0);
    for (unsigned block = 0; block < 4096; block += 7)
        expect(block, (int)(block % 251));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("buffer");
    TCase *tcase = tcase_create("buffer");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_one_read_per_block);
    tcase_add_test(tcase, test_beyond_the_device);
    tcase_add_test(tcase, test_writes_are_sorted_and_merged);
    tcase_add_test(tcase, test_age_and_limit);
    tcase_add_test(tcase, test_pinned_and_dirty_stay);
    tcase_add_test(tcase, test_forget);
    tcase_add_test(tcase, test_prefetch);
    tcase_add_test(tcase, test_failed_write_stays_dirty);
    tcase_add_test(tcase, test_stays_in_budget_and_keeps_contents);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
