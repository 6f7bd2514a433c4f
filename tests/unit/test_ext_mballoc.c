/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/buddy.c, hold.c and mballoc.c: buddy maps and holds against naive models; files that
 * grow side by side; a volume filled to its last block whatever is preallocated, with e2fsck as the
 * judge where it is installed.
 */
#include <errno.h>
#include <unistd.h>

#include "fs/bitmap.h"
#include "layouts/ext/buddy.h"
#include "layouts/ext/ext.h"
#include "tests/unit/fixture.h"

/* --- buddy.c --- */

#define BITS_MAX 4096u

/* What a map should have, worked out from its `used` alone: from the highest order down, aligned
 * chunks that are free and not part of a larger one. */
static void assert_buddy(const struct buddy *buddy, const bool *used) {
    static bool covered[BITS_MAX];
    memset(covered, false, sizeof covered);
    int largest = -1;
    for (int order = BUDDY_ORDERS - 1; order >= 0; order--) {
        uint32_t size = 1u << order, count = 0;
        for (uint32_t at = 0; at + size <= buddy->bits; at += size) {
            bool whole = !covered[at] && memchr(used + at, true, size) == NULL;
            ck_assert_int_eq(bitmap_test(buddy->chunks[order], at >> order), whole);
            if (!whole)
                continue;
            memset(covered + at, true, size);
            count++;
        }
        ck_assert_uint_eq(buddy->free[order], count);
        if (count > 0 && largest < 0)
            largest = order;
    }
    ck_assert_int_eq(buddy_largest(buddy), largest);
}

static uint32_t naive_run(const bool *used, uint32_t from, uint32_t bits) {
    uint32_t count = 0;
    while (from + count < bits && !used[from + count])
        count++;
    return count;
}

START_TEST(buddies_agree_with_a_model) {
    static bool used[BITS_MAX];
    uint64_t state = fixture_seed("buddies");
    struct buddy buddy;
    ck_assert_int_eq(buddy_init(&buddy, BITS_MAX), 0);
    for (unsigned round = 0; round < 20 * fixture_factor(); round++) {
        uint8_t bitmap[BITS_MAX / 8];
        uint32_t bits = 8 + (uint32_t)(fixture_random(&state) % (BITS_MAX - 7));
        unsigned density = (unsigned)(fixture_random(&state) % 8);
        memset(bitmap, 0xFF, sizeof bitmap);
        for (uint32_t i = 0; i < bits; i++) {
            used[i] = fixture_random(&state) % 8 < density;
            bitmap_fill(bitmap, i, 1, used[i]);
        }
        buddy_build(&buddy, bitmap, bits);
        assert_buddy(&buddy, used);
        for (unsigned step = 0; step < 100; step++) {
            uint32_t at = (uint32_t)(fixture_random(&state) % bits), end = at;
            uint32_t most = 1 + (uint32_t)(fixture_random(&state) % 600);
            bool take = !used[at];
            while (end < bits && end - at < most && used[end] != take)
                end++;
            ck_assert_uint_eq(buddy_run(&buddy, at, most), take ? end - at : 0);
            memset(used + at, take, end - at);
            if (take)
                buddy_take(&buddy, at, end - at);
            else
                buddy_give(&buddy, at, end - at);
            assert_buddy(&buddy, used);
            uint32_t order = (uint32_t)(fixture_random(&state) % 12);
            uint32_t found = buddy_find(&buddy, order, at);
            if (found < bits)
                ck_assert_uint_ge(naive_run(used, found, bits), 1u << order);
            else
                ck_assert_int_lt(buddy_largest(&buddy), (int)order);
        }
    }
    buddy_release(&buddy);
}
END_TEST

START_TEST(orders_of_sizes) {
    for (uint64_t blocks = 1; blocks < 20000; blocks++) {
        uint32_t within = buddy_order_within(blocks), around = buddy_order_around(blocks);
        ck_assert_uint_le(UINT64_C(1) << within, blocks);
        ck_assert(UINT64_C(2) << within > blocks || within == BUDDY_ORDERS - 1);
        ck_assert(UINT64_C(1) << around >= blocks || around == BUDDY_ORDERS - 1);
        ck_assert(around == 0 || UINT64_C(1) << (around - 1) < blocks);
    }
}
END_TEST

