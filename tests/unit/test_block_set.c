/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * fs/block_set.c: random ranges added and taken away, against a plain array.
 */
#include "fs/block_set.h"

#include "tests/unit/fixture.h"

#define BLOCKS 30000u

static void verify(const struct block_set *set, const bool *model) {
    uint64_t blocks = 0, runs = 0, start, end, at = 0;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        blocks += model[i];
        runs += model[i] && (i == 0 || !model[i - 1]);
    }
    ck_assert_uint_eq(set->blocks, blocks);
    ck_assert_uint_eq(set->runs, runs);
    while (block_set_next(set, at, &start, &end)) {
        for (; at < start; at++)
            ck_assert(!model[at]);
        ck_assert_uint_lt(start, end);
        for (; at < end; at++)
            ck_assert(model[at]);
        runs--;
    }
    for (; at < BLOCKS; at++)
        ck_assert(!model[at]);
    ck_assert_uint_eq(runs, 0);
}

START_TEST(random_ranges) {
    static bool model[BLOCKS + 1];
    uint64_t state = fixture_seed("random_ranges");
    struct block_set set = {0};
    uint64_t longest = _i == 0 ? 20000 : 60;
    for (unsigned step = 0; step < 2000 * fixture_factor(); step++) {
        uint64_t from = fixture_random(&state) % (BLOCKS - 1);
        uint64_t to = from + 1 + fixture_random(&state) % longest;
        bool value = fixture_random(&state) % 2;
        if (step % 3 == 0 && step % 200 < 100) /* in a row, as files grow */
            from = step % 200 * 10, to = from + 10, value = true;
        if (to > BLOCKS)
            to = BLOCKS;
        ck_assert_int_eq(value ? block_set_add(&set, from, to) : block_set_remove(&set, from, to),
                         0);
        for (uint64_t i = from; i < to; i++)
            model[i] = value;
        if (step % 400 == 399) {
            ck_assert_int_eq(block_set_remove(&set, 0, UINT64_MAX), 0);
            memset(model, 0, sizeof model);
        }
        verify(&set, model);
    }
    block_set_clear(&set);
    memset(model, 0, sizeof model);
    verify(&set, model);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext set");
    TCase *tcase = tcase_create("sets");
    tcase_set_timeout(tcase, 60 * (double)fixture_factor());
    tcase_add_loop_test(tcase, random_ranges, 0, 2);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
