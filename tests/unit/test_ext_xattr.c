/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/xattr.c and acl.c: every error, random changes against a model, shared blocks,
 * damage. e2fsck is the judge where it is installed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "layouts/ext/ext.h"
#include "tests/unit/fixture.h"

/* --- a volume on an image file --- */

static struct image {
    char path[64];
    struct clock clock;
    struct log log;
    char message[512]; /* the last warning or error */
    struct volume *volume;
    struct inode *root, *file, *dir;
} image;

static void keep_message(void *context, enum log_level level, const char *text) {
    (void)context;
    (void)level;
    snprintf(image.message, sizeof(image.message), "%s", text);
}

static struct inode *make(const char *name, uint32_t mode) {
    struct create_request request = {.mode = mode};
    struct inode *inode;

    ck_assert_int_eq(volume_create(image.root, name, strlen(name), &request, &inode), 0);
    return inode;
}

static struct inode *look(const char *name) {
    struct inode *inode;

    ck_assert_int_eq(volume_lookup(image.root, name, strlen(name), &inode), 0);
    return inode;
}

static void image_mount(void) {
    struct device *device;

    ck_assert_int_eq(device_open_image(image.path, 0, 0, &image.clock, &image.log, &device), 0);
    struct volume_config config = {
        .type = "ext2", .device = device, .clock = &image.clock, .log = &image.log};
    ck_assert_int_eq(volume_open(&config, &image.volume), 0);
    ck_assert_int_eq(volume_root(image.volume, &image.root), 0);
}

static void image_unmount(void) {
    volume_put(image.file, 1);
    volume_put(image.dir, 1);
    volume_put(image.root, 1);
    ck_assert_int_eq(volume_close(image.volume), 0);
}

static void image_remount(void) {
    image_unmount();
    image_mount();
    image.file = look("file");
    image.dir = look("dir");
}

static void image_create(const char *mkfs_options) {
    const struct layout *layout;
    const struct layout_type *type;
    struct options options;
    struct device *device;

    memset(&image, 0, sizeof(image));
    snprintf(image.path, sizeof(image.path), "/tmp/test_ext_xattr.XXXXXX");
    int fd = mkstemp(image.path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    clock_init_virtual(&image.clock, NULL);
    image.log = (struct log){keep_message, NULL, LOG_LEVEL_WARNING};
    ck_assert_int_eq(layout_find("ext2", &layout, &type), 0);
    ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, &image.log), 0);
    ck_assert_int_eq(options_parse(&options, mkfs_options), 0);
    ck_assert_int_eq(
        device_open_image(image.path, DEVICE_CREATE, 8 << 20, &image.clock, &image.log, &device),
        0);
    ck_assert_int_eq(layout_format("ext2", device, &options), 0);
    device_close(device);
    options_free(&options);
    image_mount();
    image.file = make("file", S_IFREG | 0644);
    image.dir = make("dir", S_IFDIR | 0755);
}

/* True when e2fsck is not installed. */
static bool image_clean(void) {
    char command[384];

    if (system("PATH=$PATH:/sbin:/usr/sbin command -v e2fsck >/dev/null") != 0)
        return true;
    snprintf(command, sizeof(command),
             "PATH=$PATH:/sbin:/usr/sbin; out=$(e2fsck -fn %s 2>&1) || { echo \"$out\"; false; }",
             image.path);
    return system(command) == 0;
}

static void image_finish(void) {
    image_unmount();
    ck_assert(image_clean());
    unlink(image.path);
}

static const char *const layouts[] = {"block_size=1024,inode_size=128",
                                      "block_size=1024,inode_size=256",
                                      "block_size=4096,inode_size=256"};
#define LAYOUTS ((int)(sizeof(layouts) / sizeof(layouts[0])))

/* --- errors and small cases --- */

