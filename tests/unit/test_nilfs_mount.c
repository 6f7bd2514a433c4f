/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs/mount.c, recovery.c: which state of a volume can be mounted how, what is found
 * after a power cut, and that reading changes nothing.
 */
#include <errno.h>
#include <inttypes.h>

#include "fs/pagecache.h"
#include "layouts/nilfs/ifile.h"
#include "layouts/nilfs/layout.h"
#include "layouts/nilfs/super.h"
#include "tests/unit/fixture.h"

#define SIZE      (UINT64_C(8) << 20)
#define GEOMETRY  "block_size=1024,blocks_per_segment=64"
#define PIECE     (1u << 20)
#define DATA_SIZE 5000u

struct disk { /* whose bytes are looked at between mounts */
    struct clock clock;
    struct log log;
    struct volume *volume;
    uint8_t *bytes; /* SIZE, owned */
};

static void keep_quiet(void *context, enum log_level level, const char *text) {
    (void)context, (void)level, (void)text;
}

static void bytes_copy(struct device *device, uint8_t *bytes, bool out) {
    for (uint64_t at = 0; at < SIZE; at += PIECE) {
        if (out)
            ck_assert_int_eq(device_read(device, at, bytes + at, PIECE, PURPOSE_OTHER), 0);
        else
            ck_assert_int_eq(device_write(device, at, bytes + at, PIECE, PURPOSE_OTHER), 0);
    }
}

static int try_mount(struct disk *disk, const char *options, bool read_only) {
    struct device *device;
    struct volume_config config = {.type = "nilfs2",
                                   .clock = &disk->clock,
                                   .log = &disk->log,
                                   .options = options,
                                   .read_only = read_only};

    ck_assert_int_eq(device_open_ram(SIZE, &disk->clock, &disk->log, &device), 0);
    bytes_copy(device, disk->bytes, false);
    config.device = device;
    int error = volume_open(&config, &disk->volume);
    if (error)
        device_close(device);
    return error;
}

static void mount_it(struct disk *disk, const char *options, bool read_only) {
    ck_assert_int_eq(try_mount(disk, options, read_only), 0);
}

/* The power goes: the bytes stay as they are. What the mount still has to say is not written. */
static void cut_power(struct disk *disk) {
    bytes_copy(disk->volume->device, disk->bytes, true);
    ck_assert_int_eq(volume_close(disk->volume), 0);
}

static void unmount_it(struct disk *disk) {
    struct nilfs *nilfs = nilfs_of(disk->volume);

    ck_assert_int_eq(volume_sync(disk->volume), 0);
    if (nilfs->supers.mounted) /* as volume_close does, but the device stays */
        ck_assert_int_eq(nilfs_super_unmounted(nilfs, nilfs->clean_segments), 0);
    bytes_copy(disk->volume->device, disk->bytes, true);
    ck_assert_int_eq(volume_close(disk->volume), 0);
}

static void disk_make(struct disk *disk) {
    struct options options;
    struct device *device;

    *disk = (struct disk){.log = {.emit = keep_quiet, .threshold = LOG_LEVEL_ERROR}};
    clock_init_virtual(&disk->clock, NULL);
    disk->bytes = malloc(SIZE);
    ck_assert_ptr_nonnull(disk->bytes);
    ck_assert_int_eq(device_open_ram(SIZE, &disk->clock, &disk->log, &device), 0);
    ck_assert_int_eq(options_init(&options, nilfs_option_table, OPTION_MKFS, &disk->log), 0);
    ck_assert_int_eq(options_parse(&options, GEOMETRY), 0);
    ck_assert_int_eq(layout_format("nilfs2", device, &options), 0);
    options_free(&options);
    bytes_copy(device, disk->bytes, true);
    device_close(device);
}

static void write_file(struct disk *disk, const char *name, char fill, bool data_only) {
    struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *root, *inode;
    char data[DATA_SIZE];

    memset(data, fill, sizeof(data));
    ck_assert_int_eq(volume_root(disk->volume, &root), 0);
    int error = volume_lookup(root, name, (uint32_t)strlen(name), &inode);
    if (error == -ENOENT)
        error = volume_create(root, name, (uint32_t)strlen(name), &request, &inode);
    ck_assert_int_eq(error, 0);
    ck_assert_int_eq(volume_write(inode, data, sizeof(data), 0), sizeof(data));
    ck_assert_int_eq(volume_fsync(inode, data_only), 0);
    volume_put(inode, 1);
    volume_put(root, 1);
}

