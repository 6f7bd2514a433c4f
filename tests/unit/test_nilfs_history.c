/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs/history.c: every checkpoint is a directory of the live mount, in which nothing
 * changes, and which is gone when it is gone.
 */
#include <errno.h>
#include <stdbool.h>

#include "layouts/nilfs/history.h"
#include "tests/unit/fixture.h"

#define SIZE (UINT64_C(64) << 20)

static struct fixture f;

static int find(struct inode *dir, const char *name, struct inode **inode) {
    return volume_lookup(dir, name, (uint32_t)strlen(name), inode);
}

/* The file of the live tree is filled with `fill`, and a checkpoint made of that; its number. */
static uint64_t version(const char *name, char fill, uint32_t bytes) {
    const struct create_request request = {.mode = S_IFREG | 0640};
    struct inode *inode;
    uint64_t number = 0;
    char data[20000];

    memset(data, fill, sizeof(data));
    int error = find(f.root, name, &inode);
    if (error == -ENOENT)
        error = volume_create(f.root, name, (uint32_t)strlen(name), &request, &inode);
    ck_assert_int_eq(error, 0);
    ck_assert_int_eq(volume_truncate(inode, 0), 0);
    ck_assert_int_eq(volume_write(inode, data, bytes, 0), bytes);
    volume_put(inode, 1);
    ck_assert_int_eq(volume_sync(f.volume), 0);
    number = nilfs_of(f.volume)->newest;
    return number;
}

struct search { /* of a checkpoint's name */
    uint64_t number;
    unsigned entries;
    char name[64];
};

static bool visit(void *context, const struct dir_entry *entry) {
    struct search *search = context;

    search->entries++;
    if (entry->ino >> NILFS_INO_BITS == search->number && entry->ino != NILFS_HISTORY_INO)
        snprintf(search->name, sizeof(search->name), "%.*s", (int)entry->name_length, entry->name);
    return true;
}

static struct inode *checkpoints(void) {
    struct inode *inode;

    ck_assert_int_eq(find(f.root, NILFS_HISTORY_NAME, &inode), 0);
    return inode;
}

static struct inode *checkpoint(uint64_t number) {
    struct search search = {.number = number};
    struct inode *all = checkpoints(), *one;

    ck_assert_int_eq(volume_readdir(all, 0, visit, &search), 0);
    ck_assert_int_eq(find(all, search.name, &one), 0);
    volume_put(all, 1);
    return one;
}

static void expect_file(struct inode *dir, const char *name, char fill, uint32_t bytes) {
    struct inode *inode;
    char data[20001];

    ck_assert_int_eq(find(dir, name, &inode), 0);
    ck_assert_int_eq(volume_read(inode, data, sizeof(data), 0), bytes);
    for (uint32_t i = 0; i < bytes; i++)
        ck_assert_int_eq(data[i], fill);
    volume_put(inode, 1);
}

START_TEST(old_versions_are_read) {
    fixture_open(&f, "nilfs2", SIZE, NULL, "history", true);
    uint64_t first = version("file", 'a', 20000), second = version("file", 'b', 7);
    uint64_t third = version("other", 'c', 5000);
    struct inode *dir = checkpoint(first), *none;

    expect_file(dir, "file", 'a', 20000);
    ck_assert_int_eq(find(dir, "other", &none), -ENOENT);
    /* Only the live root has an entrance. */
    ck_assert_int_eq(find(dir, NILFS_HISTORY_NAME, &none), -ENOENT);
    volume_put(dir, 1);
    dir = checkpoint(second);
    expect_file(dir, "file", 'b', 7);
    volume_put(dir, 1);
    dir = checkpoint(third);
    expect_file(dir, "other", 'c', 5000);
    volume_put(dir, 1);
    expect_file(f.root, "file", 'b', 7);
    /* Of what is kept only a few are, and that more than once is no harm. */
    for (unsigned i = 0; i < 20; i++)
        version("file", 'd', 1 + i);
    for (uint64_t number = first; number <= nilfs_of(f.volume)->newest; number++)
        volume_put(checkpoint(number), 1);
    fixture_close(&f);
}
END_TEST