START_TEST(errors) {
    char value[8192] = {0}, name[NAME_LENGTH_MAX + 16];

    image_create(layouts[_i]);
    struct inode *f = image.file;
    ck_assert_int_eq(volume_getxattr(f, "user.a", value, 10), -ENODATA);
    ck_assert_int_eq(volume_removexattr(f, "user.a"), -ENODATA);
    ck_assert_int_eq(volume_setxattr(f, "user.a", "12345", 5, XATTR_REPLACE), -ENODATA);
    ck_assert_int_eq(volume_setxattr(f, "user.a", "12345", 5, XATTR_CREATE), 0);
    ck_assert_int_eq(volume_setxattr(f, "user.a", "1", 1, XATTR_CREATE), -EEXIST);
    ck_assert_int_eq(volume_getxattr(f, "user.a", NULL, 0), 5);
    ck_assert_int_eq(volume_getxattr(f, "user.a", value, 4), -ERANGE);
    ck_assert_int_eq(volume_getxattr(f, "user.a", value, 5), 5);
    ck_assert_int_eq(memcmp(value, "12345", 5), 0);
    ck_assert_int_eq(volume_setxattr(f, "user.a", "", 0, XATTR_REPLACE), 0);
    ck_assert_int_eq(volume_getxattr(f, "user.a", value, 5), 0);
    ck_assert_int_eq(volume_listxattr(f, NULL, 0), 7);
    ck_assert_int_eq(volume_listxattr(f, value, 6), -ERANGE);
    ck_assert_int_eq(volume_listxattr(f, value, 7), 7);
    ck_assert_str_eq(value, "user.a");
    ck_assert_int_eq(volume_setxattr(f, "system.other", "x", 1, 0), -ENOTSUP);
    ck_assert_int_eq(volume_setxattr(f, "nothing", "x", 1, 0), -ENOTSUP);
    ck_assert_int_eq(volume_setxattr(f, "user.", "x", 1, 0), -EINVAL);
    ck_assert_int_eq(volume_setxattr(f, "user.big", value, sizeof(value), 0), -ENOSPC);
    ck_assert_int_eq(volume_setxattr(f, "user.a", value, 4096, 0), -ENOSPC);
    ck_assert_int_eq(volume_getxattr(f, "user.a", value, 5), 0);
    memset(name, 'n', sizeof(name));
    memcpy(name, "user.", 5);
    name[5 + 256] = '\0';
    ck_assert_int_eq(volume_setxattr(f, name, "x", 1, 0), -ERANGE);
    name[5 + 255] = '\0';
    ck_assert_int_eq(volume_setxattr(f, name, "x", 1, 0), 0);
    ck_assert_int_eq(volume_getxattr(f, name, value, 1), 1);
    image_finish();
}
END_TEST

/* The block comes and goes, and the file's count of sectors with it. */
START_TEST(sectors) {
    char value[900] = {1};

    image_create(layouts[_i]);
    uint64_t empty = image.file->sectors;
    ck_assert_int_eq(volume_setxattr(image.file, "user.large", value, sizeof(value), 0), 0);
    ck_assert_uint_gt(image.file->sectors, empty);
    image_remount();
    ck_assert_uint_gt(image.file->sectors, empty);
    ck_assert_int_eq(volume_removexattr(image.file, "user.large"), 0);
    ck_assert_uint_eq(image.file->sectors, empty);
    ck_assert_int_eq(volume_setxattr(image.file, "user.large", value, sizeof(value), 0), 0);
    ck_assert_int_eq(volume_unlink(image.root, "file", 4), 0);
    volume_put(image.file, 1);
    image.file = make("file", S_IFREG | 0644);
    ck_assert_int_eq(volume_listxattr(image.file, NULL, 0), 0);
    image_finish();
}
END_TEST