/* What the file is filled with; 0: there is no such file. */
static char read_file(struct disk *disk, const char *name) {
    struct inode *root, *inode;
    char data[DATA_SIZE];

    ck_assert_int_eq(volume_root(disk->volume, &root), 0);
    int error = volume_lookup(root, name, (uint32_t)strlen(name), &inode);
    volume_put(root, 1);
    if (error == -ENOENT)
        return 0;
    ck_assert_int_eq(error, 0);
    ck_assert_int_eq(volume_read(inode, data, sizeof(data), 0), sizeof(data));
    volume_put(inode, 1);
    for (size_t i = 1; i < sizeof(data); i++)
        ck_assert_int_eq(data[i], data[0]);
    return data[0];
}

/* After a checkpoint with "file" of 'a' and, behind it, a data-only log that makes it 'b'. */
static void disk_cut(struct disk *disk) {
    disk_make(disk);
    mount_it(disk, "", false);
    write_file(disk, "file", 'a', false);
    ck_assert_int_eq(volume_sync(disk->volume), 0);
    write_file(disk, "file", 'b', true);
    cut_power(disk);
}

static void disk_free(struct disk *disk) {
    free(disk->bytes);
}

START_TEST(clean) {
    struct disk disk;

    disk_make(&disk);
    mount_it(&disk, "", false);
    write_file(&disk, "file", 'a', false);
    unmount_it(&disk);
    mount_it(&disk, "norecovery", false);
    ck_assert_int_eq(read_file(&disk, "file"), 'a');
    unmount_it(&disk);
    mount_it(&disk, "", true);
    ck_assert_int_eq(read_file(&disk, "file"), 'a');
    ck_assert_int_eq(volume_close(disk.volume), 0);
    disk_free(&disk);
}
END_TEST

static const struct cut_case {
    const char *options;
    bool read_only;
    int error;
    char found;
} cut_cases[] = {
    {"", false, 0, 'b'},          {"", true, 0, 'b'},
    {"norecovery", true, 0, 'a'}, {"norecovery", false, -EINVAL, 0},
    {"cp=2", false, 0, 'a'},      {"cp=1", false, 0, 0},
    {"cp=99", true, -EINVAL, 0},
};

START_TEST(after_a_cut) {
    const struct cut_case *expected = &cut_cases[_i];
    struct disk disk;

    disk_cut(&disk);
    ck_assert_int_eq(try_mount(&disk, expected->options, expected->read_only), expected->error);
    if (!expected->error) {
        bool writable = *expected->options == '\0' && !expected->read_only;
        ck_assert_int_eq(disk.volume->read_only, !writable);
        ck_assert_int_eq(read_file(&disk, "file"), expected->found);
        ck_assert_int_eq(volume_close(disk.volume), 0);
    }
    disk_free(&disk);
}
END_TEST

START_TEST(reading_changes_nothing) {
    struct disk disk;
    uint8_t *after = malloc(SIZE);

    ck_assert_ptr_nonnull(after);
    disk_cut(&disk);
    mount_it(&disk, "", true);
    ck_assert_int_eq(read_file(&disk, "file"), 'b');
    ck_assert_int_eq(volume_sync(disk.volume), 0);
    bytes_copy(disk.volume->device, after, true);
    ck_assert_int_eq(volume_close(disk.volume), 0);
    ck_assert_mem_eq(disk.bytes, after, SIZE);
    free(after);
    disk_free(&disk);
}
END_TEST

/* What was recovered is in a checkpoint, and not recovered again after the next cut. */
START_TEST(cut_again) {
    struct disk disk;

    disk_cut(&disk);
    mount_it(&disk, "", false);
    write_file(&disk, "file", 'c', false);
    write_file(&disk, "other", 'd', false);
    cut_power(&disk);
    mount_it(&disk, "", false);
    ck_assert_int_eq(read_file(&disk, "file"), 'c');
    ck_assert_int_eq(read_file(&disk, "other"), 'd');
    unmount_it(&disk);
    mount_it(&disk, "", true);
    ck_assert_int_eq(read_file(&disk, "file"), 'c');
    ck_assert_int_eq(volume_close(disk.volume), 0);
    disk_free(&disk);
}
END_TEST

