/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: the devices for crash and error tests: faults, recordings, forks.
 */
#include <errno.h>

#include "fs/device/fault.h"
#include "fs/device/fork.h"
#include "fs/device/record.h"
#include "fs/random.h"
#include "tests/unit/fixture.h"

#define SIZE   (UINT64_C(1) << 20)
#define SECTOR DEVICE_SECTOR

static struct clock test_clock;
static struct device *ram; /* the test's own; layers stand on it borrowed */

static void setup(void) {
    clock_init_virtual(&test_clock, NULL);
    ck_assert_int_eq(device_open_ram(SIZE, &test_clock, NULL, &ram), 0);
}

static void teardown(void) {
    device_close(ram);
}

static struct device *open_fault(const struct fault_plan *plan) {
    struct device *borrowed, *fault;

    ck_assert_int_eq(device_open_borrowed(ram, &borrowed), 0);
    ck_assert_int_eq(device_open_fault(borrowed, plan, &fault), 0);
    return fault;
}

/* Writes a block of `sectors` that are filled with `byte`, at that sector. */
static int put(struct device *device, unsigned sector, unsigned sectors, int byte) {
    unsigned char bytes[16 * SECTOR];

    ck_assert_uint_le(sectors * SECTOR, sizeof(bytes));
    memset(bytes, byte, sectors * SECTOR);
    return device_write(device, (uint64_t)sector * SECTOR, bytes, sectors * SECTOR, PURPOSE_DATA);
}

/* What a sector is filled with; -1: not with one value. */
static int get(struct device *device, unsigned sector) {
    unsigned char bytes[SECTOR];

    ck_assert_int_eq(device_read(device, (uint64_t)sector * SECTOR, bytes, SECTOR, PURPOSE_DATA),
                     0);
    for (unsigned i = 1; i < SECTOR; i++)
        if (bytes[i] != bytes[0])
            return -1;
    return bytes[0];
}

/* --- faults ----------------------------------------------------------------------------------- */

/* Three writes, of which the first is flushed; the power goes during the third. */
static void write_until_cut(const struct fault_plan *plan, unsigned sectors) {
    struct device *device = open_fault(plan);

    ck_assert_int_eq(put(device, 0, sectors, 1), 0);
    ck_assert_int_eq(device_flush(device), 0);
    ck_assert_int_eq(put(device, 16, sectors, 2), 0);
    ck_assert_int_eq(put(device, 32, sectors, 3), -EIO);
    ck_assert_int_eq(put(device, 48, sectors, 4), -EIO);
    ck_assert_int_eq(device_flush(device), -EIO);
    device_close(device);
    ck_assert_int_eq(get(ram, 0), 1);
    ck_assert_int_eq(get(ram, 48), 0);
}

START_TEST(test_cut_keeps) {
    write_until_cut(&(struct fault_plan){.cut_at_write = 3}, 1);
    ck_assert_int_eq(get(ram, 16), 2);
    ck_assert_int_eq(get(ram, 32), 3);
}
END_TEST

START_TEST(test_cut_drops_what_is_not_flushed) {
    write_until_cut(&(struct fault_plan){.cut_at_write = 3, .unsynced = FAULT_DROP}, 1);
    ck_assert_int_eq(get(ram, 16), 0);
    ck_assert_int_eq(get(ram, 32), 0);
}
END_TEST

START_TEST(test_cut_reorders) {
    unsigned seen = 0;

    for (uint64_t seed = 0; seed < 64; seed++) {
        struct fault_plan plan = {.seed = seed, .cut_at_write = 3, .unsynced = FAULT_REORDER};

        teardown();
        setup();
        write_until_cut(&plan, 1);
        seen |= 1u << ((get(ram, 16) == 2) + 2 * (get(ram, 32) == 3));
    }
    ck_assert_uint_eq(seen, 15);
}
END_TEST

/* Two writes to one place: the older may come last, or alone. */
START_TEST(test_cut_reorders_one_place) {
    unsigned seen = 0;

    for (uint64_t seed = 0; seed < 64; seed++) {
        struct fault_plan plan = {.seed = seed, .cut_at_write = 2, .unsynced = FAULT_REORDER};
        struct device *device;

        teardown();
        setup();
        device = open_fault(&plan);
        ck_assert_int_eq(put(device, 0, 1, 1), 0);
        ck_assert_int_eq(put(device, 0, 1, 2), -EIO);
        device_close(device);
        seen |= 1u << get(ram, 0);
    }
    ck_assert_uint_eq(seen, 7);
}
END_TEST

START_TEST(test_cut_tears) {
    unsigned lengths = 0;

    for (uint64_t seed = 0; seed < 64; seed++) {
        struct fault_plan plan = {.seed = seed, .cut_at_write = 3, .tear = true};
        int stored = 0;

        teardown();
        setup();
        write_until_cut(&plan, 4);
        ck_assert_int_eq(get(ram, 16), 2);
        while (get(ram, 32 + (unsigned)stored) == 3)
            stored++;
        for (int i = stored; i < 4; i++)
            ck_assert_int_eq(get(ram, 32 + (unsigned)i), 0);
        lengths |= 1u << stored;
    }
    ck_assert_uint_eq(lengths, 15);
}
END_TEST

