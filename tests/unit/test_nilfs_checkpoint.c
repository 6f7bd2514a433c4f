/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs/checkpoint.c, commit.c and roll_forward.c: whatever part of what was written is on
 * the disk when power goes, the volume is as it was at the last fsync that had returned, or at the
 * one that had not.
 */
#include <errno.h>

#include "fs/device/fork.h"
#include "fs/device/record.h"
#include "tests/unit/fixture.h"

#define DEVICE_SIZE (UINT64_C(24) << 20)
#define FILE_MAX    (300u << 10)

struct rig {
    struct clock clock;
    struct log log;
    struct device *disk; /* formatted, and never written after that */
    struct device *fork; /* of it */
    struct write_log writes;
};

static void rig_open(struct rig *rig, const char *mkfs_options) {
    const struct layout *layout;
    const struct layout_type *type;
    struct options options;

    memset(rig, 0, sizeof(*rig));
    clock_init_virtual(&rig->clock, NULL);
    rig->log = log_to_stderr("test", LOG_LEVEL_WARNING);
    ck_assert_int_eq(layout_find("nilfs2", &layout, &type), 0);
    ck_assert_int_eq(device_open_ram(DEVICE_SIZE, &rig->clock, &rig->log, &rig->disk), 0);
    ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, &rig->log), 0);
    ck_assert_int_eq(options_parse(&options, mkfs_options), 0);
    ck_assert_int_eq(layout_format("nilfs2", rig->disk, &options), 0);
    options_free(&options);
    ck_assert_int_eq(device_open_fork(rig->disk, &rig->fork), 0);
}

static void rig_close(struct rig *rig) {
    write_log_free(&rig->writes);
    device_close(rig->fork);
    device_close(rig->disk);
}

static struct volume *rig_mount(struct rig *rig, bool record, bool read_only) {
    struct device *device, *recorder;
    struct volume *volume;

    ck_assert_int_eq(device_open_borrowed(rig->fork, &device), 0);
    if (record) {
        ck_assert_int_eq(device_open_record(device, &rig->writes, &recorder), 0);
        device = recorder;
    }
    struct volume_config config = {.type = "nilfs2",
                                   .device = device,
                                   .clock = &rig->clock,
                                   .log = &rig->log,
                                   .read_only = read_only};
    ck_assert_int_eq(volume_open(&config, &volume), 0);
    return volume;
}

static struct inode *file_get(struct volume *volume, const char *name, bool make) {
    const struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *root, *inode = NULL;

    ck_assert_int_eq(volume_root(volume, &root), 0);
    int error = volume_lookup(root, name, (uint32_t)strlen(name), &inode);
    if (error == -ENOENT && make)
        error = volume_create(root, name, (uint32_t)strlen(name), &request, &inode);
    volume_put(root, 1);
    ck_assert(error == 0 || error == -ENOENT);
    return error ? NULL : inode;
}

/* A file of version v: its length, unless that is fixed, and every byte say which. */
static uint32_t version_length(uint32_t version, uint32_t length) {
    return length ? length : 1 + (version * 7919) % FILE_MAX;
}

static void version_write(struct volume *volume, uint32_t version, uint32_t length,
                          bool data_only) {
    struct inode *inode = file_get(volume, "file", true);
    uint32_t bytes = version_length(version, length);
    uint8_t *data = malloc(bytes);

    ck_assert_ptr_nonnull(data);
    memset(data, (int)version, bytes);
    ck_assert_int_eq(volume_write(inode, data, bytes, 0), bytes);
    if (!length)
        ck_assert_int_eq(volume_truncate(inode, bytes), 0);
    ck_assert_int_eq(volume_fsync(inode, data_only), 0);
    volume_put(inode, 1);
    free(data);
}

