/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/ext/journal*.c: every write of a workload is recorded; then the power goes at many
 * moments, with any part of what was not flushed lost. Each state must recover to a volume that our
 * check finds nothing wrong with, in which every file that was fsynced is whole.
 */
#include <errno.h>

#include "fs/device/record.h"
#include "layouts/ext/ext.h"
#include "layouts/ext/journal_format.h"
#include "tests/unit/fixture.h"

#define SIZE       (UINT64_C(6) << 20)
#define FILES      24
#define FILE_BYTES 5000u
#define MKFS       "has_journal,block_size=1024,journal_size=1M,inodes=256"

struct stage {
    struct clock clock;
    struct log log;
    struct write_log writes;
    struct device *start; /* as it was when recording began */
    uint64_t seed;
};

/* What mark number n says is durable: file number, and the value its bytes have; 0: no file. */
struct promise {
    size_t record;
    int file;
    unsigned char value;
};

static struct device *ram(struct stage *stage) {
    struct device *device;

    ck_assert_int_eq(device_open_ram(SIZE, &stage->clock, &stage->log, &device), 0);
    return device;
}

static void copy_device(struct device *from, struct device *to) {
    static unsigned char bytes[1 << 20];

    for (uint64_t at = 0; at < SIZE; at += sizeof(bytes)) {
        ck_assert_int_eq(device_read(from, at, bytes, sizeof(bytes), PURPOSE_OTHER), 0);
        ck_assert_int_eq(device_write(to, at, bytes, sizeof(bytes), PURPOSE_OTHER), 0);
    }
}

static void format(struct device *device, const struct log *log, const char *text) {
    const struct layout *layout;
    const struct layout_type *type;
    struct options options;

    ck_assert_int_eq(layout_find("ext3", &layout, &type), 0);
    ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, log), 0);
    ck_assert_int_eq(options_parse(&options, text), 0);
    ck_assert_int_eq(layout_format("ext3", device, &options), 0);
    options_free(&options);
}

static int mount(struct stage *stage, struct device *device, const char *options, bool read_only,
                 struct volume **volume) {
    struct volume_config config = {.type = "ext3",
                                   .device = device,
                                   .clock = &stage->clock,
                                   .log = &stage->log,
                                   .options = options,
                                   .read_only = read_only};

    return volume_open(&config, volume);
}

static void stage_begin(struct stage *stage, const char *test) {
    memset(stage, 0, sizeof(*stage));
    clock_init_virtual(&stage->clock, NULL);
    stage->log = log_to_stderr("test", LOG_LEVEL_ERROR);
    stage->seed = fixture_seed(test);
    stage->start = ram(stage);
    format(stage->start, &stage->log, MKFS);
}

static void stage_end(struct stage *stage) {
    device_close(stage->start);
    write_log_free(&stage->writes);
}

/* --- the workload -------------------------------------------------------------------------------
 */

static void file_name(int file, char name[16]) {
    snprintf(name, 16, "file%d", file);
}

static void write_file(struct inode *root, int file, unsigned char value, bool sync) {
    const struct create_request request = {.mode = S_IFREG | 0644};
    unsigned char bytes[FILE_BYTES];
    struct inode *inode;
    char name[16];

    file_name(file, name);
    if (volume_lookup(root, name, (uint32_t)strlen(name), &inode))
        ck_assert_int_eq(volume_create(root, name, (uint32_t)strlen(name), &request, &inode), 0);
    memset(bytes, value, sizeof(bytes));
    ck_assert_int_eq(volume_write(inode, bytes, sizeof(bytes), 0), sizeof(bytes));
    if (sync)
        ck_assert_int_eq(volume_fsync(inode, false), 0);
    volume_put(inode, 1);
}

static void remove_file(struct inode *root, int file) {
    char name[16];
    int error;

    file_name(file, name);
    error = volume_unlink(root, name, (uint32_t)strlen(name));
    ck_assert(error == 0 || error == -ENOENT);
}

/* Files are written whole and fsynced, removed and the directory fsynced, or neither; a big one
 * comes and goes, so that blocks of metadata are freed and used again for data. */
