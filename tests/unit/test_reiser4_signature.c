/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * layouts/reiser4: what reaches the disk beside what the real driver writes in the same situation
 * (docs/fidelity.md, which quotes what --table prints). A volume of plain files, 256 MiB.
 */
#include <inttypes.h>

#include "fs/device/fork.h"
#include "fs/device/record.h"
#include "fs/pagecache.h"
#include "tests/unit/fixture.h"

#define DEVICE_SIZE (UINT64_C(256) << 20)
#define KIB         1024u
/* What one request of the measured machine's disk can hold: 254 pages. */
#define REQUEST_MAX (254 * UINT64_C(4096))

struct traffic {
    unsigned writes, flushes;
    uint64_t kib;
};

struct rig {
    struct clock clock;
    struct log log;
    struct device *disk;
    struct write_log writes;
    struct volume *volume;
    struct inode *root;
    uint64_t random;
};

static void rig_mount(struct rig *rig, const char *options) {
    struct device *borrowed, *recorder;

    ck_assert_int_eq(device_open_borrowed(rig->disk, &borrowed), 0);
    ck_assert_int_eq(device_open_record(borrowed, &rig->writes, &recorder), 0);
    struct volume_config config = {.type = "reiser4",
                                   .device = recorder,
                                   .clock = &rig->clock,
                                   .log = &rig->log,
                                   .options = options};
    ck_assert_int_eq(volume_open(&config, &rig->volume), 0);
    ck_assert_int_eq(volume_root(rig->volume, &rig->root), 0);
}

static void rig_unmount(struct rig *rig) {
    volume_put(rig->root, 1);
    ck_assert_int_eq(volume_close(rig->volume), 0);
    rig->volume = NULL;
}

static void rig_open(struct rig *rig, const char *mount_options) {
    const struct layout *layout;
    const struct layout_type *type;
    struct options options;

    memset(rig, 0, sizeof(*rig));
    clock_init_virtual(&rig->clock, NULL);
    rig->log = log_to_stderr("test", LOG_LEVEL_WARNING);
    rig->random = 1;
    ck_assert_int_eq(layout_find("reiser4", &layout, &type), 0);
    ck_assert_int_eq(device_open_ram(DEVICE_SIZE, &rig->clock, &rig->log, &rig->disk), 0);
    ck_assert_int_eq(options_init(&options, layout->options, OPTION_MKFS, &rig->log), 0);
    ck_assert_int_eq(options_parse(&options, "create=reg40"), 0);
    ck_assert_int_eq(layout_format("reiser4", rig->disk, &options), 0);
    options_free(&options);
    rig_mount(rig, mount_options);
    write_log_clear(&rig->writes);
}

static void rig_close(struct rig *rig) {
    if (rig->volume)
        rig_unmount(rig);
    write_log_free(&rig->writes);
    device_close(rig->disk);
}

/* What was written since the last time; neighbours written in turn are one request. */
static struct traffic traffic(struct rig *rig) {
    struct traffic t = {0};
    uint64_t end = UINT64_MAX, length = 0;

    for (size_t i = 0; i < rig->writes.count; i++) {
        const struct record *record = &rig->writes.records[i];
        if (record->kind == RECORD_FLUSH) {
            t.flushes++;
            end = UINT64_MAX;
        } else if (record->kind == RECORD_WRITE) {
            for (uint64_t at = 0, part; at < record->length; at += part) {
                bool joins = record->offset + at == end && length < REQUEST_MAX;
                length = joins ? length : 0;
                part = record->length - at < REQUEST_MAX - length ? record->length - at
                                                                  : REQUEST_MAX - length;
                t.writes += !joins;
                length += part;
                end = record->offset + at + part;
            }
            t.kib += record->length / KIB;
        }
    }
    write_log_clear(&rig->writes);
    return t;
}

/* --- what a program does -----------------------------------------------------------------------
 */

static struct inode *make(struct rig *rig, struct inode *parent, const char *name, mode_t mode) {
    const struct create_request request = {.mode = mode};
    struct inode *inode;