/* --- hold.c --- */

START_TEST(holds_agree_with_a_model) {
    enum { BLOCKS = 3000, HOLDS = 40 };
    static int owner[BLOCKS]; /* 0: nobody's, else the hold's number + 1 */
    static struct ext_hold held[HOLDS];
    struct ext_holds holds;
    uint64_t state = fixture_seed("holds");
    ext_holds_init(&holds);
    for (unsigned step = 0; step < 20000 * fixture_factor(); step++) {
        uint32_t i = (uint32_t)(fixture_random(&state) % HOLDS);
        uint64_t at = fixture_random(&state) % BLOCKS, end = 0;
        uint32_t count = 1 + (uint32_t)(fixture_random(&state) % 60), clipped = 0;
        struct ext_hold *hold = &held[i];
        while (clipped < count && at + clipped < BLOCKS &&
               (owner[at + clipped] == 0 || owner[at + clipped] == (int)i + 1))
            clipped++;
        if (at + clipped == BLOCKS)
            clipped = count;
        ck_assert_uint_eq(ext_holds_clip(&holds, hold, at, count, &end), clipped);
        if (clipped == 0) {
            const struct ext_hold *in_the_way = &held[owner[at] - 1];
            ck_assert_uint_eq(end, in_the_way->block + in_the_way->count);
            continue;
        }
        if (hold->count > 0) {
            uint64_t block = hold->block + fixture_random(&state) % (hold->count + 1);
            for (uint64_t b = hold->block; b < block; b++)
                owner[b] = 0;
            ext_hold_advance(&holds, hold, block);
        } else if (at + clipped <= BLOCKS) {
            for (uint64_t b = at; b < at + clipped; b++)
                owner[b] = (int)i + 1;
            ext_hold_set(&holds, hold, at, clipped);
        }
    }
    for (unsigned i = 0; i < HOLDS; i++)
        ext_hold_drop(&holds, &held[i]);
    ck_assert_uint_eq(holds.count, 0);
    ck_assert_ptr_null(ext_holds_from(&holds, 0));
}
END_TEST

/* --- files --- */

#define FILES 8u

struct files {
    struct fixture f;
    struct ext *ext;
    struct inode *inodes[FILES];
};

static void files_open(struct files *t, const char *type, uint64_t size, const char *mkfs,
                       const char *mount) {
    struct create_request request = {.mode = S_IFREG | 0644};
    fixture_open(&t->f, type, size, mkfs, mount, true);
    t->ext = ext_of(t->f.volume);
    for (unsigned i = 0; i < FILES; i++) {
        char name = (char)('a' + i);
        ck_assert_int_eq(volume_create(t->f.root, &name, 1, &request, &t->inodes[i]), 0);
    }
}

static void files_close(struct files *t) {
    for (unsigned i = 0; i < FILES; i++)
        volume_put(t->inodes[i], 1);
    fixture_close(&t->f);
}

static void judge(struct files *t) {
    char path[64], command[256];
    static char block[1 << 16];
    ck_assert_int_eq(volume_sync(t->f.volume), 0);
    if (system("PATH=$PATH:/sbin:/usr/sbin command -v e2fsck >/dev/null") != 0)
        return;
    snprintf(path, sizeof path, "mballoc-%d.img", getpid());
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    for (uint64_t at = 0; at < t->f.volume->device->size; at += sizeof block) {
        ck_assert_int_eq(device_read(t->f.volume->device, at, block, sizeof block, PURPOSE_OTHER),
                         0);
        ck_assert_uint_eq(fwrite(block, 1, sizeof block, file), sizeof block);
    }
    ck_assert_int_eq(fclose(file), 0);
    snprintf(command, sizeof command,
             "PATH=$PATH:/sbin:/usr/sbin; out=$(e2fsck -fn %s 2>&1) || { echo \"$out\"; false; }",
             path);
    ck_assert_int_eq(system(command), 0);
    unlink(path);
}

