/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: fs/device: the contract's common half, image files, sparse memory, traces.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/device/device.h"

#define MIB (UINT64_C(1) << 20)

static char message[512]; /* the last one logged */

static void keep_message(void *context, enum log_level level, const char *text) {
    (void)context;
    (void)level;
    snprintf(message, sizeof(message), "%s", text);
}

static const struct log test_log = {.emit = keep_message, .threshold = LOG_LEVEL_INFO};
static struct clock test_clock;
static char directory[64];
static char path[96];

static void setup(void) {
    clock_init_wall(&test_clock);
    snprintf(directory, sizeof(directory), "/tmp/test-device-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/disk.img", directory);
}

static void teardown(void) {
    unlink(path);
    rmdir(directory);
}

static struct device *open_image(unsigned flags, uint64_t size) {
    struct device *device = NULL;
    ck_assert_int_eq(device_open_image(path, flags, size, &test_clock, &test_log, &device), 0);
    return device;
}

static struct device *open_ram(uint64_t size) {
    struct device *device = NULL;
    ck_assert_int_eq(device_open_ram(size, &test_clock, &test_log, &device), 0);
    return device;
}

static struct device *open_bottom(int which, uint64_t size) {
    return which ? open_image(DEVICE_CREATE, size) : open_ram(size);
}

/* Bytes that depend on their place, so that a misplaced sector shows. */
static void fill(unsigned char *bytes, size_t length, uint64_t offset, unsigned seed) {
    for (size_t i = 0; i < length; i++) {
        uint64_t place = offset + i;
        bytes[i] = (unsigned char)(seed + place + (place >> 9) * 31 + (place >> 17) * 7);
    }
}

static void check(struct device *device, uint64_t offset, uint32_t length, unsigned seed) {
    unsigned char *expected = malloc(length), *found = malloc(length);
    fill(expected, length, offset, seed);
    ck_assert_int_eq(device_read(device, offset, found, length, PURPOSE_DATA), 0);
    ck_assert_mem_eq(found, expected, length);
    free(expected);
    free(found);
}

static void check_zero(struct device *device, uint64_t offset, uint32_t length) {
    unsigned char *expected = calloc(1, length), *found = malloc(length);
    memset(found, 0xa5, length);
    ck_assert_int_eq(device_read(device, offset, found, length, PURPOSE_DATA), 0);
    ck_assert_mem_eq(found, expected, length);
    free(expected);
    free(found);
}

static void store(struct device *device, uint64_t offset, uint32_t length, unsigned seed) {
    unsigned char *bytes = malloc(length);
    fill(bytes, length, offset, seed);
    ck_assert_int_eq(device_write(device, offset, bytes, length, PURPOSE_DATA), 0);
    free(bytes);
}

START_TEST(what_is_written_is_read) {
    struct device *device = open_bottom(_i, 64 * MIB);
    check_zero(device, 0, 1u << 20);
    store(device, 512, 512, 1);
    store(device, 3 * MIB - 1024, 200 * 1024, 2);
    store(device, 64 * MIB - 512, 512, 3);
    check(device, 512, 512, 1);
    check(device, 3 * MIB - 1024, 200 * 1024, 2);
    check(device, 64 * MIB - 512, 512, 3);
    check_zero(device, 0, 512);
    check_zero(device, 1024, 512);
    check_zero(device, 3 * MIB - 1536, 512);
    ck_assert_int_eq(device_flush(device), 0);
    ck_assert_int_eq(device_drain(device), 0);
    device_close(device);
}
END_TEST

