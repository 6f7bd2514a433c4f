/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * fs/acl.c and fs/volume_acl.c: which lists are sound, what creating and chmod make of them, on
 * every layout.
 */
#include <errno.h>

#include "fs/acl.h"
#include "tests/unit/fixture.h"

#define NO_ID  "\xFF\xFF\xFF\xFF"
#define ID_500 "\xF4\1\0\0"
#define HEADER "\2\0\0\0"

/* The terminator of each literal is not part of the list. */
#define LIST(text) text, sizeof(text) - 1

/* u::rwx,u:500:rwx,g::r-x,m::rwx,o::--- */
#define NAMED                                                                                      \
    HEADER "\1\0\7\0" NO_ID "\2\0\7\0" ID_500 "\4\0\5\0" NO_ID "\x10\0\7\0" NO_ID "\x20\0\0"       \
           "\0" NO_ID
/* u::rwx,g::r-x,o::--- */
#define MINIMAL      HEADER "\1\0\7\0" NO_ID "\4\0\5\0" NO_ID "\x20\0\0\0" NO_ID
#define ENTRY(index) (sizeof(struct acl_header) + (index) * sizeof(struct acl_entry))

static const char *access_name, *default_name;

/* --- values --- */

static const struct {
    const char *value;
    size_t size;
    int count;
    uint32_t permissions;
    bool minimal;
} lists[] = {
    {LIST(NAMED), 5, 0770, false},
    {LIST(MINIMAL), 3, 0750, true},
    {LIST(HEADER), 0, 0, true},
    /* a mask without anybody named */
    {LIST(HEADER "\1\0\6\0" NO_ID "\4\0\7\0" NO_ID "\x10\0\4\0" NO_ID "\x20\0\1\0" NO_ID), 4, 0641,
     false},
    /* two of a kind that may be many */
    {LIST(HEADER "\1\0\6\0" NO_ID "\2\0\1\0" ID_500 "\2\0\2\0" ID_500 "\4\0\7\0" NO_ID
                 "\x10\0\4\0" NO_ID "\x20\0\1\0" NO_ID),
     6, 0641, false},
    {"\2\0\0", 3, -EINVAL, 0, false},
    {LIST("\1\0\0\0"), -EINVAL, 0, false},
    {NAMED, ENTRY(3) - 1, -EINVAL, 0, false},
    {NAMED, ENTRY(4), -EINVAL, 0, false},                                  /* no others */
    {LIST(HEADER "\4\0\5\0" NO_ID "\x20\0\0\0" NO_ID), -EINVAL, 0, false}, /* no owner */
    {LIST(HEADER "\1\0\7\0" NO_ID "\x20\0\0\0" NO_ID), -EINVAL, 0, false}, /* no group */
    {LIST(MINIMAL "\x20\0\0\0" NO_ID), -EINVAL, 0, false},                 /* twice */
    {LIST(HEADER "\1\0\x8\0" NO_ID "\4\0\5\0" NO_ID "\x20\0\0\0" NO_ID), -EINVAL, 0}, /* right */
    {LIST(HEADER "\1\0\7\0" NO_ID "\4\0\5\0" NO_ID "\x40\0\0\0" NO_ID), -EINVAL, 0},  /* tag */
    {LIST(HEADER "\1\0\7\0" NO_ID "\4\0\5\0" NO_ID "\0\0\0\0" NO_ID), -EINVAL, 0},
    {LIST(HEADER "\1\0\7\0" NO_ID "\6\0\5\0" NO_ID "\x20\0\0\0" NO_ID), -EINVAL, 0},
    /* out of order; somebody named and no mask */
    {LIST(HEADER "\4\0\5\0" NO_ID "\1\0\7\0" NO_ID "\x20\0\0\0" NO_ID), -EINVAL, 0},
    {LIST(HEADER "\1\0\7\0" NO_ID "\2\0\7\0" ID_500 "\4\0\5\0" NO_ID "\x20\0\0\0" NO_ID), -EINVAL,
     0},
};

START_TEST(checking) {
    uint32_t permissions;
    bool minimal;

    ck_assert_int_eq(acl_check(lists[_i].value, lists[_i].size, &permissions, &minimal),
                     lists[_i].count);
    if (lists[_i].count < 0)
        return;
    ck_assert_uint_eq(permissions, lists[_i].permissions);
    ck_assert_int_eq(minimal, lists[_i].minimal);
}
END_TEST

START_TEST(names) {
    ck_assert_uint_eq(acl_kind_of(access_name), ACL_ACCESS);
    ck_assert_uint_eq(acl_kind_of(default_name), ACL_DEFAULT);
    ck_assert_uint_eq(acl_kind_of("user.posix_acl_access"), 0);
    ck_assert_uint_eq(acl_kind_of("system.posix_acl_accessory"), 0);
}
END_TEST