    ck_assert_int_eq(volume_create(parent, name, (uint32_t)strlen(name), &request, &inode), 0);
    return inode;
}

static void write_at(struct rig *rig, struct inode *inode, uint64_t offset, size_t bytes) {
    static uint8_t data[1 << 20];

    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t value = fixture_random(&rig->random);
        memcpy(data + i, &value, 8);
    }
    ck_assert_int_eq(volume_write(inode, data, bytes, offset), (int64_t)bytes);
}

/* Makes, writes and closes a file. */
static void put_file(struct rig *rig, struct inode *parent, const char *name, size_t bytes) {
    struct inode *inode = make(rig, parent, name, S_IFREG | 0644);

    write_at(rig, inode, 0, bytes);
    volume_put(inode, 1);
}

static struct inode *look_up(struct inode *parent, const char *name) {
    struct inode *inode;

    ck_assert_int_eq(volume_lookup(parent, name, (uint32_t)strlen(name), &inode), 0);
    return inode;
}

static void sync_all(struct rig *rig) {
    ck_assert_int_eq(volume_sync(rig->volume), 0);
}

static void remove_name(struct inode *parent, const char *name) {
    ck_assert_int_eq(volume_unlink(parent, name, (uint32_t)strlen(name)), 0);
}

/* --- the rows ----------------------------------------------------------------------------------
 */

static void fsync_new(struct rig *rig) {
    struct inode *inode = make(rig, rig->root, "new", S_IFREG | 0644);

    write_at(rig, inode, 0, 3000);
    ck_assert_int_eq(volume_fsync(inode, false), 0);
    volume_put(inode, 1);
}

static void overwrite(struct rig *rig, unsigned blocks) {
    struct inode *inode = look_up(rig->root, "large");

    for (unsigned done = 0; done < blocks; done += 256)
        write_at(rig, inode, ((uint64_t)1 << 20) + done * 4096u,
                 (blocks - done < 256 ? blocks - done : 256) * 4096u);
    ck_assert_int_eq(volume_fsync(inode, true), 0);
    volume_put(inode, 1);
}
static void overwrite_one(struct rig *rig) {
    overwrite(rig, 1);
}

static void create_thousand(struct rig *rig) {
    struct inode *parent = make(rig, rig->root, "many", S_IFDIR | 0755);
    char name[16];

    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        put_file(rig, parent, name, 1000);
    }
    volume_put(parent, 1);
}

static void write_much(struct rig *rig) {
    struct inode *inode = make(rig, rig->root, "much", S_IFREG | 0644);

    for (uint64_t i = 0; i < 32; i++)
        write_at(rig, inode, i << 20, 1 << 20);
    volume_put(inode, 1);
}

static void remove_much(struct rig *rig) {
    remove_name(rig->root, "much");
    sync_all(rig);
}

static void remove_thousand(struct rig *rig) {
    struct inode *parent = look_up(rig->root, "many");
    char name[16];

    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        remove_name(parent, name);
    }
    volume_put(parent, 1);
    ck_assert_int_eq(volume_rmdir(rig->root, "many", 4), 0);
    sync_all(rig);
}

static void create_and_fsync(struct rig *rig) {
    char name[16];

    for (unsigned i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        struct inode *inode = make(rig, rig->root, name, S_IFREG | 0644);
        write_at(rig, inode, 0, 1000);
        ck_assert_int_eq(volume_fsync(inode, false), 0);
        volume_put(inode, 1);
    }
}

static void append_and_fsync(struct rig *rig) {
    struct inode *inode = look_up(rig->root, "s3");

    for (unsigned i = 0; i < 10; i++) {
        write_at(rig, inode, 1000 + i * 100, 100);
        ck_assert_int_eq(volume_fsync(inode, false), 0);
    }
    volume_put(inode, 1);
}

