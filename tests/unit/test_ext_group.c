/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/group.c, placement.c and bitmap.h: bit scans against a plain loop, allocation and
 * release of blocks and inode numbers against a model, the strategies' choices.
 */
#include <errno.h>

#include "fs/bitmap.h"
#include "layouts/ext/ext.h"
#include "tests/unit/fixture.h"

#define VOLUME_SIZE (48u << 20) /* with 1 KiB blocks: six groups, the last one short */

static void open_ext(struct fixture *f, const char *mount_options) {
    fixture_open(f, "ext2", VOLUME_SIZE, "block_size=1024,inode_ratio=16384", mount_options, true);
}

/* For tests that provoke complaints. */
static void emit_nothing(void *context, enum log_level level, const char *text) {
    (void)context;
    (void)level;
    (void)text;
}

static struct ext *ext_in(const struct fixture *f) {
    return ext_of(f->volume);
}

static void assert_totals(struct ext *ext) {
    uint64_t blocks = 0, inodes = 0;
    for (uint32_t i = 0; i < ext->geometry.groups; i++) {
        struct buffer *bitmap;
        const struct ext_group *g = &ext->groups[i];
        ck_assert_int_eq(ext_block_bitmap_get(ext, i, &bitmap), 0);
        ck_assert_uint_eq(
            g->free_blocks,
            bitmap_count_clear(buffer_data(bitmap), ext_group_block_count(&ext->geometry, i)));
        ck_assert_uint_eq(bitmap_find_clear(buffer_data(bitmap), 0, g->block_hint), g->block_hint);
        buffer_put(bitmap);
        ck_assert_int_eq(ext_inode_bitmap_get(ext, i, &bitmap), 0);
        ck_assert_uint_eq(g->free_inodes,
                          bitmap_count_clear(buffer_data(bitmap), ext->geometry.inodes_per_group));
        ck_assert_uint_eq(bitmap_find_clear(buffer_data(bitmap), 0, g->inode_hint), g->inode_hint);
        buffer_put(bitmap);
        blocks += g->free_blocks;
        inodes += g->free_inodes;
    }
    ck_assert_uint_eq(ext->free_blocks, blocks);
    ck_assert_uint_eq(ext->free_inodes, inodes);
}

/* --- bitmap.h --- */

START_TEST(bitmap_scans_agree_with_a_loop) {
    enum { BITS = 512 };
    uint64_t state = fixture_seed("bitmap_scans");
    for (unsigned round = 0; round < 3000 * fixture_factor(); round++) {
        uint8_t bits[BITS / 8];
        unsigned density = (unsigned)(fixture_random(&state) % 9);
        for (unsigned i = 0; i < sizeof bits; i++) {
            bits[i] = 0;
            for (unsigned b = 0; b < 8; b++)
                bits[i] |= (uint8_t)((fixture_random(&state) % 8 < density) << b);
        }
        uint32_t from = (uint32_t)(fixture_random(&state) % BITS);
        uint32_t to = from + (uint32_t)(fixture_random(&state) % (BITS - from + 1));
        uint32_t clear = from, set = from, byte = (from + 7) / 8 * 8, count = 0;
        while (clear < to && bitmap_test(bits, clear))
            clear++;
        while (set < to && !bitmap_test(bits, set))
            set++;
        while (byte + 8 <= to && bits[byte / 8] != 0)
            byte += 8;
        if (byte + 8 > to)
            byte = to;
        for (uint32_t i = 0; i < to; i++)
            count += !bitmap_test(bits, i);
        ck_assert_uint_eq(bitmap_find_clear(bits, from, to), clear);
        ck_assert_uint_eq(bitmap_find_set(bits, from, to), set);
        ck_assert_uint_eq(bitmap_find_clear_byte(bits, from, to), byte);
        ck_assert_uint_eq(bitmap_count_clear(bits, to), count);

        uint8_t expected[sizeof bits];
        bool value = fixture_random(&state) & 1;
        memcpy(expected, bits, sizeof bits);
        for (uint32_t i = from; i < to; i++)
            expected[i / 8] =
                (uint8_t)((expected[i / 8] & ~(1u << i % 8)) | (unsigned)value << i % 8);
        bitmap_fill(bits, from, to - from, value);
        ck_assert_mem_eq(bits, expected, sizeof bits);
    }
}
END_TEST