START_TEST(test_torn_part_is_garbage) {
    struct fault_plan plan = {.seed = 5, .cut_at_write = 3, .tear = true, .garbage = true};
    unsigned stored = 0;

    write_until_cut(&plan, 4);
    while (get(ram, 32 + stored) == 3)
        stored++;
    ck_assert_uint_lt(stored, 4);
    ck_assert_int_eq(get(ram, 32 + stored), -1);
    for (unsigned i = stored + 1; i < 4; i++)
        ck_assert_int_eq(get(ram, 32 + i), 0);
}
END_TEST

START_TEST(test_one_call_fails) {
    struct device *device = open_fault(&(struct fault_plan){.fail_call = 2});

    ck_assert_int_eq(put(device, 0, 1, 1), 0);
    ck_assert_int_eq(device_flush(device), -EIO);
    ck_assert_int_eq(put(device, 1, 1, 2), 0);
    ck_assert_int_eq(device_flush(device), 0);
    ck_assert_uint_eq(device_fault_calls(device), 4);
    ck_assert_uint_eq(device_fault_failures(device), 1);
    device_close(device);
}
END_TEST

START_TEST(test_calls_fail_from_then_on) {
    struct fault_plan plan = {.fail_call = 2, .fail_onwards = true, .error = -ETIMEDOUT};
    struct device *device = open_fault(&plan);

    ck_assert_int_eq(put(device, 0, 1, 1), 0);
    ck_assert_int_eq(put(device, 1, 1, 1), -ETIMEDOUT);
    ck_assert_int_eq(device_flush(device), -ETIMEDOUT);
    ck_assert_int_eq(device_zero(device, 0, SECTOR), -ETIMEDOUT);
    device_close(device);
    ck_assert_int_eq(get(ram, 1), 0);
}
END_TEST

START_TEST(test_error_shows_late) {
    struct device *device = open_fault(&(struct fault_plan){.fail_call = 1, .fail_late = true});
    unsigned char bytes[SECTOR] = {1};
    struct iovec vector = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct device_batch batch = {0};
    struct device_request request = {.operation = DEVICE_WRITE,
                                     .length = SECTOR,
                                     .vector = &vector,
                                     .vector_count = 1,
                                     .batch = &batch};

    ck_assert_int_eq(device_submit(device, &request), 0);
    ck_assert_int_eq(device_wait(device, &batch), -EIO);
    device_close(device);
}
END_TEST

START_TEST(test_areas_fail) {
    const struct fault_area areas[] = {{8 * SECTOR, SECTOR, .fails_read = true},
                                       {9 * SECTOR, SECTOR, .fails_write = true}};
    struct device *device = open_fault(&(struct fault_plan){.areas = areas, .area_count = 2});
    unsigned char bytes[4 * SECTOR];

    ck_assert_int_eq(put(device, 8, 1, 1), 0);
    ck_assert_int_eq(put(device, 8, 2, 1), -EIO);
    ck_assert_int_eq(get(device, 9), 0);
    ck_assert_int_eq(device_read(device, 6 * SECTOR, bytes, sizeof(bytes), PURPOSE_DATA), -EIO);
    ck_assert_int_eq(device_read(device, 4 * SECTOR, bytes, sizeof(bytes), PURPOSE_DATA), 0);
    device_close(device);
}
END_TEST

START_TEST(test_backing_store_is_full) {
    struct device *device = open_fault(&(struct fault_plan){.room = 2 * 4096});

    ck_assert_int_eq(put(device, 0, 1, 1), 0);
    ck_assert_int_eq(put(device, 7, 2, 1), 0);
    ck_assert_int_eq(put(device, 16, 1, 1), -ENOSPC);
    ck_assert_int_eq(put(device, 15, 1, 1), 0);
    device_close(device);
}
END_TEST

START_TEST(test_bits_flip_and_requests_are_slow) {
    struct fault_plan plan = {
        .seed = 1, .flips_per_million = 500000, .slow_per_million = 500000, .slow_ns = NS_PER_MS};
    struct device *device = open_fault(&plan);
    unsigned flipped = 0;

    for (unsigned i = 0; i < 100; i++)
        flipped += get(device, 0) != 0;
    ck_assert_uint_gt(flipped, 20);
    ck_assert_uint_lt(flipped, 80);
    ck_assert_int_gt(clock_now(&test_clock), 20 * NS_PER_MS);
    ck_assert_int_lt(clock_now(&test_clock), 80 * NS_PER_MS);
    device_close(device);
    ck_assert_int_eq(get(ram, 0), 0);
}
END_TEST

START_TEST(test_chance_is_the_seed) {
    unsigned failed[2] = {0};

    for (int run = 0; run < 2; run++) {
        struct device *device =
            open_fault(&(struct fault_plan){.seed = 7, .fail_per_million = {0, 300000}});

        for (unsigned i = 0; i < 30; i++)
            failed[run] |= (unsigned)(put(device, i, 1, 1) != 0) << i;
        device_close(device);
    }
    ck_assert_uint_ne(failed[0], 0);
    ck_assert_uint_eq(failed[0], failed[1]);
}
END_TEST

