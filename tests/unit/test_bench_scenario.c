/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * bench/scenario and the figures that reports derive: what a scenario file may say, that each
 * mistake is told with file and line, and ratios and order against published figures.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report.h"

static char message[1024];

static void keep(void *context, enum log_level level, const char *text) {
    if (message[0] == '\0')
        strncpy(message, text, sizeof(message) - 1);
}

static const struct log sink = {.emit = keep, .threshold = LOG_LEVEL_INFO};
static struct scenario *scenario;

static void set_up(void) {
    message[0] = '\0';
    scenario = calloc(1, sizeof(*scenario));
    ck_assert_ptr_nonnull(scenario);
}

static void tear_down(void) {
    scenario_free(scenario);
    free(scenario);
}

#define HEAD                                                                                       \
    "[scenario]\n"                                                                                 \
    "title = a title\n"                                                                            \
    "disk = d\n"                                                                                   \
    "machine = m\n"                                                                                \
    "memory = 10M\n"                                                                               \
    "volume_size = 1G\n"                                                                           \
    "[workload tree]\n"                                                                            \
    "files = 2000\n"
#define ROWS                                                                                       \
    "[row one]\n"                                                                                  \
    "type = ext2\n"                                                                                \
    "label = the first\n"                                                                          \
    "published.unpack = 86.6\n"                                                                    \
    "published.delete = 5.25\n"                                                                    \
    "[row two]\n"                                                                                  \
    "type = nosuch\n"                                                                              \
    "published.unpack = 43.3\n"                                                                    \
    "published.delete = < 2\n"
#define RATE                                                                                       \
    "[row three]\n"                                                                                \
    "type = ext2\n"                                                                                \
    "workload = another\n"                                                                         \
    "published.write = 12.5 MB/s\n"

START_TEST(test_rate_of_another_workload) {
    ck_assert_int_eq(scenario_parse(HEAD ROWS RATE, "mine.ini", scenario, &sink), 0);
    const struct published *published = scenario_published(&scenario->rows[2], "write");
    ck_assert(published->rate);
    ck_assert_int_eq(published->ns, INT64_C(80000000));
    ck_assert(scenario_emulates(scenario, &scenario->rows[0]));
    ck_assert(!scenario_emulates(scenario, &scenario->rows[1]));
    ck_assert(!scenario_emulates(scenario, &scenario->rows[2]));
}
END_TEST

START_TEST(test_whole) {
    ck_assert_int_eq(scenario_parse(HEAD ROWS, "x/mine.ini", scenario, &sink), 0);
    ck_assert_str_eq(scenario->name, "mine");
    ck_assert_str_eq(scenario->title, "a title");
    ck_assert_uint_eq(scenario->memory, 10u << 20);
    ck_assert_int_eq(options_number(&scenario->parameters, "files"), 2000);
    ck_assert_int_eq(options_number(&scenario->parameters, "batch"), 500);
    ck_assert_uint_eq(scenario->row_count, 2);
    ck_assert_str_eq(scenario->rows[0].label, "the first");
    ck_assert_str_eq(scenario->rows[1].label, "two");
    const struct published *published = scenario_published(&scenario->rows[0], "unpack");
    ck_assert_int_eq(published->ns, INT64_C(86600000000));
    ck_assert(!published->below);
    published = scenario_published(&scenario->rows[1], "delete");
    ck_assert_int_eq(published->ns, INT64_C(2000000000));
    ck_assert(published->below);
    ck_assert_ptr_null(scenario_published(&scenario->rows[0], "nothing"));
}
END_TEST

static const struct {
    const char *text, *place, *word;
} mistakes[] = {
    {"[scenario]\nnosuch = 1\n", "file.ini:2:", "nosuch"},
    {"[scenario]\n\nmemory = much\n", "file.ini:3:", "much"},
    {"[scenario]\ndriver = car\n", "file.ini:2:", "car"},
    {"[scenario]\nshow = all\n", "file.ini:2:", "all"},
    {"[row a]\npublished.b = 0 MB/s\n", "file.ini:2:", "0 MB/s"},
    {"[row a]\npublished.b = 1 GB/s\n", "file.ini:2:", "1 GB/s"},
    {"[scenario]\nrepeat = 0\n", "file.ini:2:", "repeat"},
    {"[workload none]\nx = 1\n", "file.ini:2:", "none"},
    {"[workload tree]\nfiles = few\n", "file.ini:2:", "few"},
    {"[workload tree]\nfiles = 0\n", "file.ini:2:", "files"},
    {"[workload tree]\nnosuch = 1\n", "file.ini:2:", "nosuch"},
    {"[workload tree]\nfiles = 2000\n[workload create]\ncount = 1\n", "file.ini:4:", "create"},
    {"[row a]\npublished.unpack = soon\n", "file.ini:2:", "soon"},
    {"[row a]\npublished.unpack = <\n", "file.ini:2:", "unpack"},
    {"[row a]\nnosuch = 1\n", "file.ini:2:", "nosuch"},
    {"[row a]\ntype = a_type_of_far_too_long_a_name\n", "file.ini:2:", "type"},
    {"[else]\nx = 1\n", "file.ini:2:", "else"},
    {"; a comment\nno equals sign\n", "file.ini:2:", "expected"},
    {HEAD, "file.ini", "[row NAME]"},
    {"[scenario]\nvolume_size=1G\ndriver=mount\n[row a]\ntype = ext2\n", "file.ini", "[workload"},
};