START_TEST(vectors_of_many_pieces_move_in_order) {
    enum { PIECES = 300 };
    struct device *device = open_bottom(_i, 8 * MIB);
    static unsigned char bytes[PIECES * 512], found[PIECES * 512];
    struct iovec vector[PIECES];
    fill(bytes, sizeof(bytes), 0, 9);
    /* Pieces of 256 and 768 bytes in turn: only their sum is in sectors. */
    size_t place = 0;
    for (int i = 0; i < PIECES; i++) {
        size_t length = i % 2 ? 768 : 256;
        vector[i] = (struct iovec){.iov_base = bytes + place, .iov_len = length};
        place += length;
    }
    struct device_batch batch = {0};
    struct device_request request = {.operation = DEVICE_WRITE,
                                     .offset = 4096,
                                     .length = sizeof(bytes),
                                     .vector = vector,
                                     .vector_count = PIECES,
                                     .batch = &batch};
    ck_assert_int_eq(device_submit(device, &request), 0);
    ck_assert_int_eq(device_wait(device, &batch), 0);
    for (int i = 0; i < PIECES; i++)
        vector[i].iov_base = found + ((unsigned char *)vector[i].iov_base - bytes);
    request.operation = DEVICE_READ;
    ck_assert_int_eq(device_submit(device, &request), 0);
    ck_assert_mem_eq(found, bytes, sizeof(bytes));
    device_close(device);
}
END_TEST

START_TEST(wrong_requests_are_refused) {
    struct device *device = open_bottom(_i, MIB);
    static unsigned char bytes[8192];
    ck_assert_int_eq(device_read(device, 100, bytes, 512, PURPOSE_DATA), -EINVAL);
    ck_assert_int_eq(device_read(device, 512, bytes, 100, PURPOSE_DATA), -EINVAL);
    ck_assert_int_eq(device_read(device, MIB, bytes, 512, PURPOSE_DATA), -EIO);
    ck_assert_int_eq(device_write(device, MIB - 512, bytes, 1024, PURPOSE_DATA), -EIO);
    ck_assert_int_eq(device_read(device, UINT64_MAX - 511, bytes, 1024, PURPOSE_DATA), -EIO);
    ck_assert_ptr_nonnull(strstr(message, "outside the device"));
    ck_assert_int_eq(device_zero(device, MIB - 512, 1024), -EIO);
    ck_assert_int_eq(device_zero(device, 1, 512), -EINVAL);
    struct iovec vector = {.iov_base = bytes, .iov_len = 4096};
    struct device_request request = {
        .operation = DEVICE_READ, .length = 8192, .vector = &vector, .vector_count = 1};
    ck_assert_int_eq(device_submit(device, &request), -EINVAL);
    request.length = 512;
    ck_assert_int_eq(device_submit(device, &request), -EINVAL);
    ck_assert_int_eq(device_read(device, MIB, bytes, 0, PURPOSE_DATA), 0);
    device_close(device);
}
END_TEST

START_TEST(zeroing_clears_exactly_its_range) {
    struct device *device = open_bottom(_i, 4 * MIB);
    store(device, 0, 4 * MIB, 5);
    ck_assert_int_eq(device_zero(device, 65536 - 512, 3 * 65536), 0);
    check(device, 0, 65536 - 512, 5);
    check_zero(device, 65536 - 512, 3 * 65536);
    check(device, 4 * 65536 - 512, 4 * MIB - 4 * 65536 + 512, 5);
    store(device, 65536, 4096, 6);
    check(device, 65536, 4096, 6);
    check_zero(device, 65536 + 4096, 65536 - 4096);
    device_close(device);
}
END_TEST

/* A device that cannot zero: its zero operation says so, and device_zero must write. */
static int refuse_zero(struct device *device, uint64_t offset, uint64_t length) {
    (void)device;
    (void)offset;
    (void)length;
    return -EOPNOTSUPP;
}

START_TEST(zeroing_falls_back_to_writing) {
    struct device *device = open_ram(8 * MIB);
    struct device_operations operations = *device->operations;
    operations.zero = refuse_zero;
    device->operations = &operations;
    store(device, 0, 8 * MIB, 7);
    ck_assert_int_eq(device_zero(device, 512, 3 * MIB + 1024), 0);
    check(device, 0, 512, 7);
    check_zero(device, 512, 3 * MIB + 1024);
    check(device, 3 * MIB + 1536, 5 * MIB - 1536, 7);
    device_close(device);
}
END_TEST

struct worker {
    struct device *device;
    unsigned index;
};