static unsigned extents_of(struct files *t) {
    unsigned extents = 0;
    for (unsigned i = 0; i < FILES; i++) {
        struct extent extent;
        struct attributes attributes;
        uint64_t device_offset = 0;
        volume_getattr(t->inodes[i], &attributes);
        for (uint64_t at = 0; at < attributes.size; at = extent.offset + extent.length) {
            ck_assert_int_eq(volume_map(t->inodes[i], at, &extent), 0);
            extents += extent.device_offset != device_offset;
            device_offset = extent.device_offset + extent.length;
        }
    }
    return extents;
}

/* Files that grow in turn, a block at a time, without delayed allocation to help. */
static unsigned grow_side_by_side(const char *type, const char *mkfs, const char *mount) {
    static const uint8_t data[4096] = {1};
    struct files t;
    files_open(&t, type, 256 << 20, mkfs, mount);
    for (unsigned step = 0; step < 1000; step++)
        for (unsigned i = 0; i < FILES; i++)
            ck_assert_int_eq(volume_write(t.inodes[i], data, sizeof data, step * sizeof data),
                             sizeof data);
    ck_assert_int_eq(volume_sync(t.f.volume), 0);
    unsigned extents = extents_of(&t);
    judge(&t);
    files_close(&t);
    return extents;
}

START_TEST(files_that_grow_side_by_side_stay_in_one_piece) {
    unsigned goal = grow_side_by_side("ext4", "", "delalloc=off,alloc=goal");
    unsigned reservation = grow_side_by_side("ext4", "", "delalloc=off,alloc=reservation");
    unsigned mballoc = grow_side_by_side("ext4", "", "delalloc=off,alloc=mballoc");
    printf("extents of 8 files of 1000 blocks: goal %u, reservation %u, mballoc %u\n", goal,
           reservation, mballoc);
    ck_assert_uint_le(reservation, FILES * 16);
    ck_assert_uint_le(mballoc, FILES * 24);
    ck_assert_uint_gt(goal, 4 * reservation);
    ck_assert_uint_gt(goal, 4 * mballoc);
}
END_TEST

START_TEST(small_files_lie_together) {
    static const uint8_t data[8192] = {1};
    struct fixture f;
    struct create_request request = {.mode = S_IFREG | 0644};
    uint64_t lowest = UINT64_MAX, highest = 0;
    fixture_open(&f, "ext4", 256 << 20, "", "alloc=mballoc,delalloc=off", true);
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        struct inode *inode;
        struct extent extent;
        int length = snprintf(name, sizeof name, "f%u", i);
        ck_assert_int_eq(volume_create(f.root, name, (uint32_t)length, &request, &inode), 0);
        ck_assert_int_eq(volume_write(inode, data, sizeof data, 0), sizeof data);
        ck_assert_int_eq(volume_sync(f.volume), 0);
        ck_assert_int_eq(volume_map(inode, 0, &extent), 0);
        ck_assert_uint_eq(extent.length, sizeof data);
        if (extent.device_offset < lowest)
            lowest = extent.device_offset;
        if (extent.device_offset + extent.length > highest)
            highest = extent.device_offset + extent.length;
        volume_put(inode, 1);
    }
    ck_assert_uint_eq(highest - lowest, 100 * sizeof data);
    fixture_close(&f);
}
END_TEST

static const struct {
    const char *type, *mkfs, *mount;
} full[] = {
    {"ext4", "block_size=1024,has_journal=off,reserved=0", "delalloc=off,alloc=mballoc"},
    {"ext4", "block_size=1024,has_journal=off,reserved=0", "delalloc=on,alloc=mballoc"},
    {"ext2", "block_size=1024,reserved=0", "alloc=mballoc"},
    {"ext2", "block_size=1024,reserved=0", "alloc=reservation"},
    {"ext3", "block_size=1024,reserved=0", "alloc=mballoc"},
    {"ext3", "block_size=1024,reserved=0", "alloc=reservation"},
};
#define FULL_COUNT ((int)(sizeof full / sizeof *full))