/* --- recordings ------------------------------------------------------------------------------- */

START_TEST(test_recording_replays) {
    struct write_log log = {0};
    struct device *borrowed, *recorder, *fork;

    ck_assert_int_eq(put(ram, 0, 4, 9), 0);
    ck_assert_int_eq(device_open_fork(ram, &fork), 0);
    ck_assert_int_eq(device_open_borrowed(fork, &borrowed), 0);
    ck_assert_int_eq(device_open_record(borrowed, &log, &recorder), 0);
    ck_assert_int_eq(put(recorder, 1, 1, 1), 0);
    ck_assert_int_eq(device_flush(recorder), 0);
    ck_assert_int_eq(write_log_mark(&log, 42), 0);
    ck_assert_int_eq(put(recorder, 1, 2, 2), 0);
    ck_assert_int_eq(device_zero(recorder, 3 * SECTOR, SECTOR), 0);
    ck_assert_int_eq(get(recorder, 1), 2);
    device_close(recorder);

    ck_assert_uint_eq(log.count, 5);
    ck_assert_int_eq(log.records[1].kind, RECORD_FLUSH);
    ck_assert_int_eq(log.records[2].kind, RECORD_MARK);
    ck_assert_uint_eq(log.records[2].offset, 42);
    device_fork_reset(fork);
    ck_assert_int_eq(get(fork, 1), 9);
    for (size_t i = 0; i < log.count; i++)
        if (log.records[i].kind == RECORD_WRITE)
            ck_assert_int_eq(write_log_apply(&log, &log.records[i], log.records[i].length, fork),
                             0);
    ck_assert_int_eq(get(fork, 0), 9);
    ck_assert_int_eq(get(fork, 1), 2);
    ck_assert_int_eq(get(fork, 2), 2);
    ck_assert_int_eq(get(fork, 3), 0);
    device_close(fork);
    write_log_free(&log);
}
END_TEST

START_TEST(test_failed_write_is_not_recorded) {
    struct write_log log = {0};
    struct device *recorder;

    ck_assert_int_eq(
        device_open_record(open_fault(&(struct fault_plan){.fail_call = 1}), &log, &recorder), 0);
    ck_assert_int_eq(put(recorder, 1, 1, 1), -EIO);
    ck_assert_uint_eq(log.count, 0);
    ck_assert_int_eq(put(recorder, 1, 1, 1), 0);
    ck_assert_uint_eq(log.count, 1);
    device_close(recorder);
    write_log_free(&log);
}
END_TEST

/* --- forks ------------------------------------------------------------------------------------ */

/* Random writes to a fork of a fork, against plain arrays. */
START_TEST(test_forks_are_copies) {
    static unsigned char model[3][SIZE], bytes[SIZE];
    struct random random = {fixture_seed("fault")};
    struct device *devices[3] = {ram};

    for (unsigned level = 1; level < 3; level++)
        ck_assert_int_eq(device_open_fork(devices[level - 1], &devices[level]), 0);
    for (unsigned round = 0; round < 200; round++) {
        unsigned level = random_below(&random, 3);
        uint32_t length = (1 + random_below(&random, 40)) * SECTOR;
        uint64_t offset = random_below(&random, (SIZE - length) / SECTOR + 1) * (uint64_t)SECTOR;

        for (unsigned above = level + 1; above < 3; above++)
            device_fork_reset(devices[above]);
        memset(model[level] + offset, (int)round, length);
        ck_assert_int_eq(
            device_write(devices[level], offset, model[level] + offset, length, PURPOSE_DATA), 0);
        for (unsigned above = level + 1; above < 3; above++)
            memcpy(model[above], model[level], SIZE);
        level = random_below(&random, 3);
        ck_assert_int_eq(device_read(devices[level], 0, bytes, SIZE, PURPOSE_DATA), 0);
        ck_assert_mem_eq(bytes, model[level], SIZE);
    }
    device_close(devices[2]);
    device_close(devices[1]);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("fault");

    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, test_cut_keeps);
    tcase_add_test(cases, test_cut_drops_what_is_not_flushed);
    tcase_add_test(cases, test_cut_reorders);
    tcase_add_test(cases, test_cut_reorders_one_place);
    tcase_add_test(cases, test_cut_tears);
    tcase_add_test(cases, test_torn_part_is_garbage);
    tcase_add_test(cases, test_one_call_fails);
    tcase_add_test(cases, test_calls_fail_from_then_on);
    tcase_add_test(cases, test_error_shows_late);
    tcase_add_test(cases, test_areas_fail);
    tcase_add_test(cases, test_backing_store_is_full);
    tcase_add_test(cases, test_bits_flip_and_requests_are_slow);
    tcase_add_test(cases, test_chance_is_the_seed);
    tcase_add_test(cases, test_recording_replays);
    tcase_add_test(cases, test_failed_write_is_not_recorded);
    tcase_add_test(cases, test_forks_are_copies);
    Suite *suite = suite_create("fault");
    suite_add_tcase(suite, cases);
    return fixture_run(suite);
}
