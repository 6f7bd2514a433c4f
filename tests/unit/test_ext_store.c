/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/store.c: delayed allocation and unwritten extents through the file API: contents
 * against an array, promises that are kept on a volume that runs full, and given back to the last
 * block; what is on disk before and after write-back. e2fsck is the judge where it is installed.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "layouts/ext/ext.h"
#include "tests/unit/fixture.h"

#define FILE_BYTES 300000u
#define FILES      4u

static const struct {
    const char *mkfs, *mount;
    bool extents;
} kinds[] = {
    {"block_size=1024,inode_ratio=16384", "delalloc=on", true},
    {"block_size=1024,inode_ratio=16384", "delalloc=off", true},
    {"block_size=1024,inode_ratio=16384", "delalloc=on", false},
    {"block_size=4096,inode_ratio=16384", "delalloc=on", true},
    {"block_size=1024,inode_ratio=16384", "delalloc=on,alloc=mballoc", true},
    {"block_size=1024,inode_ratio=16384", "delalloc=off,alloc=mballoc", true},
    {"block_size=1024,inode_ratio=16384", "delalloc=off,alloc=mballoc", false},
    {"block_size=1024,inode_ratio=16384", "delalloc=off,alloc=reservation", true},
    {"block_size=1024,inode_ratio=16384", "delalloc=off,alloc=reservation", false},
};
#define KINDS ((int)(sizeof kinds / sizeof *kinds))

struct test {
    struct fixture f;
    struct ext *ext;
    struct inode *files[FILES];
    uint8_t *bytes[FILES];
    uint64_t size[FILES];
    uint64_t free_before;
};

/* An ext2 volume that has just learned of extents. */
static void extents_announce(struct volume *volume) {
    struct ext *ext = ext_of(volume);
    ext_feature_announce(ext, &ext->geometry.incompat, &ext->super.s_feature_incompat,
                         EXT_INCOMPAT_EXTENTS);
    volume->limits.file_size_max = ext_file_size_max(ext);
    volume->store_changes = true;
}

static uint64_t free_blocks(struct volume *volume) {
    struct volume_usage usage;
    ck_assert_int_eq(volume_statfs(volume, &usage), 0);
    return usage.free;
}

static void test_open(struct test *t, int kind, uint64_t size) {
    struct create_request request = {.mode = S_IFREG | 0644};
    memset(t, 0, sizeof *t);
    fixture_open(&t->f, "ext2", size, kinds[kind].mkfs, kinds[kind].mount, true);
    t->ext = ext_of(t->f.volume);
    if (kinds[kind].extents)
        extents_announce(t->f.volume);
    for (unsigned i = 0; i < FILES; i++) {
        char name = (char)('a' + i);
        ck_assert_int_eq(volume_create(t->f.root, &name, 1, &request, &t->files[i]), 0);
        t->bytes[i] = calloc(1, FILE_BYTES);
        ck_assert_ptr_nonnull(t->bytes[i]);
    }
    t->free_before = free_blocks(t->f.volume);
}

static void test_close(struct test *t) {
    for (unsigned i = 0; i < FILES; i++) {
        ck_assert_int_eq(volume_truncate(t->files[i], 0), 0);
        volume_put(t->files[i], 1);
        free(t->bytes[i]);
    }
    ck_assert_uint_eq(t->ext->promised_blocks, 0);
    ck_assert_uint_eq(free_blocks(t->f.volume), t->free_before);
    fixture_close(&t->f);
}

