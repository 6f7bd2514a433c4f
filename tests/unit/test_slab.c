/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Unit tests of fs/slab.c: objects do not overlap, come zeroed, keep their contents while others
 * come and go in any order, and their memory goes back to the system.
 */
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/slab.h"
#include "tests/unit/fixture.h"

/* Every word of an object says whose it is. */
static void mark(uint64_t *object, size_t size, uint64_t word) {
    for (size_t i = 0; i < size / 8; i++)
        object[i] = word;
}

static bool is_marked(const uint64_t *object, size_t size, uint64_t word) {
    for (size_t i = 0; i < size / 8; i++)
        if (object[i] != word)
            return false;
    return true;
}

#define OBJECTS 30000u

START_TEST(any_order) {
    static const size_t sizes[] = {8, 24, 320, 344, 4096};
    static uint64_t *objects[OBJECTS];
    size_t size = sizes[_i];
    unsigned count = size > 1000 ? OBJECTS / 10 : OBJECTS;
    uint64_t random = fixture_seed("slab any_order");
    struct slab_cache cache;

    memset(objects, 0, sizeof(objects));
    slab_init(&cache, size);
    for (unsigned step = 0; step < 8 * count; step++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        unsigned i = (unsigned)(random >> 33) % count;
        if (objects[i]) {
            ck_assert(is_marked(objects[i], size, i + 1));
            slab_give(&cache, objects[i]);
            objects[i] = NULL;
        } else {
            objects[i] = slab_take(&cache);
            ck_assert_ptr_nonnull(objects[i]);
            ck_assert_uint_eq((uintptr_t)objects[i] % 16, 0);
            ck_assert(is_marked(objects[i], size, 0));
            mark(objects[i], size, i + 1);
        }
    }
    for (unsigned i = 0; i < count; i++)
        ck_assert(!objects[i] || is_marked(objects[i], size, i + 1));
    slab_drain(&cache);
    ck_assert_ptr_nonnull(slab_take(&cache)); /* it is empty, not dead */
    slab_drain(&cache);
}
END_TEST

static uint64_t resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long total, resident;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%lu %lu", &total, &resident), 2);
    fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

#define MANY 200000u /* of 320 bytes: 61 MiB */

START_TEST(gives_memory_back) {
    static void *objects[MANY];
    struct slab_cache cache;

    slab_init(&cache, 320);
    memset(objects, 0, sizeof(objects)); /* so that it is resident, too */
    uint64_t before = resident_bytes();
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < MANY; i++)
            ck_assert_ptr_nonnull(objects[i] = slab_take(&cache));
        ck_assert_uint_gt(resident_bytes(), before + MANY * UINT64_C(300));
        /* All but the last few, as a cache that keeps what was used last. */
        for (unsigned i = 0; i < MANY - 1000; i++)
            slab_give(&cache, objects[i]);
        /* Generous, for AddressSanitizer's own memory stays. */
        ck_assert_uint_lt(resident_bytes(), before + MANY * UINT64_C(160));
        for (unsigned i = MANY - 1000; i < MANY; i++)
            slab_give(&cache, objects[i]);
    }
    slab_drain(&cache);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("slab");
    TCase *tests = tcase_create("slab");

    tcase_add_loop_test(tests, any_order, 0, 5);
    tcase_add_test(tests, gives_memory_back);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