/* Streams grow side by side until no block is left for one of them; then every last block can be
 * had, in pieces of any size, before the volume says that it is full. */
static void fill(struct files *t, uint32_t piece) {
    static const uint8_t data[256 << 10] = {1};
    uint64_t at = 0;
    for (unsigned full_files = 0; full_files < FILES; at += piece) {
        full_files = 0;
        for (unsigned i = 0; i < FILES; i++) {
            int64_t got = volume_write(t->inodes[i], data, piece, at);
            ck_assert(got > 0 || got == -ENOSPC);
            full_files += got < 0;
        }
    }
}

START_TEST(a_full_volume_is_full_to_the_last_block) {
    for (unsigned large = 0; large < 2; large++) {
        struct files t;
        struct volume_usage usage;
        files_open(&t, full[_i].type, 24 << 20, full[_i].mkfs, full[_i].mount);
        uint64_t before = t.ext->free_blocks;
        fill(&t, large ? 256 << 10 : 1024);
        ck_assert_int_eq(volume_sync(t.f.volume), 0);
        /* Block by block nothing may be left but what the map needs for one more. */
        ck_assert_int_eq(volume_statfs(t.f.volume, &usage), 0);
        ck_assert_uint_eq(usage.free, t.ext->free_blocks);
        ck_assert_uint_le(t.ext->free_blocks, 8);
        judge(&t);
        for (unsigned i = 0; i < FILES; i++)
            ck_assert_int_eq(volume_truncate(t.inodes[i], 0), 0);
        ck_assert_int_eq(volume_sync(t.f.volume), 0);
        ck_assert_uint_eq(t.ext->free_blocks, before);
        ck_assert_uint_eq(t.ext->holds.count, 0);
        files_close(&t);
    }
}
END_TEST

/* What is preallocated is free to statfs, and to anybody who needs it. */
START_TEST(preallocation_yields) {
    static const uint8_t data[1 << 16] = {1};
    struct files t;
    files_open(&t, "ext4", 32 << 20, "block_size=1024,has_journal=off,reserved=0",
               "delalloc=off,alloc=mballoc");
    for (unsigned i = 0; i < FILES; i++)
        for (unsigned step = 0; step < 3; step++)
            ck_assert_int_eq(volume_write(t.inodes[i], data, sizeof data, step * sizeof data),
                             sizeof data);
    ck_assert_int_eq(volume_sync(t.f.volume), 0); /* nothing is promised any more */
    ck_assert_uint_gt(t.ext->holds.count, 0);
    uint64_t free_blocks = t.ext->free_blocks, block, got = 0;
    while (got < free_blocks) {
        uint32_t count = 1000;
        ck_assert_int_eq(ext_blocks_allocate(t.ext, t.f.root, 0, &count, &block), 0);
        got += count;
    }
    ck_assert_uint_eq(got, free_blocks);
    ck_assert_uint_eq(t.ext->free_blocks, 0);
    ck_assert_uint_eq(t.ext->holds.count, 0);
    files_close(&t);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext mballoc");
    TCase *tcase = tcase_create("mballoc");
    tcase_set_timeout(tcase, 120 * (double)fixture_factor());
    tcase_add_test(tcase, buddies_agree_with_a_model);
    tcase_add_test(tcase, orders_of_sizes);
    tcase_add_test(tcase, holds_agree_with_a_model);
    tcase_add_test(tcase, files_that_grow_side_by_side_stay_in_one_piece);
    tcase_add_test(tcase, small_files_lie_together);
    tcase_add_loop_test(tcase, a_full_volume_is_full_to_the_last_block, 0, FULL_COUNT);
    tcase_add_test(tcase, preallocation_yields);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