/* --- blocks --- */

/* Random runs are taken and given back; no block may be had twice, and the counts stay exact. */
static void allocate_at_random(const char *mount_options, const char *name) {
    struct fixture f;
    open_ext(&f, mount_options);
    struct ext *ext = ext_in(&f);
    uint64_t state = fixture_seed(name), free_before = ext->free_blocks;
    uint64_t blocks = ext->geometry.blocks_count;
    bool *taken = calloc(blocks, 1);
    struct {
        uint64_t block;
        uint32_t count;
    } runs[4000];
    uint32_t used = 0;

    ck_assert_ptr_nonnull(taken);
    for (unsigned step = 0; step < 20000 * fixture_factor(); step++) {
        bool full = used == 4000;
        if (!full && fixture_random(&state) % 5 < 3) {
            uint32_t count = 1 + (uint32_t)(fixture_random(&state) % 40), want = count;
            uint64_t goal = fixture_random(&state) % (blocks + 100), block;
            int rc = ext_blocks_allocate(ext, f.root, goal, &count, &block);
            if (rc == -ENOSPC) {
                ck_assert_uint_eq(ext->free_blocks, 0);
                full = true;
            } else {
                ck_assert_int_eq(rc, 0);
                ck_assert(count >= 1 && count <= want);
                ck_assert(ext_blocks_are_data(ext, block, count));
                ck_assert_msg(memchr(taken + block, true, count) == NULL, "blocks had twice");
                memset(taken + block, true, count);
                runs[used].block = block;
                runs[used++].count = count;
            }
        }
        while (used > 0 && (full || fixture_random(&state) % 3 == 0)) {
            uint32_t i = (uint32_t)(fixture_random(&state) % used);
            ck_assert_int_eq(ext_blocks_free(ext, runs[i].block, runs[i].count, false), 0);
            memset(taken + runs[i].block, 0, runs[i].count);
            runs[i] = runs[--used];
            full = full && used > 1000;
        }
        if (step % 2000 == 0)
            assert_totals(ext);
    }
    while (used-- > 0)
        ck_assert_int_eq(ext_blocks_free(ext, runs[used].block, runs[used].count, false), 0);
    assert_totals(ext);
    ck_assert_uint_eq(ext->free_blocks, free_before);
    free(taken);
    fixture_close(&f);
}

START_TEST(blocks_by_goal) {
    allocate_at_random("alloc=goal", "blocks_by_goal");
}
END_TEST

START_TEST(blocks_by_reservation) {
    allocate_at_random("alloc=reservation", "blocks_by_reservation");
}
END_TEST

START_TEST(blocks_by_mballoc) {
    allocate_at_random("alloc=mballoc", "blocks_by_mballoc");
}
END_TEST

START_TEST(blocks_by_first_fit) {
    allocate_at_random("alloc=first-fit", "blocks_by_first_fit");
}
END_TEST