/* The block that Linux 6.1 makes of the same three attributes, hashes included. */
START_TEST(as_linux) {
    static const unsigned char first[] = "\x00\x00\x02\xEA\1\0\0\0\1\0\0\0\xDD\x98\x8C\x71"
                                         "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                         "\1\1\xF8\3\0\0\0\0\5\0\0\0\x67\x34\x31\x32"
                                         "a\0\0\0\6\1\0\0\0\0\0\0\0\0\0\0\xD2\x90\xC6\xDElonger\0\0"
                                         "\3\4\xEC\3\0\0\0\0\x0B\0\0\0\x7C\x72\x6F\xD3"
                                         "bcd";
    static const char last[] = "xyzzy-plugh\0"
                               "12345\0\0";
    struct buffer *buffer;

    image_create("block_size=1024,inode_size=128");
    ck_assert_int_eq(volume_setxattr(image.file, "trusted.bcd", "xyzzy-plugh", 11, 0), 0);
    ck_assert_int_eq(volume_setxattr(image.file, "user.longer", "", 0, 0), 0);
    ck_assert_int_eq(volume_setxattr(image.file, "user.a", "12345", 5, 0), 0);
    ck_assert_int_eq(buffer_get(ext_of(image.volume)->buffers, ext_inode_of(image.file)->file_acl,
                                PURPOSE_XATTR, &buffer),
                     0);
    const char *block = buffer_data(buffer);
    ck_assert_int_eq(memcmp(block, first, sizeof(first)), 0);
    ck_assert_int_eq(memcmp(block + 1024 - sizeof(last), last, sizeof(last)), 0);
    buffer_put(buffer);
    image_finish();
}
END_TEST

/* --- random changes against a model --- */

#define NAMES     24
#define VALUE_MAX 200

static const char *const prefixes[] = {"user.", "trusted.", "security."};

static struct {
    char name[64];
    int length; /* -1: absent */
    char value[VALUE_MAX];
} model[NAMES];

static void model_check(struct inode *inode) {
    char value[VALUE_MAX], list[NAMES * 64];
    int64_t expected = 0;

    for (int i = 0; i < NAMES; i++) {
        int64_t rc = volume_getxattr(inode, model[i].name, value, sizeof(value));
        ck_assert_int_eq(rc, model[i].length < 0 ? -ENODATA : model[i].length);
        if (rc > 0)
            ck_assert_int_eq(memcmp(value, model[i].value, rc), 0);
        if (rc >= 0)
            expected += strlen(model[i].name) + 1;
    }
    ck_assert_int_eq(volume_listxattr(inode, list, sizeof(list)), expected);
}

START_TEST(random_changes) {
    uint64_t random = fixture_seed(layouts[_i]);
    int full = 0;

    image_create(layouts[_i]);
    for (int i = 0; i < NAMES; i++) {
        uint32_t length = fixture_random(&random) % 30;
        int start = snprintf(model[i].name, sizeof(model[i].name), "%s%d", prefixes[i % 3], i);
        memset(model[i].name + start, 'a', length);
        model[i].name[start + length] = '\0';
        model[i].length = -1;
    }
    for (unsigned step = 0; step < 4000 * fixture_factor(); step++) {
        int i = fixture_random(&random) % NAMES;
        if (fixture_random(&random) % 3 == 0) {
            int rc = volume_removexattr(image.file, model[i].name);
            ck_assert_int_eq(rc, model[i].length < 0 ? -ENODATA : 0);
            model[i].length = -1;
        } else {
            char value[VALUE_MAX];
            int length = fixture_random(&random) % VALUE_MAX;
            for (int j = 0; j < length; j++)
                value[j] = (char)fixture_random(&random);
            int rc = volume_setxattr(image.file, model[i].name, value, length, 0);
            ck_assert(rc == 0 || rc == -ENOSPC);
            full += rc != 0;
            if (rc == 0) {
                memcpy(model[i].value, value, length);
                model[i].length = length;
            }
        }
        if (step % 50 == 0)
            model_check(image.file);
        if (step % 1000 == 999) {
            image_remount();
            model_check(image.file);
        }
    }
    if (_i < 2)
        ck_assert_int_gt(full, 0);
    image_finish();
}
END_TEST

/* --- shared blocks --- */

/* Makes "dir" a second owner of the block of "file", as Linux does for files of equal attributes.
 */