static uint32_t permissions_at(const char *value, int index) {
    return le16_load(((const struct acl_entry *)(value + ENTRY(index)))->permissions);
}

/* acl(5), "object creation" and "correspondence between ACL entries and file permission bits". */
START_TEST(masking) {
    char value[] = NAMED;

    ck_assert_uint_eq(acl_inherit(value, sizeof(value) - 1, S_IFREG | 04644), S_IFREG | 04640);
    ck_assert_uint_eq(permissions_at(value, 0), 6);
    ck_assert_uint_eq(permissions_at(value, 1), 7);
    ck_assert_uint_eq(permissions_at(value, 2), 5); /* the mask limits the group already */
    ck_assert_uint_eq(permissions_at(value, 3), 4);
    ck_assert_uint_eq(permissions_at(value, 4), 0);
    acl_set_mode(value, sizeof(value) - 1, 0517);
    ck_assert_uint_eq(permissions_at(value, 0), 5);
    ck_assert_uint_eq(permissions_at(value, 2), 5);
    ck_assert_uint_eq(permissions_at(value, 3), 1);
    ck_assert_uint_eq(permissions_at(value, 4), 7);

    char minimal[] = MINIMAL;
    ck_assert_uint_eq(acl_inherit(minimal, sizeof(minimal) - 1, 0666), 0640);
    acl_set_mode(minimal, sizeof(minimal) - 1, 0123);
    ck_assert_uint_eq(permissions_at(minimal, 1), 2);
}
END_TEST

/* --- inodes --- */

static struct fixture f;

/* False: the format has no lists. */
static bool start(int type) {
    fixture_open(&f, fixture_types[type], 16 << 20, NULL, NULL, true);
    if (f.volume->layout->xattr_set)
        return true;
    fixture_close(&f);
    return false;
}

static struct inode *make(struct inode *dir, const char *name, uint32_t mode, uint32_t umask) {
    const struct create_request request = {.mode = mode, .umask = umask, .target = "target"};
    struct inode *inode;

    ck_assert_int_eq(volume_create(dir, name, strlen(name), &request, &inode), 0);
    return inode;
}

static void set(struct inode *inode, const char *name, const char *value, size_t size) {
    ck_assert_int_eq(volume_setxattr(inode, name, value, size, 0), 0);
}

static void expect(struct inode *inode, const char *name, const char *value, size_t size) {
    char bytes[256];

    ck_assert_int_eq(volume_getxattr(inode, name, bytes, sizeof(bytes)), (int64_t)size);
    ck_assert_int_eq(memcmp(bytes, value, size), 0);
}

static void expect_none(struct inode *inode, const char *name) {
    ck_assert_int_eq(volume_getxattr(inode, name, NULL, 0), -ENODATA);
}

