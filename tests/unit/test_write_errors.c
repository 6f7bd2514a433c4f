/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: who is told of writes that failed when nobody was waiting, and how often.
 */
#include "fs/write_errors.h"

#include <errno.h>

#include "tests/unit/fixture.h"

START_TEST(test_each_asker_is_told_once) {
    struct write_errors errors = {0};

    write_errors_note(&errors, 12, -EIO);
    write_errors_note(&errors, 13, -ENOSPC);
    write_errors_note(&errors, 12, -ENOSPC); /* the first one counts */
    ck_assert_int_eq(write_errors_take(&errors, 14), 0);
    ck_assert_int_eq(write_errors_peek(&errors, 12), -EIO);
    ck_assert_int_eq(write_errors_take_volume(&errors), -EIO);
    ck_assert_int_eq(write_errors_take_volume(&errors), 0);
    ck_assert_int_eq(write_errors_take(&errors, 12), -EIO);
    ck_assert_int_eq(write_errors_take(&errors, 12), 0);
    ck_assert_int_eq(write_errors_take(&errors, 13), -ENOSPC);
    ck_assert_int_eq(write_errors_take(&errors, 13), 0);
    write_errors_free(&errors);
}
END_TEST

START_TEST(test_unknown_files_concern_anyone) {
    struct write_errors errors = {0};

    write_errors_note(&errors, 0, -EIO);
    ck_assert_int_eq(write_errors_take(&errors, 12), -EIO);
    ck_assert_int_eq(write_errors_take(&errors, 12), 0);
    ck_assert_int_eq(write_errors_take_volume(&errors), -EIO);
    write_errors_note(&errors, 0, -EIO);
    ck_assert_int_eq(write_errors_take_volume(&errors), -EIO);
    ck_assert_int_eq(write_errors_take(&errors, 12), 0);
    write_errors_free(&errors);
}
END_TEST

START_TEST(test_many_files) {
    struct write_errors errors = {0};

    for (uint64_t ino = 1; ino <= 100; ino++)
        write_errors_note(&errors, ino, ino % 2 ? -EIO : -ENOSPC);
    for (uint64_t ino = 100; ino > 0; ino--) {
        ck_assert_int_eq(write_errors_take(&errors, ino), ino % 2 ? -EIO : -ENOSPC);
        ck_assert_int_eq(write_errors_take(&errors, ino), 0);
    }
    write_errors_free(&errors);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("write errors");
    TCase *cases = tcase_create("write errors");

    tcase_add_test(cases, test_each_asker_is_told_once);
    tcase_add_test(cases, test_unknown_files_concern_anyone);
    tcase_add_test(cases, test_many_files);
    suite_add_tcase(suite, cases);
    return fixture_run(suite);
}