static void fsync_root(struct rig *rig) {
    ck_assert_int_eq(volume_fsync(rig->root, false), 0);
}
static void remove_and_fsync(struct rig *rig) {
    remove_name(rig->root, "s1");
    fsync_root(rig);
}
static void rename_and_fsync(struct rig *rig) {
    ck_assert_int_eq(volume_rename(rig->root, "s2", 2, rig->root, "t2", 2, 0), 0);
    fsync_root(rig);
}
static void mkdir_and_fsync(struct rig *rig) {
    volume_put(make(rig, rig->root, "directory", S_IFDIR | 0755), 1);
    fsync_root(rig);
}

/* --- judged ------------------------------------------------------------------------------------
 */

static const struct row {
    const char *what;
    void (*run)(struct rig *rig);
    struct traffic driver, ours; /* flushes of the driver: four a commit */
} rows[] = {
    {"fsync of a new 3000-byte file", fsync_new, {6, 4, 48}, {5, 4, 60}},
    {"fdatasync after a 4 KiB overwrite", overwrite_one, {6, 4, 32}, {5, 4, 32}},
    {"create 1000 files of 1000 bytes", create_thousand, {0, 0, 0}, {0, 0, 0}},
    {"then sync", sync_all, {7, 4, 1236}, {5, 4, 1252}},
    {"write 32 MiB in 1 MiB calls", write_much, {0, 0, 0}, {0, 0, 0}},
    {"then sync", sync_all, {41, 4, 32824}, {36, 4, 32828}},
    {"rm of it, sync", remove_much, {7, 4, 44}, {4, 4, 60}},
    {"rm -r of the 1000 files, sync", remove_thousand, {9, 4, 52}, {4, 4, 44}},
    {"10 x (create 1000 bytes, fsync)", create_and_fsync, {78, 40, 584}, {53, 40, 520}},
    {"10 x (append 100 bytes, fsync)", append_and_fsync, {79, 40, 592}, {40, 40, 528}},
    {"rm + fsync of the directory", remove_and_fsync, {8, 4, 60}, {4, 4, 52}},
    {"rename + fsync of the directory", rename_and_fsync, {7, 4, 52}, {4, 4, 40}},
    {"mkdir + fsync", mkdir_and_fsync, {4, 4, 24}, {4, 4, 52}},
    {"sync with nothing dirty", sync_all, {0, 0, 0}, {0, 0, 0}},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

/* A volume with something on it, freshly mounted. */
static void prepare(struct rig *rig, const char *options) {
    char name[16];

    rig_open(rig, options);
    struct inode *large = make(rig, rig->root, "large", S_IFREG | 0644);
    for (uint64_t i = 0; i < 8; i++)
        write_at(rig, large, i << 20, 1 << 20);
    volume_put(large, 1);
    for (unsigned i = 0; i < 60; i++) {
        snprintf(name, sizeof(name), "old%u", i);
        put_file(rig, rig->root, name, 500 + i * 100);
    }
    rig_unmount(rig);
    rig_mount(rig, options);
    traffic(rig);
}

static void print_row(const char *what, const struct traffic *driver, const struct traffic *ours) {
    printf("| %s | %u | %" PRIu64 " | %u | %" PRIu64 " | %u |\n", what, driver->writes, driver->kib,
           ours->writes, ours->kib, ours->flushes);
}

static const struct {
    const char *options;
    unsigned blocks, driver_kib, kib;
} overwrites[] = {
    {"txmod=hybrid", 1, 32, 32},         {"txmod=hybrid", 16, 152, 152},
    {"txmod=hybrid", 32, 280, 280},      {"txmod=hybrid", 61, 512, 512},
    {"txmod=hybrid", 62, 288, 284},      {"txmod=hybrid", 128, 552, 548},
    {"txmod=hybrid", 1000, 4040, 4036},  {"txmod=journal", 62, 520, 520},
    {"txmod=journal", 1000, 8036, 8036}, {"txmod=wa", 1, 44, 40},
    {"txmod=wa", 16, 104, 100},          {"txmod=wa", 62, 288, 284},
};
#define OVERWRITES ((int)(sizeof(overwrites) / sizeof(*overwrites)))

START_TEST(print_table) {
    struct rig rig;

    prepare(&rig, NULL);
    for (size_t i = 0; i < ROWS; i++) {
        rows[i].run(&rig);
        struct traffic t = traffic(&rig);
        print_row(rows[i].what, &rows[i].driver, &t);
    }
    rig_unmount(&rig);
    struct traffic t = traffic(&rig);
    print_row("unmount", &(struct traffic){5, 4, 24}, &t);
    rig_close(&rig);
    for (int i = 0; i < OVERWRITES; i++)
        printf("| %s, %u blocks | %u | %u |\n", overwrites[i].options, overwrites[i].blocks,
               overwrites[i].driver_kib, overwrites[i].kib);
}
END_TEST

START_TEST(rows_are_as_documented) {
    struct rig rig;

    prepare(&rig, NULL);
    for (size_t i = 0; i < ROWS; i++) {
        rows[i].run(&rig);
        struct traffic t = traffic(&rig);
        ck_assert_msg(memcmp(&t, &rows[i].ours, sizeof(t)) == 0,
                      "%s: %u writes, %u flushes, %" PRIu64 " KiB", rows[i].what, t.writes,
                      t.flushes, t.kib);
    }
    rig_unmount(&rig);
    ck_assert_uint_eq(traffic(&rig).writes, 0);
    rig_close(&rig);
}
END_TEST

/* Blocks that are written again: in their places and twice, or elsewhere and once. */
START_TEST(overwrites_are_as_the_drivers) {
    struct rig rig;

    prepare(&rig, overwrites[_i].options);
    overwrite(&rig, overwrites[_i].blocks);
    ck_assert_uint_eq(traffic(&rig).kib, overwrites[_i].kib);
    rig_close(&rig);
}
END_TEST

static char byte_at(struct inode *inode, uint64_t offset) {
    char byte;

    ck_assert_int_eq(volume_read(inode, &byte, 1, offset), 1);
    return byte;
}

/* What was stored again and waits for the commit is not in its place yet; but it is what is read.
 */
START_TEST(data_that_wait_for_the_commit_are_read) {
    const uint64_t at = 2 << 20;
    struct rig rig;

    prepare(&rig, "cache=1M");
    struct inode *inode = look_up(rig.root, "large");
    const char before = byte_at(inode, at), after = (char)(before + 1);
    ck_assert_int_eq(volume_write(inode, &after, 1, at), 1);
    for (unsigned i = 0; i < 100; i++) { /* write-back, and no commit */
        rig.clock.now_ns += NS_PER_SEC;
        ck_assert_int_eq(volume_tick(rig.volume), 0);
    }
    ck_assert_uint_eq(traffic(&rig).kib, 0);
    ck_assert(!page_cache_has_dirty(inode));
    for (unsigned i = 0; i < 2048; i++) /* the page has to go, which was used more than once */
        (void)byte_at(inode, (4 << 20) + i / 2 * 4096u);
    ck_assert_int_eq(byte_at(inode, at), after);
    ck_assert_int_eq(volume_fsync(inode, false), 0);
    volume_put(inode, 1);
    rig_unmount(&rig);
    rig_mount(&rig, "cache=1M");
    inode = look_up(rig.root, "large");
    ck_assert_int_eq(byte_at(inode, at), after);
    volume_put(inode, 1);
    rig_close(&rig);
}
END_TEST

int main(int argc, char **argv) {
    Suite *suite = suite_create("reiser4_signature");
    TCase *tests = tcase_create("signature");

    if (argc > 1 && strcmp(argv[1], "--table") == 0) {
        tcase_add_test(tests, print_table);
    } else {
        tcase_add_test(tests, rows_are_as_documented);
        tcase_add_loop_test(tests, overwrites_are_as_the_drivers, 0, OVERWRITES);
        tcase_add_test(tests, data_that_wait_for_the_commit_are_read);
    }
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}
