/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * bench/tree and the workloads over both drivers: the same tree goes in, comes out and is deleted,
 * on a volume in this process and in a directory of the host.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/workload.h"

#define FILES 1000u
#define BYTES UINT64_C(3000000)

static struct source *source;
static struct options parameters;
static struct workload_run *run;

static void set_up(void) {
    const struct workload *workload = workload_find("tree");

    ck_assert_ptr_nonnull(workload);
    ck_assert_int_eq(source_synthetic(FILES, BYTES, 1, NULL, &source), 0);
    ck_assert_int_eq(options_init(&parameters, workload->parameters, WORKLOAD_OPTIONS, NULL), 0);
    ck_assert_int_eq(options_set(&parameters, "batch", "7"), 0);
    run = calloc(1, sizeof(*run));
    run->source = source;
    run->parameters = &parameters;
}

static void tear_down(void) {
    free(run);
    options_free(&parameters);
    source_close(source);
}

static int count_name(void *context, const char *name, uint32_t type) {
    ++*(int *)context;
    return 0;
}

static int names_in_root(struct driver *driver) {
    struct driver_node root;
    int count = 0;

    ck_assert_int_eq(driver->operations->root(driver, &root), 0);
    ck_assert_int_eq(driver->operations->readdir(driver, &root, count_name, &count), 0);
    driver->operations->leave(driver, &root);
    return count;
}

static void check_workload(struct driver *driver) {
    static const char *const names[] = {"unpack",        "reboot", "cold traversal",
                                        "hot traversal", "delete", "sync"};

    run->driver = driver;
    ck_assert_int_eq(workload_find("tree")->run(run), 0);
    ck_assert_uint_eq(run->count, 6);
    for (unsigned i = 0; i < 6; i++)
        ck_assert_str_eq(run->steps[i].name, names[i]);
    for (unsigned i = 2; i < 4; i++) {
        ck_assert_uint_eq(run->steps[i].files, FILES);
        ck_assert_uint_eq(run->steps[i].bytes, source->bytes);
    }
    ck_assert_uint_eq(run->steps[4].files, FILES);
    ck_assert_int_eq(names_in_root(driver), 0);
}

/* The host's caches are none of a test's business. */
static int keep_caches(void *context) {
    return 0;
}

START_TEST(test_posix) {
    char path[] = "/tmp/test_bench_tree.XXXXXX";
    struct driver_posix driver;

    ck_assert_ptr_nonnull(mkdtemp(path));
    driver_posix_init(&driver, path, keep_caches, NULL);
    check_workload(&driver.driver);
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

static struct volume *open_memory(struct clock *clock, const struct machine *machine) {
    struct volume_config config = {.type = "memory", .clock = clock, .machine = machine};
    struct volume *volume;

    ck_assert_int_eq(volume_open(&config, &volume), 0);
    return volume;
}

START_TEST(test_volume) {
    struct driver_volume driver;
    struct machine machine;
    struct clock clock;

    ck_assert_int_eq(machine_preset("laptop-2002", &machine, NULL), 0);
    clock_init_virtual(&clock, &machine);
    struct volume *volume = open_memory(&clock, &machine);
    driver_volume_init(&driver, volume);
    check_workload(&driver.driver);
    for (unsigned i = 0; i < run->count; i++) {
        ck_assert_int_le(run->steps[i].cpu_ns, run->steps[i].ns);
        if (run->steps[i].timed)
            ck_assert_int_gt(run->steps[i].cpu_ns, 0);
    }
    ck_assert_int_eq(volume_close(volume), 0);
}
END_TEST

/* What was unpacked is what the source holds, byte for byte. */
START_TEST(test_contents) {
    struct driver_volume driver;
    struct clock clock;

    clock_init_virtual(&clock, NULL);
    struct volume *volume = open_memory(&clock, NULL);
    driver_volume_init(&driver, volume);
    run->driver = &driver.driver;
    ck_assert_int_eq(step_begin(run, "unpack", true), 0);
    ck_assert_int_eq(tree_unpack(run, 1000), 0);
    for (uint32_t i = 0; i < source->count; i++) {
        const struct source_entry *entry = &source->entries[i];
        char path[SOURCE_PATH_MAX] = "", tail[SOURCE_PATH_MAX];
        static char buffer[1 << 20];
        struct inode *inode;
        const char *data;

        for (uint32_t at = i; at != SOURCE_ROOT; at = source->entries[at].parent) {
            snprintf(tail, sizeof(tail), "/%.255s%.2000s", source->entries[at].name, path);
            strcpy(path, tail);
        }
        ck_assert_int_eq(volume_resolve(volume, path, false, &inode), 0);
        ck_assert_uint_eq(inode->mode & S_IFMT, entry->mode & S_IFMT);
        ck_assert_int_eq(inode->mtime.seconds, entry->mtime.seconds);
        if (S_ISREG(entry->mode)) {
            ck_assert_uint_eq(inode->size, entry->size);
            size_t length = source_content(source, entry, 0, &data);
            ck_assert_uint_le(length, sizeof(buffer));
            ck_assert_int_eq(volume_read(inode, buffer, length, 0), (int64_t)length);
            ck_assert_mem_eq(buffer, data, length);
        }
        volume_put(inode, 1);
    }
    ck_assert_int_eq(volume_close(volume), 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("bench_tree");
    TCase *tcase = tcase_create("tree");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, test_posix);
    tcase_add_test(tcase, test_volume);
    tcase_add_test(tcase, test_contents);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