static size_t workload(struct stage *stage, const char *options, unsigned steps,
                       struct promise *promises) {
    struct device *lower = ram(stage), *device;
    struct volume *volume;
    struct inode *root;
    size_t count = 0;

    copy_device(stage->start, lower);
    ck_assert_int_eq(device_open_record(lower, &stage->writes, &device), 0);
    ck_assert_int_eq(mount(stage, device, options, false, &volume), 0);
    ck_assert_int_eq(volume_root(volume, &root), 0);
    for (unsigned i = 0; i < steps; i++) {
        uint64_t chance = fixture_random(&stage->seed);
        int file = (int)(chance % FILES);
        unsigned char value = (unsigned char)(1 + (chance >> 8) % 255);
        bool sync = (chance >> 16) % 3 == 0;

        /* What is about to change is not promised any more. */
        promises[count++] = (struct promise){stage->writes.count, file, 0};
        if ((chance >> 20) % 3 == 0) {
            remove_file(root, file);
        } else if ((chance >> 20) % 16 == 1) {
            const struct create_request request = {.mode = S_IFREG | 0644};
            static const unsigned char bytes[200000];
            struct inode *big;

            ck_assert_int_eq(volume_create(root, "big", 3, &request, &big), 0);
            ck_assert_int_ge(volume_write(big, bytes, sizeof(bytes), 0), 0);
            if (sync)
                ck_assert_int_eq(volume_fsync(big, false), 0);
            ck_assert_int_eq(volume_truncate(big, 30000), 0);
            volume_put(big, 1);
            ck_assert_int_eq(volume_unlink(root, "big", 3), 0);
            if ((chance >> 30) % 2)
                ck_assert_int_eq(volume_sync(volume), 0);
        } else {
            write_file(root, file, value, sync);
            if (sync)
                promises[count++] = (struct promise){stage->writes.count, file, value};
        }
    }
    volume_put(root, 1);
    ck_assert_int_eq(volume_close(volume), 0);
    return count;
}

/* --- the crash ----------------------------------------------------------------------------------
 */

/* The device as it may be when the power goes after `records` records: what was flushed, and of the
 * writes since a part by chance. */
static struct device *crash(struct stage *stage, size_t records) {
    struct device *device = ram(stage);
    size_t flushed = 0;
    uint64_t how = fixture_random(&stage->seed) % 3;

    copy_device(stage->start, device);
    for (size_t i = 0; i < records; i++)
        if (stage->writes.records[i].kind == RECORD_FLUSH)
            flushed = i;
    for (size_t i = 0; i < records; i++) {
        const struct record *record = &stage->writes.records[i];
        bool kept = how == 0 || (how == 1 && fixture_random(&stage->seed) % 2);

        if (record->kind == RECORD_WRITE && (i < flushed || kept))
            ck_assert_int_eq(write_log_apply(&stage->writes, record, record->length, device), 0);
    }
    return device;
}

static void finding(void *context, enum check_severity severity, const char *text) {
    if (severity == CHECK_WRONG) {
        printf("  check: %s\n", text);
        ++*(int *)context;
    }
}

static int check_device(struct stage *stage, struct device *device) {
    const struct layout *layout;
    const struct layout_type *type;
    int wrong = 0;
    struct check_report report = {.finding = finding, .context = &wrong};

    ck_assert_int_eq(layout_find("ext3", &layout, &type), 0);
    if (layout->check(device, &stage->log, &report))
        wrong++;
    return wrong;
}

/* Does the file have the value in all its bytes? Value 0: nothing is promised. */
static bool promise_kept(struct inode *root, const struct promise *promise) {
    unsigned char bytes[FILE_BYTES];
    struct inode *inode;
    char name[16];
    bool kept;

    if (promise->value == 0)
        return true;
    file_name(promise->file, name);
    if (volume_lookup(root, name, (uint32_t)strlen(name), &inode))
        return false;
    kept = volume_read(inode, bytes, sizeof(bytes), 0) == sizeof(bytes);
    for (unsigned i = 0; i < sizeof(bytes) && kept; i++)
        kept = bytes[i] == promise->value;
    volume_put(inode, 1);
    return kept;
}

static int broken_promises(struct inode *root, const struct promise *promises, size_t count,
                           size_t records) {
    struct promise last[FILES] = {0};
    int broken = 0;

    for (size_t i = 0; i < count; i++)
        if (promises[i].value == 0 ? promises[i].record < records : promises[i].record <= records)
            last[promises[i].file] = promises[i];
    for (int i = 0; i < FILES; i++)
        if (!promise_kept(root, &last[i])) {
            printf("  file%d, fsynced at record %zu, is gone or wrong\n", i, last[i].record);
            broken++;
        }
    return broken;
}