#define WORKERS 4u

/* Every WORKERS-th sector is one worker's: neighbours in one chunk and one page. */
static void *work(void *argument) {
    struct worker *worker = argument;
    for (unsigned round = 0; round < 3; round++) {
        for (uint64_t sector = worker->index; sector < 8192; sector += WORKERS) {
            unsigned char bytes[512], found[512];
            fill(bytes, sizeof(bytes), sector * 512, worker->index + round);
            if (device_write(worker->device, sector * 512, bytes, 512, PURPOSE_DATA) ||
                device_read(worker->device, sector * 512, found, 512, PURPOSE_DATA) ||
                memcmp(bytes, found, sizeof(bytes)) != 0)
                return worker;
        }
    }
    return NULL;
}

START_TEST(threads_do_not_disturb_each_other) {
    struct device *device = open_bottom(_i, 4 * MIB);
    pthread_t threads[WORKERS];
    struct worker workers[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.device = device, .index = i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    for (uint64_t sector = 0; sector < 8192; sector++)
        check(device, sector * 512, 512, sector % WORKERS + 2);
    device_close(device);
}
END_TEST

START_TEST(a_petabyte_of_memory_opens_at_once) {
    uint64_t size = UINT64_C(1) << 50;
    struct device *device = open_ram(size);
    ck_assert_uint_eq(device->size, size);
    store(device, size - 4096, 4096, 1);
    check(device, size - 4096, 4096, 1);
    check_zero(device, size / 2, 4096);
    ck_assert_int_eq(device_zero(device, 0, size), 0);
    check_zero(device, size - 4096, 4096);
    device_close(device);
}
END_TEST

START_TEST(an_image_is_sparse_and_keeps_its_bytes) {
    struct device *device = open_image(DEVICE_CREATE, 256 * MIB);
    store(device, 100 * MIB, MIB, 4);
    device_close(device);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 256 * MIB);
    ck_assert_int_lt(status.st_blocks, 4096);
    device = open_image(DEVICE_READ_ONLY, 0);
    ck_assert_uint_eq(device->size, 256 * MIB);
    check(device, 100 * MIB, MIB, 4);
    unsigned char bytes[512] = {0};
    ck_assert_int_eq(device_write(device, 0, bytes, 512, PURPOSE_DATA), -EROFS);
    ck_assert_int_eq(device_zero(device, 0, 512), -EROFS);
    device_close(device);
    device = open_image(DEVICE_CREATE, 8 * MIB);
    check_zero(device, 0, 8 * MIB);
    device_close(device);
}
END_TEST

START_TEST(a_ragged_end_is_ignored) {
    device_close(open_image(DEVICE_CREATE, MIB));
    ck_assert_int_eq(truncate(path, MIB + 700), 0);
    struct device *device = open_image(0, 0);
    ck_assert_uint_eq(device->size, MIB + 512);
    device_close(device);
}
END_TEST

START_TEST(an_image_in_use_is_refused_untouched) {
    struct device *first = open_image(DEVICE_CREATE, MIB), *second = NULL;
    store(first, 0, MIB, 8);
    ck_assert_int_eq(device_open_image(path, 0, 0, &test_clock, &test_log, &second), -EBUSY);
    ck_assert_ptr_nonnull(strstr(message, "disk.img: is in use by another program"));
    ck_assert_int_eq(device_open_image(path, DEVICE_CREATE, MIB, &test_clock, &test_log, &second),
                     -EBUSY);
    ck_assert_int_eq(device_open_image(path, DEVICE_READ_ONLY, 0, &test_clock, &test_log, &second),
                     -EBUSY);
    check(first, 0, MIB, 8);
    second = open_image(DEVICE_NO_LOCK, 0);
    check(second, 0, MIB, 8);
    device_close(second);
    device_close(first);
    first = open_image(DEVICE_READ_ONLY, 0);
    second = open_image(DEVICE_READ_ONLY, 0); /* readers share */
    device_close(first);
    device_close(second);
}
END_TEST