START_TEST(test_mistakes) {
    ck_assert_int_eq(scenario_parse(mistakes[_i].text, "file.ini", scenario, &sink), -EINVAL);
    ck_assert_msg(strncmp(message, mistakes[_i].place, strlen(mistakes[_i].place)) == 0,
                  "\"%s\" does not start with %s", message, mistakes[_i].place);
    ck_assert_msg(strstr(message, mistakes[_i].word), "\"%s\" does not say %s", message,
                  mistakes[_i].word);
}
END_TEST

static void parse_builtin(void *context, const char *name, const char *text) {
    int *count = context;

    ck_assert_int_eq(scenario_load(name, scenario, &sink), 0);
    ck_assert_str_eq(scenario->name, name);
    scenario_free(scenario);
    ++*count;
}

START_TEST(test_builtins) {
    int count = 0;

    scenario_each(parse_builtin, &count);
    ck_assert_int_ge(count, 3);
    ck_assert_int_eq(scenario_load("nosuch", scenario, &sink), -ENOENT);
    ck_assert_int_eq(scenario_load("/nosuch/file.ini", scenario, &sink), -ENOENT);
}
END_TEST

START_TEST(test_select) {
    ck_assert_int_eq(scenario_parse(HEAD ROWS, "x", scenario, &sink), 0);
    ck_assert_int_eq(scenario_select(scenario, "two,ext2:dir_placement=old:alloc=goal", &sink), 0);
    ck_assert_uint_eq(scenario->row_count, 2);
    ck_assert_str_eq(scenario->rows[0].id, "two");
    ck_assert_str_eq(scenario->rows[1].type, "ext2");
    ck_assert_str_eq(scenario->rows[1].mount, "dir_placement=old,alloc=goal");
    ck_assert_int_eq(scenario_select(scenario, "three", &sink), -ENOENT);
}
END_TEST

START_TEST(test_scale) {
    ck_assert_int_eq(scenario_parse(HEAD ROWS, "x", scenario, &sink), 0);
    ck_assert_int_eq(scenario_scale(scenario, 500), 0);
    ck_assert_int_eq(options_number(&scenario->parameters, "files"), 1000);
    ck_assert_int_eq(options_number(&scenario->parameters, "bytes"), 96000000);
    ck_assert_uint_eq(scenario->memory, 10485760u / 1000 * 500);
    ck_assert_int_eq(scenario_scale(scenario, 1), 0);
    ck_assert_int_eq(options_number(&scenario->parameters, "files"), 1);
}
END_TEST

START_TEST(test_ratios_and_order) {
    struct row_result rows[2] = {0};
    struct report report = {.scenario = scenario, .rows = rows, .row_count = 2};

    ck_assert_int_eq(scenario_parse(HEAD ROWS, "x", scenario, &sink), 0);
    for (unsigned i = 0; i < 2; i++) {
        rows[i].row = &scenario->rows[i];
        rows[i].steps[0] = (struct step){.name = "unpack", .timed = true};
        rows[i].step_count = 1;
    }
    rows[0].steps[0].ns = 3000;
    rows[1].steps[0].ns = 1000;
    ck_assert_int_eq(report_ratio(&report, 1, "unpack"), 333);
    ck_assert_int_eq(report_published_ratio(&report, 1, "unpack"), 500);
    ck_assert_int_eq(report_published_ratio(&report, 1, "delete"), 381);
    ck_assert_int_eq(report_order(&report, "unpack"), ORDER_AGREES);
    ck_assert_int_eq(report_order(&report, "delete"), ORDER_NONE);
    rows[1].steps[0].ns = 4000;
    ck_assert_int_eq(report_order(&report, "unpack"), ORDER_DIFFERS);
    rows[1].status = ROW_NOT_EMULATED;
    ck_assert_int_eq(report_ratio(&report, 1, "unpack"), 0);
    ck_assert_int_eq(report_order(&report, "unpack"), ORDER_NONE);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("bench_scenario");
    TCase *tcase = tcase_create("scenario");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, test_whole);
    tcase_add_test(tcase, test_rate_of_another_workload);
    tcase_add_loop_test(tcase, test_mistakes, 0, sizeof(mistakes) / sizeof(*mistakes));
    tcase_add_test(tcase, test_builtins);
    tcase_add_test(tcase, test_select);
    tcase_add_test(tcase, test_scale);
    tcase_add_test(tcase, test_ratios_and_order);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
