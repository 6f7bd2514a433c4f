/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/nilfs/cleaner*.c: whatever is cleaned, by whichever policy, files and snapshots are as
 * they were, the volume is sound, and room is made; and power may go at any time.
 */
#include <errno.h>

#include "fs/device/fork.h"
#include "fs/device/record.h"
#include "layouts/nilfs/cleaner.h"
#include "layouts/nilfs/sufile.h"
#include "tests/unit/fixture.h"

#define FILES     12
#define FILE_MAX  (40u << 10)
#define SNAPSHOTS 4

static const char *const policies[] = {"timestamp", "greedy", "cost-benefit"};

struct model { /* what files there are: the seed of each one's contents, 0: there is none */
    uint64_t seed[FILES];
    uint32_t size[FILES];
};

struct rig {
    struct clock clock;
    struct log log;
    struct device *disk, *fork;
    struct write_log writes;
    struct volume *volume;
    struct model now, kept[SNAPSHOTS];
    uint64_t snapshot[SNAPSHOTS]; /* numbers, 0: none */
    uint64_t random;
};

static uint64_t pick(struct rig *rig, uint64_t below) {
    return fixture_random(&rig->random) % below;
}

static void rig_open(struct rig *rig, uint64_t bytes, const char *mkfs_options) {
    struct options options;

    memset(rig, 0, sizeof(*rig));
    clock_init_virtual(&rig->clock, NULL);
    rig->log = log_to_stderr("test", LOG_LEVEL_ERROR);
    ck_assert_int_eq(device_open_ram(bytes, &rig->clock, &rig->log, &rig->disk), 0);
    ck_assert_int_eq(options_init(&options, nilfs_option_table, OPTION_MKFS, &rig->log), 0);
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

static void rig_mount(struct rig *rig, const char *options, bool record, bool read_only) {
    struct device *device, *recorder;

    ck_assert_int_eq(device_open_borrowed(rig->fork, &device), 0);
    if (record) {
        ck_assert_int_eq(device_open_record(device, &rig->writes, &recorder), 0);
        device = recorder;
    }
    struct volume_config config = {.type = "nilfs2",
                                   .device = device,
                                   .clock = &rig->clock,
                                   .log = &rig->log,
                                   .options = options,
                                   .read_only = read_only};
    ck_assert_int_eq(volume_open(&config, &rig->volume), 0);
}

static void rig_unmount(struct rig *rig) {
    ck_assert_int_eq(volume_close(rig->volume), 0);
    rig->volume = NULL;
}

static void pass_time(struct rig *rig, int64_t seconds) {
    for (int64_t i = 0; i < seconds; i++) {
        clock_wait_until(&rig->clock, clock_now(&rig->clock) + NS_PER_SEC);
        for (int tick = 0; tick < 8; tick++) /* a segment each */
            ck_assert_int_eq(volume_tick(rig->volume), 0);
    }
}

static void tell(void *context, enum check_severity severity, const char *text) {
    (void)context;
    if (severity == CHECK_WRONG)
        fprintf(stderr, "check: %s\n", text);
}

static void check_sound(struct rig *rig) {
    struct check_report report = {.finding = tell, .contents = true};

    ck_assert_int_eq(nilfs_check(rig->fork, &rig->log, &report), 0);
    ck_assert_uint_eq(report.wrong, 0);
}

/* --- files ------------------------------------------------------------------------------------ */

static void fill(uint8_t *data, uint32_t size, uint64_t seed) {
    for (uint32_t i = 0; i < size; i += 8) {
        uint64_t word = fixture_random(&seed);
        memcpy(data + i, &word, size - i < 8 ? size - i : 8);
    }
}

static struct inode *file_get(struct volume *volume, unsigned file, bool make) {
    const struct create_request request = {.mode = S_IFREG | 0644};
    struct inode *root, *inode = NULL;
    char name[16];
    uint32_t length = (uint32_t)snprintf(name, sizeof(name), "file%u", file);

    ck_assert_int_eq(volume_root(volume, &root), 0);
    int error = volume_lookup(root, name, length, &inode);
    if (error == -ENOENT && make)
        error = volume_create(root, name, length, &request, &inode);
    volume_put(root, 1);
    ck_assert(error == 0 || error == -ENOENT || error == -ENOSPC);
    return error ? NULL : inode;
}

static void file_write(struct rig *rig, unsigned file) {
    static uint8_t data[FILE_MAX];
    uint32_t size = 1 + (uint32_t)pick(rig, FILE_MAX);
    uint64_t seed = 1 + pick(rig, UINT64_MAX - 1);
    struct inode *inode = file_get(rig->volume, file, true);

    ck_assert_ptr_nonnull(inode);
    fill(data, size, seed);
    ck_assert_int_eq(volume_write(inode, data, size, 0), size);
    ck_assert_int_eq(volume_truncate(inode, size), 0);
    volume_put(inode, 1);
    rig->now.seed[file] = seed;
    rig->now.size[file] = size;
}

static void file_remove(struct rig *rig, unsigned file) {
    struct inode *root;
    char name[16];
    uint32_t length = (uint32_t)snprintf(name, sizeof(name), "file%u", file);

    ck_assert_int_eq(volume_root(rig->volume, &root), 0);
    int error = volume_unlink(root, name, length);
    ck_assert_int_eq(error, rig->now.seed[file] ? 0 : -ENOENT);
    volume_put(root, 1);
    rig->now.seed[file] = 0;
}

static void files_compare(struct volume *volume, const struct model *model, const char *what) {
    static uint8_t expected[FILE_MAX], found[FILE_MAX + 1];

    for (unsigned file = 0; file < FILES; file++) {
        struct inode *inode = file_get(volume, file, false);
        ck_assert_msg((inode != NULL) == (model->seed[file] != 0), "%s: file%u", what, file);
        if (!inode)
            continue;
        fill(expected, model->size[file], model->seed[file]);
        ck_assert_int_eq(volume_read(inode, found, sizeof(found), 0), model->size[file]);
        ck_assert_msg(memcmp(found, expected, model->size[file]) == 0, "%s: file%u differs", what,
                      file);
        volume_put(inode, 1);
    }
}

/* The live tree, from the disk, and every snapshot. */
static void all_compare(struct rig *rig) {
    char options[64];

    rig_mount(rig, NULL, false, true);
    files_compare(rig->volume, &rig->now, "the live tree");
    rig_unmount(rig);
    for (int i = 0; i < SNAPSHOTS; i++) {
        if (!rig->snapshot[i])
            continue;
        snprintf(options, sizeof(options), "cp=%llu", (unsigned long long)rig->snapshot[i]);
        rig_mount(rig, options, false, true);
        files_compare(rig->volume, &rig->kept[i], options);
        rig_unmount(rig);
    }
}

/* --- histories -------------------------------------------------------------------------------- */

static void snapshot_change(struct rig *rig) {
    unsigned slot = (unsigned)pick(rig, SNAPSHOTS);

    if (rig->snapshot[slot]) {
        ck_assert_int_eq(volume_checkpoint_keep(rig->volume, rig->snapshot[slot], false), 0);
        rig->snapshot[slot] = 0;
    } else {
        ck_assert_int_eq(volume_checkpoint_create(rig->volume, &rig->snapshot[slot]), 0);
        rig->kept[slot] = rig->now;
    }
}

/* One thing that a user does. */
static void act(struct rig *rig) {
    unsigned file = (unsigned)pick(rig, FILES);

    switch (pick(rig, 16)) {
    case 0:
        snapshot_change(rig);
        break;
    case 1:
    case 2:
        file_remove(rig, file);
        break;
    case 3:
        ck_assert_int_eq(volume_sync(rig->volume), 0);
        break;
    case 4:
        pass_time(rig, 1 + (int64_t)pick(rig, 16));
        break;
    case 5:
        ck_assert_int_eq(volume_drop_caches(rig->volume), 0);
        break;
    default:
        file_write(rig, file);
    }
}

/* The cleaner never rests, so that it gets in the way of everything. */
static void history(unsigned policy, const char *mkfs_options, unsigned acts) {
    struct rig rig;
    uint64_t moved = 0;
    char options[192];

    rig_open(&rig, UINT64_C(16) << 20, mkfs_options);
    rig.random = fixture_seed(policies[policy]);
    snprintf(options, sizeof(options),
             "cleaner=%s,protection_period=%u,min_clean_segments=0,cleaning_interval=1,"
             "mc_cleaning_interval=0,clean_check_interval=1,min_reclaimable_blocks=%u,discard=%s",
             policies[policy], (unsigned)pick(&rig, 2) * 20, (unsigned)pick(&rig, 2) * 10,
             pick(&rig, 2) ? "on" : "off");
    for (unsigned round = 0; round < 4 * fixture_factor(); round++) {
        rig_mount(&rig, options, false, false);
        for (unsigned i = 0; i < acts; i++)
            act(&rig);
        files_compare(rig.volume, &rig.now, "in core");
        moved += nilfs_of(rig.volume)->cleaner->total.moved;
        rig_unmount(&rig);
        check_sound(&rig);
        all_compare(&rig);
    }
    ck_assert_uint_gt(moved, 0);
    rig_close(&rig);
}

START_TEST(random_histories) {
    history((unsigned)_i, "block_size=1024,blocks_per_segment=64", 150);
    history((unsigned)_i, "block_size=4096,blocks_per_segment=16", 150);
}
END_TEST

/* With `discard`, nothing is left in segments that are clean for sure. */
static void expect_clean_are_empty(struct volume *volume) {
    const struct nilfs *nilfs = nilfs_of(volume);
    const struct nilfs_geometry *geometry = &nilfs->geometry;
    static uint8_t bytes[128 << 10], zeros[128 << 10];
    struct nilfs_usage usage;

    ck_assert_uint_eq(nilfs->freed_count, 0);
    for (uint64_t i = 1; i < geometry->segments; i++) {
        ck_assert_int_eq(nilfs_sufile_read(nilfs_of(volume), i, &usage), 0);
        if (usage.flags)
            continue;
        ck_assert_uint_eq(geometry->segment_blocks << geometry->block_bits, sizeof(bytes));
        ck_assert_int_eq(device_read(volume->device, i * sizeof(bytes), bytes, sizeof(bytes), 0),
                         0);
        ck_assert_msg(memcmp(bytes, zeros, sizeof(bytes)) == 0, "segment %u", (unsigned)i);
    }
}

/* A whole round by hand: of what has died nothing is left, and most of the volume is clean. */
START_TEST(clean_round) {
    struct clean_report report;
    struct rig rig;

    rig_open(&rig, UINT64_C(16) << 20, "block_size=4096,blocks_per_segment=32");
    rig.random = fixture_seed("round");
    rig_mount(&rig, "cleaner=timestamp,protection_period=0,discard=on", false, false);
    for (unsigned i = 0; i < 60; i++) {
        file_write(&rig, i % FILES);
        ck_assert_int_eq(volume_sync(rig.volume), 0);
    }
    clock_wait_until(&rig.clock, clock_now(&rig.clock) + 60 * NS_PER_SEC);
    uint64_t before = nilfs_of(rig.volume)->clean_segments, freed = 0;
    for (unsigned i = 0; i < 64; i++) {
        ck_assert_int_eq(volume_clean(rig.volume, &report), 0);
        for (unsigned k = 0; k < report.count; k++)
            freed += report.segment[k].fate == CLEAN_FREED;
    }
    ck_assert_uint_gt(freed, 8);
    ck_assert_uint_gt(nilfs_of(rig.volume)->clean_segments, before + 8);
    file_write(&rig, 0);
    ck_assert_int_eq(volume_sync(rig.volume), 0);
    expect_clean_are_empty(rig.volume);
    files_compare(rig.volume, &rig.now, "in core");
    rig_unmount(&rig);
    check_sound(&rig);
    all_compare(&rig);
    rig_close(&rig);
}
END_TEST

/* Protection: nothing young goes, and no checkpoint. */
START_TEST(protection) {
    struct clean_report report;
    struct rig rig;

    rig_open(&rig, UINT64_C(16) << 20, "block_size=4096,blocks_per_segment=32");
    rig.random = fixture_seed("protection");
    rig_mount(&rig, "protection_period=100", false, false);
    for (unsigned i = 0; i < 30; i++) {
        file_write(&rig, i % FILES);
        ck_assert_int_eq(volume_sync(rig.volume), 0);
    }
    pass_time(&rig, 50);
    ck_assert_int_eq(volume_clean(rig.volume, &report), 0);
    ck_assert_uint_eq(report.count, 0);
    pass_time(&rig, 60);
    file_write(&rig, 0);
    ck_assert_int_eq(volume_clean(rig.volume, &report), 0);
    ck_assert_uint_gt(report.count, 0);
    rig_unmount(&rig);
    check_sound(&rig);
    all_compare(&rig);
    rig_close(&rig);
}
END_TEST

/* --- a full volume ---------------------------------------------------------------------------- */

/* Overwrites one file again and again, many times the volume's size; how often that went well. */
static unsigned overwrite(struct rig *rig, const char *options, unsigned times, bool in_time) {
    static uint8_t data[FILE_MAX];
    unsigned i;

    rig_mount(rig, options, false, false);
    for (i = 0; i < times; i++) {
        unsigned file = i % FILES;
        struct inode *inode = file_get(rig->volume, file, true);
        if (!inode)
            break;
        fill(data, FILE_MAX, i + 1);
        int64_t written = volume_write(inode, data, FILE_MAX, 0);
        volume_put(inode, 1);
        ck_assert(written == FILE_MAX || written == -ENOSPC || (written > 0 && written < FILE_MAX));
        if (written != FILE_MAX)
            break;
        rig->now.seed[file] = i + 1;
        rig->now.size[file] = FILE_MAX;
        if (in_time)
            pass_time(rig, 1);
        else
            ck_assert_int_eq(volume_sync(rig->volume), 0);
    }
    if (i == times)
        files_compare(rig->volume, &rig->now, options);
    rig_unmount(rig);
    check_sound(rig);
    if (i == times)
        all_compare(rig);
    return i;
}

static unsigned overwrite_new(const char *options, bool in_time) {
    struct rig rig;

    rig_open(&rig, UINT64_C(4) << 20, "block_size=1024,blocks_per_segment=64");
    unsigned times = overwrite(&rig, options, 500, in_time);
    rig_close(&rig);
    return times;
}

START_TEST(full_volume) {
    ck_assert_uint_lt(overwrite_new("cleaner=off", true), 500);
    ck_assert_uint_lt(overwrite_new("protection_period=3600", true), 500);
    ck_assert_uint_lt(overwrite_new("protection_period=3600,wait", true), 500);
    for (unsigned i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
        char options[128];
        snprintf(options, sizeof(options),
                 "cleaner=%s,protection_period=0,clean_check_interval=1,min_clean_segments=25,"
                 "max_clean_segments=50",
                 policies[i]);
        ck_assert_uint_eq(overwrite_new(options, true), 500);
        ck_assert_uint_lt(overwrite_new(options, false), 500);
        snprintf(options, sizeof(options), "cleaner=%s,protection_period=0,wait", policies[i]);
        ck_assert_uint_eq(overwrite_new(options, false), 500);
    }
}
END_TEST

/* Where the reserved segments are more than what has been promised: the driver's condition is what
 * refuses. */
START_TEST(full_volume_with_large_segments) {
    struct rig rig;

    rig_open(&rig, UINT64_C(64) << 20, "block_size=4096,blocks_per_segment=256");
    ck_assert_uint_eq(overwrite(&rig, "protection_period=0,wait", 1800, false), 1800);
    rig_close(&rig);
}
END_TEST

/* --- power cuts ------------------------------------------------------------------------------- */

static void cut(struct rig *rig, size_t count, uint32_t length) {
    device_fork_reset(rig->fork);
    for (size_t i = 0; i < count; i++) {
        const struct record *record = &rig->writes.records[i];
        if (record->kind == RECORD_WRITE)
            ck_assert_int_eq(write_log_apply(&rig->writes, record, record->length, rig->fork), 0);
    }
    if (length > 0)
        ck_assert_int_eq(
            write_log_apply(&rig->writes, &rig->writes.records[count], length, rig->fork), 0);
}

/* Files do not change any more while all is cleaned: at every write they are what they are. */
START_TEST(power_cuts) {
    struct clean_report report;
    struct rig rig;
    size_t from = 0;

    rig_open(&rig, UINT64_C(4) << 20, "block_size=1024,blocks_per_segment=64");
    rig.random = fixture_seed("cuts");
    rig_mount(&rig, "protection_period=0,mc_nsegments_per_clean=2,discard=on", true, false);
    for (unsigned i = 0; i < 40; i++) {
        file_write(&rig, (unsigned)pick(&rig, FILES));
        if (i % 8 == 0)
            ck_assert_int_eq(volume_sync(rig.volume), 0);
    }
    ck_assert_int_eq(volume_checkpoint_create(rig.volume, &rig.snapshot[0]), 0);
    rig.kept[0] = rig.now;
    for (unsigned i = 0; i < FILES; i++)
        file_write(&rig, i);
    ck_assert_int_eq(volume_sync(rig.volume), 0);
    from = rig.writes.count;
    for (unsigned i = 0; i < 24; i++) {
        clock_wait_until(&rig.clock, clock_now(&rig.clock) + NS_PER_SEC);
        ck_assert_int_eq(volume_clean(rig.volume, &report), 0);
    }
    ck_assert_uint_gt(nilfs_of(rig.volume)->cleaner->total.moved, 0);
    rig_unmount(&rig);
    for (size_t i = from; i <= rig.writes.count; i++) {
        const struct record *record = i < rig.writes.count ? &rig.writes.records[i] : NULL;
        cut(&rig, i, 0);
        all_compare(&rig);
        if (!record || record->kind != RECORD_WRITE)
            continue;
        cut(&rig, i, record->length / 2 / DEVICE_SECTOR * DEVICE_SECTOR);
        all_compare(&rig);
        if (i % 4 == 0) { /* and life goes on */
            rig_mount(&rig, "protection_period=0", false, false);
            ck_assert_int_eq(volume_clean(rig.volume, &report), 0);
            rig_unmount(&rig);
            all_compare(&rig);
            check_sound(&rig);
        }
    }
    rig_close(&rig);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("nilfs_cleaner");
    TCase *tests = tcase_create("cleaner");

    tcase_set_timeout(tests, 60 * fixture_factor());
    tcase_add_loop_test(tests, random_histories, 0, sizeof(policies) / sizeof(*policies));
    tcase_add_test(tests, clean_round);
    tcase_add_test(tests, protection);

    tcase_add_test(tests, power_cuts);
    tcase_add_test(tests, full_volume);
    tcase_add_test(tests, full_volume_with_large_segments);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}