START_TEST(what_is_no_image_is_refused) {
    struct device *device = NULL;
    ck_assert_int_eq(device_open_image(path, 0, 0, &test_clock, &test_log, &device), -ENOENT);
    ck_assert_ptr_nonnull(strstr(message, "disk.img"));
    ck_assert_int_eq(device_open_image(directory, 0, 0, &test_clock, &test_log, &device), -EISDIR);
    ck_assert_int_eq(device_open_image("/dev/null", 0, 0, &test_clock, &test_log, &device),
                     -EINVAL);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(device_open_image(path, 0, 0, &test_clock, &test_log, &device), -EINVAL);
    unlink(path);
    ck_assert_int_eq(device_open_image(path, DEVICE_CREATE, 0, &test_clock, &test_log, &device),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(message, "is empty"));
    ck_assert_ptr_null(device);
}
END_TEST

START_TEST(a_file_cut_short_fails_and_says_so) {
    struct device *device = open_image(DEVICE_CREATE, MIB);
    unsigned char bytes[4096];
    ck_assert_int_eq(truncate(path, 2048), 0);
    ck_assert_int_eq(device_read(device, 0, bytes, sizeof(bytes), PURPOSE_DATA), -EIO);
    ck_assert_ptr_nonnull(strstr(message, "has become shorter"));
    device_close(device);
}
END_TEST

static void record_trace(void *context, const struct trace_record *record) {
    *(struct trace_record *)context = *record;
}

START_TEST(a_trace_sees_every_request_and_passes_all_on) {
    struct trace_record record = {0};
    struct device *device = NULL;
    ck_assert_int_eq(device_open_trace(open_ram(MIB), record_trace, &record, &device), 0);
    ck_assert_uint_eq(device->size, MIB);
    store(device, 8192, 4096, 2);
    ck_assert_uint_eq(record.offset, 8192);
    ck_assert_uint_eq(record.length, 4096);
    ck_assert_int_eq(record.operation, DEVICE_WRITE);
    ck_assert_int_eq(record.purpose, PURPOSE_DATA);
    check(device, 8192, 4096, 2);
    ck_assert_int_eq(record.operation, DEVICE_READ);
    ck_assert_int_eq(device_zero(device, 8192, 4096), 0);
    check_zero(device, 8192, 4096);
    ck_assert_int_eq(device_flush(device), 0);
    struct device_stats stats;
    device_stats(device, &stats);
    ck_assert_uint_eq(stats.requests[DEVICE_WRITE], 0); /* nothing below keeps figures */
    device_close(device);
    device_close(NULL);
}
END_TEST

START_TEST(purposes_have_names) {
    for (int i = 0; i < PURPOSE_COUNT; i++)
        ck_assert_str_ne(purpose_name((enum purpose)i), "unknown");
    ck_assert_str_eq(purpose_name(PURPOSE_BITMAP), "bitmap");
    ck_assert_str_eq(purpose_name(PURPOSE_COUNT), "unknown");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("device");
    TCase *tests = tcase_create("device");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, what_is_written_is_read, 0, 2);
    tcase_add_loop_test(tests, vectors_of_many_pieces_move_in_order, 0, 2);
    tcase_add_loop_test(tests, wrong_requests_are_refused, 0, 2);
    tcase_add_loop_test(tests, zeroing_clears_exactly_its_range, 0, 2);
    tcase_add_test(tests, zeroing_falls_back_to_writing);
    tcase_add_loop_test(tests, threads_do_not_disturb_each_other, 0, 2);
    tcase_add_test(tests, a_petabyte_of_memory_opens_at_once);
    tcase_add_test(tests, an_image_is_sparse_and_keeps_its_bytes);
    tcase_add_test(tests, a_ragged_end_is_ignored);
    tcase_add_test(tests, an_image_in_use_is_refused_untouched);
    tcase_add_test(tests, what_is_no_image_is_refused);
    tcase_add_test(tests, a_file_cut_short_fails_and_says_so);
    tcase_add_test(tests, a_trace_sees_every_request_and_passes_all_on);
    tcase_add_test(tests, purposes_have_names);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