static void judge(struct test *t) {
    char path[64], command[256];
    static char block[1 << 16];
    ck_assert_int_eq(volume_sync(t->f.volume), 0);
    ck_assert_uint_eq(t->ext->promised_blocks, 0);
    if (system("PATH=$PATH:/sbin:/usr/sbin command -v e2fsck >/dev/null") != 0)
        return;
    snprintf(path, sizeof path, "store-%d.img", getpid());
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

static void verify(struct test *t) {
    static uint8_t got[FILE_BYTES];
    for (unsigned i = 0; i < FILES; i++) {
        struct attributes attributes;
        volume_getattr(t->files[i], &attributes);
        ck_assert_uint_eq(attributes.size, t->size[i]);
        ck_assert_int_eq(volume_read(t->files[i], got, FILE_BYTES, 0), (int64_t)t->size[i]);
        for (uint64_t at = 0; at < t->size[i]; at++)
            if (got[at] != t->bytes[i][at])
                ck_abort_msg("file %u byte %lu: %02x, not %02x", i, (unsigned long)at, got[at],
                             t->bytes[i][at]);
    }
}

static void step_write(struct test *t, unsigned file, uint64_t *state, uint64_t at,
                       uint64_t length) {
    static uint8_t data[FILE_BYTES];
    uint8_t fill = (uint8_t)(1 + fixture_random(state) % 255);
    memset(data, fill, length);
    int64_t got = volume_write(t->files[file], data, length, at);
    if (got == -ENOSPC)
        return;
    ck_assert_int_gt(got, 0);
    memset(t->bytes[file] + at, fill, (size_t)got);
    if (at + (uint64_t)got > t->size[file])
        t->size[file] = at + (uint64_t)got;
}

static void step(struct test *t, uint64_t *state) {
    unsigned file = (unsigned)(fixture_random(state) % FILES);
    unsigned choice = (unsigned)(fixture_random(state) % 100);
    uint64_t at = fixture_random(state) % (FILE_BYTES - 1);
    uint64_t length = 1 + fixture_random(state) % (choice % 2 ? 3000 : 60000);
    int rc = 0;
    if (length > FILE_BYTES - at)
        length = FILE_BYTES - at;
    if (choice < 50) {
        step_write(t, file, state, at, length);
    } else if (choice < 60) {
        rc = volume_truncate(t->files[file], at);
        if (rc == 0 && at < t->size[file])
            memset(t->bytes[file] + at, 0, FILE_BYTES - at);
        if (rc == 0)
            t->size[file] = at;
    } else if (choice < 75) {
        rc = volume_fallocate(t->files[file], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
                              length);
        if (rc == 0)
            memset(t->bytes[file] + at, 0, length);
    } else if (choice < 85) {
        bool keep = choice % 2;
        rc = volume_fallocate(t->files[file], keep ? FALLOC_FL_KEEP_SIZE : 0, at, length);
        if (rc == 0 && !keep && at + length > t->size[file])
            t->size[file] = at + length;
    } else if (choice < 92) {
        rc = volume_fsync(t->files[file], false);
    } else if (choice < 96) {
        rc = volume_sync(t->f.volume);
        ck_assert_uint_eq(t->ext->promised_blocks, 0);
    } else if (choice < 98) {
        rc = volume_drop_caches(t->f.volume);
    } else {
        verify(t);
    }
    if (rc != -ENOSPC && rc != -EOPNOTSUPP)
        ck_assert_msg(rc == 0, "%s", strerror(-rc));
    ck_assert_uint_le(t->ext->promised_blocks, t->ext->free_blocks);
}

static void run_random(int kind, uint64_t size, const char *name) {
    struct test t;
    uint64_t state = fixture_seed(name);
    test_open(&t, kind, size);
    for (unsigned i = 0; i < 1500 * fixture_factor(); i++)
        step(&t, &state);
    verify(&t);
    judge(&t);
    ck_assert_int_eq(volume_drop_caches(t.f.volume), 0);
    verify(&t);
    test_close(&t);
}

START_TEST(random_operations) {
    run_random(_i, 16 << 20, "random_operations");
}
END_TEST

/* The files together are larger than the volume. */
START_TEST(random_operations_on_a_full_volume) {
    run_random(_i, 1 << 20, "random_operations_on_a_full_volume");
}
END_TEST

/* Every write that was accepted can be stored, whatever the pattern, down to the last block. */
START_TEST(what_is_accepted_fits) {
    static uint8_t data[8192];
    for (unsigned pattern = 0; pattern < 3; pattern++) {
        struct test t;
        uint64_t accepted = 0;
        test_open(&t, _i, 4 << 20);
        memset(data, 7, sizeof data);
        for (uint64_t i = 0; i < 5000; i++) {
            uint64_t at = pattern == 0   ? i * 1024
                          : pattern == 1 ? i * 8192
                                         : i * 7919 % 5000 * 4096;
            int64_t got = volume_write(t.files[i % FILES], data, 1024, at);
            if (got < 0) {
                ck_assert_int_eq(got, -ENOSPC);
                break;
            }
            accepted += (uint64_t)got;
        }
        /* Promises for the worst case must not keep most of the volume empty. */
        ck_assert_uint_ge(accepted / 1024, t.free_before / 10 * 7);
        ck_assert_int_eq(volume_sync(t.f.volume), 0);
        judge(&t);
        test_close(&t);
    }
}
END_TEST

START_TEST(blocks_are_chosen_late) {
    static uint8_t data[1 << 20];
    struct test t;
    struct attributes attributes;
    struct extent extent;
    test_open(&t, 0, 64 << 20);
    uint64_t before = t.ext->free_blocks;
    for (unsigned i = 0; i < 20; i++) /* two files in turn */
        for (unsigned file = 0; file < 2; file++)
            ck_assert_int_eq(volume_write(t.files[file], data, 50000, i * 50000), 50000);
    ck_assert_uint_eq(t.ext->free_blocks, before);
    ck_assert_uint_le(free_blocks(t.f.volume), t.free_before - 2 * 1000000 / 1024);
    volume_getattr(t.files[0], &attributes);
    ck_assert_uint_ge(attributes.sectors, 1000000 / 512);
    ck_assert_int_eq(volume_seek(t.files[0], 0, SEEK_DATA), 0);
    ck_assert_int_eq(volume_sync(t.f.volume), 0);
    for (unsigned file = 0; file < 2; file++) {
        ck_assert_int_eq(volume_map(t.files[file], 0, &extent), 0);
        ck_assert_uint_ge(extent.length, 1000000);
    }
    /* A file that goes away before it is stored costs nothing. */
    before = t.ext->free_blocks;
    ck_assert_int_eq(volume_write(t.files[2], data, sizeof data, 0), sizeof data);
    ck_assert_int_eq(volume_unlink(t.f.root, "c", 1), 0);
    volume_put(t.files[2], 1);
    ck_assert_uint_eq(t.ext->promised_blocks, 0);
    ck_assert_uint_eq(t.ext->free_blocks, before);
    struct create_request request = {.mode = S_IFREG | 0644};
    ck_assert_int_eq(volume_create(t.f.root, "c", 1, &request, &t.files[2]), 0);
    test_close(&t);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext store");
    TCase *tcase = tcase_create("store");
    tcase_set_timeout(tcase, 120 * (double)fixture_factor());
    tcase_add_loop_test(tcase, random_operations, 0, KINDS);
    tcase_add_loop_test(tcase, random_operations_on_a_full_volume, 0, KINDS);
    tcase_add_loop_test(tcase, what_is_accepted_fits, 0, KINDS);
    tcase_add_test(tcase, blocks_are_chosen_late);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