START_TEST(names) {
    struct search search = {0};
    struct inode *dir, *none;

    fixture_open(&f, "nilfs2", SIZE, NULL, "history", true);
    uint64_t number = version("file", 'a', 10);
    char name[64];

    /* Not listed in the root, but there: nothing else can be there. */
    ck_assert_int_eq(volume_readdir(f.root, 0, visit, &search), 0);
    ck_assert_uint_eq(search.entries, 3);
    dir = checkpoints();
    snprintf(name, sizeof(name), "2002-11-05T00:00:00.cp%u", (unsigned)number);
    ck_assert_int_eq(find(dir, name, &none), 0);
    volume_put(none, 1);
    ck_assert_int_eq(volume_checkpoint_keep(f.volume, number, true), 0);
    ck_assert_int_eq(find(dir, name, &none), -ENOENT);
    snprintf(name, sizeof(name), "2002-11-05T00:00:00.ss%u", (unsigned)number);
    ck_assert_int_eq(find(dir, name, &none), 0);
    volume_put(none, 1);
    ck_assert_int_eq(find(dir, "2002-11-05T00:00:00.cp999", &none), -ENOENT);
    ck_assert_int_eq(find(dir, "cp", &none), -ENOENT);
    ck_assert_int_eq(find(dir, "99999999999999999999999999", &none), -ENOENT);
    volume_put(dir, 1);
    fixture_close(&f);
    fixture_open(&f, "nilfs2", SIZE, NULL, NULL, true);
    ck_assert_int_eq(find(f.root, NILFS_HISTORY_NAME, &none), -ENOENT);
    fixture_close(&f);
}
END_TEST

START_TEST(nothing_changes) {
    const struct create_request request = {.mode = S_IFREG | 0640};
    struct attributes attributes = {.mode = 0777, .flags = 0};
    struct inode *all, *dir, *file;

    fixture_open(&f, "nilfs2", SIZE, NULL, "history,atime=strictatime", true);
    dir = checkpoint(version("file", 'a', 10));
    all = checkpoints();
    ck_assert_int_eq(find(dir, "file", &file), 0);
    ck_assert_int_eq(volume_write(file, "x", 1, 0), -EROFS);
    ck_assert_int_eq(volume_truncate(file, 0), -EROFS);
    ck_assert_int_eq(volume_setattr(file, SETATTR_MODE, &attributes), -EROFS);
    ck_assert_int_eq(volume_setattr(file, SETATTR_FLAGS, &attributes), -EROFS);
    ck_assert_int_eq(volume_setattr(all, SETATTR_MTIME_NOW, &attributes), -EROFS);
    ck_assert_int_eq(volume_fallocate(file, 0, 0, 100), -EROFS);
    ck_assert_int_eq(volume_create(dir, "new", 3, &request, NULL), -EROFS);
    ck_assert_int_eq(volume_create(all, "new", 3, &request, NULL), -EROFS);
    ck_assert_int_eq(volume_unlink(dir, "file", 4), -EROFS);
    ck_assert_int_eq(volume_link(file, f.root, "link", 4), -EROFS);
    ck_assert_int_eq(volume_rename(dir, "file", 4, f.root, "moved", 5, 0), -EROFS);
    ck_assert_int_eq(volume_rename(f.root, "file", 4, dir, "moved", 5, 0), -EROFS);
    ck_assert_int_eq(volume_rmdir(f.root, NILFS_HISTORY_NAME, strlen(NILFS_HISTORY_NAME)), -EROFS);
    ck_assert_int_eq(
        volume_rename(f.root, NILFS_HISTORY_NAME, strlen(NILFS_HISTORY_NAME), f.root, "x", 1, 0),
        -EROFS);
    ck_assert_int_eq(
        volume_create(f.root, NILFS_HISTORY_NAME, strlen(NILFS_HISTORY_NAME), &request, NULL),
        -EEXIST);
    /* Access times neither. */
    uint64_t newest = nilfs_of(f.volume)->newest;
    expect_file(dir, "file", 'a', 10);
    ck_assert_int_eq(volume_sync(f.volume), 0);
    ck_assert_uint_eq(nilfs_of(f.volume)->newest, newest);
    volume_put(file, 1);
    volume_put(dir, 1);
    volume_put(all, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(a_checkpoint_goes) {
    struct inode *dir, *file, *none;
    char byte;

    fixture_open(&f, "nilfs2", SIZE, NULL, "history", true);
    uint64_t number = version("file", 'a', 10000);
    version("file", 'b', 10000);
    dir = checkpoint(number);
    ck_assert_int_eq(find(dir, "file", &file), 0);
    ck_assert_int_eq(volume_checkpoint_delete(f.volume, number), 0);
    ck_assert_int_eq(find(dir, "file", &none), -ESTALE);
    ck_assert_int_eq(volume_readdir(dir, 0, visit, &(struct search){0}), -ESTALE);
    ck_assert_int_eq(volume_read(file, &byte, 1, 5000), -ESTALE);
    ck_assert_int_eq(volume_get(f.volume, number << NILFS_INO_BITS | NILFS_ROOT_INO, &none), 0);
    volume_put(none, 1);
    volume_put(file, 1);
    volume_put(dir, 1);
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    ck_assert_int_eq(volume_get(f.volume, number << NILFS_INO_BITS | NILFS_ROOT_INO, &none),
                     -ESTALE);
    fixture_close(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nilfs_history");
    TCase *tests = tcase_create("history");

    tcase_add_test(tests, old_versions_are_read);
    tcase_add_test(tests, names);
    tcase_add_test(tests, nothing_changes);
    tcase_add_test(tests, a_checkpoint_goes);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}
