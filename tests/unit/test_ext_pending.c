/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/pending.c: random ranges added and taken away, against a plain array.
 */
#include "layouts/ext/pending.h"

#include "tests/unit/fixture.h"

#define BLOCKS 30000u

static void verify(const struct ext_pending *pending, const bool *model) {
    uint64_t blocks = 0, runs = 0, start, end, at = 0;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        blocks += model[i];
        runs += model[i] && (i == 0 || !model[i - 1]);
    }
    ck_assert_uint_eq(pending->blocks, blocks);
    ck_assert_uint_eq(pending->runs, runs);
    while (ext_pending_next(pending, at, &start, &end)) {
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
    struct ext_pending pending = {0};
    uint64_t longest = _i == 0 ? 20000 : 60;
    for (unsigned step = 0; step < 2000 * fixture_factor(); step++) {
        uint64_t from = fixture_random(&state) % (BLOCKS - 1);
        uint64_t to = from + 1 + fixture_random(&state) % longest;
        bool value = fixture_random(&state) % 2;
        if (step % 3 == 0 && step % 200 < 100) /* in a row, as files grow */
            from = step % 200 * 10, to = from + 10, value = true;
        if (to > BLOCKS)
            to = BLOCKS;
        ck_assert_int_eq(value ? ext_pending_add(&pending, from, to)
                               : ext_pending_remove(&pending, from, to),
                         0);
        for (uint64_t i = from; i < to; i++)
            model[i] = value;
        if (step % 400 == 399) {
            ck_assert_int_eq(ext_pending_remove(&pending, 0, UINT64_MAX), 0);
            memset(model, 0, sizeof model);
        }
        verify(&pending, model);
    }
    ext_pending_clear(&pending);
    memset(model, 0, sizeof model);
    verify(&pending, model);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext pending");
    TCase *tcase = tcase_create("sets");
    tcase_set_timeout(tcase, 60 * (double)fixture_factor());
    tcase_add_loop_test(tcase, random_ranges, 0, 2);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