/* Recovers the state and returns how many things are wrong with it. */
static int recover_and_judge(struct stage *stage, const struct promise *promises, size_t count,
                             size_t records) {
    struct device *device = crash(stage, records), *copy = ram(stage);
    struct volume *volume;
    struct inode *root;
    int wrong = 0;

    if (mount(stage, device, NULL, false, &volume)) {
        device_close(device);
        device_close(copy);
        return 1;
    }
    ck_assert_int_eq(volume_root(volume, &root), 0);
    wrong += broken_promises(root, promises, count, records);
    volume_put(root, 1);
    ck_assert_int_eq(volume_sync(volume), 0);
    copy_device(volume->device, copy);
    ck_assert_int_eq(volume_close(volume), 0);
    /* The copy was not unmounted: it recovers once more. */
    if (mount(stage, copy, NULL, false, &volume)) {
        device_close(copy);
        return wrong + 1;
    }
    wrong += check_device(stage, volume->device);
    copy = NULL;
    ck_assert_int_eq(volume_close(volume), 0);
    return wrong;
}

static int crashes(struct stage *stage, const char *options, unsigned steps, unsigned states) {
    struct promise *promises = calloc((size_t)steps * 2, sizeof(*promises));
    size_t count = workload(stage, options, steps, promises);
    int wrong = 0;

    for (unsigned i = 0; i < states; i++) {
        size_t records = 1 + fixture_random(&stage->seed) % stage->writes.count;
        int found = recover_and_judge(stage, promises, count, records);

        if (found > 0 && wrong == 0)
            printf("  the first: %s, after record %zu of %zu\n", options, records,
                   stage->writes.count);
        wrong += found;
    }
    free(promises);
    write_log_clear(&stage->writes);
    return wrong;
}

static const char *const modes[] = {"journal=ordered", "journal=writeback", "journal=data"};

START_TEST(crash_states) {
    struct stage stage;

    stage_begin(&stage, modes[_i]);
    ck_assert_int_eq(crashes(&stage, modes[_i], 400, 150 * fixture_factor()), 0);
    stage_end(&stage);
}
END_TEST

/* The test can fail: a journal that is wrong is found to be. */
static const char *const faults[] = {"journal_fault=commit-first", "journal_fault=no-flush",
                                     "journal_fault=no-revoke", "journal_fault=stale-tail"};

START_TEST(faults_are_found) {
    struct stage stage;
    int wrong = 0;

    stage_begin(&stage, faults[_i]);
    stage.log = log_to_stderr("test", LOG_LEVEL_ERROR);
    for (int tries = 0; tries < 20 && wrong == 0; tries++)
        wrong = crashes(&stage, faults[_i], 400, 100);
    ck_assert_int_gt(wrong, 0);
    stage_end(&stage);
}
END_TEST

/* A super block that names no inode of the volume as its journal is refused, not followed. */
static const uint32_t strange_inodes[] = {1, 7, 257, 0xFFFFFFFF};

START_TEST(journal_inode_is_checked) {
    struct stage stage;
    struct ext_disk_super super;
    struct volume *volume;

    stage_begin(&stage, "journal inode");
    stage.log = log_to_stderr("test", LOG_LEVEL_ERROR);
    ck_assert_int_eq(
        device_read(stage.start, EXT_SUPER_OFFSET, &super, sizeof(super), PURPOSE_SUPER), 0);
    le32_store(&super.s_journal_inum, strange_inodes[_i]);
    ck_assert_int_eq(
        device_write(stage.start, EXT_SUPER_OFFSET, &super, sizeof(super), PURPOSE_SUPER), 0);
    ck_assert_int_lt(mount(&stage, stage.start, NULL, false, &volume), 0);
    stage_end(&stage);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ext_journal");
    TCase *tcase = tcase_create("crash");

    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, crash_states, 0, 3);
    tcase_add_loop_test(tcase, faults_are_found, 0, 4);
    tcase_add_loop_test(tcase, journal_inode_is_checked, 0, 4);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