/* Hundreds of checkpoints over many segments lie behind what the super block names. */
START_TEST(far_from_the_cursor) {
    struct disk disk;

    disk_make(&disk);
    mount_it(&disk, "", false);
    for (int i = 0; i < 60; i++)
        write_file(&disk, i % 2 ? "even" : "odd", (char)('A' + i % 60), false);
    uint64_t newest = nilfs_of(disk.volume)->newest;
    cut_power(&disk);
    mount_it(&disk, "", true);
    ck_assert_uint_eq(nilfs_of(disk.volume)->newest, newest);
    ck_assert_int_eq(read_file(&disk, "even"), 'A' + 59);
    ck_assert_int_eq(read_file(&disk, "odd"), 'A' + 58);
    ck_assert_int_eq(volume_close(disk.volume), 0);
    disk_free(&disk);
}
END_TEST

/* A file that was removed while it was in use, in a checkpoint before a cut, is freed by the next
 * mount; a read-only one leaves it. */
START_TEST(frees_leftovers) {
    struct disk disk;
    struct inode *root, *inode;
    struct nilfs_disk_inode record;

    disk_make(&disk);
    mount_it(&disk, "", false);
    write_file(&disk, "kept", 'k', false);
    write_file(&disk, "file", 'a', false);
    ck_assert_int_eq(volume_root(disk.volume, &root), 0);
    ck_assert_int_eq(volume_lookup(root, "file", 4, &inode), 0);
    uint64_t ino = inode->ino;
    ck_assert_int_eq(volume_unlink(root, "file", 4), 0);
    ck_assert_int_eq(volume_sync(disk.volume), 0);
    bytes_copy(disk.volume->device, disk.bytes, true);
    volume_put(inode, 1);
    volume_put(root, 1);
    ck_assert_int_eq(volume_close(disk.volume), 0);

    mount_it(&disk, "", true);
    ck_assert_int_eq(nilfs_ifile_read(nilfs_of(disk.volume)->ifile, ino, &record), 0);
    ck_assert_int_eq(volume_close(disk.volume), 0);
    mount_it(&disk, "", false);
    struct nilfs *nilfs = nilfs_of(disk.volume);
    ck_assert_int_eq(nilfs_ifile_read(nilfs->ifile, ino, &record), -ESTALE);
    ck_assert_uint_eq(nilfs->inodes_count, 2);
    unmount_it(&disk);
    mount_it(&disk, "", true); /* so it stays */
    ck_assert_int_eq(nilfs_ifile_read(nilfs_of(disk.volume)->ifile, ino, &record), -ESTALE);
    ck_assert_int_eq(read_file(&disk, "kept"), 'k');
    ck_assert_int_eq(read_file(&disk, "file"), 0);
    ck_assert_int_eq(volume_close(disk.volume), 0);
    disk_free(&disk);
}
END_TEST

/* fdatasync of one file leaves what is in the cache of another where it is, and makes no
 * checkpoint; fsync stores it. */
START_TEST(data_only_is_one_file) {
    struct inode *root, *other;
    struct disk disk;

    disk_make(&disk);
    mount_it(&disk, "", false);
    write_file(&disk, "file", 'a', false);
    write_file(&disk, "other", 'a', false);
    ck_assert_int_eq(volume_root(disk.volume, &root), 0);
    ck_assert_int_eq(volume_lookup(root, "other", 5, &other), 0);
    ck_assert_int_eq(volume_write(other, "b", 1, 0), 1);
    uint64_t newest = nilfs_of(disk.volume)->newest;
    write_file(&disk, "file", 'b', true);
    ck_assert_uint_eq(nilfs_of(disk.volume)->newest, newest);
    ck_assert(page_cache_has_dirty(other));
    write_file(&disk, "file", 'c', false);
    ck_assert_uint_gt(nilfs_of(disk.volume)->newest, newest);
    ck_assert(!page_cache_has_dirty(other));
    volume_put(other, 1);
    volume_put(root, 1);
    unmount_it(&disk);
    disk_free(&disk);
}
END_TEST

