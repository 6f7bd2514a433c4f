/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * fs/options: every kind, defaults, negation, letters, and what is refused with a sentence.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/options.h"

static const struct option_choice colours[] = {{"red", "warm", 7}, {"blue", "cold", 9}, {0}};

static const struct option_spec table[] = {
    {.name = "colour",
     .kind = OPTION_CHOICE,
     .scope = OPTION_MOUNT,
     .default_text = "red",
     .choices = colours},
    {.name = "count",
     .letter = 'c',
     .kind = OPTION_NUMBER,
     .scope = OPTION_MKFS | OPTION_MOUNT,
     .default_text = "3",
     .minimum = 1,
     .maximum = 10},
    {.name = "room", .kind = OPTION_SIZE, .scope = OPTION_MOUNT},
    {.name = "discard", .kind = OPTION_BOOL, .scope = OPTION_MOUNT, .default_text = "on"},
    {.name = "label", .kind = OPTION_TEXT, .scope = OPTION_MKFS},
    {0},
};

static char last_message[1024];

static void keep(void *context, enum log_level level, const char *text) {
    strncpy(last_message, text, sizeof(last_message) - 1);
}

static const struct log sink = {.emit = keep, .threshold = LOG_LEVEL_INFO};
static struct options options;

static void set_up(void) {
    last_message[0] = '\0';
    ck_assert_int_eq(options_init(&options, table, OPTION_MOUNT, &sink), 0);
}

static void tear_down(void) {
    options_free(&options);
}

START_TEST(test_defaults) {
    ck_assert_int_eq(options_number(&options, "colour"), 7);
    ck_assert_int_eq(options_number(&options, "count"), 3);
    ck_assert_int_eq(options_number(&options, "discard"), 1);
    ck_assert_ptr_null(options_text(&options, "room"));
    ck_assert(!options_given(&options, "count"));
}
END_TEST

START_TEST(test_values) {
    ck_assert_int_eq(options_parse(&options, "colour=blue,count=0x8,room=3M,nodiscard"), 0);
    ck_assert_int_eq(options_number(&options, "colour"), 9);
    ck_assert_int_eq(options_number(&options, "count"), 8);
    ck_assert_int_eq(options_number(&options, "room"), 3 << 20);
    ck_assert_int_eq(options_number(&options, "discard"), 0);
    ck_assert(options_given(&options, "count"));
    ck_assert_int_eq(options_parse(&options, "discard=on,count=2"), 0);
    ck_assert_int_eq(options_number(&options, "discard"), 1);
    ck_assert_int_eq(options_number(&options, "count"), 2);
    ck_assert_int_eq(options_set_letter(&options, 'c', "5"), 0);
    ck_assert_int_eq(options_number(&options, "count"), 5);
    ck_assert_int_eq(options_set_letter(&options, 'z', "5"), -ENOENT);
    ck_assert_int_eq(options_parse(&options, NULL), 0);
}
END_TEST

START_TEST(test_refused) {
    static const struct {
        const char *text, *sentence;
    } wrong[] = {
        {"color=red", "unknown option \"color\""},
        {"colour=green", "must be one of red blue"},
        {"count=11", "must be from 1 to 10"},
        {"count=many", "must be a whole number"},
        {"count", "needs a value"},
        {"room=3X", "must be a size"},
        {"room=99999999999999999999", "must be a size"},
        {"discard=maybe", "must be on or off"},
        {"nocolour", "unknown option \"nocolour\""},
        {"label=x", "unknown option \"label\""}, /* belongs to mkfs */
    };

    const char *text = wrong[_i].text;
    ck_assert_int_eq(options_parse(&options, text), -EINVAL);
    ck_assert_msg(strstr(last_message, wrong[_i].sentence), "%s: \"%s\"", text, last_message);
}
END_TEST

START_TEST(test_sizes) {
    uint64_t bytes;

    ck_assert_int_eq(size_parse("512", &bytes), 0);
    ck_assert_uint_eq(bytes, 512);
    ck_assert_int_eq(size_parse("4g", &bytes), 0);
    ck_assert_uint_eq(bytes, UINT64_C(4) << 30);
    ck_assert_int_eq(size_parse("2TiB", &bytes), 0);
    ck_assert_uint_eq(bytes, UINT64_C(2) << 40);
    ck_assert_int_eq(size_parse("", &bytes), -EINVAL);
    ck_assert_int_eq(size_parse("-1", &bytes), -EINVAL);
    ck_assert_int_eq(size_parse("4GB", &bytes), -EINVAL);
    ck_assert_int_eq(size_parse("17000000T", &bytes), -ERANGE);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("options");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, test_defaults);
    tcase_add_test(cases, test_values);
    tcase_add_loop_test(cases, test_refused, 0, 10);
    tcase_add_test(cases, test_sizes);
    Suite *suite = suite_create("options");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