/* Which version it is; 0: there is none yet. */
static uint32_t version_read(struct volume *volume, uint32_t length, uint32_t least) {
    struct inode *inode = file_get(volume, "file", false);
    static uint8_t data[FILE_MAX + 1];

    if (!inode)
        return 0;
    int64_t bytes = volume_read(inode, data, sizeof(data), 0);
    volume_put(inode, 1);
    ck_assert_int_ge(bytes, 0);
    if (bytes == 0) /* created, and not written */
        return 0;
    uint32_t version = data[0];
    ck_assert_int_eq(bytes, version_length(version, length));
    for (int64_t i = 1; i < bytes; i++)
        ck_assert_msg(data[i] == version, "version %u (at least %u) has byte %u at %lld", version,
                      least, data[i], (long long)i);
    return version;
}

/* Cuts power after `count` records and `length` bytes of the next, and looks. */
static void cut_and_check(struct rig *rig, size_t count, uint32_t length, uint32_t file_length) {
    uint32_t least = 0;

    device_fork_reset(rig->fork);
    for (size_t i = 0; i < count; i++) {
        const struct record *record = &rig->writes.records[i];
        if (record->kind == RECORD_WRITE)
            ck_assert_int_eq(write_log_apply(&rig->writes, record, record->length, rig->fork), 0);
        else if (record->kind == RECORD_MARK)
            least = (uint32_t)record->offset;
    }
    if (length > 0)
        ck_assert_int_eq(
            write_log_apply(&rig->writes, &rig->writes.records[count], length, rig->fork), 0);
    for (int read_only = 1; read_only >= 0; read_only--) {
        struct volume *volume = rig_mount(rig, false, read_only);
        uint32_t version = version_read(volume, file_length, least);
        ck_assert_msg(version == least || version == least + 1,
                      "after %zu records and %u bytes: version %u, not %u", count, length, version,
                      least);
        if (!read_only) { /* and life goes on */
            version_write(volume, 200, file_length, false);
            ck_assert_uint_eq(version_read(volume, file_length, 200), 200);
        }
        ck_assert_int_eq(volume_close(volume), 0);
    }
    struct volume *volume = rig_mount(rig, false, true);
    ck_assert_uint_eq(version_read(volume, file_length, 200), 200);
    ck_assert_int_eq(volume_close(volume), 0);
}

/* `step`: every how many-th record is looked at. */
static void power_cuts(const char *mkfs_options, uint32_t versions, uint32_t file_length,
                       bool data_only, size_t step) {
    struct rig rig;

    rig_open(&rig, mkfs_options);
    struct volume *volume = rig_mount(&rig, true, false);
    for (uint32_t version = 1; version <= versions; version++) {
        version_write(volume, version, file_length, data_only && version > 1);
        ck_assert_int_eq(write_log_mark(&rig.writes, version), 0);
        clock_wait_until(&rig.clock, clock_now(&rig.clock) + 3 * NS_PER_SEC);
        ck_assert_int_eq(volume_tick(volume), 0); /* periodic work is done between the versions */
    }
    ck_assert_int_eq(volume_close(volume), 0);
    for (size_t i = 0; i <= rig.writes.count; i += step) {
        const struct record *record = i < rig.writes.count ? &rig.writes.records[i] : NULL;
        cut_and_check(&rig, i, 0, file_length);
        if (record && record->kind == RECORD_WRITE && record->length > DEVICE_SECTOR)
            cut_and_check(&rig, i, record->length / 2 / DEVICE_SECTOR * DEVICE_SECTOR, file_length);
    }
    rig_close(&rig);
}

START_TEST(cut_checkpoints) {
    power_cuts("block_size=4096,blocks_per_segment=64", 12, 0, false, 1);
}
END_TEST

/* Segments are shorter than the file: each checkpoint is in several. */
START_TEST(cut_small_blocks) {
    power_cuts("block_size=1024,blocks_per_segment=128", 8, 0, false, 1);
}
END_TEST

START_TEST(cut_data_only) {
    power_cuts("block_size=4096,blocks_per_segment=64", 12, 20000, true, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nilfs_checkpoint");
    TCase *tests = tcase_create("power cuts");

    tcase_add_test(tests, cut_checkpoints);
    tcase_add_test(tests, cut_small_blocks);
    tcase_add_test(tests, cut_data_only);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}
