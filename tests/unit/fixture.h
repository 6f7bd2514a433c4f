/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: a volume of any type on sparse memory, under a virtual clock without CPU costs or in wall
 * mode; the seed of randomised tests.
 */
#ifndef LAYOUTFS_TEST_FIXTURE_H
#define LAYOUTFS_TEST_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fs/volume.h"

/* Check tells the runner's process of every assertion that holds, for which it needs more time than
 * a test with millions of them: here they speak only when they fail. */
#define _mark_point(file, line) ((void)0) /* NOLINT(bugprone-reserved-identifier) */

/* Every type that the tests which take any layout run on. */
static const char *const fixture_types[] = {"memory", "ext2", "ext3", "ext4", "nilfs2", "reiser4"};
#define FIXTURE_TYPE_COUNT ((int)(sizeof(fixture_types) / sizeof(*fixture_types)))

struct fixture {
    struct clock clock;
    struct log log;
    struct volume *volume;
    struct inode *root;
};

/* A log never writes where it has written before, until it is cleaned: a small volume would be full
 * of what has long been overwritten. */
static inline uint64_t fixture_size(const char *type, uint64_t size) {
    uint64_t least = strcmp(type, "nilfs2") == 0 ? UINT64_C(1) << 30 : 0;
    return size > least ? size : least;
}

/* Formats `size` bytes as `type` (with mkfs options) and mounts it (with mount options). */
static inline void fixture_open(struct fixture *f, const char *type, uint64_t size,
                                const char *mkfs_options, const char *mount_options,
                                bool virtual_time) {
    const struct layout *layout;
    const struct layout_type *layout_type;
    struct device *device = NULL;

    memset(f, 0, sizeof(*f));
    if (virtual_time)
        clock_init_virtual(&f->clock, NULL);
    else
        clock_init_wall(&f->clock);
    f->log = log_to_stderr("test", LOG_LEVEL_WARNING);
    ck_assert_int_eq(layout_find(type, &layout, &layout_type), 0);
    if (!(layout->flags & LAYOUT_VOLATILE)) {
        struct options options;
        ck_assert_int_eq(device_open_ram(fixture_size(type, size), &f->clock, &f->log, &device), 0);
        ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, &f->log), 0);
        if (layout_type)
            ck_assert_int_eq(options_parse(&options, layout_type->mkfs_options), 0);
        ck_assert_int_eq(options_parse(&options, mkfs_options), 0);
        ck_assert_int_eq(layout_format(type, device, &options), 0);
        options_free(&options);
    }
    struct volume_config config = {.type = type,
                                   .device = device,
                                   .clock = &f->clock,
                                   .log = &f->log,
                                   .options = mount_options};
    ck_assert_int_eq(volume_open(&config, &f->volume), 0);
    ck_assert_int_eq(volume_root(f->volume, &f->root), 0);
}

static inline void fixture_close(struct fixture *f) {
    volume_put(f->root, 1);
    ck_assert_int_eq(volume_close(f->volume), 0);
}

/* The seed of a randomised test: LAYOUTFS_TEST_SEED, or new each run; printed so that a failure can
 * be replayed. */
static inline uint64_t fixture_seed(const char *test) {
    const char *given = getenv("LAYOUTFS_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 2654435761u;

    printf("%s: LAYOUTFS_TEST_SEED=%llu\n", test, (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t fixture_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* How many times more a randomised test shall do: LAYOUTFS_TEST_FACTOR, else 1. */
static inline unsigned fixture_factor(void) {
    const char *given = getenv("LAYOUTFS_TEST_FACTOR");

    return given && atoi(given) > 0 ? (unsigned)atoi(given) : 1;
}

/* What a long random test of `whole` rounds does of them in this build: under the sanitizers, where
 * each takes several times as long, a third. The plain build does them all, and both do others in
 * every run. */
static inline unsigned fixture_share(unsigned whole) {
#ifdef __SANITIZE_ADDRESS__
    return (whole + 2) / 3;
#else
    return whole;
#endif
}

static inline int fixture_run(Suite *suite) {
    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