START_TEST(first_fit_takes_the_lowest) {
    struct fixture f;
    open_ext(&f, "alloc=first-fit");
    struct ext *ext = ext_in(&f);
    uint64_t block, first, last = 0;
    uint32_t count = 1;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, 30000, &count, &first), 0);
    for (int i = 0; i < 20000; i++) {
        count = 1;
        ck_assert_int_eq(ext_blocks_allocate(ext, f.root, 1, &count, &block), 0);
        ck_assert_uint_gt(block, last);
        last = block;
    }
    ck_assert_int_eq(ext_blocks_free(ext, last - 5, 1, false), 0);
    ck_assert_int_eq(ext_blocks_free(ext, first, 1, false), 0);
    count = 7;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, 0, &count, &block), 0);
    ck_assert_uint_eq(block, first);
    ck_assert_uint_eq(count, 1);
    count = 7;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, 0, &count, &block), 0);
    ck_assert_uint_eq(block, last - 5);
    count = 1;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, 0, &count, &block), 0);
    ck_assert_uint_eq(block, last + 1);
    fixture_close(&f);
}
END_TEST

START_TEST(goal_is_kept_near) {
    struct fixture f;
    open_ext(&f, "alloc=goal");
    struct ext *ext = ext_in(&f);
    uint64_t goal = ext_group_first_block(&ext->geometry, 2) + 4000, block;
    uint32_t count = 3;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, goal, &count, &block), 0);
    ck_assert_uint_eq(block, goal);
    ck_assert_uint_eq(count, 3);
    /* The goal taken: the next free bit before the next multiple of 64. */
    count = 1;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, goal, &count, &block), 0);
    ck_assert_uint_eq(block, goal + 3);
    /* All 64 taken but for single bits: a free byte is preferred, from its lowest free bit on. */
    count = 200;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, goal, &count, &block), 0);
    ck_assert_uint_eq(block, goal + 4);
    ck_assert_int_eq(ext_blocks_free(ext, goal + 70, 1, false), 0);
    count = 1;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, goal, &count, &block), 0);
    ck_assert_uint_eq(block, goal + 204);
    /* A full group passes its files on to the next one. */
    struct ext_group *g = &ext->groups[2];
    while (g->free_blocks > 0) {
        count = g->free_blocks;
        ck_assert_int_eq(ext_blocks_allocate(ext, f.root, ext_group_first_block(&ext->geometry, 2),
                                             &count, &block),
                         0);
        if (ext_group_of_block(&ext->geometry, block) != 2)
            break;
    }
    count = 1;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, goal, &count, &block), 0);
    ck_assert_uint_eq(ext_group_of_block(&ext->geometry, block), 3);
    fixture_close(&f);
}
END_TEST

