/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests of fs/pool.c: the budget, the two lists, and that busy frames stay.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "fs/pool.h"

#define FRAME  4096u
#define BUDGET (16u * FRAME)

struct owner {
    struct frame frame; /* first */
    bool busy;
    bool present;
};

static struct pool pool;
static struct owner owners[64];

static bool owner_evict(struct frame *frame) {
    struct owner *owner = (struct owner *)frame;

    if (owner->busy)
        return false;
    pool_detach(&pool, frame);
    owner->present = false;
    return true;
}

static void attach(unsigned index, uint32_t size) {
    ck_assert_int_eq(pool_attach(&pool, &owners[index].frame, size, owner_evict), 0);
    memset(owners[index].frame.data, (int)index, size);
    owners[index].present = true;
}

static void setup(void) {
    memset(owners, 0, sizeof(owners));
    ck_assert_int_eq(pool_init(&pool, BUDGET), 0);
    pool_lock(&pool);
}

static void teardown(void) {
    for (unsigned i = 0; i < 64; i++)
        owners[i].busy = false;
    pool_shrink(&pool, 0);
    pool_unlock(&pool);
    pool_destroy(&pool);
}

START_TEST(test_budget_holds) {
    for (unsigned i = 0; i < 64; i++) {
        attach(i, FRAME);
        ck_assert_uint_le(pool.used_bytes, BUDGET);
    }
    /* Used once each: the last sixteen are left. */
    for (unsigned i = 0; i < 64; i++)
        ck_assert_int_eq(owners[i].present, i >= 48);
}
END_TEST

START_TEST(test_second_use_survives_a_stream) {
    attach(0, FRAME);
    pool_touch(&pool, &owners[0].frame);
    attach(1, FRAME);
    pool_touch(&pool, &owners[1].frame);
    pool_touch(&pool, &owners[1].frame);
    ck_assert(!owners[0].frame.active);
    ck_assert(owners[1].frame.active);
    ck_assert_uint_eq(pool.active_bytes, FRAME);
    for (unsigned i = 2; i < 64; i++)
        attach(i, FRAME);
    ck_assert(!owners[0].present);
    ck_assert(owners[1].present);
    for (uint32_t i = 0; i < FRAME; i++)
        ck_assert_int_eq(((char *)owners[1].frame.data)[i], 1);
}
END_TEST

START_TEST(test_active_list_is_trimmed) {
    for (unsigned i = 0; i < 16; i++) {
        attach(i, FRAME);
        pool_touch(&pool, &owners[i].frame);
        pool_touch(&pool, &owners[i].frame);
    }
    ck_assert_uint_eq(pool.active_bytes, BUDGET);
    attach(16, FRAME);
    ck_assert_uint_le(pool.active_bytes, BUDGET / 3 * 2);
    ck_assert(!owners[0].present);
    ck_assert(owners[15].present);
}
END_TEST

START_TEST(test_busy_frames_stay_over_budget) {
    for (unsigned i = 0; i < 32; i++) {
        owners[i].busy = true;
        attach(i, FRAME);
    }
    ck_assert_uint_eq(pool.used_bytes, 32 * FRAME);
    pool_shrink(&pool, 0);
    ck_assert_uint_eq(pool.used_bytes, 32 * FRAME);
    for (unsigned i = 0; i < 32; i++)
        owners[i].busy = i % 2;
    pool_shrink(&pool, 0);
    ck_assert_uint_eq(pool.used_bytes, 16 * FRAME);
    for (unsigned i = 0; i < 32; i++)
        ck_assert_int_eq(owners[i].present, i % 2);
}
END_TEST

START_TEST(test_dirty_tail_does_not_hide_clean_frames) {
    for (unsigned i = 0; i < 12; i++) {
        owners[i].busy = true;
        attach(i, FRAME);
    }
    for (unsigned i = 12; i < 40; i++) {
        attach(i, FRAME);
        ck_assert_uint_le(pool.used_bytes, BUDGET);
    }
    for (unsigned i = 0; i < 12; i++)
        ck_assert(owners[i].present);
}
END_TEST

START_TEST(test_sizes_share_the_budget) {
    for (unsigned i = 0; i < 16; i++)
        attach(i, FRAME);
    attach(16, 65536);
    ck_assert_uint_le(pool.used_bytes, BUDGET);
    pool_shrink(&pool, 0);
    attach(0, 512);
    attach(1, 1024);
    ck_assert_uint_eq(pool.used_bytes, 1536);
}
END_TEST

START_TEST(test_memory_is_used_again) {
    attach(0, FRAME);
    const void *data = owners[0].frame.data;
    pool_shrink(&pool, 0);
    attach(1, FRAME);
    ck_assert_ptr_eq(owners[1].frame.data, data);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pool");
    TCase *tcase = tcase_create("pool");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_budget_holds);
    tcase_add_test(tcase, test_second_use_survives_a_stream);
    tcase_add_test(tcase, test_active_list_is_trimmed);
    tcase_add_test(tcase, test_busy_frames_stay_over_budget);
    tcase_add_test(tcase, test_dirty_tail_does_not_hide_clean_frames);
    tcase_add_test(tcase, test_sizes_share_the_budget);
    tcase_add_test(tcase, test_memory_is_used_again);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
