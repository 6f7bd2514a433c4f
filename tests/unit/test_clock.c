/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: fs/clock.c, and the machine presets that feed it.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/clock.h"
#include "fs/log.h"
#include "fs/machine.h"

START_TEST(virtual_time_stands_still_until_charged) {
    struct machine machine = {.cost_ns = {[COST_SYSCALL] = 300, [COST_PAGE] = 70}};
    struct clock clock;
    clock_init_virtual(&clock, &machine);
    ck_assert_int_eq(clock_now(&clock), 0);
    ck_assert_int_eq(clock_now(&clock), 0);
    clock_charge(&clock, COST_SYSCALL, 2);
    clock_charge(&clock, COST_PAGE, 10);
    ck_assert_int_eq(clock.now_ns, 1300);
    clock_charge_ns(&clock, 700);
    ck_assert_int_eq(clock.now_ns, 2000);
    ck_assert_int_eq(clock.cpu_ns, 2000);
}
END_TEST

START_TEST(waiting_never_goes_back_and_is_not_cpu_time) {
    struct clock clock;
    clock_init_virtual(&clock, NULL);
    clock_wait_until(&clock, 500);
    clock_wait_until(&clock, 400);
    clock_charge(&clock, COST_SYSCALL, 5); /* no machine: free */
    ck_assert_int_eq(clock.now_ns, 500);
    ck_assert_int_eq(clock.cpu_ns, 0);
}
END_TEST

START_TEST(calendar_starts_in_2002_and_carries) {
    struct clock clock;
    clock_init_virtual(&clock, NULL);
    ck_assert_int_eq(clock_calendar(&clock).seconds, 1036454400);
    clock_wait_until(&clock, 3 * NS_PER_SEC + 5);
    ck_assert_int_eq(clock_calendar(&clock).seconds, 1036454403);
    ck_assert_uint_eq(clock_calendar(&clock).nanoseconds, 5);
    clock.epoch = (struct timestamp){.seconds = -10, .nanoseconds = 999999999};
    ck_assert_int_eq(clock_calendar(&clock).seconds, -6);
    ck_assert_uint_eq(clock_calendar(&clock).nanoseconds, 4);
}
END_TEST

START_TEST(wall_time_runs_by_itself_and_costs_nothing) {
    struct machine machine = {.cost_ns = {[COST_SYSCALL] = NS_PER_SEC}};
    struct clock clock;
    clock_init_wall(&clock);
    clock.machine = &machine;
    int64_t start = clock_now(&clock);
    clock_charge(&clock, COST_SYSCALL, 1000);
    clock_charge_ns(&clock, NS_PER_SEC);
    clock_wait_until(&clock, start + NS_PER_SEC);
    ck_assert_int_lt(clock_now(&clock) - start, NS_PER_SEC);
    ck_assert_int_ge(clock_now(&clock), start);
    ck_assert_int_gt(clock_calendar(&clock).seconds, 1600000000);
}
END_TEST

static int visit_machine(void *context, const struct machine *machine) {
    unsigned *count = context;
    for (int i = 0; i < COST_COUNT; i++)
        ck_assert_msg(machine->cost_ns[i] > 0, "%s: cost %d is free", machine->name, i);
    ck_assert_uint_gt(machine->memory_bytes, 0);
    ck_assert_uint_lt(machine->dirty_background_percent, machine->dirty_percent);
    ck_assert_uint_le(machine->dirty_percent, 100);
    ck_assert_int_gt(machine->dirty_expire_ns, machine->writeback_interval_ns);
    ck_assert_uint_gt(machine->readahead_bytes, 0);
    (*count)++;
    return 0;
}

START_TEST(every_machine_preset_is_complete) {
    unsigned count = 0;
    ck_assert_int_eq(machine_each_preset(visit_machine, &count), 0);
    ck_assert_uint_ge(count, 5);
}
END_TEST

START_TEST(machines_are_found_by_name) {
    struct machine machine;
    ck_assert_int_eq(machine_preset("laptop-2002", &machine, NULL), 0);
    ck_assert_str_eq(machine.name, "laptop-2002");
    ck_assert_uint_eq(machine.memory_bytes, 192u << 20);
    ck_assert_uint_eq(machine.dirty_background_percent, 10);
    ck_assert_uint_eq(machine.dirty_percent, 40);
    ck_assert_int_eq(machine.dirty_expire_ns, 30 * NS_PER_SEC);
    ck_assert_int_eq(machine.writeback_interval_ns, 5 * NS_PER_SEC);
    ck_assert_uint_eq(machine.readahead_bytes, 128u << 10);
    ck_assert_int_eq(machine_preset("athlon-700", &machine, NULL), 0);
    ck_assert_uint_eq(machine.memory_bytes, 384u << 20);
}
END_TEST

static void keep_message(void *context, enum log_level level, const char *text) {
    (void)level;
    strncpy(context, text, 255);
}

START_TEST(an_unknown_machine_is_named_with_the_known_ones) {
    char message[256] = "";
    struct log log = {.emit = keep_message, .context = message, .threshold = LOG_LEVEL_INFO};
    struct machine machine;
    ck_assert_int_eq(machine_preset("cray-1", &machine, &log), -ENOENT);
    ck_assert_ptr_nonnull(strstr(message, "cray-1"));
    ck_assert_ptr_nonnull(strstr(message, "laptop-2002"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("clock");
    TCase *tests = tcase_create("clock");
    tcase_add_test(tests, virtual_time_stands_still_until_charged);
    tcase_add_test(tests, waiting_never_goes_back_and_is_not_cpu_time);
    tcase_add_test(tests, calendar_starts_in_2002_and_carries);
    tcase_add_test(tests, wall_time_runs_by_itself_and_costs_nothing);
    tcase_add_test(tests, every_machine_preset_is_complete);
    tcase_add_test(tests, machines_are_found_by_name);
    tcase_add_test(tests, an_unknown_machine_is_named_with_the_known_ones);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