static void share_block(void) {
    struct ext *ext = ext_of(image.volume);
    struct buffer *buffer;

    ext_inode_of(image.dir)->file_acl = ext_inode_of(image.file)->file_acl;
    image.dir->sectors += ext->geometry.block_size / DEVICE_SECTOR;
    ck_assert_int_eq(
        buffer_get(ext->buffers, ext_inode_of(image.file)->file_acl, PURPOSE_XATTR, &buffer), 0);
    struct ext_disk_xattr_header *header = buffer_data(buffer);
    le32_store(&header->h_refcount, 2);
    buffer_dirty(buffer);
    buffer_put(buffer);
    ck_assert_int_eq(ext_inode_store(image.dir), 0);
}

START_TEST(shared_block) {
    char value[600] = {7};

    image_create("block_size=1024,inode_size=128");
    ck_assert_int_eq(volume_setxattr(image.file, "user.a", value, sizeof(value), 0), 0);
    share_block();
    image_remount();
    ck_assert_int_eq(volume_getxattr(image.dir, "user.a", value, sizeof(value)), sizeof(value));
    switch (_i) {
    case 0: /* a change makes a copy */
        ck_assert_int_eq(volume_setxattr(image.dir, "user.b", "b", 1, 0), 0);
        ck_assert_int_eq(volume_getxattr(image.file, "user.b", value, 1), -ENODATA);
        ck_assert_uint_ne(ext_inode_of(image.dir)->file_acl, ext_inode_of(image.file)->file_acl);
        break;
    case 1: /* a removal leaves the other's alone */
        ck_assert_int_eq(volume_removexattr(image.dir, "user.a"), 0);
        ck_assert_uint_eq(ext_inode_of(image.dir)->file_acl, 0);
        break;
    default: /* so does the end of an owner */
        ck_assert_int_eq(volume_unlink(image.root, "file", 4), 0);
        volume_put(image.file, 1);
        image.file = make("file", S_IFREG | 0644);
        ck_assert_int_eq(volume_getxattr(image.dir, "user.a", value, sizeof(value)), sizeof(value));
        image_finish();
        return;
    }
    ck_assert_int_eq(volume_getxattr(image.file, "user.a", value, sizeof(value)), sizeof(value));
    image_finish();
}
END_TEST

/* --- access control lists --- */

#define ACL_ACCESS  "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"
#define NO_ID       "\xFF\xFF\xFF\xFF"

/* u::rw-,u:1000:r--,g::r--,m::r-x,o::--- */
static const char acl_named[] = "\2\0\0\0"
                                "\1\0\6\0" NO_ID "\2\0\4\0\xE8\3\0\0"
                                "\4\0\4\0" NO_ID "\x10\0\5\0" NO_ID "\x20\0\0\0" NO_ID;
/* u::rwx,g::r--,o::--x */
static const char acl_minimal[] = "\2\0\0\0"
                                  "\1\0\7\0" NO_ID "\4\0\4\0" NO_ID "\x20\0\1\0" NO_ID;