static struct nilfs_disk_super *super_at(struct disk *disk, int which) {
    uint64_t offset = which == 0 ? NILFS_SUPER_OFFSET : nilfs_super_second_offset(SIZE);

    return (struct nilfs_disk_super *)(disk->bytes + offset);
}

/* The super block names a log that is not there: the other one is used, and the volume recovered as
 * after a cut. */
START_TEST(falls_back) {
    struct disk disk;

    disk_make(&disk);
    mount_it(&disk, "", false);
    write_file(&disk, "file", 'a', false);
    unmount_it(&disk);
    struct nilfs_disk_super *first = super_at(&disk, 0), *second = super_at(&disk, 1);
    struct nilfs_disk_super *newer =
        le64_load(second->s_last_cno) > le64_load(first->s_last_cno) ? second : first;
    le64_store(&newer->s_last_pseg, le64_load(newer->s_last_pseg) + 1);
    nilfs_super_seal(newer);
    mount_it(&disk, "", false);
    ck_assert_int_eq(read_file(&disk, "file"), 'a');
    unmount_it(&disk);
    mount_it(&disk, "norecovery", false);
    ck_assert_int_eq(volume_close(disk.volume), 0);
    for (int which = 0; which < 2; which++) {
        struct nilfs_disk_super *super = super_at(&disk, which);
        le64_store(&super->s_last_pseg, SIZE);
        nilfs_super_seal(super);
    }
    ck_assert_int_eq(try_mount(&disk, "", false), -EUCLEAN);
    disk_free(&disk);
}
END_TEST

/* One super block is lost: a mount for writing makes it whole again. */
START_TEST(mends_super) {
    for (int lost = 0; lost < 2; lost++) {
        struct disk disk;
        disk_make(&disk);
        memset(super_at(&disk, lost), 0, sizeof(struct nilfs_disk_super));
        mount_it(&disk, "", false);
        unmount_it(&disk);
        memset(super_at(&disk, 1 - lost), 0, sizeof(struct nilfs_disk_super));
        mount_it(&disk, "", false);
        ck_assert_int_eq(volume_close(disk.volume), 0);
        disk_free(&disk);
    }
}
END_TEST

START_TEST(unknown_features) {
    struct disk disk;

    disk_make(&disk);
    for (int which = 0; which < 2; which++) {
        le64_store(&super_at(&disk, which)->s_feature_compat_ro, 4);
        nilfs_super_seal(super_at(&disk, which));
    }
    ck_assert_int_eq(try_mount(&disk, "", false), -EROFS);
    mount_it(&disk, "", true);
    ck_assert_int_eq(volume_close(disk.volume), 0);
    disk_free(&disk);
}
END_TEST

START_TEST(space) {
    struct volume_usage usage;
    struct disk disk;

    disk_make(&disk);
    mount_it(&disk, "interval=7", false);
    const struct nilfs_geometry *g = &nilfs_of(disk.volume)->geometry;
    ck_assert_int_eq(disk.volume->layout->statfs(disk.volume, &usage), 0);
    ck_assert_uint_eq(usage.block_size, 1024);
    ck_assert_uint_eq(usage.blocks, g->segments * 64 - 4);
    ck_assert_uint_eq(usage.free, (g->segments - 2) * 64);
    ck_assert_uint_eq(usage.available, (g->segments - 2 - 8) * 64);
    ck_assert_uint_eq(usage.inodes - usage.inodes_free, 1);
    ck_assert_int_eq(disk.volume->limits.commit_interval_ns, 7 * NS_PER_SEC);
    ck_assert_int_eq(volume_close(disk.volume), 0);
    disk_free(&disk);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("mount");
    tcase_add_test(cases, clean);
    tcase_add_loop_test(cases, after_a_cut, 0, (int)(sizeof(cut_cases) / sizeof(*cut_cases)));
    tcase_add_test(cases, reading_changes_nothing);
    tcase_add_test(cases, cut_again);
    tcase_add_test(cases, far_from_the_cursor);
    tcase_add_test(cases, frees_leftovers);
    tcase_add_test(cases, data_only_is_one_file);
    tcase_add_test(cases, falls_back);
    tcase_add_test(cases, mends_super);
    tcase_add_test(cases, unknown_features);
    tcase_add_test(cases, space);
    Suite *suite = suite_create("nilfs_mount");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