START_TEST(setting) {
    if (!start(_i))
        return;
    struct inode *file = make(f.root, "file", S_IFREG | 04600, 0);
    set(file, access_name, LIST(NAMED));
    ck_assert_uint_eq(file->mode, S_IFREG | 04770);
    expect(file, access_name, LIST(NAMED));
    /* What the mode says needs no list; no list leaves the mode alone. */
    set(file, access_name, LIST(MINIMAL));
    ck_assert_uint_eq(file->mode, S_IFREG | 04750);
    expect_none(file, access_name);
    set(file, access_name, LIST(NAMED));
    set(file, access_name, LIST(HEADER));
    expect_none(file, access_name);
    ck_assert_uint_eq(file->mode, S_IFREG | 04770);
    ck_assert_int_eq(volume_removexattr(file, access_name), 0);
    /* Refusals change nothing. */
    ck_assert_int_eq(volume_setxattr(file, access_name, NAMED, ENTRY(3), 0), -EINVAL);
    ck_assert_int_eq(volume_setxattr(file, access_name, NULL, 0, 0), -EINVAL);
    ck_assert_int_eq(volume_setxattr(file, default_name, LIST(NAMED), 0), -EACCES);
    struct inode *link = make(f.root, "link", S_IFLNK | 0777, 0);
    ck_assert_int_eq(volume_setxattr(link, access_name, LIST(NAMED), 0), -ENOTSUP);
    ck_assert_uint_eq(file->mode, S_IFREG | 04770);
    /* A default list is kept even when it is minimal, and is not the directory's own mode. */
    set(f.root, default_name, LIST(MINIMAL));
    expect(f.root, default_name, LIST(MINIMAL));
    ck_assert_uint_eq(f.root->mode & 0777, 0755);
    volume_put(link, 1);
    volume_put(file, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(changing_the_mode) {
    const struct attributes attributes = {.mode = 02704};

    if (!start(_i))
        return;
    struct inode *file = make(f.root, "file", S_IFREG | 0600, 0);
    set(file, access_name, LIST(NAMED));
    ck_assert_int_eq(volume_setattr(file, SETATTR_MODE, &attributes), 0);
    ck_assert_uint_eq(file->mode, S_IFREG | 02704);
    expect(file, access_name,
           LIST(HEADER "\1\0\7\0" NO_ID "\2\0\7\0" ID_500 "\4\0\5\0" NO_ID "\x10\0\0\0" NO_ID
                       "\x20\0\4\0" NO_ID));
    volume_put(file, 1);
    /* A list that came with the volume is found, too. */
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    ck_assert_int_eq(volume_lookup(f.root, "file", 4, &file), 0);
    ck_assert_int_eq(volume_setattr(file, SETATTR_MODE, &(struct attributes){.mode = 0770}), 0);
    expect(file, access_name, LIST(NAMED));
    volume_put(file, 1);
    fixture_close(&f);
}
END_TEST

START_TEST(inheriting) {
    if (!start(_i))
        return;
    struct inode *dir = make(f.root, "dir", S_IFDIR | 0777, 027);
    ck_assert_uint_eq(dir->mode, S_IFDIR | 0750);
    struct inode *before = make(dir, "before", S_IFREG | 0666, 022);
    ck_assert_uint_eq(before->mode, S_IFREG | 0644);
    set(dir, default_name, LIST(NAMED));
    expect_none(before, access_name);

    struct inode *file = make(dir, "file", S_IFREG | 0666, 077);
    ck_assert_uint_eq(file->mode, S_IFREG | 0660);
    expect(file, access_name,
           LIST(HEADER "\1\0\6\0" NO_ID "\2\0\7\0" ID_500 "\4\0\5\0" NO_ID "\x10\0\6\0" NO_ID
                       "\x20\0\0\0" NO_ID));
    expect_none(file, default_name);
    struct inode *link = make(dir, "link", S_IFLNK | 0777, 0);
    ck_assert_uint_eq(link->mode, S_IFLNK | 0777);
    volume_put(dir, 1);

    /* Also where the directory was looked up anew, and down the tree. */
    ck_assert_int_eq(volume_drop_caches(f.volume), 0);
    ck_assert_int_eq(volume_lookup(f.root, "dir", 3, &dir), 0);
    struct inode *sub = make(dir, "sub", S_IFDIR | 0777, 077);
    ck_assert_uint_eq(sub->mode, S_IFDIR | 0770);
    expect(sub, default_name, LIST(NAMED));
    expect(sub, access_name, LIST(NAMED));
    set(sub, default_name, LIST(MINIMAL));
    struct inode *plain = make(sub, "plain", S_IFREG | 0666, 077);
    ck_assert_uint_eq(plain->mode, S_IFREG | 0640);
    expect_none(plain, access_name);
    /* No more. */
    ck_assert_int_eq(volume_removexattr(sub, default_name), 0);
    struct inode *after = make(sub, "after", S_IFREG | 0666, 077);
    ck_assert_uint_eq(after->mode, S_IFREG | 0600);
    struct inode *all[] = {dir, before, file, link, sub, plain, after};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        volume_put(all[i], 1);
    fixture_close(&f);
}
END_TEST

static void ignore(void *context, enum log_level level, const char *text) {
    (void)context;
    (void)level;
    (void)text;
}

/* What a layout hands out is not believed. */
START_TEST(damage) {
    const struct create_request request = {.mode = S_IFREG | 0644};
    struct volume_usage before, after;

    start(0);
    f.log.emit = ignore; /* a message is due */
    ck_assert_int_eq(f.volume->layout->xattr_set(f.root, default_name, "junk", 4, 0), 0);
    ck_assert_int_eq(volume_statfs(f.volume, &before), 0);
    ck_assert_int_eq(volume_create(f.root, "file", 4, &request, NULL), -EUCLEAN);
    ck_assert_int_eq(volume_statfs(f.volume, &after), 0);
    ck_assert_uint_eq(before.inodes_free, after.inodes_free);
    ck_assert_int_eq(volume_lookup(f.root, "file", 4, &(struct inode *){0}), -ENOENT);
    fixture_close(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("acl");
    TCase *tests = tcase_create("lists");

    access_name = acl_name(ACL_ACCESS);
    default_name = acl_name(ACL_DEFAULT);
    tcase_add_loop_test(tests, checking, 0, sizeof(lists) / sizeof(lists[0]));
    tcase_add_test(tests, names);
    tcase_add_test(tests, masking);
    tcase_add_loop_test(tests, setting, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, changing_the_mode, 0, FIXTURE_TYPE_COUNT);
    tcase_add_loop_test(tests, inheriting, 0, FIXTURE_TYPE_COUNT);
    tcase_add_test(tests, damage);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}