START_TEST(access_control_lists) {
    char value[128];

    image_create(layouts[_i]);
    struct inode *f = image.file;
    ck_assert_int_eq(volume_setxattr(f, ACL_ACCESS, acl_named, sizeof(acl_named) - 1, 0), 0);
    ck_assert_uint_eq(f->mode, S_IFREG | 0650);
    image_remount();
    f = image.file;
    ck_assert_int_eq(volume_getxattr(f, ACL_ACCESS, NULL, 0), sizeof(acl_named) - 1);
    ck_assert_int_eq(volume_getxattr(f, ACL_ACCESS, value, 43), -ERANGE);
    ck_assert_int_eq(volume_getxattr(f, ACL_ACCESS, value, sizeof(value)), sizeof(acl_named) - 1);
    ck_assert_int_eq(memcmp(value, acl_named, sizeof(acl_named) - 1), 0);
    ck_assert_int_eq(volume_listxattr(f, value, sizeof(value)), sizeof(ACL_ACCESS));
    ck_assert_str_eq(value, ACL_ACCESS);
    /* What the mode says needs no list. */
    ck_assert_int_eq(volume_setxattr(f, ACL_ACCESS, acl_minimal, sizeof(acl_minimal) - 1, 0), 0);
    ck_assert_uint_eq(f->mode, S_IFREG | 0741);
    ck_assert_int_eq(volume_getxattr(f, ACL_ACCESS, NULL, 0), -ENODATA);
    /* Defaults are for directories, and say nothing of the directory's own mode. */
    ck_assert_int_eq(volume_setxattr(f, ACL_DEFAULT, acl_named, sizeof(acl_named) - 1, 0), -EACCES);
    struct inode *d = image.dir;
    ck_assert_int_eq(volume_setxattr(d, ACL_DEFAULT, acl_minimal, sizeof(acl_minimal) - 1, 0), 0);
    ck_assert_int_eq(volume_getxattr(d, ACL_DEFAULT, value, sizeof(value)),
                     sizeof(acl_minimal) - 1);
    ck_assert_uint_eq(d->mode, S_IFDIR | 0755);
    /* A list without entries takes it away. */
    ck_assert_int_eq(volume_setxattr(d, ACL_DEFAULT, acl_minimal, 4, 0), 0);
    ck_assert_int_eq(volume_getxattr(d, ACL_DEFAULT, NULL, 0), -ENODATA);
    /* Cut short, of another version, without its mask. */
    ck_assert_int_eq(volume_setxattr(f, ACL_ACCESS, acl_named, 21, 0), -EINVAL);
    ck_assert_int_eq(volume_setxattr(f, ACL_ACCESS, acl_named + 4, 12, 0), -EINVAL);
    ck_assert_int_eq(volume_setxattr(f, ACL_ACCESS, acl_named, 28, 0), -EINVAL);
    image_finish();
}
END_TEST

/* --- damage --- */

static const struct {
    uint32_t at; /* in the block */
    const char *bytes;
    size_t length;
    const char *message;
} damages[] = {
    {0, "\1", 1, "magic number"},        {4, "\0\0\0\0", 4, "at least one owner"},
    {8, "\2", 1, "length of one block"}, {34, "\xFF\xFF", 2, "reaches beyond the area"},
    {36, "\1", 1, "another inode"},      {40, "\xFF\xFF\xFF\xFF", 4, "reaches beyond the area"},
};

START_TEST(damaged_block) {
    char value[600] = {7}, where[64];

    image_create("block_size=1024,inode_size=128");
    ck_assert_int_eq(volume_setxattr(image.file, "user.a", value, sizeof(value), 0), 0);
    uint32_t block = ext_inode_of(image.file)->file_acl;
    image_unmount();
    int fd = open(image.path, O_WRONLY);
    ck_assert_int_eq(
        pwrite(fd, damages[_i].bytes, damages[_i].length, (off_t)block * 1024 + damages[_i].at),
        (ssize_t)damages[_i].length);
    close(fd);
    image_mount();
    image.file = look("file");
    image.dir = look("dir");
    ck_assert_int_eq(volume_getxattr(image.file, "user.a", value, sizeof(value)), -EUCLEAN);
    snprintf(where, sizeof(where), "volume block %u", block);
    ck_assert_ptr_nonnull(strstr(image.message, where));
    ck_assert_ptr_nonnull(strstr(image.message, damages[_i].message));
    ck_assert_int_eq(volume_listxattr(image.file, value, sizeof(value)), -EUCLEAN);
    ck_assert_int_lt(volume_setxattr(image.file, "user.b", "b", 1, 0), 0);
    image_unmount();
    unlink(image.path);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext_xattr");
    TCase *tests = tcase_create("attributes");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, errors, 0, LAYOUTS);
    tcase_add_loop_test(tests, sectors, 0, LAYOUTS);
    tcase_add_test(tests, as_linux);
    tcase_add_loop_test(tests, random_changes, 0, LAYOUTS);
    tcase_add_loop_test(tests, shared_block, 0, 3);
    tcase_add_loop_test(tests, access_control_lists, 0, LAYOUTS);
    tcase_add_loop_test(tests, damaged_block, 0, sizeof(damages) / sizeof(damages[0]));
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}