START_TEST(a_window_is_stepped_over_until_space_runs_out) {
    struct fixture f;
    open_ext(&f, "alloc=goal,prealloc=8");
    struct ext *ext = ext_in(&f);
    uint64_t goal = ext_group_first_block(&ext->geometry, 3) + 5000, block;
    struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *file;
    ck_assert_int_eq(volume_create(f.root, "file", 4, &request, &file), 0);
    ext_place_note(ext, file, 0, goal, 1, true); /* [goal + 1, goal + 8) is the file's to come */
    uint32_t count = 20;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, goal, &count, &block), 0);
    ck_assert_uint_eq(block, goal);
    ck_assert_uint_eq(count, 1);
    count = 20;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, goal, &count, &block), 0);
    ck_assert_uint_eq(block, goal + 8);
    count = 2;
    ck_assert_int_eq(ext_blocks_allocate(ext, file, goal + 1, &count, &block), 0);
    ck_assert_uint_eq(block, goal + 1);
    while (ext->free_blocks > 0) {
        count = UINT32_MAX;
        ck_assert_int_eq(ext_blocks_allocate(ext, f.root, 0, &count, &block), 0);
    }
    count = 1;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, 0, &count, &block), -ENOSPC);
    assert_totals(ext);
    volume_put(file, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(what_must_not_be_freed_is_refused) {
    struct fixture f;
    open_ext(&f, "errors=continue");
    struct ext *ext = ext_in(&f);
    uint64_t block, free_before = ext->free_blocks;
    uint32_t count = 4;
    f.log.emit = emit_nothing;
    ck_assert_int_eq(ext_blocks_allocate(ext, f.root, 0, &count, &block), 0);
    ck_assert_int_eq(ext_blocks_free(ext, block, 5, false), -EUCLEAN);
    ck_assert_int_eq(ext_blocks_free(ext, ext->groups[1].inode_table + 2, 1, false), -EUCLEAN);
    ck_assert_int_eq(ext_blocks_free(ext, ext->groups[1].inode_table - 1, 1, false), -EUCLEAN);
    ck_assert_int_eq(ext_blocks_free(ext, ext->geometry.blocks_count - 1, 2, false), -EUCLEAN);
    ck_assert_int_eq(ext_blocks_free(ext, 0, 1, false), -EUCLEAN);
    ck_assert_int_eq(ext_blocks_free(ext, UINT64_MAX, 1, false), -EUCLEAN);
    ck_assert_int_eq(ext_blocks_free(ext, block, 4, false), 0);
    ck_assert_int_eq(ext_blocks_free(ext, block, 1, false), -EUCLEAN);
    ck_assert_uint_eq(ext->free_blocks, free_before);
    ck_assert_int_eq(ext_inode_number_free(ext, 100, false), -EUCLEAN);
    assert_totals(ext);
    fixture_close(&f);
}
END_TEST

START_TEST(a_bitmap_that_shows_metadata_free_is_refused) {
    struct fixture f;
    open_ext(&f, "errors=continue");
    struct ext *ext = ext_in(&f);
    struct buffer *bitmap;
    f.log.emit = emit_nothing;
    ck_assert_int_eq(ext_block_bitmap_get(ext, 1, &bitmap), 0);
    uint32_t bit =
        (uint32_t)(ext->groups[1].inode_table - ext_group_first_block(&ext->geometry, 1));
    bitmap_clear(buffer_data(bitmap), bit, 1);
    bitmap->checked = false;
    buffer_put(bitmap);
    ck_assert_int_eq(ext_block_bitmap_get(ext, 1, &bitmap), -EUCLEAN);

    /* A wrong count is set right with errors=continue. */
    ck_assert_int_eq(ext_block_bitmap_get(ext, 2, &bitmap), 0);
    bitmap->checked = false;
    buffer_put(bitmap);
    ext->groups[2].free_blocks -= 9;
    ext->free_blocks -= 9;
    ck_assert_int_eq(ext_block_bitmap_get(ext, 2, &bitmap), 0);
    ck_assert_uint_eq(
        ext->groups[2].free_blocks,
        bitmap_count_clear(buffer_data(bitmap), ext_group_block_count(&ext->geometry, 2)));
    buffer_put(bitmap);
    fixture_close(&f);
}
END_TEST

/* --- inode numbers --- */

START_TEST(inode_numbers_run_out_exactly) {
    struct fixture f;
    open_ext(&f, NULL);
    struct ext *ext = ext_in(&f);
    uint32_t total = ext->free_inodes, made = 0;
    uint64_t ino, *numbers = calloc(total, sizeof *numbers);
    bool *seen = calloc(ext->geometry.inodes_count + 1, 1);
    ck_assert(numbers && seen);
    while (ext_inode_number_allocate(ext, f.root, S_IFREG, &ino) == 0) {
        ck_assert(ext_inode_number_valid(&ext->geometry, ino));
        ck_assert_msg(!seen[ino], "inode %u had twice", (unsigned)ino);
        seen[ino] = true;
        ck_assert_int_eq(ext_inode_number_used(ext, ino), 1);
        numbers[made++] = ino;
    }
    ck_assert_uint_eq(made, total);
    ck_assert_uint_eq(ext->free_inodes, 0);
    ck_assert_int_eq(ext_inode_number_allocate(ext, f.root, S_IFDIR, &ino), -ENOSPC);
    /* The lowest free number of the group is taken. */
    ck_assert_int_eq(ext_inode_number_free(ext, numbers[20], false), 0);
    ck_assert_int_eq(ext_inode_number_free(ext, numbers[10], false), 0);
    ck_assert_int_eq(ext_inode_number_used(ext, numbers[10]), 0);
    ck_assert_int_eq(ext_inode_number_allocate(ext, f.root, S_IFREG, &ino), 0);
    ck_assert_uint_eq(ino, numbers[10]);
    ck_assert_int_eq(ext_inode_number_free(ext, numbers[10], false), 0);
    for (uint32_t i = 0; i < made; i++)
        if (i != 10 && i != 20)
            ck_assert_int_eq(ext_inode_number_free(ext, numbers[i], false), 0);
    ck_assert_uint_eq(ext->free_inodes, total);
    assert_totals(ext);
    free(numbers);
    free(seen);
    fixture_close(&f);
}
END_TEST

/* --- strategies --- */

static uint32_t new_directory_group(struct ext *ext, struct inode *dir) {
    uint64_t ino;
    ck_assert_int_eq(ext_inode_number_allocate(ext, dir, S_IFDIR, &ino), 0);
    return ext_group_of_inode(&ext->geometry, ino);
}

START_TEST(old_takes_the_emptiest_group) {
    struct fixture f;
    open_ext(&f, "dir_placement=old");
    struct ext *ext = ext_in(&f);
    for (int round = 0; round < 12; round++) {
        uint32_t most = 0, average = ext->free_inodes / ext->geometry.groups;
        for (uint32_t i = 0; i < ext->geometry.groups; i++)
            if (ext->groups[i].free_inodes >= average && ext->groups[i].free_blocks > most)
                most = ext->groups[i].free_blocks;
        uint32_t group = new_directory_group(ext, f.root), count = 700;
        uint64_t block;
        ck_assert_uint_eq(ext->groups[group].free_blocks, most);
        ck_assert_int_eq(ext_blocks_allocate(ext, f.root,
                                             ext_group_first_block(&ext->geometry, group), &count,
                                             &block),
                         0);
    }
    fixture_close(&f);
}
END_TEST

/* The fewest directories that a group no worse than average has. */
static uint32_t fewest_directories(const struct ext *ext) {
    uint32_t groups = ext->geometry.groups, fewest = UINT32_MAX;
    for (uint32_t i = 0; i < groups; i++) {
        const struct ext_group *g = &ext->groups[i];
        if (g->free_inodes >= ext->free_inodes / groups &&
            g->free_blocks >= ext->free_blocks / groups && g->used_dirs < fewest)
            fewest = g->used_dirs;
    }
    return fewest;
}

START_TEST(orlov_spreads_the_top_and_keeps_the_rest_near) {
    struct fixture f;
    open_ext(&f, "dir_placement=orlov");
    struct ext *ext = ext_in(&f);
    struct create_request request = {.mode = S_IFDIR | 0755};
    for (int i = 0; i < 12; i++) {
        uint32_t fewest = fewest_directories(ext);
        uint32_t group = new_directory_group(ext, f.root);
        if (fewest != UINT32_MAX)
            ck_assert_uint_eq(ext->groups[group].used_dirs, fewest + 1);
    }

    struct inode *dir;
    ck_assert_int_eq(volume_create(f.root, "d", 1, &request, &dir), 0);
    uint32_t home = ext_inode_of(dir)->group;
    ext->groups[home].debt = 0;
    ck_assert_uint_eq(new_directory_group(ext, dir), home);
    ck_assert_uint_eq(ext->groups[home].debt, 1);
    /* Only so many directories may wait for their files. */
    ext->groups[home].debt = UINT8_MAX;
    ck_assert_uint_eq(new_directory_group(ext, dir), (home + 1) % ext->geometry.groups);
    ext->groups[home].debt = 0;
    ck_assert_uint_eq(new_directory_group(ext, dir), home);
    /* A group far below the average of free inodes is passed over. */
    uint32_t taken = ext->groups[home].free_inodes;
    ext->groups[home].free_inodes = 1;
    ck_assert_uint_ne(new_directory_group(ext, dir), home);
    ext->groups[home].free_inodes = taken;
    /* With the flag a directory's children are spread like the root's. */
    dir->flags |= EXT_INODE_TOPDIR;
    uint32_t roomy = 0;
    for (uint32_t i = 0; i < ext->geometry.groups; i++)
        if (ext->groups[i].free_inodes > ext->groups[roomy].free_inodes)
            roomy = i;
    ext->groups[roomy].free_blocks += 100000; /* the only one that is no worse than average */
    ext->free_blocks += 100000;
    ck_assert_uint_eq(new_directory_group(ext, dir), roomy);
    ext->groups[roomy].free_blocks -= 100000;
    ext->free_blocks -= 100000;
    dir->flags &= ~(uint32_t)EXT_INODE_TOPDIR;
    volume_put(dir, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(sequential_fills_group_after_group) {
    struct fixture f;
    open_ext(&f, "dir_placement=sequential");
    struct ext *ext = ext_in(&f);
    uint64_t ino, last = 0;
    while (ext->free_inodes > 0) {
        ck_assert_int_eq(ext_inode_number_allocate(ext, f.root, S_IFDIR, &ino), 0);
        ck_assert_uint_gt(ino, last);
        last = ino;
    }
    ck_assert_int_eq(ext_inode_number_free(ext, 20, true), 0);
    ck_assert_int_eq(ext_inode_number_allocate(ext, f.root, S_IFREG, &ino), 0);
    ck_assert_uint_eq(ino, 20);
    fixture_close(&f);
}
END_TEST

START_TEST(files_lie_by_their_directory) {
    struct fixture f;
    open_ext(&f, "dir_placement=orlov");
    struct ext *ext = ext_in(&f);
    struct ext_inode *root = ext_inode_of(f.root);
    uint32_t group;
    root->group = 4;
    ck_assert_int_eq(ext_place_inode(ext, f.root, &group), 0);
    ck_assert_uint_eq(group, 4);
    uint32_t saved = ext->groups[4].free_blocks;
    ext->groups[4].free_blocks = 0; /* parent 4 + inode 2 = 0 of 6; the first hash step is 1 */
    ck_assert_int_eq(ext_place_inode(ext, f.root, &group), 0);
    ck_assert_uint_eq(group, 1);
    ext->groups[4].free_blocks = saved;
    root->group = 0;
    fixture_close(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext_group");
    TCase *bits = tcase_create("bitmap");
    tcase_add_test(bits, bitmap_scans_agree_with_a_loop);
    suite_add_tcase(suite, bits);
    TCase *blocks = tcase_create("blocks");
    tcase_add_test(blocks, blocks_by_goal);
    tcase_add_test(blocks, blocks_by_first_fit);
    tcase_add_test(blocks, blocks_by_reservation);
    tcase_add_test(blocks, blocks_by_mballoc);
    tcase_add_test(blocks, first_fit_takes_the_lowest);
    tcase_add_test(blocks, goal_is_kept_near);
    tcase_add_test(blocks, a_window_is_stepped_over_until_space_runs_out);
    tcase_add_test(blocks, what_must_not_be_freed_is_refused);
    tcase_add_test(blocks, a_bitmap_that_shows_metadata_free_is_refused);
    suite_add_tcase(suite, blocks);
    TCase *inodes = tcase_create("inodes");
    tcase_add_test(inodes, inode_numbers_run_out_exactly);
    tcase_add_test(inodes, old_takes_the_emptiest_group);
    tcase_add_test(inodes, orlov_spreads_the_top_and_keeps_the_rest_near);
    tcase_add_test(inodes, sequential_fills_group_after_group);
    tcase_add_test(inodes, files_lie_by_their_directory);
    suite_add_tcase(suite, inodes);
    return fixture_run(suite);
}
